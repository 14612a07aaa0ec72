# A program that runs as plans, with gradients or without. See pair.pyx.
from cpython.object cimport PyObject

from ptcore._types cimport *
from ptcore._node cimport Node
from ptcore._ops.plan.plan cimport Plan

cdef class Pair:
    cdef Plan first
    cdef Plan second_plan
    cdef object second, again, partly
    cdef dict parts
    cdef tuple needs, written
    cdef int n_outs, n_saved
    cdef uint8_t *graded
    cdef int *saved

    cdef int give_history(self, PyObject **tensors, Py_ssize_t m, PyObject **results, object state) except -1
    cdef object called(self, PyObject **tensors, Py_ssize_t m, object state, bint *alone)
    cdef tuple some_of(self, Node node, list given, list tangents)
    cdef tuple primals_of(self, Node node)

cdef class Runner:
    cdef readonly list pairs, plans, sources
    cdef list links
    cdef object slow
    cdef tuple constants

    cdef bint add_sources(self, list tensors)
    cdef object called(self, PyObject **args, Py_ssize_t n, bint *alone)
    cdef object called_with(self, PyObject **tensors, Py_ssize_t m, PyObject **args, Py_ssize_t n, bint *alone)
    cdef object called_slowly(self, PyObject **args, Py_ssize_t n)

cdef int use_up(results, tuple places) except -1
