"""Signal processing under the names of ``torch.signal``: the windows of ``ptcore.signal.windows``."""
from ptcore.signal import windows

__all__ = ["windows"]
