# Checks of guards for the entry of compiled functions. See _entry.pyx.
from cpython.object cimport PyObject

from ptcore._types cimport *
from ptcore._tensor cimport Tensor

cdef enum:
    FEW_VALUES = 128            # up to this many values a check needs no memory of its own

cdef struct Instruction:
    int op, a, b
    PyObject *key
    PyObject *expected
    PyObject *name

cdef struct Values:             # the values that a check has read, each with a reference
    PyObject **all
    int n
    (PyObject *)[FEW_VALUES] few

cdef class Look:
    cdef object cls
    cdef int64_t *dims
    cdef int rank, dt, column, number
    cdef bint needs_grad, is_leaf, is_hooked

    cdef bint holds(self, PyObject *x) except -1

cdef class Modes:
    cdef bint grad, inference, device_set
    cdef uint32_t word
    cdef int dtype
    cdef object device
    cdef uint8_t autocast, autocast_uncached
    cdef (uint8_t)[8] autocast_dtype

    cdef bint are_so(self) except -1

cdef class Check:
    cdef Instruction *program
    cdef int length, values, n_inputs
    cdef int *inputs
    cdef tuple raised
    cdef list kept

    cdef int begin(self, Values *v) except -1
    cdef bint met(self, PyObject **args, Py_ssize_t n, Values *v) except -1
    cdef bint holds(self, PyObject **args, Py_ssize_t n, Values *v) except -1
    cdef tuple inputs_of(self, Values *v)

cdef void release(Values *v) noexcept
cdef tuple tuple_of(PyObject **args, Py_ssize_t n)
