# The bytes behind tensors as an object, and the memory that processes share. See _untyped_storage.pyx.
from cpython.object cimport PyObject

from ptcore._types cimport *

cdef class UntypedStorage:
    cdef pt_storage *s
    cdef public object _filename    # of the file that is mapped for all processes; or None
    cdef PyObject *attributes       # the user's own: a dict, or NULL; see _instance_dict.h
    cdef object __weakref__

cdef class Segment:
    cdef char *base
    cdef readonly int64_t nbytes
    cdef public int fd              # the descriptor that other processes get; -1 if there is none
    cdef public object key          # its name among the processes, or None
    cdef bint shared                # whether its storages count as shared memory
    cdef readonly int64_t number    # its number, if it is used again
    cdef list ended                 # gets the number when no storage lies in the segment any more; or None
    cdef public int64_t away        # number of messages that named the segment and were not answered yet
    cdef dict living                # offset -> address of the pt_storage at that place
    cdef int64_t storages           # number of storages in the segment
    cdef object __weakref__
    cdef void forget(self) noexcept
