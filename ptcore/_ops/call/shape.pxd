# Shape rules in C. See shape.pyx.
from ptcore._ops.call.call cimport Call

cdef bint shape(Call *c) noexcept
cdef int shape_by_spec(Call *c, tuple args) except -1
