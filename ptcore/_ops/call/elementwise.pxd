# Elementwise calls by id. See elementwise.pyx.
from cpython.object cimport PyObject

from ptcore._tensor cimport Tensor
from ptcore._types cimport *

cdef bint has_own_ufuncs(object x)
cdef object unary(int op, object x)
cdef object binary(int op, object x, object y)
cdef object inplace_binary(int op, object x, object y)
cdef object elementwise(int op, PyObject **args, int n, object out)
cdef object elementwise_inplace(int op, PyObject **args, int n)
cdef object elementwise_of(int op, tuple args)
cdef object write_to(object x, object value)
cdef object unwritten(object x, tuple args)
cdef object overwrite(Tensor x, object value, const char *name)
cdef bint shows_the_same(Tensor a, Tensor b) noexcept
