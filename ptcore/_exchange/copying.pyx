"""Copying and pickling of tensors.

``copy.copy`` shares memory. ``copy.deepcopy`` copies each storage once, so that tensors that shared
memory still share it. Both keep class, attributes and ``requires_grad``. A pickle holds a tensor's
strides and the bytes from its first element in memory to its last, not the rest of its storage.
"""
from libc.string cimport memcpy

from ptcore._types cimport *
from ptcore._memory.allocate cimport allocate
from ptcore._dtype cimport ITEMSIZE, as_code, dtype_of
from ptcore._shape cimport count, max_offset, min_offset, read_sizes
from ptcore._tensor cimport *
from ptcore._untyped_storage cimport UntypedStorage
from ptcore._subclass import detached, make_subclass

cdef int64_t MAX_FIRST = <int64_t>1 << 56       # elements; times an item size still an int64


def over_storage(data, int code, str op):
    """A vector over a storage: of the dtype of a typed one, which must be the asked one; else int64 by default."""
    cdef int64_t size, step = 1
    cdef UntypedStorage whole
    if isinstance(data, UntypedStorage):
        whole = <UntypedStorage>data
        code = PT_INT64 if code < 0 else code
    else:
        whole = <UntypedStorage>data._untyped_storage
        if code >= 0 and data.dtype is not dtype_of(code):
            raise TypeError(f"{op}: expected a storage of {dtype_of(code).name}, got one of {data.dtype.name}")
        code = as_code(data.dtype, b"storage", b"dtype")
    size = whole.s.nbytes // ITEMSIZE[code]
    pt_storage_incref(whole.s)
    return wrap_storage(whole.s, 0, code, 1, &size, &step)


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


def rebuild_on(place, cls, name, shape, strides, first, data, requires_grad, attrs):
    """The tensor of a device that ``__reduce_ex__`` described by its name and by a tensor of the CPU.

    Raises
    ------
    RuntimeError
        If this process cannot use the device, as in PyTorch.
    """
    cdef Tensor t = <Tensor>rebuild(Tensor, name, shape, strides, first, data, False, None).to(place)
    return finished(cls, t, requires_grad, attrs)


# the name in pickles, which stays valid if this file moves
rebuild.__module__ = rebuild_on.__module__ = "ptcore._copying"


def __reduce_ex__(Tensor self not None, protocol):
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
    described = (type(self), dtype_of(t.dt).name, tuple(shape_of(t)), tuple(t.stride()), -low if t.count else 0, data,
                 self.requires_grad, attributes(self))
    return (rebuild, described) if t is self else (rebuild_on, (str(self.device), *described))


def __copy__(Tensor self not None):
    """A leaf over the same memory; its writes are not counted as this tensor's."""
    cdef Tensor r = detached(self)
    count_apart(r, 0)
    return finished(type(self), r, self.requires_grad, attributes(self))


def __deepcopy__(Tensor self not None, memo):
    """A leaf over a copy of the storage. The memo keeps that copy for other tensors that share the storage."""
    import copy
    cdef Tensor t, whole
    if not isinstance(memo, dict):
        raise TypeError(f"deepcopy: memo must be a dict, got {type(memo).__name__}")
    if id(self) in memo:
        return memo[id(self)]
    if grad_fn_of(self) is not None:
        raise RuntimeError("deepcopy: only leaf tensors (made by the user) can be deep-copied; "
                           "use detach() or clone()")
    if not self.flags & PT_INTERPOSED:
        key = ("storage", <size_t>self.storage)
        found = memo.get(key)
        if found is None or (<Tensor>found).storage.nbytes != self.storage.nbytes:
            found = memo[key] = copied_storage(self)
        whole = <Tensor>found
        pt_storage_incref(whole.storage)
        t = wrap_storage(whole.storage, self.offset, self.dt, self.rank, self.dims,
                         self.dims + self.rank)
    else:
        t = <Tensor>detached(self).clone()
    t = finished(type(self), t, (self.flags & PT_REQUIRES_GRAD) != 0, None)
    memo[id(self)] = t
    memo.setdefault(id(memo), []).append(self)      # as copy does: keys are addresses, so objects stay alive
    if self.grad_ is not None:
        t.grad = copy.deepcopy(self.grad_, memo)
    for name, value in (attributes(self) or {}).items():
        setattr(t, name, copy.deepcopy(value, memo))
    return t


cdef Tensor copied_storage(Tensor x):
    """All bytes of x's storage in a new one."""
    cdef int64_t n = x.storage.nbytes, one = 1
    cdef Tensor r, whole
    r = new_tensor(PT_UINT8, 1, &n, x.storage.device, x.storage.device_index)
    if x.storage.device == DEVICE_CPU and n:
        memcpy(address(r), x.storage.data, n)
    elif x.storage.device != DEVICE_META and n:
        pt_storage_incref(x.storage)
        whole = wrap_storage(x.storage, 0, PT_UINT8, 1, &n, &one)
        r.copy_(whole)
    return r
