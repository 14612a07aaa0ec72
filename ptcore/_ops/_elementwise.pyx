"""Elementwise ops, the general path: promotes, broadcasts, casts in tiles, out= and in-place.

The fast paths for small dense tensors stand in _fast.pyx.
"""
from libc.math cimport INFINITY
from ptcore._types cimport *
from ptcore._device cimport BACKENDS, backend_error, device_of
from ptcore._dtype cimport (CATEGORY, COMPLEX_OF, ITEMSIZE, N_DTYPES, PROMOTE, default_complex,
                            default_float, dtype_of)
from ptcore._node cimport Node, new_node
from ptcore._shape cimport is_dense, same_sizes, sizes_tuple
from ptcore._tensor cimport *
from ptcore._ops.call.offer cimport interpose
from ptcore._ops.call.read cimport as_tensor_like, common_device_of
from ptcore._ops.call.run cimport args_need_grad, cast
from ptcore._ops._record cimport *
from ptcore._ops._table cimport *
from ptcore._ops._writing cimport *
from ptcore._ops._table import op_id
from ptcore._convert import int_of
from ptcore._errors import DivisionByZeroError, DTypeError, ShapeError, UnsupportedDTypeError

cdef extern from "ptcore/elementwise.h" nogil:
    int pt_elementwise_run(const pt_elementwise *op, int compute, int loop_out,
                           const pt_view *out, const pt_view *inputs, int nin,
                           const void *params)

cdef extern from "select.h":
    # The loops of the chosen ISA level: op id -> entry (loop[] all NULL if not elementwise).
    const pt_elementwise *pt_loops(int op) nogil

cdef enum:
    SMALL = 16384               # elements up to which the GIL is kept and nothing is split
    MAX_PARAMS = 8

cdef int OP_ASSIGN = op_id("assign")
cdef int OP_MASKED_FILL = op_id("masked_fill")
cdef int OP_WHERE = op_id("where")
# Ops whose result is one of the operands: there a number cannot wrap.
cdef frozenset SELECTING = frozenset([op_id(name) for name in (
    "assign", "where", "masked_fill", "maximum", "minimum", "clamp_min", "clamp_max")])


cdef class Plan:
    """What promotion and broadcasting decided for one call."""
    cdef int compute, ndim, nin, column, number, out_dt
    cdef int64_t[64] sizes
    cdef list operands              # Tensors and numbers, in signature order
    cdef uint32_t flags


cdef object scalar_of(object x):
    """A NumPy scalar as the Python number it weighs as."""
    if type(x).__module__ == "numpy" and getattr(x, "ndim", 1) == 0 and hasattr(x, "item"):
        return x.item()
    return x


cdef int scalar_dt(object x, int op) except -1:
    if isinstance(x, bool):
        return PT_BOOL
    if isinstance(x, int):
        return PT_INT64
    if isinstance(x, float):
        return default_float()
    if isinstance(x, complex):
        return default_complex()
    raise TypeError(f"{info(op).name.decode()}: operands must be Tensors or numbers, got "
                    f"{type(x).__name__}")


cdef int combine(int high, int low) except -2:
    """PyTorch's combination of two priority classes of operands (-1: none in the class)."""
    if high < 0:
        return low
    if low < 0 or CATEGORY[high] == 3:
        return high
    if CATEGORY[high] == 2:
        return COMPLEX_OF[high] if CATEGORY[low] == 3 else high
    if CATEGORY[high] == 0 or CATEGORY[low] >= 2:
        return PROMOTE[high][low]
    return high


def result_type(tensor1, tensor2):
    """The dtype of an arithmetic result of two operands, tensors or numbers.

    A number or a 0-d tensor counts less than a tensor with dims: it changes the dtype only if it is
    of a higher kind (bool, integer, real, complex).

    Raises
    ------
    TypeError
        If an operand is neither a tensor nor a number.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.result_type(ptcore.tensor([1, 2], dtype=ptcore.int8), 3)
    ptcore.int8
    >>> ptcore.result_type(ptcore.tensor([1, 2], dtype=ptcore.int8), 1.5)
    ptcore.float32
    """
    cdef int[3] seen = [-1, -1, -1]         # with dims, 0-d, numbers
    cdef int d, place
    for x in (tensor1, tensor2):
        if isinstance(x, Tensor):
            d, place = (<Tensor>x).dt, (<Tensor>x).rank == 0
        else:
            x = scalar_of(x)
            if not isinstance(x, (int, float, complex)):
                raise TypeError(f"result_type: operands must be Tensors or numbers, got "
                                f"{type(x).__name__}")
            d, place = scalar_dt(x, OP_ASSIGN), 2
        seen[place] = d if seen[place] < 0 else PROMOTE[seen[place]][d]
    return dtype_of(combine(seen[0], combine(seen[1], seen[2])))


cdef Plan plan(int op, tuple args):
    cdef pt_opinfo *o = info(op)
    cdef Plan p = Plan.__new__(Plan)
    cdef const char *letters = o.letters
    cdef int k, dim_dt = -1, zero_dt = -1, number_dt = -1, d
    cdef Tensor t, lead = None
    cdef object x
    cdef tuple seen = None
    cdef bint counts
    p.operands = []
    for k in range(len(args)):
        if letters[k] != b'T' and letters[k] != b'I':
            continue
        x = args[k]
        if isinstance(x, Tensor):
            if lead is None:
                lead = <Tensor>x
        elif not isinstance(x, (int, float, complex)):
            x = scalar_of(x)
            if hasattr(x, "__array__"):
                x = as_tensor_like(x, None)
                if lead is None:
                    lead = <Tensor>x
        counts = letters[k] == b'T' and not (
            (o.promote == PT_PROMOTE_WHERE or o.promote == PT_PROMOTE_FIRST)
            and (k == 0) == (o.promote == PT_PROMOTE_WHERE))
        if isinstance(x, Tensor):
            t = <Tensor>x
            p.flags |= t.flags
            seen = common_device_of(op, t, seen, True)
            if counts:
                if t.rank > 0:
                    dim_dt = t.dt if dim_dt < 0 else PROMOTE[dim_dt][t.dt]
                else:
                    zero_dt = t.dt if zero_dt < 0 else PROMOTE[zero_dt][t.dt]
        elif counts:
            d = scalar_dt(x, op)
            number_dt = d if number_dt < 0 else PROMOTE[number_dt][d]
        else:
            scalar_dt(x, op)
        p.operands.append(x)
    if lead is None:
        raise TypeError(f"{o.name.decode()}: {arg_name(op, 0)} must be a Tensor, got "
                        f"{type(args[0]).__name__}")
    p.nin = len(p.operands)
    if o.promote == PT_PROMOTE_WHERE or op == OP_MASKED_FILL:
        check_mask(op, p)
    p.column, p.number = seen[0], seen[1]
    if o.promote == PT_PROMOTE_FIRST:
        p.compute = lead.dt if isinstance(p.operands[0], Tensor) else scalar_dt(p.operands[0], op)
    else:
        p.compute = combine(dim_dt, combine(zero_dt, number_dt))
    if o.promote == PT_PROMOTE_FLOAT and CATEGORY[p.compute] < 2:
        p.compute = default_float()
    if not o.types & (1 << p.compute):
        raise unsupported(op, p.compute)
    if p.nin > 1:
        check_numbers(op, p)
    p.out_dt = out_dtype(op, p.compute)
    broadcast(op, p)
    return p


cdef int check_mask(int op, Plan p) except -1:
    """A condition is bool; uint8, which PyTorch still takes with a warning, passes in `where`."""
    cdef int k = 1 if op == OP_MASKED_FILL else 0
    x = p.operands[k]
    if isinstance(x, Tensor) and (<Tensor>x).dt != PT_BOOL and (
            op == OP_MASKED_FILL or (<Tensor>x).dt != PT_UINT8):
        raise DTypeError(f"{info(op).name.decode()}: {arg_name(op, k)} must have dtype bool, got "
                         f"{dtype_of((<Tensor>x).dt).name}")
    return 0


cdef int check_numbers(int op, Plan p) except -1:
    """A number that may become an element must be one of the dtype's; in arithmetic an int wraps."""
    cdef int i
    cdef Tensor t
    for i in range(p.nin):
        x = p.operands[i]
        if isinstance(x, Tensor):
            t = <Tensor>x
            if op == OP_MASKED_FILL and i == 2 and t.rank == 0 and t.dt != p.compute and (
                    t.storage.device != DEVICE_META):
                fitting(t.item(), p.compute, info(op).name)
            continue
        if isinstance(x, int):
            check_int(x, p.compute, info(op).name)
        if op in SELECTING and not (op == OP_WHERE and ITEMSIZE[p.compute] == 2
                                    and CATEGORY[p.compute] == 2):
            p.operands[i] = fitting(x, p.compute, info(op).name)
    return 0


cdef int check_int(object x, int dt, const char *op) except -1:
    """An int must be one of 64 bits."""
    if not -0x8000000000000000 <= x < (
            0x10000000000000000 if dt == PT_UINT64 or CATEGORY[dt] >= 2 else 0x8000000000000000):
        raise OverflowError(f"{op.decode()}: operands must be 64-bit integers beside "
                            f"{dtype_of(dt).name}, got {x if x.bit_length() < 200 else 'a larger one'}")
    return 0


cdef object fitting(object x, int dt, const char *op):
    """A number that is to become an element of a dtype, whose range it must not exceed; what is
    no number is given back."""
    cdef double largest
    cdef int category = CATEGORY[dt]
    if isinstance(x, complex) and 0 < category < 3:
        if x.imag != 0:
            raise RuntimeError(f"{op.decode()}: the complex number {x} cannot be converted to "
                               f"{dtype_of(dt).name}")
        x = x.real
    if isinstance(x, int):
        check_int(x, dt, op)
    if not isinstance(x, (int, float, complex)) or dt in (PT_BOOL, PT_FLOAT64, PT_COMPLEX128):
        return x
    if category < 2:
        try:
            int_of(x, dt)
        except RuntimeError as e:
            raise RuntimeError(f"{op.decode()}: {e}") from None
        return x
    largest = 65504.0 if dt == PT_FLOAT16 else (
        3.3895313892515355e38 if dt == PT_BFLOAT16 else 3.4028234663852886e38)
    if exceeds(x.real, largest) or exceeds(x.imag, largest):
        raise RuntimeError(f"{op.decode()}: value {x} cannot be converted to {dtype_of(dt).name} "
                           "without overflow")
    return x


cdef bint exceeds(object x, double largest):
    """Whether a finite number is beyond the largest."""
    return largest < abs(x) != INFINITY


cdef object unsupported(int op, int dt):
    if op_name_is(op, b"sub") and dt == PT_BOOL:
        return DTypeError("sub: subtraction of bool tensors is not supported; use "
                          "bitwise_xor or logical_xor, or `~` for negation")
    allowed = ", ".join([dtype_of(k).name for k in range(N_DTYPES) if info(op).types & (1 << k)])
    return UnsupportedDTypeError(f"{info(op).name.decode()}: dtype must be one of {allowed}, got "
                                 f"{dtype_of(dt).name}")


cdef bint op_name_is(int op, bytes name):
    return <bytes>info(op).row == name


cdef int broadcast(int op, Plan p) except -1:
    cdef Tensor t
    cdef int i, shift
    cdef int64_t n
    p.ndim = 0
    for x in p.operands:
        if isinstance(x, Tensor) and (<Tensor>x).rank > p.ndim:
            p.ndim = (<Tensor>x).rank
    for i in range(p.ndim):
        p.sizes[i] = 1
    for x in p.operands:
        if isinstance(x, Tensor):
            t = <Tensor>x
            shift = p.ndim - t.rank
            for i in range(t.rank):
                n = t.dims[i]
                if n != 1 and p.sizes[i + shift] != n:
                    if p.sizes[i + shift] != 1:
                        raise shape_mismatch(op, p)
                    p.sizes[i + shift] = n
    return 0


cdef object shape_mismatch(int op, Plan p):
    shapes = [list(shape_of(<Tensor>x)) for x in p.operands if isinstance(x, Tensor)]
    return ShapeError(f"{info(op).name.decode()}: shapes must broadcast, got "
                      f"{' and '.join([str(s) for s in shapes])}")


cdef Tensor result_for(Plan p):
    """Uninitialised output: in the operands' common dense layout if they share one."""
    cdef Tensor t, first = None
    cdef bint keep = True
    if p.flags & PT_NONCONTIGUOUS:
        for x in p.operands:
            if not isinstance(x, Tensor):
                continue
            t = <Tensor>x
            if t.rank != p.ndim or not same_sizes(p.ndim, t.dims, p.sizes):
                continue
            if first is None:
                first = t
            elif not same_sizes(p.ndim, t.dims + t.rank, first.dims + first.rank):
                keep = False
        if (first is not None and keep and first.flags & PT_NONCONTIGUOUS
                and is_dense(first.rank, first.dims, first.dims + first.rank)):
            return new_strided(p.out_dt, p.ndim, p.sizes, first.dims + first.rank,
                               p.column, p.number)
    return new_tensor(p.out_dt, p.ndim, p.sizes, p.column, p.number)


cdef int check_integers(int op, Plan p) except -1:
    """Integer division by zero and negative integer powers are errors, as in PyTorch."""
    cdef pt_opinfo *o = info(op)
    if CATEGORY[p.compute] >= 2 or p.column == DEVICE_META:
        return 0
    x = p.operands[p.nin - 1]
    if o.integers == PT_INT_NONZERO:
        if (x == 0 if not isinstance(x, Tensor) else bool((x == 0).any())):
            raise DivisionByZeroError(f"{o.name.decode()}: integer division by zero")
    elif not isinstance(x, Tensor):
        if x < 0:
            raise RuntimeError(f"{o.name.decode()}: integers to negative integer powers are not "
                               "allowed")
        fitting(x, p.compute, o.name)
    return 0


cdef int fill_params(int op, tuple args, int compute, char *buffer) except -1:
    """Writes the parameters one after another in the op-math type of the compute dtype."""
    cdef const char *letters = info(op).letters
    cdef int k, n = 0
    cdef object x
    cdef double number
    for k in range(len(args)):
        if letters[k] == b'T' or letters[k] == b'I' or letters[k] == b'w':
            continue
        if n == MAX_PARAMS:
            raise RuntimeError(f"{info(op).name.decode()}: too many parameters")
        x = args[k]
        if not isinstance(x, (int, float, complex)):
            x = scalar_of(x)
            if isinstance(x, Tensor):
                x = x.item()
            if not isinstance(x, (int, float, complex)):
                raise TypeError(f"{info(op).name.decode()}: {arg_name(op, k)} must be a number, "
                                f"got {type(x).__name__}")
        if isinstance(x, complex) and CATEGORY[compute] < 3:
            raise TypeError(f"{info(op).name.decode()}: {arg_name(op, k)} must be real for "
                            f"{dtype_of(compute).name} tensors, got complex")
        if CATEGORY[compute] == 3:
            x = complex(fitting(x, compute, info(op).name))
            if compute == PT_COMPLEX64:
                (<float *>buffer)[2 * n] = x.real
                (<float *>buffer)[2 * n + 1] = x.imag
            else:
                (<double *>buffer)[2 * n] = x.real
                (<double *>buffer)[2 * n + 1] = x.imag
        elif compute == PT_FLOAT64:
            (<double *>buffer)[n] = x
        elif CATEGORY[compute] == 2:
            number = x
            if not -3.4028234663852886e38 <= number <= 3.4028234663852886e38:
                fitting(x, PT_FLOAT32, info(op).name)           # infinities and nan fit
            (<float *>buffer)[n] = <float>number
        else:
            if isinstance(x, float):
                raise RuntimeError(f"{info(op).name.decode()}: {arg_name(op, k)} must be an "
                                   "integer for integer tensors, got float")
            fitting(x, compute, info(op).name)
            (<uint64_t *>buffer)[n] = <uint64_t>(x & 0xFFFFFFFFFFFFFFFF)
        n += 1
    return 0


cdef int write_scalar(object x, char *buffer) except -1:
    """Stores a number in the widest dtype of its kind and returns that dtype's code."""
    if isinstance(x, complex):
        (<double *>buffer)[0] = x.real
        (<double *>buffer)[1] = x.imag
        return PT_COMPLEX128
    if isinstance(x, float):
        (<double *>buffer)[0] = x
        return PT_FLOAT64
    (<uint64_t *>buffer)[0] = <uint64_t>(int(x) & 0xFFFFFFFFFFFFFFFF)
    return PT_INT64 if x < 0x8000000000000000 else PT_UINT64


cdef int run_loops(int op, Plan p, tuple args, Tensor r) except -1:
    """Fills r (sizes as planned, any strides and dtype) from the operands."""
    cdef pt_view[5] views
    cdef pt_view out
    cdef int64_t[5][64] strides
    cdef int64_t[2 * 64] room
    cdef double[5][2] numbers
    cdef double[16] params
    cdef int i, j, shift, status, loop_out = p.out_dt
    cdef Tensor t
    cdef const pt_elementwise *entry = pt_loops(op)
    fill_params(op, args, p.compute, <char *>params)
    for i in range(p.nin):
        x = p.operands[i]
        views[i].sizes = p.sizes
        views[i].ndim = p.ndim
        views[i].strides = strides[i]
        views[i].device = p.column
        if isinstance(x, Tensor):
            t = <Tensor>x
            shift = p.ndim - t.rank
            for j in range(p.ndim):
                strides[i][j] = (0 if j < shift or (t.dims[j - shift] == 1 and p.sizes[j] != 1)
                                 else t.dims[t.rank + j - shift])
            views[i].data = address(t)
            views[i].dtype = t.dt
            views[i].device = t.storage.device      # 0 beside another device: one host element
        else:
            for j in range(p.ndim):
                strides[i][j] = 0
            views[i].device = DEVICE_CPU
            views[i].data = <char *>numbers[i]
            views[i].dtype = write_scalar(x, <char *>numbers[i])
        views[i].numel = r.count
        views[i].contiguous = False
    fill_view(r, &out)
    if p.column == DEVICE_META:
        return 0
    if p.column != DEVICE_CPU:
        status = BACKENDS[p.column].elementwise(entry.name, p.compute, loop_out, &out, views, p.nin, params)
        if status and status != PT_TYPE_ERROR:
            text = f"failed on {device_of(p.column, p.number)}{backend_error(p.column)}".encode()
            raise_status(status, info(op).name, text)
        if status:
            raise NotImplementedError(
                f"{info(op).name.decode()}: there is no kernel for {dtype_of(p.compute).name} on "
                f"device {device_of(p.column, p.number)}")
    elif r.count > SMALL:
        own_dims(&out, room)
        pt_kernels_enter()
        with nogil:
            status = pt_elementwise_run(entry, p.compute, loop_out, &out, views, p.nin, params)
        pt_kernels_leave()
    else:
        status = pt_elementwise_run(entry, p.compute, loop_out, &out, views, p.nin, params)
    if status:
        raise RuntimeError(f"{info(op).name.decode()}: no loop for "
                           f"{dtype_of(p.compute).name} (status {status})")
    return 0


cdef object elementwise(int op, tuple args, object out):
    """Any elementwise call that allocates its result or writes to out=."""
    cdef pt_opinfo *o = info(op)
    cdef uint32_t key = pt_tls.mode
    cdef Plan p
    cdef Tensor r
    for x in args:
        if isinstance(x, Tensor):
            key |= (<Tensor>x).flags
    if key & PT_SLOW:
        result = interpose(op, args, out, 0)
        if result is not NotImplemented:
            return result
    p = plan(op, args)
    if o.integers:
        check_integers(op, p)
    if out is not None and isinstance(out, Tensor) and can_hold(op, <Tensor>out, p):
        run_loops(op, p, args, <Tensor>out)
        count_write(<Tensor>out)
        return out
    r = result_for(p)
    run_loops(op, p, args, r)
    if (p.flags & (PT_REQUIRES_GRAD | PT_VIEW) and pt_tls.grad_enabled and o.differentiable
            and CATEGORY[r.dt] >= 2):
        if out is not None and args_need_grad(p.operands):
            raise RuntimeError(f"{o.name.decode()}: out= does not support automatic "
                               "differentiation, but one of the arguments requires grad")
        record_general(op, r, p, args, None, None)
    if out is not None:
        if not isinstance(out, Tensor):
            raise TypeError(f"{o.name.decode()}: out must be a Tensor, got {type(out).__name__}")
        write_out(<Tensor>out, r, o.name)
        return out
    return r


cdef bint can_hold(int op, Tensor out, Plan p) except -1:
    """Whether the loops may write to out= itself; what is refused is left to ``write_out``."""
    cdef pt_opinfo *o = info(op)
    return (CATEGORY[p.out_dt] <= CATEGORY[out.dt] and not repeats_itself(out) and not overlaps_another(out, p)
            and not (p.flags & (PT_REQUIRES_GRAD | PT_VIEW) and pt_tls.grad_enabled and o.differentiable
                     and args_need_grad(p.operands))
            and can_be_written(out, o.name, p.ndim, p.sizes, p.column, p.number))


cdef object elementwise_inplace(int op, tuple args):
    """``x.op_(...)``: the first operand is also the output."""
    cdef pt_opinfo *o = info(op)
    cdef uint32_t key = pt_tls.mode
    cdef Plan p
    cdef Tensor x, r
    cdef Node n = None
    cdef bint recording
    cdef object before = None
    if not isinstance(args[0], Tensor):
        raise TypeError(f"{o.name.decode()}_: {arg_name(op, 0)} must be a Tensor, got "
                        f"{type(args[0]).__name__}")
    for a in args:
        if isinstance(a, Tensor):
            key |= (<Tensor>a).flags
    if key & PT_SLOW:
        result = interpose(op, args, None, 1)
        if result is not NotImplemented:
            return result
    x = <Tensor>args[0]
    if x.storage.device == DEVICE_META and op_name_is(op, b"assign"):
        return x                        # there is nothing to copy into
    p = plan(op, args)
    if p.ndim != x.rank or not same_sizes(p.ndim, p.sizes, x.dims):
        raise ShapeError(f"{o.name.decode()}_: the result has shape "
                         f"{list(sizes_tuple(p.ndim, p.sizes))}, but the tensor written to has "
                         f"{list(shape_of(x))}")
    if CATEGORY[p.out_dt] > CATEGORY[x.dt]:
        raise RuntimeError(f"{o.name.decode()}_: result type {dtype_of(p.out_dt).name} can't be "
                           f"cast to the desired output type {dtype_of(x.dt).name}")
    if o.integers:
        check_integers(op, p)
    recording = (pt_tls.grad_enabled and p.flags & (PT_REQUIRES_GRAD | PT_VIEW)
                 and CATEGORY[x.dt] >= 2 and args_need_grad(p.operands))
    check_inplace(x, o.name, recording)
    check_no_self_overlap(op, x)
    if recording:
        if p.flags & PT_INFERENCE:
            check_operands_saved(op, p)
        if uses_first(op):
            # The rule needs x as it was: keep a copy with x's place in the graph.
            before = old_value(x)
    if overlaps_another(x, p):
        r = result_for(p)
        run_loops(op, p, args, r)
        copy_into(x, r)
    elif op == OP_ASSIGN and is_plain_copy(x, p.operands[1]):
        copy_into(x, <Tensor>p.operands[1])
    else:
        run_loops(op, p, args, x)
    if recording:
        if o.differentiable:
            n = record_general(op, x, p, args, x, before)
        if n is None and needs_grad(x):
            # What was written depends on nothing; the old history gets zeros.
            n = new_node(OP_ASSIGN, 2)
            link(n, 0, x)
    finish_inplace(x, n)
    return x


cdef object unwritten(object x, tuple args):
    """x as the argument of a call whose result is written over it: a copy in its place of the graph where what is
    recorded may keep it."""
    if (isinstance(x, Tensor) and not (<Tensor>x).flags & (PT_INTERPOSED | PT_TANGENT) and pt_tls.grad_enabled
            and args_need_grad(args)):
        return old_value(<Tensor>x)
    return x


cdef object overwrite(Tensor x, object value, const char *name):
    """``x.copy_(value)`` for a value that was computed from x, whose history holds x's."""
    if isinstance(value, Tensor) and CATEGORY[(<Tensor>value).dt] > CATEGORY[x.dt]:
        raise RuntimeError(f"{name.decode()}_: result type {dtype_of((<Tensor>value).dt).name} can't be "
                           f"cast to the desired output type {dtype_of(x.dt).name}")
    elementwise_inplace(OP_ASSIGN, (x, value))
    if x.node is not None and x.node.op == OP_ASSIGN and x.node.e1 is not None:
        x.node.e0 = None
    return x


cdef int check_operands_saved(int op, Plan p) except -1:
    """Refuses an inference tensor that the rule would save, before anything is written."""
    cdef pt_opinfo *o = info(op)
    cdef uint32_t need = 0
    cdef int i, k
    for i in range(p.nin):
        x = p.operands[i]
        if isinstance(x, Tensor) and o.grad_mask & (1 << i) and needs_grad(<Tensor>x):
            need |= 1 << i
    for k in range(o.nsaved):
        if o.need[k] & need and o.saved[k] < PT_SAVE_META:
            x = p.operands[o.saved[k]]
            if isinstance(x, Tensor):
                check_saved(<Tensor>x, o.name)
    return 0


cdef bint uses_first(int op) noexcept:
    cdef pt_opinfo *o = info(op)
    cdef int k
    for k in range(o.nsaved):
        if o.saved[k] == 0:
            return True
    return False


cdef Tensor old_value(Tensor x):
    """A copy of x that stands where x stood in the graph."""
    cdef Tensor c = new_like(x, x.dt)
    copy_into(c, x)
    if needs_grad(x):
        if x.node is not None:
            set_node(c, x.node, x.out_nr)
    return c


cdef bint is_plain_copy(Tensor x, object value) noexcept:
    cdef Tensor t
    if not isinstance(value, Tensor):
        return False
    t = <Tensor>value
    return (t.dt == x.dt and t.rank == x.rank and same_sizes(x.rank, t.dims, x.dims)
            and t.storage.device == DEVICE_CPU and x.storage.device == DEVICE_CPU)


cdef int check_no_self_overlap(int op, Tensor x) except -1:
    if repeats_itself(x):
        raise RuntimeError(f"{info(op).name.decode()}_: more than one element of the written-to "
                           "tensor refers to a single memory location; clone() it first")
    return 0


cdef bint overlaps_another(Tensor x, Plan p):
    """Whether another operand shares x's memory at other positions."""
    for o in p.operands:
        if isinstance(o, Tensor) and same_memory(x, <Tensor>o) and not same_window(x, <Tensor>o):
            return True
    return False


cdef Node record_general(int op, Tensor r, Plan p, tuple args, Tensor inplace, object before):
    """Node with edges to the operands; in place, the first edge leads to x's old history."""
    cdef pt_opinfo *o = info(op)
    cdef Node n
    cdef Tensor t
    cdef uint32_t need = 0
    cdef int i, k, code
    cdef list spec = [None] * p.nin
    cdef bint reduce = False
    for i in range(p.nin):
        x = p.operands[i]
        if isinstance(x, Tensor) and o.grad_mask & (1 << i) and needs_grad(<Tensor>x):
            need |= 1 << i
    if not need:
        return None
    n = new_node(op, p.nin)
    for i in range(p.nin):
        if not need & (1 << i):
            continue
        t = <Tensor>p.operands[i]
        link(n, i, t)
        if t.rank != p.ndim or not same_sizes(p.ndim, t.dims, p.sizes) or t.dt != p.out_dt:
            spec[i] = (shape_of(t), dtype_of(t.dt))
            reduce = True
    if reduce:
        n.spec = tuple(spec)
    if len(args) > p.nin:
        n.params = tuple([args[k] for k in range(len(args)) if o.letters[k] not in b"TI"])
    for k in range(o.nsaved):
        if not o.need[k] & need:
            continue
        code = o.saved[k]
        if code >= PT_SAVE_OUT:
            save_after(n, k, r, inplace is not None)
        elif code >= PT_SAVE_META:
            x = p.operands[code - PT_SAVE_META]
            if isinstance(x, Tensor):
                t = <Tensor>x
                save(n, k, meta_of(t))
        else:
            x = p.operands[code]
            if inplace is not None and x is inplace:
                x = before
            if isinstance(x, Tensor) and (<Tensor>x).dt != p.compute and not (
                    o.letters[code] == b'I' or (o.promote == PT_PROMOTE_WHERE and code == 0)):
                x = cast(<Tensor>x, p.compute)      # saved values are post-promotion
            save(n, k, x)
    if pt_tls.mode & PT_MODE_ANOMALY:
        n.trace = trace_of_user()
    if inplace is None:
        set_node(r, n, 0)
    return n


cdef void save_after(Node n, int slot, Tensor r, bint inplace) except *:
    """Saves the output; in place its version is about to be counted once more."""
    save_at(n, slot, alias(r), version_of(r) + inplace)
