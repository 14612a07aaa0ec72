# C functions of _common.pyx for compiled bodies.
from ptcore._tensor cimport Tensor

cpdef long wrap_dim(str op, object dim, long ndim, str name=*) except -1
cpdef tuple wrap_dims(str op, object dim, long ndim)
cpdef long divided_dim(str op, object dim, Tensor input) except -1
