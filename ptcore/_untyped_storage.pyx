"""UntypedStorage, and what exchanges or resizes a tensor's memory: set_, resize_, is_set_to.

Invariant: a resize never leaves a live view without memory. Growing moves the block, which
every view follows since it reads the address through the storage; shrinking only lowers the
size and keeps the block.
"""
from ptcore._types cimport *
from ptcore._device cimport device_of
from ptcore._dtype cimport ITEMSIZE
from ptcore._shape cimport count, fill_strides, max_offset, min_offset, read_sizes
from ptcore._tensor cimport *
from ptcore._subclass import set_data


cdef class UntypedStorage:
    """The bytes behind tensors; ``tensor.untyped_storage()`` gives it.

    One object stands for a storage as long as it lives: ``is`` tells whether two tensors
    share memory.
    """
    cdef pt_storage *s

    def __init__(self):
        raise TypeError("UntypedStorage: made by Tensor.untyped_storage() only")

    def __dealloc__(self):
        if self.s != NULL:
            self.s.handle = NULL
            pt_storage_decref(self.s)

    def data_ptr(self):
        """The address of the first byte."""
        self.s.flags |= PT_STORAGE_EXPORTED
        return <size_t>self.s.data

    def nbytes(self):
        """The number of bytes."""
        return self.s.nbytes

    size = nbytes

    def __len__(self):
        return self.s.nbytes

    def element_size(self):
        return 1

    @property
    def device(self):
        return device_of(self.s.device, self.s.device_index)

    def resizable(self):
        """Whether ``resize_`` may move the memory."""
        return not self.s.flags & PT_STORAGE_EXPORTED

    def resize_(self, int64_t size):
        """Sets the number of bytes; what is added is zero. All tensors over it follow.

        Raises
        ------
        BufferError
            If the address is known outside (NumPy, a buffer, DLPack, ``data_ptr``).
        """
        if size < 0:
            raise RuntimeError(f"resize_: size must be non-negative, got {size}")
        resize(self.s, size)
        return self

    def __getitem__(self, index):
        cdef int64_t i = index
        if self.s.device != DEVICE_CPU:
            raise RuntimeError(f"UntypedStorage: bytes on {self.device} cannot be read")
        if i < 0:
            i += self.s.nbytes
        if not 0 <= i < self.s.nbytes:
            raise IndexError(f"UntypedStorage: index {index} is out of range for "
                             f"{self.s.nbytes} bytes")
        return (<uint8_t *>self.s.data)[i]

    def __repr__(self):
        return f"UntypedStorage(device={self.device}, nbytes={self.s.nbytes})"


cdef int resize(pt_storage *s, int64_t nbytes) except -1:
    if nbytes == s.nbytes:
        return 0
    if s.device == DEVICE_META:
        s.nbytes = nbytes
        return 0
    if s.device != DEVICE_CPU:
        raise NotImplementedError("resize_: only memory of the CPU can be resized")
    if s.flags & PT_STORAGE_EXPORTED:
        raise BufferError("resize_: the memory is in use outside (NumPy, a buffer, DLPack or "
                          "data_ptr), its address must not change")
    if s.data == NULL:
        raise RuntimeError("resize_: the storage was never made")
    if pt_storage_move(s, nbytes):
        from ptcore._errors import OutOfMemoryError
        raise OutOfMemoryError(f"resize_: allocation of {nbytes} bytes failed")
    return 0


def untyped_storage(Tensor self):
    """The storage as bytes."""
    cdef UntypedStorage u
    if self.storage.handle != NULL:
        return <object>self.storage.handle
    u = UntypedStorage.__new__(UntypedStorage)
    u.s = self.storage
    pt_storage_incref(u.s)
    u.s.handle = <void *>u
    return u


cdef int changeable(Tensor t, str op) except -1:
    if needs_grad(t):
        raise RuntimeError(f"{op}: the memory of a tensor that requires grad cannot be changed")
    if t.base is not None:
        raise RuntimeError(f"{op}: the memory of a view cannot be changed; detach() it first")
    return 0


def resize_(Tensor self, *size, memory_format=None):
    """Gives the tensor other sizes, contiguous from its first element on; the storage grows
    if it must.

    Raises
    ------
    RuntimeError
        If the tensor requires grad.
    BufferError
        If the storage would have to move and its address is known outside.
    """
    cdef int64_t[64] sizes
    cdef int64_t[64] strides
    cdef int n = read_sizes(size[0] if len(size) == 1 and not isinstance(size[0], int) else size,
                            sizes, b"resize_", b"size")
    cdef int64_t total = count(n, sizes), need
    if needs_grad(self):
        raise RuntimeError("resize_: cannot resize tensors that require grad")
    if not 0 <= total <= <int64_t>1 << 56:
        raise RuntimeError(f"resize_: sizes must be non-negative and addressable, got {size!r}")
    fill_strides(n, sizes, strides)
    need = self.offset + total * ITEMSIZE[self.dt] if total else 0
    if self.storage.data == NULL and self.storage.device == DEVICE_CPU:
        set_data(self, new_tensor(self.dt, n, sizes, DEVICE_CPU, -1))
        return self
    if need > self.storage.nbytes:
        resize(self.storage, need)
    _over(self, self.storage, self.offset, n, sizes, strides)
    return self


cdef int _over(Tensor t, pt_storage *s, int64_t offset, int n, const int64_t *sizes,
               const int64_t *strides) except -1:
    """Makes t a window of s, in place."""
    cdef object base = t.base
    cdef uint32_t keep = t.flags & (PT_VIEW | PT_NO_GRAD_VIEW | PT_MULTI_VIEW)
    pt_storage_incref(s)
    set_data(t, wrap_storage(s, offset, t.dt, n, sizes, strides))
    t.flags |= keep
    t.base = base
    return 0


def set_(Tensor self, source=None, storage_offset=0, size=None, stride=None):
    """Makes this tensor one over other memory: that of a tensor, or a window of a storage.

    Parameters
    ----------
    source : Tensor or UntypedStorage, optional
        Nothing: an empty tensor.
    storage_offset : int
    size, stride : sequence of int, optional
        Of a storage's window; by default all of it. The storage grows if it must.

    Raises
    ------
    RuntimeError
        If the tensor requires grad, or dtype or device differ.
    """
    cdef int64_t[64] sizes
    cdef int64_t[64] strides
    cdef int n = 1
    cdef int64_t zero = 0, item = ITEMSIZE[self.dt], first = storage_offset
    cdef Tensor other
    cdef pt_storage *s
    changeable(self, "set_")
    if source is None:
        set_data(self, new_tensor(self.dt, 1, &zero, self.storage.device,
                                  self.storage.device_index))
        count_write(self)
        return self
    if isinstance(source, Tensor):
        other = <Tensor>source
        if other.dt != self.dt or other.storage.device != self.storage.device:
            raise RuntimeError(f"set_: source must be {describe(self)}'s dtype and on its "
                               f"device, got {describe(other)} on {other.device}")
        if size is None:
            set_data(self, other)
            count_write(self)
            return self
        s = other.storage
    elif isinstance(source, UntypedStorage):
        s = (<UntypedStorage>source).s
    else:
        raise TypeError(f"set_: source must be a Tensor or an UntypedStorage, got "
                        f"{type(source).__name__}")
    if size is None:
        sizes[0] = max(s.nbytes // item - first, 0)
    else:
        n = read_sizes(size, sizes, b"set_", b"size")
    if stride is None:
        fill_strides(n, sizes, strides)
    elif read_sizes(stride, strides, b"set_", b"stride") != n:
        raise RuntimeError(f"set_: size and stride must have one length, got {size!r} and "
                           f"{stride!r}")
    if not 0 <= first <= <int64_t>1 << 56 or count(n, sizes) < 0:
        raise RuntimeError(f"set_: size and storage_offset must be non-negative, got {size!r} "
                           f"and {storage_offset}")
    if count(n, sizes):
        if first + min_offset(n, sizes, strides) < 0:
            raise RuntimeError(f"set_: stride {stride!r} leaves the storage at its start")
        if (first + max_offset(n, sizes, strides) + 1) * item > s.nbytes:
            resize(s, (first + max_offset(n, sizes, strides) + 1) * item)
    _over(self, s, first * item, n, sizes, strides)
    count_write(self)
    return self


def is_set_to(Tensor self, Tensor tensor not None):
    """Whether both are the same window of the same storage."""
    cdef int i
    if (self.storage != tensor.storage or self.offset != tensor.offset
            or self.rank != tensor.rank):
        return False
    for i in range(2 * self.rank):
        if self.dims[i] != tensor.dims[i]:
            return False
    return True


for _f in (untyped_storage, resize_, set_, is_set_to):
    setattr(Tensor, _f.__name__, _f)
