"""Fused ops written out in smaller ones: ``<topic>/decompositions.py``.

Where a row's ``batch`` or ``jvp`` column says "decompose", a transformation runs the function of the op's name in its
topic's ``FUNCTIONS`` in place of the op, and sees the ops that it calls. Arguments come in signature order; results are
those of the op, in another rounding.
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
    """The writes of an op to what it mutates, as ops in place: a function of the op's results and arguments."""
    return topic_of(op).WRITES[op]


def topic_of(op):
    """The file of an op's topic, or None."""
    name = f"ptcore._ops.{family_of(op)}.decompositions"
    try:
        return import_module(name)
    except ModuleNotFoundError as e:
        if e.name != name:
            raise
        return None
