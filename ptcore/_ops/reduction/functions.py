"""``segment_reduce``."""
from ptcore._ops import checked as _arguments
from ptcore._ops.call.offer import overridable
from ptcore._ops.creation.creation import zeros
from ptcore._ops.functions import cat, cumsum, segments
from ptcore._ops.history import has_values
from ptcore._tensor import Tensor

_START = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -float("inf"), "min": float("inf")}


@overridable
def segment_reduce(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    """Sums, means, products or extremes of consecutive pieces of a dim.

    Parameters
    ----------
    data : Tensor
        Of a floating-point dtype.
    reduce : {"sum", "mean", "max", "min", "prod"}
    lengths : Tensor, optional
        How long the pieces are; its last dim is `axis`, the dims in front of it are those of data.
    offsets : Tensor, optional
        In place of `lengths`: where the pieces begin, and where the last one ends.
    axis : int
        The dim.
    unsafe : bool
        Whether lengths that do not add up to the size of the dim are taken as they are.
    initial : float, optional
        What each reduction begins with; pieces without elements have this value.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.segment_reduce(ptcore.tensor([1., 2., 3.]), "sum", lengths=ptcore.tensor([2, 1]))
    tensor([3., 3.])
    """
    op = "segment_reduce"
    if not isinstance(data, Tensor):
        raise TypeError(f"{op}: data must be a Tensor, got {type(data).__name__}")
    if reduce not in _START:
        raise RuntimeError(f"{op}: reduce must be one of {', '.join(_START)}, got {reduce!r}")
    if indices is not None:
        raise RuntimeError(f"{op}: indices are not taken, got {type(indices).__name__}")
    pieces = offsets if lengths is None else lengths
    if not isinstance(pieces, Tensor):
        raise (RuntimeError if pieces is None else TypeError)(
            f"{op}: lengths or offsets must be a Tensor, got {type(pieces).__name__}")
    if data.dtype.kind != "f":
        raise NotImplementedError(f"{op}: data must have a floating-point dtype, got {data.dtype.name}")
    if pieces.dtype.name not in ("int32", "int64"):
        raise NotImplementedError(f"{op}: lengths and offsets must have dtype int32 or int64, got {pieces.dtype.name}")
    axis = _arguments.integer(op, "axis", axis)
    if not -data.ndim <= axis < data.ndim:
        raise IndexError(f"{op}: axis must be in [{-data.ndim}, {data.ndim - 1}], got {axis}")
    axis %= data.ndim
    if pieces.ndim != axis + 1 or pieces.shape[:-1] != data.shape[:axis]:
        raise RuntimeError(f"{op}: axis must be the last dim of lengths or offsets, whose other sizes are those of "
                           f"data in front of it: got axis {axis}, shapes {list(pieces.shape)} and {list(data.shape)}")
    pieces, size = pieces.to("int64"), data.shape[axis]
    checked = not unsafe and has_values(pieces)
    if lengths is not None:
        ends = cumsum(pieces, -1)
        offsets = cat([zeros(*pieces.shape[:-1], 1, dtype=pieces.dtype, device=pieces.device), ends], -1)
        if checked and (pieces < 0).any():
            raise RuntimeError(f"{op}: lengths must not be negative, got {int(pieces.min())}")
        if checked and (offsets[..., -1] != size).any():
            raise RuntimeError(f"{op}: lengths must add up to {size}, the size of dim {axis}")
    else:
        offsets = pieces
        if checked and ((pieces.diff() < 0).any() or (pieces < 0).any() or (pieces > size).any()):
            raise RuntimeError(f"{op}: offsets must rise from 0 to {size} at most, the size of dim {axis}")
    start = _START[reduce] if initial is None else _arguments.real(op, "initial", initial)
    return segments(data, offsets, axis, reduce, start, initial is not None)
