"""Rules of reductions."""
from ptcore._ops.functions import (
    exp,
    expand,
    isnan,
    masked_fill,
    products_slope,
    reshape,
    segments_slope,
    unsqueeze,
)
from ptcore._ops.functions import mean as mean_of
from ptcore._ops.functions import prod_dims as prod_of  # noqa: F401  pickles may name it here
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


products_slope_of = fused(by_ops="scan.products_slope")(products_slope)


@vjp("prod_dims")
@again("prod_dims")
def prod_dims(g, input, out, dim, keepdim):
    """g times the product of the other elements. A recorded backward without zeros divides, which takes fewer ops."""
    shape, dims = input.shape, dim or tuple(range(input.ndim))
    if not shape:
        return g
    if differentiated() and zeros_among(input == 0) is False:
        return restored(g, shape, dim, keepdim) * conj_of(restored(out, shape, dim, keepdim) / input)
    if len(dims) == 1:
        one = reduced_shape(shape, dim, True)
        return products_slope_of(reshape(g, one), input, reshape(out, one), dims[0])
    last = tuple(range(-len(dims), 0))
    moved = movedim(input, dims, last)
    one = (*moved.shape[:input.ndim - len(dims)], 1)
    rows = reshape(moved, (*one[:-1], size_of(shape, dims)))
    slope = products_slope_of(reshape(g, one), rows, reshape(out, one), -1)
    return movedim(reshape(slope, moved.shape), last, dims)


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
