"""Losses: each holds its options and calls the function of the same meaning in
:mod:`ptcore.nn.functional`."""

from ptcore.nn import functional as F
from ptcore.nn.modules.module import Module

__all__ = ["CrossEntropyLoss", "L1Loss", "MSELoss", "NLLLoss"]


def _reduction(name, size_average, reduce, reduction):
    """The option `reduction`, honouring the two older ones."""
    if size_average is not None or reduce is not None:
        import warnings

        mean = size_average is None or size_average
        if reduce is None or reduce:
            reduction = "mean" if mean else "sum"
        else:
            reduction = "none"
        warnings.warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{reduction}' instead.",
            stacklevel=3,
        )
    if reduction not in ("none", "mean", "sum"):
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


class _WeightedLoss(_Loss):
    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
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

    def forward(self, input, target):
        """Loss of `input` against `target`, of the same shape."""
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
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

    def forward(self, input, target):
        """Loss of `input` against `target`, of the same shape."""
        return F.mse_loss(input, target, reduction=self.reduction)


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

    def __init__(
        self,
        weight=None,
        size_average=None,
        ignore_index=-100,
        reduce=None,
        reduction="mean",
    ):
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

    def __init__(
        self,
        weight=None,
        size_average=None,
        ignore_index=-100,
        reduce=None,
        reduction="mean",
        label_smoothing=0.0,
    ):
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
