# What the parts of creation share. See creation.pyx.
from ptcore._types cimport *
from ptcore._tensor cimport Tensor
from ptcore._ops.call.offer cimport is_foreign

cdef Tensor fresh(object size, tuple rest, object dtype, object where, const char *op)
cdef Tensor created(int op, tuple numbers, object size, tuple rest, object dtype, object where, const char *name,
                    tuple others=*)
cdef object made(Tensor t, const char *op, object out, object layout, object pin_memory, object memory_format,
                 object requires_grad)
cdef object dtype_for(object dtype, object out, const char *op)
cdef object device_for(object device, object out)

cdef inline bint asks_class(object x):
    """Whether ``of_class`` must ask a mode, or the ``__torch_function__`` of x's class."""
    if isinstance(x, Tensor):
        return ((<Tensor>x).flags | pt_tls.mode) & (PT_SUBCLASS | PT_MODE_FUNCTION) and not pt_tls.torch_function_off
    return is_foreign(x)
