# The payloads of batched stand-ins. See batched.pyx.
from ptcore._interpret cimport Interpreter, Payload
from ptcore._tensor cimport Tensor


cdef class Batched(Payload):
    cdef readonly Tensor tensor


cdef class Shared(Payload):
    cdef readonly Tensor tensor


cdef class CompiledInterpreter(Interpreter):
    cdef object offered(self, int op, tuple args, int variant)


cdef class Batching(CompiledInterpreter):
    cdef public object size
    cdef list carried(self, args, bint *batched, bint *shared)
    cdef object broadcast(self, int op, list given, tuple args, bint inplace)


cdef bint is_common(int op, tuple args) noexcept
cdef object run_by_id(int op, tuple args)
cpdef Tensor made_as(Tensor like, Tensor x)
cpdef Tensor sample_of(Tensor stack, Interpreter owner)
cpdef Tensor shared_of(Tensor x, Interpreter owner)
