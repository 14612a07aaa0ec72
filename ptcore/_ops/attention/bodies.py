"""Attention as a function of other ops."""
from math import sqrt

from ptcore import _precision
from ptcore._dtype import as_dtype
from ptcore._errors import DTypeError, ShapeError
from ptcore._ops import checked, decompositions
from ptcore._ops.creation.creation import zeros
from ptcore._ops.creation.draws import randint
from ptcore._ops.functions import attention_stats as attention_of
from ptcore._ops.functions import expand, random_bernoulli_number, reshape, unsqueeze
from ptcore._ops.table.shapes import broadcast_shapes
from ptcore._random import draws_as_pytorch
from ptcore._tensor import Tensor

_NAME = "scaled_dot_product_attention"


def scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    """See the row."""
    _precision.check_attention(query.is_cuda)
    if attn_mask is None and not dropout_p and query.ndim == key.ndim == value.ndim == 4:
        n, heads, _, size = query.shape
        m, held, keys, depth = key.shape
        k, groups, rows, _ = value.shape
        if n == m == k and held == groups and keys == rows and size == depth > 0 and (
                heads == held or (enable_gqa and held and not heads % held)):
            return attention_of(query, key, value, None, None, None, is_causal,
                                1 / sqrt(size) if scale is None else scale, 0.0)[0]
    _checked(query, key, value, attn_mask, dropout_p, is_causal)
    keep = mask = state = None
    shapes = [t.shape[:-2] for t in (query, key, value)]
    if enable_gqa:
        shapes = _grouped(query, key, value)
        if key.shape[-3] != value.shape[-3]:
            key, value = _repeated(key, query.shape[-3]), _repeated(value, query.shape[-3])
    batch = broadcast_shapes(_NAME, *shapes)
    full = (*batch, query.shape[-2], key.shape[-2])
    if attn_mask is not None:
        if attn_mask.ndim > len(full) or broadcast_shapes(_NAME, attn_mask.shape, full) != full:
            raise ShapeError(f"{_NAME}: attn_mask of shape {list(attn_mask.shape)} does not broadcast to {list(full)}")
        if attn_mask.dtype.kind == "b":
            keep = _four(expand(attn_mask, full))
        else:
            mask = _four(expand(attn_mask.to(query.dtype), full))
    if scale is None:
        scale = 1 / sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    heads = batch[-1:] if not enable_gqa else key.shape[-3:-2]
    query = _four(_spread(query, batch))
    key, value = (_four(_spread(t, (*batch[:-1], *heads))) for t in (key, value))
    if dropout_p and draws_as_pytorch(None, query.device):
        shape = (*query.shape[:3], key.shape[2])
        state = (random_bernoulli_number(1 - dropout_p, shape, as_dtype("bool"), query.device, None) if dropout_p < 1
                 else zeros(shape, dtype="bool", device=query.device))
        by_ops = decompositions.function("attention_stats")
        out = by_ops(query, key, value, mask, keep, state, is_causal, scale, dropout_p)[0]
        return out if len(batch) == 2 else reshape(out, (*batch, *out.shape[2:]))
    if dropout_p:
        state = randint(2**63 - 1, (2,), device=query.device)
    out = attention_of(query, key, value, mask, keep, state, is_causal, scale, dropout_p)[0]
    return out if len(batch) == 2 else reshape(out, (*batch, *out.shape[2:]))


def _checked(query, key, value, attn_mask, dropout_p, is_causal):
    for name, t in (("query", query), ("key", key), ("value", value)):
        if t.ndim < 2:
            raise ShapeError(f"{_NAME}: {name} must have at least 2 dimensions, got shape {list(t.shape)}")
        if t.dtype is not query.dtype:
            raise DTypeError(f"{_NAME}: {name} must have query's dtype {query.dtype.name}, got {t.dtype.name}")
    if query.shape[-1] != key.shape[-1]:
        raise ShapeError(f"{_NAME}: the last sizes of query and key must agree, got shapes {list(query.shape)} and "
                         f"{list(key.shape)}")
    if key.shape[-2] != value.shape[-2]:
        raise ShapeError(f"{_NAME}: key and value must have one length, got shapes {list(key.shape)} and "
                         f"{list(value.shape)}")
    if attn_mask is not None:
        if not isinstance(attn_mask, Tensor):
            checked.tensor(_NAME, "attn_mask", attn_mask)
        if is_causal:
            raise RuntimeError(f"{_NAME}: attn_mask must not be given with is_causal=True")
        if attn_mask.dtype.kind not in "b" and attn_mask.dtype.name not in ("float32", query.dtype.name):
            raise DTypeError(f"{_NAME}: attn_mask must be bool, float32 or of query's dtype {query.dtype.name}, got "
                             f"{attn_mask.dtype.name}")
    if not 0 <= dropout_p <= 1:
        raise RuntimeError(f"{_NAME}: dropout_p must be in [0, 1], got {dropout_p}")


def _grouped(query, key, value):
    """The batch shapes, after heads of keys are repeated for groups of queries, must broadcast."""
    if min(t.ndim for t in (query, key, value)) < 3:
        raise IndexError(f"{_NAME}: enable_gqa needs at least 3 dimensions, got shapes {list(query.shape)}, "
                         f"{list(key.shape)} and {list(value.shape)}")
    heads = query.shape[-3]
    for name, t in (("key", key), ("value", value)):
        if not t.shape[-3] or heads % t.shape[-3]:
            raise ShapeError(f"{_NAME}: the number of heads of {name} must divide that of query, {heads}, got "
                             f"{t.shape[-3]}")
    return [(*t.shape[:-3], heads) for t in (query, key, value)]


def _spread(t, batch):
    """t expanded to these batch dims."""
    return t if t.shape[:-2] == batch else expand(t, (*batch, *t.shape[-2:]))


def _four(t):
    """t as (N, H, ...), from any number of batch dims."""
    if t.ndim == 4:
        return t
    if t.ndim > 4:
        n = 1
        for size in t.shape[:-3]:
            n *= size
        return reshape(t, (n, *t.shape[-3:]))
    return reshape(t, (*[1] * (4 - t.ndim), *t.shape))


def _repeated(t, heads):
    """Repeats the heads of keys or values for their groups of queries: (..., H, S, E)."""
    held = t.shape[-3]
    if held == heads:
        return t
    lead, rest = tuple(t.shape[:-2]), tuple(t.shape[-2:])
    return reshape(expand(unsqueeze(t, -3), (*lead, heads // held, *rest)), (*lead[:-1], heads, *rest))
