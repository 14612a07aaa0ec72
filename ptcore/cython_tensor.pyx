"""The functions of cython_tensor.pxd, the Cython interface of Tensor."""
from cpython.ref cimport Py_DECREF, Py_INCREF

from ptcore cimport _tensor, _types
from ptcore._dtype cimport ITEMSIZE
from ptcore._ops.history cimport check_inplace
from ptcore._shape cimport fill_strides

cdef inline _tensor.Tensor real(Tensor t):
    return <_tensor.Tensor><object>t


cdef int ndim(Tensor t) noexcept:
    return real(t).rank


cdef int64_t numel(Tensor t) noexcept:
    return real(t).count


cdef const int64_t *sizes(Tensor t) noexcept:
    return real(t).dims


cdef const int64_t *strides(Tensor t) noexcept:
    return real(t).dims + real(t).rank


cdef int dtype(Tensor t) noexcept:
    return real(t).dt


cdef int64_t itemsize(Tensor t) noexcept:
    return ITEMSIZE[real(t).dt]


cdef int device(Tensor t) noexcept:
    return real(t).storage.device


cdef bint is_contiguous(Tensor t) noexcept:
    return not real(t).flags & _types.PT_NONCONTIGUOUS


cdef bint requires_grad(Tensor t) noexcept:
    return real(t).requires_grad


cdef void *data_ptr(Tensor t) except? NULL:
    cdef _tensor.Tensor x = real(t)
    if x.storage.device == META or x.flags & _types.PT_INTERPOSED:
        raise ValueError(f"data_ptr: the tensor must have memory, got one on device {x.device}")
    return _tensor.address(x)


cdef void *mutable_data_ptr(Tensor t) except? NULL:
    cdef _tensor.Tensor x = real(t)
    cdef void *p = data_ptr(t)
    check_inplace(x, b"mutable_data_ptr", _types.pt_tls.grad_enabled and _tensor.needs_grad(x))
    _tensor.count_write(x)
    return p


cdef int check(str name, int ndim, const int64_t *sizes, int dtype) except -1:
    cdef int i
    if not 0 <= dtype < _types.PT_NDTYPES:
        raise ValueError(f"{name}: dtype must be a code in [0, {_types.PT_NDTYPES - 1}], got {dtype}")
    if not 0 <= ndim <= PT_MAX_DIM:
        raise ValueError(f"{name}: ndim must be in [0, {<int>PT_MAX_DIM}], got {ndim}")
    for i in range(ndim):
        if sizes[i] < 0:
            raise ValueError(f"{name}: sizes must not be negative, got {sizes[i]} at dim {i}")
    return 0


cdef Tensor new_empty(int ndim, const int64_t *sizes, int dtype):
    check("new_empty", ndim, sizes, dtype)
    return <Tensor><object>_tensor.new_tensor(dtype, ndim, sizes, CPU, -1)


cdef void release(_types.pt_storage *s) noexcept with gil:
    Py_DECREF(<object>s.owner)


cdef Tensor wrap(void *data, int ndim, const int64_t *sizes, const int64_t *strides, int dtype,
                 object owner, bint readonly):
    cdef int64_t[64] dense
    cdef int64_t low = 0, high = 0, span
    cdef int i
    cdef _types.pt_storage *s
    check("wrap", ndim, sizes, dtype)
    if strides == NULL:
        fill_strides(ndim, sizes, dense)
        strides = dense
    cdef bint empty = False
    for i in range(ndim):
        empty = empty or sizes[i] == 0
        span = strides[i] * (sizes[i] - 1)
        if span < 0:
            low += span
        else:
            high += span
    if empty:
        low, high = 0, -1
    elif data == NULL:
        raise ValueError("wrap: data must not be NULL")
    low *= ITEMSIZE[dtype]
    high = (high + 1) * ITEMSIZE[dtype]
    s = _types.pt_storage_wrap(
        <char *>data + low, high - low, <void *>owner, release,
        _types.PT_STORAGE_EXPORTED | (_types.PT_STORAGE_READONLY if readonly else 0))
    if s == NULL:
        raise MemoryError()
    Py_INCREF(owner)
    return <Tensor><object>_tensor.wrap_storage(s, -low, dtype, ndim, sizes, strides)
