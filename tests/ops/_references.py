"""The oracle of the op tests: a row's ``reference`` text, evaluated with NumPy and SciPy.

Independent of ptcore: nothing here imports it. Tensors are ndarrays, called x, y, z, w in
signature order and by their own names as well; parameters keep their names. Floating-point
arrays arrive in double precision (what float16 or float32 values are is exact there), integers
in their own dtype, so that wrap-around is NumPy's.
"""
import itertools
import warnings

import _composite_references
import _references_attention
import _references_factor
import _references_fft
import _references_window
import numpy as np
from scipy import special


def evaluate(text, letters, names, values):
    """The reference's result: an ndarray, a tuple of them or a Python value."""
    scope = dict(NAMESPACE)
    tensors = []
    for letter, name, value in zip(letters, names, values):
        scope[name] = value
        if letter in "TOIJL" or (letter == "o" and _is_data(value) and name in _DATA):
            tensors.append(value)
    scope.update(zip("xyzw", tensors))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = eval(text, scope)      # the rows are ours
        if callable(result):
            result = result(*values)
    return result


# parameters of composite rows that hold tensors
_DATA = {"tensors", "index", "src"}


def _is_data(value):
    return isinstance(value, (np.ndarray, list, tuple))


def _axes(dim, ndim):
    if dim is None or (isinstance(dim, tuple) and not dim):
        return tuple(range(ndim))
    return dim


# -- windows -----------------------------------------------------------------------------------

def _expand(x, size):
    lead = len(size) - x.ndim
    return np.broadcast_to(x, [x.shape[i - lead] if n == -1 else n for i, n in enumerate(size)])


def _squeeze(x, dim):
    dims = range(x.ndim) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    return np.squeeze(x, tuple(d for d in dims if x.shape[d] == 1))


def _slice(x, dim, start, end, step):
    key = [slice(None)] * x.ndim
    key[dim] = slice(start, end, step)
    return x[tuple(key)]


def _narrow(x, dim, start, length):
    start = start % x.shape[dim] if start < 0 else start
    return _slice(x, dim, start, start + length, 1)


def _as_strided(x, size, stride, storage_offset):
    flat = np.ascontiguousarray(x).reshape(-1)
    return np.array([flat[storage_offset + sum(i * s for i, s in zip(place, stride))]
                     for place in np.ndindex(*size)], x.dtype).reshape(size)


def _flatten(x, start_dim, end_dim):
    if x.ndim == 0:
        return x.reshape(1)
    start, end = start_dim % x.ndim, end_dim % x.ndim
    middle = int(np.prod(x.shape[start:end + 1]))
    return x.reshape(*x.shape[:start], middle, *x.shape[end + 1:])


def _unflatten(x, dim, sizes):
    dim %= x.ndim
    known = -int(np.prod(sizes)) if -1 in sizes else 1
    sizes = [x.shape[dim] // known if n == -1 else n for n in sizes]
    return x.reshape(*x.shape[:dim], *sizes, *x.shape[dim + 1:])


def _split(x, size_or_sections, dim):
    if isinstance(size_or_sections, int):
        points = range(size_or_sections, x.shape[dim], size_or_sections)
    else:
        points = np.cumsum(size_or_sections)[:-1]
    return tuple(np.split(x, points, axis=dim))


def _chunk(x, chunks, dim):
    return _split(x, -(-x.shape[dim] // chunks), dim)


def _unbind(x, dim):
    return tuple(np.moveaxis(x, dim, 0))


def _cat(tensors, dim):
    rest = [t for t in tensors if t.shape != (0,)] or tensors[:1]
    return np.concatenate(rest, axis=dim)


def _logcumsumexp(x, dim):
    """Term by term: the imaginary part goes on from the larger term's, as in PyTorch."""
    if not np.iscomplexobj(x):
        return np.logaddexp.accumulate(x, axis=dim) if x.ndim else x
    x = np.moveaxis(x, dim, 0).copy()
    for i in range(1, len(x)):
        first = x[i].real < x[i - 1].real
        low, high = np.where(first, x[i], x[i - 1]), np.where(first, x[i - 1], x[i])
        x[i] = high + np.log(1 + np.exp(low - high))
    return np.moveaxis(x, 0, dim)


def _logcumsumexp_slope(g, x, dim):
    """The weight of each term in each later result, times that result's gradient."""
    g, x = np.moveaxis(g, dim, 0), np.moveaxis(x, dim, 0)
    slope = np.zeros_like(x)
    for k in range(len(x)):
        terms = np.exp(x[:k + 1] - x[:k + 1].max(0))
        slope[:k + 1] += g[k] * terms / terms.sum(0)
    return np.moveaxis(slope, 0, dim)


def _products_slope(g, x, dim):
    """Each element's gradient: of the running products, or of the product of all where g has one element."""
    g, x = np.moveaxis(g, dim, 0), np.moveaxis(x, dim, 0).conj()
    slope = np.zeros_like(x)
    for i in range(len(x)):
        for k in range(i, len(x)) if len(g) == len(x) else (len(x) - 1,):
            slope[i] += g[min(k, len(g) - 1)] * np.delete(x[:k + 1], i, 0).prod(0)
    return np.moveaxis(slope, 0, dim)


# -- positions ---------------------------------------------------------------------------------

def _places(index, dim):
    """The open mesh of an index array's own coordinates, with index in the place of dim."""
    mesh = list(np.indices(index.shape, sparse=True))
    mesh[dim] = index
    return tuple(mesh)


def _gather(x, dim, index):
    return x[_places(index, dim)]


def _scatter(x, dim, index, src):
    result = x.copy()
    if isinstance(src, np.ndarray):
        src = src[tuple(slice(n) for n in index.shape)]
    result[_places(index, dim)] = src
    return result


def _scatter_add(x, dim, index, src):
    result = x.copy()
    np.add.at(result, _places(index, dim), src[tuple(slice(n) for n in index.shape)])
    return result


def _index_add(x, dim, index, source, alpha):
    result = x.copy()
    np.add.at(result, (slice(None),) * (dim % x.ndim) + (index,), alpha * source)
    return result


def _key(x, indices, dims):
    key = [slice(None)] * x.ndim
    for dim, index in zip(dims, indices):
        key[dim] = index
    return tuple(key)


def _index_get(x, indices, dims, shape):
    return x[_key(x, indices, dims)].reshape(shape)


def _index_accumulate(x, values, indices, dims, accumulate=True):
    result = x.copy()
    np.add.at(result, _key(x, indices, dims), values)
    return result


def _index_write(x, values, indices, dims, accumulate=False):
    result = x.copy()
    result[_key(x, indices, dims)] = values
    return result


def _nonzero(x):
    return np.argwhere(x)


# -- reductions --------------------------------------------------------------------------------

def _max_dim(x, dim, keepdim):
    return np.max(x, axis=dim, keepdims=keepdim), np.argmax(x, axis=dim, keepdims=keepdim)


def _min_dim(x, dim, keepdim):
    return np.min(x, axis=dim, keepdims=keepdim), np.argmin(x, axis=dim, keepdims=keepdim)


def _vector_norm(x, ord, dim, keepdim):
    axes = _axes(dim, x.ndim)
    size = np.abs(x)
    if ord == 0:
        return np.sum(size != 0, axis=axes, keepdims=keepdim).astype(float)
    if ord == np.inf:
        return np.max(size, axis=axes, keepdims=keepdim)
    if ord == -np.inf:
        return np.min(size, axis=axes, keepdims=keepdim)
    return np.sum(size**ord, axis=axes, keepdims=keepdim) ** (1 / ord)


def _norm(x, p, dim, keepdim=False):
    order = {"fro": 2.0, None: 2.0, "inf": np.inf, "-inf": -np.inf}.get(p, p)
    return _vector_norm(x, order, dim, keepdim)


def _sort(x, dim, descending):
    """Stable in both directions; NaN is the greatest."""
    if x.ndim == 0:
        return x, np.int64(0)
    if descending:                      # of the reversed line, positions counted from its end
        order = x.shape[dim] - 1 - np.argsort(np.flip(x, dim), axis=dim, kind="stable")
        order = np.flip(order, dim)
    else:
        order = np.argsort(x, axis=dim, kind="stable")
    return np.take_along_axis(x, order, dim), order


def _topk(x, k, dim, largest):
    if x.ndim == 0:
        return x, np.int64(0)
    return tuple(np.take(r, np.arange(k), axis=dim) for r in _sort(x, dim, largest))


def _einsum(equation, operands):
    return np.einsum(equation, *operands)


def _svd(x, full_matrices, compute_uv):
    return np.linalg.svd(x, full_matrices, compute_uv)


# -- normalisation and losses --------------------------------------------------------------------

def _gelu_tanh_grad(x):
    c, x = np.sqrt(2 / np.pi), np.clip(x, -100, 100)        # beyond, both slopes are constant
    u = np.tanh(c * (x + 0.044715 * x**3))
    return 0.5 * (1 + u) + 0.5 * x * (1 - u**2) * c * (1 + 3 * 0.044715 * x**2)


def _softmax_backward(grad, output, dim):
    return output * (grad - np.sum(grad * output, axis=dim, keepdims=True))


def _log_softmax_backward(grad, output, dim):
    return grad - np.exp(output) * np.sum(grad, axis=dim, keepdims=True)


def _layer_norm(x, weight, bias, normalized_ndim, eps):
    axes = tuple(range(x.ndim - normalized_ndim, x.ndim))
    mean = x.mean(axis=axes, keepdims=True)
    rstd = 1 / np.sqrt(x.var(axis=axes, keepdims=True) + eps)
    y = (x - mean) * rstd
    if weight is not None:
        y = y * weight
    if bias is not None:
        y = y + bias
    return y, mean, rstd


def _layer_norm_backward(g, x, mean, rstd, weight):
    n = next((i for i in range(x.ndim) if mean.shape[i] == 1), x.ndim)
    inner, outer = tuple(range(n, x.ndim)), tuple(range(n))
    x_hat = (x - mean) * rstd
    gy = g if weight is None else g * weight
    gx = rstd * (gy - gy.mean(axis=inner, keepdims=True)
                 - x_hat * (gy * x_hat).mean(axis=inner, keepdims=True))
    return gx, (g * x_hat).sum(axis=outer), g.sum(axis=outer)


def _rms_norm_stats(x, weight, normalized_ndim, eps):
    rstd = 1 / np.sqrt((x * x).mean(axis=tuple(range(x.ndim - normalized_ndim, x.ndim)), keepdims=True) + eps)
    return x * rstd if weight is None else x * rstd * weight, rstd


def _rms_norm_backward(g, x, rstd, weight):
    n = next((i for i in range(x.ndim) if rstd.shape[i] == 1), x.ndim)
    x_hat = x * rstd
    gy = g if weight is None else g * weight
    gx = rstd * (gy - x_hat * (gy * x_hat).mean(axis=tuple(range(n, x.ndim)), keepdims=True))
    return gx, (g * x_hat).sum(axis=tuple(range(n)))


def _over_channels(t, x):
    return np.reshape(t, (1, -1) + (1,) * (x.ndim - 2))


def _scaled(y, weight, bias):
    y = y if weight is None else y * _over_channels(weight, y)
    return y if bias is None else y + _over_channels(bias, y)


def _batch_norm(x, weight, bias, eps):
    axes = (0, *range(2, x.ndim))
    mean, var = x.mean(axis=axes), x.var(axis=axes)
    y = (x - _over_channels(mean, x)) / np.sqrt(_over_channels(var, x) + eps)
    return _scaled(y, weight, bias), mean, var


def _batch_norm_given(x, mean, var, weight, bias, eps):
    return _scaled((x - _over_channels(mean, x)) / np.sqrt(_over_channels(var, x) + eps), weight, bias)


def _batch_norm_of(x, running_mean, running_var, weight, bias, training, eps):
    if training:
        return _batch_norm(x, weight, bias, eps)[0]
    return _batch_norm_given(x, running_mean, running_var, weight, bias, eps)


def _instance_norm(x, running_mean, running_var, weight, bias, use_input_stats, eps):
    if use_input_stats:
        return np.stack([_batch_norm(sample[None], weight, bias, eps)[0][0] for sample in x])
    return _batch_norm_given(x, running_mean, running_var, weight, bias, eps)


def _rms_norm(x, normalized_shape, weight, eps):
    axes = tuple(range(-len(normalized_shape), 0))
    mean = np.sum(np.abs(x)**2 if np.isrealobj(x) else x * x, axis=axes, keepdims=True) / np.prod(normalized_shape)
    return x / np.sqrt(mean + eps) * (1 if weight is None else weight)


def _local_response_norm(x, size, alpha, beta, k):
    y = np.empty_like(x)
    for c in range(x.shape[1]):
        window = x[:, max(0, c - size // 2):c + (size - 1) // 2 + 1]
        y[:, c] = x[:, c] / (k + alpha / size * (window**2).sum(axis=1))**beta
    return y


def _native_batch_norm(x, weight, bias, eps):
    y, mean, var = _batch_norm(x, weight, bias, eps)
    return y, mean, 1 / np.sqrt(var + eps)


def _batch_norm_backward(g, x, mean, var, weight, eps):
    """From the derivative of each step, not from the closed form."""
    axes = (0, *range(2, x.ndim))
    count = x.size // x.shape[1]
    centred, std = x - _over_channels(mean, x), np.sqrt(_over_channels(var, x) + eps)
    gy = g if weight is None else g * _over_channels(weight, x)
    g_var = (gy * centred).sum(axis=axes, keepdims=True) * -0.5 / std**3
    g_mean = (-gy / std).sum(axis=axes, keepdims=True) - 2 * g_var * centred.mean(axis=axes, keepdims=True)
    gx = gy / std + g_var * 2 * centred / count + g_mean / count
    return gx, (g * centred / std).sum(axis=axes), g.sum(axis=axes)


def _group_norm(x, weight, bias, num_groups, eps):
    grouped = x.reshape(x.shape[0], num_groups, -1)
    mean, rstd = grouped.mean(axis=2), 1 / np.sqrt(grouped.var(axis=2) + eps)
    y = ((grouped - mean[..., None]) * rstd[..., None]).reshape(x.shape)
    return _scaled(y, weight, bias), mean, rstd


def _group_norm_backward(g, x, mean, rstd, weight, num_groups):
    grouped = x.reshape(x.shape[0], num_groups, -1)
    gy = (g if weight is None else g * _over_channels(weight, x)).reshape(grouped.shape)
    centred, rstd, count = grouped - mean[..., None], rstd[..., None], grouped.shape[2]
    g_var = (gy * centred).sum(axis=2, keepdims=True) * -0.5 * rstd**3
    g_mean = (-gy * rstd).sum(axis=2, keepdims=True)
    gx = gy * rstd + g_var * 2 * centred / count + g_mean / count
    axes = (0, *range(2, x.ndim))
    return gx.reshape(x.shape), (g * (centred * rstd).reshape(x.shape)).sum(axis=axes), g.sum(axis=axes)


def _linear_cross_entropy(x, linear_weight, target, linear_bias, reduction):
    logits = x @ linear_weight.T + (0 if linear_bias is None else linear_bias)
    return _cross_entropy(logits, target, None, reduction, -100, 0.0)[0]


def _segment_reduce(data, reduce, lengths, axis):
    if axis:
        return np.stack([_segment_reduce(d, reduce, n, axis - 1) for d, n in zip(data, lengths)])
    ends = np.cumsum(lengths)
    return np.stack([getattr(np, reduce)(data[end - n:end], axis=0) for n, end in zip(lengths, ends)])


def _norm_except_dim(v, pow, dim):
    axes = tuple(d for d in range(v.ndim) if d != dim)
    return (np.abs(v)**pow).sum(axis=axes, keepdims=dim != -1)**(1 / pow)


def _type_as(x, y):
    return x.astype(y.dtype)


def _masked_select(x, mask):
    x, mask = np.broadcast_arrays(x, mask)
    return x[mask]


def _gates(x, h, w_ih, w_hh, b_ih, b_hh):
    return (x @ w_ih.T + (0 if b_ih is None else b_ih), h @ w_hh.T + (0 if b_hh is None else b_hh))


def _lstm_cell(x, hx, w_ih, w_hh, b_ih, b_hh):
    h, c = hx
    i, f, g, o = np.split(sum(_gates(x, h, w_ih, w_hh, b_ih, b_hh)), 4, axis=1)
    c = special.expit(f) * c + special.expit(i) * np.tanh(g)
    return special.expit(o) * np.tanh(c), c


def _gru_cell(x, hx, w_ih, w_hh, b_ih, b_hh):
    a, b = _gates(x, hx, w_ih, w_hh, b_ih, b_hh)
    (ar, az, an), (br, bz, bn) = np.split(a, 3, axis=1), np.split(b, 3, axis=1)
    r, z = special.expit(ar + br), special.expit(az + bz)
    return (1 - z) * np.tanh(an + r * bn) + z * hx


def _rnn_tanh_cell(x, hx, w_ih, w_hh, b_ih, b_hh):
    return np.tanh(sum(_gates(x, hx, w_ih, w_hh, b_ih, b_hh)))


def _rnn_relu_cell(x, hx, w_ih, w_hh, b_ih, b_hh):
    return np.maximum(sum(_gates(x, hx, w_ih, w_hh, b_ih, b_hh)), 0)


def _class_axis(x):
    return 0 if x.ndim == 1 else 1


def _picked(x, target, weight, ignore_index):
    """(x at the targets, the weight of each, which of them count)."""
    axis = _class_axis(x)
    valid = target != ignore_index
    safe = np.where(valid, target, 0)
    at = np.squeeze(np.take_along_axis(x, np.expand_dims(safe, axis), axis), axis)
    w = np.ones(target.shape) if weight is None else weight[safe]
    return at, np.where(valid, w, 0.0), valid


def _nll_loss(x, target, weight, reduction, ignore_index):
    at, w, _ = _picked(x, target, weight, ignore_index)
    loss, total = -at * w, w.sum()
    if reduction == "none":
        return loss, 0.0                # the total is only worked out where it is needed
    return (loss.sum() / total if reduction == "mean" else loss.sum()), total


def _nll_loss_backward(grad, target, weight, total_weight, reduction, ignore_index, shape):
    x = np.zeros(shape)
    _, w, _ = _picked(x, target, weight, ignore_index)
    axis = _class_axis(x)
    scale = -w * grad / (total_weight if reduction == "mean" else 1)
    safe = np.where(target != ignore_index, target, 0)
    np.put_along_axis(x, np.expand_dims(safe, axis), np.expand_dims(scale, axis), axis)
    return x


def _state_paths(labels, length, steps, blank):
    """All ways through the states blank, label, blank, ... of a sequence, of that many steps."""
    label = [labels[s // 2] if s % 2 else blank for s in range(2 * length + 1)]
    for path in itertools.product(range(len(label)), repeat=steps):
        gaps = [(a, b) for a, b in itertools.pairwise(path)]
        if path[0] < 2 and all(b - a in (0, 1) or (b - a == 2 and label[b] not in (blank, label[a])) for a, b in gaps):
            yield path, [label[s] for s in path]


def _hash_tensor(x, axis, keepdims):
    bits = x.astype(np.float64 if x.dtype.kind == "f" else np.int64).view(np.uint64)
    return np.bitwise_xor.reduce(bits, axis=axis, keepdims=keepdims)


def _pieces(offsets):
    """(row, piece, first, behind the last) of all."""
    for at in np.ndindex(*offsets.shape[:-1], offsets.shape[-1] - 1):
        yield at, int(offsets[at]), int(offsets[(*at[:-1], at[-1] + 1)])


def _segments(data, offsets, axis, reduce, start, given):
    out = np.empty((*data.shape[:axis], offsets.shape[-1] - 1, *data.shape[axis + 1:]), data.dtype)
    for at, first, last in _pieces(offsets):
        x = data[(*at[:-1], slice(first, last))]
        if reduce in ("sum", "mean"):
            total = start + x.sum(axis=0)
            n = max(last - first, 1) if given else last - first
            out[at] = total if reduce == "sum" else total / n
        elif reduce == "prod":
            out[at] = start * x.prod(axis=0)
        else:
            out[at] = (x.max if reduce == "max" else x.min)(axis=0, initial=start)
    return out


def _segments_slope(g, data, out, offsets, axis, reduce, start, given):
    """By taking each element away: what is multiplied with it, or added to."""
    slope = np.zeros_like(data)
    for at, first, last in _pieces(offsets):
        for i in range(first, last):
            others = [j for j in range(first, last) if j != i]
            factor = {"sum": 1, "mean": 1 / (last - first),
                      "prod": start * data[(*at[:-1], others)].prod(axis=0)}[reduce]
            slope[(*at[:-1], i)] += g[at] * factor
    return slope


def _binned(x, edges, weight, bins, places):
    given, at = [], 0
    for m in bins:
        given.append(np.linspace(*edges[at:at + 2], m + 1) if places == "computed" else edges[at:at + m + 1])
        at += m + 1
    return np.histogramdd(x, given, weights=weight)[0]


def _ctc_loss_stats(log_probs, labels, input_lengths, target_lengths, blank):
    """By going over all ways."""
    steps, n, _ = log_probs.shape
    alpha, loss = np.full((n, steps, 2 * labels.shape[1] + 1), -np.inf), np.zeros(n)
    for i in range(n):
        for t in range(input_lengths[i]):
            for path, said in _state_paths(labels[i], target_lengths[i], t + 1, blank):
                weight = sum(log_probs[u, i, k] for u, k in enumerate(said))
                alpha[i, t, path[-1]] = np.logaddexp(alpha[i, t, path[-1]], weight)
        end = 2 * target_lengths[i]
        if input_lengths[i]:
            loss[i] = -np.logaddexp.reduce(alpha[i, input_lengths[i] - 1, max(end - 1, 0):end + 1])
        else:
            loss[i] = np.inf if end else 0
    return loss, alpha


def _ctc_loss_backward(g, log_probs, labels, input_lengths, target_lengths, loss, alpha, blank):
    """Each way has a share of the probability, and takes a class at each step."""
    slope = np.zeros(log_probs.shape)
    for i in range(log_probs.shape[1]):
        for path, said in _state_paths(labels[i], target_lengths[i], input_lengths[i], blank):
            if path[-1] >= 2 * target_lengths[i] - 1:
                share = np.exp(sum(log_probs[t, i, k] for t, k in enumerate(said)) + loss[i])
                for t, k in enumerate(said):
                    slope[t, i, k] -= g[i] * share
    return slope


def _cross_entropy(x, target, weight, reduction, ignore_index, label_smoothing):
    axis = _class_axis(x)
    lse = special.logsumexp(x, axis=axis)
    logp = x - np.expand_dims(lse, axis)
    at, w, valid = _picked(logp, target, weight, ignore_index)
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    every = np.ones(shape) if weight is None else weight.reshape(shape)
    smooth = np.where(valid, -(logp * every).sum(axis=axis), 0.0)
    loss = (1 - label_smoothing) * -at * w + label_smoothing / x.shape[axis] * smooth
    if reduction == "none":
        return loss, lse, 0.0
    total = w.sum()
    return (loss.sum() / total if reduction == "mean" else loss.sum()), lse, total


def _cross_entropy_backward(g, x, target, weight, lse, total_weight, reduction, ignore_index,
                            label_smoothing):
    axis, classes = _class_axis(x), x.shape[_class_axis(x)]
    _, w, valid = _picked(x, target, weight, ignore_index)
    p = np.exp(x - np.expand_dims(lse, axis))
    onehot = np.zeros(x.shape)
    safe = np.where(valid, target, 0)
    np.put_along_axis(onehot, np.expand_dims(safe, axis), 1.0, axis)
    shape = [1] * x.ndim
    shape[axis] = classes
    every = np.ones(shape) if weight is None else weight.reshape(shape)
    gx = (1 - label_smoothing) * np.expand_dims(w, axis) * (p - onehot)
    gx = gx + label_smoothing / classes * np.expand_dims(valid, axis) * (every.sum() * p - every)
    gx = gx * np.expand_dims(np.broadcast_to(g, target.shape), axis)
    return gx / total_weight if reduction == "mean" else gx


def _polynomial(evaluate, n, x, sign=1.0):
    """A polynomial at degrees that are numbers: 0 below degree 0, NaN of NaN and the infinities; `sign` is that of
    the leading coefficient of odd degrees."""
    known = np.isfinite(n)
    degree = np.where(known, np.clip(n, 0, 2.0**30), 0).astype(np.int64)
    found = np.where(np.isinf(x), (np.sign(x) * sign)**(degree % 2) * np.inf, evaluate(degree, x))
    return np.where(known, np.where(n < 0, 0, np.where(degree == 0, 1, found)), np.nan)


def _jacobi_ratio(n, alpha, beta, x):
    return _polynomial(lambda n, x: special.eval_jacobi(n, alpha, beta, x) / special.binom(n + alpha, n), n, x)


def _jacobi(alpha, beta):
    """Chebyshev polynomials of the four kinds by their values at 1."""
    end = {(-0.5, -0.5): lambda n: 1, (0.5, 0.5): lambda n: n + 1, (-0.5, 0.5): lambda n: 1,
           (0.5, -0.5): lambda n: 2 * n + 1}[alpha, beta]
    return lambda n, x: end(n) * special.eval_jacobi(n, alpha, beta, x) / special.binom(n + alpha, n)


def _shifted(evaluate):
    return lambda n, x: evaluate(n, 2 * x - 1)


NAMESPACE = {name: getattr(np, name) for name in dir(np) if not name.startswith("_")}
NAMESPACE.update({name: value for module in (
    globals(), vars(_composite_references), vars(_references_factor)) for name, value in module.items()
                  if name.startswith("_") and callable(value)})
NAMESPACE.update(_references_window.NAMES)
NAMESPACE.update(_references_attention.NAMES)
NAMESPACE.update(_references_fft.NAMES)
NAMESPACE["special"] = special
NAMESPACE["sign"] = lambda x: x if x.dtype == bool else np.sign(x)
