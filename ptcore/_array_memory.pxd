# NumPy's arrays on their way from a worker. See _array_memory.pyx.
from ptcore._types cimport *
from ptcore._tensor cimport Tensor
from ptcore._untyped_storage cimport Segment

cdef Segment segment_of_array(pt_storage *s)
cdef bint is_sendable(object a, int64_t limit) except -1
cdef Tensor as_sent(object a, bint alone, int64_t limit)
cdef Tensor copy_to_send(Tensor t)
