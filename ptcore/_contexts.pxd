from ptcore._state cimport Mode, Switch


cdef class Listed(Mode):
    cdef str name
    cdef object item


cdef class Changed(Switch):
    cdef tuple changes
    cdef object told, gives
    cdef bint of_process
    cdef int tell(self) except -1


cdef class Counted(Mode):
    cdef dict table
    cdef str count, held


cdef class Nested(Mode):
    cdef object make, gives


cdef class Together(Mode):
    cdef list contexts


cdef class Exchanged(Mode):
    cdef tuple changes
    cdef readonly object last           # the value that the last change replaced, at the last entry


cdef class Replaced(Mode):
    cdef list changes
