"""Subclasses of Tensor, ``.data`` and stand-ins: functions that give a tensor another class or memory.

A plain subclass keeps its type through ops; ``Parameter`` and others with the disabled
``__torch_function__`` stay on the fast path (``class_flags`` in _tensor.pyx).
"""
import sys

from libc.string cimport memcpy, memset

from ptcore._types cimport *
from ptcore._dtype cimport CATEGORY, ITEMSIZE, dtype_of
from ptcore._node cimport Node, new_node
from ptcore import _tensor
from ptcore._shape cimport any_symbolic, is_dense, read_sizes
from ptcore._interpret cimport TOLD_CHANGED, Interpreter, Payload, told
from ptcore._interpret import set_let_go
from ptcore._tensor cimport *
from ptcore._state cimport stacks
from ptcore._state import _disabled_torch_function_impl
from _weakref import ref

cdef enum:
    MANY = 1024                 # from this many stand-ins on, the dead ones are looked for


def fill_subclass(Tensor t not None, args):
    """``Tensor.__new__(cls, data)`` of a subclass makes the tensor, as in PyTorch, whatever ``cls.__init__`` does.
    Arguments unknown to the constructor are left to ``__init__``, which raises if it is Tensor's."""
    try:
        made = _tensor.legacy_constructor(*args)
    except Exception:
        return
    take_over(t, made)


def take_over(Tensor r not None, Tensor t not None):
    """Gives the instance r (of any class) the memory and the history of t, which nobody else has."""
    adopt(r, t)
    r.flags |= t.flags & (PT_REQUIRES_GRAD | PT_VIEW | PT_NO_GRAD_VIEW | PT_MULTI_VIEW)
    r.node, r.out_nr, r.base, r.attr_version = t.node, t.out_nr, t.base, t.attr_version
    track(r)
    if t.flags & (PT_DATA | PT_INTERPOSED):
        share_extras(r, t)


_tensor.fill_subclass = fill_subclass
_tensor.take_over = take_over


def check_plain(Tensor t not None, str op):
    """Raises where the elements of t are not its whole value: where its class says, in ``_no_plain_form``, what a
    program can take in place of them."""
    advice = getattr(type(t), "_no_plain_form", None)
    if advice is not None:
        raise TypeError(f"{op}: there is no form of it for a {type(t).__name__}; {advice}")


def check_buffer(Tensor t not None):
    """Raises unless the elements of t are known here, and are its whole value."""
    if t.flags & PT_INTERPOSED:
        raise BufferError("buffer: the value of a traced or batched tensor is not known here")
    check_plain(t, "buffer")


_tensor.check_buffer = check_buffer


def _default_torch_function(cls, func, types, args=(), kwargs=None):
    """``Tensor.__torch_function__``: runs func and keeps a plain subclass's type."""
    for t in types:
        if not issubclass(cls, t):
            return NotImplemented
    if "torch" in sys.modules:
        from ptcore._overrides import refuse_function_of_others
        refuse_function_of_others(func, args, kwargs or {})
    result = _disabled_torch_function_impl(func, types, args, kwargs)
    return _keep_type(result, cls, args, kwargs)


cdef object _keep_type(object result, cls, args, kwargs):
    """The tensors of a result in a class. An argument that is returned is still the caller's: a view of it is."""
    if type(result) is Tensor:
        if cls is Tensor:
            return result
        return as_subclass(result, cls) if is_among(result, args) or kwargs and is_among(
            result, kwargs.values()) else taken_over(result, cls)
    if isinstance(result, (tuple, list)) and any(type(r) is Tensor for r in result):
        items = [_keep_type(r, cls, args, kwargs) for r in result]
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
    return result


cdef bint is_among(object x, args) except -1:
    """Whether x itself stands among arguments, or in a list or tuple of them."""
    for a in args:
        if a is x or isinstance(a, (tuple, list)) and is_among(x, a):
            return True
    return False


cdef object _view_of_all = None


def set_view_of_all(f):
    """Sets the function for a view of all of a tensor, which a floor above defines."""
    global _view_of_all
    _view_of_all = f


def all_of(Tensor t not None):
    """A view that shows all of t, or t if it is not strided."""
    return t if t.flags & PT_LAYOUT else _view_of_all(t)


def as_subclass(Tensor t not None, cls):
    """A view of class ``cls`` (a subclass of Tensor) that shows all of t."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"as_subclass: cls must be a subclass of Tensor, got {cls!r}")
    shown = all_of(t)
    return shown if type(shown) is cls and cls is Tensor else taken_over(shown, cls)


cdef Tensor taken_over(Tensor t, cls):
    """``take_over`` of t by a new tensor of class ``cls``."""
    cdef Tensor r = Tensor.__new__(cls)
    take_over(r, t)
    return r


def make_subclass(cls, Tensor data not None, bint require_grad=False):
    """``Tensor._make_subclass``: a leaf of class ``cls`` over the memory of ``data``."""
    cdef Tensor r = Tensor.__new__(cls)
    data = detached(data)               # a stand-in's value has a history, too
    adopt(r, data)
    if data.flags & (PT_DATA | PT_INTERPOSED):
        share_extras(r, data)
    if require_grad:
        r.requires_grad = True
    return r


def set_data(Tensor t, Tensor data not None):
    """``t.data = data``: t takes over the memory and geometry of data, keeps its history.

    Its version goes on from where it is. If the version of the new storage differs, t counts
    its writes separately.
    """
    cdef uint32_t keep = t.flags & (PT_REQUIRES_GRAD | PT_SUBCLASS | PT_NOT_EXACT
                                    | PT_RETAIN_GRAD | PT_DATA)
    cdef uint64_t version = version_of(t)
    if t is data:
        return
    if (t.flags | data.flags) & PT_INTERPOSED:
        # what the program sets here would be lost: an interpreter follows values, not which memory shows them
        told(TOLD_CHANGED, "data", t)           # a capture ends here
        from ptcore._errors import here
        raise RuntimeError("data: the memory of a traced or batched tensor cannot be set, nor shown by another tensor; "
                           "write to it in place with copy_" + here())
    forget_cast(t)
    if t.dt != data.dt and t.flags & PT_REQUIRES_GRAD and CATEGORY[data.dt] < 2:
        raise RuntimeError(f"data: dtype must be floating or complex, got "
                           f"{dtype_of(data.dt).name}")
    adopt(t, data)
    if keep & PT_NOT_EXACT:         # t's class may have been exchanged, as for a lazy parameter
        keep &= ~(PT_SUBCLASS | PT_NOT_EXACT)
        t.flags &= ~(PT_SUBCLASS | PT_NOT_EXACT)
        t.flags |= (<Tensor>Tensor.__new__(type(t))).flags & (PT_SUBCLASS | PT_NOT_EXACT)
    t.flags |= keep
    if not keep & PT_DATA and (data.flags & PT_DATA or data.storage.version != version):
        count_apart(t, version)
    if pt_tls.mode & PT_INTERPOSED:     # resize_ and set_ come here as well
        told(TOLD_CHANGED, "data", t)


def assign_data(Tensor t, Tensor data not None):
    """The setter: values do not go to ``meta`` and do not come from there, as in PyTorch."""
    cdef bint from_meta = data.storage.device == DEVICE_META
    if (t.storage.device == DEVICE_META) != from_meta and not (t.flags | data.flags) & PT_INTERPOSED:
        raise RuntimeError(f"data: a tensor on {t.device} and one on {data.device} have incompatible types; a "
                           f"parameter is replaced instead")
    set_data(t, data)


cdef int swap_classes(object a, object b) except -1:
    of_a, of_b = type(a), type(b)
    a.__class__ = of_b
    try:
        b.__class__ = of_a
    except BaseException:
        a.__class__ = of_a
        raise
    return 0


cdef int swap_slot(object a, object b, str name) except -1:
    """Exchanges a member of a class with slots, which either object may lack."""
    of_a, of_b = getattr(a, name, NotImplemented), getattr(b, name, NotImplemented)
    for t, value in ((a, of_b), (b, of_a)):
        if value is not NotImplemented:
            setattr(t, name, value)
        elif hasattr(t, name):
            delattr(t, name)
    return 0


def swap_contents(Tensor a not None, Tensor b not None, slots, list ends):
    """Gives each of two tensors what the other holds: class, members, memory and geometry, history, gradient, hooks and
    the user's attributes. Whatever else refers to the two stays, which :func:`swap_tensors` looks at before; edges of
    ``ends``, each a node, a number and a tensor, get that tensor as their end.

    No Python code runs in between, so that an interrupt comes before or after.
    """
    cdef uint32_t flags = a.flags
    cdef int64_t[10] kept
    cdef int64_t *dims = a.dims
    cdef bint near = a.dims == &a.inline_dims[0]
    swap_classes(a, b)
    for name in slots:
        swap_slot(a, b, name)
    for node, i, end in ends:
        (<Node?>node).set_edge(i, end, 0)
    forget_cast(a)
    forget_cast(b)
    track(a)
    track(b)
    a.flags, b.flags = b.flags, flags
    for t in (a, b):
        (<Tensor>t).flags &= ~(PT_SUBCLASS | PT_NOT_EXACT)
        (<Tensor>t).flags |= (<Tensor>Tensor.__new__(type(t))).flags & (PT_SUBCLASS | PT_NOT_EXACT)
    memcpy(kept, a.inline_dims, sizeof(kept))
    memcpy(a.inline_dims, b.inline_dims, sizeof(kept))
    memcpy(b.inline_dims, kept, sizeof(kept))
    a.dims = &a.inline_dims[0] if b.dims == &b.inline_dims[0] else b.dims
    b.dims = &b.inline_dims[0] if near else dims
    a.storage, b.storage = b.storage, a.storage
    a.offset, b.offset = b.offset, a.offset
    a.count, b.count = b.count, a.count
    a.rank, b.rank = b.rank, a.rank
    a.dt, b.dt = b.dt, a.dt
    a.out_nr, b.out_nr = b.out_nr, a.out_nr
    a.layout_code, b.layout_code = b.layout_code, a.layout_code
    a.attr_version, b.attr_version = b.attr_version, a.attr_version
    a.node, b.node = b.node, a.node
    a.grad_, b.grad_ = b.grad_, a.grad_
    a.base, b.base = b.base, a.base
    a.extras, b.extras = b.extras, a.extras
    a.attributes, b.attributes = b.attributes, a.attributes


def take_memory(Tensor t not None, Tensor source not None):
    """``t.set_(source)``: as PyTorch, a write without derivative. A backward through it raises."""
    cdef Node n
    cdef bint recorded = pt_tls.grad_enabled and needs_grad(source)
    set_data(t, source)
    count_write(t)
    if recorded:
        n = new_node(-1, 1)
        n.fn = set_backward
        if source.node is not None:
            n.set_edge(0, source.node, source.out_nr)
        elif source.flags & PT_REQUIRES_GRAD:
            n.set_edge(0, source, 0)
        set_node(t, n, 0)


def set_backward(node, g, needs):
    raise RuntimeError("derivative for set_ is not implemented: use the source itself, or copy_()")


set_backward.__name__ = "NotImplemented"


cdef int forget_cast(Tensor t) except -1:
    """Drops the cast of a parameter that autocast keeps: what is written through ``.data`` does not count as t's."""
    if pt_tls.autocast:
        stacks().casts.pop(id(t), None)
    return 0


cpdef Tensor detached(Tensor t):
    """The same memory without history. For a stand-in, its value has no history at any level either, and no tangent."""
    if t.flags & PT_INTERPOSED:
        found = (<TensorExtras>t.extras).payload.detached()
        if found is not None:
            return <Tensor?>found
    return alias(t)


def get_data(Tensor t):
    """``t.data``: the same memory without history; its writes are not counted as t's."""
    if t.flags & PT_SUBCLASS and not pt_tls.torch_function_off:
        return of_class(Tensor.data.__get__, t)
    forget_cast(t)
    cdef Tensor r = detached(t)
    count_apart(r, 0)
    return r


def of_class(function, t, *args, **kwargs):
    """The result of a mode, or of the ``__torch_function__`` of t's class, for a function that is not an op.

    Arguments without effect (None, False) are left out.
    """
    from ptcore._overrides import ask
    return ask(function, (t, *args), {k: v for k, v in kwargs.items() if v is not None and v is not False})


def stand_in(Tensor like not None, shape, Payload payload not None):
    """A stand-in: a tensor for a value that an interpreter handles without data here.

    It has ``shape`` and the dtype and device of ``like``, but no data of its own: its strides are 0
    over one element, so that no read goes past the end. Ops on it are offered to
    the interpreter stack; ``item`` asks ``payload.item(tensor)``, any other read of data raises.
    """
    cdef int64_t[64] sizes
    cdef int64_t[64] strides
    cdef int ndim = read_sizes(shape, sizes, b"stand_in", b"shape")
    memset(strides, 0, sizeof(strides))
    cdef Tensor s = new_strided(like.dt, ndim, sizes, strides, like.storage.device,
                                like.storage.device_index)
    (<TensorExtras>extras_of(s)).payload = payload
    s.flags |= PT_INTERPOSED | PT_VALUELESS
    return s


cpdef Tensor stands_for(Tensor value, Payload payload, int hidden=0):
    """A tensor that stands for ``value`` without its first ``hidden`` dims.

    Its strides, its offset and its count of writes are those of the first part, whose memory it shows. Reading it
    raises as for any stand-in. It has no base and no history: those of ``value`` are visible only from outside.
    """
    if value is None or payload is None:
        raise TypeError(f"stands_for: expected a Tensor and a Payload, got {value!r} and {payload!r}")
    cdef int ndim = value.rank - hidden
    cdef Tensor s = shell(ndim)
    memcpy(s.dims, value.dims + hidden, ndim * sizeof(int64_t))
    memcpy(s.dims + ndim, value.dims + value.rank + hidden, ndim * sizeof(int64_t))
    share_from(s, value, value.offset)
    (<TensorExtras>extras_of(s)).payload = payload
    s.flags |= PT_INTERPOSED
    note(s)
    return s


cdef int note(Tensor s) except -1:
    """Adds a stand-in to those of its interpreter, if that collects them. The dead ones are left out whenever the list
    has doubled."""
    cdef Interpreter owner = (<TensorExtras>s.extras).payload.owner
    cdef list found = None if owner is None else owner.stand_ins
    if found is None:
        return 0
    cdef Py_ssize_t n = len(found)
    found.append(ref(s))
    if n >= MANY and n & (n - 1) == 0:
        found[:] = [r for r in found if r() is not None]
    return 0


def land(Tensor x not None):
    """Makes a stand-in plain, in place: its memory is its value's already. If the value is a stand-in of an interpreter
    further out, x becomes one as well. x keeps the history that it has as a stand-in; one that was made of a tensor in
    place (``become``) gets back that of the tensor."""
    cdef Payload payload = (<TensorExtras>x.extras).payload
    cdef Tensor value = payload.tensor
    if payload.of_tensor:
        x.flags |= value.flags & PT_REQUIRES_GRAD
        x.node, x.out_nr = value.node, value.out_nr
        x.attr_version = version_of(x) - (x.flags & PT_VIEW != 0)       # a view derives its history from its base's
    (<TensorExtras>x.extras).payload = (<TensorExtras>value.extras).payload if value.flags & PT_INTERPOSED else None
    if not value.flags & PT_INTERPOSED:
        x.flags &= ~<uint32_t>PT_INTERPOSED


cdef object let_go(object x):
    """Makes the tensors among arguments plain whose interpreter has ended and lets go of them; the interpreter, or
    None if there are no such tensors."""
    found = None
    if isinstance(x, Tensor):
        while (<Tensor>x).flags & PT_INTERPOSED:
            owner = (<Payload>(<TensorExtras>(<Tensor>x).extras).payload).owner
            if owner is None or not (<Interpreter>owner).lets_go:
                break
            land(<Tensor>x)
            found = owner
    elif isinstance(x, (tuple, list)):
        for item in x:
            found = let_go(item) or found
    return found


cdef bint shows_memory(object result) except -1:
    """Whether all results of a view are stand-ins for tensors with memory, so that strides are known."""
    for x in result if isinstance(result, tuple) else (result,):
        if not isinstance(x, Tensor) or not (<Tensor>x).flags & PT_INTERPOSED or (<Tensor>x).flags & PT_VALUELESS:
            return False
    return True


def view_for(Tensor value not None, Payload payload not None, Tensor base not None):
    """The stand-in of a value that a custom Function returns, as a view of ``base``, which may not be written to where
    the write would be recorded."""
    cdef Tensor r = stands_for(value, payload)
    track(r)
    r.base = base
    r.flags |= PT_VIEW | PT_NO_GRAD_VIEW
    r.attr_version = version_of(r)
    return r


cdef int lend(Tensor r, Tensor value) except -1:
    """Makes r show the stand-in ``value``, of the same sizes; r keeps its own base and history."""
    pt_storage_incref(value.storage)
    pt_storage_decref(r.storage)
    r.storage, r.offset = value.storage, value.offset
    memcpy(r.dims, value.dims, 2 * r.rank * sizeof(int64_t))
    r.flags = r.flags & ~PT_NONCONTIGUOUS | value.flags & PT_NONCONTIGUOUS
    share_extras(r, value)
    r.attr_version = version_of(r)
    note(r)
    return 0


def counts_apart(Tensor t not None):
    """Whether the writes to t are not counted as those of its storage: ``data`` gives such tensors."""
    return t.flags & PT_DATA != 0


def counter_of_writes(Tensor value not None):
    """A counter for the writes to a value that several stand-ins show. The value is exchanged, never written to."""
    cdef Tensor r = alias(value)
    count_apart(r, 0)
    return r


def counted_by(Tensor s not None, Tensor counter not None):
    """The stand-in s with the given counter of writes, which all stand-ins of the counter share."""
    share_counter(s, counter)
    s.attr_version = version_of(s)
    return s


def count_one(Tensor counter not None):
    """Adds one write to a counter."""
    (<VersionCounter>(<TensorExtras>counter.extras).counter).value += 1


def carried_by(x, owner):
    """The payload of an interpreter's stand-in; None if x is not a stand-in of that interpreter."""
    if not isinstance(x, Tensor) or not (<Tensor>x).flags & PT_INTERPOSED:
        return None
    cdef Payload payload = (<TensorExtras>(<Tensor>x).extras).payload
    return payload if payload.owner is owner else None


def let_all_go(list references, owner):
    """Makes the stand-ins plain that an interpreter which has ended has collected."""
    for reference in references:
        x = reference()
        if x is not None and carried_by(x, owner) is not None:
            land(x)


set_let_go(let_all_go)


def become(Tensor x not None, Payload payload=None):
    """Turns x, in place, into a stand-in with ``payload``. Without a payload: an alias of x with its present history,
    which a payload can then hold.

    The stand-in has no history of its own; a view derives one from that of its base when it is next asked for it.
    """
    cdef Tensor r
    if payload is not None:
        x.flags = x.flags & ~PT_REQUIRES_GRAD | PT_INTERPOSED
        x.node = None
        x.attr_version = version_of(x) - (x.flags & PT_VIEW != 0)
        (<TensorExtras>extras_of(x)).payload = payload
        payload.of_tensor = True
        note(x)
        return x
    r = alias(x)
    r.flags |= x.flags & (PT_REQUIRES_GRAD | PT_VIEW | PT_NO_GRAD_VIEW | PT_MULTI_VIEW)
    r.node, r.out_nr, r.base, r.attr_version = x.node, x.out_nr, x.base, x.attr_version
    return r


def value_behind(Tensor t not None, str op):
    """An alias without history of the tensor whose values are those of a stand-in: what the stand-in of a derivative
    stands for. Raises where the values are several, or not known."""
    while t.flags & PT_INTERPOSED:
        payload = (<TensorExtras>t.extras).payload
        if not payload.known or payload.stacked:
            from ptcore._errors import here
            raise RuntimeError(f"{op}: the value of a traced or batched tensor is not known here{here()}")
        t = <Tensor>payload.tensor
    return alias(t)


def payload_of(Tensor x not None):
    """The payload of a stand-in; None for any other tensor."""
    return (<TensorExtras>x.extras).payload if x.flags & PT_INTERPOSED else None


def fills_storage(Tensor t not None):
    """2 if the elements lie in order from the start to the end of the storage, 1 if they fill it in another order, else
    0; of a stand-in, those that it shows."""
    if t.flags & PT_VALUELESS:
        return 2
    if t.offset != 0 or t.count * ITEMSIZE[t.dt] != t.storage.nbytes:
        return 0
    return 2 if not t.flags & PT_NONCONTIGUOUS else is_dense(t.rank, t.dims, t.dims + t.rank)


def storage_places(Tensor t not None):
    """How many elements the storage has room for; of a stand-in, the storage that it shows."""
    return t.storage.nbytes // ITEMSIZE[t.dt]


def symbolic_layout(Tensor t not None, bint strides):
    """The strides, or else the offset, of a stand-in of symbolic sizes. None: the tensor's own.

    The payload may have them (``strides``, ``offset``). Otherwise, if the elements fill their memory in some order of
    the dims, the strides are products of sizes and the offset is 0.
    """
    cdef object sizes = shape_seen(t), given
    cdef Payload payload = (<TensorExtras>t.extras).payload
    if not any_symbolic(sizes):
        given = payload.strides
        if given is None or not any_symbolic(given):
            return None
    behind = payload.tensor
    if isinstance(behind, Tensor) and (<Tensor>behind).flags & PT_INTERPOSED:
        return behind.stride()[(<Tensor>behind).rank - t.rank:] if strides else behind.storage_offset()
    given = payload.strides if strides else payload.offset
    if given is not None:
        return tuple(given) if strides else given
    if strides:
        return dense_strides(t, sizes)
    if t.offset:
        raise RuntimeError(f"storage_offset: where the elements of a tensor of symbolic sizes {list(sizes)} begin is "
                           "not known")
    return None


cdef tuple dense_strides(Tensor t, object sizes):
    """The strides of a stand-in without gaps, as products of its symbolic sizes."""
    cdef const int64_t *strides = t.dims + t.rank
    cdef list found = [None] * t.rank
    cdef int64_t at = 1
    cdef int i, left = 0
    for i in range(t.rank):
        if strides[i] == 0:             # a repeated dim
            found[i] = 0
        elif t.dims[i] != 1:
            left += 1
    step = 1
    while left:
        for i in range(t.rank - 1, -1, -1):
            if found[i] is None and strides[i] == at and t.dims[i] != 1:
                found[i] = step
                step, at, left = step * sizes[i], at * t.dims[i], left - 1
                break
        else:
            raise RuntimeError(f"stride: the strides of a tensor of symbolic sizes {list(sizes)} are not known where "
                               "it has gaps")
    step = 1
    for i in range(t.rank - 1, -1, -1):
        if found[i] is None:            # a dim of size 1: any stride is valid
            found[i] = step
        elif strides[i] != 0:
            step = found[i] * sizes[i]
    return tuple(found)


_tensor.layout_seen = symbolic_layout


def check_grad(Tensor t not None, value):
    """Raises for a value that cannot be the gradient of a tensor."""
    if not isinstance(value, Tensor):
        from ptcore._overrides import refuse_tensors_of_others
        refuse_tensors_of_others("grad", [value])
        raise TypeError(f"grad: must be a Tensor or None, got {type(value).__name__}")
    cdef Tensor g = <Tensor>value
    if g is t:
        raise RuntimeError("grad: a tensor cannot be its own gradient")
    if not same_shape(g, t):
        raise RuntimeError(f"grad: shape must be {list(t.shape)}, got {list(g.shape)}")
    if g.dt != t.dt:
        raise RuntimeError(f"grad: dtype must be {dtype_of(t.dt).name}, got {dtype_of(g.dt).name}")
    if g.storage.device != t.storage.device:
        raise RuntimeError(f"grad: device must be {t.device}, got {g.device}")


_tensor.check_grad = check_grad


def own_leaf(Tensor x not None, int number):
    """The same value as a leaf that requires grad and belongs to a call of a transformation, with a number above
    0: only that call asks for its gradient."""
    cdef Tensor r = alias(x)
    (<TensorExtras>extras_of(r)).level = -number
    r.flags |= PT_REQUIRES_GRAD
    return r


def savable(Tensor x not None):
    """The same value and memory, as a tensor that a backward may keep though it was made under inference mode.
    """
    cdef Tensor r = alias(x)
    r.flags &= ~<uint32_t>PT_INFERENCE
    return r


def owner_of(Tensor x not None):
    """The number of the call that a leaf belongs to; 0 if it belongs to none."""
    if x.extras is None or (<TensorExtras>x.extras).level >= 0:
        return 0
    return -(<TensorExtras>x.extras).level


def without_node(Tensor x not None):
    """The same value at every level, without the history of this tensor."""
    return alias(x)


# What this module adds to Tensor.
Tensor.as_subclass = as_subclass
Tensor._make_subclass = staticmethod(make_subclass)
Tensor.__torch_function__ = classmethod(_default_torch_function)
Tensor.data = property(get_data, assign_data)
