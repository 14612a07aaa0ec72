"""Losses as functions of smaller ops; see decompositions.py."""
from ptcore._ops.creation.creation import arange, full, zeros, zeros_like
from ptcore._ops.functions import (
    cat,
    clamp_min,
    cumprod,
    exp,
    expand,
    gather,
    log_softmax,
    logsumexp,
    masked_fill,
    relu,
    reshape,
    scatter_add,
    scatter_src,
    squeeze,
    unsqueeze,
    where,
)
from ptcore._ops.functions import index_select as select_rows
from ptcore._ops.functions import sum as sum_of
from ptcore._ops.loss.bodies import _reduced
from ptcore._ops.normalize.decompositions import whole
from ptcore._ops.shaping.bodies import stack
from ptcore._ops.table.shapes import stat_dtype


def _targets(input_ndim, target, weight, ignore_index, dtype):
    """(class dim, positions to read, mask of the targets that count, the weight of each target)."""
    valid = target != ignore_index
    safe = target * valid
    counted = valid.to(dtype)
    if weight is not None:
        counted = reshape(select_rows(weight, 0, reshape(safe, (-1,))), safe.shape) * counted
    return 0 if input_ndim == 1 else 1, safe, valid, counted


def _picked(input, axis, safe):
    return squeeze(gather(input, axis, unsqueeze(safe, axis)), axis)


def _counted(x, valid):
    """0 for targets that do not count, even where x is infinite or NaN."""
    return masked_fill(x, ~valid, 0)


def _by_class(weight, ndim, axis):
    shape = [1] * ndim
    shape[axis] = -1
    return reshape(weight, shape)


def _total(w, reduction):
    """The sum of the weights of all targets; 0 without a reduction, as in PyTorch."""
    return sum_of(zeros_like(w) if reduction == "none" else w)


def nll_loss_stats(input, target, weight=None, reduction="mean", ignore_index=-100):
    axis, safe, valid, w = _targets(input.ndim, target, weight, ignore_index, input.dtype)
    total = _total(w, reduction)
    return _reduced(-_counted(_picked(input, axis, safe), valid) * w, reduction, total), total


def _total_of_valid(total, valid):
    """The divisor of each target's share: 1 for targets that do not count, as the total of no targets is 0."""
    return masked_fill(expand(total, valid.shape), ~valid, 1)


def nll_loss_backward(grad, target, weight, total_weight, reduction, ignore_index, shape):
    axis, safe, valid, w = _targets(len(shape), target, weight, ignore_index, grad.dtype)
    share = -w * grad
    if reduction == "mean":
        share = share / _total_of_valid(total_weight, valid)
    empty = zeros(shape, dtype=grad.dtype, device=grad.device)
    return scatter_src(empty, axis, unsqueeze(safe, axis), unsqueeze(share, axis))


def cross_entropy_stats(input, target, weight=None, reduction="mean", ignore_index=-100,
                        label_smoothing=0.0):
    axis, safe, valid, w = _targets(input.ndim, target, weight, ignore_index, stat_dtype(input))
    # What does not count is 0, so that neither the loss nor a derivative of it sees its infinities.
    x = _counted(input.to(stat_dtype(input)), unsqueeze(valid, axis))
    lse, logs = logsumexp(x, axis), log_softmax(x, axis)
    loss = -_picked(logs, axis, safe) * w
    if label_smoothing:
        every = -logs
        if weight is not None:
            every = every * _by_class(weight, input.ndim, axis)
        spread = _counted(sum_of(every, axis), valid) * (label_smoothing / input.shape[axis])
        loss = loss * (1 - label_smoothing) + spread
    total = _total(w, reduction)
    # That of targets that do not count is told as the kernel tells it; its derivative is 0.
    lse = where(valid, lse, logsumexp(input.detach().to(lse.dtype), axis))
    return _reduced(loss, reduction, total).to(input.dtype), lse, total


def cross_entropy_backward(g, input, target, weight, lse, total_weight, reduction, ignore_index,
                           label_smoothing):
    axis, safe, valid, w = _targets(input.ndim, target, weight, ignore_index, g.dtype)
    lse = unsqueeze(lse, axis)
    # An infinite score makes all of its row NaN, as it does in log_softmax.
    p = whole(exp(input - lse), lse, axis, 4e-6) + (lse - lse).detach()
    zero = zeros(input.shape, dtype=g.dtype, device=g.device)
    share = unsqueeze(w, axis)
    onehot = scatter_src(zero, axis, unsqueeze(safe, axis), share)
    gx = (share * p - onehot) * (1 - label_smoothing)
    if label_smoothing:
        every = p * input.shape[axis] - 1
        if weight is not None:
            every = p * sum_of(weight) - _by_class(weight, input.ndim, axis)
        gx = gx + every * (label_smoothing / input.shape[axis])
    gx = _counted(gx, unsqueeze(valid, axis)) * (unsqueeze(g, axis) if reduction == "none" else g)
    return gx / unsqueeze(_total_of_valid(total_weight, valid), axis) if reduction == "mean" else gx


def _gaps(input, target, margin):
    """(the margin violation of each score against the score of the row's class, mask of the row's class)."""
    target = unsqueeze(target, 1)
    gap = relu(margin - gather(input, 1, target) + input)
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
    """(gaps (N, label, class), mask of the gaps that count, mask (N, label, class) of class equal to label)."""
    valid = cumprod(target >= 0, 1) > 0         # labels end at the first -1
    safe = masked_fill(target, ~valid, 0)
    is_label = unsqueeze(safe, 2) == arange(input.shape[1], device=input.device)
    hits = sum_of(is_label & unsqueeze(valid, 2), 1) > 0
    gaps = relu(1 - (unsqueeze(gather(input, 1, safe), 2) - unsqueeze(input, 1)))
    return gaps, unsqueeze(valid, 2) & unsqueeze(~hits, 1), is_label


def multilabel_margin(input, target):
    gaps, counted, _ = _label_gaps(input, target)
    return sum_of(masked_fill(gaps, ~counted, 0), (1, 2)) / input.shape[1]


def multilabel_margin_slope(input, target):
    gaps, counted, is_label = _label_gaps(input, target)
    up = ((gaps > 0) & counted).to(input.dtype)
    return (sum_of(up, 1) - sum_of(sum_of(up, 2, True) * is_label, 1)) / input.shape[1]


def _delayed(x, k):
    """x moved right by k columns; -inf in the first k."""
    nothing = full((x.shape[0], k), float("-inf"), dtype=x.dtype, device=x.device)
    return cat([nothing, x[:, :x.shape[1] - k]], 1)


def _ahead(x, k):
    """x moved left by k columns; -inf in the last k."""
    return cat([x[:, k:], full((x.shape[0], k), float("-inf"), dtype=x.dtype, device=x.device)], 1)


def _ways(x, moved, allowed):
    """log(sum(exp)) over the ways to stay in a state, to move by one state, and by two where that is allowed."""
    ways = [x, moved(x, 1)]
    if x.shape[1] > 2:
        ways.append(allowed(moved(x, 2)))
    return logsumexp(stack(ways, 0), 0)


def _states(log_probs, labels, blank):
    """(state numbers, label of each state, mask of moves by two, log-probability of each state by step)."""
    steps, n = log_probs.shape[:2]
    states, device = 2 * labels.shape[1] + 1, log_probs.device
    place = arange(states, device=device)
    # blank, label, blank, ..., label, blank
    label = where(place % 2 == 1, gather(cat([labels, full((n, 1), blank, dtype=labels.dtype, device=device)], 1), 1,
                                         expand(unsqueeze(place // 2, 0), (n, states))), blank)
    other = cat([full((n, min(2, states)), True, device=device), label[:, 2:] != label[:, :-2]], 1)[:, :states]
    jumps = (label != blank) & other & (place > 1)
    emitted = gather(log_probs.to(stat_dtype(log_probs)), 2, expand(unsqueeze(label, 0), (steps, n, states)))
    return place, label, jumps, emitted


def ctc_loss_stats(log_probs, labels, input_lengths, target_lengths, blank):
    """The recursion over steps, for all sequences at once; states that no path reaches are -inf."""
    steps, n = log_probs.shape[:2]
    place, _, jumps, emitted = _states(log_probs, labels, blank)
    outside = unsqueeze(place, 0) > 2 * unsqueeze(target_lengths, 1)
    alphas = []
    for t in range(steps):
        if t == 0:
            alpha = masked_fill(emitted[0], place > 1, float("-inf"))
        else:
            alpha = emitted[t] + _ways(alphas[-1], _delayed, lambda x: masked_fill(x, ~jumps, float("-inf")))
        alphas.append(masked_fill(alpha, outside | unsqueeze(input_lengths <= t, 1), float("-inf")))
    # a sequence without steps emits no label
    nothing = where(target_lengths == 0, 0.0, float("inf")).to(emitted.dtype)
    if not steps:
        return nothing.to(log_probs.dtype), zeros((n, 0, place.shape[0]), dtype=emitted.dtype, device=emitted.device)
    alpha = stack(alphas, 1)
    last = gather(alpha, 1, expand(reshape(clamp_min(input_lengths - 1, 0), (n, 1, 1)), (n, 1, place.shape[0])))[:, 0]
    ends = unsqueeze(2 * target_lengths, 1)
    if labels.shape[1]:
        before = masked_fill(gather(last, 1, clamp_min(ends - 1, 0)), ends == 0, float("-inf"))
        loss = -logsumexp(stack([gather(last, 1, ends), before], 0), 0)[:, 0]
    else:
        loss = -last[:, 0]
    return where(input_lengths == 0, nothing, loss).to(log_probs.dtype), alpha


def ctc_loss_backward(g, log_probs, labels, input_lengths, target_lengths, loss, alpha, blank):
    """The share of the paths in a state after a step: the product of those to the state and those on from it."""
    steps, n, classes = log_probs.shape
    place, label, jumps, emitted = _states(log_probs, labels, blank)
    ends = 2 * unsqueeze(target_lengths, 1)
    without = (g == 0) & (loss == float("inf"))         # an infinite loss that was replaced by 0
    at_end = masked_fill(zeros((n, place.shape[0]), dtype=emitted.dtype, device=emitted.device),
                         (place != ends) & (place != ends - 1), float("-inf"))
    onto = cat([jumps[:, 2:], full((n, min(2, jumps.shape[1])), False, device=jumps.device)], 1)
    slopes, beta = [], None
    for t in range(steps - 1, -1, -1):
        rest = at_end
        if beta is not None:
            on = _ways(beta, _ahead, lambda x: masked_fill(x, ~onto, float("-inf")))
            rest = where(unsqueeze(input_lengths == t + 1, 1), at_end, on)
        beta = masked_fill(rest + emitted[t], (place > ends) | unsqueeze(input_lengths <= t, 1), float("-inf"))
        counts = (place <= ends) & unsqueeze((input_lengths > t) & ~without, 1)
        share = exp(where(counts, alpha[:, t] + rest + unsqueeze(loss, 1), float("-inf")))
        none = zeros((n, classes), dtype=share.dtype, device=share.device)
        slopes.append(-scatter_add(none, 1, label, share) * unsqueeze(g, 1))
    if not steps:
        return zeros(log_probs.shape, dtype=log_probs.dtype, device=log_probs.device)
    return stack(slopes[::-1], 0).to(log_probs.dtype)


FUNCTIONS = {f.__name__: f for f in (
    nll_loss_stats, nll_loss_backward, cross_entropy_stats, cross_entropy_backward, multi_margin,
    multi_margin_slope, multilabel_margin, multilabel_margin_slope, ctc_loss_stats, ctc_loss_backward)}
