# Values with tangents. See tangents.pyx.
from ptcore._interpret cimport Interpreter, Payload
from ptcore._ops.call.batched cimport CompiledInterpreter
from ptcore._tensor cimport Tensor


cdef class Dual(Payload):
    cdef readonly Tensor tensor
    cdef public Tensor tangent
    cdef public tuple shows
    cdef public bint moved


cdef class Pushing(CompiledInterpreter):
    cdef int parts(self, object x, list values, list tangents, bint *mine, bint *live) except -1
    cdef bint has(self, Tensor x) noexcept
    cdef object shown(self, int op, tuple args, tuple given, object result)


cpdef Tensor paired(Tensor x, Tensor tangent, Interpreter owner)
