# The bytes behind tensors as an object. See _untyped_storage.pyx.
from ptcore._types cimport *

cdef class UntypedStorage:
    cdef pt_storage *s
