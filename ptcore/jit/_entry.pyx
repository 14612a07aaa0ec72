"""The entry of compiled functions in C: guards are checked, a captured segment runs, and its results are handed out.

``Check`` is the compiled form of ``Program`` in ``capture/guards.py``: instructions over a row of values. An
instruction reads a value from others and puts it into the next place, or compares values. The first comparison that
fails ends the check. All values are held until the call has returned, as a read may run the user's code.

``Entry`` is the base of ``compiled.Compiled``, which does the remaining work in Python: calls that no captured segment
answers (``otherwise``, ``eagerly``), and calls that read values between segments (``run_segments``). ``Part`` and
``Results`` are the bases of ``Segment`` and ``Template`` in ``capture/session.py``.

A call with one segment and plans makes no Python frame between the user's call and the kernels. Effects (``Effect``)
make those of the methods that they call.
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
from ptcore._ops.plan.pair cimport Runner, use_up
from ptcore.autograd.accumulate import accumulate_results

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

# The kinds of instructions; `a` and `b` are places of values, `key` and `expected` objects.
cdef enum Op:
    ARGUMENT, CONSTANT, CELL, DICT, ATTRIBUTE, ITEM,                                    # make a value
    LOOK, MODES, IS, TYPE, CODE, DEFAULTS, ENTRY_IS, OWN, FOREIGN, ORDER, SAME, NOT_SAME, EQUAL,
    LENGTH, HAS, HAS_NOT, KEYS, ASK, CLASS

OPS = {name: k for k, name in enumerate(
    ("argument", "constant", "cell", "dict", "attribute", "item", "look", "modes", "is", "type", "code", "defaults",
     "entry is", "own", "foreign", "order", "same", "not same", "equal", "length", "has", "has not", "keys", "ask",
     "class"))}


@cython.binding(False)                  # so that methods check their self
def memory_of(Tensor x not None):
    """The address of a tensor's storage, for comparisons alone: unlike ``data_ptr()`` it lets the memory move."""
    return <size_t>x.storage.data


cdef bint is_hooked(Tensor t) except -1:
    """Whether a tensor that requires grad has hooks on its gradient."""
    cdef object extras = t.extras
    cdef Node node = grad_fn_of(t) if t.flags & PT_VIEW else t.node
    if extras is not None and ((<TensorExtras>extras).hooks or (<TensorExtras>extras).post_hooks):
        return True
    return node is not None and node.hooks is not None


@cython.binding(False)
def has_gradient_hooks(Tensor t not None):
    """Whether hooks see the gradient of a tensor."""
    return bool(t.requires_grad and is_hooked(t))


cdef class Look:
    """The properties of a tensor without symbols that a captured program relies on: all but its values."""

    def __init__(self, Tensor t not None):
        self.cls, self.rank, self.dt = type(t), t.rank, t.dt
        self.column, self.number = t.storage.device, t.storage.device_index
        self.needs_grad, self.is_leaf, self.is_hooked = t.requires_grad, t.is_leaf, has_gradient_hooks(t)
        self.dims = <int64_t *>PyMem_Malloc((2 * t.rank + 1) * sizeof(int64_t))
        if self.dims == NULL:
            raise MemoryError()
        memcpy(self.dims, t.dims, 2 * t.rank * sizeof(int64_t))

    def __dealloc__(self):
        PyMem_Free(self.dims)

    def matches(self, t):
        """Whether a tensor has the same properties."""
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
        return not asks or ((t.node is None if not t.flags & PT_VIEW else grad_fn_of(t) is None) == self.is_leaf
                            and is_hooked(t) == self.is_hooked)


@cython.binding(False)
cdef class Modes:
    """The thread's state that a program can query without reading a value, as it is when this object is made."""

    def __init__(self):
        self.grad, self.inference, self.word = pt_tls.grad_enabled, pt_tls.inference, pt_tls.mode
        self.device_set, self.dtype, self.device = pt_tls.device_set, default_float(), get_default_device()
        self.autocast, self.autocast_uncached = pt_tls.autocast, pt_tls.autocast_uncached
        memcpy(self.autocast_dtype, pt_tls.autocast_dtype, 8)

    def __repr__(self):
        return f"(grad {self.grad}, inference {self.inference}, {self.word}, {dtype_of(self.dtype)}, {self.device})"

    def hold(self):
        """Whether the state is the same now."""
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
cdef class Handed:
    """What a function that runs eagerly calls in the place of ``f``: ``part_of(f, args)``, or ``f`` if that is None."""
    cdef object part_of, f

    def __init__(self, part_of, f):
        self.part_of, self.f = part_of, f

    def __call__(self, *args, **kwargs):
        part = self.part_of(self.f, args)
        return self.f(*args, **kwargs) if part is None else part(*args, **kwargs)

    def __str__(self):
        """The name of ``f`` as Python writes it into errors of calls."""
        name, module = getattr(self.f, "__qualname__", None), getattr(self.f, "__module__", None)
        if name is None:
            return str(self.f)
        return f"{name}()" if module is None or module == "builtins" else f"{module}.{name}()"


@cython.binding(False)
cdef class Check:
    """A check of one segment's guards.

    Parameters
    ----------
    instructions : list of (op, a, b, key, expected, name)
        ``op`` is a name of ``OPS``. "class" has the number of the next instructions, which check the class ``key``
        and its bases: they are skipped while the interpreter's version of the class stays the same.
    inputs : list of int
        The places of the values that the check returns.
    raised : tuple of exception classes
        The errors of a read that mean that a guard does not hold.
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
        """Whether the guards hold for a call with ``n`` arguments. ``v`` gets the values that were read."""
        try:
            return self.holds(args, n, v)
        except self.raised:
            return False

    cdef bint holds(self, PyObject **args, Py_ssize_t n, Values *v) except -1:
        cdef Instruction *i
        cdef int k = -1, end = 0, latest = 0
        while True:
            k += 1
            if k == end and k:          # the end of the instructions that check a class
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
    """Puts a value into the next place and takes over its reference. NULL: the value does not exist."""
    if x == NULL:
        return False
    v.all[v.n] = x
    v.n += 1
    return True


cdef bint step(Instruction *i, PyObject **args, Py_ssize_t n, Values *v) except -1:
    """Reads a value, or compares one without running foreign code. Returns whether it exists, or is equal."""
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
        return put(v, PyCell_Get(<object>i.key))        # NULL: the cell is empty
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
    elif i.op == OWN:                   # an attribute in the class's own dict
        return pt_type_own(<PyTypeObject *>i.key, <object>i.name) == i.expected
    elif i.op == FOREIGN:               # an attribute that the class's own dict lacks
        return pt_type_own(<PyTypeObject *>i.key, <object>i.expected) == NULL
    elif i.op == ORDER:                 # the method resolution order of a class
        return (<PyTypeObject *>i.key).tp_mro == i.expected
    elif i.op == SAME:
        return v.all[i.a] == v.all[i.b]
    elif i.op == NOT_SAME:
        return v.all[i.a] != v.all[i.b]
    else:                               # EQUAL, for plain classes: no foreign code is run
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
    """Keeps the interpreter's version of a class; a write to the class or to a base invalidates it. 0: none."""
    i.a = <int>(<PyTypeObject *>i.key).tp_version_tag


cdef bint has_keys(object x, list keys) except -1:
    """Whether a dictionary, which iterates as ``dict`` does, has these keys in this order."""
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

# -- the entry ---------------------------------------------------------------------------------------

cdef extern from *:
    """
    static thread_local int pt_left_to_python = 0;

    /* Lets a class be called by the vectorcall at this offset, and methods of it be called without a bound object. */
    static inline void pt_give_vectorcall(PyObject *cls, Py_ssize_t offset) {
        ((PyTypeObject *)cls)->tp_vectorcall_offset = offset;
        ((PyTypeObject *)cls)->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
    }
    """
    int pt_left_to_python           # whether calls of this thread run as they are written
    void pt_give_vectorcall(object, Py_ssize_t)

cdef extern from "_instance_dict.h":
    void pt_add_instance_dict(PyTypeObject *, Py_ssize_t)

cdef extern from "Python.h":
    void Py_CLEAR(PyObject *)
    Py_ssize_t PyVectorcall_NARGS(size_t)
    object PyMethod_New(object, object)
    object PyObject_Vectorcall(object, PyObject **, size_t, PyObject *)
    object PyObject_VectorcallMethod(object, PyObject **, size_t, PyObject *)
    ctypedef PyObject *(*vectorcallfunc)(PyObject *, PyObject *const *, size_t, PyObject *)

cdef enum:
    FEW = 32                        # up to this many inputs need no tuple

cdef enum:
    ANY, ONE, TUPLE                 # kinds of results

stance = {"now": "default"}         # for all compiled functions: see compiler.set_stance
cdef bint all_eagerly = False       # whether the stance is "force_eager"
cdef int left_threads = 0           # number of threads with calls left to Python
cdef object region = None           # makes the range of a profile for a call; None without a profile
cdef object NOT_HELD = object()


def leave_to_python(bint on):
    """Sets whether compiled functions run as written, without compilation, in this thread."""
    global pt_left_to_python, left_threads
    left_threads += on - pt_left_to_python
    pt_left_to_python = on


def is_left_to_python():
    """Whether compiled functions run as written, without compilation, in this thread."""
    return pt_left_to_python != 0


def told(name, value):
    """Called after a change of ``stance``."""
    global all_eagerly
    all_eagerly = value == "force_eager"


def record_regions(make):
    """Sets ``make(entry)``, which begins a range of a profile; None after the profile's end."""
    global region
    region = make


@cython.binding(False)                  # so that methods check their self
cdef class Results:
    """How the user's result is built from a segment's results.

    Attributes
    ----------
    places : int or tuple of int, or None
        The place of the result, or those of a tuple of results. None: ``make(form, results, args, {})`` makes it.
    form
        Describes a result that Python builds.
    used_up : tuple of int
        The places of the results whose history the program has freed.
    """
    cdef readonly object places, form
    cdef readonly tuple used_up
    cdef int kind
    cdef Py_ssize_t place
    cdef bint is_first                  # whether the first result is the user's, as it is

    def __init__(self, places, form, used_up):
        self.places, self.place = places, places if type(places) is int else -1
        self.form, self.used_up = form, used_up
        self.is_first = self.place == 0 and not used_up
        self.kind = ANY if places is None else TUPLE if type(places) is tuple else ONE

    def build(self, results, tuple args not None):
        """The user's result of a segment's results, in a call with these arguments."""
        return self.made(results, PySequence_Fast_ITEMS(args), len(args))

    cdef object made(self, object results, PyObject **args, Py_ssize_t n):
        cdef Py_ssize_t k
        if self.used_up:
            use_up(results, self.used_up)
        if self.kind == ONE:
            if type(results) is tuple and self.place < len(<tuple>results):
                return (<tuple>results)[self.place]
            return results[self.place]
        if self.kind == TUPLE:
            made = PyTuple_New(len(<tuple>self.places))
            for k in range(len(<tuple>self.places)):
                x = results[<Py_ssize_t>(<tuple>self.places)[k]]
                Py_INCREF(x)
                PyTuple_SET_ITEM(made, k, x)
            return made
        return self.make(self.form, results, tuple_of(args, n), {})


# The bases of the effects in ``capture/effects.py``. ``perform`` gives what the effect returns.
@cython.binding(False)                  # so that methods check their self
cdef class Effect:
    """Something that follows the rows of a segment."""

    def perform(self, tuple inputs not None, results):
        return self.performed(inputs, results)

    cdef object performed(self, tuple inputs, object results):
        raise NotImplementedError


@cython.binding(False)
cdef class AddGradients(Effect):
    """Adds results[results[k]] to the gradient of the leaf inputs[leaves[k]]."""
    cdef public object leaves, results

    cdef object performed(self, tuple inputs, object results):
        accumulate_results(inputs, self.leaves, results, self.results)


@cython.binding(False)
cdef class PutGradient(Effect):
    """Sets the gradient of the leaf inputs[leaf] to None or to results[value]."""
    cdef public object leaf, value

    cdef object performed(self, tuple inputs, object results):
        inputs[self.leaf].grad = None if self.value is None else results[self.value]


@cython.binding(False)
cdef class CallMethod(Effect):
    """Calls the method ``name`` of inputs[owner]. ``plain``: without arguments; else ``given(results)`` has them."""
    cdef public object owner, name
    cdef public bint plain

    cdef object performed(self, tuple inputs, object results):
        cdef PyObject *owner
        x = inputs[self.owner]
        if self.plain:
            owner = <PyObject *>x
            return PyObject_VectorcallMethod(self.name, &owner, 1, NULL)
        args, kwargs = self.given(results)
        return getattr(x, self.name)(*args, **kwargs)


@cython.binding(False)                  # so that methods check their self
cdef class Guards:
    """The base of ``Program`` in ``capture/guards.py``.

    Attributes
    ----------
    check : callable
        Maps the tuple of a call's arguments to the tuple of inputs, or None. After some calls it is a ``Check``.
    """
    cdef public object check


@cython.binding(False)                  # so that methods check their self
cdef class Part:
    """A segment's data for a call.

    Attributes
    ----------
    program : Program
        Its guards.
    run : callable
        Maps some of the inputs to a tuple of results. None: the function runs eagerly.
    places : tuple of int or None
        The inputs that ``run`` takes; None: all of them, unchanged.
    asks : str or None
        How the first result is read to choose the segments that follow.
    watched : bool
        Whether the program may handle an error of ``run``. Then Python goes on.
    effects : list of Effect
        What is performed after the rows.
    template : Results
    start_grad, entry_grad, exit_grad : bool
        The grad modes that the guards require, of the rows, and after the call.
    """
    cdef public Guards program
    cdef public object run, asks
    cdef public Results template
    cdef public tuple places
    cdef public list effects
    cdef public bint start_grad, entry_grad, exit_grad, watched


@cython.binding(False)                  # so that methods check their self
cdef class Entry:
    """The captured variants of a function, as a callable.

    Attributes
    ----------
    forms : dict
        Maps the number of arguments, or (number of positional ones, names of the others), to a list of ``Part``.
    is_full : bool
        Whether all later calls run eagerly.
    direct : callable or None
        What all later calls call, with nothing in between.
    """
    cdef public object direct
    cdef public dict forms
    cdef public bint is_full
    cdef dict latest_forms              # of the latest call without keywords: ``forms``, its key, and its variants
    cdef Py_ssize_t latest_n
    cdef list latest

    def __call__(self, *args, **kwargs):
        if not kwargs:
            return self.answer(PySequence_Fast_ITEMS(args), len(args), len(args), None)
        flat = (*args, *kwargs.values())
        return self.answer(PySequence_Fast_ITEMS(flat), len(args), len(flat), tuple(kwargs))

    cdef object answer(self, PyObject **args, Py_ssize_t n, Py_ssize_t all, tuple names):
        """The result of a call with ``n`` positional arguments, which keyword arguments follow."""
        if region is None:
            return self.unrecorded(args, n, all, names)
        event = region(self)
        try:
            return self.unrecorded(args, n, all, names)
        finally:
            event.end()

    cdef object unrecorded(self, PyObject **args, Py_ssize_t n, Py_ssize_t all, tuple names):
        cdef Part part
        cdef list variants
        if self.direct is not None:
            return PyObject_Vectorcall(self.direct, args, n, <PyObject *>names if names is not None else NULL)
        if not self.is_full and not all_eagerly and not (left_threads and pt_left_to_python):
            variants = self.variants_for(n, names)
            if variants is not None:
                for part in variants:
                    result = self.by(part, args, n, all, names)
                    if result is not NOT_HELD:
                        return result
        return self.otherwise(tuple_of(args, n), keywords(args, n, names))

    cdef list variants_for(self, Py_ssize_t n, tuple names):
        """The variants for calls with this number of arguments and these keywords, or None."""
        if names is not None:
            return self.forms.get((n, names))
        if self.latest is None or self.latest_n != n or self.latest_forms is not self.forms:
            self.latest_forms, self.latest_n, self.latest = self.forms, n, self.forms.get(n)
        return self.latest

    cdef object by(self, Part part, PyObject **args, Py_ssize_t n, Py_ssize_t all, tuple names):
        """The result of a variant, or NOT_HELD."""
        cdef Values v
        cdef (PyObject *)[FEW] few
        cdef Check check
        cdef tuple inputs = None
        cdef int k
        asked = part.program.check
        if type(asked) is not Check:
            inputs = asked(tuple_of(args, all))
            if inputs is None:
                return NOT_HELD
            return self.follow(part, PySequence_Fast_ITEMS(inputs), len(inputs), inputs, args, n, all, names)
        check = <Check>asked
        check.begin(&v)
        try:
            if not check.met(args, all, &v):
                return NOT_HELD
            if check.n_inputs > FEW or part.effects or part.watched or part.asks is not None:
                inputs = check.inputs_of(&v)
                return self.follow(part, PySequence_Fast_ITEMS(inputs), len(inputs), inputs, args, n, all, names)
            for k in range(check.n_inputs):
                few[k] = v.all[check.inputs[k]]
            return self.follow(part, few, check.n_inputs, None, args, n, all, names)
        finally:
            release(&v)

    cdef object follow(self, Part part, PyObject **inputs, Py_ssize_t m, tuple held, PyObject **args, Py_ssize_t n,
                       Py_ssize_t all, tuple names):
        """The result of a segment whose guards hold. ``held``: its inputs if it has effects or reads values."""
        cdef (PyObject *)[FEW] few
        cdef PyObject **given = inputs
        cdef tuple more
        cdef Py_ssize_t k
        cdef Effect effect
        cdef bint alone = False
        if part.run is None:
            return self.eagerly(tuple_of(args, n), keywords(args, n, names))
        if part.asks is not None or part.watched:
            return self.run_segments(part, held, tuple_of(args, all), tuple_of(args, n), keywords(args, n, names))
        if part.places is not None:
            m = len(part.places)
            if m <= FEW:
                for k in range(m):
                    few[k] = inputs[<Py_ssize_t>part.places[k]]
                given = few
            else:
                more = tuple([<object>inputs[<Py_ssize_t>k] for k in part.places])
                given = PySequence_Fast_ITEMS(more)
        try:
            if part.entry_grad != part.start_grad:
                pt_tls.grad_enabled = part.entry_grad
            if type(part.run) is Runner:
                if part.template.is_first and not part.effects:
                    results = (<Runner>part.run).called(given, m, &alone)
                else:
                    results = (<Runner>part.run).called(given, m, NULL)
            else:
                results = part.run(*tuple_of(given, m))
            if part.effects:
                for effect in part.effects:
                    effect.performed(held, results)
            pt_tls.grad_enabled = part.exit_grad        # rows may have changed the mode
            return results if alone else part.template.made(results, args, all)
        except BaseException:
            pt_tls.grad_enabled = part.start_grad
            raise


cdef dict keywords(PyObject **args, Py_ssize_t n, tuple names):
    """The keyword arguments, which follow the ``n`` positional ones."""
    cdef Py_ssize_t k
    return {} if names is None else {names[k]: <object>args[n + k] for k in range(len(names))}


@cython.binding(False)                  # so that methods check their self
cdef class CompiledFunction:
    """The result of ``compile`` for a function: it has the function's names and docstring, and its own attributes."""
    cdef vectorcallfunc vectorcall
    cdef readonly Entry _compiled
    cdef readonly object _captured_as
    cdef PyObject *attributes       # the user's own: a dict, or NULL; see _instance_dict.h
    cdef object __weakref__

    def __cinit__(self):
        self.vectorcall = <vectorcallfunc>called

    def __dealloc__(self):
        Py_CLEAR(self.attributes)

    def __init__(self, Entry compiled not None, captured_as):
        self._compiled, self._captured_as = compiled, captured_as

    def __call__(self, *args, **kwargs):
        return self._compiled(*args, **kwargs)

    def __get__(self, instance, owner):
        return self if instance is None else PyMethod_New(self, instance)

    def __repr__(self):
        return f"<compiled function {self.__qualname__} at {id(self):#x}>"

    def __reduce__(self):
        """The name by which pickle and copy look the object up, as they do for functions."""
        return self.__qualname__


cdef object called(CompiledFunction self, PyObject **args, size_t nargsf, PyObject *names):
    cdef Py_ssize_t n = PyVectorcall_NARGS(nargsf)
    if names == NULL:
        return self._compiled.answer(args, n, n, None)
    return self._compiled.answer(args, n, n + len(<tuple>names), <tuple>names if len(<tuple>names) else None)


cdef void complete_type():
    cdef CompiledFunction f = CompiledFunction.__new__(CompiledFunction)
    pt_give_vectorcall(CompiledFunction, <char *>&f.vectorcall - <char *><PyObject *>f)
    pt_add_instance_dict(<PyTypeObject *>CompiledFunction, <char *>&f.attributes - <char *><PyObject *>f)


complete_type()
