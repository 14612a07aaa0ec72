"""Bodies: conjugation as a function that writes to ``out=``, and in place."""
from ptcore._ops.functions import conj_physical


def conj_physical_function(input):
    return conj_physical(input) if input.dtype.is_complex else input


def conj_physical_function_(input):
    return input.copy_(conj_physical(input)) if input.dtype.is_complex else input
