# Nodes of calls. See record.pyx.
from cpython.object cimport PyObject

from ptcore._types cimport *
from ptcore._node cimport Node
from ptcore._tensor cimport Tensor
from ptcore._ops.call.call cimport Call

cdef int record(Call *c, PyObject **results) except -1
cdef int record_taken(int op, PyObject **args, int n, object result, uint32_t key) except -1
cdef Node node_of(Call *c, PyObject **results)
cdef int record_plain(int op, Tensor r, object x, object y, uint32_t key) except -1
