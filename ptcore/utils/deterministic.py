"""What deterministic programs see of memory without content.

``fill_uninitialized_memory`` (True by default) says whether such memory is filled, with NaN, the largest integer or
True, while :func:`ptcore.use_deterministic_algorithms` is on: that of ``empty`` and its like, and what ``resize_``
adds.

>>> import ptcore
>>> ptcore.utils.deterministic.fill_uninitialized_memory
True
"""
import sys
import types

from ptcore import _precision
from ptcore._ops.creation.creation import fill_unset

__all__ = []


class _Deterministic(types.ModuleType):
    @property
    def fill_uninitialized_memory(self):
        return _precision.determinism["fill"]

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode):
        if not isinstance(mode, bool):
            raise TypeError(f"fill_uninitialized_memory: expected a bool, got {type(mode).__name__}")
        _precision.determinism["fill"] = mode
        fill_unset(mode and _precision.matmul["deterministic"])


sys.modules[__name__].__class__ = _Deterministic
