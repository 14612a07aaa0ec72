"""Rows: scaled dot-product attention and the mask of its dropout.

``attention_stats`` takes query (N, H, L, E), key (N, G, S, E) and value (N, G, S, V), where G divides H:
neighbouring heads of queries share a head of keys. ``mask`` is added to the scores, ``keep`` marks the scores
that count; both have shape (N, H, L, S), expanded without a copy. ``state`` holds two random numbers: every op
that gets them draws the same dropout mask.
"""
from ptcore._ops.table.schema import REAL, composite, functional, nondifferentiable, structured

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

functional(
    "multi_head_attention_forward(query, key, value, embed_dim_to_check: Int, num_heads: Int, "
    "in_proj_weight: OptTensor, in_proj_bias: OptTensor, bias_k: OptTensor, bias_v: OptTensor, add_zero_attn: Bool, "
    "dropout_p: Float, out_proj_weight, out_proj_bias: OptTensor, training=True, "
    "key_padding_mask: OptTensor = None, need_weights=True, attn_mask: OptTensor = None, "
    "use_separate_proj_weight=False, q_proj_weight: OptTensor = None, k_proj_weight: OptTensor = None, "
    "v_proj_weight: OptTensor = None, static_k: OptTensor = None, static_v: OptTensor = None, "
    "average_attn_weights=True, is_causal=False)",
    """Attention of ``num_heads`` heads between projections of query, key and value.

Parameters
----------
query, key, value : Tensor
    ``(L, N, E)``, ``(S, N, K)`` and ``(S, N, V)``, or without the dim of the batch.
embed_dim_to_check : int
    The expected ``E``, a multiple of ``num_heads``.
num_heads : int
in_proj_weight, in_proj_bias : Tensor or None
    ``(3 * E, E)`` and ``(3 * E,)``: the projections of query, key and value under one another.
bias_k, bias_v : Tensor or None
    ``(1, 1, E)``: one more key and value for all samples.
add_zero_attn : bool
    Adds one more key and value of zeros.
dropout_p : float
    Of the probabilities, when ``training``.
out_proj_weight, out_proj_bias : Tensor
    ``(E, E)`` and ``(E,)``.
key_padding_mask : Tensor, optional
    ``(N, S)``: True, or a number to be added, for keys that do not count.
need_weights : bool
    Whether the probabilities are returned; without them attention makes no matrix of scores.
attn_mask : Tensor, optional
    ``(L, S)`` or ``(N * num_heads, L, S)``: True, or a number to be added, for pairs that do not count.
use_separate_proj_weight : bool
    The projections are ``q_proj_weight``, ``k_proj_weight`` and ``v_proj_weight``.
static_k, static_v : Tensor, optional
    ``(N * num_heads, S, E / num_heads)``, in place of the projected ones.
average_attn_weights : bool
    Whether the returned probabilities are the mean over heads.
is_causal : bool
    A hint that ``attn_mask`` is the causal one.

Returns
-------
output : Tensor, shape (L, N, E)
weights : Tensor or None, shape (N, L, S) or (N, num_heads, L, S)

Raises
------
AssertionError, RuntimeError
    If shapes do not agree.

Examples
--------
>>> import ptcore
>>> F, x, w = ptcore.nn.functional, ptcore.ones(3, 1, 2), ptcore.ones(6, 2)
>>> out, weights = F.multi_head_attention_forward(
...     x, x, x, 2, 1, w, None, None, None, False, 0.0, w[:2], None)
>>> out.shape, weights.shape
(ptcore.Size([3, 1, 2]), ptcore.Size([1, 3, 3]))
""", "_multi_head_attention(x, y, z, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn, "
    "out_proj_weight, out_proj_bias, key_padding_mask, need_weights, attn_mask, average_attn_weights)",
    also_top=False, file="heads", returns="tuple[Tensor, Tensor | None]")
