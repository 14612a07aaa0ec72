"""Running: elementwise ops, from bound arguments to recorded results.

    bind (op_function.cpp) -> [offer] -> operands (operands.pyx) -> allocate -> loops -> record

``unary``, ``binary`` and ``inplace_binary`` are the same steps for operands that are plain: dense tensors of one dtype
and one shape (or a row repeated, or a Python number) of up to SMALL elements. One branch on the ORed flags sends
everything else to ``elementwise``, which promotes, broadcasts and casts in tiles.
"""
import sys

from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from cpython.sequence cimport PySequence_Fast_ITEMS

from ptcore._types cimport *
from ptcore._events cimport PT_MODE_RULE, pt_call_begin, pt_event_end, pt_frame
from ptcore._device cimport BACKENDS, backend_error, device_of
from ptcore._dtype cimport CATEGORY, ITEMSIZE, dtype_of
from ptcore._gil cimport SMALL, PyThreadState, release_gil, restore_gil
from ptcore._node cimport Node, new_node
from ptcore._shape cimport is_dense, is_symbolic_number, order_dims, same_sizes, sizes_tuple
from ptcore._tensor cimport *
from ptcore._ops.call.call cimport *
from ptcore._ops.call.offer cimport (PT_VARIANT_INPLACE, asks_functions, before_call, flags_of_all, interpret,
                                     is_foreign, is_of_top, offer)
from ptcore._interpret cimport Interpreter
from ptcore._state cimport interpreter_stack
from ptcore._ops.call.operands cimport check_integers, keep, read_operands, read_params, write_number
from ptcore._ops.call.record cimport node_of, record, record_plain
from ptcore._ops.call.run cimport any_needs_grad, args_need_grad
from ptcore._ops.plan.hooks cimport dry, loops_run, planning, spoil
from ptcore._ops.history cimport *
from ptcore._ops.table.ids cimport *
from ptcore._ops.writing cimport *
from ptcore._ops.table.ids import op_id
from ptcore._errors import ShapeError

cdef extern from "Python.h":
    bint PyLong_CheckExact(object)
    int64_t PyLong_AsLongLongAndOverflow(object, int *)

cdef extern from "loops.h" nogil:
    int pt_elementwise_run(const pt_elementwise *op, int compute, int loop_out, const pt_view *out,
                           const pt_view *inputs, int nin, const void *params)

cdef extern from "select.h":
    # The loops of the chosen ISA level: op id -> entry (loop[] all NULL if not elementwise).
    const pt_elementwise *pt_loops(int op) nogil

cdef int OP_ASSIGN = op_id("assign")
cdef int OP_CLONE = op_id("clone")
cdef int OP_POW = op_id("pow")          # an exponent of one element is a number to its loops


# -- plain operands ------------------------------------------------------------------------------

cdef inline bint plain_number(object value, int dt, char *buffer) noexcept:
    """Stores a Python int or float as float32, float64 or int64; False if it needs the general path."""
    cdef double d
    cdef int64_t i
    cdef int overflow = 0
    if PyFloat_CheckExact(value):
        d = PyFloat_AS_DOUBLE(value)
    elif PyLong_CheckExact(value):
        i = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow:
            return False
        if dt == PT_INT64:
            (<int64_t *>buffer)[0] = i
            return True
        if i > (<int64_t>1 << 53) or i < -(<int64_t>1 << 53):
            return False
        d = <double>i
    else:
        return False
    if dt == PT_FLOAT32:
        (<float *>buffer)[0] = <float>d
        return True
    if dt == PT_FLOAT64:
        (<double *>buffer)[0] = d
        return True
    return False


cdef object unary(int op, object x):
    """An op of one tensor without parameters."""
    cdef Tensor a, r
    cdef const pt_elementwise *entry
    cdef (char *)[2] ptr
    cdef (PyObject *)[1] args
    cdef uint32_t key
    if isinstance(x, Tensor):
        a = <Tensor>x
        key = a.flags | pt_tls.mode
        if not key & (info(op).slow | PT_NONCONTIGUOUS) and a.count <= SMALL:
            entry = pt_loops(op)
            if entry.loop[a.dt] != NULL:
                r = new_like(a, out_dtype(op, a.dt))
                ptr[0] = address(r)
                ptr[1] = address(a)
                entry.loop[a.dt](ptr, a.count, NULL)
                if key & (PT_REQUIRES_GRAD | PT_RECORD_SLOW) and pt_tls.grad_enabled:
                    record_plain(op, r, a, None, key)
                return r
    args[0] = <PyObject *>x
    return elementwise(op, args, 1, None)


cdef object any_binary(int op, object x, object y):
    cdef (PyObject *)[2] args
    args[0], args[1] = <PyObject *>x, <PyObject *>y
    return elementwise(op, args, 2, None)


cdef object any_inplace_binary(int op, object x, object y):
    cdef (PyObject *)[2] args
    args[0], args[1] = <PyObject *>x, <PyObject *>y
    return elementwise_inplace(op, args, 2)


cdef object binary(int op, object x, object y):
    """An op of two operands; at least one is a Tensor if it is called from an operator."""
    cdef Tensor a, b, r
    cdef const pt_elementwise *entry
    cdef (char *)[3] ptr
    cdef double[2] number_store
    cdef char *number = <char *>number_store
    cdef uint32_t key
    if info(op).integers and not (isinstance(x, Tensor) and CATEGORY[(<Tensor>x).dt] >= 2):
        return any_binary(op, x, y)         # it looks at the values of integers
    if isinstance(x, Tensor):
        a = <Tensor>x
        if isinstance(y, Tensor):
            b = <Tensor>y
            key = a.flags | b.flags | pt_tls.mode
            if (not key & (info(op).slow | PT_NONCONTIGUOUS) and a.dt == b.dt and a.rank == b.rank
                    and a.count <= SMALL and same_sizes(a.rank, a.dims, b.dims)):
                entry = pt_loops(op)
                if entry.loop[a.dt] != NULL and (op != OP_POW or b.count != 1):
                    r = new_like(a, out_dtype(op, a.dt))
                    r.flags |= b.flags & PT_STANDARD
                    ptr[0] = address(r)
                    ptr[1] = address(a)
                    ptr[2] = address(b)
                    entry.loop[a.dt](ptr, a.count, NULL)
                    if key & (PT_REQUIRES_GRAD | PT_RECORD_SLOW) and pt_tls.grad_enabled:
                        record_plain(op, r, a, b, key)
                    return r
            elif (not key & (info(op).slow | PT_NONCONTIGUOUS) and a.dt == b.dt and b.count
                    and 0 < b.rank <= a.rank and a.count <= SMALL
                    and same_sizes(b.rank, a.dims + a.rank - b.rank, b.dims)):
                # y is repeated for each row of x (a bias).
                entry = pt_loops(op)
                if entry.loop[a.dt] != NULL and (op != OP_POW or b.count != 1):
                    return binary_rows(op, a, b, entry, key)
            return any_binary(op, x, y)
        key = a.flags | pt_tls.mode
        if not key & (info(op).slow | PT_NONCONTIGUOUS) and a.count <= SMALL:
            entry = pt_loops(op)
            if entry.vs[a.dt] != NULL and plain_number(y, a.dt, number):
                r = new_like(a, out_dtype(op, a.dt))
                ptr[0] = address(r)
                ptr[1] = address(a)
                ptr[2] = number
                entry.vs[a.dt](ptr, a.count, NULL)
                if key & (PT_REQUIRES_GRAD | PT_RECORD_SLOW) and pt_tls.grad_enabled:
                    record_plain(op, r, a, y, key)
                return r
    elif isinstance(y, Tensor):
        b = <Tensor>y
        key = b.flags | pt_tls.mode
        if not key & (info(op).slow | PT_NONCONTIGUOUS) and b.count <= SMALL:
            entry = pt_loops(op)
            if entry.sv[b.dt] != NULL and plain_number(x, b.dt, number):
                r = new_like(b, out_dtype(op, b.dt))
                ptr[0] = address(r)
                ptr[1] = number
                ptr[2] = address(b)
                entry.sv[b.dt](ptr, b.count, NULL)
                if key & (PT_REQUIRES_GRAD | PT_RECORD_SLOW) and pt_tls.grad_enabled:
                    record_plain(op, r, x, b, key)
                return r
    return any_binary(op, x, y)


cdef Tensor binary_rows(int op, Tensor a, Tensor b, const pt_elementwise *entry, uint32_t key):
    cdef Tensor r = new_like(a, out_dtype(op, a.dt))
    cdef (char *)[3] ptr
    cdef int64_t _row, rows = a.count // b.count
    cdef int64_t in_step = b.count * ITEMSIZE[a.dt], out_step = b.count * ITEMSIZE[r.dt]
    r.flags |= b.flags & PT_STANDARD
    ptr[0] = address(r)
    ptr[1] = address(a)
    ptr[2] = address(b)
    for _row in range(rows):
        entry.loop[a.dt](ptr, b.count, NULL)
        ptr[0] += out_step
        ptr[1] += in_step
    if key & (PT_REQUIRES_GRAD | PT_RECORD_SLOW) and pt_tls.grad_enabled:
        record_plain(op, r, a, b, key)
        if r.node is not None and r.node.e1 is not None:
            r.node.spec = (None, (shape_of(b), dtype_of(b.dt)))
    return r


cdef object operator(int op, object x, object y):
    """binary() for Python's operators: NotImplemented for types that no tensor op takes."""
    if not (isinstance(x, Tensor) and isinstance(y, Tensor)):
        if is_foreign(x) or is_foreign(y):
            from ptcore._overrides import answer_operator
            return answer_operator(info(op).name.decode(), x, y)
        if not (operand_ok(x) and operand_ok(y)):
            return NotImplemented
    return binary(op, x, y)


cdef bint has_own_ufuncs(object x):
    """Whether x handles NumPy's ufuncs itself, like a pandas column or an xarray array. Operators then defer to x's
    own, as NumPy's operators do."""
    cdef object own = getattr(type(x), "__array_ufunc__", x)
    if own is x:
        return False
    numpy = sys.modules.get("numpy")
    return numpy is None or own is not numpy.ndarray.__array_ufunc__


cdef bint operand_ok(object x):
    return (isinstance(x, (Tensor, float, int, complex)) or hasattr(x, "__array__") and not has_own_ufuncs(x)
            or is_symbolic_number(x))


cdef object inplace_operator(int op, object x, object y):
    if is_foreign(y):
        from ptcore._overrides import answer_operator
        return answer_operator(info(op).name.decode() + "_", x, y)
    if not operand_ok(y):
        return NotImplemented
    return inplace_binary(op, x, y)


cdef object inplace_binary(int op, object x, object y):
    cdef Tensor a
    cdef Tensor b
    cdef const pt_elementwise *entry
    cdef (char *)[3] ptr
    cdef double[2] number_store
    cdef char *number = <char *>number_store
    cdef uint32_t key
    if info(op).integers and not (isinstance(x, Tensor) and CATEGORY[(<Tensor>x).dt] >= 2):
        return any_inplace_binary(op, x, y)
    if isinstance(x, Tensor):
        a = <Tensor>x
        key = a.flags | pt_tls.mode
        if isinstance(y, Tensor):
            b = <Tensor>y
            key |= b.flags
        else:
            b = None
        if (not key & (info(op).slow | PT_NONCONTIGUOUS | PT_DATA) and a.count <= SMALL
                and not (key & (PT_REQUIRES_GRAD | PT_VIEW) and pt_tls.grad_enabled)
                and not a.storage.flags & PT_STORAGE_READONLY
                and info(op).out == PT_OUT_SAME):
            entry = pt_loops(op)
            ptr[0] = address(a)
            ptr[1] = ptr[0]
            if b is None:
                if entry.vs[a.dt] != NULL and plain_number(y, a.dt, number):
                    ptr[2] = number
                    entry.vs[a.dt](ptr, a.count, NULL)
                    a.storage.version += 1
                    return x
            elif (a.dt == b.dt and a.rank == b.rank and entry.loop[a.dt] != NULL and (op != OP_POW or b.count != 1)
                    and (a is b or not same_memory(a, b))
                    and same_sizes(a.rank, a.dims, b.dims)):
                ptr[2] = address(b)
                entry.loop[a.dt](ptr, a.count, NULL)
                a.storage.version += 1
                return x
    return any_inplace_binary(op, x, y)


# -- any operands ----------------------------------------------------------------------------------

cdef object elementwise_of(int op, tuple args):
    return elementwise(op, PySequence_Fast_ITEMS(args), <int>len(args), None)


cdef object elementwise(int op, PyObject **args, int n, object out):
    """Any elementwise call that allocates its result or writes to out=."""
    cdef Call c
    cdef uint32_t key = flags_of_all(args, n)
    if key & (PT_SLOW | PT_MODE_RULE):
        if key & PT_MODE_RULE:
            return recorded(op, args, n, out)
        result = before_call(elementwise, op, args, n, key, out)
        if result is not NotImplemented:
            return result
    begin(&c, op, args, n)
    try:
        return complete(&c, out)
    finally:
        Py_XDECREF(c.made)


cdef object recorded(int op, PyObject **args, int n, object out):
    """A call of a rule that a profile records."""
    cdef pt_frame frame
    if not pt_call_begin(&frame, FUNCTIONS[op], args, n, NULL):
        pt_tls.mode &= ~<uint32_t>PT_MODE_RULE
    try:
        return elementwise(op, args, n, out)
    finally:
        pt_event_end(&frame)


cdef inline int out_rule(Call *c, Tensor out) noexcept:
    """A real part of complex numbers may be cast to real numbers or to the complex dtype; other results may not."""
    if c.o.out == PT_OUT_REAL and CATEGORY[c.compute] == 3 and (CATEGORY[out.dt] == 2 or out.dt == c.compute):
        return PT_OUT_CAST
    return c.o.out_rule


cdef object complete(Call *c, object out):
    """Reads the operands, allocates, runs and records."""
    cdef Tensor r
    cdef PyObject *result
    cdef bint recorded
    read_operands(c)
    if c.o.integers:
        if dry():
            raise RuntimeError(f"{c.o.name.decode()}: it looks at values, and there are none")
        check_integers(c)
        if planning() and CATEGORY[c.compute] < 2:
            spoil(b"it looks at the values of integers first")
    recorded = c.key & (PT_REQUIRES_GRAD | PT_VIEW) and pt_tls.grad_enabled and c.o.differentiable
    if isinstance(out, Tensor) and not (recorded and any_needs_grad(c)) and can_hold(c, <Tensor>out):
        run_loops(c, <Tensor>out)
        count_write(<Tensor>out)
        return out
    r = result_for(c)
    run_loops(c, r)
    if recorded and CATEGORY[r.dt] >= 2:
        if out is not None and any_needs_grad(c):
            raise RuntimeError(f"{c.o.name.decode()}: out= does not support automatic "
                               "differentiation, but one of the arguments requires grad")
        result = <PyObject *>r
        record(c, &result)
    if out is not None:
        if not isinstance(out, Tensor):
            raise TypeError(f"{c.o.name.decode()}: out must be a Tensor, got {type(out).__name__}")
        write_out(<Tensor>out, r, c.o.name, out_rule(c, <Tensor>out))
        return out
    return r


cdef Tensor result_for(Call *c):
    """Uninitialised output, in the common dense layout of the operands if they share one. Else the dims are ordered as
    in the first operand with strides that distinguish them."""
    cdef Out *o = &c.outs[0]
    cdef Tensor t, r, first = None
    cdef int64_t[64] strides
    cdef bint same = True
    cdef int k
    if c.key & PT_NONCONTIGUOUS:
        for k in range(c.nin):
            if c.tensors[k] == NULL:
                continue
            t = <Tensor>c.tensors[k]
            if t.rank != o.ndim or not same_sizes(o.ndim, t.dims, o.sizes):
                same = same and t.rank == 0
            elif first is None:
                first = t
            elif not same_sizes(o.ndim, t.dims + t.rank, first.dims + first.rank):
                same = False
        if first is not None and same and is_dense(first.rank, first.dims, first.dims + first.rank):
            r = new_strided(o.dt, o.ndim, o.sizes, first.dims + first.rank, c.column, c.number)
        else:
            ordered_strides(c, strides)
            r = new_strided(o.dt, o.ndim, o.sizes, strides, c.column, c.number)
    else:
        r = new_tensor(o.dt, o.ndim, o.sizes, c.column, c.number)
    r.flags |= c.key & PT_STANDARD
    return r


cdef int ordered_strides(Call *c, int64_t *out) noexcept:
    """Dense strides of the output, its dims in the operands' order."""
    cdef int64_t[5 * 64] strides
    cdef Out *o = &c.outs[0]
    cdef Tensor t
    cdef int i, k, shift, n = 0
    for k in range(c.nin):
        if c.tensors[k] == NULL:
            continue
        t = <Tensor>c.tensors[k]
        shift = o.ndim - t.rank
        for i in range(o.ndim):
            strides[n * o.ndim + i] = (0 if i < shift or (t.dims[i - shift] == 1 and o.sizes[i] != 1)
                                       else t.dims[t.rank + i - shift])
        n += 1
    order_dims(o.ndim, o.sizes, n, strides, out)
    return 0


cdef bint takes_wide_number(Call *c) noexcept:
    """Whether the loops of a half type have a wide number (see `is_wide`), so that they run in float32."""
    cdef int i
    if c.compute != PT_FLOAT16 and c.compute != PT_BFLOAT16 or c.column != DEVICE_CPU:
        return False                    # launches on devices decide themselves
    for i in range(c.nin):
        if is_wide(c, i):
            return True
    return False


cdef int run_loops(Call *c, Tensor r) except -1:
    """Fills r (with the first output's sizes, any strides and any dtype) from the operands."""
    cdef Out *o = &c.outs[0]
    cdef pt_view[5] views
    cdef pt_view out
    cdef int64_t[5][64] strides
    cdef int64_t[2 * 64] room
    cdef double[5][2] numbers
    cdef double[16] params
    cdef int i, j, shift, status
    cdef int compute = c.compute, loop_out = o.dt
    cdef Tensor t
    cdef PyThreadState *held
    cdef const pt_elementwise *entry = pt_loops(c.op)
    if takes_wide_number(c):
        compute = loop_out = PT_FLOAT32
    elif c.o.condition and pt_is(compute, PT_KIND_STORED):
        compute = loop_out = pt_loop_dtype(compute)     # a condition is not rounded: float8_e8m0fnu has no 0
    if c.n > c.nin:
        read_params(c, <char *>params)
    for i in range(c.nin):
        views[i].sizes = o.sizes
        views[i].ndim = o.ndim
        views[i].strides = strides[i]
        if c.tensors[i] != NULL:
            t = <Tensor>c.tensors[i]
            shift = o.ndim - t.rank
            for j in range(o.ndim):
                strides[i][j] = (0 if j < shift or (t.dims[j - shift] == 1 and o.sizes[j] != 1)
                                 else t.dims[t.rank + j - shift])
            views[i].data = address(t)
            views[i].dtype = t.dt
            views[i].device = t.storage.device      # 0 beside another device: one element in host memory
        else:
            for j in range(o.ndim):
                strides[i][j] = 0
            views[i].device = DEVICE_CPU
            views[i].data = <char *>numbers[i]
            views[i].dtype = write_number(<object>c.operands[i], <char *>numbers[i])
        views[i].numel = r.count
        views[i].contiguous = False
        views[i].layout = PT_STRIDED
    fill_view(r, &out)
    if c.column == DEVICE_META:
        return 0
    if c.column != DEVICE_CPU:
        status = PT_TYPE_ERROR if pt_is(r.dt, PT_KIND_STORED) else PT_OK
        for i in range(c.nin):
            if pt_is(views[i].dtype, PT_KIND_STORED):
                status = PT_TYPE_ERROR
        if status == PT_OK:
            status = BACKENDS[c.column].elementwise(c.op, entry.name, c.compute, o.dt, &out, views, c.nin, params)
        if status and status != PT_TYPE_ERROR:
            text = f"failed on {device_of(c.column, c.number)}{backend_error(c.column)}".encode()
            raise_status(status, c.o.name, text)
        if status:
            raise NotImplementedError(
                f"{c.o.name.decode()}: there is no kernel for {dtype_of(c.compute).name} on "
                f"device {device_of(c.column, c.number)}")
    elif dry():
        status = 0
    else:
        if r.count > SMALL:
            own_dims(&out, room)
        held = release_gil(r.count > SMALL)
        status = pt_elementwise_run(entry, compute, loop_out, &out, views, c.nin, params)
        restore_gil(held)
    if status:
        raise RuntimeError(f"{c.o.name.decode()}: no loop for {dtype_of(c.compute).name} (status {status})")
    if planning():
        if c.column != DEVICE_CPU:
            spoil(b"it runs on another device than the CPU")
        else:
            loops_run(entry, compute, loop_out, &out, views, c.nin, params, sizeof(params) if c.n > c.nin else 0)
    return 0


# -- out= and in place -----------------------------------------------------------------------------

cdef bint can_hold(Call *c, Tensor out) except -1:
    """Whether the loops may write to out= itself. ``write_out`` handles, or refuses, other cases."""
    if c.outs[0].dt != out.dt and (c.o.out_rule or CATEGORY[c.outs[0].dt] > CATEGORY[out.dt]
                                   or takes_wide_number(c)):        # it is rounded to its own type first
        return False
    return (not repeats_itself(out) and not overlaps_another(c, out)
            and can_be_written(out, c.o.name, c.outs[0].ndim, c.outs[0].sizes, c.column, c.number))


cdef bint overlaps_another(Call *c, Tensor x) except -1:
    """Whether an operand shares x's memory at other positions. Raises, as PyTorch does, if both are dense and show some
    of the same elements."""
    cdef int k
    cdef bint found = False
    for k in range(c.nin):
        if c.tensors[k] != NULL and same_memory(x, <Tensor>c.tensors[k]) and not same_window(x, <Tensor>c.tensors[k]):
            found = True
            if overlap_in_part(x, <Tensor>c.tensors[k]) and not (
                    c.o.selects == PT_SELECTS_SECOND and shape_of(x) != shape_of(<Tensor>c.tensors[k])):
                raise RuntimeError(f"{c.o.name.decode()}: unsupported operation: some elements of the input tensor and "
                                   "the written-to tensor refer to a single memory location. Please clone() the tensor "
                                   "before performing the operation.")
    return found


cdef bint overlap_in_part(Tensor a, Tensor b) noexcept:
    """Whether two dense tensors show some of the same bytes, in part or in another order."""
    if not shows_the_same(a, b):
        return False
    if address(a) == address(b) and a.count * ITEMSIZE[a.dt] == b.count * ITEMSIZE[b.dt]:
        return a.rank != b.rank or not same_sizes(a.rank, a.dims + a.rank, b.dims + b.rank)
    return True


cdef bint shows_the_same(Tensor a, Tensor b) noexcept:
    """Whether two dense tensors of one storage have a byte in common."""
    cdef int64_t size = a.count * ITEMSIZE[a.dt], its = b.count * ITEMSIZE[b.dt]
    if (a.storage != b.storage or not size or not its or (a.flags | b.flags) & PT_INTERPOSED
            or a.storage.device == DEVICE_META):
        return False
    if (a.flags & PT_NONCONTIGUOUS and not is_dense(a.rank, a.dims, a.dims + a.rank)) or (
            b.flags & PT_NONCONTIGUOUS and not is_dense(b.rank, b.dims, b.dims + b.rank)):
        return False
    return address(a) < address(b) + its and address(b) < address(a) + size


cdef bint one_value(Call *c) noexcept:
    """Whether the second operand is a number or a tensor of one element."""
    return c.tensors[1] == NULL or (<Tensor>c.tensors[1]).count == 1


cdef object write_to(object x, object value):
    """``x.copy_(value)`` for a number or a tensor on x's device."""
    return any_inplace_binary(OP_ASSIGN, x, value)


cdef object elementwise_inplace(int op, PyObject **args, int n):
    """``x.op_(...)``: the first operand is also the output."""
    cdef Call c
    cdef uint32_t key
    if not isinstance(<object>args[0], Tensor):
        raise TypeError(f"{info(op).name.decode()}_: {arg_name(op, 0)} must be a Tensor, got "
                        f"{type(<object>args[0]).__name__}")
    key = flags_of_all(args, n)
    if key & PT_INTERPOSED and may_be_adopted(<Tensor>args[0]) and becomes_stand_in(args, n):
        key |= (<Tensor>args[0]).flags
    if key & PT_SLOW and asks_functions(key):       # before the write is recorded: what it calls records it
        result = offer(op, args, n, key & ~<uint32_t>PT_INTERPOSED, None, PT_VARIANT_INPLACE)
        if result is not NotImplemented:
            return result
        key &= ~<uint32_t>(PT_SUBCLASS | PT_MODE_FUNCTION)
    if key & PT_SLOW and not is_history_apart(<Tensor>args[0], key):
        if (result := offer(op, args, n, key, None, PT_VARIANT_INPLACE)) is not NotImplemented:
            return result
    begin(&c, op, args, n)
    try:
        return complete_inplace(&c, <Tensor>args[0])
    finally:
        Py_XDECREF(c.made)


cdef bint may_be_adopted(Tensor x) except -1:
    """Whether x is plain to the innermost interpreter: no stand-in, or one of an interpreter further out."""
    return not x.flags & PT_INTERPOSED or not is_of_top(x)


cdef bint becomes_stand_in(PyObject **args, int n) except -1:
    """A stand-in is about to be written to a tensor that is plain to the innermost interpreter, or to a plain view of
    a stand-in: the interpreter may turn the tensor into a stand-in."""
    cdef list stack = interpreter_stack()
    cdef Interpreter top
    cdef int k
    if not stack:
        return False
    top = <Interpreter>stack[len(stack) - 1]
    if (<Tensor>args[0]).base is not None:
        top.adopt(<object>args[0], (<Tensor>args[0]).base)
    for k in range(1, n):
        if isinstance(<object>args[k], Tensor) and (<Tensor>args[k]).flags & PT_INTERPOSED:
            top.adopt(<object>args[0], <object>args[k])
    return ((<Tensor>args[0]).flags & PT_INTERPOSED) != 0


cdef bint is_history_apart(Tensor x, uint32_t key):
    """Whether a write to a stand-in may be recorded. It is checked before the offer and recorded after it."""
    return x.flags & PT_INTERPOSED and key & (PT_REQUIRES_GRAD | PT_VIEW) and pt_tls.grad_enabled and is_of_top(x)


cdef bint fits_into(Tensor value, Tensor x) noexcept:
    """Whether a value broadcasts to the sizes of x."""
    cdef int i, ahead = x.rank - value.rank
    for i in range(value.rank):
        if ahead < 0 or value.dims[i] != 1 and value.dims[i] != x.dims[ahead + i]:
            return False
    return True


cdef object complete_inplace(Call *c, Tensor x):
    cdef pt_opinfo *o = c.o
    cdef Out *result = &c.outs[0]
    cdef Tensor r
    cdef Node n = None
    cdef bint recording
    cdef object before = None
    if (x.storage.device == DEVICE_META and o.selects == PT_SELECTS_SECOND and not x.flags & PT_INTERPOSED
            and isinstance(<object>c.args[1], Tensor)
            and (<Tensor>c.args[1]).storage.device != DEVICE_META and fits_into(<Tensor>c.args[1], x)):
        count_write(x)                  # a copy from another device: there is nothing to copy into
        return x
    c.taken = x.flags & PT_INTERPOSED != 0
    read_operands(c)
    if not c.taken and (c.column != x.storage.device
                        or (c.column != DEVICE_CPU and c.number != x.storage.device_index)):
        from ptcore._errors import DeviceError      # a scalar on the CPU would take the operands' device
        raise DeviceError(f"{o.name.decode()}_: the tensor written to is on {x.device}, and other operands on "
                          f"{device_of(c.column, c.number)}")
    if result.ndim != x.rank or not same_sizes(x.rank, result.sizes, x.dims):
        raise ShapeError(f"{o.name.decode()}_: the result has shape {list(sizes_tuple(result.ndim, result.sizes))}, "
                         f"but the tensor written to has {list(shape_of(x))}")
    if o.out == PT_OUT_REAL and x.dt == c.compute and result.dt != x.dt:
        raise RuntimeError(f"{o.name.decode()}_: the result is real, and is not written to a tensor of complex numbers")
    if CATEGORY[result.dt] > CATEGORY[x.dt]:
        raise RuntimeError(f"{o.name.decode()}_: result type {dtype_of(result.dt).name} can't be "
                           f"cast to the desired output type {dtype_of(x.dt).name}")
    if o.integers:
        if dry():
            raise RuntimeError(f"{o.name.decode()}_: it looks at values, and there are none")
        check_integers(c)
        if planning() and CATEGORY[c.compute] < 2:
            spoil(b"it looks at the values of integers first")
    recording = (pt_tls.grad_enabled and c.key & (PT_REQUIRES_GRAD | PT_VIEW)
                 and CATEGORY[x.dt] >= 2 and any_needs_grad(c))
    check_inplace(x, o.name, recording)
    if repeats_itself(x) and not (o.selects == PT_SELECTS_SECOND and one_value(c)):     # a fill writes the same twice
        raise RuntimeError(f"{o.name.decode()}_: more than one element of the written-to "
                           "tensor refers to a single memory location; clone() it first")
    if (recording and x.flags & PT_VIEW and overlaps_itself(x)
            and not (o.selects == PT_SELECTS_SECOND     # nor does it matter which constant is seen
                     and (one_value(c) or not (<Tensor>c.tensors[1]).flags & PT_REQUIRES_GRAD))):
        raise RuntimeError(f"{o.name.decode()}_: elements of the written-to view overlap in memory, so that the write "
                           "has no derivative; write to a clone(), or under no_grad()")
    if recording:
        if c.key & PT_INFERENCE:
            check_operands_saved(c)
        if uses_first(c):
            # The rule needs x as it was: keep a copy with x's place in the graph.
            before = old_value(x)
        if pt_tls.mode & PT_MODE_SAVED_HOOKS:
            keep_others(c, x)
    if x.flags & PT_INTERPOSED:
        if recording:                   # links the old histories: the write is counted where it is done, below
            n = node_of_write(c, x, before)
            recording = False
        if interpret(c.op, c.args, c.n, None, PT_VARIANT_INPLACE) is NotImplemented:
            raise RuntimeError(f"{o.name.decode()}_: the interpreter of a stand-in does not write to it")
    elif overlaps_another(c, x):
        r = result_for(c)
        run_loops(c, r)
        copy_into(x, r)
    elif o.selects == PT_SELECTS_SECOND and is_plain_copy(c, x):
        copy_into(x, <Tensor>c.tensors[1])
    else:
        run_loops(c, x)
    if recording:
        n = node_of_write(c, x, before)
    finish_inplace(x, n)
    return x


cdef Node node_of_write(Call *c, Tensor x, object before):
    """The node of a write to x. Its first edge leads to the history that x had before."""
    cdef Node n = None
    c.written, c.before = <PyObject *>x, <PyObject *>before
    if c.o.differentiable:
        n = node_of(c, &c.written)
    if n is None and needs_grad(x):
        # The written value depends on no input; the old history gets zeros.
        n = new_node(OP_ASSIGN, 2)
        link(n, 0, x)
    return n


cdef bint is_plain_copy(Call *c, Tensor x) noexcept:
    cdef Tensor t
    if c.tensors[1] == NULL:
        return False
    t = <Tensor>c.tensors[1]
    return (t.dt == x.dt and t.rank == x.rank and same_sizes(x.rank, t.dims, x.dims)
            and t.storage.device == DEVICE_CPU and x.storage.device == DEVICE_CPU)


cdef uint32_t needed_by(Call *c):
    """A bit for each operand that gets a gradient."""
    cdef uint32_t need = 0
    cdef int i
    for i in range(c.nin):
        if c.tensors[i] != NULL and c.o.grad_mask & (1 << i) and needs_grad(<Tensor>c.tensors[i]):
            need |= 1 << i
    return need


cdef int check_operands_saved(Call *c) except -1:
    """Raises for an inference tensor that the rule would save, before anything is written."""
    cdef pt_opinfo *o = c.o
    cdef uint32_t need = needed_by(c)
    cdef int k, code
    for k in range(o.nsaved):
        code = saved_code(c, k)
        if o.need[k] & need and 0 <= code < PT_SAVE_META and c.tensors[code] != NULL:
            check_saved(<Tensor>c.tensors[code], o.name)
    return 0


cdef bint uses_first(Call *c):
    """Whether the rule needs the first operand for the gradients that are wanted."""
    cdef uint32_t need = needed_by(c)
    cdef int k
    for k in range(c.o.nsaved):
        if c.o.need[k] & need and saved_code(c, k) == 0:
            return True
    return False


cdef Tensor old_value(Tensor x):
    """A copy of x that takes the place of x in the graph."""
    cdef Tensor c
    if x.flags & PT_INTERPOSED:
        c = <Tensor>FUNCTIONS[OP_CLONE](alias(x))
    else:
        c = new_like(x, x.dt)
        copy_into(c, x)
    if needs_grad(x):
        if x.node is not None:
            set_node(c, x.node, x.out_nr)
    return c


cdef int keep_others(Call *c, Tensor x) except -1:
    """Copies other operands in the memory of x, which is about to be written to, for a pack hook: it is called after
    the write and may copy what it gets."""
    cdef int k
    for k in range(1, c.nin):
        if (c.operands[k] != NULL and isinstance(<object>c.operands[k], Tensor)
                and (<Tensor>c.operands[k]).storage == x.storage):
            c.operands[k] = keep(c, old_value(<Tensor>c.operands[k]))
    return 0


cdef object unwritten(object x, tuple args):
    """x as the argument of a call with a result that is written over x. Where the recorded node may keep it, a copy
    that takes the place of x in the graph."""
    if isinstance(x, Tensor) and pt_tls.grad_enabled and args_need_grad(args):
        return old_value(<Tensor>x)
    return x


cdef object overwrite(Tensor x, object value, const char *name):
    """``x.copy_(value)`` for a value that was computed from x: the history of the value contains that of x."""
    if isinstance(value, Tensor) and CATEGORY[(<Tensor>value).dt] > CATEGORY[x.dt]:
        raise RuntimeError(f"{name.decode()}_: result type {dtype_of((<Tensor>value).dt).name} can't be "
                           f"cast to the desired output type {dtype_of(x.dt).name}")
    write_to(x, value)
    if x.node is not None and x.node.op == OP_ASSIGN and x.node.e1 is not None:
        x.node.e0 = None
    return x


# -- the ground's table: which op a slot of Tensor means, and who runs it -----------------------------

cdef int enter_slot(int slot, str name) except -1:
    table.op[slot] = op_id(name)
    return 0


for _slot, _name in (
        (SLOT_ADD, "add"), (SLOT_SUB, "sub"), (SLOT_MUL, "mul"), (SLOT_DIV, "div"),
        (SLOT_FLOORDIV, "floor_divide"), (SLOT_MOD, "remainder"), (SLOT_POW, "pow"),
        (SLOT_AND, "bitwise_and"), (SLOT_OR, "bitwise_or"), (SLOT_XOR, "bitwise_xor"),
        (SLOT_LSHIFT, "bitwise_left_shift"), (SLOT_RSHIFT, "bitwise_right_shift"),
        (SLOT_NEG, "neg"), (SLOT_INVERT, "bitwise_not"), (SLOT_ABS, "abs"), (SLOT_LT, "lt"),
        (SLOT_LE, "le"), (SLOT_EQ, "eq"), (SLOT_NE, "ne"), (SLOT_GT, "gt"), (SLOT_GE, "ge")):
    enter_slot(_slot, _name)
table.unary = unary
table.binary = operator
table.inplace = inplace_operator
