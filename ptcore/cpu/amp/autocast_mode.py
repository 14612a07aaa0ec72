"""``autocast`` of the CPU."""
import warnings

from ptcore import amp
from ptcore._dtype import bfloat16

__all__ = ["autocast"]


class autocast(amp.autocast):
    """Deprecated: ``ptcore.amp.autocast("cpu", ...)``."""

    def __init__(self, enabled=True, dtype=bfloat16, cache_enabled=True):
        warnings.warn("`ptcore.cpu.amp.autocast(args...)` is deprecated. Please use `ptcore.amp.autocast('cpu', "
                      "args...)` "
                      "instead.", FutureWarning, stacklevel=2)
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)
