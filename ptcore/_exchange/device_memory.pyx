"""Memory of a device that changes its size."""
from ptcore._types cimport *
from ptcore._tensor cimport *
from ptcore._errors import MemoryInUseError


def resize(size_t storage, int64_t nbytes):
    """Moves the bytes of a device's storage, the ``pt_storage`` at an address, to a new block, as work of the current
    stream; added bytes are zero."""
    cdef pt_storage *s = <pt_storage *>storage
    cdef int64_t kept = min(nbytes, s.nbytes), one = 1
    cdef Tensor moved = new_tensor(PT_UINT8, 1, &nbytes, s.device, s.device_index), old
    if moved.storage.deleter != s.deleter:
        raise MemoryInUseError("resize_: the memory belongs to another library or process; resize a clone()")
    if kept:
        pt_storage_incref(s)
        old = wrap_storage(s, 0, PT_UINT8, 1, &kept, &one)
        moved.narrow(0, 0, kept).copy_(old)
    if nbytes > kept:
        moved.narrow(0, kept, nbytes - kept).zero_()
    s.data, moved.storage.data = moved.storage.data, s.data
    s.nbytes, moved.storage.nbytes = moved.storage.nbytes, s.nbytes
    return 0
