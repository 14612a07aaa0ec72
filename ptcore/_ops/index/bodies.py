"""Bodies: reading and writing by positions and masks."""
from cython.cimports.ptcore._ops._common import wrap_dim

from ptcore._dtype import as_dtype, iinfo
from ptcore._errors import DTypeError, OutOfRangeError, ShapeError
from ptcore._interpret import differentiable
from ptcore._ops import checked as _arguments
from ptcore._ops.creation.creation import arange, empty_like, fill_, full, ones_like, zeros
from ptcore._ops.functions import (
    abs,
    cat,
    clamp_max,
    clamp_min,
    clone,
    count_nonzero,
    cumsum,
    div,
    expand,
    gather,
    index_filled,
    index_select,
    isnan,
    masked_fill,
    masked_write,
    nonzero_of,
    places_among,
    remainder,
    reshape,
    scatter_amax,
    scatter_amin,
    scatter_prod,
    scatter_src,
    stack,
    unsqueeze,
    vector_norm,
    where,
)
from ptcore._ops.functions import index_add as index_add_to
from ptcore._ops.functions import scatter_add as scatter_add_to
from ptcore._ops.functions import sum as sum_of
from ptcore._ops.history import ValueCheck, has_values
from ptcore._ops.index.indexing import put_copy as index_put  # noqa: F401  (bodies)
from ptcore._ops.index.indexing import put_over as index_put_  # noqa: F401
from ptcore._ops.table.shapes import broadcast_shapes, index_dtype, stat_dtype
from ptcore._state import no_grad
from ptcore._tensor import Tensor

INT64 = as_dtype("int64")


def _same_dtype(op, input, other, name):
    if input.dtype is not other.dtype:
        raise DTypeError(f"{op}: {name} must have the dtype {input.dtype.name} of input, got {other.dtype.name}")


def _number(op, name, value, input):
    """A number that can become an element of input; raises if it cannot."""
    value = _arguments.number(op, name, value)
    if isinstance(value, complex) and not input.dtype.is_complex:
        if input.dtype.kind == "b":
            return value != 0
        if value.imag:
            raise RuntimeError(f"{op}: {name} must be real for an input of dtype {input.dtype.name}, got {value}")
        value = value.real
    return value


def _dim_of(op, input, dim):
    return wrap_dim(op, dim, input.ndim)


# -- whole slices -------------------------------------------------------------------------------
def _vector(op, input, dim, index):
    """index as a vector of positions of dim, checked."""
    index_dtype(op, index)
    if index.ndim > 1:
        raise ShapeError(f"{op}: index must be a vector, got shape {list(index.shape)}")
    return reshape(index.to(INT64), (-1,)) if index.ndim != 1 or index.dtype is not INT64 else index


def _along(index, shape, dim):
    """A vector of positions along a dim, expanded to the other dims."""
    ones = [1] * len(shape)
    ones[dim] = -1
    return expand(reshape(index, ones), shape)


def _slices(op, input, dim, index, source):
    """(dim, index, source, shape) of an op that writes slices; 0-d tensors count as vectors."""
    dim = _dim_of(op, input, dim)
    index = _vector(op, input, dim, index)
    shape = list(input.shape) or [1]
    expected = [*shape[:dim], index.numel(), *shape[dim + 1:]]
    _same_dtype(op, input, source, "source")
    if (list(source.shape) or [1]) != expected:
        raise OutOfRangeError(f"{op}: source must have shape {expected}, got {list(source.shape)}")
    return dim, _along(index, expected, dim), reshape(source, expected), shape


def index_fill(input, dim, index, value):
    dim, index = _dim_of("index_fill", input, dim), _vector("index_fill", input, dim, index)
    # Among the ops that write slices only this one takes negative positions.
    from_end = index + (input.shape[dim] if input.ndim else 1)
    index = where((index < 0) & (from_end >= 0), from_end, index)
    if isinstance(value, Tensor):
        if value.ndim:
            raise ShapeError(f"index_fill: value must be a number or a 0-d tensor, got shape {list(value.shape)}")
        value = value.to(input.device, input.dtype)
    else:
        value = full((), _number("index_fill", "value", value, input), dtype=input.dtype, device=input.device)
    return index_filled(input, dim, index, value)


def index_reduce(input, dim, index, source, reduce, include_self):
    _arguments.word("index_reduce", "reduce", reduce, ("prod", "mean", "amax", "amin"), RuntimeError)
    dim, places, source, shape = _slices("index_reduce", input, dim, index, source)
    return reshape(_scattered("index_reduce", reshape(input, shape), dim, places, source, reduce, include_self),
                   input.shape)


# -- scatter ------------------------------------------------------------------------------------
_SCATTERS = {"sum": "sum", "add": "sum", "prod": "prod", "multiply": "prod", "mean": "mean", "amax": "amax",
             "amin": "amin"}


def _identity(kind, dtype):
    if kind in ("sum", "mean"):
        return 0
    if kind == "prod":
        return 1
    if dtype.kind == "b":
        return kind == "amin"
    if dtype.kind == "f":
        return float("-inf") if kind == "amax" else float("inf")
    return iinfo(dtype).min if kind == "amax" else iinfo(dtype).max


def _scattered(op, input, dim, index, src, reduce, include_self):
    kind = _SCATTERS.get(reduce) if isinstance(reduce, str) else None
    if kind is None:
        _arguments.word(op, "reduce", reduce, ("sum", "prod", "mean", "amax", "amin"), RuntimeError)
    if input.dtype.is_complex and kind in ("amax", "amin"):
        raise DTypeError(f"{op}: complex numbers have no order, reduce={reduce!r} needs one")
    start = input
    if not include_self:
        blank = full((), _identity(kind, input.dtype), dtype=input.dtype, device=input.device)
        start = scatter_src(input, dim, index, expand(blank, index.shape))
    if kind == "prod":
        return scatter_prod(start, dim, index, src)
    if kind == "amax":
        return scatter_amax(start, dim, index, src, include_self)
    if kind == "amin":
        return scatter_amin(start, dim, index, src, include_self)
    if kind == "sum":
        return scatter_add_to(start, dim, index, src)
    wide = start.dtype if start.dtype.kind != "f" else stat_dtype(start)        # the sum may be beyond a half type
    total = scatter_add_to(start.to(wide), dim, index, src.to(wide))
    ones = full(index.shape, 1, dtype=INT64, device=input.device)
    count = scatter_add_to(full(input.shape, int(include_self), dtype=INT64, device=input.device), dim, index, ones)
    count = masked_fill(count, count == 0, 1)
    if input.dtype.kind in "iub":
        return div(total, count, rounding_mode="floor").to(input.dtype)
    return (total / count.to(wide)).to(input.dtype)


def scatter_reduce(input, dim, index, src, reduce, include_self):
    dim = _dim_of("scatter_reduce", input, dim)
    index_dtype("scatter_reduce", index)
    _same_dtype("scatter_reduce", input, src, "src")
    return _scattered("scatter_reduce", input, dim, index, src, reduce, include_self)


def scatter(input, dim, index, src, reduce, value):
    if value is not None:
        if src is not None:
            raise TypeError("scatter: src and value are two names of one argument; both were given")
        src = value
    if src is None:
        raise TypeError("scatter: src or value must be given, got None")
    if not isinstance(index, Tensor):
        _arguments.tensor("scatter", "index", index)
    dim = _dim_of("scatter", input, dim)
    index_dtype("scatter", index)
    if not isinstance(src, Tensor):
        src = full(index.shape, _number("scatter", "src", src, input), dtype=input.dtype, device=input.device)
    _same_dtype("scatter", input, src, "src")
    if reduce is None:
        return scatter_src(input, dim, index, src)
    _arguments.word("scatter", "reduce", reduce, ("add", "multiply"), RuntimeError)
    return _scattered("scatter", input, dim, index, src, reduce, True)


# -- positions along a dim -----------------------------------------------------------------------------
def take_along_dim(input, indices, dim):
    index_dtype("take_along_dim", indices, "indices")
    if dim is None:
        return gather(reshape(input, (-1,)), 0, reshape(indices, (-1,)).to(INT64))
    if input.ndim != indices.ndim:
        raise ShapeError(f"take_along_dim: input and indices should have the same number of dimensions, got shapes "
                         f"{list(input.shape)} and {list(indices.shape)}")
    dim = _dim_of("take_along_dim", input, dim)
    if indices.dtype is not INT64:
        indices = indices.to(INT64)
    if input.shape[dim]:                    # beyond the ends positions wrap around, as in PyTorch
        indices = remainder(indices, input.shape[dim])
    if input.shape == indices.shape:
        return gather(input, dim, indices)
    a, b = list(input.shape), list(indices.shape)
    a[dim] = b[dim] = 1
    shape = list(broadcast_shapes("take_along_dim", a, b))
    wide, places = list(shape), list(shape)
    wide[dim], places[dim] = input.shape[dim], indices.shape[dim]
    return gather(expand(input, wide), dim, expand(indices, places))


# -- masks --------------------------------------------------------------------------------------
def masked_scatter(input, mask, source):
    if mask.dtype.kind != "b":
        raise DTypeError(f"masked_scatter: mask must be bool, got {mask.dtype.name}")
    _same_dtype("masked_scatter", input, source, "source")
    shape = broadcast_shapes("masked_scatter", input.shape, mask.shape)
    if input.shape != shape:
        input = expand(input, shape)
    return masked_write(input, mask if mask.shape == shape else expand(mask, shape), source)


def argwhere(input):
    return nonzero(input, False)


# -- embedding ----------------------------------------------------------------------------------
def _largest(op, blank, bag, rows):
    """The maximum of each bag, in each column; the gradient goes to the first element that equals it."""
    places = _along(bag, rows.shape, 0)
    out = _scattered(op, blank, 0, places, rows.detach(), "amax", False)
    if not (rows.requires_grad or differentiable()):
        return out
    if not rows.numel():                # with a history, as any other result
        return out + sum_of(rows)
    n = rows.shape[0]
    it = (rows.detach() == gather(out, 0, places)) | isnan(rows.detach())
    order = expand(unsqueeze(arange(n, device=rows.device), 1), rows.shape)
    none = full(blank.shape, n, dtype=INT64, device=rows.device)
    first = scatter_amin(none, 0, places, where(it, order, n))
    return where(first == n, blank, gather(rows, 0, clamp_max(first, n - 1)))


@ValueCheck
def check_offsets(offsets, n, op):
    if int(offsets[0]) != 0:
        raise ShapeError(f"{op}: offsets[0] has to be 0, got {int(offsets[0])}")
    if int(offsets[-1]) > n:
        raise ShapeError(f"{op}: offsets[-1] can not be greater than input's length {n}, got {int(offsets[-1])}")
    if bool((offsets[1:] < offsets[:-1]).any()):
        raise RuntimeError(f"{op}: offsets must not fall from one bag to the next, got {offsets.tolist()[:8]}")


def embedding_bag(input, weight, offsets, max_norm, norm_type, scale_grad_by_freq, mode, sparse, per_sample_weights,
                  include_last_offset, padding_idx):
    op = "embedding_bag"
    _arguments.word(op, "mode", mode, ("sum", "mean", "max"))
    for name, t in (("offsets", offsets), ("per_sample_weights", per_sample_weights)):
        if t is not None and not isinstance(t, Tensor):
            _arguments.tensor(op, name, t)
    _rows(op, weight, input, sparse)
    if per_sample_weights is not None:
        if mode != "sum":
            raise NotImplementedError(f"{op}: per_sample_weights needs mode='sum', got {mode!r}")
        if per_sample_weights.shape != input.shape:
            raise ShapeError(f"{op}: per_sample_weights must have input's shape {list(input.shape)}, got "
                             f"{list(per_sample_weights.shape)}")
        per_sample_weights = reshape(per_sample_weights, (-1,))
    outside = None                              # which elements of input are in no bag, where values cannot be read
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(f"{op}: offsets must be None for an input of 2 dimensions, got shape "
                             f"{list(offsets.shape)}")
        bags = input.shape[0]
        bag = reshape(expand(unsqueeze(arange(bags, device=input.device), 1), input.shape), (-1,))
    else:
        if input.ndim != 1:
            raise ValueError(f"{op}: input must have 1 or 2 dimensions, got shape {list(input.shape)}")
        if offsets is None or offsets.ndim != 1:
            given = "None" if offsets is None else f"shape {list(offsets.shape)}"
            raise ValueError(f"{op}: offsets must be a vector for an input of 1 dimension, got {given}")
        if offsets.dtype.name not in ("int32", "int64"):
            raise DTypeError(f"{op}: offsets must be int32 or int64, got {offsets.dtype.name}")
        offsets = offsets.to(INT64)
        bags = offsets.numel() - (1 if include_last_offset else 0)
        if bags < 0:
            raise ShapeError(f"{op}: include_last_offset needs at least one offset, got none")
        if offsets.numel():
            check_offsets(offsets, input.numel(), op)
        end = input.numel() if bags else 0      # what lies behind the end of the last bag is in none
        if include_last_offset and bags and has_values(offsets):
            end = int(offsets[-1])
        if end < input.numel():
            input = input[:end]
            per_sample_weights = None if per_sample_weights is None else per_sample_weights[:end]
        places = arange(input.numel(), device=input.device)
        bag = places_among(offsets[:bags], places, True) - 1
        if include_last_offset and bags and not has_values(offsets) and not offsets.is_meta:
            outside = places >= offsets[bags]
    flat = reshape(input, (-1,))
    padding_idx = _padding(op, padding_idx, weight.shape[0])
    if max_norm is not None:
        _renormed(op, weight, flat, max_norm, norm_type)
    if padding_idx >= 0 and has_values(flat):       # the result's shape does not depend on the rows that are left out
        kept = flat != padding_idx
        flat, bag = flat[kept], bag[kept]
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights[kept]
        outside = None if outside is None else outside[kept]
    elif padding_idx >= 0 and not flat.is_meta:     # samples leave out different rows
        padding = flat == padding_idx
        outside = padding if outside is None else outside | padding
    if outside is not None:                         # these get a bag of their own
        bag = where(outside, bags, bag)
        found = _bagged(op, weight, flat, bag, bags + 1, mode, scale_grad_by_freq, per_sample_weights)
        return found[:bags]
    return _bagged(op, weight, flat, bag, bags, mode, scale_grad_by_freq, per_sample_weights)


def _bagged(op, weight, flat, bag, bags, mode, scale_grad_by_freq, per_sample_weights):
    """The rows of weight that flat names, reduced over each bag."""
    rows = embedding(weight, flat, -1, scale_grad_by_freq, False)
    width = weight.shape[1]
    wide = stat_dtype(weight) if mode == "mean" else weight.dtype       # the sum may be beyond a half type
    blank = zeros(bags, width, dtype=wide, device=weight.device)
    if mode == "max":
        return _largest(op, blank, bag, rows)
    if per_sample_weights is not None:
        rows = rows * unsqueeze(per_sample_weights, 1)
    total = index_add_to(blank, 0, bag, rows.to(wide))
    if mode == "sum":
        return total
    count = unsqueeze(clamp_min(_counted(bag, bags), 1), 1)
    return (total / count.to(wide)).to(weight.dtype)


def _counted(places, n):
    """How often each of n places occurs, as integers: a half type cannot count far."""
    ones = full(places.shape, 1, dtype=INT64, device=places.device)
    return scatter_add_to(zeros(n, dtype=INT64, device=places.device), 0, places, ones)


def renorm(input, p, dim, maxnorm):
    """Scales slices along dim that are longer than maxnorm to that length."""
    if input.ndim < 2:
        raise ShapeError(f"renorm: input must have at least 2 dimensions, got shape {list(input.shape)}")
    p, maxnorm = _arguments.real("renorm", "p", p), _arguments.real("renorm", "maxnorm", maxnorm)
    if p <= 0 or maxnorm < 0:
        raise RuntimeError(f"renorm: p must be positive and maxnorm not negative, got {p} and {maxnorm}")
    dim = _dim_of("renorm", input, dim)
    rest = tuple([d for d in range(input.ndim) if d != dim])
    norms = vector_norm(abs(input) if input.dtype.is_complex else input, p, rest, True)
    return where(norms > maxnorm, input / (norms + 1e-7) * maxnorm, input)    # in this order: derivatives stay in range


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
    if scale_grad_by_freq and (weight.requires_grad or differentiable()):
        count = _counted(flat, weight.shape[0])
        share = unsqueeze(1 / clamp_min(count, 1).to(stat_dtype(weight)), 1).to(weight.dtype)
        value = weight.detach()             # what the rows are; only their gradients are scaled
        source = where(value.isfinite(), value + (weight - value) * share, weight * share)
    rows = index_select(source, 0, flat)
    if padding_idx >= 0:                # the padding row is a constant
        rows = where(unsqueeze(flat == padding_idx, 1), rows.detach(), rows)
    return reshape(rows, (*indices.shape, weight.shape[1]))


def _renormed(op, weight, indices, max_norm, norm_type):
    """Scales in place the rows of weight that are used and longer than max_norm to that length."""
    max_norm, norm_type = _arguments.real(op, "max_norm", max_norm), _arguments.real(op, "norm_type", norm_type)
    if indices.is_meta:
        return
    with no_grad():
        weight = weight.detach()                    # a constant in forward mode, too
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


# -- all elements -------------------------------------------------------------------------------
def nonzero(input, as_tuple, out=None):
    input = input.detach()
    count = int(count_nonzero(input))
    if not as_tuple:
        return nonzero_of(input, count, out=out)
    if out is not None:
        raise TypeError("nonzero: out and as_tuple=True cannot be given together")
    found = nonzero_of(input, count)
    return tuple([found[:, i] for i in range(input.ndim)]) if input.ndim else (found.new_zeros((found.shape[0],)),)


def _first_places(flat, size):
    """The positions of the first nonzero elements, then -1. As much is read as they need."""
    n, read = flat.shape[0], min(flat.shape[0], 4 * size + 1024)
    while True:
        head = flat[:read]
        count = int(count_nonzero(head))
        if count >= size or read == n:
            break
        read = min(n, 4 * read)
    places = reshape(nonzero_of(head, count), (-1,))
    if count > size:
        return clone(places[:size])
    if count < size:
        places = cat([places, full((size - count,), -1, dtype=INT64, device=flat.device)], 0)
    return places


def nonzero_static(input, size, fill_value):
    """Values that may not be read, or that a device would have to wait for: writes each nonzero element's place to the
    row of its rank; others go to a last row, which is cut off."""
    if size < 0:
        raise RuntimeError(f"nonzero_static: size must be non-negative, got {size}")
    shape = input.shape
    if not shape:
        return zeros(size, 0, dtype=INT64, device=input.device)
    flat = reshape(input.detach(), (-1,))
    if has_values(flat) and flat.is_cpu:
        places = _first_places(flat, size)
    else:
        found = flat != 0
        rank = cumsum(found, 0)
        rows = where(found & (rank <= size), rank - 1, size)
        places = scatter_src(full((size + 1,), -1, dtype=INT64, device=input.device), 0, rows,
                             arange(found.shape[0], device=input.device))[:size]
    if len(shape) == 1 and fill_value == -1:
        return unsqueeze(places, 1)
    coordinates, step = [], 1
    for n in shape[::-1]:
        coordinates.insert(0, places // step % n if n else places)
        step *= n or 1
    return masked_fill(stack(coordinates, 1), unsqueeze(places < 0, 1), fill_value)


def fill(input, value):
    same = clone(input) if input.requires_grad or differentiable() else empty_like(input)
    return fill_(same, value)
