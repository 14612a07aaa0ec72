# Draws written into a tensor's own memory. See refill.pyx.
from ptcore._types cimport PT_FLOAT32, PT_FLOAT64
from ptcore._tensor cimport Tensor

cdef bint drawn_into(Tensor t, int op, tuple params, object generator, const char *name) except -1

cdef inline bint is_wide(Tensor t) noexcept:
    """Whether draws of the tensor's own dtype are what a transformed draw starts from."""
    return t.dt == PT_FLOAT32 or t.dt == PT_FLOAT64
