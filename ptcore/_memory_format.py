"""Memory formats: the order of the dims of a dense tensor in memory.

``contiguous_format`` is row-major. ``channels_last`` makes dim 1 of four the innermost one, ``channels_last_3d`` dim 1
of five. ``preserve_format`` keeps the layout.
"""
from ptcore._dtype import shown_as
from ptcore._errors import ShapeError


class memory_format:
    """One of the four formats; there are no others."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"{shown_as()}.{self.name}"

    def __reduce__(self):
        return self.name


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
FORMATS = (contiguous_format, preserve_format, channels_last, channels_last_3d)
_DIMS = {channels_last: 4, channels_last_3d: 5}


def checked(op, format):
    """The format of an argument; None for row-major and for preserving the layout."""
    if format is None or format is contiguous_format or format is preserve_format:
        return None
    if format not in _DIMS:
        raise TypeError(f"{op}: memory_format must be a ptcore.memory_format, got {type(format).__name__}")
    return format


def kept(tensor, format):
    """The format of an argument; for preserving the layout that of a tensor, which is row-major where no other fits."""
    if format is not preserve_format:
        return format
    others = [each for each in _DIMS if not tensor.is_contiguous() and is_in(tensor, each)]
    return others[0] if others else contiguous_format


def order(op, ndim, format):
    """The dims in their order in memory, outermost first."""
    if ndim != _DIMS[format]:
        raise ShapeError(f"{op}: {format} needs a tensor of {_DIMS[format]} dimensions, got {ndim}")
    return (0, *range(2, ndim), 1)


def strides(op, shape, format):
    """The strides of a dense tensor in a format."""
    result, step = [0] * len(shape), 1
    for d in reversed(order(op, len(shape), format)):
        result[d] = step
        step *= shape[d] if shape[d] > 1 else 1
    return tuple(result)


def is_in(tensor, format):
    """Whether a tensor is dense in a format (sizes of 1 and empty tensors fit any)."""
    if tensor.ndim != _DIMS[format]:
        return False
    if not tensor.numel():
        return True
    return all(n == 1 or s == want for n, s, want in zip(tensor.shape, tensor.stride(),
                                                         strides("is_contiguous", tensor.shape, format)))


def contiguous(tensor, format, op="contiguous"):
    """The tensor if it is dense in the format, otherwise a copy that is."""
    if is_in(tensor, format):
        return tensor
    dims = order(op, tensor.ndim, format)
    back = [0] * len(dims)
    for place, d in enumerate(dims):
        back[d] = place
    return tensor.permute(dims).contiguous().permute(back)
