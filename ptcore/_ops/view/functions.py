"""Rarely used methods of shapes."""
from itertools import pairwise

from ptcore._memory_format import channels_last, memory_format
from ptcore._ops.call.offer import overridable
from ptcore._ops.checked import need_tensors
from ptcore._shape import dims_inside_out


@overridable
def __reversed__(self):
    """Reversed along dim 0, as a copy."""
    return self.flip(0) if self.ndim else self


@overridable
def const_data_ptr(self):
    """The address of the first element, for reading."""
    return self.data_ptr()


@overridable
def module_load(self, other, assign=False):
    """The tensor that a module takes for this parameter or buffer from a state dictionary."""
    need_tensors("module_load", self=self, other=other)
    return other.detach() if assign else self.copy_(other).detach()


@overridable
def dim_order(self, *, ambiguity_check=False):
    """The dims from the outermost in memory to the innermost.

    Parameters
    ----------
    ambiguity_check : bool or list of memory formats
        True: raise where several orders fit, as dims of size 1 or of equal strides allow. A list: raise unless exactly
        one of the formats fits.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.empty(2, 3, 5).transpose(1, 2).dim_order()
    (0, 2, 1)
    """
    need_tensors("dim_order", self=self)
    formats = ambiguity_check if isinstance(ambiguity_check, list) else []
    if not isinstance(ambiguity_check, (bool, list)) or not all(isinstance(f, memory_format) for f in formats):
        raise TypeError("dim_order: ambiguity_check must be a bool or a list of memory formats, got "
                        f"{ambiguity_check!r}")
    shape, stride, n = tuple(self.shape), self.stride(), self.ndim
    several = 1 in shape or any(a == b for a, b in pairwise(stride))
    unclear = f"dim_order: there must be one order of the dims, got sizes {list(shape)} and strides {list(stride)}"
    if ambiguity_check is not False and several and sum(self.is_contiguous(f) for f in formats) != 1:
        raise RuntimeError(unclear)
    if n < 2:
        return tuple(range(n))
    row_major, last = self.is_contiguous(), n == 4 and self.is_contiguous(channels_last)
    if row_major != last:
        return tuple(range(n)) if row_major else (0, 2, 3, 1)
    inside_out, clear = dims_inside_out(shape, stride)
    if ambiguity_check and not clear:
        raise RuntimeError(unclear)
    return tuple(inside_out[::-1])
