"""Batched calls in C, without Python code: most ops of a batch run here.

``Batching`` answers calls without batched arguments, and calls of rows with the batch word "broadcast", "shift",
"sizes" or "whole" if their arguments are plain. All other calls go to ``call`` of its subclass and to ``batching.py``,
which explains each word.
"""
cimport cython
from cpython.sequence cimport PySequence_Fast_ITEMS
from libc.string cimport strlen

from ptcore._interpret cimport Interpreter, Payload
from ptcore._types cimport *
from ptcore._tensor cimport *
from ptcore._ops.call.elementwise cimport elementwise_inplace, elementwise_of
from ptcore._ops.call.run cimport call_with
from ptcore._ops.table.ids cimport *
from ptcore._ops.table.ids import op_id
from ptcore._ops.view.views cimport run_view
from ptcore._subclass cimport stands_for
from ptcore._ops import row
from ptcore._errors import here

cdef enum Word:                         # of the column ``batch``
    UNREAD, OTHER, BROADCAST, SHIFT, SIZES, WHOLE

cdef uint8_t[MAX_OPS] _words
cdef int RESHAPE = op_id("reshape"), EXPAND = op_id("expand")


# -- what stand-ins carry --------------------------------------------------------------------------

@cython.binding(False)                  # so that methods check their self
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class Batched(Payload):
    """A tensor whose first dim is hidden; ``shape`` and ``ndim`` are those of one sample.

    Attributes
    ----------
    tensor : Tensor
        The stack of all samples.
    owner : Interpreter or None
        The interpreter that it belongs to.
    """
    stacked = True

    def __init__(self, Tensor tensor not None, Interpreter owner=None):
        self.tensor, self.owner = tensor, owner

    @property
    def shape(self):
        return tuple(self.tensor.shape[1:])

    @property
    def ndim(self):
        return self.tensor.rank - 1

    def __repr__(self):
        return f"BatchedTensor(bdim=0, value=\n{self.tensor}\n)"

    def item(self, stand_in):
        raise RuntimeError("item: a batched tensor has a value for each sample; what depends on "
                           "data, as a branch or bool() does, cannot be batched" + here())

    def detached(self):
        return sample_of(self.tensor.detach(), self.owner)

    def made_like(self, Tensor x not None):
        """A copy of x, made after the pattern of a sample, for each sample: samples may be written to it."""
        cdef Tensor stack
        if batched_in(x, self.owner) is not None:
            return x
        stack = x.detach().expand((self.tensor.shape[0], *x.shape)).clone()
        return sample_of(made_as(self.tensor, stack), self.owner).requires_grad_(x.requires_grad)

    def landed(self):
        """Raises: the gradient of a leaf that all samples share would have a value for each sample."""
        raise RuntimeError("backward: the gradient of a tensor that all samples share has a value for each of them; "
                           "inside vmap gradients are taken by func.grad or func.vjp" + here())


@cython.binding(False)                  # so that methods check their self
cdef class Shared(Payload):
    """The payload of a tensor that is the same for all samples."""
    known = True

    def __init__(self, Tensor tensor not None, Interpreter owner=None):
        self.tensor, self.owner = tensor, owner

    def __repr__(self):
        return repr(self.tensor)

    def item(self, stand_in):
        return self.tensor.item()

    def detached(self):
        return shared_of(self.tensor.detach(), self.owner)

    def made_like(self, Tensor x not None):
        return shared_of(made_as(self.tensor, x), self.owner)


cpdef Tensor made_as(Tensor like, Tensor x):
    """x, made after the pattern of ``like``: a stand-in if ``like`` is one."""
    return <Tensor?>(<TensorExtras>like.extras).payload.made_like(x) if like.flags & PT_INTERPOSED else x


cdef Batched batched_in(object x, Interpreter owner):
    """The Batched payload of x if x is a stand-in of the interpreter; else None."""
    cdef Payload payload
    if not isinstance(x, Tensor) or not (<Tensor>x).flags & PT_INTERPOSED:
        return None
    payload = (<TensorExtras>(<Tensor>x).extras).payload
    return <Batched>payload if payload.owner is owner and type(payload) is Batched else None


cpdef Tensor sample_of(Tensor stack, Interpreter owner):
    """The stand-in of a stack's samples."""
    cdef Batched payload = Batched.__new__(Batched)
    payload.tensor, payload.owner = stack, owner
    return stands_for(stack, payload, 1)


cpdef Tensor shared_of(Tensor x, Interpreter owner):
    """The stand-in of a tensor that all samples share."""
    cdef Shared payload = Shared.__new__(Shared)
    payload.tensor, payload.owner = x, owner
    return stands_for(x, payload)


# -- the interpreter -------------------------------------------------------------------------------

@cython.binding(False)                  # so that methods check their self
cdef class CompiledInterpreter(Interpreter):
    """An interpreter that answers common calls in C, by ``offered``; ``call`` of the subclass gets all others."""

    cdef object interpret(self, int op, tuple args, object out, int variant):
        cdef uint8_t before = pt_tls.grad_enabled
        if self.unrecorded:
            pt_tls.grad_enabled = 0
        try:
            result = self.offered(op, args, variant) if out is None else None
            return self.call(op, args, out, variant) if result is None else result
        finally:
            pt_tls.grad_enabled = before

    cdef object offered(self, int op, tuple args, int variant):
        """The result of a call without ``out=``; None where the general rules are needed."""
        return None


@cython.binding(False)                  # so that methods check their self
cdef class Batching(CompiledInterpreter):
    """Runs the common calls on stacks; ``call`` of the subclass runs all others.

    Attributes
    ----------
    size : int
        The number of samples.
    """

    cdef object offered(self, int op, tuple args, int variant):
        cdef list given
        cdef bint batched = False, shared = False
        cdef int word
        if not is_common(op, args):
            return None
        given = self.carried(args, &batched, &shared)
        if not batched:
            if variant != 0:
                return None
            result = run_by_id(op, tuple(given))
            return shared_results(result, self) if shared else result
        word = _words[op]
        if word == UNREAD:
            word = _words[op] = word_of(op)
        if word == BROADCAST:
            return self.broadcast(op, given, args, variant != 0)
        if word == OTHER or variant != 0:
            return None
        if not (shift(op, given) if word == SHIFT else resize(op, given) if word == SIZES else whole(given)):
            return None
        try:
            result = run_by_id(op, tuple(given))
        except (RuntimeError, TypeError, ValueError, IndexError):       # the general rules raise it for one sample
            return None
        return samples_of(result, self)

    cdef list carried(self, args, bint *batched, bint *shared):
        """The arguments with stand-ins replaced by their data: a ``Batched``, or the tensor that all samples share."""
        cdef list found = list(args)
        cdef Payload payload
        cdef Py_ssize_t k
        for k in range(len(found)):
            x = found[k]
            if isinstance(x, Tensor):
                if not (<Tensor>x).flags & PT_INTERPOSED:
                    continue
                payload = (<TensorExtras>(<Tensor>x).extras).payload
                if payload.owner is not self:
                    continue
                if type(payload) is Batched:
                    batched[0], found[k] = True, payload
                else:
                    shared[0], found[k] = True, (<Shared?>payload).tensor
            elif type(x) is list or type(x) is tuple:
                for y in <object>x:
                    if isinstance(y, Tensor):
                        found[k] = tuple(self.carried(x, batched, shared))
                        break
        return found

    cdef object broadcast(self, int op, list given, tuple args, bint inplace):
        """Aligns samples from the right, with the hidden dim in front. A 0-d sample gives way in promotion, but its
        stack would not: with a 0-d sample all dtypes must be equal."""
        cdef Tensor t
        cdef int k, rank, most = 0, dt = -1
        cdef bint mixed = False, flat = False
        for k in range(len(given)):
            x = given[k]
            if type(x) is Batched:
                t, rank = (<Batched>x).tensor, (<Batched>x).tensor.rank - 1
                flat = flat or rank == 0
            elif isinstance(x, Tensor):
                t, rank = <Tensor>x, (<Tensor>x).rank
            elif type(x) is int or type(x) is float or type(x) is bool or x is None or type(x) is str:
                continue
            else:
                return None
            most = max(most, rank)
            mixed = mixed or (dt >= 0 and t.dt != dt)
            dt = t.dt
        if mixed and flat:
            return None
        if inplace and (type(given[0]) is not Batched or (<Batched>given[0]).tensor.rank - 1 < most):
            return None
        for k in range(len(given)):
            if type(given[k]) is Batched:
                t = (<Batched>given[k]).tensor
                given[k] = t if t.rank - 1 == most else aligned(t, most)
        result = tuple(given)
        if not inplace:
            return sample_of(<Tensor?>elementwise_of(op, result), self)
        elementwise_inplace(op, PySequence_Fast_ITEMS(result), <int>len(result))
        return args[0]


cdef bint is_common(int op, tuple args) noexcept:
    """Whether the row has a kernel or a view and draws no random numbers, and the call has all arguments."""
    cdef pt_opinfo *o = info(op)
    return o.kind != PT_COMPOSITE and not o.random and <size_t>len(args) == strlen(o.letters)


cdef int word_of(int op) except -1:
    word = row(op).batch
    if type(word) is not str:
        return OTHER
    return {"broadcast": BROADCAST if info(op).kind == PT_ELEMENTWISE else OTHER, "shift": SHIFT, "sizes": SIZES,
            "whole": WHOLE}.get(word, OTHER)


cdef Tensor aligned(Tensor stack, int ndim):
    """A stack whose samples have ``ndim`` dims."""
    cdef tuple sizes = tuple(stack.shape)
    return <Tensor?>run_by_id(RESHAPE, (stack, (sizes[0], *[1] * (ndim - stack.rank + 1), *sizes[1:])))


cdef bint shift(int op, list given) except -1:
    """Replaces samples by stacks and moves each argument that names a dim by one. False if no dim is named (an op of
    matrices would take a stack of vectors for a matrix), a tensor has no hidden dim, samples differ in their number of
    dims, or an argument is not plain."""
    cdef const char *letters = info(op).letters
    cdef int k, rank = -1
    cdef bint named = False
    cdef char letter
    for k in range(len(given)):
        letter, x = letters[k], given[k]
        if letter in (PT_ARG_TENSOR, PT_ARG_INDEX):
            if not stacked(x, &rank):
                return False
            given[k] = (<Batched>x).tensor
        elif letter in (PT_ARG_OPT_TENSOR, PT_ARG_OPT_INDEX):
            if x is not None:
                return False
        elif letter == PT_ARG_TENSORS:
            for y in <object>x:
                if not stacked(y, &rank):
                    return False
            given[k] = tuple([(<Batched>y).tensor for y in <object>x])
        elif letter in (PT_ARG_DIM, PT_ARG_OPT_DIM, PT_ARG_NEW_DIM):
            if type(x) is not int or not -rank - (letter == PT_ARG_NEW_DIM) <= x < rank + (letter == PT_ARG_NEW_DIM):
                return False
            given[k], named = x + 1 if x >= 0 else x, True
        elif letter in (PT_ARG_DIMS, PT_ARG_DIM_LIST):
            named = True
            if x is None and letter == PT_ARG_DIMS:
                given[k] = tuple(range(1, rank + 1))
            elif type(x) is int and -rank <= x < rank:
                given[k] = x + 1 if x >= 0 else x
            elif type(x) is tuple and x and all([type(d) is int and -rank <= d < rank for d in x]):
                given[k] = tuple([d + 1 if d >= 0 else d for d in x])
            else:
                return False
        elif letter not in (PT_ARG_BOOL, PT_ARG_FLOAT, PT_ARG_SCALAR, PT_ARG_WORD, PT_ARG_DTYPE) and (
                info(op).kind != PT_VIEWOP):
            return False
    return named and rank > 0


cdef bint stacked(object x, int *rank) noexcept:
    """Whether x is batched, with as many dims a sample as the arguments before."""
    if type(x) is not Batched or (rank[0] >= 0 and (<Batched>x).tensor.rank != rank[0] + 1):
        return False
    rank[0] = (<Batched>x).tensor.rank - 1
    return True


cdef bint resize(int op, list given) except -1:
    """Replaces a sample by its stack, and its shape by the stack's shape. False if the shape is not made of plain
    sizes, or a size is to be derived (-1)."""
    cdef Tensor stack
    cdef tuple shape
    if type(given[0]) is not Batched or not isinstance(given[1], tuple):
        return False
    stack, shape = (<Batched>given[0]).tensor, tuple(given[1])
    for n in shape:
        if type(n) is not int or n < 0:
            return False
    if op == EXPAND:
        if len(shape) < stack.rank - 1:
            return False
        if len(shape) > stack.rank - 1:
            stack = aligned(stack, <int>len(shape))
    given[0], given[1] = stack, (stack.shape[0], *shape)
    return True


cdef bint whole(list given) except -1:
    """Replaces the first argument by its stack. False if it is not batched or another argument is."""
    cdef int k
    if type(given[0]) is not Batched:
        return False
    for k in range(1, len(given)):
        if type(given[k]) is Batched or type(given[k]) is tuple:
            return False
    given[0] = (<Batched>given[0]).tensor
    return True


cdef object samples_of(object result, Interpreter owner):
    if isinstance(result, tuple):
        return tuple([sample_of(<Tensor?>r, owner) for r in <tuple>result])
    return sample_of(<Tensor?>result, owner)


cdef object shared_results(object result, Interpreter owner):
    if isinstance(result, tuple):
        return tuple([shared_results(r, owner) for r in <tuple>result])
    return shared_of(<Tensor>result, owner) if isinstance(result, Tensor) else result


cdef object run_by_id(int op, tuple args):
    cdef int kind = info(op).kind
    if kind == PT_ELEMENTWISE:
        return elementwise_of(op, args)
    if kind == PT_STRUCTURED:
        return call_with(op, args, None)
    return run_view(op, PySequence_Fast_ITEMS(args), <int>len(args))


def run_op(op, tuple args):
    """Calls an op, given by its id or its name, on arguments in the order of its row. NotImplemented for composites:
    they have functions."""
    cdef int number = op if type(op) is int else op_id(op)
    if info(number).kind == PT_COMPOSITE or <size_t>len(args) != strlen(info(number).letters):
        return NotImplemented
    return run_by_id(number, args)
