# The fast path of structured ops. See _structured.pyx.
from cpython.object cimport PyObject

cdef object call(int op, PyObject **args, int n, object out)
cdef object join(int op, object tensors, object dim, object out)
