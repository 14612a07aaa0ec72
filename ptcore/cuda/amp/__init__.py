"""Mixed precision on the CUDA device: the older names of :mod:`ptcore.amp`."""
from ptcore.cuda.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from ptcore.cuda.amp.common import amp_definitely_not_available
from ptcore.cuda.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]
