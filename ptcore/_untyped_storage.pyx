"""UntypedStorage, memory shared by processes, and functions that exchange or resize a tensor's memory.

Invariant: a resize never leaves a live view without memory. Growing moves the block, which
every view follows, since a view reads the address through the storage; shrinking only lowers the
size and keeps the block. Shared memory keeps its size.
"""
import os

cimport cython
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.sequence cimport PySequence_Check
from libc.string cimport memcpy

from ptcore._types cimport *
from ptcore._errors import MemoryInUseError, OutOfMemoryError, here
from ptcore._device cimport as_device, device as Device, device_of
from ptcore._dtype cimport ITEMSIZE, dtype_of
from ptcore._memory.allocate cimport allocate as new_storage
from ptcore._shape cimport count, fill_strides, max_offset, min_offset, read_sizes, same_sizes, sizes_tuple
from ptcore._interpret cimport TOLD_READ, told
from ptcore._tensor cimport *
from ptcore._subclass import set_data, take_memory


cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        pass
    void Py_CLEAR(PyObject *)
    object PyObject_GenericGetDict(object, void *)

cdef extern from "_instance_dict.h":
    void pt_add_instance_dict(PyTypeObject *, Py_ssize_t)

# Method that converts the values of a storage -> dtype.
CASTS = {"double": "float64", "float": "float32", "half": "float16", "bfloat16": "bfloat16", "long": "int64",
         "int": "int32", "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool",
         "complex_double": "complex128", "complex_float": "complex64"}

cdef object _OF_TENSOR = object()       # an argument that no user can give


@cython.binding(False)                  # so that methods check their self
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class UntypedStorage:
    """UntypedStorage(size_or_bytes=0, *, device="cpu")

    The bytes behind tensors; ``tensor.untyped_storage()`` gives them.

    One object stands for a storage as long as that lives, and keeps its attributes: ``is`` tells whether two tensors
    share memory.

    Parameters
    ----------
    size_or_bytes : int or sequence of int, default: 0
        The number of bytes, which are not initialised; or their values, modulo 256.
    device : device, optional

    Raises
    ------
    RuntimeError
        If the number is negative, or what is given is neither a number nor a sequence of int.

    Examples
    --------
    >>> import ptcore
    >>> s = ptcore.UntypedStorage([1, 0, 2, 0])
    >>> ptcore.empty(0, dtype=ptcore.int16).set_(s)
    tensor([1, 2], dtype=ptcore.int16)
    """
    is_sparse = is_sparse_csr = is_hpu = False
    _fake_device = _checkpoint_offset = None

    def __cinit__(self, *args, device=None):
        if len(args) == 1 and args[0] is _OF_TENSOR:
            return
        self.s = made(args, device)
        self.s.handle = <void *>self

    def __del__(self):
        # Tensors show the memory, and may ask for this object again.
        if self.s != NULL and self.s.refs > 1 and not self.s.flags & PT_STORAGE_OWNS_HANDLE:
            Py_INCREF(self)
            self.s.flags |= PT_STORAGE_OWNS_HANDLE
            self.s.refs -= 1

    def __dealloc__(self):
        Py_CLEAR(self.attributes)
        if self.s != NULL:
            self.s.handle = NULL
            pt_storage_retire(self.s)

    def data_ptr(self):
        """The address of the first byte."""
        self.s.flags |= PT_STORAGE_EXPORTED
        return <size_t>self.s.data

    @property
    def __dict__(self):
        return PyObject_GenericGetDict(self, NULL)

    @property
    def _cdata(self):
        """A number of the storage, which no other one has while it lives."""
        return <size_t>self.s

    def __sizeof__(self):
        return 64 + self.nbytes()           # with the header, which ends where the first byte is aligned

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

    def type(self, dtype=None, non_blocking=False):
        """The name of the class; or a copy of the bytes as another class of storages, given itself or by its name."""
        return "torch.storage.UntypedStorage" if dtype is None else self._as_type(dtype, non_blocking)

    def get_device(self):
        """The index of the device; None for one without an index."""
        return self.device.index

    @property
    def is_cuda(self):
        return self.device.type == "cuda"

    @property
    def filename(self):
        """The path of the file that ``from_file(shared=True)`` has mapped; else None."""
        return self._filename

    def untyped(self):
        """The storage itself, which has no dtype."""
        return self

    def resizable(self):
        """Whether ``resize_`` may move the memory."""
        return not self.s.flags & (PT_STORAGE_EXPORTED | PT_STORAGE_SHARED)

    def is_shared(self):
        """Whether other processes can map this memory; memory of a device always counts as such."""
        return (self.s.flags & PT_STORAGE_SHARED) != 0 or self.s.device not in (DEVICE_CPU, DEVICE_META)

    def share_memory_(self):
        """Moves the bytes to memory that other processes can map; all tensors over them follow.

        Nothing happens if they are in such memory already, or on a device.

        Raises
        ------
        BufferError
            If the address is known outside (NumPy, a buffer, DLPack, ``data_ptr``).
        """
        if self.s.device == DEVICE_CPU and not self.s.flags & PT_STORAGE_SHARED:
            share(self.s)
        return self

    @classmethod
    def _new_shared(cls, size, *, device="cpu"):
        """A storage in memory that other processes can map."""
        return cls(size, device=device).share_memory_()

    @property
    def _place(self):
        """(Segment, offset) of memory in a segment; else None."""
        if self.s.deleter != leave:
            return None
        return <Segment>self.s.owner, self.s.data - (<Segment>self.s.owner).base

    def resize_(self, size):
        """Sets the number of bytes; added bytes are zero. All tensors over the storage follow.

        Raises
        ------
        RuntimeError
            If the number is negative or none.
        BufferError
            If the address is known outside (NumPy, a buffer, DLPack, ``data_ptr``), or the memory is shared.
        """
        if not hasattr(size, "__index__"):
            raise RuntimeError(f"resize_ expects an int, but got {type(size).__name__}")
        if size < 0:
            raise RuntimeError(f"resize_: size must be non-negative, got {size}")
        if size > <int64_t>1 << 56:
            raise OutOfMemoryError(f"resize_: allocation of {size} bytes failed")
        resize(self.s, size)
        return self

    def new(self):
        """An empty storage on the same device."""
        return UntypedStorage(device=self.device)

    def to(self, device, non_blocking=False):
        """The bytes on a device: this object if they are there, else a copy."""
        place = as_device(device, b"to")
        if self.device == place:
            return self
        return bytes_of(self).to(place, non_blocking=bool(non_blocking)).untyped_storage()

    def cpu(self):
        """The bytes on the CPU: this object if they are there, else a copy."""
        return self.to("cpu")

    def cuda(self, device=None, non_blocking=False):
        """The bytes on a CUDA device, by default the present one: this object if they are there, else a copy."""
        place = as_device("cuda" if device is None else device, b"cuda")
        if place.type != "cuda":
            raise RuntimeError(f"cuda: device must be a CUDA device, got {place}")
        return self.to(place, non_blocking)

    def clone(self):
        """A copy in memory of its own."""
        return bytes_of(self).clone().untyped_storage()

    def __copy__(self):
        return self.clone()

    def tolist(self):
        """The bytes as numbers."""
        readable(self)
        return bytes_of(self).tolist()

    def __iter__(self):
        return iter(self.tolist())

    def copy_(self, source, non_blocking=None):
        """Copies the bytes of another storage, of the same size, into this one.

        Raises
        ------
        RuntimeError
            If the sizes differ.
        """
        source = getattr(source, "_untyped_storage", source)
        if not isinstance(source, UntypedStorage):
            raise TypeError(f"copy_: source must be a storage, got {type(source).__name__}")
        if source.nbytes() != self.s.nbytes:
            raise RuntimeError(f"size does not match, self was {self.s.nbytes} bytes but src was {source.nbytes()} "
                               "bytes")
        bytes_of(self).copy_(bytes_of(source), bool(non_blocking))
        return self

    def fill_(self, value):
        """Sets all bytes to a number, modulo 256."""
        if not hasattr(value, "__index__"):
            raise RuntimeError(f"fill_ expects int, but got {type(value).__name__}")
        bytes_of(self).fill_(value.__index__() & 255)
        return self

    def is_pinned(self, device=None):
        """Whether the memory is page-locked."""
        return bytes_of(self).is_pinned()

    def pin_memory(self, device=None):
        """The bytes in page-locked memory: this object if they are there, else a copy."""
        if self.s.device != DEVICE_CPU:
            raise TypeError(f"cannot pin '{self.type()}' only CPU memory can be pinned")
        return bytes_of(self).pin_memory().untyped_storage()

    def __getitem__(self, index):
        """A byte as a number; of a slice a storage that shares its memory."""
        readable(self)
        if isinstance(index, slice):
            return part_of(self, bounds(self, index))
        if not hasattr(index, "__index__"):
            raise TypeError(f"can't index a {typename(self)} with {type(index).__name__}")
        cdef int64_t i = position(self, index)
        if self.s.device != DEVICE_CPU:
            return bytes_of(self)[i].item()
        return (<uint8_t *>self.s.data)[i]

    def __setitem__(self, index, value):
        readable(self)
        if not hasattr(value, "__index__"):
            raise RuntimeError(f"can only set storage content with a int types, but got {type(value).__name__} instead")
        value = value.__index__() & 255
        if isinstance(index, slice):
            bytes_of(self)[bounds(self, index)] = value
        elif hasattr(index, "__index__"):
            if not -self.s.nbytes <= index.__index__() < self.s.nbytes:
                raise RuntimeError(f"out of bounds: index {index} for storage of size {self.s.nbytes}")
            bytes_of(self)[index] = value
        else:
            raise RuntimeError(f"can't index a {typename(self)} with {type(index).__name__}")

    def __repr__(self):
        last = f"[{typename(self)}(device={self.device}) of size {self.s.nbytes}]"
        if self.s.device == DEVICE_META:
            return f"...\n{last}"
        return " " + shown_values(bytes_of(self)) + f"\n{last}"


cdef object cast(str name, str its):
    def method(UntypedStorage self not None):
        return self._to(its)

    method.__name__, method.__qualname__ = name, f"UntypedStorage.{name}"
    method.__doc__ = f"The bytes, as numbers, in a storage of {its}."
    return method


for _name, _its in CASTS.items():
    setattr(UntypedStorage, _name, cast(_name, _its))

cdef UntypedStorage _any = UntypedStorage.__new__(UntypedStorage, _OF_TENSOR)
pt_add_instance_dict(<PyTypeObject *>UntypedStorage, <char *>&_any.attributes - <char *><PyObject *>_any)


cdef str typename(object storage):
    return f"{type(storage).__module__.replace('ptcore._untyped_storage', 'ptcore.storage')}.{type(storage).__name__}"


def shown_values(values):
    """The text of a storage's values, a line for each; the middle of many is left out."""
    n = len(values)
    lines = values.tolist() if n <= 1000 else [*values[:3].tolist(), "...", *values[n - 3:].tolist()]
    return "\n ".join(str(v) for v in lines)


cdef int readable(UntypedStorage u) except -1:
    if u.s.device == DEVICE_META:
        raise NotImplementedError("Not available for 'meta' device type")
    return 0


cdef int64_t position(UntypedStorage u, object index) except -1:
    cdef object i = index.__index__()
    if not -u.s.nbytes <= i < u.s.nbytes:
        raise IndexError(f"index {i} out of range for storage of size {u.s.nbytes}")
    return i + u.s.nbytes if i < 0 else i


cdef slice bounds(UntypedStorage u, slice index):
    start, stop, step = index.indices(u.s.nbytes)
    if step != 1:
        raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
    return slice(start, max(start, stop))


cdef UntypedStorage part_of(UntypedStorage u, slice part):
    """A storage over some bytes of another one, which does not move any more."""
    cdef int64_t first = part.start, nbytes = part.stop - part.start
    cdef pt_storage *s = pt_storage_wrap(u.s.data + first, nbytes, u.s, leave_whole,
                                         PT_STORAGE_EXPORTED | (u.s.flags & PT_STORAGE_READONLY))
    if s == NULL:
        raise MemoryError()
    s.device, s.device_index = u.s.device, u.s.device_index
    u.s.flags |= PT_STORAGE_EXPORTED
    pt_storage_incref(u.s)
    cdef UntypedStorage r = storage_object(s)
    pt_storage_decref(s)
    return r


cdef void leave_whole(pt_storage *s) noexcept:
    pt_storage_decref(<pt_storage *>s.owner)


cdef void give_back(pt_storage *s) noexcept:
    """Called when the last tensor over a storage that owns its object is gone."""
    cdef void *handle = s.handle
    s.flags &= ~PT_STORAGE_OWNS_HANDLE
    s.refs = 1                              # the object's
    Py_DECREF(<object>handle)


pt_storage_set_release(give_back)


cdef pt_storage *made(tuple args, object where) except NULL:
    """A new storage, of a number of bytes or of given ones."""
    cdef Device place = as_device("cpu" if where is None else where, b"UntypedStorage")
    cdef int64_t size, step = 1
    cdef bytes given = None
    cdef Tensor whole
    if len(args) > 1:
        raise TypeError(f"UntypedStorage: expected a size or a sequence, got {len(args)} arguments")
    data = args[0] if args else 0
    if hasattr(data, "__index__"):
        number = data.__index__()
        if number < 0:
            raise RuntimeError(f"UntypedStorage: the size must be non-negative, got {number}")
        if number > <int64_t>1 << 56:
            raise OutOfMemoryError(f"UntypedStorage: allocation of {number} bytes failed")
    else:
        given = read_bytes(data)
        number = len(given)
    size = number
    if place.column == DEVICE_META:
        return new_storage(size, DEVICE_META, -1)
    cdef pt_storage *s = new_storage(size, DEVICE_CPU, -1)
    if given is not None:
        memcpy(s.data, <const char *>given, size)
    if place.column == DEVICE_CPU:
        return s
    whole = wrap_storage(s, 0, PT_UINT8, 1, &size, &step)
    whole = <Tensor>whole.to(place)
    pt_storage_incref(whole.storage)
    return whole.storage


cdef bytes read_bytes(object data):
    if not PySequence_Check(data):
        raise RuntimeError(f"UntypedStorage: Expected a sequence type, but got {type(data).__name__}")
    items = list(data)
    for item in items:
        if not hasattr(item, "__index__"):
            raise RuntimeError(f"UntypedStorage: tried to construct a storage from a sequence ({type(data).__name__}), "
                               f"but one of the items was of type {type(item).__name__} instead of int")
    return bytes([item.__index__() & 255 for item in items])


cdef Tensor bytes_of(UntypedStorage u):
    """All bytes as a tensor."""
    cdef int64_t size = u.s.nbytes, step = 1
    pt_storage_incref(u.s)
    return wrap_storage(u.s, 0, PT_UINT8, 1, &size, &step)


def is_storage(value):
    """Whether it is the memory behind tensors, with or without a dtype."""
    return isinstance(getattr(value, "_untyped_storage", value), UntypedStorage)


# -- memory that other processes can show -----------------------------------------------------

cdef object _allocate_shared = None


def set_shared_memory(allocate):
    """Sets the allocator: ``allocate(nbytes)`` gives (Segment, offset) of bytes that no storage has used."""
    global _allocate_shared
    _allocate_shared = allocate


# key -> weak reference to the segment that this process maps. A segment removes its entry when it ends. Segments that
# live until Python exits end after module globals are cleared, so they use this C variable, not the Python name.
cdef dict _known = {}
known = _known


@cython.binding(False)                  # so that methods check their self
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class Segment:
    """An open file in memory, mapped for as long as storages lie in it.

    A place in it is used once, because another process may still show it; for an exception see ``utils.data._ring``.
    Compiled code does the work at a segment's end: an exception of a signal's handler, such as KeyboardInterrupt,
    would be lost inside a finalizer in Python.
    """
    def __cinit__(self, int fd, int64_t nbytes, *rest):
        self.living = {}
        self.fd = -1
        self.shared = True
        self.base = pt_shared_map(fd, nbytes)
        if self.base == NULL:
            raise OutOfMemoryError(f"shared memory: mapping {nbytes} bytes failed")
        self.nbytes = nbytes

    def __dealloc__(self):
        if self.base != NULL:
            pt_shared_unmap(self.base, self.nbytes)
        self.forget()

    cdef void forget(self) noexcept:
        if self.fd >= 0:
            pt_shared_close(self.fd)
            self.fd = -1
        if self.key is not None:
            _known.pop(self.key, None)

    def close(self):
        """Keeps the segment from other processes: closes its descriptor and removes its key."""
        self.forget()

    def is_idle(self):
        """Whether no storage lies in it."""
        return self.storages == 0

    def use_again(self, int64_t number, list ended not None):
        """Its storages do not count as shared. The list gets the number when no storage lies in the segment."""
        self.shared, self.number, self.ended = False, number, ended

    def storage(self, int64_t offset, int64_t nbytes):
        """The storage at a place; the same one for as long as it lives."""
        return storage_at(self, offset, nbytes)


cdef UntypedStorage storage_at(Segment segment, int64_t offset, int64_t nbytes):
    cdef pt_storage *s = <pt_storage *><size_t>segment.living.get(offset, 0)
    cdef UntypedStorage u
    if s != NULL and s.refs > 0:            # refs is 0 for a storage that only a running kernel keeps
        return storage_object(s)
    if nbytes < 0 or not 0 <= offset <= segment.nbytes - nbytes:
        raise ValueError(f"shared memory: {nbytes} bytes at {offset} leave the segment's {segment.nbytes}")
    s = pt_storage_wrap(segment.base + offset, nbytes, <void *>segment, leave,
                        PT_STORAGE_SHARED if segment.shared else 0)
    if s == NULL:
        raise MemoryError()
    enter(segment, offset, s)
    u = storage_object(s)
    pt_storage_decref(s)
    return u


cdef int enter(Segment segment, int64_t offset, pt_storage *s) except -1:
    segment.living[offset] = <size_t>s
    segment.storages += 1
    Py_INCREF(segment)
    return 0


cdef void leave(pt_storage *s) noexcept:
    cdef Segment segment = <Segment>s.owner
    vacate(segment, s.data - segment.base, s)
    segment.storages -= 1
    if segment.storages == 0 and segment.ended is not None:
        segment.ended.append(segment.number)
    Py_DECREF(segment)


cdef void vacate(Segment segment, int64_t offset, pt_storage *s) noexcept:
    """Removes a storage from the dict of places. If it was moved, a kernel may still read the old memory, which is
    given up when the kernel ends."""
    if segment.living.get(offset) == <size_t>s:
        del segment.living[offset]


cdef int share(pt_storage *s) except -1:
    """Moves the bytes of a storage of the CPU that is not shared to memory that other processes can map."""
    if s.flags & PT_STORAGE_EXPORTED:
        raise BufferError("share_memory_: the memory is in use outside (NumPy, a buffer, DLPack or data_ptr), "
                          "its address must not change; share a clone()")
    if s.data == NULL:
        raise RuntimeError("share_memory_: the storage was never made")
    segment, offset = _allocate_shared(s.nbytes)
    return move_into(s, segment, offset)


cdef int move_into(pt_storage *s, Segment segment, int64_t offset) except -1:
    # A small storage lies among others, on pages that exist already.
    cdef int fd = segment.fd if s.nbytes >= 16384 else -1
    cdef Segment before = <Segment>s.owner if s.deleter == leave else None
    cdef int64_t left = 0 if before is None else s.data - before.base
    if pt_storage_share(s, segment.base + offset, fd, offset, <void *>segment, leave):
        raise OutOfMemoryError(f"shared memory: {s.nbytes} bytes have no room")
    if before is not None:
        vacate(before, left, s)
    return enter(segment, offset, s)


def is_shared(Tensor self not None):
    """Whether other processes can map the tensor's memory; memory of a device always counts as such."""
    return storage_object(self.storage).is_shared()


def share_memory_(Tensor self not None):
    """Moves the storage to memory that other processes can map; all its views follow. See ``ptcore.multiprocessing``.

    Raises
    ------
    BufferError
        If the address is known outside (NumPy, a buffer, DLPack, ``data_ptr``).
    """
    refuse_stand_in(self, "share_memory_")
    storage_object(self.storage).share_memory_()
    return self


cdef int resize(pt_storage *s, int64_t nbytes) except -1:
    if nbytes == s.nbytes:
        return 0
    if s.device == DEVICE_META:
        s.nbytes = nbytes
        return 0
    if s.flags & PT_STORAGE_EXPORTED:
        raise MemoryInUseError("resize_: the memory is in use outside (NumPy, a buffer, DLPack or "
                               "data_ptr), its address must not change")
    if s.flags & PT_STORAGE_SHARED:
        raise MemoryInUseError("resize_: the memory is shared with other processes; resize a clone()")
    if s.device != DEVICE_CPU:
        from ptcore._exchange.device_memory import resize as resize_on_device
        return resize_on_device(<size_t>s, nbytes)
    if s.data == NULL:
        raise RuntimeError("resize_: the storage was never made")
    cdef Segment before = <Segment>s.owner if s.deleter == leave else None
    cdef int64_t left = 0 if before is None else s.data - before.base
    if pt_storage_move(s, nbytes):
        raise OutOfMemoryError(f"resize_: allocation of {nbytes} bytes failed")
    if before is not None and s.deleter != leave:
        vacate(before, left, s)
    return 0


cdef UntypedStorage storage_object(pt_storage *s):
    cdef UntypedStorage u
    if s.handle != NULL:
        return <UntypedStorage>s.handle
    u = UntypedStorage.__new__(UntypedStorage, _OF_TENSOR)
    u.s = s
    pt_storage_incref(u.s)
    u.s.handle = <void *>u
    return u


cdef int refuse_stand_in(Tensor t, str op) except -1:
    """Raises for a stand-in: its memory belongs to other values as well and may not be shown or exchanged."""
    if t.flags & PT_INTERPOSED:
        raise RuntimeError(f"{op}: the memory of a traced or batched tensor is not known here{here()}")
    if pt_tls.mode & PT_INTERPOSED:
        told(TOLD_READ, op, t)


def data_ptr(Tensor self not None):
    """The address of element [0, ..., 0] as an int; 0 on the meta device and where there are no elements."""
    refuse_stand_in(self, "data_ptr")
    if self.storage.data == NULL or self.count == 0:
        return 0
    self.storage.flags |= PT_STORAGE_EXPORTED
    return <size_t>address(self)


def untyped_storage(Tensor self not None):
    """The storage as bytes."""
    refuse_stand_in(self, "untyped_storage")
    return storage_object(self.storage)


cdef int changeable(Tensor t, str op) except -1:
    refuse_stand_in(t, op)
    if needs_grad(t):
        raise RuntimeError(f"{op}: the memory of a tensor that requires grad cannot be changed")
    if t.base is not None:
        raise RuntimeError(f"{op}: the memory of a view cannot be changed; detach() it first")
    return 0


def resize_(Tensor self not None, *size, memory_format=None):
    """Gives the tensor other sizes, contiguous from its first element on; the storage grows
    if it must. A tensor that has the sizes is not changed, unless a memory format is given.

    Raises
    ------
    RuntimeError
        If the tensor requires grad.
    BufferError
        If the storage would have to move and its address is known outside.
    """
    cdef int64_t[64] sizes
    if not size:
        raise TypeError("resize_: size must be given, got nothing")
    cdef int n = read_sizes(size[0] if len(size) == 1 and not isinstance(size[0], int) else size,
                            sizes, b"resize_", b"size")
    return resized(self, n, sizes, memory_format, "resize_")


fill_new = None                         # called with a tensor and the bytes that its storage had before


def resize_as_(Tensor self not None, the_template, *, memory_format=None):
    """``resize_`` to the shape of another tensor; with ``preserve_format`` also to its memory format."""
    if not isinstance(the_template, Tensor):
        raise TypeError(f"resize_as_: the_template must be a Tensor, got {type(the_template).__name__}")
    if memory_format is not None:
        from ptcore._memory_format import kept
        memory_format = kept(the_template, memory_format)
    return resized(self, (<Tensor>the_template).rank, (<Tensor>the_template).dims, memory_format, "resize_as_")


cdef Tensor resized(Tensor self, int n, const int64_t *sizes, object memory_format, str op):
    from ptcore._memory_format import checked, strides as strides_in
    cdef int64_t[64] strides
    cdef object order = checked(op, memory_format)
    cdef int64_t total = count(n, sizes), need
    refuse_stand_in(self, op)
    if needs_grad(self):
        raise RuntimeError("resize_: cannot resize tensors that require grad")
    if not 0 <= total <= <int64_t>1 << 56:
        raise RuntimeError(f"resize_: Storage size calculation overflowed, got sizes {sizes_tuple(n, sizes)}")
    if memory_format is None and self.rank == n and same_sizes(n, self.dims, sizes):
        return self                     # the strides stay
    fill_strides(n, sizes, strides)
    if order is not None:
        read_sizes(strides_in(op, sizes_tuple(n, sizes), order), strides, b"resize_", b"strides")
    need = self.offset + total * ITEMSIZE[self.dt] if total else 0
    if self.storage.data == NULL and self.storage.device == DEVICE_CPU:
        set_data(self, new_tensor(self.dt, n, sizes, DEVICE_CPU, -1))
        count_write(self)
        return self
    cdef int64_t before = self.storage.nbytes
    if need > before:
        resize(self.storage, need)
    _over(self, self.storage, self.offset, n, sizes, strides)
    if fill_new is not None and need > before:
        fill_new(self, before)
    count_write(self)                   # a backward would use the other sizes
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


def set_(Tensor self not None, source=None, storage_offset=0, size=None, stride=None):
    """Gives this tensor other memory: that of a tensor, or a window of a storage.

    Parameters
    ----------
    source : Tensor, UntypedStorage or TypedStorage, optional
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
            take_memory(self, other)
            return self
        s = other.storage
    elif isinstance(source, UntypedStorage):
        s = (<UntypedStorage>source).s
    elif isinstance(getattr(source, "_untyped_storage", None), UntypedStorage):
        if source.dtype is not dtype_of(self.dt):
            raise RuntimeError(f"Expected a Storage of type {dtype_of(self.dt).name} or an UntypedStorage, but got "
                               f"type {source.dtype.name} for argument 1 'storage'")
        s = (<UntypedStorage>source._untyped_storage).s
    else:
        raise TypeError(f"set_: source must be a Tensor or a storage, got {type(source).__name__}")
    if s.device != self.storage.device:
        raise RuntimeError(f"set_: source must be on the device {self.device}, got "
                           f"{device_of(s.device, s.device_index)}")
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


for _f in (data_ptr, untyped_storage, resize_, resize_as_, set_, is_shared, share_memory_):
    setattr(Tensor, _f.__name__, _f)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pt_kernels_forked)
