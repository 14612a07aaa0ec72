"""Helpers around the tensor library: ``data`` (datasets and loaders), ``checkpoint``, ``hooks`` (removable handles),
``restart`` (resumable runs), ``tensorboard``, ``benchmark``. Submodules are imported at first use."""
from ptcore import _lazy

__all__ = ["benchmark", "checkpoint", "data", "dlpack", "hooks", "restart", "swap_tensors", "tensorboard"]

__getattr__, __dir__ = _lazy.names(__name__)
