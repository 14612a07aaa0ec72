"""Mixed precision on the CPU: the older names of :mod:`ptcore.amp`."""
from ptcore.cpu.amp.autocast_mode import autocast
from ptcore.cpu.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
