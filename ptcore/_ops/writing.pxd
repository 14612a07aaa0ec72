# Copies, and results that are written to out=. See writing.pyx.
from libc.stdint cimport uintptr_t

from ptcore._types cimport *
from ptcore._tensor cimport Tensor

cdef int copy_into(Tensor dst, Tensor src, bint non_blocking=*) except -1
cdef Tensor landing(Tensor r, int column)
cdef bint on_two_devices(Tensor a, Tensor b) noexcept
cdef Tensor beside(Tensor value, Tensor x)
cdef Tensor contiguous(Tensor x)
cdef bint dense_channels_last(Tensor x) noexcept
cdef Tensor in_channels_last(Tensor x)
cdef inline bint same_memory(Tensor a, Tensor b) noexcept:
    """Whether two storages share a byte: two NumPy arrays may be windows of a third."""
    cdef uintptr_t first = <uintptr_t>a.storage.data, second = <uintptr_t>b.storage.data
    return a.storage == b.storage or (
        a.storage.device == b.storage.device and a.storage.device_index == b.storage.device_index
        and first < second + <uintptr_t>b.storage.nbytes and second < first + <uintptr_t>a.storage.nbytes)

cdef bint same_window(Tensor a, Tensor b) noexcept
cdef bint repeats_itself(Tensor x) noexcept
cdef bint overlaps_itself(Tensor x) except -1
cdef bint can_be_written(Tensor out, const char *name, int ndim, const int64_t *sizes, int column, int number) except -1
cdef Tensor place_for(object out, int dt, int ndim, const int64_t *sizes, int column, int number, tuple args,
                      const char *name)
cdef object write_outs(int op, object out, object results, list placed=*)
cdef int write_out(Tensor out, Tensor value, const char *name, int rule=*) except -1
