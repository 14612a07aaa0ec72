"""Rules of losses."""
from ptcore._ops.functions import (
    cross_entropy_backward,
    multi_margin_slope,
    multilabel_margin_slope,
    reshape,
    scatter_src,
    softmax,
    unsqueeze,
)
from ptcore._ops.functions import nll_loss_backward as nll_gradient
from ptcore._ops.functions import nll_loss_stats as nll_of
from ptcore.autograd._helpers import differentiated, zeros_for
from ptcore.autograd.rules import vjp


def nll_weights(target, weight, total_weight, reduction, ignore_index, g, shape):
    """Per element, what -log p at the target is multiplied by: (..., 1 at the class dim)."""
    axis = 0 if len(shape) == 1 else 1
    valid = (target != ignore_index)
    safe = target * valid
    w = valid.to(g.dtype) if weight is None else weight[safe] * valid
    if reduction == "mean":
        w = w / total_weight
    return unsqueeze(w * g, axis), unsqueeze(safe, axis), axis


@vjp("nll_loss_stats")
def nll_loss_stats(gs, input, target, weight, out1, reduction, ignore_index):
    return (nll_gradient(gs[0], target, weight, out1, reduction, ignore_index,
                         input.shape),
            None, None)


@vjp("nll_loss_backward")
def nll_loss_backward(g, target, weight, reduction, ignore_index):
    """The loss is linear in its input, so the gradient of its gradient is the loss again."""
    return nll_of(g, target, weight, reduction, ignore_index)[0], None, None, None


@vjp("cross_entropy_stats")
def cross_entropy_stats(gs, input, target, weight, out1, out2, reduction, ignore_index,
                        label_smoothing):
    g, lse, total_weight = gs[0], out1, out2
    if not differentiated():
        return (cross_entropy_backward(g, input, target, weight, lse, total_weight, reduction,
                                       ignore_index, label_smoothing), None, None)
    axis = 0 if len(input.shape) == 1 else 1
    total_weight = total_weight.detach()        # depends on the targets alone
    scale, safe, axis = nll_weights(target, weight, total_weight, reduction, ignore_index, g,
                                    input.shape)
    classes = input.shape[axis]
    onehot = scatter_src(zeros_for(g, input.shape), axis, safe, zeros_for(g, safe.shape) + 1)
    p = softmax(input, axis)
    gx = scale * (1 - label_smoothing) * (p - onehot)
    if label_smoothing:
        valid = unsqueeze(target != ignore_index, axis).to(g.dtype)
        share = label_smoothing / classes * valid * unsqueeze_like(g, axis, reduction)
        if reduction == "mean":
            share = share / total_weight
        if weight is None:
            gx = gx + share * (classes * p - 1)
        else:
            shape = [1] * len(input.shape)
            shape[axis] = classes
            w = reshape(weight, tuple(shape))
            gx = gx + share * (w.sum() * p - w)
    return gx, None, None


def unsqueeze_like(g, axis, reduction):
    return unsqueeze(g, axis) if reduction == "none" else g


@vjp("multi_margin")
def multi_margin(g, input, target, weight, p, margin):
    if p == 1 or not differentiated():
        slope = multi_margin_slope(input, target, weight, p, margin)
    else:                               # which has a slope itself
        from ptcore._ops._decompositions import multi_margin_slope as slope_by_ops
        slope = slope_by_ops(input, target, weight, p, margin)
    return unsqueeze(g, 1) * slope, None, None


@vjp("multilabel_margin")
def multilabel_margin(g, input, target):
    return unsqueeze(g, 1) * multilabel_margin_slope(input, target), None
