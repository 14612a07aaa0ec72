"""Checks of the settings of convolution, pooling, padding and resampling: one number, or one for each spatial dim."""
from cpython.long cimport PyLong_AsLongLongAndOverflow

from ptcore._tensor cimport Tensor

from ptcore._errors import ShapeError
from ptcore._ops import checked
from ptcore._ops.functions import squeeze, unsqueeze

cdef long long _LARGEST = 2**40     # sums and products of a few settings fit in 64 bits


cdef bint _is_plain(object value, int least) except -1:
    """Whether ``value`` is an int from ``least`` to ``_LARGEST``."""
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
        values = (checked.integer(op, name, value),) * n
    else:
        values = tuple(checked.integers(op, name, value))
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


cpdef tuple _windows(str op, int n, Tensor x, object kernel_size, object stride, object padding, object dilation,
                     bint ceil_mode):
    """(kernel, stride, padding, dilation, output sizes) of a window op, each a tuple of n ints."""
    cdef tuple kernel = _numbers(op, "kernel_size", kernel_size, n, 1), steps, pads, gaps
    cdef list size = []
    cdef object shape = x.shape, m, o       # a tracer may answer with symbolic sizes
    cdef bint some = shape[1] > 0
    cdef int i
    cdef long long k, s, p, d, reach
    if stride is None or (isinstance(stride, (list, tuple)) and not stride):
        steps = kernel
    else:
        steps = _numbers(op, "stride", stride, n, 1)
    pads = _numbers(op, "padding", padding, n, 0)
    gaps = _numbers(op, "dilation", dilation, n, 1)
    for i in range(n):
        m, k, s, p, d = shape[i + 2], kernel[i], steps[i], pads[i], gaps[i]
        if k > 1 and d > (<long long>1 << 60) // k:
            raise OverflowError(f"{op}: kernel_size {list(kernel)} with dilation {list(gaps)} reaches too far")
        reach = d * (k - 1)
        if p and p > (reach + 1) // 2:
            raise ShapeError(f"{op}: padding must be at most half of the kernel, got {list(pads)} for "
                             f"kernel_size {list(kernel)} with dilation {list(gaps)}")
        o = (m + (2 * p - reach - 1 + (s - 1 if ceil_mode else 0))) // s + 1
        if ceil_mode and (o - 1) * s >= m + p:      # the last window begins inside the input
            o -= 1
        some = some and o > 0 and m > 0
        size.append(o)
    if not some:
        raise ShapeError(f"{op}: the sizes of the output must be at least 1, got {size} for input of "
                         f"shape {list(x.shape)} and kernel_size {list(kernel)}")
    return kernel, steps, pads, gaps, tuple(size)


cpdef tuple _batched(str op, Tensor x, int n):
    """x with a batch dim, and whether x had one already."""
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
