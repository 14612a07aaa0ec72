# C functions of _spatial.pyx for compiled bodies.
from ptcore._tensor cimport Tensor

cpdef tuple _numbers(str op, str name, object value, int n, int least)
cpdef tuple _windows(str op, int n, Tensor x, object kernel_size, object stride, object padding, object dilation,
                     bint ceil_mode)
cpdef tuple _batched(str op, Tensor x, int n)
cpdef object _unbatched(object x, bint batched)
cpdef int _word(str op, str name, object value) except -1
