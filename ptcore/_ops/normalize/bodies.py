"""Bodies: softmax and normalisation over dims."""
from cython.cimports.ptcore._ops._common import _wrap

from ptcore._errors import DTypeError, ShapeError, warn
from ptcore._ops import _arguments
from ptcore._ops.creation.creation import empty, full, zeros_like
from ptcore._ops.functions import layer_norm_stats, log_softmax, scatter_src, softmax


def softmin(input, dim, _stacklevel, dtype):
    if dim is None:
        dim = 0 if input.ndim in (0, 1, 3) else 1
    return softmax(-input, _wrap("softmin", dim, input.ndim), dtype=dtype)


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
    shape = _arguments.integers("layer_norm", "normalized_shape", normalized_shape)
    n = len(shape)
    if n == 0 or n > input.ndim or input.shape[input.ndim - n:] != tuple(shape):
        raise ShapeError(f"layer_norm: the last sizes of input must be normalized_shape {shape}, got shape "
                         f"{list(input.shape)}")
    return layer_norm_stats(input, weight, bias, n, eps)[0]


def gumbel_softmax(logits, tau, hard, eps, dim):
    if logits.dtype.kind != "f":
        raise DTypeError(f"gumbel_softmax: logits must be real floating-point, got {logits.dtype.name}")
    dim = _wrap("gumbel_softmax", dim, logits.ndim)
    noise = -empty(logits.shape, dtype=logits.dtype, device=logits.device).exponential_().log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    best = soft.argmax(dim, True)
    one = full(best.shape, 1, dtype=logits.dtype, device=logits.device)
    return scatter_src(zeros_like(soft).detach(), dim, best, one) - soft.detach() + soft
