cdef class device:
    cdef readonly str type
    cdef int column                 # column of the kernel table
    cdef int number                 # -1: none given

cdef device CPU
cdef device META
cdef device device_of(int column, int number)
cdef device as_device(object value, const char *op)
cdef device current_device()
cdef object device_check            # installed by backends: column -> callable or None
