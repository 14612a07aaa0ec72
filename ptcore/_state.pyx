"""Modes as Python sees them: grad mode, inference mode, the stacks of a thread, and the base of contexts.

Grad modes also decorate functions and generator functions, with or without parentheses, as in PyTorch.
"""
cimport cython
from cpython.object cimport PyObject
from ptcore._types cimport *

cdef extern from "Python.h":
    PyObject *PyThreadState_GetDict()


# -- the stacks of a thread ------------------------------------------------------------------------

@cython.final
cdef class Stacks:
    """The contexts that a thread has entered, the innermost last in each list.

    The thread's state dict in Python owns this object, ``pt_tls.stacks`` borrows it. It lives as long as that dict, and
    C code finds it without a lookup.
    """

    def __cinit__(self):
        self.interpreters, self.functions, self.hooks, self.refusals = [], [], [], []
        self.named, self.settings, self.casts = {}, {}, {}

    def __dealloc__(self):
        # At a thread's end, or after a fork for a thread that the child lacks: then pt_tls is another thread's.
        if pt_tls.stacks == <void *>self:
            pt_tls.stacks = NULL
            pt_tls.mode &= ~<uint32_t>(PT_INTERPOSED | PT_MODE_FUNCTION | PT_MODE_SAVED_HOOKS)


cdef Stacks new_stacks():
    cdef PyObject *owner = PyThreadState_GetDict()
    cdef Stacks made = Stacks.__new__(Stacks)
    if owner == NULL:
        raise RuntimeError("ptcore: the thread has no state of Python")
    (<dict>owner)["ptcore.stacks"] = made
    pt_tls.stacks = <void *>made
    return made


cdef list interpreter_stack():
    """This thread's interpreters, the innermost last."""
    return stacks().interpreters


cdef list saved_hooks():
    """This thread's pairs of saved-tensor hooks, the innermost last. The list is nonempty exactly if the thread's
    mode word has PT_MODE_SAVED_HOOKS."""
    return stacks().hooks


def innermost_saved_hooks():
    """The pair (pack, unpack) that handles this thread's saved tensors, or None."""
    return saved_hooks()[-1] if pt_tls.mode & PT_MODE_SAVED_HOOKS else None


def function_modes():
    """This thread's modes of ``__torch_function__``, the innermost last."""
    return stacks().functions


def stack(str name):
    """This thread's stack with a name that an upper layer chose, the innermost last; see ``Listed``."""
    return stacks().named.get(name, ())


def setting(str name, default=None):
    """This thread's value of a setting with a name that an upper layer chose; see ``Changed``."""
    return stacks().settings.get(name, default)


def set_setting(str name, value):
    """Changes a setting of this thread."""
    stacks().settings[name] = value


cdef int push(list stack, object item, uint32_t bit) except -1:
    stack.append(item)
    set_bit(bit, True)
    return 0


cdef int drop(list stack, object item, uint32_t bit) except -1:
    """Removes the innermost ``item``; contexts may be left in another order than they were entered."""
    cdef Py_ssize_t k = len(stack) - 1
    if k >= 0 and stack[k] is item:
        stack.pop()
    else:
        while k >= 0 and stack[k] is not item:
            k -= 1
        if k >= 0:
            del stack[k]
    set_bit(bit, len(stack) > 0)
    return 0


# -- contexts --------------------------------------------------------------------------------------

@cython.final
@cython.freelist(16)
cdef class Note:
    """The state that a context replaced when it was entered."""


@cython.binding(False)                  # so that methods check their self
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class Mode:
    """The base of contexts that change what ops do.

    A subclass has two methods in C: ``begin`` makes the change and returns the data that ``end`` needs to undo it. The
    data are kept in the state of the thread that entered: a context can be entered again, also by several threads
    at once.

    Invariant: no Python code runs between the change and the return of ``__enter__``, nor between the call of
    ``__exit__`` and the undoing. Signals are handled between Python instructions, so that an interrupt comes
    before or after each of the two; and ``with`` has no instruction between the return of ``__enter__`` and the block
    that ends with ``__exit__``. A Python subclass that adds a step before the change overrides ``_prepare``, and never
    ``__enter__``.
    """

    cdef object begin(self):
        raise NotImplementedError(f"{type(self).__name__} changes nothing")

    cdef int end(self, object before) except -1:
        return 0

    cdef object found(self):
        """Makes the change; returns the state to go back to."""
        return self.begin()

    cdef object given(self):
        """The object that ``as`` binds."""
        return None

    cdef bint is_shared(self):
        """Whether the change affects the process: then the context keeps the old state, and any thread may leave it."""
        return False

    cdef bint prepares(self):
        return False

    def _prepare(self):
        """The step before the change; may raise."""

    def __enter__(self):
        cdef Note note = Note.__new__(Note)     # before the change: after it, nothing can fail
        cdef Stacks mine
        note.context = self
        if self.prepares():
            self._prepare()
        if self.is_shared():
            note.before = self.found()
            note.outer, self.own = self.own, note
        else:
            mine = stacks()
            note.before = self.found()
            note.outer, mine.entered = mine.entered, note
        return self.given()

    def __exit__(self, kind=None, value=None, trace=None):
        cdef Stacks mine = None if self.is_shared() else stacks()
        cdef Note note = self.own if mine is None else mine.entered, inner = None
        while note is not None and note.context is not self:
            inner, note = note, note.outer
        if note is None:
            raise RuntimeError(f"{type(self).__name__}: left without having been entered on this thread")
        self.end(note.before)
        if inner is not None:
            inner.outer = note.outer
        elif mine is None:
            self.own = note.outer
        else:
            mine.entered = note.outer

    def __getstate__(self):
        return getattr(self, "__dict__", None)


@cython.binding(False)                  # so that methods check their self
cdef class Switch(Mode):
    """A context with a change that can also be made at once: then the block's end goes back to the state before it."""

    def _switch(self):
        """Makes the change now, for good or until a block with this context ends."""
        self.first = self.begin()

    def _undo(self):
        """Undoes ``_switch``."""
        first, self.first = self.first, None
        if first is not None:
            self.end(first)

    cdef object found(self):
        before = self.begin()
        return before if self.first is None else self.first


# -- grad mode -------------------------------------------------------------------------------------

def decorate(manager, function):
    """``function`` run under a fresh copy of manager at each call (at each step of a generator)."""
    import functools
    import inspect
    if isinstance(function, type):
        raise TypeError("grad modes decorate functions, not classes")
    if inspect.isgeneratorfunction(function):
        @functools.wraps(function)
        def stepped(*args, **kwargs):
            generator = function(*args, **kwargs)
            value, error = None, None
            while True:
                try:
                    with manager.clone():
                        value = (generator.throw(error) if error is not None
                                 else generator.send(value))
                except StopIteration as stop:
                    return stop.value
                error = None
                try:
                    value = yield value
                except GeneratorExit:
                    with manager.clone():
                        generator.close()
                    raise
                except BaseException as e:
                    error = e
        return stepped

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        with manager.clone():
            return function(*args, **kwargs)
    wrapped._mode = manager                 # for code that inspects functions
    return wrapped


@cython.binding(False)                  # so that methods check their self
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class GradMode:
    """The shared part of no_grad, enable_grad and set_grad_enabled."""
    cdef uint8_t wanted, before

    def __enter__(self):
        self.before = is_grad_enabled()
        put_grad_enabled(self.wanted)

    def __exit__(self, kind, value, trace):
        put_grad_enabled(self.before)

    def __call__(self, function):
        return decorate(self, function)

    def clone(self):
        return type(self)()


class no_grad(GradMode):
    """Context manager and decorator: operations inside are not recorded.

    Examples
    --------
    >>> import ptcore
    >>> x = ptcore.ones(1, requires_grad=True)
    >>> with ptcore.no_grad():
    ...     y = 2 * x
    >>> y.requires_grad
    False
    """
    __slots__ = ()

    def __new__(cls, function=None):
        cdef GradMode mode = GradMode.__new__(cls)
        return mode if function is None else decorate(mode, function)


class enable_grad(GradMode):
    """Context manager and decorator: operations inside are recorded again under no_grad."""
    __slots__ = ()

    def __new__(cls, function=None):
        cdef GradMode mode = GradMode.__new__(cls)
        mode.wanted = 1
        return mode if function is None else decorate(mode, function)


@cython.binding(False)                  # so that methods check their self
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class set_grad_enabled(GradMode):
    """Switches recording on or off, at once and, as a context manager, for a block."""
    def __cinit__(self, mode):
        self.wanted = bool(mode)
        self.before = is_grad_enabled()
        put_grad_enabled(self.wanted)

    def __enter__(self):
        put_grad_enabled(self.wanted)

    def __call__(self, function):
        put_grad_enabled(self.before)
        return decorate(self, function)

    def clone(self):
        return set_grad_enabled(self.wanted)


@cython.binding(False)                  # so that methods check their self
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class InferenceMode:
    """The implementation of inference_mode."""
    cdef uint8_t wanted, before, before_grad

    def __enter__(self):
        self.before = pt_tls.inference
        self.before_grad = pt_tls.grad_enabled
        pt_tls.inference = INFERENCE if self.wanted else 0
        pt_tls.grad_enabled = not self.wanted

    def __exit__(self, kind, value, trace):
        pt_tls.inference = self.before
        pt_tls.grad_enabled = self.before_grad

    def __call__(self, function):
        return decorate(self, function)

    def clone(self):
        return inference_mode(bool(self.wanted))


class inference_mode(InferenceMode):
    """Context manager and decorator: no recording, and results that never join a graph.

    Parameters
    ----------
    mode : bool or callable
        False leaves inference mode for a block, with recording on. A function is decorated.
    """
    __slots__ = ()

    def __new__(cls, mode=True):
        cdef InferenceMode made = InferenceMode.__new__(cls)
        if callable(mode):
            made.wanted = 1
            return decorate(made, mode)
        made.wanted = bool(mode)
        return made


# Bits of pt_tls.inference: inference mode is on; a grad mode inside it asks for recording. Nothing is recorded there:
# pt_tls.grad_enabled is 0.
cdef enum:
    INFERENCE = 1
    GRAD_ASKED = 2


cpdef bint is_grad_enabled() noexcept:
    """Whether a grad mode asks for recording on this thread. Under inference mode nothing is recorded even so."""
    return pt_tls.grad_enabled or pt_tls.inference & GRAD_ASKED


def is_history_recorded():
    """Whether operations are recorded on this thread: a grad mode asks for it, and inference mode is off."""
    return pt_tls.grad_enabled != 0


def is_inference_mode_enabled():
    """Whether inference mode is on."""
    return pt_tls.inference != 0


cpdef void put_grad_enabled(bint mode) noexcept:
    """Asks for recording on this thread, or not. Under inference mode nothing is recorded, as in PyTorch."""
    pt_tls.grad_enabled = mode and not pt_tls.inference
    if pt_tls.inference:
        pt_tls.inference = INFERENCE | (GRAD_ASKED if mode else 0)


cdef void set_bit(uint32_t bit, bint on) noexcept:
    global pt_modes_seen
    if on:
        pt_modes_seen |= bit
        pt_tls.mode |= bit
    else:
        pt_tls.mode &= ~bit


cpdef bint is_anomaly_enabled() noexcept:
    return (pt_modes_seen & PT_SEEN_ANOMALY) != 0


cdef bint _checks_nan = True            # whether anomaly mode looks for NaN; a setting of the process, as the mode is


cpdef bint is_anomaly_check_nan_enabled() noexcept:
    return _checks_nan


@cython.binding(False)                  # so that methods check their self
cdef class AnomalyMode(Switch):
    """Anomaly mode of the process: the implementation of detect_anomaly and set_detect_anomaly."""

    def __init__(self, bint on, bint checks_nan):
        self.on, self.checks_nan = on, checks_nan

    cdef bint is_shared(self):
        return True

    cdef object begin(self):
        cdef tuple before = (is_anomaly_enabled(), _checks_nan)
        set_anomaly(self.on, self.checks_nan)
        return before

    cdef int end(self, object before) except -1:
        set_anomaly(before[0], before[1])
        return 0


cdef void set_anomaly(bint on, bint checks_nan) noexcept:
    global pt_modes_seen, _checks_nan
    _checks_nan = checks_nan
    if on:
        pt_modes_seen |= PT_SEEN_ANOMALY
    else:
        pt_modes_seen &= ~<uint32_t>PT_SEEN_ANOMALY


def are_source_lines_kept():
    return not pt_tls.mode & PT_MODE_NO_LINES


@cython.binding(False)                  # so that methods check their self
cdef class SourceLines(Switch):
    """Whether this thread's nodes keep the user's line: the implementation of set_source_lines."""

    def __init__(self, bint on):
        self.on = on

    cdef object begin(self):
        before = not pt_tls.mode & PT_MODE_NO_LINES
        set_bit(PT_MODE_NO_LINES, not self.on)
        return before

    cdef int end(self, object before) except -1:
        set_bit(PT_MODE_NO_LINES, not before)
        return 0


# -- hooks and modes of a thread -------------------------------------------------------------------

@cython.binding(False)                  # so that methods check their self
cdef class SavedHooks(Mode):
    """A pair of hooks for the tensors that this thread saves."""
    _gives_itself = False               # `as` binds None

    def __init__(self, pack, unpack):
        self.hooks = pack, unpack

    cdef object given(self):
        return self if self._gives_itself else None

    cdef object begin(self):
        cdef Stacks own = stacks()
        if own.refusals:
            raise RuntimeError(own.refusals[len(own.refusals) - 1])
        push(own.hooks, self.hooks, PT_MODE_SAVED_HOOKS)
        return self.hooks

    cdef int end(self, object before) except -1:
        return drop(saved_hooks(), before, PT_MODE_SAVED_HOOKS)


def hooks_of_saved():
    """The pairs of hooks for tensors that this thread saves, the innermost last."""
    return list(saved_hooks()) if pt_tls.mode & PT_MODE_SAVED_HOOKS else []


@cython.binding(False)                  # so that methods check their self
cdef class SavedBy(Mode):
    """A context with exactly these pairs of hooks. None at all is for graphs that are made once and run later, with and
    without hooks."""

    def __init__(self, hooks):
        self.hooks = list(hooks)

    cdef object begin(self):
        cdef Stacks own = stacks()
        before, own.hooks = own.hooks, list(self.hooks)
        set_bit(PT_MODE_SAVED_HOOKS, len(own.hooks) > 0)
        return before

    cdef int end(self, object before) except -1:
        stacks().hooks = <list>before
        set_bit(PT_MODE_SAVED_HOOKS, len(<list>before) > 0)
        return 0


@cython.binding(False)                  # so that methods check their self
cdef class HooksRefused(Mode):
    """A context in which this thread may enter no hooks for saved tensors: RuntimeError with a message."""

    def __init__(self, message):
        self.message = message

    cdef object begin(self):
        cdef Stacks own = stacks()
        if own.hooks:
            raise RuntimeError(self.message)
        own.refusals.append(self.message)
        return self.message

    cdef int end(self, object before) except -1:
        return drop(stacks().refusals, before, 0)


@cython.binding(False)                  # so that methods check their self
cdef class FunctionMode(Mode):
    """A context that is itself this thread's innermost ``__torch_function__`` mode."""

    cdef object given(self):
        return self

    cdef object begin(self):
        push(stacks().functions, self, PT_MODE_FUNCTION)
        return None

    cdef int end(self, object before) except -1:
        return drop(stacks().functions, self, PT_MODE_FUNCTION)


def below_mode(function, types, args, kwargs):
    """The result of this thread's innermost mode for a call, which runs with that mode taken off. NotImplemented: there
    is no mode."""
    cdef list modes = stacks().functions
    if not modes:
        return NotImplemented
    mode = modes.pop()
    set_bit(PT_MODE_FUNCTION, len(modes) > 0)
    try:
        return mode.__torch_function__(function, types, args, kwargs)
    finally:
        push(modes, mode, PT_MODE_FUNCTION)


cdef bint is_asked(uint32_t flags) noexcept:
    """Whether a method that is not an op must go to ``__torch_function__`` of the tensor's class or of a mode;
    ``flags`` are the tensor's."""
    return (flags | pt_tls.mode) & (PT_SUBCLASS | PT_MODE_FUNCTION) != 0 and not pt_tls.torch_function_off


@cython.binding(False)                  # so that methods check their self
cdef class FunctionsOff(Mode):
    """A context in which no ``__torch_function__`` of this thread is asked."""

    cdef object begin(self):
        before = pt_tls.torch_function_off
        pt_tls.torch_function_off = 1
        return before

    cdef int end(self, object before) except -1:
        pt_tls.torch_function_off = <uint8_t>before
        return 0


def _disabled_torch_function_impl(func, types, args=(), kwargs=None):
    """The ``__torch_function__`` of classes, such as Parameter, that stay on the fast path."""
    cdef uint8_t before = pt_tls.torch_function_off
    pt_tls.torch_function_off = 1
    try:
        return func(*args, **(kwargs or {}))
    finally:
        pt_tls.torch_function_off = before


def torch_function_is_off():
    """Whether ``_disabled_torch_function_impl`` runs a function in this thread."""
    return pt_tls.torch_function_off != 0


def mode_word():
    """This thread's mode bits, for tests and debugging."""
    return pt_tls.mode
