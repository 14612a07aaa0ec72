"""Exchange of memory with other libraries by DLPack."""
from ptcore._dlpack import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
