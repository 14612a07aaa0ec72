"""Functions of the compiled core for the engine: rules by op id, and the gradient of leaves."""

from ptcore._types cimport *
from ptcore._events cimport PT_MODE_RULE, pt_profile
from ptcore._dtype cimport CATEGORY, dtype_of
from ptcore._shape cimport is_dense, same_sizes
from ptcore._tensor cimport *
from ptcore._ops.writing cimport copy_into
from ptcore._ops.table.ids cimport PT_ELEMENTWISE, VJPS, info
from ptcore._ops.creation.creation import full, ones_like
from ptcore._ops.functions import clone
from ptcore.autograd.helpers import formula_rule, sum_to

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(object)


cpdef bint has_hooks(object leaf) noexcept:
    """Whether a leaf has a hook on its gradient, or a hook for after the accumulation."""
    cdef object extras = (<Tensor>leaf).extras
    return extras is not None and bool((<TensorExtras>extras).hooks or (<TensorExtras>extras).post_hooks)


cpdef bint is_recorded() noexcept:
    """Whether a profile is on."""
    return pt_profile.run != 0


cpdef void record_rule(bint on) noexcept:
    """Marks the begin or the end of the rule of a built-in op; inside, a profile records calls by id."""
    if on:
        pt_tls.mode |= PT_MODE_RULE
    else:
        pt_tls.mode &= ~<uint32_t>PT_MODE_RULE


cpdef object rule_of(int op):
    """The compiled rule of an op, or None if its family is not loaded yet."""
    return VJPS[op]


def load_rule(int op):
    """Loads the family of an op and returns the op's rule."""
    import importlib
    importlib.import_module(f"ptcore.autograd._vjp_{info(op).family.decode()}")
    if VJPS[op] is None and info(op).kind == PT_ELEMENTWISE and info(op).differentiable:
        VJPS[op] = formula_rule(op)
    rule = VJPS[op]
    if rule is None:
        raise NotImplementedError(f"{info(op).name.decode()}: there is no derivative")
    return rule


cpdef object producer(object t):
    """The node that computed a tensor, or None for a leaf."""
    return grad_fn_of(<Tensor>t)


cpdef object plain_seed(object t, object given):
    """The start of a backward at a tensor with history: a gradient of its shape and dtype, or one for a real floating
    scalar without a given gradient. None in all other cases."""
    cdef Tensor x = <Tensor>t
    cdef Tensor g
    if given is not None:
        if not isinstance(given, Tensor) or not needs_grad(x):
            return None
        g = <Tensor>given
        return g if (g.dt == x.dt and g.rank == x.rank and g.storage.device == x.storage.device
                     and same_sizes(x.rank, g.dims, x.dims)) else None
    if x.count != 1 or CATEGORY[x.dt] != 2 or not needs_grad(x):
        return None
    if x.storage.device != DEVICE_CPU or x.dt != PT_FLOAT32 and x.dt != PT_FLOAT64:
        return ones_like(x)
    if (x.flags | pt_tls.mode) & PT_INTERPOSED:
        return full(x.shape, 1, dtype=x.dtype, device=x.device)
    g = new_like(x, x.dt)
    if x.dt == PT_FLOAT32:
        (<float *>address(g))[0] = 1
    else:
        (<double *>address(g))[0] = 1
    return g


cpdef object of_shape(object leaf, object gradient):
    """A gradient in the shape of its leaf. Raises where it has another one: ``.data`` was set in between."""
    cdef Tensor t = <Tensor>leaf
    cdef Tensor g = <Tensor>gradient
    if g.rank != t.rank or not same_sizes(t.rank, t.dims, g.dims):
        g = <Tensor>sum_to(g, shape_of(t))
        if g.rank != t.rank or not same_sizes(t.rank, t.dims, g.dims):
            raise RuntimeError(f"backward: a gradient has the shape {list(g.shape)}, expected that of its tensor, "
                               f"{list(t.shape)}")
    return g


cpdef object accumulate_leaf(object leaf, object gradient, bint create_graph, int owned):
    """Adds a gradient to ``leaf.grad``.

    The gradient itself becomes ``.grad`` only when nobody else can see its memory: ``owned``
    is the number of references to it that the engine holds (0: the rule did not make it, so
    it may not be taken), no other reference exists and no other tensor shows its storage.
    A rule that hands one tensor to two inputs, or a hook or a custom Function that keeps the
    gradient, has one more reference than that. Otherwise ``.grad`` is a copy. A leaf that has been frozen since the
    forward pass gets none.
    """
    cdef Tensor t = <Tensor>leaf
    cdef Tensor g = <Tensor>gradient
    if not t.flags & PT_REQUIRES_GRAD:
        return None
    if g.flags & PT_INTERPOSED and not t.flags & PT_INTERPOSED:
        g = <Tensor?>(<TensorExtras>g.extras).payload.landed()
    if g.dt != t.dt:
        g = <Tensor>(g.real if CATEGORY[g.dt] == 3 and CATEGORY[t.dt] < 3 else g).to(
            dtype_of(t.dt))
    g = <Tensor>of_shape(t, g)
    if g.storage.device != t.storage.device and not (g.flags | t.flags) & PT_INTERPOSED:
        if t.rank:
            raise RuntimeError(f"backward: a gradient is on {g.device}, its tensor on {t.device}")
        g = <Tensor>g.to(t.device)
    track(t)
    if t.grad_ is None:
        if create_graph or g.flags & PT_INTERPOSED:
            t.grad_ = clone(g)
        elif (owned and g.storage.refs == 1 and g.node is None
                and not (g.flags | t.flags) & PT_NONCONTIGUOUS and not g.flags & PT_SLOW & ~PT_NON_CPU
                and g.storage.owner == NULL and type(g) is Tensor
                and Py_REFCNT(g) <= owned + OWN_REFS):
            t.grad_ = g
        else:
            t.grad_ = laid_like(t, g)
            copy_into(<Tensor>t.grad_, alias(g))
    elif create_graph or (<Tensor>t.grad_).flags & PT_REQUIRES_GRAD:
        t.grad_ = t.grad_ + g
    else:
        t.grad_ += g
    return None


def accumulate_results(tuple inputs, tuple leaves, results, tuple places):
    """Adds ``results[places[k]]``, which only ``results`` refers to, to the gradient of the leaf
    ``inputs[leaves[k]]``, with its hooks."""
    cdef Py_ssize_t k
    cdef Tensor t
    for k in range(len(leaves)):
        t = <Tensor?>inputs[<Py_ssize_t>leaves[k]]
        g = results[<Py_ssize_t>places[k]]
        if has_hooks(t):
            from ptcore.autograd._tensor_hooks import finish_leaf
            finish_leaf(t, g, False, accumulate_leaf)
        else:
            accumulate_leaf(t, g, False, 2)     # that of ``results`` and ``g``


cdef Tensor laid_like(Tensor t, Tensor g):
    """Memory for a gradient: with the strides of the leaf if it has no gaps, else as g."""
    if t.flags & PT_NONCONTIGUOUS and is_dense(t.rank, t.dims, t.dims + t.rank):
        return new_strided(g.dt, t.rank, t.dims, t.dims + t.rank, g.storage.device, g.storage.device_index)
    return new_like(g, g.dt)


# The reference that accumulate_leaf itself holds: its variable g.
# tests/autograd/test_engine.py::test_no_two_grads_share_memory proves it.
cdef enum:
    OWN_REFS = 1
