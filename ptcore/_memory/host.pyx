"""Page-locked ("pinned") host memory, which a device accesses without the host, and the streams a block waits for.

Copies between page-locked memory and a device can run asynchronously: ``to``, ``cuda`` and ``copy_`` with
``non_blocking`` pass this request to the op ``to_device``.
"""
from ptcore._types cimport *
from ptcore._memory.allocate cimport allocate_pinned
from ptcore._device cimport BACKENDS, as_device, backend_error, backend_pointer
from ptcore._dtype cimport ITEMSIZE
from ptcore._errors import DeviceError
from ptcore._shape cimport fill_strides, is_dense
from ptcore._tensor cimport *


cdef int column_of_accelerator(object device, str op) except -1:
    """The column of the accelerator: the one named, else the machine's, which is CUDA or a registered one."""
    cdef int k, column = DEVICE_CPU
    try:
        column = as_device("cuda" if device is None else device, op.encode()).column
    except RuntimeError:
        if device is not None:
            raise
        for k in range(DEVICE_FREE, N_DEVICES):
            if BACKENDS[k] != NULL and BACKENDS[k].allocate_host != NULL:
                return k
        raise DeviceError(f"{op}: it needs an accelerator, and none is available") from None
    if BACKENDS[column] == NULL or BACKENDS[column].allocate_host == NULL:
        raise DeviceError(f"{op}: device must be an accelerator's, got {device!r}")
    return column


cdef bint is_page_locked(Tensor t) noexcept:
    cdef int k
    if t.storage.device != DEVICE_CPU or t.storage.data == NULL or t.flags & PT_INTERPOSED:
        return False
    for k in range(N_DEVICES):
        if BACKENDS[k] != NULL and BACKENDS[k].owns_host != NULL and BACKENDS[k].owns_host(t.storage.data):
            return True
    return False


def is_pinned(Tensor self not None, device=None):
    """Whether the tensor lies in page-locked memory of the host, which devices copy asynchronously."""
    return is_page_locked(self)


def pin_memory(Tensor self not None, device=None):
    """The tensor in page-locked memory of the host: itself if it is there, else a copy.

    Copies between it and a device with ``non_blocking=True`` return at once.

    Raises
    ------
    DeviceError
        If there is no accelerator, or the tensor is not on the CPU.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.ones(2).is_pinned()
    False
    """
    cdef Tensor r
    cdef int64_t[64] strides
    cdef int i
    if self.storage.device != DEVICE_CPU or self.flags & PT_INTERPOSED:
        raise DeviceError(f"pin_memory: only tensors on the CPU can be pinned, got one on {self.device}")
    if is_page_locked(self):
        return self
    if is_dense(self.rank, self.dims, self.dims + self.rank):
        for i in range(self.rank):
            strides[i] = self.dims[self.rank + i]
    else:
        fill_strides(self.rank, self.dims, strides)
    r = wrap_storage(allocate_pinned(self.count * ITEMSIZE[self.dt], column_of_accelerator(device, "pin_memory")), 0,
                     self.dt, self.rank, self.dims, strides)
    return r.copy_(self)


def pinned(t, op, flag):
    """Finishes a creation function's result ``t``: moves it to page-locked memory if ``pin_memory=flag`` is True."""
    if flag is not True:
        raise TypeError(f"{op}: pin_memory must be a bool, got {flag!r}")
    try:
        return pin_memory(t)
    except DeviceError as e:
        raise DeviceError(f"{op}: {e}") from None


def record_stream(Tensor self not None, stream):
    """Keeps the memory from reuse until a stream has finished the work that it has when the memory is freed.

    Parameters
    ----------
    stream : Stream
        One of the tensor's device on which the tensor is used, other than the one it was made on.

    Raises
    ------
    NotImplementedError
        If the tensor's device has no streams.
    """
    cdef backend_pointer backend = BACKENDS[self.storage.device]
    if backend == NULL or backend.record_stream == NULL:
        raise NotImplementedError(f"record_stream: tensors on {self.device} have no streams")
    if not hasattr(stream, "cuda_stream") or not hasattr(stream, "device_index"):
        raise TypeError(f"record_stream: stream must be a Stream, got {type(stream).__name__}")
    if stream.device_index != self.storage.device_index:
        raise DeviceError(f"record_stream: the stream is of {stream.device}, the tensor on {self.device}")
    keep_for(self, stream.cuda_stream)


def keep_for(Tensor t, size_t stream):
    """``record_stream`` with the address of a stream."""
    cdef backend_pointer backend = BACKENDS[t.storage.device]
    if t.storage.data != NULL and t.storage.owner == NULL:      # memory of other libraries is managed by them
        if backend.record_stream(t.storage.data, t.storage.device_index, <void *>stream):
            raise RuntimeError(f"record_stream: {t.device}{backend_error(t.storage.device)}")


def place_of(Tensor t):
    """(column, index) of a device that has streams; None for the CPU and stand-ins."""
    cdef backend_pointer backend = BACKENDS[t.storage.device]
    if backend == NULL or backend.set_stream == NULL or backend.record_stream == NULL or t.flags & PT_INTERPOSED:
        return None
    return t.storage.device, t.storage.device_index


def sync_folder(folder):
    """Syncs the names of a folder to the disk. No code of Python runs meanwhile, so no interrupt leaves it open."""
    import os
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
