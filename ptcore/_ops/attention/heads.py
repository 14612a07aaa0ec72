"""Attention of several heads with its projections, as a function of other ops."""
from math import sqrt

from ptcore._errors import AssertedError, ShapeError
from ptcore._ops.creation.creation import zeros, zeros_like
from ptcore._ops.functions import cat, dropout, linear, pad, scaled_dot_product_attention
from ptcore._ops.functions import softmax as _softmax
from ptcore._tensor import Tensor

_OP = "multi_head_attention_forward"


def additive_mask(op, name, mask, dtype, beside=None):
    """A mask as numbers to be added to scores: -inf where a bool mask is True.

    ``beside`` is the other mask of the call, which should have the same dtype.
    """
    if mask is None:
        return None
    if not isinstance(mask, Tensor):
        raise TypeError(f"{op}: {name} must be a Tensor or None, got {type(mask).__name__}")
    if mask.dtype.kind not in "bf":
        raise AssertedError(f"{op}: {name} must be bool or floating-point, got {mask.dtype.name}")
    if beside is not None and beside.dtype is not mask.dtype:
        import warnings
        warnings.warn(f"{op}: {name} and the other mask should have one dtype, got {mask.dtype.name} and "
                      f"{beside.dtype.name}", stacklevel=3)
    if mask.dtype.kind == "f":
        return mask
    return zeros_like(mask, dtype=dtype).masked_fill_(mask, -float("inf"))


def multi_head_attention_forward(
        query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn,
        dropout_p, out_proj_weight, out_proj_bias, training, key_padding_mask, need_weights, attn_mask,
        use_separate_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, static_k, static_v,
        average_attn_weights, is_causal):
    """See the row."""
    batched = _batched(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same = query is key, key is value
        query = query.unsqueeze(1)
        key = query if same[0] else key.unsqueeze(1)
        value = key if same[1] else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, n, size = query.shape
    if is_causal and attn_mask is None:
        raise RuntimeError(f"{_OP}: is_causal is a hint about attn_mask, which must be given, got None")
    padding = additive_mask(_OP, "key_padding_mask", key_padding_mask, query.dtype, attn_mask)
    causal = is_causal and padding is None and not need_weights
    mask = None if causal else additive_mask(_OP, "attn_mask", attn_mask, query.dtype)
    if size != embed_dim_to_check:
        raise AssertedError(f"{_OP}: the last size of query must be {embed_dim_to_check}, got {size}")
    if size % num_heads:
        raise AssertedError(f"{_OP}: the last size of query must be a multiple of num_heads, got {size} and "
                             f"{num_heads}")
    alike = (slice(0, 2), "lengths and batch sizes") if use_separate_proj_weight else (slice(None), "shapes")
    if key.shape[alike[0]] != value.shape[alike[0]]:
        raise AssertedError(f"{_OP}: key and value must have the same {alike[1]}, got shapes {list(key.shape)} and "
                             f"{list(value.shape)}")
    if mask is not None:
        mask = _four_dims(mask, n, num_heads, length, key.shape[0])
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight
    q, k, v = _projected(query, key, value, weights, in_proj_bias)
    q = _by_heads(q, num_heads)

    extra = []                          # (key, value) pairs to be appended, of shape (1, N, E)
    if (bias_k is None) != (bias_v is None):
        raise AssertedError(f"{_OP}: bias_k and bias_v must both be given or both be None, got {_said(bias_k)} and "
                            f"{_said(bias_v)}")
    if bias_k is not None:
        if static_k is not None or static_v is not None:
            raise AssertedError(f"{_OP}: bias_k and bias_v must be None with static_k or static_v, got {_said(bias_k)}")
        extra.append((bias_k.repeat(1, n, 1), bias_v.repeat(1, n, 1)))
    if extra:
        k, v = cat([k, extra[0][0]]), cat([v, extra[0][1]])
    k = _by_heads(k, num_heads) if static_k is None else _static("static_k", static_k, n, num_heads, size)
    v = _by_heads(v, num_heads) if static_v is None else _static("static_v", static_v, n, num_heads, size)
    if add_zero_attn:
        zero = zeros((n, num_heads, 1, size // num_heads), dtype=k.dtype, device=k.device)
        k, v = cat([k, zero], 2), cat([v, zero], 2)
    more = len(extra) + bool(add_zero_attn)
    if more:
        mask = None if mask is None else pad(mask, (0, more))
        padding = None if padding is None else pad(padding, (0, more))
    if padding is not None:
        if tuple(padding.shape) != (n, k.shape[2]):
            raise AssertedError(f"{_OP}: key_padding_mask must have shape {[n, k.shape[2] - more]}, got "
                                 f"{list(key_padding_mask.shape)}")
        padding = padding.view((n, 1, 1, k.shape[2]))
        mask = padding if mask is None else mask + padding
    dropout_p = dropout_p if training else 0.0
    if not 0 <= dropout_p <= 1:
        raise ValueError(f"{_OP}: dropout_p must be in [0, 1], got {dropout_p}")

    if need_weights:
        p = (q * sqrt(1 / q.shape[-1])) @ k.transpose(-2, -1)
        p = _softmax(p if mask is None else p + mask, -1)
        if dropout_p:
            p = dropout(p, dropout_p, True)
        out = p @ v
    else:
        out = scaled_dot_product_attention(q, k, v, mask, dropout_p, causal)
    out = out.permute((2, 0, 1, 3)).reshape((length, n, size))
    out = linear(out, out_proj_weight, out_proj_bias)
    if not batched:
        out = out.squeeze(1)
    if not need_weights:
        return out, None
    if average_attn_weights:
        p = p.mean(1)
    return out, p if batched else p.squeeze(0)


def _said(t):
    return "None" if t is None else f"a Tensor of shape {list(t.shape)}"


def _batched(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Whether there is a batch dim; checks the numbers of dims."""
    ndim = query.ndim
    if ndim not in (2, 3):
        raise AssertedError(f"{_OP}: query must have 2 or 3 dimensions, got shape {list(query.shape)}")
    for name, t, allowed in (("key", key, (ndim,)), ("value", value, (ndim,)),
                             ("key_padding_mask", key_padding_mask, (ndim - 1,)), ("attn_mask", attn_mask, (2, 3))):
        if t is not None and t.ndim not in allowed:
            raise AssertedError(f"{_OP}: {name} must have {' or '.join(map(str, allowed))} dimensions beside query of "
                                 f"shape {list(query.shape)}, got shape {list(t.shape)}")
    if ndim == 2 and attn_mask is not None and attn_mask.ndim == 3:
        expected = (num_heads, query.shape[0], key.shape[0])
        if tuple(attn_mask.shape) != expected:
            raise AssertedError(f"{_OP}: attn_mask must have shape {list(expected)}, got {list(attn_mask.shape)}")
    return ndim == 3


def _four_dims(mask, n, heads, length, keys):
    expected = (length, keys) if mask.ndim == 2 else (n * heads, length, keys)
    if tuple(mask.shape) != expected:
        raise RuntimeError(f"{_OP}: attn_mask must have shape {list(expected)}, got {list(mask.shape)}")
    return mask.view((1, 1, length, keys) if mask.ndim == 2 else (n, heads, length, keys))


def _projected(query, key, value, weights, bias):
    """The projections of query, key and value; a tensor that is given for several is projected in one product."""
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    if isinstance(weights, tuple):
        for name, weight in zip(("q_proj_weight", "k_proj_weight", "v_proj_weight"), weights):
            if weight is None:
                raise AssertedError(f"{_OP}: {name} must be given with use_separate_proj_weight, got None")
        return tuple([linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)])
    if weights is None:
        raise AssertedError(f"{_OP}: in_proj_weight must be given, got None")
    if query is key and key is value:
        return linear(query, weights, bias).chunk(3, -1)
    size = query.shape[-1]
    if weights.ndim != 2 or weights.shape[0] != 3 * size:
        raise ShapeError(f"{_OP}: in_proj_weight must have shape {[3 * size, size]}, got {list(weights.shape)}")
    if key is value:
        first, rest = weights.split([size, 2 * size])
        rest_bias = None if bias is None else bias.split([size, 2 * size])[1]
        return (linear(query, first, biases[0]), *linear(key, rest, rest_bias).chunk(2, -1))
    return tuple([linear(x, w, b) for x, w, b in zip((query, key, value), weights.chunk(3), biases)])


def _by_heads(t, heads):
    """(length, N, heads * size) as (N, heads, length, size), without a copy."""
    return t.unflatten(-1, (heads, t.shape[-1] // heads)).permute((1, 2, 0, 3))


def _static(name, t, n, heads, size):
    if t.ndim != 3 or t.shape[0] != n * heads or t.shape[2] != size // heads:
        raise AssertedError(f"{_OP}: {name} must have shape {[n * heads, 'S', size // heads]}, got {list(t.shape)}")
    return t.view((n, heads, *t.shape[1:]))
