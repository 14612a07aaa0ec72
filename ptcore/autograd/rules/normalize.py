"""Rules of softmax and normalisation. A backward that is not recorded uses the fused kernels."""
from ptcore._ops.functions import batch_norm_backward as fused_batch_norm
from ptcore._ops.functions import (
    exp,
    log_softmax_backward,
    reshape,
    rsqrt,
    softmax_backward,
    square,
    squeeze,
    unsqueeze,
)
from ptcore._ops.functions import group_norm_backward as fused_group_norm
from ptcore._ops.functions import layer_norm_backward as fused_layer_norm
from ptcore._ops.functions import mean as mean_of
from ptcore._ops.functions import rms_norm_backward as fused_rms_norm
from ptcore._ops.functions import sum as sum_of
from ptcore._ops.normalize.decompositions import batch_norm_backward as batch_norm_by_ops
from ptcore._ops.normalize.decompositions import batch_norm_stats as batch_norm_statistics
from ptcore._ops.normalize.decompositions import group_norm_backward as group_norm_by_ops
from ptcore._ops.normalize.decompositions import group_norm_stats as group_norm_statistics
from ptcore._ops.normalize.decompositions import group_norm_stats_backward, outer_dims, per_channel
from ptcore._ops.normalize.decompositions import layer_norm_backward as layer_norm_by_ops
from ptcore._ops.normalize.decompositions import layer_norm_stats as layer_norm_statistics
from ptcore._ops.normalize.decompositions import rms_norm_backward as rms_norm_by_ops
from ptcore._ops.normalize.decompositions import rms_norm_stats as rms_norm_statistics
from ptcore._ops.table.shapes import stat_dtype
from ptcore.autograd.helpers import again, fused
from ptcore.autograd.rules import SMALLER, vjp


def softmax_by_ops(g, out, dim):
    gy = g * out
    return gy - out * sum_of(gy, dim, True)


def log_softmax_by_ops(g, out, dim):
    return g - exp(out) * sum_of(g, dim, True)


softmax_slope = fused(by_ops=softmax_by_ops)(softmax_backward)
log_softmax_slope = fused(by_ops=log_softmax_by_ops)(log_softmax_backward)


@vjp("softmax")
@again("softmax")
def softmax(g, input, out, dim):
    return softmax_slope(g, out, dim)


@vjp("log_softmax")
@again("log_softmax")
def log_softmax(g, input, out, dim):
    return log_softmax_slope(g, out, dim)


def layer_norm_again(g, input, mean, rstd, weight, normalized_ndim, eps):
    """The statistics are computed again from the input."""
    _, mean, rstd = layer_norm_statistics(input, None, None, normalized_ndim, eps)
    return layer_norm_by_ops(g, input, mean, rstd, weight)


@fused(by_ops=layer_norm_again)
def layer_norm_slope(g, input, mean, rstd, weight, normalized_ndim, eps):
    return fused_layer_norm(g, input, mean, rstd, weight)


@vjp("layer_norm_stats")
def layer_norm_stats(gs, input, weight, out1, out2, normalized_ndim, eps, needs):
    g = gs[0]
    if g is None:
        return None, None, None
    gx, gw, gb = layer_norm_slope(g, input, out1, out2, weight, normalized_ndim, eps)
    gw, gb = _of_normalized(gw, input, normalized_ndim), _of_normalized(gb, input, normalized_ndim)
    return gx, gw if needs & 2 else None, gb if needs & 4 else None


def _of_normalized(g, input, normalized_ndim):
    """A gradient of weight or bias without leading dims of size 1."""
    return g if g.ndim == normalized_ndim else reshape(g, input.shape[len(input.shape) - normalized_ndim:])


def rms_norm_again(g, input, rstd, weight, normalized_ndim, eps):
    """The statistic is computed again from the input."""
    return rms_norm_by_ops(g, input, rms_norm_statistics(input, None, normalized_ndim, eps)[1], weight)


@fused(by_ops=rms_norm_again)
def rms_norm_slope(g, input, rstd, weight, normalized_ndim, eps):
    return fused_rms_norm(g, input, rstd, weight)


@vjp("rms_norm_stats")
def rms_norm_stats(gs, input, weight, out1, normalized_ndim, eps, needs):
    g = gs[0]
    if g is None:
        return None, None
    gx, gw = rms_norm_slope(g, input, out1, weight, normalized_ndim, eps)
    return gx, _of_normalized(gw, input, normalized_ndim) if needs & 2 else None


def batch_norm_again(g, input, mean, var, weight, eps):
    """The statistics are computed again from the input."""
    return batch_norm_by_ops(g, input, batch_norm_statistics(input, None, None, eps)[1], None, weight, eps)


batch_norm_slope = fused(by_ops=batch_norm_again)(fused_batch_norm)


@vjp("batch_norm_stats")
def batch_norm_stats(gs, input, weight, out1, out2, eps, needs):
    g = gs[0]
    if g is None:
        return None, None, None
    gx, gw, gb = batch_norm_slope(g, input, out1, out2, weight, eps)
    return gx, gw if needs & 2 else None, gb if needs & 4 else None


@vjp("batch_norm_given")
def batch_norm_given(g, input, mean, var, weight, eps, needs):
    wide, ndim = stat_dtype(input), input.ndim
    rstd = rsqrt(var.to(wide) + eps)
    wide_g, dims = g.to(wide), (0, *range(2, ndim))
    gx = gw = gb = None
    if needs & 1:
        gx = (wide_g * per_channel(rstd if weight is None else rstd * weight, ndim)).to(input.dtype)
    if needs & 8:
        centred = input.to(wide) - per_channel(mean, ndim)
        gw = (sum_of(wide_g * centred, dims) * rstd).to(input.dtype)
    if needs & 16:
        gb = sum_of(wide_g, dims).to(input.dtype)
    return gx, None, None, gw, gb


def group_statistics_again(input, mean, rstd, num_groups, eps):
    return group_norm_statistics(input, None, None, num_groups, eps)[1:]


@fused(by_ops=group_statistics_again, wide=False)
def group_statistics(input, mean, rstd, num_groups, eps):
    return mean, rstd


group_norm_slope = fused(by_ops=group_norm_by_ops)(fused_group_norm)


@vjp("group_norm_stats")
def group_norm_stats(gs, input, weight, out1, out2, num_groups, eps, needs):
    g, g_mean, g_rstd = gs
    dtype = input.dtype
    if g is not None and (g_mean is not None or g_rstd is not None):   # they are added, then rounded
        wide = stat_dtype(input)
        g, input, weight = g.to(wide), input.to(wide), None if weight is None else weight.to(wide)
    mean, rstd = group_statistics(input, out1, out2, num_groups, eps)
    gx = gw = gb = None
    if g is not None:
        gx, gw, gb = group_norm_slope(g, input, mean, rstd, weight, num_groups)
    if g_mean is not None or g_rstd is not None:
        through = group_norm_stats_backward(g_mean, g_rstd, input, mean, rstd, num_groups)
        gx = through if gx is None else gx + through
    gx, gw, gb = [x if x is None else x.to(dtype) for x in (gx, gw if needs & 2 else None, gb if needs & 4 else None)]
    return gx, gw, gb


def _with_history(x, mean, rstd, dims):
    """The mean and the inverse deviation over dims, of the given values, and with their derivatives."""
    again = mean_of(x, dims, True)
    given = rstd.detach()                                       # of a variance and eps, which the row does not know
    variance = mean_of(square((x - again) * given), dims, True)
    return again + (mean - again).detach(), given * rsqrt(variance - variance.detach() + 1)


def _layer_norm_backward(g, input, mean, rstd, weight):
    mean, rstd = _with_history(input, mean, rstd, tuple(range(outer_dims(mean), input.ndim)))
    return layer_norm_by_ops(g, input, mean, rstd, weight)


def _rms_norm_backward(g, input, rstd, weight):
    given = rstd.detach()                                       # of a mean square and eps, which the row does not know
    size = mean_of(square(input * given), tuple(range(outer_dims(rstd), input.ndim)), True)
    return rms_norm_by_ops(g, input, given * rsqrt(size - size.detach() + 1), weight)


def _group_norm_backward(g, input, mean, rstd, weight, num_groups):
    rows = reshape(input, (input.shape[0], num_groups, -1))
    mean, rstd = [squeeze(x, 2) for x in _with_history(rows, unsqueeze(mean, 2), unsqueeze(rstd, 2), 2)]
    return group_norm_by_ops(g, input, mean, rstd, weight, num_groups)


SMALLER.update(softmax_backward=softmax_by_ops, log_softmax_backward=log_softmax_by_ops,
               layer_norm_backward=_layer_norm_backward, rms_norm_backward=_rms_norm_backward,
               group_norm_backward=_group_norm_backward, batch_norm_backward=batch_norm_again)
