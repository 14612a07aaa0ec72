"""The values of tensors as Python objects: numbers, nested lists, ndarrays."""
from ptcore._types cimport *
from ptcore._events cimport PT_SEEN_PROFILE, as_event
from ptcore._dtype cimport CATEGORY, ITEMSIZE, dtype_of
from ptcore._interpret cimport TOLD_READ, told
from ptcore._state cimport is_asked
from ptcore._tensor cimport *
from ptcore._subclass import value_behind
from ptcore._libraries import library
from ptcore._errors import ConversionError, SeveralElementsError, ShapeError, here
from ptcore._exchange.convert import store


cdef object read_element(const char *p, int dt):
    if dt == PT_FLOAT32:
        return <double>(<float *>p)[0]
    if dt == PT_FLOAT64:
        return (<double *>p)[0]
    if dt == PT_INT64:
        return (<int64_t *>p)[0]
    if dt == PT_BOOL:
        return p[0] != 0
    if dt == PT_UINT8:
        return (<uint8_t *>p)[0]
    if dt == PT_INT8:
        return (<int8_t *>p)[0]
    if dt == PT_UINT16:
        return (<uint16_t *>p)[0]
    if dt == PT_INT16:
        return (<int16_t *>p)[0]
    if dt == PT_UINT32:
        return (<uint32_t *>p)[0]
    if dt == PT_INT32:
        return (<int32_t *>p)[0]
    if dt == PT_UINT64:
        return (<uint64_t *>p)[0]
    if dt == PT_COMPLEX64:
        return complex((<float *>p)[0], (<float *>p)[1])
    if dt == PT_COMPLEX128:
        return complex((<double *>p)[0], (<double *>p)[1])
    return wide_value(p, dt)


cdef object wide_value(const char *p, int dt):
    """The element of a dtype without loops."""
    cdef float[2] wide
    cdef int loop = pt_loop_dtype(dt)
    cdef (char *)[2] ptr = [<char *>wide, <char *>p]
    pt_cast_loop(dt, loop)(ptr, 1, pt_cast_params(dt, loop))
    return read_element(<char *>wide, loop)


cdef int seen(str kind, Tensor t) except -1:
    """Tells interpreters that the values of a tensor that is not their stand-in are read."""
    if pt_tls.mode & PT_INTERPOSED:
        told(TOLD_READ, kind, t)
    return 0


cdef int readable(Tensor t, str op) except -1:
    pt_tls.value_read = 1               # a plan cannot repeat a read of a value
    if t.storage.device == DEVICE_META:
        raise NotImplementedError(f"{op}: a meta tensor has no data")
    if t.flags & PT_INTERPOSED:
        raise RuntimeError(f"{op}: the value of a traced or batched tensor is not known here{here()}")
    return 0


def item(Tensor self not None):
    """The value of a tensor of one element, as a Python number."""
    if (self.count == 1 and self.storage.device == DEVICE_CPU
            and not (self.flags | pt_modes_seen) & (PT_INTERPOSED | PT_SUBCLASS | PT_MODE_FUNCTION | PT_MODE_PLANNING
                                                    | PT_SEEN_PROFILE)):
        return read_element(address(self), self.dt)
    if is_asked(self.flags):
        from ptcore._overrides import ask
        return ask(Tensor.item, (self,), {})
    return as_event("item", self, item_of) if pt_modes_seen & PT_SEEN_PROFILE else value_of(self, "item")


cdef object item_of(object x):
    return value_of(<Tensor>x, "item")


cdef object value_of(Tensor self, str kind):
    if (self.flags | pt_modes_seen) & PT_INTERPOSED:
        if self.flags & PT_INTERPOSED:
            return (<TensorExtras>self.extras).payload.item(self)
        seen(kind, self)
    if self.count != 1:
        raise SeveralElementsError(f"item: the tensor must have one element, got shape {list(shape_of(self))}")
    readable(self, "item")
    if self.storage.device != DEVICE_CPU:
        return self.cpu().item()
    return read_element(address(self), self.dt)


cdef object nested(Tensor t, int dim, const char *p):
    cdef int64_t i, step
    cdef list result = []
    if dim == t.rank:
        return read_element(p, t.dt)
    step = t.dims[t.rank + dim] * ITEMSIZE[t.dt]
    if dim == t.rank - 1:
        if t.dt == PT_FLOAT32:
            return [(<const float *>(p + i * step))[0] for i in range(t.dims[dim])]
        return [read_element(p + i * step, t.dt) for i in range(t.dims[dim])]
    for i in range(t.dims[dim]):
        result.append(nested(t, dim + 1, p + i * step))
    return result


def tolist(Tensor self not None):
    """Nested lists of Python numbers; a number for a 0-d tensor."""
    if self.flags & PT_INTERPOSED:
        value = (<TensorExtras>self.extras).payload.known_value()
        return (value_behind(self, "tolist") if value is None else value).tolist()
    readable(self, "tolist")
    seen("tolist", self)
    if self.storage.device != DEVICE_CPU:
        return self.cpu().tolist()
    return nested(self, 0, address(self))


cdef int elements(Tensor t, int dim, const char *p, list into) except -1:
    cdef int64_t i, step
    if dim == t.rank:
        into.append(read_element(p, t.dt))
        return 0
    step = t.dims[t.rank + dim] * ITEMSIZE[t.dt]
    for i in range(t.dims[dim]):
        elements(t, dim + 1, p + i * step, into)
    return 0


cdef list flat_list(Tensor t, str op):
    cdef list result = []
    readable(t, op)
    elements(t, 0, address(t), result)
    return result


def mapped(str op, object function, Tensor first, tuple others):
    """The values of a Python function over the elements of one to three tensors of one shape on the CPU, in the first
    tensor's dtype."""
    cdef Tensor result = new_like(first, first.dt)
    cdef list values = flat_list(first, op), second, third
    cdef int64_t i
    if len(others) == 0:
        values = [function(v) for v in values]
    elif len(others) == 1:
        second = flat_list(others[0], op)
        values = [function(values[i], second[i]) for i in range(first.count)]
    else:
        second, third = flat_list(others[0], op), flat_list(others[1], op)
        values = [function(values[i], second[i], third[i]) for i in range(first.count)]
    store(result, values)
    return result


def numpy(Tensor self not None, *, force=False):
    """An ndarray over the same memory.

    Raises
    ------
    RuntimeError
        If the tensor requires grad where gradients are recorded; ``force=True`` detaches and moves it instead.
    TypeError
        If it is not on the CPU.
    """
    np = library("numpy")
    cdef Tensor t = self
    if not isinstance(force, (bool, int, np.bool_)):
        raise TypeError(f"numpy: force must be bool, got {type(force).__name__}")
    if force:
        t = <Tensor>self.detach().cpu()
    if t.storage.device != DEVICE_CPU and not t.flags & PT_INTERPOSED:
        raise TypeError(f"numpy: can't convert a tensor on {t.device} to numpy; use cpu() first")
    if needs_grad(t):
        if pt_tls.grad_enabled:
            raise RuntimeError("numpy: Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
                               "instead.")
        t = alias(t)
    if t.flags & PT_INTERPOSED:
        t = value_behind(t, "numpy")
    seen("numpy", t)
    if pt_is(t.dt, PT_KIND_STORED):
        dtype_of(t.dt)._numpy()         # raises
    if t.dt == PT_BFLOAT16:
        ml_dtypes = library("ml_dtypes")
        raw = alias(t)
        raw.dt = PT_UINT16
        return np.asarray(raw).view(ml_dtypes.bfloat16)
    return np.asarray(memoryview(t))


def __array__(Tensor self not None, dtype=None, *, copy=None):
    np = library("numpy")
    a = numpy(self)
    if dtype is not None and a.dtype != dtype:
        if copy is False:
            raise ValueError("__array__: a copy is needed for the dtype asked for")
        return a.astype(dtype)
    return np.array(a, copy=True) if copy else a


def __bool__(Tensor self not None):
    if self.count != 1:
        raise ShapeError(f"bool: the truth value of a tensor of shape {list(shape_of(self))} is ambiguous")
    return bool(value_of(self, "bool"))


cdef object real_item(Tensor t, str op):
    """The element of a tensor of one; a complex one must be real, as in PyTorch."""
    value = value_of(t, op)
    if type(value) is complex:
        if value.imag != 0:
            raise ConversionError(f"{op}: a complex number with an imaginary part has no real value, got {value}")
        return value.real
    return value


def __float__(Tensor self not None):
    return float(real_item(self, "float"))


def __int__(Tensor self not None):
    return int(real_item(self, "int"))


def __complex__(Tensor self not None):
    return complex(value_of(self, "complex"))


def __index__(Tensor self not None):
    if CATEGORY[self.dt] > 1 or self.count != 1:
        raise TypeError("index: only integer tensors of a single element can be an index, got "
                        f"{describe(self)}")
    return int(value_of(self, "index"))


for _f in (item, tolist, numpy, __array__, __bool__, __float__, __int__, __complex__, __index__):
    setattr(Tensor, _f.__name__, _f)
