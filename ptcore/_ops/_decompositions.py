"""Fused ops written out in smaller ones.

Where a row's ``batch`` or ``jvp`` column says "decompose", a transformation runs the function of
the op's name here in place of the op, and sees the ops that it calls. Arguments come in
signature order; results are those of the op, in another rounding.
"""
from ptcore._ops._composite import _wrap, matmul
from ptcore._ops._composite_attention import attention_backward, attention_stats
from ptcore._ops._creation import zeros
from ptcore._ops._decompositions_recurrent import recurrent_layer, recurrent_layer_backward
from ptcore._ops._grid_by_ops import grid_sampled
from ptcore._ops._shapes import stat_dtype
from ptcore._ops.functions import (
    exp,
    expand,
    gather,
    logsumexp,
    mm,
    reshape,
    rsqrt,
    scatter_add,
    scatter_src,
    squeeze,
    transpose,
    unsqueeze,
)
from ptcore._ops.functions import index_select as select_rows
from ptcore._ops.functions import mean as mean_of
from ptcore._ops.functions import sum as sum_of


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


# -- positions --------------------------------------------------------------------------------

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


def _reduced(loss, total, reduction):
    if reduction == "none":
        return loss
    return sum_of(loss) / total if reduction == "mean" else sum_of(loss)


def nll_loss_stats(input, target, weight=None, reduction="mean", ignore_index=-100):
    axis, safe, _, w = _targets(input.ndim, target, weight, ignore_index, input.dtype)
    total = sum_of(w)
    return _reduced(-_picked(input, axis, safe) * w, total, reduction), total


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
    return _reduced(loss, total, reduction).to(input.dtype), lse, total


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


_FUNCTIONS = {f.__name__: f for f in (
    t, addmm, linear, index_select, index_add, layer_norm_stats, layer_norm_backward,
    batch_norm_stats, batch_norm_backward, group_norm_stats, group_norm_backward, nll_loss_stats,
    nll_loss_backward, cross_entropy_stats, cross_entropy_backward, attention_stats, attention_backward, grid_sampled,
    recurrent_layer, recurrent_layer_backward)}
