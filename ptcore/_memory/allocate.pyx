"""Memory for storages by device type: from the CPU's allocator, none for meta, or from a backend."""
from ptcore._types cimport *
from ptcore._device cimport BACKENDS, backend_error, backend_pointer, device_of, memory_failure
from ptcore._errors import OutOfMemoryError


cdef pt_storage *allocate(int64_t nbytes, int column, int number) except NULL:
    cdef pt_storage *s
    if column == DEVICE_CPU:
        s = pt_storage_new(nbytes)
        if s == NULL:
            raise _out_of_memory(nbytes)
        return s
    if column == DEVICE_META:
        s = pt_storage_new_meta(nbytes)
        if s == NULL:
            raise _out_of_memory(nbytes)
    else:
        s = allocate_by_backend(nbytes, column, number)
    s.device = column
    s.device_index = number
    return s


cdef pt_storage *allocate_by_backend(int64_t nbytes, int column, int number) except NULL:
    cdef backend_pointer backend = BACKENDS[column]
    cdef void *data = NULL
    cdef pt_storage *s
    if backend == NULL:
        raise RuntimeError(f"device {device_of(column, number)} cannot allocate: its backend is "
                           "not loaded")
    if nbytes:
        data = backend.allocate(nbytes, number)
        if data == NULL:
            text = f"{device_of(column, number)}: cannot allocate {nbytes} bytes{backend_error(column)}"
            if memory_failure(column, number) == PT_RUNTIME_ERROR:
                raise RuntimeError(text)
            raise OutOfMemoryError(text)
    s = pt_storage_wrap(data, nbytes, NULL, release_by_backend, 0)
    if s == NULL:
        if data != NULL:
            backend.release(data, nbytes, number)
        raise MemoryError()
    return s


cdef pt_storage *allocate_pinned(int64_t nbytes, int column) except NULL:
    """Memory of the CPU that the devices of a backend access without the host's help."""
    cdef backend_pointer backend = BACKENDS[column]
    cdef void *data = NULL
    cdef pt_storage *s
    if nbytes:
        data = backend.allocate_host(nbytes)
        if data == NULL:
            raise OutOfMemoryError(f"cannot allocate {nbytes} bytes of page-locked memory{backend_error(column)}")
    s = pt_storage_wrap(data, nbytes, <void *>backend, release_pinned, 0)
    if s == NULL:
        if data != NULL:
            backend.release_host(data)
        raise MemoryError()
    return s


cdef void release_pinned(pt_storage *s) noexcept:
    if s.data != NULL:
        (<backend_pointer>s.owner).release_host(s.data)


cdef void release_by_backend(pt_storage *s) noexcept:
    if s.data != NULL:
        BACKENDS[s.device].release(s.data, s.nbytes, s.device_index)


cdef object _out_of_memory(int64_t nbytes):
    cdef pt_memory_stats stats
    pt_memory_get_stats(&stats)
    return OutOfMemoryError(f"allocation of {nbytes} bytes failed; {stats.allocated} bytes are "
                            f"in use by tensors and {stats.cached} bytes cached")


# -- what ptcore.cpu makes public ------------------------------------------------------------

def stats():
    """The allocator's counters, as a dict."""
    cdef pt_memory_stats s
    pt_memory_get_stats(&s)
    return {"allocated": s.allocated, "peak_allocated": s.peak_allocated, "cached": s.cached,
            "live_blocks": s.live_blocks, "hits": s.hits, "misses": s.misses, "cap": s.cap}


def reset_peak():
    pt_memory_reset_peak()


def empty_cache():
    pt_memory_empty_cache()


def set_cap(int64_t nbytes):
    pt_memory_set_cap(nbytes)
