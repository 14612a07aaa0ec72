"""Attention written out in smaller ops, for derivatives of higher order, forward mode and batching; see
decompositions.py."""
from ptcore._ops.attention.bodies import _repeated
from ptcore._ops.creation.creation import ones, zeros
from ptcore._ops.functions import amax, exp, keep_mask, log, reshape, squeeze, transpose, unsqueeze
from ptcore._ops.functions import sum as sum_of
from ptcore._ops.normalize.decompositions import whole
from ptcore._ops.product.bodies import matmul
from ptcore._ops.table.shapes import stat_dtype

_LOWEST = -float("inf")


def _per_group(t, held):
    """The transpose of ``_repeated``."""
    n, heads, *rest = t.shape
    return t if heads == held else sum_of(reshape(t, (n, held, heads // held, *rest)), 2)


def _scores(query, key, mask, keep, is_causal, scale):
    dtype = stat_dtype(query)
    scores = matmul(query.to(dtype) * scale, transpose(_repeated(key, query.shape[1]), -1, -2).to(dtype))
    if mask is not None:
        scores = scores + mask.to(dtype)
    if keep is not None:
        scores = scores.masked_fill(~keep, _LOWEST)
    if is_causal:
        below = ones(tuple(scores.shape[-2:]), dtype="bool", device=query.device).tril()
        scores = scores.masked_fill(~below, _LOWEST)
    return scores


def _softmax(scores):
    """Probabilities and the log-sum-exp; in a row without keys the probabilities are 0."""
    if not scores.shape[-1]:
        return scores, sum_of(scores, -1) + _LOWEST
    top = amax(scores.detach(), -1, True)
    top = top.masked_fill(top == _LOWEST, 0)
    terms = exp(scores - top)
    total = sum_of(terms, -1, True)
    lse = squeeze(top + log(total.detach()), -1)
    return terms / total.masked_fill(total == 0, 1), lse


def _dropped(state, dropout_p, shape, dtype):
    """The factors of the weights; ``state`` may be the mask itself."""
    kept = state if state.dtype.kind == "b" else keep_mask(state, dropout_p, shape)
    return kept.to(dtype) * (0.0 if dropout_p == 1 else 1 / (1 - dropout_p))


def attention_stats(query, key, value, mask, keep, state, is_causal, scale, dropout_p):
    p, lse = _softmax(_scores(query, key, mask, keep, is_causal, scale))
    if dropout_p:
        p = p * _dropped(state, dropout_p, p.shape, p.dtype)
    return matmul(p, _repeated(value, query.shape[1]).to(p.dtype)).to(query.dtype), lse


def attention_backward(g, query, key, value, mask, keep, state, result, lse, is_causal, scale, dropout_p, scores):
    lse = unsqueeze(lse.masked_fill(lse == _LOWEST, -_LOWEST), -1)
    p = whole(exp(_scores(query, key, mask, keep, is_causal, scale) - lse), lse, -1, 1e-5)
    # In half precision the result is too coarse for the difference that the total enters.
    total = None if result.dtype.itemsize == 2 else sum_of(g * result, -1, True)
    return _gradients(g, query, key, value, state, p, total, scale, dropout_p, scores)


def differentiable_backward(g, query, key, value, mask, keep, state, result, lse, is_causal, scale, dropout_p, scores):
    """``attention_backward`` without the forward's results, so that it can be differentiated again."""
    p, _ = _softmax(_scores(query, key, mask, keep, is_causal, scale))
    return _gradients(g, query, key, value, state, p, None, scale, dropout_p, scores)


def _gradients(g, query, key, value, state, p, total, scale, dropout_p, scores):
    dtype = p.dtype
    gy = g.to(dtype)
    gp = matmul(gy, transpose(_repeated(value, query.shape[1]), -1, -2).to(dtype))
    kept = p
    if dropout_p:
        z = _dropped(state, dropout_p, p.shape, dtype)
        gp, kept = gp * z, p * z
    gv = _per_group(matmul(transpose(kept, -1, -2), gy), value.shape[1])
    gs = p * (gp - (sum_of(gp * p, -1, True) if total is None else total))
    gq = matmul(gs, _repeated(key, query.shape[1]).to(dtype)) * scale
    gk = _per_group(matmul(transpose(gs, -1, -2), query.to(dtype)), key.shape[1]) * scale
    return (gq.to(query.dtype), gk.to(key.dtype), gv.to(value.dtype),
            gs.to(query.dtype) if scores else zeros((0,), dtype=query.dtype, device=query.device))


FUNCTIONS = {f.__name__: f for f in (attention_stats, attention_backward)}
