"""Views: tensors that share their base's memory.

Every view keeps its base (a tensor that is not a view itself) and the storage version that
its grad_fn belongs to, so that a write through the base or through another view is noticed (see
doc/source/dev/views_and_inplace.rst for the rules).
"""
import builtins as _builtins

from cpython.object cimport PyObject
from cpython.sequence cimport PySequence_Fast_ITEMS
from libc.string cimport memcpy

from ptcore._types cimport *
from ptcore._dtype cimport CATEGORY, COMPLEX_OF, ITEMSIZE, REAL_OF, dtype_of
from ptcore._node cimport Node, new_node, take_place
from ptcore._shape cimport (any_symbolic, count, fill_strides, hinted, infer_size, max_offset, min_offset, read_index,
                            read_sizes, sizes_tuple,
                            view_strides, wrap_dim)
from ptcore._subclass cimport lend, shows_memory
from ptcore._tensor cimport *
from ptcore._ops import checked
from ptcore._ops.call.offer cimport PT_VARIANT_PLAIN, is_of_top, offer
from ptcore._ops.call.run cimport call_with as call
from ptcore._ops.history cimport *
from ptcore._ops.table.ids cimport *
from ptcore._ops.writing cimport *
from ptcore._ops.table.ids import op_id

cdef int OP_VIEW = op_id("view"), OP_EXPAND = op_id("expand")
cdef int OP_SELECT = op_id("select"), OP_SLICE = op_id("slice")
cdef int OP_UNSQUEEZE = op_id("unsqueeze")
cdef int OP_REAL = op_id("real"), OP_IMAG = op_id("imag")
cdef int OP_ROW_MAJOR = op_id("row_major")
cdef int OP_AS_STRIDED = op_id("as_strided_of")
cdef int OP_VIEW_AS_REAL = op_id("view_as_real")
cdef int OP_VIEW_AS_COMPLEX = op_id("view_as_complex")


cdef Tensor enter(int op, object x):
    """Checks the input."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{info(op).name.decode()}: input must be a Tensor, got "
                        f"{type(x).__name__}")
    return <Tensor>x


cdef inline bint recorded(Tensor x) noexcept:
    """Whether a view of x may get a node, so that the parameters of its rule are needed."""
    return x.flags & (PT_REQUIRES_GRAD | PT_VIEW) != 0 and pt_tls.grad_enabled


cdef inline int put_on_base(Tensor x, Tensor r) except -1:
    """Makes the window r of x a view of x, or of x's base."""
    track(r)
    r.base = x.base if x.flags & PT_VIEW else x
    r.flags |= PT_VIEW | x.flags & PT_STANDARD
    r.attr_version = version_of(r)
    if x.flags & PT_VIEW:
        r.flags |= x.flags & (PT_NO_GRAD_VIEW | PT_MULTI_VIEW)
    if not pt_tls.grad_enabled:
        r.flags |= PT_NO_GRAD_VIEW
    return 0


cdef inline Node node_of_views(int op, Tensor x, object params):
    """The node of a view op on x, or None if x has no history."""
    cdef Node n
    if not pt_tls.grad_enabled or not x.flags & (PT_REQUIRES_GRAD | PT_VIEW) or not needs_grad(x):
        return None
    n = new_node(op, 1)
    link(n, 0, x)
    n.params = params
    if info(op).nsaved:                 # a view's rule needs at most the input's metadata
        n.s0 = meta_of(x)
    return n


cdef Tensor finish_view(int op, Tensor x, Tensor r, object params):
    """Gives the window r of x its base and, if x has history, its node."""
    cdef Node n
    put_on_base(x, r)
    n = node_of_views(op, x, params)
    if n is not None:
        set_node(r, n, 0)
    return r


cdef tuple finish_views(int op, Tensor x, list parts, tuple params, bint writable):
    """``finish_view`` for all windows of one call: they share a node with an output for each, so that backward combines
    their gradients once. A recorded write to such a window is refused unless the windows are ``writable``."""
    cdef Node n
    cdef Tensor r
    cdef int i
    for i in range(len(parts)):
        r = <Tensor>parts[i]
        put_on_base(x, r)
        if pt_tls.grad_enabled and not writable:
            r.flags |= PT_MULTI_VIEW
    n = node_of_views(op, x, params)
    if n is not None:
        n.nout = <int>len(parts)
        for i in range(len(parts)):
            set_node(<Tensor>parts[i], n, i)
    return tuple(parts)


cdef object _reinterpret = None      # the function for a view as another dtype


def set_reinterpret(f):
    """Sets the function for views as another dtype, which methods.pyx defines."""
    global _reinterpret
    _reinterpret = f


cdef object view(int op, object input, object shape):
    cdef Tensor x
    cdef int64_t[64] sizes, strides
    cdef int ndim
    x = enter(op, input)
    if not isinstance(shape, (tuple, list, int)):
        return _reinterpret(x, shape)
    ndim = read_sizes(shape, sizes, b"view", b"shape")
    infer_size(ndim, sizes, x.count, b"view")
    if not x.flags & PT_NONCONTIGUOUS:
        fill_strides(ndim, sizes, strides)
    elif not view_strides(x.rank, x.dims, x.dims + x.rank, ndim, sizes, strides):
        from ptcore._errors import ShapeError
        raise ShapeError(f"view: shape {list(sizes_tuple(ndim, sizes))} is not compatible with "
                         f"the input's shape {list(shape_of(x))} and strides "
                         f"{list(x.stride())}; use reshape")
    return window(op, x, ndim, sizes, strides, x.offset, (sizes_tuple(ndim, sizes),) if recorded(x) else None)


cdef Tensor window(int op, Tensor x, int ndim, const int64_t *sizes, const int64_t *strides,
                   int64_t offset, object params):
    cdef Tensor r = shell(ndim)
    memcpy(r.dims, sizes, ndim * sizeof(int64_t))
    memcpy(r.dims + ndim, strides, ndim * sizeof(int64_t))
    share_from(r, x, offset)
    return finish_view(op, x, r, params)


cdef object reshape(int op, object input, object shape):
    cdef Tensor x
    cdef int64_t[64] sizes, strides
    cdef int ndim, copied = 0
    x = enter(op, input)
    ndim = read_sizes(shape, sizes, b"reshape", b"shape")
    infer_size(ndim, sizes, x.count, b"reshape")
    if not x.flags & PT_NONCONTIGUOUS:
        fill_strides(ndim, sizes, strides)
    elif not view_strides(x.rank, x.dims, x.dims + x.rank, ndim, sizes, strides):
        x = <Tensor>call(OP_ROW_MAJOR, (x,), None)
        fill_strides(ndim, sizes, strides)
        copied = 1
    x = window(OP_VIEW, x, ndim, sizes, strides, x.offset, (sizes_tuple(ndim, sizes),) if recorded(x) else None)
    if copied:                          # nobody else has the copy: the result is no view
        x.base = None
        x.flags &= ~<uint32_t>(PT_VIEW | PT_NO_GRAD_VIEW)
    return x


cdef object expand(int op, object input, object size):
    cdef Tensor x
    cdef int64_t[64] sizes, strides
    cdef int ndim, i, shift
    x = enter(op, input)
    ndim = read_sizes(size, sizes, b"expand", b"size")
    shift = ndim - x.rank
    if shift < 0:
        raise expand_error(x, ndim, sizes)
    for i in range(ndim - 1, -1, -1):
        if i < shift:
            if sizes[i] < 0:
                raise expand_error(x, ndim, sizes)
            # A new dim of one element has the stride of a dim before the next, as in PyTorch.
            strides[i] = sizes[i + 1] * strides[i + 1] if sizes[i] == 1 and x.rank else 0
        elif sizes[i] == -1 or sizes[i] == x.dims[i - shift]:
            sizes[i] = x.dims[i - shift]
            strides[i] = x.dims[x.rank + i - shift]
        elif x.dims[i - shift] == 1 and sizes[i] >= 0:
            strides[i] = 0
        else:
            raise expand_error(x, ndim, sizes)
    if count(ndim, sizes) < 0:
        raise expand_error(x, ndim, sizes)
    return window(op, x, ndim, sizes, strides, x.offset, (sizes_tuple(ndim, sizes),) if recorded(x) else None)


cdef object expand_error(Tensor x, int ndim, const int64_t *sizes):
    cdef int i
    from ptcore._errors import ShapeError
    text = "the number of sizes must be at least that of dims"
    for i in range(max(ndim - x.rank, 0), ndim):
        if x.dims[i - ndim + x.rank] not in (1, sizes[i]):
            text = (f"The expanded size of the tensor ({sizes[i]}) must match the existing size "
                    f"({x.dims[i - ndim + x.rank]}) at non-singleton dimension {i}")
    return ShapeError(f"expand: {text}. Target sizes: {list(sizes_tuple(ndim, sizes))}, got input of shape "
                      f"{list(shape_of(x))}")


cdef object transpose(int op, object input, object dim0, object dim1):
    cdef Tensor x, r
    cdef int a, b, n
    x = enter(op, input)
    a = wrap_dim(read_index(dim0, b"transpose", b"dim0"), x.rank, b"transpose", b"dim0")
    b = wrap_dim(read_index(dim1, b"transpose", b"dim1"), x.rank, b"transpose", b"dim1")
    n = x.rank
    r = shell(n)
    memcpy(r.dims, x.dims, 2 * n * sizeof(int64_t))
    if n:
        r.dims[a], r.dims[b] = x.dims[b], x.dims[a]
        r.dims[n + a], r.dims[n + b] = x.dims[n + b], x.dims[n + a]
    share_from(r, x, x.offset)
    return finish_view(op, x, r, (a, b) if recorded(x) else None)


cdef object t(int op, object input):
    cdef Tensor x, r
    x = enter(op, input)
    if x.rank > 2:
        raise RuntimeError(f"t: input must have at most 2 dimensions, got shape {list(shape_of(x))}")
    r = shell(x.rank)
    memcpy(r.dims, x.dims, 2 * x.rank * sizeof(int64_t))
    if x.rank == 2:
        r.dims[0], r.dims[1], r.dims[2], r.dims[3] = x.dims[1], x.dims[0], x.dims[3], x.dims[2]
    share_from(r, x, x.offset)
    return finish_view(op, x, r, ())


cdef object permute(int op, object input, object dims):
    cdef Tensor x
    cdef int64_t[64] order
    cdef int64_t[64] sizes
    cdef int64_t[64] strides
    cdef int n, i, d
    cdef uint64_t seen = 0
    x = enter(op, input)
    n = read_sizes(dims, order, b"permute", b"dims")
    if n != x.rank:
        from ptcore._errors import ShapeError
        raise ShapeError(f"permute: dims must name all {x.rank} dimensions, got "
                         f"{list(sizes_tuple(n, order))}")
    for i in range(n):
        d = wrap_dim(order[i], n, b"permute", b"dims")
        if seen & (<uint64_t>1 << d):
            raise RuntimeError(f"permute: dim {d} appears twice in {list(sizes_tuple(n, order))}")
        seen |= <uint64_t>1 << d
        sizes[i] = x.dims[d]
        strides[i] = x.dims[n + d]
        order[i] = d
    return window(op, x, n, sizes, strides, x.offset, (sizes_tuple(n, order),) if recorded(x) else None)


cdef object squeeze(int op, object input, object dim):
    cdef Tensor x
    cdef int64_t[64] sizes
    cdef int64_t[64] strides
    cdef int i, n = 0
    cdef uint64_t drop = 0, one
    x = enter(op, input)
    if dim is None:
        drop = 0xFFFFFFFFFFFFFFFF
    else:
        for d in (dim if isinstance(dim, (tuple, list)) else (dim,)):
            one = <uint64_t>1 << wrap_dim(read_index(d, b"squeeze", b"dim"), x.rank, b"squeeze", b"dim")
            if drop & one:
                raise RuntimeError(f"squeeze: dim must not repeat, got {dim}")
            drop |= one
    for i in range(x.rank):
        if x.dims[i] != 1 or not drop & (<uint64_t>1 << i):
            sizes[n] = x.dims[i]
            strides[n] = x.dims[x.rank + i]
            n += 1
    return window(op, x, n, sizes, strides, x.offset, (dim,))


cdef object unsqueeze(int op, object input, object dim):
    cdef Tensor x = enter(op, input)
    return unsqueeze_at(x, wrap_dim(read_index(dim, b"unsqueeze", b"dim"), x.rank + 1,
                                    b"unsqueeze", b"dim"))


cdef Tensor unsqueeze_at(Tensor x, int dim):
    cdef Tensor r
    cdef int i, n = x.rank
    if n == 64:
        raise ValueError("unsqueeze: input must have fewer than 64 dimensions, got 64")
    r = shell(n + 1)
    for i in range(n):
        r.dims[i + (i >= dim)] = x.dims[i]
        r.dims[n + 1 + i + (i >= dim)] = x.dims[n + i]
    r.dims[dim] = 1
    r.dims[n + 1 + dim] = x.dims[dim] * x.dims[n + dim] if dim < n else 1
    share_from(r, x, x.offset)
    return finish_view(OP_UNSQUEEZE, x, r, (dim,))


cdef object select(int op, object input, object dim, object index):
    cdef Tensor x = enter(op, input)
    if x.rank == 0:
        raise IndexError("select: input must have at least one dimension, got shape []")
    cdef int d = wrap_dim(read_index(dim, b"select", b"dim"), x.rank, b"select", b"dim")
    cdef int64_t i = read_index(index, b"select", b"index")
    if not -x.dims[d] <= i < x.dims[d]:
        raise IndexError(f"select: index {i} is out of bounds for dimension {d} with size {x.dims[d]}")
    return select_at(x, d, i, 0)


cdef Tensor select_at(Tensor x, int dim, int64_t index, int gone):
    """x at an index of a dim. ``gone`` counts the dims of the user's tensor before it that x lacks."""
    cdef Tensor r
    cdef int64_t size = x.dims[dim]
    if index < -size or index >= size:
        raise IndexError(f"index {index} is out of bounds for dimension {dim + gone} with size {size}")
    if index < 0:
        index += size
    r = row_of(x, dim, index)
    return finish_view(OP_SELECT, x, r, (dim, index) if x.flags & (PT_REQUIRES_GRAD | PT_VIEW) else None)


cdef Tensor row_of(Tensor x, int dim, int64_t index):
    """The window at an index of a dim, without base and history."""
    cdef Tensor r
    cdef int i, j = 0, n = x.rank
    r = shell(n - 1)
    for i in range(n):
        if i != dim:
            r.dims[j] = x.dims[i]
            r.dims[n - 1 + j] = x.dims[n + i]
            j += 1
    share_from(r, x, x.offset + index * x.dims[n + dim] * ITEMSIZE[x.dt])
    return r


cdef object unbind(int op, object input, object dim):
    cdef Tensor x
    cdef int d
    cdef int64_t i
    x = enter(op, input)
    if x.rank == 0:
        raise IndexError("unbind: input must have at least one dimension, got shape []")
    d = wrap_dim(read_index(dim, b"unbind", b"dim"), x.rank, b"unbind", b"dim")
    return finish_views(op, x, [row_of(x, d, i) for i in range(x.dims[d])], (d,), False)


cdef object slice(int op, object input, object dim, object start, object end, object step):
    cdef Tensor x
    cdef int d
    cdef Py_ssize_t a, s, length
    x = enter(op, input)
    d = wrap_dim(read_index(dim, b"slice", b"dim"), x.rank, b"slice", b"dim")
    a, _, s, length = slice_numbers(start, end, step, x.dims[d])
    return slice_at(x, d, a, length, s, None)


def slice_numbers(start, end, step, int64_t size):
    """(start, end, step, length) of a Python slice over a dim of ``size``."""
    s = _builtins.slice(start, end, step)
    a, b, c = s.indices(size)
    return a, b, c, len(range(a, b, c))


cdef Tensor slice_at(Tensor x, int dim, int64_t start, int64_t length, int64_t step,
                     object params):
    """``length`` elements of dim, beginning at start, every step-th."""
    cdef Tensor r = stretch_of(x, dim, start, length, step)
    if x.flags & PT_REQUIRES_GRAD or x.flags & PT_VIEW:
        stop = start + length * step
        return finish_view(OP_SLICE, x, r, (dim, start, None if stop < 0 else stop, step))
    return finish_view(OP_SLICE, x, r, None)


cdef enum:
    LONGEST = 1 << 30       # the largest step that is stored in the stride of a dim with one element


cdef Tensor stretch_of(Tensor x, int dim, int64_t start, int64_t length, int64_t step):
    """The window of a slice, without base and history."""
    cdef Tensor r
    cdef int n = x.rank
    r = shell(n)
    memcpy(r.dims, x.dims, 2 * n * sizeof(int64_t))
    r.dims[dim] = length
    # With one element or none any stride is valid: steps beyond the dim are not multiplied.
    r.dims[n + dim] = x.dims[n + dim] * (step if length > 1 or -LONGEST < step < LONGEST else LONGEST)
    share_from(r, x, x.offset + (start * x.dims[n + dim] * ITEMSIZE[x.dt] if length else 0))
    return r


cdef object split_evenly(int op, object input, object sizes, object dim):
    return split_at(op, input, sizes, dim, False)


cdef object split_by_sizes(int op, object input, object sizes, object dim):
    return split_at(op, input, sizes, dim, False)


cdef object split_by_slices(int op, object input, object sizes, object dim):
    return split_at(op, input, sizes, dim, True)


cdef object split_at(int op, object input, object sizes, object dim, bint writable):
    """Consecutive parts of a dim, with the given sizes."""
    cdef Tensor x
    cdef int d
    cdef int64_t start = 0, n
    cdef list parts = []
    x = enter(op, input)
    sizes = tuple(checked.integers(info(op).name.decode(), "split_size_or_sections", sizes))
    d = wrap_dim(read_index(dim, b"split", b"dim"), x.rank, b"split", b"dim")
    if x.rank == 0 or _builtins.sum(sizes) != x.dims[d] or any_negative(sizes):
        from ptcore._errors import ShapeError
        raise ShapeError(f"{info(op).name.decode()}: sections must be non-negative and sum to the size of dim {d}, got "
                         f"{list(sizes)} for shape {list(shape_of(x))}")
    for n in sizes:
        parts.append(stretch_of(x, d, start, n, 1))
        start += n
    return finish_views(op, x, parts, (sizes, d), writable)


cdef bint any_negative(tuple numbers):
    for n in numbers:
        if n < 0:
            return True
    return False


cdef object as_strided_of(int op, object input, object size, object stride, object offset,
                          object input_stride, object input_offset):
    cdef Tensor x
    cdef int64_t[64] sizes
    cdef int64_t[64] strides
    cdef int n
    cdef int64_t first, item
    x = enter(op, input)
    n = read_sizes(size, sizes, b"as_strided", b"size")
    if read_sizes(stride, strides, b"as_strided", b"stride") != n:
        raise RuntimeError(f"as_strided: size and stride must have one length, got "
                           f"{size!r} and {stride!r}")
    first = read_index(offset, b"as_strided", b"storage_offset")
    item = ITEMSIZE[x.dt]
    if count(n, sizes) < 0:
        raise RuntimeError(f"as_strided: sizes must be non-negative, got {size!r}")
    if not count(n, sizes) and first > x.storage.nbytes // item:
        first = x.storage.nbytes // item        # an empty window reads nothing there
    if first < 0 or first > x.storage.nbytes // item or count(n, sizes) and (
            first + min_offset(n, sizes, strides) < 0
            or first + max_offset(n, sizes, strides) >= x.storage.nbytes // item):
        raise RuntimeError(f"as_strided: sizes {list(sizes_tuple(n, sizes))}, strides "
                           f"{list(sizes_tuple(n, strides))} and offset {first} are out of "
                           f"bounds for storage of {x.storage.nbytes} bytes")
    return window(OP_AS_STRIDED, x, n, sizes, strides, first * item,
                  (sizes_tuple(n, sizes), sizes_tuple(n, strides), first,
                   sizes_tuple(x.rank, x.dims + x.rank), x.offset // item))


cdef object unfold(int op, object input, object dimension, object size, object step):
    cdef Tensor x
    cdef int64_t[64] sizes
    cdef int64_t[64] strides
    cdef int dim, r
    cdef int64_t width, apart, n = 1
    x = enter(op, input)
    r = x.rank
    if r == 64:
        raise ValueError("unfold: input must have fewer than 64 dimensions, got 64")
    dim = wrap_dim(read_index(dimension, b"unfold", b"dimension"), r, b"unfold", b"dimension")
    width, apart = read_index(size, b"unfold", b"size"), read_index(step, b"unfold", b"step")
    memcpy(sizes, x.dims, r * sizeof(int64_t))
    memcpy(strides, x.dims + r, r * sizeof(int64_t))
    if r:
        n, strides[r] = sizes[dim], strides[dim]
    else:
        strides[0] = 1
    if not 0 <= width <= n:
        limit = "size is {0} but must be >= 0" if width < 0 else (
            f"maximum size for tensor at dimension {dim} is {n} but size is {{0}}")
        raise RuntimeError(f"unfold: {limit.format(size)}, got {size}")
    if apart < 1:
        raise RuntimeError(f"unfold: step is {step} but must be > 0, got {step}")
    if r:
        sizes[dim] = (n - width) // apart + 1
        # with a single window the stride is never used, and might overflow
        strides[dim] = strides[dim] * apart if sizes[dim] > 1 else 1
    sizes[r] = width
    return window(op, x, r + 1, sizes, strides, x.offset, (dim, width, apart))


cdef object diagonal(int op, object input, object offset, object dim1, object dim2):
    cdef Tensor x
    cdef int64_t[64] sizes
    cdef int64_t[64] strides
    cdef int a, b, i, n = 0
    cdef int64_t k, length, start = 0
    x = enter(op, input)
    k = read_index(offset, b"diagonal", b"offset")
    a = wrap_dim(read_index(dim1, b"diagonal", b"dim1"), x.rank, b"diagonal", b"dim1")
    b = wrap_dim(read_index(dim2, b"diagonal", b"dim2"), x.rank, b"diagonal", b"dim2")
    if a == b or x.rank < 2:
        raise RuntimeError(f"diagonal: dim1 and dim2 must differ, got {a} and {b}")
    if k >= 0:
        length = min(x.dims[a], x.dims[b] - k)
    else:
        length = min(x.dims[a] + k, x.dims[b])
    length = max(length, 0)
    if length:
        start = k * x.dims[x.rank + b] if k >= 0 else -k * x.dims[x.rank + a]
    for i in range(x.rank):
        if i != a and i != b:
            sizes[n] = x.dims[i]
            strides[n] = x.dims[x.rank + i]
            n += 1
    sizes[n] = length
    strides[n] = x.dims[x.rank + a] + x.dims[x.rank + b]
    return window(op, x, n + 1, sizes, strides, x.offset + start * ITEMSIZE[x.dt], (k, a, b))


cdef object real(int op, object input):
    return part(op, input, 0)


cdef object imag(int op, object input):
    return part(op, input, 1)


cdef object part(int op, object input, int which):
    """The real (0) or imaginary (1) parts of a complex tensor, as a window."""
    cdef Tensor x, r
    cdef int64_t[64] strides
    cdef int i, n
    x = enter(op, input)
    if CATEGORY[x.dt] < 3:
        if which == 0:
            return x
        from ptcore._errors import AbsentPartError
        raise AbsentPartError(f"imag: input must be complex, got {dtype_of(x.dt).name}")
    n = x.rank
    for i in range(n):
        strides[i] = 2 * x.dims[n + i]
    pt_storage_incref(x.storage)
    r = wrap_storage(x.storage, x.offset + which * ITEMSIZE[REAL_OF[x.dt]], REAL_OF[x.dt], n,
                     x.dims, strides)
    if x.flags & PT_DATA:
        share_counter(r, x)
    r.flags = (r.flags & ~<uint32_t>PT_INFERENCE) | (x.flags & PT_INFERENCE)
    return finish_view(op, x, r, ())


cdef object detach(int op, object input):
    """The same memory without history. It is no view, so that what is written to it needs no gradient."""
    return alias(enter(op, input))


cdef object view_as_real(int op, object input):
    cdef Tensor x
    cdef int64_t[64] sizes
    cdef int64_t[64] strides
    cdef int i, n
    x = enter(op, input)
    n = x.rank
    if CATEGORY[x.dt] < 3:
        raise RuntimeError(f"view_as_real: input must be complex, got {dtype_of(x.dt).name}")
    if n == 64:
        raise ValueError("view_as_real: input must have at most 63 dimensions, got 64")
    for i in range(n):
        sizes[i] = x.dims[i]
        strides[i] = 2 * x.dims[n + i]
    sizes[n] = 2
    strides[n] = 1
    return other_numbers(op, x, REAL_OF[x.dt], n + 1, sizes, strides)


cdef object view_as_complex(int op, object input):
    cdef Tensor x
    cdef int64_t[64] strides
    cdef bint fits
    x = enter(op, input)
    cdef int i, n = x.rank
    if x.dt != PT_FLOAT16 and x.dt != PT_FLOAT32 and x.dt != PT_FLOAT64:
        raise RuntimeError(f"view_as_complex: input must be float16, float32 or float64, got {dtype_of(x.dt).name}")
    if n == 0 or x.dims[n - 1] != 2:
        raise RuntimeError("view_as_complex: input: Tensor must have a last dimension of size 2, got "
                           f"{list(shape_of(x))}")
    fits = x.dims[2 * n - 1] == 1 and x.offset % (2 * ITEMSIZE[x.dt]) == 0
    for i in range(n - 1):
        fits = fits and x.dims[n + i] % 2 == 0
        strides[i] = x.dims[n + i] // 2
    if not fits:
        raise RuntimeError(f"view_as_complex: pairs must be neighbours in memory at even places, got strides "
                           f"{list(x.stride())}")
    return other_numbers(op, x, COMPLEX_OF[x.dt], n - 1, x.dims, strides)


cdef Tensor other_numbers(int op, Tensor x, int dt, int n, const int64_t *sizes, const int64_t *strides):
    """A window of x's memory read as another dtype, from its first element on."""
    cdef Tensor r
    pt_storage_incref(x.storage)
    r = wrap_storage(x.storage, x.offset, dt, n, sizes, strides)
    if x.flags & PT_DATA:
        share_counter(r, x)
    r.flags = (r.flags & ~<uint32_t>PT_INFERENCE) | (x.flags & PT_INFERENCE)
    return finish_view(op, x, r, ())


cdef int rebuild_part(Tensor t, Tensor base) except -1:
    """``rebuild_view`` of t if t shows parts of complex numbers, or complex numbers over pairs."""
    cdef bint enabled = pt_tls.grad_enabled
    cdef Tensor r
    sizes, steps = sizes_tuple(t.rank, t.dims), sizes_tuple(t.rank, t.dims + t.rank)
    pt_tls.grad_enabled = True
    try:
        if CATEGORY[base.dt] == 3 and REAL_OF[base.dt] == t.dt:
            r = as_strided_of(OP_AS_STRIDED, view_as_real(OP_VIEW_AS_REAL, base), sizes, steps,
                              t.offset // ITEMSIZE[t.dt], (), 0)
        elif CATEGORY[t.dt] == 3 and REAL_OF[t.dt] == base.dt:
            r = as_strided_of(OP_AS_STRIDED, base, (*sizes, 2), (*[2 * s for s in steps], 1),
                              t.offset // ITEMSIZE[base.dt], (), 0)
            r = view_as_complex(OP_VIEW_AS_COMPLEX, r)
        else:
            raise RuntimeError(f"a view of dtype {dtype_of(t.dt).name} cannot follow an in-place "
                               f"change of the history of its base, of {dtype_of(base.dt).name}")
    finally:
        pt_tls.grad_enabled = enabled
    if base.node is not None:
        take_place(r.node, base.node)
    set_node(t, new_node(OP_AS_STRIDED, 1) if r.node is None else r.node, r.out_nr)     # None: the base has no history
    return 0


cdef void rebuild_view(Tensor t) except *:
    """Renews the history of t after a write to its base: it becomes that of a window of the base."""
    cdef Tensor base = written_base(t)
    if t.dt != base.dt:
        rebuild_part(t, base)
        return
    cdef Node n = new_node(OP_AS_STRIDED, 1)
    cdef int64_t item = ITEMSIZE[t.dt]
    link(n, 0, base)
    if (t.flags | base.flags) & PT_INTERPOSED:      # their sizes may be symbolic
        n.params = (tuple(t.shape), t.stride(), t.storage_offset(), base.stride(), base.storage_offset())
    else:
        n.params = (sizes_tuple(t.rank, t.dims), sizes_tuple(t.rank, t.dims + t.rank), t.offset // item,
                    sizes_tuple(base.rank, base.dims + base.rank), base.offset // item)
    n.s0 = meta_of(base)
    if base.node is not None:
        take_place(n, base.node)
    set_node(t, n, 0)


set_view_rebuild(rebuild_view)


# -- by id ---------------------------------------------------------------------------------------

ctypedef object (*view1)(int, object)
ctypedef object (*view2)(int, object, object)
ctypedef object (*view3)(int, object, object, object)
ctypedef object (*view4)(int, object, object, object, object)
ctypedef object (*view5)(int, object, object, object, object, object)
ctypedef object (*view6)(int, object, object, object, object, object, object)

cdef (void *)[4096] BY_ID


cdef object run_view(int op, PyObject **args, int n):
    """Calls the function of a view row on n arguments in the order of the row."""
    cdef uint32_t key = (<Tensor>args[0]).flags if isinstance(<object>args[0], Tensor) else 0
    if (key | pt_tls.mode) & PT_SLOW & ~PT_MODE_AUTOCAST:
        result = offer(op, args, n, key | pt_tls.mode, None, PT_VARIANT_PLAIN)
        if result is not NotImplemented:
            # an interpreter may make an older view a stand-in, when its base is one
            if isinstance(<object>args[0], Tensor) and (<Tensor>args[0]).flags & PT_INTERPOSED and is_of_top(
                    <Tensor>args[0]):
                return view_taken(op, args, n, result)
            return result
    return made_view(op, args, n)


cdef object view_taken(int op, PyObject **args, int n, object result):
    """Turns an interpreter's result for a view of a stand-in into a view of the stand-in: with base and history."""
    cdef Tensor r, value
    cdef tuple given, hints
    if not shows_memory(result):
        return result
    given = tuple([<object>args[k] for k in range(n)])
    hints = tuple([hinted(x) for x in given])       # the memory of the view has known sizes
    made = made_view(op, PySequence_Fast_ITEMS(hints), n)
    if any_symbolic(shape_seen(<Tensor>given[0])) or any_changed(given, hints):
        keep_symbols(op, given, made, result)
    if made is <object>args[0]:         # .real of a real tensor is the tensor
        return made
    if isinstance(made, tuple):
        for r, value in zip(made, result):
            lend(r, value)
    else:
        lend(<Tensor>made, <Tensor>result)
    return made


cdef bint any_changed(tuple given, tuple hints) noexcept:
    cdef Py_ssize_t k
    for k in range(len(given)):
        if given[k] is not hints[k]:
            return True
    return False


cdef int keep_symbols(int op, tuple given, object made, object result) except -1:
    """Gives the node of a view with symbolic sizes the original arguments, which may be symbolic."""
    cdef Tensor r = <Tensor>(made[0] if isinstance(made, tuple) else made)
    cdef const char *letters = info(op).letters
    cdef tuple params
    if made is given[0] or r.node is None or r.node.op < 0 or not isinstance(r.node.params, tuple):
        return 0
    params = r.node.params
    if op == OP_VIEW or op == OP_EXPAND or r.node.op == OP_VIEW and op != r.node.op:
        r.node.params = (tuple(result.shape),)
    elif op == OP_AS_STRIDED:
        r.node.params = (*given[1:4], given[0].stride(), given[0].storage_offset())
    elif len(params) == len(given) - 1:
        r.node.params = tuple([params[k - 1] if is_of_dims(letters[k]) else given[k] for k in range(1, len(given))])
    return 0


cdef object made_view(int op, PyObject **args, int n):
    cdef void *f = BY_ID[op]
    if n == 1:
        return (<view1>f)(op, <object>args[0])
    if n == 2:
        return (<view2>f)(op, <object>args[0], <object>args[1])
    if n == 3:
        return (<view3>f)(op, <object>args[0], <object>args[1], <object>args[2])
    if n == 4:
        return (<view4>f)(op, <object>args[0], <object>args[1], <object>args[2], <object>args[3])
    if n == 5:
        return (<view5>f)(op, <object>args[0], <object>args[1], <object>args[2], <object>args[3], <object>args[4])
    return (<view6>f)(op, <object>args[0], <object>args[1], <object>args[2], <object>args[3], <object>args[4],
                      <object>args[5])


cdef int enter_view(str name, void *f) except -1:
    BY_ID[op_id(name)] = f
    return 0


enter_view("view", <void *>view)
enter_view("detach", <void *>detach)
enter_view("reshape", <void *>reshape)
enter_view("expand", <void *>expand)
enter_view("transpose", <void *>transpose)
enter_view("t", <void *>t)
enter_view("permute", <void *>permute)
enter_view("squeeze", <void *>squeeze)
enter_view("unsqueeze", <void *>unsqueeze)
enter_view("select", <void *>select)
enter_view("slice", <void *>slice)
enter_view("as_strided_of", <void *>as_strided_of)
enter_view("unbind", <void *>unbind)
enter_view("split_evenly", <void *>split_evenly)
enter_view("split_by_sizes", <void *>split_by_sizes)
enter_view("split_by_slices", <void *>split_by_slices)
enter_view("split_unsafely", <void *>split_by_slices)
enter_view("split_by_sizes_unsafely", <void *>split_by_slices)
enter_view("unfold", <void *>unfold)
enter_view("diagonal", <void *>diagonal)
enter_view("real", <void *>real)
enter_view("imag", <void *>imag)
enter_view("view_as_real", <void *>view_as_real)
enter_view("view_as_complex", <void *>view_as_complex)


cdef object property_of(int op, Tensor x):
    cdef (PyObject *)[1] args
    args[0] = <PyObject *>x
    return run_view(op, args, 1)


def _real(Tensor self not None):
    """The real parts, as a view; a real tensor itself."""
    return property_of(OP_REAL, self)


def _imag(Tensor self not None):
    """The imaginary parts of a complex tensor, as a view."""
    return property_of(OP_IMAG, self)


def _set_real(Tensor self, value):
    _real(self)[...] = value


def _set_imag(Tensor self, value):
    _imag(self)[...] = value


# What this module adds to Tensor.
Tensor.real = property(_real, _set_real)
Tensor.imag = property(_imag, _set_imag)
