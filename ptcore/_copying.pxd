# Tensors in messages to other processes, in numbers of eight bytes as both ends have them:
# ``dtype, rank, sizes, elements`` of a small tensor;
# ``dtype, rank, first byte in its storage, place of the storage in its segment, bytes of the storage, sizes, strides``
# of a window. See _copying.pyx.
from ptcore._types cimport *
from ptcore._tensor cimport Tensor
from ptcore._untyped_storage cimport Segment

cdef bint is_plain(Tensor t)
cdef int64_t small_size(Tensor t, int64_t limit) noexcept
cdef int write_small(Tensor t, int64_t *to) except -1
cdef Tensor read_small(const int64_t *parts, int64_t nbytes)
cdef int64_t window_size(Tensor t) noexcept
cdef int write_window(Tensor t, Segment segment, int64_t *to) except -1
cdef Tensor read_window(const int64_t *parts, int64_t nbytes, Segment segment)
