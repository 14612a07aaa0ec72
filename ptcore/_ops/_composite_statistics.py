"""Functions of other ops behind the rows of statistics.py: moments, order statistics, counts, differences."""
from ptcore._dtype import as_dtype, finfo, get_default_dtype
from ptcore._errors import DTypeError, ShapeError, UnsupportedDTypeError
from ptcore._ops import _arguments, _results
from ptcore._ops._composite import _dims, _variance, _wrap
from ptcore._ops._composite_counts import gradient, histogram, histogramdd, isin, unravel_index  # noqa: F401
from ptcore._ops._creation import arange, full, ones_like, zeros, zeros_like
from ptcore._ops._record import has_values
from ptcore._ops.call.operands import result_type
from ptcore._ops.functions import (
    add,
    all,
    amax,
    amin,
    any,
    cat,
    clamp_max,
    clamp_min,
    clone,
    cummax,
    cumsum,
    diagonal,
    exp2,
    expand,
    floor,
    floor_divide,
    gather,
    index_add,
    isnan,
    log1p,
    logical_xor,
    masked_fill,
    mean,
    mm,
    mul,
    reshape,
    root_of_variance,
    scatter_src,
    slice,
    sort,
    sum,
    transpose,
    unsqueeze,
    where,
)
from ptcore._state import no_grad
from ptcore._tensor import Tensor

INT64 = as_dtype("int64")
INFINITY = float("inf")


# -- moments ------------------------------------------------------------------------------------

def std_mean(input, dim, unbiased, keepdim, correction):
    variance, middle = _with_mean("std_mean", input, dim, unbiased, keepdim, correction)
    return root_of_variance(variance), middle


def var_mean(input, dim, unbiased, keepdim, correction):
    return _with_mean("var_mean", input, dim, unbiased, keepdim, correction)


def _with_mean(op, input, dim, unbiased, keepdim, correction):
    if input.dtype.kind not in "fc":
        raise DTypeError(f"{op}: input must be floating-point, got {input.dtype.name}")
    variance = _variance(op, input, dim, unbiased, keepdim, correction, None, None)
    return variance, mean(input, None if isinstance(dim, bool) else _dims(op, dim, input.ndim), keepdim)


def nansum(input, dim, keepdim, dtype):
    if input.dtype.is_complex:
        raise DTypeError(f"nansum: input must be real, got {input.dtype.name}")
    dims = _dims("nansum", dim, input.ndim)
    if input.dtype.kind == "f":
        input = masked_fill(input, isnan(input), 0)
    return sum(input, dims, keepdim, dtype=dtype)


def nanmean(input, dim, keepdim, dtype):
    if input.dtype.kind != "f":
        raise DTypeError(f"nanmean: input must be real floating-point, got {input.dtype.name}")
    dims = _dims("nanmean", dim, input.ndim)
    missing = isnan(input)
    total = sum(masked_fill(input, missing, 0), dims, keepdim, dtype=dtype)
    return total / sum(~missing, dims, keepdim).to(total.dtype)


def _observations(op, input):
    if input.ndim > 2:
        raise ShapeError(f"{op}: input must have at most 2 dimensions, got shape {list(input.shape)}")
    if input.dtype.kind == "b":
        raise DTypeError(f"{op}: input must be numbers, got bool")
    x = reshape(input, (1, -1)) if input.ndim < 2 else input
    return x if x.dtype.kind in "fc" else x.to(get_default_dtype())


def cov(input, correction, fweights, aweights):
    x = _observations("cov", input)
    w = None
    for name, weights, kinds in (("fweights", fweights, "iu"), ("aweights", aweights, "f")):
        if weights is None:
            continue
        if not isinstance(weights, Tensor):
            _arguments.tensor("cov", name, weights)
        if weights.dtype.kind not in kinds or tuple(weights.shape) != (x.shape[1],):
            raise ShapeError(f"cov: {name} must be {'integers' if kinds == 'iu' else 'real'} of shape [{x.shape[1]}], "
                             f"got {weights.dtype.name} of shape {list(weights.shape)}")
        w = weights if w is None else w * weights
    n = x.shape[1] if w is None else sum(w)
    if w is None:
        middle = mean(x, 1, True)
        factor = n - correction
    else:
        w = w.to(x.dtype)
        middle = unsqueeze(sum(x * w, 1) / n, 1)
        lost = correction * sum(w * aweights.to(w.dtype)) / n if aweights is not None else correction
        factor = n - lost
    centred = x - middle
    product = mm(centred if w is None else centred * w, transpose(centred, 0, 1).conj())
    factor = clamp_min(factor, 0) if isinstance(factor, Tensor) else float(factor) if factor > 0 else 0.0
    product = product / factor
    return product if input.ndim == 2 else reshape(product, ())


def corrcoef(input):
    c = cov(_observations("corrcoef", input), 1, None, None)
    if not c.ndim:
        return c / c
    spread = diagonal(c).real.sqrt() if c.dtype.is_complex else diagonal(c).sqrt()
    c = c / unsqueeze(spread, 1) / unsqueeze(spread, 0)
    return c if c.dtype.is_complex else clamp_max(clamp_min(c, -1), 1) if input.ndim == 2 else reshape(c, ())


# -- order --------------------------------------------------------------------------------------

def aminmax(input, dim, keepdim):
    dims = None if dim is None else _wrap("aminmax", dim, input.ndim)
    return _results.aminmax((amin(input, dims, keepdim), amax(input, dims, keepdim)))


def msort(input):
    return sort(input, 0)[0] if input.ndim else clone(input)


def _real_only(op, input):
    if input.dtype.is_complex or input.dtype.kind == "b":
        raise DTypeError(f"{op}: input must be real numbers, got {input.dtype.name}")


def _at(values, indices, dim, keepdim, place):
    """Element ``place`` of each sorted line: a number, or one for each line with its dim kept."""
    if isinstance(place, int):
        place = full([1 if d == dim else n for d, n in enumerate(values.shape)], place, dtype=INT64,
                     device=values.device)
    values, indices = gather(values, dim, place), gather(indices, dim, place)
    if keepdim:
        return values, indices
    return values.squeeze(dim), indices.squeeze(dim)


def _lines(op, input, dim):
    """(dim, length of its lines); a 0-d tensor is one line of one element."""
    dim = _wrap(op, dim, input.ndim)
    n = input.shape[dim] if input.ndim else 1
    if n == 0:
        raise IndexError(f"{op}: dim {dim} has size 0, but a value for it is needed")
    return dim, n


def kthvalue(input, k, dim, keepdim):
    _real_only("kthvalue", input)
    dim, n = _lines("kthvalue", input, dim)
    if not 1 <= k <= n:
        raise RuntimeError(f"kthvalue: k must be in [1, {n}], got {k}")
    if not input.ndim:
        return _results.kthvalue((clone(input), zeros((), dtype=INT64, device=input.device)))
    values, indices = sort(input, dim)
    return _results.kthvalue(_at(values, indices, dim, keepdim, k - 1))


def _middle(op, result, input, dim, keepdim, skip_nan):
    _real_only(op, input)
    if dim is None:
        flat = reshape(input, (-1,))
        if not flat.numel():
            if input.dtype.kind != "f":
                raise ShapeError(f"{op}: input must not be empty, got shape {list(input.shape)}")
            return full((), float("nan"), dtype=input.dtype, device=input.device)
        return _middle(op, tuple, flat, 0, False, skip_nan)[0]
    dim, n = _lines(op, input, dim)
    if not input.ndim:
        return result((clone(input), zeros((), dtype=INT64, device=input.device)))
    values, indices = sort(input, dim)
    place = (n - 1) // 2
    if input.dtype.kind == "f":
        missing = sum(isnan(input), dim, True)
        if skip_nan:
            place = floor_divide(clamp_min(n - missing - 1, 0), 2)
        else:                           # NaN are the last of a sorted line: the first of them wins
            place = where(missing > 0, n - missing, place)
    return result(_at(values, indices, dim, keepdim, place))


def median(input, dim, keepdim):
    return _middle("median", _results.median, input, dim, keepdim, False)


def nanmedian(input, dim, keepdim):
    return _middle("nanmedian", _results.nanmedian, input, dim, keepdim, True)


def mode(input, dim, keepdim):
    """The longest run of each sorted line, the first of equally long ones; the index of its last element."""
    _real_only("mode", input) if input.dtype.kind != "b" else None
    dim, n = _lines("mode", input, dim)
    if not input.ndim:
        return _results.mode((clone(input), zeros((), dtype=INT64, device=input.device)))
    values, indices = sort(input, dim)
    with no_grad():
        v = values.detach()
        place = expand(reshape(arange(n, device=v.device), [n if d == dim else 1 for d in range(v.ndim)]), v.shape)
        first = slice(place, dim, 0, 1, 1) == 0
        if n > 1:
            new = slice(v, dim, 1, n, 1) != slice(v, dim, 0, n - 1, 1)
            first = cat([first, new], dim)
        start = cummax(where(first, place, 0), dim)[0]
        length = place - start
        # the largest length; of equal ones the first
        best = (length * n + (n - 1 - place)).argmax(dim, True)
    return _results.mode(_at(values, indices, dim, keepdim, best))


def _quantile(op, input, q, dim, keepdim, interpolation, skip_nan):
    if input.dtype.name not in ("float32", "float64"):
        raise DTypeError(f"{op}: input must be float32 or float64, got {input.dtype.name}")
    ways = ("linear", "lower", "higher", "nearest", "midpoint")
    _arguments.word(op, "interpolation", interpolation, ways, RuntimeError)
    if not isinstance(q, Tensor):
        q = full((), _arguments.real(op, "q", q), dtype=input.dtype, device=input.device)
    if q.dtype is not input.dtype:
        raise DTypeError(f"{op}: q must have the dtype {input.dtype.name} of input, got {q.dtype.name}")
    if q.ndim > 1:
        raise ShapeError(f"{op}: q must be a number or a vector, got shape {list(q.shape)}")
    if q.numel() and has_values(q) and not bool(all((q >= 0) & (q <= 1))):
        raise RuntimeError(f"{op}: q must be in [0, 1], got {q.tolist()}")
    if not input.numel():
        raise ShapeError(f"{op}: input must not be empty, got shape {list(input.shape)}")
    ndim, whole = input.ndim, dim is None
    if whole:
        x, dim, kept = reshape(input, (-1,)), 0, [1] * ndim
    else:
        dim = _wrap(op, dim, ndim)
        x = input if ndim else reshape(input, (1,))
        kept = [1 if d == dim else n for d, n in enumerate(input.shape)]
    x = transpose(x, dim, -1)
    n = x.shape[-1]
    values = sort(x, -1)[0]
    missing = sum(isnan(x), -1, True)
    count = clamp_min(n - missing, 1) if skip_nan else ones_like(missing) * n
    flat_q = reshape(q, (-1,)).detach()
    where_ = flat_q * (count - 1).to(input.dtype)           # (..., number of q)
    low = floor(where_)
    share = where_ - low
    if interpolation == "nearest":
        low, share = where_.round(), None
    elif interpolation == "higher":
        low, share = where_.ceil(), None
    elif interpolation == "lower":
        share = None
    elif interpolation == "midpoint":
        share = (share > 0).to(input.dtype) * 0.5
    low = low.to(INT64)
    found = gather(values, -1, low)
    if share is not None:
        high = gather(values, -1, clamp_max(low + 1, n - 1))
        found = where(share == 0, found, found + share * (high - found))
    gone = missing == n if skip_nan else missing > 0
    found = masked_fill(found, gone, float("nan"))
    # (the other dims, q) to (q, the dims as they were)
    found = transpose(unsqueeze(found, 0), 0, -1)           # (q, ..., 1), the last dim standing where dim was
    found = transpose(found, dim + 1, -1)
    shape = kept if keepdim else [] if whole else [n for d, n in enumerate(kept) if d != dim]
    return reshape(found, [*([q.numel()] if q.ndim else []), *shape])


def quantile(input, q, dim, keepdim, interpolation):
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


def nanquantile(input, q, dim, keepdim, interpolation):
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)


# -- values that occur -----------------------------------------------------------------------------

def _runs(values):
    """Which elements of a vector differ from the one before; the first does."""
    first = ones_like(values[:1], dtype=as_dtype("bool"))
    return cat([first, values[1:] != values[:-1]], 0) if values.numel() > 1 else first


def _counted_runs(new, n, device):
    starts = new.nonzero().reshape(-1)
    ends = cat([starts[1:], full((1,), n, dtype=INT64, device=device)], 0) if starts.numel() else starts
    return ends - starts


def unique(input, sorted, return_inverse, return_counts, dim):
    input = input.detach()
    if dim is not None:
        return _unique_slices("unique", input, dim, return_inverse, return_counts, True)
    flat = reshape(input, (-1,))
    values, order = sort(flat, 0)
    new = _runs(values)
    result = [values[new]]
    if return_inverse:
        number = cumsum(new, 0) - 1
        inverse = scatter_src(zeros_like(order), 0, order, number)
        result.append(reshape(inverse, input.shape))
    if return_counts:
        result.append(_counted_runs(new, flat.numel(), flat.device))
    return tuple(result) if len(result) > 1 else result[0]


def unique_consecutive(input, return_inverse, return_counts, dim):
    input = input.detach()
    if dim is not None:
        return _unique_slices("unique_consecutive", input, dim, return_inverse, return_counts, False)
    flat = reshape(input, (-1,))
    new = _runs(flat)
    result = [flat[new]]
    if return_inverse:
        result.append(reshape(cumsum(new, 0) - 1, input.shape))
    if return_counts:
        result.append(_counted_runs(new, flat.numel(), flat.device))
    return tuple(result) if len(result) > 1 else result[0]


def _unique_slices(op, input, dim, return_inverse, return_counts, ordered):
    dim = _wrap(op, dim, input.ndim)
    x = input if input.ndim else reshape(input, (1,))
    n = x.shape[dim]
    rows = transpose(x, 0, dim).reshape(n, -1) if x.numel() else zeros((n, 0), dtype=x.dtype)
    order = arange(n, device=x.device)
    if ordered:                         # stable sorts by each column, the last first
        for k in range(rows.shape[1] - 1, -1, -1):
            order = order[sort(rows[:, k][order], 0, stable=True)[1]]
        rows = rows[order]
    if n > 1:
        differ = any(rows[1:] != rows[:-1], 1) if rows.shape[1] else zeros(n - 1, dtype=as_dtype("bool"))
        new = cat([full((1,), True, device=x.device), differ], 0)
    else:
        new = full((n,), True, device=x.device)
    kept = order[new]
    result = [x.index_select(dim, kept)]
    if return_inverse:
        number = cumsum(new, 0) - 1
        result.append(scatter_src(zeros_like(order), 0, order, number))
    if return_counts:
        result.append(_counted_runs(new, n, x.device))
    return tuple(result) if len(result) > 1 else result[0]


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
    if weights is None:
        weights = ones_like(input, dtype=INT64)
    else:
        if not isinstance(weights, Tensor):
            _arguments.tensor("bincount", "weights", weights)
        if weights.shape != input.shape:
            raise ShapeError(f"bincount: weights must have input's shape {list(input.shape)}, got "
                             f"{list(weights.shape)}")
        weights = weights.detach()
        if weights.dtype.name != "float32":
            weights = weights.to(as_dtype("float64"))
    return index_add(zeros(n, dtype=weights.dtype, device=input.device), 0, input.to(INT64), weights)


def builtin_max(a, b):
    return a if a > b else b


def histc(input, bins, min, max):
    if input.dtype.kind != "f":
        raise DTypeError(f"histc: input must be real floating-point, got {input.dtype.name}")
    if bins < 1:
        raise RuntimeError(f"histc: bins must be positive, got {bins}")
    x = reshape(input.detach(), (-1,))
    low, high = _arguments.real("histc", "min", min), _arguments.real("histc", "max", max)
    if low == high and x.numel():
        low, high = float(amin(x)), float(amax(x))
    if low == high:
        low, high = low - 1, high + 1
    if not low < high or high - low == float("inf"):
        raise RuntimeError(f"histc: min must be below max and both finite, got {low} and {high}")
    inside = (x >= low) & (x <= high)
    place = clamp_max(floor((x[inside] - low) * bins / (high - low)).to(INT64), bins - 1)
    return index_add(zeros(bins, dtype=input.dtype, device=input.device), 0, place,
                     full(place.shape, 1, dtype=input.dtype, device=input.device))


# -- differences and integrals ------------------------------------------------------------------------

def diff(input, n, dim, prepend, append):
    if not input.ndim:
        raise ShapeError("diff: input must have at least one dimension, got shape []")
    if n < 0:
        raise RuntimeError(f"diff: n must not be negative, got {n}")
    dim = _wrap("diff", dim, input.ndim)
    parts = []
    for name, t in (("prepend", prepend), (None, input), ("append", append)):
        if t is None:
            continue
        if not isinstance(t, Tensor):
            _arguments.tensor("diff", name, t)
        if t.ndim != input.ndim or [k for d, k in enumerate(t.shape) if d != dim] != [
                k for d, k in enumerate(input.shape) if d != dim]:
            raise ShapeError(f"diff: {name} must have input's shape {list(input.shape)} apart from dim {dim}, got "
                             f"{list(t.shape)}")
        parts.append(t)
    x = cat(parts, dim) if len(parts) > 1 else input
    for _ in range(n):
        k = x.shape[dim]
        if k < 1:
            break
        later, earlier = slice(x, dim, 1, k, 1), slice(x, dim, 0, k - 1, 1)
        x = logical_xor(later, earlier) if x.dtype.kind == "b" else later - earlier
    return clone(x) if x is input else x


def _widths(op, y, x, dx, dim):
    """The steps along dim, to multiply lines of y with: a number or a tensor."""
    if x is None:
        return dx
    if not isinstance(x, Tensor):
        _arguments.tensor(op, "x", x)
    if x.ndim == 1 and y.ndim > 1:
        if x.numel() != y.shape[dim]:
            raise ShapeError(f"{op}: x must have the size {y.shape[dim]} of dim {dim}, got shape {list(x.shape)}")
        x = reshape(x, [-1 if d == dim else 1 for d in range(y.ndim)])
        place = dim
    else:
        if x.shape != y.shape:
            raise ShapeError(f"{op}: x must be a vector or have y's shape {list(y.shape)}, got {list(x.shape)}")
        place = dim
    k = x.shape[place]
    return slice(x, place, 1, k, 1) - slice(x, place, 0, k - 1, 1)


def _areas(op, y, x, dx, dim):
    if not y.ndim:
        raise ShapeError(f"{op}: y must have at least one dimension, got shape []")
    if y.dtype.kind == "b":
        raise DTypeError(f"{op}: y must be numbers, got bool")
    dim = _wrap(op, dim, y.ndim)
    n = y.shape[dim]
    if n == 0:
        return zeros_like(y), dim
    step = _widths(op, y, x, 1.0 if dx is None else dx, dim)
    return mul(add(slice(y, dim, 1, n, 1), slice(y, dim, 0, n - 1, 1)), step) / 2.0, dim


def trapezoid(y, x, dx, dim):
    areas, dim = _areas("trapezoid", y, x, dx, dim)
    return sum(areas, dim)


def cumulative_trapezoid(y, x, dx, dim):
    areas, dim = _areas("cumulative_trapezoid", y, x, dx, dim)
    return cumsum(areas, dim)


# -- numbers in place of others, exponents, powers --------------------------------------------------------

def nan_to_num(input, nan, posinf, neginf, out=None):
    if input.dtype.kind not in "f":
        if input.dtype.is_complex:
            from ptcore._ops._composite_shaping import complex_of
            return complex_of(nan_to_num(input.real, nan, posinf, neginf), nan_to_num(input.imag, nan, posinf, neginf))
        return clone(input)
    from ptcore._ops.functions import nan_replaced
    info = finfo(input.dtype)
    numbers = [_arguments.real("nan_to_num", name, value if value is not None else default)
               for name, value, default in (("nan", nan, 0.0), ("posinf", posinf, info.max),
                                            ("neginf", neginf, info.min))]
    return nan_replaced(input, *numbers, out=out)


def logit(input, eps):
    from ptcore._ops.functions import logit_of
    if input.dtype.kind in "iub":
        input = input.to(get_default_dtype())
    if eps is not None:
        eps = _arguments.real("logit", "eps", eps)
        input = clamp_max(clamp_min(input, eps), 1 - eps)
    return logit_of(input)


def polygamma_function(n, input):
    from ptcore._ops.functions import polygamma_of
    if n < 0:
        raise RuntimeError(f"polygamma: n must not be negative, got {n}")
    return polygamma_of(input, float(n))


def ldexp(input, other):
    if not isinstance(other, Tensor):
        other = _arguments.real("ldexp", "other", other)
        other = 1e5 if other > 1e5 else -1e5 if other < -1e5 else other         # beyond these it is inf or 0
        other = full((), other, dtype=get_default_dtype(), device=input.device)
    return mul(input, exp2(other)).to(input.dtype if input.dtype.kind in "fc" else get_default_dtype())


def frexp(input):
    from ptcore._ops.functions import frexp_exponent, frexp_mantissa
    if input.dtype.kind != "f":
        raise DTypeError(f"frexp: input must be real floating-point, got {input.dtype.name}")
    with no_grad():
        exponent = frexp_exponent(input.detach()).to(as_dtype("int32"))
    return _results.frexp((frexp_mantissa(input), exponent))


def float_power(input, exponent):
    for name, x in (("input", input), ("exponent", exponent)):
        if not isinstance(x, (Tensor, int, float, complex)):
            _arguments.tensor("float_power", name, x)
    if not isinstance(input, Tensor) and not isinstance(exponent, Tensor):
        _arguments.tensor("float_power", "input", input)
    complex_ = builtin_any([isinstance(x, complex) or (isinstance(x, Tensor) and x.dtype.is_complex)
                            for x in (input, exponent)])
    wide = as_dtype("complex128" if complex_ else "float64")
    a, b = [x.to(wide) if isinstance(x, Tensor) else x for x in (input, exponent)]
    if isinstance(a, Tensor):
        return a ** b
    return full((), complex(a) if complex_ else _arguments.real("float_power", "input", a), dtype=wide,
                device=b.device) ** b


def builtin_any(flags):
    for flag in flags:
        if flag:
            return True
    return False


def rsub(input, other, alpha):
    if input.dtype.kind == "b" or isinstance(other, bool) or (isinstance(other, Tensor) and other.dtype.kind == "b"):
        raise DTypeError("rsub: subtraction of bool tensors is not supported; use bitwise_xor or logical_xor")
    if not isinstance(other, Tensor):
        other = _arguments.number("rsub", "other", other)
    return other - (input if alpha == 1 else input * alpha)


def positive(input):
    if input.dtype.kind == "b":
        raise DTypeError("positive: input must be numbers, got bool")
    return input


def isreal(input):
    return input.imag == 0 if input.dtype.is_complex else ones_like(input, dtype=as_dtype("bool"))


# -- special functions --------------------------------------------------------------------------------

def _floats(op, input):
    if input.dtype.is_complex:
        raise DTypeError(f"{op}: input must be real, got {input.dtype.name}")
    return input if input.dtype.kind == "f" else input.to(get_default_dtype())


def mvlgamma(input, p):
    from ptcore._ops.functions import lgamma
    if p < 1:
        raise RuntimeError(f"mvlgamma: p must be positive, got {p}")
    input = _floats("mvlgamma", input)
    steps = arange(p, dtype=input.dtype, device=input.device) * -0.5
    total = sum(lgamma(unsqueeze(input, -1) + steps), -1) + p * (p - 1) * 0.28618247146235004
    return total.to(input.dtype)


def special_ndtr(input):
    from ptcore._ops.functions import erfc
    return erfc(_floats("special.ndtr", input) * -0.7071067811865476) * 0.5


def special_xlog1py(input, other):
    zero = (input == 0) & isnan(other).logical_not()
    result = where(zero, 0, input * log1p(where(zero, 0, other)))
    dtype = result_type(input, other)
    return result.to(dtype if dtype.kind in "fc" else get_default_dtype())
