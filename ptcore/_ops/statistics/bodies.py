"""Bodies: order statistics, counts, differences and integrals."""
from builtins import any as any_of
from builtins import range as builtin_range

from cython.cimports.ptcore._ops._common import wrap_dim

from ptcore._dtype import as_dtype, get_default_dtype, promote_types
from ptcore._errors import DTypeError, ShapeError, UnsupportedDTypeError
from ptcore._ops import checked, results
from ptcore._ops.creation.creation import full, linspace, ones_like, zeros_like
from ptcore._ops.functions import (
    add,
    all,
    amax,
    amin,
    binned,
    cat,
    clamp_max,
    clamp_min,
    clone,
    complex_pair,
    counted,
    cumsum,
    diagonal,
    floor,
    floor_divide,
    gather,
    is_among,
    isinf,
    isnan,
    logical_xor,
    masked_fill,
    mean,
    mm,
    mul,
    reshape,
    select,
    slice,
    sort,
    stack,
    sum,
    transpose,
    unsqueeze,
    where,
)
from ptcore._ops.history import ValueCheck, has_values
from ptcore._tensor import Tensor

INT64, FLOAT64 = as_dtype("int64"), as_dtype("float64")


def _observations(op, input):
    if input.ndim > 2:
        raise ShapeError(f"{op}: input must have at most 2 dimensions, got shape {list(input.shape)}")
    if input.dtype.kind == "b":
        raise DTypeError(f"{op}: input must be numbers, got bool")
    x = reshape(input, (1, -1)) if input.ndim < 2 else input
    return x if x.dtype.kind in "fc" else x.to(get_default_dtype())


@ValueCheck
def check_weights(weights, name):
    if bool((weights < 0).any()):
        raise RuntimeError(f"cov: {name} must not be negative, got {weights.tolist()}")


@ValueCheck
def check_quantiles(q, op):
    if not bool(all((q >= 0) & (q <= 1))):
        raise RuntimeError(f"{op}: q must be in [0, 1], got {q.tolist()}")


def cov(input, correction, fweights, aweights):
    x = _observations("cov", input)
    w = None
    for name, weights, kinds in (("fweights", fweights, "iu"), ("aweights", aweights, "f")):
        if weights is None:
            continue
        if not isinstance(weights, Tensor):
            checked.tensor("cov", name, weights)
        if weights.dtype.kind not in kinds or tuple(weights.shape) != (x.shape[1],):
            raise ShapeError(f"cov: {name} must be {'integers' if kinds == 'iu' else 'real'} of shape [{x.shape[1]}], "
                             f"got {weights.dtype.name} of shape {list(weights.shape)}")
        if weights.numel():
            check_weights(weights, name)
        w = weights if w is None else w * weights
    n = x.shape[1] if w is None else sum(w)
    if w is None:
        middle = mean(x, 1, True)
        factor = n - correction
    else:
        middle = unsqueeze(sum(x * w, 1) / n, 1)
        lost = correction * sum(w * aweights) / n if aweights is not None else correction
        factor = n - lost
    centred = x - middle
    weighed = centred if w is None else centred * w
    product = mm(weighed, transpose(centred, 0, 1).conj().to(weighed.dtype))
    factor = clamp_min(factor, 0) if isinstance(factor, Tensor) else factor * 1.0 if factor > 0 else 0.0
    product = product / factor
    return product if product.shape[0] != 1 else reshape(product, ())


def corrcoef(input):
    c = cov(_observations("corrcoef", input), 1, None, None)
    if not c.ndim:
        return c / c
    spread = diagonal(c).real.sqrt() if c.dtype.is_complex else diagonal(c).sqrt()
    c = c / unsqueeze(spread, 1) / unsqueeze(spread, 0)
    if c.dtype.is_complex:
        return complex_pair(_within_one(c.real), _within_one(c.imag))
    return _within_one(c)


def _within_one(x):
    return clamp_max(clamp_min(x, -1), 1)


def _quantile(op, input, q, dim, keepdim, interpolation, skip_nan):
    if input.dtype.name not in ("float32", "float64"):
        raise DTypeError(f"{op}: input must be float32 or float64, got {input.dtype.name}")
    ways = ("linear", "lower", "higher", "nearest", "midpoint")
    checked.word(op, "interpolation", interpolation, ways, RuntimeError)
    if not isinstance(q, Tensor):
        q = full((), checked.real(op, "q", q), dtype=input.dtype, device=input.device)
    if q.dtype is not input.dtype:
        raise DTypeError(f"{op}: q must have the dtype {input.dtype.name} of input, got {q.dtype.name}")
    if q.ndim > 1:
        raise ShapeError(f"{op}: q must be a number or a vector, got shape {list(q.shape)}")
    if q.numel():
        check_quantiles(q, op)
    if not input.numel():
        raise ShapeError(f"{op}: input must not be empty, got shape {list(input.shape)}")
    ndim, whole = input.ndim, dim is None
    if whole:
        x, dim, kept = reshape(input, (-1,)), 0, [1] * ndim
    else:
        dim = wrap_dim(op, dim, ndim)
        x = input if ndim else reshape(input, (1,))
        kept = [1 if d == dim else n for d, n in enumerate(input.shape)]
    x = transpose(x, dim, -1)
    n = x.shape[-1]
    values = sort(x, -1)[0]
    missing = sum(isnan(x), -1, True)
    count = clamp_min(n - missing, 1) if skip_nan else ones_like(missing) * n
    places = FLOAT64 if n > 16_000_000 else input.dtype     # float32 counts to 2**24; PyTorch takes no more than 16e6
    where_ = reshape(q, (-1,)).to(places) * (count - 1).to(places)      # (..., number of q)
    share = where_ - floor(where_.detach())                 # the share of a linear interpolation has q's gradient
    where_ = where_.detach()
    low = floor(where_)
    if interpolation == "nearest":
        low, share = where_.round(), None
    elif interpolation == "higher":
        low, share = where_.ceil(), None
    elif interpolation == "lower":
        share = None
    elif interpolation == "midpoint":
        share = (share > 0) * 0.5
    low = low.to(INT64)
    found = gather(values, -1, low)
    if share is not None:
        share = share.to(input.dtype)
        high = gather(values, -1, clamp_max(low + 1, n - 1))
        step = masked_fill(high - found, (share == 0) | (high == found) & isinf(found), 0)
        found = where(share < 0.5, found + share * step, high - (1 - share) * step)      # as lerp, but correct for inf
    gone = missing == n if skip_nan else missing > 0
    found = masked_fill(found, gone, float("nan"))
    # (the other dims, q) to (q, the dims as they were)
    found = transpose(unsqueeze(found, 0), 0, -1)           # (q, ..., 1): the last dim is at the place of dim
    found = transpose(found, dim + 1, -1)
    shape = kept if keepdim else [] if whole else [n for d, n in enumerate(kept) if d != dim]
    return reshape(found, [*([q.numel()] if q.ndim else []), *shape])


def quantile(input, q, dim, keepdim, interpolation):
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


def nanquantile(input, q, dim, keepdim, interpolation):
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)


# -- counts ---------------------------------------------------------------------------------------
def bincount(input, weights, minlength):
    if input.ndim != 1 or input.dtype.kind not in "iu":
        raise UnsupportedDTypeError(f"bincount: input must be a vector of non-negative integers, got "
                                    f"{input.dtype.name} of shape {list(input.shape)}")
    if minlength < 0:
        raise RuntimeError(f"bincount: minlength must not be negative, got {minlength}")
    n = minlength
    if input.numel():
        if int(amin(input)) < 0:
            raise RuntimeError(f"bincount: input must be a vector of non-negative integers, got {int(amin(input))}")
        n = builtin_max(n, int(amax(input)) + 1)
    if weights is not None:
        if not isinstance(weights, Tensor):
            checked.tensor("bincount", "weights", weights)
        if weights.shape != input.shape:
            raise ShapeError(f"bincount: weights must have input's shape {list(input.shape)}, got "
                             f"{list(weights.shape)}")
        weights = weights.detach()
        if weights.dtype.name != "float32":
            weights = weights.to(as_dtype("float64"))
    return counted(input, weights, n)


def builtin_max(a, b):
    return a if a > b else b


def histc(input, bins, min, max):
    if input.dtype.kind != "f":
        raise DTypeError(f"histc: input must be real floating-point, got {input.dtype.name}")
    if bins < 1:
        raise RuntimeError(f"histc: bins must be positive, got {bins}")
    x = reshape(input.detach(), (-1,))
    low, high = checked.real("histc", "min", min), checked.real("histc", "max", max)
    if low == high and x.numel() and not x.is_meta:
        if not has_values(x):           # as below, but without reading the values
            low, high = amin(x), amax(x)
            limits = where(low == high, stack([low - 1, high + 1]), stack([low, high]))
            return binned(unsqueeze(x, 1), limits, None, (bins,), "computed")
        low, high = float(amin(x)), float(amax(x))
    if low == high:
        low, high = low - 1, high + 1
    if not low < high or high - low == float("inf"):
        raise RuntimeError(f"histc: min must be below max and both finite, got {low} and {high}")
    limits = linspace(low, high, 2, dtype=x.dtype, device=x.device)
    return binned(unsqueeze(x, 1), limits, None, (bins,), "computed")


# -- differences and integrals ------------------------------------------------------------------------
def diff(input, n, dim, prepend, append):
    if not input.ndim:
        raise ShapeError("diff: input must have at least one dimension, got shape []")
    if n < 0:
        raise RuntimeError(f"diff: n must not be negative, got {n}")
    dim = wrap_dim("diff", dim, input.ndim)
    parts = []
    for name, t in (("prepend", prepend), (None, input), ("append", append)):
        if t is None:
            continue
        if not isinstance(t, Tensor):
            checked.tensor("diff", name, t)
        if t.ndim != input.ndim or [k for d, k in enumerate(t.shape) if d != dim] != [
                k for d, k in enumerate(input.shape) if d != dim]:
            raise ShapeError(f"diff: {name} must have input's shape {list(input.shape)} apart from dim {dim}, got "
                             f"{list(t.shape)}")
        parts.append(t)
    if n == 0:                          # prepend and append are ignored, as in NumPy
        return clone(input)
    x = cat(parts, dim) if len(parts) > 1 else input
    for _ in range(n):
        k = x.shape[dim]
        if k < 1:
            break
        later, earlier = slice(x, dim, 1, k, 1), slice(x, dim, 0, k - 1, 1)
        x = logical_xor(later, earlier) if x.dtype.kind == "b" else later - earlier
    return clone(x) if x is input else x        # x is input if input was empty along dim


def _widths(op, y, x, dx, dim):
    """The step sizes along dim, as factors for lines of y: a number or a tensor."""
    if x is None:
        return dx
    if not isinstance(x, Tensor):
        checked.tensor(op, "x", x)
    if x.ndim == 1:
        if x.numel() != y.shape[dim]:
            raise ShapeError(f"{op}: x must have the size {y.shape[dim]} of dim {dim}, got shape {list(x.shape)}")
        x = reshape(x, [-1 if d == dim else 1 for d in range(y.ndim)])
    elif x.ndim < y.ndim:
        x = reshape(x, [1] * (y.ndim - x.ndim) + list(x.shape))
    if not x.ndim or x.ndim > y.ndim or any_of(n not in (1, m) for n, m in zip(x.shape, y.shape)):
        raise ShapeError(f"{op}: x must be a vector or broadcast to y's shape {list(y.shape)}, got {list(x.shape)}")
    k = x.shape[dim]
    return slice(x, dim, 1, k, 1) - slice(x, dim, 0, k - 1, 1)


def _areas(op, y, x, dx, dim):
    if not y.ndim:
        raise ShapeError(f"{op}: y must have at least one dimension, got shape []")
    if y.dtype.kind == "b":
        raise DTypeError(f"{op}: y must be numbers, got bool")
    dim = wrap_dim(op, dim, y.ndim)
    n = y.shape[dim]
    if n == 0:
        return zeros_like(y), dim
    step = _widths(op, y, x, 1.0 if dx is None else dx, dim)
    return mul(add(slice(y, dim, 1, n, 1), slice(y, dim, 0, n - 1, 1)), step) / 2.0, dim


def trapezoid(y, x, dx, dim):
    if x is None and y.ndim and y.dtype.kind != "b" and not isinstance(dx, Tensor):
        dim = wrap_dim("trapezoid", dim, y.ndim)
        if y.shape[dim]:                # equal widths: the sum of all lines minus half of the first and the last
            ends = select(y, dim, 0) + select(y, dim, -1)
            return mul(sum(y, dim) - ends * 0.5, 1.0 if dx is None else dx)
    areas, dim = _areas("trapezoid", y, x, dx, dim)
    return sum(areas, dim)


def cumulative_trapezoid(y, x, dx, dim):
    areas, dim = _areas("cumulative_trapezoid", y, x, dx, dim)
    return cumsum(areas, dim)


INFINITY = float("inf")


def isin(elements, test_elements, assume_unique, invert):
    op = "isin"
    like = elements if isinstance(elements, Tensor) else test_elements
    if not isinstance(like, Tensor):
        checked.tensor(op, "elements", elements)
    pair = []
    for name, x in (("elements", elements), ("test_elements", test_elements)):
        if not isinstance(x, Tensor):
            value = checked.number(op, name, x)
            try:
                # A float is rounded as a comparison with a tensor of floats rounds it.
                dtype = like.dtype if type(value) is float and like.dtype.kind == "f" else None
                x = full((), value, dtype=dtype, device=like.device)
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
        wrap_dim(op, d, input.ndim) for d in checked.integers(op, "dim", dim)]
    for d in dims:
        if dims.count(d) > 1:
            raise RuntimeError(f"{op}: dim must not repeat, got {dim}")
    spacing = 1 if spacing is None else spacing
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
        if x.dtype.kind not in "biu":                   # differences of floats are rounded
            x = x.to(promote_types(x.dtype, gaps.dtype))
    else:
        spacing = checked.number(op, "spacing", spacing)
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
    """The edges of bins: the given ones, or ``bins`` bins between the extremes or the given limits."""
    if isinstance(bins, Tensor):
        if bins.ndim != 1:
            raise ShapeError(f"{op}: bins must be a number or a vector of edges, got shape {list(bins.shape)}")
        if bins.dtype is not x.dtype:
            raise DTypeError(f"{op}: bins must have input's dtype {x.dtype.name}, got {bins.dtype.name}")
        return bins
    bins = checked.integer(op, "bins", bins)
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
    """(counts, edges of each column) for rows of coordinates."""
    k = rows.shape[1]
    edges = [_edges(op, rows[:, i], bins[i], ranges[i]) for i in range(k)]
    shape = [edge.numel() - 1 for edge in edges]
    for m in shape:
        if m < 1:
            raise RuntimeError(f"{op}: bins must have at least 2 edges, got {m + 1}")
    given = any_of(isinstance(b, Tensor) for b in bins)
    counts = binned(rows, edges[0] if k == 1 else cat(edges), None if weight is None else reshape(weight, (-1,)), shape,
                    "searched" if given else "even")
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
            checked.tensor(op, "weight", weight)
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
    return results.histogram((counts, edges[0]))


def _limits(op, range, k):
    if not isinstance(range, (tuple, list)):
        raise TypeError(f"{op}: range must be a tuple of numbers, got {type(range).__name__}")
    numbers = [checked.real(op, "range", r) for r in range]
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
    return results.histogramdd((counts, tuple(edges)))


def unravel_index(indices, shape):
    op = "unravel_index"
    if indices.dtype.kind not in "iu":
        raise TypeError(f"{op}: expected 'indices' to be integer dtype, got {indices.dtype.name}")
    indices, sizes = indices.to(INT64), checked.integers(op, "shape", shape)
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
