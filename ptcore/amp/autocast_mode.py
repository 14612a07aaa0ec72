"""``autocast``: a context in which ops cast their arguments, by the column ``autocast`` of their rows.

The casts are made in ``_ops/call/autocast.pyx``. This file has the contexts and the public names of the state.
"""
import functools

from ptcore._device import column_of
from ptcore._dtype import bfloat16, float16, float64
from ptcore._dtype import dtype as _dtype
from ptcore._errors import warn
from ptcore._ops.call import autocast as _state
from ptcore._tensor import Tensor

same_autocast = _state.same_autocast

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

_DEVICES = ("cpu", "cuda")              # types of devices that tensors can be on and that support casts
_LOWER = (bfloat16, float16)
_ABSENT = ("xpu", "mps", "hpu", "xla", "mtia", "ipu", "maia", "privateuseone")     # types that programs ask about


def _device_type(name, function):
    if not isinstance(name, str):
        raise ValueError(f"{function}: Expected `device_type` of type `str`, got: `{type(name)}`")
    try:
        column_of(name)
    except (RuntimeError, ValueError, KeyError) as error:
        raise RuntimeError(f"{function}: device_type must be one of {', '.join(_DEVICES)}, got {name!r}") from error
    return name


def is_autocast_available(device_type):
    """Whether ops on a device type can be cast.

    Parameters
    ----------
    device_type : str

    Examples
    --------
    >>> import ptcore
    >>> ptcore.amp.is_autocast_available("cpu")
    True
    """
    return device_type not in _ABSENT and _device_type(device_type, "is_autocast_available") in _DEVICES


def autocast_decorator(autocast_instance, func):
    """Wraps a function so that it runs in a context."""
    @functools.wraps(func)
    def decorated(*args, **kwargs):
        with autocast_instance:
            return func(*args, **kwargs)
    return decorated


class autocast(_state.Context):
    """A context and decorator in which ops choose their precision.

    Products, convolutions and attention run in ``dtype``. Losses, decompositions and Fourier transforms, and on
    accelerators also sums, norms, softmax and powers, run in float32. Other ops run in the precision of their
    arguments. The lists are PyTorch's for each device. Float64 and integers are never cast, nor are arguments of ops
    that write to a given tensor (``out=``, in-place methods). Casts of parameters are kept until the outermost context
    ends. The state is the thread's.

    Parameters
    ----------
    device_type : str
        "cpu" or "cuda": tensors on other devices are left alone.
    dtype : dtype, optional
        bfloat16 or float16; the default is bfloat16 on the CPU and float16 on CUDA (``set_autocast_dtype``).
    enabled : bool, default: True
        False: ops run in the precision of their arguments, inside another context too.
    cache_enabled : bool, optional
        Whether casts of parameters are kept.

    Raises
    ------
    ValueError
        If ``device_type`` is no str.
    RuntimeError
        If there is no such device type.

    Examples
    --------
    >>> import ptcore
    >>> layer, x = ptcore.nn.Linear(2, 3), ptcore.ones(1, 2)
    >>> with ptcore.autocast("cpu"):
    ...     y = layer(x)
    ...     print(y.dtype, ptcore.nn.functional.mse_loss(y, ptcore.ones(1, 3)).dtype)
    ptcore.bfloat16 ptcore.float32
    """

    def _refuse(self, device_type):
        _device_type(device_type, "autocast")
        raise RuntimeError(f"autocast: User specified an unsupported autocast device_type {device_type!r}")

    def _is_possible(self):
        if self.device == "cuda":
            from ptcore import cuda
            if not cuda.is_available():
                warn("autocast: CUDA is not available. Disabling autocast.")
                return False
        if self.fast_dtype not in _LOWER:
            name = {"cpu": "CPU", "cuda": "CUDA"}[self.device]
            warn(f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n{name} "
                 "Autocast only supports dtypes of ptcore.bfloat16, ptcore.float16 currently.")
            return False
        return True

    def __call__(self, func):
        return autocast_decorator(self, func)


def _cast(value, device_type, dtype):
    """A nested value with its floating-point tensors cast to another dtype; float64 stays."""
    if isinstance(value, Tensor):
        is_eligible = value.is_floating_point() and value.device.type == device_type and value.dtype != float64
        return value.to(dtype) if is_eligible else value
    if isinstance(value, dict):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        made = [_cast(x, device_type, dtype) for x in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return value


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """A decorator of ``forward`` of custom Functions that sets its behaviour under :class:`autocast`.

    Parameters
    ----------
    device_type : str
    cast_inputs : dtype, optional
        Floating-point arguments are cast to it, and the body runs without autocast. None: it runs with the state that
        there is.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.amp import custom_bwd, custom_fwd
    >>> class Product(ptcore.autograd.Function):
    ...     @staticmethod
    ...     @custom_fwd(device_type="cpu", cast_inputs=ptcore.float32)
    ...     def forward(ctx, a, b):
    ...         ctx.save_for_backward(a, b)
    ...         return a @ b
    ...     @staticmethod
    ...     @custom_bwd(device_type="cpu")
    ...     def backward(ctx, g):
    ...         a, b = ctx.saved_tensors
    ...         return g @ b.T, a.T @ g
    >>> with ptcore.autocast("cpu"):
    ...     print(Product.apply(ptcore.ones(2, 2), ptcore.ones(2, 2)).dtype)
    ptcore.float32
    """
    _device_type(device_type, "custom_fwd")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(ctx, *args, **kwargs):
        ctx._dtype = _state.get_dtype(device_type)
        enabled = _state.is_enabled(device_type)
        if cast_inputs is None:
            ctx._fwd_used_autocast = enabled
            return fwd(ctx, *args, **kwargs)
        ctx._fwd_used_autocast = False
        if not enabled:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type=device_type, enabled=False):
            return fwd(ctx, *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))
    return decorated


def custom_bwd(bwd=None, *, device_type):
    """A decorator of ``backward`` of custom Functions: it runs with the autocast state of ``forward``.

    Parameters
    ----------
    device_type : str
    """
    _device_type(device_type, "custom_bwd")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(ctx, *args, **kwargs):
        with autocast(device_type=device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *args, **kwargs)
    return decorated


# -- the state, as functions of the top level ------------------------------------------------------------------------

def is_autocast_enabled(device_type=None) -> bool:
    """Whether ops of a device type, by default CUDA, are cast in this thread."""
    if device_type in _ABSENT:
        return False
    return _state.is_enabled(_device_type("cuda" if device_type is None else device_type, "is_autocast_enabled"))


def set_autocast_enabled(*args) -> None:
    """Turns casts on or off: ``(device_type, enabled)``, or ``(enabled)`` for CUDA."""
    device_type, enabled = args if len(args) == 2 else ("cuda", *args)
    _state.set_enabled(_device_type(device_type, "set_autocast_enabled"), bool(enabled))


def get_autocast_dtype(device_type) -> "_dtype":
    """The dtype that ops of a device type run in."""
    return _state.get_dtype(_device_type(device_type, "get_autocast_dtype"))


def set_autocast_dtype(device_type, dtype) -> None:
    """Sets the dtype that ops of a device type run in."""
    if not isinstance(dtype, _dtype):
        raise TypeError(f"set_autocast_dtype: dtype must be a dtype, got {dtype!r}")
    _state.set_dtype(_device_type(device_type, "set_autocast_dtype"), dtype)


def is_autocast_cache_enabled() -> bool:
    """Whether casts of parameters are kept within a context."""
    return _state.is_cache_enabled()


def set_autocast_cache_enabled(enabled) -> None:
    """Sets whether casts of parameters are kept."""
    _state.set_cache_enabled(bool(enabled))


def clear_autocast_cache() -> None:
    """Drops the kept casts of parameters."""
    _state.clear_cache()


def autocast_increment_nesting() -> int:
    """Increments the number of nested contexts, and returns it."""
    return _state.increment_nesting()


def autocast_decrement_nesting() -> int:
    """Decrements the number of nested contexts, and returns it."""
    return _state.decrement_nesting()


def is_autocast_cpu_enabled() -> bool:
    """Whether ops on the CPU are cast."""
    return _state.is_enabled("cpu")


def set_autocast_cpu_enabled(enabled) -> None:
    """Turns casts on the CPU on or off."""
    _state.set_enabled("cpu", bool(enabled))


def get_autocast_cpu_dtype() -> "_dtype":
    """The dtype that ops on the CPU run in."""
    return _state.get_dtype("cpu")


def set_autocast_cpu_dtype(dtype) -> None:
    """Sets the dtype that ops on the CPU run in."""
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> "_dtype":
    """The dtype that ops on CUDA run in."""
    return _state.get_dtype("cuda")


def set_autocast_gpu_dtype(dtype) -> None:
    """Sets the dtype that ops on CUDA run in."""
    set_autocast_dtype("cuda", dtype)
