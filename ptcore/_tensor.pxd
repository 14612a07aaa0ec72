# Tensor and the C functions that make one. See _tensor.pyx for the invariants.
from cpython.object cimport PyObject
from libc.string cimport memcpy

from ptcore._types cimport *
from ptcore._node cimport Node
from ptcore._device cimport device
from ptcore._interpret cimport Payload

cdef enum:
    INLINE_DIMS = 5

cdef class VersionCounter:
    cdef uint64_t value                 # number of writes, if they are not counted in the storage

cdef class TensorExtras:
    cdef public object hooks            # dict id -> hook on the gradient, or None
    cdef public object post_hooks       # dict id -> post-accumulate-grad hook, or None
    cdef public Payload payload         # an interpreter's data for a stand-in
    cdef public int level               # -n: the leaf of call n of a transformation, which differentiates by it
    cdef public object tangent          # forward mode
    cdef VersionCounter counter         # with PT_DATA; shared with the tensor's views and aliases

cdef class Tensor:
    cdef pt_storage *storage
    cdef int64_t offset                 # bytes from the storage's start to element [0, ..., 0]
    cdef int64_t count
    cdef int64_t *dims                  # sizes, then strides (in elements)
    cdef uint32_t flags
    cdef uint8_t rank
    cdef uint8_t dt                     # dtype code
    cdef uint16_t out_nr                # which output of grad_fn this is
    cdef uint8_t layout_code            # pt_layout; PT_LAYOUT is set iff it is not strided
    cdef uint64_t attr_version          # for a view: the version that its grad_fn belongs to
    cdef int64_t[10] inline_dims
    cdef Node node                      # grad_fn
    cdef object grad_
    cdef object base                    # for a view: the tensor that is not a view itself
    cdef object extras                  # TensorExtras or None
    cdef PyObject *attributes           # the user's own: a dict, or NULL; see _instance_dict.h
    cdef object __weakref__

# Slots of the table that dispatch fills. The core knows no op by name.
cdef enum:
    SLOT_ADD, SLOT_SUB, SLOT_MUL, SLOT_DIV, SLOT_FLOORDIV, SLOT_MOD, SLOT_POW, SLOT_MATMUL
    SLOT_AND, SLOT_OR, SLOT_XOR, SLOT_LSHIFT, SLOT_RSHIFT, SLOT_NEG, SLOT_INVERT, SLOT_ABS
    SLOT_LT, SLOT_LE, SLOT_EQ, SLOT_NE, SLOT_GT, SLOT_GE, SLOT_GETITEM
    N_SLOTS

cdef struct OpTable:
    int[32] op
    object (*unary)(int op, object x)
    object (*binary)(int op, object x, object y)
    object (*inplace)(int op, object x, object y)
    object (*matmul)(object x, object y)
    object (*getitem)(Tensor x, object key)
    int (*setitem)(Tensor x, object key, object value) except -1
    object (*convert)(object value, Tensor like)

cdef OpTable table

# Makers: memory is uninitialised unless said otherwise; all raise MemoryError.
cdef Tensor new_tensor(int dt, int ndim, const int64_t *sizes, int column, int number)
cdef Tensor new_strided(int dt, int ndim, const int64_t *sizes, const int64_t *strides,
                        int column, int number)
cdef Tensor new_like(Tensor x, int dt)
cdef Tensor wrap_storage(pt_storage *s, int64_t offset, int dt, int ndim,
                         const int64_t *sizes, const int64_t *strides)
cdef Tensor alias(Tensor x)
cdef Tensor shell(int ndim)
cdef void finish(Tensor t) noexcept
cdef int share_from(Tensor t, Tensor x, int64_t offset) except -1

cdef TensorExtras extras_of(Tensor t)
cdef void track(Tensor t) noexcept
cdef Node grad_fn_of(Tensor t)
cdef bint needs_grad(Tensor t)
cdef int set_node(Tensor t, Node n, int nr) except -1
cdef int sync_view(Tensor t) except -1
cdef void set_view_rebuild(void (*f)(Tensor t) except *) noexcept
cdef object shape_of(Tensor t)
cdef object shape_seen(Tensor t)
cdef bint same_shape(Tensor a, Tensor b) except -1
cdef object describe(Tensor t)

cdef int share_counter(Tensor t, Tensor x) except -1
cdef int share_extras(Tensor t, Tensor x) except -1
cdef int count_apart(Tensor t, uint64_t start) except -1
cdef int adopt(Tensor r, Tensor t) except -1

cdef inline uint64_t version_of(Tensor t) noexcept:
    """The number of writes to t's memory: the storage's count, or that of a ``.data``."""
    if t.flags & PT_DATA and t.extras is not None:
        return (<TensorExtras>t.extras).counter.value
    return t.storage.version

cdef inline void count_write(Tensor t) noexcept:
    if t.flags & PT_DATA and t.extras is not None:
        (<TensorExtras>t.extras).counter.value += 1
    else:
        t.storage.version += 1

cdef inline char *address(Tensor t) noexcept nogil:
    return t.storage.data + t.offset

cdef inline void fill_view(Tensor t, pt_view *v) noexcept nogil:
    v.data = t.storage.data + t.offset
    v.sizes = t.dims
    v.strides = t.dims + t.rank
    v.numel = t.count
    v.ndim = t.rank
    v.dtype = t.dt
    v.contiguous = (t.flags & PT_NONCONTIGUOUS) == 0
    v.device = t.storage.device
    v.device_index = t.storage.device_index
    v.layout = t.layout_code

# A pt_view points to its tensor's own sizes and strides. Another thread may write to them (t_, resize_, set_) while a
# kernel runs without the GIL, so the pt_view gets copies. Returns the first free place behind the copies.
cdef inline int64_t *own_dims(pt_view *v, int64_t *room) noexcept:
    if v.ndim:                          # a pt_view without a tensor has neither
        memcpy(room, v.sizes, v.ndim * sizeof(int64_t))
        memcpy(room + v.ndim, v.strides, v.ndim * sizeof(int64_t))
        v.sizes, v.strides = room, room + v.ndim
    return room + 2 * v.ndim
