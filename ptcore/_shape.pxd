# Sizes, strides and broadcasting in plain C: no loop here uses Python objects.
# Strides count elements; a size of 0 or 1 puts no constraint on its stride.
from ptcore._types cimport int64_t, uint64_t

cdef enum:
    MAX_DIM = 64


# The number of elements, or -1 when a size is negative or the product exceeds 2**58.
cdef inline int64_t count(int ndim, const int64_t *sizes) noexcept nogil:
    cdef int64_t n = 1
    cdef int i
    for i in range(ndim):
        if sizes[i] < 0:
            return -1
        if sizes[i] == 0:
            n = 0
    if n == 0:
        return 0
    for i in range(ndim):
        # The limit leaves room for bytes, up to 16 an element; most factors need no division for the check.
        if (n | sizes[i]) >> 29 and sizes[i] > (<int64_t>1 << 58) // n:
            return -1
        n *= sizes[i]
    return n


cdef inline void fill_strides(int ndim, const int64_t *sizes, int64_t *strides) noexcept nogil:
    cdef int64_t step = 1
    cdef int i
    for i in range(ndim - 1, -1, -1):
        strides[i] = step
        if sizes[i] > 1:
            # A size beside a zero may be any number, and so may the product, which wraps.
            step = <int64_t>(<uint64_t>step * <uint64_t>sizes[i])


cdef inline bint is_contiguous(int ndim, const int64_t *sizes, const int64_t *strides) noexcept nogil:
    cdef int64_t step = 1
    cdef int i
    for i in range(ndim):
        if sizes[i] == 0:
            return True
    for i in range(ndim - 1, -1, -1):
        if sizes[i] != 1:
            if strides[i] != step:
                return False
            step *= sizes[i]
    return True


cdef inline bint same_sizes(int ndim, const int64_t *a, const int64_t *b) noexcept nogil:
    cdef int i
    for i in range(ndim):
        if a[i] != b[i]:
            return False
    return True


cdef int64_t min_offset(int ndim, const int64_t *sizes, const int64_t *strides) noexcept nogil
cdef int64_t max_offset(int ndim, const int64_t *sizes, const int64_t *strides) noexcept nogil
cdef inline int channels_dim(int i, int ndim) noexcept nogil:
    """The i-th dim from the innermost on, of four or five dims in channels-last order (dim 1 innermost)."""
    return 1 if i == 0 else (0 if i == ndim - 1 else ndim - i)

cdef inline void channels_last_strides(int ndim, const int64_t *sizes, int64_t *out) noexcept nogil:
    """The strides of a dense tensor of four or five dims in channels-last order."""
    cdef int64_t step = 1
    cdef int i, d
    for i in range(ndim):
        d = channels_dim(i, ndim)
        out[d] = step
        step *= sizes[d]

cdef bint is_channels_last(int ndim, const int64_t *sizes, const int64_t *strides) noexcept nogil
cdef void order_dims(int ndim, const int64_t *sizes, int n, const int64_t *strides, int64_t *out) noexcept nogil
cdef void strides_like(int ndim, const int64_t *sizes, const int64_t *strides, int64_t *out) noexcept nogil
cdef bint is_dense(int ndim, const int64_t *sizes, const int64_t *strides) noexcept nogil
cdef bint view_strides(int ndim, const int64_t *sizes, const int64_t *strides,
                       int new_ndim, const int64_t *new_sizes, int64_t *out) noexcept nogil
cdef int read_sizes(object value, int64_t *out, const char *op, const char *arg) except -1
cdef int64_t read_index(object value, const char *op, const char *arg) except? -1
cdef int wrap_dim(int64_t dim, int ndim, const char *op, const char *arg) except -1
cdef int infer_size(int ndim, int64_t *sizes, int64_t numel, const char *op) except -1
cdef object sizes_tuple(int ndim, const int64_t *sizes)
cdef object make_size(int ndim, const int64_t *sizes)
cdef bint is_symbolic(object value) noexcept
cpdef bint is_symbolic_number(object value) noexcept
cdef bint any_symbolic(object values) except -1
cdef object concrete(object value)
cdef object hinted(object value)
cdef object too_large(int ndim, const int64_t *sizes)
