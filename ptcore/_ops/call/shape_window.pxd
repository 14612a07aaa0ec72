# Shape rules of windows, in C. See shape_window.pyx.
from ptcore._ops.call.call cimport Call

cdef bint window_shape(Call *c) noexcept
