"""Bodies: conjugation as a function that writes to ``out=``."""


def conj_physical_function(input):
    return input.conj()
