"""Linear algebra with PyTorch's names and NumPy's results."""
from ptcore import _public
from ptcore._errors import LinAlgError as LinAlgError

globals().update(_public["linalg"])
__all__ = ["LinAlgError", *_public["linalg"]]
