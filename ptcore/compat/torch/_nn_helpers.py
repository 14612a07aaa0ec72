"""Private functions and bases of ``torch.nn`` that programs use."""
import copy
import math

from ptcore import Tensor, nn, no_grad
from ptcore.nn import functional as F

__all__ = []


def _addindent(s_, numSpaces):
    """A text whose lines, except the first, are indented."""
    return ("\n" + numSpaces * " ").join(s_.split("\n"))


def _get_clones(module, N):
    """Deep copies of a module."""
    return nn.ModuleList([copy.deepcopy(module) for _ in range(N)])


def _get_activation_fn(activation):
    """The function with the name ``relu`` or ``gelu``."""
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(F, activation)


def _generate_square_subsequent_mask(sz, device=None, dtype=None):
    """The causal mask that is added to scores."""
    return nn.Transformer.generate_square_subsequent_mask(sz, device, dtype)


def _get_seq_len(src, batch_first):
    """The length of sequences; None for tensors of four or more dims."""
    if src.ndim == 2:
        return src.shape[0]
    return src.shape[1 if batch_first else 0] if src.ndim == 3 else None


def _detect_is_causal_mask(mask, is_causal=None, size=None):
    """The hint, or whether a mask is the causal one."""
    if is_causal is not None or mask is None:
        return is_causal is True
    size = size if size is not None else mask.shape[-2]
    causal = _generate_square_subsequent_mask(size, mask.device, mask.dtype)
    return mask.shape == causal.shape and bool((mask == causal).all())


def apply_permutation(tensor, permutation, dim=1):
    """The tensor with its rows in another order."""
    return tensor.index_select(dim, permutation)


# -- initial values -----------------------------------------------------------------------------------------

def _no_grad_uniform_(tensor, a, b, generator=None):
    """Fills with uniform numbers, unrecorded."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def _no_grad_normal_(tensor, mean, std, generator=None):
    """Fills with normal numbers, unrecorded."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _no_grad_trunc_normal_(tensor, mean, std, a, b, generator=None):
    """Fills with normal numbers between two bounds, unrecorded."""
    return nn.init.trunc_normal_(tensor, mean, std, a, b, generator=generator)


def _no_grad_fill_(tensor, val):
    """Fills with a number, unrecorded."""
    with no_grad():
        return tensor.fill_(val)


def _no_grad_zero_(tensor):
    """Fills with zeros, unrecorded."""
    with no_grad():
        return tensor.zero_()


# -- checks and defaults of arguments -------------------------------------------------------------------------

def _get_softmax_dim(name, ndim, stacklevel):
    """The default dim of softmax."""
    return 0 if ndim in (0, 1, 3) else 1


def _list_with_default(out_size, defaults):
    """Sizes, with None replaced by the default."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [v if v is not None else d for v, d in zip(out_size, defaults[-len(out_size):])]


def _verify_batch_size(size):
    """Raises for statistics of a single value for each channel."""
    if size[0] * math.prod(size[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def _none_or_dtype(input):
    """The dtype of a tensor; None for None."""
    if input is not None and not isinstance(input, Tensor):
        raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")
    return None if input is None else input.dtype


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """A mask to add to scores: minus infinity where a mask of bools is True."""
    if mask is None:
        return None
    if not (mask.dtype.is_floating_point or str(mask.dtype).endswith("bool")):
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if mask.dtype.is_floating_point:
        return mask
    return mask.new_zeros(mask.shape, dtype=target_type).masked_fill_(mask, -math.inf)


def _in_projection(q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None):
    """Queries, keys and values, each through a linear map."""
    return F.linear(q, w_q, b_q), F.linear(k, w_k, b_k), F.linear(v, w_v, b_v)


def _in_projection_packed(q, k, v, w, b=None):
    """Queries, keys and values, each through its part of one packed weight."""
    if q is k is v:
        return list(F.linear(q, w, b).chunk(3, -1))
    return list(_in_projection(q, k, v, *w.chunk(3), *((None,) * 3 if b is None else b.chunk(3))))


# -- bases for which ptcore has several classes, or a setting -------------------------------------------------

class _Group(type):
    """The metaclass of a class whose instances are those of other classes."""

    def __instancecheck__(cls, value):
        return isinstance(value, cls._members)

    def __subclasscheck__(cls, other):
        return issubclass(other, cls._members)

    def __call__(cls, *args, **kwargs):
        raise NotImplementedError(f"torch.nn.{cls.__name__}: ptcore has no such base; derive from one of its classes")


def _group(name, *members):
    return _Group(name, (), {"_members": tuple(getattr(nn, member) for member in members), "__module__": __name__})


_AvgPoolNd = _group("_AvgPoolNd", "AvgPool1d", "AvgPool2d", "AvgPool3d")
_ReflectionPadNd = _group("_ReflectionPadNd", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d")
_ReplicationPadNd = _group("_ReplicationPadNd", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d")
UninitializedTensorMixin = _group("UninitializedTensorMixin", "UninitializedParameter", "UninitializedBuffer")
