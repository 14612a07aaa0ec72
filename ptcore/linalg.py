"""Linear algebra with PyTorch's names and NumPy's results."""
from ptcore import _public

globals().update(_public["linalg"])
