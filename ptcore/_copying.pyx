"""Copying and pickling of tensors.

``copy.copy`` shares memory, ``copy.deepcopy`` copies each storage once, so that what shared
memory still does; both keep class, attributes and ``requires_grad``. A pickle holds a tensor's
own elements.
"""
from libc.string cimport memcpy

from ptcore._types cimport *
from ptcore._dtype cimport ITEMSIZE, as_code, dtype_of
from ptcore._tensor cimport *
from ptcore._subclass import make_subclass

cdef extern from "ptcore/elementwise.h" nogil:
    int pt_copy(const pt_view *dst, const pt_view *src)


cdef object attributes(Tensor t):
    """The user's attributes, or None."""
    if t.flags & PT_NOT_EXACT or t.extras is not None:
        return dict(t.__dict__) or None
    return None


cdef Tensor finished(object cls, Tensor t, bint requires_grad, object attrs):
    """t as a leaf of class cls with attributes."""
    if cls is not Tensor:
        t = <Tensor>make_subclass(cls, t, False)
    if requires_grad:
        t.flags |= PT_REQUIRES_GRAD
    for key, value in (attrs or {}).items():
        setattr(t, key, value)
    return t


def rebuild(cls, name, shape, data, requires_grad, attrs):
    """The tensor that ``__reduce_ex__`` described; without data one on the meta device."""
    cdef int64_t[64] sizes
    cdef Tensor t
    cdef int i, n = len(shape)
    cdef const unsigned char[:] raw
    if n > 64:
        raise ValueError(f"rebuild: at most 64 dimensions are supported, got {n}")
    for i in range(n):
        sizes[i] = shape[i]
    t = new_tensor(as_code(name, b"rebuild", b"dtype"), n, sizes,
                   DEVICE_META if data is None else DEVICE_CPU, -1)
    if data is None:
        return finished(cls, t, requires_grad, attrs)
    raw = data
    if raw.shape[0] != t.count * ITEMSIZE[t.dt]:
        raise ValueError(f"rebuild: {t.count} elements of {name} need "
                         f"{t.count * ITEMSIZE[t.dt]} bytes, got {raw.shape[0]}")
    if t.count:
        memcpy(address(t), &raw[0], raw.shape[0])
    return finished(cls, t, requires_grad, attrs)


cdef bytes to_bytes(Tensor self):
    """The elements in row-major order."""
    cdef Tensor t = self
    cdef pt_view a, b
    if self.flags & PT_INTERPOSED:
        raise RuntimeError("pickle: the value of a traced or batched tensor is not known here")
    if t.storage.device != DEVICE_CPU:
        t = <Tensor>alias(t).cpu()
    if t.flags & PT_NONCONTIGUOUS:
        t = new_like(t, t.dt)
        fill_view(t, &a)
        fill_view(self, &b)
        if pt_copy(&a, &b):
            raise RuntimeError("pickle: the copy failed")
    return (<char *>address(t))[:t.count * ITEMSIZE[t.dt]]


def __reduce_ex__(Tensor self, protocol):
    """A tensor with history is pickled as a leaf, as in PyTorch."""
    data = None if self.storage.device == DEVICE_META else to_bytes(self)
    return rebuild, (type(self), dtype_of(self.dt).name, tuple(shape_of(self)), data,
                     self.requires_grad, attributes(self))


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
