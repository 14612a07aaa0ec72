# The elementwise paths. See _elementwise.pyx.
from ptcore._types cimport *
from ptcore._tensor cimport Tensor

cdef object unary(int op, object x)
cdef object binary(int op, object x, object y)
cdef object inplace_binary(int op, object x, object y)
cdef object elementwise(int op, tuple args, object out)
cdef object elementwise_inplace(int op, tuple args)
