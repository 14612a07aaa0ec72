"""What ptcore is built with, and settings of the libraries that it calls, by PyTorch's names.

>>> import ptcore
>>> ptcore.backends.cuda.matmul.allow_tf32
False
"""
from ptcore._ops._results import names_of_files as _names_of_files

__getattr__, __dir__ = _names_of_files(__name__, {}, ("cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"))
