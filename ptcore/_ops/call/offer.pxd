# The one place where autocast casts, and where calls are offered to __torch_function__ and to interpreters.
# See offer.pyx.
from cpython.object cimport PyObject

from ptcore._tensor cimport Tensor
from ptcore._types cimport *

cdef enum:
    PT_VARIANT_PLAIN = 0
    PT_VARIANT_INPLACE = 1

ctypedef object (*runner)(int op, PyObject **args, int n, object out)

cdef bint is_foreign(object x)
cdef uint32_t flags_of(object x)
cdef uint32_t flags_of_all(PyObject **args, int n)
cdef bint asks(uint32_t key) noexcept
cdef int refuse_foreign(int op, uint32_t key) except -1
cdef bint asks_functions(uint32_t key) noexcept
cdef object ask_functions(object func, const char *name, tuple args, dict kwargs, object out, uint32_t key)
cdef tuple as_given(PyObject **args, Py_ssize_t n, PyObject *keywords)
cdef object offer(int op, PyObject **args, int n, uint32_t key, object out, int variant)
cdef object interpret(int op, PyObject **args, int n, object out, int variant)
cdef bint is_of_top(Tensor x)
cdef object before_call(runner again, int op, PyObject **args, int n, uint32_t key, object out)
