# The bytes behind tensors as an object, and the memory that processes share. See _untyped_storage.pyx.
from ptcore._types cimport *
from ptcore._tensor cimport Tensor

cdef class UntypedStorage:
    cdef pt_storage *s

cdef class Segment:
    cdef char *base
    cdef public int new_fd          # the file while none of it was used, else -1
    cdef public bint used_again
    cdef public bint alone          # one storage has all of it
    cdef public int64_t number      # what it is called between a sender and a receiver that gives it back
    cdef public bint shared         # its storages count as such
    cdef public object key          # what the processes call it
    cdef public list dropped        # where the key is noted when no storage lies in it any more, or None
    cdef list home                  # where it goes when the new tensor in it was dropped, or None
    cdef readonly int64_t nbytes
    cdef dict living                # offset -> address of the pt_storage
    cdef object __weakref__

cdef int share(pt_storage *s) except -1
cdef Tensor shared_bytes(int64_t nbytes, int64_t room)
cdef UntypedStorage storage_at(Segment segment, int64_t offset, int64_t nbytes)

cdef struct Loans:
    int64_t now, most               # segments in which new tensors and arrays lie, and how many may do so

cdef Loans loans
cdef pt_storage *lend(int64_t nbytes) except? NULL
cdef void end_of_loan(Segment segment) noexcept
