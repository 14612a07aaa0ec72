"""Fused ops written out in smaller ones.

Where a row's ``batch`` or ``jvp`` column says "decompose", a transformation runs the function of
the op's name here in place of the op, and sees the ops that it calls. Arguments come in
signature order; results are those of the op, in another rounding.
"""
from ptcore._ops._common import _wrap
from ptcore._ops._creation import arange, full, zeros
from ptcore._ops._record import has_values
from ptcore._ops.attention.bodies import attention_backward, attention_stats
from ptcore._ops.functions import (
    abs,
    cat,
    clamp_max,
    clamp_min,
    cummax,
    cumprod,
    cumsum,
    exp,
    expand,
    floor_divide,
    gather,
    isnan,
    logsumexp,
    masked_fill,
    mm,
    places_among,
    pow,
    reshape,
    rsqrt,
    scatter_add,
    scatter_src,
    sgn,
    slice,
    sort,
    squeeze,
    transpose,
    unsqueeze,
    vector_norm,
    where,
)
from ptcore._ops.functions import any as any_of
from ptcore._ops.functions import index_select as select_rows
from ptcore._ops.functions import mean as mean_of
from ptcore._ops.functions import sum as sum_of
from ptcore._ops.loss.bodies import _reduced
from ptcore._ops.product.bodies import matmul
from ptcore._ops.recurrent.decompositions import recurrent_layer, recurrent_layer_backward
from ptcore._ops.resample.grid_by_ops import grid_sampled
from ptcore._ops.table.shapes import BOOL, stat_dtype


def function(op):
    """The decomposition of an op; KeyError if it has none."""
    return _FUNCTIONS[op]


def t(input):
    return transpose(input, 0, 1) if input.ndim == 2 else input


# -- products ---------------------------------------------------------------------------------

def addmm(input, mat1, mat2, beta=1, alpha=1):
    product = mm(mat1, mat2)
    if alpha != 1:
        product = product * alpha
    if beta == 0:                       # input is not read
        return product
    return product + (input if beta == 1 else input * beta)


def linear(input, weight, bias=None):
    result = matmul(input, weight if weight.ndim == 1 else transpose(weight, 0, 1))
    return result if bias is None else result + bias


# -- norms and distances -----------------------------------------------------------------------

def norm_slope(g, input, out, ord, dim):
    """The gradient of ``out``, a norm of input over dims that g and out keep."""
    if ord == 0:
        return zeros(input.shape, dtype=input.dtype, device=input.device)
    if ord == 1:
        return g * sgn(input)
    if ord == 2:
        return input * masked_fill(g / out, out == 0, 0)
    if ord in (float("inf"), float("-inf")):
        hit = (abs(input) == out).to(g.dtype)
        return sgn(input) * hit * (g / sum_of(hit, dim, True))
    scale = masked_fill(g / pow(out, ord - 1), out == 0, 0)
    size = abs(input)
    if ord < 2:
        power = masked_fill(pow(masked_fill(size, size == 0, 1), ord - 1), size == 0, 0)
    else:
        power = pow(size, ord - 1)
    return sgn(input) * power * scale


def nansum(input, dim=None, keepdim=False, dtype=None):
    known = masked_fill(input, isnan(input), 0) if input.dtype.kind == "f" else input
    return sum_of(known, dim, keepdim, dtype=dtype)


def pair_distances(x1, x2, p):
    gap = unsqueeze(x1, -2) - unsqueeze(x2, -3)
    return vector_norm(gap, p, -1) if x1.shape[-1] else sum_of(gap, -1)


def pair_distances_slope(g, x1, x2, dist, p):
    gap = unsqueeze(x1, -2) - unsqueeze(x2, -3)
    return sum_of(norm_slope(unsqueeze(g, -1), gap, unsqueeze(dist, -1), p, (-1,)), -2)


def _pairs(input):
    """Two rows of positions, of all pairs of rows."""
    n = input.shape[0]
    rows = arange(n, device=input.device)
    return transpose((unsqueeze(rows, 1) < rows).nonzero(), 0, 1)


def row_distances(input, p):
    first, second = _pairs(input)
    return pair_distances(unsqueeze(select_rows(input, 0, first), -2), unsqueeze(select_rows(input, 0, second), -2),
                          p).reshape((-1,))


def row_distances_slope(g, input, dist, p):
    first, second = _pairs(input)
    gap = select_rows(input, 0, first) - select_rows(input, 0, second)
    slope = norm_slope(unsqueeze(g, -1), gap, unsqueeze(dist, -1), p, (-1,))
    none = zeros(input.shape, dtype=input.dtype, device=input.device)
    return (scatter_add(none, 0, expand(unsqueeze(first, 1), slope.shape), slope)
            - scatter_add(none, 0, expand(unsqueeze(second, 1), slope.shape), slope))


# -- positions --------------------------------------------------------------------------------

def _places(count, device, size, stride, offset):
    """The places of a window among so many elements, as a vector."""
    return reshape(arange(count, device=device).as_strided(size, stride, offset), (-1,))


def overwritten(input, src, stride, offset):
    places = _places(input.numel(), input.device, src.shape, stride, offset)
    return reshape(scatter_src(reshape(input, (-1,)), 0, places, reshape(src, (-1,))), input.shape)


def picked(input, size, stride, offset):
    places = _places(input.numel(), input.device, size, stride, offset)
    return reshape(gather(reshape(input, (-1,)), 0, places), size)


def _positions(input, index):
    """Positions of the flattened input as a vector, none of them negative."""
    return reshape(where(index < 0, index + input.numel(), index), (-1,))


def take(input, index):
    return reshape(gather(reshape(input, (-1,)), 0, _positions(input, index)), index.shape)


def put(input, index, source, accumulate=False):
    write = scatter_add if accumulate else scatter_src
    return reshape(write(reshape(input, (-1,)), 0, _positions(input, index), reshape(source, (-1,))), input.shape)


def masked_write(input, mask, source):
    flat = reshape(mask, (-1,))
    count = cumsum(flat, 0)
    if flat.numel() and has_values(mask) and int(count[-1]) > source.numel():
        raise RuntimeError(f"masked_scatter: source must have an element for each of the {int(count[-1])} places of "
                           f"mask, got {source.numel()}")
    if not source.numel():
        return input.clone()
    chosen = gather(reshape(source, (-1,)), 0, masked_fill(count - 1, ~flat, 0))
    return where(mask, reshape(chosen, input.shape), input)


def masked_collect(input, mask, shape):
    total = 1
    for n in shape:
        total *= n
    flat = reshape(mask, (-1,))
    # what is not held goes to a place behind the last one
    places = where(flat, cumsum(flat, 0) - 1, total)
    blank = zeros(total + 1, dtype=input.dtype, device=input.device)
    return reshape(scatter_src(blank, 0, places, reshape(input, (-1,)))[:total], shape)


def triangle_places(input, rows, columns, offset, lower, shape):
    gap = arange(columns, device=input.device) - unsqueeze(arange(rows, device=input.device), 1)
    found = (gap <= offset if lower else gap >= offset).nonzero()
    return transpose(found, 0, 1).to(input.dtype)


def cross_of(input, other, dim):
    # (1, 2, 0) and (2, 0, 1)
    return input.roll(-1, dim) * other.roll(-2, dim) - input.roll(-2, dim) * other.roll(-1, dim)


# -- order statistics ---------------------------------------------------------------------------

def _of_lines(input, dim, keepdim, place):
    """What ``place(sorted lines, dim, their length)`` stands at in each sorted line, and where it was."""
    x, dim = (input, dim % input.ndim) if input.ndim else (reshape(input, (1,)), 0)
    values, indices = sort(x, dim)
    at = place(values, dim, x.shape[dim])
    if isinstance(at, int):
        at = expand(zeros((), dtype=indices.dtype, device=x.device) + at,
                    [1 if d == dim else n for d, n in enumerate(x.shape)])
    values, indices = gather(values, dim, at), gather(indices, dim, at)
    if keepdim and input.ndim:
        return values, indices
    return squeeze(values, (dim,)), squeeze(indices, (dim,))


def kthvalue(input, k, dim=-1, keepdim=False):
    return _of_lines(input, dim, keepdim, lambda values, dim, n: k - 1)


def median_along(input, skip_nan, dim, keepdim):
    def place(values, dim, n):
        if values.dtype.kind != "f":
            return (n - 1) // 2
        missing = sum_of(isnan(values), dim, True)
        if skip_nan:
            return floor_divide(clamp_min(n - missing - 1, 0), 2)
        return where(missing > 0, n - missing, (n - 1) // 2)        # NaN are the last: the first of them

    return _of_lines(input, dim, keepdim, place)


def mode(input, dim=-1, keepdim=False):
    def place(values, dim, n):
        at = expand(reshape(arange(n, device=values.device), [n if d == dim else 1 for d in range(values.ndim)]),
                    values.shape)
        begins = slice(at, dim, 0, 1, 1) == 0
        if n > 1:
            begins = cat([begins, slice(values, dim, 1, n, 1) != slice(values, dim, 0, n - 1, 1)], dim)
        run = at - cummax(where(begins, at, 0), dim)[0]
        return (run * n + (n - 1 - at)).argmax(dim, True)           # the longest run, of equal ones the first

    return _of_lines(input, dim, keepdim, place)


def _written(input, dim, index, source):
    if input.ndim == 0:
        return reshape(_written(reshape(input, (1,)), 0, index, reshape(source, (1,))), ())
    shape = list(input.shape)
    shape[dim] = index.numel()
    return scatter_src(input, dim, _along(reshape(index, (-1,)), shape, dim), expand(source, shape))


def index_copy(input, dim, index, source):
    return _written(input, _wrap("index_copy", dim, input.ndim), index, source)


def index_filled(input, dim, index, value):
    return _written(input, _wrap("index_fill", dim, input.ndim), index, value)


def is_among(input, tests, invert):
    if not tests.numel():
        return full(input.shape, invert, dtype=BOOL, device=input.device)
    tests = reshape(tests, (-1,))
    if not (has_values(input) and has_values(tests)):
        return any_of(unsqueeze(input, input.ndim) == tests, input.ndim) ^ invert
    tests = sort(tests, 0)[0]
    place = clamp_max(places_among(tests, input, False), tests.numel() - 1)
    found = reshape(select_rows(tests, 0, reshape(place, (-1,))), input.shape) == input
    return ~found if invert else found


def _along(index, shape, dim):
    """A vector of positions along a dim, the same for every place of the other dims."""
    ones = [1] * len(shape)
    ones[dim] = -1
    return expand(reshape(index, ones), shape)


def index_select(input, dim, index):
    if input.ndim == 0:
        return gather(reshape(input, (1,)), 0, reshape(index, (-1,))).reshape(())
    dim = _wrap("index_select", dim, input.ndim)
    shape = list(input.shape)
    shape[dim] = index.numel()
    return gather(input, dim, _along(index, shape, dim))


def index_add(input, dim, index, source, alpha=1):
    dim = _wrap("index_add", dim, input.ndim)
    if alpha != 1:
        source = source * alpha
    if input.ndim == 0:
        return scatter_add(reshape(input, (1,)), 0, reshape(index, (-1,)),
                           reshape(source, (-1,))).reshape(())
    return scatter_add(input, dim, _along(index, source.shape, dim), source)


# -- normalisation ----------------------------------------------------------------------------

def layer_norm_stats(input, weight, bias, normalized_ndim, eps):
    dims = tuple(range(-normalized_ndim, 0))
    x = input.to(stat_dtype(input))
    mean = mean_of(x, dims, True)
    centred = x - mean
    rstd = rsqrt(mean_of(centred * centred, dims, True) + eps)
    out = centred * rstd
    if weight is not None:
        out = out * weight
    if bias is not None:
        out = out + bias
    return out.to(input.dtype), mean, rstd


def layer_norm_backward(g, input, mean, rstd, weight=None):
    outer = input.ndim
    while outer and mean.shape[outer - 1] == 1:
        outer -= 1
    dims = tuple(range(outer, input.ndim))
    x_hat = (input - mean) * rstd
    gy = g if weight is None else g * weight
    gx = rstd * (gy - mean_of(gy, dims, True) - x_hat * mean_of(gy * x_hat, dims, True))
    gw, gb = g * x_hat, g
    if outer:
        lead = tuple(range(outer))
        gw, gb = sum_of(gw, lead), sum_of(gb, lead)
    return gx.to(input.dtype), gw.to(input.dtype), gb.to(input.dtype)


def _channels(t, ndim):
    """One number for each channel, shaped to stand beside (N, C, ...)."""
    return reshape(t, (1, -1) + (1,) * (ndim - 2))


def _affine(out, weight, bias):
    if weight is not None:
        out = out * _channels(weight, out.ndim)
    if bias is not None:
        out = out + _channels(bias, out.ndim)
    return out


def batch_norm_stats(input, weight, bias, eps):
    dims = (0, *range(2, input.ndim))
    x = input.to(stat_dtype(input))
    mean = mean_of(x, dims)
    centred = x - _channels(mean, x.ndim)
    var = mean_of(centred * centred, dims)
    out = _affine(centred * _channels(rsqrt(var + eps), x.ndim), weight, bias)
    return out.to(input.dtype), mean, var


def batch_norm_backward(g, input, mean, var, weight, eps):
    dims = (0, *range(2, input.ndim))
    rstd = _channels(rsqrt(var + eps), input.ndim)
    x_hat = (input - _channels(mean, input.ndim)) * rstd
    gy = g if weight is None else g * _channels(weight, g.ndim)
    gx = rstd * (gy - mean_of(gy, dims, True) - x_hat * mean_of(gy * x_hat, dims, True))
    return gx.to(input.dtype), sum_of(g * x_hat, dims).to(input.dtype), sum_of(g, dims).to(input.dtype)


def group_norm_stats(input, weight, bias, num_groups, eps):
    shape = input.shape
    x = reshape(input.to(stat_dtype(input)), (shape[0], num_groups, -1))
    mean = mean_of(x, 2, True)
    centred = x - mean
    rstd = rsqrt(mean_of(centred * centred, 2, True) + eps)
    out = _affine(reshape(centred * rstd, shape), weight, bias)
    return out.to(input.dtype), squeeze(mean, 2), squeeze(rstd, 2)


def group_norm_backward(g, input, mean, rstd, weight, num_groups):
    shape, dims = input.shape, (0, *range(2, input.ndim))
    x = reshape(input, (shape[0], num_groups, -1))
    rstd = unsqueeze(rstd, 2)
    x_hat = (x - unsqueeze(mean, 2)) * rstd
    gy = reshape(g if weight is None else g * _channels(weight, g.ndim), x.shape)
    gx = rstd * (gy - mean_of(gy, 2, True) - x_hat * mean_of(gy * x_hat, 2, True))
    gw = sum_of(g * reshape(x_hat, shape), dims)
    return reshape(gx, shape).to(input.dtype), gw.to(input.dtype), sum_of(g, dims).to(input.dtype)


# -- losses -----------------------------------------------------------------------------------

def _targets(input_ndim, target, weight, ignore_index, dtype):
    """(class dim, positions to read, which targets count, the weight of each target)."""
    valid = target != ignore_index
    safe = target * valid
    counted = valid.to(dtype)
    if weight is not None:
        counted = reshape(select_rows(weight, 0, reshape(safe, (-1,))), safe.shape) * counted
    return 0 if input_ndim == 1 else 1, safe, valid, counted


def _picked(input, axis, safe):
    return squeeze(gather(input, axis, unsqueeze(safe, axis)), axis)


def _by_class(weight, ndim, axis):
    shape = [1] * ndim
    shape[axis] = -1
    return reshape(weight, shape)


def nll_loss_stats(input, target, weight=None, reduction="mean", ignore_index=-100):
    axis, safe, _, w = _targets(input.ndim, target, weight, ignore_index, input.dtype)
    total = sum_of(w)
    return _reduced(-_picked(input, axis, safe) * w, reduction, total), total


def nll_loss_backward(grad, target, weight, total_weight, reduction, ignore_index, shape):
    axis, safe, _, w = _targets(len(shape), target, weight, ignore_index, grad.dtype)
    share = -w * grad
    if reduction == "mean":
        share = share / total_weight
    empty = zeros(shape, dtype=grad.dtype, device=grad.device)
    return scatter_src(empty, axis, unsqueeze(safe, axis), unsqueeze(share, axis))


def cross_entropy_stats(input, target, weight=None, reduction="mean", ignore_index=-100,
                        label_smoothing=0.0):
    x = input.to(stat_dtype(input))
    axis, safe, valid, w = _targets(input.ndim, target, weight, ignore_index, x.dtype)
    lse = logsumexp(x, axis)
    loss = (lse - _picked(x, axis, safe)) * w
    if label_smoothing:
        every = unsqueeze(lse, axis) - x
        if weight is not None:
            every = every * _by_class(weight, input.ndim, axis)
        spread = sum_of(every, axis) * valid * (label_smoothing / input.shape[axis])
        loss = loss * (1 - label_smoothing) + spread
    total = sum_of(w)
    return _reduced(loss, reduction, total).to(input.dtype), lse, total


def cross_entropy_backward(g, input, target, weight, lse, total_weight, reduction, ignore_index,
                           label_smoothing):
    axis, safe, valid, w = _targets(input.ndim, target, weight, ignore_index, g.dtype)
    p = exp(input - unsqueeze(lse, axis))
    zero = zeros(input.shape, dtype=g.dtype, device=g.device)
    share = unsqueeze(w, axis)
    onehot = scatter_src(zero, axis, unsqueeze(safe, axis), share)
    gx = (share * p - onehot) * (1 - label_smoothing)
    if label_smoothing:
        every = p * input.shape[axis] - 1
        if weight is not None:
            every = p * sum_of(weight) - _by_class(weight, input.ndim, axis)
        gx = gx + every * unsqueeze(valid, axis) * (label_smoothing / input.shape[axis])
    gx = gx * (unsqueeze(g, axis) if reduction == "none" else g)
    return gx / total_weight if reduction == "mean" else gx


# -- margins ------------------------------------------------------------------------------------

def _gaps(input, target, margin):
    """(how much each score exceeds that of the row's class less the margin, which is the class)."""
    target = unsqueeze(target, 1)
    gap = clamp_min(margin - gather(input, 1, target) + input, 0)
    own = target == arange(input.shape[1], device=input.device)
    return masked_fill(gap, own, 0), own


def _shares(input, target, weight):
    return 1 / input.shape[1] if weight is None else unsqueeze(select_rows(weight, 0, target), 1) / input.shape[1]


def multi_margin(input, target, weight, p, margin):
    gap, _ = _gaps(input, target, margin)
    return sum_of((gap if p == 1 else gap * gap) * _shares(input, target, weight), 1)


def multi_margin_slope(input, target, weight, p, margin):
    gap, own = _gaps(input, target, margin)
    slope = ((gap > 0).to(input.dtype) if p == 1 else gap * 2) * _shares(input, target, weight)
    return where(own, -sum_of(slope, 1, True), slope)


def _label_gaps(input, target):
    """(gaps (N, label, class), which of them count, (N, label, class): whether the class is the label)."""
    valid = cumprod(target >= 0, 1) > 0         # labels stand before the first -1
    safe = masked_fill(target, ~valid, 0)
    is_label = unsqueeze(safe, 2) == arange(input.shape[1], device=input.device)
    hits = sum_of(is_label & unsqueeze(valid, 2), 1) > 0
    gaps = clamp_min(1 - (unsqueeze(gather(input, 1, safe), 2) - unsqueeze(input, 1)), 0)
    return gaps, unsqueeze(valid, 2) & unsqueeze(~hits, 1), is_label


def multilabel_margin(input, target):
    gaps, counted, _ = _label_gaps(input, target)
    return sum_of(masked_fill(gaps, ~counted, 0), (1, 2)) / input.shape[1]


def multilabel_margin_slope(input, target):
    gaps, counted, is_label = _label_gaps(input, target)
    up = ((gaps > 0) & counted).to(input.dtype)
    return (sum_of(up, 1) - sum_of(sum_of(up, 2, True) * is_label, 1)) / input.shape[1]


_FUNCTIONS = {f.__name__: f for f in (
    t, addmm, linear, overwritten, picked, take, put, masked_write, masked_collect, cross_of,
    nansum, pair_distances, pair_distances_slope, row_distances, row_distances_slope,
    index_copy, index_filled, is_among, kthvalue, median_along, mode, triangle_places, index_select, index_add,
    layer_norm_stats, layer_norm_backward,
    batch_norm_stats, batch_norm_backward, group_norm_stats, group_norm_backward, nll_loss_stats,
    nll_loss_backward, cross_entropy_stats, cross_entropy_backward, attention_stats, attention_backward, grid_sampled,
    recurrent_layer, recurrent_layer_backward, multi_margin, multi_margin_slope, multilabel_margin,
    multilabel_margin_slope)}
