"""Elementwise ops on the fast path: small dense tensors and Python numbers.

A fast path takes exact operands of one dtype, contiguous and of one shape (or a row repeated,
or a Python number), looks up one loop and runs it; one branch on the ORed flags sends
everything else to the general path of _elementwise.pyx.
"""
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.object cimport PyObject

from ptcore._types cimport *
from ptcore._dtype cimport CATEGORY, ITEMSIZE, dtype_of
from ptcore._node cimport Node, new_node
from ptcore._shape cimport same_sizes
from ptcore._tensor cimport *
from ptcore._ops._elementwise cimport elementwise, elementwise_inplace, out_dtype
from ptcore._ops._record cimport *
from ptcore._ops._table cimport *
from ptcore._ops._writing cimport same_memory
from ptcore._ops._table import op_id

cdef extern from "Python.h":
    bint PyLong_CheckExact(object)
    int64_t PyLong_AsLongLongAndOverflow(object, int *)

cdef extern from "select.h":
    # The loops of the chosen ISA level: op id -> entry (loop[] all NULL if not elementwise).
    const pt_elementwise *pt_loops(int op) nogil

cdef enum:
    SMALL = 16384               # elements up to which the GIL is kept and nothing is split


cdef inline bint write_number(object value, int dt, char *buffer) noexcept:
    """Stores a Python int or float as float32/64 or int64/32; False if that takes the long way."""
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
    cdef uint32_t key
    if isinstance(x, Tensor):
        a = <Tensor>x
        key = a.flags | pt_tls.mode
        if not key & (PT_SLOW | PT_NONCONTIGUOUS) and a.count <= SMALL:
            entry = pt_loops(op)
            if entry.loop[a.dt] != NULL:
                r = new_like(a, out_dtype(op, a.dt))
                ptr[0] = address(r)
                ptr[1] = address(a)
                entry.loop[a.dt](ptr, a.count, NULL)
                if key & (PT_REQUIRES_GRAD | PT_RECORD_SLOW) and pt_tls.grad_enabled:
                    record_fast(op, r, a, None, key)
                return r
    return elementwise(op, (x,), None)


cdef object binary(int op, object x, object y):
    """An op of two operands; at least one is a Tensor if it is called from an operator."""
    cdef Tensor a, b, r
    cdef const pt_elementwise *entry
    cdef (char *)[3] ptr
    cdef double[2] number_store
    cdef char *number = <char *>number_store
    cdef uint32_t key
    if info(op).integers and not (isinstance(x, Tensor) and CATEGORY[(<Tensor>x).dt] >= 2):
        return elementwise(op, (x, y), None)    # which looks at the values of integers
    if isinstance(x, Tensor):
        a = <Tensor>x
        if isinstance(y, Tensor):
            b = <Tensor>y
            key = a.flags | b.flags | pt_tls.mode
            if (not key & (PT_SLOW | PT_NONCONTIGUOUS) and a.dt == b.dt and a.rank == b.rank
                    and a.count <= SMALL and same_sizes(a.rank, a.dims, b.dims)):
                entry = pt_loops(op)
                if entry.loop[a.dt] != NULL:
                    r = new_like(a, out_dtype(op, a.dt))
                    ptr[0] = address(r)
                    ptr[1] = address(a)
                    ptr[2] = address(b)
                    entry.loop[a.dt](ptr, a.count, NULL)
                    if key & (PT_REQUIRES_GRAD | PT_RECORD_SLOW) and pt_tls.grad_enabled:
                        record_fast(op, r, a, b, key)
                    return r
            elif (not key & (PT_SLOW | PT_NONCONTIGUOUS) and a.dt == b.dt and b.count
                    and 0 < b.rank <= a.rank and a.count <= SMALL
                    and same_sizes(b.rank, a.dims + a.rank - b.rank, b.dims)):
                # y is repeated for each row of x (a bias).
                entry = pt_loops(op)
                if entry.loop[a.dt] != NULL:
                    return binary_rows(op, a, b, entry, key)
            return elementwise(op, (x, y), None)
        key = a.flags | pt_tls.mode
        if not key & (PT_SLOW | PT_NONCONTIGUOUS) and a.count <= SMALL:
            entry = pt_loops(op)
            if entry.vs[a.dt] != NULL and write_number(y, a.dt, number):
                r = new_like(a, out_dtype(op, a.dt))
                ptr[0] = address(r)
                ptr[1] = address(a)
                ptr[2] = number
                entry.vs[a.dt](ptr, a.count, NULL)
                if key & (PT_REQUIRES_GRAD | PT_RECORD_SLOW) and pt_tls.grad_enabled:
                    record_fast(op, r, a, y, key)
                return r
    elif isinstance(y, Tensor):
        b = <Tensor>y
        key = b.flags | pt_tls.mode
        if not key & (PT_SLOW | PT_NONCONTIGUOUS) and b.count <= SMALL:
            entry = pt_loops(op)
            if entry.sv[b.dt] != NULL and write_number(x, b.dt, number):
                r = new_like(b, out_dtype(op, b.dt))
                ptr[0] = address(r)
                ptr[1] = number
                ptr[2] = address(b)
                entry.sv[b.dt](ptr, b.count, NULL)
                if key & (PT_REQUIRES_GRAD | PT_RECORD_SLOW) and pt_tls.grad_enabled:
                    record_fast(op, r, x, b, key)
                return r
    return elementwise(op, (x, y), None)


cdef Tensor binary_rows(int op, Tensor a, Tensor b, const pt_elementwise *entry, uint32_t key):
    cdef Tensor r = new_like(a, out_dtype(op, a.dt))
    cdef (char *)[3] ptr
    cdef int64_t _row, rows = a.count // b.count
    cdef int64_t in_step = b.count * ITEMSIZE[a.dt], out_step = b.count * ITEMSIZE[r.dt]
    ptr[0] = address(r)
    ptr[1] = address(a)
    ptr[2] = address(b)
    for _row in range(rows):
        entry.loop[a.dt](ptr, b.count, NULL)
        ptr[0] += out_step
        ptr[1] += in_step
    if key & (PT_REQUIRES_GRAD | PT_RECORD_SLOW) and pt_tls.grad_enabled:
        record_fast(op, r, a, b, key)
        if r.node is not None and r.node.e1 is not None:
            r.node.spec = (None, (shape_of(b), dtype_of(b.dt)))
    return r


cdef object operator(int op, object x, object y):
    """binary() for Python's operators: NotImplemented for what no tensor op takes."""
    if not (isinstance(x, Tensor) and isinstance(y, Tensor)):
        if not (operand_ok(x) and operand_ok(y)):
            return NotImplemented
    return binary(op, x, y)


cdef bint operand_ok(object x):
    return (isinstance(x, (Tensor, float, int, complex)) or hasattr(x, "__array__")
            or hasattr(type(x), "__torch_function__"))


cdef object inplace_operator(int op, object x, object y):
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
        return elementwise_inplace(op, (x, y))
    if isinstance(x, Tensor):
        a = <Tensor>x
        key = a.flags | pt_tls.mode
        if isinstance(y, Tensor):
            b = <Tensor>y
            key |= b.flags
        else:
            b = None
        if (not key & (PT_SLOW | PT_NONCONTIGUOUS | PT_DATA) and a.count <= SMALL
                and not (key & (PT_REQUIRES_GRAD | PT_VIEW) and pt_tls.grad_enabled)
                and not a.storage.flags & PT_STORAGE_READONLY
                and info(op).out == PT_OUT_SAME):
            entry = pt_loops(op)
            ptr[0] = address(a)
            ptr[1] = ptr[0]
            if b is None:
                if entry.vs[a.dt] != NULL and write_number(y, a.dt, number):
                    ptr[2] = number
                    entry.vs[a.dt](ptr, a.count, NULL)
                    a.storage.version += 1
                    return x
            elif (a.dt == b.dt and a.rank == b.rank and entry.loop[a.dt] != NULL
                    and (a is b or not same_memory(a, b))
                    and same_sizes(a.rank, a.dims, b.dims)):
                ptr[2] = address(b)
                entry.loop[a.dt](ptr, a.count, NULL)
                a.storage.version += 1
                return x
    return elementwise_inplace(op, (x, y))


# -- recording of the fast paths ------------------------------------------------------------------

cdef inline object leaf_of(Tensor t):
    """What an edge to a tensor without node leads to (see link)."""
    return t if t.flags & PT_REQUIRES_GRAD else None


cdef int record_fast(int op, Tensor r, object x, object y, uint32_t key) except -1:
    """Node of a unary or binary op whose operands have one shape and dtype (or are numbers)."""
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
    if key & PT_MODE_ANOMALY:
        n.trace = trace_of_user()
    set_node(r, n, 0)
    return 0


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
