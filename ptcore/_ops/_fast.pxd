# The fast elementwise paths. See _fast.pyx.
cdef object unary(int op, object x)
cdef object binary(int op, object x, object y)
cdef object inplace_binary(int op, object x, object y)
