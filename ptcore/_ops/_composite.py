"""Functions of other ops, behind the composite rows. Compiled, and plain Python to read.

The ops called here record themselves, so nothing in this file knows of gradients.
"""
from ptcore._dtype import as_dtype
from ptcore._errors import DTypeError, OutOfRangeError, ShapeError
from ptcore._ops import _arguments, _results
from ptcore._ops._creation import full, ones_like, zeros
from ptcore._ops._einsum import einsum  # noqa: F401
from ptcore._ops._record import has_values
from ptcore._ops.functions import (
    _linalg_svd,
    abs,
    all,
    amax,
    amin,
    bmm,
    cat,
    clamp_between,
    clamp_between_,
    clamp_max,
    clamp_max_,
    clamp_min,
    clamp_min_,
    dot,
    expand,
    index_select,
    masked_fill,
    max_dim,
    maximum,
    min_dim,
    minimum,
    mm,
    mv,
    permute,
    prod_dims,
    reshape,
    root_of_variance,
    slice,
    sort,
    split_by_sizes,
    split_evenly,
    transpose,
    unsqueeze,
    var_dims,
    vector_norm,
    where,
)
from ptcore._ops.functions import scatter_add as scatter_add_to
from ptcore._state import interpreters, is_grad_enabled, no_grad
from ptcore._tensor import Tensor

INT64 = as_dtype("int64")


def _wrap(op, dim, ndim, name="dim"):
    if type(dim) is not int:
        dim = _arguments.integer(op, name, dim)
    n = ndim if ndim > 0 else 1
    if not -n <= dim < n:
        raise IndexError(f"{op}: {name} must be in [{-n}, {n - 1}], got {dim}")
    return dim % n


def _dims(op, dim, ndim):
    """Non-negative dims for an op of another name to reduce over (None and (): all)."""
    if dim is None:
        return None
    dims = tuple([_wrap(op, d, ndim) for d in _arguments.integers(op, "dim", dim)])
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"{op}: a dim appears twice in dim={dim!r}")
    return dims


def _divided(op, dim, input):
    """The wrapped dim of an op that takes a tensor apart, which needs one."""
    if input.ndim == 0:
        raise ShapeError(f"{op}: input must have at least one dimension, got shape []")
    return _wrap(op, dim, input.ndim)


def _fits(number, input):
    """Whether it is a number with a value in input's dtype, so that a result has that dtype."""
    kind = input.dtype.kind
    if type(number) is float:
        return kind == "f"
    if type(number) is not int:
        return False
    limit = 1 << 53 if kind == "f" else 1 << 8 * input.dtype.itemsize - 1
    return kind in "iuf" and (0 if kind == "u" else -limit) <= number < limit


def clamp_(input, min, max):
    """clamp in place where that is one pass, else None."""
    if max is None:
        return clamp_min_(input, min) if _fits(min, input) else None
    if min is None:
        return clamp_max_(input, max) if _fits(max, input) else None
    return clamp_between_(input, min, max) if _fits(min, input) and _fits(max, input) and min <= max else None


def clamp(input, min, max, out=None):
    if min is None and max is None:
        raise RuntimeError("clamp: at least one of min and max must be given")
    if max is None:
        return clamp_min(input, min, out=out)
    if _fits(min, input) and _fits(max, input) and min <= max:
        return clamp_between(input, min, max, out=out)
    return clamp_max(input if min is None else clamp_min(input, min), max, out=out)


def _extremum(op, input, dim, keepdim, elementwise, whole, along, result):
    if dim is None:
        return whole(input, None, keepdim)
    if isinstance(dim, Tensor):
        return elementwise(input, dim)
    if isinstance(dim, (tuple, list)):
        return whole(input, _dims(op, dim, input.ndim), keepdim)
    return _results.packed(result, along(input, _wrap(op, dim, input.ndim), keepdim))


def max(input, dim, keepdim):
    return _extremum("max", input, dim, keepdim, maximum, amax, max_dim, _results.max)


def min(input, dim, keepdim):
    return _extremum("min", input, dim, keepdim, minimum, amin, min_dim, _results.min)


def prod(input, dim, keepdim, dtype):
    return prod_dims(input, _dims("prod", dim, input.ndim), keepdim, dtype=dtype)


def _variance(op, input, dim, unbiased, keepdim, correction, dtype, ddof):
    if isinstance(dim, bool):           # var(unbiased)
        dim, unbiased = None, dim
    if ddof is not None:
        correction = _results.second_spelling(op, "correction", correction, "ddof", ddof)
    if correction is None:
        correction = 1.0 if unbiased is None or _arguments.flag(op, "unbiased", unbiased) else 0.0
    if dtype is not None:
        input = input.to(dtype)
    dims, correction = _dims(op, dim, input.ndim), _arguments.real(op, "correction", correction)
    if input.dtype.is_complex:
        return var_dims(input.real, dims, correction, keepdim) + var_dims(input.imag, dims, correction, keepdim)
    return var_dims(input, dims, correction, keepdim)


def var(input, dim, unbiased, keepdim, correction, dtype, ddof):
    return _variance("var", input, dim, unbiased, keepdim, correction, dtype, ddof)


def std(input, dim, unbiased, keepdim, correction, dtype, ddof):
    return root_of_variance(_variance("std", input, dim, unbiased, keepdim, correction, dtype, ddof))


def _matmul_error(x, y):
    return ShapeError(f"matmul: inner sizes must agree and batches broadcast, got shapes "
                      f"{list(x.shape)} and {list(y.shape)}")


def matmul(x, y, out=None):
    if x.ndim == 2 and y.ndim == 2:
        return mm(x, y, out=out)
    if x.ndim == 0 or y.ndim == 0:
        raise ShapeError(f"matmul: both arguments need at least one dimension, got shapes "
                         f"{list(x.shape)} and {list(y.shape)}")
    if x.ndim == 1 and y.ndim == 1:
        return dot(x, y, out=out)
    if x.ndim == 2 and y.ndim == 1:
        return mv(x, y, out=out)
    if x.ndim == 1:
        if y.ndim == 2:
            return mv(transpose(y, 0, 1), x)
        return reshape(matmul(unsqueeze(x, 0), y), y.shape[:-2] + y.shape[-1:])
    if y.ndim == 1:
        return reshape(mv(reshape(x, (-1, x.shape[-1])), y), x.shape[:-1]) if x.numel() else \
            matmul(x, unsqueeze(y, 1)).squeeze(-1)
    if x.shape[-1] != y.shape[-2]:
        raise _matmul_error(x, y)
    if y.ndim == 2 and x.numel():       # one matrix for all batches: one large product
        return reshape(mm(reshape(x, (-1, x.shape[-1])), y), x.shape[:-1] + y.shape[-1:])
    batch = _broadcast("matmul", x.shape[:-2], y.shape[:-2])
    n = 1
    for size in batch:
        n *= size
    x3 = reshape(expand(x, (*batch, *x.shape[-2:])), (n, *x.shape[-2:]))
    y3 = reshape(expand(y, (*batch, *y.shape[-2:])), (n, *y.shape[-2:]))
    return reshape(bmm(x3, y3), (*batch, x.shape[-2], y.shape[-1]))


def _broadcast(op, a, b):
    result = []
    for i in range(-builtin_max(len(a), len(b)), 0):
        m = a[i] if -i <= len(a) else 1
        n = b[i] if -i <= len(b) else 1
        if m != n and m != 1 and n != 1:
            raise ShapeError(f"{op}: batch shapes must broadcast, got {list(a)} and {list(b)}")
        result.append(n if m == 1 else m)
    return tuple(result)


def builtin_max(a, b):
    return a if a > b else b


def stack(tensors, dim, out=None):
    tensors = _arguments.tensors("stack", "tensors", tensors)
    if not tensors:
        raise ShapeError("stack: tensors must not be empty")
    for t in tensors:
        if t.shape != tensors[0].shape:
            raise ShapeError(f"stack: all tensors must have one shape, got "
                             f"{list(tensors[0].shape)} and {list(t.shape)}")
    dim = _wrap("stack", dim, tensors[0].ndim + 1)
    return cat([unsqueeze(t, dim) for t in tensors], dim, out=out)


def flatten(input, start_dim, end_dim):
    sizes = tuple(input.shape)
    ndim = len(sizes)
    if ndim == 0:
        return reshape(input, (1,))
    start = _wrap("flatten", start_dim, ndim, "start_dim")
    end = _wrap("flatten", end_dim, ndim, "end_dim")
    if start > end:
        raise RuntimeError(f"flatten: start_dim must not come after end_dim, got {start_dim} and "
                           f"{end_dim}")
    if start == end:
        return input
    n = 1
    for size in sizes[start:end + 1]:
        n *= size
    return reshape(input, (*sizes[:start], n, *sizes[end + 1:]))


def unflatten(input, dim, sizes):
    dim = _divided("unflatten", dim, input)
    sizes = _arguments.integers("unflatten", "sizes", sizes)
    known = 1
    for size in sizes:
        if size < -1:
            raise ShapeError(f"unflatten: sizes must be non-negative or one -1, got {sizes}")
        if size != -1:
            known *= size
    if sizes.count(-1) > 1 or (known == 0 and -1 in sizes) or (
            input.shape[dim] != known if -1 not in sizes else input.shape[dim] % known):
        raise ShapeError(f"unflatten: the product of sizes must be the size {input.shape[dim]} of dim {dim}, got "
                         f"sizes {sizes}")
    sizes = [input.shape[dim] // known if size == -1 else size for size in sizes]
    return reshape(input, (*input.shape[:dim], *sizes, *input.shape[dim + 1:]))


def movedim(input, source, destination):
    if type(source) is int and type(destination) is int:
        source = _wrap("movedim", source, input.ndim, "source")
        order = list(range(input.ndim))
        if order:
            order.insert(_wrap("movedim", destination, input.ndim, "destination"), order.pop(source))
        return permute(input, order)
    source = _arguments.integers("movedim", "source", source)
    destination = _arguments.integers("movedim", "destination", destination)
    if len(source) != len(destination):
        raise RuntimeError(f"movedim: source and destination must have one length, got {source} "
                           f"and {destination}")
    source = [_wrap("movedim", d, input.ndim, "source") for d in source]
    destination = [_wrap("movedim", d, input.ndim, "destination") for d in destination]
    if len(set(source)) < len(source) or len(set(destination)) < len(destination):
        raise RuntimeError(f"movedim: dims must not repeat, got {source} and {destination}")
    order = [d for d in range(input.ndim) if d not in source]
    for d, s in sorted(zip(destination, source)):
        order.insert(d, s)
    return permute(input, order)


def narrow(input, dim, start, length):
    dim = _divided("narrow", dim, input)
    start = _arguments.integer("narrow", "start", start)
    size = input.shape[dim]
    if not -size <= start <= size or length < 0 or (start % size if start < 0 else start) + length > size:
        raise OutOfRangeError(f"narrow: start {start} and length {length} exceed size {size} of dim "
                         f"{dim}")
    start = start + size if start < 0 else start
    return slice(input, dim, start, start + length, 1)


def split(tensor, split_size_or_sections, dim):
    dim = _divided("split", dim, tensor)
    size = tensor.shape[dim]
    sections = split_size_or_sections
    if not isinstance(sections, (tuple, list)):
        sections = _arguments.integer("split", "split_size_or_sections", sections)
        if sections < 0 or (sections == 0 and size):
            raise RuntimeError(f"split: split_size_or_sections must be positive, got {sections}")
        n = -(-size // sections) if sections else 1
        sections = [sections] * n
        if n and sections:
            sections[-1] = size - sum(sections[:-1])
        return split_evenly(tensor, sections or [0], dim)
    return split_by_sizes(tensor, sections, dim)


def chunk(input, chunks, dim):
    if chunks < 1:
        raise RuntimeError(f"chunk: chunks must be positive, got {chunks}")
    dim = _divided("chunk", dim, input)
    size = input.shape[dim]
    if size == 0:
        return split(input, [0] * chunks, dim)
    return split(input, -(-size // chunks), dim)


def argsort(input, dim, descending, stable):
    return sort(input, _wrap("argsort", dim, input.ndim), descending, stable=stable)[1]


# -- embedding ----------------------------------------------------------------------------------

def _rows(op, weight, indices, sparse):
    if sparse:
        raise NotImplementedError(f"{op}: sparse must be False, got True: gradients are dense")
    if weight.ndim != 2:
        raise ShapeError(f"{op}: weight must have 2 dimensions, got shape {list(weight.shape)}")
    if indices.dtype.kind not in "iu":
        raise DTypeError(f"{op}: indices must be an integer tensor, got {indices.dtype.name}")


def _padding(op, padding_idx, n):
    """padding_idx as a position, -1 for none."""
    if padding_idx is None:
        return -1
    padding_idx = _arguments.integer(op, "padding_idx", padding_idx)
    if not -n <= padding_idx < n:
        raise RuntimeError(f"{op}: padding_idx must be in [{-n}, {n - 1}], got {padding_idx}")
    return padding_idx % n


def embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse):
    _rows("embedding", weight, indices, sparse)
    if indices.dtype is not INT64:
        indices = indices.to(INT64)
    flat = reshape(indices, (-1,)) if indices.ndim != 1 else indices
    source = weight
    if scale_grad_by_freq and weight.requires_grad:
        ones = full(flat.shape, 1, dtype=weight.dtype, device=weight.device)
        none = zeros(weight.shape[0], dtype=weight.dtype, device=weight.device)
        count = scatter_add_to(none, 0, flat, ones)
        share = unsqueeze(1 / masked_fill(count, count == 0, 1), 1)
        source = weight.detach() + (weight - weight.detach()) * share
    rows = index_select(source, 0, flat)
    if padding_idx >= 0:                # the padding row is a constant
        rows = where(unsqueeze(flat == padding_idx, 1), rows.detach(), rows)
    return reshape(rows, (*indices.shape, weight.shape[1]))


def _renormed(op, weight, indices, max_norm, norm_type):
    """Shrinks in place the rows of weight that are used and longer than max_norm."""
    max_norm, norm_type = _arguments.real(op, "max_norm", max_norm), _arguments.real(op, "norm_type", norm_type)
    with no_grad():
        used = _unique(reshape(indices, (-1,)))
        rows = index_select(weight, 0, used)
        norms = vector_norm(rows, norm_type, 1, True)
        shrunk = where(norms > max_norm, rows * (max_norm / (norms + 1e-7)), rows)
        weight[used] = shrunk


def _unique(flat):
    from ptcore._ops.functions import sort
    values = sort(flat.to(INT64), 0)[0]
    if values.numel() < 2:
        return values
    new = cat([ones_like(values[:1]).bool(), values[1:] != values[:-1]], 0)
    return values[new]


def embedding_function(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse):
    _rows("embedding", weight, input, sparse)
    padding_idx = _padding("embedding", padding_idx, weight.shape[0])
    if max_norm is not None:
        _renormed("embedding", weight, input, max_norm, norm_type)
    return embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def isclose(input, other, rtol, atol, equal_nan):
    if input.dtype.kind == "b":
        return input == other
    close = abs(input - other) <= atol + rtol * abs(other)
    close = close & ((input - other).isfinite()) | (input == other)
    if equal_nan:
        close = close | ((input != input) & (other != other))
    return close


def allclose(input, other, rtol, atol, equal_nan):
    return bool(all(isclose(input, other, rtol, atol, equal_nan)))


def equal(input, other):
    return input.shape == other.shape and bool(all(input == other))


def view_dtype(x, dtype):
    """``x.view(dtype)``: the same bytes read as another dtype."""
    from ptcore._ops._methods import reinterpret
    return reinterpret(x, dtype)


def linalg_svd(A, full_matrices, driver):
    if driver is not None:
        raise RuntimeError(f"linalg_svd: driver must be None on {A.device.type}, got {driver!r}")
    return _results.packed(_results.linalg_svd, _linalg_svd(A, full_matrices, True))


def differentiated(x):
    """Whether a derivative of what is worked out of x may be asked for: it is recorded, or an interpreter's."""
    return (x.requires_grad and is_grad_enabled()) or not has_values(x) or bool(interpreters.stack)


def linalg_svdvals(A, driver):
    """The derivative needs the vectors; without one they are not worked out."""
    if driver is not None:
        raise RuntimeError(f"linalg_svdvals: driver must be None on {A.device.type}, got {driver!r}")
    return _linalg_svd(A, False, differentiated(A))[1]


def svd(input, some, compute_uv):
    if compute_uv:
        u, s, vh = _linalg_svd(input, not some, True)
        return _results.svd((u, s, vh.mH))
    s = linalg_svdvals(input, None)
    batch, m, n = input.shape[:-2], input.shape[-2], input.shape[-1]
    return _results.svd((zeros((*batch, m, m), dtype=input.dtype, device=input.device), s,
                         zeros((*batch, n, n), dtype=input.dtype, device=input.device)))
