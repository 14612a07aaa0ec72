"""Mixed precision: ``autocast`` runs ops in a lower precision where PyTorch does, ``GradScaler`` keeps the small
gradients
of float16 from vanishing."""
from ptcore.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from ptcore.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
