"""cuDNN, which is not used: its settings are kept for programs that make them.

Convolution of float32 on a device rounds its operands to TF32 (11 bits) where ``allow_tf32`` is True, as it is at
first.

``enabled``, ``benchmark``, ``benchmark_limit``, ``deterministic``, ``allow_tf32`` and ``fp32_precision`` can be read
and set.
"""
import contextlib
import sys
import types

from ptcore import _precision

__all__ = ["flags", "is_acceptable", "is_available", "set_flags", "version"]

_values = {"enabled": True, "benchmark": False, "benchmark_limit": None, "deterministic": False, "allow_tf32": True,
           "fp32_precision": "none"}


def is_available():
    """Whether cuDNN can be used: always False."""
    return False


def version():
    """The version of cuDNN: None, as there is none."""
    return None


def is_acceptable(tensor):
    """Whether cuDNN takes a tensor: always False."""
    return False


def set_flags(_enabled=None, _benchmark=None, _benchmark_limit=None, _deterministic=None, _allow_tf32=None,
              _fp32_precision="none"):
    """Sets those that are not None; returns all as they were."""
    given = (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32, _fp32_precision)
    before = tuple(_values.values())
    for name, value in zip(_values, given):
        if value is not None:
            setattr(sys.modules[__name__], name, value)
    return before


@contextlib.contextmanager
def flags(enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True,
          fp32_precision="none"):
    """A context with other settings."""
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32, fp32_precision)
    try:
        yield
    finally:
        _values.update(zip(_values, before))
        _tell()


def _tell():
    """What convolution does: ``fp32_precision`` counts where it is not "none"."""
    said = _values["fp32_precision"]
    _precision.allow("convolution_tf32", _values["allow_tf32"] if said == "none" else said == "tf32")


class _Cudnn(types.ModuleType):
    """The module itself, whose settings are checked."""


def _setting(name):
    def get(module):
        return _values[name]

    def set(module, value):
        if name == "fp32_precision":
            if value not in ("none", "ieee", "tf32"):
                raise RuntimeError(f"fp32_precision: must be one of 'none', 'ieee' and 'tf32', got {value!r}")
        elif name != "benchmark_limit":
            _precision.check_bool(f"cudnn.{name}", value)
        _values[name] = value
        if name in ("allow_tf32", "fp32_precision"):
            _tell()

    return property(get, set)


for _name in _values:
    setattr(_Cudnn, _name, _setting(_name))
sys.modules[__name__].__class__ = _Cudnn
