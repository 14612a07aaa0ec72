"""Draws written into a tensor's own memory: in-place fills without a tensor in between.

The kernel is that of the row which makes a new tensor, so that both give the same numbers.
"""
from ptcore._types cimport *
from ptcore._random import next_random
from ptcore._tensor cimport *
from ptcore._ops._record cimport check_inplace, finish_inplace
from ptcore._ops.table.ids cimport *

cdef enum:
    SMALL = 16384               # elements up to which the GIL is kept


cdef bint drawn_into(Tensor t, int op, tuple params, object generator, const char *name) except -1:
    """Fills t by the kernel of a random row; False, with nothing done, where t is no plain
    run of memory or somebody is to be asked."""
    cdef pt_call k
    cdef pt_view out
    cdef pt_param[2] given
    cdef pt_kernel kernel = kernel_of(op, DEVICE_CPU)
    cdef int64_t n = t.count, step = 1
    cdef int i, status
    if (t.flags | pt_tls.mode) & (PT_SLOW | PT_NON_CPU | PT_NONCONTIGUOUS) or kernel == NULL:
        return False
    if pt_tls.grad_enabled and needs_grad(t):
        return False
    check_inplace(t, name, False)
    for i in range(<int>len(params)):
        given[i].kind, given[i].i, given[i].d = PT_PARAM_FLOAT, 0, params[i]
        if type(params[i]) is int:
            given[i].kind, given[i].i = PT_PARAM_INT, params[i]
    k.seed, k.offset = next_random(generator, DEVICE_CPU, -1)
    fill_view(t, &out)
    out.ndim, out.sizes, out.strides = 1, &n, &step
    k.op, k.nin, k.nout, k.nparams = op, 0, 1, <int>len(params)
    (<const pt_view **>&k.inputs)[0] = NULL
    k.out = &out
    (<const pt_param **>&k.params)[0] = given
    k.stream = NULL
    k.error[0] = 0
    if n > SMALL:
        pt_kernels_enter()
        with nogil:
            status = kernel(&k)
        pt_kernels_leave()
    else:
        status = kernel(&k)
    if status != PT_OK:
        raise_status(status, name, k.error)
    finish_inplace(t, None)
    return True
