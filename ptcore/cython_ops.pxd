"""Ops for Cython packages outside ptcore: call one by id, enter a kernel for one.

    from ptcore.cython_ops cimport op_id, call, binary
    cdef int ADD = op_id("add")
    y = binary(ADD, x, 2.0)

A kernel is a C function on ``pt_call`` (see ``ptcore/kernel.h`` in ``ptcore.get_include()``).
"""
from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t

cdef extern from "ptcore/kernel.h" nogil:
    enum:
        PT_OK, PT_RUNTIME_ERROR, PT_VALUE_ERROR, PT_INDEX_ERROR, PT_TYPE_ERROR, PT_MEMORY_ERROR
        PT_LINALG_ERROR, PT_NONE
    ctypedef struct pt_view:
        char *data
        const int64_t *sizes
        const int64_t *strides
        int64_t numel
        int32_t ndim
        uint8_t dtype, contiguous, device
        int8_t device_index
        uint8_t layout
    ctypedef struct pt_param:
        int32_t kind, count
        int64_t i
        double d, im
        const int64_t *list
    ctypedef struct pt_call "pt_call_3":         # the name contains the version: see PT_ABI
        int32_t op, nin, nout, nparams
        const pt_view *inputs "in"
        pt_view *out
        const pt_param *params
        uint64_t seed, offset
        void *stream
        char error[256]
    ctypedef int (*pt_kernel)(pt_call *) noexcept nogil
    const char *PT_KERNEL_SIGNATURE

# The id of an op by its name; KeyError if there is none.
cdef int op_id(str name) except -1
# Any op, arguments in the row's order, defaults filled in.
cdef object call(int op, tuple args)
# Elementwise ops of one and two operands (Tensors or Python numbers) on the fast path.
cdef object unary(int op, object x)
cdef object binary(int op, object x, object y)
cdef object matmul(object x, object y)
# A kernel in the form that `ptcore.ops.register` and `register_kernel` take. The capsule's name has the version
# of kernel.h that the caller was compiled against; both functions refuse any other version.
cdef inline object as_capsule(pt_kernel kernel):
    return PyCapsule_New(<void *>kernel, PT_KERNEL_SIGNATURE, NULL)


# Enters a kernel of a registered op in a device's column (0: the CPU).
cdef inline int set_kernel(int op, int device, pt_kernel kernel) except -1:
    enter_kernel(op, device, as_capsule(kernel))
    return 0


cdef int enter_kernel(int op, int device, object capsule) except -1
