"""The fast path of structured ops: plain CPU tensors of one dtype and a common shape rule.

Everything lives on the C stack: views, parameters, sizes. The few shape rules that most calls
use (the generator recognises their texts) are worked out in C; whatever is not plain, and every
error, goes to ``_dispatch.call`` and the row's own spec. tests/ops/test_meta.py holds both to the
same answer.
"""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.sequence cimport PySequence_Fast_ITEMS
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.string cimport memset

from ptcore._types cimport *
from ptcore._dtype cimport CATEGORY, dtype
from ptcore._node cimport Node, new_node
from ptcore._shape cimport sizes_tuple
from ptcore._tensor cimport *
from ptcore._ops._dispatch cimport call as general_call
from ptcore._ops._record cimport link, meta_of, save, trace_of_user
from ptcore._ops._table cimport (
    PT_PROMOTE_FLOAT, PT_SAVE_META, PT_SAVE_OUT, RULE_BMM, RULE_CAST, RULE_CAT, RULE_LIKE,
    RULE_LINEAR, RULE_MM, RULE_REDUCED, RULE_REDUCED_BOOL, RULE_REDUCED_NONEMPTY, RULE_REDUCED_SUM,
    info, kernel_of, pt_opinfo, raise_status)

cdef enum:
    MAX_TENSORS = 6
    MAX_PARAMS = 8
    SMALL = 16384


cdef object call(int op, tuple args, object out):
    cdef pt_opinfo *o = info(op)
    if out is None and o.rule:
        result = joined(op, o, args[0], args[1]) if o.rule == RULE_CAT else plain_call(op, o, args)
        if result is not None:
            return result
    return general_call(op, args, out)


cdef inline bint read_dim(object value, int ndim, int64_t *dim) noexcept:
    """A wrapped dim from an exact int; False sends the call to the general path."""
    cdef long v
    if type(value) is not int:
        return False
    try:
        v = value
    except OverflowError:
        return False
    if ndim == 0 or v < -ndim or v >= ndim:
        return False
    dim[0] = v + ndim if v < 0 else v
    return True


cdef object plain_call(int op, pt_opinfo *o, tuple args):
    """The result, or None if the call is not plain."""
    cdef pt_kernel kernel = kernel_of(op, DEVICE_CPU)
    cdef const char *letters = o.letters
    cdef pt_view[6] views
    cdef pt_param[8] params
    cdef int64_t[64] dims
    cdef int64_t[64] sizes
    cdef pt_view out_view
    cdef pt_call c
    cdef Tensor t, lead = None, r
    cdef object x
    cdef uint32_t key = pt_tls.mode
    cdef uint64_t seen = 0
    cdef int k, j, nin = 0, nparams = 0, ndims = 0, dt = -1, ndim = 0, out_dt, status
    cdef int n = len(args)
    cdef bint keepdim = False
    cdef int64_t work
    cdef char letter
    if kernel == NULL or o.random or o.prefill or n > 8:
        return None
    for k in range(n):
        x = args[k]
        letter = letters[k]
        if letter == c'T' or letter == c'I' or letter == c'O':
            if nin == MAX_TENSORS:
                return None
            if x is None:
                if letter != c'O':
                    return None
                memset(&views[nin], 0, sizeof(pt_view))
                views[nin].dtype = PT_NONE
            else:
                if not isinstance(x, Tensor):
                    return None
                t = <Tensor>x
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
        memset(&params[nparams], 0, sizeof(pt_param))
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
            params[nparams].kind, params[nparams].i = PT_PARAM_INT, keepdim
        elif letter == c'f':
            if type(x) is not float:
                return None
            params[nparams].kind, params[nparams].d = PT_PARAM_FLOAT, <double>x
        elif letter == c't':
            if x is not None and not (o.rule == RULE_CAST and type(x) is dtype):
                return None
            if x is not None:
                params[nparams].kind, params[nparams].i = PT_PARAM_INT, (<dtype>x).code
        else:
            return None
        nparams += 1
    if lead is None or key & PT_SLOW or not o.types & (1 << dt):
        return None
    if o.promote == PT_PROMOTE_FLOAT and CATEGORY[dt] < 2:
        return None
    out_dt = dt
    # -- the shape rules ---------------------------------------------------------------------
    if o.rule == RULE_LIKE:
        ndim = lead.rank
        for j in range(ndim):
            sizes[j] = lead.dims[j]
    elif o.rule == RULE_CAST:
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
    r = new_tensor(out_dt, ndim, sizes, DEVICE_CPU, -1)
    fill_view(r, &out_view)
    c.op = op
    c.nin, c.nout, c.nparams = nin, 1, nparams
    (<const pt_view **>&c.inputs)[0] = views
    c.out = &out_view
    (<const pt_param **>&c.params)[0] = params
    c.stream = NULL
    c.error[0] = 0
    work = r.count + lead.count
    if nin > 1 and views[1].dtype != PT_NONE:
        work += views[1].numel
    if work > SMALL:
        pt_kernels_enter()
        with nogil:
            status = kernel(&c)
        pt_kernels_leave()
    else:
        status = kernel(&c)
    if status != PT_OK:
        if status == PT_NEED_BLAS:
            return None
        raise_status(status, o.name, c.error)
    if key & (PT_REQUIRES_GRAD | PT_RECORD_SLOW) and pt_tls.grad_enabled and o.differentiable:
        record_plain(op, o, args, r, nin, dims, ndims, lead.rank)
    return r


cdef object joined(int op, pt_opinfo *o, object tensors, object at):
    """``cat`` of a few tensors that differ in one dim at most, or None."""
    cdef pt_kernel kernel = kernel_of(op, DEVICE_CPU)
    cdef pt_view[16] views
    cdef pt_view out_view
    cdef pt_param dim
    cdef pt_call c
    cdef int64_t[64] sizes
    cdef Tensor t, first = None, r
    cdef uint32_t key = pt_tls.mode
    cdef tuple kept = tuple(tensors)            # a list may change while the kernel runs
    cdef PyObject **given = PySequence_Fast_ITEMS(kept)
    cdef int i, j, n = len(kept), status
    cdef int64_t total = 0
    memset(&dim, 0, sizeof(pt_param))
    if kernel == NULL or not 0 < n <= 16:
        return None
    for i in range(n):
        if not isinstance(<object>given[i], Tensor):
            return None
        t = <Tensor>given[i]
        key |= t.flags
        fill_view(t, &views[i])
        if first is None:
            first = t
            if not read_dim(at, t.rank, &dim.i):
                return None
        if t.dt != first.dt or t.rank != first.rank:
            return None
        for j in range(t.rank):
            if j != dim.i and t.dims[j] != first.dims[j]:
                return None
        total += t.dims[dim.i]
    if key & PT_SLOW or not o.types & (1 << first.dt):
        return None
    for j in range(first.rank):
        sizes[j] = total if j == dim.i else first.dims[j]
    r = new_tensor(first.dt, first.rank, sizes, DEVICE_CPU, -1)
    fill_view(r, &out_view)
    dim.kind, dim.d = PT_PARAM_INT, <double>dim.i
    c.op = op
    c.nin, c.nout, c.nparams = n, 1, 1
    (<const pt_view **>&c.inputs)[0] = views
    c.out = &out_view
    (<const pt_param **>&c.params)[0] = &dim
    c.stream = NULL
    c.error[0] = 0
    if r.count > SMALL:
        pt_kernels_enter()
        with nogil:
            status = kernel(&c)
        pt_kernels_leave()
    else:
        status = kernel(&c)
    if status != PT_OK:
        raise_status(status, o.name, c.error)
    if key & (PT_REQUIRES_GRAD | PT_RECORD_SLOW) and pt_tls.grad_enabled:
        record_joined(op, given, n, dim.i, r)
    return r


cdef int record_joined(int op, PyObject **tensors, int n, int64_t dim, Tensor r) except -1:
    """What ``record`` does for the one list, one parameter and one output of ``cat``."""
    cdef Node node = None
    cdef int i
    cdef list metas
    if CATEGORY[r.dt] < 2:
        return 0
    for i in range(n):
        if needs_grad(<Tensor>tensors[i]):
            if node is None:
                node = new_node(op, n)
            link(node, i, <Tensor>tensors[i])
    if node is None:
        return 0
    metas = []
    for i in range(n):
        metas.append(meta_of(<Tensor>tensors[i]))
    node.s0, node.params = metas, (dim, n)
    if pt_tls.mode & PT_MODE_ANOMALY:
        node.trace = trace_of_user()
    set_node(r, node, 0)
    return 0


cdef int record_plain(int op, pt_opinfo *o, tuple args, Tensor r, int nin, int64_t *dims,
                      int ndims, int rank) except -1:
    """The Node of a plain call: at most six tensors, one output."""
    cdef const char *letters = o.letters
    cdef int n = len(args), k, i = 0, code
    cdef uint32_t need = 0
    cdef Tensor t
    cdef Node node
    cdef tuple params
    cdef char letter
    if CATEGORY[r.dt] < 2:
        return 0
    for k in range(n):
        letter = letters[k]
        if letter == c'T' or letter == c'O' or letter == c'I':
            if o.grad_mask & (1 << i) and args[k] is not None and needs_grad(<Tensor>args[k]):
                need |= 1 << i
            i += 1
    if not need:
        return 0
    node = new_node(op, nin)
    if n > nin:
        params = PyTuple_New(n - nin)
        node.params = params
    i = 0
    for k in range(n):
        letter = letters[k]
        x = args[k]
        if letter == c'T' or letter == c'O' or letter == c'I':
            if need & (1 << i):
                link(node, i, <Tensor>x)
            i += 1
            continue
        if letter == c'D':
            x = sizes_tuple(ndims, dims)
        elif letter == c'd' and x < 0:
            x = x + rank
        Py_INCREF(x)
        PyTuple_SET_ITEM(params, k - i, x)
    for k in range(o.nsaved):
        if not o.need[k] & need:
            continue
        code = o.saved[k]
        if code >= PT_SAVE_OUT:
            save(node, k, alias(r))
        elif code >= PT_SAVE_META:
            x = args[code - PT_SAVE_META]
            if x is not None:
                t = <Tensor>x
                save(node, k, meta_of(t))
        else:
            save(node, k, args[code])
    if pt_tls.mode & PT_MODE_ANOMALY:
        node.trace = trace_of_user()
    set_node(r, node, 0)
    return 0
