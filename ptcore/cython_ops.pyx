"""The functions of cython_ops.pxd, the Cython interface of the op table."""
from ptcore._ops.call cimport elementwise
from ptcore._ops.table.ids cimport PT_ELEMENTWISE, info
from ptcore._ops.table import ids as _table
from ptcore._tensor cimport table


cdef int op_id(str name) except -1:
    return _table.op_id(name)


cdef object call(int op, tuple args):
    return _table.function_of(op)(*args)


cdef int check(str name, int op, int operands) except -1:
    if not 0 <= op < _table.n_ops() or info(op).kind != PT_ELEMENTWISE or (
            info(op).ntensors != operands):
        raise ValueError(f"{name}: op must be the id of an elementwise op of {operands} operands, "
                         f"got {op}")
    return 0


cdef object unary(int op, object x):
    check("unary", op, 1)
    return elementwise.unary(op, x)


cdef object binary(int op, object x, object y):
    check("binary", op, 2)
    return elementwise.binary(op, x, y)


cdef object matmul(object x, object y):
    return table.matmul(x, y)


cdef int enter_kernel(int op, int device, object capsule) except -1:
    _table.register_kernel(_table.op_name(op), device, capsule)
    return 0
