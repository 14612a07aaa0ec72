"""Sequences of different lengths: padded to one tensor, or packed without the padding.

A packed sequence holds the elements step by step: first the first elements of all sequences, the longest sequence
first, then the second elements, and so on; ``batch_sizes[t]`` sequences have a step t.
"""

import itertools
from collections import namedtuple
from collections.abc import Iterable

import ptcore
from ptcore import Tensor
from ptcore._errors import OutOfRangeError, ShapeError
from ptcore._ops.call.offer import overridable
from ptcore._ops.checked import flag, need_tensors, real

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
           "pad_sequence", "unpack_sequence", "unpad_sequence"]

_UNSORTED = ("{op}: `lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
             "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement")


_Fields = namedtuple("PackedSequence_", ("data", "batch_sizes", "sorted_indices", "unsorted_indices"))


class PackedSequence(_Fields):
    """The result of :func:`pack_padded_sequence` and an input of recurrent modules.

    Attributes
    ----------
    data : Tensor, shape (sum of lengths, ...)
    batch_sizes : Tensor of int64, on the CPU
        How many sequences reach each step.
    sorted_indices, unsorted_indices : Tensor of int64 or None
        The order of the sequences by length, and its inverse; None where they were sorted.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.nn.utils.rnn import pack_sequence
    >>> pack_sequence([ptcore.tensor([1, 2]), ptcore.tensor([3])]).data
    tensor([1, 3, 2])
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("PackedSequence: Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif isinstance(batch_sizes, Tensor) and batch_sizes.device.type != "cpu":
            raise ValueError(f"PackedSequence: batch_sizes should always be on CPU, got {batch_sizes.device}. It is "
                             "made by pack_sequence and pack_padded_sequence")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def __getnewargs__(self):
        return tuple(self)

    def _with(self, data):
        order, back = [None if i is None else i.to(data.device) for i in self[2:]]
        return type(self)(data, self.batch_sizes, order, back)

    def to(self, *args, **kwargs):
        """The same sequences with `data` moved or converted as by :meth:`ptcore.Tensor.to`."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._with(data)

    def cpu(self, *args, **kwargs):
        """The same sequences on the CPU."""
        return self.to(*args, **kwargs, device="cpu") if args or kwargs else self.to("cpu")

    def cuda(self, *args, **kwargs):
        """The same sequences on a CUDA device."""
        return self._with(self.data.cuda(*args, **kwargs))

    def pin_memory(self):
        """The same sequences in page-locked memory."""
        return self._with(self.data.pin_memory())

    def double(self):
        """In float64."""
        return self.to(dtype=ptcore.float64)

    def float(self):
        """In float32."""
        return self.to(dtype=ptcore.float32)

    def half(self):
        """In float16."""
        return self.to(dtype=ptcore.float16)

    def long(self):
        """In int64."""
        return self.to(dtype=ptcore.int64)

    def int(self):
        """In int32."""
        return self.to(dtype=ptcore.int32)

    def short(self):
        """In int16."""
        return self.to(dtype=ptcore.int16)

    def char(self):
        """In int8."""
        return self.to(dtype=ptcore.int8)

    def byte(self):
        """In uint8."""
        return self.to(dtype=ptcore.uint8)

    @property
    def is_cuda(self):
        """Whether `data` is on a CUDA device."""
        return self.data.is_cuda

    def is_pinned(self):
        """Whether `data` is in page-locked memory."""
        return self.data.is_pinned()


def invert_permutation(permutation):
    """The permutation that undoes another one; None of None.

    >>> import ptcore
    >>> from ptcore.nn.utils.rnn import invert_permutation
    >>> invert_permutation(ptcore.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    result = ptcore.empty_like(permutation)
    count = ptcore.arange(permutation.numel(), device=permutation.device, dtype=permutation.dtype)
    return result.scatter_(0, permutation, count)


def _places(lengths, width, batch_first, steps, device):
    """The position of each row of a packed sequence in the flattened padded one, and the batch sizes.

    `lengths` are in decreasing order; `width` says which sequence of the batch each one is."""
    longest = lengths[0] if lengths else 0
    count = ptcore.tensor(lengths, dtype=ptcore.int64, device="cpu")
    row = ptcore.arange(longest, device="cpu").unsqueeze(1)
    inside = row < count.unsqueeze(0)
    column = ptcore.arange(len(lengths), device="cpu") if width is None else width.to("cpu")
    flat = row + column.unsqueeze(0) * steps if batch_first else row * len(lengths) + column.unsqueeze(0)
    return flat.masked_select(inside).to(device), inside.sum(1)


def _list_of_lengths(op, lengths):
    """Lengths as a list of ints: from a vector of int64, or from a sequence of numbers."""
    if isinstance(lengths, (str, bytes)) or lengths is None:
        raise TypeError(f"{op}: lengths must be a Tensor or a list of int, got {type(lengths).__name__}")
    if not isinstance(lengths, Tensor):
        given = ptcore.as_tensor(lengths, device="cpu")
        lengths = given.to(ptcore.int64)
        if not bool((lengths == given).all()):
            raise RuntimeError(f"{op}: lengths must be whole numbers, got {given.tolist()}")
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or lengths.device.type != "cpu":
        raise RuntimeError(f"{op}: lengths must be a vector of int64, or of other integers, on the CPU, got "
                           f"{lengths.dtype} of shape {list(lengths.shape)} on {lengths.device}")
    return lengths.tolist()


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Pack a padded batch of sequences.

    Parameters
    ----------
    input : Tensor, shape (time, batch, ...) or, with `batch_first`, (batch, time, ...)
    lengths : Tensor or list of int
        The length of each sequence, at least 1.
    batch_first : bool, default: False
    enforce_sorted : bool, default: True
        Refuse sequences that are not in the order of decreasing length; otherwise they are sorted.

    Returns
    -------
    PackedSequence

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.nn.utils.rnn import pack_padded_sequence
    >>> pack_padded_sequence(ptcore.tensor([[1, 3], [2, 0]]), [2, 1])[:2]
    (tensor([1, 3, 2]), tensor([2, 1]))
    """
    op = "pack_padded_sequence"
    need_tensors(op, input=input)
    batch_first = flag(op, "batch_first", batch_first)
    lengths = _list_of_lengths(op, lengths)
    if input.ndim < 2:
        raise OutOfRangeError(f"{op}: input must have at least 2 dimensions, got shape {list(input.shape)}")
    steps, batch = (input.shape[1], input.shape[0]) if batch_first else input.shape[:2]
    if len(lengths) != batch:
        raise RuntimeError(f"{op}: Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} "
                           f"(batch_size={batch})")
    order = None
    if not enforce_sorted:
        # a stable sort, so that equal lengths keep their order
        places = sorted(range(batch), key=lambda i: -lengths[i])
        lengths = [lengths[i] for i in places]
        order = ptcore.tensor(places, dtype=ptcore.int64, device=input.device)
    elif any(a < b for a, b in itertools.pairwise(lengths)):
        raise RuntimeError(_UNSORTED.format(op=op))
    if not lengths or lengths[-1] <= 0:
        raise RuntimeError(f"{op}: Length of all samples has to be greater than 0, but found an element in 'lengths' "
                           "that is <= 0")
    if lengths[0] > steps:
        raise RuntimeError(f"{op}: lengths must be at most the {steps} steps of input, got {lengths[0]}")
    places, sizes = _places(lengths, order, batch_first, steps, input.device)
    data = input.reshape(steps * batch, *input.shape[2:]).index_select(0, places)
    return PackedSequence(data, sizes, order)


def _lengths(batch_sizes):
    """The length of each sequence in packed order."""
    sizes = batch_sizes.tolist()
    return [sum(1 for n in sizes if n > i) for i in range(sizes[0])] if sizes else []


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """The inverse of :func:`pack_padded_sequence`.

    Parameters
    ----------
    sequence : PackedSequence
    batch_first : bool, default: False
    padding_value : float, default: 0.0
    total_length : int, optional
        The number of steps of the result; the longest sequence's by default.

    Returns
    -------
    padded : Tensor
    lengths : Tensor of int64
        In the order of the batch.

    Raises
    ------
    ValueError
        If total_length is smaller than the longest sequence.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.nn.utils.rnn import pack_sequence, pad_packed_sequence
    >>> pad_packed_sequence(pack_sequence([ptcore.tensor([1, 2]), ptcore.tensor([3])]), batch_first=True)
    (tensor([[1, 2],
            [3, 0]]), tensor([2, 1]))
    """
    batch_first = flag("pad_packed_sequence", "batch_first", batch_first)
    padding_value = real("pad_packed_sequence", "padding_value", padding_value)
    data, batch_sizes, order, back = sequence
    lengths = _lengths(batch_sizes)
    batch, steps = len(lengths), batch_sizes.numel()
    if total_length is not None:
        if total_length < steps:
            raise ValueError("pad_packed_sequence: Expected total_length to be at least the length of the longest "
                             f"sequence in input, but got total_length={total_length} and max sequence length "
                             f"being {steps}")
        steps = total_length
    places, _ = _places(lengths, order, batch_first, steps, data.device)
    padded = ptcore.full((steps * batch, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
    padded = padded.index_copy(0, places, data)
    leading = (batch, steps) if batch_first else (steps, batch)
    count = ptcore.tensor(lengths, dtype=ptcore.int64, device="cpu")
    return padded.reshape(*leading, *data.shape[1:]), count if back is None else count[back.to("cpu")]


@overridable
def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Sequences of different lengths as one tensor.

    Parameters
    ----------
    sequences : iterable of Tensor
        Shape (length, ...), alike but for the length.
    batch_first : bool, default: False
    padding_value : float, default: 0.0
    padding_side : {"right", "left"}, default: "right"

    Returns
    -------
    Tensor
        Shape (longest, batch, ...), or (batch, longest, ...).

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.nn.utils.rnn import pad_sequence
    >>> pad_sequence([ptcore.tensor([1, 2]), ptcore.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    batch_first = flag("pad_sequence", "batch_first", batch_first)
    padding_value = real("pad_sequence", "padding_value", padding_value)
    op = "pad_sequence"
    if isinstance(sequences, Tensor) and sequences.ndim == 0:
        raise TypeError(f"{op}: sequences must be an iterable of tensors, got a tensor of 0 dims")
    if not isinstance(sequences, Iterable):
        raise RuntimeError(f"{op}: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    sequences = sequences.unbind(0) if isinstance(sequences, Tensor) else tuple(sequences)
    if not sequences:
        raise RuntimeError(f"{op}: received an empty list of sequences")
    for k, s in enumerate(sequences):
        if not isinstance(s, Tensor):
            raise TypeError(f"{op}: sequences must hold tensors, got {type(s).__name__} at {k}")
    if not isinstance(padding_side, str):
        raise TypeError(f"{op}: padding_side must be str, got {type(padding_side).__name__}")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"{op}: Expected padding_side to be one of left or right, but got {padding_side}.")
    first = sequences[0]
    if any(s.ndim == 0 or s.shape[1:] != first.shape[1:] for s in sequences):
        raise ShapeError(f"{op}: sequences must have one shape but for their length, got "
                                        f"{[list(s.shape) for s in sequences]}")
    longest = max(s.shape[0] for s in sequences)
    padded = []
    for s in sequences:
        missing = longest - s.shape[0]
        s = s.to(first.dtype)
        if missing:
            filler = ptcore.full((missing, *s.shape[1:]), padding_value, dtype=s.dtype, device=s.device)
            s = ptcore.cat([s, filler] if padding_side == "right" else [filler, s])
        padded.append(s)
    return ptcore.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """Copies of the sequences of a padded batch, as a list.

    >>> import ptcore
    >>> from ptcore.nn.utils.rnn import unpad_sequence
    >>> unpad_sequence(ptcore.tensor([[1, 2], [3, 0]]), ptcore.tensor([2, 1]), batch_first=True)
    [tensor([1, 2]), tensor([3])]
    """
    need_tensors("unpad_sequence", padded_sequences=padded_sequences)
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    if len(lengths) != len(padded_sequences):
        raise ShapeError("unpad_sequence: lengths must have one element for each sequence, got "
                         f"{len(lengths)} for {len(padded_sequences)}")
    places = ptcore.arange(padded_sequences.shape[1], device="cpu")
    if isinstance(lengths, Tensor):
        lengths = lengths.cpu()
    return [s[:int((places < n).sum())].clone() for s, n in zip(padded_sequences, lengths)]


def pack_sequence(sequences, enforce_sorted=True):
    """Pack a list of sequences; see :func:`pack_padded_sequence`.

    >>> import ptcore
    >>> from ptcore.nn.utils.rnn import pack_sequence
    >>> pack_sequence([ptcore.tensor([3]), ptcore.tensor([1, 2])], enforce_sorted=False).sorted_indices
    tensor([1, 0])
    """
    sequences = list(sequences)
    for s in sequences:
        need_tensors("pack_sequence", sequences=s)
    lengths = [s.shape[0] for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The sequences of a packed one as a list.

    >>> import ptcore
    >>> from ptcore.nn.utils.rnn import pack_sequence, unpack_sequence
    >>> unpack_sequence(pack_sequence([ptcore.tensor([1, 2]), ptcore.tensor([3])]))
    [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
