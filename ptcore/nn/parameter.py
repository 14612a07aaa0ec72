"""Parameter and Buffer: tensors that a module registers when assigned.

Both are plain subclasses that carry the disabled ``__torch_function__``, so
operations on them stay on the core's fast path and return plain tensors.
"""

import ptcore
from ptcore import Tensor
from ptcore._overrides import refuse_tensors_of_others
from ptcore.autograd.entry import plain_classes

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


def _plain(data, name):
    if data is None:
        return ptcore.empty(0)
    if not isinstance(data, Tensor):
        refuse_tensors_of_others(name, [data])
        raise TypeError(f"{name}: data must be a Tensor, got {type(data).__name__}")
    return data


def _rebuild_parameter(cls, data, requires_grad, state):
    param = cls(data, requires_grad)
    for key, value in (state or {}).items():
        setattr(param, key, value)
    return param


def _attributes(tensor):
    """User attributes of `tensor` (None when there are none)."""
    state = getattr(tensor, "__dict__", None)
    return dict(state) if state else None


class _ParameterMeta(type(Tensor)):
    """Also counts tensors of other classes flagged ``_is_param``."""

    def __instancecheck__(cls, instance):
        if type.__instancecheck__(cls, instance):
            return True
        return (
            cls is Parameter
            and isinstance(instance, Tensor)
            and getattr(instance, "_is_param", False)
        )


class Parameter(Tensor, metaclass=_ParameterMeta):
    """Tensor that is a module parameter.

    Assigned as an attribute of a :class:`~ptcore.nn.Module` it is registered
    and appears in :meth:`~ptcore.nn.Module.parameters`.

    Parameters
    ----------
    data : Tensor, optional
        Values; memory is shared with it. An empty tensor by default.
    requires_grad : bool, default: True
        Whether the parameter needs a gradient. Not affected by ``no_grad``.

    Raises
    ------
    TypeError
        If `data` is not a tensor.
    RuntimeError
        If a gradient is asked for a dtype that is neither floating nor complex.

    Examples
    --------
    >>> import ptcore
    >>> w = ptcore.nn.Parameter(ptcore.zeros(2))
    >>> w.requires_grad
    True
    """

    _printed_as = "Parameter"

    def __new__(cls, data=None, requires_grad=True):
        data = _plain(data, "Parameter")
        if type(data) is Tensor or issubclass(type(data), Parameter):
            return Tensor._make_subclass(cls, data, requires_grad)
        # Another Tensor subclass keeps its own type and is only flagged.
        t = data.detach().requires_grad_(requires_grad)
        if type(t) is not type(data):
            raise RuntimeError(
                f"Parameter: detach() of {type(data).__name__} must return the "
                f"same type, got {type(t).__name__}"
            )
        t._is_param = True
        return t

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = result
        return result

    def __repr__(self, *, tensor_contents=None):
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, proto):
        return (
            _rebuild_parameter,
            (type(self), self.data, self.requires_grad, _attributes(self)),
        )

    __torch_function__ = ptcore._disabled_torch_function_impl


plain_classes.add(Parameter)            # `autograd.grad` need not look for functions of its own


class _BufferMeta(type(Tensor)):
    """A Buffer is any tensor flagged ``_is_buffer``."""

    def __instancecheck__(cls, instance):
        if type.__instancecheck__(cls, instance):
            return True
        return (
            cls is Buffer
            and isinstance(instance, Tensor)
            and getattr(instance, "_is_buffer", False)
        )


class Buffer(Tensor, metaclass=_BufferMeta):
    """Tensor that is a module's buffer.

    Assigned as an attribute of a :class:`~ptcore.nn.Module` it is registered
    with :meth:`~ptcore.nn.Module.register_buffer`. The result is an ordinary
    tensor that carries the flag ``_is_buffer``, as in PyTorch.

    Parameters
    ----------
    data : Tensor, optional
        Values; memory is shared with it. An empty tensor by default.
    persistent : bool, default: True
        Whether the buffer is part of the module's ``state_dict``.

    Examples
    --------
    >>> import ptcore
    >>> b = ptcore.nn.Buffer(ptcore.ones(3), persistent=False)
    >>> b.persistent
    False
    """

    def __new__(cls, data=None, *, persistent=True):
        data = _plain(data, "Buffer")
        t = data.detach().requires_grad_(data.requires_grad)
        t.persistent = persistent
        t._is_buffer = True
        return t

    __torch_function__ = ptcore._disabled_torch_function_impl


def is_lazy(param):
    """Whether a parameter or buffer waits for its shape."""
    return isinstance(param, _Uninitialized)


# The functions that an uninitialized parameter may be given to. All others need the shape, which it does not have yet.
_ALLOWED = {"to", "to_dtype", "to_device", "half", "float", "double", "bfloat16", "cuda", "cpu", "is_floating_point",
            "is_complex", "detach", "requires_grad_", "type"}


class _Uninitialized:
    """A tensor with a dtype and a device that gets its shape and memory by :meth:`materialize`."""

    def materialize(self, shape, device=None, dtype=None):
        """Become an ordinary parameter or buffer of a shape, with uninitialised memory.

        Parameters
        ----------
        shape : tuple of int
        device, dtype : optional
            Those that were given before, by default.
        """
        data = self.data
        device = data.device if device is None else device
        dtype = data.dtype if dtype is None else dtype
        self.__class__ = self.cls_to_become
        self.data = ptcore.empty(shape, device=device, dtype=dtype)

    @property
    def shape(self):
        raise RuntimeError(
            "shape: an uninitialized parameter or buffer has none yet. This happens in `load_state_dict` when an "
            "uninitialized parameter is loaded into an initialized one. Call `forward` to initialize the parameters "
            "before accessing their attributes."
        )

    def _without_sizes(self, *args):
        raise ValueError("Attempted to use an uninitialized parameter: it has no sizes yet. Call `forward` with a "
                         "dummy batch to initialize the parameters first")

    numel = nelement = dim = ndimension = stride = storage_offset = __len__ = _without_sizes

    def share_memory_(self):
        raise RuntimeError(
            "share_memory_: Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize "
            "the parameters before calling `module.share_memory()`."
        )

    def __repr__(self, *, tensor_contents=None):
        return f"<{type(self).__name__}>"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", str(func))
        if name == "__get__":           # of the attribute ``data``
            return ptcore._disabled_torch_function_impl(func, types, args, kwargs)
        if name in _ALLOWED:            # shape rules need a shape, which this class lacks
            return func(*[a.data if is_lazy(a) else a for a in args], **(kwargs or {}))
        raise ValueError(
            f"{name}: Attempted to use an uninitialized parameter. This happens with a lazy module or an explicit "
            "UninitializedParameter: call `forward` with a dummy batch to initialize the parameters first"
        )


class UninitializedParameter(_Uninitialized, Parameter):
    """Parameter whose shape is not known yet.

    It has a dtype and a device. Everything else needs :meth:`materialize`, which the first forward pass of a lazy
    module calls.

    Parameters
    ----------
    requires_grad : bool, default: True
    device, dtype : optional

    Examples
    --------
    >>> import ptcore
    >>> w = ptcore.nn.UninitializedParameter()
    >>> w
    <UninitializedParameter>
    >>> w.materialize((2, 3))
    >>> type(w).__name__, w.shape
    ('Parameter', ptcore.Size([2, 3]))
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        data = ptcore.empty(0, device=device, dtype=dtype)
        return Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        data = self.data
        result = type(self)(self.requires_grad, data.device, data.dtype)
        memo[id(self)] = result
        return result

    def __reduce_ex__(self, proto):
        data = self.data
        return type(self), (self.requires_grad, str(data.device), data.dtype), _attributes(self)


class UninitializedBuffer(_Uninitialized, Tensor):
    """Buffer whose shape is not known yet; see :class:`UninitializedParameter`.

    Parameters
    ----------
    requires_grad : bool, default: False
    device, dtype : optional
    persistent : bool, default: True
        Whether the buffer is part of the module's ``state_dict``.
    """

    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        data = ptcore.empty(0, device=device, dtype=dtype)
        result = Tensor._make_subclass(cls, data, requires_grad)
        result.persistent = persistent
        result._is_buffer = True
        return result

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        data = self.data
        result = type(self)(self.requires_grad, data.device, data.dtype, self.persistent)
        memo[id(self)] = result
        return result

    def __reduce_ex__(self, proto):
        data = self.data
        return type(self), (self.requires_grad, str(data.device), data.dtype, self.persistent)
