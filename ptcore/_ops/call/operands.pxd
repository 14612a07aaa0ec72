# Operands of elementwise calls. See operands.pyx.
from cpython.object cimport PyObject

from ptcore._types cimport *
from ptcore._ops.call.call cimport Call

cdef int read_operands(Call *c) except -1
cdef int check_integers(Call *c) except -1
cdef int read_params(Call *c, char *buffer) except -1
cdef int write_number(object x, char *buffer) except -1
cdef object fitting(object x, int dt, const char *op)
cdef PyObject *keep(Call *c, object x) except NULL
