"""Indexing: ``x[key]`` and ``x[key] = value``.

Ints (and integer tensors of no dims), slices (any step), None and Ellipsis make views. Boolean masks and integer arrays
(tensors, ndarrays, lists) are advanced: masks become positions, the index arrays are broadcast
together, and one gather or write does the work; the indexed dims of the result stand where the
index arrays stood if those are adjacent, else in front, as in NumPy and PyTorch.
"""
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.number cimport PyNumber_Index
from cpython.sequence cimport PySequence_Fast_ITEMS
from cpython.slice cimport PySlice_AdjustIndices, PySlice_Unpack

from ptcore._types cimport *
from ptcore._dtype cimport CATEGORY, ITEMSIZE, dtype_of
from ptcore._shape cimport any_symbolic, hinted, is_symbolic, is_symbolic_number, read_sizes, same_sizes, sizes_tuple
from ptcore._tensor cimport *
from ptcore._ops.writing cimport beside
from ptcore._ops.call.run cimport call_with as call, over_first
from ptcore._ops.call.elementwise cimport overwrite, write_to
from ptcore._ops.call.offer cimport flags_of, is_foreign
from ptcore._ops.call.operands cimport fitting
from ptcore._ops.table.ids cimport kernel_of
from ptcore._ops.view cimport views
from ptcore._ops import checked
from ptcore._ops.functions import index_put, index_put_  # no-cython-lint: pickles name them here
from ptcore._ops.history import has_values
from ptcore._ops.table.ids import op_id
from ptcore._errors import IndexTypeError, ShapeError, warn

cdef int OP_INDEX_GET = op_id("index_get")
cdef int OP_MASKED_COLLECT = op_id("masked_collect")
cdef int OP_COUNT_NONZERO = op_id("count_nonzero")
cdef int OP_INDEX_WRITE = op_id("index_write")
cdef int OP_INDEX_ACCUMULATE = op_id("index_accumulate")
cdef int OP_ASSIGN = op_id("assign")
cdef int OP_ROW_MAJOR = op_id("row_major")


cdef inline bint offered(Tensor x) noexcept:
    """Whether an interpreter must see each of the views that make an index."""
    return ((x.flags | pt_tls.mode) & PT_INTERPOSED) != 0


cdef int64_t place(Tensor x, int dim, object index) except? -1:
    """An int as an index of a dim. select_at checks its range; ints of more than 64 bits raise here."""
    cdef int beyond
    cdef int64_t value = PyLong_AsLongLongAndOverflow(index, &beyond)
    if beyond:
        from ptcore._errors import OutOfRangeError
        raise OutOfRangeError(f"index: index {index} is out of range for dim {dim} with size "
                              f"{x.dims[dim]}")
    return value


cdef Tensor select_at(Tensor x, int dim, int64_t index, int gone):
    if offered(x):
        from ptcore._ops.functions import select
        return <Tensor>select(x, dim, index)
    return views.select_at(x, dim, index, gone)


cdef Tensor slice_at(Tensor x, int dim, int64_t start, int64_t length, int64_t step,
                     object params):
    if offered(x):
        stop = start + length * step
        return offered_slice(x, dim, start, None if stop < 0 else stop, step)
    return views.slice_at(x, dim, start, length, step, params)


cdef Tensor offered_slice(Tensor x, int dim, object start, object stop, object step):
    from ptcore._ops.functions import slice as slice_of
    return <Tensor>slice_of(x, dim, start, stop, step)


cdef bint is_symbolic_slice(Tensor x, object item) except -1:
    """Whether an interpreter sees a slice with symbolic bounds, or may: x has symbolic sizes."""
    return (is_symbolic(item.start) or is_symbolic(item.stop) or is_symbolic(item.step)
            or x.flags & PT_INTERPOSED != 0 and any_symbolic(x.shape))


cdef Tensor symbolic_slice(Tensor x, int dim, object item):
    """x itself if the slice takes all of dim, whatever its size is."""
    start, step = 0 if item.start is None else item.start, 1 if item.step is None else item.step
    if type(start) is int and start == 0 and type(step) is int and step == 1 and (
            item.stop is None or type(x.shape[dim] == item.stop) is bool and x.shape[dim] == item.stop):
        return x
    if type(step) is int and step == 0:
        raise ValueError("index: slice step must not be zero")
    for bound in (start, item.stop, step):
        if not is_symbolic(bound):
            plain(bound)
    return offered_slice(x, dim, item.start if type(step) is int and step < 0 else start, item.stop, step)


cdef Tensor unsqueeze_at(Tensor x, int dim):
    if offered(x):
        from ptcore._ops.functions import unsqueeze
        return <Tensor>unsqueeze(x, dim)
    return views.unsqueeze_at(x, dim)


cdef bint asked_about(Tensor x, object key):
    """Whether ``__torch_function__`` of a mode, of x or of an item of the key must be asked about ``x[key]``."""
    cdef uint32_t seen = flags_of(key)
    return (seen & PT_FOREIGN) != 0 or (not pt_tls.torch_function_off and
                                        ((x.flags | seen) & PT_SUBCLASS or pt_tls.mode & PT_MODE_FUNCTION))


cdef object getitem(Tensor x, object key):
    cdef Tensor r
    if x.rank > 0 and not (x.flags | pt_tls.mode) & (PT_SUBCLASS | PT_INTERPOSED | PT_MODE_FUNCTION):
        if type(key) is int:
            return select_at(x, 0, place(x, 0, key), 0)
        if type(key) is slice:
            r = sliced(x, 0, key)
            return r if r is not x else alias_view(x)
    if asked_about(x, key):
        from ptcore._overrides import ask
        return ask(Tensor.__getitem__, (x, key), {})
    if type(key) is Tensor and is_mask_of(x, <Tensor>key):      # one pass; backward keeps only the mask
        return call(OP_MASKED_COLLECT, (x, key, (int(call(OP_COUNT_NONZERO, (alias(<Tensor>key), None), None)),)), None)
    r, advanced = basic(x, key)
    if advanced is None:
        return r if r is not x else alias_view(x)
    indices, dims, shape = gather_plan(r, advanced)
    return call(OP_INDEX_GET, (r, indices, dims, shape), None)


cdef bint is_mask_of(Tensor x, Tensor mask) noexcept:
    """Whether a mask has one element for each element of x, and a kernel can select by it."""
    return (mask.dt == PT_BOOL and x.rank > 0 and mask.rank == x.rank and same_sizes(x.rank, x.dims, mask.dims)
            and not (x.flags | mask.flags | pt_tls.mode) & (PT_INTERPOSED | PT_SUBCLASS)
            and (not (x.flags | mask.flags) & PT_NON_CPU or has_mask_kernel(x, mask)))


cdef bint has_mask_kernel(Tensor x, Tensor mask) noexcept:
    cdef int column = x.storage.device
    return column == mask.storage.device and column != DEVICE_META and kernel_of(OP_MASKED_COLLECT, column) != NULL


cdef Tensor alias_view(Tensor x):
    """``x[...]``: a view of everything."""
    if x.rank == 0:
        return select_at(unsqueeze_at(x, 0), 0, 0, 0)
    if offered(x):
        return offered_slice(x, 0, 0, None, 1)
    return slice_at(x, 0, 0, x.dims[0], 1, None)


cdef Tensor sliced(Tensor x, int dim, object item):
    """x itself if the slice takes all of dim."""
    cdef Py_ssize_t start, stop, step, length
    if offered(x) and is_symbolic_slice(x, item):
        return symbolic_slice(x, dim, item)
    try:
        PySlice_Unpack(item, &start, &stop, &step)
    except (TypeError, ValueError):
        item = slice(plain(item.start), plain(item.stop), plain(item.step))
        if item.step == 0:
            raise ValueError("index: slice step must not be zero") from None
        PySlice_Unpack(item, &start, &stop, &step)
    length = PySlice_AdjustIndices(x.dims[dim], &start, &stop, step)
    if length == 0:                     # an empty slice may start outside
        start, step = 0, 1
    if start == 0 and step == 1 and length == x.dims[dim]:
        return x
    return slice_at(x, dim, start, length, step, None)


cdef bint is_of_indices(list key) except -1:
    """Whether a list is taken for a tuple of indices, by PyTorch's rule, which was NumPy's."""
    if len(key) >= 32:
        return False
    for item in key:
        if item is None or item is Ellipsis or isinstance(item, (Tensor, slice, list, tuple, range)) or hasattr(
                item, "__array__") and getattr(item, "ndim", 0):
            warn("Using a non-tuple sequence for multidimensional indexing is deprecated; use x[tuple(seq)] instead of "
                 "x[seq]")
            return True
    return False


cdef tuple basic(Tensor x, object key, bint select=True):
    """Applies the ints, slices, None and Ellipsis of key, and the tensors of one integer if they select.

    Returns the view and, if there are advanced indices, a list of (dim of the view, index).
    """
    cdef tuple items
    cdef int used = 0, dim = 0, masks, gone = 0     # dims that ints took, less those that None made
    cdef list advanced = None
    cdef bint ellipsis = False
    # A Size and a named tuple are tuples, too.
    items = tuple(key) if isinstance(key, tuple) or isinstance(key, list) and is_of_indices(key) else (key,)
    for item in items:
        if item is Ellipsis:
            if ellipsis:
                raise IndexError("index: only one Ellipsis (...) may stand in an index")
            ellipsis = True
        elif item is not None and not isinstance(item, bool):
            masks = mask_rank(item)
            used += masks if masks >= 0 else 1
    if used > x.rank:
        if x.rank == 0:
            raise IndexError("index: invalid index of a 0-dim tensor. Use `tensor.item()` in Python to convert a 0-dim "
                             f"tensor to a number, got {used} indices")
        raise IndexError(f"index: too many indices for tensor of dimension {x.rank}, got {used}")
    for item in items:
        if type(item) is int:
            x = select_at(x, dim, place(x, dim, item), gone)
            gone += 1
        elif is_symbolic(item):
            if offered(x):
                from ptcore._ops.functions import select as select_of
                x = <Tensor>select_of(x, dim, item)
            else:
                x = select_at(x, dim, place(x, dim, int(item)), gone)
            gone += 1
        elif isinstance(item, slice):
            x = sliced(x, dim, item)
            dim += 1
        elif item is None:
            x = unsqueeze_at(x, dim)
            dim += 1
            gone -= 1
        elif item is Ellipsis:
            dim += x.rank - dim - remaining(items)
        elif isinstance(item, bool):
            x = unsqueeze_at(x, dim)
            if advanced is None:
                advanced = []
            advanced.append((dim, as_index([0] if item else [])))
            dim += 1
        else:
            index = as_index(item)
            if select and (<Tensor>index).rank == 0 and CATEGORY[(<Tensor>index).dt] == 1 and has_values(index):
                x = select_at(x, dim, index.item(), gone)
                gone += 1
                continue
            if advanced is None:
                advanced = []
            if (<Tensor>index).dt == PT_BOOL:
                if (<Tensor>index).rank == 0:
                    x = unsqueeze_at(x, dim)
                    advanced.append((dim, as_index([0] if index.item() else [])))
                    dim += 1
                    continue
                for i in range((<Tensor>index).rank):
                    if (<Tensor>index).dims[i] != x.dims[dim + i] and not (
                            (<Tensor>index).dims[i] == 0 and x.flags & PT_STANDARD):     # selects nothing, as in NumPy
                        raise IndexError(
                            f"index: the mask's shape {list(shape_of(<Tensor>index))} does not "
                            f"match the shape {list(shape_of(x))} of the indexed tensor at dim "
                            f"{dim + i}")
                for column in positions(<Tensor>index):
                    advanced.append((dim, column))
                    dim += 1
            else:
                advanced.append((dim, index))
                dim += 1
    return x, advanced


cdef object plain(object value):
    if value is None:
        return None
    if not hasattr(value, "__index__"):
        raise TypeError("index: slice indices must be integers or None or have an __index__ method, got "
                        f"{type(value).__name__}")
    return int(PyNumber_Index(value))


cdef int mask_rank(object item) except -2:
    """The number of dims that a mask takes; -1 for any item but a mask of several dims."""
    if isinstance(item, Tensor):
        return (<Tensor>item).rank if (<Tensor>item).dt == PT_BOOL or (<Tensor>item).dt == PT_UINT8 else -1
    if type(item) is int or isinstance(item, slice) or is_symbolic(item):
        return -1
    if hasattr(item, "dtype") and getattr(item.dtype, "kind", "") == "b":
        return item.ndim
    if isinstance(item, (list, tuple)):
        index = as_index(item)
        return (<Tensor>index).rank if (<Tensor>index).dt == PT_BOOL else -1
    return -1


cdef int remaining(tuple items) except -1:
    """The number of dims taken by the items behind the Ellipsis."""
    cdef int n = 0, masks
    cdef bint behind = False
    for item in items:
        if item is Ellipsis:
            behind = True
        elif behind and item is not None and not isinstance(item, bool):
            masks = mask_rank(item)
            n += masks if masks >= 0 else 1
    return n


cdef Tensor as_index(object item):
    cdef Tensor t
    if isinstance(item, Tensor):
        t = <Tensor>item
    elif isinstance(item, (list, tuple, range)) and len(item) == 0:
        from ptcore._exchange.convert import tensor
        t = tensor([], dtype="int64", device="cpu")
    elif isinstance(item, (list, tuple, range)) or hasattr(item, "__array__") or hasattr(
            item, "__index__"):
        from ptcore._exchange.convert import as_tensor
        if hasattr(item, "__index__") and not hasattr(item, "__array__"):
            item = int(PyNumber_Index(item))
        t = as_tensor(item, device="cpu")
    else:
        raise IndexTypeError(f"index: only ints, slices (`:`), None, Ellipsis, tensors, ndarrays and "
                             f"lists are valid indices, got {type(item).__name__}")
    if CATEGORY[t.dt] > 1:
        raise IndexError(f"index: tensors used as indices must be integer or bool, got "
                         f"{dtype_of(t.dt).name}")
    if t.dt == PT_UINT8 and t is item:          # a NumPy array holds positions, as in NumPy
        warn("index: uint8 is taken for a mask, as PyTorch's comparisons once gave it; use bool")
        t = t.to("bool")
    return t


cdef list positions(Tensor mask):
    """The coordinates of a mask's true elements, one int64 vector for each dim."""
    from ptcore._ops.functions import nonzero
    cdef Tensor found = <Tensor>nonzero(mask)
    return [select_at(found, 1, i, 0) for i in range(mask.rank)]


cdef tuple gather_plan(Tensor x, list advanced):
    """(index tensors broadcast to one shape, the dims they index, shape of the result)."""
    cdef list tensors = [], dims = []
    cdef int i, first
    cdef bint adjacent = True
    cdef tuple shape = None
    from ptcore._ops.table.shapes import broadcast_shapes
    try:
        shape = broadcast_shapes("index", *[tuple(t.shape) for _, t in advanced])
    except ShapeError as e:
        raise IndexError(f"{e} for the index tensors (shape mismatch: indexing tensors could not be broadcast "
                         "together)") from None
    for dim, t in advanced:
        if (<Tensor>t).dt != PT_INT64:
            t = t.to(dtype_of(PT_INT64))
        if (<Tensor>t).storage.device != x.storage.device and (<Tensor>t).storage.device == DEVICE_CPU:
            t = t.to(x.device)
        tensors.append(t.expand(shape))
        dims.append(dim)
    for i in range(1, len(dims)):
        if dims[i] != dims[i - 1] + 1:
            adjacent = False
    sizes = x.shape
    rest = [sizes[i] for i in range(x.rank) if i not in dims]
    first = dims[0] if adjacent else 0
    return tuple(tensors), tuple(dims), tuple(rest[:first]) + shape + tuple(rest[first:])


cdef int setitem(Tensor x, object key, object value) except -1:
    cdef Tensor r
    if asked_about(x, key) or is_foreign(value) or (
            isinstance(value, Tensor) and (<Tensor>value).flags & PT_SUBCLASS and not pt_tls.torch_function_off):
        from ptcore._overrides import ask
        ask(Tensor.__setitem__, (x, key, value), {})
        return 0
    if isinstance(key, Tensor) and write_by_mask(x, <Tensor>key, value):
        return 0
    r, advanced = basic(x, key)
    if advanced is None:
        if r is x:
            r = alias_view(x)
        if not isinstance(value, Tensor):
            value = as_value(r, value)
            if r.flags & PT_NON_CPU and hasattr(value, "__array__") and not isinstance(value, Tensor):
                from ptcore._exchange.convert import tensor
                value = tensor(value, device="cpu")
        if isinstance(value, Tensor) and (<Tensor>value).rank > r.rank:
            value = strip(<Tensor>value, r)
        if isinstance(value, Tensor):
            check_fits(<Tensor>value, r.rank, r.dims)
            value = beside(<Tensor>value, r)
    try:
        if advanced is None:
            write_to(r, value)
        else:
            write(r, advanced, value, False)
    except RuntimeError as e:
        from ptcore._ops.table.ids import called_as
        called_as(e, "index")
        raise
    return 0


cdef bint write_by_mask(Tensor x, Tensor mask, object value) except -1:
    """Writes a value that is equal at all places of a mask with unknown values; False, with nothing done, otherwise."""
    cdef int free = x.rank - mask.rank
    if (mask.dt != PT_BOOL or not mask.flags & PT_INTERPOSED or not mask.rank or free < 0 or has_values(mask)
            or tuple(mask.shape) != tuple(x.shape)[:mask.rank]):
        return False
    if not isinstance(value, Tensor):
        value = as_value(x, value)
    if isinstance(value, Tensor):
        if (<Tensor>value).rank > free or (CATEGORY[(<Tensor>value).dt] == 3 and CATEGORY[x.dt] != 3):
            return False
        check_fits(<Tensor>value, free, x.dims + mask.rank)
        value = value.to(dtype_of(x.dt))
    elif not isinstance(value, (int, float, complex)):
        return False
    for _ in range(free):
        mask = mask.unsqueeze(-1)
    from ptcore._ops.functions import where
    x.copy_(where(mask, value, x))
    return True


cdef object as_value(Tensor like, object value):
    """A value that may be written to `like`: a number that fits its dtype, a tensor or an array."""
    from ptcore._exchange.convert import tensor
    if is_symbolic_number(value):
        return checked.symbolic(value)
    if isinstance(value, (int, float, complex)):
        if ITEMSIZE[like.dt] <= 2 and CATEGORY[like.dt] == 2 and not isinstance(value, complex):
            return tensor(value, dtype=dtype_of(like.dt), device="cpu")     # inf beyond the largest, as PyTorch's
        return fitting(value, like.dt, b"index")
    if isinstance(value, (list, tuple)):
        return tensor(value, dtype=dtype_of(like.dt), device="cpu")
    if not hasattr(value, "__array__"):
        raise TypeError(f"index: the value must be a number, a Tensor or an array, got "
                        f"{type(value).__name__}")
    return value


cdef int check_fits(Tensor value, int rank, const int64_t *sizes) except -1:
    """Raises if value does not broadcast to a shape."""
    cdef int i, shift = rank - value.rank
    cdef bint fits = shift >= 0
    for i in range(value.rank if fits else 0):
        fits = fits and (value.dims[i] == 1 or value.dims[i] == sizes[i + shift])
    if not fits:
        raise ShapeError(f"index: shape mismatch: a value of shape {list(shape_of(value))} does not broadcast to the "
                         f"shape {list(sizes_tuple(rank, sizes))} of the indexed elements")
    return 0


cdef Tensor strip(Tensor value, Tensor target):
    """value without leading dims of size 1 that the target does not have."""
    while value.rank > target.rank and value.dims[0] == 1:
        value = select_at(value, 0, 0, 0)
    return value


cdef tuple to_write(Tensor r, list advanced, object value, bint accumulate):
    """The arguments of ``index_write`` or ``index_accumulate``."""
    cdef Tensor v
    cdef int64_t[64] sizes
    cdef bint follows = not isinstance(value, Tensor) or (<Tensor>value).rank == 0
    indices, dims, shape = gather_plan(r, advanced)
    if not isinstance(value, Tensor):
        value = as_value(r, value)
        if not isinstance(value, Tensor):
            from ptcore._exchange.convert import tensor
            value = tensor(value, dtype=dtype_of(r.dt), device="cpu")
    v = <Tensor>value
    if v.dt != r.dt:
        if CATEGORY[v.dt] == 3 and CATEGORY[r.dt] != 3:
            raise RuntimeError(f"index_put: values must have dtype {dtype_of(r.dt).name}, got "
                               f"{dtype_of(v.dt).name}")
        v = v.to(dtype_of(r.dt))
    if follows and ((v.flags | r.flags) & (PT_NON_CPU | PT_INTERPOSED)) and v.device != r.device:
        v = v.to(r.device)
    if v.rank > len(shape):
        while v.rank > len(shape) and v.dims[0] == 1:
            v = select_at(v, 0, 0, 0)
    check_fits(v, read_sizes(hinted(shape), sizes, b"index", b"shape"), sizes)
    return r, v.expand(shape), indices, dims, accumulate


cdef int write(Tensor r, list advanced, object value, bint accumulate) except -1:
    cdef tuple given = to_write(r, advanced, value, accumulate)
    op = OP_INDEX_ACCUMULATE if accumulate else OP_INDEX_WRITE
    if not over_first(op, PySequence_Fast_ITEMS(given), 5):
        overwrite(r, <Tensor>call(op, given, None), b"index_put")
    return 0


cdef tuple index_tensors(str name, Tensor x, object indices):
    """The result of ``basic`` for index tensors; None if masks have no known positions, as on the meta device."""
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"{name}: indices must be a tuple of Tensors, got {type(indices).__name__}")
    for i in indices:
        if isinstance(i, Tensor) or i is None or isinstance(i, list) or hasattr(i, "__array__"):
            continue
        raise TypeError(f"{name}: indices must be Tensors or None, got {type(i).__name__}")
    key = tuple([slice(None) if i is None else i for i in indices])
    if key and x.storage.device == DEVICE_META and not x.flags & PT_INTERPOSED:
        return None
    # here a 0-d integer tensor is an index among the others: the kernel reads it
    r, advanced = basic(x, key, select=False)
    if advanced is None:
        raise IndexError(f"{name}: indices must have at least one Tensor, got {len(indices)} of None")
    return r, advanced


def put_over(Tensor input not None, indices, values, accumulate):
    """The body of ``index_put_``."""
    found = index_tensors("index_put_", input, indices)
    if found is not None:
        write(<Tensor>found[0], found[1], values, accumulate)
    return input


def put_copy(Tensor input not None, indices, values, accumulate):
    """The body of ``index_put``."""
    found = index_tensors("index_put", input, indices)
    if found is None:
        return call(OP_ROW_MAJOR, (input,), None) if input.flags & PT_NONCONTIGUOUS else input.clone()
    return call(OP_INDEX_ACCUMULATE if accumulate else OP_INDEX_WRITE,
                to_write(<Tensor>found[0], found[1], values, accumulate), None)


table.getitem = getitem
table.setitem = setitem
