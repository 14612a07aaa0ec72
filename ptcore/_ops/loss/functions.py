"""Losses made of others."""
from ptcore._ops.call.offer import overridable
from ptcore._ops.functions import cross_entropy, linear
from ptcore._tensor import Tensor


@overridable
def linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None, reduction="mean",
                         ignore_index=None, label_smoothing=0.0, options=None):
    """:func:`ptcore.nn.functional.cross_entropy` of the logits ``input @ linear_weight.T + linear_bias``.

    Parameters
    ----------
    input : Tensor
        Samples ``(N, features)`` or one ``(features)``.
    linear_weight : Tensor
        Shape ``(C, features)``, or ``(C, d1, ..., features)`` for a loss of several dims.
    target, weight, reduction, label_smoothing
        As for ``cross_entropy``.
    linear_bias : Tensor, optional
        Shape ``(C)`` or ``(C, d1, ...)``.
    ignore_index : int, optional
        Class index that does not count, -100 unless given.
    options : LinearCrossEntropyOptions, optional
        Has the samples worked through in pieces, if `linear_weight` is a matrix and `target` holds class indices; else,
        and without options, the logits are made as a whole.

    Examples
    --------
    >>> import ptcore
    >>> x, w = ptcore.zeros(1, 3), ptcore.ones(2, 3)
    >>> ptcore.nn.functional.linear_cross_entropy(x, w, ptcore.tensor([0]))
    tensor(0.6931)
    """
    op = "linear_cross_entropy"
    for name, x in (("input", input), ("linear_weight", linear_weight), ("target", target)):
        if not isinstance(x, Tensor):
            raise TypeError(f"{op}: {name} must be a Tensor, got {type(x).__name__}")
    if options is not None and not hasattr(options, "in_pieces"):
        raise TypeError(f"{op}: options must be LinearCrossEntropyOptions or None, got {type(options).__name__}")
    if input.ndim not in (1, 2) or linear_weight.ndim < 2 or (linear_weight.ndim > 2 and input.ndim == 1):
        raise RuntimeError(f"{op}: input must be (N, features), or (features) of a linear_weight of 2 dims, got shapes "
                           f"{list(input.shape)} and {list(linear_weight.shape)}")
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(f"{op}: input and linear_weight must have one number of features, got {input.shape[-1]} and "
                           f"{linear_weight.shape[-1]}")
    sizes = linear_weight.shape[:-1]
    if linear_bias is not None and linear_bias.shape != sizes:
        raise RuntimeError(f"{op}: linear_bias must have shape {list(sizes)}, got {list(linear_bias.shape)}")
    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError(f"{op}: ignore_index goes with class indices, got a target of probabilities")
    ignore_index = -100 if ignore_index is None else ignore_index
    if options is not None and linear_weight.ndim == 2 and (
            target.dtype.kind in "iu" and target.shape == input.shape[:-1]):
        return options.in_pieces(input, linear_weight, target, linear_bias, weight, reduction, ignore_index,
                                 label_smoothing)
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = linear(input, linear_weight.reshape(-1, linear_weight.shape[-1]), bias)
    return cross_entropy(logits.unflatten(-1, sizes), target, weight, reduction=reduction,
                         ignore_index=ignore_index, label_smoothing=label_smoothing)
