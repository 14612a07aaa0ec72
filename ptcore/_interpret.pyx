"""The protocol of interpreters: what watches the calls of ops and runs them in another way.

``Interpreter`` is the base of ``vmap``, forward mode, ``functionalize``, ``make_fx``, the tracer of ``compile`` and
selective checkpoints, ``Payload`` the base of what their stand-ins carry. Dispatch asks these methods and no others;
``doc/source/dev/interpreters.rst`` shows how one is written.
"""
cimport cython
from ptcore._types cimport *
from ptcore._state cimport Mode, drop, interpreter_stack, push, set_bit, stacks


@cython.binding(False)                  # so that methods check their self
cdef class Payload:
    """What a stand-in carries: the value that it stands for, and the interpreter that it belongs to.

    Each name below has a default, which a subclass overrides where it knows better.

    Parameters
    ----------
    owner : Interpreter, optional

    Attributes
    ----------
    tensor : Tensor or None
        The value. It may be a stand-in of an interpreter further out.
    known : bool
        Whether a derivative rule may look at the values of ``tensor``: they are those of this call and of no other.
    sizes : tuple of int and SymInt, or callable, optional
        The sizes of the stand-in, where they are symbols; a callable takes the stand-in. None: those it was made with.
    strides : tuple of int and SymInt, optional
        None: they follow from the sizes.
    offset : int or SymInt, optional
    device : device, optional
        Where the value would be. None: where it is.
    tangent : Tensor or None
        Forward mode's: a derivative of the value.
    """
    tensor = None
    known = False
    sizes = None
    strides = None
    offset = None
    device = None
    tangent = None

    def __init__(self, Interpreter owner=None):
        self.owner = owner

    def item(self, stand_in):
        """The number that ``item()``, ``bool()`` and ``float()`` of the stand-in give. The default refuses."""
        from ptcore._errors import here
        raise RuntimeError("item: the value of a traced or batched tensor is not known here" + here())

    def known_value(self):
        """A plain tensor of the values, where they do not depend on what is transformed; or None."""
        return None

    def detached(self):
        """``detach()`` of the stand-in: a stand-in without history at any level. None: the same payload will do."""
        return None

    def made_like(self, x):
        """What the program gets where it makes ``x`` after the pattern of the stand-in (``zeros_like``)."""
        return x

    def landed(self):
        """The value that a leaf outside of the interpreter gets if the stand-in is its gradient."""
        return self.tensor


@cython.binding(False)                  # so that methods check their self
cdef class Interpreter(Mode):
    """A context that watches this thread's calls of ops: it is itself the innermost interpreter.

    A call is offered to the innermost interpreter alone, which runs with itself taken off the stack; what it calls is
    offered to the next one further out. A subclass overrides ``call``, and of the other methods those that it needs.

    Attributes
    ----------
    also : str or None
        A ``stack`` that it is on as well, which keeps it while it is taken off to run a call.
    traces : bool
        Whether values are what they would be without it: it writes calls down, and does nothing else. Derivative
        rules then call what they call without it.
    differentiates : bool
        Whether it differentiates what it is offered, a backward among that. Derivative rules are then made of ops
        that have derivatives.
    needs_setup_context : bool
        Whether ``custom`` needs a function whose context can be made apart from its ``forward``.
    unrecorded : int
        How many transformations further in were entered where gradients were not recorded. While it is above 0, what
        the interpreter calls is not to be recorded; an interpreter that computes values sees to it.
    """
    also = None
    traces = False
    differentiates = False
    needs_setup_context = False

    def call(self, op, args, out, variant):
        """Runs a call, or leaves it to dispatch.

        Parameters
        ----------
        op : int
            The id of the row; ``ptcore._ops.row(op)`` is the row.
        args : tuple
            The arguments in the order of ``ptcore._ops.arguments(row)``, where none is left out.
        out : Tensor, tuple of Tensors or None
            ``out=`` of the user.
        variant : int
            1 for an in-place form, else 0.

        Returns
        -------
        object
            The result. NotImplemented: the call goes on as if it had not been offered, and if it is a composite, the
            ops that it calls are offered.
        """
        return NotImplemented

    def value(self, x):
        """What a tensor stands for; a tensor that is no stand-in of this interpreter stands for itself."""
        return x

    def lift(self, x):
        """The stand-in of a tensor from outside, with a history that begins there; the tensor itself where the
        interpreter has no stand-ins."""
        return x

    def adopt(self, x, written):
        """``written`` is about to be written to the plain tensor ``x``, which may become a stand-in for it (``become``
        of ``_subclass.pyx``)."""
        return None

    def custom(self, cls, args):
        """The outputs of a custom Function ``cls``, of whose arguments some are stand-ins of this interpreter."""
        raise RuntimeError(f"{cls.__name__}: {type(self).__name__} runs no custom autograd.Function")

    def created(self, kind, x):
        """A tensor ``x`` was made of memory that no op made, by ``kind``, such as "from_numpy". What is returned takes
        its place, unless it is None."""
        return None

    def read(self, kind, x):
        """The values of ``x``, which is no stand-in of this interpreter, are read by ``kind``, such as "item"."""
        return None

    def changed(self, kind, x):
        """``kind`` of ``x`` was set: "requires_grad", "grad" or "data"."""
        return None

    cdef object interpret(self, int op, tuple args, object out, int variant):
        """``call``, as dispatch calls it. A class in C may answer the common calls itself."""
        return self.call(op, args, out, variant)

    cdef object given(self):
        return self

    cdef bint prepares(self):
        return True

    cdef object begin(self):
        name = self.also
        if name is not None:
            push(<list>stacks().named.setdefault(name, []), self, 0)
        push(interpreter_stack(), self, PT_INTERPOSED)
        return name

    cdef int end(self, object before) except -1:
        drop(interpreter_stack(), self, PT_INTERPOSED)
        return 0 if before is None else drop(<list>stacks().named[before], self, 0)


def innermost():
    """This thread's innermost interpreter, or None."""
    cdef list stack = interpreter_stack()
    return stack[len(stack) - 1] if stack else None


def entered():
    """This thread's interpreters, the innermost last."""
    return tuple(interpreter_stack())


cdef object told(int what, str kind, object t):
    """Tells each interpreter, the outermost first, of what is no op. Each runs on those outside it alone. Returns the
    tensor, or what they gave in its place."""
    cdef list stack = interpreter_stack(), whole = list(stack)
    cdef Interpreter interpreter
    cdef Py_ssize_t k
    try:
        for k in range(len(whole)):
            interpreter = <Interpreter>whole[k]
            stack[:] = whole[:k]
            set_bit(PT_INTERPOSED, k > 0)
            found = (interpreter.created(kind, t) if what == TOLD_CREATED else interpreter.read(kind, t)
                     if what == TOLD_READ else interpreter.changed(kind, t))
            t = t if found is None else found
    finally:
        stack[:] = whole
        set_bit(PT_INTERPOSED, len(whole) > 0)
    return t


def values_read(kind, t):
    """Tells this thread's interpreters that the values of a tensor are read."""
    if pt_tls.mode & PT_INTERPOSED:
        told(TOLD_READ, kind, t)


def transformed():
    """Whether an interpreter does more with the calls than to write them down, which one that ``traces`` does."""
    if pt_tls.mode & PT_INTERPOSED:
        for interpreter in interpreter_stack():
            if not (<Interpreter>interpreter).traces:
                return True
    return False


cdef bint is_differentiated() except -1:
    """Whether an interpreter differentiates what is called."""
    if pt_tls.mode & PT_INTERPOSED:
        for interpreter in interpreter_stack():
            if (<Interpreter>interpreter).differentiates:
                return True
    return False


@cython.binding(False)                  # so that methods check their self
cdef class aside(Mode):
    """A context in which no interpreter sees what is called: for what depends on no argument."""

    cdef object begin(self):
        cdef list stack = interpreter_stack(), before = list(stack)
        stack.clear()
        set_bit(PT_INTERPOSED, False)
        return before

    cdef int end(self, object before) except -1:
        cdef list stack = interpreter_stack()
        stack[:] = before
        set_bit(PT_INTERPOSED, len(stack) > 0)
        return 0


@cython.binding(False)                  # so that methods check their self
cdef class outside(Mode):
    """A context in which what is called is seen by the interpreters outside the innermost one alone."""

    cdef object begin(self):
        cdef list stack = interpreter_stack()
        top = stack.pop()
        set_bit(PT_INTERPOSED, len(stack) > 0)
        return top

    cdef int end(self, object before) except -1:
        return push(interpreter_stack(), before, PT_INTERPOSED)


@cython.binding(False)                  # so that methods check their self
cdef class Recording(Mode):
    """Gradients are recorded inside; the interpreter on top records as it did at entry, by its count ``unrecorded``.

    Parameters
    ----------
    number : int
        Of the call that differentiates, which ``as`` names.
    running : set
        Where it is as long.
    """

    def __init__(self, number, set running):
        self.number, self.running = number, running

    cdef object given(self):
        return self.number

    cdef object begin(self):
        cdef list stack = interpreter_stack()
        cdef Interpreter top = <Interpreter>stack[len(stack) - 1] if stack and not pt_tls.grad_enabled else None
        cdef tuple before = (top, pt_tls.grad_enabled, pt_tls.inference)
        if top is not None:
            top.unrecorded += 1
        self.running.add(self.number)
        pt_tls.grad_enabled, pt_tls.inference = 1, 0
        return before

    cdef int end(self, object before) except -1:
        cdef Interpreter top
        top, pt_tls.grad_enabled, pt_tls.inference = before
        self.running.discard(self.number)
        if top is not None:
            top.unrecorded -= 1
        return 0
