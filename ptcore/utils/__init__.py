"""Helpers around the tensor library: ``data`` (datasets and loaders), ``checkpoint`` and
``hooks`` (removable handles). Submodules are imported at first use."""
from ptcore._ops._results import names_of_files as _names_of_files

__all__ = ["checkpoint", "data", "dlpack", "hooks"]

__getattr__, __dir__ = _names_of_files(__name__, {}, __all__)
