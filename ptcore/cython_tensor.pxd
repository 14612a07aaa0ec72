"""Tensors for Cython packages outside ptcore: functions over an opaque ``Tensor`` class.

Only functions and plain types stand here, never the layout of Tensor, so a package that was
compiled against one release runs with the next; signatures are checked when it is imported.

    from ptcore.cython_tensor cimport Tensor, data_ptr, new_empty

Sizes and strides are counted in elements. Nothing here records history: an op with a gradient
is registered by ``ptcore.ops.register``.
"""
from libc.stdint cimport int64_t

cdef extern from *:
    """
    #ifndef PTCORE_OPAQUE_TENSOR
    #define PTCORE_OPAQUE_TENSOR
    typedef struct { PyObject_HEAD } pt_opaque_tensor;
    #endif
    """
    ctypedef class ptcore._tensor.Tensor [object pt_opaque_tensor, check_size ignore]:
        pass

cdef extern from "ptcore/kernel.h" nogil:
    enum:
        PT_BOOL, PT_UINT8, PT_INT8, PT_UINT16, PT_INT16, PT_UINT32, PT_INT32, PT_UINT64, PT_INT64
        PT_FLOAT16, PT_BFLOAT16, PT_FLOAT32, PT_FLOAT64, PT_COMPLEX64, PT_COMPLEX128, PT_NDTYPES
        PT_MAX_DIM

cdef enum:
    CPU = 0                     # device columns, as in pt_view.device
    CUDA = 1
    META = 2

cdef int ndim(Tensor t) noexcept
cdef int64_t numel(Tensor t) noexcept
cdef const int64_t *sizes(Tensor t) noexcept            # ndim entries, alive as long as t
cdef const int64_t *strides(Tensor t) noexcept
cdef int dtype(Tensor t) noexcept                       # PT_FLOAT32, ...
cdef int64_t itemsize(Tensor t) noexcept
cdef int device(Tensor t) noexcept                      # CPU, CUDA, META or a later column
cdef bint is_contiguous(Tensor t) noexcept
cdef bint requires_grad(Tensor t) noexcept

# The address of element [0, ..., 0], for reading; ValueError for a tensor without memory (meta,
# traced). It is valid until the tensor's storage is resized.
cdef void *data_ptr(Tensor t) except? NULL
# The same for writing: counts as an in-place write (the version rises); RuntimeError for
# read-only memory and where autograd refuses the write.
cdef void *mutable_data_ptr(Tensor t) except? NULL

# A contiguous CPU tensor with uninitialised memory; ValueError for bad sizes.
cdef Tensor new_empty(int ndim, const int64_t *sizes, int dtype)
# A CPU tensor over foreign memory that lives as long as `owner`; `strides` may be NULL.
cdef Tensor wrap(void *data, int ndim, const int64_t *sizes, const int64_t *strides, int dtype,
                 object owner, bint readonly)
