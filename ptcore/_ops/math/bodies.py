"""Bodies: conjugation as a function that writes to ``out=``, and in place."""


def conj_physical_function(input):
    return input.conj()


def conj_physical_function_(input):
    return input.copy_(input.conj()) if input.dtype.is_complex else input
