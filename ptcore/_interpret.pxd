# Interpreters, and the payloads of their stand-ins. See _interpret.pyx.
from ptcore._state cimport Mode

cdef enum:                              # events that interpreters hear of, see told()
    TOLD_CREATED, TOLD_READ, TOLD_CHANGED


cdef class Payload:
    cdef public Interpreter owner
    cdef public bint of_tensor


cdef class Interpreter(Mode):
    cdef public int unrecorded
    cdef public list stand_ins
    cdef public bint lets_go
    cdef object interpret(self, int op, tuple args, object out, int variant)


cdef class aside(Mode):
    pass


cdef class outside(Mode):
    pass


cdef class Recording(Mode):
    cdef object number
    cdef set running


cdef object told(int what, str kind, object t)
cdef int told_owner(Interpreter owner, object x, object view) except -1
cdef bint is_differentiated() except -1
