# Arguments of structured calls. See read.pyx.
from cpython.object cimport PyObject

from ptcore._types cimport *
from ptcore._tensor cimport Tensor
from ptcore._ops.call.call cimport Call

cdef void begin(Call *c, int op, PyObject **args, int n) noexcept
cdef int make_room(Call *c) except -1
cdef int read(Call *c) except -1
cdef tuple plain_arguments(Call *c, tuple args, uint32_t key)
cdef Tensor as_tensor_like(object value, Tensor like)
cdef int common_device(int op, Tensor t, int *place, bint scalars) except -1
cdef Tensor cast(Tensor x, int dt)
cdef bint switch(str op, str name, object value) except -1
cdef void set_cast(Tensor (*f)(Tensor x, int dt)) noexcept
