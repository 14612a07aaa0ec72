"""Rows: scaled dot-product attention and the mask of its dropout.

``attention_stats`` takes query (N, H, L, E), key (N, G, S, E) and value (N, G, S, V), where G divides H:
neighbouring heads of queries share a head of keys. ``mask`` is added to the scores, ``keep`` marks the scores
that count; both have shape (N, H, L, S), expanded without a copy. ``state`` holds two random numbers: every op
that gets them draws the same dropout mask.
"""
from ptcore._ops.table.schema import REAL, composite, nondifferentiable, structured

_TENSORS = "query, key, value, mask: OptTensor, keep: OptIndex, state: OptIndex"
_SETTINGS = "is_causal: Bool, scale: Float, dropout_p: Float"

structured(
    f"attention_stats({_TENSORS}, {_SETTINGS})", types=REAL, promote="none", kernel="attention", internal=True,
    called="scaled_dot_product_attention", node="ScaledDotProductFlashAttentionForCpuBackward0", fields=("out", "lse"),
    out="attended", batch="decompose", jvp="decompose", autocast="low",
    reference="_attention(query, key, value, mask, keep, is_causal, scale)",
    doc="Attention with the log-sum-exp of the scores that its gradient needs.")

nondifferentiable(
    f"attention_backward(g, {_TENSORS}, result: Index, lse: Index, {_SETTINGS}, scores: Bool)", types=REAL,
    promote="none", kernel="attention_backward", internal=True,
    called="scaled_dot_product_attention", fields=("query", "key", "value", "scores"),
    out="attention_gradients", batch="decompose",
    reference="_attention_backward(g, query, key, value, mask, keep, is_causal, scale, scores)",
    doc="The fused gradient of attention for a backward that is not recorded.")

nondifferentiable(
    "keep_mask(state: Index, p: Float, shape: Sizes)", kernel="keep_mask", internal=True,
    called="scaled_dot_product_attention", out="of_sizes(shape, BOOL)", batch="each",
    reference="_keep_mask(state, p, shape)",
    doc="True where dropout with probability p keeps an element.")

composite(
    "scaled_dot_product_attention(query, key, value, attn_mask: OptTensor = None, dropout_p: Float = 0.0, "
    "is_causal=False, *, scale: OptFloat = None, enable_gqa=False)",
    public=["nn.functional.scaled_dot_product_attention"], method=False, autocast="low",
    reference="_public_attention(query, key, value, attn_mask, is_causal, scale, enable_gqa)",
    doc="""``softmax(scale * query @ key.T + mask) @ value`` over the last two dims, without the matrix of scores.

A bool ``attn_mask`` says which keys count, one of floats is added to the scores; ``is_causal`` lets a query see the
keys up to its own position. A query that sees no key gives 0. ``scale`` is ``1 / sqrt(E)`` if it is not
given. With ``enable_gqa`` dim -3 of key and value may be a divisor of that of query.

>>> import ptcore
>>> F = ptcore.nn.functional
>>> F.scaled_dot_product_attention(ptcore.zeros(1, 2), ptcore.zeros(2, 2), ptcore.tensor([[1.], [3.]]))
tensor([[2.]])
""")
