# C functions of halves.pyx.
from cpython.object cimport PyObject

from ptcore._dtype cimport dtype as DType

cdef object in_float32(object body, PyObject **args, Py_ssize_t n)
cpdef object widened(object x)
cpdef object narrowed(object x, DType dtype)
cpdef object half_type(object x)
