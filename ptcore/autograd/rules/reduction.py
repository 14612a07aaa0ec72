"""Rules of reductions."""
from ptcore._ops.creation.creation import ones_like
from ptcore._ops.functions import (
    cat,
    cumprod,
    exp,
    expand,
    flip,
    isnan,
    masked_fill,
    reshape,
    segments_slope,
    slice,
    unsqueeze,
    where,
)
from ptcore._ops.functions import mean as mean_of
from ptcore._ops.functions import prod_dims as prod_of
from ptcore._ops.functions import segments as segments_of
from ptcore._ops.functions import sum as sum_of
from ptcore._ops.halves import half_type, narrowed, widened
from ptcore._ops.norm.decompositions import norm_slope
from ptcore._ops.reduction.decompositions import divided, shared_equally
from ptcore._ops.reduction.decompositions import segments_slope as segments_slope_by_ops
from ptcore._ops.table.shapes import reduced_shape
from ptcore._ops.view.bodies import movedim
from ptcore.autograd.helpers import (
    again,
    conj_of,
    differentiated,
    fused,
    in_float32,
    slope_refused,
    ungathered,
    zeros_among,
)
from ptcore.autograd.rules import SMALLER, vjp


def restored(g, shape, dim, keepdim):
    """A reduced tensor with the reduced dims restored as dims of size 1 (a 0-d tensor broadcasts as it is)."""
    return g if keepdim or not g.ndim else reshape(g, reduced_shape(shape, dim, True))


def size_of(shape, dim):
    n = 1
    for d in dim if shape else ():          # dim may name a dim of a 0-d tensor, which has one element
        n *= shape[d]
    return n


@vjp("sum")
def sum(g, input, dim, keepdim):
    shape = input.shape
    return expand(restored(g, shape, dim, keepdim), shape)


@vjp("nansum")
def nansum(g, input, dim, keepdim):
    shape = input.shape
    return masked_fill(expand(restored(g, shape, dim, keepdim), shape), isnan(input), 0)


@vjp("mean")
def mean(g, input, dim, keepdim):
    shape = input.shape
    g = expand(restored(g, shape, dim, keepdim), shape)
    return divided(g, max(size_of(shape, dim), 1))  # a new tensor: users may write to it, as in PyTorch


@vjp("mean_of_terms")
def mean_of_terms(g, input, dim, keepdim):
    shape = input.shape
    return expand(restored(divided(g, max(size_of(shape, dim), 1)), shape, dim, keepdim), shape)


def _products_of_others(x, dims):
    """For each element, the product of all other elements along the dims."""
    last = tuple(range(-len(dims), 0))
    moved = movedim(x, dims, last)
    rows = reshape(moved, (*moved.shape[:x.ndim - len(dims)], size_of(x.shape, dims)))
    n = rows.shape[-1]
    one = ones_like(slice(rows, -1, 0, 1, 1))

    def before(rows):
        return cat([one, cumprod(slice(rows, -1, 0, n - 1, 1), -1)], -1)
    others = before(rows) * flip(before(flip(rows, (-1,))), (-1,))
    return movedim(reshape(others, moved.shape), last, dims)


@vjp("prod_dims")
@again("prod_dims")
def prod_dims(g, input, out, dim, keepdim):
    """Without zeros, g * out / input. With one zero, its gradient is g times the product of the others; with two, all
    gradients are 0. These zeros are constants, which would be wrong for a second derivative, so a recorded backward of
    data with zeros uses products from both sides."""
    zero = input == 0
    some = zeros_among(zero)
    if some is False:
        g, out = restored(g, input.shape, dim, keepdim), restored(out, input.shape, dim, keepdim)
        return g * conj_of(out / input)
    # Where another factor is infinite, out is NaN, but some of the products of the others are not.
    if input.shape and some is not False and (differentiated() or (some and zeros_among(out != out))):
        return restored(g, input.shape, dim, keepdim) * conj_of(_products_of_others(input, dim))
    count = sum_of(zero, dim, True)
    others = prod_of(masked_fill(input, zero, 1), dim, True)
    g = restored(g, input.shape, dim, keepdim)
    out = restored(out, input.shape, dim, keepdim)
    plain = g * conj_of(out / masked_fill(input, zero, 1))
    lonely = where(zero & (count == 1), g * conj_of(others), plain * 0)
    return where(count == 0, plain, lonely)


@vjp("amax", "amin")
def amax(g, input, out, dim, keepdim):
    """Equal extremes share the gradient. NaN counts as the extreme if there is any."""
    hit = (input == restored(out, input.shape, dim, keepdim)) | (input != input)
    return shared_equally(restored(g, input.shape, dim, keepdim), hit, dim)


@vjp("max_dim", "min_dim")
def max_dim(gs, input, out1, dim, keepdim):
    return to_selected(gs[0], input.shape, out1, dim, keepdim)


def to_selected(g, shape, index, dim, keepdim):
    """g at the places along a dim that were selected."""
    if not shape:
        return g
    if not keepdim:
        g, index = unsqueeze(g, dim), unsqueeze(index, dim)
    return ungathered(g, shape, dim, index)


@vjp("var_dims")
@in_float32
def var_dims(g, input, dim, correction, keepdim):
    n = size_of(input.shape, dim) - correction
    scale = 2.0 / n if n > 0 else float("nan")
    g = restored(g, input.shape, dim, keepdim)
    return scale * g * (input - mean_of(input, dim, True))


@vjp("std_dims")
@again("std_dims")
def std_dims(g, input, out, dim, correction, keepdim):
    n = size_of(input.shape, dim) - correction
    scale = 1.0 / n if n > 0 else float("nan")
    out = restored(out, input.shape, dim, keepdim)
    none = out == 0
    share = (input - mean_of(input, dim, True)) / masked_fill(out, none, 1)
    return scale * masked_fill(restored(g, input.shape, dim, keepdim), none, 0) * share


@vjp("logsumexp_of")
@again("logsumexp_of")
def logsumexp_of(g, input, out, dim, keepdim):
    """The weights are divided by their sum: of a large log-sum-exp rounding has left no digits for the sum of terms."""
    out = restored(out, input.shape, dim, keepdim)
    some = masked_fill(out, out == float("-inf"), 0)        # if all inputs are -inf, weights are 0 and not NaN
    weights = exp(input - some)
    whole = sum_of(weights, dim, True)
    whole = masked_fill(whole, (whole == 0) | (out == float("inf")), 1)
    return restored(g, input.shape, dim, keepdim) / whole * weights


@vjp("vector_norm")
@again("vector_norm")
def vector_norm(g, input, out, ord, dim, keepdim):
    g = restored(g, input.shape, dim, keepdim)
    out = restored(out, input.shape, dim, keepdim)
    return norm_slope(g, input, out, ord, dim)


def differentiable_slope_of_segments(g, data, out, offsets, axis, reduce, start, given):
    slope = segments_slope_by_ops(g, data, out, offsets, axis, reduce, start, given)
    if reduce == "prod":
        zeros = segments_of((data == 0).to(data.dtype), offsets, axis, "sum", 0.0, given)
        slope = slope_refused(slope, zeros, "segment_reduce")
    return slope


SMALLER["segments_slope"] = differentiable_slope_of_segments
slope_of_segments = fused(by_ops=differentiable_slope_of_segments)(segments_slope)


@vjp("segments")
def segments(g, data, offsets, out, axis, reduce, start, given):
    dtype = half_type(data)
    if dtype is not None:               # the output was rounded
        data = widened(data)
        out = segments_of(data, offsets, axis, reduce, start, given)
        return narrowed(slope_of_segments(widened(g), data, out, offsets, axis, reduce, start, given), dtype), None
    return slope_of_segments(g, data, out, offsets, axis, reduce, start, given), None
