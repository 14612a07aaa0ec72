"""Bodies: reductions over one, several or all dims."""
import cython
from cython.cimports.ptcore._ops._common import wrap_dim, wrap_dims

from ptcore._dtype import as_dtype
from ptcore._errors import DTypeError, OutOfRangeError, ShapeError, UnsupportedDTypeError
from ptcore._ops import checked, results
from ptcore._ops.creation.creation import zeros
from ptcore._ops.functions import (
    amax,
    amin,
    bitwise_xor,
    cat,
    cumsum,
    exp,
    hypot,
    isinf,
    log,
    logsumexp_of,
    max_dim,
    maximum,
    mean,
    min_dim,
    minimum,
    nansum,
    permute,
    prod_dims,
    reshape,
    segments,
    slice,
    std_dims,
    sum,
    var_dims,
    where,
)
from ptcore._ops.history import ValueCheck
from ptcore._tensor import Tensor


@cython.cfunc
def _extremum(op: str, input, dim, keepdim, elementwise, whole, along, result):
    if type(dim) is int:
        return results.packed(result, along(input, wrap_dim(op, dim, input.ndim), keepdim))
    if dim is None:
        return whole(input, None, keepdim)
    if isinstance(dim, Tensor):
        return elementwise(input, dim)
    if isinstance(dim, (tuple, list)):
        return whole(input, wrap_dims(op, dim, input.ndim), keepdim)
    return results.packed(result, along(input, wrap_dim(op, dim, input.ndim), keepdim))


def max(input, dim, keepdim):
    return _extremum("max", input, dim, keepdim, maximum, amax, max_dim, results.max)


def min(input, dim, keepdim):
    return _extremum("min", input, dim, keepdim, minimum, amin, min_dim, results.min)


def logsumexp(input, dim, keepdim):
    if not input.dtype.is_complex:
        return logsumexp_of(input, dim, keepdim)
    dims = wrap_dims("logsumexp", dim, input.ndim)
    if not input.numel():               # without elements there is no largest one
        return log(sum(exp(input), dims, keepdim))
    top = amax(input.real.detach(), dims, True)         # it is subtracted and added again: no gradient of its own
    top = where(isinf(top), 0, top)
    out = log(sum(exp(input - top), dims, keepdim))
    return out + (top if keepdim else reshape(top, out.shape))


def hash_tensor(input, dim, keepdim, mode):
    op = "hash_tensor"
    if mode != 0:
        raise RuntimeError(f"{op}: mode must be 0, got {mode}")
    if input.dtype.is_complex:
        raise UnsupportedDTypeError(f"{op}: input must be real, got {input.dtype.name}")
    dims = wrap_dims(op, dim, input.ndim)
    whole = not dims
    dims = range(input.ndim) if whole or input.ndim == 0 else dims
    if input.numel() == 0 and (whole or any([input.shape[d] == 0 for d in dims])):
        raise (ShapeError if whole else OutOfRangeError)(
            f"{op}: a dim that is reduced must not be empty, got shape {list(input.shape)}")
    kept = [d for d in range(input.ndim) if d not in dims]
    bits = input.detach().to(as_dtype("float64" if input.dtype.kind == "f" else "int64"))
    count = 1
    for d in dims:
        count *= input.shape[d]
    bits = reshape(permute(bits, [*kept, *dims]), [*[input.shape[d] for d in kept], count])
    bits = bits.contiguous().view(as_dtype("int64"))
    n = count
    while n > 1:                # multiply the upper half onto the lower one; an odd element is left over
        half = n // 2
        folded = bitwise_xor(slice(bits, -1, 0, half, 1), slice(bits, -1, half, 2 * half, 1))
        bits = cat([folded, slice(bits, -1, n - 1, n, 1)], -1) if n % 2 else folded
        n = half + n % 2
    return reshape(bits, [1 if d in dims else input.shape[d] for d in range(input.ndim)] if keepdim
                   else [input.shape[d] for d in kept]).view(as_dtype("uint64"))


def prod(input, dim, keepdim, dtype):
    return prod_dims(input, wrap_dims("prod", dim, input.ndim), keepdim, dtype=dtype)


def _variance(op, input, dim, unbiased, keepdim, correction, dtype, ddof, root):
    """The variance, or its root."""
    if isinstance(dim, bool):           # the call was var(unbiased)
        dim, unbiased = None, dim
    if ddof is not None:
        correction = results.second_spelling(op, "correction", correction, "ddof", ddof)
    if correction is None:
        correction = 1.0 if unbiased is None or checked.flag(op, "unbiased", unbiased) else 0.0
    if dtype is not None:
        input = input.to(dtype)
    dims, correction = wrap_dims(op, dim, input.ndim), checked.real(op, "correction", correction)
    of = std_dims if root else var_dims
    if not input.dtype.is_complex:
        return of(input, dims, correction, keepdim)
    real, imag = [of(part, dims, correction, keepdim) for part in (input.real, input.imag)]
    return hypot(real, imag) if root else real + imag


def var(input, dim, unbiased, keepdim, correction, dtype, ddof):
    return _variance("var", input, dim, unbiased, keepdim, correction, dtype, ddof, False)


def std(input, dim, unbiased, keepdim, correction, dtype, ddof):
    return _variance("std", input, dim, unbiased, keepdim, correction, dtype, ddof, True)


# -- moments ------------------------------------------------------------------------------------
def std_mean(input, dim, unbiased, keepdim, correction):
    return _with_mean("std_mean", input, dim, unbiased, keepdim, correction, True)


def var_mean(input, dim, unbiased, keepdim, correction):
    return _with_mean("var_mean", input, dim, unbiased, keepdim, correction, False)


def _with_mean(op, input, dim, unbiased, keepdim, correction, root):
    if input.dtype.kind not in "fc":
        raise DTypeError(f"{op}: input must be floating-point, got {input.dtype.name}")
    variance = _variance(op, input, dim, unbiased, keepdim, correction, None, None, root)
    return variance, mean(input, None if isinstance(dim, bool) else wrap_dims(op, dim, input.ndim), keepdim)


def nanmean(input, dim, keepdim, dtype):
    if input.dtype.kind != "f":
        raise DTypeError(f"nanmean: input must be real floating-point, got {input.dtype.name}")
    dims = wrap_dims("nanmean", dim, input.ndim)
    total = nansum(input, dims, keepdim, dtype=dtype)
    return total / sum(input == input, dims, keepdim).to(total.dtype)


# -- order --------------------------------------------------------------------------------------
def aminmax(input, dim, keepdim):
    dims: object = None if dim is None else wrap_dim("aminmax", dim, input.ndim)
    return results.aminmax((amin(input, dims, keepdim), amax(input, dims, keepdim)))


_START = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -float("inf"), "min": float("inf")}


@ValueCheck
def check_lengths(lengths, size, axis, op):
    """Lengths of one row or more, which must fill the size of an axis."""
    if bool((lengths < 0).any()):
        raise RuntimeError(f"{op}: lengths must not be negative, got {int(lengths.min())}")
    sums = lengths.sum(-1).reshape(-1).tolist()
    if any([total != size for total in sums]):
        raise RuntimeError(f"{op}: lengths must add up to {size}, the size of dim {axis}, got sums {sums}")


@ValueCheck
def check_ends(offsets, size, axis, op):
    """Offsets of pieces within the size of an axis."""
    if bool((offsets.diff() < 0).any()) or bool((offsets < 0).any()) or bool((offsets > size).any()):
        raise RuntimeError(f"{op}: offsets must rise from 0 to {size} at most, the size of dim {axis}")


def segment_reduce(data, reduce, lengths, indices, offsets, axis, unsafe, initial):
    op = "segment_reduce"
    if not isinstance(reduce, str) or reduce not in _START:
        raise RuntimeError(f"{op}: reduce must be one of {', '.join(_START)}, got {reduce!r}")
    if indices is not None:
        raise RuntimeError(f"{op}: indices are not taken, got {type(indices).__name__}")
    pieces = offsets if lengths is None else lengths
    if not isinstance(pieces, Tensor):
        raise (RuntimeError if pieces is None else TypeError)(
            f"{op}: lengths or offsets must be a Tensor, got {type(pieces).__name__}")
    if data.dtype.kind != "f":
        raise NotImplementedError(f"{op}: data must have a floating-point dtype, got {data.dtype.name}")
    if pieces.dtype.name not in ("int32", "int64"):
        raise NotImplementedError(f"{op}: lengths and offsets must have dtype int32 or int64, got {pieces.dtype.name}")
    axis = wrap_dim(op, axis, data.ndim, "axis")
    if not data.ndim:
        raise IndexError(f"{op}: data must have at least one dim, got shape []")
    if pieces.ndim != axis + 1 or pieces.shape[:-1] != data.shape[:axis]:
        raise RuntimeError(f"{op}: axis must be the last dim of lengths or offsets, whose other sizes are those of "
                           f"data in front of it: got axis {axis}, shapes {list(pieces.shape)} and {list(data.shape)}")
    pieces, size = pieces.to("int64"), data.shape[axis]
    if not unsafe:
        (check_ends if lengths is None else check_lengths)(pieces, size, axis, op)
    if lengths is not None:
        offsets = cat([zeros(*pieces.shape[:-1], 1, dtype=pieces.dtype, device=pieces.device), cumsum(pieces, -1)], -1)
    else:
        offsets = pieces
    start = _START[reduce] if initial is None else initial
    return segments(data, offsets, axis, reduce, start, initial is not None)
