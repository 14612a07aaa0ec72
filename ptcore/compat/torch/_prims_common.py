"""``torch._prims_common``: the few helpers of that module that programs use."""
from typing import Any

from ptcore._tensor import Tensor
from ptcore.utils.settings import (
    are_deterministic_algorithms_enabled,
    is_deterministic_algorithms_warn_only_enabled,
)

__all__ = ["alert_not_deterministic", "is_boolean_dtype", "is_complex_dtype", "is_float_dtype", "is_integer_dtype"]

TensorLike = Tensor
TensorLikeType = TensorSequenceType = DeviceLikeType = Any        # for annotations
NumberType = int | float | complex | bool
Number = (bool, int, float, complex)


def alert_not_deterministic(caller):
    """Raises, or warns, if deterministic algorithms are requested and ``caller`` has none."""
    if not are_deterministic_algorithms_enabled():
        return
    text = (f"{caller} does not have a deterministic implementation, but you set "
            "'torch.use_deterministic_algorithms(True)'.")
    if not is_deterministic_algorithms_warn_only_enabled():
        raise RuntimeError(text)
    import warnings
    warnings.warn(text, stacklevel=2)


def is_float_dtype(dtype):
    """Whether a dtype is a real floating-point one."""
    return dtype.is_floating_point


def is_complex_dtype(dtype):
    """Whether a dtype is complex."""
    return dtype.is_complex


def is_boolean_dtype(dtype):
    """Whether a dtype is bool."""
    from ptcore import bool
    return dtype is bool


def is_integer_dtype(dtype):
    """Whether a dtype is one of integers."""
    return not (dtype.is_floating_point or dtype.is_complex or is_boolean_dtype(dtype))
