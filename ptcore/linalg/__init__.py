"""Linear algebra with PyTorch's names and NumPy's results."""
from ptcore import PUBLIC
from ptcore._errors import LinAlgError

globals().update(PUBLIC["linalg"])
