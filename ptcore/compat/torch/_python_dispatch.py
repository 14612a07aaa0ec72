"""``torch.utils._python_dispatch``: base classes for programs; ptcore has no ``__torch_dispatch__``."""
from ptcore._tensor import Tensor

__all__ = ["BaseTorchDispatchMode", "TorchDispatchMode", "is_traceable_wrapper_subclass"]

_SENTENCE = ("ptcore has no __torch_dispatch__; overrides.TorchFunctionMode sees the calls of a thread, "
             "and fx.experimental.proxy_tensor.make_fx records operations")


class TorchDispatchMode:
    """A mode that would see each operation below autograd. It can be derived from, but not entered."""

    def __init__(self, _dispatch_key=None):
        pass

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"TorchDispatchMode: {_SENTENCE}")

    def __enter__(self):
        raise NotImplementedError(f"TorchDispatchMode: {_SENTENCE}")

    def __exit__(self, *error):
        pass


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that would pass each operation on."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def is_traceable_wrapper_subclass(t):
    """Whether a tensor's class wraps others by ``__tensor_flatten__``; ptcore cannot use such a tensor."""
    return is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t):
    """:func:`is_traceable_wrapper_subclass` for a class."""
    return (issubclass(t, Tensor) and t is not Tensor and hasattr(t, "__tensor_flatten__")
            and hasattr(t, "__tensor_unflatten__"))


def _get_current_dispatch_mode():
    return None


def _get_current_dispatch_mode_stack():
    return []
