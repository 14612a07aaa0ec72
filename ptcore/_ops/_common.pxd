# C functions of _common.pyx for compiled bodies.
from ptcore._tensor cimport Tensor

cpdef long _wrap(str op, object dim, long ndim, str name=*) except -1
cpdef tuple _dims(str op, object dim, long ndim)
cpdef long _divided(str op, object dim, Tensor input) except -1
