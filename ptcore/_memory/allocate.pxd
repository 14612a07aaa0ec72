# Memory for storages. See allocate.pyx.
from ptcore._types cimport *

cdef pt_storage *allocate(int64_t nbytes, int column, int number) except NULL
cdef pt_storage *allocate_pinned(int64_t nbytes, int column) except NULL
