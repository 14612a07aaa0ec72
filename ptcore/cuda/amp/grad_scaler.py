"""``GradScaler`` of CUDA."""
import warnings

from ptcore import amp
from ptcore.amp.grad_scaler import OptState

__all__ = ["GradScaler", "OptState"]


class GradScaler(amp.GradScaler):
    """Deprecated: ``ptcore.amp.GradScaler("cuda", ...)``."""

    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        warnings.warn("`ptcore.cuda.amp.GradScaler(args...)` is deprecated. Please use `ptcore.amp.GradScaler('cuda', "
                      "args...)` instead.", FutureWarning, stacklevel=2)
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
