"""Fused ops written out in smaller ones: ``<topic>/decompositions.py``.

Where a row's ``batch`` or ``jvp`` column says "decompose", a transformation runs the function of the op's name in its
topic's ``FUNCTIONS`` in place of the op, and sees the ops that it calls. Arguments come in signature order; results are
those of the op, in another rounding.
"""
from importlib import import_module

from ptcore._ops.table.ids import family_of


def function(op, suffix=""):
    """The decomposition of an op; KeyError if it has none. ``"_writes"``: of what it mutates, by ops in place."""
    name = f"ptcore._ops.{family_of(op)}.decompositions"
    try:
        topic = import_module(name)
    except ModuleNotFoundError as e:
        if e.name != name:
            raise
        raise KeyError(op) from None
    return topic.FUNCTIONS[op + suffix]
