"""Losses written out in smaller ops; see _decompositions.py."""
from ptcore._ops.creation.creation import arange, zeros
from ptcore._ops.functions import (
    clamp_min,
    cumprod,
    exp,
    gather,
    logsumexp,
    masked_fill,
    reshape,
    scatter_src,
    squeeze,
    unsqueeze,
    where,
)
from ptcore._ops.functions import index_select as select_rows
from ptcore._ops.functions import sum as sum_of
from ptcore._ops.loss.bodies import _reduced
from ptcore._ops.table.shapes import stat_dtype


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


FUNCTIONS = {f.__name__: f for f in (
    nll_loss_stats, nll_loss_backward, cross_entropy_stats, cross_entropy_backward, multi_margin,
    multi_margin_slope, multilabel_margin, multilabel_margin_slope)}
