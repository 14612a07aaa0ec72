"""Attention of several heads."""
from ptcore import empty
from ptcore._ops.attention.heads import additive_mask
from ptcore.nn import functional as F
from ptcore.nn import init
from ptcore.nn.modules._checks import need_tensor, size
from ptcore.nn.modules.linear import NonDynamicallyQuantizableLinear
from ptcore.nn.modules.module import Module
from ptcore.nn.parameter import Parameter

__all__ = ["MultiheadAttention"]


def _swapped(t):
    """Exchanges the dims of batch and sequence."""
    return t.transpose(1, 0) if t.ndim > 1 else t


class MultiheadAttention(Module):
    """Attention of several heads between learned projections.

    Parameters
    ----------
    embed_dim : int
        Size of query and output, a multiple of `num_heads`.
    num_heads : int
    dropout : float, default: 0.0
        Probability that a weight of the attention is dropped in training.
    bias : bool, default: True
        Whether the projections have biases.
    add_bias_kv : bool, default: False
        Whether one learned key and value is added to those given.
    add_zero_attn : bool, default: False
        Whether a key and a value of zeros is added.
    kdim, vdim : int, optional
        Sizes of key and value; `embed_dim` if not given.
    batch_first : bool, default: False
        Whether the batch is the first dimension and not the second.
    device, dtype : optional
        Of the parameters.

    Attributes
    ----------
    in_proj_weight : Parameter, shape (3 * embed_dim, embed_dim), or None
        The projections of query, key and value under one another, drawn by `init.xavier_uniform_`. With
        other sizes of key or value there are `q_proj_weight`, `k_proj_weight` and `v_proj_weight`.
    in_proj_bias : Parameter, shape (3 * embed_dim,), or None
        Starts at 0.
    out_proj : Linear
    bias_k, bias_v : Parameter, shape (1, 1, embed_dim), or None

    Examples
    --------
    >>> import ptcore
    >>> attention = ptcore.nn.MultiheadAttention(4, 2, batch_first=True)
    >>> x = ptcore.ones(3, 5, 4)
    >>> output, weights = attention(x, x, x)
    >>> output.shape, weights.shape
    (ptcore.Size([3, 5, 4]), ptcore.Size([3, 5, 5]))
    """

    _torch_later = (("_qkv_same_embed_dim", True), ("batch_first", False))

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None,
                 vdim=None, batch_first=False, device=None, dtype=None):
        super().__init__()
        embed_dim, num_heads = size(self, "embed_dim", embed_dim), size(self, "num_heads", num_heads)
        if embed_dim == 0 or num_heads == 0:
            raise ValueError(f"MultiheadAttention: embed_dim and num_heads must be positive, got {embed_dim} and "
                             f"{num_heads}")
        if embed_dim % num_heads:
            raise AssertionError(f"MultiheadAttention: embed_dim must be a multiple of num_heads, got {embed_dim} and "
                                 f"{num_heads}")
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else size(self, "kdim", kdim)
        self.vdim = embed_dim if vdim is None else size(self, "vdim", vdim)
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        if not hasattr(dropout, "__float__"):
            raise TypeError(f"MultiheadAttention: dropout must be a number, got {type(dropout).__name__}")
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads

        def parameter(*shape):
            return Parameter(empty(shape, device=device, dtype=dtype))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = parameter(3 * embed_dim, embed_dim)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = parameter(embed_dim, embed_dim)
            self.k_proj_weight = parameter(embed_dim, self.kdim)
            self.v_proj_weight = parameter(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = parameter(3 * embed_dim)
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.bias_k = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self):
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
                average_attn_weights=True, is_causal=False):
        """Attend to `value` where `key` is like `query`.

        Parameters
        ----------
        query, key, value : Tensor
            ``(L, N, E)``, ``(S, N, K)``, ``(S, N, V)``, with N in front if `batch_first`, or without N.
        key_padding_mask : Tensor, optional
            ``(N, S)``: True, or a number to be added, for keys that do not count.
        need_weights : bool
            Whether the weights are returned; without them attention needs less time and memory.
        attn_mask : Tensor, optional
            ``(L, S)`` or ``(N * num_heads, L, S)``: True, or a number to be added, for pairs that do not count.
        average_attn_weights : bool
            Whether the weights are averaged over the heads.
        is_causal : bool
            A hint that `attn_mask` is the causal one.

        Returns
        -------
        output : Tensor, shape (L, N, E)
        weights : Tensor or None, shape (N, L, S) or (N, num_heads, L, S)
        """
        for name, t in (("query", query), ("key", key), ("value", value)):
            need_tensor(self, name, t)
        swapped = query.ndim == 3 and self.batch_first
        if swapped:                     # equal arguments stay one tensor
            q = _swapped(query)
            k = q if key is query else _swapped(key)
            value = q if value is query else k if value is key else _swapped(value)
            query, key = q, k
        padding = additive_mask("MultiheadAttention", "key_padding_mask", key_padding_mask, query.dtype, attn_mask)
        mask = additive_mask("MultiheadAttention", "attn_mask", attn_mask, query.dtype)
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            training=self.training, key_padding_mask=padding, need_weights=need_weights, attn_mask=mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim, q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal)
        return output.transpose(1, 0) if swapped else output, weights

    def merge_masks(self, attn_mask, key_padding_mask, query):
        """Merges the masks. Returns the mask and its kind: None, 1 for padding alone, 2 with a mask of pairs.

        Masks are numbers to be added, `query` is ``(N, L, E)``; a mask of pairs makes the result
        ``(N, num_heads, L, L)``.
        """
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        n, length = query.shape[:2]
        if attn_mask.ndim == 3:
            merged = attn_mask.view((n, -1, length, length))
        else:
            merged = attn_mask.view((1, 1, length, length)).expand((n, self.num_heads, -1, -1))
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view((n, 1, 1, length)).expand((-1, self.num_heads, -1, -1))
        return merged, 2
