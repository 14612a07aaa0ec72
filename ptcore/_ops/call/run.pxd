# Calls of structured ops by id. See run.pyx.
from cpython.object cimport PyObject

from ptcore._types cimport *
from ptcore._tensor cimport Tensor
from ptcore._ops.call.call cimport Call

cdef object call(int op, PyObject **args, int n, object out)
cdef object call_with(int op, tuple args, object out)
cdef Tensor complete_new(Call *c)
cdef int launch_over(Call *c, Tensor x) except -1
cdef bint over_first(int op, PyObject **args, int n) except -1
cdef bint args_need_grad(object args)
cdef bint any_needs_grad(Call *c)
