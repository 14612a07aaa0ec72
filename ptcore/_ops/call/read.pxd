# Arguments of structured calls. See read.pyx.
from cpython.object cimport PyObject

from ptcore._types cimport *
from ptcore._tensor cimport Tensor
from ptcore._ops.call.call cimport Call
from ptcore._ops.table.ids cimport pt_opinfo

cdef int read(Call *c) except -1
cdef bint read_numbers(Call *c, tuple numbers) noexcept
cdef tuple read_plain(Call *c, uint32_t key)
cdef Tensor as_tensor_like(object value, Tensor like)
cdef int common_device(int op, Tensor t, int *place, bint scalars) except -1
cdef Tensor cast(Tensor x, int dt)
cdef object unsupported(pt_opinfo *o, int dt, str hint)
cdef bint switch(str op, str name, object value) except -1
cdef void set_cast(Tensor (*f)(Tensor x, int dt)) noexcept
