"""``GradScaler`` of the CPU."""
import warnings

from ptcore import amp

__all__ = ["GradScaler"]


class GradScaler(amp.GradScaler):
    """Deprecated: ``ptcore.amp.GradScaler("cpu", ...)``."""

    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        warnings.warn("`ptcore.cpu.amp.GradScaler(args...)` is deprecated. Please use `ptcore.amp.GradScaler('cpu', "
                      "args...)` instead.", FutureWarning, stacklevel=2)
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
