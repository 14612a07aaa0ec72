"""DLPack 1.x both ways: ``__dlpack__``, ``__dlpack_device__``, ``from_dlpack``.

Invariants: an exported capsule holds a reference to the storage (never to the tensor, whose
storage can be exchanged) and marks it exported, so that its address stays; an imported one
becomes the owner of a foreign storage. A capsule is consumed only when nothing can fail any
more.
"""
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.pycapsule cimport (PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New,
                                PyCapsule_SetName)

from ptcore._types cimport *
from ptcore._dtype cimport ITEMSIZE, dtype_of
from ptcore._shape cimport count, fill_strides
from ptcore._tensor cimport *

cdef extern from *:
    """
    #include <stdint.h>
    typedef struct { int32_t type, id; } pt_dl_device;
    typedef struct { uint8_t code, bits; uint16_t lanes; } pt_dl_dtype;
    typedef struct {
        void *data; pt_dl_device device; int32_t ndim; pt_dl_dtype dtype;
        int64_t *shape, *strides; uint64_t byte_offset;
    } pt_dl_tensor;
    typedef struct pt_dl_managed {
        pt_dl_tensor t; void *context; void (*deleter)(struct pt_dl_managed *);
    } pt_dl_managed;
    typedef struct pt_dl_versioned {
        uint32_t major, minor; void *context; void (*deleter)(struct pt_dl_versioned *);
        uint64_t flags; pt_dl_tensor t;
    } pt_dl_versioned;
    """
    ctypedef struct pt_dl_device:
        int32_t type
        int32_t id
    ctypedef struct pt_dl_dtype:
        uint8_t code
        uint8_t bits
        uint16_t lanes
    ctypedef struct pt_dl_tensor:
        void *data
        pt_dl_device device
        int32_t ndim
        pt_dl_dtype dtype
        int64_t *shape
        int64_t *strides
        uint64_t byte_offset
    ctypedef struct pt_dl_managed:
        pt_dl_tensor t
        void *context
        void (*deleter)(pt_dl_managed *) noexcept
    ctypedef struct pt_dl_versioned:
        uint32_t major
        uint32_t minor
        void *context
        void (*deleter)(pt_dl_versioned *) noexcept
        uint64_t flags
        pt_dl_tensor t

cdef enum:
    DL_CPU = 1
    DL_READ_ONLY = 1
    DL_IS_COPIED = 2

# kind -> DLPack's type code; bfloat16 is 4
cdef dict _codes = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


# -- out ---------------------------------------------------------------------------------------

cdef void free_managed(pt_dl_managed *m) noexcept with gil:
    pt_storage_decref(<pt_storage *>m.context)
    PyMem_RawFree(m)


cdef void free_versioned(pt_dl_versioned *m) noexcept with gil:
    pt_storage_decref(<pt_storage *>m.context)
    PyMem_RawFree(m)


cdef void drop_capsule(object capsule) noexcept:
    """A capsule that nobody consumed."""
    cdef pt_dl_managed *m
    cdef pt_dl_versioned *v
    if PyCapsule_IsValid(capsule, b"dltensor"):
        m = <pt_dl_managed *>PyCapsule_GetPointer(capsule, b"dltensor")
        if m.deleter != NULL:
            m.deleter(m)
    elif PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        v = <pt_dl_versioned *>PyCapsule_GetPointer(capsule, b"dltensor_versioned")
        if v.deleter != NULL:
            v.deleter(v)


cdef void describe_tensor(pt_dl_tensor *d, Tensor t, int64_t *block) noexcept:
    cdef int i
    d.data = address(t) if t.count else NULL
    d.device.type, d.device.id = DL_CPU, 0
    d.ndim = t.rank
    d.dtype.bits, d.dtype.lanes = 8 * ITEMSIZE[t.dt], 1
    d.shape, d.strides, d.byte_offset = block, block + t.rank, 0
    for i in range(2 * t.rank):
        block[i] = t.dims[i]


def __dlpack__(Tensor self, *, stream=None, max_version=None, dl_device=None, copy=None):
    """A DLPack capsule of this tensor.

    Parameters
    ----------
    stream : None
        The CPU has none.
    max_version : tuple of int, optional
        The newest version that the consumer reads; a versioned capsule from (1, 0) on.
    dl_device : tuple of int, optional
        Where the consumer wants the data: only ``(1, 0)``, the CPU.
    copy : bool, optional
        True: export a copy. False: never copy (exporting never does otherwise).

    Raises
    ------
    BufferError
        If the tensor requires grad, is not on the CPU, or is read-only and the consumer
        cannot be told so.
    """
    cdef Tensor t = self
    cdef pt_dl_managed *m
    cdef pt_dl_versioned *v
    cdef bint versioned = max_version is not None and tuple(max_version) >= (1, 0)
    cdef size_t size
    cdef uint8_t code
    if needs_grad(self):
        raise BufferError("__dlpack__: the tensor requires grad; use detach() first")
    if self.storage.device != DEVICE_CPU or self.flags & PT_INTERPOSED:
        raise BufferError(f"__dlpack__: the tensor must hold data on the CPU, got {self.device}")
    if stream is not None:
        raise RuntimeError(f"__dlpack__: stream must be None on the CPU, got {stream!r}")
    if dl_device is not None and tuple(dl_device) != (DL_CPU, 0):
        raise BufferError(f"__dlpack__: dl_device must be (1, 0), got {dl_device!r}")
    if copy:
        t = <Tensor>self.detach().clone()
    if t.storage.flags & PT_STORAGE_READONLY and not versioned:
        raise BufferError("__dlpack__: the memory is read-only, which only a consumer of DLPack "
                          "1.0 can be told")
    code = 4 if t.dt == PT_BFLOAT16 else _codes[dtype_of(t.dt).kind]
    size = sizeof(pt_dl_versioned) if versioned else sizeof(pt_dl_managed)
    block = PyMem_RawMalloc(size + 2 * t.rank * sizeof(int64_t))
    if block == NULL:
        raise MemoryError()
    if versioned:
        v = <pt_dl_versioned *>block
        v.major, v.minor = 1, 0
        v.context, v.deleter = t.storage, free_versioned
        v.flags = (DL_READ_ONLY if t.storage.flags & PT_STORAGE_READONLY else 0) | (
            DL_IS_COPIED if copy else 0)
        describe_tensor(&v.t, t, <int64_t *>(<char *>block + size))
        v.t.dtype.code = code
    else:
        m = <pt_dl_managed *>block
        m.context, m.deleter = t.storage, free_managed
        describe_tensor(&m.t, t, <int64_t *>(<char *>block + size))
        m.t.dtype.code = code
    try:
        capsule = PyCapsule_New(block, b"dltensor_versioned" if versioned else b"dltensor",
                                drop_capsule)
    except BaseException:
        PyMem_RawFree(block)
        raise
    pt_storage_incref(t.storage)
    t.storage.flags |= PT_STORAGE_EXPORTED
    return capsule


def __dlpack_device__(Tensor self):
    """DLPack's (device type, device number)."""
    if self.storage.device != DEVICE_CPU:
        raise BufferError(f"__dlpack_device__: {self.device} has no DLPack device here")
    return (DL_CPU, 0)


# -- in ----------------------------------------------------------------------------------------

cdef void release_managed(pt_storage *s) noexcept:
    cdef pt_dl_managed *m = <pt_dl_managed *>s.owner
    if m.deleter != NULL:
        m.deleter(m)


cdef void release_versioned(pt_storage *s) noexcept:
    cdef pt_dl_versioned *m = <pt_dl_versioned *>s.owner
    if m.deleter != NULL:
        m.deleter(m)


cdef int code_of(pt_dl_dtype d) except -1:
    cdef int k
    if d.lanes == 1:
        for k in range(PT_NDTYPES):
            if d.bits == 8 * ITEMSIZE[k] and d.code == (
                    4 if k == PT_BFLOAT16 else _codes[dtype_of(k).kind]):
                return k
    raise BufferError(f"from_dlpack: type code {d.code} of {d.bits} bits and {d.lanes} lanes has "
                      "no tensor dtype")


cdef Tensor over(pt_dl_tensor *d, void *owner, void (*release)(pt_storage *) noexcept, int flags):
    """A tensor over a described memory; owner is taken over only on success."""
    cdef int64_t[64] sizes
    cdef int64_t[64] strides
    cdef int code = code_of(d.dtype), i
    cdef int64_t n, low = 0, high
    cdef pt_storage *s
    if d.device.type != DL_CPU:
        raise BufferError(f"from_dlpack: the data must be on the CPU (device type 1), got "
                          f"device type {d.device.type}")
    if not 0 <= d.ndim <= 64:
        raise BufferError(f"from_dlpack: at most 64 dimensions are supported, got {d.ndim}")
    for i in range(d.ndim):
        sizes[i] = d.shape[i]
    n = count(d.ndim, sizes)
    if n < 0:
        raise BufferError("from_dlpack: the shape is not valid")
    if n and d.data == NULL:
        raise BufferError("from_dlpack: the data pointer is NULL")
    if d.strides == NULL:
        fill_strides(d.ndim, sizes, strides)
    else:
        for i in range(d.ndim):
            strides[i] = d.strides[i]
    high = ITEMSIZE[code] if n else 0
    for i in range(d.ndim):
        if n and strides[i] < 0:
            low += strides[i] * (sizes[i] - 1) * ITEMSIZE[code]
        elif n:
            high += strides[i] * (sizes[i] - 1) * ITEMSIZE[code]
    s = pt_storage_wrap(<char *>d.data + d.byte_offset + low if n else NULL, high - low, NULL,
                        NULL, PT_STORAGE_EXPORTED | flags)
    if s == NULL:
        raise MemoryError()
    t = wrap_storage(s, -low, code, d.ndim, sizes, strides)
    s.owner, s.deleter = owner, release
    return t


cdef Tensor consume(object capsule):
    cdef pt_dl_managed *m
    cdef pt_dl_versioned *v
    cdef Tensor t
    if PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        v = <pt_dl_versioned *>PyCapsule_GetPointer(capsule, b"dltensor_versioned")
        if v.major != 1:
            raise BufferError(f"from_dlpack: version {v.major}.{v.minor} is not 1.x")
        t = over(&v.t, v, release_versioned,
                 PT_STORAGE_READONLY if v.flags & DL_READ_ONLY else 0)
        PyCapsule_SetName(capsule, b"used_dltensor_versioned")
        return t
    if PyCapsule_IsValid(capsule, b"dltensor"):
        m = <pt_dl_managed *>PyCapsule_GetPointer(capsule, b"dltensor")
        t = over(&m.t, m, release_managed, 0)
        PyCapsule_SetName(capsule, b"used_dltensor")
        return t
    raise ValueError("from_dlpack: the object is no DLPack capsule, or one that has been used")


def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor over the memory of an object of another library, or of a DLPack capsule.

    Parameters
    ----------
    ext_tensor : object with ``__dlpack__`` and ``__dlpack_device__``, or a capsule
    device : device, optional
        Only the CPU.
    copy : bool, optional
        True copies, False raises where a copy would be needed.

    Raises
    ------
    BufferError
        If the data cannot be shared: another device, a dtype that tensors do not have.
    TypeError
        If the object does not take part in the protocol.

    Examples
    --------
    >>> import numpy, ptcore
    >>> a = numpy.zeros(2)
    >>> ptcore.utils.dlpack.from_dlpack(a)[0] = 7
    >>> a
    array([7., 0.])
    """
    from ptcore._device import device as device_class
    if device is not None and device_class(device).type != "cpu":
        raise BufferError(f"from_dlpack: device must be the CPU, got {device}")
    if type(ext_tensor).__name__ == "PyCapsule":
        t = consume(ext_tensor)
        return t.clone() if copy else t
    if not hasattr(ext_tensor, "__dlpack__"):
        raise TypeError(f"from_dlpack: ext_tensor must have __dlpack__, got "
                        f"{type(ext_tensor).__name__}")
    if hasattr(ext_tensor, "__dlpack_device__") and (
            int(ext_tensor.__dlpack_device__()[0]) != DL_CPU):
        raise BufferError("from_dlpack: the data must be on the CPU, got DLPack device "
                          f"{tuple(ext_tensor.__dlpack_device__())}")
    asked = {} if copy is None else {"copy": copy}
    try:
        capsule = ext_tensor.__dlpack__(max_version=(1, 0), **asked)
    except TypeError:                   # a producer of DLPack before 1.0
        capsule = ext_tensor.__dlpack__()
        return consume(capsule).clone() if copy else consume(capsule)
    return consume(capsule)


def to_dlpack(tensor):
    """A DLPack capsule (unversioned) of a tensor."""
    return __dlpack__(tensor)


Tensor.__dlpack__ = __dlpack__
Tensor.__dlpack_device__ = __dlpack_device__
