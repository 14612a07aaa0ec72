"""Whether mixed precision is out of the question."""
from ptcore import cuda

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available():
    """Whether there is no CUDA device."""
    return not cuda.is_available()
