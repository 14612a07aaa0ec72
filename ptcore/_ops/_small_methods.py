"""Methods of Tensor that are short and rarely called, in plain Python; read when one is first asked for."""
from ptcore._errors import DTypeError, ShapeError
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


def sum_to_size(self, *size):
    """Summed over the dims by which ``size`` would be broadcast to this shape."""
    shape = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    own = tuple(self.shape)
    lead = len(own) - len(shape)
    if lead < 0 or any(n not in (1, m) for n, m in zip(shape, own[lead:])):
        raise ShapeError(f"sum_to_size: size {list(shape)} is not expandable to size {list(own)}")
    dims = [d for d, m in enumerate(own) if d < lead or (shape[d - lead] == 1 and m != 1)]
    return self.sum(tuple(dims), True).reshape(shape) if dims else self


def polygamma(self, n):
    """The ``n``-th derivative of digamma."""
    from ptcore._ops.functions import polygamma_function
    return polygamma_function(n, self)


def polygamma_(self, n):
    """:meth:`polygamma` in place."""
    return self.copy_(polygamma(self, n))


def bernoulli(self, p=None, *, generator=None):
    """0 or 1, drawn with the probabilities in the tensor, or with ``p`` for tensors of its shape."""
    if p is None:
        from ptcore import bernoulli as drawn
        return drawn(self, generator=generator)
    from ptcore import empty_like
    return empty_like(self).bernoulli_(p, generator=generator)


def conj_physical_(self):
    """Complex conjugates in place."""
    return self.copy_(self.conj()) if self.dtype.is_complex else self


def new_empty_strided(self, size, stride, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """Uninitialised memory of this dtype and device with the strides given."""
    from ptcore import empty_strided
    return empty_strided(size, stride, dtype=self.dtype if dtype is None else dtype, layout=layout,
                         device=self.device if device is None else device, requires_grad=requires_grad,
                         pin_memory=pin_memory)


def resize_as_(self, the_template, *, memory_format=None):
    """``resize_`` to the shape of another tensor."""
    if not isinstance(the_template, Tensor):
        raise TypeError(f"resize_as_: the_template must be a Tensor, got {type(the_template).__name__}")
    return self.resize_(the_template.shape)


def _called(op, function, first, others):
    """Writes what a Python function of the elements returns, one call for each."""
    if first.device.type != "cpu":
        raise TypeError(f"{op}: the tensor must be on the CPU, got {first.device}")
    if first.requires_grad:
        raise RuntimeError(f"{op}: a Python function has no derivative; call it on x.detach()")
    for x in others:
        if not isinstance(x, Tensor) or x.dtype is not first.dtype or x.shape != first.shape:
            raise TypeError(f"{op}: the other arguments must be Tensors of dtype {first.dtype.name} and shape "
                            f"{list(first.shape)}, got {type(x).__name__}")
    from ptcore import tensor
    columns = [x.reshape(-1).tolist() for x in (first, *others)]
    return first.copy_(tensor([function(*row) for row in zip(*columns)], dtype=first.dtype).reshape(first.shape))


def apply_(self, callable):
    """Each element replaced by what a Python function makes of it; slow."""
    return _called("apply_", callable, self, ())


def map_(self, other, callable):
    """Each element replaced by ``callable(element, element of other)``; slow."""
    return _called("map_", callable, self, (other,))


def map2_(self, x, y, callable):
    """Each element replaced by ``callable(element, element of x, element of y)``; slow."""
    return _called("map2_", callable, self, (x, y))


def conj_physical(self):
    """Complex conjugates; real tensors are themselves."""
    return self.conj()


is_conj = is_neg = never
resolve_conj = resolve_neg = to_dense = itself
