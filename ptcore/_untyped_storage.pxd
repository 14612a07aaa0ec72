# The bytes behind tensors as an object, and the memory that processes share. See _untyped_storage.pyx.
from ptcore._types cimport *

cdef class UntypedStorage:
    cdef pt_storage *s

cdef class Segment:
    cdef char *base
    cdef readonly int64_t nbytes
    cdef public int fd              # what other processes are given; -1 where there is none
    cdef public object key          # what the processes call it, or None
    cdef bint shared                # its storages count as such
    cdef readonly int64_t number    # what it is called where it is used again
    cdef list ended                 # where that is noted when no storage lies in it any more, or None
    cdef public int64_t away        # how many messages named it that were not answered for
    cdef dict living                # offset -> address of the pt_storage that stands for the place
    cdef int64_t storages           # that lie in it
    cdef object __weakref__
    cdef void forget(self) noexcept
