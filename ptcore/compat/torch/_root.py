"""The module behind ``import torch``: the names of ptcore, with PyTorch's version."""
import sys
from importlib import import_module

import ptcore
from ptcore.compat.torch import _paths
from ptcore.compat.torch.torch_version import __version__ as __version__

_module = type(sys)
globals().update({name: value for name, value in vars(ptcore).items()
                  if not (name.startswith("_") or name in _paths.TABLE or name in _paths.NAMES
                          or isinstance(value, _module))})
torch = sys.modules[__name__]


def __getattr__(name):
    if name.startswith("__") and name not in ("__config__", "__future__"):
        if name == "__all__":
            return [n for n in __dir__() if not n.startswith("_")]
        raise AttributeError(f"module 'torch' has no attribute {name!r}")
    if name in ("has_mps", "has_cuda", "has_cudnn", "has_mkldnn"):
        from ptcore.compat.torch import _names
        return _names.has(name)
    if name in _paths.NAMES:
        found = getattr(import_module(_paths.NAMES[name]), name)
    elif name.startswith("_foreach_"):
        found = getattr(ptcore, name)
    elif name in _paths.TABLE or name in _paths.ABSENT:
        return import_module(f"torch.{name}")
    else:
        found = vars(ptcore).get(name, ptcore) if name.startswith("_") else getattr(ptcore, name, ptcore)
        if found is ptcore or (name.startswith("_") and isinstance(found, _module)):
            raise AttributeError(f"module 'torch' has no attribute {name!r}")
        if isinstance(found, _module):
            # The import also adds the names of `_more.MORE` to the module.
            found = import_module(f"torch.{name}")
    globals()[name] = found
    return found


def __dir__():
    own = {n for n in globals() if not n.startswith("_")}
    top = {n for n in (*_paths.TABLE, *_paths.ABSENT) if "." not in n}
    return sorted({*own, *[n for n in dir(ptcore) if not n.startswith("_")], *_paths.NAMES, *top, "__version__"})
