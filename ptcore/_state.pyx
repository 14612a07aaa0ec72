"""Thread-local modes as Python sees them: grad mode, inference mode, the interpreter stack.

Each context manager also decorates functions and generator functions, with or without
parentheses, as in PyTorch.
"""
import threading

cimport cython
from ptcore._types cimport *

_local = threading.local()


def decorate(manager, function):
    """function run under a fresh copy of manager at each call (at each step of a generator)."""
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
    wrapped._mode = manager                 # for what looks into functions
    return wrapped


@cython.binding(False)                  # so that methods check their self
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class GradMode:
    """What no_grad, enable_grad and set_grad_enabled share."""
    cdef uint8_t wanted, before

    # Under inference mode nothing is recorded, whatever the grad mode says, as in PyTorch.
    def __enter__(self):
        self.before = pt_tls.grad_enabled
        pt_tls.grad_enabled = self.wanted and not pt_tls.inference

    def __exit__(self, kind, value, trace):
        pt_tls.grad_enabled = self.before

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
        self.before = pt_tls.grad_enabled
        pt_tls.grad_enabled = self.wanted

    def __enter__(self):
        pt_tls.grad_enabled = self.wanted

    def __call__(self, function):
        pt_tls.grad_enabled = self.before
        return decorate(self, function)

    def clone(self):
        return set_grad_enabled(self.wanted)


@cython.binding(False)                  # so that methods check their self
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class InferenceMode:
    """The working half of inference_mode."""
    cdef uint8_t wanted, before, before_grad

    def __enter__(self):
        self.before = pt_tls.inference
        self.before_grad = pt_tls.grad_enabled
        pt_tls.inference = self.wanted
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


cpdef bint is_grad_enabled() noexcept:
    """Whether operations are recorded on this thread."""
    return pt_tls.grad_enabled != 0


def is_inference_mode_enabled():
    """Whether inference mode is on."""
    return pt_tls.inference != 0


cpdef void put_grad_enabled(bint mode) noexcept:
    pt_tls.grad_enabled = mode


cdef void set_bit(uint32_t bit, bint on):
    global pt_modes_seen
    if on:
        pt_modes_seen |= bit
        pt_tls.mode |= bit
    else:
        pt_tls.mode &= ~bit


def set_saved_hooks(bint on):
    set_bit(PT_MODE_SAVED_HOOKS, on)


def set_function_mode(bint on):
    set_bit(PT_MODE_FUNCTION, on)


cdef bint is_asked(uint32_t flags) noexcept:
    """Whether a method that is no op, of a tensor with these flags, is handed to ``__torch_function__`` of its class or
    of a mode."""
    return (flags | pt_tls.mode) & (PT_SUBCLASS | PT_MODE_FUNCTION) != 0 and not pt_tls.torch_function_off


def torch_function_is_off():
    """Whether ``_disabled_torch_function_impl`` runs a function in this thread."""
    return pt_tls.torch_function_off != 0


def set_anomaly(bint on):
    set_bit(PT_MODE_ANOMALY, on)


cpdef bint is_anomaly_enabled() noexcept:
    return (pt_tls.mode & PT_MODE_ANOMALY) != 0


def are_source_lines_kept():
    return not pt_tls.mode & PT_MODE_NO_LINES


def keep_source_lines(bint on):
    set_bit(PT_MODE_NO_LINES, not on)


def mode_word():
    """The thread's mode bits, for tests and debugging."""
    return pt_tls.mode


cdef list interpreter_stack():
    """This thread's interpreters, the innermost last."""
    found = getattr(_local, "interpreters", None)
    if found is None:
        found = _local.interpreters = []
    return <list>found


cdef object told(str method, str kind, object t):
    """Tells each interpreter that wants to know, the outermost first, of what is no op: ``created(kind, tensor)``,
    ``read(kind, tensor)``, ``changed(kind, tensor)``. Each runs on those outside it alone. Returns the tensor, or what
    they gave in its place."""
    cdef list stack = interpreter_stack(), whole = list(stack)
    try:
        for k, interpreter in enumerate(whole):
            tell = getattr(interpreter, method, None)
            if tell is not None:
                stack[:] = whole[:k]
                set_bit(PT_INTERPOSED, k > 0)
                found = tell(kind, t)
                t = t if found is None else found
    finally:
        stack[:] = whole
        set_bit(PT_INTERPOSED, len(whole) > 0)
    return t


def transformed():
    """Whether an interpreter does more with the calls than to write them down, which one that ``traces`` does."""
    if not pt_tls.mode & PT_INTERPOSED:
        return False
    for interpreter in interpreter_stack():
        if not getattr(interpreter, "traces", False):
            return True
    return False


class aside:
    """A context in which no interpreter sees what is called: for what depends on no argument."""

    def __enter__(self):
        cdef list stack = interpreter_stack()
        self.before = list(stack)
        stack.clear()
        set_bit(PT_INTERPOSED, False)

    def __exit__(self, *exc):
        cdef list stack = interpreter_stack()
        stack[:] = self.before
        set_bit(PT_INTERPOSED, len(stack) > 0)


def tell(method, kind, t):
    """What an interpreter is told by Python code; see ``told``."""
    return told(method, kind, t) if pt_tls.mode & PT_INTERPOSED else t


class _Interpreters:
    """The interpreter stack of each thread; dispatch offers an op to the innermost one."""

    @property
    def stack(self):
        return interpreter_stack()

    def push(self, interpreter):
        self.stack.append(interpreter)
        set_bit(PT_INTERPOSED, True)

    def pop(self):
        top = self.stack.pop()
        set_bit(PT_INTERPOSED, bool(self.stack))
        return top


interpreters = _Interpreters()
