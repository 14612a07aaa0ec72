"""The protocol of interpreters: objects that watch calls of ops and run them in another way.

``Interpreter`` is the base of ``vmap``, forward mode, ``functionalize``, ``make_fx``, the tracer of ``compile`` and
selective checkpoints. ``Payload`` is the base of the data that their stand-ins carry. Dispatch calls these methods and
no others; ``doc/source/dev/interpreters.rst`` shows how an interpreter is written.
"""
cimport cython
from ptcore._types cimport *
from ptcore._state cimport Mode, drop, interpreter_stack, push, set_bit, stacks


@cython.binding(False)                  # so that methods check their self
cdef class Payload:
    """The data of a stand-in: the value that it stands for, and the interpreter that it belongs to.

    Each name below has a default. A subclass overrides it where it has a better answer.

    Parameters
    ----------
    owner : Interpreter, optional

    Attributes
    ----------
    tensor : Tensor or None
        The value. It may be a stand-in of an interpreter further out.
    known : bool
        Whether a derivative rule may look at the values of ``tensor``: the call has these values and no others.
    stacked : bool
        Whether ``tensor`` holds a value for each sample, along its first dim.
    sizes : tuple of int and SymInt, or callable, optional
        The sizes of the stand-in, if they are symbols; a callable gets the stand-in. None: the sizes at its creation.
    strides : tuple of int and SymInt, optional
        None: they follow from the sizes.
    offset : int or SymInt, optional
    device : device, optional
        The device of the value. None: the device of ``tensor``.
    tangent : Tensor or None
        Forward mode's: a derivative of the value.
    """
    tensor = None
    known = False
    stacked = False
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
        """A plain tensor of the values, if they do not depend on transformed inputs; else None."""
        return None

    def detached(self):
        """``detach()`` of the stand-in: a stand-in without history at any level. None: the payload is used again."""
        return None

    def made_like(self, x):
        """The replacement of ``x``, which the program made after the pattern of the stand-in (``zeros_like``)."""
        return x

    def landed(self):
        """The value that a leaf outside of the interpreter gets if the stand-in is its gradient."""
        return self.tensor


@cython.binding(False)                  # so that methods check their self
cdef class Interpreter(Mode):
    """A context that watches this thread's calls of ops: while entered, it is the innermost interpreter.

    A call is offered to the innermost interpreter alone. It runs with itself taken off the stack: the ops that it calls
    are offered to the next interpreter further out. A subclass overrides ``call``, and other methods where needed.

    Attributes
    ----------
    also : str or None
        The name of a ``stack`` that also holds the interpreter, even while a call runs with it taken off.
    traces : bool
        Whether the interpreter only writes calls down: values are the same as without it. Derivative rules then make
        the same calls as without it.
    computes : bool
        Whether an interpreter that traces gives the program values to go on with, not a program for later. A custom
        Function whose arguments vmap or forward mode sees is then not run as the ops of its ``forward``.
    for_later : bool
        Whether derivatives may be taken of what an interpreter that traces writes down, or of its values, where the
        program's tensors require no gradient. Ops are then chosen that have derivatives.
    differentiates : bool
        Whether the interpreter differentiates the ops offered to it, those of a backward included. Derivative rules
        are then made of ops that have derivatives.
    needs_setup_context : bool
        Whether ``custom`` needs a function with a ``setup_context`` apart from its ``forward``.
    bodies : int
        How many ``forward`` of custom Functions run inside: what they do is not recorded, and is no ``no_grad`` of the
        program.
    unrecorded : int
        How many transformations further in were entered while gradients were not recorded. While it is above 0, the
        calls of the interpreter are not to be recorded; an interpreter that computes values has to ensure this.
    stand_ins : list or None
        Weak references to the stand-ins, for an interpreter that makes them plain tensors when it ends. None: they are
        not collected.
    lets_go : bool
        Whether the interpreter has ended so: what still carries its payload, as saved values of nodes do, becomes a
        plain tensor at its next op.
    """
    also = None
    traces = False
    computes = False
    for_later = False
    bodies = 0
    differentiates = False
    needs_setup_context = False

    def call(self, op, args, out, variant):
        """Runs a call, or leaves it to dispatch.

        Parameters
        ----------
        op : int
            The id of the row; ``ptcore._ops.row(op)`` gives the row.
        args : tuple
            The arguments in the order of ``ptcore._ops.arguments(row)``, none omitted.
        out : Tensor, tuple of Tensors or None
            The user's ``out=``.
        variant : int
            1 for an in-place form, else 0.

        Returns
        -------
        object
            The result. NotImplemented: the call goes on as if it had not been offered. If the op is a composite, the
            ops that it calls are offered instead.
        """
        return NotImplemented

    def value(self, x):
        """The value that a tensor stands for; a tensor that is not a stand-in of this interpreter is its own value."""
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
        """The outputs of a custom Function ``cls``; some of its arguments are stand-ins of this interpreter."""
        raise RuntimeError(f"{cls.__name__}: {type(self).__name__} runs no custom autograd.Function")

    def custom_with_context(self, cls, args, needs):
        """``custom`` of a function whose ``forward`` fills its context, in a call that is recorded: the outputs and the
        context, whose ``needs_input_grad`` is ``needs``. None: the interpreter cannot, and the function has to have a
        ``setup_context``."""
        return None

    def custom_needs(self, args):
        """For each argument of a custom Function that is about to run on stand-ins, whether its value requires grad, in
        an interpreter whose values carry histories; an empty tuple where none does."""
        return ()

    def custom_ran(self, cls, ctx, args, output):
        """A custom Function has run on stand-ins, unrecorded, and one of ``custom_needs`` holds. Returns the output,
        with the history of the call for its values."""
        return output

    def created(self, kind, x):
        """``kind``, such as "from_numpy", made a tensor ``x`` over memory that no op made. The return value replaces
        ``x``, unless it is None."""
        return None

    def read(self, kind, x):
        """``kind``, such as "item", reads the values of ``x``, which is not a stand-in of this interpreter."""
        return None

    def changed(self, kind, x):
        """The program set ``kind`` of ``x``: "requires_grad", "grad" or "data"; or it is about to change the "dims" of
        a plain tensor in place."""
        return None

    def value_check(self, check, args):
        """The program calls ``check(*args)``, which raises an error for some values of a tensor, for a stand-in. An
        interpreter that writes a program down may keep the call; the others have no values to look at."""
        return None

    def becomes(self, x, view):
        """The program changes the dims of ``x``, a stand-in of this interpreter, in place: ``x`` is about to get the
        dims and the payload of ``view``, which the interpreter has made for this alone."""
        return None

    cdef object interpret(self, int op, tuple args, object out, int variant):
        """``call``, as dispatch calls it. A class in C may answer common calls itself."""
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
        cdef list found
        drop(interpreter_stack(), self, PT_INTERPOSED)
        if before is not None:
            drop(<list>stacks().named[before], self, 0)
            if self.stand_ins is not None and self not in <list>stacks().named[before]:     # a rule may enter it twice
                self.lets_go, found, self.stand_ins = True, self.stand_ins, None
                _let_go(found, self)
        return 0


@cython.binding(False)                  # so that methods check their self
cdef class Entering(Mode):
    """A context that enters the interpreter ``_interpreter``, which ``_prepare`` of a subclass sets: the base of
    classes of users, whose names are not to be those of ``Interpreter``."""

    cdef public object _interpreter

    cdef object begin(self):
        return (<Interpreter?>self._interpreter).begin()

    cdef int end(self, object before) except -1:
        return (<Interpreter>self._interpreter).end(before)

    cdef object given(self):
        return self

    cdef bint prepares(self):
        return True


_let_go = None                          # installed by _subclass: (references to stand-ins, their interpreter)


def set_let_go(f):
    global _let_go
    _let_go = f


def innermost():
    """This thread's innermost interpreter, or None."""
    cdef list stack = interpreter_stack()
    return stack[len(stack) - 1] if stack else None


def entered():
    """This thread's interpreters, the innermost last."""
    return tuple(interpreter_stack())


cdef object told(int what, str kind, object t):
    """Tells each interpreter, the outermost first, of an event that is no op. Each runs with only the interpreters
    outside it on the stack. Returns the tensor, or its replacement."""
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


cdef int told_owner(Interpreter owner, object x, object view) except -1:
    """Calls ``becomes`` of an interpreter, with only the interpreters outside it on the stack."""
    cdef list stack = interpreter_stack(), whole = list(stack)
    cdef Py_ssize_t k
    for k in range(len(whole)):
        if whole[k] is owner:
            break
    else:
        return 0                        # it has ended
    try:
        stack[:] = whole[:k]
        set_bit(PT_INTERPOSED, k > 0)
        owner.becomes(x, view)
    finally:
        stack[:] = whole
        set_bit(PT_INTERPOSED, len(whole) > 0)
    return 0


def values_read(kind, t):
    """Tells this thread's interpreters that ``kind`` reads the values of a tensor."""
    if pt_tls.mode & PT_INTERPOSED:
        told(TOLD_READ, kind, t)


def transformed():
    """Whether an interpreter is on that does not only write calls down (``traces``)."""
    if pt_tls.mode & PT_INTERPOSED:
        for interpreter in interpreter_stack():
            if not (<Interpreter>interpreter).traces:
                return True
    return False


def written_for_later():
    """Whether an interpreter is on of whose calls derivatives may be taken later (``for_later``)."""
    if pt_tls.mode & PT_INTERPOSED:
        for interpreter in interpreter_stack():
            if (<Interpreter>interpreter).for_later:
                return True
    return False


def differentiable():
    """Whether derivatives may be asked for of tensors that require no gradient: by an interpreter, or later."""
    return transformed() or written_for_later()


cdef bint is_differentiated() except -1:
    """Whether an interpreter differentiates the calls of this thread."""
    if pt_tls.mode & PT_INTERPOSED:
        for interpreter in interpreter_stack():
            if (<Interpreter>interpreter).differentiates:
                return True
    return False


@cython.binding(False)                  # so that methods check their self
cdef class aside(Mode):
    """A context in which no interpreter sees calls: for work that depends on no argument."""

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
    """A context in which only the interpreters outside the innermost one see calls."""

    cdef object begin(self):
        cdef list stack = interpreter_stack()
        top = stack.pop()
        set_bit(PT_INTERPOSED, len(stack) > 0)
        return top

    cdef int end(self, object before) except -1:
        return push(interpreter_stack(), before, PT_INTERPOSED)


@cython.binding(False)                  # so that methods check their self
cdef class Recording(Mode):
    """Records gradients inside. The interpreter on top records as it did at entry, by its count ``unrecorded``.

    Parameters
    ----------
    number : int
        The number of the call that differentiates; ``as`` binds it.
    running : set
        Holds the number while the context is entered.
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
