"""Versions: of ptcore, and None for what it was not built with."""
from ptcore import __version__

__all__ = ["__version__", "cuda", "debug", "hip", "xpu"]

cuda = hip = xpu = None
debug = False
