"""Creation of tensors: empty, filled, ranges; and the in-place fills."""
from cpython.sequence cimport PySequence_Fast_ITEMS
from libc.string cimport memset

from ptcore._types cimport *
from ptcore._device cimport as_device, device as Device
from ptcore._dtype cimport CATEGORY, ITEMSIZE, as_code, default_complex, default_float, dtype_of
from ptcore._shape cimport (MAX_DIM, any_symbolic, is_dense, is_symbolic, is_symbolic_number, read_index, read_sizes,
                            same_sizes, sizes_tuple, strides_like)
from ptcore._tensor cimport *
from ptcore._ops import checked as _arguments
from ptcore._ops.call.call cimport Call, Out, begin_new
from ptcore._ops.call.run cimport call_with as call, complete_new
from ptcore._ops.call.read cimport read_numbers, switch
from ptcore._ops.plan.hooks cimport planning
from ptcore._ops.call.offer import seen_by_modes
from ptcore._ops.history cimport *
from ptcore._ops.table.ids cimport *
from ptcore._ops.writing cimport *
from ptcore._ops.call.elementwise cimport write_to
from ptcore._ops.call.operands cimport fitting
from ptcore._ops.table.ids import op_id
from ptcore._ops.table.shapes import arange_length
from ptcore._errors import ConversionError, DTypeError, ShapeError, UnsupportedDTypeError
from ptcore._memory_format import preserve_format
from ptcore import _untyped_storage as _storages
from ptcore._dtype import iinfo
from ptcore._tensor import strided
from ptcore._subclass import of_class

cdef extern from "Python.h":
    int64_t PyLong_AsLongLongAndOverflow(object, int *) except? -1

cdef int OP_TO_DEVICE = op_id("to_device")
cdef int OP_ARANGE = op_id("fill_arange")
cdef int OP_LINSPACE = op_id("fill_linspace")
cdef int OP_EYE = op_id("fill_eye")
cdef int OP_FULL = op_id("fill_full")


cdef int read_size_args(object size, tuple rest, int64_t *out, const char *op) except -1:
    """Fills ``out``, which has room for all dims, from ``f(2, 3)`` as well as ``f((2, 3))``; returns the number of
    sizes."""
    cdef int i, n
    if rest:
        if len(rest) >= MAX_DIM:
            raise ValueError(f"{op.decode()}: at most {MAX_DIM} dimensions are supported, got {1 + len(rest)}")
        n = 1 + read_sizes(rest, out + 1, op, b"size")
        out[0] = read_index(size, op, b"size")
    else:
        n = read_sizes(size, out, op, b"size")
    for i in range(n):
        if out[i] < 0:
            raise ShapeError(f"{op.decode()}: sizes must be non-negative, got {list(sizes_tuple(n, out))}")
    return n


cdef Tensor fresh(object size, tuple rest, object dtype, object where, const char *op):
    """Uninitialised memory from the (*size, dtype, device) arguments that creation functions share."""
    cdef int64_t[64] sizes
    cdef int n, code
    cdef Device d
    n = read_size_args(size, rest, sizes, op)
    code = default_float() if dtype is None else as_code(dtype, op, b"dtype")
    if where is None and not pt_tls.device_set:
        return new_tensor(code, n, sizes, DEVICE_CPU, -1)
    d = as_device(where, op)
    return new_tensor(code, n, sizes, d.column, d.number)


cdef Tensor created(int op, tuple numbers, object size, tuple rest, object dtype, object where, const char *name,
                    tuple others=()):
    """What the row of an op without tensors makes; ``others`` holds the generator of a random one.

    A call that nobody is offered, on the CPU, is bound at once. It is a prefix of what ``call`` does.
    """
    cdef Call c
    cdef Out *o = &c.outs[0]
    cdef tuple sizes
    if where is None and not pt_tls.device_set and not pt_tls.mode & PT_SLOW and kernel_of(op, DEVICE_CPU) != NULL:
        begin_new(&c, op, PT_NONE, DEVICE_CPU, -1)
        if read_numbers(&c, numbers):
            o.ndim = read_size_args(size, rest, o.sizes, name)
            o.dt = default_float() if dtype is None else as_code(dtype, name, b"dtype")
            c.args, c.n = PySequence_Fast_ITEMS(others), <int>len(others)
            return complete_new(&c)
    sizes = new_sizes(size, rest, name)
    dtype = dtype_of(default_float() if dtype is None else as_code(dtype, name, b"dtype"))
    return <Tensor>call(op, numbers + (sizes, dtype, as_device(where, name)) + others, None)


cdef tuple new_sizes(object size, tuple rest, const char *name):
    """The sizes of ``f(2, 3)`` as well as ``f((2, 3))``, for interpreters as they are given."""
    cdef int64_t[64] sizes
    if pt_tls.mode & PT_INTERPOSED and any_symbolic(size_as_given(size, rest)):
        return size_as_given(size, rest)
    return sizes_tuple(read_size_args(size, rest, sizes, name), sizes)


cdef Tensor fresh_like(object x, object dtype, object where, object memory_format, const char *op):
    cdef int64_t[64] strides
    cdef Tensor t
    cdef Device d
    cdef int code
    if not isinstance(x, Tensor):
        raise TypeError(f"{op.decode()}: input must be a Tensor, got {type(x).__name__}")
    t = <Tensor>x
    d = t.device if where is None else as_device(where, op)
    code = t.dt if dtype is None else as_code(dtype, op, b"dtype")
    if t.flags & PT_NONCONTIGUOUS and (memory_format is None or memory_format is preserve_format):
        strides_like(t.rank, t.dims, t.dims + t.rank, strides)
        return new_strided(code, t.rank, t.dims, strides, d.column, d.number)
    return new_tensor(code, t.rank, t.dims, d.column, d.number)


cdef Tensor zeroed(Tensor t):
    cdef Tensor bits = t
    if t.storage.device == DEVICE_CPU and not planning():
        memset(t.storage.data, 0, t.storage.nbytes)
    elif t.storage.device != DEVICE_META:
        if pt_is(t.dt, PT_KIND_STORED):         # devices have no fills of these
            bits = alias(t)
            bits.dt = PT_UINT8 if ITEMSIZE[t.dt] == 1 else PT_INT32
        write_to(bits, 0)
        t.storage.version = 0
    return t


cdef Tensor filled(Tensor t, object value, const char *op):
    """New memory with one value everywhere."""
    if t.storage.device == DEVICE_CPU and t.count <= 1024 and not planning() and fill_plainly(t, value):
        return t
    if t.storage.device != DEVICE_META and t.count:
        write_to(t, fitting(value, t.dt, op))
        t.storage.version = 0
    return t


cdef bint fill_plainly(Tensor t, object value) except -1:
    """Fills the commonest dtypes with a small number; False, with nothing done, for others."""
    cdef int64_t k, n = t.count
    cdef double x
    if (type(value) is not int and (type(value) is not float or t.dt == PT_INT64)) or not -1e9 <= value <= 1e9:
        return False
    x = value
    if t.dt == PT_FLOAT32:
        for k in range(n):
            (<float *>t.storage.data)[k] = <float>x
    elif t.dt == PT_FLOAT64:
        for k in range(n):
            (<double *>t.storage.data)[k] = x
    elif t.dt == PT_INT64:
        for k in range(n):
            (<int64_t *>t.storage.data)[k] = <int64_t>x
    else:
        return False
    return True


cdef tuple size_as_given(object size, tuple rest):
    """The sizes of ``f(2, 3)`` as well as ``f((2, 3))``; symbolic sizes are kept."""
    return tuple(size) if isinstance(size, (tuple, list)) and not rest else (size, *rest)


cdef Tensor offered(object size, tuple rest, object dtype, object where, object value, const char *op):
    """New memory under an interpreter: the op that makes it is offered."""
    cdef tuple sizes = size_as_given(size, rest)
    cdef int code = default_float() if dtype is None else as_code(dtype, op, b"dtype")
    if any([type(n) is int and n < 0 for n in sizes]):
        raise ShapeError(f"{op.decode()}: sizes must be non-negative, got {list(sizes)}")
    if isinstance(value, Tensor):
        value = value.item()
    return <Tensor>call(OP_FULL, (fitting(value, code, op), sizes, dtype_of(code), as_device(where, op)), None)


cdef Tensor offered_like(Tensor t, object dtype, object where, object memory_format, object value, const char *op):
    """New memory of a tensor's sizes under an interpreter; its dims follow each other as the tensor's do."""
    cdef int64_t[64] strides
    cdef object sizes = t.shape
    cdef Tensor r
    where = t.device if where is None else where
    dtype = t.dtype if dtype is None else dtype
    if not t.flags & PT_NONCONTIGUOUS or not (memory_format is None or memory_format is preserve_format):
        return offered(sizes, (), dtype, where, value, op)
    strides_like(t.rank, t.dims, t.dims + t.rank, strides)
    order = sorted(range(t.rank), key=lambda d: -strides[<int>d])
    r = offered(tuple([sizes[d] for d in order]), (), dtype, where, value, op)
    return r.permute([order.index(d) for d in range(t.rank)])


cdef bint fills = False                 # whether memory without content gets one
cdef frozenset UNSET = frozenset((b"empty", b"empty_like", b"empty_strided", b"new_empty"))


def fill_unset(bint on):
    """Whether ``empty`` and its like, and what ``resize_`` adds, are filled, so that a program that reads them gives
    the same in every run."""
    global fills
    fills = on
    _storages.fill_new = fill_added if on else None


def fill_added(Tensor t, int64_t before):
    """Fills the elements of a storage behind the bytes that it had before."""
    cdef int64_t item = ITEMSIZE[t.dt], first = before // item, n = t.storage.nbytes // item - first, step = 1
    if t.storage.device == DEVICE_META or n <= 0:
        return
    pt_storage_incref(t.storage)
    wrap_storage(t.storage, first * item, t.dt, 1, &n, &step).fill_(no_content(t.dt))


cpdef object no_content(int dt):
    """What stands in memory without content: NaN, the largest number or True."""
    if CATEGORY[dt] >= 2:
        return float("nan")
    return True if dt == PT_BOOL else iinfo(dtype_of(dt)).max


cdef object made(Tensor t, const char *op, object out, object layout, object pin_memory,
                 object memory_format, object requires_grad):
    """The end of a creation function: handles the keywords that all of them share."""
    if layout is not None and layout != strided:
        raise NotImplementedError(f"{op.decode()}: layout must be ptcore.strided, got {layout!r}")
    if pin_memory is not False and pin_memory is not None:
        if out is not None:
            raise RuntimeError(f"{op.decode()}: pin_memory and out cannot be given together")
        from ptcore._memory.host import pinned
        t = pinned(t, op.decode(), pin_memory)
    if memory_format is not None:
        from ptcore._memory_format import checked, contiguous
        memory_format = checked(op.decode(), memory_format)
        if memory_format is not None:
            t = contiguous(t, memory_format, op.decode())
    if fills and op in UNSET and t.storage.device != DEVICE_META:
        t.fill_(no_content(t.dt))
    if out is not None:
        if not isinstance(out, Tensor):
            raise TypeError(f"{op.decode()}: out must be a Tensor, got {type(out).__name__}")
        write_out(<Tensor>out, t, op)
        t = <Tensor>out
    if requires_grad is not False and requires_grad is not None:
        if requires_grad is not True:
            raise TypeError(f"{op.decode()}: requires_grad must be bool, got {type(requires_grad).__name__}")
        t.requires_grad = True
    return t


cdef object of_kind(object like, Tensor t):
    """A tensor made after the pattern of ``like``; if ``like`` is batched, a batch with one for each sample."""
    if not (<Tensor>like).flags & PT_INTERPOSED:
        return t
    from ptcore._ops.call.batched import made_as
    return made_as(like, t)


cdef object dtype_for(object dtype, object out, const char *op):
    """The dtype of the result: the requested one, else that of out."""
    if out is None or not isinstance(out, Tensor):
        return dtype
    if dtype is not None and as_code(dtype, op, b"dtype") != (<Tensor>out).dt:
        raise DTypeError(f"{op.decode()}: dtype must be that of out, "
                         f"{dtype_of((<Tensor>out).dt).name}, got {dtype}")
    return dtype_of((<Tensor>out).dt)


cdef object device_for(object device, object out):
    """The device of the result: the requested one, else that of out."""
    return out.device if device is None and isinstance(out, Tensor) else device


cdef Tensor sized(object size, tuple rest, object dtype, object device, object out, object value, const char *op):
    """Memory for the ``(*size, dtype, device, out)`` of a creation function, filled with a value; None: not filled."""
    if out is None and value is None and not pt_modes_seen & PT_INTERPOSED:
        return fresh(size, rest, dtype, device, op)
    return full_or_offered(size, rest, dtype, device, out, value, op)


cdef Tensor full_or_offered(object size, tuple rest, object dtype, object device, object out, object value,
                            const char *op):
    cdef Tensor t
    if out is not None:
        dtype = dtype_for(dtype, out, op)
        device = device_for(device, out)
    if pt_tls.mode & PT_INTERPOSED:
        return offered(size, rest, dtype, device, 0 if value is None else value, op)
    t = fresh(size, rest, dtype, device, op)
    if value is None:
        return t
    return zeroed(t) if type(value) is int and value == 0 else filled(t, value, op)


cdef Tensor sized_like(object x, object dtype, object device, object memory_format, object value, const char *op):
    """Memory of a tensor's sizes, filled with a value; None: not filled."""
    cdef Tensor t
    if pt_tls.mode & PT_INTERPOSED and isinstance(x, Tensor):
        return offered_like(<Tensor>x, dtype, device, memory_format, 0 if value is None else value, op)
    t = fresh_like(x, dtype, device, memory_format, op)
    if value is None:
        return t
    return zeroed(t) if type(value) is int and value == 0 else filled(t, value, op)


@seen_by_modes
def empty(size, *sizes, out=None, dtype=None, layout=None, device=None, pin_memory=False,
          requires_grad=False, memory_format=None):
    """A tensor of uninitialised memory.

    Parameters
    ----------
    size, *sizes : int, or one sequence of ints
    out : Tensor, optional
        Written to and returned.
    dtype : dtype, optional
        The default dtype if None.
    device : device, optional
    requires_grad : bool

    Examples
    --------
    >>> import ptcore
    >>> ptcore.empty(2, 3).shape
    ptcore.Size([2, 3])
    """
    return made(sized(size, sizes, dtype, device, out, None, b"empty"), b"empty", out, layout, pin_memory,
                memory_format, requires_grad)


@seen_by_modes
def zeros(size, *sizes, out=None, dtype=None, layout=None, device=None, pin_memory=False,
          requires_grad=False):
    """A tensor of zeros.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.zeros(2)
    tensor([0., 0.])
    """
    return made(sized(size, sizes, dtype, device, out, 0, b"zeros"), b"zeros", out, layout,
                pin_memory, None, requires_grad)


@seen_by_modes
def ones(size, *sizes, out=None, dtype=None, layout=None, device=None, pin_memory=False,
         requires_grad=False):
    """A tensor of ones.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.ones(2)
    tensor([1., 1.])
    """
    return made(sized(size, sizes, dtype, device, out, 1, b"ones"), b"ones", out, layout,
                pin_memory, None, requires_grad)


@seen_by_modes
def full(size, fill_value, *, out=None, dtype=None, layout=None, device=None, pin_memory=False,
         requires_grad=False):
    """A tensor of one value; its dtype is that of a Python number of that kind unless given.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.full((2,), 7)
    tensor([7, 7])
    """
    if hasattr(fill_value, "item"):     # NumPy's float64 is a Python float as well
        fill_value = fill_value.item()
    elif not isinstance(fill_value, (int, float, complex)) and not is_symbolic_number(fill_value):
        raise TypeError(f"full: fill_value must be a number, got {type(fill_value).__name__}")
    if dtype is None and out is None:
        kind = fill_value.hint if is_symbolic_number(fill_value) else fill_value
        dtype = dtype_of(PT_BOOL if isinstance(kind, bool) else PT_INT64 if isinstance(kind, int)
                         else default_float() if isinstance(kind, float) else default_complex())
    if is_symbolic_number(fill_value) and not pt_tls.mode & PT_INTERPOSED:
        fill_value = type(fill_value.hint)(fill_value)
    return made(sized(size, (), dtype, device, out, fill_value, b"full"),
                b"full", out, layout, pin_memory, None, requires_grad)


def empty_like(input, *, dtype=None, layout=None, device=None, pin_memory=False,
               requires_grad=False, memory_format=None):
    """Uninitialised memory of input's shape, dtype and device."""
    if asks_class(input):
        return of_class(empty_like, input, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory,
                        requires_grad=requires_grad, memory_format=memory_format)
    cdef Tensor t = sized_like(input, dtype, device, memory_format, None, b"empty_like")
    return of_kind(input, made(t, b"empty_like", None, layout, pin_memory, memory_format, requires_grad))


def zeros_like(input, *, dtype=None, layout=None, device=None, pin_memory=False,
               requires_grad=False, memory_format=None):
    """Zeros of input's shape, dtype and device."""
    if asks_class(input):
        return of_class(zeros_like, input, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory,
                        requires_grad=requires_grad, memory_format=memory_format)
    cdef Tensor t = sized_like(input, dtype, device, memory_format, 0, b"zeros_like")
    return of_kind(input, made(t, b"zeros_like", None, layout, pin_memory, memory_format, requires_grad))


def ones_like(input, *, dtype=None, layout=None, device=None, pin_memory=False,
              requires_grad=False, memory_format=None):
    """Ones of input's shape, dtype and device."""
    if asks_class(input):
        return of_class(ones_like, input, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory,
                        requires_grad=requires_grad, memory_format=memory_format)
    cdef Tensor t = sized_like(input, dtype, device, memory_format, 1, b"ones_like")
    return of_kind(input, made(t, b"ones_like", None, layout, pin_memory, memory_format, requires_grad))


def full_like(input, fill_value, *, dtype=None, layout=None, device=None, pin_memory=False,
              requires_grad=False, memory_format=None):
    """One value in input's shape, dtype and device."""
    if asks_class(input):
        return of_class(full_like, input, fill_value, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory,
                        requires_grad=requires_grad, memory_format=memory_format)
    cdef Tensor t = sized_like(input, dtype, device, memory_format, fill_value, b"full_like")
    return of_kind(input, made(t, b"full_like", None, layout, pin_memory, memory_format, requires_grad))


@seen_by_modes
def empty_strided(size, stride, *, dtype=None, layout=None, device=None, pin_memory=False,
                  requires_grad=False):
    """Uninitialised memory with given strides."""
    cdef int64_t[64] sizes
    cdef int64_t[64] strides
    cdef int n = read_sizes(size, sizes, b"empty_strided", b"size")
    cdef Device where = as_device(device, b"empty_strided")
    if read_sizes(stride, strides, b"empty_strided", b"stride") != n:
        raise RuntimeError("empty_strided: size and stride must have one length")
    for i in range(n):
        if strides[i] < 0:
            raise RuntimeError(f"empty_strided: strides must be non-negative, got {stride!r}")
    code = default_float() if dtype is None else as_code(dtype, b"empty_strided", b"dtype")
    if pt_tls.mode & PT_INTERPOSED:
        span = 1 + sum([(m - 1) * s for m, s in zip(size, stride)]) if all(size) else 0
        t = offered((span,), (), dtype_of(code), where, 0, b"empty_strided").as_strided(size, stride)
        return made(t, b"empty_strided", None, layout, pin_memory, None, requires_grad)
    return made(new_strided(code, n, sizes, strides, where.column, where.number), b"empty_strided", None, layout,
                pin_memory, None, requires_grad)


cdef inline object plain_number(object x):
    """The number in a tensor or array of one element."""
    if is_symbolic_number(x):
        return _arguments.symbolic(x)
    return x if type(x) is int or type(x) is float or not hasattr(x, "item") else x.item()


cdef bint is_int(object x):
    return isinstance(x, int) or is_symbolic(x)


cdef int check_numeric(int dt, const char *op) except -1:
    if dt == PT_BOOL:
        raise UnsupportedDTypeError(f"{op.decode()}: dtype must be numeric, got bool")
    return 0


cdef Tensor shaped_as(Tensor values, object out):
    """A vector in the shape of an ``out=`` of as many elements, which keeps its shape, as in PyTorch."""
    if isinstance(out, Tensor) and (<Tensor>out).count == values.count:
        return <Tensor>values.view(shape_of(<Tensor>out))
    return values


cdef bint exceeds_int64(object x) except -1:
    cdef int overflow = 0
    if type(x) is int:
        PyLong_AsLongLongAndOverflow(x, &overflow)
    return overflow != 0


cdef int check_range(object first, object last, object dtype) except -1:
    """Raises where int64, from which narrower integers are cut, cannot hold the first or the last value of a range."""
    for x in (first, last):
        if exceeds_int64(x) and dtype.name != "uint64":
            raise ConversionError(f"arange: value {x} cannot be converted to {dtype.name} without overflow")
    return 0


@seen_by_modes
def arange(start=None, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, pin_memory=False,
           requires_grad=False):
    """Values from ``start`` (0 if only one is given) up to ``end``, ``end`` excluded.

    Raises
    ------
    RuntimeError
        If step is zero or points away from end.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.arange(1, 7, 2)
    tensor([1, 3, 5])
    """
    if start is None and end is None:
        raise TypeError("arange: start or end must be given")
    if end is None or start is None:
        start, end = 0, start if end is None else end
    start, end, step = plain_number(start), plain_number(end), plain_number(step)
    dtype = dtype_for(dtype, out, b"arange")
    if dtype is None:
        dtype = dtype_of(PT_INT64 if is_int(start) and is_int(end) and is_int(step) else default_float())
    dtype = dtype_of(as_code(dtype, b"arange", b"dtype"))       # it may be a name
    check_numeric(as_code(dtype, b"arange", b"dtype"), b"arange")
    n = arange_length(start, end, step)
    if CATEGORY[as_code(dtype, b"arange", b"dtype")] < 2 and not (is_int(start) and is_int(end) and is_int(step)):
        if not int(step):
            raise ValueError(f"arange: step must not be 0 as a number of dtype {dtype.name}, got {step}")
        start, end, step = int(start), int(end), int(step)
        # PyTorch computes the length from the numbers as given, except for int64
        whole = arange_length(start, end, step)
        n = whole if dtype.name == "int64" else n
    if CATEGORY[as_code(dtype, b"arange", b"dtype")] == 1 and n and (exceeds_int64(start) or exceeds_int64(end)):
        check_range(start, start + (n - 1) * step, dtype)
    values = created(OP_ARANGE, (start, end, step), (n,), (), dtype, device_for(device, out), b"arange")
    return made(shaped_as(values, out), b"arange", out, layout, pin_memory, None, requires_grad)


cdef object count_of(object n, const char *op, const char *name):
    """A count as an int; a symbolic int is kept."""
    return n if is_symbolic_number(n) else read_index(n, op, name)


cdef object number_of_end(object x):
    """The number at an end of a range; a tensor on the meta device has no value and counts as 0."""
    return 0 if isinstance(x, Tensor) and (<Tensor>x).is_meta else plain_number(x)


@seen_by_modes
def linspace(start, end, steps, *, out=None, dtype=None, layout=None, device=None, pin_memory=False,
             requires_grad=False):
    """``steps`` evenly spaced values from ``start`` to ``end``, both included.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    steps = count_of(steps, b"linspace", b"steps")
    if steps < 0:
        raise RuntimeError(f"linspace: steps must be non-negative, got {steps}")
    numbers = [number_of_end(start), number_of_end(end)]
    dtype = dtype_for(dtype, out, b"linspace")
    if dtype is None and any([isinstance(x, complex) for x in numbers]):
        dtype = dtype_of(default_complex())
    code = default_float() if dtype is None else as_code(dtype, b"linspace", b"dtype")
    if CATEGORY[code] < 3 and any([isinstance(x, complex) for x in numbers]):
        raise RuntimeError(f"linspace: start and end must be real for dtype {dtype_of(code).name}, got {numbers[0]} "
                           f"and {numbers[1]}")
    numbers = [fitting(x, code, b"linspace") for x in numbers]
    check_numeric(code, b"linspace")
    if CATEGORY[code] < 2:                  # the ends become integers of the dtype, as in PyTorch
        numbers = [int(x) for x in numbers]
    steps = created(OP_LINSPACE, (numbers[0], numbers[1], steps), (steps,), (), dtype, device_for(device, out),
                    b"linspace")
    return made(shaped_as(steps, out), b"linspace", out, layout, pin_memory, None, requires_grad)


@seen_by_modes
def eye(n, m=None, *, out=None, dtype=None, layout=None, device=None, pin_memory=False,
        requires_grad=False):
    """Ones on the diagonal of an ``(n, m)`` matrix, zeros elsewhere.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    dtype = dtype_for(dtype, out, b"eye")
    n = count_of(n, b"eye", b"n")
    m = n if m is None else count_of(m, b"eye", b"m")
    if n < 0 or m < 0:
        raise RuntimeError(f"eye: n and m must be non-negative, got {n} and {m}")
    return made(created(OP_EYE, (), (n, m), (), dtype, device_for(device, out), b"eye"), b"eye", out, layout,
                pin_memory, None, requires_grad)


# -- fills, as methods ---------------------------------------------------------------------------

def fill_(Tensor self not None, value):
    """Fills with one value (a number or a tensor of one element)."""
    if isinstance(value, Tensor) and (<Tensor>value).rank:
        raise RuntimeError(f"fill_: value must be a number or a 0-d tensor, got shape "
                           f"{list(value.shape)}")
    if isinstance(value, Tensor):
        value = beside(<Tensor>value, self)
    return write_to(self, number_or_tensor(value, self.dt, b"fill_"))


cdef object number_or_tensor(object value, int dt, const char *op):
    """The value of a fill: a number that fits the dtype, or data that ``tensor`` takes."""
    if type(value) is float or type(value) is int:
        return fitting(value, dt, op)
    if is_symbolic_number(value):
        return _arguments.symbolic(value)
    if not isinstance(value, (int, complex, Tensor)) and not hasattr(value, "__array__"):
        raise TypeError(f"{op.decode()}: value must be a number or a Tensor, got "
                        f"{type(value).__name__}")
    return fitting(value, dt, op)


def zero_(Tensor self not None):
    """Fills with zeros."""
    if not (self.flags | pt_tls.mode) and 0 < self.count <= 16384:
        check_inplace(self, b"zero_", False)
        memset(self.storage.data + self.offset, 0, self.count * ITEMSIZE[self.dt])
        count_write(self)
        return self
    return write_to(self, 0)


def copy_(Tensor self not None, src, non_blocking=False):
    """Copies src, broadcast and converted, into this tensor.

    Parameters
    ----------
    src : Tensor or number
        On any device.
    non_blocking : bool
        Whether a copy between a device and page-locked memory (``pin_memory``) may still run when this returns.
    """
    cdef Tensor x
    non_blocking = switch("copy_", "non_blocking", non_blocking)
    if isinstance(src, Tensor) and (self.flags | (<Tensor>src).flags) & PT_INTERPOSED:
        if src.device != self.device:       # the devices of the values, not of the stand-ins
            src = call(OP_TO_DEVICE, (src, self.device, False), None)
    elif isinstance(src, Tensor) and ((<Tensor>src).storage.device != self.storage.device
                                      or (<Tensor>src).storage.device_index != self.storage.device_index):
        x = <Tensor>src
        if (x.rank == self.rank and same_sizes(x.rank, x.dims, self.dims)
                and is_dense(self.rank, self.dims, self.dims + self.rank)
                and not (x.flags | self.flags) & (PT_SUBCLASS | PT_INTERPOSED | PT_TANGENT)
                and not pt_tls.mode & PT_SLOW
                and x.storage.device != DEVICE_META and self.storage.device != DEVICE_META
                and not (CATEGORY[x.dt] == 3 and CATEGORY[self.dt] < 3)
                and not (pt_tls.grad_enabled and (needs_grad(x) or needs_grad(self)))):
            check_inplace(self, b"copy_", False)
            copy_into(self, x, non_blocking)
            finish_inplace(self, None)
            return self
        src = call(OP_TO_DEVICE, (src, self.device, False), None)
    return write_to(self, src)


def new_empty(Tensor self not None, size, *sizes, dtype=None, device=None, requires_grad=False, layout=None,
              pin_memory=False):
    """Uninitialised memory with this tensor's dtype and device."""
    if asks_class(self):
        return of_class(new_empty, self, size, *sizes, dtype=dtype, device=device, requires_grad=requires_grad)
    dtype, device = self.dtype if dtype is None else dtype, self.device if device is None else device
    return of_kind(self, made(sized(size, sizes, dtype, device, None, None, b"new_empty"), b"new_empty",
                              None, layout, pin_memory, None, requires_grad))


def new_zeros(Tensor self not None, size, *sizes, dtype=None, device=None, requires_grad=False, layout=None,
              pin_memory=False):
    """Zeros with this tensor's dtype and device."""
    if asks_class(self):
        return of_class(new_zeros, self, size, *sizes, dtype=dtype, device=device, requires_grad=requires_grad)
    dtype, device = self.dtype if dtype is None else dtype, self.device if device is None else device
    return of_kind(self, zeros(size, *sizes, dtype=dtype, device=device,
                               requires_grad=requires_grad, layout=layout, pin_memory=pin_memory))


def new_ones(Tensor self not None, size, *sizes, dtype=None, device=None, requires_grad=False, layout=None,
             pin_memory=False):
    """Ones with this tensor's dtype and device."""
    if asks_class(self):
        return of_class(new_ones, self, size, *sizes, dtype=dtype, device=device, requires_grad=requires_grad)
    dtype, device = self.dtype if dtype is None else dtype, self.device if device is None else device
    return of_kind(self, ones(size, *sizes, dtype=dtype, device=device,
                              requires_grad=requires_grad, layout=layout, pin_memory=pin_memory))


def new_full(Tensor self not None, size, fill_value, *, dtype=None, device=None, requires_grad=False, layout=None,
             pin_memory=False):
    """One value with this tensor's dtype and device."""
    if asks_class(self):
        return of_class(new_full, self, size, fill_value, dtype=dtype, device=device, requires_grad=requires_grad)
    dtype, device = self.dtype if dtype is None else dtype, self.device if device is None else device
    return of_kind(self, full(size, fill_value, dtype=dtype, device=device,
                              requires_grad=requires_grad, layout=layout, pin_memory=pin_memory))


def new_tensor_method(Tensor self not None, data, *, dtype=None, device=None, requires_grad=False, layout=None,
                      pin_memory=False):
    """A tensor from data with this tensor's dtype and device."""
    if asks_class(self):
        return of_class(new_tensor_method, self, data, dtype=dtype, device=device, requires_grad=requires_grad)
    dtype, device = self.dtype if dtype is None else dtype, self.device if device is None else device
    from ptcore._exchange.convert import tensor
    cdef Tensor t = made(tensor(data, dtype=dtype, device=device), b"new_tensor", None, layout, pin_memory, None,
                         requires_grad)
    if isinstance(data, Tensor) and (<Tensor>data).flags & PT_INTERPOSED:
        return t                        # it is what data is
    return of_kind(self, t)


# What this module adds to Tensor.
for _f in (fill_, zero_, copy_, new_empty, new_zeros, new_ones, new_full):
    setattr(Tensor, _f.__name__, _f)
Tensor.new_tensor = new_tensor_method
