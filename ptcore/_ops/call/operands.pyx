"""Reading: the operands of an elementwise call, the dtype that its loops compute in, and the result's sizes.

An operand is a tensor or a number. Tensors with dims, 0-d tensors and numbers are three classes of PyTorch's
promotion: one of a later class changes the dtype only where it is of a higher category. A tensor of the array API's
namespace (PT_STANDARD) is of the first class with dims and without.
"""
from cpython.long cimport PyLong_AsUnsignedLongLongMask
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.math cimport INFINITY

from ptcore._types cimport *
from ptcore._dtype cimport CATEGORY, ITEMSIZE, N_DTYPES, complex_of, default_complex, default_float, dtype_of, promote
from ptcore._dtype import finfo
from ptcore._shape cimport concrete, hinted, is_symbolic_number
from ptcore._tensor cimport *
from ptcore._ops.table.ids cimport *
from ptcore._ops.call.call cimport *
from ptcore._ops.call.read cimport as_tensor_like, common_device, unsupported
from ptcore._ops.table.ids import op_id
from ptcore._exchange.convert import int_of
from ptcore._errors import DivisionByZeroError, DTypeError, ShapeError

cdef enum:
    MAX_PARAMS = 8

cdef int OP_ADD_SCALED = op_id("add_scaled"), OP_SUB_SCALED = op_id("sub_scaled"), OP_THRESHOLD = op_id("threshold")
cdef int OP_POW = op_id("pow"), OP_OR = op_id("bitwise_or")

# The largest finite numbers of dtypes that the check of a number looks at.
cdef double[N_DTYPES] LARGEST
for _dt in range(N_DTYPES):
    LARGEST[_dt] = finfo(dtype_of(_dt)).max if CATEGORY[_dt] > 1 else 0

# Parameters that may become an element of the result, as a bit for each: the dtype must hold them.
cdef uint8_t[MAX_OPS] _becomes_element
for _name, _params in (("clamp_between", 3), ("hardtanh_of", 3), ("threshold", 2), ("hardshrink", 1),
                       ("softshrink_of", 1)):
    _becomes_element[op_id(_name)] = _params


cdef object scalar_of(object x):
    """A NumPy scalar as the Python number that it promotes as; a symbolic number as a number, which is a guard."""
    if is_symbolic_number(x):
        return x.guard()
    if type(x).__module__ == "numpy" and getattr(x, "ndim", 1) == 0 and hasattr(x, "item"):
        return x.item()
    return x


cdef int scalar_dt(object x, const char *op) except -1:
    if isinstance(x, bool):
        return PT_BOOL
    if isinstance(x, int):
        return PT_INT64
    if isinstance(x, float):
        return default_float()
    if isinstance(x, complex):
        return default_complex()
    raise TypeError(f"{op.decode()}: operands must be Tensors or numbers, got {type(x).__name__}")


cdef int combine(int high, int low) except -2:
    """Combines the dtypes of two priority classes of operands as PyTorch does (-1: the class is empty)."""
    if high < 0:
        return low
    if low < 0 or CATEGORY[high] == 3:
        return high
    if CATEGORY[high] == 2:
        return complex_of(high) if CATEGORY[low] == 3 else high
    if CATEGORY[high] == 0 or CATEGORY[low] >= 2:
        return promote(high, low)
    return high


def result_type(tensor1, tensor2):
    """The dtype of an operation on two operands.

    Parameters
    ----------
    tensor1, tensor2 : Tensor or number

    Returns
    -------
    dtype

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
    return promoted((tensor1, tensor2))


def promoted(tuple operands):
    """The dtype of an operation on any number of operands."""
    cdef int[3] seen = [-1, -1, -1]         # with dims, 0-d, numbers
    cdef int d, place
    for x in operands:
        if isinstance(x, Tensor):
            d, place = (<Tensor>x).dt, (<Tensor>x).rank == 0 and not (<Tensor>x).flags & PT_STANDARD
        else:
            d, place = scalar_dt(scalar_of(x), b"result_type"), 2
        seen[place] = d if seen[place] < 0 else promote(seen[place], d)
    return dtype_of(combine(seen[0], combine(seen[1], seen[2])))


cdef PyObject *keep(Call *c, object x) except NULL:
    """A reference to x that the call keeps until it ends."""
    cdef list made
    if c.made == NULL:
        made = []
        Py_INCREF(made)
        c.made = <PyObject *>made
    (<list>c.made).append(x)
    return <PyObject *>x


# Both operands may be numbers, as in PyTorch.
cdef frozenset OF_NUMBERS = frozenset([op_id(name) for name in (
    "add", "sub", "mul", "div", "trunc_divide", "floor_divide")])


cdef int read_operands(Call *c) except -1:
    """Reads the operands, promotes and broadcasts: fills ``compute``, the device and the first output."""
    cdef pt_opinfo *o = c.o
    cdef int[3] seen = [-1, -1, -1]         # with dims, 0-d, numbers
    cdef int[3] place = [-1, -1, 0]
    cdef int k, d, kind
    cdef Tensor t, lead = None
    cdef object x
    c.key = pt_tls.mode
    c.nin = 0
    for k in range(c.n):
        if o.letters[k] not in (PT_ARG_TENSOR, PT_ARG_INDEX):
            continue
        x = <object>c.args[k]
        if not isinstance(x, (Tensor, float, int, complex)):
            if not c.taken or not is_symbolic_number(x):
                x = scalar_of(x)
            if hasattr(x, "__array__"):
                x = as_tensor_like(x, None)
            keep(c, x)
        c.operands[c.nin] = <PyObject *>x
        c.argument[c.nin] = c.nin
        c.tensors[c.nin] = NULL
        if isinstance(x, Tensor):
            t = <Tensor>x
            c.tensors[c.nin] = <PyObject *>t
            if lead is None:
                lead = t
            c.key |= t.flags
            common_device(c.op, t, place, True)
            d, kind = t.dt, t.rank == 0 and not t.flags & PT_STANDARD
        else:
            d, kind = scalar_dt(hinted(x), o.name), 2
        c.nin += 1
        if (o.letters[k] == PT_ARG_INDEX or k == 0 and o.promote == PT_PROMOTE_WHERE
                or k and o.promote == PT_PROMOTE_FIRST):
            continue                        # it takes no part in promotion
        seen[kind] = d if seen[kind] < 0 else promote(seen[kind], d)
    if lead is None and c.op in OF_NUMBERS:
        lead = as_tensor_like(<object>c.operands[0], None)
        c.operands[0] = c.tensors[0] = keep(c, lead)
        common_device(c.op, lead, place, True)
    if lead is None:
        raise TypeError(f"{o.name.decode()}: {arg_name(c.op, 0)} must be a Tensor, got "
                        f"{type(<object>c.args[0]).__name__}")
    c.column, c.number = place[0], place[1]
    if o.condition:
        check_condition(c)
    if o.promote == PT_PROMOTE_FIRST:
        c.compute = seen[0] if seen[0] >= 0 else seen[1] if seen[1] >= 0 else seen[2]
    else:
        c.compute = combine(seen[0], combine(seen[1], seen[2]))
    if o.promote == PT_PROMOTE_FLOAT and CATEGORY[c.compute] < 2:
        c.compute = default_float()
    elif o.promote == PT_PROMOTE_WHOLE and c.compute == PT_BOOL:
        c.compute = PT_INT64
    if not o.types & (1 << c.compute):
        if c.op != OP_POW or c.compute != PT_BOOL or c.tensors[0] == NULL or c.tensors[1] != NULL:
            hint = f"; {c.o.hint.decode()}" if c.o.hint != NULL and c.compute == PT_BOOL else ""
            raise unsupported(c.o, c.compute, hint)
        # A bool tensor to the power of True is the tensor itself, to the power of False it is True.
        x = bool(not <object>c.operands[1])
        c.operands[1] = keep(c, x)
        c.op, c.o = OP_OR, info(OP_OR)
    if c.nin > 1:
        check_numbers(c)
    c.nout = 1
    c.outs[0].dt = out_dtype(c.op, c.compute)
    return broadcast(c)


cdef int check_condition(Call *c) except -1:
    """A condition is bool; uint8, which PyTorch still takes with a warning, passes in `where`."""
    cdef int k = c.o.condition - 1
    cdef int dt
    if c.tensors[k] == NULL:
        return 0
    dt = (<Tensor>c.tensors[k]).dt
    if dt != PT_BOOL and not (dt == PT_UINT8 and c.o.promote == PT_PROMOTE_WHERE):
        raise DTypeError(f"{c.o.name.decode()}: {arg_name(c.op, k)} must have dtype bool, got {dtype_of(dt).name}")
    return 0


cdef int check_numbers(Call *c) except -1:
    """A number that may become an element must fit the dtype; in arithmetic an int wraps."""
    cdef bint selects = c.o.selects and not (
        c.o.promote == PT_PROMOTE_WHERE and ITEMSIZE[c.compute] <= 2 and CATEGORY[c.compute] == 2)
    cdef int i
    cdef Tensor t
    for i in range(c.nin):
        if c.tensors[i] != NULL:
            t = <Tensor>c.tensors[i]
            if c.o.condition and c.o.promote == PT_PROMOTE_FIRST and t.rank == 0 and t.dt != c.compute and (
                    i != c.o.condition - 1 and t.storage.device != DEVICE_META and not t.flags & PT_INTERPOSED):
                fitting(t.item(), c.compute, c.o.name)
            continue
        x = <object>c.operands[i]
        if type(x) is float and not selects:
            continue
        if isinstance(x, int):
            check_int(x, c.compute, c.o.name)
        if selects:
            y = fitting(x, c.compute, c.o.name)
            if y is not x:
                c.operands[i] = keep(c, y)
        if c.o.selects and pt_is(c.compute, PT_KIND_STORED):
            check_fill(x, c.compute, c.o.selects != PT_SELECTS_SECOND or (<Tensor>c.tensors[0]).count == 1, c.o.name)
    return 0


cdef int check_fill(object x, int dt, bint single, const char *op) except -1:
    """Raises if a fill's number exceeds the range of a stored dtype. As in PyTorch one element of float8 takes any
    number, and several of complex32 what complex64 holds."""
    cdef double size
    if dt == PT_COMPLEX32:
        size = LARGEST[PT_FLOAT16 if single else PT_FLOAT32]
        fits = not exceeds(x.real, size) and not exceeds(x.imag, size)
    elif single or x != x or dt == PT_FLOAT8_E8M0FNU and isinstance(x, int):
        fits = True
    else:
        size = LARGEST[dt]
        fits = (-size <= x <= size or dt == PT_FLOAT8_E5M2 and abs(x) == INFINITY) and not (
            dt == PT_FLOAT8_E8M0FNU and x < 1 / size)
    if not fits:
        raise RuntimeError(f"{op.decode()}: value {x} cannot be converted to {dtype_of(dt).name} without overflow")
    return 0


cdef int check_int(object x, int dt, const char *op) except -1:
    """Raises if an int does not fit in 64 bits."""
    if not -0x8000000000000000 <= x < (
            0x10000000000000000 if dt == PT_UINT64 or CATEGORY[dt] >= 2 else 0x8000000000000000):
        raise OverflowError(f"{op.decode()}: operands must be 64-bit integers beside "
                            f"{dtype_of(dt).name}, got {x if x.bit_length() < 200 else 'a larger one'}")
    return 0


cdef object fitting(object x, int dt, const char *op):
    """A number that is to become an element of a dtype; raises if it exceeds the range. Other values
    are returned as they are."""
    cdef double largest
    cdef int category = CATEGORY[dt]
    if type(x) is float and dt == PT_FLOAT32 and -3.4028234663852886e38 <= <double>x <= 3.4028234663852886e38:
        return x
    if isinstance(x, complex) and 0 < category < 3:
        if x.imag != 0:
            raise RuntimeError(f"{op.decode()}: the complex number {x} cannot be converted to "
                               f"{dtype_of(dt).name}")
        x = x.real
    if isinstance(x, int):
        check_int(x, dt, op)
    if not isinstance(x, (int, float, complex)) or dt in (PT_BOOL, PT_FLOAT64, PT_COMPLEX128) or (
            pt_is(dt, PT_KIND_STORED)):     # `check_fill` looks at these
        return x
    if category < 2:
        try:
            int_of(x, dt)
        except RuntimeError as e:
            raise RuntimeError(f"{op.decode()}: {e}") from None
        return x
    largest = LARGEST[dt]
    if exceeds(x.real, largest) or exceeds(x.imag, largest):
        raise RuntimeError(f"{op.decode()}: value {x} cannot be converted to {dtype_of(dt).name} "
                           "without overflow")
    return x


cdef bint exceeds(object x, double largest):
    """Whether a finite number exceeds ``largest``."""
    return largest < abs(x) != INFINITY


cdef int broadcast(Call *c) except -1:
    """The sizes of the result."""
    cdef Out *out = &c.outs[0]
    cdef Tensor t
    cdef int i, k, shift
    cdef int64_t n
    out.ndim = 0
    for k in range(c.nin):
        if c.tensors[k] != NULL and (<Tensor>c.tensors[k]).rank > out.ndim:
            out.ndim = (<Tensor>c.tensors[k]).rank
    for i in range(out.ndim):
        out.sizes[i] = 1
    for k in range(c.nin):
        if c.tensors[k] == NULL:
            continue
        t = <Tensor>c.tensors[k]
        shift = out.ndim - t.rank
        for i in range(t.rank):
            n = t.dims[i]
            if n != 1 and out.sizes[i + shift] != n:
                if out.sizes[i + shift] != 1:
                    raise shape_mismatch(c)
                out.sizes[i + shift] = n
    return 0


cdef object shape_mismatch(Call *c):
    shapes = [str(list(shape_of(<Tensor>c.tensors[k]))) for k in range(c.nin) if c.tensors[k] != NULL]
    return ShapeError(f"{c.o.name.decode()}: shapes must broadcast, got {' and '.join(shapes)}")


cdef int check_integers(Call *c) except -1:
    """Integer division by zero and negative integer powers are errors, as in PyTorch. On a device, where reading the
    divisors would wait for the device, the quotient by zero is 0."""
    if CATEGORY[c.compute] >= 2 or c.column == DEVICE_META:
        return 0
    if c.o.integers == PT_INT_NONZERO and c.tensors[0] != NULL and not (<Tensor>c.tensors[0]).count:
        return 0            # nothing is divided
    x = <object>c.operands[c.nin - 1]
    if c.o.integers == PT_INT_NONZERO:
        if isinstance(x, Tensor) and (<Tensor>x).storage.device != DEVICE_CPU:
            return 0
        # A divisor becomes one of the computation's dtype, in which 256 is 0 beside uint8.
        if isinstance(x, Tensor):
            zero = bool(((x if (<Tensor>x).dt == c.compute else x.to(dtype_of(c.compute))) == 0).any())
        else:
            zero = x == 0 if type(x) is not int else (
                PyLong_AsUnsignedLongLongMask(x) << (64 - 8 * ITEMSIZE[c.compute]) == 0)
        if zero:
            raise DivisionByZeroError(f"{c.o.name.decode()}: integer division by zero")
    elif not isinstance(x, Tensor):
        if x < 0:
            raise RuntimeError(f"{c.o.name.decode()}: integers to negative integer powers are not "
                               "allowed")
        fitting(x, c.compute, c.o.name)
    return 0


cdef int read_params(Call *c, char *buffer) except -1:
    """Writes the parameters one after another in the op-math type of the compute dtype."""
    cdef const char *letters = c.o.letters
    cdef int k, n = 0, compute = c.compute
    cdef object x
    cdef double number
    for k in range(c.n):
        if letters[k] in (PT_ARG_TENSOR, PT_ARG_INDEX, PT_ARG_WORD):
            continue
        if n == MAX_PARAMS:
            raise RuntimeError(f"{c.o.name.decode()}: too many parameters")
        x = concrete(<object>c.args[k])
        if not isinstance(x, (float, int, complex)):
            from ptcore._ops.checked import number as number_of
            x = number_of(c.o.name.decode(), arg_name(c.op, k), x)
        if isinstance(x, bool) and compute != PT_BOOL and (c.op == OP_ADD_SCALED or c.op == OP_SUB_SCALED):
            raise RuntimeError(f"{c.o.name.decode()}: {arg_name(c.op, k)} may be a bool for bool results only, got one "
                               f"for {dtype_of(compute).name}")
        if isinstance(x, complex) and CATEGORY[compute] < 3:
            raise DTypeError(f"{c.o.name.decode()}: {arg_name(c.op, k)} must be real for "
                             f"{dtype_of(compute).name} tensors, got complex")
        if CATEGORY[compute] == 3:
            x = complex(fitting(x, compute, c.o.name))
            if compute != PT_COMPLEX128:
                (<float *>buffer)[2 * n] = x.real
                (<float *>buffer)[2 * n + 1] = x.imag
            else:
                (<double *>buffer)[2 * n] = x.real
                (<double *>buffer)[2 * n + 1] = x.imag
        elif compute == PT_FLOAT64:
            (<double *>buffer)[n] = x
        elif CATEGORY[compute] == 2:
            number = x
            if not -65504 <= number <= 65504 and _becomes_element[c.op] >> n & 1:
                fitting(x, compute, f"{c.o.name.decode()}: {arg_name(c.op, k)}".encode())
            if not -3.4028234663852886e38 <= number <= 3.4028234663852886e38:
                fitting(x, PT_FLOAT32, c.o.name)                # infinities and nan fit
            (<float *>buffer)[n] = <float>number
        else:
            if isinstance(x, float) and c.op != OP_THRESHOLD:
                raise RuntimeError(f"{c.o.name.decode()}: {arg_name(c.op, k)} must be an "
                                   "integer for integer tensors, got float")
            x = int(fitting(x, compute, c.o.name))
            (<uint64_t *>buffer)[n] = <uint64_t>(x & 0xFFFFFFFFFFFFFFFF)
        n += 1
    return 0


cdef int write_number(object x, char *buffer) except -1:
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
