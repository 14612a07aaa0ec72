"""Tensors from Python objects: nested lists, numbers, NumPy, buffers. The way back is in ``values.pyx``.

No NumPy C API: ndarrays come through the buffer protocol. A read-only array's storage is marked read-only.
"""
import sys

from cpython.buffer cimport PyBUF_FULL_RO, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.mem cimport PyMem_Free, PyMem_Malloc

from ptcore._types cimport *
from ptcore._device cimport CPU, as_device
from ptcore._dtype cimport CATEGORY, ITEMSIZE, as_code, default_complex, default_float, dtype_of, promote
from ptcore._shape cimport fill_strides, is_symbolic_number, read_index
from ptcore._shape import Size
from ptcore._interpret cimport TOLD_CREATED, told
from ptcore._state cimport is_asked
from ptcore._tensor cimport *
import ptcore._tensor as _tensor_module
from ptcore._subclass import all_of, check_plain, detached, of_class
from ptcore._libraries import library
from ptcore._untyped_storage import is_storage
from ptcore._errors import ConversionError, DTypeError, ShapeError, no_buffer

cdef extern from "loops.h" nogil:
    int pt_copy(const pt_view *dst, const pt_view *src)

cdef dict _buffer_codes = {"?": PT_BOOL, "e": PT_FLOAT16, "f": PT_FLOAT32, "d": PT_FLOAT64, "Zf": PT_COMPLEX64,
                           "Zd": PT_COMPLEX128}


cdef int code_of_format(str fmt, int itemsize) except -2:
    """The dtype code of a buffer format, or -1 where no dtype has that format."""
    cdef str f = fmt.lstrip("@=<|" if fmt and fmt[0] != ">" else "")
    if f in _buffer_codes:
        return _buffer_codes[f]
    if len(f) == 1 and f in "bhilqnBHILQN" and itemsize in (1, 2, 4, 8):
        unsigned = f.isupper()
        return {1: PT_UINT8 if unsigned else PT_INT8, 2: PT_UINT16 if unsigned else PT_INT16,
                4: PT_UINT32 if unsigned else PT_INT32,
                8: PT_UINT64 if unsigned else PT_INT64}[itemsize]
    return -1


cdef void release_buffer(pt_storage *s) noexcept:
    PyBuffer_Release(<Py_buffer *>s.owner)
    PyMem_Free(s.owner)


cdef Tensor from_buffer(object value, str op):
    """A tensor over the memory of any buffer exporter, with the exporter's strides."""
    cdef Py_buffer *b = <Py_buffer *>PyMem_Malloc(sizeof(Py_buffer))
    cdef pt_storage *s
    cdef int64_t[64] sizes
    cdef int64_t[64] strides
    cdef int i, code
    cdef int64_t low = 0, high, n = 1
    if b == NULL:
        raise MemoryError()
    try:
        PyObject_GetBuffer(value, b, PyBUF_FULL_RO)
    except BaseException:
        PyMem_Free(b)
        raise
    try:
        fmt = b.format.decode() if b.format != NULL else "B"
        code = code_of_format(fmt, b.itemsize)
        if code < 0:
            raise TypeError(f"{op}: a buffer of format {fmt!r} has no tensor dtype")
        if b.ndim > 64:
            raise ValueError(f"{op}: at most 64 dimensions are supported, got {b.ndim}")
        if b.suboffsets != NULL:
            for i in range(b.ndim):
                if b.suboffsets[i] >= 0:
                    raise ValueError(f"{op}: a buffer of pointers to rows cannot be shared")
        high = b.itemsize
        for i in range(b.ndim):
            sizes[i] = b.shape[i] if b.shape != NULL else b.len // b.itemsize
            n *= sizes[i]
        if b.strides == NULL:           # dense, as ctypes exports
            fill_strides(b.ndim, sizes, strides)
        for i in range(b.ndim):
            if b.strides != NULL:
                if b.strides[i] % b.itemsize and sizes[i] > 1:
                    raise ValueError(f"{op}: strides must be multiples of the item size "
                                     f"{b.itemsize}, got {b.strides[i]}")
                strides[i] = b.strides[i] // b.itemsize
            if sizes[i] > 1:
                if strides[i] < 0:
                    low += strides[i] * b.itemsize * (sizes[i] - 1)
                else:
                    high += strides[i] * b.itemsize * (sizes[i] - 1)
        if n == 0:
            low = high = 0
        s = pt_storage_wrap(<char *>b.buf + low, high - low, b, release_buffer,
                            PT_STORAGE_EXPORTED | (PT_STORAGE_READONLY if b.readonly else 0))
        if s == NULL:
            raise MemoryError()
    except BaseException:
        PyBuffer_Release(b)
        PyMem_Free(b)
        raise
    return wrap_storage(s, -low, code, b.ndim, sizes, strides)


def from_numpy(ndarray):
    """A tensor that shares the memory of an ndarray.

    Parameters
    ----------
    ndarray : numpy.ndarray
        Any strides, negative ones too; native byte order. A read-only array, as a scalar of NumPy is,
        gives a tensor that cannot be written to.

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError
        If the argument is no ndarray or its dtype has no tensor counterpart.

    Examples
    --------
    >>> import numpy, ptcore
    >>> a = numpy.arange(3.)
    >>> ptcore.from_numpy(a)[0] = 7
    >>> a
    array([7., 1., 2.])
    """
    if not is_ndarray(ndarray) and not (type(ndarray).__module__ == "numpy" and hasattr(ndarray, "strides")):
        raise TypeError(f"from_numpy: ndarray must be a numpy.ndarray, got "
                        f"{type(ndarray).__name__}")
    return offered("from_numpy", share_ndarray(ndarray, "from_numpy"))


cdef Tensor offered(str kind, Tensor t):
    """Shows interpreters a tensor over memory that no op made; they may put another in its place."""
    if pt_tls.mode & PT_INTERPOSED and not t.flags & PT_INTERPOSED:
        return <Tensor?>told(TOLD_CREATED, kind, t)
    return t


cdef object _ndarray = None


cdef bint is_ndarray(object value):
    """Whether ``value`` is a NumPy array. NumPy is not imported for the answer."""
    global _ndarray
    if _ndarray is None:
        _ndarray = getattr(sys.modules.get("numpy"), "ndarray", None)
        if _ndarray is None:
            return False
    return isinstance(value, _ndarray)


cdef Tensor share_ndarray(object a, str op):
    cdef object kind = a.dtype
    if not kind.isnative:
        raise ValueError(f"{op}: the array must be in native byte order, got {kind.str!r}")
    if kind.kind == "V" and kind.name == "bfloat16":
        t = from_buffer(a.view("uint16"), op)
        (<Tensor>t).dt = PT_BFLOAT16
        return <Tensor>t
    try:
        return from_buffer(a, op)
    except (ValueError, BufferError) as e:
        if "buffer" in str(e) and a.dtype.kind not in "biufc":
            raise TypeError(f"{op}: dtype {a.dtype} has no tensor counterpart") from None
        raise


# -- nested sequences -------------------------------------------------------------------------

cdef class Reader:
    """Two passes over a nested sequence: shape and dtype, then the values."""
    cdef int ndim, code
    cdef int64_t[64] sizes
    cdef list leaves
    cdef bint has_float, has_int, has_bool, has_complex
    cdef int promoted                   # the promoted dtype of the values that have a dtype (NumPy's), or -1


cdef int scan(Reader r, object value, int depth) except -1:
    """Finds the shape along the first elements; RecursionError cannot happen: depth <= 64."""
    while isinstance(value, (list, tuple)) or is_sequence(value):
        if depth == 64:
            raise ValueError("tensor: data is nested deeper than 64 levels (does a list contain "
                             "itself?)")
        r.sizes[depth] = len(value)
        depth += 1
        if len(value) == 0:
            break
        value = value[0]
    else:
        if isinstance(value, Tensor) and (<Tensor>value).count != 1:    # one of one element counts as its number
            for i in range((<Tensor>value).rank):
                if depth == 64:
                    raise ValueError("tensor: at most 64 dimensions are supported")
                r.sizes[depth] = (<Tensor>value).dims[i]
                depth += 1
    r.ndim = depth
    return 0


cdef bint is_sequence(object value):
    return (not isinstance(value, (Tensor, str, bytes, int, float, complex, dict))
            and hasattr(value, "__len__") and hasattr(value, "__getitem__")
            and getattr(value, "ndim", 1) != 0)


cdef int collect(Reader r, object value, int depth) except -1:
    cdef int k
    if depth == r.ndim:
        if type(value) is float:
            r.has_float = True
        elif type(value) is int:
            r.has_int = True
        elif type(value) is bool:
            r.has_bool = True
        elif is_symbolic_number(value):     # memory holds numbers, not symbols
            return collect(r, value.guard(), depth)
        elif isinstance(value, Tensor) and (<Tensor>value).count != 1:
            raise ragged(r, value, depth)
        else:
            note(r, value)
        r.leaves.append(value)
        return 0
    if isinstance(value, Tensor):
        if (<Tensor>value).rank != r.ndim - depth:
            raise ragged(r, value, depth)
        for k in range((<Tensor>value).rank):
            if (<Tensor>value).dims[k] != r.sizes[depth + k]:
                raise ValueError(f"tensor: expected sequence of length {r.sizes[depth + k]} at dim {depth + k} "
                                 f"(got {(<Tensor>value).dims[k]})")
        note(r, value)                  # its numbers promote by the tensor's dtype
        r.leaves.extend(value.reshape(-1).tolist())
        return 0
    if not (isinstance(value, (list, tuple)) or is_sequence(value)):
        raise ragged(r, value, depth)
    if len(value) != r.sizes[depth]:
        raise ValueError(f"tensor: expected sequence of length {r.sizes[depth]} at dim {depth} "
                         f"(got {len(value)})")
    for item in value:
        collect(r, item, depth + 1)
    return 0


cdef object ragged(Reader r, object value, int depth):
    got = f"a Tensor of shape {list(shape_of(value))}" if isinstance(value, Tensor) else type(value).__name__
    wanted = "a number" if depth == r.ndim else f"a sequence of length {r.sizes[depth]} at dim {depth}"
    return ValueError(f"tensor: data must be nested evenly; expected {wanted}, got {got}")


cdef int note(Reader r, object value) except -1:
    """Classifies a value that is not a plain int, float or bool."""
    cdef int code = -1
    if isinstance(value, Tensor):
        code = (<Tensor>value).dt
    elif hasattr(value, "dtype") and hasattr(value, "item"):    # NumPy scalars; some are Python floats as well
        code = as_code(value.dtype, b"tensor", b"the dtype of a value")
    if code >= 0:
        r.promoted = code if r.promoted < 0 else promote(r.promoted, code)
    elif isinstance(value, bool):
        r.has_bool = True
    elif isinstance(value, int):
        r.has_int = True
    elif isinstance(value, float):
        r.has_float = True
    elif isinstance(value, complex):
        r.has_complex = True
    else:
        raise DTypeError(f"tensor: data must hold numbers, got {type(value).__name__}")
    return 0


cdef int dtype_of_values(Reader r) except -1:
    """The promoted dtype of all values; the default dtype if there are no values."""
    cdef int code = r.promoted
    if r.has_bool:
        code = PT_BOOL if code < 0 else promote(code, PT_BOOL)
    if r.has_int:
        code = PT_INT64 if code < 0 else promote(code, PT_INT64)
    if r.has_float:
        code = default_float() if code < 0 else promote(code, default_float())
    if r.has_complex:
        code = default_complex() if code < 0 else promote(code, default_complex())
    return default_float() if code < 0 else code


cdef Tensor from_sequence(object data, int code):
    cdef Reader r = Reader.__new__(Reader)
    cdef Tensor t
    r.leaves = []
    r.promoted = -1
    scan(r, data, 0)
    collect(r, data, 0)
    if code < 0:
        code = dtype_of_values(r)
    t = new_tensor(code, r.ndim, r.sizes, DEVICE_CPU, -1)
    if t.count != len(r.leaves):
        raise ValueError("tensor: a sequence in data did not have the length that it said")
    store(t, r.leaves)
    return t


cpdef int store(Tensor t, list values) except -1:
    """Writes Python numbers into a contiguous tensor."""
    cdef char *p = address(t)
    cdef int64_t i
    cdef int64_t n = t.count
    cdef object v
    cdef int dt = t.dt
    if dt == PT_FLOAT32:
        for i in range(n):
            (<float *>p)[i] = <float><double>float_of(values[i])
    elif dt == PT_FLOAT64:
        for i in range(n):
            (<double *>p)[i] = float_of(values[i])
    elif dt == PT_INT64:
        for i in range(n):
            (<int64_t *>p)[i] = int_of(values[i], dt)
    elif CATEGORY[dt] <= 1:
        for i in range(n):
            v = values[i]
            if dt == PT_BOOL:
                p[i] = bool(v)
            else:
                v = int_of(v, dt)
                if ITEMSIZE[dt] == 1:
                    (<uint8_t *>p)[i] = <uint8_t>(v & 0xFF)
                elif ITEMSIZE[dt] == 2:
                    (<uint16_t *>p)[i] = <uint16_t>(v & 0xFFFF)
                elif ITEMSIZE[dt] == 4:
                    (<uint32_t *>p)[i] = <uint32_t>(v & 0xFFFFFFFF)
                else:
                    (<uint64_t *>p)[i] = <uint64_t>(v & 0xFFFFFFFFFFFFFFFF)
    elif pt_loop_dtype(dt) != dt:       # half types, float8, complex32
        wide = new_like(t, pt_loop_dtype(dt))
        store(wide, values)
        copy_values(t, wide)
    else:
        for i in range(n):
            v = complex(values[i])
            if dt == PT_COMPLEX64:
                (<float *>p)[2 * i] = v.real
                (<float *>p)[2 * i + 1] = v.imag
            else:
                (<double *>p)[2 * i] = v.real
                (<double *>p)[2 * i + 1] = v.imag
    return 0


cdef int refuse_complex(object v) except -1:
    """Raises for a complex number, also one of NumPy's that is no Python complex: float() would drop a part of it."""
    if isinstance(v, complex) or getattr(getattr(v, "dtype", None), "kind", "") == "c":
        raise TypeError("tensor: a complex value cannot become a real element")
    return 0


cdef double float_of(object v) except? -1:
    if type(v) is not float and type(v) is not int:
        refuse_complex(v)
    return v


cpdef object int_of(object v, int dt):
    """v as an integer of a dtype, truncated. The range is PyTorch's: a fraction must lie within it before it is cut
    off, and an int, but no float, may be the negative of a number of an unsigned dtype, and wraps."""
    cdef object n, x, least, most
    if type(v) is not int and type(v) is not float:
        refuse_complex(v)
    try:
        n = int(v)
    except (OverflowError, ValueError):         # inf and nan
        raise ConversionError(f"value {v} cannot be converted to {dtype_of(dt).name} without "
                              "overflow") from None
    whole = type(v) is int or hasattr(v, "__index__")
    x = n if whole else float(v)
    bits = 8 * ITEMSIZE[dt]
    if dtype_of(dt).kind == "u":
        most = (1 << bits) - 1
        least = -most if whole else 0
    else:
        most = (1 << (bits - 1)) - 1
        least = -most - 1
    if not least <= x <= most:
        raise ConversionError(f"value {x} cannot be converted to {dtype_of(dt).name} without overflow")
    return n


cdef int copy_values(Tensor dst, Tensor src) except -1:
    cdef pt_view a, b
    fill_view(dst, &a)
    fill_view(src, &b)
    if pt_copy(&a, &b):
        raise RuntimeError("copy: failed")
    return 0


cdef object _placed(Tensor t, object device, bint requires_grad):
    if device is not None and (as_device(device, b"tensor") is not CPU or t.storage.device != DEVICE_CPU):
        t = t.to(device)
    if requires_grad:
        t.requires_grad = True
    return t


cdef Tensor _copied(object data, object dtype_arg, object device, bint copy, str op):
    """data as a tensor. It shares memory where possible, unless copy is set; dtype None keeps the data's dtype."""
    cdef Tensor t, r
    cdef int code = -1
    cdef bytes name = op.encode()
    if dtype_arg is not None:
        code = as_code(dtype_arg, name, b"dtype")
    if isinstance(data, Tensor):
        t = <Tensor>data
        if copy or (code >= 0 and code != t.dt):
            if op == "tensor":
                t = <Tensor>t.detach() if t.flags & PT_SUBCLASS and hasattr(type(t), "_no_plain_form") else detached(t)
            t = <Tensor>t.to(dtype_of(t.dt if code < 0 else code), copy=True)
        return t
    if isinstance(data, (list, tuple, int, float, complex)):
        return from_sequence(data, code)
    if not is_ndarray(data) and hasattr(data, "__cuda_array_interface__"):
        from ptcore._exchange.cuda_array import tensor_over
        return _copied(tensor_over(data), dtype_arg, device, copy, op)
    if is_ndarray(data) or hasattr(data, "__array_interface__") or hasattr(data, "__array__"):
        a = data
        if not is_ndarray(data):
            numpy = library("numpy")
            a = numpy.asarray(data)
        if a.dtype.kind not in "biufcV":
            raise TypeError(f"{op}: dtype {a.dtype} has no tensor counterpart")
        if not a.dtype.isnative:
            a = a.astype(a.dtype.newbyteorder("="))
        t = share_ndarray(a, op)
    elif PyObject_CheckBuffer(data) and not isinstance(data, (bytes, str)):
        t = from_buffer(data, op)
    elif is_storage(data):
        from ptcore._exchange.copying import over_storage
        t = over_storage(data, code, op)
    else:
        return from_sequence(data, code)
    if copy or (code >= 0 and code != t.dt):
        r = new_like(t, t.dt if code < 0 else code)
        copy_values(r, t)
        return r
    return t


def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """A tensor from a copy of ``data``.

    Parameters
    ----------
    data : number, nested sequence, ndarray, buffer, Tensor or object with ``__cuda_array_interface__``
    dtype : dtype, optional
        By default that of the data: Python floats the default dtype, ints int64.
    device : device, optional
    requires_grad : bool
    pin_memory : bool
        Whether to use page-locked memory, which needs an accelerator.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If the nesting is uneven.
    TypeError
        If a value is no number.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.tensor([1, 2])
    tensor([1, 2])
    """
    if pt_modes_seen & PT_MODE_FUNCTION and is_asked(0):
        return of_class(tensor, data, dtype=dtype, device=device, requires_grad=requires_grad, pin_memory=pin_memory)
    r = _placed(offered("tensor", _copied(data, dtype, device, True, "tensor")),
                device if device is not None else _default_device(), requires_grad and pin_memory is False)
    if pin_memory is False:
        return r
    from ptcore._memory.host import pinned
    return _placed(pinned(r, "tensor", pin_memory), None, requires_grad)


cdef object _default_device():
    from ptcore._device import get_default_device
    d = get_default_device()
    return None if d is CPU else d


def as_tensor(data, dtype=None, device=None):
    """``data`` as a tensor, sharing memory where dtype and device allow."""
    if pt_modes_seen & PT_MODE_FUNCTION and is_asked(0):
        return of_class(as_tensor, data, dtype=dtype, device=device)
    t = _copied(data, dtype, device, False, "as_tensor")
    return _placed(t if t is data else offered("as_tensor", t), _default_device() if device is None else device, False)


cdef bint is_copied(object obj, Tensor t, Tensor other):
    """Whether two tensors that were made of an array are copies of its elements, as those in another byte order are."""
    return (not isinstance(obj, Tensor) and t.count > 0 and not (t.flags | other.flags) & PT_INTERPOSED
            and address(t) != address(other))


def as_array(obj, dtype, device, copy):
    """``asarray``, but a buffer's elements are read by its format."""
    if copy is False:
        shares = isinstance(obj, Tensor) or hasattr(obj, "__array_interface__") or hasattr(
            obj, "__cuda_array_interface__") or PyObject_CheckBuffer(obj)
        t = as_tensor(obj, dtype=dtype, device=device) if shares else None
        source = _copied(obj, None, None, False, "asarray") if shares else None
        if t is None or (isinstance(obj, Tensor) and t is not obj) or (
                (source.dtype, source.device) != (t.dtype, t.device)) or is_copied(obj, t, source):
            raise ValueError("asarray: a copy is needed, but copy=False was given")
        return t
    t = _copied(obj, dtype, device, bool(copy), "asarray")
    return _placed(t if t is obj else offered("asarray", t), _default_device() if device is None else device, False)


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A 1-d tensor over a buffer's bytes from ``offset`` on."""
    cdef int64_t length = read_index(count, b"frombuffer", b"count")
    cdef int64_t begin = read_index(offset, b"frombuffer", b"offset")
    view = memoryview(buffer) if PyObject_CheckBuffer(buffer) else no_buffer("frombuffer")
    if not view.c_contiguous:
        raise ShapeError("frombuffer: the buffer's items must follow each other in memory")
    if not view.nbytes:
        raise ValueError("frombuffer: the buffer must not be empty")
    cdef Tensor raw = from_buffer(view.cast("B"), "frombuffer")
    cdef int code = as_code(dtype, b"frombuffer", b"dtype")
    cdef int64_t item = ITEMSIZE[code], n = raw.count, one = 1
    if begin < 0 or begin >= n:
        raise ValueError(f"frombuffer: offset must be in [0, {n - 1}], got {begin}")
    if length == 0:
        raise ValueError(f"frombuffer: both buffer length ({n}) and count (0) must not be 0")
    if length < 0:
        if (n - begin) % item:
            raise ValueError(f"frombuffer: the {n - begin} bytes from {begin} on are no multiple of the size {item}")
        length = (n - begin) // item
    elif length > (n - begin) // item:
        raise ValueError(f"frombuffer: {length} items of {item} bytes need {<object>length * item} bytes, got "
                         f"{n - begin}")
    pt_storage_incref(raw.storage)
    t = offered("frombuffer", wrap_storage(raw.storage, begin, code, 1, &length, &one))
    if requires_grad:
        t.requires_grad = True
    return t


# -- what the dispatch table and the class need ---------------------------------------------------

cdef object convert(object value, Tensor like):
    """An operand that is not a Tensor. A number takes like's dtype and device, other data keep their own."""
    if like is not None and isinstance(value, (bool, int, float, complex)):
        t = from_sequence(value, like.dt if CATEGORY[like.dt] >= 2 or isinstance(value, (bool, int)) else -1)
        if like.storage.device != DEVICE_CPU:
            t = t.to(like.device)
        return t
    return _copied(value, None, None, False, "convert")


table.convert = convert


def legacy_constructor(*args, **kwargs):
    """``Tensor()``, ``Tensor(2, 3)`` (uninitialised) and ``Tensor([1, 2])``: float32, as in PyTorch."""
    cdef int64_t[64] sizes
    cdef bint empty = not args
    if kwargs:
        raise TypeError(f"Tensor: unexpected arguments {sorted(kwargs)}")
    if len(args) == 1 and isinstance(args[0], Size):
        args = tuple(args[0])
    elif len(args) == 1 and isinstance(args[0], (bool, float)):
        raise TypeError(f"Tensor: data must be sizes, a sequence, an array or a Tensor, got {type(args[0]).__name__}")
    elif len(args) == 1 and not isinstance(args[0], int):
        if isinstance(args[0], Tensor) and (<Tensor>args[0]).flags & PT_SUBCLASS:
            check_plain(args[0], "Tensor")
        if isinstance(args[0], Tensor):
            return all_of(args[0])
        return offered("Tensor", _copied(args[0], dtype_of(default_float()), None, False, "Tensor"))
    if len(args) > 64:
        raise ValueError(f"Tensor: at most 64 dimensions are supported, got {len(args)}")
    for i, size in enumerate(args):
        sizes[<int>i] = read_index(size, b"Tensor", b"size")
    if empty:
        sizes[0] = 0
    return offered("Tensor", new_tensor(default_float(), 1 if empty else len(args), sizes, DEVICE_CPU, -1))


_tensor_module.legacy_constructor = legacy_constructor
