"""Methods that call a Python function for each element."""
from ptcore._exchange.values import mapped
from ptcore._ops.call.offer import overridable
from ptcore._ops.checked import need_tensors
from ptcore._tensor import Tensor


def _called(op, function, first, others):
    """Writes the results of a Python function, which is called for each element."""
    need_tensors(op, self=first)
    if not callable(function):
        raise TypeError(f"{op}: callable must be callable, got {type(function).__name__}")
    if first.device.type != "cpu":
        raise TypeError(f"{op}: the tensor must be on the CPU, got {first.device}")
    if first.requires_grad:
        raise RuntimeError(f"{op}: a Python function has no derivative; call it on x.detach()")
    for x in others:
        if not isinstance(x, Tensor) or x.dtype is not first.dtype:
            raise TypeError(f"{op}: the other arguments must be Tensors of dtype {first.dtype.name}, got "
                            f"{x.dtype.name if isinstance(x, Tensor) else type(x).__name__}")
    return first.copy_(mapped(op, function, first, tuple([x.expand(first.shape) for x in others])))


@overridable
def apply_(self, callable):
    """Each element replaced by the result of a Python function of it; slow."""
    return _called("apply_", callable, self, ())


@overridable
def map_(self, other, callable):
    """Each element replaced by ``callable(element, element of other)``; slow."""
    return _called("map_", callable, self, (other,))


@overridable
def map2_(self, x, y, callable):
    """Each element replaced by ``callable(element, element of x, element of y)``; slow."""
    return _called("map2_", callable, self, (x, y))
