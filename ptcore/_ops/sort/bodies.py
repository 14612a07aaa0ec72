"""Bodies: sorting, selecting along a dim, searching, sets."""
from cython.cimports.ptcore._ops._common import wrap_dim

from ptcore._dtype import as_dtype, iinfo
from ptcore._errors import ShapeError
from ptcore._ops import checked, results
from ptcore._ops.call.operands import result_type
from ptcore._ops.creation.creation import arange, full, ones_like, zeros_like
from ptcore._ops.functions import (
    any,
    cat,
    clone,
    cumsum,
    gather,
    index_select,
    median_along,
    median_of,
    permute,
    places_among,
    reshape,
    scatter_src,
    sort,
)
from ptcore._tensor import Tensor


def argsort(input, dim, descending, stable):
    return sort(input, wrap_dim("argsort", dim, input.ndim), descending, stable=stable)[1]


INT64 = as_dtype("int64")


def msort(input):
    return sort(input, 0)[0] if input.ndim else clone(input)


def _middle(op, result, input, dim, keepdim, skip_nan):
    if dim is not None:
        return results.packed(result, median_along(input, skip_nan, wrap_dim(op, dim, input.ndim), keepdim))
    flat = reshape(input, (-1,))
    if not flat.numel():
        if input.dtype.kind != "f":
            raise ShapeError(f"{op}: input must not be empty, got shape {list(input.shape)}")
        return full((), float("nan"), dtype=input.dtype, device=input.device)
    return median_of(flat, skip_nan, 0, False)[0]


def median(input, dim, keepdim):
    return _middle("median", results.median, input, dim, keepdim, False)


def nanmedian(input, dim, keepdim):
    return _middle("nanmedian", results.nanmedian, input, dim, keepdim, True)


# -- values that occur -----------------------------------------------------------------------------
def _runs(values):
    """Mask of the elements of a vector that differ from the element before; the first one counts as different."""
    first = ones_like(values[:1], dtype=as_dtype("bool"))
    return cat([first, values[1:] != values[:-1]], 0) if values.numel() > 1 else first


def _starts(new):
    """Where runs begin: read once for the values and for the counts."""
    return new.nonzero().reshape(-1)


def _counted_runs(starts, n, device):
    ends = cat([starts[1:], full((1,), n, dtype=INT64, device=device)], 0) if starts.numel() else starts
    return ends - starts


def unique(input, sorted, return_inverse, return_counts, dim):
    if dim is not None:
        return _unique_slices("unique", input, dim, return_inverse, return_counts, True)
    flat = reshape(input, (-1,))
    values, order = sort(flat, 0)
    new = _runs(values)
    starts = _starts(new)
    result = [index_select(values, 0, starts)]
    if return_inverse:
        number = cumsum(new, 0) - 1
        inverse = scatter_src(zeros_like(order), 0, order, number)
        result.append(reshape(inverse, input.shape))
    if return_counts:
        result.append(_counted_runs(starts, flat.numel(), flat.device))
    return tuple(result) if len(result) > 1 else result[0]


def unique_consecutive(input, return_inverse, return_counts, dim):
    if dim is not None:
        return _unique_slices("unique_consecutive", input, dim, return_inverse, return_counts, False)
    flat = reshape(input, (-1,))
    new = _runs(flat)
    starts = _starts(new)
    result = [index_select(flat, 0, starts)]
    if return_inverse:
        result.append(reshape(cumsum(new, 0) - 1, input.shape))
    if return_counts:
        result.append(_counted_runs(starts, flat.numel(), flat.device))
    return tuple(result) if len(result) > 1 else result[0]


def _unique_slices(op, input, dim, return_inverse, return_counts, ordered):
    dim = wrap_dim(op, dim, input.ndim)
    x = input if input.ndim else reshape(input, (1,))
    n = x.shape[dim]
    others = [d for d in range(x.ndim) if d != dim]     # in order, which is the order of the comparison
    rows = permute(x.detach(), (dim, *others)).reshape(n, -1) if x.numel() else x.new_zeros((n, 0))
    order = arange(n, device=x.device)
    if ordered:                         # stable sorts by each column, the last column first
        for k in range(rows.shape[1] - 1, -1, -1):
            order = order[sort(rows[:, k][order], 0, stable=True)[1]]
        rows = rows[order]
    if n > 1:
        differ = any(rows[1:] != rows[:-1], 1) if rows.shape[1] else full((n - 1,), False, device=x.device)
        new = cat([full((1,), True, device=x.device), differ], 0)
    else:
        new = full((n,), True, device=x.device)
    starts = _starts(new)
    result = [x.index_select(dim, index_select(order, 0, starts))]
    if return_inverse:
        number = cumsum(new, 0) - 1
        result.append(scatter_src(zeros_like(order), 0, order, number))
    if return_counts:
        result.append(_counted_runs(starts, n, x.device))
    return tuple(result) if len(result) > 1 else result[0]


# -- sorted sequences ---------------------------------------------------------------------------
def searchsorted(sorted_sequence, input, out_int32, right, side, sorter):
    op = "searchsorted"
    if side is not None:
        checked.word(op, "side", side, ("left", "right"), RuntimeError)
        if side == "left" and right:
            raise RuntimeError(f"{op}: side='left' and right=True contradict each other")
        right = side == "right"
    if not isinstance(input, Tensor):
        input, right = _sought_number(op, sorted_sequence, input, right)
        if sorted_sequence.ndim != 1:
            raise ShapeError(f"{op}: sorted_sequence must be a vector for a number, got shape "
                             f"{list(sorted_sequence.shape)}")
    if not sorted_sequence.ndim or (sorted_sequence.ndim > 1 and (
            sorted_sequence.ndim != input.ndim or sorted_sequence.shape[:-1] != input.shape[:-1])):
        raise ShapeError(f"{op}: sorted_sequence must be a vector or have input's sizes but the last, got shapes "
                         f"{list(sorted_sequence.shape)} and {list(input.shape)}")
    if sorter is not None:
        if not isinstance(sorter, Tensor):
            checked.tensor(op, "sorter", sorter)
        if sorter.shape != sorted_sequence.shape:
            raise ShapeError(f"{op}: sorter must have sorted_sequence's shape {list(sorted_sequence.shape)}, got "
                             f"{list(sorter.shape)}")
        sorted_sequence = gather(sorted_sequence, -1, sorter)
    if sorted_sequence.dtype is not input.dtype:
        dtype = result_type(sorted_sequence, input)
        sorted_sequence, input = sorted_sequence.to(dtype), input.to(dtype)
    found = places_among(sorted_sequence.detach() if sorted_sequence.requires_grad else sorted_sequence,
                         input.detach() if input.requires_grad else input, right)
    return found.int() if out_int32 else found


def _sought_number(op, sequence, number, right):
    """A number as a tensor of the dtype that it and a sequence promote to. A number out of an integer's range lies
    before or after all elements: the end of the range on that side replaces it."""
    number = checked.number(op, "input", number)
    dtype = result_type(sequence, number)
    if dtype.kind in "iu":
        limits = iinfo(dtype)
        if number < limits.min:
            number, right = limits.min, False
        elif number > limits.max:
            number, right = limits.max, True
    return full((), number, dtype=dtype, device=sequence.device), right


def bucketize(input, boundaries, out_int32, right):
    if boundaries.ndim != 1:
        raise ShapeError(f"bucketize: boundaries must be a vector, got shape {list(boundaries.shape)}")
    if not isinstance(input, Tensor):
        input, right = _sought_number("bucketize", boundaries, input, right)
    return searchsorted(boundaries, input, out_int32, right, None, None)
