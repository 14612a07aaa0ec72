"""Bodies: softmax and normalisation over dims."""
from cython.cimports.ptcore._ops._common import wrap_dim

from ptcore._dtype import bfloat16, float16, float32
from ptcore._errors import DTypeError, ShapeError, warn
from ptcore._ops import checked
from ptcore._ops.creation.creation import empty, empty_like, full, zeros_like
from ptcore._ops.functions import (
    group_norm_stats,
    layer_norm_stats,
    log_softmax,
    rsqrt,
    scatter_src,
    softmax,
)
from ptcore._ops.normalize.functions import (
    check_channels,
    check_input,
    like_input,
    need_statistics,
    normalized,
    of_batch,
)


def softmin(input, dim, _stacklevel, dtype):
    if dim is None:
        dim = 0 if input.ndim in (0, 1, 3) else 1
    return softmax(-input, wrap_dim("softmin", dim, input.ndim), dtype=dtype)


def _implicit_dim(op, dim, input):
    """The dim of PyTorch's first years where none is given."""
    if dim is None:
        warn(f"{op}: the implicit dim is deprecated; pass dim")
        return 0 if input.ndim in (0, 1, 3) else 1
    return dim


def softmax_function(input, dim, _stacklevel, dtype):
    return softmax(input, _implicit_dim("softmax", dim, input), dtype)


def log_softmax_function(input, dim, _stacklevel, dtype):
    return log_softmax(input, _implicit_dim("log_softmax", dim, input), dtype)


def layer_norm(input, normalized_shape, weight, bias, eps):
    n = _normalized_dims("layer_norm", input, normalized_shape)
    try:
        return layer_norm_stats(input, weight, bias, n, eps)[0]
    except DTypeError:
        # Half inputs beside parameters of float32, as under autocast, are computed in float32.
        if input.dtype not in (float16, bfloat16) or any([t is not None and t.dtype is not float32
                                                          for t in (weight, bias)]):
            raise
    return layer_norm_stats(input.to(float32), weight, bias, n, eps)[0].to(input.dtype)


def _normalized_dims(op, input, normalized_shape):
    """How many dims are normalised."""
    shape = checked.integers(op, "normalized_shape", normalized_shape)
    n = len(shape)
    if n == 0 or n > input.ndim or input.shape[input.ndim - n:] != tuple(shape):
        raise ShapeError(f"{op}: the last sizes of input must be normalized_shape {shape}, got shape "
                         f"{list(input.shape)}")
    return n


def gumbel_softmax(logits, tau, hard, eps, dim):
    if logits.dtype.kind != "f":
        raise DTypeError(f"gumbel_softmax: logits must be real floating-point, got {logits.dtype.name}")
    dim = wrap_dim("gumbel_softmax", dim, logits.ndim)
    noise = -empty_like(logits).exponential_().log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    best = soft.argmax(dim, True)
    one = full(best.shape, 1, dtype=logits.dtype, device=logits.device)
    return scatter_src(zeros_like(soft).detach(), dim, best, one) - soft.detach() + soft


# -- with what they are normalised by --------------------------------------------------------------
def _kept(like, *statistics):
    """Statistics as they are handed out: without history, in the dtype of what is normalised."""
    return [x.detach().to(like.dtype) for x in statistics]


def native_layer_norm(input, normalized_shape, weight, bias, eps):
    n = _normalized_dims("native_layer_norm", input, normalized_shape)
    out, mean, rstd = layer_norm_stats(input, weight, bias, n, eps)
    return out, *_kept(input if weight is None else weight, mean, rstd)


def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    op = "native_group_norm"
    check_input(op, input)
    check_channels(op, input, weight=weight, bias=bias)
    if input.shape[0] != N or input.shape[1] != C or input.numel() != N * C * HxW:
        raise ShapeError(f"{op}: input must have {N} samples of {C} channels with {HxW} positions, got shape "
                         f"{list(input.shape)}")
    weight, bias = like_input(input, weight, bias)
    out, mean, rstd = group_norm_stats(input, weight, bias, group, eps)
    dtype = input.dtype if weight is None else weight.dtype
    return out, mean.to(dtype), rstd.to(dtype)


def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    op = "native_batch_norm"
    check_input(op, input)
    check_channels(op, input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    weight, bias = like_input(input, weight, bias)
    if not training:
        need_statistics(op, running_mean, running_var)
        none = empty(0, dtype=input.dtype, device=input.device)
        return normalized(input, running_mean, running_var, weight, bias, eps), none, none
    out, mean, var = of_batch(input, weight, bias, running_mean, running_var, momentum, eps)
    return out, *_kept(input, mean, rsqrt(var.detach() + eps))
