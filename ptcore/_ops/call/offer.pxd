# The one place where calls are offered to __torch_function__ and to interpreters. See offer.pyx.
from cpython.object cimport PyObject

from ptcore._types cimport *

cdef uint32_t flags_of(object x) noexcept
cdef uint32_t flags_of_all(PyObject **args, int n) noexcept
cdef bint asks(uint32_t key) noexcept
cdef object interpose(int op, tuple args, object out, int variant)
