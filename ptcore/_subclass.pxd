# Stand-ins from C. See _subclass.pyx.
from ptcore._interpret cimport Payload
from ptcore._tensor cimport Tensor

cpdef Tensor detached(Tensor t)
cpdef Tensor stands_for(Tensor value, Payload payload, int hidden=*)
cdef object let_go(object x)
cdef bint shows_memory(object result) except -1
cdef int lend(Tensor r, Tensor value) except -1
