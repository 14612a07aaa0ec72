"""Joins as functions of smaller ops; see decompositions.py."""
from ptcore._ops.functions import cat, unsqueeze, view_as_complex


def complex_pair(real, imag):
    # Not real + 1j * imag: the product of an infinite part and the 0 of 1j is NaN.
    return view_as_complex(cat([unsqueeze(real, -1), unsqueeze(imag, -1)], -1))


FUNCTIONS = {f.__name__: f for f in (complex_pair,)}
