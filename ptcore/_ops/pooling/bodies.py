"""Bodies: windows of the spatial dims reduced to one number."""
import math

from cython.cimports.ptcore._ops._spatial import _batched, _numbers, _unbatched, _windows

from ptcore._errors import DivisionByZeroError, DTypeError, ShapeError
from ptcore._ops import checked
from ptcore._ops.creation.creation import zeros
from ptcore._ops.creation.draws import rand
from ptcore._ops.functions import (
    abs,
    fractional_windows,
    masked_fill,
    max_pool_windows,
    mean,
    mean_pool,
    reshape,
    scatter_src,
)
from ptcore._precision import need_determinism

_INFINITY = float("inf")


# -- pooling ------------------------------------------------------------------------------------
def _max_pool(op, n, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    x, batched = _batched(op, input, n)
    settings = _windows(op, n, x, kernel_size, stride, padding, dilation, ceil_mode)
    values, indices = max_pool_windows(x, *settings)
    if return_indices:
        return _unbatched(values, batched), _unbatched(indices, batched)
    return _unbatched(values, batched)


def max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    return _max_pool("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    return _max_pool("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    return _max_pool("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _avg_pool(op, n, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor):
    x, batched = _batched(op, input, n)
    kernel, stride, padding, _, size = _windows(op, n, x, kernel_size, stride, padding, 1, ceil_mode)
    if divisor is not None:
        divisor = checked.integer(op, "divisor_override", divisor)
        if divisor == 0:
            raise ShapeError(f"{op}: divisor_override must not be zero")
    return _unbatched(mean_pool(x, kernel, stride, padding, size, count_include_pad, divisor), batched)


def avg_pool1d(input, kernel_size, stride, padding, ceil_mode, count_include_pad):
    return _avg_pool("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    return _avg_pool("avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
                     divisor_override)


def avg_pool3d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    return _avg_pool("avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
                     divisor_override)


def _adaptive(op, n, input, output_size):
    """(x, whether it has a batch dim, output sizes, kernel). The kernel is () if windows differ in size."""
    x, batched = _batched(op, input, n)
    if isinstance(output_size, (list, tuple)):
        if len(output_size) != n:
            raise ShapeError(f"{op}: output_size must be an int or {n} ints, got {list(output_size)}")
        output_size = [m if o is None else o for o, m in zip(output_size, x.shape[2:])]
    elif output_size is None:
        output_size = list(x.shape[2:])
    size = _numbers(op, "output_size", output_size, n, 0)
    shape = x.shape
    if x.numel() == 0 and 0 in shape[1:]:
        raise ShapeError(f"{op}: input must not be empty, got shape {list(shape)}")
    kernel = []
    for i in range(n):
        m, o = shape[i + 2], size[i]
        if o == 0 or m % o:
            return x, batched, size, ()
        kernel.append(m // o)
    return x, batched, size, tuple(kernel)


def _adaptive_avg(op, n, input, output_size):
    x, batched, size, kernel = _adaptive(op, n, input, output_size)
    if size == (1,) * n and x.dtype.kind == "f":
        return _unbatched(mean(x, tuple(range(2, n + 2)), True), batched)
    return _unbatched(mean_pool(x, kernel, kernel, (0,) * len(kernel), size, True, None), batched)


def adaptive_avg_pool1d(input, output_size):
    return _adaptive_avg("adaptive_avg_pool1d", 1, input, output_size)


def adaptive_avg_pool2d(input, output_size):
    return _adaptive_avg("adaptive_avg_pool2d", 2, input, output_size)


def adaptive_avg_pool3d(input, output_size):
    return _adaptive_avg("adaptive_avg_pool3d", 3, input, output_size)


def _adaptive_max(op, n, input, output_size, return_indices):
    x, batched, size, kernel = _adaptive(op, n, input, output_size)
    none = (0,) * len(kernel)
    values, indices = max_pool_windows(x, kernel, kernel, none, (1,) * len(kernel), size)
    if return_indices:
        return _unbatched(values, batched), _unbatched(indices, batched)
    return _unbatched(values, batched)


def adaptive_max_pool1d(input, output_size, return_indices):
    return _adaptive_max("adaptive_max_pool1d", 1, input, output_size, return_indices)


def adaptive_max_pool2d(input, output_size, return_indices):
    return _adaptive_max("adaptive_max_pool2d", 2, input, output_size, return_indices)


def adaptive_max_pool3d(input, output_size, return_indices):
    return _adaptive_max("adaptive_max_pool3d", 3, input, output_size, return_indices)


def _lp_pool(op, n, input, norm_type, kernel_size, stride, ceil_mode):
    kernel = _numbers(op, "kernel_size", kernel_size, n, 1)
    if norm_type == 0:
        raise DivisionByZeroError(f"{op}: norm_type must not be 0")
    if norm_type in (_INFINITY, -_INFINITY):        # the largest or smallest magnitude of a window
        size = abs(input)
        size = size if norm_type > 0 else -size
        size = _max_pool(op, n, size, kernel, stride, 0, 1, ceil_mode, False)
        return size if norm_type > 0 else -size
    out = _avg_pool(op, n, input ** norm_type, kernel, stride, 0, ceil_mode, True, None)
    none = out == 0                     # the root has no slope there: the derivative is 0, as in PyTorch's backward
    root = (masked_fill(out, none, 1) * math.prod(kernel)) ** (1.0 / norm_type)
    return masked_fill(root, none, 0 if norm_type > 0 else _INFINITY)


def lp_pool1d(input, norm_type, kernel_size, stride, ceil_mode):
    return _lp_pool("lp_pool1d", 1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input, norm_type, kernel_size, stride, ceil_mode):
    return _lp_pool("lp_pool2d", 2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input, norm_type, kernel_size, stride, ceil_mode):
    return _lp_pool("lp_pool3d", 3, input, norm_type, kernel_size, stride, ceil_mode)


def _max_unpool(op, n, input, indices, kernel_size, stride, padding, output_size):
    need_determinism(f"max_unpooling{max(n, 2)}d_forward_out")
    if indices.dtype.kind not in "iu":
        raise DTypeError(f"{op}: indices must be an integer tensor, got {indices.dtype.name}")
    x, batched = _batched(op, input, n)
    if tuple(indices.shape) != tuple(input.shape):
        raise ShapeError(f"{op}: indices must have input's shape {list(input.shape)}, got {list(indices.shape)}")
    kernel = _numbers(op, "kernel_size", kernel_size, n, 1)
    stride = kernel if stride is None else _numbers(op, "stride", stride, n, 1)
    padding = _numbers(op, "padding", padding, n, 0)
    size = tuple([(m - 1) * s - 2 * p + k for m, s, p, k in zip(x.shape[2:], stride, padding, kernel)])
    if output_size is not None:
        given = checked.integers(op, "output_size", output_size)
        given = tuple(given[len(given) - n:])
        if len(given) != n or any([not m - s < g < m + s for g, m, s in zip(given, size, stride)]):
            raise ValueError(f"{op}: output_size must be within a stride of {list(size)}, got {output_size!r}")
        size = given
    if any([n < 1 for n in size]):
        raise ShapeError(f"{op}: the sizes of the output must be at least 1, got {list(size)}")
    lead = tuple(x.shape[:2])
    count = 1
    for m in size:
        count *= m
    checked.integer(op, "the number of output_size", count)
    flat = scatter_src(zeros(lead + (count,), dtype=x.dtype, device=x.device), 2,
                       reshape(indices, lead + (-1,)), reshape(x, lead + (-1,)))
    return _unbatched(reshape(flat, lead + size), batched)


def max_unpool1d(input, indices, kernel_size, stride, padding, output_size):
    return _max_unpool("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(input, indices, kernel_size, stride, padding, output_size):
    return _max_unpool("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(input, indices, kernel_size, stride, padding, output_size):
    return _max_unpool("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)


# -- pooling at random places ---------------------------------------------------------------------
def _fractional_max(op, n, input, kernel_size, output_size, output_ratio, samples):
    x, batched = _batched(op, input, n)
    if x.dtype.kind != "f":
        raise DTypeError(f"{op}: input must be real floating-point, got {x.dtype.name}")
    if 0 in x.shape[1:]:
        raise ShapeError(f"{op}: input must not be empty but for its batch, got shape {list(input.shape)}")
    if output_size is None and output_ratio is None:
        raise ValueError(f"{op}: requires specifying either an output_size or an output_ratio, got None of both")
    kernel = _numbers(op, "kernel_size", kernel_size, n, 1)
    if output_size is None:
        ratios = tuple(output_ratio) if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * n
        if len(ratios) != n:
            raise ValueError(f"{op}: output_ratio must be a number or {n} numbers, got {output_ratio!r}")
        ratios = [checked.real(op, "output_ratio", ratio) for ratio in ratios]
        output_size = [math.trunc(size * ratio) for size, ratio in zip(x.shape[2:], ratios)]
    out = _numbers(op, "output_size", output_size, n, 1)
    shape = (*x.shape[:2], n)
    if samples is None:
        samples = rand(*shape, dtype=x.dtype, device=x.device)
    elif samples.ndim != 3 or samples.shape[0] < shape[0] or samples.shape[1:] != shape[1:]:
        raise ShapeError(f"{op}: _random_samples must have shape {list(shape)}, got {list(samples.shape)}")
    elif samples.dtype is not x.dtype:
        raise DTypeError(f"{op}: _random_samples must have input's dtype {x.dtype.name}, got {samples.dtype.name}")
    if samples.shape[0] > shape[0]:
        samples = samples[:shape[0]]
    values, indices = fractional_windows(x, samples.detach(), kernel, out)
    return (values, indices) if batched else (values.squeeze(0), indices.squeeze(0))


def fractional_max_pool2d(input, kernel_size, output_size, output_ratio, return_indices, _random_samples):
    values, indices = _fractional_max("fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio,
                                      _random_samples)
    return (values, indices) if return_indices else values


def fractional_max_pool3d(input, kernel_size, output_size, output_ratio, return_indices, _random_samples):
    values, indices = _fractional_max("fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio,
                                      _random_samples)
    return (values, indices) if return_indices else values


def fractional_max_pool2d_with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples):
    return fractional_max_pool2d(input, kernel_size, output_size, output_ratio, True, _random_samples)


def fractional_max_pool3d_with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples):
    return fractional_max_pool3d(input, kernel_size, output_size, output_ratio, True, _random_samples)
