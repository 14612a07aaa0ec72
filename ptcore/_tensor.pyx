"""Tensor: sizes, strides and autograd metadata over a storage block.

Invariants:
(a) ``dims`` points to ``inline_dims`` up to 5 dims and to one heap block above;
(b) PT_NONCONTIGUOUS is set iff the strides are not row-major (sizes 0 and 1 apart);
(c) PT_REQUIRES_GRAD is set iff the tensor is a leaf that asks for grad or has a grad_fn
    (of a view, after sync_view: its base may have been written to since);
(d) an exact Tensor is untracked by the garbage collector exactly while node, grad_, base
    and extras are None and attributes is NULL; every setter of those calls track();
(e) the address is read through the storage at each use, never cached: memory can move;
(f) compiled code reads C fields, never attributes that a user could overwrite.

Methods are attached by the layers above (see each layer's visible list); only the number,
mapping and comparison slots stand here, and call through the table that dispatch fills.
"""
cimport cython
from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES, PyBUF_WRITABLE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject, PyTypeObject
from libc.string cimport memcpy

from ptcore._types cimport *
from ptcore._memory.allocate cimport allocate
from ptcore._device cimport device_of, stream_key, streams_used
from ptcore._dtype cimport CATEGORY, ITEMSIZE, N_DTYPES, dtype_of, warn_of_complex32
from ptcore._node cimport Node
from ptcore._interpret cimport TOLD_CHANGED, Payload, told
from ptcore._shape cimport (count, fill_strides, is_contiguous, make_size, max_offset,
                            read_index, same_sizes, sizes_tuple, too_large, wrap_dim)
from ptcore._shape import Size
from ptcore._state import _disabled_torch_function_impl

cdef extern from "Python.h":
    void PyObject_GC_Track(PyObject *)
    void PyObject_GC_UnTrack(PyObject *)
    int PyObject_GC_IsTracked(PyObject *)
    int PyObject_GenericSetAttr(object, object, PyObject *) except -1
    object PyObject_GenericGetDict(object, void *)
    int PyObject_GenericSetDict(object, object, void *) except -1
    void Py_CLEAR(PyObject *)

cdef extern from "_instance_dict.h":
    void pt_add_instance_dict(PyTypeObject *, Py_ssize_t)

# The storage of a Tensor until a maker fills it, so that no attribute meets a NULL.
cdef pt_storage _nothing
_nothing.refs = 1

cdef uint64_t MAX_COUNT = <uint64_t>1 << 56     # elements; times an item size still an int64
# long if it has 64 bits: it is NumPy's int64.
cdef (const char *)[N_DTYPES] _FORMATS = [
    b"?", b"B", b"b", b"H", b"h", b"I", b"i", b"L" if sizeof(long) == 8 else b"Q",
    b"l" if sizeof(long) == 8 else b"q", b"e", NULL, b"f", b"d", b"Zf", b"Zd",
    NULL, NULL, NULL, NULL, NULL, NULL]
cdef void (*_rebuild_view)(Tensor t) except *
strided = "ptcore.strided"          # the one layout


cdef class VersionCounter:
    """Counts the writes through a ``.data`` and through its views and aliases."""


@cython.freelist(64)
cdef class TensorExtras:
    """Data that few tensors have: hooks, an interpreter's payload."""


@cython.binding(False)                  # so that methods check their self
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
@cython.freelist(256)
@cython.trashcan(True)
cdef class Tensor:
    """A multi-dimensional array of one dtype, with the tape-based autograd of PyTorch.

    Tensors are made by ``ptcore.tensor``, ``ptcore.zeros`` and their companions; the class
    itself is a type to test against and to subclass.

    Examples
    --------
    >>> import ptcore
    >>> x = ptcore.tensor([[1., 2.], [3., 4.]])
    >>> x.shape, x.dtype
    (ptcore.Size([2, 2]), ptcore.float32)
    """

    def __cinit__(self, *args, **kwargs):
        self.dims = self.inline_dims
        self.storage = &_nothing
        self.dt = PT_FLOAT32
        self.rank = 1                   # until a maker has filled it: an empty vector
        self.inline_dims[1] = 1
        if type(self) is not Tensor:
            self.flags = class_flags(type(self))
            if args:
                fill_subclass(self, args)

    def __init__(self, *args, **kwargs):
        # A bare Tensor has no storage until a maker fills it: constructing one from Python
        # (Tensor(3), Tensor([1, 2])) goes through the legacy constructor, which takes no keywords.
        if self.storage == &_nothing or (kwargs and type(self).__new__ is Tensor.__new__):
            take_over(self, legacy_constructor(*args, **kwargs))

    def __dealloc__(self):
        Py_CLEAR(self.attributes)
        if self.storage != &_nothing:
            pt_storage_decref(self.storage)
        if self.dims != self.inline_dims:
            PyMem_Free(self.dims)

    # -- numbers: the table's functions know what to do ------------------------------

    def __add__(x, y):
        return table.binary(table.op[SLOT_ADD], x, y)

    def __sub__(x, y):
        return table.binary(table.op[SLOT_SUB], x, y)

    def __mul__(x, y):
        return table.binary(table.op[SLOT_MUL], x, y)

    def __truediv__(x, y):
        return table.binary(table.op[SLOT_DIV], x, y)

    def __floordiv__(x, y):
        return table.binary(table.op[SLOT_FLOORDIV], x, y)

    def __mod__(x, y):
        return table.binary(table.op[SLOT_MOD], x, y)

    def __pow__(x, y, z):
        if z is not None:
            raise TypeError("pow: a tensor takes no third argument, the modulus; write (x ** y) % modulus")
        return table.binary(table.op[SLOT_POW], x, y)

    def __matmul__(x, y):
        return table.matmul(x, y)

    def __and__(x, y):
        return table.binary(table.op[SLOT_AND], x, y)

    def __or__(x, y):
        return table.binary(table.op[SLOT_OR], x, y)

    def __xor__(x, y):
        return table.binary(table.op[SLOT_XOR], x, y)

    def __lshift__(x, y):
        return table.binary(table.op[SLOT_LSHIFT], x, y)

    def __rshift__(x, y):
        return table.binary(table.op[SLOT_RSHIFT], x, y)

    def __iadd__(self, y):
        return table.inplace(table.op[SLOT_ADD], self, y)

    def __isub__(self, y):
        return table.inplace(table.op[SLOT_SUB], self, y)

    def __imul__(self, y):
        return table.inplace(table.op[SLOT_MUL], self, y)

    def __itruediv__(self, y):
        return table.inplace(table.op[SLOT_DIV], self, y)

    def __ifloordiv__(self, y):
        return table.inplace(table.op[SLOT_FLOORDIV], self, y)

    def __imod__(self, y):
        return table.inplace(table.op[SLOT_MOD], self, y)

    def __ipow__(self, y):
        return table.inplace(table.op[SLOT_POW], self, y)

    def __iand__(self, y):
        return table.inplace(table.op[SLOT_AND], self, y)

    def __ior__(self, y):
        return table.inplace(table.op[SLOT_OR], self, y)

    def __ixor__(self, y):
        return table.inplace(table.op[SLOT_XOR], self, y)

    def __ilshift__(self, y):
        return table.inplace(table.op[SLOT_LSHIFT], self, y)

    def __irshift__(self, y):
        return table.inplace(table.op[SLOT_RSHIFT], self, y)

    def __neg__(self):
        return table.unary(table.op[SLOT_NEG], self)

    def __pos__(self):
        if self.dt == PT_BOOL:
            raise RuntimeError("pos: dtype must not be bool, got bool")
        return self

    def __invert__(self):
        return table.unary(table.op[SLOT_INVERT], self)

    def __abs__(self):
        return table.unary(table.op[SLOT_ABS], self)

    def __richcmp__(self, y, int kind):
        # kind: < 0, <= 1, == 2, != 3, > 4, >= 5, in the order of the slots
        return table.binary(table.op[SLOT_LT + kind], self, y)

    def __hash__(self):
        return <Py_hash_t>(<size_t><PyObject *>self >> 4)

    # -- buffer protocol ------------------------------------------------------------------

    def __getbuffer__(self, Py_buffer *view, int wanted):
        cdef int64_t *block
        cdef int i
        if self.storage.device != DEVICE_CPU:
            raise BufferError(f"buffer: the tensor must be on the CPU, got {self.device}")
        if self.flags & (PT_INTERPOSED | PT_SUBCLASS):
            check_buffer(self)
        if needs_grad(self):
            raise BufferError("buffer: the tensor requires grad; use detach() first")
        if _FORMATS[self.dt] == NULL:
            raise BufferError(f"buffer: {dtype_of(self.dt).name} has no buffer format")
        if wanted & PyBUF_WRITABLE and self.storage.flags & PT_STORAGE_READONLY:
            raise BufferError("buffer: the tensor's memory is read-only")
        if self.flags & PT_NONCONTIGUOUS and wanted & PyBUF_STRIDES != PyBUF_STRIDES:
            raise BufferError("buffer: the tensor is not contiguous")
        # The storage follows sizes and strides: the buffer keeps it alive, as the tensor may get
        # another one (t.data = other).
        block = <int64_t *>PyMem_Malloc((2 * self.rank + 1) * sizeof(int64_t))
        if block == NULL:
            raise MemoryError()
        for i in range(self.rank):
            block[i] = self.dims[i]
            block[self.rank + i] = self.dims[self.rank + i] * ITEMSIZE[self.dt]
        block[2 * self.rank] = <int64_t><size_t>self.storage
        pt_storage_incref(self.storage)
        self.storage.flags |= PT_STORAGE_EXPORTED
        view.buf = address(self)
        view.obj = self
        view.len = self.count * ITEMSIZE[self.dt]
        view.itemsize = ITEMSIZE[self.dt]
        view.readonly = (self.storage.flags & PT_STORAGE_READONLY) != 0
        view.ndim = self.rank
        view.format = <char *>_FORMATS[self.dt] if wanted & PyBUF_FORMAT else NULL
        view.shape = <Py_ssize_t *>block if wanted & PyBUF_ND else NULL
        view.strides = <Py_ssize_t *>(block + self.rank) if wanted & PyBUF_STRIDES == PyBUF_STRIDES else NULL
        view.suboffsets = NULL
        view.internal = block

    def __releasebuffer__(self, Py_buffer *view):
        cdef int64_t *block = <int64_t *>view.internal
        pt_storage_decref(<pt_storage *><size_t>block[2 * view.ndim])
        PyMem_Free(block)

    # -- mapping ----------------------------------------------------------------------

    def __getitem__(self, key):
        return table.getitem(self, key)

    def __setitem__(self, key, value):
        table.setitem(self, key, value)

    def __len__(self):
        if self.rank == 0:
            raise TypeError("len: a 0-d tensor has no length")
        return shape_seen(self)[0] if self.flags & PT_INTERPOSED else self.dims[0]

    # -- attributes -------------------------------------------------------------------

    def __setattr__(self, name, value):
        PyObject_GenericSetAttr(self, name, <PyObject *>value)
        if self.attributes != NULL:
            track(self)             # an attribute can close a reference cycle

    def __delattr__(self, name):
        PyObject_GenericSetAttr(self, name, NULL)

    @property
    def __dict__(self):
        track(self)
        return PyObject_GenericGetDict(self, NULL)

    @__dict__.setter
    def __dict__(self, value):
        track(self)
        PyObject_GenericSetDict(self, value, NULL)

    # -- metadata ---------------------------------------------------------------------

    @property
    def shape(self):
        """The sizes, as a ``Size`` (a tuple)."""
        return shape_seen(self) if self.flags & PT_INTERPOSED else shape_of(self)

    def stride(self, dim=None):
        """The strides in elements, or that of one dim."""
        cdef object strides = layout_seen(self, True) if self.flags & PT_INTERPOSED else None
        cdef int d
        if dim is None:
            return sizes_tuple(self.rank, self.dims + self.rank) if strides is None else strides
        if self.rank == 0:
            raise IndexError(f"stride: dim must be None for a 0-d tensor, got {dim}")
        d = wrap_dim(read_index(dim, b"stride", b"dim"), self.rank, b"stride", b"dim")
        return self.dims[self.rank + d] if strides is None else strides[d]

    def storage_offset(self):
        """Elements from the start of the storage to element [0, ..., 0]."""
        cdef object first = layout_seen(self, False) if self.flags & PT_INTERPOSED else None
        return self.offset // ITEMSIZE[self.dt] if first is None else first

    @property
    def ndim(self):
        """The number of dimensions."""
        return self.rank

    def dim(self):
        """The number of dimensions."""
        return self.rank

    ndimension = dim

    def numel(self):
        """The number of elements."""
        return shape_seen(self).numel() if self.flags & PT_INTERPOSED else self.count

    nelement = numel

    @property
    def dtype(self):
        """The dtype of the elements."""
        return dtype_of(self.dt)

    @property
    def device(self):
        """The device of the memory."""
        if self.flags & PT_INTERPOSED:
            return device_seen(self)
        return device_of(self.storage.device, self.storage.device_index)

    @property
    def itemsize(self):
        """Bytes an element."""
        return ITEMSIZE[self.dt]

    def element_size(self):
        """Bytes an element."""
        return ITEMSIZE[self.dt]

    @property
    def nbytes(self):
        """Bytes of all elements."""
        return (shape_seen(self).numel() if self.flags & PT_INTERPOSED else self.count) * ITEMSIZE[self.dt]

    def is_contiguous(self, memory_format=None):
        """Whether the elements lie in row-major order without gaps, or in the order of a format."""
        if memory_format is not None:
            from ptcore._memory_format import checked, is_in
            memory_format = checked("is_contiguous", memory_format)
            if memory_format is not None:
                return is_in(self, memory_format)
        return not self.flags & PT_NONCONTIGUOUS

    def is_floating_point(self):
        """Whether the dtype is a real floating one."""
        return CATEGORY[self.dt] == 2

    def is_complex(self):
        """Whether the dtype is complex."""
        return CATEGORY[self.dt] == 3

    def is_signed(self):
        """Whether the dtype holds negative numbers."""
        return dtype_of(self.dt).is_signed

    @property
    def is_cuda(self):
        """Whether it is on a CUDA device."""
        return (device_seen(self).type == "cuda" if self.flags & PT_INTERPOSED else self.storage.device == DEVICE_CUDA)

    @property
    def is_cpu(self):
        """Whether it is on the CPU."""
        return (device_seen(self).type == "cpu" if self.flags & PT_INTERPOSED else self.storage.device == DEVICE_CPU)

    @property
    def is_meta(self):
        """Whether it has a shape and a dtype and no data."""
        return (device_seen(self).type == "meta" if self.flags & PT_INTERPOSED else self.storage.device == DEVICE_META)

    @property
    def _version(self):
        if self.flags & PT_INFERENCE and not self.flags & PT_DATA:
            raise RuntimeError("_version: inference tensors do not track a version counter")
        return version_of(self)

    def is_inference(self):
        """Whether the tensor was made under inference mode."""
        return (self.flags & PT_INFERENCE) != 0

    @property
    def layout(self):
        """`ptcore.strided`: the only layout."""
        return strided

    @property
    def _base(self):
        return self.base

    def _is_view(self):
        return self.base is not None

    # -- autograd metadata --------------------------------------------------------------

    @property
    def requires_grad(self):
        """Whether gradients are computed for it; may be set for a leaf."""
        if self.flags & PT_VIEW and (<Tensor>self.base).flags & PT_REQUIRES_GRAD:
            return True
        return (self.flags & PT_REQUIRES_GRAD) != 0

    @requires_grad.setter
    def requires_grad(self, value):
        cdef bint on
        if value is not True and value is not False:
            raise RuntimeError(f"requires_grad: must be a bool, got {type(value).__name__}")
        on = value
        if self.flags & PT_VIEW:
            sync_view(self)
        if on == ((self.flags & PT_REQUIRES_GRAD) != 0):
            return
        if self.node is not None:
            raise RuntimeError("requires_grad: can only be changed on leaf tensors; use "
                               "detach() for a tensor without history")
        if on and CATEGORY[self.dt] < 2:
            raise RuntimeError("requires_grad: only floating-point and complex tensors can "
                               f"require gradients, got {dtype_of(self.dt).name}")
        if on and self.flags & PT_INFERENCE and not pt_tls.inference:
            raise RuntimeError("requires_grad: an inference tensor cannot require grad outside "
                               "inference mode; clone() it first")
        if on:
            self.flags |= PT_REQUIRES_GRAD
        else:
            self.flags &= ~<uint32_t>PT_REQUIRES_GRAD
        if pt_tls.mode & PT_INTERPOSED:
            told(TOLD_CHANGED, "requires_grad", self)

    @property
    def grad_fn(self):
        """The node that computed the tensor, or None for a leaf."""
        return grad_fn_of(self)

    @property
    def is_leaf(self):
        """Whether no recorded operation computed the tensor."""
        return grad_fn_of(self) is None

    @property
    def output_nr(self):
        """The number of the tensor among the outputs of `grad_fn`."""
        return self.out_nr

    @property
    def grad(self):
        """The gradient that `backward` has accumulated, or None; may be set."""
        return self.grad_

    @grad.setter
    def grad(self, value):
        if value is not None:
            if (type(value) is not Tensor or value is self or (<Tensor>value).dt != self.dt or
                    (<Tensor>value).storage.device != self.storage.device or not same_shape(<Tensor>value, self)):
                check_grad(self, value)
            track(self)
        self.grad_ = value
        if pt_tls.mode & PT_INTERPOSED:
            told(TOLD_CHANGED, "grad", self)

    @grad.deleter
    def grad(self):
        self.grad_ = None

    @property
    def _extras(self):
        return extras_of(self)

    @property
    def retains_grad(self):
        """Whether ``.grad`` of this non-leaf tensor is kept."""
        return (self.flags & PT_RETAIN_GRAD) != 0

    def _with_layout(self, int code):
        """An alias with another layout byte; for modules that make such tensors."""
        cdef Tensor t = alias(self)
        t.layout_code = code
        t.flags = t.flags & ~<uint32_t>PT_LAYOUT | (PT_LAYOUT if code != PT_STRIDED else 0)
        return t

    def _set_retain_grad(self):
        self.flags |= PT_RETAIN_GRAD

    @property
    def _is_standard(self):
        """Whether the tensor promotes by the array API standard: 0-d tensors as others."""
        return (self.flags & PT_STANDARD) != 0

    def _set_standard(self):
        """Sets array API promotion for the tensor and for results computed from it; for a tensor not yet shared."""
        self.flags |= PT_STANDARD
        return self


# -- makers -------------------------------------------------------------------------------

cdef Tensor shell(int ndim):
    """A Tensor with room for ndim dims and no storage yet: fill dims, storage, then finish."""
    cdef Tensor t = Tensor.__new__(Tensor)
    t.rank = ndim
    if ndim <= INLINE_DIMS:
        t.dims = t.inline_dims
    else:
        t.dims = <int64_t *>PyMem_Malloc(2 * ndim * sizeof(int64_t))
        if t.dims == NULL:
            t.dims = t.inline_dims
            raise MemoryError()
    PyObject_GC_UnTrack(<PyObject *>t)
    return t


cdef void finish(Tensor t) noexcept:
    """Derives count and flags from dims and storage."""
    t.count = count(t.rank, t.dims)
    if not is_contiguous(t.rank, t.dims, t.dims + t.rank):
        t.flags |= PT_NONCONTIGUOUS
    if t.storage.device != DEVICE_CPU:
        t.flags |= PT_NON_CPU
    if pt_tls.inference:
        t.flags |= PT_INFERENCE


cdef Tensor new_tensor(int dt, int ndim, const int64_t *sizes, int column, int number):
    cdef Tensor t = shell(ndim)
    cdef int64_t n = count(ndim, sizes)
    if <uint64_t>n > MAX_COUNT:         # -1: they do not fit into an int64
        raise too_large(ndim, sizes)
    memcpy(t.dims, sizes, ndim * sizeof(int64_t))
    fill_strides(ndim, t.dims, t.dims + ndim)
    if dt == PT_COMPLEX32:
        warn_of_complex32()
    t.storage = allocate(n * ITEMSIZE[dt], column, number)
    t.dt = dt
    t.count = n
    if column != DEVICE_CPU:
        t.flags = PT_NON_CPU
    if pt_tls.inference:
        t.flags |= PT_INFERENCE
    return t


cdef Tensor new_strided(int dt, int ndim, const int64_t *sizes, const int64_t *strides, int column, int number):
    """New memory in the given (non-negative) strides."""
    cdef Tensor t = shell(ndim)
    cdef int64_t n = count(ndim, sizes)
    if <uint64_t>n > MAX_COUNT:         # -1: they do not fit into an int64
        raise too_large(ndim, sizes)
    memcpy(t.dims, sizes, ndim * sizeof(int64_t))
    memcpy(t.dims + ndim, strides, ndim * sizeof(int64_t))
    if dt == PT_COMPLEX32:
        warn_of_complex32()
    t.dt = dt
    t.storage = allocate((max_offset(ndim, sizes, strides) + 1 if n else 0) * ITEMSIZE[dt], column, number)
    finish(t)
    return t


cdef Tensor new_like(Tensor x, int dt):
    """Contiguous, with x's sizes and device."""
    cdef Tensor t = new_tensor(dt, x.rank, x.dims, x.storage.device, x.storage.device_index)
    t.flags |= x.flags & PT_STANDARD
    return t


cdef Tensor wrap_storage(pt_storage *s, int64_t offset, int dt, int ndim, const int64_t *sizes, const int64_t *strides):
    """A tensor over s; takes over the caller's reference."""
    cdef Tensor t
    try:
        t = shell(ndim)
    except BaseException:
        pt_storage_decref(s)
        raise
    t.storage = s
    t.offset = offset
    t.dt = dt
    memcpy(t.dims, sizes, ndim * sizeof(int64_t))
    memcpy(t.dims + ndim, strides, ndim * sizeof(int64_t))
    finish(t)
    return t


cdef int share_from(Tensor t, Tensor x, int64_t offset) except -1:
    """Makes the shell t (dims filled) a window of x's storage; offset in bytes."""
    t.storage = x.storage
    pt_storage_incref(t.storage)
    t.offset = offset
    t.dt = x.dt
    t.count = count(t.rank, t.dims)
    t.flags |= x.flags & (PT_NON_CPU | PT_INFERENCE | PT_STANDARD)
    if x.flags & PT_DATA:
        share_counter(t, x)
    if not is_contiguous(t.rank, t.dims, t.dims + t.rank):
        t.flags |= PT_NONCONTIGUOUS


cdef Tensor alias(Tensor x):
    """The same memory without history: the result of detach, and the form in which outputs are saved."""
    cdef Tensor t = shell(x.rank)
    memcpy(t.dims, x.dims, 2 * x.rank * sizeof(int64_t))
    t.storage = x.storage
    pt_storage_incref(t.storage)
    t.offset = x.offset
    t.dt = x.dt
    t.count = x.count
    t.layout_code = x.layout_code
    t.flags = x.flags & (PT_NONCONTIGUOUS | PT_NON_CPU | PT_INFERENCE | PT_LAYOUT | PT_STANDARD)
    if x.flags & (PT_DATA | PT_INTERPOSED):
        share_extras(t, x)
    return t


# -- autograd metadata ----------------------------------------------------------------------

cdef void track(Tensor t) noexcept:
    if not PyObject_GC_IsTracked(<PyObject *>t):
        PyObject_GC_Track(<PyObject *>t)


cdef TensorExtras extras_of(Tensor t):
    if t.extras is None:
        track(t)
        t.extras = TensorExtras.__new__(TensorExtras)
    return <TensorExtras>t.extras


cdef void set_view_rebuild(void (*f)(Tensor t) except *) noexcept:
    global _rebuild_view
    _rebuild_view = f


cdef int share_counter(Tensor t, Tensor x) except -1:
    """t shows the memory of x and shares x's counter of writes, which is not the storage's."""
    t.flags |= PT_DATA
    extras_of(t).counter = (<TensorExtras>x.extras).counter


cdef int share_extras(Tensor t, Tensor x) except -1:
    """t is an alias of x: it shares x's counter of writes and x's interpreter payload."""
    if x.flags & PT_DATA:
        share_counter(t, x)
    if x.flags & PT_INTERPOSED:
        t.flags |= PT_INTERPOSED | x.flags & PT_VALUELESS
        extras_of(t).payload = (<TensorExtras>x.extras).payload


cdef int count_apart(Tensor t, uint64_t start) except -1:
    """From now on t's writes are counted separately from those of its storage, beginning at ``start``."""
    cdef VersionCounter counter = VersionCounter.__new__(VersionCounter)
    counter.value = start
    extras_of(t).counter = counter
    t.flags |= PT_DATA


cdef int sync_view(Tensor t) except -1:
    """Derives the grad_fn of a view that was written to since from its base again; a detached base has none."""
    cdef uint64_t version = version_of(t)
    if t.attr_version == version:
        return 0
    if (<Tensor>t.base).flags & PT_REQUIRES_GRAD or t.node is not None:
        if t.flags & (PT_NO_GRAD_VIEW | PT_MULTI_VIEW):
            made = ("under no_grad or inference_mode" if t.flags & PT_NO_GRAD_VIEW
                    else "by a function that returns multiple views")
            raise RuntimeError(f"grad_fn: {describe(t)} is a view made {made}, and its base or "
                               "another view of its base has been modified in place since, so "
                               "that it has no history; make the view again, or clone() it")
        _rebuild_view(t)
    t.attr_version = version


cdef Node grad_fn_of(Tensor t):
    if t.flags & PT_VIEW:
        sync_view(t)
    return t.node


cdef bint needs_grad(Tensor t):
    """Whether t requires grad; a view does if its base does, as in PyTorch."""
    if t.flags & PT_VIEW:
        sync_view(t)
        if (<Tensor>t.base).flags & PT_REQUIRES_GRAD:
            return True
    return (t.flags & PT_REQUIRES_GRAD) != 0


cdef int set_node(Tensor t, Node n, int nr) except -1:
    track(t)
    if t.flags & PT_RETAIN_GRAD and t.node is not None and t.node.hooks is not None:
        move_retained(t, n, nr)
    t.node = n
    t.out_nr = nr
    t.flags |= PT_REQUIRES_GRAD
    if streams_used and t.flags & PT_NON_CPU and n.stream is None:
        n.stream = stream_key(t.storage.device, t.storage.device_index)


cdef int move_retained(Tensor t, Node n, int nr) except -1:
    """Moves retain_grad to the tensor's new history; other hooks stay with the old one."""
    kept = t.node.hooks.retain.pop(t.out_nr, None)
    if kept is not None:
        if n.hooks is None:
            n.hooks = type(t.node.hooks)()
        n.hooks.retain[nr] = kept
    return 0


cdef object shape_of(Tensor t):
    return make_size(t.rank, t.dims)


cdef bint same_shape(Tensor a, Tensor b) except -1:
    """Whether both have the same sizes; for stand-ins the sizes come from the interpreter."""
    if (a.flags | b.flags) & PT_INTERPOSED:
        return a.rank == b.rank and a.shape == b.shape
    return a.rank == b.rank and same_sizes(a.rank, a.dims, b.dims)


layout_seen = check_grad = None     # installed by _subclass.pyx


cdef object shape_seen(Tensor t):
    """The sizes of a stand-in. Its payload may have them, with symbolic ints, or a function that gives them."""
    cdef Payload payload = (<TensorExtras>t.extras).payload
    sizes = payload.sizes
    if sizes is None:
        inner = payload.tensor          # a stand-in of a transformation further out: the last of its sizes
        if not isinstance(inner, Tensor) or not (<Tensor>inner).flags & PT_INTERPOSED:
            return shape_of(t)
        return shape_seen(<Tensor>inner)[(<Tensor>inner).rank - t.rank:]
    sizes = sizes if isinstance(sizes, (tuple, list)) else sizes(t)
    return sizes if type(sizes) is Size else Size(sizes)


cdef object device_seen(Tensor t):
    """The device of a stand-in. Its payload may have it, for a value that is only on the meta device here."""
    cdef Payload payload = (<TensorExtras>t.extras).payload
    device = payload.device
    if device is None:
        return device_of(t.storage.device, t.storage.device_index) if payload.tensor is None else payload.tensor.device
    return device


cdef object describe(Tensor t):
    """``float32[2, 3]``: how error messages show a tensor."""
    return f"{dtype_of(t.dt).name}{list(sizes_tuple(t.rank, t.dims))}"


# -- subclassing ------------------------------------------------------------------------------

legacy_constructor = fill_subclass = take_over = check_buffer = None     # installed by convert.pyx and _subclass
cdef dict _overrides = {}           # class -> whether it overrides __torch_function__


cdef uint32_t class_flags(cls):
    found = _overrides.get(cls)
    if found is None:
        found = getattr(cls, "__torch_function__", None) is not _disabled_torch_function_impl and cls is not Tensor
        _overrides[cls] = found
    return (PT_SUBCLASS if found else 0) | PT_NOT_EXACT


cdef int adopt(Tensor r, Tensor t) except -1:
    """Gives the instance r (of any subclass) t's memory and geometry, no history."""
    cdef pt_storage *before
    cdef int64_t *dims = r.inline_dims
    if t.rank > INLINE_DIMS:
        dims = <int64_t *>PyMem_Malloc(2 * t.rank * sizeof(int64_t))
        if dims == NULL:
            raise MemoryError()
    memcpy(dims, t.dims, 2 * t.rank * sizeof(int64_t))
    if r.dims != r.inline_dims:
        PyMem_Free(r.dims)
    r.dims, r.rank = dims, t.rank
    before, r.storage = r.storage, t.storage
    pt_storage_incref(r.storage)
    if before != &_nothing:
        pt_storage_retire(before)
    r.offset, r.dt, r.count = t.offset, t.dt, t.count
    r.flags = (r.flags & (PT_SUBCLASS | PT_NOT_EXACT)) | (t.flags & (PT_NONCONTIGUOUS | PT_NON_CPU | PT_INFERENCE))


cdef Tensor _any = Tensor.__new__(Tensor)
pt_add_instance_dict(<PyTypeObject *>Tensor, <char *>&_any.attributes - <char *><PyObject *>_any)
