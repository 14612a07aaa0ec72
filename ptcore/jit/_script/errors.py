"""The exception of scripted programs."""

__all__ = ["Error"]


class Error(Exception):
    """What a scripted program raised: ``raise ValueError(...)`` in it raises a class that is this and ValueError."""


Error.__module__ = "ptcore.jit"
