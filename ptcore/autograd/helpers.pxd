from ptcore._node cimport Node

cpdef object conj_of(object d)
cdef bint is_real(object x)
cdef bint fusible(object g)
cpdef object lift(object value, object g)
cdef object summed(Node node, int k, object g)
cdef object once(Node node, int k, object gradient, object g)
