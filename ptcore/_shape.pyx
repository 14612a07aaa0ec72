"""Shape arithmetic that needs more than a line, the reading of sizes and dims from Python
objects with their errors, and ``Size``.
"""
from libc.string cimport memcpy
from cpython.object cimport PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM

from ptcore._types cimport *
from ptcore._dtype import shown_as

cdef extern from "Python.h":
    object PyType_GenericAlloc(PyTypeObject *type, Py_ssize_t nitems)
    object PyNumber_Index(object)
    int64_t PyLong_AsLongLongAndOverflow(object, int *) except? -1

cdef extern from *:
    """
    static PyObject *pt_tuple_subscript(PyObject *self, PyObject *key) {
        return PyTuple_Type.tp_as_mapping->mp_subscript(self, key);
    }
    static void pt_set_size_slots(PyTypeObject *type, binaryfunc subscript, binaryfunc add) {
        type->tp_as_mapping->mp_subscript = subscript;
        type->tp_as_number->nb_add = add;
    }
    """
    object pt_tuple_subscript(object self, object key)
    void pt_set_size_slots(PyTypeObject *type, object (*subscript)(object, object), object (*add)(object, object))


# SymInt, SymFloat and SymBool, once symbolic.py has been imported: they may stand in the place of numbers.
cdef object symbolic_int = None, symbolic_float = None, symbolic_bool = None


def keep_symbols(of_int, of_float, of_bool):
    """Sets the classes of symbolic numbers, which may stand for numbers from now on and stay symbolic."""
    global symbolic_int, symbolic_float, symbolic_bool
    symbolic_int, symbolic_float, symbolic_bool = of_int, of_float, of_bool


cdef bint is_symbolic(object value) noexcept:
    """Whether a value is a symbolic int."""
    return symbolic_int is not None and type(value) is symbolic_int


cpdef bint is_symbolic_number(object value) noexcept:
    """Whether a value is a symbolic int, float or bool."""
    return symbolic_int is not None and (type(value) is symbolic_int or type(value) is symbolic_float
                                         or type(value) is symbolic_bool)


cdef bint any_symbolic(object values) except -1:
    """Whether a tuple or list has a symbolic number among its items."""
    if symbolic_int is None:
        return False
    for x in values:
        if is_symbolic_number(x):
            return True
    return False


cdef object concrete(object value):
    """A symbolic number as a plain number, which is a guard; any other value unchanged."""
    return value.guard() if is_symbolic_number(value) else value


cdef object hinted(object value):
    """A value, or a tuple or list, with hints in the place of symbolic numbers; the caller keeps the symbols apart."""
    if isinstance(value, (tuple, list)):
        return tuple([hinted(x) for x in value]) if any_symbolic(value) else value
    if not is_symbolic_number(value):
        return value
    return value.guard() if value.hint is None else value.hint      # guard() raises if there is no hint


class Size(tuple):
    """The shape of a tensor: a tuple of ints with ``numel()``.

    Raises
    ------
    TypeError
        If an item is no integer.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.Size([2, 3]).numel()
    6
    """

    __slots__ = ()

    def __new__(cls, sizes=()):
        items = tuple(sizes)
        for item in items:
            if type(item) is not int:
                items = tuple([whole(i, item) for i, item in enumerate(items)])
                break
        return tuple.__new__(cls, items)

    def numel(self):
        """The product of the sizes: the number of elements."""
        n = 1
        for size in self:
            n *= size
        return n

    def __getitem__(self, key):
        item = tuple.__getitem__(self, key)
        return Size(item) if isinstance(key, slice) else item

    def __add__(self, other):
        if not isinstance(other, tuple):
            return NotImplemented
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other):
        if not isinstance(other, tuple):
            return NotImplemented
        return Size(tuple(other) + tuple(self))

    def __mul__(self, n):
        return Size(tuple.__mul__(self, n))

    __rmul__ = __mul__

    def __repr__(self):
        return f"{shown_as()}.Size({list(self)})"

    def __reduce__(self):
        return Size, (tuple(self),)


cdef object whole(int i, object item):
    """A size as an int; a symbolic size unchanged."""
    if is_symbolic(item):
        return item
    try:
        return int(item.__index__())
    except (AttributeError, TypeError, ValueError, RuntimeError):
        raise TypeError(f"Size: item {i} must be an int, got {type(item).__name__}") from None


cdef object sizes_tuple(int ndim, const int64_t *sizes):
    cdef tuple t = PyTuple_New(ndim)
    cdef int i
    cdef object item
    for i in range(ndim):
        item = sizes[i]
        Py_INCREF(item)
        PyTuple_SET_ITEM(t, i, item)
    return t


cdef object make_size(int ndim, const int64_t *sizes):
    cdef object t = PyType_GenericAlloc(<PyTypeObject *>Size, ndim)
    cdef int i
    cdef object item
    for i in range(ndim):
        item = sizes[i]
        Py_INCREF(item)
        PyTuple_SET_ITEM(<tuple>t, i, item)
    return t


# Indexing and adding go through C slots: the methods of the class do the same, but cost a Python call each.

cdef object joined_size(tuple a, tuple b):
    cdef Py_ssize_t m = PyTuple_GET_SIZE(a), n = PyTuple_GET_SIZE(b), i
    cdef object t = PyType_GenericAlloc(<PyTypeObject *>Size, m + n)
    cdef object item
    for i in range(m + n):
        item = <object>PyTuple_GET_ITEM(a, i) if i < m else <object>PyTuple_GET_ITEM(b, i - m)
        if type(item) is not int:
            item = whole(i, item)
        Py_INCREF(item)
        PyTuple_SET_ITEM(<tuple>t, i, item)
    return t


cdef object size_subscript(object self, object key):
    part = pt_tuple_subscript(self, key)
    return joined_size(<tuple>part, ()) if type(key) is slice else part


cdef object size_add(object a, object b):
    if not isinstance(a, tuple) or not isinstance(b, tuple):
        return NotImplemented
    return joined_size(<tuple>a, <tuple>b)


pt_set_size_slots(<PyTypeObject *>Size, size_subscript, size_add)


# The offsets, in elements from element [0, ..., 0], of the lowest and the highest element.
# Both stop at FAR elements from the first one: no memory reaches there, and sums and products
# of a few such numbers do not overflow.
cdef int64_t FAR = <int64_t>1 << 56


cdef int64_t min_offset(int ndim, const int64_t *sizes, const int64_t *strides) noexcept nogil:
    cdef int64_t low = 0
    cdef int i
    for i in range(ndim):
        if strides[i] < 0 and sizes[i] > 1:
            if strides[i] < -FAR // (sizes[i] - 1):
                return -FAR
            low += strides[i] * (sizes[i] - 1)
            if low < -FAR:
                return -FAR
    return low


cdef int64_t max_offset(int ndim, const int64_t *sizes, const int64_t *strides) noexcept nogil:
    cdef int64_t high = 0
    cdef int i
    for i in range(ndim):
        if strides[i] > 0 and sizes[i] > 1:
            if strides[i] > FAR // (sizes[i] - 1):
                return FAR
            high += strides[i] * (sizes[i] - 1)
            if high > FAR:
                return FAR
    return high


# Whether the strides of four or five dims have dim 1 innermost. Where sizes of 1 leave the answer open, the result is
# that of PyTorch's suggest_memory_format.
cdef bint is_channels_last(int ndim, const int64_t *sizes, const int64_t *strides) noexcept nogil:
    cdef int64_t least = 0
    cdef int i, d
    if ndim < 4 or ndim > 5 or strides[1] == 0:
        return False
    for i in range(ndim):
        d = channels_dim(i, ndim)
        if sizes[d] == 0 or strides[d] < least or (d == 0 and least == strides[1]):
            return False
        least = strides[d] * (sizes[d] if sizes[d] > 1 else 1)
    return True


cdef int _outside(int a, int b, int ndim, const int64_t *sizes, int n, const int64_t *strides) noexcept nogil:
    cdef int64_t s, z
    cdef int k
    for k in range(n):
        s, z = strides[k * ndim + a], strides[k * ndim + b]
        s, z = -s if s < 0 else s, -z if z < 0 else z
        if s == 0 or z == 0:
            continue
        if s != z:
            return -1 if s < z else 1
        if sizes[a] > sizes[b]:
            return 1
    return 0


# The dims of n tensors of these sizes, from the innermost on (broadcast dims have strides of 0): an insertion sort by
# the strides of the first tensor, then of the next one where those are equal or 0, as in PyTorch.
cdef void _inside_out(int ndim, const int64_t *sizes, int n, const int64_t *strides, int *order) noexcept nogil:
    cdef int i, j, at, before
    for i in range(ndim):
        order[i] = ndim - 1 - i
    for i in range(1, ndim):
        at = i
        for j in range(i - 1, -1, -1):
            before = _outside(order[j], order[at], ndim, sizes, n, strides)
            if before > 0:
                order[j], order[at] = order[at], order[j]
                at = j
            elif before < 0:
                break


# Dense strides with dims in the order of those of n tensors.
cdef void order_dims(int ndim, const int64_t *sizes, int n, const int64_t *strides, int64_t *out) noexcept nogil:
    cdef int[64] order
    cdef int64_t step = 1
    cdef int i
    _inside_out(ndim, sizes, n, strides, order)
    for i in range(ndim):
        out[order[i]] = step
        if sizes[order[i]] > 1:
            step = <int64_t>(<uint64_t>step * <uint64_t>sizes[order[i]])


# The strides of a new tensor laid out like another one: the same strides if they are dense, else dense ones in order.
cdef void strides_like(int ndim, const int64_t *sizes, const int64_t *strides, int64_t *out) noexcept nogil:
    if is_dense(ndim, sizes, strides):
        memcpy(out, strides, ndim * sizeof(int64_t))
    else:
        order_dims(ndim, sizes, 1, strides, out)


cdef int _carried(object sizes, object strides, int64_t *n, int64_t *s) except -1:
    cdef int i, ndim = len(sizes)
    for i in range(ndim):
        n[i], s[i] = sizes[i], strides[i]
    return ndim


def laid_strides(sizes, strides):
    """The strides of a new tensor that is laid out like one with these sizes and strides."""
    cdef int64_t[64] n, s, out
    cdef int ndim = _carried(sizes, strides, n, s)
    strides_like(ndim, n, s, out)
    return sizes_tuple(ndim, out)


def dims_inside_out(sizes, strides):
    """The dims from the innermost on, and whether each dim's strides are clearly smaller than the next one's."""
    cdef int64_t[64] n, s
    cdef int[64] order
    cdef int i, ndim = _carried(sizes, strides, n, s)
    _inside_out(ndim, n, 1, s, order)
    return [order[i] for i in range(ndim)], all([_outside(order[i], order[i + 1], ndim, n, 1, s) < 0
                                                 for i in range(ndim - 1)])


# Non-overlapping and dense: some permutation of the dims is contiguous.
cdef bint is_dense(int ndim, const int64_t *sizes, const int64_t *strides) noexcept nogil:
    cdef int64_t step = 1
    cdef int i, found, used = 0
    cdef bint[64] taken
    for i in range(ndim):
        taken[i] = sizes[i] <= 1
        if sizes[i] == 0:
            return True
        if taken[i]:
            used += 1
    while used < ndim:
        found = -1
        for i in range(ndim):
            if not taken[i] and strides[i] == step:
                found = i
                break
        if found < 0:
            return False
        taken[found] = True
        used += 1
        step *= sizes[found]
    return True


# Strides under which the same memory has new_sizes, in row-major order; False if none exist.
cdef bint view_strides(int ndim, const int64_t *sizes, const int64_t *strides,
                       int new_ndim, const int64_t *new_sizes, int64_t *out) noexcept nogil:
    cdef int64_t chunk_stride, view_n = 1, chunk_n = 1
    cdef int i, v = new_ndim - 1
    for i in range(ndim):
        if sizes[i] == 0:
            fill_strides(new_ndim, new_sizes, out)
            return True
    if ndim == 0:
        for i in range(new_ndim):
            out[i] = 1
        return True
    chunk_stride = strides[ndim - 1]
    for i in range(ndim - 1, -1, -1):
        chunk_n *= sizes[i]
        if i == 0 or (sizes[i - 1] != 1 and strides[i - 1] != chunk_n * chunk_stride):
            while v >= 0 and (view_n < chunk_n or new_sizes[v] == 1):
                out[v] = view_n * chunk_stride
                view_n *= new_sizes[v]
                v -= 1
            if view_n != chunk_n:
                return False
            if i > 0:
                chunk_stride = strides[i - 1]
                chunk_n = 1
                view_n = 1
    return v < 0


cdef int64_t read_index(object value, const char *op, const char *arg) except? -1:
    """An int from an int or an object with __index__ (bools are accepted, as in Python)."""
    cdef int overflow = 0
    cdef int64_t v
    if type(value) is not int:
        value = index_of(value, op, arg)
    v = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow:
        raise OverflowError(f"{op.decode()}: {arg.decode()} must be a 64-bit integer, got {value}")
    return v


cdef object index_of(object value, const char *op, const char *arg):
    try:
        return PyNumber_Index(value)
    except TypeError:
        raise TypeError(f"{op.decode()}: {arg.decode()} must be int, got "
                        f"{type(value).__name__}") from None


cdef int read_sizes(object value, int64_t *out, const char *op, const char *arg) except -1:
    """Fills out from an int or a sequence of ints; returns how many there are."""
    cdef int n = 0, overflow = 0
    if type(value) is tuple and len(<tuple>value) <= MAX_DIM:
        for item in <tuple>value:
            if type(item) is int:
                out[n] = PyLong_AsLongLongAndOverflow(item, &overflow)
            if type(item) is not int or overflow:
                out[n] = read_index(item, op, arg)
            n += 1
        return n
    if type(value) is int:
        out[0] = read_index(value, op, arg)
        return 1
    if not isinstance(value, (tuple, list)):
        if hasattr(value, "__index__") and getattr(value, "ndim", 0) == 0:
            out[0] = read_index(value, op, arg)
            return 1
        try:
            if isinstance(value, (bytes, dict, set)):       # no order, or no sizes
                raise TypeError
            value = tuple(value)
        except TypeError:
            raise TypeError(f"{op.decode()}: {arg.decode()} must be int or a sequence of ints, "
                            f"got {type(value).__name__}") from None
    if len(value) > MAX_DIM:
        raise ValueError(f"{op.decode()}: at most {MAX_DIM} dimensions are supported, "
                         f"got {len(value)}")
    for item in value:
        out[n] = read_index(item, op, arg)
        n += 1
    return n


cdef int wrap_dim(int64_t dim, int ndim, const char *op, const char *arg) except -1:
    cdef int n = ndim if ndim > 0 else 1
    if dim < -n or dim >= n:
        raise IndexError(f"{op.decode()}: Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got "
                         f"{dim}) for {arg.decode()}")
    return <int>(dim + n if dim < 0 else dim)


cdef int infer_size(int ndim, int64_t *sizes, int64_t numel, const char *op) except -1:
    """Replaces one -1 in sizes so that the sizes multiply to numel."""
    cdef int64_t known = 1
    cdef int i, hole = -1
    for i in range(ndim):
        if sizes[i] < 0:
            if sizes[i] != -1:
                raise shape_error(op, ndim, sizes, "sizes must be non-negative or one -1, got {}")
            if hole >= 0:
                raise shape_error(op, ndim, sizes, "only one dimension can be inferred, got {}")
            hole = i
        elif (known | sizes[i]) >> 31 and sizes[i] and known > (<int64_t>1 << 62) // sizes[i]:
            known = -2
            break
        else:
            known *= sizes[i]
    if hole < 0 and known == numel:
        return 0
    if hole >= 0 and known > 0 and numel % known == 0:
        sizes[hole] = numel // known
        return 0
    if hole >= 0 and known == 0 and numel == 0:
        raise shape_error(op, ndim, sizes, "cannot reshape tensor of 0 elements into shape {} "
                          "because the unspecified dimension size -1 can be any value and is ambiguous")
    raise shape_error(op, ndim, sizes, "shape {} is invalid for input of size " + str(numel))


cdef object too_large(int ndim, const int64_t *sizes):
    """The error for sizes that are too large for a tensor."""
    shape = list(sizes_tuple(ndim, sizes))
    for i in range(ndim):
        if sizes[i] < 0:
            return _errors().ShapeError(f"sizes must be non-negative, got {shape}")
    return _errors().ShapeError(f"a tensor of sizes {shape} has too many elements to be addressed")


cdef object shape_error(const char *op, int ndim, const int64_t *sizes, str text):
    return _errors().ShapeError(f"{op.decode()}: {text.format(list(sizes_tuple(ndim, sizes)))}")


cdef object _errors():
    import ptcore._errors
    return ptcore._errors


def overlaps(shape, stride):
    """Whether two elements may share a place in memory."""
    reach = 0
    for s, n in sorted([(s if s >= 0 else -s, n) for s, n in zip(stride, shape)]):
        if n > 1:
            if s <= reach:
                return True
            reach += s * (n - 1)
    return False
