"""``torch.utils._python_dispatch``: modes that get each operation of a thread."""
from ptcore import _ops as ops
from ptcore._interpret import Entering, Interpreter, entered
from ptcore._tensor import Tensor

__all__ = ["BaseTorchDispatchMode", "TorchDispatchMode", "is_traceable_wrapper_subclass"]
INPLACE = 1


def _is_default(parameter, value):
    return not parameter.required and type(value) is type(parameter.default) and value == parameter.default


class _Offered(Interpreter):
    """Hands the calls of ops to a mode."""

    traces = True

    def __init__(self, mode):
        self.mode = mode

    def call(self, op, args, out, variant):
        row = ops.row(op)
        if row.kind == "composite":                     # the ops that it calls are offered
            return NotImplemented
        positional, keyword = ops.bound(row, args)
        parameters = ops.arguments(row)
        for a in parameters:
            if a.name in keyword and _is_default(a, keyword[a.name]):
                del keyword[a.name]
        if not row.varargs:
            while positional and _is_default(parameters[len(positional) - 1], positional[-1]):
                positional.pop()
        if out is not None:
            keyword["out"] = out
        types = dict.fromkeys(type(x) for a in (*positional, *keyword.values())
                              for x in (a if isinstance(a, (tuple, list)) else (a,))
                              if isinstance(x, Tensor) and type(x) is not Tensor)
        function = ops.function(op, variant == INPLACE)
        return self.mode.__torch_dispatch__(function, tuple(types), tuple(positional), keyword)


class TorchDispatchMode(Entering):
    """A context whose ``__torch_dispatch__`` gets each operation of this thread, those of a backward included.

    It gets ``func``, which is what ``torch.ops.aten`` has under its name, the classes of tensors of subclasses,
    and the arguments but for defaults at the end. It returns the result, such as ``func(*args, **kwargs)``, which runs
    with the mode taken off. Functions that are made of others are not offered, but what they call is. Operations that
    PyTorch has not, such as fused gradients, have names of their own.

    Unlike PyTorch's, the mode is asked above autograd: the history is that of what it calls.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.compat.torch._python_dispatch import TorchDispatchMode
    >>> class Names(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **kwargs or {})
    >>> x = ptcore.ones(2, 2)
    >>> with Names():
    ...     y = x.mm(x).relu_()
    mm
    relu_
    """

    def __init__(self, _dispatch_key=None):
        self._dispatch_key = _dispatch_key

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"{type(self).__name__} has no __torch_dispatch__")

    def _prepare(self):
        if self._interpreter is None:
            self._interpreter = _Offered(self)

    @classmethod
    def is_infra_mode(cls):
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that passes each operation on."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def is_traceable_wrapper_subclass(t):
    """Whether a tensor's class wraps others by ``__tensor_flatten__``; ptcore cannot use such a tensor."""
    return is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t):
    """:func:`is_traceable_wrapper_subclass` for a class."""
    return (issubclass(t, Tensor) and t is not Tensor and hasattr(t, "__tensor_flatten__")
            and hasattr(t, "__tensor_unflatten__"))


def _get_current_dispatch_mode_stack():
    """The modes of this thread, the innermost last."""
    return [interpreter.mode for interpreter in entered() if isinstance(interpreter, _Offered)]


def _get_current_dispatch_mode():
    """The innermost mode of this thread, or None."""
    modes = _get_current_dispatch_mode_stack()
    return modes[-1] if modes else None

