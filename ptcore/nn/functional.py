"""Functions of neural networks. Elementwise ones are the compiled ops themselves."""
from ptcore._errors import ChoiceError, ShapeError
from ptcore._names.functional import *
from ptcore._ops._shapes import broadcast_shapes as _broadcast_shapes
from ptcore._ops.functions import cross_entropy_stats as _cross_entropy_stats
from ptcore._ops.functions import dropout_masked as _dropout_masked
from ptcore._ops.functions import layer_norm_stats as _layer_norm_stats
from ptcore._ops.functions import log_softmax as _log_softmax
from ptcore._ops.functions import nll_loss_stats as _nll_loss_stats
from ptcore._ops.functions import sigmoid as sigmoid
from ptcore._ops.functions import softmax as _softmax
from ptcore._ops.functions import tanh as tanh
from ptcore._tensor import Tensor
from ptcore.nn._attention import *
from ptcore.nn._normalization import *
from ptcore.nn._variants import *


def _need_tensors(op, **arguments):
    for name, value in arguments.items():
        if not hasattr(value, "shape"):
            raise TypeError(f"{op}: {name} must be a Tensor, got {type(value).__name__}")


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """``exp(input) / sum(exp(input))`` along ``dim``.

    Parameters
    ----------
    input : Tensor
    dim : int
    dtype : dtype, optional

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.functional.softmax(ptcore.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    return _softmax(input, _implicit_dim("softmax", input, dim), dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """``log(softmax(input))`` along ``dim``, without overflow."""
    return _log_softmax(input, _implicit_dim("log_softmax", input, dim), dtype=dtype)


def _implicit_dim(name, input, dim):
    _need_tensors(name, input=input)
    if dim is None:
        import warnings
        warnings.warn(f"{name}: the implicit dim is deprecated; pass dim", stacklevel=3)
        return 0 if input.ndim in (0, 1, 3) else 1
    return dim


def dropout(input, p=0.5, training=True, inplace=False):
    """Zeroes elements with probability ``p`` and scales the others by ``1 / (1 - p)``.

    Raises
    ------
    ValueError
        If ``p`` is outside [0, 1].

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.functional.dropout(ptcore.ones(3), training=False)
    tensor([1., 1., 1.])
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout: p must be in [0, 1], got {p}")
    if not training or p == 0:
        return input
    out = _dropout_masked(input, float(p), None)[0]
    return input.copy_(out) if inplace else out


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last dims.

    Parameters
    ----------
    input : Tensor
        Shape ``(*, *normalized_shape)``.
    normalized_shape : int or sequence of ints
    weight, bias : Tensor, optional
        Shape ``normalized_shape``.
    eps : float

    Raises
    ------
    ShapeError
        If the last sizes of input are not ``normalized_shape``.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.functional.layer_norm(ptcore.tensor([[1., 3.]]), (2,))
    tensor([[-1.0000,  1.0000]])
    """
    _need_tensors("layer_norm", input=input)
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    n = len(shape)
    if n == 0 or tuple(input.shape[input.ndim - n:]) != shape or n > input.ndim:
        raise ShapeError(f"layer_norm: the last sizes of input must be normalized_shape "
                         f"{list(shape)}, got shape {list(input.shape)}")
    return _layer_norm_stats(input, weight, bias, n, float(eps))[0]


def _reduction(name, reduction, size_average, reduce):
    if size_average is not None or reduce is not None:
        if reduce is False:
            return "none"
        return "mean" if size_average in (None, True) else "sum"
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{name}: reduction must be one of 'none', 'mean', 'sum', got "
                         f"{reduction!r}")
    return reduction


def _reduced(loss, reduction):
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
                  reduction="mean", label_smoothing=0.0):
    """Cross entropy between logits and class indices or class probabilities.

    Parameters
    ----------
    input : Tensor
        Logits of shape ``(C)``, ``(N, C)`` or ``(N, C, d1, ...)``.
    target : Tensor
        int64 class indices of shape ``()``, ``(N)`` or ``(N, d1, ...)``, or probabilities of
        input's shape.
    weight : Tensor, optional
        A weight for each class, shape ``(C)``.
    ignore_index : int
        Targets of this value do not count.
    reduction : {"mean", "sum", "none"}
    label_smoothing : float
        Share of the target spread evenly over the classes, in [0, 1].

    Raises
    ------
    ShapeError
        If the shapes do not agree.
    IndexError
        If a class index is out of range.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.functional.cross_entropy(ptcore.zeros(1, 2), ptcore.tensor([0]))
    tensor(0.6931)
    """
    _need_tensors("cross_entropy", input=input)
    if not isinstance(target, Tensor):
        raise TypeError(f"cross_entropy: target must be a Tensor, got {type(target).__name__}")
    reduction = _reduction("cross_entropy", reduction, size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ChoiceError(f"cross_entropy: label_smoothing must be in [0, 1], got "
                          f"{label_smoothing}")
    if target.is_floating_point():
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing)
    return _cross_entropy_stats(input, target, weight, reduction, ignore_index,
                               float(label_smoothing))[0]


def _soft_cross_entropy(input, target, weight, reduction, label_smoothing):
    if input.shape != target.shape:
        raise ShapeError(f"cross_entropy: probabilities must have input's shape "
                         f"{list(input.shape)}, got {list(target.shape)}")
    axis = 0 if input.ndim == 1 else 1
    if label_smoothing and input.shape[axis]:
        target = target * (1 - label_smoothing) + label_smoothing / input.shape[axis]
    terms = _log_softmax(input, axis) * target
    if weight is not None:
        _need_tensors("cross_entropy", weight=weight)
        shape = [1] * input.ndim
        shape[axis] = -1
        terms = terms * weight.view(shape)
    loss = -terms.sum(axis)
    if reduction == "mean":
        return loss.sum() / loss.numel() if input.numel() else loss.sum() * float("nan")
    return _reduced(loss, reduction)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
             reduction="mean"):
    """Negative log-likelihood: ``-weight[target] * input[target]`` of log-probabilities.

    Shapes as in ``cross_entropy``.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.functional.nll_loss(ptcore.tensor([[-1., -2.]]), ptcore.tensor([1]))
    tensor(2.)
    """
    reduction = _reduction("nll_loss", reduction, size_average, reduce)
    return _nll_loss_stats(input, target, weight, reduction, ignore_index)[0]


def _check_same(name, input, target):
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}: input must be a Tensor, got {type(input).__name__}")
    _need_tensors(name, target=target)
    if input.shape != target.shape:
        import warnings
        _broadcast_shapes(name, input.shape, target.shape)       # raises if they do not
        warnings.warn(f"{name}: target of shape {list(target.shape)} is broadcast against input "
                      f"of shape {list(input.shape)}; this is rarely meant", stacklevel=3)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Mean of ``(input - target)**2`` (or the sum, or each element).

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.functional.mse_loss(ptcore.tensor([1., 2.]), ptcore.tensor([1., 4.]))
    tensor(2.)
    """
    _check_same("mse_loss", input, target)
    d = input - target
    return _weighted("mse_loss", d * d, input, weight, _reduction("mse_loss", reduction, size_average, reduce))


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Mean of ``abs(input - target)`` (or the sum, or each element), weighted if ``weight`` is given.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.functional.l1_loss(ptcore.tensor([1., 2.]), ptcore.tensor([1., 4.]), weight=ptcore.tensor([1., 3.]))
    tensor(1.5000)
    """
    _check_same("l1_loss", input, target)
    return _weighted("l1_loss", (input - target).abs(), input, weight,
                     _reduction("l1_loss", reduction, size_average, reduce))


def _weighted(op, loss, input, weight, reduction):
    """A loss times weights of the input's shape; its mean is divided by their sum."""
    if weight is None:
        return _reduced(loss, reduction)
    _need_tensors(op, weight=weight)
    if weight.shape != input.shape:
        raise ShapeError(f"{op}: weight must have input's shape {list(input.shape)}, got {list(weight.shape)}")
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else _reduced(loss, reduction)
