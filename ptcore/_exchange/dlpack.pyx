"""DLPack 1.x both ways: ``__dlpack__``, ``__dlpack_device__``, ``from_dlpack``; and memory of other libraries that
is described without DLPack (``over_memory``).

Invariants: an exported capsule holds a reference to the storage (never to the tensor, whose
storage can be exchanged) and marks it exported, so that its address stays; an imported capsule
becomes the owner of a foreign storage. A capsule is consumed only when nothing can fail any
more. Data of CUDA devices are handed over between streams: the producer makes the consumer's stream wait.
"""
from libc.stdlib cimport free, malloc
from cpython.pycapsule cimport (PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New,
                                PyCapsule_SetName)

from cpython.ref cimport Py_DECREF, Py_INCREF

from ptcore._types cimport *
from ptcore._device cimport as_device, device as Device, stream_key
from ptcore._device import wait_stream
from ptcore._dtype cimport ITEMSIZE, as_code, dtype_of
from ptcore._shape cimport count, fill_strides
from ptcore._interpret cimport TOLD_CREATED, TOLD_READ, told
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
    DL_CUDA = 2
    DL_CUDA_HOST = 3            # page-locked memory of the host
    DL_CUDA_MANAGED = 13
    DL_READ_ONLY = 1
    DL_IS_COPIED = 2

# kind -> DLPack's type code; bfloat16 is 4
cdef dict _codes = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
cdef dict _own_codes = {PT_BFLOAT16: 4, PT_FLOAT8_E4M3FN: 10, PT_FLOAT8_E4M3FNUZ: 11, PT_FLOAT8_E5M2: 12,
                        PT_FLOAT8_E5M2FNUZ: 13, PT_FLOAT8_E8M0FNU: 14}


cdef int dl_code(int dt):
    """DLPack's code of a dtype, which is that of its kind for most."""
    return _own_codes[dt] if dt in _own_codes else _codes[dtype_of(dt).kind]


# -- out ---------------------------------------------------------------------------------------

cdef void free_managed(pt_dl_managed *m) noexcept with gil:
    pt_storage_decref(<pt_storage *>m.context)
    free(m)


cdef void free_versioned(pt_dl_versioned *m) noexcept with gil:
    pt_storage_decref(<pt_storage *>m.context)
    free(m)


cdef void drop_capsule(object capsule) noexcept:
    """Frees a capsule that nobody consumed."""
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


cdef void describe_tensor(pt_dl_tensor *d, Tensor t, int64_t *block, int kind) noexcept:
    cdef int i
    d.data = address(t) if t.count else NULL
    d.device.type, d.device.id = kind, t.storage.device_index if kind == DL_CUDA else 0
    d.ndim = t.rank
    d.dtype.bits, d.dtype.lanes = 8 * ITEMSIZE[t.dt], 1
    d.shape, d.strides, d.byte_offset = block, block + t.rank, 0
    for i in range(2 * t.rank):
        block[i] = t.dims[i]


cdef Device device_named(object dl_device, str op):
    """The device of DLPack's (type, number); BufferError if ptcore has no such device or the machine lacks it."""
    kind, number = int(dl_device[0]), int(dl_device[1])
    if kind == DL_CPU or kind == DL_CUDA_HOST:
        return as_device("cpu", b"dlpack")
    if kind == DL_CUDA or kind == DL_CUDA_MANAGED:
        try:
            return as_device(f"cuda:{number}", b"dlpack")
        except (RuntimeError, ValueError) as e:
            raise BufferError(f"{op} {(kind, number)}: {e}") from None
    raise BufferError(f"{op} {(kind, number)}: it must be the CPU (1) or a CUDA device (2)")


cdef int hand_over(Tensor t, object stream) except -1:
    """Makes a consumer's stream wait for the work of this thread's stream. None and 1: the default stream; -1: no
    wait."""
    cdef tuple mine
    if stream is not None and not isinstance(stream, int):
        raise TypeError(f"__dlpack__: stream must be an int or None, got {type(stream).__name__}")
    if t.storage.device == DEVICE_CPU:
        if stream is not None and stream != -1:
            raise RuntimeError(f"__dlpack__: stream must be None on the CPU, got {stream!r}")
        return 0
    if stream == 0 or stream == 2 or (stream is not None and stream < -1):
        raise BufferError(f"__dlpack__: stream must be None, -1, 1 or the address of a stream, got {stream}")
    if stream != -1:
        mine = stream_key(t.storage.device, t.storage.device_index)
        wait_stream(mine[0], mine[1], 0 if stream is None or stream == 1 else stream, mine[1], mine[2])
    return 0


def __dlpack__(Tensor self not None, *, stream=None, max_version=None, dl_device=None, copy=None):
    """A DLPack capsule of this tensor.

    Parameters
    ----------
    stream : int, optional
        Of a CUDA tensor: the consumer's stream, which waits for the tensor; None or 1: the default stream, -1: none.
        On the CPU None or -1.
    max_version : tuple of int, optional
        The newest version that the consumer reads; a versioned capsule from (1, 0) on.
    dl_device : tuple of int, optional
        Where the consumer wants the data, e.g. ``(1, 0)``, the CPU; copied if they are elsewhere.
    copy : bool, optional
        True: export a copy. False: never copy.

    Raises
    ------
    BufferError
        If the tensor requires grad, holds no data, would have to be copied though ``copy`` is False, or is read-only
        and the consumer cannot be told so.
    """
    cdef Device target
    cdef Tensor t = self
    cdef pt_dl_managed *m
    cdef pt_dl_versioned *v
    cdef bint versioned = max_version is not None and tuple(max_version) >= (1, 0)
    cdef size_t size
    cdef uint8_t code
    cdef int kind
    if needs_grad(self):
        raise BufferError("__dlpack__: the tensor requires grad; use detach() first")
    if self.flags & PT_INTERPOSED:
        raise BufferError("__dlpack__: the value of a traced or batched tensor is not known here")
    if pt_tls.mode & PT_INTERPOSED:
        told(TOLD_READ, "dlpack", self)
    if self.storage.device not in (DEVICE_CPU, DEVICE_CUDA):
        raise BufferError(f"__dlpack__: the tensor must hold data on the CPU or a CUDA device, got {self.device}")
    if dl_device is not None:
        target = device_named(dl_device, "__dlpack__: dl_device")
        if target.column != self.storage.device or (
                target.column != DEVICE_CPU and target.number != self.storage.device_index):
            if copy is False:
                raise BufferError(f"__dlpack__: dl_device is {target}, but copy=False and the tensor is on "
                                  f"{self.device}")
            t, copy = <Tensor>self.detach().to(target), True
    if copy and t is self:
        t = <Tensor>self.detach().clone()
    hand_over(t, -1 if t.storage.device == DEVICE_CPU and self.storage.device != DEVICE_CPU else stream)
    if t.storage.flags & PT_STORAGE_READONLY and not versioned:
        raise BufferError("__dlpack__: the memory is read-only, which only a consumer of DLPack "
                          "1.0 can be told")
    code = dl_code(t.dt)
    kind = __dlpack_device__(t)[0]
    size = sizeof(pt_dl_versioned) if versioned else sizeof(pt_dl_managed)
    block = malloc(size + 2 * t.rank * sizeof(int64_t))
    if block == NULL:
        raise MemoryError()
    if versioned:
        v = <pt_dl_versioned *>block
        v.major, v.minor = 1, 0
        v.context, v.deleter = t.storage, free_versioned
        v.flags = (DL_READ_ONLY if t.storage.flags & PT_STORAGE_READONLY else 0) | (
            DL_IS_COPIED if copy else 0)
        describe_tensor(&v.t, t, <int64_t *>(<char *>block + size), kind)
        v.t.dtype.code = code
    else:
        m = <pt_dl_managed *>block
        m.context, m.deleter = t.storage, free_managed
        describe_tensor(&m.t, t, <int64_t *>(<char *>block + size), kind)
        m.t.dtype.code = code
    try:
        capsule = PyCapsule_New(block, b"dltensor_versioned" if versioned else b"dltensor",
                                drop_capsule)
    except BaseException:
        free(block)
        raise
    pt_storage_incref(t.storage)
    t.storage.flags |= PT_STORAGE_EXPORTED
    return capsule


def __dlpack_device__(Tensor self not None):
    """DLPack's (device type, device number): 1 is the CPU, 2 a CUDA device, 3 page-locked memory of the CPU."""
    if self.storage.device == DEVICE_CUDA:
        return (DL_CUDA, self.storage.device_index)
    if self.storage.device != DEVICE_CPU:
        raise BufferError(f"__dlpack_device__: {self.device} has no DLPack device here")
    return (DL_CUDA_HOST if self.storage.owner != NULL and self.is_pinned() else DL_CPU, 0)


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
            if d.bits == 8 * ITEMSIZE[k] and d.code == dl_code(k):
                return k
    raise BufferError(f"from_dlpack: type code {d.code} of {d.bits} bits and {d.lanes} lanes has "
                      "no tensor dtype")


cdef Tensor over(pt_dl_tensor *d, void *owner, void (*release)(pt_storage *) noexcept, int flags):
    """A tensor over memory that DLPack describes; the owner is taken over only on success."""
    cdef int64_t[64] sizes
    cdef int64_t[64] strides
    cdef int code = code_of(d.dtype), i
    cdef int64_t n, low = 0, high
    cdef pt_storage *s
    cdef Device place = device_named((d.device.type, d.device.id), "from_dlpack: the data are on the device")
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
    if place.column != DEVICE_CPU:
        s.device, s.device_index = place.column, place.number
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
        Where the tensor is to be; copied if the data are elsewhere.
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
    cdef Device place, target = None if device is None else as_device(device, b"from_dlpack")
    if target is not None and target.column not in (DEVICE_CPU, DEVICE_CUDA):
        raise BufferError(f"from_dlpack: device must be the CPU or a CUDA device, got {device}")
    if type(ext_tensor).__name__ == "PyCapsule":
        t = consume(ext_tensor)
        return t.to(target or t.device, copy=copy is True)
    if not hasattr(ext_tensor, "__dlpack__"):
        raise TypeError(f"from_dlpack: ext_tensor must have __dlpack__, got "
                        f"{type(ext_tensor).__name__}")
    asked = {} if copy is None else {"copy": copy}
    if hasattr(ext_tensor, "__dlpack_device__"):
        place = device_named(ext_tensor.__dlpack_device__(), "from_dlpack: the data are on the device")
        if copy is False and target is not None and str(target) != str(place):
            raise ValueError(f"from_dlpack: the data must be copied from {place} to {target}, but copy=False was given")
        if place.column != DEVICE_CPU:
            asked["stream"] = stream_key(place.column, place.number)[2] or 1
    try:
        capsule = ext_tensor.__dlpack__(max_version=(1, 0), **asked)
    except TypeError:                   # the producer implements DLPack before 1.0
        asked.pop("copy", None)
        t = consume(ext_tensor.__dlpack__(**asked))
    else:
        t, copy = consume(capsule), None
    if pt_tls.mode & PT_INTERPOSED:
        t = told(TOLD_CREATED, "from_dlpack", t)
    return t.to(target or t.device, copy=copy is True)


def to_dlpack(Tensor tensor not None):
    """A DLPack capsule (unversioned) of a tensor."""
    return __dlpack__(tensor)


# -- memory that is described in other words --------------------------------------------------------

cdef void release_object(pt_storage *s) noexcept:
    Py_DECREF(<object>s.owner)


def over_memory(size_t data, device, dtype, shape, strides, owner, bint readonly):
    """A tensor over memory of another library, which ``owner`` keeps alive.

    Parameters
    ----------
    data : int
        The address of the first element.
    device : tuple of int
        DLPack's (type, number).
    dtype : dtype
    shape, strides : tuple of int
        Strides count elements.
    """
    cdef int64_t[128] block
    cdef pt_dl_tensor d
    cdef int i, code = as_code(dtype, b"over_memory", b"dtype")
    if len(shape) > 64 or len(strides) != len(shape):
        raise BufferError(f"over_memory: at most 64 sizes and as many strides are needed, got {shape}, {strides}")
    d.data, d.ndim, d.byte_offset = <void *>data, len(shape), 0
    d.device.type, d.device.id = device
    d.dtype.bits, d.dtype.lanes = 8 * ITEMSIZE[code], 1
    d.dtype.code = dl_code(code)
    d.shape, d.strides = block, block + d.ndim
    for i in range(d.ndim):
        block[i], block[d.ndim + i] = shape[i], strides[i]
    t = over(&d, <void *>owner, release_object, PT_STORAGE_READONLY if readonly else 0)
    Py_INCREF(owner)
    return t
