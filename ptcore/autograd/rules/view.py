"""Rules of windows."""
from ptcore._ops.functions import as_strided_of
from ptcore.autograd.helpers import extent, zeros_for
from ptcore.autograd.rules import jvp


@jvp("as_strided_of")
def as_strided_forward(t, size, stride, storage_offset, input_stride, input_offset):
    """The tangent with the strides of the input, seen through the window."""
    low, high = extent(size, stride, storage_offset)
    low2, high2 = extent(t.shape, input_stride, input_offset)
    low = min(low, low2)
    flat = zeros_for(t, (max(high, high2) - low + 1,))
    as_strided_of(flat, t.shape, input_stride, input_offset - low, (1,), 0).copy_(t)
    return as_strided_of(flat, size, stride, storage_offset - low, (1,), 0)
