# Calling ops by id from compiled code. See _dispatch.pyx.
from ptcore._types cimport *
from ptcore._tensor cimport Tensor

cdef object call(int op, tuple args, object out)
cdef object run(int op, tuple args, list outs, int column, int number, object out, uint32_t key,
                uint64_t seen)
cdef object interpose(int op, tuple args, object out, int variant)
cdef bint overridden(tuple args)
cdef uint32_t flags_of(object x) noexcept
cdef Tensor as_tensor_like(object value, Tensor like)
cdef bint args_need_grad(object args)
cdef bint over_first(int op, tuple args) except -1
cdef tuple common_device_of(int op, Tensor t, tuple seen, bint scalars)
cdef Tensor cast(Tensor x, int dt)
cdef int64_t *own_all(pt_view *views, int nin, pt_view *outs, int nout) except NULL
