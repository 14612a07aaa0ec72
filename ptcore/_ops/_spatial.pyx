"""What convolution, pooling, padding and resampling ask of their settings: one number, or one for each spatial dim."""
from cpython.long cimport PyLong_AsLongLongAndOverflow

from ptcore._tensor cimport Tensor

from ptcore._errors import ShapeError
from ptcore._ops import _arguments
from ptcore._ops.functions import squeeze, unsqueeze

cdef long long _LARGEST = 2**40     # what is worked out of a few of these fits in 64 bits


cdef bint _is_plain(object value, int least) except -1:
    """Whether it is an int in the range of settings."""
    cdef int over = 0
    return type(value) is int and least <= PyLong_AsLongLongAndOverflow(value, &over) <= _LARGEST and not over


cpdef tuple _numbers(str op, str name, object value, int n, int least):
    """A tuple of n ints from one int or from n of them."""
    if _is_plain(value, least):
        return (value,) * n
    if type(value) is tuple and len(value) == n:
        for v in value:
            if not _is_plain(v, least):
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


cpdef tuple _batched(str op, Tensor x, int n):
    """x with a batch dim, and whether it had one."""
    if x.rank == n + 2:
        return x, True
    if x.rank == n + 1:
        return unsqueeze(x, 0), False
    raise ShapeError(f"{op}: input must have {n + 1} (without a batch) or {n + 2} dimensions, got shape "
                     f"{list(x.shape)}")


cpdef object _unbatched(object x, bint batched):
    return x if batched else squeeze(x, (0,))


cpdef int _word(str op, str name, object value) except -1:
    if not isinstance(value, str):
        raise TypeError(f"{op}: {name} must be a str, got {type(value).__name__}")
    return 0
