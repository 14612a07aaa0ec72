"""Functions of other ops behind the rows of statistics.py: sets, counts in bins, slopes, coordinates."""
from builtins import range as builtin_range

from ptcore._dtype import as_dtype
from ptcore._errors import DTypeError, ShapeError, UnsupportedDTypeError
from ptcore._ops import _arguments, _results
from ptcore._ops._composite import _wrap
from ptcore._ops._composite_selection import searchsorted
from ptcore._ops._creation import full, linspace, ones_like, zeros
from ptcore._ops.functions import (
    amax,
    amin,
    cat,
    floor_divide,
    index_add,
    is_among,
    reshape,
    slice,
    sum,
    where,
)
from ptcore._tensor import Tensor

INT64 = as_dtype("int64")
INFINITY = float("inf")


def isin(elements, test_elements, assume_unique, invert):
    op = "isin"
    like = elements if isinstance(elements, Tensor) else test_elements
    if not isinstance(like, Tensor):
        _arguments.tensor(op, "elements", elements)
    pair = []
    for name, x in (("elements", elements), ("test_elements", test_elements)):
        if not isinstance(x, Tensor):
            value = _arguments.number(op, name, x)
            try:
                x = full((), value, device=like.device)
            except (RuntimeError, OverflowError) as e:
                raise type(e)(f"{op}: {e}") from None
        if x.dtype.kind not in "iuf":
            raise UnsupportedDTypeError(f"{op}: {name} must be integer or real floating-point, got {x.dtype.name}")
        pair.append(x)
    return is_among(*pair, invert)


def gradient(input, spacing, dim, edge_order):
    op = "gradient"
    if edge_order not in (1, 2):
        raise RuntimeError(f"{op}: edge_order must be 1 or 2, got {edge_order}")
    dims = list(range(input.ndim)) if dim is None else [
        _wrap(op, d, input.ndim) for d in _arguments.integers(op, "dim", dim)]
    if isinstance(spacing, (list, tuple)):
        if len(spacing) != len(dims):
            raise RuntimeError(f"{op}: spacing must have one entry for each of {len(dims)} dims, got {len(spacing)}")
    else:
        spacing = [spacing] * len(dims)
    for d in dims:
        if input.shape[d] <= edge_order:
            raise RuntimeError(f"{op}: each dim must have more than {edge_order} elements, got shape "
                               f"{list(input.shape)}")
    return tuple([_slopes(op, input, h, d, edge_order) for h, d in zip(spacing, dims)])


def _slopes(op, x, spacing, dim, edge_order):
    n = x.shape[dim]
    if isinstance(spacing, Tensor) and spacing.ndim:
        if tuple(spacing.shape) != (n,):
            raise ShapeError(f"{op}: coordinates of dim {dim} must have shape {[n]}, got {list(spacing.shape)}")
        gaps = reshape(spacing, [n if d == dim else 1 for d in range(x.ndim)])
        gaps = slice(gaps, dim, 1, n, 1) - slice(gaps, dim, 0, n - 1, 1)
    else:
        spacing = _arguments.number(op, "spacing", spacing)
        gaps = None

    def at(values, first, last):
        return slice(values, dim, first, last, 1)

    def gap(k):
        return spacing if gaps is None else at(gaps, k, k + 1)

    if gaps is None:
        middle = (at(x, 2, n) - at(x, 0, n - 2)) / (2 * spacing)
    else:
        before, behind = at(gaps, 0, n - 2), at(gaps, 1, n - 1)
        middle = ((at(x, 1, n - 1) - at(x, 0, n - 2)) * behind / before
                  + (at(x, 2, n) - at(x, 1, n - 1)) * before / behind) / (before + behind)
    first, last = (at(x, 1, 2) - at(x, 0, 1)) / gap(0), (at(x, n - 1, n) - at(x, n - 2, n - 1)) / gap(n - 2)
    if edge_order == 2:
        second, other = (at(x, 2, 3) - at(x, 1, 2)) / gap(1), (at(x, n - 2, n - 1) - at(x, n - 3, n - 2)) / gap(n - 3)
        first = first + (first - second) * gap(0) / (gap(0) + gap(1))
        last = last + (last - other) * gap(n - 2) / (gap(n - 2) + gap(n - 3))
    return cat([first, middle, last], dim)


def _edges(op, x, bins, low_high):
    """The edges of bins: those given, or that many between the extremes or the limits given."""
    if isinstance(bins, Tensor):
        if bins.ndim != 1:
            raise ShapeError(f"{op}: bins must be a number or a vector of edges, got shape {list(bins.shape)}")
        if bins.dtype is not x.dtype:
            raise DTypeError(f"{op}: bins must have input's dtype {x.dtype.name}, got {bins.dtype.name}")
        return bins
    bins = _arguments.integer(op, "bins", bins)
    if bins < 1:
        raise RuntimeError(f"{op}: bins must be positive, got {bins}")
    if low_high is None:
        low, high = (float(amin(x)), float(amax(x))) if x.numel() else (0.0, 1.0)
        if low == high:
            low, high = low - 0.5, high + 0.5
    else:
        low, high = low_high
    if not low < high or high - low == INFINITY:
        raise RuntimeError(f"{op}: range must be finite and rise, got {low} and {high}")
    return linspace(low, high, bins + 1, dtype=x.dtype, device=x.device)


def _counted(op, rows, bins, ranges, weight, density):
    """(counts, edges of each column) of rows of coordinates."""
    n, k = rows.shape
    edges = [_edges(op, rows[:, i], bins[i], ranges[i]) for i in range(k)]
    place, inside = zeros(n, dtype=INT64, device=rows.device), ones_like(rows[:, 0], dtype=as_dtype("bool"))
    for i, edge in enumerate(edges):
        x, m = rows[:, i].contiguous(), edge.numel() - 1
        if m < 1:
            raise RuntimeError(f"{op}: bins must have at least 2 edges, got {m + 1}")
        at = searchsorted(edge, x, False, True, None, None) - 1
        at = where(x == edge[m], m - 1, at)
        inside = inside & (x >= edge[0]) & (x <= edge[m])
        place = place * m + at
    shape = [e.numel() - 1 for e in edges]
    total = 1
    for m in shape:
        total *= m
    weights = ones_like(rows[:, 0]) if weight is None else reshape(weight, (-1,))
    counts = index_add(zeros(total, dtype=rows.dtype, device=rows.device), 0, place[inside], weights[inside])
    counts = reshape(counts, shape)
    if density:
        counts = counts / sum(counts)
        for i, edge in enumerate(edges):
            width = edge[1:] - edge[:-1]
            counts = counts / reshape(width, [-1 if d == i else 1 for d in range(k)])
    return counts, edges


def _weighted(op, input, weight, shape):
    if input.dtype.kind != "f" or input.dtype.itemsize == 2:
        raise UnsupportedDTypeError(f"{op}: input must be float32 or float64, got {input.dtype.name}")
    if weight is not None:
        if not isinstance(weight, Tensor):
            _arguments.tensor(op, "weight", weight)
        if tuple(weight.shape) != shape or weight.dtype is not input.dtype:
            raise ShapeError(f"{op}: weight must have shape {list(shape)} and dtype {input.dtype.name}, got "
                             f"{list(weight.shape)} and {weight.dtype.name}")
        return weight.detach()
    return None


def histogram(input, bins, range, weight, density):
    op = "histogram"
    weight = _weighted(op, input, weight, tuple(input.shape))
    if range is not None:
        range = _limits(op, range, 1)[0]
    counts, edges = _counted(op, reshape(input.detach(), (-1, 1)), [bins], [range], weight, density)
    return _results.histogram((counts, edges[0]))


def _limits(op, range, k):
    if not isinstance(range, (tuple, list)):
        raise TypeError(f"{op}: range must be a tuple of numbers, got {type(range).__name__}")
    numbers = [_arguments.real(op, "range", r) for r in range]
    if len(numbers) != 2 * k:
        raise RuntimeError(f"{op}: range must have {2 * k} numbers, got {len(numbers)}")
    return [(numbers[2 * i], numbers[2 * i + 1]) for i in builtin_range(k)]


def histogramdd(input, bins, range, weight, density):
    op = "histogramdd"
    if input.ndim < 2:
        raise ShapeError(f"{op}: input must have at least 2 dimensions, got shape {list(input.shape)}")
    k = input.shape[-1]
    weight = _weighted(op, input, weight, tuple(input.shape[:-1]))
    if not isinstance(bins, (tuple, list)):
        bins = [bins] * k
    if len(bins) != k:
        raise RuntimeError(f"{op}: bins must have one entry for each of {k} coordinates, got {len(bins)}")
    ranges = [None] * k if range is None else _limits(op, range, k)
    counts, edges = _counted(op, reshape(input.detach(), (-1, k)), bins, ranges, weight, density)
    return _results.histogramdd((counts, tuple(edges)))


def unravel_index(indices, shape):
    op = "unravel_index"
    if indices.dtype.kind not in "iu":
        raise TypeError(f"{op}: indices must be an integer tensor, got {indices.dtype.name}")
    sizes = _arguments.integers(op, "shape", shape)
    total = 1
    for n in sizes:
        if n < 0:
            raise ValueError(f"{op}: shape must not have negative sizes, got {sizes}")
        total *= n
    parts = []
    for n in sizes:
        total //= n if n else 1
        parts.append(floor_divide(indices, total) % n if total and n else indices)
    return tuple(parts)
