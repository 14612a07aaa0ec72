"""Older names of :mod:`ptcore.amp`, which stand in a higher layer and are read when they are asked for."""
from ptcore import _lazy

__getattr__, __dir__ = _lazy.names(__name__)
