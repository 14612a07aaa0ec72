"""Activation functions in place."""
from ptcore._ops import functions as _own
from ptcore._ops.call.offer import overridable


@overridable
def rrelu_(input, lower=0.125, upper=0.3333333333333333, training=False):
    """:func:`ptcore.nn.functional.rrelu` in place."""
    return _own.rrelu_function(input, lower, upper, training, True)


@overridable
def hardtanh_(input, min_val=-1.0, max_val=1.0):
    """:func:`ptcore.nn.functional.hardtanh` in place."""
    return _own.hardtanh(input, min_val, max_val, True)
