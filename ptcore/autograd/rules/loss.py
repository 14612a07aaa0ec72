"""Rules of losses."""
from ptcore._ops.functions import (
    cross_entropy_backward,
    logsumexp,
    masked_fill,
    multi_margin_slope,
    multilabel_margin_slope,
    unsqueeze,
)
from ptcore._ops.functions import ctc_loss_backward as ctc_gradient
from ptcore._ops.functions import nll_loss_backward as nll_gradient
from ptcore._ops.functions import nll_loss_stats as nll_of
from ptcore._ops.functions import sum as sum_of
from ptcore._ops.loss.decompositions import cross_entropy_backward as cross_entropy_by_ops
from ptcore._ops.loss.decompositions import ctc_loss_backward as ctc_gradient_by_ops
from ptcore._ops.loss.decompositions import ctc_loss_stats as ctc_by_ops
from ptcore._ops.loss.decompositions import multi_margin_slope as multi_margin_slope_by_ops
from ptcore.autograd.helpers import differentiated, fused, in_float32  # noqa: F401  (pickles name it here)
from ptcore.autograd.rules import SMALLER, jvp, vjp


@vjp("nll_loss_stats")
def nll_loss_stats(gs, input, target, weight, out1, reduction, ignore_index):
    return (nll_gradient(gs[0], target, weight, out1, reduction, ignore_index,
                         input.shape),
            None, None)


@vjp("nll_loss_backward")
def nll_loss_backward(g, target, weight, reduction, ignore_index):
    """The loss is linear in its input, so the gradient of its gradient is the loss again."""
    return nll_of(g, target, weight, reduction, ignore_index)[0], None, None, None


def _cross_entropy_again(g, input, target, weight, lse, total, reduction, ignore_index, label_smoothing):
    """The log-sum-exp is computed again from the input; the total weight depends on the targets alone."""
    lse = logsumexp(input, 1 if len(input.shape) > 1 else 0)
    return cross_entropy_by_ops(g, input, target, weight, lse, total.detach(), reduction, ignore_index, label_smoothing)


_cross_entropy_slope = fused(by_ops=_cross_entropy_again)(cross_entropy_backward)


@vjp("cross_entropy_stats")
def cross_entropy_stats(gs, input, target, weight, out1, out2, reduction, ignore_index,
                        label_smoothing):
    return (_cross_entropy_slope(gs[0], input, target, weight, out1, out2, reduction, ignore_index, label_smoothing),
            None, None)


def _ctc_again(g, log_probs, labels, input_lengths, target_lengths, loss, alpha, blank):
    """The loss is computed again by smaller ops with recorded derivatives."""
    loss, alpha = ctc_by_ops(log_probs, labels, input_lengths, target_lengths, blank)
    return ctc_gradient_by_ops(g, log_probs, labels, input_lengths, target_lengths, loss, alpha, blank)


SMALLER.update(cross_entropy_backward=_cross_entropy_again, ctc_loss_backward=_ctc_again)
_ctc_slope = fused(by_ops=_ctc_again)(ctc_gradient)
_multi_margin_slope = fused(by_ops=multi_margin_slope_by_ops)(multi_margin_slope)


@vjp("ctc_loss_stats")
def ctc_loss_stats(gs, log_probs, labels, input_lengths, target_lengths, out0, out1, blank):
    """The states have no derivative of their own."""
    if gs[0] is None:
        return None, None, None, None
    return _ctc_slope(gs[0], log_probs, labels, input_lengths, target_lengths, out0, out1, blank), None, None, None


@jvp("ctc_loss_stats")
def ctc_forward(t, log_probs, labels, input_lengths, target_lengths, out0, out1, blank):
    without = out0 == float("inf")      # their slopes are unknown, and stay apart: the loss may be replaced by 0
    slope = _ctc_slope((~without).to(out0.dtype), log_probs, labels, input_lengths, target_lengths, out0, out1, blank)
    return masked_fill(sum_of(slope * t, (0, 2)), without, float("nan")), None


@vjp("multi_margin")
@in_float32
def multi_margin(g, input, target, weight, p, margin):
    slope_of = multi_margin_slope if p == 1 else _multi_margin_slope        # of p = 1 it is constant
    return unsqueeze(g, 1) * slope_of(input, target, weight, p, margin), None, None


@vjp("multilabel_margin")
def multilabel_margin(g, input, target):
    return unsqueeze(g, 1) * multilabel_margin_slope(input, target), None
