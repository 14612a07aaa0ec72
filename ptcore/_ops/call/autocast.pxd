# The step of a call in which autocast casts arguments. See autocast.pyx.
from cpython.object cimport PyObject

from ptcore._types cimport *
from ptcore._ops.table.ids cimport pt_opinfo

cdef tuple cast_arguments(int op, PyObject **args, int n)


cdef inline bint casts(const pt_opinfo *o, uint32_t key) noexcept:
    """Whether autocast may cast the arguments of a call; ``key`` has the flags of its arguments and of the thread.
    Casts come before interpreters are asked, and after ``__torch_function__``."""
    return (key & o.slow & PT_MODE_AUTOCAST) != 0 and (
        pt_tls.torch_function_off or not key & (PT_SUBCLASS | PT_MODE_FUNCTION | PT_FOREIGN))


cdef inline void pause() noexcept:
    """Turns autocast off for the ops that an op calls."""
    pt_tls.mode &= ~<uint32_t>PT_MODE_AUTOCAST


cdef inline void resume() noexcept:
    if pt_tls.autocast:
        pt_tls.mode |= PT_MODE_AUTOCAST
