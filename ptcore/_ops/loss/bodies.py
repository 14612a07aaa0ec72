"""Bodies: losses."""
from ptcore._dtype import as_dtype, get_default_dtype
from ptcore._errors import ChoiceError, DeviceError, DTypeError, ShapeError, warn
from ptcore._ops import checked
from ptcore._ops.creation.creation import arange, full, zeros
from ptcore._ops.functions import (
    abs,
    absolute_difference,
    all,
    any,
    clamp_min,
    cross_entropy_of_bits,
    cross_entropy_of_logits,
    cross_entropy_stats,
    ctc_loss_stats,
    cumsum,
    exp,
    huber_of,
    index_select,
    linear,
    log,
    log_softmax,
    logsigmoid,
    masked_fill,
    mean,
    mean_of_terms,
    minimum,
    multi_margin,
    multilabel_margin,
    nll_loss_stats,
    reshape,
    slice,
    sqrt,
    squared_difference,
    sum,
    unsqueeze,
    where,
    xlogy,
)
from ptcore._ops.functions import cross_entropy as cross_entropy_op
from ptcore._ops.history import ValueCheck
from ptcore._ops.norm.bodies import pairwise_distance
from ptcore._ops.table.shapes import broadcast_shapes
from ptcore._state import is_history_recorded
from ptcore._tensor import Tensor

INT64, UINT8 = as_dtype("int64"), as_dtype("uint8")


# -- losses -------------------------------------------------------------------------------------

def _reduced(loss, reduction, total=None):
    """Reduces a loss; the mean is divided by ``total``, the sum of weights, if given."""
    if reduction == "none":
        return loss
    return sum(loss) if reduction == "sum" else mean_of_terms(loss) if total is None else sum(loss) / total


def _warn_of_broadcast(op, input, target):
    if input.shape != target.shape:
        broadcast_shapes(op, input.shape, target.shape)
        warn(f"{op}: target of shape {list(target.shape)} is broadcast against input of shape {list(input.shape)}; "
             "this is rarely meant")


def _broadcast(op, input, target):
    """input and target of a loss that broadcasts them: a 0-d tensor's dtype counts as much as the other's."""
    _warn_of_broadcast(op, input, target)
    if input.dtype is not target.dtype and not (input.ndim and target.ndim):
        if input.ndim:
            target = reshape(target, (1,))
        elif target.ndim:
            input = reshape(input, (1,))
    return input, target


def _same_shape(op, input, target):
    if input.shape != target.shape:
        raise ShapeError(f"{op}: target must have input's shape {list(input.shape)}, got {list(target.shape)}")


def _real(op, *tensors):
    for x in tensors:
        if x.dtype.kind != "f":
            raise DTypeError(f"{op}: inputs must be real floating-point, got {x.dtype.name}")


def _real_difference(op, input, target):
    """Checks two tensors; one may have an integer or bool dtype."""
    kinds = input.dtype.kind + target.dtype.kind
    if "c" in kinds or "f" not in kinds:
        _real(op, input, target)


def _optional(op, name, value):
    if value is not None and not isinstance(value, Tensor):
        checked.tensor(op, name, value)


def cross_entropy(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing):
    reduction = checked.reduction("cross_entropy", reduction, size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ChoiceError(f"cross_entropy: label_smoothing must be in [0, 1], got {label_smoothing}")
    if target.dtype.kind == "f":
        if ignore_index >= 0:
            raise RuntimeError("cross_entropy: ignore_index is not supported for floating point target, got "
                               f"{ignore_index}")
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing)
    _constant_weight("cross_entropy", weight)
    target = _labels(target)
    return cross_entropy_stats(input, target, weight, reduction, ignore_index, label_smoothing)[0]


def _labels(target):
    """Class indices as int64; files of labels hold them as uint8."""
    return target.to(INT64) if target.dtype is UINT8 else target


def _constant_weight(op, weight):
    """Raises if weight requires grad: a loss of class indices has no gradient by the weights of the classes."""
    _optional(op, "weight", weight)
    if weight is not None and weight.requires_grad and is_history_recorded():
        raise RuntimeError(f"{op}: the loss is not differentiable by weight, which must not require grad; detach() it")


def _soft_cross_entropy(input, target, weight, reduction, label_smoothing):
    """Cross entropy with class probabilities as the target."""
    if input.shape != target.shape:
        raise ShapeError(f"cross_entropy: probabilities must have input's shape {list(input.shape)}, got "
                         f"{list(target.shape)}")
    axis = 0 if input.ndim == 1 else 1
    if label_smoothing and input.shape[axis]:
        target = target * (1 - label_smoothing) + label_smoothing / input.shape[axis]
    terms = log_softmax(input, axis) * target
    if weight is not None:
        _optional("cross_entropy", "weight", weight)
        shape = [1] * input.ndim
        shape[axis] = -1
        terms = terms * reshape(weight, shape)
    loss = -sum(terms, axis)
    if reduction == "mean":
        return sum(loss) / loss.numel() if input.numel() else sum(loss) * float("nan")
    return _reduced(loss, reduction)


def nll_loss(input, target, weight, size_average, ignore_index, reduce, reduction):
    _constant_weight("nll_loss", weight)
    reduction = checked.reduction("nll_loss", reduction, size_average, reduce)
    return nll_loss_stats(input, _labels(target), weight, reduction, ignore_index)[0]


def mse_loss(input, target, size_average, reduce, reduction, weight):
    input, target = _broadcast("mse_loss", input, target)
    return _weighted("mse_loss", squared_difference(input, target), input, weight,
                     checked.reduction("mse_loss", reduction, size_average, reduce))


def l1_loss(input, target, size_average, reduce, reduction, weight):
    input, target = _broadcast("l1_loss", input, target)
    both = input.dtype.kind == target.dtype.kind == "f"
    loss = absolute_difference(input, target) if both else abs(input - target)
    return _weighted("l1_loss", loss, input, weight, checked.reduction("l1_loss", reduction, size_average, reduce))


def _weighted(op, loss, input, weight, reduction):
    """Reduces a loss times weights of the input's shape; the mean is divided by the sum of the weights."""
    if weight is None:
        return _reduced(loss, reduction)
    _optional(op, "weight", weight)
    if weight.shape != input.shape:
        raise ShapeError(f"{op}: weight must have input's shape {list(input.shape)}, got {list(weight.shape)}")
    return _reduced(loss * weight, reduction, sum(weight) if reduction == "mean" else None)


def smooth_l1_loss(input, target, size_average, reduce, reduction, beta):
    reduction = checked.reduction("smooth_l1_loss", reduction, size_average, reduce)
    input, target = _broadcast("smooth_l1_loss", input, target)
    if not beta >= 0:
        raise RuntimeError(f"smooth_l1_loss: beta must not be negative, got {beta}")
    _real_difference("smooth_l1_loss", input, target)
    loss = abs(input - target) if beta == 0 else huber_of(input, target, float(beta))
    return _reduced(loss if beta in (0, 1) else loss / beta, reduction)


def huber_loss(input, target, reduction, delta, weight):
    reduction = checked.reduction("huber_loss", reduction)
    input, target = _broadcast("huber_loss", input, target)
    _optional("huber_loss", "weight", weight)
    if not delta > 0:
        raise RuntimeError(f"huber_loss: delta must be positive, got {delta}")
    _real_difference("huber_loss", input, target)
    loss = huber_of(input, target, float(delta))
    if input.dtype.kind == "f":
        loss = loss.to(input.dtype)
    return _reduced(loss if weight is None else loss * weight, reduction)


def _like_loss(op, name, weight, loss):
    """A weight in the dtype of the loss, so that the loss keeps its dtype."""
    if weight.dtype.is_complex:
        raise DTypeError(f"{op}: {name} must be real, got {weight.dtype.name}")
    return weight.to(loss.dtype)


@ValueCheck
def check_unit(input):
    if not bool(all((input >= 0) & (input <= 1))):
        raise RuntimeError("binary_cross_entropy: all elements of input must be between 0 and 1")


def binary_cross_entropy(input, target, weight, size_average, reduce, reduction):
    op = "binary_cross_entropy"
    reduction = checked.reduction(op, reduction, size_average, reduce)
    if input.shape != target.shape:
        raise ShapeError(f"{op}: target must have input's shape {list(input.shape)}, got {list(target.shape)}")
    _real(op, input, target)
    _optional(op, "weight", weight)
    if input.numel():
        check_unit(input)
    loss = cross_entropy_of_bits(input, target)
    return _reduced(loss if weight is None else loss * _like_loss(op, "weight", weight, loss), reduction)


def binary_cross_entropy_with_logits(input, target, weight, size_average, reduce, reduction, pos_weight):
    op = "binary_cross_entropy_with_logits"
    reduction = checked.reduction(op, reduction, size_average, reduce)
    if input.shape != target.shape:
        raise ShapeError(f"{op}: target must have input's shape {list(input.shape)}, got {list(target.shape)}")
    _optional(op, "weight", weight)
    _optional(op, "pos_weight", pos_weight)
    _real(op, input)
    if pos_weight is None:
        loss = cross_entropy_of_logits(input, target)
        if target.dtype.kind == "f":
            loss = loss.to(target.dtype)
    else:
        broadcast_shapes(op, input.shape, pos_weight.shape)
        pos_weight = _like_loss(op, "pos_weight", pos_weight, input)
        loss = (1 - target) * input - (1 + (pos_weight - 1) * target) * logsigmoid(input)
    return _reduced(loss if weight is None else loss * _like_loss(op, "weight", weight, loss), reduction)


def kl_div(input, target, size_average, reduce, reduction, log_target):
    if not isinstance(reduction, str):
        checked.word("kl_div", "reduction", reduction, ("batchmean", "mean", "sum", "none"))
    if reduction == "mean" and size_average is None and reduce is None and input.ndim:
        warn("kl_div: reduction='mean' divides by the number of elements; 'batchmean' divides by the batch and is the "
             "divergence")
    batch = reduction == "batchmean"        # also with the older arguments, as in PyTorch
    older = size_average is not None or reduce is not None
    kind = "sum" if batch and not older else checked.reduction("kl_div", reduction, size_average, reduce)
    broadcast_shapes("kl_div", input.shape, target.shape)
    loss = exp(target) * (target - input) if log_target else xlogy(target, target) - target * input
    loss = _reduced(loss, kind)
    return loss / input.shape[0] if batch and input.ndim else loss


def poisson_nll_loss(input, target, log_input, full_terms, size_average, eps, reduce, reduction):
    op = "poisson_nll_loss"
    reduction = checked.reduction(op, reduction, size_average, reduce)
    broadcast_shapes(op, input.shape, target.shape)
    loss = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full_terms:                           # Stirling's term
        term = xlogy(target, target) - target + 0.5 * log(6.283185307179586 * clamp_min(target, 1))
        loss = loss + masked_fill(term, target <= 1, 0)
    return _reduced(loss, reduction)


@ValueCheck
def check_variance(var):
    if bool(any(var < 0)):
        raise ValueError("gaussian_nll_loss: var must not be negative")


def gaussian_nll_loss(input, target, var, full_terms, eps, reduction):
    op = "gaussian_nll_loss"
    reduction = checked.reduction(op, reduction)
    if not isinstance(var, Tensor):
        var = checked.real(op, "var", var)
        if var < 0:
            raise ValueError(f"{op}: var must not be negative, got {var}")
        var = full(input.shape, var, dtype=input.dtype, device=input.device)
    if var.shape != input.shape:
        if tuple(input.shape[:-1]) == tuple(var.shape):
            var = unsqueeze(var, -1)
        elif input.ndim != var.ndim or [n for m, n in zip(input.shape, var.shape) if m != n] != [1]:
            raise ValueError(f"{op}: var must have input's shape {list(input.shape)}, or be 1 in one dim, got "
                             f"{list(var.shape)}")
    check_variance(var)
    held = where(var >= eps, var, var - var.detach() + eps)     # at least eps, but with the gradient of var
    loss = 0.5 * (log(held) + (input - target) * (input - target) / held)
    if full_terms:
        loss = loss + 0.9189385332046727
    return _reduced(loss, reduction)


def soft_margin_loss(input, target, size_average, reduce, reduction):
    reduction = checked.reduction("soft_margin_loss", reduction, size_average, reduce)
    _real("soft_margin_loss", input)
    if tuple(broadcast_shapes("soft_margin_loss", input.shape, target.shape)) != tuple(input.shape):
        raise ShapeError(f"soft_margin_loss: target must broadcast to input's shape {list(input.shape)}, got "
                         f"{list(target.shape)}")
    return _reduced(-logsigmoid(target * input).to(input.dtype), reduction)


def hinge_embedding_loss(input, target, margin, size_average, reduce, reduction):
    reduction = checked.reduction("hinge_embedding_loss", reduction, size_average, reduce)
    broadcast_shapes("hinge_embedding_loss", input.shape, target.shape)
    far = masked_fill(clamp_min(margin - input, 0), target == 1, 0)
    near = masked_fill(input, target == -1, 0)
    return _reduced(far + near, reduction)


def margin_ranking_loss(input1, input2, target, margin, size_average, reduce, reduction):
    op = "margin_ranking_loss"
    reduction = checked.reduction(op, reduction, size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        raise ShapeError(f"{op}: all tensors must have equally many dimensions, got shapes {list(input1.shape)}, "
                         f"{list(input2.shape)} and {list(target.shape)}")
    return _reduced(clamp_min(-target * (input1 - input2) + margin, 0), reduction)


def cosine_embedding_loss(input1, input2, target, margin, size_average, reduce, reduction):
    op = "cosine_embedding_loss"
    reduction = checked.reduction(op, reduction, size_average, reduce)
    if target.ndim > 1 or input1.shape != input2.shape or input1.ndim != target.ndim + 1:
        raise ShapeError(f"{op}: inputs must be of one shape (N, D) or (D), and target of shape (N) or (), got "
                         f"{list(input1.shape)}, {list(input2.shape)} and {list(target.shape)}")
    if input1.dtype.kind == input2.dtype.kind == "b":
        input1, input2 = input1.to(get_default_dtype()), input2.to(get_default_dtype())
    squares = (sum(input1 * input1, -1) + 1e-12) * (sum(input2 * input2, -1) + 1e-12)
    likeness = sum(input1 * input2, -1) / sqrt(squares)
    near = masked_fill(1 - likeness, target != 1, 0)
    far = masked_fill(clamp_min(likeness - margin, 0), target != -1, 0)
    return _reduced(near + far, reduction)


def triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, size_average, reduce, reduction):
    op = "triplet_margin_loss"
    reduction = checked.reduction(op, reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"{op}: margin must be positive, got {margin}")

    def distance(a, b):
        return pairwise_distance(a, b, p, eps, False)

    return _triplet(op, anchor, positive, negative, distance, margin, swap, reduction)


def triplet_margin_with_distance_loss(anchor, positive, negative, distance_function, margin, swap, reduction):
    op = "triplet_margin_with_distance_loss"
    reduction = checked.reduction(op, reduction)
    if margin <= 0:
        raise ValueError(f"{op}: margin must be positive, got {margin}")
    if distance_function is None:
        def distance_function(a, b):
            return pairwise_distance(a, b, 2.0, 1e-6, False)
    elif not callable(distance_function):
        raise TypeError(f"{op}: distance_function must be callable, got {type(distance_function).__name__}")
    return _triplet(op, anchor, positive, negative, distance_function, margin, swap, reduction)


def _triplet(op, anchor, positive, negative, distance, margin, swap, reduction):
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ShapeError(f"{op}: all tensors must have equally many dimensions, got shapes {list(anchor.shape)}, "
                         f"{list(positive.shape)} and {list(negative.shape)}")
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return _reduced(clamp_min(margin + near - far, 0), reduction)


def _classes(op, input, target):
    """input as (N, C) and the targets for it, also from (C) and ()."""
    if not input.ndim:
        return reshape(input, (1, 1)), 1
    if input.ndim > 2 or not input.shape[-1]:
        raise ShapeError(f"{op}: input must have shape (C) or (N, C), got {list(input.shape)}")
    return (input if input.ndim == 2 else unsqueeze(input, 0)), input.shape[-1]


def multi_margin_loss(input, target, p, margin, weight, size_average, reduce, reduction):
    op = "multi_margin_loss"
    reduction = checked.reduction(op, reduction, size_average, reduce)
    _constant_weight(op, weight)
    _real(op, input)
    if p not in (1, 2):
        raise ValueError(f"{op}: p must be 1 or 2, got {p}")
    x, classes = _classes(op, input, target)
    if weight is not None and weight.ndim != 1:
        raise ValueError(f"{op}: weight must be a vector, got shape {list(weight.shape)}")
    if weight is not None and tuple(weight.shape) != (classes,):
        raise ShapeError(f"{op}: weight must have shape [{classes}], got {list(weight.shape)}")
    if target.dtype is not INT64 or target.numel() != x.shape[0]:
        raise RuntimeError(f"{op}: target must hold an int64 class for each of {x.shape[0]} rows, got "
                           f"{target.dtype.name} of shape {list(target.shape)}")
    if weight is not None and weight.dtype is not x.dtype:
        raise DTypeError(f"{op}: weight must have input's dtype {x.dtype.name}, got {weight.dtype.name}")
    loss = multi_margin(x, target if target.ndim == 1 else reshape(target, (-1,)), weight, int(p), margin)
    return _reduced(loss if input.ndim == 2 and target.ndim else reshape(loss, target.shape), reduction)


def multilabel_margin_loss(input, target, size_average, reduce, reduction):
    op = "multilabel_margin_loss"
    reduction = checked.reduction(op, reduction, size_average, reduce)
    _real(op, input)
    _same_shape(op, input, target)
    if target.dtype is not INT64:
        raise DTypeError(f"{op}: target must be int64, got {target.dtype.name}")
    x, _ = _classes(op, input, target)
    loss = multilabel_margin(x, target if input.ndim == 2 else reshape(target, x.shape))
    return _reduced(loss if input.ndim == 2 else reshape(loss, ()), reduction)


def multilabel_soft_margin_loss(input, target, weight, size_average, reduce, reduction):
    op = "multilabel_soft_margin_loss"
    reduction = checked.reduction(op, reduction, size_average, reduce)
    _optional(op, "weight", weight)
    _real(op, input)
    broadcast_shapes(op, input.shape, target.shape)
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    if input.ndim:                      # a loss may have more dims than input: those of target
        loss = sum(loss, input.ndim - 1) / input.shape[-1]
    return _reduced(loss, reduction)


# -- connectionist temporal classification ------------------------------------------------------------
def _lengths(op, name, lengths, n, device):
    if isinstance(lengths, (tuple, list)):
        from ptcore._exchange.convert import tensor
        lengths = tensor(checked.integers(op, name, lengths), dtype=INT64, device=device)
    if not isinstance(lengths, Tensor) or lengths.dtype.kind not in "iu":
        raise TypeError(f"{op}: {name} must be integers, got "
                        f"{lengths.dtype.name if isinstance(lengths, Tensor) else type(lengths).__name__}")
    if lengths.numel() != n:
        raise ShapeError(f"{op}: {name} must have a length for each of {n} sequences, got shape "
                         f"{list(lengths.shape)}")
    return reshape(_beside(lengths, device), (n,))


def _beside(numbers, device):
    """Labels and lengths may be on another device, as in PyTorch."""
    if device.type == "meta" or numbers.is_meta:
        return numbers.to(INT64)
    return numbers.to(device, INT64)


@ValueCheck
def check_labels(targets, classes):
    if int(targets.min()) < 0 or int(targets.max()) >= classes:
        raise RuntimeError(f"ctc_loss: targets must be in [0, {classes - 1}], got {int(targets.min())} to "
                           f"{int(targets.max())}")


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    """Makes targets rows padded with blanks; the op sums over alignments."""
    op = "ctc_loss"
    reduction = checked.reduction(op, reduction)
    _real(op, log_probs)
    if log_probs.ndim not in (2, 3):
        raise ShapeError(f"{op}: log_probs must have shape (T, N, C) or (T, C), got {list(log_probs.shape)}")
    single = log_probs.ndim == 2
    if single:
        log_probs = unsqueeze(log_probs, 1)
    steps, n, classes = log_probs.shape
    for name, x in (("targets", targets), ("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if getattr(x, "is_meta", False) and not log_probs.is_meta:
            raise DeviceError(f"{op}: {name} must be on the device of log_probs, {log_probs.device}, got meta")
    if targets.dtype.kind not in "iu" or targets.ndim not in (1, 2):
        raise ShapeError(f"{op}: targets must be integers of shape (N, S) or (S), got {targets.dtype.name} of shape "
                         f"{list(targets.shape)}")
    if not 0 <= blank < classes:
        raise RuntimeError(f"{op}: blank must be in [0, {classes - 1}], got {blank}")
    input_lengths = _lengths(op, "input_lengths", input_lengths, n, log_probs.device)
    target_lengths = _lengths(op, "target_lengths", target_lengths, n, log_probs.device)
    if input_lengths.is_meta or target_lengths.is_meta or targets.is_meta:
        loss = sum(log_probs, (0, 2))               # right in shape; the recursion would need the lengths' values
        if reduction != "none":
            return mean(loss) if reduction == "mean" else sum(loss)
        return reshape(loss, ()) if single else loss
    if n and (int(input_lengths.max()) > steps or int(input_lengths.min()) < 0 or int(target_lengths.min()) < 0):
        raise RuntimeError(f"{op}: input_lengths must be in [0, {steps}] and target_lengths not negative, got "
                           f"{input_lengths.tolist()} and {target_lengths.tolist()}")
    targets, longest = _beside(targets, log_probs.device), int(target_lengths.max()) if n else 0
    place = arange(longest, device=targets.device)
    inside = unsqueeze(place, 0) < unsqueeze(target_lengths, 1)
    if targets.ndim == 1 and not (single and n == 1):
        if int(sum(target_lengths)) > targets.numel():
            raise RuntimeError(f"{op}: targets must have {int(sum(target_lengths))} elements, got {targets.numel()}")
        start = cumsum(target_lengths, 0) - target_lengths
        where_ = masked_fill(unsqueeze(start, 1) + place, ~inside, 0)
        padded = reshape(index_select(targets, 0, reshape(where_, (-1,))), where_.shape) if longest else \
            zeros((n, 0), dtype=INT64, device=targets.device)
    else:
        rows = reshape(targets, (n, -1))
        if rows.shape[1] < longest:
            raise RuntimeError(f"{op}: targets must have {longest} columns, got shape {list(targets.shape)}")
        padded = slice(rows, 1, 0, longest, 1)
    padded = masked_fill(padded, ~inside, blank)
    if padded.numel():
        check_labels(padded, classes)
    loss = ctc_loss_stats(log_probs, padded, input_lengths, target_lengths, blank)[0]
    if zero_infinity:
        loss = masked_fill(loss, loss == float("inf"), 0)
    if reduction == "mean":
        return mean(loss / clamp_min(target_lengths, 1).to(loss.dtype))
    if reduction == "sum":
        return sum(loss)
    return reshape(loss, ()) if single else loss


def linear_cross_entropy(input, linear_weight, target, linear_bias, weight, reduction, ignore_index, label_smoothing,
                         options):
    op = "linear_cross_entropy"
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
    return cross_entropy_op(logits.unflatten(-1, sizes), target, weight, reduction=reduction,
                            ignore_index=ignore_index, label_smoothing=label_smoothing)
