"""Names for parts of a program; see :mod:`ptcore.autograd.profiler`."""
from ptcore.autograd.profiler import record_function

__all__ = ["record_function"]
