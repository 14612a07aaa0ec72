"""Shape rules of convolution, pooling and resampling; see ``shapes.py``, which exports them."""
from ptcore._dtype import as_dtype
from ptcore._errors import ShapeError

INT64 = as_dtype("int64")


def spatial(op, x, name="input"):
    """The sizes behind (N, C), of which there are 1 to 3."""
    if not 3 <= x.ndim <= 5:
        raise ShapeError(f"{op}: {name} must have 3 to 5 dimensions (N, C, ...), got shape "
                         f"{list(x.shape)}")
    return tuple(x.shape[2:])


def numbers(op, name, values, count, least):
    """A setting with one number for each spatial dim."""
    if len(values) != count:
        raise ShapeError(f"{op}: {name} must have {count} numbers, got {list(values)}")
    for v in values:
        if v < least:
            raise ShapeError(f"{op}: {name} must be at least {least}, got {list(values)}")


def _settings(op, x, stride, padding, dilation, groups, size):
    n = len(spatial(op, x))
    numbers(op, "stride", stride, n, 1)
    numbers(op, "padding", padding, n, 0)
    numbers(op, "dilation", dilation, n, 1)
    numbers(op, "size", size, n, 0)
    if groups < 1:
        raise ShapeError(f"{op}: groups must be positive, got {groups}")


def _bias(op, bias, channels):
    if bias is not None and tuple(bias.shape) != (channels,):
        raise ShapeError(f"{op}: bias must have shape [{channels}], got {list(bias.shape)}")


def _same_ndim(op, name, x, other):
    if other.ndim != x.ndim:
        raise ShapeError(f"{op}: {name} must have {x.ndim} dimensions, got shape "
                         f"{list(other.shape)}")


def convolved(op, x, weight, bias, stride, padding, dilation, groups, size):
    _settings(op, x, stride, padding, dilation, groups, size)
    _same_ndim(op, "weight", x, weight)
    filters = weight.shape[0]
    if x.shape[1] != groups * weight.shape[1] or filters % groups:
        raise ShapeError(f"{op}: weight must have shape [filters, {x.shape[1]} / groups, ...] with "
                         f"filters a multiple of groups={groups} for input of shape {list(x.shape)}, "
                         f"got {list(weight.shape)}")
    _bias(op, bias, filters)
    return ((x.shape[0], filters) + tuple(size), x.dtype)


def convolved_transposed(op, x, weight, bias, stride, padding, dilation, groups, size):
    _settings(op, x, stride, padding, dilation, groups, size)
    _same_ndim(op, "weight", x, weight)
    if x.shape[1] != weight.shape[0] or x.shape[1] % groups:
        raise ShapeError(f"{op}: weight must have shape [{x.shape[1]}, filters / groups, ...] and "
                         f"groups={groups} must divide the channels for input of shape "
                         f"{list(x.shape)}, got {list(weight.shape)}")
    _bias(op, bias, groups * weight.shape[1])
    return ((x.shape[0], groups * weight.shape[1]) + tuple(size), x.dtype)


def convolved_weight(op, x, grad, stride, padding, dilation, groups, size):
    _settings(op, x, stride, padding, dilation, groups, size)
    _same_ndim(op, "grad", x, grad)
    if x.shape[0] != grad.shape[0] or x.shape[1] % groups or grad.shape[1] % groups:
        raise ShapeError(f"{op}: input and grad must have one batch size and channels that are "
                         f"multiples of groups={groups}, got shapes {list(x.shape)} and "
                         f"{list(grad.shape)}")
    return ((grad.shape[1], x.shape[1] // groups) + tuple(size), x.dtype)


def _pool(op, x, kernel, stride, padding, size):
    """Settings of a window for each spatial dim; no kernel: the adaptive windows of ``size``."""
    n = len(spatial(op, x))
    numbers(op, "size", size, n, 0)
    if len(kernel):
        numbers(op, "kernel", kernel, n, 1)
        numbers(op, "stride", stride, n, 1)
        numbers(op, "padding", padding, n, 0)


def pooled_pair(op, x, kernel, stride, padding, dilation, size):
    _pool(op, x, kernel, stride, padding, size)
    if len(kernel):
        numbers(op, "dilation", dilation, len(size), 1)
    for n, o in zip(x.shape[2:], size):
        if n == 0 and o:
            raise ShapeError(f"{op}: input must not be empty, got shape {list(x.shape)}")
    shape = tuple(x.shape[:2]) + tuple(size)
    return [(shape, x.dtype), (shape, INT64)]


def fractional_windows(x, samples, kernel, size):
    op = "fractional_max_pool"
    n = len(spatial(op, x))
    numbers(op, "kernel_size", kernel, n, 1)
    numbers(op, "output_size", size, n, 1)
    for k, o, m in zip(kernel, size, x.shape[2:]):
        if k + o - 1 > m:
            raise ShapeError(f"{op}{n}d: pool size {k} too large for {o} windows, expected at most {m - o + 1} for an "
                             f"input of size {m}")
    if tuple(samples.shape) != (x.shape[0], x.shape[1], n):
        raise ShapeError(f"{op}{n}d: _random_samples must have shape {[x.shape[0], x.shape[1], n]}, got "
                         f"{list(samples.shape)}")
    shape = tuple(x.shape[:2]) + tuple(size)
    return [(shape, x.dtype), (shape, INT64)]


def pooled(op, x, kernel, stride, padding, size, *rest):
    _pool(op, x, kernel, stride, padding, size)
    return (tuple(x.shape[:2]) + tuple(size), x.dtype)


def padded(op, x, pad, *rest):
    if len(pad) % 2 or len(pad) > 2 * x.ndim:
        raise ShapeError(f"{op}: pad must have an even number of entries, at most 2 for each of "
                         f"{x.ndim} dims, got {list(pad)}")
    shape = list(x.shape)
    for k in range(len(pad) // 2):
        d = x.ndim - 1 - k
        shape[d] += pad[2 * k] + pad[2 * k + 1]
        if shape[d] < 0 or pad[2 * k] < -x.shape[d] or pad[2 * k + 1] < -x.shape[d]:
            raise ShapeError(f"{op}: pad {list(pad)} leaves nothing of dim {d} of shape "
                             f"{list(x.shape)}")
    return (tuple(shape), x.dtype)


def edge_padded(op, x, pad, mode):
    if mode not in ("reflect", "replicate", "circular"):
        raise ValueError(f"{op}: mode must be one of 'reflect', 'replicate', 'circular', got {mode!r}")
    for k in range(len(pad) // 2):
        n = x.shape[x.ndim - 1 - k] if k < x.ndim else 0
        most = {"reflect": n - 1, "circular": n, "replicate": pad[2 * k] + pad[2 * k + 1] if n else 0}[mode]
        if max(pad[2 * k:2 * k + 2]) > most:
            raise ShapeError(f"{op}: mode {mode!r} pads at most {most} at dim {x.ndim - 1 - k} of shape "
                             f"{list(x.shape)}, got ({pad[2 * k]}, {pad[2 * k + 1]})")
        if min(pad[2 * k:2 * k + 2]) < 0:
            raise ShapeError(f"{op}: pads must not be negative, got {list(pad)}")
    return padded(op, x, pad)


def edge_unpadded(op, g, pad, mode):
    return padded(op, g, tuple([-p for p in pad]))


def _windows(op, kernel, dilation, padding, stride, blocks):
    for name, values, least in (("kernel_size", kernel, 1), ("dilation", dilation, 1),
                                ("padding", padding, 0), ("stride", stride, 1), ("blocks", blocks, 0)):
        numbers(op, name, values, 2, least)


def unfolded(op, x, kernel, dilation, padding, stride, blocks):
    _windows(op, kernel, dilation, padding, stride, blocks)
    if x.ndim != 4:
        raise ShapeError(f"{op}: input must have 4 dimensions (N, C, H, W), got shape "
                         f"{list(x.shape)}")
    return ((x.shape[0], x.shape[1] * kernel[0] * kernel[1], blocks[0] * blocks[1]), x.dtype)


def folded(op, x, kernel, dilation, padding, stride, blocks, size):
    _windows(op, kernel, dilation, padding, stride, blocks)
    numbers(op, "output_size", size, 2, 0)
    taps = kernel[0] * kernel[1]
    if x.ndim != 3 or x.shape[1] % taps or x.shape[2] != blocks[0] * blocks[1]:
        raise ShapeError(f"{op}: input must have shape (N, C * {taps}, {blocks[0] * blocks[1]}) for "
                         f"output_size {list(size)}, got {list(x.shape)}")
    return ((x.shape[0], x.shape[1] // taps) + tuple(size), x.dtype)


def resampled(op, x, dim, size, *rest):
    if x.ndim == 0 or size < 1 or x.shape[dim] == 0:
        raise ShapeError(f"{op}: sizes must be positive, got {size} for dim {dim} of shape "
                         f"{list(x.shape)}")
    return (tuple([size if d == dim else n for d, n in enumerate(x.shape)]), x.dtype)


def sampled_at(op, x, grid, *rest):
    if x.ndim not in (4, 5) or grid.ndim != x.ndim:
        raise ShapeError(f"{op}: input and grid must both have 4 or 5 dimensions, got shapes {list(x.shape)} and "
                         f"{list(grid.shape)}")
    if grid.shape[0] != x.shape[0] or grid.shape[-1] != x.ndim - 2:
        raise ShapeError(f"{op}: grid must have shape ({x.shape[0]}, ..., {x.ndim - 2}) for input of shape "
                         f"{list(x.shape)}, got {list(grid.shape)}")
    if 0 in x.shape[2:]:
        raise ShapeError(f"{op}: the spatial sizes of input must be positive, got shape {list(x.shape)}")
    return (tuple(x.shape[:2]) + tuple(grid.shape[1:-1]), x.dtype)


# The rules that rows name; call/shape_window.pyx has them in C.
WINDOWS = {f.__name__: f for f in (convolved, convolved_transposed, convolved_weight, pooled, pooled_pair, padded,
                                   edge_padded, edge_unpadded, resampled, sampled_at)}
