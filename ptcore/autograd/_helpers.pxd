cpdef object conj_of(object d)
cdef bint fusible(object g)
cdef object lift(object value, object g)
