"""Parameters of several ints, and of words: how ``read`` takes plain ones."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from ptcore._types cimport *
from ptcore._ops.table.ids cimport info
from ptcore._ops.call.call cimport *

cdef extern from "Python.h":
    int64_t PyLong_AsLongLongAndOverflow(object, int *) noexcept
    bint PyLong_CheckExact(object)
    PyObject *PyTuple_GET_ITEM(object, Py_ssize_t) noexcept
    Py_ssize_t PyTuple_GET_SIZE(object) noexcept
    int PyUnicode_Compare(object, object) noexcept


cdef bint read_ints(Call *c, pt_param *p, object x, char letter) noexcept:
    """A tuple of exact ints; at most 64 of them where they are sizes."""
    cdef int64_t *ints = c.ints + c.nints
    cdef Py_ssize_t n
    cdef int j, overflow = 0
    if type(x) is not tuple:
        return False
    n = PyTuple_GET_SIZE(x)
    if n + c.nints > INLINE_INTS or (letter == PT_ARG_SIZES and n > PT_MAX_DIM):
        return False
    for j in range(<int>n):
        item = <object>PyTuple_GET_ITEM(x, j)
        if not PyLong_CheckExact(item):
            return False
        ints[j] = PyLong_AsLongLongAndOverflow(item, &overflow)
        if overflow:
            return False
    p.kind, p.count, p.list = PT_PARAM_INTS, <int>n, ints
    c.nints += <int>n
    return True


cdef (PyObject *)[4096] _words      # by op: the allowed words of its arguments


cdef tuple choices_of(int op, int k):
    """The words that are allowed for the argument at position k of an op."""
    cdef tuple words
    cdef dict own
    if _words[op] == NULL:
        text = info(op).words.decode()
        own = {int(at): tuple(names.split("|")) for at, _, names in [x.partition(":") for x in text.split(";") if x]}
        words = tuple([own.get(i) for i in range(len(info(op).letters.decode()))])
        if _words[op] == NULL:          # another thread may have filled it meanwhile
            Py_INCREF(words)
            _words[op] = <PyObject *>words
    return <tuple>(<tuple>_words[op])[k]


cdef bint read_word(Call *c, pt_param *p, object x, int k) noexcept:
    """Reads a word; kernels get its index. False at the op's first call, as no Python code may run here."""
    cdef PyObject *names
    cdef Py_ssize_t i
    if type(x) is not str or _words[c.op] == NULL:
        return False
    names = PyTuple_GET_ITEM(<object>_words[c.op], k)
    for i in range(PyTuple_GET_SIZE(<object>names)):
        if PyUnicode_Compare(<object>PyTuple_GET_ITEM(<object>names, i), x) == 0:
            p.kind, p.i, p.d = PT_PARAM_INT, i, <double>i
            return True
    return False
