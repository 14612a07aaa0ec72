"""Methods and functions that are not ops themselves: detach, to and its short forms,
contiguous, transposes as properties.
"""

from cpython.object cimport PyObject

from ptcore._types cimport *
from ptcore._events cimport PT_SEEN_PROFILE, as_event
from ptcore._device cimport CPU, as_device, device as Device
from ptcore._dtype cimport ITEMSIZE, as_code, dtype_of, word_of
from ptcore._dtype import WORDS, as_dtype
from ptcore._shape cimport wrap_dim, read_index
from ptcore._tensor cimport *
from ptcore._ops.call.read cimport switch
from ptcore._ops.call.elementwise cimport has_own_ufuncs
from ptcore._ops.call.run cimport call as call_bound
from ptcore._ops.call.run cimport call_with as call
from ptcore._ops.history cimport *
from ptcore._ops.table.ids cimport *
from ptcore._ops.writing cimport *
from ptcore._ops.call.offer cimport is_foreign
from ptcore._ops.call.offer import overridable
from ptcore._state cimport is_asked
from ptcore._ops.table.ids import op_id
from ptcore._ops.functions import permute, transpose, unbind
from ptcore._ops.functions import instead, round_to, round_to_, row_major
from ptcore._ops.functions import adjoint, broadcast_to, conj, masked_select  # no-cython-lint: pickles name them here
from ptcore._ops.functions import as_strided, as_strided_, nonzero  # no-cython-lint: pickles name them here
from ptcore._memory_format import checked as format_of
from ptcore._memory_format import contiguous as contiguous_as
from ptcore._memory_format import preserve_format
from ptcore._ops.view.views import set_reinterpret
from ptcore._subclass import all_of, detached, of_class
from ptcore._ops.functions import matmul as _matmul
from ptcore._libraries import library

cdef int OP_TO_DTYPE = op_id("to_dtype")
cdef int OP_TO_DEVICE = op_id("to_device")
cdef int OP_CLONE = op_id("clone")
cdef int OP_MM = op_id("mm")


def detach(Tensor self not None):
    """The same memory without history.

    Examples
    --------
    >>> import ptcore
    >>> x = ptcore.ones(1, requires_grad=True)
    >>> x.detach().requires_grad
    False
    """
    if (self.flags | pt_modes_seen) & (PT_INTERPOSED | PT_SUBCLASS | PT_MODE_FUNCTION | PT_SEEN_PROFILE):
        if is_asked(self.flags):
            from ptcore._overrides import ask
            return ask(Tensor.detach, (self,), {})
        if pt_modes_seen & PT_SEEN_PROFILE:
            return as_event("detach", self, detach_of)
        if self.flags & PT_INTERPOSED:
            return detached(self)
    return without_history(self)


cdef object detach_of(object x):
    return detached(x) if (<Tensor>x).flags & PT_INTERPOSED else without_history(<Tensor>x)


cdef inline Tensor without_history(Tensor self):
    cdef Tensor r = alias(self)
    if self.flags & PT_INFERENCE and not self.flags & PT_DATA and not pt_tls.inference:
        count_apart(r, 0)       # may be written to, as in PyTorch
    return r


@overridable
def detach_(Tensor self not None):
    """Drops this tensor's history in place."""
    if self.flags & PT_VIEW:
        raise RuntimeError("detach_: can't detach views in place; use detach() instead")
    if self.flags & PT_INTERPOSED:
        share_extras(self, detached(self))      # the value loses its history at every level
    self.node = None
    self.flags &= ~<uint32_t>PT_REQUIRES_GRAD
    return self


cdef bint is_on(Tensor x, Device d) except -1:
    """Whether x is on a device. For a stand-in it is the device of its value, even if the stand-in is on meta."""
    cdef int column = x.storage.device, number = x.storage.device_index
    if x.flags & PT_INTERPOSED:
        column, number = (<Device?>x.device).column, (<Device?>x.device).number
    return d.column == column and (d.number < 0 or d.number == number)


cdef Tensor converted(Tensor x, int dt, Device d, bint copy, bint non_blocking=False):
    """x in another dtype and on another device; x itself if neither changes, unless copy."""
    if d is not None and not is_on(x, d):
        if x.dt != dt:
            x = <Tensor>call(OP_TO_DTYPE, (x, dtype_of(dt)), None)
        return <Tensor>call(OP_TO_DEVICE, (x, d, non_blocking), None)
    if x.dt != dt:
        return <Tensor>call(OP_TO_DTYPE, (x, dtype_of(dt)), None)
    return <Tensor>call(OP_CLONE, (x,), None) if copy else x


def to(Tensor self not None, *args, dtype=None, device=None, copy=False, non_blocking=False,
       memory_format=None):
    """This tensor in another dtype or on another device: ``to(dtype)``, ``to(device)``,
    ``to(device, dtype)``, ``to(other)``. The tensor itself if nothing changes and not ``copy``.

    With ``non_blocking`` a copy from page-locked memory (``pin_memory``) to a device, and one to the CPU, which then
    lands in such memory, may still run when this returns: wait for the stream before you read the latter.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.tensor([1.7, -1.7]).to(ptcore.int64)
    tensor([ 1, -1])
    """
    cdef list rest
    if is_asked(self.flags) or args and isinstance(args[0], Tensor) and is_asked((<Tensor>args[0]).flags):
        return of_class(to, self, *args, dtype=dtype, device=device, copy=copy, non_blocking=non_blocking,
                        memory_format=memory_format)
    rest = list(args)
    if rest and isinstance(rest[0], bool):
        raise TypeError("to: the first argument must be a dtype, a device or a Tensor, got bool")
    if rest and isinstance(rest[0], Tensor):
        other = <Tensor>rest.pop(0)
        dtype = other.dtype if dtype is None else dtype
        device = other.device if device is None else device
    if rest and (rest[0] is None or isinstance(rest[0], (str, _device_class, int)) and not isinstance(
            rest[0], bool) and not is_dtype_name(rest[0])):
        device = rest.pop(0)
    if rest and not isinstance(rest[0], bool):
        dtype = rest.pop(0)
    if rest:
        non_blocking = rest.pop(0)
    if rest:
        copy = rest.pop(0)
    if rest:
        raise TypeError(f"to: too many arguments: {args!r}")
    r = converted(self, self.dt if dtype is None else as_code(dtype, b"to", b"dtype"),
                  None if device is None else as_device(device, b"to"), switch("to", "copy", copy),
                  switch("to", "non_blocking", non_blocking) and memory_format is None)
    return r if memory_format is None else formatted(r, memory_format, "to", self)


cdef object formatted(Tensor x, object memory_format, str op, Tensor start):
    """x, which was made of start, or a copy with its dims in the order of a memory format."""
    from ptcore._memory_format import checked, contiguous, contiguous_format
    if memory_format is contiguous_format and x is not start:
        return contiguous_method(x)
    memory_format = checked(op, memory_format)
    return x if memory_format is None else contiguous(x, memory_format, op)


_device_class = Device


cdef bint is_dtype_name(object x):
    return isinstance(x, str) and x.partition(":")[0] not in ("cpu", "cuda", "meta") and (
        x in _names)


_names = {d: 1 for d in ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64",
                         "int64", "float16", "bfloat16", "float32", "float64", "complex64",
                         "complex128")}


def _short(name, code_name):
    cdef int dt = as_code(code_name, b"to", b"dtype")

    def method(Tensor self not None, memory_format=None):
        r = converted(self, dt, None, False)
        return r if memory_format is None else formatted(r, memory_format, name, self)
    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"This tensor as {code_name}."
    return overridable(method)


@overridable
def cpu(Tensor self not None, memory_format=None):
    """This tensor on the CPU."""
    r = converted(self, self.dt, CPU, False)
    return r if memory_format is None else formatted(r, memory_format, "cpu", self)


@overridable
def cuda(Tensor self not None, device=None, non_blocking=False, memory_format=None):
    """This tensor on a CUDA device (the current one if None)."""
    place = as_device("cuda" if device is None else device, b"cuda")
    if place.type != "cuda":
        raise RuntimeError(f"cuda: device must be a cuda device, got {place}")
    r = converted(self, self.dt, place, False, switch("cuda", "non_blocking", non_blocking) and memory_format is None)
    return r if memory_format is None else formatted(r, memory_format, "cuda", self)


cdef list LEGACY_NAMES = [f"ptcore.{word_of(dt)}Tensor" for dt in range(PT_NDTYPES)]        # by dtype code


@overridable
def type_(Tensor self not None, dtype=None, non_blocking=False):
    """The legacy name of the tensor's type, or the tensor in another dtype."""
    switch("type", "non_blocking", non_blocking)
    if dtype is None:
        name = LEGACY_NAMES[self.dt]
        kind = self.device.type
        return name if kind == "cpu" else name.replace(".", f".{kind}.", 1)
    device = self.device
    if isinstance(dtype, type) and hasattr(dtype, "dtype"):     # ptcore.FloatTensor
        kind, dtype = dtype.device_type, dtype.dtype
    elif isinstance(dtype, str):                                # its name, also in programs for PyTorch
        prefix, _, word = dtype.rpartition(".")
        named = {f"{w}Tensor": n for w, n in WORDS.items()}
        package, _, kind = prefix.partition(".")
        if word not in named or package not in ("ptcore", "torch") or kind not in ("", "cuda"):
            raise ValueError(f"type: {dtype!r} is no type of tensors, e.g. 'ptcore.FloatTensor'")
        kind, dtype = kind or "cpu", named[word]
    else:
        kind = device.type
    return to(self, device if kind == device.type else kind, as_dtype(dtype, "type"))


@overridable
def is_set_to(Tensor self not None, Tensor tensor not None):
    """Whether both are the same window of the same storage."""
    cdef int i
    if (self.storage != tensor.storage or self.offset != tensor.offset
            or self.rank != tensor.rank):
        return False
    for i in range(2 * self.rank):
        if self.dims[i] != tensor.dims[i]:
            return False
    return True


@overridable
def is_same_size(Tensor self not None, other):
    """Whether both tensors have the same shape."""
    if not isinstance(other, Tensor):
        raise TypeError(f"is_same_size: other must be a Tensor, got {type(other).__name__}")
    return same_shape(self, <Tensor>other)


@overridable
def get_device(Tensor self not None):
    """The number of the device, -1 on the CPU."""
    if self.storage.device == DEVICE_CPU:
        return -1
    index = self.device.index
    return -1 if index is None else index


def new(Tensor self not None, *args, **sizes):
    """A tensor of this one's dtype and device, by the old constructor: from sizes uninitialised (by position, or as
    ``size``), from a sequence with its data."""
    if sizes:
        if args or list(sizes) != ["size"]:
            raise TypeError(f"new: expected sizes, data, a storage, or size by name, got {len(args)} arguments and "
                            f"{', '.join(sizes)}")
        return self.new_empty(sizes["size"])
    if not args:
        return self.new_empty(0)
    if len(args) == 1 and type(args[0]).__name__ != "Size" and (
            not hasattr(args[0], "__index__") or getattr(args[0], "ndim", 0)):      # arrays also have __index__
        from ptcore._untyped_storage import is_storage
        if isinstance(args[0], Tensor):
            return all_of(args[0].to(self.dtype))
        return self.new_empty(0).set_(args[0]) if is_storage(args[0]) else self.new_tensor(args[0])
    return self.new_empty(*args)


def size(Tensor self not None, dim=None):
    """The sizes, or that of one dim."""
    if is_asked(self.flags):
        return of_class(size, self, *(() if dim is None else (dim,)))
    if dim is None:
        return self.shape
    if self.rank == 0:
        raise IndexError(f"size: dim must be None for a 0-d tensor, got {dim}")
    if self.flags & PT_INTERPOSED:
        return self.shape[wrap_dim(read_index(dim, b"size", b"dim"), self.rank, b"size", b"dim")]
    return self.dims[wrap_dim(read_index(dim, b"size", b"dim"), self.rank, b"size", b"dim")]


def contiguous_method(Tensor self not None, memory_format=None):
    """This tensor if its elements lie in row-major order (or in that of a format), else a copy that does."""
    if is_asked(self.flags):
        return of_class(contiguous_method, self, memory_format=memory_format)
    if memory_format is not None:
        from ptcore._memory_format import checked, contiguous
        memory_format = checked("contiguous", memory_format)
        if memory_format is not None:
            return contiguous(self, memory_format)
    return row_major(self) if self.flags & PT_NONCONTIGUOUS else self


def reinterpret(Tensor x, dtype):
    """The same bytes read as another dtype (``x.view(dtype)``)."""
    cdef int code = as_code(dtype, b"view", b"dtype")
    cdef int64_t[64] sizes
    cdef int64_t[64] strides
    cdef int i, n = x.rank, a = ITEMSIZE[x.dt], b = ITEMSIZE[code]
    cdef Tensor r
    for i in range(n):
        sizes[i] = x.dims[i]
        strides[i] = x.dims[n + i]
    if a != b:
        if n == 0:
            raise RuntimeError(f"view: self.dim() cannot be 0 to view {dtype_of(x.dt).name} as another element size, "
                               f"got dtype {dtype_of(code).name}")
        if strides[n - 1] != 1:
            raise RuntimeError(f"view: self.stride(-1) must be 1 to view {dtype_of(x.dt).name} as "
                               f"{dtype_of(code).name} (different element sizes), but got {strides[n - 1]}")
        if b > a and (sizes[n - 1] * a % b or x.offset % b):
            raise RuntimeError(f"view: {'self.size(-1)' if sizes[n - 1] * a % b else 'self.storage_offset()'} must be "
                               f"divisible by {b // a} to view {dtype_of(x.dt).name} as {dtype_of(code).name} "
                               f"(different element sizes), but got {describe(x)} at offset {x.storage_offset()}")
        for i in range(n - 1):
            if strides[i] * a % b:
                raise RuntimeError(f"view: self.stride({i}) must be divisible by {b // a} to view "
                                   f"{dtype_of(x.dt).name} as {dtype_of(code).name} (different element sizes), but got "
                                   f"{strides[i]}")
            strides[i] = strides[i] * a // b
        sizes[n - 1] = sizes[n - 1] * a // b
    pt_storage_incref(x.storage)
    r = wrap_storage(x.storage, x.offset, code, n, sizes, strides)
    if x.flags & PT_DATA:
        share_counter(r, x)
    r.flags |= x.flags & PT_INFERENCE
    return r


def transposed(Tensor self not None):
    """The dims reversed."""
    return permute(self, tuple(range(self.rank - 1, -1, -1)))


def matrix_transposed(Tensor self not None):
    """The last two dims exchanged."""
    if self.rank == 0:                  # as in PyTorch
        return self
    if self.rank < 2:
        raise RuntimeError("mT: tensor.mT is only supported on matrices or batches of matrices, got a "
                           f"{self.rank}-D tensor")
    return transpose(self, -2, -1)


def matrices_adjoint(Tensor self not None):
    """The conjugate transpose of the last two dims."""
    if self.rank == 1:
        raise RuntimeError("mH: tensor.mH is only supported on matrices or batches of matrices, got a 1-D tensor")
    return adjoint(self)


def matrix_adjoint(Tensor self not None):
    """The conjugate transpose of a matrix."""
    if self.rank != 2 and self.rank != 0:
        raise RuntimeError(f"H: tensor.H is only supported on matrices (2-D tensors), got a {self.rank}-D tensor")
    return adjoint(self)


def iterate(Tensor self not None):
    if self.rank == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(unbind(self, 0))


def contains(Tensor self not None, value):
    if not isinstance(value, (Tensor, int, float, complex)) and not hasattr(value, "__array__"):
        raise RuntimeError(f"in: a tensor holds numbers, got {type(value).__name__}")
    return bool((self == value).any())


def format_(Tensor self not None, spec):
    """A tensor of one number formats as that number, ``f"{x}"`` included, as in PyTorch."""
    if not isinstance(spec, str):           # format itself would raise SystemError
        raise TypeError(f"__format__: the format must be str, got {type(spec).__name__}")
    if self.rank == 0 and self.storage.device != DEVICE_META and type(self) is Tensor:
        return format(self.item(), spec)
    return object.__format__(self, spec)


def array_ufunc(Tensor self not None, ufunc, method, *inputs, **kwargs):
    """NumPy's ufuncs on tensors: the op of the same name if there is one, else through NumPy.

    Objects with ufuncs of their own, such as xarray arrays or pandas columns, compute them: with the tensors, or with
    NumPy arrays if they accept no other types. Ufuncs of another class, such as numba's, are not looked up by name."""
    numpy = library("numpy")
    cdef object out = kwargs.get("out")
    cdef bint foreign = not isinstance(ufunc, numpy.ufunc)
    if out is not None and not isinstance(out, tuple):      # as numba's ufuncs pass it on
        out = (out,)
    for x in inputs + (out or ()):
        if not isinstance(x, Tensor) and has_own_ufuncs(x):
            if type(x).__array_ufunc__ is None:
                return NotImplemented
            result = x.__array_ufunc__(ufunc, method, *inputs, **kwargs)
            if result is not NotImplemented:
                return result
            foreign = True
    name = {"absolute": "abs", "true_divide": "div", "power": "pow", "negative": "neg",
            "greater": "gt", "less": "lt", "equal": "eq", "not_equal": "ne",
            "greater_equal": "ge", "less_equal": "le", "multiply": "mul", "subtract": "sub",
            "invert": "bitwise_not", "arctan2": "atan2"}.get(ufunc.__name__, ufunc.__name__)
    from ptcore._names import root
    if method == "__call__" and not kwargs and not foreign and hasattr(root, name):
        from ptcore._exchange.convert import as_tensor
        tensors = [x if isinstance(x, (Tensor, int, float, complex)) else as_tensor(x, device="cpu")
                   for x in inputs]
        return getattr(root, name)(*tensors)
    arrays = [x.numpy() if isinstance(x, Tensor) else x for x in inputs]
    for key, x in kwargs.items():           # the keywords where and initial
        if isinstance(x, Tensor):
            kwargs[key] = x.numpy()
    if out is not None:
        kwargs["out"] = tuple([x.numpy() if isinstance(x, Tensor) else x for x in out])
    result = getattr(ufunc, method)(*arrays, **kwargs)
    if out is not None:
        for x in out:
            if isinstance(x, Tensor):
                count_write(<Tensor>x)
        return out[0] if len(out) == 1 else out
    from ptcore._exchange.convert import as_tensor
    if isinstance(result, tuple):
        return tuple([as_tensor(r, device="cpu") for r in result])
    return as_tensor(result, device="cpu") if isinstance(result, (numpy.ndarray, numpy.generic)) else result


def array_function(Tensor self not None, func, types, args, kwargs):
    """NumPy's functions on tensors run as in NumPy, through arrays, ufuncs and methods. Where PyTorch's method of that
    name has another meaning (``nonzero``, ``size``, ``transpose``), they get NumPy's meaning."""
    numpy = library("numpy")
    if not all([issubclass(t, (Tensor, numpy.ndarray)) for t in types]) or not hasattr(func, "_implementation"):
        return NotImplemented
    if func is numpy.nonzero or func is numpy.argwhere or func is numpy.size:
        args = [x.detach().numpy() if isinstance(x, Tensor) else x for x in args]
        kwargs = {key: x.detach().numpy() if isinstance(x, Tensor) else x for key, x in kwargs.items()}
    elif func is numpy.moveaxis:
        return _moveaxis(*args, **kwargs)
    return func._implementation(*args, **kwargs)


def _moveaxis(a, source, destination):
    return a.movedim(source, destination)


cdef object matmul_operator(object x, object y):
    """``x @ y``."""
    cdef (PyObject *)[2] operands
    if not isinstance(x, Tensor) or not isinstance(y, Tensor):
        if is_foreign(x) or is_foreign(y):
            from ptcore._overrides import answer_operator
            return answer_operator("matmul", x, y)
        if not (hasattr(x, "__array__") and hasattr(y, "__array__")) or has_own_ufuncs(x) or has_own_ufuncs(y):
            return NotImplemented
        from ptcore._exchange.convert import as_tensor
        x, y = [t if isinstance(t, Tensor) else as_tensor(t, device="cpu") for t in (x, y)]
    if (<Tensor>x).rank == 2 and (<Tensor>y).rank == 2:
        operands[0], operands[1] = <PyObject *>x, <PyObject *>y
        return call_bound(OP_MM, operands, 2, None)
    return _matmul(x, y)


table.matmul = matmul_operator


def untyped_nbytes(Tensor self not None):
    return self.storage.nbytes


# -- what NumPy's users ask of an array ----------------------------------------------------------------

def astype(Tensor self not None, dtype, *, copy=True):
    """The values in another dtype, which may be NumPy's; a copy unless ``copy=False`` and nothing changes.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.tensor([1.5, 2.0]).astype("int64")
    tensor([1, 2])
    """
    return self.to(as_dtype(dtype, "astype", "dtype"), copy=bool(copy))


def to_numpy(Tensor self not None, dtype=None, copy=False):
    """An ndarray over the same memory where that can be: matplotlib and others ask their arguments for it.

    Parameters
    ----------
    dtype : dtype of NumPy, optional
        Of the result.
    copy : bool
        Whether the memory must be another.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.tensor([1, 2]).to_numpy("float32")
    array([1., 2.], dtype=float32)
    """
    return self.__array__(dtype, copy=copy or None)


def tobytes(Tensor self not None):
    """The elements in row-major order as bytes.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.tensor([1, 2], dtype=ptcore.uint8).tobytes()
    b'\\x01\\x02'
    """
    return self.numpy().tobytes()


def array_interface(self):
    """The memory of a tensor as Pillow and others read it. The attribute is missing if NumPy cannot share memory."""
    try:
        if self.dtype.name != "bfloat16":           # NumPy has no code for it
            return self.numpy().__array_interface__
        reason = "bfloat16 has no code"
    except (RuntimeError, TypeError) as error:
        reason = error
    raise AttributeError(f"__array_interface__: {reason}")


def cuda_array_interface(self):
    """The memory of a tensor on a CUDA device as CuPy and Numba read it; other tensors lack this attribute."""
    if not self.is_cuda:
        raise AttributeError(f"__cuda_array_interface__: the tensor must be on a CUDA device, got {self.device}")
    from ptcore._exchange.cuda_array import describe
    return describe(self)


# What this module adds to Tensor.
for _f in (detach, detach_, to, cpu, cuda, is_same_size, is_set_to, get_device, new, size, astype, to_numpy, tobytes):
    setattr(Tensor, _f.__name__, _f)
detach = overridable(detach)            # the function; the method asks modes and classes itself
for _n, _c in (("float", "float32"), ("double", "float64"), ("half", "float16"),
               ("bfloat16", "bfloat16"), ("int", "int32"), ("long", "int64"), ("short", "int16"),
               ("char", "int8"), ("byte", "uint8"), ("bool", "bool"), ("cfloat", "complex64"),
               ("cdouble", "complex128"), ("chalf", "complex32")):
    setattr(Tensor, _n, _short(_n, _c))
for _n, _f in (("type", type_), ("contiguous", contiguous_method)):
    _f.__name__ = _n
    setattr(Tensor, _n, _f)
Tensor.T = property(transposed)
Tensor.mT = property(matrix_transposed)
Tensor.H = property(matrix_adjoint)
Tensor.mH = property(matrices_adjoint)
Tensor.__rdiv__ = Tensor.__rtruediv__
Tensor.__iter__ = iterate
Tensor.__contains__ = contains
Tensor.__format__ = format_
Tensor.__array_ufunc__ = array_ufunc
Tensor.__array_function__ = array_function
Tensor.__array_interface__ = property(array_interface)
Tensor.__cuda_array_interface__ = property(cuda_array_interface)
# By this attribute pandas takes a tensor for its own wrapper of a NumPy array, and asks it for its dtype and
# ``to_numpy``: a bool tensor is a mask.
Tensor._typ = "npy_extension"
# By this attribute np.result_type accepts a tensor.
Tensor.__numpy_dtype__ = property(lambda self: self.dtype.__numpy_dtype__, doc="NumPy's dtype of the elements.")
for _n in ("is_mkldnn", "is_mps", "is_nested", "is_quantized", "is_sparse", "is_sparse_csr", "is_xla", "is_xpu"):
    setattr(Tensor, _n, property(lambda self: False, doc="False: tensors are dense."))


# -- what rows name in the place of an op ----------------------------------------------------------

def clone_as(input, memory_format):
    """A copy in the order of a memory format."""
    format = format_of("clone", memory_format)
    if format is None:
        return input.clone() if memory_format is preserve_format else row_major(input)
    result = contiguous_as(input, format, "clone")
    return input.clone() if result is input else result


def rounded(input, decimals, out=None, inplace=False):
    """``round`` to a number of decimals."""
    times, over = [10.0 ** n if 0 < n <= 308 else 1.0 if n <= 0 else float("inf") for n in (decimals, -decimals)]
    return round_to_(input, times, over) if inplace else round_to(input, times, over, out=out)


def positions(condition):
    """``where`` with only a condition."""
    if not isinstance(condition, Tensor):
        raise TypeError(f"where: condition must be a Tensor, got {type(condition).__name__}")
    return nonzero(condition, as_tuple=True)


instead.update(clone_as=clone_as, rounded=rounded, positions=positions)
set_reinterpret(reinterpret)
