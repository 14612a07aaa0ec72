# Modes that the engine reads without a Python call, the stacks of a thread, and the base of contexts.
from libc.stdint cimport uint32_t

from ptcore._types cimport pt_tls


cdef class Note:
    cdef Mode context
    cdef object before                  # the state that the context replaced
    cdef Note outer                     # the Note of the context around it


cdef class Stacks:
    cdef list interpreters              # see interpreter_stack()
    cdef list functions                 # modes of __torch_function__
    cdef list hooks                     # (pack, unpack) of saved tensors
    cdef list refusals                  # messages of disable_saved_tensors_hooks
    cdef Note entered                   # of the context that was entered last and not left yet
    cdef dict named                     # lists of upper layers
    cdef dict settings                  # settings of upper layers
    cdef dict casts                     # casts of parameters, by autocast


cdef Stacks new_stacks()


cdef inline Stacks stacks():
    """The contexts that this thread has entered."""
    return <Stacks>pt_tls.stacks if pt_tls.stacks != NULL else new_stacks()


cdef list interpreter_stack()
cdef list saved_hooks()
cdef int push(list stack, object item, uint32_t bit) except -1
cdef int drop(list stack, object item, uint32_t bit) except -1


cdef class Mode:
    cdef Note own                       # if is_shared(): a chain as Stacks.entered
    cdef object begin(self)
    cdef int end(self, object before) except -1
    cdef object found(self)
    cdef object given(self)
    cdef bint is_shared(self)
    cdef bint prepares(self)


cdef class Switch(Mode):
    cdef object first                   # the state that _switch replaced; None: it was not called


cdef class AnomalyMode(Switch):
    cdef bint on, checks_nan


cdef class SourceLines(Switch):
    cdef bint on


cdef class SavedHooks(Mode):
    cdef readonly tuple hooks


cdef class SavedBy(Mode):
    cdef list hooks


cdef class HooksRefused(Mode):
    cdef readonly object message


cdef class FunctionMode(Mode):
    pass


cpdef bint is_grad_enabled() noexcept
cpdef bint is_anomaly_enabled() noexcept
cpdef void put_grad_enabled(bint mode) noexcept
cdef void set_bit(uint32_t bit, bint on) noexcept
cdef bint is_asked(uint32_t flags) noexcept
