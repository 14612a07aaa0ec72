"""``torch.version``: the release whose names ptcore follows, and None for libraries it was built without."""
from ptcore.compat.torch.torch_version import __version__ as _version

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

__version__ = str(_version)
cuda = hip = xpu = rocm = git_version = None
debug = False
