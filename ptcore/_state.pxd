# What the engine asks of the modes without a Python call.
from libc.stdint cimport uint32_t

cpdef bint is_grad_enabled() noexcept
cdef list interpreter_stack()
cpdef bint is_anomaly_enabled() noexcept
cpdef void put_grad_enabled(bint mode) noexcept
cdef object told(str method, str kind, object t)
cdef bint is_asked(uint32_t flags) noexcept
