"""The older names of CUDA, ``ptcore.cuda.amp``."""
import warnings

from ptcore import amp
from ptcore._dtype import float16

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]


def _warn(name):
    warnings.warn(f"`ptcore.cuda.amp.{name}(args...)` is deprecated. Please use `ptcore.amp.{name}` with 'cuda' "
                  "instead.",
                  FutureWarning, stacklevel=3)


def amp_definitely_not_available():
    """Whether there is no CUDA device."""
    from ptcore import cuda
    return not cuda.is_available()


class autocast(amp.autocast):
    """Deprecated: ``ptcore.amp.autocast("cuda", ...)``."""

    def __init__(self, enabled=True, dtype=float16, cache_enabled=True):
        _warn("autocast")
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """Deprecated: ``ptcore.amp.GradScaler("cuda", ...)``."""

    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        _warn("GradScaler")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """Deprecated: ``ptcore.amp.custom_fwd(device_type="cuda")``."""
    _warn("custom_fwd")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd):
    """Deprecated: ``ptcore.amp.custom_bwd(device_type="cuda")``."""
    _warn("custom_bwd")
    return amp.custom_bwd(bwd, device_type="cuda")
