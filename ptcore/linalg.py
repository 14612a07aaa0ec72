"""Linear algebra with PyTorch's names and NumPy's results."""
from ptcore._errors import LinAlgError as LinAlgError
from ptcore._names.linalg import *
from ptcore._names.linalg import __all__ as _own

__all__ = ["LinAlgError", *_own]
