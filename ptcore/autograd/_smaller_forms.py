"""Fused gradients as ops that have derivatives, by the names of their rows.

A rule calls a fused row where its backward is not differentiated. In a graph of such a backward the row stands as it
is; where the graph is differentiated later, the row is run in the form of this file, which has the row's arguments.
Statistics that the forward has left have no history in a graph, so they are computed again.
"""
from ptcore._ops.attention.decompositions import differentiable_backward as attention_backward  # noqa: F401
from ptcore._ops.functions import logcumsumexp as logcumsumexp_of
from ptcore._ops.functions import mean as mean_of
from ptcore._ops.functions import reshape, rsqrt, square, squeeze, unsqueeze
from ptcore._ops.loss.decompositions import multi_margin_slope  # noqa: F401
from ptcore._ops.norm.decompositions import pair_distances_slope, row_distances_slope  # noqa: F401
from ptcore._ops.normalize.decompositions import group_norm_backward as group_norm_by_ops
from ptcore._ops.normalize.decompositions import layer_norm_backward as layer_norm_by_ops
from ptcore._ops.pooling.decompositions import max_pool_backward  # noqa: F401
from ptcore._ops.resample.decompositions import grid_sample_backward  # noqa: F401
from ptcore.autograd.rules.loss import _cross_entropy_again as cross_entropy_backward  # noqa: F401
from ptcore.autograd.rules.loss import _ctc_again as ctc_loss_backward  # noqa: F401
from ptcore.autograd.rules.normalize import batch_norm_again as batch_norm_backward  # noqa: F401
from ptcore.autograd.rules.normalize import log_softmax_by_ops as log_softmax_backward  # noqa: F401
from ptcore.autograd.rules.normalize import softmax_by_ops as softmax_backward  # noqa: F401
from ptcore.autograd.rules.reduction import differentiable_slope_of_segments as segments_slope  # noqa: F401
from ptcore.autograd.rules.scan import _by_halves


def _statistics(x, mean, rstd, dims):
    """The mean and the inverse deviation over dims, of the given values, and with their derivatives."""
    again = mean_of(x, dims, True)
    variance = mean_of(square(x - again), dims, True)
    offset = 1 / square(rstd.detach()) - variance.detach()      # eps, which the row does not know
    return again + (mean - again).detach(), rsqrt(variance + offset)


def layer_norm_backward(g, input, mean, rstd, weight):
    outer = input.ndim
    while outer and mean.shape[outer - 1] == 1:
        outer -= 1
    mean, rstd = _statistics(input, mean, rstd, tuple(range(outer, input.ndim)))
    return layer_norm_by_ops(g, input, mean, rstd, weight)


def group_norm_backward(g, input, mean, rstd, weight, num_groups):
    rows = reshape(input, (input.shape[0], num_groups, -1))
    mean, rstd = [squeeze(x, 2) for x in _statistics(rows, unsqueeze(mean, 2), unsqueeze(rstd, 2), 2)]
    return group_norm_by_ops(g, input, mean, rstd, weight, num_groups)


def logcumsumexp_slope(g, input, dim):
    return _by_halves(g, input, logcumsumexp_of(input, dim), dim)


def recurrent_layer_backward(*args):
    raise RuntimeError("recurrent_layer_backward: the backward of a recurrent layer that a graph holds has no "
                       "derivative; take the second derivative in the function that is traced")
