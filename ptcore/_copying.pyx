"""Copying and pickling of tensors.

``copy.copy`` shares memory, ``copy.deepcopy`` copies each storage once, so that what shared
memory still does; both keep class, attributes and ``requires_grad``. A pickle holds a tensor's
strides and the bytes from its first element in memory to its last, not the rest of its storage.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.string cimport memcpy

from ptcore._types cimport *
from ptcore._allocate cimport allocate
from ptcore._dtype cimport ITEMSIZE, as_code, dtype_of
from ptcore._shape cimport count, max_offset, min_offset, read_sizes, sizes_tuple
from ptcore._tensor cimport *
from ptcore._untyped_storage cimport Segment, UntypedStorage, storage_at
from ptcore._subclass import make_subclass

cdef int64_t MAX_FIRST = <int64_t>1 << 56       # elements; times an item size still an int64


cdef object attributes(Tensor t):
    """The user's attributes, or None."""
    if t.attributes == NULL:
        return None
    return dict(<object>t.attributes) or None


cdef Tensor finished(object cls, Tensor t, bint requires_grad, object attrs):
    """t as a leaf of class cls with attributes."""
    if cls is not Tensor:
        t = <Tensor>make_subclass(cls, t, False)
    if requires_grad:
        t.flags |= PT_REQUIRES_GRAD
    for key, value in (attrs or {}).items():
        setattr(t, key, value)
    return t


def rebuild(cls, name, shape, strides, int64_t first, data, requires_grad, attrs):
    """The tensor that ``__reduce_ex__`` described: over a copy of bytes, over a storage, or on the meta device."""
    cdef int64_t[64] sizes
    cdef int64_t[64] steps
    cdef Tensor t
    cdef pt_storage *s
    cdef int code = as_code(name, b"rebuild", b"dtype"), n = read_sizes(shape, sizes, b"rebuild", b"shape")
    cdef int64_t item = ITEMSIZE[code], low, high, nbytes
    cdef const unsigned char[:] raw
    if read_sizes(strides, steps, b"rebuild", b"strides") != n or count(n, sizes) < 0:
        raise ValueError(f"rebuild: no tensor has shape {shape!r} and strides {strides!r}")
    low, high = min_offset(n, sizes, steps), max_offset(n, sizes, steps)
    if data is None:
        nbytes = (first + high + 1) * item if -1 < first < MAX_FIRST and high < MAX_FIRST else -1
    elif isinstance(data, UntypedStorage):
        nbytes = (<UntypedStorage>data).s.nbytes
    else:
        raw = data
        nbytes = raw.shape[0]
    if count(n, sizes) and not -low <= first < nbytes // item - high:
        raise ValueError(f"rebuild: shape {shape!r} and strides {strides!r} from element {first} on "
                         f"leave the {nbytes} bytes that are given")
    if not count(n, sizes):
        first = 0
    if isinstance(data, UntypedStorage):
        s = (<UntypedStorage>data).s
        pt_storage_incref(s)
    else:
        s = allocate(nbytes if nbytes > 0 else 0, DEVICE_META if data is None else DEVICE_CPU, -1)
        if data is not None and nbytes:
            memcpy(s.data, &raw[0], nbytes)
    t = wrap_storage(s, first * item, code, n, sizes, steps)
    return finished(cls, t, requires_grad, attrs)


# -- tensors in messages to other processes -------------------------------------------------------

cdef enum:
    SMALL_HEAD = 2
    WINDOW_HEAD = 5


cdef bint is_plain(Tensor t):
    """Whether a tensor has no class of its own, no part in autograd and no attributes."""
    return (type(t) is Tensor and not t.flags & (PT_INTERPOSED | PT_TANGENT) and t.grad_ is None
            and t.attributes == NULL and not needs_grad(t))


cdef int64_t small_size(Tensor t, int64_t limit) noexcept:
    """Bytes of what ``write_small`` writes, for a tensor in row-major order whose elements are ``limit`` bytes at most
    and that no other process can show; else 0."""
    cdef int64_t nbytes = t.count * ITEMSIZE[t.dt]
    if (not 0 < nbytes <= limit or t.storage.device != DEVICE_CPU or t.storage.flags & PT_STORAGE_SHARED
            or t.flags & PT_NONCONTIGUOUS):
        return 0
    return 8 * (SMALL_HEAD + t.rank) + nbytes


cdef int write_small(Tensor t, int64_t *to) except -1:
    to[0], to[1] = t.dt, t.rank
    memcpy(to + SMALL_HEAD, t.dims, 8 * t.rank)
    memcpy(to + SMALL_HEAD + t.rank, address(t), t.count * ITEMSIZE[t.dt])
    return 0


cdef int64_t window_size(Tensor t) noexcept:
    return 8 * (WINDOW_HEAD + 2 * t.rank)


cdef int write_window(Tensor t, Segment segment, int64_t *to) except -1:
    to[0], to[1], to[2] = t.dt, t.rank, t.offset
    to[3], to[4] = t.storage.data - segment.base, t.storage.nbytes
    memcpy(to + WINDOW_HEAD, t.dims, 16 * t.rank)
    return 0


cdef int check_head(const int64_t *parts, int64_t nbytes, int first, int each) except -1:
    """That so many bytes hold ``first`` numbers, and ``each`` for a dim."""
    if (nbytes < 8 * first or not 0 <= parts[0] < PT_NDTYPES or not 0 <= parts[1] <= PT_MAX_DIM
            or nbytes < 8 * (first + each * parts[1])):
        raise ValueError(f"rebuild: {nbytes} bytes are no description of a tensor")
    return 0


cdef Tensor read_small(const int64_t *parts, int64_t nbytes):
    """The tensor of ``write_small``; other bytes may follow."""
    check_head(parts, nbytes, SMALL_HEAD, 1)
    cdef int code = parts[0], n = parts[1]
    cdef const int64_t *sizes = parts + SMALL_HEAD
    cdef int64_t total = count(n, sizes), left = nbytes - 8 * (SMALL_HEAD + n)
    cdef Tensor t
    if not 0 <= total <= left or total * ITEMSIZE[code] > left:
        raise ValueError(f"rebuild: {left} bytes are no {dtype_of(code).name} of shape {sizes_tuple(n, sizes)!r}")
    t = new_tensor(code, n, sizes, DEVICE_CPU, -1)
    memcpy(address(t), sizes + n, total * ITEMSIZE[code])
    return t


cdef Tensor read_window(const int64_t *parts, int64_t nbytes, Segment segment):
    """The tensor of ``write_window``, over the storage that this process has at the place, if it has one."""
    check_head(parts, nbytes, WINDOW_HEAD, 2)
    cdef int code = parts[0], n = parts[1]
    cdef const int64_t *sizes = parts + WINDOW_HEAD
    cdef const int64_t *steps = sizes + n
    cdef int64_t item = ITEMSIZE[code], first = parts[2], low, high
    cdef UntypedStorage storage = storage_at(segment, parts[3], parts[4])
    if count(n, sizes) < 1:
        raise ValueError(f"rebuild: no window has shape {sizes_tuple(n, sizes)!r}")
    low, high = min_offset(n, sizes, steps), max_offset(n, sizes, steps)
    if first % item or not -low <= first // item < storage.s.nbytes // item - high:
        raise ValueError(f"rebuild: shape {sizes_tuple(n, sizes)!r} and strides {sizes_tuple(n, steps)!r} from byte "
                         f"{first} on leave the {storage.s.nbytes} bytes that are given")
    pt_storage_incref(storage.s)
    return wrap_storage(storage.s, first, code, n, sizes, steps)


def window_of(Tensor t not None):
    """(what ``rebuild_window`` takes, segment) of a tensor with elements in shared memory."""
    cdef Segment segment
    cdef bytes parts
    if t.flags & PT_INTERPOSED:
        raise RuntimeError("multiprocessing: the value of a traced or batched tensor is not known here")
    if not t.storage.flags & PT_STORAGE_SHARED:
        raise ValueError("multiprocessing: the tensor is not shared")
    segment = <Segment>t.storage.owner
    parts = PyBytes_FromStringAndSize(NULL, window_size(t))
    write_window(t, segment, <int64_t *><char *>parts)
    return parts, segment


def rebuild_window(bytes parts not None, Segment segment not None, kind=Tensor, requires_grad=False):
    """The tensor of a window."""
    return finished(kind, read_window(<const int64_t *><char *>parts, len(parts), segment), requires_grad, None)


def __reduce_ex__(Tensor self, protocol):
    """A tensor with history is pickled as a leaf, as in PyTorch."""
    cdef Tensor t = self
    cdef int64_t low, high, item = ITEMSIZE[self.dt]
    if self.flags & PT_INTERPOSED:
        raise RuntimeError("pickle: the value of a traced or batched tensor is not known here")
    if self.storage.device != DEVICE_CPU and self.storage.device != DEVICE_META:
        t = <Tensor>alias(self).cpu()
    low = min_offset(t.rank, t.dims, t.dims + t.rank)
    high = max_offset(t.rank, t.dims, t.dims + t.rank)
    data = None
    if t.storage.device == DEVICE_CPU:
        data = (<char *>address(t))[low * item:(high + 1) * item] if t.count else b""
    return rebuild, (type(self), dtype_of(t.dt).name, tuple(shape_of(t)), tuple(t.stride()),
                     -low if t.count else 0, data, self.requires_grad, attributes(self))


def __copy__(Tensor self):
    """A leaf over the same memory; its writes are not counted as this tensor's."""
    cdef Tensor r = alias(self)
    count_apart(r, 0)
    return finished(type(self), r, self.requires_grad, attributes(self))


def __deepcopy__(Tensor self, memo):
    """A leaf over a copy of the storage, which the memo keeps for others that share it."""
    import copy
    cdef Tensor t, whole
    if id(self) in memo:
        return memo[id(self)]
    if grad_fn_of(self) is not None:
        raise RuntimeError("deepcopy: only leaf tensors (made by the user) can be deep-copied; "
                           "use detach() or clone()")
    if self.storage.device == DEVICE_CPU or self.storage.device == DEVICE_META:
        key = ("storage", <size_t>self.storage)
        if key not in memo:
            memo[key] = copied_storage(self)
        whole = <Tensor>memo[key]
        pt_storage_incref(whole.storage)
        t = wrap_storage(whole.storage, self.offset, self.dt, self.rank, self.dims,
                         self.dims + self.rank)
    else:
        t = <Tensor>alias(self).clone()
    t = finished(type(self), t, (self.flags & PT_REQUIRES_GRAD) != 0, None)
    memo[id(self)] = t
    if self.grad_ is not None:
        t.grad = copy.deepcopy(self.grad_, memo)
    for name, value in (attributes(self) or {}).items():
        setattr(t, name, copy.deepcopy(value, memo))
    return t


cdef Tensor copied_storage(Tensor x):
    """All bytes of x's storage in a new one."""
    cdef int64_t n = x.storage.nbytes
    cdef Tensor r
    r = new_tensor(PT_UINT8, 1, &n, x.storage.device, x.storage.device_index)
    if x.storage.device == DEVICE_CPU and n:
        memcpy(address(r), x.storage.data, n)
    return r


# What this module adds to Tensor.
for _f in (__reduce_ex__, __copy__, __deepcopy__):
    setattr(Tensor, _f.__name__, _f)
