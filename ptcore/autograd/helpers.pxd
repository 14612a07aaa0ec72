cpdef object conj_of(object d)
cdef bint fusible(object g)
cpdef object lift(object value, object g)
