"""Oracles of attention and of sampling at positions: plain loops over heads, queries and points."""
import numpy as np
from scipy import special


def _scores(query, key, mask, keep, is_causal, scale, n, h):
    group = query.shape[1] // key.shape[1]
    scores = np.einsum("le,se->ls", query[n, h], key[n, h // group]) * scale
    if mask is not None:
        scores = scores + mask[n, h]
    if keep is not None:
        scores = np.where(keep[n, h], scores, -np.inf)
    if is_causal:
        scores = np.where(np.tri(*scores.shape, dtype=bool), scores, -np.inf)
    return scores


def _weights(scores):
    """softmax of each row, 0 where nothing counts"""
    rows = [special.softmax(row) if row.size and row.max() > -np.inf else np.zeros(row.shape) for row in scores]
    return np.array(rows).reshape(scores.shape)


def attention(query, key, value, mask, keep, is_causal, scale):
    n, heads, length = query.shape[:3]
    out = np.zeros((n, heads, length, value.shape[3]))
    lse = np.full((n, heads, length), -np.inf)
    for i in range(n):
        for h in range(heads):
            scores = _scores(query, key, mask, keep, is_causal, scale, i, h)
            out[i, h] = _weights(scores) @ value[i, h // (heads // key.shape[1])]
            if key.shape[2]:
                lse[i, h] = special.logsumexp(scores, axis=1)
    return out, lse


def attention_backward(g, query, key, value, mask, keep, is_causal, scale, scores):
    gq, gk, gv = (np.zeros(t.shape) for t in (query, key, value))
    gs = np.zeros((*query.shape[:3], key.shape[2]))
    group = query.shape[1] // key.shape[1]
    for i in range(query.shape[0]):
        for h in range(query.shape[1]):
            p = _weights(_scores(query, key, mask, keep, is_causal, scale, i, h))
            for r in range(query.shape[2]):
                gp = value[i, h // group] @ g[i, h, r]
                jacobian = np.diag(p[r]) - np.outer(p[r], p[r])
                gs[i, h, r] = jacobian @ gp
                gv[i, h // group] += np.outer(p[r], g[i, h, r])
                gq[i, h, r] = scale * gs[i, h, r] @ key[i, h // group]
                gk[i, h // group] += scale * np.outer(gs[i, h, r], query[i, h, r])
    return gq, gk, gv, gs if scores else np.zeros(0)


def public_attention(query, key, value, attn_mask, is_causal, scale, enable_gqa):
    if enable_gqa:
        key, value = (np.repeat(t, query.shape[-3] // t.shape[-3], axis=-3) for t in (key, value))
    batch = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    full = (*batch, query.shape[-2], key.shape[-2])
    mask = keep = None
    if attn_mask is not None:
        spread = np.broadcast_to(attn_mask, full).reshape(1, -1, *full[-2:])
        mask, keep = (None, spread) if attn_mask.dtype == bool else (spread, None)
    query, key, value = (np.broadcast_to(t, (*batch, *t.shape[-2:])).reshape(1, -1, *t.shape[-2:])
                         for t in (query, key, value))
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    return attention(query, key, value, mask, keep, is_causal, scale)[0].reshape((*full[:-1], value.shape[-1]))


def _philox(seed, offset, block):
    """Philox4x32-10 written with Python's integers."""
    mask = 2**32 - 1
    counter = [block & mask, block >> 32 & mask, offset & mask, offset >> 32 & mask]
    key = [seed & mask, seed >> 32 & mask]
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(b >> 32) ^ counter[1] ^ key[0], b & mask, (a >> 32) ^ counter[3] ^ key[1], a & mask]
        key = [(key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask]
    return counter


def keep_mask(state, p, shape):
    seed, offset = (int(word) % 2**64 for word in state)
    words = [_philox(seed, offset, i // 4)[i % 4] for i in range(int(np.prod(shape)))]
    return np.array([w >= np.ceil(p * 2**32) for w in words], bool).reshape(shape)


NAMES = {"_attention": attention, "_attention_backward": attention_backward, "_public_attention": public_attention,
         "_keep_mask": keep_mask}
