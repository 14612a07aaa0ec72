"""Exchange of memory with other libraries by DLPack."""
from ptcore._exchange.dlpack import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
