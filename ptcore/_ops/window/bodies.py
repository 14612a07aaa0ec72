"""Functions behind the rows of ``window.py``: convolution, pooling, padding, resampling.

They read settings that are one number or one for each spatial dim, work out sizes, and call the ops
that do the work on (N, C, ...); an input without N gets one.
"""
import math

from ptcore._convert import tensor
from ptcore._errors import DTypeError, ShapeError
from ptcore._ops import _arguments
from ptcore._ops._creation import linspace, zeros
from ptcore._ops._window_shapes import convolved
from ptcore._ops.composite.bodies import matmul
from ptcore._ops.functions import (
    abs,
    clone,
    convolve,
    convolve_transposed,
    fold_windows,
    grid_sampled,
    linear,
    max_pool_windows,
    mean,
    mean_pool,
    pad_constant,
    pad_edges,
    permute,
    relu,
    resample,
    reshape,
    scatter_src,
    slice,
    squeeze,
    transpose,
    unfold_windows,
    unsqueeze,
)
from ptcore._tensor import Tensor

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


# -- convolution --------------------------------------------------------------------------------

def _operand(op, name, t, x):
    if not isinstance(t, Tensor):
        raise TypeError(f"{op}: {name} must be a Tensor, got {type(t).__name__}")
    if t.dtype is not x.dtype:
        raise DTypeError(f"{op}: {name} must have input's dtype {x.dtype.name}, got {t.dtype.name}")


def _operands(op, n, x, weight, bias, groups):
    _operand(op, "weight", weight, x)
    if bias is not None:
        _operand(op, "bias", bias, x)
    if weight.ndim != n + 2 or (weight.numel() == 0 and 0 in weight.shape[2:]):
        raise ShapeError(f"{op}: weight must have {n + 2} dimensions, none of the last {n} empty, got "
                         f"shape {list(weight.shape)}")
    if groups < 1:
        raise ShapeError(f"{op}: groups must be positive, got {groups}")


def _convolution(op, n, input, weight, bias, stride, padding, dilation, groups):
    x, batched = _batched(op, input, n)
    _operands(op, n, x, weight, bias, groups)
    stride = _numbers(op, "stride", stride, n, 1)
    dilation = _numbers(op, "dilation", dilation, n, 1)
    shape, kernel = x.shape, weight.shape
    reach = [dilation[i] * (kernel[i + 2] - 1) for i in range(n)]
    if isinstance(padding, str):
        if padding == "same":
            if max(stride) != 1:
                raise ShapeError(f"{op}: padding='same' needs a stride of 1, got {list(stride)}")
            padding, size = tuple([r // 2 for r in reach]), tuple(shape[2:])
        elif padding == "valid":
            padding, size = (0,) * n, None
        else:
            raise ShapeError(f"{op}: padding must be ints, 'same' or 'valid', got {padding!r}")
    else:
        padding, size = _numbers(op, "padding", padding, n, 0), None
    if size is None:
        size = tuple([(shape[i + 2] + 2 * padding[i] - reach[i] - 1) // stride[i] + 1 for i in range(n)])
        if min(size) < 1:
            raise ShapeError(f"{op}: the kernel must not be larger than the padded input, got kernel "
                             f"{list(kernel[2:])} with dilation {list(dilation)} for sizes {list(shape[2:])} with "
                             f"padding {list(padding)}")
    if kernel[0] == 0:
        convolved(op, x, weight, bias, stride, padding, dilation, groups, size)
        raise ShapeError(f"{op}: weight must have at least one filter, got shape {list(kernel)}")
    if groups == 1 and kernel[1:] == shape[1:] and max(reach) > 0 and max(padding) == 0 and x.dtype.is_floating_point:
        # one result that every number of the input takes part in: a product of matrices
        convolved(op, x, weight, bias, stride, padding, dilation, groups, size)
        length = math.prod(shape[1:])
        product = linear(reshape(x, (shape[0], length)), reshape(weight, (kernel[0], length)), bias)
        return _unbatched(reshape(product, (shape[0], kernel[0]) + (1,) * n), batched)
    return _unbatched(convolve(x, weight, bias, stride, padding, dilation, groups, size), batched)


def conv1d(input, weight, bias, stride, padding, dilation, groups):
    return _convolution("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(input, weight, bias, stride, padding, dilation, groups):
    return _convolution("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(input, weight, bias, stride, padding, dilation, groups):
    return _convolution("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def conv_tbc(input, weight, bias, pad):
    op = "conv_tbc"
    for name, t, ndim in (("input", input, 3), ("weight", weight, 3), ("bias", bias, 1)):
        if t.ndim != ndim:
            raise ShapeError(f"{op}: {name} must have {ndim} dimensions, got shape {list(t.shape)}")
    pad = _numbers(op, "pad", pad, 1, 0)
    x = permute(input, (1, 2, 0))
    return permute(_convolution(op, 1, x, permute(weight, (2, 1, 0)), bias, 1, pad, 1, 1), (2, 0, 1)).contiguous()


def _transposed(op, n, input, weight, bias, stride, padding, output_padding, groups, dilation):
    x, batched = _batched(op, input, n)
    _operands(op, n, x, weight, bias, groups)
    stride = _numbers(op, "stride", stride, n, 1)
    padding = _numbers(op, "padding", padding, n, 0)
    extra = _numbers(op, "output_padding", output_padding, n, 0)
    dilation = _numbers(op, "dilation", dilation, n, 1)
    for e, s, d in zip(extra, stride, dilation):
        if e >= s and e >= d:
            raise ShapeError(f"{op}: output_padding must be smaller than stride or dilation, got "
                             f"{list(extra)} with stride {list(stride)}, dilation {list(dilation)}")
    size = tuple([(m - 1) * s - 2 * p + d * (k - 1) + e + 1 for m, s, p, d, k, e in zip(
        x.shape[2:], stride, padding, dilation, weight.shape[2:], extra)])
    if min(size) < 1:
        raise ShapeError(f"{op}: the sizes of the output must be at least 1, got {list(size)}")
    return _unbatched(convolve_transposed(x, weight, bias, stride, padding, dilation, groups, size), batched)


def conv_transpose1d(input, weight, bias, stride, padding, output_padding, groups, dilation):
    return _transposed("conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups, dilation):
    return _transposed("conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(input, weight, bias, stride, padding, output_padding, groups, dilation):
    return _transposed("conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups, dilation)


# -- pooling ------------------------------------------------------------------------------------

def _pool_settings(op, n, x, kernel_size, stride, padding, dilation, ceil_mode):
    kernel = _numbers(op, "kernel_size", kernel_size, n, 1)
    if stride is None or (isinstance(stride, (list, tuple)) and not stride):
        stride = kernel
    else:
        stride = _numbers(op, "stride", stride, n, 1)
    padding = _numbers(op, "padding", padding, n, 0)
    dilation = _numbers(op, "dilation", dilation, n, 1)
    size, shape = [], x.shape
    some = shape[1] > 0
    for i in range(n):
        m, s, p, reach = shape[i + 2], stride[i], padding[i], dilation[i] * (kernel[i] - 1)
        if p and p > (reach + 1) // 2:
            raise ShapeError(f"{op}: padding must be at most half of the kernel, got {list(padding)} for "
                             f"kernel_size {list(kernel)} with dilation {list(dilation)}")
        o = (m + 2 * p - reach - 1 + (s - 1 if ceil_mode else 0)) // s + 1
        if ceil_mode and (o - 1) * s >= m + p:      # the last window begins inside the input
            o -= 1
        some = some and o > 0 and m > 0
        size.append(o)
    if not some:
        raise ShapeError(f"{op}: the sizes of the output must be at least 1, got {size} for input of "
                         f"shape {list(x.shape)} and kernel_size {list(kernel)}")
    return kernel, stride, padding, dilation, tuple(size)


def _max_pool(op, n, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    x, batched = _batched(op, input, n)
    settings = _pool_settings(op, n, x, kernel_size, stride, padding, dilation, ceil_mode)
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
    kernel, stride, padding, _, size = _pool_settings(op, n, x, kernel_size, stride, padding, 1, ceil_mode)
    if divisor is not None:
        divisor = _arguments.integer(op, "divisor_override", divisor)
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
    """(x, whether it has a batch, sizes, kernel): no kernel where windows differ."""
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
    out = _avg_pool(op, n, input ** norm_type, kernel, stride, 0, ceil_mode, True, None)
    return (out.sign() * relu(abs(out)) * math.prod(kernel)) ** (1.0 / norm_type)


def lp_pool1d(input, norm_type, kernel_size, stride, ceil_mode):
    return _lp_pool("lp_pool1d", 1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input, norm_type, kernel_size, stride, ceil_mode):
    return _lp_pool("lp_pool2d", 2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input, norm_type, kernel_size, stride, ceil_mode):
    return _lp_pool("lp_pool3d", 3, input, norm_type, kernel_size, stride, ceil_mode)


def _max_unpool(op, n, input, indices, kernel_size, stride, padding, output_size):
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
        given = _arguments.integers(op, "output_size", output_size)
        given = tuple(given[len(given) - n:])
        if len(given) != n or any([not m - s < g < m + s for g, m, s in zip(given, size, stride)]):
            raise ValueError(f"{op}: output_size must be within a stride of {list(size)}, got {output_size!r}")
        size = given
    if min(size) < 1:
        raise ShapeError(f"{op}: the sizes of the output must be at least 1, got {list(size)}")
    lead = tuple(x.shape[:2])
    count = 1
    for m in size:
        count *= m
    _arguments.integer(op, "the number of output_size", count)
    flat = scatter_src(zeros(lead + (count,), dtype=x.dtype, device=x.device), 2,
                       reshape(indices, lead + (-1,)), reshape(x, lead + (-1,)))
    return _unbatched(reshape(flat, lead + size), batched)


def max_unpool1d(input, indices, kernel_size, stride, padding, output_size):
    return _max_unpool("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(input, indices, kernel_size, stride, padding, output_size):
    return _max_unpool("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(input, indices, kernel_size, stride, padding, output_size):
    return _max_unpool("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)


# -- padding, windows as columns ------------------------------------------------------------------

def pad(input, pad, mode, value):
    pads = pad if type(pad) is tuple else tuple(pad) if type(pad) is list else ()
    for p in pads:
        if type(p) is not int or not -_LARGEST <= p <= _LARGEST:
            pads = ()
            break
    if not pads:
        pads = tuple(_arguments.integers("pad", "pad", pad))
    if len(pads) % 2 or len(pads) > 2 * input.ndim:
        raise ShapeError(f"pad: pad must have an even number of entries, at most 2 for each dim of an input "
                         f"of shape {list(input.shape)}, got {list(pads)}")
    _word("pad", "mode", mode)
    if mode == "constant":
        return pad_constant(input, pads, 0 if value is None else _arguments.number("pad", "value", value))
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"pad: mode must be one of 'constant', 'reflect', 'replicate', 'circular', "
                                  f"got {mode!r}")
    if value is not None and value != 0:
        raise ValueError(f"pad: mode {mode!r} takes no value, got {value!r}")
    n = len(pads) // 2
    if not 1 <= n <= 3 or input.ndim not in (n + 1, n + 2):
        raise NotImplementedError(f"pad: mode {mode!r} pads the last 1, 2 or 3 dims of (C, ...) or (N, C, ...), got "
                                  f"{list(pads)} for shape {list(input.shape)}")
    if min(pads) < 0:
        for k in range(n):
            input = _cut(input, input.ndim - 1 - k, pads[2 * k], pads[2 * k + 1])
        pads = tuple([max(p, 0) for p in pads])
    return pad_edges(input, pads, mode) if max(pads) > 0 else clone(input)


def _cut(x, dim, left, right):
    n = x.shape[dim]
    if left >= 0 and right >= 0:
        return x
    if -min(left, 0) - min(right, 0) >= n:
        raise ShapeError(f"pad: ({left}, {right}) leaves nothing of dim {dim} of shape {list(x.shape)}")
    return slice(x, dim, max(-left, 0), n - max(-right, 0), 1)


def _sliding(op, kernel_size, dilation, padding, stride):
    return (_numbers(op, "kernel_size", kernel_size, 2, 1), _numbers(op, "dilation", dilation, 2, 1),
            _numbers(op, "padding", padding, 2, 0), _numbers(op, "stride", stride, 2, 1))


def _blocks(op, size, kernel, dilation, padding, stride):
    blocks = tuple([(m + 2 * p - d * (k - 1) - 1) // s + 1
                    for m, k, d, p, s in zip(size, kernel, dilation, padding, stride)])
    if min(blocks) < 1:
        raise ShapeError(f"{op}: windows must fit in the padded input, got windows of {list(kernel)} for sizes "
                         f"{list(size)} with padding {list(padding)}")
    return blocks


def im2col(input, kernel_size, dilation, padding, stride):
    settings = _sliding("unfold", kernel_size, dilation, padding, stride)
    x, batched = _batched("unfold", input, 2)
    return _unbatched(unfold_windows(x, *settings, _blocks("unfold", x.shape[2:], *settings)), batched)


def col2im(input, output_size, kernel_size, dilation, padding, stride):
    settings = _sliding("fold", kernel_size, dilation, padding, stride)
    size = _numbers("fold", "output_size", output_size, 2, 1)
    x, batched = _batched("fold", input, 1)
    return _unbatched(fold_windows(x, *settings, _blocks("fold", size, *settings), size), batched)


def pixel_shuffle(input, upscale_factor):
    r = upscale_factor
    if input.ndim < 3 or r < 1 or input.shape[-3] % (r * r):
        raise ShapeError(f"pixel_shuffle: input must have shape (*, C * {r}**2, H, W) with a positive "
                         f"upscale_factor, got {list(input.shape)}")
    *lead, c, h, w = input.shape
    n = len(lead)
    x = reshape(input, (*lead, c // (r * r), r, r, h, w))
    x = permute(x, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return reshape(x, (*lead, c // (r * r), h * r, w * r))


def pixel_unshuffle(input, downscale_factor):
    r = downscale_factor
    if input.ndim < 3 or r < 1 or input.shape[-1] % r or input.shape[-2] % r:
        raise ShapeError(f"pixel_unshuffle: input must have shape (*, C, H * {r}, W * {r}) with a positive "
                         f"downscale_factor, got {list(input.shape)}")
    *lead, c, h, w = input.shape
    n = len(lead)
    x = reshape(input, (*lead, c, h // r, r, w // r, r))
    x = permute(x, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return reshape(x, (*lead, c * r * r, h // r, w // r))


def channel_shuffle(input, groups):
    if input.ndim < 3 or groups < 1 or input.shape[1] % groups:
        raise ShapeError(f"channel_shuffle: input must have shape (N, C, ...) with C a multiple of "
                         f"groups={groups}, got {list(input.shape)}")
    n, c = input.shape[:2]
    rest = tuple(input.shape[2:])
    x = reshape(input, (n, groups, c // groups) + rest)
    return reshape(permute(x, (0, 2, 1, *range(3, x.ndim))).contiguous(), (n, c) + rest)


# -- resampling ---------------------------------------------------------------------------------

_MODES = {"nearest": ("nearest", (3, 4, 5)), "nearest-exact": ("nearest-exact", (3, 4, 5)),
          "linear": ("linear", (3,)), "bilinear": ("linear", (4,)), "trilinear": ("linear", (5,)),
          "bicubic": ("cubic", (4,)), "area": ("area", (3, 4, 5))}


def _triangle(x):
    x = x if x >= 0 else -x
    return 1 - x if x < 1 else 0.0


def _bump(x):
    """Keys' cubic with a = -0.5, which filters of images take."""
    x = x if x >= 0 else -x
    if x < 1:
        return (1.5 * x - 2.5) * x * x + 1
    return ((-0.5 * x + 2.5) * x - 4) * x + 2 if x < 2 else 0.0


def _smoothed(x, dim, count, how, align_corners, scale):
    """Resampled along a dim by a filter that is as wide as the output's step: a product with a matrix."""
    n = x.shape[dim]
    if align_corners:
        step = (n - 1) / (count - 1) if count > 1 else 0.0
    else:
        step = 1 / scale if scale > 0 else n / count
    kernel, half = (_triangle, 1) if how == "linear" else (_bump, 2)
    stretch = step if step >= 1 else 1.0
    rows = []
    for i in range(count):
        centre = step * (i + 0.5)
        first = max(int(centre - half * stretch + 0.5), 0)
        last = min(int(centre + half * stretch + 0.5), n)
        weights = [kernel((j - centre + 0.5) / stretch) for j in range(first, last)]
        total = sum(weights)
        rows.append([0.0] * first + [w / total if total else w for w in weights] + [0.0] * (n - last))
    matrix = tensor(rows, dtype=x.dtype, device=x.device)
    return matmul(x, transpose(matrix, 0, 1)) if dim == 3 else matmul(matrix, x)


def interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias):
    op = "interpolate"
    _word(op, "mode", mode)
    if align_corners is not None:
        align_corners = _arguments.flag(op, "align_corners", align_corners)
    if recompute_scale_factor is not None:
        recompute_scale_factor = _arguments.flag(op, "recompute_scale_factor", recompute_scale_factor)
    if mode not in _MODES:
        raise NotImplementedError(f"{op}: mode must be one of {', '.join([repr(m) for m in _MODES])}, got {mode!r}")
    how, ndims = _MODES[mode]
    if antialias and not (mode in ("bilinear", "bicubic") and input.ndim == 4):
        raise ValueError(f"{op}: antialias goes with modes bilinear and bicubic and input of 4 dimensions, got mode "
                         f"{mode!r} and shape {list(input.shape)}")
    if input.ndim not in ndims:
        raise NotImplementedError(f"{op}: mode {mode!r} needs input of {' or '.join([str(d) for d in ndims])} "
                                  f"dimensions, got shape {list(input.shape)}")
    if how not in ("linear", "cubic") and align_corners is not None:
        raise ValueError(f"{op}: align_corners goes with modes linear, bilinear, bicubic and trilinear, got "
                         f"mode {mode!r}")
    n = input.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ValueError(f"{op}: either size or scale_factor must be given, got size={size!r} and "
                         f"scale_factor={scale_factor!r}")
    scales = (0.0,) * n
    if size is not None:
        if recompute_scale_factor:
            raise ValueError(f"{op}: recompute_scale_factor needs scale_factor")
        if isinstance(size, (list, tuple)) and len(size) != n:
            raise ValueError(f"{op}: size must be an int or {n} ints, got {list(size)}")
        size = _numbers(op, "size", size, n, 1)
    else:
        factors = tuple(scale_factor) if isinstance(scale_factor, (list, tuple)) else (scale_factor,) * n
        if len(factors) != n:
            raise ValueError(f"{op}: scale_factor must be a number or {n} numbers, got {list(factors)}")
        factors = tuple([_arguments.real(op, "scale_factor", f) for f in factors])
        if not all([0 < f < 2.0**40 for f in factors]):
            raise ShapeError(f"{op}: scale_factor must be positive, got {list(factors)}")
        size = tuple([int(m * f) for m, f in zip(input.shape[2:], factors)])
        if not recompute_scale_factor:
            scales = factors
    if 0 in input.shape[1:] or min(size) < 1:
        raise ShapeError(f"{op}: sizes must be positive, got input of shape {list(input.shape)} and output "
                         f"sizes {list(size)}")
    if how == "area":
        return _adaptive_avg(op, n, input, size)
    if how in ("linear", "cubic") and input.dtype.kind != "f":
        raise DTypeError(f"{op}: mode {mode!r} needs a floating-point input, got {input.dtype.name}")
    x, same = input, [m == o for m, o in zip(input.shape[2:], size)]
    if how == "nearest" and n > 1 and all(same):    # as in PyTorch, which asks for the scale in one dim
        return clone(x)
    if antialias:
        for k in (1, 0):
            x = _smoothed(x, k + 2, size[k], how, align_corners, scales[k])
        return x
    for k in range(n - 1, -1, -1):
        if not (same[k] and (how == "linear" or align_corners or scales[k] in (0.0, 1.0))):
            x = resample(x, k + 2, size[k], how, bool(align_corners), scales[k])
    return clone(x) if x is input else x


# -- sampling at positions ---------------------------------------------------------------------------

def grid_sample(input, grid, mode, padding_mode, align_corners):
    op = "grid_sample"
    _arguments.word(op, "mode", mode, ("bilinear", "nearest", "bicubic"))
    _arguments.word(op, "padding_mode", padding_mode, ("zeros", "border", "reflection"))
    align_corners = False if align_corners is None else _arguments.flag(op, "align_corners", align_corners)
    if mode == "bicubic" and input.ndim == 5:
        raise ShapeError(f"{op}: mode 'bicubic' needs input of 4 dimensions, got shape {list(input.shape)}")
    return grid_sampled(input, grid, mode, padding_mode, align_corners)


def affine_grid(theta, size, align_corners):
    op = "affine_grid"
    align_corners = False if align_corners is None else _arguments.flag(op, "align_corners", align_corners)
    if theta.dtype.kind != "f":
        raise ValueError(f"{op}: theta must be floating-point, got {theta.dtype.name}")
    size = tuple(_arguments.integers(op, "size", size))
    if len(size) not in (4, 5):
        raise NotImplementedError(f"{op}: size must have 4 or 5 entries, got {list(size)}")
    dims = len(size) - 2
    if tuple(theta.shape[1:]) != (dims, dims + 1) or theta.ndim != 3:
        raise ValueError(f"{op}: theta must have shape (N, {dims}, {dims + 1}) for size {list(size)}, got "
                         f"{list(theta.shape)}")
    if not 0 < min(size) <= max(size) <= _LARGEST:
        raise ValueError(f"{op}: size must be positive, got {list(size)}")
    if theta.shape[0] != size[0]:
        raise ShapeError(f"{op}: theta must have one map for each of {size[0]} samples, got shape {list(theta.shape)}")
    total = theta[:, :, dims].reshape((size[0], *[1] * dims, dims))
    for k, n in enumerate(reversed(size[2:])):          # x, y, z: the last dim comes first
        shape = [1] * (dims + 2)
        shape[dims - k] = n
        span = (n - 1) / n if n > 1 and not align_corners else 1
        places = linspace(-span, span, n, dtype=theta.dtype, device=theta.device) if n > 1 else zeros(
            1, dtype=theta.dtype, device=theta.device)
        total = total + reshape(places, tuple(shape)) * theta[:, :, k].reshape((size[0], *[1] * dims, dims))
    return total


__all__ = [_n for _n in dir() if not _n.startswith("_")]
