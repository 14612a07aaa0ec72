# Views in place. See inplace.pyx.
from cpython.object cimport PyObject

cdef object run_view_inplace(int op, PyObject **args, int n)
