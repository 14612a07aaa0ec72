"""The entry of compiled functions in C: guards are checked, a captured segment runs, and its results are handed out.

``Entry`` is the base of ``compiled.Compiled``, which has the rest of the work in Python: calls that no captured segment
answers (``otherwise``, ``eagerly``), and calls that read values between segments (``run_segments``). ``Part`` and
``Results`` are the bases of ``Segment`` and ``Template`` in ``capture/session.py``.

Between the user's call and the kernels no frame of Python is made where a call has one segment, no effects, and plans.
"""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.sequence cimport PySequence_Fast_ITEMS
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

from ptcore._types cimport *
from ptcore._ops.plan.pair cimport Runner
from ptcore.jit._check cimport Check, Values, release, tuple_of

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
    ctypedef struct PyTypeObject:
        pass
    void Py_CLEAR(PyObject *)
    Py_ssize_t PyVectorcall_NARGS(size_t)
    object PyMethod_New(object, object)
    ctypedef PyObject *(*vectorcallfunc)(PyObject *, PyObject *const *, size_t, PyObject *)

cdef enum:
    FEW = 32                        # inputs that need no tuple

cdef enum:
    ANY, ONE, TUPLE                 # kinds of results

stance = {"now": "default"}         # of all compiled functions: see compiler.set_stance
cdef bint all_eagerly = False       # whether it is "force_eager"
cdef int left_threads = 0           # how many threads are left to Python
cdef object region = None           # what makes a range of a profile for a call, while there is one
cdef object NOT_HELD = object()


def leave_to_python(bint on):
    """Whether compiled functions that this thread calls run as they are written."""
    global pt_left_to_python, left_threads
    left_threads += on - pt_left_to_python
    pt_left_to_python = on


def is_left_to_python():
    """Whether compiled functions that this thread calls run as they are written."""
    return pt_left_to_python != 0


def told(name, value):
    """Hears of a change of ``stance``."""
    global all_eagerly
    all_eagerly = value == "force_eager"


def record_regions(make):
    """``make(entry)`` begins a range of a profile; None ends the profile."""
    global region
    region = make


@cython.binding(False)                  # so that methods check their self
cdef class Results:
    """How the user's result is made of a segment's results.

    Attributes
    ----------
    places : int or tuple of int, or None
        The result that it is, or those of which it is a tuple. None: ``build(results, args)`` makes it.
    """
    cdef readonly object places
    cdef int kind
    cdef Py_ssize_t place

    def __init__(self, places=None):
        self.places, self.place = places, places if type(places) is int else -1
        self.kind = ANY if places is None else TUPLE if type(places) is tuple else ONE

    cdef object made(self, object results, PyObject **args, Py_ssize_t n):
        cdef Py_ssize_t k
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
        return self.build(results, tuple_of(args, n))


@cython.binding(False)                  # so that methods check their self
cdef class Guards:
    """The base of ``Program`` in ``capture/guards.py``.

    Attributes
    ----------
    check : callable
        Gives the tuple of inputs for the tuple of a call's arguments, or None. A ``Check`` after some calls.
    """
    cdef public object check


@cython.binding(False)                  # so that methods check their self
cdef class Part:
    """What a call needs of a segment.

    Attributes
    ----------
    program : Program
        Its guards.
    run : callable
        Takes some of the inputs, gives a tuple of results. None: the function runs eagerly.
    places : tuple of int or None
        Which inputs ``run`` takes, or None for all as they are.
    asks : str or None
        How the first result is read before other segments follow.
    effects : list
        What is done behind the rows.
    template : Results
    start_grad, entry_grad, exit_grad : bool
        The grad modes that the guards require, of the rows, and behind the call.
    """
    cdef public Guards program
    cdef public object run, asks
    cdef public Results template
    cdef public tuple places
    cdef public list effects
    cdef public bint start_grad, entry_grad, exit_grad


@cython.binding(False)                  # so that methods check their self
cdef class Entry:
    """The captured variants of a function, as a callable.

    Attributes
    ----------
    forms : dict
        The number of arguments, or that of those by position and the names of the others -> a list of ``Part``.
    is_full : bool
        Whether all later calls run eagerly.
    """
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
        """The result of a call with ``n`` arguments by position; those by keyword follow them."""
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
        if not self.is_full and not all_eagerly and not (left_threads and pt_left_to_python):
            variants = self.variants_for(n, names)
            if variants is not None:
                for part in variants:
                    result = self.by(part, args, n, all, names)
                    if result is not NOT_HELD:
                        return result
        return self.otherwise(tuple_of(args, n), keywords(args, n, names))

    cdef list variants_for(self, Py_ssize_t n, tuple names):
        """The variants of calls with so many arguments and these keywords, or None."""
        if names is not None:
            return self.forms.get((n, names))
        if self.latest is None or self.latest_n != n or self.latest_forms is not self.forms:
            self.latest_forms, self.latest_n, self.latest = self.forms, n, self.forms.get(n)
        return self.latest

    cdef object by(self, Part part, PyObject **args, Py_ssize_t n, Py_ssize_t all, tuple names):
        """The result by a variant, or NOT_HELD."""
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
            if check.n_inputs > FEW or part.effects or part.asks is not None:
                inputs = check.inputs_of(&v)
                return self.follow(part, PySequence_Fast_ITEMS(inputs), len(inputs), inputs, args, n, all, names)
            for k in range(check.n_inputs):
                few[k] = v.all[check.inputs[k]]
            return self.follow(part, few, check.n_inputs, None, args, n, all, names)
        finally:
            release(&v)

    cdef object follow(self, Part part, PyObject **inputs, Py_ssize_t m, tuple held, PyObject **args, Py_ssize_t n,
                       Py_ssize_t all, tuple names):
        """The result by a segment whose guards hold. ``held``: its inputs where it has effects or reads values."""
        cdef (PyObject *)[FEW] few
        cdef PyObject **given = inputs
        cdef tuple more
        cdef Py_ssize_t k
        if part.run is None:
            return self.eagerly(tuple_of(args, n), keywords(args, n, names))
        if part.asks is not None:
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
                results = (<Runner>part.run).called(given, m)
            else:
                results = part.run(*tuple_of(given, m))
            if part.effects:
                for effect in part.effects:
                    effect.perform(held, results)
            pt_tls.grad_enabled = part.exit_grad        # rows may have changed the mode
            return part.template.made(results, args, all)
        except BaseException:
            pt_tls.grad_enabled = part.start_grad
            raise


cdef dict keywords(PyObject **args, Py_ssize_t n, tuple names):
    """The arguments by keyword, which stand behind the ``n`` others."""
    cdef Py_ssize_t k
    return {} if names is None else {names[k]: <object>args[n + k] for k in range(len(names))}


@cython.binding(False)                  # so that methods check their self
cdef class CompiledFunction:
    """What ``compile`` makes of a function: it has the names and the text of that, and attributes of its own."""
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
        """pickle and copy look it up by its name, as functions."""
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
