"""Functions that PyTorch has at its top level as well, with arguments in another order
and reductions as numbers: 0 none, 1 mean, 2 sum; what is left out means none."""
from ptcore._ops import checked, functions
from ptcore._ops.call.offer import overridable


def _word(op, reduction):
    number = checked.integer(op, "reduction", reduction)
    if number not in (0, 1, 2):
        raise ValueError(f"{op}: reduction must be 0 (none), 1 (mean) or 2 (sum), got {number}")
    return checked.REDUCTIONS[number]


@overridable
def kl_div(input, target, reduction=0, *, log_target=False):
    """See :func:`ptcore.nn.functional.kl_div`."""
    return functions.kl_div(input, target, reduction=_word("kl_div", reduction), log_target=log_target)


@overridable
def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction=0):
    """See :func:`ptcore.nn.functional.binary_cross_entropy_with_logits`."""
    word = _word("binary_cross_entropy_with_logits", reduction)
    return functions.binary_cross_entropy_with_logits(input, target, weight, reduction=word, pos_weight=pos_weight)


@overridable
def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=0):
    """See :func:`ptcore.nn.functional.cosine_embedding_loss`."""
    word = _word("cosine_embedding_loss", reduction)
    return functions.cosine_embedding_loss(input1, input2, target, margin, reduction=word)


@overridable
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=0, zero_infinity=False):
    """See :func:`ptcore.nn.functional.ctc_loss`."""
    word = _word("ctc_loss", reduction)
    return functions.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, word, zero_infinity)


@overridable
def hinge_embedding_loss(input, target, margin=1.0, reduction=0):
    """See :func:`ptcore.nn.functional.hinge_embedding_loss`."""
    return functions.hinge_embedding_loss(input, target, margin, reduction=_word("hinge_embedding_loss", reduction))


@overridable
def margin_ranking_loss(input1, input2, target, margin=0.0, reduction=0):
    """See :func:`ptcore.nn.functional.margin_ranking_loss`."""
    word = _word("margin_ranking_loss", reduction)
    return functions.margin_ranking_loss(input1, input2, target, margin, reduction=word)


@overridable
def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    """See :func:`ptcore.nn.functional.poisson_nll_loss`."""
    word = _word("poisson_nll_loss", reduction)
    return functions.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=word)


@overridable
def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False, reduction=0):
    """See :func:`ptcore.nn.functional.triplet_margin_loss`."""
    word = _word("triplet_margin_loss", reduction)
    return functions.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=word)
