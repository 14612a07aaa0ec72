"""Aliases for annotations, with the names of ``torch.types``."""
import os
from collections.abc import Sequence
from typing import IO, Any

from ptcore._device import device
from ptcore._dtype import dtype
from ptcore._shape import Size
from ptcore._sizes.symbolic import SymBool, SymFloat, SymInt
from ptcore._tensor import Tensor
from ptcore._untyped_storage import UntypedStorage as Storage

__all__ = ["Device", "Number", "Storage"]

Number = int | float | bool
Device = device | str | int | None
FileLike = str | os.PathLike[str] | IO[bytes]
PySymType = SymInt | SymFloat | SymBool
IntLikeType = int | SymInt
FloatLikeType = float | SymFloat
BoolLikeType = bool | SymBool
_dtype, _device = dtype, device
_size = Size | list[int] | tuple[int, ...]
_symsize = Size | Sequence[int | SymInt]
_dispatchkey = Any
_int, _float, _bool, _complex = int, float, bool, complex
_TensorOrTensors = Tensor | Sequence[Tensor]
