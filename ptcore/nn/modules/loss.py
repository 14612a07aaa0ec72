"""Losses: each holds its options and calls the function of the same meaning in
:mod:`ptcore.nn.functional`."""

from math import prod

from ptcore._ops import checked
from ptcore.nn import functional as F
from ptcore.nn.modules.distance import PairwiseDistance
from ptcore.nn.modules.linear import Linear
from ptcore.nn.modules.module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "LinearCrossEntropyLoss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "NLLLoss2d",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


def _reduction(name, size_average, reduce, reduction):
    """The option `reduction`, honouring the two older ones."""
    if size_average is not None or reduce is not None:
        import warnings

        reduction = checked.reduction(name, reduction, size_average, reduce)
        warnings.warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{reduction}' instead.",
            stacklevel=3,
        )
    if reduction not in checked.REDUCTIONS and (name, reduction) != ("KLDivLoss", "batchmean"):
        raise ValueError(
            f"{name}: reduction must be 'none', 'mean' or 'sum', got {reduction!r}"
        )
    return reduction


class _Loss(Module):
    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__()
        self.reduction = _reduction(
            type(self).__name__, size_average, reduce, reduction
        )


class _ReducedLoss(_Loss):
    """A loss, `_function`, without other options than how it is reduced."""

    def forward(self, input, target):
        """Loss of `input` against `target`."""
        return type(self)._function(input, target, reduction=self.reduction)


class _WeightedLoss(_Loss):
    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_ReducedLoss):
    """Mean (or sum) of ``|input - target|``.

    Parameters
    ----------
    reduction : {'mean', 'sum', 'none'}, default: 'mean'
        How the elements are combined.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.L1Loss()(ptcore.zeros(2), ptcore.ones(2)).item()
    1.0
    """

    _function = F.l1_loss


class MSELoss(_ReducedLoss):
    """Mean (or sum) of ``(input - target)**2``.

    Parameters
    ----------
    reduction : {'mean', 'sum', 'none'}, default: 'mean'
        How the elements are combined.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.MSELoss()(ptcore.zeros(2), ptcore.full((2,), 3.0)).item()
    9.0
    """

    _function = F.mse_loss


class NLLLoss(_WeightedLoss):
    """Negative log likelihood of class indices under log-probabilities.

    Parameters
    ----------
    weight : Tensor, shape (C,), optional
        Weight of each class.
    ignore_index : int, default: -100
        Target that does not count.
    reduction : {'mean', 'sum', 'none'}, default: 'mean'
        How the elements are combined; 'mean' divides by the sum of the weights.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.NLLLoss()(ptcore.zeros(2, 3), ptcore.tensor([0, 2])).item()
    0.0
    """

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input, target):
        """Loss of `input`, shape (N, C, ...), against `target`, (N, ...)."""
        return F.nll_loss(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class NLLLoss2d(NLLLoss):
    """The older name of :class:`NLLLoss`."""

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
        import warnings

        warnings.warn("`NLLLoss2d` has been deprecated in PyTorch; use `NLLLoss`.", FutureWarning, stacklevel=2)
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class CrossEntropyLoss(_WeightedLoss):
    """Cross entropy between logits and class indices or probabilities.

    Parameters
    ----------
    weight : Tensor, shape (C,), optional
        Weight of each class.
    ignore_index : int, default: -100
        Target that does not count; only with class indices.
    reduction : {'mean', 'sum', 'none'}, default: 'mean'
        How the elements are combined.
    label_smoothing : float, default: 0.0
        Share of the probability that is spread over all classes.

    Examples
    --------
    >>> import ptcore
    >>> loss = ptcore.nn.CrossEntropyLoss()
    >>> round(loss(ptcore.zeros(1, 2), ptcore.tensor([1])).item(), 4)
    0.6931
    """

    _torch_later = (("label_smoothing", 0.0),)

    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                 label_smoothing=0.0):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input, target):
        """Loss of the logits `input`, shape (N, C, ...), against `target`."""
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class LinearCrossEntropyLoss(_WeightedLoss):
    """A linear layer and the cross entropy of its result.

    Parameters
    ----------
    in_features, num_classes : int
        Sizes of the layer.
    out_features : tuple of int, default: ()
        Further dims of the loss.
    bias : bool, default: False
        Whether the layer has one.
    reduction, weight, ignore_index, label_smoothing
        As for :class:`CrossEntropyLoss`.
    options : LinearCrossEntropyOptions, optional
        See :func:`ptcore.nn.functional.linear_cross_entropy`.

    Examples
    --------
    >>> import ptcore
    >>> loss = ptcore.nn.LinearCrossEntropyLoss(5, 3)
    >>> loss(ptcore.ones(2, 5), ptcore.tensor([0, 2])).shape
    ptcore.Size([])
    """

    def __init__(self, in_features, num_classes, *, out_features=(), bias=False, device=None, dtype=None,
                 reduction="mean", weight=None, ignore_index=None, label_smoothing=0.0, options=None):
        if weight is not None:
            checked.need_tensors("LinearCrossEntropyLoss", weight=weight)
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"LinearCrossEntropyLoss: weight must have shape [{num_classes}], got "
                               f"{list(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"LinearCrossEntropyLoss: label_smoothing must be in [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes, self.out_features = num_classes, out_features
        self.ignore_index, self.label_smoothing, self.options = ignore_index, label_smoothing, options
        # The layer's weight is a matrix; the loss gets it with all of its dims.
        self.linear = Linear(in_features, prod(out_features, start=num_classes), bias, device, dtype)

    def forward(self, input, target):
        """Loss of the layer's result for `input` against `target`."""
        from ptcore._ops.functions import linear_cross_entropy
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return linear_cross_entropy(
            input, self.linear.weight.reshape(*shape, self.linear.in_features), target,
            linear_bias=None if bias is None else bias.reshape(shape), weight=self.weight,
            reduction=self.reduction, ignore_index=self.ignore_index, label_smoothing=self.label_smoothing,
            options=self.options)

    def extra_repr(self):
        """Sizes and options."""
        return (f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
                f"out_features={self.out_features}, bias={self.linear.bias is not None}, reduction={self.reduction}, "
                f"ignore_index={self.ignore_index}, label_smoothing={self.label_smoothing}, options={self.options}")


class BCELoss(_WeightedLoss):
    """Binary cross entropy of probabilities.

    Parameters
    ----------
    weight : Tensor, optional
        A factor of each element's loss.
    reduction : {'mean', 'sum', 'none'}, default: 'mean'
        How the elements are combined.

    Examples
    --------
    >>> import ptcore
    >>> round(ptcore.nn.BCELoss()(ptcore.tensor([0.5]), ptcore.tensor([1.0])).item(), 4)
    0.6931
    """

    def forward(self, input, target):
        """Loss of the probabilities `input` against `target`, of the same shape."""
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of logits.

    Parameters
    ----------
    weight : Tensor, optional
        A factor of each element's loss.
    pos_weight : Tensor, optional
        A factor of the positive examples.
    reduction : {'mean', 'sum', 'none'}, default: 'mean'
        How the elements are combined.

    Examples
    --------
    >>> import ptcore
    >>> round(ptcore.nn.BCEWithLogitsLoss()(ptcore.zeros(1), ptcore.ones(1)).item(), 4)
    0.6931
    """

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input, target):
        """Loss of the logits `input` against `target`, of the same shape."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence of log-probabilities from target probabilities.

    Parameters
    ----------
    log_target : bool, default: False
        Whether the target holds logarithms; `reduction` may also be 'batchmean'.
    reduction : {'mean', 'sum', 'none'}, default: 'mean'
        How the elements are combined.

    Examples
    --------
    >>> import ptcore
    >>> p = ptcore.tensor([0.5, 0.5])
    >>> ptcore.nn.KLDivLoss(reduction="sum")(p.log(), p).item()
    0.0
    """

    _torch_later = (("log_target", False),)

    def __init__(self, size_average=None, reduce=None, reduction="mean", log_target=False):
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input, target):
        """Divergence of `input` from `target`, of the same shape."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class HuberLoss(_Loss):
    """Half the square of the error near 0, straight beyond `delta`.

    Parameters
    ----------
    delta : float, default: 1.0
        Where the pieces meet.
    reduction : {'mean', 'sum', 'none'}, default: 'mean'
        How the elements are combined.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.HuberLoss()(ptcore.zeros(1), ptcore.tensor([3.0])).item()
    2.5
    """

    def __init__(self, reduction="mean", delta=1.0):
        if not isinstance(delta, (float, int)):
            raise TypeError(f"HuberLoss: delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input, target):
        """Loss of `input` against `target`, of the same shape."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class SmoothL1Loss(_Loss):
    """The absolute error, with a parabola of half-width `beta` at 0.

    Parameters
    ----------
    beta : float, default: 1.0
        Where the pieces meet.
    reduction : {'mean', 'sum', 'none'}, default: 'mean'
        How the elements are combined.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.SmoothL1Loss()(ptcore.zeros(1), ptcore.tensor([3.0])).item()
    2.5
    """

    _torch_later = (("beta", 1.0),)

    def __init__(self, size_average=None, reduce=None, reduction="mean", beta=1.0):
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input, target):
        """Loss of `input` against `target`, of the same shape."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class SoftMarginLoss(_ReducedLoss):
    """``log(1 + exp(-target * input))`` for targets of -1 and 1.

    Parameters
    ----------
    reduction : {'mean', 'sum', 'none'}, default: 'mean'
        How the elements are combined.

    Examples
    --------
    >>> import ptcore
    >>> round(ptcore.nn.SoftMarginLoss()(ptcore.zeros(1), ptcore.ones(1)).item(), 4)
    0.6931
    """

    _function = F.soft_margin_loss


class HingeEmbeddingLoss(_Loss):
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1.

    Parameters
    ----------
    margin : float, default: 1.0
        The margin.
    reduction : {'mean', 'sum', 'none'}, default: 'mean'
        How the elements are combined.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.HingeEmbeddingLoss()(ptcore.tensor([0.25]), ptcore.tensor([-1.0])).item()
    0.75
    """

    def __init__(self, margin=1.0, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input, target):
        """Loss of the distances `input` against `target`, of the same shape."""
        return F.hinge_embedding_loss(input, target, self.margin, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """``max(0, -target * (input1 - input2) + margin)``.

    Parameters
    ----------
    margin : float, default: 0.0
        The margin.
    reduction : {'mean', 'sum', 'none'}, default: 'mean'
        How the elements are combined.

    Examples
    --------
    >>> import ptcore
    >>> a, b = ptcore.zeros(1), ptcore.ones(1)
    >>> ptcore.nn.MarginRankingLoss()(a, b, ptcore.ones(1)).item()
    1.0
    """

    def __init__(self, margin=0.0, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1, input2, target):
        """Loss of two scores; `target` is 1 where the first should be the larger, else -1."""
        return F.margin_ranking_loss(input1, input2, target, self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """``1 - cos`` for pairs that belong together, ``max(0, cos - margin)`` for others.

    Parameters
    ----------
    margin : float, default: 0.0
        The margin.
    reduction : {'mean', 'sum', 'none'}, default: 'mean'
        How the elements are combined.

    Examples
    --------
    >>> import ptcore
    >>> a = ptcore.tensor([[1.0, 0.0]])
    >>> ptcore.nn.CosineEmbeddingLoss()(a, a, ptcore.tensor([-1.0])).item()
    1.0
    """

    def __init__(self, margin=0.0, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1, input2, target):
        """Loss of two sets of vectors; `target` is 1 or -1 for each pair."""
        return F.cosine_embedding_loss(input1, input2, target, self.margin, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """``max(0, |anchor - positive| - |anchor - negative| + margin)``.

    Parameters
    ----------
    margin : float, default: 1.0
        The margin.
    p : float, default: 2.0
        The order of the norm.
    eps : float, default: 1e-6
        Keeps the gradient finite at equal vectors.
    swap : bool, default: False
        Whether the distance of the positive from the negative counts if it is smaller.
    reduction : {'mean', 'sum', 'none'}, default: 'mean'
        How the elements are combined.

    Examples
    --------
    >>> import ptcore
    >>> a, b = ptcore.zeros(1, 2), ptcore.ones(1, 2)
    >>> ptcore.nn.TripletMarginLoss()(a, a, a).item()
    1.0
    """

    def __init__(self, margin=1.0, p=2.0, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor, positive, negative):
        """Loss of three sets of vectors."""
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            self.margin,
            self.p,
            self.eps,
            self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """The triplet loss with a distance of your own.

    Parameters
    ----------
    distance_function : callable, optional
        Of two tensors; the Euclidean distance if None.
    margin : float, default: 1.0
        The margin.
    swap : bool, default: False
        Whether the distance of the positive from the negative counts if it is smaller.
    reduction : {'mean', 'sum', 'none'}, default: 'mean'
        How the elements are combined.

    Examples
    --------
    >>> import ptcore
    >>> loss = ptcore.nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(-1))
    >>> loss(ptcore.zeros(1, 2), ptcore.zeros(1, 2), ptcore.zeros(1, 2)).item()
    1.0
    """

    def __init__(self, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead"
            )
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor, positive, negative):
        """Loss of three sets of vectors."""
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class MultiMarginLoss(_WeightedLoss):
    """``sum_j max(0, margin - input[target] + input[j])**p / C`` over the other classes.

    Parameters
    ----------
    p : int, default: 1
        The power, 1 or 2.
    margin : float, default: 1.0
        The margin.
    weight : Tensor, shape (C,), optional
        Weight of each class.
    reduction : {'mean', 'sum', 'none'}, default: 'mean'
        How the elements are combined.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.MultiMarginLoss()(ptcore.zeros(1, 2), ptcore.tensor([0])).item()
    0.5
    """

    def __init__(self, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError(f"MultiMarginLoss: only p == 1 and p == 2 supported, got {p}")
        self.p = p
        self.margin = margin

    def forward(self, input, target):
        """Loss of the scores `input`, (N, C), against class indices, (N,)."""
        return F.multi_margin_loss(
            input, target, self.p, self.margin, self.weight, reduction=self.reduction
        )


class MultiLabelMarginLoss(_ReducedLoss):
    """The margin loss of several labels a sample.

    Parameters
    ----------
    reduction : {'mean', 'sum', 'none'}, default: 'mean'
        How the elements are combined.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.MultiLabelMarginLoss()(ptcore.zeros(1, 2), ptcore.tensor([[0, -1]])).item()
    0.5
    """

    _function = F.multilabel_margin_loss


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Binary cross entropy of logits, the mean over the classes.

    Parameters
    ----------
    weight : Tensor, shape (C,), optional
        Weight of each class.
    reduction : {'mean', 'sum', 'none'}, default: 'mean'
        How the elements are combined.

    Examples
    --------
    >>> import ptcore
    >>> loss = ptcore.nn.MultiLabelSoftMarginLoss()
    >>> round(loss(ptcore.zeros(1, 2), ptcore.ones(1, 2)).item(), 4)
    0.6931
    """

    def forward(self, input, target):
        """Loss of the logits `input` against `target`, both (N, C)."""
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class PoissonNLLLoss(_Loss):
    """Negative log likelihood of counts under a Poisson distribution.

    Parameters
    ----------
    log_input : bool, default: True
        Whether the input is the logarithm of the rate.
    full : bool, default: False
        Whether Stirling's term of the target is added.
    eps : float, default: 1e-8
        Added to the rate under the logarithm.
    reduction : {'mean', 'sum', 'none'}, default: 'mean'
        How the elements are combined.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.PoissonNLLLoss()(ptcore.zeros(1), ptcore.ones(1)).item()
    1.0
    """

    def __init__(self, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input, target):
        """Loss of rates against counts, of the same shape."""
        return F.poisson_nll_loss(
            log_input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class GaussianNLLLoss(_Loss):
    """Negative log likelihood under a normal distribution of given variance.

    Parameters
    ----------
    full : bool, default: False
        Whether the constant term is added.
    eps : float, default: 1e-6
        The smallest variance that counts.
    reduction : {'mean', 'sum', 'none'}, default: 'mean'
        How the elements are combined.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.GaussianNLLLoss()(ptcore.zeros(1), ptcore.ones(1), ptcore.ones(1)).item()
    0.5
    """

    def __init__(self, *, full=False, eps=1e-6, reduction="mean"):
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input, target, var):
        """Loss of the means `input` and variances `var` against `target`."""
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class CTCLoss(_Loss):
    """Connectionist temporal classification.

    Parameters
    ----------
    blank : int, default: 0
        The class of the blank.
    zero_infinity : bool, default: False
        Whether infinite losses and their gradients are zero.
    reduction : {'mean', 'sum', 'none'}, default: 'mean'
        How the elements are combined.

    Examples
    --------
    >>> import ptcore
    >>> log_probs = ptcore.full((4, 1, 2), 0.5).log()
    >>> loss = ptcore.nn.CTCLoss()(log_probs, ptcore.tensor([[1]]), [4], [1])
    >>> round(loss.item(), 4)
    0.47
    """

    def __init__(self, blank=0, reduction="mean", zero_infinity=False):
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs, targets, input_lengths, target_lengths):
        """Loss of `log_probs`, (T, N, C), against label sequences."""
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )
