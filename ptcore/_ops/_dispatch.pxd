# Calling ops by id from compiled code. See _dispatch.pyx.
from ptcore._types cimport *
from ptcore._tensor cimport Tensor
from ptcore._node cimport Node

cdef extern from "_opinfo.h":
    enum:
        PT_ELEMENTWISE, PT_STRUCTURED, PT_VIEWOP, PT_COMPOSITE
        PT_PROMOTE_DEFAULT, PT_PROMOTE_FLOAT, PT_PROMOTE_NONE, PT_PROMOTE_WHERE, PT_PROMOTE_FIRST
        PT_PROMOTE_DTYPE
        PT_OUT_SAME, PT_OUT_BOOL, PT_OUT_REAL
        PT_SAVE_META, PT_SAVE_OUT, PT_MAX_SAVED
    ctypedef struct pt_opinfo:
        const char *name
        const char *letters
        const char *argnames
        const char *kernel
        const char *family
        uint8_t kind, promote, out, ntensors, npositional, nout, random, contiguous, prefill
        uint8_t differentiable
        uint8_t nsaved
        uint16_t types
        uint16_t grad_mask
        int16_t *saved
        uint16_t *need

ctypedef int (*elementwise_runner)(int op, const pt_elementwise *loops, int compute, int loop_out,
                                   const pt_view *out, const pt_view *inputs, int nin,
                                   const void *params) noexcept nogil

cdef pt_opinfo *info(int op) noexcept
cdef int register_kernels(const pt_kernel_entry *entries, int column) except -1
cdef object call(int op, tuple args, object out)
cdef object run(int op, tuple args, list outs, int column, int number, object out, uint32_t key)
cdef object interpose(int op, tuple args, object out, int variant)
cdef bint overridden(tuple args)
cdef uint32_t flags_of(object x) noexcept
cdef Tensor as_tensor_like(object value, Tensor like)
cdef Node record(int op, tuple args, object outs)
cdef void save(Node n, int slot, object x) except *
cdef void link(Node n, int i, Tensor t)
cdef object trace_of_user()
cdef int check_inplace(Tensor x, const char *op) except -1
cdef int check_writable(Tensor x, const char *op) except -1
cdef int finish_inplace(Tensor x, Node n) except -1
cdef int write_out(Tensor out, Tensor value, const char *name) except -1
cdef str arg_name(int op, int k)
cdef tuple common_device_of(int op, Tensor t, tuple seen)
cdef Tensor contiguous(Tensor x)
cdef Tensor cast(Tensor x, int dt)
cdef int copy_into(Tensor dst, Tensor src) except -1
cdef int raise_status(int status, const char *name, const char *text) except -1
cdef list FUNCTIONS, INPLACE_FUNCTIONS, SPECS, VJPS
