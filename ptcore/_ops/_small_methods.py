"""Methods of Tensor that are short and rarely called, in plain Python; read when one is first asked for."""
from ptcore._errors import DeviceError, DTypeError, ShapeError
from ptcore._tensor import Tensor


def float_power_(self, exponent):
    """``float_power`` in place, on float64 or complex128."""
    result = self.float_power(exponent)
    if result.dtype is not self.dtype:
        raise DTypeError(f"float_power_: the tensor must be {result.dtype.name}, got {self.dtype.name}")
    return self.copy_(result)


def fill_diagonal_(self, fill_value, wrap=False):
    """Sets the elements whose indices are equal; with ``wrap`` the diagonal of a tall matrix starts again."""
    shape = tuple(self.shape)
    if len(shape) < 2:
        raise ShapeError(f"fill_diagonal_: at least 2 dimensions are needed, got {len(shape)}")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ShapeError(f"fill_diagonal_: all dimensions must be of equal length, got {list(shape)}")
    step = sum(self.stride())
    self.as_strided((min(shape),), (step,), self.storage_offset()).fill_(fill_value)
    if wrap and len(shape) == 2 and shape[0] > shape[1] + 1:
        fill_diagonal_(self[shape[1] + 1:], fill_value, True)
    return self


def get_device(self):
    """The number of the device, -1 on the CPU."""
    index = self.device.index
    return -1 if index is None else index


def is_nonzero(self):
    """Whether the one element of the tensor is not zero."""
    if self.numel() != 1:
        raise RuntimeError(f"is_nonzero: the tensor must have one element, got shape {list(self.shape)}")
    return bool(self)


def is_pinned(self, device=None):
    """Whether the memory is page-locked; ordinary memory is not."""
    return False


def is_same_size(self, other):
    """Whether both tensors have the same shape."""
    if not isinstance(other, Tensor):
        raise TypeError(f"is_same_size: other must be a Tensor, got {type(other).__name__}")
    return self.shape == other.shape


def itself(self, *args):
    """The tensor itself, which is dense and has no marks to resolve."""
    return self


def narrow_copy(self, dim, start, length):
    """``narrow`` as a copy."""
    return self.narrow(dim, start, length).clone()


def never(self):
    """False: conjugation and negation are carried out, never marked."""
    return False


def pin_memory(self, device=None):
    """A copy in page-locked memory, which needs an accelerator."""
    raise DeviceError("pin_memory: it needs an accelerator, and none is available")


def sum_to_size(self, *size):
    """Summed over the dims by which ``size`` would be broadcast to this shape."""
    shape = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    own = tuple(self.shape)
    lead = len(own) - len(shape)
    if lead < 0 or any(n not in (1, m) for n, m in zip(shape, own[lead:])):
        raise ShapeError(f"sum_to_size: size {list(shape)} is not expandable to size {list(own)}")
    dims = [d for d, m in enumerate(own) if d < lead or (shape[d - lead] == 1 and m != 1)]
    return self.sum(tuple(dims), True).reshape(shape) if dims else self


is_conj = is_neg = is_shared = never
resolve_conj = resolve_neg = to_dense = itself
