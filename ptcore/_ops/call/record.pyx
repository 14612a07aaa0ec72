"""Recording: makes the Node of a call and attaches it to the outputs."""
from cpython.mem cimport PyMem_Free
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM

from ptcore._types cimport *
from ptcore._dtype cimport CATEGORY, dtype_of
from ptcore._node cimport Node, TensorMeta, new_node
from ptcore._shape cimport same_sizes, sizes_tuple
from ptcore._tensor cimport *
from ptcore._ops.history cimport link, meta_of, save, save_at
from ptcore._ops.history import kept
from ptcore._ops.table.ids cimport *
from ptcore._ops.table.ids import op_id
from ptcore._ops.call.call cimport *
from ptcore._ops.call.operands cimport read_operands
from ptcore._ops.call.read cimport cast, read_plain

cdef enum:
    MAX_KNOWN = 8

# The indices of these ops are tensors inside a tuple: each is saved with its version.
cdef int OP_INDEX_GET = op_id("index_get")
cdef int OP_INDEX_ACCUMULATE = op_id("index_accumulate")
cdef int OP_INDEX_WRITE = op_id("index_write")

# The dims that most calls name, so that nodes need no tuple of their own: (0,), (1,), ... and
# (), (0,), (0, 1), ...
cdef list _one_dim = [(_k,) for _k in range(MAX_KNOWN)]
cdef list _first_dims = [tuple(range(_k)) for _k in range(MAX_KNOWN)]


cdef int record(Call *c, PyObject **results) except -1:
    """Makes the Node of a call and attaches it to the outputs, if one of its tensors gets a gradient."""
    cdef int k
    cdef Node n
    cdef Tensor t
    if c.nout == 1 and CATEGORY[(<Tensor>results[0]).dt] < 2:
        return 0
    n = node_of(c, results)
    if n is None:
        return 0
    if c.nout == 1:
        set_node(<Tensor>results[0], n, 0)
        return 0
    n.nout = c.nout
    n.out_meta = tuple([(size_of(<Tensor>results[k]), dtype_of((<Tensor>results[k]).dt), (<object>results[k]).device)
                        for k in range(c.nout)])
    for k in range(c.nout):
        t = <Tensor>results[k]
        if CATEGORY[t.dt] >= 2:
            set_node(t, n, k)
    return 0


cdef int record_taken(int op, PyObject **args, int n, object result, uint32_t key) except -1:
    """Records a call that an interpreter has run on stand-ins: their history is separate from that of their values."""
    cdef (PyObject *)[8] results
    cdef tuple made = tuple(result) if isinstance(result, tuple) else (result,)
    cdef tuple _held
    cdef Call c
    cdef int k
    for k in range(<int>len(made)):
        results[k] = <PyObject *>made[k]
    begin(&c, op, args, n)
    c.taken = True
    try:
        if c.o.kind == PT_ELEMENTWISE:
            read_operands(&c)
        else:
            _held = read_plain(&c, key)
        c.nout = <int>len(made)
        record(&c, results)
    finally:
        PyMem_Free(c.room)
        Py_XDECREF(c.made)
    return 0


cdef Node node_of(Call *c, PyObject **results):
    """The Node of a call, or None. In place its first edge leads to the earlier history of the tensor."""
    cdef pt_opinfo *o = c.o
    cdef uint32_t need
    cdef int i, k, code
    cdef Tensor r
    cdef Node n = linked(c, &need)
    if n is None:
        return None
    if o.kind != PT_ELEMENTWISE:
        record_params(c, n)
    else:
        n.spec = spec_of(c, <Tensor>results[0], need)
        if c.n > c.nin:
            record_params(c, n)
    for k in range(o.nsaved):
        if not o.need[k] & need:
            continue
        code = saved_code(c, k)
        if code < 0:
            if (o.kind == PT_ELEMENTWISE and o.saved[k] & KEPT and c.written == NULL and is_kept(<object>c.operands[0])
                    and (<Tensor>c.operands[0]).dt == c.compute):
                save(n, k, <object>c.operands[0])
            continue
        if code >= PT_SAVE_OUT:         # an in-place call is about to raise the version by one
            r = <Tensor>results[code - PT_SAVE_OUT]
            save_at(n, k, alias(r), version_of(r) + (c.written != NULL))
        elif code < PT_SAVE_META:
            save(n, k, <object>c.args[code] if o.kind != PT_ELEMENTWISE else operand_of(c, code))
        elif o.kind == PT_ELEMENTWISE:
            if c.tensors[code - PT_SAVE_META] != NULL:
                save_at(n, k, meta_of(<Tensor>c.tensors[code - PT_SAVE_META]), 0)
        elif isinstance(<object>c.args[code - PT_SAVE_META], tuple):
            i = first_of(c, code - PT_SAVE_META)
            save_at(n, k, metas_of(c.tensors + i, <int>PyTuple_GET_SIZE(<object>c.args[code - PT_SAVE_META])), 0)
        elif <object>c.args[code - PT_SAVE_META] is not None:
            save_at(n, k, meta_of(<Tensor>c.args[code - PT_SAVE_META]), 0)
    return n


cdef tuple spec_of(Call *c, Tensor r, uint32_t need):
    """For each operand with a gradient to be summed or cast: its sizes, its dtype, and "cpu" for a CPU scalar beside
    tensors of a device. None: no operand needs that."""
    cdef Out *out = &c.outs[0]
    cdef list spec = None
    cdef Tensor t
    cdef bint apart
    cdef int i
    for i in range(c.nin):
        if not need & (1 << i):
            continue
        t = <Tensor>c.tensors[i]
        apart = (t.rank == 0 and t.storage.device != r.storage.device and t.storage.device == DEVICE_CPU
                 and not (t.flags | r.flags) & PT_INTERPOSED)
        if apart or t.rank != out.ndim or not same_sizes(out.ndim, t.dims, out.sizes) or t.dt != out.dt:
            if spec is None:
                spec = [None] * c.nin
            spec[i] = (size_of(t), dtype_of(t.dt), "cpu") if apart else (size_of(t), dtype_of(t.dt))
    return None if spec is None else tuple(spec)


cdef object operand_of(Call *c, int k):
    """The value that is saved of an operand, after promotion: of the first, its value before the write. Another operand
    in the memory that was written to is saved as it is, so that a backward raises, as in PyTorch: its value is lost."""
    cdef object x = <object>c.operands[k]
    if c.written != NULL:
        if k == 0:
            x = <object>c.before
        elif isinstance(x, Tensor) and (<Tensor>x).storage == (<Tensor>c.written).storage:
            return x
    if isinstance(x, Tensor) and (<Tensor>x).dt != c.compute and k != c.o.condition - 1:
        return cast(<Tensor>x, PT_FLOAT32 if is_wide(c, k) else c.compute)
    return x


cdef Node linked(Call *c, uint32_t *need):
    """A Node with edges to the tensors that get a gradient; None if no tensor does. ``need`` gets a bit for each of
    these arguments, as in grad_mask."""
    cdef pt_opinfo *o = c.o
    cdef int i, edges = 0
    cdef uint32_t found = 0, own
    cdef Node n
    for i in range(c.nin):
        if c.argument[i] == NO_ARGUMENT:
            continue
        edges += 1
        own = <uint32_t>1 << c.argument[i]
        if c.tensors[i] != NULL and o.grad_mask & own and needs_grad(<Tensor>c.tensors[i]):
            found |= own
    need[0] = found
    if not found:
        return None
    n = new_node(c.op, edges)
    for i in range(edges):
        if found & <uint32_t>1 << c.argument[i] and c.tensors[i] != NULL and needs_grad(<Tensor>c.tensors[i]):
            link(n, i, <Tensor>c.tensors[i])
    return n


cdef int first_of(Call *c, int position) noexcept:
    """Where the tensors of the list at a position of the arguments begin."""
    cdef int k, argument = 0, i = 0
    for k in range(position):
        if is_of_tensors(c.o.letters[k]):
            argument += 1
    while i < c.nin and c.argument[i] != argument:
        i += 1
    return i


cdef int record_params(Call *c, Node n) except -1:
    """The other arguments in the order of the row, then the lengths of lists of tensors."""
    cdef (PyObject *)[40] items
    cdef object made, indices, first = None     # these keep borrowed items alive
    cdef list others = None
    cdef int k, count = 0
    if c.normal or c.o.kind == PT_ELEMENTWISE:      # all have the types that rules expect, lists of indices too
        for k in range(c.n):
            if not is_of_tensors(c.o.letters[k]):
                items[count] = c.args[k]
                count += 1
    else:
        for count in range(c.nparams):
            items[count] = c.plain[count]
            if items[count] == NULL:    # a dim or dims, already read
                made = <long>c.params[count].i if c.params[count].kind == PT_PARAM_INT else dims_of(&c.params[count])
                items[count] = <PyObject *>made
                if first is None:
                    first = made
                else:
                    others = [made] if others is None else others + [made]
        count = c.nparams
    if c.op == OP_INDEX_GET or c.op == OP_INDEX_ACCUMULATE or c.op == OP_INDEX_WRITE:
        indices = kept(<object>items[0])
        items[0] = <PyObject *>indices
    if c.o.lists:
        for k in range(c.n):
            if c.o.letters[k] == PT_ARG_TENSORS:
                made = <long>len(<object>c.args[k])
                items[count] = <PyObject *>made
                others = [made] if others is None else others + [made]
                count += 1
    return keep_params(c.op, n, count, items)


cdef inline object size_of(Tensor t):
    """The sizes that a rule gets."""
    return shape_seen(t) if t.flags & PT_INTERPOSED else shape_of(t)


cdef tuple _last_metas = ()


cdef tuple metas_of(PyObject **tensors, int n):
    """The metadata of each tensor; the same tuple as the last time if nothing differs."""
    global _last_metas
    cdef TensorMeta m
    cdef Tensor t
    cdef int i
    if len(_last_metas) == n:
        for i in range(n):
            m, t = <TensorMeta>PyTuple_GET_ITEM(_last_metas, i), <Tensor>tensors[i]
            if (m.rank != t.rank or t.flags & PT_INTERPOSED or m.size is not None or m.layout != t.layout_code
                    or m.dt != t.dt or m.column != t.storage.device
                    or m.number != t.storage.device_index or not same_sizes(t.rank, m.sizes, t.dims)):
                break
        else:
            return _last_metas
    # with more than 5 dims, or with symbolic sizes, the tuple is made anew each time
    _last_metas = tuple([meta_of(<Tensor>tensors[i]) for i in range(n)])
    return _last_metas


cdef tuple dims_of(const pt_param *p):
    """The dims of a parameter as a tuple."""
    cdef int i
    if p.count == 1 and p.list[0] < MAX_KNOWN:
        return <tuple>_one_dim[p.list[0]]
    if p.count < MAX_KNOWN:
        for i in range(p.count):
            if p.list[i] != i:
                break
        else:
            return <tuple>_first_dims[p.count]
    return sizes_tuple(p.count, p.list)


cdef (PyObject *)[4096] _last_params


cdef int keep_params(int op, Node node, int n, PyObject **items) except -1:
    """``node.params`` from n items: the tuple of the op's last node if it held the same objects.

    Small ints, bools, None, dtypes and known dims are the same objects at each call.
    """
    cdef tuple params
    cdef PyObject *last = _last_params[op]
    cdef int i
    if n == 0:
        node.params = ()
        return 0
    if last != NULL and PyTuple_GET_SIZE(<tuple>last) == n:
        for i in range(n):
            if PyTuple_GET_ITEM(<tuple>last, i) != items[i]:
                break
        else:
            node.params = <tuple>last
            return 0
    params = PyTuple_New(n)
    for i in range(n):
        Py_INCREF(<object>items[i])
        PyTuple_SET_ITEM(params, i, <object>items[i])
    node.params = params
    Py_INCREF(params)
    Py_XDECREF(last)
    _last_params[op] = <PyObject *>params
    return 0


# -- elementwise ---------------------------------------------------------------------------------

cdef inline object leaf_of(Tensor t):
    """The target of an edge to a tensor without node (see link)."""
    return t if t.flags & PT_REQUIRES_GRAD else None


cdef int record_plain(int op, Tensor r, object x, object y, uint32_t key) except -1:
    """``record`` of a unary or binary op whose operands have one shape and dtype (or are numbers).

    It is a separate function because these calls have no Call: filling one takes longer than the call itself.
    """
    cdef pt_opinfo *o = info(op)
    cdef Node n
    cdef uint32_t need = 0
    cdef int k, code, nin = o.ntensors
    if not o.differentiable:
        return 0
    if key & PT_VIEW:
        if isinstance(x, Tensor) and needs_grad(<Tensor>x):
            need = 1
        if isinstance(y, Tensor) and needs_grad(<Tensor>y):
            need |= 2
    else:
        if isinstance(x, Tensor) and (<Tensor>x).flags & PT_REQUIRES_GRAD:
            need = 1
        if isinstance(y, Tensor) and (<Tensor>y).flags & PT_REQUIRES_GRAD:
            need |= 2
    need &= o.grad_mask
    if not need:
        return 0
    n = new_node(op, nin)
    if need & 1:
        n.e0 = <object>(<PyObject *>(<Tensor>x).node) if (<Tensor>x).node is not None else leaf_of(<Tensor>x)
        n.n0 = (<Tensor>x).out_nr if (<Tensor>x).node is not None else 0
    if need & 2:
        n.e1 = <object>(<PyObject *>(<Tensor>y).node) if (<Tensor>y).node is not None else leaf_of(<Tensor>y)
        n.n1 = (<Tensor>y).out_nr if (<Tensor>y).node is not None else 0
    for k in range(o.nsaved):
        if o.need[k] & need:
            code = o.saved[k]
            if code == 0:
                save(n, k, x)
            elif code == 1:
                save(n, k, y)
            elif code >= PT_SAVE_OUT:
                save(n, k, alias(r))
            elif code == BY_TYPE + KEPT and is_kept(x):
                save(n, k, x)
    set_node(r, n, 0)
    return 0
