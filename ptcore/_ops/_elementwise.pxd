# The general elementwise path. See _elementwise.pyx.
from ptcore._dtype cimport REAL_OF
from ptcore._ops._table cimport *
from ptcore._tensor cimport Tensor
from ptcore._types cimport *

cdef object elementwise(int op, tuple args, object out)
cdef object elementwise_inplace(int op, tuple args)
cdef object unwritten(object x, tuple args)
cdef object overwrite(Tensor x, object value, const char *name)
cdef object fitting(object x, int dt, const char *op)


cdef inline int out_dtype(int op, int dt) noexcept:
    """The result dtype of a loop of dtype dt."""
    cdef int rule = info(op).out
    if rule == PT_OUT_SAME:
        return dt
    return PT_BOOL if rule == PT_OUT_BOOL else REAL_OF[dt]
