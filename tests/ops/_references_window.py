"""The oracle of convolution, pooling and resampling: sums over taps and loops over windows in NumPy."""
import itertools

import numpy as np

# -- convolution --------------------------------------------------------------------------------


def _padded(x, padding, reach, stride, size):
    """x with zeros around its spatial dims, as far as any window reads."""
    pairs = [(0, 0), (0, 0)]
    for n, p, r, s, o in zip(x.shape[2:], padding, reach, stride, size):
        pairs.append((p, max(0, (o - 1) * s + r + 1 - n - p)))
    return np.pad(x, pairs)


def _taps(kernel, stride, dilation, size):
    """(tap, the places of a padded input that it meets)."""
    for tap in itertools.product(*map(range, kernel)):
        yield tap, (..., *[slice(k * d, k * d + (o - 1) * s + 1, s) if o else slice(0, 0)
                           for k, d, s, o in zip(tap, dilation, stride, size)])


def _group(a, groups, axis):
    return a.reshape(*a.shape[:axis], groups, a.shape[axis] // groups, *a.shape[axis + 1:])


def _reach(kernel, dilation):
    return [d * (k - 1) for k, d in zip(kernel, dilation)]


def _with_bias(y, bias):
    return y if bias is None else y + bias.reshape(-1, *[1] * (y.ndim - 2))


def convolve(x, weight, bias, stride, padding, dilation, groups, size):
    kernel = weight.shape[2:]
    x = _group(_padded(x, padding, _reach(kernel, dilation), stride, size), groups, 1)
    w = _group(weight, groups, 0)
    y = np.zeros((x.shape[0], groups, w.shape[1], *size), x.dtype)
    for tap, places in _taps(kernel, stride, dilation, size):
        y += np.einsum("ngc...,gfc->ngf...", x[places], w[(..., *tap)]).astype(x.dtype)
    return _with_bias(y.reshape(x.shape[0], weight.shape[0], *size), bias)


def convolve_transposed(y, weight, bias, stride, padding, dilation, groups, size):
    kernel, out = weight.shape[2:], y.shape[2:]
    w, y = _group(weight, groups, 0), _group(y, groups, 1)
    x = _padded(np.zeros((y.shape[0], groups * w.shape[2], *size), y.dtype), padding, _reach(kernel, dilation), stride,
                out)
    grouped = _group(x, groups, 1)
    for tap, places in _taps(kernel, stride, dilation, out):
        grouped[places] += np.einsum("ngf...,gfc->ngc...", y, w[(..., *tap)]).astype(y.dtype)
    return _with_bias(x[(..., *[slice(p, p + n) for p, n in zip(padding, size)])], bias)


def convolve_weight(x, y, stride, padding, dilation, groups, size):
    out = y.shape[2:]
    x = _group(_padded(x, padding, _reach(size, dilation), stride, out), groups, 1)
    y = _group(y, groups, 1)
    w = np.zeros((groups, y.shape[2], x.shape[2], *size), x.dtype)
    for tap, places in _taps(size, stride, dilation, out):
        a, b = x[places], y
        a, b = (v.reshape(*v.shape[:3], int(np.prod(out))) for v in (a, b))
        w[(..., *tap)] = np.einsum("ngcp,ngfp->gfc", a, b)
    return w.reshape(-1, *w.shape[2:])


def _several(value, n):
    return (value,) * n if isinstance(value, int) else tuple(value)


def conv(x, weight, bias, stride, padding, dilation, groups):
    n = weight.ndim - 2
    batched = x if x.ndim == n + 2 else x[None]
    stride, dilation = _several(stride, n), _several(dilation, n)
    reach = _reach(weight.shape[2:], dilation)
    if padding == "same":
        padding, size = [r // 2 for r in reach], batched.shape[2:]
    else:
        padding = (0,) * n if padding == "valid" else _several(padding, n)
        size = [(m + 2 * p - r - 1) // s + 1 for m, p, r, s in zip(batched.shape[2:], padding, reach, stride)]
    y = convolve(batched, weight, bias, stride, padding, dilation, groups, size)
    return y if x.ndim == n + 2 else y[0]


def conv_tbc(x, weight, bias, pad):
    return conv(x.transpose(1, 2, 0), weight.transpose(2, 1, 0), bias, 1, pad, 1, 1).transpose(2, 0, 1)


def conv_transposed(x, weight, bias, stride, padding, output_padding, groups, dilation):
    n = weight.ndim - 2
    batched = x if x.ndim == n + 2 else x[None]
    stride, padding, extra, dilation = (_several(v, n) for v in (stride, padding, output_padding, dilation))
    size = [(m - 1) * s - 2 * p + r + e + 1 for m, s, p, r, e in zip(
        batched.shape[2:], stride, padding, _reach(weight.shape[2:], dilation), extra)]
    y = convolve_transposed(batched, weight, bias, stride, padding, dilation, groups, size)
    return y if x.ndim == n + 2 else y[0]


# -- pooling ------------------------------------------------------------------------------------

def _window(o, n, kernel, stride, padding, dilation, size):
    """(positions inside, how many places it has up to the padding) of window o; no kernel: adaptive."""
    if kernel is None:
        places = range(o * n // size, -(-(o + 1) * n // size))
        return list(places), len(places)
    first = o * stride - padding
    places = [first + k * dilation for k in range(kernel)]
    return [p for p in places if 0 <= p < n], min(first + kernel, n + padding) - first


def _windows(shape, kernel, stride, padding, dilation, size):
    n = len(size)
    kernel, stride, padding = (v or (None,) * n for v in (kernel, stride, padding))
    dilation = dilation or (1,) * n
    for place in np.ndindex(*size):
        axes = [_window(*v) for v in zip(place, shape, kernel, stride, padding, dilation, size)]
        yield place, np.ix_(*[a for a, _ in axes]), int(np.prod([c for _, c in axes]))


def max_pool(x, kernel, stride, padding, dilation, size):
    shape = x.shape[2:]
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    values, indices = np.zeros((*x.shape[:2], *size), x.dtype), np.zeros((*x.shape[:2], *size), np.int64)
    for place, window, _ in _windows(shape, kernel, stride, padding, dilation, size):
        inside = x[(slice(None), slice(None), *window)].reshape(*x.shape[:2], -1)
        best = inside.argmax(-1)
        values[(..., *place)] = inside.max(-1)
        indices[(..., *place)] = numbers[window].reshape(-1)[best]
    return values, indices


def max_pool_backward(g, indices, size):
    flat = np.zeros((*g.shape[:2], int(np.prod(size))), g.dtype)
    n, c = np.indices(g.shape[:2]).reshape(2, *g.shape[:2], 1)
    np.add.at(flat, (n, c, indices.reshape(*g.shape[:2], -1)), g.reshape(*g.shape[:2], -1))
    return flat.reshape(*g.shape[:2], *size)


def fractional_windows(x, samples, kernel, size):
    """Window o of a dim begins at int((o + u) * step) - int(u * step), the last where the input ends."""
    n = x.ndim - 2
    values, indices = np.zeros((*x.shape[:2], *size), x.dtype), np.zeros((*x.shape[:2], *size), np.int64)
    numbers = np.arange(int(np.prod(x.shape[2:]))).reshape(x.shape[2:])
    for which in np.ndindex(*x.shape[:2]):
        starts = []
        for d, (m, k, o) in enumerate(zip(x.shape[2:], kernel, size)):
            u = float(samples[which][1 - d if n == 2 else d])
            step = (m - k) / (o - 1) if o > 1 else 0
            starts.append([int((i + u) * step) - int(u * step) for i in range(o - 1)] + [m - k])
        for place in np.ndindex(*size):
            window = tuple(slice(starts[d][i], starts[d][i] + kernel[d]) for d, i in enumerate(place))
            values[(*which, *place)] = x[which][window].max()
            indices[(*which, *place)] = numbers[window].reshape(-1)[x[which][window].argmax()]
    return values, indices


def _share(window, count, include_pad, divisor):
    return divisor or (count if include_pad else int(np.prod([len(a.reshape(-1)) for a in window])))


def mean_pool(x, kernel, stride, padding, size, include_pad, divisor):
    y = np.zeros((*x.shape[:2], *size), x.dtype)
    for place, window, count in _windows(x.shape[2:], kernel, stride, padding, None, size):
        total = x[(slice(None), slice(None), *window)].reshape(*x.shape[:2], -1).sum(-1)
        y[(..., *place)] = _quotient(total, _share(window, count, include_pad, divisor))
    return y


def mean_pool_transposed(y, kernel, stride, padding, size, include_pad, divisor):
    x = np.zeros((*y.shape[:2], *size), y.dtype)
    for place, window, count in _windows(size, kernel, stride, padding, None, y.shape[2:]):
        share = _quotient(y[(..., *place)], _share(window, count, include_pad, divisor))
        x[(slice(None), slice(None), *window)] += share.reshape(*y.shape[:2], *[1] * len(size))
    return x


def _quotient(x, n):
    return np.trunc(x / n).astype(x.dtype) if x.dtype.kind in "iu" else x / n


def _pool_sizes(shape, kernel_size, stride, padding, dilation, ceil_mode):
    n = len(shape)
    kernel = _several(kernel_size, n)
    stride = kernel if stride is None else _several(stride, n)
    padding, dilation = _several(padding, n), _several(dilation, n)
    size = []
    for m, k, s, p, d in zip(shape, kernel, stride, padding, dilation):
        room = m + 2 * p - d * (k - 1) - 1
        o = (-(-room // s) if ceil_mode else room // s) + 1
        size.append(o - 1 if ceil_mode and (o - 1) * s >= m + p else o)
    return kernel, stride, padding, dilation, tuple(size)


def _with_batch(x, dims, f):
    if x.ndim == dims + 2:
        return f(x)
    result = f(x[None])
    return tuple(r[0] for r in result) if isinstance(result, tuple) else result[0]


def max_pool_of(dims):
    def reference(x, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
        result = _with_batch(x, dims, lambda v: max_pool(v, *_pool_sizes(
            v.shape[2:], kernel_size, stride, padding, dilation, ceil_mode)))
        return result if return_indices else result[0]
    return reference


def avg_pool_of(dims):
    def reference(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override=None):
        def one(v):
            kernel, steps, pads, _, size = _pool_sizes(v.shape[2:], kernel_size, stride, padding, 1, ceil_mode)
            return mean_pool(v, kernel, steps, pads, size, count_include_pad, divisor_override)
        return _with_batch(x, dims, one)
    return reference


def _adaptive_size(shape, output_size):
    if isinstance(output_size, int):
        return (output_size,) * len(shape)
    return tuple(m if o is None else o for m, o in zip(shape, output_size))


def adaptive_of(dims, largest):
    def reference(x, output_size, return_indices=False):
        def one(v):
            size = _adaptive_size(v.shape[2:], output_size)
            if largest:
                return max_pool(v, None, None, None, None, size)
            return mean_pool(v, None, None, None, size, True, None)
        result = _with_batch(x, dims, one)
        return result[0] if largest and not return_indices else result
    return reference


def lp_pool_of(dims):
    def reference(x, norm_type, kernel_size, stride, ceil_mode):
        def one(v):
            kernel, steps, pads, _, size = _pool_sizes(v.shape[2:], kernel_size, stride, 0, 1, ceil_mode)
            total = mean_pool(v**norm_type, kernel, steps, pads, size, True, 1)
            scale = mean_pool(np.ones_like(v), kernel, steps, pads, size, True, None)
            return np.maximum(total, 0) ** (1 / norm_type) if scale.size else total
        return _with_batch(x, dims, one)
    return reference


def max_unpool_of(dims):
    def reference(x, indices, kernel_size, stride, padding, output_size):
        kernel = _several(kernel_size, dims)
        stride = kernel if stride is None else _several(stride, dims)
        lead = x.shape[:x.ndim - dims]
        size = output_size or [(m - 1) * s - 2 * p + k for m, s, p, k in zip(
            x.shape[x.ndim - dims:], stride, _several(padding, dims), kernel)]
        flat = np.zeros((*lead, int(np.prod(size))), x.dtype)
        np.put_along_axis(flat, indices.reshape(*lead, -1), x.reshape(*lead, -1), -1)
        return flat.reshape(*lead, *size)
    return reference


# -- padding and resampling -----------------------------------------------------------------------

def pad_constant(x, pad, value):
    return pad_of(x, pad, "constant", value)


def pad_of(x, pad, mode, value):
    name = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}.get(mode)
    for k in range(len(pad) // 2):
        axis = x.ndim - 1 - k
        before, after = pad[2 * k], pad[2 * k + 1]
        x = np.take(x, np.arange(max(-before, 0), x.shape[axis] - max(-after, 0)), axis)
        pairs = [(0, 0)] * x.ndim
        pairs[axis] = (max(before, 0), max(after, 0))
        x = np.pad(x, pairs, name) if name else np.pad(x, pairs, constant_values=value or 0)
    return x


def pad_edges(x, pad, mode):
    return pad_of(x, pad, mode, None)


def pad_edges_transposed(g, pad, mode):
    shape = list(g.shape)
    for k in range(len(pad) // 2):
        shape[-1 - k] -= pad[2 * k] + pad[2 * k + 1]
    out = np.zeros(int(np.prod(shape)), g.dtype)
    np.add.at(out, pad_of(np.arange(out.size).reshape(shape), pad, mode, None), g)
    return out.reshape(shape)


def unfold_windows(x, kernel, dilation, padding, stride, blocks):
    x = _padded(x, padding, _reach(kernel, dilation), stride, blocks)
    columns = [x[places] for _, places in _taps(kernel, stride, dilation, blocks)]
    return np.stack(columns, 2).reshape(x.shape[0], -1, int(np.prod(blocks)))


def fold_windows(y, kernel, dilation, padding, stride, blocks, size):
    n, taps = y.shape[0], int(np.prod(kernel))
    y = y.reshape(n, -1, taps, *blocks)
    x = _padded(np.zeros((n, y.shape[1], *size), y.dtype), padding, _reach(kernel, dilation), stride, blocks)
    for k, (_, places) in enumerate(_taps(kernel, stride, dilation, blocks)):
        x[places] += y[:, :, k]
    return x[(..., *[slice(p, p + m) for p, m in zip(padding, size)])]


def _sliding_blocks(size, kernel, dilation, padding, stride):
    return tuple((m + 2 * p - d * (k - 1) - 1) // s + 1 for m, k, d, p,
                 s in zip(size, kernel, dilation, padding, stride))


def im2col(x, kernel_size, dilation, padding, stride):
    settings = [_several(v, 2) for v in (kernel_size, dilation, padding, stride)]
    return _with_batch(x, 2, lambda v: unfold_windows(v, *settings, _sliding_blocks(v.shape[2:], *settings)))


def col2im(x, output_size, kernel_size, dilation, padding, stride):
    settings = [_several(v, 2) for v in (kernel_size, dilation, padding, stride)]
    size = _several(output_size, 2)
    return _with_batch(x, 1, lambda v: fold_windows(v, *settings, _sliding_blocks(size, *settings), size))


def pixel_shuffle(x, r):
    *lead, c, h, w = x.shape
    y = np.zeros((*lead, c // r**2, h * r, w * r), x.dtype)
    for i, j in np.ndindex(r, r):
        y[..., i::r, j::r] = x[..., i * r + j::r * r, :, :]
    return y


def pixel_unshuffle(x, r):
    *lead, c, h, w = x.shape
    y = np.zeros((*lead, c * r**2, h // r, w // r), x.dtype)
    for i, j in np.ndindex(r, r):
        y[..., i * r + j::r * r, :, :] = x[..., i::r, j::r]
    return y


def channel_shuffle(x, groups):
    order = np.arange(x.shape[1]).reshape(groups, -1).T.reshape(-1)
    return x[:, order]


def _matrix(n, size, mode, align, scale):
    """Each result as a sum of the numbers there are."""
    m = np.zeros((size, n))
    for o in range(size):
        step = 1 / scale if scale else n / size
        if mode.endswith("filter"):     # windows as wide as the step; Keys' kernel with a = -1/2
            step = ((n - 1) / (size - 1) if size > 1 else 0) if align else step
            centre, stretch = step * (o + 0.5), max(step, 1)
            half = (1 if mode == "linear-filter" else 2) * stretch
            for i in range(max(0, int(centre - half + 0.5)), min(n, int(centre + half + 0.5))):
                d = abs((i - centre + 0.5) / stretch)
                if mode == "linear-filter":
                    m[o, i] = max(0, 1 - d)
                else:
                    m[o, i] = 1.5 * d**3 - 2.5 * d**2 + 1 if d < 1 else max(2 - d, 0) * (0.5 * d**2 - 1.5 * d + 1)
            m[o] /= m[o].sum()
            continue
        if mode in ("nearest", "nearest-exact"):
            m[o, min(n - 1, int((o + (0.5 if mode != "nearest" else 0)) * step))] = 1
            continue
        at = o * (n - 1) / (size - 1) if align and size > 1 else 0.0 if align else (o + 0.5) * step - 0.5
        if mode == "linear":
            at = max(at, 0.0)
        first = int(np.floor(at))
        t = at - first
        weights = {0: 1 - t, 1: t}
        if mode == "cubic":             # Keys' kernel with a = -3/4
            def keys(d):
                d = abs(d)
                return 1.25 * d**3 - 2.25 * d**2 + 1 if d <= 1 else -0.75 * (d**3 - 5 * d**2 + 8 * d - 4)
            weights = {k: keys(t - k) for k in range(-1, 3)}
        for k, weight in weights.items():
            m[o, min(n - 1, max(0, first + k))] += weight
    return m


def _bytes(x, dim, weights):
    """Sums of bytes by weights that are integers of 16 bits."""
    places = 0
    while places < 22 and int(0.5 + weights.max() * 2**(places + 1)) < 2**15:
        places += 1
    weights = np.trunc(weights * 2.0**places + np.where(weights < 0, -0.5, 0.5)).astype(np.int64)
    y = (np.tensordot(x.astype(np.int64), weights, (dim, 1)) + 2**(places - 1)) >> places
    return np.moveaxis(y.clip(0, 255), -1, dim).astype(np.uint8)


def resample(x, dim, size, mode, align_corners, scale):
    y = np.moveaxis(np.tensordot(x, _matrix(x.shape[dim], size, mode, align_corners, scale), (dim, 1)), -1, dim)
    return y.astype(x.dtype)


def resample_transposed(x, dim, size, mode, align_corners, scale):
    y = np.moveaxis(np.tensordot(x, _matrix(size, x.shape[dim], mode, align_corners, scale), (dim, 0)), -1, dim)
    return y.astype(x.dtype)


def filtered(x, dim, size, mode, align_corners, scale):
    mode = mode.removesuffix("-taps") if mode.endswith("-taps") else f"{mode}-filter"
    if x.dtype == np.uint8:
        return _bytes(x, dim, _matrix(x.shape[dim], size, mode, align_corners, scale))
    return resample(x, dim, size, mode, align_corners, scale)


def filtered_transposed(x, dim, size, mode, align_corners, scale):
    mode = mode.removesuffix("-taps") if mode.endswith("-taps") else f"{mode}-filter"
    return resample_transposed(x, dim, size, mode, align_corners, scale)


def interpolate(x, size, scale_factor, mode, align_corners):
    n = x.ndim - 2
    if mode == "area":
        return adaptive_of(n, False)(x,
                                     size or tuple(int(m * f) for m, f in zip(x.shape[2:], _factors(scale_factor, n))))
    kind = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    factors = _factors(scale_factor, n)
    sizes = _several(size, n) if size is not None else tuple(int(m * f) for m, f in zip(x.shape[2:], factors))
    for k in range(n):
        x = resample(x, k + 2, sizes[k], kind, bool(align_corners), factors[k])
    return x


def _factors(scale_factor, n):
    return (scale_factor,) * n if isinstance(scale_factor, (int, float)) else scale_factor or (0,) * n


def _by_dims(make, *args):
    """Functions for 1 to 3 dims; which one is told by the caller's name in the row."""
    return {n: make(n, *args) for n in (1, 2, 3)}


NAMES = {
    "_convolve": convolve, "_convolve_transposed": convolve_transposed, "_convolve_weight": convolve_weight,
    "_conv": conv, "_conv_tbc": conv_tbc, "_conv_transposed": conv_transposed,
    "_max_pool": max_pool, "_max_pool_backward": max_pool_backward, "_fractional_windows": fractional_windows, "_mean_pool": mean_pool,
    "_mean_pool_transposed": mean_pool_transposed, "_max_pool_of": _by_dims(max_pool_of),
    "_avg_pool_of": _by_dims(avg_pool_of), "_adaptive_avg": _by_dims(adaptive_of, False),
    "_adaptive_max": _by_dims(adaptive_of, True), "_lp_pool_of": _by_dims(lp_pool_of),
    "_max_unpool": _by_dims(max_unpool_of), "_pad_constant": pad_constant,
    "_pad_edges": pad_edges, "_pad_edges_transposed": pad_edges_transposed, "_pad": pad_of,
    "_unfold_windows": unfold_windows, "_fold_windows": fold_windows, "_im2col": im2col, "_col2im": col2im,
    "_pixel_shuffle": pixel_shuffle, "_pixel_unshuffle": pixel_unshuffle, "_channel_shuffle": channel_shuffle,
    "_resample": resample, "_resample_transposed": resample_transposed, "_filtered": filtered,
    "_filtered_transposed": filtered_transposed, "_interpolate": interpolate,
}
