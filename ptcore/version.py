"""Versions of ptcore; None for libraries it was built without."""
from ptcore import __version__

__all__ = ["__version__", "cuda", "debug", "hip", "xpu"]

cuda = hip = xpu = None
debug = False
