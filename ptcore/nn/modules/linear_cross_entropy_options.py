"""How ``linear_cross_entropy`` works through a batch piece by piece."""
import dataclasses

import ptcore
from ptcore._ops.functions import cat, cross_entropy, linear, where

_POLICIES = ("auto", "accurate", "balanced", "compact")


@dataclasses.dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """Work through the samples of :func:`ptcore.nn.functional.linear_cross_entropy` in pieces.

    The logits of only one piece exist at a time, in the forward and in the backward, which computes them again. That
    saves memory if there are many more classes than features.

    Parameters
    ----------
    allow_retain_graph : bool
        Taken as PyTorch's; here a second backward pass of a retained graph always works.
    batch_chunk_size : int, optional
        How many samples a piece has.
    chunking_method : str, optional
        "aspect_ratio:N" makes logits of about 1 / N the size of the input, "aspect_ratio" means N = 1, "auto" chooses.
        None takes `batch_chunk_size`, and a single piece without one.
    acc_policy : {"auto", "accurate", "balanced", "compact"}
        Taken as PyTorch's; sums over pieces are made in `acc_dtype`.
    acc_dtype : dtype, optional
        In which logits, losses and gradients are computed; float32 of half types if None.

    Raises
    ------
    ValueError
        If a setting is none of those.

    Examples
    --------
    >>> import ptcore
    >>> options = ptcore.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    >>> x, w = ptcore.zeros(5, 3), ptcore.ones(2, 3)
    >>> ptcore.nn.functional.linear_cross_entropy(x, w, ptcore.tensor([0, 1, 1, 0, 1]), options=options)
    tensor(0.6931)
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: object = None

    def __post_init__(self):
        op = "LinearCrossEntropyOptions"
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"{op}: acc_policy must be one of {', '.join(_POLICIES)}, got {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto"):
            name, _, factor = str(self.chunking_method).partition(":")
            if name != "aspect_ratio" or not (factor or "1").isdigit() or int(factor or "1") < 1:
                raise ValueError(f"{op}: chunking_method must be 'auto', 'aspect_ratio', 'aspect_ratio:N' or None, got "
                                 f"{self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and (not isinstance(size, int) or size < 1):
            raise ValueError(f"{op}: batch_chunk_size must be a positive int or None, got {size!r}")
        if self.acc_dtype not in (None, ptcore.float16, ptcore.bfloat16, ptcore.float32, ptcore.float64):
            raise ValueError(f"{op}: acc_dtype must be a floating-point dtype or None, got {self.acc_dtype!r}")

    def rows(self, samples, features, classes, dtype):
        """How many samples a piece has."""
        method = self.chunking_method
        if method == "auto":
            method = None if self.batch_chunk_size else "aspect_ratio" if dtype.itemsize == 2 else "aspect_ratio:2"
        if method is None:
            return min(self.batch_chunk_size or samples, samples) or 1
        factor = int(method.partition(":")[2] or "1")
        target = -(-samples // max(-(-classes // max(features, 1)), 1))
        rows = max(min((1 << max(target - 1, 0).bit_length()) // factor, samples), 1)
        if self.batch_chunk_size not in (None, rows):
            raise ValueError(f"LinearCrossEntropyOptions: batch_chunk_size {self.batch_chunk_size} and chunking_method "
                             f"{method!r}, which gives {rows}, must agree; give one of them")
        return rows

    def in_pieces(self, input, linear_weight, target, linear_bias, weight, reduction, ignore_index, label_smoothing):
        """The loss by pieces of the batch; ``linear_weight`` is a matrix, ``target`` holds class indices."""
        from ptcore.utils.checkpoint import checkpoint
        single, given = input.ndim == 1, input.dtype
        if single:
            input, target = input.unsqueeze(0), target.unsqueeze(0)
        dtype = self.acc_dtype or (given if given.itemsize > 2 else ptcore.float32)
        x, matrix = input.to(dtype), linear_weight.to(dtype)
        bias = None if linear_bias is None else linear_bias.to(dtype)
        share = None if weight is None else weight.to(dtype)
        each = "none" if reduction == "none" else "sum"
        read = [t for t in (x, matrix, bias, target, share) if t is not None and not t.is_inference()]
        versions = [t._version for t in read]

        def piece(i):
            if versions != [t._version for t in read]:      # the backward would compute with other values
                raise RuntimeError("linear_cross_entropy: one of the variables needed for gradient computation has "
                                   "been modified by an inplace operation: an argument was written to after the call; "
                                   "clone() it before the call, or write to a copy")
            return cross_entropy(linear(x[i:i + rows], matrix, bias), target[i:i + rows], share, reduction=each,
                                 ignore_index=ignore_index, label_smoothing=label_smoothing)

        rows = self.rows(x.shape[0], *linear_weight.shape[::-1], given)
        losses = [checkpoint(piece, i, use_reentrant=False) for i in range(0, x.shape[0], rows)]
        if reduction == "none":
            loss = cat(losses) if losses else x.new_zeros((0,))
            return (loss[0] if single else loss).to(given)
        total = sum(losses, start=x.new_zeros(()))
        if reduction == "mean":
            counted = target != ignore_index
            total = total / (counted.sum() if share is None else where(
                counted, share[where(counted, target, 0)], 0).sum())
        return total.to(given)
