"""Fused ops as functions of smaller ops: ``<topic>/decompositions.py``.

If a row's ``batch`` or ``jvp`` column is "decompose", a transformation runs the function of the op's name in its
topic's ``FUNCTIONS`` instead of the op, and sees the ops that this function calls. Arguments come in signature order;
results are those of the op, up to rounding.
"""
from importlib import import_module

from ptcore._ops.table.ids import family_of


def function(op):
    """The decomposition of an op; KeyError if it has none."""
    topic = topic_of(op)
    if topic is None:
        raise KeyError(op)
    return topic.FUNCTIONS[op]


def writes(op):
    """The writes of an op that mutates arguments, as in-place ops: a function of the op's results and arguments."""
    return topic_of(op).WRITES[op]


def topic_of(op):
    """The module of an op's topic, or None."""
    name = f"ptcore._ops.{family_of(op)}.decompositions"
    try:
        return import_module(name)
    except ModuleNotFoundError as e:
        if e.name != name:
            raise
        return None
