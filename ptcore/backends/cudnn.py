"""cuDNN, which computes convolution on a device where it is installed (``pip install "ptcore[cuda13-dnn]"``).

Without it, and where ``enabled`` is False, ptcore's own kernels do. ``deterministic`` leaves cuDNN the algorithms that
repeat their results. Convolution of float32 on a device rounds its operands to TF32 (11 bits) where ``allow_tf32`` is
True, as it is at first. cuDNN's heuristics choose algorithms: ``benchmark`` and ``benchmark_limit`` change nothing.

``enabled``, ``benchmark``, ``benchmark_limit``, ``deterministic``, ``allow_tf32`` and ``fp32_precision`` can be read
and set.
"""
import contextlib
import sys
import types

from ptcore import _precision
from ptcore._contexts import Changed

__all__ = ["flags", "is_acceptable", "is_available", "set_flags", "version"]

_values = {"enabled": True, "benchmark": False, "benchmark_limit": None, "deterministic": False, "allow_tf32": True,
           "fp32_precision": "none"}


def is_available():
    """Whether cuDNN can be used: it is installed, and there is a device.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.backends.cudnn.is_available() in (True, False)
    True
    """
    from ptcore.cuda import is_available
    if not is_available():
        return False
    from ptcore.cuda.driver.loading import runtime
    runtime().initialise()
    from ptcore.cuda.driver import library_tables
    return library_tables.has_cudnn()


def version():
    """The version of cuDNN as a number such as 91002, None where it cannot be used."""
    if not is_available():
        return None
    import ctypes

    from ptcore.cuda.driver.libraries import library_path
    return int(ctypes.CDLL(library_path("cudnn")).cudnnGetVersion())


def is_acceptable(tensor):
    """Whether cuDNN takes a tensor: it is enabled and there, and the tensor is one of real numbers on a device."""
    return _values["enabled"] and tensor.is_cuda and tensor.dtype.kind == "f" and is_available()


def set_flags(_enabled=None, _benchmark=None, _benchmark_limit=None, _deterministic=None, _allow_tf32=None,
              _fp32_precision="none"):
    """Sets those that are not None; returns all as they were."""
    given = (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32, _fp32_precision)
    before = tuple(_values.values())
    chosen = {name: _checked(name, value) for name, value in zip(_values, given) if value is not None}
    for name, value in chosen.items():
        setattr(sys.modules[__name__], name, value)
    return before


class _Flags(Changed, contextlib.ContextDecorator):
    """What ``flags`` gives."""


def flags(enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True,
          fp32_precision="none"):
    """A context with other settings, on all threads as in PyTorch; those that are None are left alone."""
    given = (enabled, benchmark, benchmark_limit, deterministic, allow_tf32, fp32_precision)
    chosen = {name: _checked(name, value) for name, value in zip(_values, given) if value is not None}
    told = _of_products({**_values, **chosen})
    return _Flags((_values, chosen), (_precision.matmul, told), told=(_precision, _precision.matmul, tuple(told)))


def _of_products(values):
    """What products and convolution are told: ``fp32_precision`` counts where it is not "none"."""
    said = values["fp32_precision"]
    return {"convolution_tf32": values["allow_tf32"] if said == "none" else said == "tf32",
            "cudnn_enabled": values["enabled"], "cudnn_deterministic": values["deterministic"]}


def _checked(name, value):
    if name == "fp32_precision":
        if value not in ("none", "ieee", "tf32"):
            raise RuntimeError(f"fp32_precision: must be one of 'none', 'ieee' and 'tf32', got {value!r}")
    elif name != "benchmark_limit":
        _precision.check_bool(f"cudnn.{name}", value)
    return value


class _Cudnn(types.ModuleType):
    """The module itself, whose settings are checked."""


def _setting(name):
    def get(module):
        return _values[name]

    def set(module, value):
        _values[name] = _checked(name, value)
        for word, now in _of_products(_values).items():
            _precision.allow(word, now)

    return property(get, set)


for _name in _values:
    setattr(_Cudnn, _name, _setting(_name))
sys.modules[__name__].__class__ = _Cudnn
