"""Order statistics as functions of smaller ops; see decompositions.py."""
from ptcore._ops.creation.creation import arange, full, zeros
from ptcore._ops.functions import any as any_of
from ptcore._ops.functions import (
    cat,
    clamp_max,
    clamp_min,
    cummax,
    expand,
    floor_divide,
    gather,
    isnan,
    places_among,
    reshape,
    slice,
    sort,
    squeeze,
    unsqueeze,
    where,
)
from ptcore._ops.functions import index_select as select_rows
from ptcore._ops.functions import sum as sum_of
from ptcore._ops.history import has_values
from ptcore._ops.table.shapes import BOOL


def _of_lines(input, dim, keepdim, place):
    """The value in each sorted line at ``place(sorted lines, dim, their length)``, and its index before sorting."""
    x, dim = (input, dim % input.ndim) if input.ndim else (reshape(input, (1,)), 0)
    values, indices = sort(x, dim)
    at = place(values, dim, x.shape[dim])
    if isinstance(at, int):
        at = expand(zeros((), dtype=indices.dtype, device=x.device) + at,
                    [1 if d == dim else n for d, n in enumerate(x.shape)])
    values, indices = gather(values, dim, at), gather(indices, dim, at)
    if keepdim and input.ndim:
        return values, indices
    return squeeze(values, (dim,)), squeeze(indices, (dim,))


def kthvalue(input, k, dim=-1, keepdim=False):
    return _of_lines(input, dim, keepdim, lambda values, dim, n: k - 1)


def median_along(input, skip_nan, dim, keepdim):
    def place(values, dim, n):
        if values.dtype.kind != "f":
            return (n - 1) // 2
        missing = sum_of(isnan(values), dim, True)
        if skip_nan:
            return floor_divide(clamp_min(n - missing - 1, 0), 2)
        return where(missing > 0, n - missing, (n - 1) // 2)        # NaN are sorted last: this is the first NaN

    return _of_lines(input, dim, keepdim, place)


def mode(input, dim=-1, keepdim=False):
    def place(values, dim, n):
        at = expand(reshape(arange(n, device=values.device), [n if d == dim else 1 for d in range(values.ndim)]),
                    values.shape)
        begins = slice(at, dim, 0, 1, 1) == 0
        if n > 1:
            begins = cat([begins, slice(values, dim, 1, n, 1) != slice(values, dim, 0, n - 1, 1)], dim)
        run = at - cummax(where(begins, at, 0), dim)[0]
        return (run * n + (n - 1 - at)).argmax(dim, True)           # the longest run; of equally long runs the first

    return _of_lines(input, dim, keepdim, place)


def is_among(input, tests, invert):
    if not tests.numel():
        return full(input.shape, invert, dtype=BOOL, device=input.device)
    tests = reshape(tests, (-1,))
    if not (has_values(input) and has_values(tests)):
        return any_of(unsqueeze(input, input.ndim) == tests, input.ndim) ^ invert
    tests = sort(tests, 0)[0]
    place = clamp_max(places_among(tests, input, False), tests.numel() - 1)
    found = reshape(select_rows(tests, 0, reshape(place, (-1,))), input.shape) == input
    return ~found if invert else found


FUNCTIONS = {f.__name__: f for f in (kthvalue, median_along, mode, is_among)} | {"median_of": median_along}
