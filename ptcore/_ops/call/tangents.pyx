"""Forward mode in C, without Python code: most ops on values with tangents run here.

``Pushing`` answers calls of elementwise rows by the fused gradients of their partials, which are linear in the
tangent; calls of linear rows with one tensor; and views. All other calls go to ``call`` of its subclass, which reads
every kind of rule (``autograd/dual.py``).
"""
cimport cython

from ptcore._dtype cimport CATEGORY
from ptcore._interpret cimport Interpreter, Payload, is_differentiated
from ptcore._types cimport *
from ptcore._tensor cimport *
from ptcore._ops.call.batched cimport CompiledInterpreter, is_common, made_as, run_by_id
from ptcore._ops.call.elementwise cimport elementwise_of
from ptcore._ops.call.run cimport call_with
from ptcore._ops.table.ids cimport *
from ptcore._ops.table.ids import op_id
from ptcore._subclass cimport stands_for
from ptcore._ops import arguments, row
from ptcore._ops.table import expr, schema

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(object)

cdef enum:
    OWN_REFS = 2        # of an attribute and a variable

cdef int DETACH = op_id("detach"), MUL = op_id("mul"), ADD = op_id("add"), NEG = op_id("neg"), EXPAND = op_id("expand")


# -- what stand-ins carry --------------------------------------------------------------------------

@cython.binding(False)                  # so that methods check their self
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class Dual(Payload):
    """The payload of a stand-in: a value and its tangent.

    Attributes
    ----------
    tensor : Tensor
    tangent : Tensor or None
        None stands for zeros.
    shows : tuple or None
        For a view, its origin: the tensor, the op, the op's other arguments, and the position among the results or
        None. Such a payload has no tangent of its own.
    moved : bool
        Whether the tensor's dims were changed in place: the ops by which its views were made no longer give their
        tangents, their strides do.
    """
    known = True

    def __init__(self, Tensor tensor not None, Tensor tangent, Interpreter owner, tuple shows=None):
        self.tensor, self.tangent, self.owner, self.shows = tensor, tangent, owner, shows

    def __repr__(self):
        return repr(self.tensor) if self.tangent is None else f"{repr(self.tensor)[:-1]}, tangent={self.tangent!r})"

    def item(self, stand_in):
        return self.tensor.item()

    def detached(self):
        return paired(self.tensor.detach(), None, self.owner)

    def made_like(self, Tensor x not None):
        """A stand-in for x, made after the pattern of this value. Its history is of this level."""
        return paired(made_as(self.tensor, x.detach()), None, self.owner).requires_grad_(x.requires_grad)

    def landed(self):
        return self.tensor

    def is_sole(self):
        """Whether nobody else sees the tangent, so that it may be written to: no result, view, node or caller has it or
        shows its memory. What it shows as a stand-in of an outer interpreter counts too."""
        cdef Tensor t = self.tangent, value = None
        cdef pt_storage *storage
        if t is None or Py_REFCNT(t) > OWN_REFS:
            return False
        storage = t.storage
        if t.flags & PT_INTERPOSED:
            behind = (<TensorExtras>t.extras).payload.tensor
            if type(behind) is not Tensor or t.flags & PT_VALUELESS:
                return False
            value, behind = <Tensor>behind, None
            if value.flags & PT_INTERPOSED or value.storage != storage or Py_REFCNT(value) > OWN_REFS:
                return False
        return (storage.refs == (1 if value is None else 2) and storage.owner == NULL and storage.handle == NULL
                and not storage.flags & (PT_STORAGE_EXPORTED | PT_STORAGE_SHARED | PT_STORAGE_READONLY))


cpdef Tensor paired(Tensor x, Tensor tangent, Interpreter owner):
    """The stand-in of a value and its tangent."""
    cdef Dual payload = Dual.__new__(Dual)
    payload.tensor, payload.tangent, payload.owner = x, tangent, owner
    return stands_for(x, payload)


# -- terms -----------------------------------------------------------------------------------------

cdef enum Term:                         # how the tangent of an argument enters the tangent of the result
    NOTHING, ITSELF, NEGATIVE, TIMES, FUSED, APPLIED

cdef dict _terms = {}                   # op -> the result of terms_of


cdef list terms_of(int op):
    """For each argument of an op: a Term, the id of a fused gradient, and the positions of the arguments that follow
    the tangent in its call, -1 for the result. None: the general rules are needed."""
    found = _terms.get(op, 0)
    if found == 0:
        found = _terms[op] = linear_terms(row(op)) if info(op).kind == PT_STRUCTURED else partial_terms(row(op))
    return <list>found


cdef list linear_terms(own):
    """The terms of a row that is linear in its tensors, or in each of them: the op, applied to the tangent."""
    spec = arguments(own)
    if own.jvp not in ("linear", "bilinear") or any([a.letter in "LIJ" for a in spec]):
        return None
    tensors = [k for k, a in enumerate(spec) if a.is_tensor]
    if own.jvp == "linear" and len(tensors) > 1:
        return None
    return [(APPLIED if k in tensors else NOTHING, 0, ()) for k in range(len(spec))]


cdef list partial_terms(own):
    """The terms of a row of partials, if each is a constant, a name, or has a fused gradient."""
    spec = arguments(own)
    if own.jvp != "partial" or own.promote == "where" or any([a.letter in "OIJL" for a in spec]):
        return None
    tensors = [k for k, a in enumerate(spec) if a.is_tensor]
    places = {a.name: k for k, a in enumerate(spec)}
    places.update(zip(expr.TENSOR_NAMES, tensors))
    places["out"] = -1
    fused = schema.derived(own)
    found = [(NOTHING, 0, ())] * len(spec)
    for i, k in enumerate(tensors):
        text = own.partial[i]
        text = "0" if text is None else text.strip()
        if text == "1":
            found[k] = ITSELF, 0, ()
        elif text == "-1":
            found[k] = NEGATIVE, 0, ()
        elif text in places:
            found[k] = TIMES, 0, (places[text],)
        elif i in fused:
            one = fused.get("x", fused[i])
            names, params = one.uses
            found[k] = FUSED, op_id(one.name), tuple([places[n] for n in (*names, *params)])
        elif text != "0":
            return None
    return found


# -- the interpreter -------------------------------------------------------------------------------

@cython.binding(False)                  # so that methods check their self
cdef class Pushing(CompiledInterpreter):
    """Runs the common calls on values and their tangents; ``call`` of the subclass runs all others."""
    differentiates = True

    def tangent(self, x):
        """The tangent of a tensor, or None."""
        raise NotImplementedError

    cdef object offered(self, int op, tuple args, int variant):
        cdef int kind = info(op).kind
        cdef list values = [], tangents = [], terms = None
        cdef bint mine = False, live = False
        cdef int k
        if variant != 0 or not is_common(op, args):
            return None
        for k in range(len(args)):
            if not self.parts(args[k], values, tangents, &mine, &live):
                return None
        given = tuple(values)
        if kind == PT_VIEWOP:
            result = run_by_id(op, given)
            return self.shown(op, args, given, result) if mine else result
        if live:
            terms = terms_of(op)
            if terms is None or not is_simple(given, tangents):
                return None
        result = run_by_id(op, given)
        if not mine:
            return result
        if result is given[0]:
            return args[0]
        if not isinstance(result, Tensor):
            return None if live else tuple([paired(<Tensor>r, None, self) if isinstance(r, Tensor) else r
                                            for r in <tuple?>result])
        if not live:
            return paired(<Tensor>result, None, self)
        if (<Tensor>result).dt != (<Tensor>first_of(tangents)).dt:
            return None
        return paired(<Tensor>result, pushed(op, terms, given, tangents, <Tensor>result), self)

    cdef int parts(self, object x, list values, list tangents, bint *mine, bint *live) except -1:
        """Appends the value and the tangent of an argument; 0 if they need the general rules."""
        cdef Dual dual
        cdef Tensor t
        if isinstance(x, Tensor):
            t = <Tensor>x
            if self.has(t):
                dual = <Dual?>(<TensorExtras>t.extras).payload
                values.append(dual.tensor)
                tangents.append(dual.tangent if dual.shows is None else self.tangent(t))
                mine[0] = True
                live[0] = live[0] or tangents[len(tangents) - 1] is not None
                return 1
            if t.base is not None and self.has(<Tensor>t.base):     # it became a stand-in after this view was made
                return 0
        elif type(x) is tuple or type(x) is list:
            for y in <object>x:
                if isinstance(y, Tensor):
                    return 0
        values.append(x)
        tangents.append(None)
        return 1

    cdef bint has(self, Tensor x) noexcept:
        """Whether x is a stand-in of this interpreter."""
        return x.flags & PT_INTERPOSED and (<TensorExtras>x.extras).payload.owner is self

    cdef object shown(self, int op, tuple args, tuple given, object result):
        """The stand-ins of a value's views."""
        cdef int dt = (<Tensor>given[0]).dt, k
        cdef list made = []
        if result is given[0]:
            return args[0]
        if op == DETACH:
            return paired(<Tensor?>result, None, self)
        for k, r in enumerate(result if isinstance(result, tuple) else (result,)):
            if (<Tensor?>r).dt != dt or is_copy(<Tensor>r, <Tensor>given[0]):
                return None
            made.append(stands_for(<Tensor>r, Dual(<Tensor>r, None, self, (
                args[0], op, args[1:], k if isinstance(result, tuple) else None))))
        return tuple(made) if isinstance(result, tuple) else made[0]


cpdef bint is_copy(Tensor result, Tensor x):
    """Whether the result of a view row is no view of x: a ``reshape`` that had to copy. A stand-in's view has the
    stand-in's base, wherever the values are."""
    cdef uint32_t key = result.flags | x.flags
    if key & PT_VALUELESS:
        return False
    if key & PT_INTERPOSED:
        return result.base is not (x if x.base is None else x.base)
    return result.storage != x.storage


cpdef bint may_share(Tensor x, Tensor y):
    """Whether two values may show the same memory."""
    if (x.flags | y.flags) & PT_VALUELESS:
        return x is y or x.dt == y.dt
    return x.storage == y.storage or (x if x.base is None else x.base) is (y if y.base is None else y.base)


cdef object first_of(list tangents):
    for t in tangents:
        if t is not None:
            return t


cdef bint is_simple(tuple values, list tangents) except -1:
    """Whether all tensors have one real floating dtype, no half type, whose tangents are computed in float32, and the
    tangents are not differentiated."""
    cdef int dt = -1
    cdef Tensor x
    if is_differentiated():
        return False
    for value in (*values, *tangents):
        if isinstance(value, Tensor):
            x = <Tensor>value
            if ((dt >= 0 and x.dt != dt) or CATEGORY[x.dt] != 2 or x.dt == PT_FLOAT16 or x.dt == PT_BFLOAT16
                    or (pt_tls.grad_enabled and needs_grad(x))):
                return False
            dt = x.dt
    return True


cdef Tensor pushed(int op, list terms, tuple given, list tangents, Tensor result):
    """The tangent of a result: the sum of its terms; None for zero."""
    cdef Tensor total = None, t, added
    cdef int k, at
    for k in range(len(given)):
        if tangents[k] is None:
            continue
        t = <Tensor>tangents[k]
        kind, fused, places = <tuple>terms[k]
        if kind == NOTHING:
            continue
        if kind == ITSELF:
            added = t
        elif kind == NEGATIVE:
            added = <Tensor?>elementwise_of(NEG, (t,))
        elif kind == APPLIED:
            added = <Tensor?>call_with(op, (*given[:k], t, *given[k + 1:]), None)
        else:
            taken = tuple([result if at < 0 else given[at] for at in <tuple>places])
            added = <Tensor?>elementwise_of(MUL if kind == TIMES else fused, (t, *taken))
        total = added if total is None else <Tensor?>elementwise_of(ADD, (total, added))
    if total is None or same_shape(total, result):
        return total
    return <Tensor?>run_by_id(EXPAND, (total, result.shape))
