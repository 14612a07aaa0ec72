"""Batched calls without Python in between: what most ops of a batch are.

``on_stacks`` runs an op on the stacks that samples stand for where the row's batch word is "broadcast" or "shift" and
the arguments are plain; all else is left to ``batching.py``, which says what every word means.
"""
cimport cython
from cpython.sequence cimport PySequence_Fast_ITEMS

from ptcore._types cimport *
from ptcore._tensor cimport *
from ptcore._ops.call.elementwise cimport elementwise_inplace, elementwise_of
from ptcore._ops.call.run cimport call_with
from ptcore._ops.table.ids cimport *
from ptcore._ops.table.ids import op_id
from ptcore._ops.view.views cimport run_view
from ptcore._errors import here
from ptcore._subclass import stands_for


@cython.binding(False)                  # so that methods check their self
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class Batched:
    """A tensor whose first dim is hidden; ``shape`` and ``ndim`` are those of one sample.

    Attributes
    ----------
    tensor : Tensor
        The stack of all samples.
    owner : object
        The interpreter that it belongs to.
    """
    cdef readonly Tensor tensor
    cdef readonly object owner

    def __init__(self, Tensor tensor not None, owner=None):
        self.tensor, self.owner = tensor, owner

    @property
    def shape(self):
        return tuple(self.tensor.shape[1:])

    @property
    def ndim(self):
        return self.tensor.rank - 1

    def __repr__(self):
        return f"BatchedTensor(bdim=0, value=\n{self.tensor}\n)"

    def item(self, _):
        """What ``item`` and ``bool`` of a stand-in ask (see ``stand_in`` in _subclass.pyx)."""
        raise RuntimeError("item: a batched tensor has a value for each sample; what depends on "
                           "data, as a branch or bool() does, cannot be batched" + here())

    def detached(self):
        return sample_of(self.tensor.detach(), self.owner)

    def made_like(self, Tensor x not None):
        """What was made after the pattern of a sample: one for each, so that samples may be written to it."""
        cdef Tensor stack
        if batched_in(x, self.owner) is not None:
            return x
        stack = x.detach().unsqueeze(0).expand((self.tensor.shape[0], *x.shape)).clone()
        return sample_of(made_as(self.tensor, stack), self.owner).requires_grad_(x.requires_grad)

    def landed(self):
        """What a leaf that all samples share gets of a gradient: nothing is said about which one."""
        raise RuntimeError("backward: the gradient of a tensor that all samples share has a value for each of them; "
                           "inside vmap gradients are taken by func.grad or func.vjp" + here())


cpdef Tensor made_as(Tensor like, Tensor x):
    """x as what is made after the pattern of a tensor: a stand-in where that is one."""
    if not like.flags & PT_INTERPOSED:
        return x
    made_like = getattr((<TensorExtras>like.extras).payload, "made_like", None)
    return x if made_like is None else <Tensor?>made_like(x)


cdef Batched batched_in(object x, object owner):
    """What a stand-in of an interpreter carries if that is batched."""
    if not isinstance(x, Tensor) or not (<Tensor>x).flags & PT_INTERPOSED:
        return None
    payload = (<TensorExtras>(<Tensor>x).extras).payload
    if type(payload) is Batched and (<Batched>payload).owner is owner:
        return <Batched>payload
    return None


cdef Tensor shared_in(Tensor x, object owner):
    """The tensor that a stand-in of an interpreter carries for all samples alike; another tensor itself."""
    if not x.flags & PT_INTERPOSED:
        return x
    payload = (<TensorExtras>x.extras).payload
    return <Tensor>payload.tensor if getattr(payload, "owner", None) is owner else x


cpdef Tensor sample_of(Tensor stack, object owner):
    """The stand-in of a stack's samples."""
    return <Tensor>stands_for(stack, Batched(stack, owner), 1)


cdef object samples_of(object result, object owner):
    if isinstance(result, tuple):
        return tuple([sample_of(<Tensor?>r, owner) for r in <tuple>result])
    return sample_of(<Tensor?>result, owner)


def run_op(str name, tuple args):
    """Calls an op on arguments in the order of its row; NotImplemented for composites, which have functions."""
    cdef int op = op_id(name)
    cdef int kind = info(op).kind
    if len(args) != <Py_ssize_t>len(info(op).letters):
        return NotImplemented
    if kind == PT_ELEMENTWISE:
        return elementwise_of(op, args)
    if kind == PT_STRUCTURED:
        return call_with(op, args, None)
    if kind == PT_VIEWOP:
        return run_view(op, PySequence_Fast_ITEMS(args), <int>len(args))
    return NotImplemented


def on_stacks(str name, str word, tuple args, owner, bint inplace):
    """The samples that an op gives, or what was written to; None where the general rules are needed."""
    cdef int op = op_id(name)
    if len(args) != <Py_ssize_t>len(info(op).letters):
        return None
    if word == "broadcast" and info(op).kind == PT_ELEMENTWISE:
        return broadcast(op, args, owner, inplace)
    if word == "shift" and not inplace and info(op).kind == PT_STRUCTURED:
        return shifted(op, args, owner)
    return None


cdef object broadcast(int op, tuple args, object owner, bint inplace):
    """Samples of as many dims as any operand are aligned with their hidden dim in front. (A sample without dims gives
    way in promotion, which its stack would not: dtypes must be equal then.)"""
    cdef list given = list(args)
    cdef Batched b
    cdef Tensor t
    cdef int k, least = 64, most = 0, dt = -1
    cdef bint mixed = False, found = False
    for k in range(len(args)):
        if info(op).letters[k] != c'T' and info(op).letters[k] != c'I':
            continue
        x = args[k]
        if not isinstance(x, Tensor):
            if type(x) is int or type(x) is float or type(x) is bool:
                continue
            return None
        b = batched_in(x, owner)
        if b is None:
            t = shared_in(<Tensor>x, owner)
            most = max(most, <int>t.rank)
        else:
            t, found = b.tensor, True
            least, most = min(least, <int>t.rank - 1), max(most, <int>t.rank - 1)
        given[k] = t
        if dt >= 0 and t.dt != dt:
            mixed = True
        dt = t.dt
    if not found or least != most or (mixed and least == 0):
        return None
    result = tuple(given)
    if not inplace:
        return sample_of(<Tensor?>elementwise_of(op, result), owner)
    if batched_in(args[0], owner) is None:
        return None
    elementwise_inplace(op, PySequence_Fast_ITEMS(result), <int>len(result))
    return args[0]


cdef object shifted(int op, tuple args, object owner):
    """Every tensor is batched; a dim that is named is one more."""
    cdef list given = list(args)
    cdef const char *letters = info(op).letters
    cdef Batched b
    cdef int k, rank = -1
    cdef char letter
    for k in range(len(args)):
        letter, x = letters[k], args[k]
        if letter == c'T' or letter == c'I':
            b = batched_in(x, owner)
            if b is None or (rank >= 0 and b.tensor.rank != rank + 1):
                return None
            rank = b.tensor.rank - 1
            given[k] = b.tensor
            if rank == 0:
                return None
        elif letter == c'O' or letter == c'J':
            if x is not None:
                return None
        elif letter == c'd':
            if type(x) is not int or not -rank <= x < rank:
                return None
            given[k] = x + 1 if x >= 0 else x
        elif letter == c'D':
            if x is None:
                given[k] = tuple(range(1, rank + 1))
            elif type(x) is int and -rank <= x < rank:
                given[k] = x + 1 if x >= 0 else x
            else:
                return None
        elif letter != c'b' and letter != c'f' and letter != c's' and letter != c'w' and letter != c't':
            return None
    if rank < 0:
        return None
    return samples_of(call_with(op, tuple(given), None), owner)
