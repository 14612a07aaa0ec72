"""References of the composite rows in NumPy and SciPy, by family. Imported into those of _references.py."""
import itertools

import numpy as np
from scipy import special

# -- shaping -----------------------------------------------------------------------------------


def _nonzero_static(x, size, fill_value):
    found = np.argwhere(x)[:size] if np.ndim(x) else np.empty((min(size, int(x != 0)), 0), "int64")
    return np.concatenate([found, np.full((size - len(found), np.ndim(x)), fill_value)]).astype("int64")


def _repeat_interleave(x, repeats, dim):
    return np.repeat(x, repeats, axis=dim)


def _at_least(function, tensors):
    return function(*tensors)


def _block_diag(tensors):
    import scipy.linalg
    return scipy.linalg.block_diag(*tensors)


def _meshgrid(tensors, indexing):
    return tuple(np.meshgrid(*[t.reshape(-1) for t in tensors], indexing=indexing or "ij"))


def _cartesian_prod(tensors):
    return tensors[0] if len(tensors) == 1 else np.array(list(itertools.product(*tensors)))


def _combinations(x, r, with_replacement):
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.array(list(choose(x, r)))


def _array_split(x, where, dim):
    return tuple(np.array_split(x, where, axis=dim))


def _hsplit(x, where):
    return tuple(np.hsplit(x, where))


def _vsplit(x, where):
    return tuple(np.vsplit(x, where))


def _dsplit(x, where):
    return tuple(np.dsplit(x, where))


def _unfold(x, dimension, size, step):
    windows = np.lib.stride_tricks.sliding_window_view(x, size, dimension)
    return np.take(windows, np.arange(0, windows.shape[dimension], step), axis=dimension)


def _diag_embed(x, offset, dim1, dim2):
    n = x.shape[-1] + abs(offset)
    result = np.zeros((*x.shape[:-1], n, n), x.dtype)
    for place in np.ndindex(*x.shape[:-1]):
        result[place] = np.diag(x[place], offset)
    ndim = result.ndim
    return np.moveaxis(result, (-2, -1), (dim1 % ndim, dim2 % ndim))


def _one_hot(x, num_classes):
    return np.eye(x.max() + 1 if num_classes < 0 else num_classes, dtype=int)[x]


def _select_scatter(x, src, dim, index):
    result = x.copy()
    np.moveaxis(result, dim, 0)[index] = src
    return result


def _slice_scatter(x, src, dim, start, end, step):
    result = x.copy()
    np.moveaxis(result, dim, 0)[start:end:step] = np.moveaxis(src, dim, 0)
    return result


def _diagonal_scatter(x, src, offset, dim1, dim2):
    result = x.copy()
    for k, value in enumerate(src):
        result[k - min(offset, 0), k + max(offset, 0)] = value
    return result


# -- selection ---------------------------------------------------------------------------------

def _meeting(x, dim, index, src):
    """(place in x, element of src) for each element of index, in order."""
    for place in np.ndindex(*index.shape):
        target = list(place)
        target[dim] = index[place]
        yield tuple(target), src[place]


def _scatter_with(function, x, dim, index, src):
    result = x.copy()
    for place, value in _meeting(x, dim, index, src):
        result[place] = function(result[place], value)
    return result


def _scatter_reduce(x, dim, index, src, reduce, include_self):
    groups = {}
    for place, value in _meeting(x, dim, index, src):
        groups.setdefault(place, [x[place]] if include_self else []).append(value)
    result = x.copy()
    combine = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}[reduce]
    for place, values in groups.items():
        result[place] = combine(np.array(values))
    return result


def _spread(x, dim, index, source):
    shape = [1] * x.ndim
    shape[dim] = -1
    return np.broadcast_to(index.reshape(shape), source.shape)


def _index_reduce(x, dim, index, source, reduce, include_self):
    return _scatter_reduce(x, dim, _spread(x, dim, index, source), source, reduce, include_self)


def _index_copy(x, dim, index, source):
    if x.ndim == 0:
        return source
    result = x.copy()
    np.moveaxis(result, dim, 0)[index] = np.moveaxis(source, dim, 0)
    return result


def _index_fill(x, dim, index, value):
    result = x.copy()
    np.moveaxis(result, dim, 0)[index] = value
    return result


def _put(x, index, source, accumulate):
    flat = x.reshape(-1).copy()
    if accumulate:
        np.add.at(flat, index.reshape(-1), source.reshape(-1))
    else:
        flat[index.reshape(-1)] = source.reshape(-1)
    return flat.reshape(x.shape)


def _window(x, size, stride, offset):
    """A window of the elements of a contiguous array."""
    return np.lib.stride_tricks.as_strided(x.reshape(-1)[offset:], size, [s * x.itemsize for s in stride])


def _overwritten(x, src, stride, offset):
    result = x.copy(order="C")
    _window(result, src.shape, stride, offset)[...] = src
    return result


def _picked(x, size, stride, offset):
    return _window(np.ascontiguousarray(x), size, stride, offset).copy()


def _triangle_places(rows, columns, offset, lower):
    return np.array((np.tril_indices if lower else np.triu_indices)(rows, offset, columns))


def _masked_collect(x, mask, shape):
    found = np.zeros(int(np.prod(shape)), x.dtype)
    held = x[mask][:found.size]
    found[:held.size] = held
    return found.reshape(shape)


def _masked_scatter(x, mask, source):
    result = x.copy()
    mask = np.broadcast_to(mask, x.shape)
    result[mask] = source.reshape(-1)[:mask.sum()]
    return result


def _places_among(sorted_sequence, x, right):
    side = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        return np.searchsorted(sorted_sequence, x, side)
    result = np.empty(x.shape, np.int64)
    for place in np.ndindex(*x.shape[:-1]):
        result[place] = np.searchsorted(sorted_sequence[place], x[place], side)
    return result


def _random_places(weights, shares, single):
    """The first running sum, as a share of all, that is not below; the last is 1."""
    dtype = np.float32 if single else np.float64
    weights, shares = np.atleast_2d(weights, shares)
    rows = [np.cumsum(w, dtype=dtype) / np.sum(w, dtype=dtype) for w in weights.astype(dtype)]
    return np.stack([np.searchsorted(r[:-1].astype(np.float64), u) for r, u in zip(rows, shares)])


def _renorm(x, p, dim, maxnorm):
    axes = tuple(d for d in range(x.ndim) if d != dim % x.ndim)
    norms = np.sum(np.abs(x)**p, axis=axes, keepdims=True)**(1 / p)
    return x * np.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1)


def _embedding_bag(x, weight, mode):
    return {"sum": np.sum, "mean": np.mean, "max": np.max}[mode](weight[x], axis=1)


# -- statistics --------------------------------------------------------------------------------

def _std_mean(x, dim, correction):
    return np.std(x, axis=dim, ddof=1), np.mean(x, axis=dim)


def _var_mean(x, dim, correction):
    return np.var(x, axis=dim, ddof=1), np.mean(x, axis=dim)


def _aminmax(x, dim, keepdim):
    return np.min(x, axis=dim, keepdims=keepdim), np.max(x, axis=dim, keepdims=keepdim)


def _kept(values, order, place, dim, keepdim):
    found = [np.take(a, [place], axis=dim) for a in (values, order)]
    return tuple(found if keepdim else [np.squeeze(a, dim) for a in found])


def _kthvalue(x, k, dim, keepdim):
    if x.ndim == 0:
        return x, np.int64(0)
    order = np.argsort(x, axis=dim, kind="stable")
    return _kept(np.take_along_axis(x, order, dim), order, k - 1, dim, keepdim)


def _median(x, dim, keepdim):
    if dim is None:
        return np.sort(x, axis=None)[(x.size - 1) // 2]
    return _kthvalue(x, (x.shape[dim] - 1) // 2 + 1, dim, keepdim)


def _median_along(x, skip_nan, dim, keepdim):
    """Of cases without NaN, where both kinds are one; test_order.py has the others."""
    return _median(x, dim, keepdim)


def _nanmedian(x, dim, keepdim):
    return _median(x, dim, keepdim)


def _mode(x, dim, keepdim):
    lines = np.moveaxis(x, dim, -1)
    values, places = np.empty(lines.shape[:-1], x.dtype), np.empty(lines.shape[:-1], np.int64)
    for at in np.ndindex(*lines.shape[:-1]):
        found, counts = np.unique(lines[at], return_counts=True)
        values[at] = found[np.argmax(counts)]
        places[at] = np.flatnonzero(lines[at] == values[at])[-1]
    return tuple(np.expand_dims(a, dim) if keepdim else a for a in (values, places))


def _unique(x, return_inverse, return_counts, dim):
    found = np.unique(x, return_inverse=return_inverse, return_counts=return_counts, axis=dim)
    return found


def _unique_consecutive(x):
    flat = x.reshape(-1)
    return flat[np.concatenate([[True], flat[1:] != flat[:-1]])]


def _trapezoid(y, x, dx, dim):
    return np.trapezoid(y, x, 1.0 if dx is None else dx, axis=dim)


def _cumulative_trapezoid(y, x, dx, dim):
    from scipy.integrate import cumulative_trapezoid
    return cumulative_trapezoid(y, x, 1.0 if dx is None else dx, axis=dim)


def _frexp(x):
    mantissa, exponent = np.frexp(x)
    return mantissa, exponent.astype(np.int32)


def _heaviside(x, values):
    return np.where(x == 0, values, (x > 0).astype(x.dtype)).astype(x.dtype)


def _logaddexp(x, y):
    """From the one with the larger real part: NumPy has none of complex numbers."""
    if np.result_type(x, y).kind != "c":
        return np.logaddexp(x, y)
    x, y = np.broadcast_arrays(x, y)
    high, low = np.where(np.real(x) < np.real(y), y, x), np.where(np.real(x) < np.real(y), x, y)
    found = high + np.log(1 + np.exp(low - high))
    infinite = ~np.isfinite(np.real(low)) & (np.real(low) == np.real(high))
    found = np.where(infinite, np.where(np.real(low) < 0, low, np.log(np.exp(low) + np.exp(high))), found)
    return np.where(np.isnan(x) | np.isnan(y), np.nan + 1j * np.nan, found)


def _lerp(x, y, w):
    return x * (1 - w) + y * w


def _cummax(x, dim):
    return _running(np.maximum, np.greater_equal, x, dim)


def _cummin(x, dim):
    return _running(np.minimum, np.less_equal, x, dim)


def _running(function, beats, x, dim):
    if x.ndim == 0:
        return x, np.int64(0)
    lines = np.moveaxis(x, dim, -1)
    values, places = lines.copy(), np.zeros(lines.shape, np.int64)
    for k in range(1, lines.shape[-1]):
        better = beats(lines[..., k], values[..., k - 1])
        values[..., k] = np.where(better, lines[..., k], values[..., k - 1])
        places[..., k] = np.where(better, k, places[..., k - 1])
    return np.moveaxis(values, -1, dim), np.moveaxis(places, -1, dim)


# -- products ----------------------------------------------------------------------------------

def _matrix_norm(x, ord, dim, keepdim):
    return np.linalg.norm(x, ord, axis=dim, keepdims=keepdim)


def _linalg_norm(x, ord, dim, keepdim):
    if ord is None and dim is None:
        return np.linalg.norm(x.reshape(-1)).reshape([1] * x.ndim if keepdim else [])
    return np.linalg.norm(x, ord, axis=dim, keepdims=keepdim)


def _cosine_similarity(x1, x2, dim, eps):
    a, b = np.linalg.norm(x1, axis=dim), np.linalg.norm(x2, axis=dim if x2.ndim == x1.ndim else -1)
    return np.sum(x1 * x2, axis=dim) / (np.maximum(a, eps) * np.maximum(b, eps))


def _pair_distances_slope(g, x1, x2, p):
    """By differences from both sides."""
    result = np.empty_like(x1)
    for at in np.ndindex(*x1.shape):
        step = np.zeros_like(x1)
        step[at] = 1e-6
        up, down = (np.linalg.norm((x1 + s)[..., :, None, :] - x2[..., None, :, :], p, axis=-1) for s in (step, -step))
        result[at] = (g * (up - down)).sum() / 2e-6
    return result


def _row_distances_slope(g, x, p):
    result = np.empty_like(x)
    for at in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[at] = 1e-6
        result[at] = (g * (_pdist(x + step, p) - _pdist(x - step, p))).sum() / 2e-6
    return result


def _pdist(x, p):
    first, second = np.triu_indices(len(x), 1)
    return np.linalg.norm(x[first] - x[second], p, axis=-1)


# -- neural ------------------------------------------------------------------------------------

def _reduced(loss, reduction):
    return loss if reduction == "none" else np.mean(loss) if reduction == "mean" else np.sum(loss)


def _glu(x, dim):
    a, b = np.split(x, 2, axis=dim)
    return a / (1 + np.exp(-b))


def _prelu(x, weight):
    shape = [1] * x.ndim
    if weight.size > 1:
        shape[1] = -1
    return np.where(x > 0, x, x * weight.reshape(shape))


def _smooth_l1(x, y, reduction, beta):
    gap = np.abs(x - y)
    return _reduced(np.where(gap < beta, 0.5 * gap**2 / beta, gap - 0.5 * beta), reduction)


def _huber(x, y, reduction, delta):
    return _reduced(special.huber(delta, x - y), reduction)


def _bce(x, y, reduction):
    return _reduced(-(special.xlogy(y, x) + special.xlog1py(1 - y, -x)), reduction)


def _bce_logits(x, y, reduction):
    return _bce(special.expit(x), y, reduction)


def _kl_div(x, y, reduction, log_target):
    loss = np.exp(y) * (y - x) if log_target else special.xlogy(y, y) - y * x
    return np.sum(loss) / x.shape[0] if reduction == "batchmean" else _reduced(loss, reduction)


def _poisson_nll(x, y, log_input, full, eps, reduction):
    loss = np.exp(x) - y * x if log_input else x - y * np.log(x + eps)
    if full:
        loss = loss + np.where(y > 1, y * np.log(y) - y + 0.5 * np.log(2 * np.pi * y), 0)
    return _reduced(loss, reduction)


def _gaussian_nll(x, y, var, full, eps, reduction):
    var = np.maximum(var, eps)
    loss = 0.5 * (np.log(var) + (x - y)**2 / var) + (0.5 * np.log(2 * np.pi) if full else 0)
    return _reduced(loss, reduction)


def _cosine_embedding(x, y, target, margin, reduction):
    cosine = np.sum(x * y, -1) / (np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1))
    return _reduced(np.where(target == 1, 1 - cosine, np.maximum(cosine - margin, 0)), reduction)


def _triplet(x, y, z, margin, p, eps, swap, reduction):
    def distance(a, b):
        return np.sum(np.abs(a - b + eps)**p, -1)**(1 / p)

    far = distance(x, z)
    if swap:
        far = np.minimum(far, distance(y, z))
    return _reduced(np.maximum(margin + distance(x, y) - far, 0), reduction)


def _multi_margin(x, target, p, margin, reduction):
    rows, labels = np.atleast_2d(x), np.atleast_1d(target)
    loss = np.array([sum(max(0, margin - row[t] + row[i])**p for i in range(len(row)) if i != t) / len(row)
                     for row, t in zip(rows, labels)])
    return _reduced(loss if target.ndim else loss[0], reduction)


def _multi_margin_rows(x, target, weight, p, margin):
    loss = _multi_margin(x, target, p, margin, "none")
    return loss if weight is None else np.array([
        weight[t] * sum(max(0, margin - row[t] + row[i])**p for i in range(len(row)) if i != t) / len(row)
        for row, t in zip(x, target)])


def _multi_margin_slope(x, target, weight, p, margin):
    slope = np.zeros_like(x)
    for row, t, out in zip(x, target, slope):
        for i in range(len(row)):
            gap = margin - row[t] + row[i]
            if i != t and gap > 0:
                d = (1 if p == 1 else 2 * gap) * (1 if weight is None else weight[t]) / len(row)
                out[i] += d
                out[t] -= d
    return slope


def _multilabel_margin_rows(x, target):
    return _multilabel_margin(x, target, "none")


def _multilabel_margin_slope(x, target):
    slope = np.zeros_like(x)
    for row, labels, out in zip(x, target, slope):
        labels = list(itertools.takewhile(lambda t: t >= 0, labels))
        for t in labels:
            for i in range(len(row)):
                if i not in labels and 1 - (row[t] - row[i]) > 0:
                    out[i] += 1 / len(row)
                    out[t] -= 1 / len(row)
    return slope


def _multilabel_margin(x, target, reduction):
    losses = []
    for row, labels in zip(np.atleast_2d(x), np.atleast_2d(target)):
        labels = list(itertools.takewhile(lambda t: t >= 0, labels))
        others = [i for i in range(len(row)) if i not in labels]
        losses.append(sum(max(0, 1 - (row[t] - row[i])) for t in labels for i in others) / len(row))
    return _reduced(np.array(losses if x.ndim > 1 else losses[0]), reduction)


def _ctc(log_probs, targets, input_lengths, target_lengths, blank, reduction):
    """By going over all ways to say each target."""
    single = log_probs.ndim == 2
    if single:
        log_probs, targets = log_probs[:, None], targets[None]
    elif targets.ndim == 1:
        ends = np.cumsum(target_lengths)
        targets = [targets[e - n:e] for e, n in zip(ends, target_lengths)]
    losses = []
    for b, (steps, n) in enumerate(zip(input_lengths, target_lengths)):
        total = 0.0
        for path in itertools.product(range(log_probs.shape[2]), repeat=steps):
            said = [k for i, k in enumerate(path) if (i == 0 or path[i - 1] != k) and k != blank]
            if said == list(targets[b][:n]):
                total += np.exp(sum(log_probs[t, b, k] for t, k in enumerate(path)))
        losses.append(-np.log(total))
    losses = np.array(losses)
    if reduction == "mean":
        return np.mean(losses / np.maximum(target_lengths, 1))
    return np.sum(losses) if reduction == "sum" else losses[0] if single else losses


def _as_strided_scatter(x, src, size, stride, storage_offset):
    result = x.copy().reshape(-1)
    for place in np.ndindex(*size):
        result[(storage_offset or 0) + sum(p * s for p, s in zip(place, stride))] = src[place]
    return result.reshape(x.shape)


def _sum_to_size(x, size):
    lead = x.ndim - len(size)
    dims = tuple(d for d in range(x.ndim) if d < lead or size[d - lead] == 1)
    return np.sum(x, axis=dims).reshape(size)


def _fill_diagonal(x, fill_value, wrap):
    result = x.copy()
    np.fill_diagonal(result, fill_value, wrap)
    return result


def _index_put(x, indices, values, accumulate):
    result = x.copy()
    at = tuple(slice(None) if i is None else i for i in indices)
    if accumulate:
        np.add.at(result, at, values)
    else:
        result[at] = values
    return result


def _gradient(x, spacing, dim, edge_order):
    dims = tuple(range(x.ndim)) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    spacing = spacing if isinstance(spacing, list) else [spacing] * len(dims)
    return tuple(np.gradient(x, h, axis=d, edge_order=edge_order) for h, d in zip(spacing, dims))


def _histogram(x, bins, range, density):
    return tuple(np.histogram(x, bins, range, density))


def _histogramdd(x, bins, range, density):
    counts, edges = np.histogramdd(x, bins, None if range is None else np.reshape(range, (-1, 2)), density)
    return counts, *edges
