"""Tensors with masked-out elements: reductions and normalisations over the other elements, and :class:`MaskedTensor`, a
tensor with its mask. A mask is a bool tensor: True marks the elements that count."""
from ptcore.masked import _calls
from ptcore.masked._normalizations import (
    cumprod,
    cumsum,
    log_softmax,
    normalize,
    softmax,
    softmin,
)
from ptcore.masked._reductions import (
    amax,
    amin,
    argmax,
    argmin,
    logaddexp,
    logsumexp,
    mean,
    median,
    norm,
    prod,
    std,
    sum,
    var,
)
from ptcore.masked._tensor import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

__all__ = ["MaskedTensor", "amax", "amin", "argmax", "argmin", "as_masked_tensor", "cumprod", "cumsum",
           "is_masked_tensor", "log_softmax", "logaddexp", "logsumexp", "masked_tensor", "mean", "median", "norm",
           "normalize", "prod", "softmax", "softmin", "std", "sum", "var"]
