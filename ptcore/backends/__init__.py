"""What ptcore is built with, and settings of the libraries that it calls, by PyTorch's names.

>>> import ptcore
>>> ptcore.backends.cuda.matmul.allow_tf32
False
"""
from ptcore import _lazy

__getattr__, __dir__ = _lazy.names(__name__)
