"""The exception of scripted programs."""

__all__ = ["Error"]


class Error(Exception):
    """An error raised in a scripted program. ``raise ValueError(...)`` raises a subclass of it and ValueError."""


Error.__module__ = "ptcore.jit"
