"""Functions of networks that PyTorch also has at its top level, where they take their arguments in another order and
reductions as numbers: 0 none, 1 mean, 2 sum; what is left out means none."""
from ptcore._ops import _arguments
from ptcore._tensor import Tensor
from ptcore.nn import functional as F


def _word(op, reduction):
    number = _arguments.integer(op, "reduction", reduction)
    if number not in (0, 1, 2):
        raise ValueError(f"{op}: reduction must be 0 (none), 1 (mean) or 2 (sum), got {number}")
    return _arguments.REDUCTIONS[number]


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True):
    """See :func:`ptcore.nn.functional.layer_norm`."""
    return F.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """See :func:`ptcore.nn.functional.rms_norm`."""
    return F.rms_norm(input, normalized_shape, weight, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True):
    """See :func:`ptcore.nn.functional.group_norm`."""
    return F.group_norm(input, num_groups, weight, bias, eps)


def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """See :func:`ptcore.nn.functional.batch_norm`."""
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    """See :func:`ptcore.nn.functional.instance_norm`."""
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def kl_div(input, target, reduction=0, *, log_target=False):
    """See :func:`ptcore.nn.functional.kl_div`."""
    return F.kl_div(input, target, reduction=_word("kl_div", reduction), log_target=log_target)


def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction=0):
    """See :func:`ptcore.nn.functional.binary_cross_entropy_with_logits`."""
    word = _word("binary_cross_entropy_with_logits", reduction)
    return F.binary_cross_entropy_with_logits(input, target, weight, reduction=word, pos_weight=pos_weight)


def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=0):
    """See :func:`ptcore.nn.functional.cosine_embedding_loss`."""
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_word("cosine_embedding_loss", reduction))


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=0, zero_infinity=False):
    """See :func:`ptcore.nn.functional.ctc_loss`."""
    word = _word("ctc_loss", reduction)
    return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, word, zero_infinity)


def hinge_embedding_loss(input, target, margin=1.0, reduction=0):
    """See :func:`ptcore.nn.functional.hinge_embedding_loss`."""
    return F.hinge_embedding_loss(input, target, margin, reduction=_word("hinge_embedding_loss", reduction))


def margin_ranking_loss(input1, input2, target, margin=0.0, reduction=0):
    """See :func:`ptcore.nn.functional.margin_ranking_loss`."""
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=_word("margin_ranking_loss", reduction))


def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    """See :func:`ptcore.nn.functional.poisson_nll_loss`."""
    word = _word("poisson_nll_loss", reduction)
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=word)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False, reduction=0):
    """See :func:`ptcore.nn.functional.triplet_margin_loss`."""
    word = _word("triplet_margin_loss", reduction)
    return F.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=word)


def adaptive_max_pool1d(input, output_size) -> tuple[Tensor, Tensor]:
    """Values and positions; see :func:`ptcore.nn.functional.adaptive_max_pool1d`."""
    return F.adaptive_max_pool1d(input, output_size, True)


def max_pool1d_with_indices(input, kernel_size, stride=(), padding=0, dilation=1,
                            ceil_mode=False) -> tuple[Tensor, Tensor]:
    """Values and positions; see :func:`ptcore.nn.functional.max_pool1d`."""
    return F.max_pool1d(input, kernel_size, stride or None, padding, dilation, ceil_mode, True)


def _cell(op, mode, input, hx, cx, w_ih, w_hh, b_ih, b_hh):
    from ptcore.nn._recurrent import one_layer
    _arguments.need_tensors(op, input=input, hx=hx, w_ih=w_ih, w_hh=w_hh)
    if input.ndim != 2 or hx.ndim != 2 or input.shape[0] != hx.shape[0]:
        raise RuntimeError(f"{op}: input and the state must be matrices with one row for each sample, got shapes "
                           f"{list(input.shape)} and {list(hx.shape)}")
    return one_layer(input, (input.shape[0],), hx, cx, (w_ih, w_hh, b_ih, b_hh, None), mode, False)


def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None) -> tuple[Tensor, Tensor]:
    """State and cell after one step from ``hx``, a pair; see :class:`ptcore.nn.LSTMCell`."""
    if not isinstance(hx, (tuple, list)) or len(hx) != 2:
        raise RuntimeError(f"lstm_cell: hx must be a pair (h, c), got {type(hx).__name__}")
    return tuple(_cell("lstm_cell", "lstm", input, *hx, w_ih, w_hh, b_ih, b_hh))


def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """The state after one step; see :class:`ptcore.nn.GRUCell`."""
    return _cell("gru_cell", "gru", input, hx, None, w_ih, w_hh, b_ih, b_hh)[0]


def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """The state after one step; see :class:`ptcore.nn.RNNCell`."""
    return _cell("rnn_tanh_cell", "tanh", input, hx, None, w_ih, w_hh, b_ih, b_hh)[0]


def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """The state after one step; see :class:`ptcore.nn.RNNCell`."""
    return _cell("rnn_relu_cell", "relu", input, hx, None, w_ih, w_hh, b_ih, b_hh)[0]
