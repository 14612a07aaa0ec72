"""Transformer layers, stacks of them, and the model of both."""
import copy

from ptcore import full, triu
from ptcore._ops.attention.heads import additive_mask
from ptcore.nn import functional as F
from ptcore.nn import init
from ptcore.nn.modules._checks import need_tensor
from ptcore.nn.modules.activation import GELU, ReLU
from ptcore.nn.modules.attention import MultiheadAttention
from ptcore.nn.modules.container import ModuleList
from ptcore.nn.modules.dropout import Dropout
from ptcore.nn.modules.linear import Linear
from ptcore.nn.modules.module import Module
from ptcore.nn.modules.normalization import LayerNorm

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
           "TransformerEncoderLayer"]

_LAYER = """
    Parameters
    ----------
    d_model : int
        Size of input and output.
    nhead : int
        Number of heads of the attention.
    dim_feedforward : int, default: 2048
    dropout : float, default: 0.1
    activation : {"relu", "gelu"} or callable, default: "relu"
    layer_norm_eps : float, default: 1e-5
    batch_first : bool, default: False
        Whether tensors are ``(N, L, E)`` and not ``(L, N, E)``.
    norm_first : bool, default: False
        Whether each block is preceded by its normalisation, and not followed by it.
    bias : bool, default: True
        Whether projections and normalisations have biases.
    device, dtype : optional
        Of the parameters.
"""


def _activation(module, given):
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"{type(module).__name__}: activation must be 'relu', 'gelu' or callable, got {given!r}")
    return F.relu if given == "relu" else F.gelu


def _causal_mask(length, device=None, dtype=None):
    return triu(full((length, length), -float("inf"), dtype=dtype, device=device), 1)


def _is_causal(mask, hint, x, batch_first):
    """The hint, or whether the mask is the causal one."""
    if hint is not None or mask is None:
        return hint is True
    length = x.shape[0] if x.ndim == 2 or not batch_first else x.shape[1]
    if tuple(mask.shape) != (length, length) or mask.dtype.kind != "f":
        return False
    return bool((mask == _causal_mask(length, mask.device, mask.dtype)).all())


class _Layer(Module):
    """The common part of encoder and decoder layers."""

    _torch_later = (("norm_first", False),)

    def __init__(self, d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first,
                 bias, device, dtype, crossed):
        super().__init__()
        made = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, **made)
        if crossed:
            self.multihead_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, **made)
        self.linear1 = Linear(d_model, dim_feedforward, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **made)
        self.norm_first = norm_first
        numbers = (1, 2, 3) if crossed else (1, 2)
        for k in numbers:
            setattr(self, f"norm{k}", LayerNorm(d_model, eps=layer_norm_eps, **made))
        for k in numbers:
            setattr(self, f"dropout{k}", Dropout(dropout))
        self.activation = _activation(self, activation)

    def __setstate__(self, state):
        super().__setstate__(state)
        if "activation" not in self._modules:
            self.__dict__.setdefault("activation", F.relu)

    def _added(self, x, norm, block, *args):
        """x plus the result of a block; normalised before or after."""
        return x + block(norm(x), *args) if self.norm_first else norm(x + block(x, *args))

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        x = self.self_attn(x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=False,
                           is_causal=is_causal)[0]
        return self.dropout1(x)

    def _feed_forward(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    __doc__ = f"""Self-attention and two linear maps, each added to its input and normalised.
{_LAYER}
    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> layer(ptcore.ones(3, 5, 8)).shape
    ptcore.Size([3, 5, 8])
    """

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True, device=None, dtype=None):
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first,
                         bias, device, dtype, False)
        activation = self.activation
        self.activation_relu_or_gelu = (1 if activation is F.relu or isinstance(activation, ReLU) else
                                        2 if activation is F.gelu or isinstance(activation, GELU) else 0)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        """Apply the layer.

        Masks are True, or a number to be added, where something does not count: `src_mask` of pairs ``(L, L)``,
        `src_key_padding_mask` of keys ``(N, L)``. `is_causal` is a hint that `src_mask` is the causal one.
        """
        need_tensor(self, "src", src)
        padding = additive_mask("TransformerEncoderLayer", "src_key_padding_mask", src_key_padding_mask, src.dtype,
                                src_mask)
        mask = additive_mask("TransformerEncoderLayer", "src_mask", src_mask, src.dtype)
        x = self._added(src, self.norm1, self._sa_block, mask, padding, is_causal)
        return self._added(x, self.norm2, self._ff_block)

    def _ff_block(self, x):
        return self.dropout2(self._feed_forward(x))


class TransformerDecoderLayer(_Layer):
    __doc__ = f"""Self-attention, attention to an encoder's output and two linear maps, each added and normalised.
{_LAYER}
    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> layer(ptcore.ones(3, 5, 8), ptcore.ones(3, 4, 8)).shape
    ptcore.Size([3, 5, 8])
    """

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True, device=None, dtype=None):
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first,
                         bias, device, dtype, True)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, tgt_is_causal=False, memory_is_causal=False):
        """Apply the layer to `tgt`, which attends to `memory`; masks as in the encoder's layer."""
        x = self._added(tgt, self.norm1, self._sa_block, tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        x = self._added(x, self.norm2, self._mha_block, memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        return self._added(x, self.norm3, self._ff_block)

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
        x = self.multihead_attn(x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask,
                                need_weights=False, is_causal=is_causal)[0]
        return self.dropout2(x)

    def _ff_block(self, x):
        return self.dropout3(self._feed_forward(x))


class _Stack(Module):
    def __init__(self, layer, num_layers, norm):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def _batch_first(self):
        return self.layers[0].self_attn.batch_first


class TransformerEncoder(_Stack):
    """Copies of an encoder layer, one after the other.

    Parameters
    ----------
    encoder_layer : TransformerEncoderLayer
        Copied `num_layers` times; the copies start with its values.
    num_layers : int
    norm : Module, optional
        Applied to the result.
    enable_nested_tensor, mask_check : bool
        Accepted; there are no nested tensors.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.TransformerEncoderLayer(8, 2, 16)
    >>> ptcore.nn.TransformerEncoder(layer, 2)(ptcore.ones(5, 3, 8)).shape
    ptcore.Size([5, 3, 8])
    """

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__(encoder_layer, num_layers, norm)
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = False
        self.mask_check = mask_check

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        """Apply the layers; whether `mask` is the causal one is looked up if `is_causal` is None."""
        need_tensor(self, "src", src)
        padding = additive_mask("TransformerEncoder", "src_key_padding_mask", src_key_padding_mask, src.dtype, mask)
        mask = additive_mask("TransformerEncoder", "mask", mask, src.dtype)
        causal = _is_causal(mask, is_causal, src, self._batch_first())
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=padding, is_causal=causal)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(_Stack):
    """Copies of a decoder layer, one after the other.

    Parameters
    ----------
    decoder_layer : TransformerDecoderLayer
        Copied `num_layers` times; the copies start with its values.
    num_layers : int
    norm : Module, optional
        Applied to the result.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.TransformerDecoderLayer(8, 2, 16)
    >>> ptcore.nn.TransformerDecoder(layer, 2)(ptcore.ones(5, 3, 8), ptcore.ones(4, 3, 8)).shape
    ptcore.Size([5, 3, 8])
    """

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__(decoder_layer, num_layers, norm)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, tgt_is_causal=None, memory_is_causal=False):
        """Apply the layers; whether `tgt_mask` is the causal one is looked up if `tgt_is_causal` is None."""
        causal = _is_causal(tgt_mask, tgt_is_causal, tgt, self._batch_first())
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                        tgt_key_padding_mask=tgt_key_padding_mask, memory_key_padding_mask=memory_key_padding_mask,
                        tgt_is_causal=causal, memory_is_causal=memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    __doc__ = f"""An encoder and a decoder that attends to its output.
{_LAYER.replace("    dim_feedforward", '''    num_encoder_layers, num_decoder_layers : int, default: 6
    dim_feedforward''', 1).replace("    layer_norm_eps", '''    custom_encoder, custom_decoder : Module, optional
        In place of the stacks of layers.
    layer_norm_eps''', 1)}
    Examples
    --------
    >>> import ptcore
    >>> model = ptcore.nn.Transformer(8, 2, 1, 1, 16)
    >>> model(ptcore.ones(5, 3, 8), ptcore.ones(4, 3, 8)).shape
    ptcore.Size([4, 3, 8])
    """

    def __init__(self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048,
                 dropout=0.1, activation=F.relu, custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True, device=None, dtype=None):
        super().__init__()
        given = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
                 device, dtype)

        def norm():
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)

        if custom_encoder is None:
            custom_encoder = TransformerEncoder(TransformerEncoderLayer(*given), num_encoder_layers, norm())
        self.encoder = custom_encoder
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(TransformerDecoderLayer(*given), num_decoder_layers, norm())
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None,
                tgt_key_padding_mask=None, memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None,
                memory_is_causal=False):
        """Encode `src` and decode `tgt`; masks as in the layers."""
        dim = 0 if self.batch_first else 1
        need_tensor(self, "src", src)
        need_tensor(self, "tgt", tgt)
        if src.ndim not in (2, 3) or tgt.ndim != src.ndim:
            raise RuntimeError(f"Transformer: src and tgt must both have 2 or 3 dimensions, got {src.ndim} and "
                               f"{tgt.ndim}")
        if src.ndim == 3 and src.shape[dim] != tgt.shape[dim]:
            raise RuntimeError(f"Transformer: src and tgt must have one batch size, got shapes {list(src.shape)} and "
                               f"{list(tgt.shape)}")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError(f"Transformer: the last sizes of src and tgt must be d_model, {self.d_model}, got "
                               f"shapes {list(src.shape)} and {list(tgt.shape)}")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                            tgt_key_padding_mask=tgt_key_padding_mask,
                            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
                            memory_is_causal=memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        """The causal mask: -inf above the diagonal, else 0.

        Examples
        --------
        >>> import ptcore
        >>> ptcore.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return _causal_mask(sz, device, dtype)

    def _reset_parameters(self):
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)
