"""Linear algebra with PyTorch's names and NumPy's results."""
from ptcore import _public
from ptcore._errors import LinAlgError  # noqa: F401

globals().update(_public["linalg"])
