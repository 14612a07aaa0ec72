"""Counts as functions of smaller ops; see decompositions.py."""
from ptcore._dtype import as_dtype
from ptcore._ops.creation.creation import ones, zeros
from ptcore._ops.functions import clamp, floor, index_add, places_among, reshape, select, slice, where
from ptcore._ops.table.shapes import INT64


def binned(input, edges, weight, bins, places):
    """Counts in float64, as the kernel does: float32 could not hold large counts."""
    double = as_dtype("float64")
    place, inside, at, total = 0, True, 0, 1
    for d, m in enumerate(bins):
        x = select(input, 1, d)
        last = at + (1 if places == "computed" else m)
        low, high = select(edges, 0, at), select(edges, 0, last)
        within = (x >= low) & (x <= high)
        if places == "computed":
            own = floor((where(within, x, low) - low) * m / (high - low)).to(INT64)
        else:
            own = places_among(slice(edges, 0, at, last + 1, 1), x, True) - 1
        place, inside = place * m + clamp(own, 0, m - 1), within & inside
        at, total = last + 1, total * m
    weights = ones(input.shape[0], dtype=double, device=input.device) if weight is None else weight.to(double)
    counts = index_add(zeros(total, dtype=double, device=input.device), 0, where(inside, place, 0),
                       where(inside, weights, 0.0))
    return reshape(counts, tuple(bins)).to(input.dtype)


def counted(input, weight, bins):
    """Counts in float64, or in int64 without weights."""
    inside = (input >= 0) & (input < bins)
    given = inside.to(INT64) if weight is None else where(inside, weight.to(as_dtype("float64")), 0.0)
    counts = index_add(zeros(bins, dtype=given.dtype, device=input.device), 0, where(inside, input.to(INT64), 0), given)
    return counts if weight is None else counts.to(weight.dtype)


FUNCTIONS = {"binned": binned, "counted": counted}
