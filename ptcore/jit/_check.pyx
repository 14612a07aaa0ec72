"""Checks of guards in C: what ``Program`` in ``capture/guards.py`` says, as instructions over a row of values.

An instruction reads a value from others and puts it into the next place, or compares. The first that does not hold ends
the check. All values that were read are held until then, as a read may run code of the user's.
"""
cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport Py_EQ, PyObject_RichCompareBool
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.sequence cimport PySequence_Fast_ITEMS
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.string cimport memcmp, memcpy

from ptcore._types cimport *
from ptcore._device import get_default_device
from ptcore._dtype cimport default_float, dtype_of
from ptcore._shape cimport same_sizes
from ptcore._tensor cimport *

cdef extern from "Python.h":
    PyObject *PyDict_GetItemWithError(object, object) except? NULL
    int PyDict_Contains(object, object) except -1
    int PySequence_Contains(object, object) except -1
    Py_ssize_t PyObject_Size(object) except -1
    PyObject *PyCell_Get(object)
    bint PyDict_CheckExact(object)
    PyObject *PyObject_GenericGetDict(PyObject *, void *) except NULL
    PyObject *PyObject_GetAttr(PyObject *, PyObject *) except NULL
    PyObject *PyObject_GetItem(PyObject *, PyObject *) except NULL
    PyObject *PyFunction_GET_CODE(object)
    PyObject *PyFunction_GET_DEFAULTS(object)
    Py_ssize_t PyDict_Size(object) except -1
    int PyDict_Next(object, Py_ssize_t *, PyObject **, PyObject **)
    ctypedef struct PyTypeObject:
        PyObject *tp_mro
        unsigned int tp_version_tag
    PyTypeObject *Py_TYPE(object)

cdef extern from *:
    """
    /* A borrowed reference to what a class itself has under a name, or NULL. Since 3.12 the dict of a static type
     * is the interpreter's and not in tp_dict. */
    static inline PyObject *pt_type_own(PyTypeObject *type, PyObject *name) {
    #if PY_VERSION_HEX >= 0x030C0000
        PyObject *names = PyType_GetDict(type), *found = PyDict_GetItemWithError(names, name);
        Py_DECREF(names);
        return found;
    #else
        return PyDict_GetItemWithError(type->tp_dict, name);
    #endif
    }
    """
    PyObject *pt_type_own(PyTypeObject *, object)

# What an instruction does; `a` and `b` are places of values, `key` and `expected` objects.
cdef enum Op:
    ARGUMENT, CONSTANT, CELL, DICT, ATTRIBUTE, ITEM,                                    # make a value
    LOOK, MODES, IS, TYPE, CODE, DEFAULTS, ENTRY_IS, OWN, FOREIGN, ORDER, SAME, NOT_SAME, EQUAL,
    LENGTH, HAS, HAS_NOT, KEYS, ASK, CLASS

OPS = {name: k for k, name in enumerate(
    ("argument", "constant", "cell", "dict", "attribute", "item", "look", "modes", "is", "type", "code", "defaults",
     "entry is", "own", "foreign", "order", "same", "not same", "equal", "length", "has", "has not", "keys", "ask",
     "class"))}


@cython.binding(False)                  # so that methods check their self
cdef class Look:
    """What a captured program takes for granted of a tensor without symbols: all but its values."""

    def __init__(self, Tensor t not None):
        self.cls, self.rank, self.dt = type(t), t.rank, t.dt
        self.column, self.number = t.storage.device, t.storage.device_index
        self.needs_grad, self.is_leaf = t.requires_grad, t.is_leaf
        self.dims = <int64_t *>PyMem_Malloc((2 * t.rank + 1) * sizeof(int64_t))
        if self.dims == NULL:
            raise MemoryError()
        memcpy(self.dims, t.dims, 2 * t.rank * sizeof(int64_t))

    def __dealloc__(self):
        PyMem_Free(self.dims)

    def matches(self, t):
        """Whether a tensor looks the same."""
        return self.holds(<PyObject *>t)

    cdef bint holds(self, PyObject *x) except -1:
        cdef Tensor t
        cdef bint asks
        if <PyObject *>Py_TYPE(<object>x) != <PyObject *>self.cls:
            return False
        t = <Tensor>x
        if (t.dt != self.dt or t.rank != self.rank or t.storage.device != self.column
                or t.storage.device_index != self.number
                or not same_sizes(2 * t.rank, t.dims, self.dims)
                or t.flags & (PT_INTERPOSED | PT_LAYOUT)):
            return False
        asks = needs_grad(t) if t.flags & PT_VIEW else (t.flags & PT_REQUIRES_GRAD) != 0
        if asks != self.needs_grad:
            return False
        return not asks or (t.node is None if not t.flags & PT_VIEW else grad_fn_of(t) is None) == self.is_leaf


@cython.binding(False)
cdef class Modes:
    """What a program may ask of its thread without reading anything, as it is when this is made."""

    def __init__(self):
        self.grad, self.inference, self.word = pt_tls.grad_enabled, pt_tls.inference, pt_tls.mode
        self.device_set, self.dtype, self.device = pt_tls.device_set, default_float(), get_default_device()
        self.autocast, self.autocast_uncached = pt_tls.autocast, pt_tls.autocast_uncached
        memcpy(self.autocast_dtype, pt_tls.autocast_dtype, 8)

    def __repr__(self):
        return f"(grad {self.grad}, inference {self.inference}, {self.word}, {dtype_of(self.dtype)}, {self.device})"

    def hold(self):
        """Whether they are so now."""
        return self.are_so()

    cdef bint are_so(self) except -1:
        cdef pt_state *tls = &pt_tls
        if (tls.grad_enabled != self.grad or tls.inference != self.inference or tls.mode != self.word
                or default_float() != self.dtype or tls.autocast != self.autocast
                or tls.autocast_uncached != self.autocast_uncached
                or memcmp(tls.autocast_dtype, self.autocast_dtype, 8)):
            return False
        return not (tls.device_set or self.device_set) or get_default_device() == self.device


@cython.binding(False)
cdef class Check:
    """A check of one segment's guards.

    Parameters
    ----------
    instructions : list of (op, a, b, key, expected, name)
        ``op`` is a name of ``OPS``. "class" has the number of those behind it that ask the class ``key`` and its bases:
        they are left out as long as the interpreter's version of the class is that of the last time.
    inputs : list of int
        The places of the values that the check gives.
    raised : tuple of exception classes
        Which errors of a read mean that a guard does not hold.
    """

    def __init__(self, instructions, inputs, raised):
        cdef int k
        self.length, self.n_inputs = <int>len(instructions), <int>len(inputs)
        self.program = <Instruction *>PyMem_Malloc((self.length + 1) * sizeof(Instruction))
        self.inputs = <int *>PyMem_Malloc((self.n_inputs + 1) * sizeof(int))
        if self.program == NULL or self.inputs == NULL:
            raise MemoryError()
        self.kept, self.raised = list(instructions), tuple(raised)
        for k in range(self.length):
            op, a, b, key, expected, name = instructions[k]
            self.program[k].op, self.program[k].a, self.program[k].b = OPS[op], a, b
            self.program[k].key, self.program[k].expected = <PyObject *>key, <PyObject *>expected
            self.program[k].name = <PyObject *>name
            if self.program[k].op <= ITEM:
                self.values += 1
        for k in range(self.n_inputs):
            self.inputs[k] = inputs[k]

    def __dealloc__(self):
        PyMem_Free(self.program)
        PyMem_Free(self.inputs)

    def __len__(self):
        return self.length

    def __call__(self, tuple args not None):
        """The tuple of inputs, or None if a guard does not hold."""
        cdef Values v
        self.begin(&v)
        try:
            return self.inputs_of(&v) if self.met(PySequence_Fast_ITEMS(args), len(args), &v) else None
        finally:
            release(&v)

    cdef int begin(self, Values *v) except -1:
        """Makes room for the values of a check. Whoever calls this calls ``release``."""
        v.n, v.all = 0, v.few
        if self.values > FEW_VALUES:
            v.all = <PyObject **>PyMem_Malloc(self.values * sizeof(PyObject *))
            if v.all == NULL:
                raise MemoryError()
        return 0

    cdef tuple inputs_of(self, Values *v):
        cdef int k
        result = PyTuple_New(self.n_inputs)
        for k in range(self.n_inputs):
            x = <object>v.all[self.inputs[k]]
            Py_INCREF(x)
            PyTuple_SET_ITEM(result, k, x)
        return result

    cdef bint met(self, PyObject **args, Py_ssize_t n, Values *v) except -1:
        """Whether the guards hold in a call with ``n`` arguments. ``v`` gets the values that were read."""
        try:
            return self.holds(args, n, v)
        except self.raised:
            return False

    cdef bint holds(self, PyObject **args, Py_ssize_t n, Values *v) except -1:
        cdef Instruction *i
        cdef int k = -1, end = 0, latest = 0
        while True:
            k += 1
            if k == end and k:          # of what was asked of a class
                note_version(&self.program[latest])
            if k >= self.length:
                break
            i = &self.program[k]
            if i.op == CLASS:
                if i.a and (<PyTypeObject *>i.key).tp_version_tag == <unsigned int>i.a:
                    k += i.b
                else:
                    latest, end = k, k + i.b + 1
            elif not (step(i, args, n, v) if i.op <= EQUAL else condition(i, args, n, v.all)):
                return False
        return True


cdef void release(Values *v) noexcept:
    """Drops the values of a check."""
    cdef int k
    for k in range(v.n):
        Py_XDECREF(v.all[k])
    if v.all != v.few:
        PyMem_Free(v.all)


cdef tuple tuple_of(PyObject **args, Py_ssize_t n):
    cdef Py_ssize_t k
    made = PyTuple_New(n)
    for k in range(n):
        Py_INCREF(<object>args[k])
        PyTuple_SET_ITEM(made, k, <object>args[k])
    return made


cdef inline bint put(Values *v, PyObject *x) noexcept:
    """Puts a value, whose reference it takes over, into the next place. NULL: it is not there."""
    if x == NULL:
        return False
    v.all[v.n] = x
    v.n += 1
    return True


cdef bint step(Instruction *i, PyObject **args, Py_ssize_t n, Values *v) except -1:
    """Reads a value, or compares one without running code of others. Whether it is there, or equal."""
    cdef PyObject *x
    if i.op == ARGUMENT:
        if i.b >= n:
            return False
        Py_INCREF(<object>args[i.b])
        return put(v, args[i.b])
    elif i.op == CONSTANT:
        Py_INCREF(<object>i.key)
        return put(v, i.key)
    elif i.op == CELL:
        return put(v, PyCell_Get(<object>i.key))        # NULL: it is empty
    elif i.op == DICT:
        return put(v, PyObject_GenericGetDict(v.all[i.a], NULL))
    elif i.op == ATTRIBUTE:
        return put(v, PyObject_GetAttr(v.all[i.a], i.key))
    elif i.op == ITEM:
        if not PyDict_CheckExact(<object>v.all[i.a]):
            return put(v, PyObject_GetItem(v.all[i.a], i.key))
        x = PyDict_GetItemWithError(<object>v.all[i.a], <object>i.key)
        if x != NULL:
            Py_INCREF(<object>x)
        return put(v, x)
    elif i.op == LOOK:
        return (<Look>i.expected).holds(v.all[i.a])
    elif i.op == MODES:
        return (<Modes>i.expected).are_so()
    elif i.op == IS:
        return v.all[i.a] == i.expected
    elif i.op == TYPE:
        return <PyObject *>Py_TYPE(<object>v.all[i.a]) == i.expected
    elif i.op == CODE:
        return PyFunction_GET_CODE(<object>i.key) == i.expected
    elif i.op == DEFAULTS:
        x = PyFunction_GET_DEFAULTS(<object>i.key)
        return (x if x != NULL else <PyObject *>None) == i.expected
    elif i.op == ENTRY_IS:
        return PyDict_GetItemWithError(<object>i.key, <object>i.name) == i.expected
    elif i.op == OWN:                   # what a class itself has under a name
        return pt_type_own(<PyTypeObject *>i.key, <object>i.name) == i.expected
    elif i.op == FOREIGN:               # and that it has nothing
        return pt_type_own(<PyTypeObject *>i.key, <object>i.expected) == NULL
    elif i.op == ORDER:                 # of the bases of a class
        return (<PyTypeObject *>i.key).tp_mro == i.expected
    elif i.op == SAME:
        return v.all[i.a] == v.all[i.b]
    elif i.op == NOT_SAME:
        return v.all[i.a] != v.all[i.b]
    else:                               # EQUAL, of a plain class: nothing is run
        return (Py_TYPE(<object>v.all[i.a]) == Py_TYPE(<object>i.expected)
                and PyObject_RichCompareBool(<object>v.all[i.a], <object>i.expected, Py_EQ))


cdef bint condition(Instruction *i, PyObject **args, Py_ssize_t n, PyObject **values) except -1:
    cdef object x = <object>values[i.a], expected = <object>i.expected
    if i.op == LENGTH:
        return PyObject_Size(x) == i.b
    if i.op == HAS or i.op == HAS_NOT:
        if type(x) is dict:
            return PyDict_Contains(x, expected) == (i.op == HAS)
        return PySequence_Contains(x, expected) == (i.op == HAS)
    if i.op == KEYS:
        return has_keys(x, <list>expected)
    return bool((<object>i.key)(x, expected, tuple_of(args, n)))        # ASK


cdef void note_version(Instruction *i) noexcept:
    """Keeps the interpreter's version of a class: a write to it or to a base of it takes the version away. 0: none."""
    i.a = <int>(<PyTypeObject *>i.key).tp_version_tag


cdef bint has_keys(object x, list keys) except -1:
    """Whether these are the keys of a dictionary that iterates as ``dict`` does, in their order."""
    cdef Py_ssize_t at = 0, k = 0, n = len(keys)
    cdef PyObject *key = NULL
    cdef PyObject *value = NULL
    if not isinstance(x, dict) or PyDict_Size(x) != n:
        return False
    while PyDict_Next(x, &at, &key, &value):
        if k >= n:
            return False
        wanted = keys[k]
        if key != <PyObject *>wanted and not (Py_TYPE(<object>key) == Py_TYPE(wanted)
                                              and PyObject_RichCompareBool(<object>key, wanted, Py_EQ)):
            return False
        k += 1
    return True
