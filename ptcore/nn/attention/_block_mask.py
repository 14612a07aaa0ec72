"""Masks given by formulas of positions, and the blocks of positions in which they are not empty.

For each row of blocks, a ``BlockMask`` keeps the number of its non-empty blocks (``kv_num_blocks``) and their columns
(the first entries of ``kv_indices``). Blocks without a masked position may be listed in a second such pair, for which
``mask_mod`` is not evaluated. The same pairs along columns (``q_num_blocks``, ...) are derived from them.
"""
import inspect
import itertools
import math
from numbers import Integral

import ptcore
from ptcore._trees.tree import register_pytree_node
from ptcore.autograd.batch import vmap

DEFAULT_BLOCK = 128
WHOLE = 1 << 30             # block size of a mask with one block for all lengths
POSITIONS = 1 << 24         # number of positions that create_block_mask evaluates together


def parameters_of(f):
    """The number of positional parameters without defaults: 4 of a mask_mod, 5 of a score_mod."""
    code = getattr(f, "__code__", None)
    if code is not None:
        count = code.co_argcount - len(getattr(f, "__defaults__", None) or ())
    else:
        count = sum(p.default is p.empty for p in inspect.signature(f).parameters.values())
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return count


def over_positions(f, *scores):
    """Wraps ``f``, a function of numbers, as one of all b, h, q_idx and kv_idx (and of ``scores`` before them)."""
    for place in (3, 2, 1, 0):
        dims = [None] * 4
        dims[place] = 0
        f = vmap(f, in_dims=(0,) * len(scores) + tuple(dims))
    return f


def noop_mask(batch, head, token_q, token_kv):
    """The ``mask_mod`` that masks nothing."""
    return batch.new_ones((), dtype=ptcore.bool)


def sliced_mask_mod(batch, head, token_q, token_kv):
    """The ``mask_mod`` of a slice, with an offset of its positions."""
    raise RuntimeError("Cannot use mask_mod from a sliced BlockMask: its positions begin elsewhere. Set the slice's "
                       "mask_mod from that of the whole BlockMask.")


def _callables(mask_mods):
    if not all(callable(f) for f in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")


def or_masks(*mask_mods):
    """The ``mask_mod`` that allows a position if any of ``mask_mods`` allows it.

    Parameters
    ----------
    *mask_mods : callable
        Functions of (b, h, q_idx, kv_idx).

    Returns
    -------
    callable

    Raises
    ------
    RuntimeError
        If one cannot be called.
    """
    _callables(mask_mods)

    def or_mask(b, h, q_idx, kv_idx):
        result = b.new_zeros((), dtype=ptcore.bool)
        for f in mask_mods:
            result = result | f(b, h, q_idx, kv_idx)
        return result

    return or_mask


def and_masks(*mask_mods):
    """The ``mask_mod`` that allows a position if all of ``mask_mods`` allow it.

    Parameters
    ----------
    *mask_mods : callable
        Functions of (b, h, q_idx, kv_idx).

    Returns
    -------
    callable

    Raises
    ------
    RuntimeError
        If one cannot be called.

    Examples
    --------
    >>> from ptcore.nn.attention.flex_attention import and_masks, create_mask
    >>> near = and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 2)
    >>> create_mask(near, 1, 1, 3, 3, device="cpu")[0, 0].int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [0, 1, 1]], dtype=ptcore.int32)
    """
    _callables(mask_mods)

    def and_mask(b, h, q_idx, kv_idx):
        result = b.new_ones((), dtype=ptcore.bool)
        for f in mask_mods:
            result = result & f(b, h, q_idx, kv_idx)
        return result

    return and_mask


def ordered(dense):
    """(numbers, columns) of a mask of 0 and 1: the number of ones in each row, and the columns with the ones first."""
    order = dense.to(ptcore.int8).argsort(dim=-1, descending=True, stable=True)
    return dense.sum(-1, dtype=ptcore.int32), order.to(ptcore.int32)


def dense_of(numbers, columns, count):
    """The mask of 0 and 1 with ``count`` columns: the inverse of :func:`ordered`."""
    entries = ptcore.arange(columns.shape[-1], dtype=ptcore.int32, device=columns.device)
    where = ptcore.where(entries < numbers.unsqueeze(-1), columns, count).to(ptcore.int64)
    found = columns.new_zeros((*columns.shape[:-1], count + 1))
    return found.scatter(-1, where, 1)[..., :count].contiguous()


def _transposed(numbers, columns):
    if numbers is None:
        return None, None
    return ordered(dense_of(numbers, columns, columns.shape[-1]).transpose(-2, -1))


def _kept(i):
    """An index that keeps its dim: the slice of one element for an int, which is empty where it is out of range."""
    if i is None or i is ... or isinstance(i, bool):
        raise TypeError(f"BlockMask: an index must be an int, a slice or a Tensor, got {i}")
    return slice(int(i), int(i) + 1 or None) if isinstance(i, Integral) else i


class BlockMask:
    """The blocks of positions that attention computes, and the ``mask_mod`` for the positions in them.

    :func:`create_block_mask` makes one from a formula, :meth:`from_kv_blocks` from blocks.

    Attributes
    ----------
    seq_lengths : tuple of int
        Lengths of queries and of keys.
    kv_num_blocks, kv_indices : Tensor
        Of each row of blocks, how many are looked at, of shape (B, H, rows), and which, of shape (B, H, rows, columns),
        those first; what follows has no meaning.
    full_kv_num_blocks, full_kv_indices : Tensor or None
        Blocks to which ``mask_mod`` does not apply, in the same form.
    q_num_blocks, q_indices, full_q_num_blocks, full_q_indices : Tensor or None
        The same along columns.
    BLOCK_SIZE : tuple of int
        Queries and keys of a block.
    mask_mod : callable
        A function of (b, h, q_idx, kv_idx).
    """

    # PyTorch's orders of writing gradients, for a kernel of its CUDA backend.
    dq_write_order = dq_write_order_full = dq_kv_order = dq_kv_order_spt = None

    _TENSORS = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices",
                "full_q_num_blocks", "full_q_indices")
    # fields by which a capture guards and makes an instance
    _captured_fields = ("seq_lengths", *_TENSORS, "BLOCK_SIZE", "mask_mod")

    def __init__(self, seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, q_num_blocks,
                 q_indices, full_q_num_blocks, full_q_indices, BLOCK_SIZE=(DEFAULT_BLOCK, DEFAULT_BLOCK),
                 mask_mod=noop_mask):
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        for numbers, columns, name in ((full_kv_num_blocks, full_kv_indices, "full_kv"),
                                       (full_q_num_blocks, full_q_indices, "full_q")):
            if (numbers is None) != (columns is None):
                raise AssertionError(f"{name}_num_blocks and {name}_indices must be both provided or omitted")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(cls, kv_num_blocks, kv_indices, full_kv_num_blocks=None, full_kv_indices=None,
                       BLOCK_SIZE=DEFAULT_BLOCK, mask_mod=None, seq_lengths=None, compute_q_blocks=True):
        """A mask of the blocks along rows.

        Parameters
        ----------
        kv_num_blocks, kv_indices : Tensor
            See the class.
        full_kv_num_blocks, full_kv_indices : Tensor, optional
            See the class.
        BLOCK_SIZE : int or tuple of int
            Queries and keys of a block.
        mask_mod : callable, optional
            A function of (b, h, q_idx, kv_idx); without one, all positions of the blocks are looked at.
        seq_lengths : tuple of int, optional
            Lengths of queries and keys, without which the blocks are all whole.
        compute_q_blocks : bool
            Whether the blocks along columns are made.

        Returns
        -------
        BlockMask

        Raises
        ------
        RuntimeError
            If ``kv_indices`` has fewer than 2 dims.
        AssertionError
            If one of the pair of full blocks is missing.
        """
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        along_columns = [None] * 4
        if compute_q_blocks:
            along_columns = [*_transposed(kv_num_blocks, kv_indices),
                             *_transposed(full_kv_num_blocks, full_kv_indices)]
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        if seq_lengths is None:
            seq_lengths = tuple(n * s for n, s in zip(kv_indices.shape[-2:], size))
        return cls(seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *along_columns,
                   BLOCK_SIZE=size, mask_mod=noop_mask if mask_mod is None else mask_mod)

    def as_tuple(self, flatten=True):
        """All fields as a tuple, in PyTorch's order; with ``flatten`` a pair of sizes is two entries."""
        lengths, size = (self.seq_lengths, self.BLOCK_SIZE) if flatten else ((self.seq_lengths,), (self.BLOCK_SIZE,))
        return (*lengths, *(getattr(self, name) for name in self._TENSORS), self.dq_write_order,
                self.dq_write_order_full, self.dq_kv_order, self.dq_kv_order_spt, *size, self.mask_mod)

    @property
    def shape(self):
        """(B, H, queries, keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self):
        """The number of positions, masked or not."""
        return math.prod(self.shape)

    def sparsity(self):
        """The percentage of positions in blocks that attention skips."""
        blocks = self.kv_num_blocks.sum().item()
        if self.full_kv_num_blocks is not None:
            blocks += self.full_kv_num_blocks.sum().item()
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self):
        """The blocks as a mask of 0 and 1, of shape (B, H, rows, columns)."""
        found = dense_of(self.kv_num_blocks, self.kv_indices, self.kv_indices.shape[-1])
        if self.full_kv_num_blocks is not None:
            found = found | dense_of(self.full_kv_num_blocks, self.full_kv_indices, self.full_kv_indices.shape[-1])
        return found

    def _of_same(self, blocks, seq_lengths, mask_mod):
        return self.from_kv_blocks(*blocks, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=mask_mod, seq_lengths=seq_lengths,
                                   compute_q_blocks=self.q_indices is not None)

    def __getitem__(self, index):
        """The mask of some batches, heads and rows of blocks; an int keeps its dim. ``mask_mod`` must be set again."""
        index = index if isinstance(index, tuple) else (index,)
        index = tuple(map(_kept, index))
        blocks = [None if t is None else t[index] for t in (self.kv_num_blocks, self.kv_indices,
                                                            self.full_kv_num_blocks, self.full_kv_indices)]
        return self._of_same(blocks, self.seq_lengths, sliced_mask_mod)

    def _adjust(self, new_q_len, new_kv_len):
        """The upper left corner of the mask, for fewer queries and keys."""
        rows, columns = (-(-n // size) for n, size in zip((new_q_len, new_kv_len), self.BLOCK_SIZE))
        blocks = []
        for pair in ((self.kv_num_blocks, self.kv_indices), (self.full_kv_num_blocks, self.full_kv_indices)):
            blocks += (None, None) if pair[0] is None else ordered(
                dense_of(*pair, pair[1].shape[-1])[..., :rows, :columns])
        return self._of_same(blocks, (new_q_len, new_kv_len), self.mask_mod)

    def to(self, device):
        """A mask whose tensors are on ``device``; tensors in ``mask_mod`` are not moved."""
        tensors = [None if t is None else t.to(device) for t in (getattr(self, name) for name in self._TENSORS)]
        return BlockMask(self.seq_lengths, *tensors, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod)

    def to_string(self, grid_size=(20, 20), limit=4):
        """A drawing: full, partly empty and empty squares of blocks.

        Parameters
        ----------
        grid_size : int or tuple of int
            How many rows and columns are drawn at most; -1 draws every block.
        limit : int
            How many batches and heads are drawn.

        Returns
        -------
        str
        """
        dense = self.to_dense().to(ptcore.float32)
        *batches, rows, columns = dense.shape
        most = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        down, across = (max(1, -(-n // m)) for n, m in zip((rows, columns), most))
        pictures = []
        for number, place in enumerate(itertools.product(*map(range, batches))):
            if number == limit:
                pictures += ["...", "To print out more, set BlockMask.to_string(limit=N)",
                             "You can also index (BlockMask[batch, head]) to choose a specific batch or head"]
                break
            lines = [f"{place}"]
            for r in range(0, rows, down):
                shares = [dense[place][r:r + down, c:c + across].mean().item() for c in range(0, columns, across)]
                lines.append("".join("██" if s == 1 else "  " if s == 0 else "░░" for s in shares))
            pictures.append("\n".join(lines) + "\n")
        return "\n".join(pictures)

    def __str__(self):
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def __repr__(self):
        shapes = ((name, getattr(self, name)) for name in self._TENSORS)
        lines = [f"{name}={None if t is None else t.shape}" for name, t in shapes]
        lines += [f"BLOCK_SIZE={self.BLOCK_SIZE}", f"shape={self.shape}", f"sparsity={self.sparsity():.2f}%",
                  f"mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}"]
        return "BlockMask(\n    " + ",\n    ".join(lines) + "\n)"


def _flatten(mask):
    return [getattr(mask, name) for name in BlockMask._TENSORS], (mask.seq_lengths, mask.BLOCK_SIZE, mask.mask_mod)


def _unflatten(tensors, context):
    lengths, size, mask_mod = context
    return BlockMask(lengths, *tensors, BLOCK_SIZE=size, mask_mod=mask_mod)


register_pytree_node(BlockMask, _flatten, _unflatten)


def _sizes(B, H, device):
    if device is None:
        device = ptcore.accelerator.current_accelerator() or "cpu"
    return 1 if B is None else B, 1 if H is None else H, device


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None):
    """The mask of a formula, one number for each position.

    Parameters
    ----------
    mod_fn : callable
        A ``mask_mod``, of (b, h, q_idx, kv_idx), or a ``score_mod``, of (score, b, h, q_idx, kv_idx), which masks where
        it makes a score of 0 to -inf. It is called with tensors of one number, as a function under ``vmap``.
    B, H : int or None
        Batches and heads of queries; None is 1.
    Q_LEN, KV_LEN : int
        Queries and keys.
    device : device, optional
        Where the mask is made; the accelerator if there is one, else the CPU.

    Returns
    -------
    Tensor
        bool, of shape (B, H, Q_LEN, KV_LEN).

    Raises
    ------
    AssertionError
        If ``mod_fn`` has neither 4 nor 5 parameters.

    Examples
    --------
    >>> from ptcore.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, k: q >= k, None, None, 2, 3, device="cpu")
    tensor([[[[ True, False, False],
              [ True,  True, False]]]])
    """
    B, H, device = _sizes(B, H, device)
    positions = [ptcore.arange(n, device=device) for n in (B, H, Q_LEN, KV_LEN)]
    if parameters_of(mod_fn) == 4:
        return over_positions(mod_fn)(*positions)
    zeros = ptcore.zeros(B, H, Q_LEN, KV_LEN, device=device)
    return ~over_positions(mod_fn, zeros)(zeros, *positions).isneginf()


def create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, device=None, BLOCK_SIZE=DEFAULT_BLOCK, _compile=False,
                      separate_full_blocks=True):
    """The blocks in which a formula allows some position.

    Parameters
    ----------
    mask_mod : callable
        A function of (b, h, q_idx, kv_idx), which is called with tensors of one number, as a function under ``vmap``,
        and returns whether the query may look at the key.
    B, H : int or None
        Batches and heads of queries; None is 1, which stands for all of them.
    Q_LEN, KV_LEN : int
        Queries and keys.
    device : device, optional
        Where the mask is made; the accelerator if there is one, else the CPU.
    BLOCK_SIZE : int or tuple of int
        Queries and keys of a block.
    _compile : bool
        Changes nothing: rows of blocks are looked at one after the other.
    separate_full_blocks : bool
        Whether blocks without a masked position are kept apart, so that ``mask_mod`` is not asked about them.

    Returns
    -------
    BlockMask

    Raises
    ------
    AssertionError
        If ``mask_mod`` has not 4 parameters.

    Examples
    --------
    >>> from ptcore.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 64, 64, device="cpu", BLOCK_SIZE=16)
    >>> mask.shape, mask.sparsity()
    ((1, 1, 64, 64), 37.5)
    >>> mask.to_dense()[0, 0]
    tensor([[1, 0, 0, 0],
            [1, 1, 0, 0],
            [1, 1, 1, 0],
            [1, 1, 1, 1]], dtype=ptcore.int32)
    """
    if parameters_of(mask_mod) != 4:
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    B, H, device = _sizes(B, H, device)
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    b, h, q, k = (ptcore.arange(n, device=device) for n in (B, H, Q_LEN, KV_LEN))
    columns = -(-KV_LEN // size[1])
    rows = max(1, POSITIONS // max(1, B * H * KV_LEN * size[0])) * size[0]
    counts = []
    for part in q.split(rows):
        allowed = over_positions(mask_mod)(b, h, part, k)
        if allowed.dtype != ptcore.bool:
            raise AssertionError(f"create_block_mask: mask_mod must return bool, got {allowed.dtype}")
        bottom = -len(part) % size[0]
        allowed = ptcore.nn.functional.pad(allowed, (0, columns * size[1] - KV_LEN, 0, bottom))
        counts.append(allowed.unflatten(-1, (columns, size[1])).unflatten(-3, (-1, size[0])).sum((-3, -1)))
    counts = ptcore.cat(counts, -2)
    whole = size[0] * size[1]
    if separate_full_blocks:
        blocks = (*ordered((counts > 0) & (counts < whole)), *ordered(counts == whole))
    else:
        blocks = ordered(counts > 0)
    return BlockMask.from_kv_blocks(*blocks, BLOCK_SIZE=size, mask_mod=mask_mod, seq_lengths=(Q_LEN, KV_LEN))
