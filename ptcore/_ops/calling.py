"""Calls an op by its id or its name."""
from ptcore._ops import bound, function, row
from ptcore._ops.call.batched import run_op

__all__ = ["run"]


def run(op, args, inplace=False):
    """Calls an op, or its in-place form, on arguments in the order of ``ptcore._ops.arguments``."""
    if not inplace:
        result = run_op(op, args)               # runs most ops in C
        if result is not NotImplemented:
            return result
    positional, keyword = bound(row(op), args)
    return function(op, inplace)(*positional, **keyword)
