"""Bodies: softmax and normalisation over dims."""
import cython
from cython.cimports.ptcore._dtype import CATEGORY
from cython.cimports.ptcore._ops._common import wrap_dim
from cython.cimports.ptcore._tensor import Tensor as TensorC
from cython.cimports.ptcore._types import PT_INTERPOSED, pt_tls

from ptcore._dtype import bfloat16, finfo, float16, float32
from ptcore._errors import DTypeError, ShapeError, warn
from ptcore._ops import checked
from ptcore._ops.creation.creation import empty, full, zeros_like
from ptcore._ops.functions import (
    batch_norm_given,
    batch_norm_stats,
    cat,
    clone,
    div,
    group_norm_stats,
    layer_norm_stats,
    log_softmax,
    random_exponential,
    rms_norm_stats,
    rsqrt,
    scatter_src,
    softmax,
    where,
)
from ptcore._ops.functions import std as std_of
from ptcore._ops.normalize.decompositions import batch_norm_given as given_by_ops
from ptcore._ops.normalize.decompositions import instance_norm_writes
from ptcore._ops.table.shapes import stat_dtype
from ptcore._state import no_grad


def softmin(input, dim, _stacklevel, dtype):
    if dim is None:
        dim = 0 if input.ndim in (0, 1, 3) else 1
    return softmax(-input, wrap_dim("softmin", dim, input.ndim), dtype=dtype)


def _implicit_dim(op, dim, input):
    """The implicit dim of PyTorch's first releases if no dim is given."""
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
        # Half inputs with float32 parameters, as under autocast, are computed in float32.
        if input.dtype not in (float16, bfloat16) or any([t is not None and t.dtype is not float32
                                                          for t in (weight, bias)]):
            raise
    return layer_norm_stats(input.to(float32), weight, bias, n, eps)[0].to(input.dtype)


def _normalized_dims(op, input, normalized_shape):
    """The number of normalised dims."""
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
    noise = -random_exponential(1.0, tuple(logits.shape), logits.dtype, logits.device, None).log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    best = soft.argmax(dim, True)
    one = full(best.shape, 1, dtype=logits.dtype, device=logits.device)
    return scatter_src(zeros_like(soft).detach(), dim, best, one) - soft.detach() + soft


# -- with what they are normalised by --------------------------------------------------------------
def _kept(like, *statistics):
    """Statistics as they are returned: without history, in the dtype of the normalised tensor."""
    return [x.detach().to(like.dtype) for x in statistics]


def native_layer_norm(input, normalized_shape, weight, bias, eps):
    n = _normalized_dims("native_layer_norm", input, normalized_shape)
    out, mean, rstd = layer_norm_stats(input, weight, bias, n, eps)
    return out, *_kept(input if weight is None else weight, mean, rstd)


def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    op = "native_group_norm"
    _check_input(op, input)
    _check_channels(op, input, weight=weight, bias=bias)
    if input.shape[0] != N or input.shape[1] != C or input.numel() != N * C * HxW:
        raise ShapeError(f"{op}: input must have {N} samples of {C} channels with {HxW} positions, got shape "
                         f"{list(input.shape)}")
    out, mean, rstd = group_norm_stats(input, _as_input(weight, input), _as_input(bias, input), group, eps)
    dtype = input.dtype if weight is None else weight.dtype
    return out, mean.to(dtype), rstd.to(dtype)


def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    _check("native_batch_norm", input, running_mean, running_var, weight, bias)
    weight, bias = _as_input(weight, input), _as_input(bias, input)
    if not training:
        _need_statistics("native_batch_norm", running_mean, running_var)
        none = empty(0, dtype=input.dtype, device=input.device)
        return _given(input, running_mean, running_var, weight, bias, eps), none, none
    out, mean, var = batch_norm_stats(input, weight, bias, eps, running_mean, running_var, momentum)
    var, wide = var.detach(), input.detach().to(stat_dtype(input))
    # the deviations of numbers beyond 1e19 are float32, their squares are not
    far = 1 / std_of(wide, (0, *range(2, input.ndim)), correction=0)
    return out, *_kept(input, mean, where(var < float("inf"), rsqrt(var + eps), far))


# -- by the numbers of a channel -------------------------------------------------------------------
def _check_input(op, input, least=2):
    if input.ndim < least:
        expected = "(N, C, ...)" if least == 2 else "(N, C, L, ...)"
        raise ShapeError(f"{op}: input must have shape {expected}, got {list(input.shape)}")


def _check_channels(op, input, **tensors):
    for name, t in tensors.items():
        if t is not None and t.dtype.kind != "f":
            raise DTypeError(f"{op}: {name} must be real floating-point, got {t.dtype.name}")
        if t is not None and tuple(t.shape) != (input.shape[1],):
            raise ShapeError(f"{op}: {name} must have shape {[input.shape[1]]} for input of shape "
                             f"{list(input.shape)}, got {list(t.shape)}")


@cython.cfunc
def _fits(input: TensorC, x: object) -> cython.bint:
    """Whether an argument is absent, or has a real floating number for each channel. False for stand-ins."""
    if x is None:
        return True
    if not isinstance(x, TensorC):
        return False
    t: TensorC = x
    return not t.flags & PT_INTERPOSED and t.rank == 1 and t.dims[0] == input.dims[1] and CATEGORY[t.dt] == 2


@cython.cfunc
def _check(op: str, input: TensorC, running_mean, running_var, weight, bias):
    if not (input.rank >= 2 and not input.flags & PT_INTERPOSED and _fits(input, running_mean)
            and _fits(input, running_var) and _fits(input, weight) and _fits(input, bias)):
        _check_input(op, input)
        _check_channels(op, input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)


@cython.cfunc
def _as_input(t, input: TensorC):
    """Scale or shift in the input's dtype: float32 parameters may come with half inputs."""
    if t is None or cython.cast(TensorC, t).dt == input.dt:
        return t
    return t.to(input.dtype)


def _need_statistics(op, running_mean, running_var):
    if running_mean is None or running_var is None:
        raise RuntimeError(f"{op}: running_mean and running_var must be Tensors where training is False, got None")


@cython.cfunc
def _given(input: TensorC, mean, var, weight, bias, eps):
    """Normalisation by given statistics; a history of the statistics is differentiated too. Graphs get smaller ops:
    their passes fold them into the layer before, or fuse them with the ops after."""
    if (input.flags | pt_tls.mode) & PT_INTERPOSED or (
            pt_tls.grad_enabled and (mean.requires_grad or var.requires_grad)):
        return given_by_ops(input, mean, var, weight, bias, eps)
    return batch_norm_given(input, mean, var, weight, bias, eps)


@cython.cfunc
def _of_channel(input: TensorC):
    """The number of elements of a channel; 0 if there are no channels."""
    if input.flags & PT_INTERPOSED:
        return input.numel() // input.shape[1] if input.shape[1] else 0
    return input.count // input.dims[1] if input.dims[1] else 0


def batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps):
    if input.ndim == 1 and input.shape[0] == 0:         # PyTorch treats it as having no channels
        return clone(input)
    _check("batch_norm", input, running_mean, running_var, weight, bias)
    if eps < 0 or (training and eps == 0):
        raise ValueError("batch_norm: eps must be "
                         f"{'positive during training' if training else 'non-negative'}, got {eps}")
    weight, bias = _as_input(weight, input), _as_input(bias, input)
    if not training:
        _need_statistics("batch_norm", running_mean, running_var)
        return _given(input, running_mean, running_var, weight, bias, eps)
    if _of_channel(input) == 1:
        raise ValueError(f"batch_norm: expected more than 1 value per channel when training, got input size "
                         f"{list(input.shape)}")
    return batch_norm_stats(input, weight, bias, eps, running_mean, running_var, momentum)[0]


def instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps):
    _check("instance_norm", input, running_mean, running_var, weight, bias)
    weight, bias = _as_input(weight, input), _as_input(bias, input)
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise ValueError("instance_norm: running_mean and running_var must be Tensors where use_input_stats is "
                             "False, got None")
        return _given(input.contiguous(), running_mean, running_var, weight, bias, eps)
    samples, channels = input.shape[:2]
    count = input.numel() // (samples * channels) if samples * channels else 0
    if count == 1:
        raise ValueError(f"instance_norm: expected more than 1 spatial element when training, got input size "
                         f"{list(input.shape)}")
    if channels == 0:
        return group_norm_stats(input, weight, bias, 1, eps)[0]
    if running_mean is None and running_var is None:
        return group_norm_stats(input, weight, bias, channels, eps)[0]
    # With statistics the result is row-major, as in PyTorch. Ops update them, so that a graph gives the same bits.
    input = input.contiguous()
    out, mean, _ = group_norm_stats(input, weight, bias, channels, eps)
    with no_grad():
        instance_norm_writes(mean.detach(), input.detach(), running_mean, running_var, momentum)
    return out


def group_norm(input, num_groups, weight, bias, eps):
    _check_input("group_norm", input)
    _check_channels("group_norm", input, weight=weight, bias=bias)
    if num_groups > 0 and input.numel() == num_groups and input.shape[1] == num_groups:
        raise ValueError(f"group_norm: expected more than 1 value per channel when training, got input size "
                         f"{list(input.shape)}")
    return group_norm_stats(input, _as_input(weight, input), _as_input(bias, input), num_groups, eps)[0]


def rms_norm(input, normalized_shape, weight, eps):
    if input.dtype.kind not in "fc":
        raise DTypeError(f"rms_norm: input must be floating-point, got {input.dtype.name}")
    n = _normalized_dims("rms_norm", input, normalized_shape)
    shape = tuple(input.shape[input.ndim - n:])
    if weight is not None and tuple(weight.shape) != shape:
        raise ShapeError(f"rms_norm: weight must have shape {list(shape)}, got {list(weight.shape)}")
    if eps is None:
        eps = finfo(float32 if input.dtype.itemsize == 2 else input.dtype).eps
    if input.dtype.kind == "f":
        if weight is None or weight.dtype is input.dtype:
            return rms_norm_stats(input, weight, n, eps)[0]
        out = rms_norm_stats(input.float() if input.dtype.itemsize == 2 else input, None, n, eps)[0]
    else:
        wide = input.contiguous()
        out = wide * ((wide * wide).mean(tuple(range(-n, 0)), True) + eps).rsqrt()
    if weight is not None:
        out = out * weight
    return out.to(input.dtype)


def local_response_norm(input, size, alpha, beta, k):
    _check_input("local_response_norm", input, 3)
    if size < 1:
        raise RuntimeError(f"local_response_norm: size must be positive, got {size}")
    if input.numel() == 0:
        return input
    square = input * input
    before, after = size // 2, (size - 1) // 2
    zero = square.new_zeros
    padded = cat([zero(square.shape[0], before, *square.shape[2:]), square,
                  zero(square.shape[0], after, *square.shape[2:])], 1)
    total = padded[:, :square.shape[1]]
    for i in range(1, size):
        total = total + padded[:, i:i + square.shape[1]]
    if input.dtype.kind in "iu":            # PyTorch's mean of integers is an integer
        total = div(total, size, rounding_mode="trunc")
        return input / (total * alpha + k) ** beta
    return input / (total * (alpha / size) + k) ** beta
