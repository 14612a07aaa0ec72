# The bracket around a kernel's run, the one place where ops give up the GIL:
#
#     held = release_gil(work > SMALL)
#     status = kernel(&call)
#     restore_gil(held)
#
# Between the two stands one call of a C function that takes no Python object. Meanwhile other threads may give a
# tensor other sizes or other memory. So the kernel has its own copy of sizes and strides (``own_dims``), and freed
# memory is kept until all running kernels have ended (``pt_kernels_enter``).
from ptcore._types cimport pt_kernels_enter, pt_kernels_leave

cdef extern from "Python.h":
    ctypedef struct PyThreadState:
        pass
    PyThreadState *PyEval_SaveThread() noexcept
    void PyEval_RestoreThread(PyThreadState *) noexcept

cdef enum:
    SMALL = 16384               # elements up to which a kernel keeps the GIL, and no work is split


cdef inline PyThreadState *release_gil(bint released) noexcept:
    """Gives up the GIL for a kernel, if ``released``."""
    if not released:
        return NULL
    pt_kernels_enter()
    return PyEval_SaveThread()


cdef inline void restore_gil(PyThreadState *held) noexcept:
    """Takes the GIL again if ``release_gil`` gave it up."""
    if held != NULL:
        PyEval_RestoreThread(held)
        pt_kernels_leave()
