"""``Variable``, PyTorch's first name for tensors with gradients."""
from ptcore._ops.creation.creation import empty
from ptcore._tensor import Tensor

__all__ = ["Variable"]


class _Any(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor)


class Variable(metaclass=_Any):
    """A tensor over the same memory, without history; every tensor is an instance.

    Parameters
    ----------
    data : Tensor, optional
    requires_grad : bool, default: False
    volatile : optional
        Without meaning.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.autograd.Variable(ptcore.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data=None, requires_grad=False, volatile=None):
        if data is None:
            data = empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable: data must be a Tensor, got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)
