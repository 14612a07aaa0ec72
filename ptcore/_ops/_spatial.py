"""What convolution, pooling, padding and resampling ask of their settings: one number, or one for each spatial dim."""
from ptcore._errors import ShapeError
from ptcore._ops import _arguments
from ptcore._ops.functions import squeeze, unsqueeze

_LARGEST = 2**40                # what is worked out of a few of these fits in 64 bits


def _numbers(op, name, value, n, least):
    """A tuple of n ints from one int or from n of them."""
    if type(value) is int and least <= value <= _LARGEST:
        return (value,) * n
    if type(value) is tuple and len(value) == n:
        for v in value:
            if type(v) is not int or not least <= v <= _LARGEST:
                break
        else:
            return value
    if type(value) is int:
        values = (_arguments.integer(op, name, value),) * n
    else:
        values = tuple(_arguments.integers(op, name, value))
        if len(values) == 1:
            values = values * n
        if len(values) != n:
            raise ShapeError(f"{op}: {name} must be an int or {n} ints, got {list(values)}")
    for v in values:
        if v < least:
            raise ShapeError(f"{op}: {name} must be at least {least}, got {value!r}")
        if v > _LARGEST:
            raise OverflowError(f"{op}: {name} must be at most {_LARGEST}, got {v}")
    return values


def _batched(op, x, n):
    """x with a batch dim, and whether it had one."""
    if x.ndim == n + 2:
        return x, True
    if x.ndim == n + 1:
        return unsqueeze(x, 0), False
    raise ShapeError(f"{op}: input must have {n + 1} (without a batch) or {n + 2} dimensions, got shape "
                     f"{list(x.shape)}")


def _unbatched(x, batched):
    return x if batched else squeeze(x, (0,))


def _word(op, name, value):
    if not isinstance(value, str):
        raise TypeError(f"{op}: {name} must be a str, got {type(value).__name__}")
