"""Attention whose scores are modified and masked by functions of positions."""
import contextlib
import math
import warnings
from collections.abc import Callable
from typing import NamedTuple, TypedDict

import ptcore
from ptcore._ops.plan.plan import can_plan
from ptcore._state import is_history_recorded
from ptcore._tensor import Tensor
from ptcore.amp.autocast_mode import autocast, get_autocast_dtype, is_autocast_enabled
from ptcore.nn.attention._block_mask import (
    DEFAULT_BLOCK,
    WHOLE,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    dense_of,
    noop_mask,
    or_masks,
    over_positions,
    sliced_mask_mod,
)

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask",
           "flex_attention", "noop_mask", "or_masks"]

_DEFAULT_SPARSE_BLOCK_SIZE = DEFAULT_BLOCK
_score_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
_mask_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
_warned = set()
SCORES = 1 << 16            # with fewer scores all are computed at once


class FlexKernelOptions(TypedDict, total=False):
    """PyTorch's options for its kernels; they are accepted and have no effect."""

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    BLOCK_M1: int
    BLOCK_N1: int
    BLOCK_M2: int
    BLOCK_N2: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool
    FORCE_USE_FLEX_ATTENTION: bool
    USE_TMA: bool
    kpack: int
    matrix_instr_nonkdim: int
    waves_per_eu: int
    BACKEND: str


class AuxRequest(NamedTuple):
    """The results that :func:`flex_attention` returns beside its output."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The results requested by :class:`AuxRequest`, of shape (B, Hq, L) each; the others are None."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def _check(query, key, value, block_mask, enable_gqa):
    tensors = {"query": query, "key": key, "value": value}
    if len({t.device for t in tensors.values()}) > 1:
        raise ValueError("flex_attention: query, key and value must be on one device, got "
                         + ", ".join(f"{name} on {t.device}" for name, t in tensors.items()))
    if any(t.dim() < 2 for t in tensors.values()):
        raise ValueError("flex_attention: query, key and value must have at least 2 dims, got "
                         + ", ".join(f"{name} of {t.dim()}" for name, t in tensors.items()))
    if query.shape[-1] != key.shape[-1]:
        raise ValueError("Expect query and key/value to have the same embedding dimension but got "
                         f"E={query.shape[-1]} and E={key.shape[-1]}.")
    if any(t.dim() != 4 for t in tensors.values()):
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    (batch, heads, length, _), (keys_batch, keys_heads, keys, _) = query.shape, key.shape
    if not enable_gqa and heads != keys_heads:
        raise ValueError("Expect query and key/value to have the same number of heads but got "
                         f"Hq={heads} and Hkv={keys_heads}. Try setting enable_gqa=True for GQA.")
    if enable_gqa and heads % keys_heads:
        raise ValueError("Expect number of query heads to be a multiple of kv heads for GQA but got "
                         f"Hq={heads} and Hkv={keys_heads}.")
    if batch != keys_batch:
        if block_mask is None:
            raise ValueError("Expect query and key/value to have the same batch size, or non-none block_mask, but got "
                             f"block_mask=None, Bq={batch}, and Bkv={keys_batch}.")
        if block_mask.kv_num_blocks.shape[0] != batch:
            raise ValueError("Expect query and key/value to have the same batch size, or block_mask and query to have "
                             f"the same batch size, but got Bq={batch}, Bkv={keys_batch}, "
                             f"B_block_mask={block_mask.kv_num_blocks.shape[0]}.")
        if keys_batch != 1:
            raise RuntimeError(f"Bq and Bkv must broadcast. Got Bq={batch} and Bkv={keys_batch}")
    if block_mask is None:
        return
    if block_mask.mask_mod is sliced_mask_mod:
        raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")
    if tuple(block_mask.BLOCK_SIZE) != (WHOLE, WHOLE) and (length, keys) != tuple(block_mask.shape[-2:]):
        smaller = length > block_mask.shape[-2] or keys > block_mask.shape[-1]
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={length} and "
            f"kv_len={keys}. " + (
                "As the block mask was created for a smaller length than you're using it for, you likely need to "
                "create a new block mask." if smaller else
                "As the block mask was created for a larger length than you're using it for, you can either 1. create "
                "a new block mask with the correct length, or 2. 'adjust' the existing block mask to the correct "
                "length by calling block_mask._adjust(q_len, kv_len), which crops it to the upper left corner."))
    if query.device != block_mask.kv_num_blocks.device:
        raise RuntimeError("Expect q/k/v and block_mask to be on the same device but got "
                           f"{query.device} and {block_mask.kv_num_blocks.device}.")


def _allowed(block_mask, positions):
    """Whether queries may attend to keys, with a shape that broadcasts to (B, H, L, S); None: all may."""
    found = None
    if block_mask.mask_mod is not noop_mask:
        found = over_positions(block_mask.mask_mod)(*positions)
        if found.dtype != ptcore.bool:
            raise RuntimeError(f"flex_attention: mask_mod must return bool, got {found.dtype}")
        for dim in (0, 1):              # a dim on which the values do not depend is kept once
            if found.stride(dim) == 0:
                found = found[(slice(None),) * dim + (slice(1),)]
    if tuple(block_mask.BLOCK_SIZE) == (WHOLE, WHOLE):
        return found
    down, across = block_mask.BLOCK_SIZE
    length, keys = len(positions[2]), len(positions[3])

    def spread(numbers, indices):
        """The blocks as a mask of positions."""
        dense = dense_of(numbers, indices, indices.shape[-1]).to(ptcore.bool)
        *batches, rows, columns = dense.shape
        dense = dense[..., :, None, :, None].expand(*batches, rows, down, columns, across)
        return dense.reshape(*batches, rows * down, columns * across)[..., :length, :keys]

    blocks = spread(block_mask.kv_num_blocks, block_mask.kv_indices)
    found = blocks if found is None else found & blocks
    if block_mask.full_kv_num_blocks is not None:
        found = found | spread(block_mask.full_kv_num_blocks, block_mask.full_kv_indices)
    return found


def _composed(query, key, value, score_mod, allowed, positions, scale, request):
    """(output, lse, max_scores), computed with all scores."""
    work = ptcore.float64 if query.dtype == ptcore.float64 else ptcore.float32
    heads = (key.shape[1], query.shape[1] // key.shape[1])
    q, k = query.to(work).unflatten(1, heads), key.to(work).unsqueeze(2)
    scores = (q @ k.transpose(-2, -1)).flatten(1, 2) * scale
    if score_mod is not None:
        scores = over_positions(score_mod, scores)(scores, *positions).to(work)
    if allowed is not None:
        scores = ptcore.where(allowed, scores, -math.inf)
    # A row without a key has an output of zeros and no gradient.
    empty = (scores == -math.inf).all(-1, keepdim=True)
    safe = scores.masked_fill(empty, 0.0)
    weights = safe.softmax(-1).masked_fill(empty, 0.0).to(query.dtype)
    out = (weights.unflatten(1, heads) @ value.to(query.dtype).unsqueeze(2)).flatten(1, 2)
    lse = most = None
    if request.lse:
        lse = safe.logsumexp(-1).masked_fill(empty.squeeze(-1), -math.inf)
    if request.max_scores:
        most = scores.max(-1).values
    return out, lse, most


def _in_tiles(query, key, value, score_mod, block_mask, positions, scale, request):
    """(output, lse, max_scores) by the kernel of tiles; None if it does not support the call."""
    batch, heads, length, size = query.shape
    dtype, keys = query.dtype, key.shape[2]
    if (batch * heads * length * keys < SCORES or not size or key.dtype != dtype or value.dtype != dtype
            or dtype.kind != "f" or (score_mod is None and block_mask is None and not any(request))
            or not can_plan([query, key, value])):
        return None
    needs_grad = is_history_recorded() and (query.requires_grad or key.requires_grad or value.requires_grad)
    if needs_grad and request.max_scores:
        return None
    from ptcore.nn.attention import _tiles

    def composed(query, key, value):
        allowed = None if block_mask is None else _allowed(block_mask, positions)
        return _composed(query, key, value, score_mod, allowed, positions, scale, AuxRequest(lse=True))[:2]

    try:
        tiles = _tiles.tiles_of(query, key, score_mod, block_mask, needs_grad)
    except _tiles.NoFormula:
        return None
    out, lse, most = _tiles.attend(query, key, value, tiles, scale, composed)
    return out, lse if request.lse else None, most if request.max_scores else None


def flex_attention(query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False, return_lse=False,
                   kernel_options=None, *, return_aux=None):
    r"""Attention whose scores are changed by a function of positions.

    .. math:: o_{bhi} = \sum_j \mathrm{softmax}_j\bigl(m(s \, q_{bhi} \cdot k_{bhj}, b, h, i, j)\bigr) \, v_{bhj}

    where :math:`m` is ``score_mod``, :math:`s` is ``scale`` and :math:`j` are the keys that ``block_mask`` allows
    (Dong, Feng, Guessous, Liang, He, "Flex Attention", 2024). A query that may look at no key has an output of 0.

    Parameters
    ----------
    query : Tensor
        Of shape (B, Hq, L, E).
    key, value : Tensor
        Of shape (B, Hkv, S, E) and (B, Hkv, S, Ev). With a ``block_mask`` of B batches they may have one batch.
    score_mod : callable, optional
        A function of (score, b, h, q_idx, kv_idx) that returns the new score. It is called with tensors of one number,
        as a function under ``vmap``, and may use other tensors, to which gradients flow.
    block_mask : BlockMask, optional
        The keys that are looked at: those in its partial blocks that its ``mask_mod`` allows, and those in its full
        blocks. See :func:`create_block_mask`.
    scale : float, optional
        :math:`1 / \sqrt{E}` if None.
    enable_gqa : bool
        Whether Hq may be a multiple of Hkv; consecutive heads of queries then share a head of keys.
    return_lse : bool
        Whether the logarithm of the sum of the scores' exponentials is returned too. Deprecated as in PyTorch: ask by
        ``return_aux``.
    kernel_options : dict, optional
        Taken, and without effect; see :class:`FlexKernelOptions`.
    return_aux : AuxRequest, optional
        The additional results to return.

    Returns
    -------
    Tensor or tuple
        The output, of shape (B, Hq, L, Ev) and the dtype of ``query``. With ``return_aux``, a pair of it and an
        :class:`AuxOutput`; with ``return_lse``, a pair of it and the logarithms, of shape (B, Hq, L).

    Raises
    ------
    ValueError
        If shapes, devices or the lengths of ``block_mask`` do not fit, or ``return_lse`` and ``return_aux`` are given.
    NotImplementedError
        If a tensor has not 4 dims.
    RuntimeError
        If ``block_mask`` is a slice whose ``mask_mod`` was not set.

    Notes
    -----
    On the CPU, and where there are many scores, functions that are formulas (elementwise ops of the score and the
    positions, and elements of other tensors at positions) become a part of the attention kernel. It keeps the scores of
    one tile at a time, forward and backward, and skips the blocks that ``block_mask`` leaves out. This needs blocks of
    a multiple of 16 queries. In other cases all B Hq L S scores are computed: for functions that are no formulas, for
    gradients of tensors that a function holds, for gradients of gradients, and under ``compile(fullgraph=True)``.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.nn.attention.flex_attention import create_block_mask, flex_attention
    >>> q, k, v = ptcore.randn(3, 2, 4, 32, 8)
    >>> slopes = ptcore.tensor([0.5, 0.25, 0.125, 0.0625])
    >>> mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 32, 32, device="cpu")
    >>> out = flex_attention(q, k, v, lambda s, b, h, q, k: s - slopes[h] * (q - k), mask)
    >>> out.shape
    ptcore.Size([2, 4, 32, 8])
    """
    _check(query, key, value, block_mask, enable_gqa)
    if return_lse and return_aux is not None:
        raise ValueError("Cannot specify both return_lse and return_aux. return_lse is deprecated, please use "
                         "return_aux=AuxRequest(lse=True) instead.")
    if return_lse and "return_lse" not in _warned:
        _warned.add("return_lse")
        warnings.warn("return_lse is deprecated: use return_aux=AuxRequest(lse=True)", FutureWarning, stacklevel=2)
    backend = (kernel_options or {}).get("BACKEND", "AUTO")
    if backend not in ("AUTO", "TRITON", "FLASH", "TRITON_DECODE"):
        raise ValueError(f"Invalid BACKEND value '{backend}'. "
                         "Must be one of ('AUTO', 'TRITON', 'FLASH', 'TRITON_DECODE')")
    kind, context = query.device.type, contextlib.nullcontext()
    if kind != "meta" and is_autocast_enabled(kind):
        dtype, context = get_autocast_dtype(kind), autocast(kind, enabled=False)
        query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
    with context:
        request = AuxRequest(lse=return_lse) if return_aux is None else return_aux
        if scale is None:
            scale = 1 / math.sqrt(query.shape[-1])
        batch, heads, length = query.shape[:3]
        if len(key) != batch:
            key, value = (t.expand(batch, *t.shape[1:]) for t in (key, value))
        positions = [ptcore.arange(n, device=query.device) for n in (batch, heads, length, key.shape[2])]
        tiled = _in_tiles(query, key, value, score_mod, block_mask, positions, scale, request)
        allowed = None if tiled or block_mask is None else _allowed(block_mask, positions)
        if tiled:
            out, lse, most = tiled
        elif score_mod is None and not any(request):
            key, value = key.to(query.dtype), value.to(query.dtype)
            out = ptcore.nn.functional.scaled_dot_product_attention(query, key, value, allowed, scale=scale,
                                                                    enable_gqa=enable_gqa)
            lse = most = None
        else:
            out, lse, most = _composed(query, key, value, score_mod, allowed, positions, scale, request)
    if return_aux is not None:
        return out, AuxOutput(lse, most)
    return (out, lse) if return_lse else out


def _captured(r, args, kwargs):
    """The capture of a call. A graph cannot hold tiles, so calls with many scores run eagerly if they may."""
    query, key = (args[k] if k < len(args) else kwargs.get(name) for k, name in enumerate(("query", "key")))
    if not r.capture.settings.fullgraph and isinstance(query, Tensor) and isinstance(key, Tensor) and (
            query.dim() == key.dim() == 4 and math.prod(query.shape[:3]) * key.shape[2] >= SCORES):
        r.unsupported("it calls flex_attention, whose tiles no graph holds")
    from ptcore.jit.capture.calls import as_it_is
    return as_it_is(r, flex_attention, args, kwargs)


flex_attention._captured_as = _captured
