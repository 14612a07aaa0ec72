"""Joins as functions of smaller ops; see decompositions.py."""
from ptcore._ops.functions import mul
from ptcore._ops.table.shapes import COMPLEX_OF


def complex_pair(real, imag):
    return real.to(COMPLEX_OF[real.dtype]) + mul(imag, 1j)


FUNCTIONS = {f.__name__: f for f in (complex_pair,)}
