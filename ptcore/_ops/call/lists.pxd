# Parameters of several ints, and words. See lists.pyx.
from ptcore._types cimport pt_param
from ptcore._ops.call.call cimport Call

cdef bint read_ints(Call *c, pt_param *p, object x, char letter) noexcept
cdef bint read_word(Call *c, pt_param *p, object x, int k) noexcept
cdef tuple choices_of(int op, int k)
