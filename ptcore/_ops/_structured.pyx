"""The fast path of structured ops: plain tensors of one dtype on one device, and a common shape rule.

Everything lives on the C stack: views, parameters, sizes. The few shape rules that most calls
use (the generator recognises their texts) are worked out in C; whatever is not plain, and every
error, goes to ``_dispatch.call`` and the row's own spec. tests/ops/test_meta.py holds both to the
same answer.
"""
from cpython.mem cimport PyMem_Free
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from cpython.sequence cimport PySequence_Fast_GET_SIZE, PySequence_Fast_ITEMS
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM
from libc.string cimport memset

from ptcore._types cimport *
from ptcore._device cimport BACKENDS, PT_DECOMPOSE, memory_failure
from ptcore._dtype cimport CATEGORY, dtype
from ptcore._node cimport Node, TensorMeta, new_node
from ptcore._shape cimport is_dense, same_sizes, sizes_tuple
from ptcore._tensor cimport *
from ptcore._ops._dispatch cimport args_need_grad, call as general_call, own_all
from ptcore._ops._writing cimport place_for
from ptcore._ops._record cimport link, meta_of, save, save_at, trace_of_user
from ptcore._ops._table cimport (
    PT_PROMOTE_FLOAT, PT_SAVE_META, PT_SAVE_OUT, RULE_BMM, RULE_CAST, RULE_LAID, RULE_LAID_CAST,
    RULE_LIKE, RULE_LINEAR, RULE_MM, RULE_REDUCED, RULE_REDUCED_BOOL, RULE_REDUCED_NONEMPTY, RULE_REDUCED_SUM,
    info, kernel_of, pt_opinfo, raise_status)

cdef extern from "Python.h":
    int64_t PyLong_AsLongLongAndOverflow(object, int *) noexcept

cdef enum:
    MAX_TENSORS = 6
    MAX_PARAMS = 8
    MAX_KNOWN = 8
    SMALL = 16384

# The dims that most calls name, so that nodes need no tuple of their own: (0,), (1,), ... and
# (), (0,), (0, 1), ...
cdef list _one_dim = [(_k,) for _k in range(MAX_KNOWN)]
cdef list _first_dims = [tuple(range(_k)) for _k in range(MAX_KNOWN)]


cdef object call(int op, PyObject **args, int n, object out):
    """Runs a structured op on n arguments in the order of its row."""
    cdef pt_opinfo *o = info(op)
    if out is None and o.rule:
        result = plain_call(op, o, args, n)
        if result is not None:
            return result
    return general_call(op, tuple([<object>args[k] for k in range(n)]), out)


cdef object join(int op, object tensors, object dim, object out):
    """``call`` of ``cat``, of a tuple or list."""
    cdef (PyObject *)[16] given
    cdef Py_ssize_t i, n = PySequence_Fast_GET_SIZE(tensors)
    cdef object result = None
    if 0 < n <= 16:
        for i in range(n):              # a list may be changed while the kernel runs
            given[i] = PySequence_Fast_ITEMS(tensors)[i]
            Py_INCREF(<object>given[i])
        try:
            result = joined(op, info(op), given, <int>n, dim, out)
        finally:
            for i in range(n):
                Py_DECREF(<object>given[i])
        if result is not None:
            return result
    return general_call(op, (tensors, dim), out)


cdef int launch(int op, pt_kernel kernel, pt_view *views, int nin, pt_view *out, const pt_param *params,
                int nparams, int64_t work) except -1:
    """Runs a kernel of one output on work elements; PT_OK, or what says that it wants the general call."""
    cdef pt_call c
    cdef int64_t *room
    cdef int status
    c.op = op
    c.nin, c.nout, c.nparams = nin, 1, nparams
    (<const pt_view **>&c.inputs)[0] = views
    c.out = out
    (<const pt_param **>&c.params)[0] = params
    c.stream = NULL
    if out.device != DEVICE_CPU and BACKENDS[out.device].stream != NULL:
        c.stream = BACKENDS[out.device].stream(out.device_index)
    c.error[0] = 0
    if work > SMALL:
        room = own_all(views, nin, out, 1)
        pt_kernels_enter()
        with nogil:
            status = kernel(&c)
        pt_kernels_leave()
        PyMem_Free(room)
    else:
        status = kernel(&c)
    if status != PT_OK and status != PT_NEED_BLAS and status != PT_DECOMPOSE:
        if status == PT_MEMORY_ERROR and out.device != DEVICE_CPU:
            status = memory_failure(out.device, out.device_index)
        raise_status(status, info(op).name, c.error)
    return status


cdef enum:
    SLOW_ON_ANY_DEVICE = PT_SLOW & ~PT_NON_CPU


cdef bint on_device_of(Tensor lead, const pt_view *views, int n) noexcept:
    """Whether all operands are on lead's device, one that is known by a backend if it is not the CPU."""
    cdef int k, column = lead.storage.device
    if column != DEVICE_CPU and BACKENDS[column] == NULL:
        return False
    for k in range(n):
        if views[k].dtype != PT_NONE and (views[k].device != column or (
                column != DEVICE_CPU and views[k].device_index != lead.storage.device_index)):
            return False
    return True


cdef pt_param no_param                   # all zero
memset(&no_param, 0, sizeof(pt_param))


cdef inline bint read_dim(object value, int ndim, int64_t *dim) noexcept:
    """A wrapped dim from an exact int; False sends the call to the general path."""
    cdef int overflow = 0
    cdef int64_t v
    if type(value) is not int:
        return False
    v = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow or v < -ndim or v >= ndim:
        return False
    dim[0] = v + ndim if v < 0 else v
    return True


cdef object plain_call(int op, pt_opinfo *o, PyObject **args, int n):
    """The result, or None if the call is not plain."""
    cdef pt_kernel kernel
    cdef const char *letters = o.letters
    cdef pt_view[6] views
    cdef pt_param[8] params
    cdef (PyObject *)[6] tensors            # borrowed from args; NULL: None
    cdef (PyObject *)[8] plain              # the other arguments; NULL: wrapped dims, in params
    cdef int64_t[64] dims
    cdef int64_t[64] sizes
    cdef pt_view out_view
    cdef Tensor t, lead = None, r
    cdef object x
    cdef uint32_t key = pt_tls.mode
    cdef uint64_t seen = 0
    cdef int k, j, nin = 0, nparams = 0, ndims = 0, dt = -1, ndim = 0, out_dt
    cdef bint keepdim = False
    cdef int64_t work
    cdef char letter
    if o.random or o.prefill or n > 8:
        return None
    for k in range(n):
        x = <object>args[k]
        letter = letters[k]
        if letter == c'T' or letter == c'I' or letter == c'O':
            if nin == MAX_TENSORS:
                return None
            if x is None:
                if letter != c'O':
                    return None
                memset(&views[nin], 0, sizeof(pt_view))
                views[nin].dtype = PT_NONE
                tensors[nin] = NULL
            else:
                if not isinstance(x, Tensor):
                    return None
                t = <Tensor>x
                tensors[nin] = <PyObject *>x
                key |= t.flags
                fill_view(t, &views[nin])
                if letter != c'I':
                    if dt < 0:
                        dt = t.dt
                    elif dt != t.dt:
                        return None
                if lead is None:
                    lead = t
            nin += 1
            continue
        if nparams == MAX_PARAMS or lead is None:
            return None
        params[nparams] = no_param
        plain[nparams] = NULL
        if letter == c'D':
            params[nparams].kind = PT_PARAM_INTS
            params[nparams].list = dims
            if x is None:
                ndims = lead.rank
                for j in range(ndims):
                    dims[j] = j
                seen = (<uint64_t>1 << ndims) - 1 if ndims < 64 else <uint64_t>0xFFFFFFFFFFFFFFFF
            elif type(x) is int:
                if not read_dim(x, lead.rank, &dims[0]):
                    return None
                ndims = 1
                seen = <uint64_t>1 << dims[0]
            elif type(x) is tuple and 0 < len(<tuple>x) <= lead.rank:
                for item in <tuple>x:
                    if not read_dim(item, lead.rank, &dims[ndims]):
                        return None
                    if seen & (<uint64_t>1 << dims[ndims]):
                        return None
                    seen |= <uint64_t>1 << dims[ndims]
                    ndims += 1
            else:
                return None
            params[nparams].count = ndims
        elif letter == c'd':
            if not read_dim(x, lead.rank, &params[nparams].i):
                return None
            params[nparams].kind = PT_PARAM_INT
            params[nparams].d = <double>params[nparams].i
            seen = <uint64_t>1 << params[nparams].i
        elif letter == c'b':
            if x is not True and x is not False:
                return None
            keepdim = x is True
            plain[nparams] = <PyObject *>x
            params[nparams].kind, params[nparams].i = PT_PARAM_INT, keepdim
        elif letter == c'f':
            if type(x) is not float:
                return None
            params[nparams].kind, params[nparams].d = PT_PARAM_FLOAT, <double>x
            plain[nparams] = <PyObject *>x
        elif letter == c't':
            if x is not None and not (o.rule in (RULE_CAST, RULE_LAID_CAST) and type(x) is dtype):
                return None
            plain[nparams] = <PyObject *>x
            if x is not None:
                params[nparams].kind, params[nparams].i = PT_PARAM_INT, (<dtype>x).code
        else:
            return None
        nparams += 1
    if lead is None or key & SLOW_ON_ANY_DEVICE or not o.types & (1 << dt):
        return None
    if key & PT_NON_CPU and not on_device_of(lead, views, nin):
        return None
    kernel = kernel_of(op, lead.storage.device)
    if kernel == NULL:
        return None
    if o.promote == PT_PROMOTE_FLOAT and CATEGORY[dt] < 2:
        return None
    out_dt = dt
    # -- the shape rules ---------------------------------------------------------------------
    if o.rule == RULE_LIKE or o.rule == RULE_LAID:
        ndim = lead.rank
        for j in range(ndim):
            sizes[j] = lead.dims[j]
    elif o.rule == RULE_CAST or o.rule == RULE_LAID_CAST:
        ndim = lead.rank
        out_dt = <int>params[0].i
        for j in range(ndim):
            sizes[j] = lead.dims[j]
    elif RULE_REDUCED <= o.rule <= RULE_REDUCED_BOOL:
        if o.rule == RULE_REDUCED_SUM:
            if CATEGORY[dt] < 2:
                out_dt = PT_INT64
        elif o.rule == RULE_REDUCED_BOOL:
            out_dt = PT_BOOL
        elif o.rule == RULE_REDUCED_NONEMPTY and lead.count == 0:
            return None
        for j in range(lead.rank):
            if seen & (<uint64_t>1 << j):
                if keepdim:
                    sizes[ndim] = 1
                    ndim += 1
            else:
                sizes[ndim] = lead.dims[j]
                ndim += 1
    elif o.rule == RULE_MM:
        if (views[0].ndim != 2 or views[1].ndim != 2
                or views[0].sizes[1] != views[1].sizes[0]):
            return None
        ndim = 2
        sizes[0], sizes[1] = views[0].sizes[0], views[1].sizes[1]
    elif o.rule == RULE_BMM:
        if (views[0].ndim != 3 or views[1].ndim != 3 or views[0].sizes[0] != views[1].sizes[0]
                or views[0].sizes[2] != views[1].sizes[1]):
            return None
        ndim = 3
        sizes[0], sizes[1], sizes[2] = (views[0].sizes[0], views[0].sizes[1], views[1].sizes[2])
    elif o.rule == RULE_LINEAR:
        ndim = views[0].ndim
        if (ndim == 0 or views[1].ndim != 2 or views[0].sizes[ndim - 1] != views[1].sizes[1]):
            return None
        if views[2].dtype != PT_NONE and (views[2].ndim != 1
                                          or views[2].sizes[0] != views[1].sizes[0]):
            return None
        for j in range(ndim - 1):
            sizes[j] = views[0].sizes[j]
        sizes[ndim - 1] = views[1].sizes[0]
    else:
        return None
    if o.contiguous and key & PT_NONCONTIGUOUS:
        return None
    if (key & PT_NONCONTIGUOUS and o.rule >= RULE_LAID and lead.flags & PT_NONCONTIGUOUS
            and is_dense(ndim, lead.dims, lead.dims + ndim)):
        r = new_strided(out_dt, ndim, sizes, lead.dims + ndim, lead.storage.device, lead.storage.device_index)
    else:
        r = new_tensor(out_dt, ndim, sizes, lead.storage.device, lead.storage.device_index)
    fill_view(r, &out_view)
    work = r.count + lead.count
    if nin > 1 and views[1].dtype != PT_NONE:
        work += views[1].numel
    if launch(op, kernel, views, nin, &out_view, params, nparams, work) != PT_OK:
        return None
    if key & (PT_REQUIRES_GRAD | PT_RECORD_SLOW) and pt_tls.grad_enabled and o.differentiable:
        record_plain(op, o, args, r, tensors, nin, plain, params, nparams)
    return r


cdef object joined(int op, pt_opinfo *o, PyObject **given, int n, object at, object out):
    """``cat`` of a few tensors that differ in one dim at most, or None."""
    cdef pt_kernel kernel
    cdef pt_view[16] views
    cdef pt_view out_view
    cdef pt_param dim = no_param
    cdef int64_t[64] sizes
    cdef Tensor r, lead
    cdef uint32_t key = pt_tls.mode
    cdef int i, j, dt = 0, rank = 0
    cdef int64_t total = 0
    cdef bint recorded
    for i in range(n):
        if not isinstance(<object>given[i], Tensor):
            return None
        key |= (<Tensor>given[i]).flags
        fill_view(<Tensor>given[i], &views[i])
        if i == 0:
            dt, rank = views[0].dtype, views[0].ndim
            if not read_dim(at, rank, &dim.i):
                return None
            for j in range(rank):
                sizes[j] = views[0].sizes[j]
        elif views[i].dtype != dt or views[i].ndim != rank:
            return None
        for j in range(rank):
            if sizes[j] != views[i].sizes[j] and j != dim.i:
                return None
        total += views[i].sizes[dim.i]
    lead = <Tensor>given[0]
    if key & SLOW_ON_ANY_DEVICE or not o.types & (1 << dt) or (key & PT_NON_CPU and not on_device_of(lead, views, n)):
        return None
    kernel = kernel_of(op, lead.storage.device)
    if kernel == NULL:
        return None
    sizes[dim.i] = total
    recorded = key & (PT_REQUIRES_GRAD | PT_RECORD_SLOW) and pt_tls.grad_enabled
    if out is None:
        r = new_tensor(dt, rank, sizes, lead.storage.device, lead.storage.device_index)
    else:
        tensors = [<object>given[i] for i in range(n)]
        if recorded and args_need_grad(tensors):
            return None
        r = place_for(out, dt, rank, sizes, lead.storage.device, lead.storage.device_index, (tensors,), o.name)
        if r is None:
            return None
    fill_view(r, &out_view)
    dim.kind, dim.d = PT_PARAM_INT, <double>dim.i
    if launch(op, kernel, views, n, &out_view, &dim, 1, r.count) != PT_OK:
        return None
    if out is not None:
        count_write(<Tensor>out)
        return out
    if recorded:
        record_joined(op, given, n, dim.i, r)
    return r


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
            if (m.rank != t.rank or m.rank > 5 or m.dt != t.dt or m.column != t.storage.device
                    or m.number != t.storage.device_index or not same_sizes(t.rank, m.sizes, t.dims)):
                break
        else:
            return _last_metas
    _last_metas = tuple([meta_of(<Tensor>tensors[i]) for i in range(n)])
    return _last_metas


cdef int record_joined(int op, PyObject **tensors, int n, int64_t dim, Tensor r) except -1:
    """What ``record`` does for the one list, one parameter and one output of ``cat``."""
    cdef Node node = None
    cdef int i
    cdef (PyObject *)[2] params
    cdef object at = <long>dim, length = n
    if CATEGORY[r.dt] < 2:
        return 0
    for i in range(n):
        if needs_grad(<Tensor>tensors[i]):
            if node is None:
                node = new_node(op, n)
            link(node, i, <Tensor>tensors[i])
    if node is None:
        return 0
    node.s0 = metas_of(tensors, n)
    params[0], params[1] = <PyObject *>at, <PyObject *>length
    keep_params(op, node, 2, params)
    if pt_tls.mode & PT_MODE_ANOMALY:
        node.trace = trace_of_user()
    set_node(r, node, 0)
    return 0


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


cdef int record_plain(int op, pt_opinfo *o, PyObject **args, Tensor r, PyObject **tensors, int nin,
                      PyObject **plain, const pt_param *params, int nparams) except -1:
    """The Node of a plain call: at most six tensors, one output."""
    cdef int k, code
    cdef uint32_t need = 0
    cdef Node node
    cdef object dims, dim, x            # of either at most one: they keep what plain borrows
    if CATEGORY[r.dt] < 2:
        return 0
    for k in range(nin):
        if o.grad_mask & (1 << k) and tensors[k] != NULL and needs_grad(<Tensor>tensors[k]):
            need |= 1 << k
    if not need:
        return 0
    node = new_node(op, nin)
    for k in range(nin):
        if need & (1 << k):
            link(node, k, <Tensor>tensors[k])
    if nparams:
        for k in range(nparams):
            if plain[k] == NULL and params[k].kind == PT_PARAM_INTS:
                dims = dims_of(&params[k])
                plain[k] = <PyObject *>dims
            elif plain[k] == NULL:
                dim = <long>params[k].i
                plain[k] = <PyObject *>dim
        keep_params(op, node, nparams, plain)
    for k in range(o.nsaved):
        if not o.need[k] & need:
            continue
        code = o.saved[k]
        if code >= PT_SAVE_OUT:
            save(node, k, alias(r))
        elif code >= PT_SAVE_META:
            x = <object>args[code - PT_SAVE_META]
            if x is not None:
                save_at(node, k, meta_of(<Tensor>x), 0)
        else:
            save(node, k, <object>args[code])
    if pt_tls.mode & PT_MODE_ANOMALY:
        node.trace = trace_of_user()
    set_node(r, node, 0)
    return 0
