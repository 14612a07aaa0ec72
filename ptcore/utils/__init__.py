"""Helpers around the tensor library: ``data`` (datasets and loaders), ``checkpoint``, ``hooks`` (removable handles),
``restart`` (runs that go on), ``tensorboard``, ``benchmark``. Submodules are imported at first use."""
from ptcore._ops._results import names_of_files as _names_of_files

__all__ = ["benchmark", "checkpoint", "data", "dlpack", "hooks", "restart", "tensorboard"]

__getattr__, __dir__ = _names_of_files(__name__, {}, __all__)
