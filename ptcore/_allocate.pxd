# Memory for storages. See _allocate.pyx.
from ptcore._types cimport *

cdef pt_storage *allocate(int64_t nbytes, int column, int number) except NULL
cdef void set_lender(int64_t least, pt_storage *(*function)(int64_t) except? NULL) noexcept
cdef pt_storage *allocate_pinned(int64_t nbytes, int column) except NULL
