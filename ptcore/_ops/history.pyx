"""Recording: nodes of ops and custom functions, saved values, and the history of in-place writes."""
from cpython.object cimport PyObject

from ptcore._types cimport *
from ptcore._dtype cimport dtype_of
from ptcore._device cimport device_of
from ptcore._node cimport Node, TensorMeta, new_meta, new_node, set_unpack, twin
from ptcore._node import meta_of_sizes
from ptcore._shape cimport any_symbolic, same_sizes
from ptcore._state cimport saved_hooks
from ptcore._tensor cimport *
from ptcore._ops.table.ids cimport *
from ptcore._ops.table.ids import op_id
from ptcore._interpret cimport Payload
from ptcore._interpret import innermost

cdef int link(Node n, int i, Tensor t) except -1:
    """Edge i of n leads to the node of t, or to t itself if it is a leaf.

    A view without history that requires grad only because its base does leads nowhere.
    """
    if t.node is not None:
        n.set_edge(i, t.node, t.out_nr)
    elif t.flags & PT_REQUIRES_GRAD:
        n.set_edge(i, t, 0)


cdef list _metas = [None] * 64          # by a hash of the shape; training saves the same shapes at each step


cdef TensorMeta meta_of(Tensor t):
    cdef TensorMeta m
    cdef uint64_t at = t.rank + 8 * t.dt
    cdef int i
    if t.flags & PT_INTERPOSED and any_symbolic(shape_seen(t)):
        m = meta_of_sizes(shape_seen(t), dtype_of(t.dt), device_of(t.storage.device, t.storage.device_index))
        m.layout = t.layout_code
        return m
    if t.rank > 5:
        m = new_meta(t.rank, t.dims, t.dt, t.storage.device, t.storage.device_index)
        m.layout = t.layout_code
        return m
    for i in range(t.rank):
        at = 31 * at + <uint64_t>t.dims[i]
    at = (at ^ at >> 6) & 63
    if _metas[at] is not None:
        m = <TensorMeta>_metas[at]
        if (m.rank == t.rank and m.layout == t.layout_code and m.dt == t.dt and m.column == t.storage.device
                and m.number == t.storage.device_index and same_sizes(t.rank, m.sizes, t.dims)):
            return m
    m = new_meta(t.rank, t.dims, t.dt, t.storage.device, t.storage.device_index)
    m.layout = t.layout_code
    _metas[at] = m
    return m


cdef class Packed:
    """A saved tensor that a pack hook has replaced, with its history for a recorded backward.

    ``place`` is what counts writes to the tensor (`place_of`), as a number that is only compared, and ``version`` the
    one that it was saved at.
    """
    cdef object value, unpack
    cdef Tensor leaf
    cdef Node node
    cdef int out_nr
    cdef size_t place
    cdef uint64_t version


cdef class Several:
    """The tensors of a list that was saved, each with its version."""
    cdef list values, versions


cdef Several several_of(tuple tensors):
    cdef Several several = Several.__new__(Several)
    several.values, several.versions = [], []
    for t in tensors:
        check_saved(<Tensor>t, b"save")
        several.versions.append(version_of(<Tensor>t))
        several.values.append(pack(t))
    return several


def kept(tensors):
    """Tensors that are not arguments, as a node keeps them: with their versions."""
    return several_of(tensors)


def unchanged(tensors):
    """The tensors that ``kept`` was given; raises if one of them was written to since."""
    return unpack_saved(tensors, 0, None, PT_MAX_SAVED)


cdef object pack(object x):
    cdef list stack
    cdef tuple hooks
    if pt_tls.mode & PT_MODE_SAVED_HOOKS and isinstance(x, Tensor):
        stack = saved_hooks()
        hooks = <tuple>stack[len(stack) - 1]
        return packed(<Tensor>x, hooks[0], hooks[1])
    return x


cdef size_t place_of(Tensor x) noexcept:
    """The address of what counts the writes to x: its counter, or the storage."""
    if x.flags & PT_DATA and x.extras is not None:
        return <size_t><PyObject *>(<TensorExtras>x.extras).counter
    return <size_t>x.storage


cdef Packed packed(Tensor x, object pack_hook, object unpack_hook):
    cdef Packed p = Packed.__new__(Packed)
    cdef uint64_t version = version_of(x)
    p.place = place_of(x)
    p.version = version
    p.value = pack_hook(x)
    if version_of(x) != version:
        raise RuntimeError("saved_tensors_hooks: the pack hook modified the tensor that it was given in place; it "
                           "must not write to it, but may return another one")
    p.unpack = unpack_hook
    if needs_grad(x):
        p.node, p.out_nr = grad_fn_of(x), x.out_nr
        if p.node is None:
            p.leaf = x
    return p


cdef int save(Node n, int slot, object x) except -1:
    """Puts x with its present version into a slot."""
    cdef uint64_t version = 0
    if type(x) is tuple and x and isinstance(x[0], Tensor):
        x = several_of(<tuple>x)
    elif isinstance(x, Tensor):
        if (<Tensor>x).flags & PT_INFERENCE:
            check_saved(<Tensor>x, b"save")
        version = version_of(<Tensor>x)
    save_at(n, slot, x, version)


cdef int check_saved(Tensor x, const char *op) except -1:
    """Inference tensors have no version, so that a write to them could not be caught."""
    if x.flags & PT_INFERENCE:
        raise RuntimeError(f"{op.decode()}: inference tensors cannot be saved for backward; "
                           f"clone() {describe(x)} outside inference mode, or use no_grad in "
                           "place of inference_mode")
    return 0


cdef int save_at(Node n, int slot, object x, uint64_t version) except -1:
    x = pack(x)
    if isinstance(x, Packed):
        (<Packed>x).version = version
    put(n, slot, x, version)


cdef int put(Node n, int slot, object x, uint64_t version) except -1:
    if slot == 0:
        n.s0, n.v0 = x, version
    elif slot == 1:
        n.s1, n.v1 = x, version
    elif slot == 2:
        n.s2, n.v2 = x, version
    elif slot == 3:
        n.s3, n.v3 = x, version
    else:
        if n.smore is None:
            n.smore = []
        while len(n.smore) < 2 * (slot - 4):
            n.smore += [None, 0]
        n.smore[2 * (slot - 4):2 * (slot - 4) + 2] = [x, version]


def handed_on(node, g, needs):
    """The rule of a node that gives its gradient to a leaf."""
    return g


cdef Node node_of_leaf(Tensor leaf):
    """A node for values other than the leaf's own whose gradient is the leaf's."""
    cdef Node n = new_node(-1, 1)
    n.fn = handed_on
    link(n, 0, leaf)
    return n


cdef object unpack_saved(object x, uint64_t version, Node n, int slot):
    cdef Tensor t, r
    cdef Packed p
    cdef int code
    if isinstance(x, Several):
        return tuple([unpack_saved(value, at, n, slot) for value, at in zip(
            (<Several>x).values, (<Several>x).versions)])
    if isinstance(x, Packed):
        p = <Packed>x
        x = p.unpack(p.value)
        if x is not p.leaf and (p.node is not None or p.leaf is not None):
            # The hook decides the value: a leaf's memory may have changed since, and the hook may have rounded it. The
            # history is there in every grad mode, as a rule may ask whether the tensor requires grad.
            r = alias(<Tensor?>x)
            if p.node is not None:
                set_node(r, p.node, p.out_nr)
            else:
                set_node(r, node_of_leaf(p.leaf), 0)
            return r
    elif isinstance(x, Tensor):
        t = <Tensor>x
        if version_of(t) != version:
            whose = "an index" if n is None else f"saved by {node_name(n)}"
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an "
                f"inplace operation: {describe(t)}, {whose}, is at version "
                f"{version_of(t)}; expected version {version} instead")
    if pt_tls.grad_enabled and n is not None and n.op >= 0 and isinstance(x, Tensor):
        code = info(n.op).saved[slot] if slot < PT_MAX_SAVED else 0
        if code >= PT_SAVE_OUT:
            # The output was saved without history; a recorded backward needs it.
            t = <Tensor>x
            r = alias(t)
            if type(n.fn) is Node:
                set_node(r, <Node>n.fn, 0)
            else:
                set_node(r, n, (code & ~BY_TYPE) - PT_SAVE_OUT)
            return r
    return x


set_unpack(unpack_saved)


cdef tuple held(Node n, int slot):
    """What a slot holds, as it was packed, and its version; (None, 0) if nothing."""
    cdef int k = 2 * (slot - 4)
    if slot >= 4:
        return (None, 0) if n.smore is None or k >= len(n.smore) else tuple(n.smore[k:k + 2])
    return ((n.s0, n.v0), (n.s1, n.v1), (n.s2, n.v2), (n.s3, n.v3))[slot]


def slots_of(Node n):
    """{name: slot} of the tensors that the node of a row saves: the names of its arguments, ``result`` for its output
    or ``result0``, ``result1``, ... for several. Slots without a value are left out, but for those of a freed node."""
    cdef pt_opinfo *o
    cdef dict found = {}
    cdef int k, code
    if n.op < 0:
        return found
    o = info(n.op)
    for k in range(o.nsaved):
        code = o.saved[k] & ~BY_TYPE
        if held(n, k)[0] is None and not n.freed:
            continue
        if code >= PT_SAVE_OUT:
            found["result" if o.nout == 1 else f"result{code - PT_SAVE_OUT}"] = k
        elif code < PT_SAVE_META:
            found[arg_name(n.op, code & ~KEPT if o.kind == PT_ELEMENTWISE else code)] = k
    return found


def repack(Node n, int slot, pack_hook, unpack_hook):
    """Replaces the tensor in a slot by what ``pack_hook`` makes of it."""
    x, version = held(n, slot)
    if isinstance(x, Packed):
        raise RuntimeError("register_hooks: the saved tensor has hooks already")
    if not isinstance(x, Tensor):
        raise RuntimeError("register_hooks: the saved value is None, a list, or freed; only tensors have hooks")
    if version_of(<Tensor>x) != version:
        n.saved(slot)                   # raises
    put(n, slot, packed(<Tensor>x, pack_hook, unpack_hook), version)


def saved_unless_written(Node n, int slot):
    """``n.saved(slot)``; None if the tensor was written to since, for a rule that can do without it or compute it
    again. What an unpack hook returns is that tensor if its writes are counted at the same place."""
    cdef uint64_t version
    cdef Packed p
    x, version = held(n, slot)
    if isinstance(x, Packed):
        p = <Packed>x
        x = n.saved(slot)
        return None if p.place == place_of(<Tensor?>x) and version_of(<Tensor>x) != p.version else x
    if isinstance(x, Tensor) and version_of(<Tensor>x) != version:
        return None
    return n.saved(slot)


def written_operand(Node n, int slot):
    """Raises for an operand that was written to since, by a rule that cannot do without it."""
    n.saved(slot)
    raise RuntimeError("one of the variables needed for gradient computation has been modified by an inplace "
                       f"operation: an operand, saved by {node_name(n)}, which an unpack hook returned as it is now")


def node_name(Node n):
    """``MulBackward0``, as PyTorch names nodes; an op with another name in PyTorch has that name in its row."""
    if n.op < 0:
        return getattr(n.fn, "__name__", None) or type(n.fn).__name__
    if info(n.op).node != NULL:
        return info(n.op).node.decode()
    return info(n.op).row.decode().title().replace("_", "") + "Backward0"


# -- in-place -----------------------------------------------------------------------------------

cdef int check_writable(Tensor x, const char *name) except -1:
    if x.storage.flags & PT_STORAGE_READONLY:
        raise RuntimeError(f"{name.decode()}: the tensor's memory is read-only")
    return 0


cdef int check_inplace(Tensor x, const char *op, bint recording) except -1:
    """Raises before anything is written, where PyTorch does.

    ``recording``: grad mode is on and an operand, x included, requires grad. The caller has asked
    needs_grad, so that the flags of a view are up to date.
    """
    check_writable(x, op)
    if x.flags & PT_INFERENCE and not x.flags & PT_DATA and not pt_tls.inference:
        raise RuntimeError(f"{op.decode()}: Inplace update to inference tensor outside InferenceMode is not allowed; "
                           "clone() it first")
    if not recording:
        return 0
    if x.flags & PT_VIEW:
        if x.flags & PT_NO_GRAD_VIEW:
            raise RuntimeError(f"{op.decode()}: the tensor is a view and is being modified inplace. This view was "
                               "created in no_grad mode, in inference mode or inside a custom Function (a module with "
                               "a full backward hook has one around it); such views cannot be modified where the write "
                               "is recorded")
        if x.flags & PT_MULTI_VIEW:
            raise RuntimeError(f"{op.decode()}: the tensor is a view and is being modified inplace. This view is the "
                               "output of a function that returns multiple views; such views cannot be modified where "
                               "the write is recorded")
        if (<Tensor>x.base).node is None and ((<Tensor>x.base).flags | x.flags) & PT_REQUIRES_GRAD:
            raise RuntimeError(f"{op.decode()}: a view of a leaf Variable that requires grad is "
                               "being used in an in-place operation.")
    if x.flags & PT_REQUIRES_GRAD and x.node is None:
        raise RuntimeError(f"{op.decode()}: a leaf Variable that requires grad is being used "
                           "in an in-place operation.")
    return 0


_rebase_view = None                 # installed by autograd: (base, view, node)


def set_rebase_view(f):
    global _rebase_view
    _rebase_view = f


cdef bint is_counted_below(Tensor x) noexcept:
    """Whether the write itself counts: a write to a stand-in is also one to the memory of its value."""
    return x.flags & (PT_INTERPOSED | PT_VALUELESS) == PT_INTERPOSED


cdef int finish_inplace(Tensor x, Node n) except -1:
    """After a write to x: counts the version and gives x (or its base) the new history."""
    if not is_counted_below(x):
        count_write(x)
    if n is None:
        if x.flags & PT_VIEW and not (<Tensor>x.base).flags & PT_REQUIRES_GRAD:
            x.attr_version = version_of(x)
        return 0
    if x.flags & PT_VIEW:
        _rebase_view(x.base, x, n)
        x.attr_version = version_of(x) - 1
        if x.flags & PT_RETAIN_GRAD and x.node is not None:
            sync_view(x)                # retain_grad moves to the view's new node
        else:           # until the view's own node is asked for: the base may be detached before that
            x.node, x.out_nr = (<Tensor>x.base).node, 0
    else:
        set_node(x, n, 0)
    return 0


cdef Tensor written_base(Tensor t):
    """The base of a view whose history is made anew. One that was detached after a write through the view has its
    history from before, as in PyTorch."""
    cdef Tensor base = <Tensor>t.base
    if (base.node is None and not base.flags & PT_REQUIRES_GRAD and t.node is not None and t.node.op < 0
            and t.attr_version == version_of(t) - 1 and getattr(t.node.fn, "__name__", "") == "CopySlices"):
        return attach_history(base, t.node, 0)
    return base


def hang(Tensor base, rule, Node inner):
    """Makes the CopySlices node of a write through a view and attaches it to the base."""
    cdef Node n = new_node(-1, inner.nin)
    cdef int i
    if base.node is not None or base.flags & PT_REQUIRES_GRAD:
        link(n, 0, base)
    for i in range(1, inner.nin):
        n.set_edge(i, inner.edge(i), inner.edge_nr(i))
    n.fn = rule
    set_node(base, n, 0)


def written_as(Node inner, Node outer, Tensor whole not None, window):
    """The node ``inner`` of a write through a view, for a recorded backward of the write's node ``outer``.

    Its saved output is a window of the base after the write, so that a backward through it comes to ``outer``, whose
    backward would otherwise find that ``inner`` has been released.

    Parameters
    ----------
    inner, outer : Node
    whole : Tensor
        With the sizes and strides of the base.
    window : callable(Tensor) -> Tensor
        The view's window of the base.
    """
    cdef Node n
    cdef int k
    if inner.op < 0 or not any([info(inner.op).saved[k] >= PT_SAVE_OUT for k in range(info(inner.op).nsaved)]):
        return inner
    n = twin(inner)
    n.fn = node_after(outer, whole, window)
    return n


def node_after(Node outer, Tensor whole not None, window):
    """The node of a window of the base after the write of ``outer``; arguments as in ``written_as``."""
    cdef Tensor after = alias(whole)
    set_node(after, outer, 0)
    return grad_fn_of(<Tensor?>window(after))


def window_of(Tensor x, size, stride, offset):
    """``x`` seen through sizes, strides and an offset relative to its first element."""
    return FUNCTIONS[op_id("as_strided_of")](
        x, size, stride, x.storage_offset() + offset, (), 0)


# -- nodes of custom functions -----------------------------------------------------------------------

def custom_node(rule, list inputs, list outputs, tuple saved, set dirty):
    """The Node of an autograd.Function call.

    Parameters
    ----------
    rule : callable(node, g, needs)
    inputs : list
        All arguments of the call; those that are no Tensors get no edge.
    outputs : list
        Tensors that get history; None for the others. An output that is an input must be in
        ``dirty`` (by id), and was written to.
    saved : tuple
        The arguments of ``save_for_backward``.
    """
    cdef int i, k
    cdef Tensor t
    # Asked before there is the node: a view that is older than its base's history gets a node by it.
    cdef list tracked = [isinstance(x, Tensor) and needs_grad(<Tensor>x) for x in inputs]
    cdef Node n = new_node(-1, len(inputs))
    for i in range(len(inputs)):
        if tracked[i]:
            link(n, i, <Tensor>inputs[i])
    n.fn = rule
    n.nout = len(outputs)
    from_output = {}
    for k in range(len(saved)):
        x = saved[k]
        if isinstance(x, Tensor):
            for i in range(len(outputs)):
                if outputs[i] is x:
                    from_output[k] = i
                    x = alias(<Tensor>x)
                    break
        if id(saved[k]) in dirty:       # the write is counted when the call is done
            check_saved(<Tensor>x, b"save_for_backward")
            save_at(n, k, x, version_of(<Tensor>x) + (not is_counted_below(<Tensor>x)))
        else:
            save(n, k, x)
    if n.nout > 1:
        n.out_meta = tuple([None if y is None else (y.shape, dtype_of((<Tensor>y).dt), y.device)
                            for y in outputs])
    counted = set()
    for i in range(len(outputs)):
        if outputs[i] is None:
            continue
        t = <Tensor>outputs[i]
        if id(t) in dirty:
            if t.flags & PT_VIEW:       # the only output (check_dirty), so it is output 0
                finish_inplace(t, n)
                if is_counted_below(t):     # the write was counted before the history of views was asked for
                    for x in inputs:
                        if isinstance(x, Tensor) and (<Tensor>x).base is t.base:
                            (<Tensor>x).attr_version = version_of(<Tensor>x) - 1
                continue
            if id(t) not in counted and not is_counted_below(t):
                count_write(t)
            counted.add(id(t))
        set_node(t, n, i)
    return n, from_output


def attach_history(Tensor t, Node n, int nr):
    """An alias of t whose history is output nr of n."""
    cdef Tensor r = alias(t)
    set_node(r, n, nr)
    return r


def has_values(x):
    """Whether the data of a tensor can be read: it is not on the meta device and not a stand-in."""
    cdef Tensor t = <Tensor?>x
    return t.storage.device != DEVICE_META and not t.flags & PT_INTERPOSED


cdef list values_behind(object x):
    """The plain tensors of which x is one, or for which it stands: several for a stand-in of samples. None if their
    values are not known."""
    cdef Payload payload
    cdef list inner
    if has_values(x):
        return [x]
    if not (<Tensor>x).flags & PT_INTERPOSED:
        return None
    payload = (<TensorExtras>(<Tensor>x).extras).payload
    if not (payload.known or payload.stacked) or payload.tensor is None:
        return None
    inner = values_behind(payload.tensor)
    if inner is None or not payload.stacked:
        return inner
    return [sample for stack in inner for sample in stack.unbind(0)]


class ValueCheck:
    """A function that raises an error where the values of its first argument, a tensor, are not allowed. It sees the
    samples of a batch one by one.

    Where that tensor has no values, an interpreter that writes programs down may keep the call for their runs.
    Files of programs name it by the function's name without ``check_`` (``jit/_script/names.py``). Made as a decorator.
    """
    only_checks = True

    def __init__(self, function):
        self.function = self.__wrapped__ = function
        self.__name__ = self.__qualname__ = function.__name__
        self.__module__ = function.__module__

    def __call__(self, x, *args):
        values = values_behind(x)
        if values is not None:
            for value in values:
                self.function(value, *args)
            return
        top = innermost()
        if top is not None:
            top.value_check(self, (x, *args))
