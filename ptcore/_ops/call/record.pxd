# Nodes of structured calls. See record.pyx.
from cpython.object cimport PyObject

from ptcore._ops.call.call cimport Call

cdef int record(Call *c, PyObject **results) except -1
