"""Reductions as functions of smaller ops; see decompositions.py."""
from ptcore._dtype import float32
from ptcore._ops.creation.creation import full, ones_like, zeros, zeros_like
from ptcore._ops.functions import (
    cat,
    clamp,
    clamp_min,
    cumsum,
    expand,
    gather,
    isnan,
    masked_fill,
    reshape,
    slice,
    where,
)
from ptcore._ops.functions import sum as sum_of
from ptcore._ops.table.shapes import INT64


def nansum(input, dim=None, keepdim=False, dtype=None):
    known = masked_fill(input, isnan(input), 0) if input.dtype.kind == "f" else input
    return sum_of(known, dim, keepdim, dtype=dtype)


def divided(g, n):
    """``g / n`` for a number of elements. It is computed in float32 for half types: float16 ends at 65504."""
    return (g.to(float32) / n).to(g.dtype) if g.dtype.itemsize == 2 else g / n


def shared_equally(g, hit, dim):
    """Each hit's share of ``g``, which the hits along the dims share equally."""
    ones = hit.to(g.dtype)
    count = sum_of(hit.to(float32) if g.dtype.itemsize == 2 else ones, dim, True)
    return ones * divided(g, count)                     # this order needs one large temporary


_REDUCE = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "amax", "min": "amin"}


def _buckets(data, offsets, axis):
    """The number of each element's piece, from 1; before the first piece it is 0, after the last that of the last."""
    size = data.shape[axis]
    marks = zeros((*offsets.shape[:-1], size + 1), dtype=INT64, device=data.device)     # pieces beginning at each place
    marks = marks.scatter_add(-1, clamp(offsets, 0, size), ones_like(offsets, dtype=INT64))
    bucket = cumsum(slice(marks, -1, 0, size, 1), -1)
    return expand(reshape(bucket, (*data.shape[:axis + 1], *(1,) * (data.ndim - axis - 1))), data.shape)


def _lengths(offsets, like, axis, given):
    k = offsets.shape[-1]
    lengths = slice(offsets, -1, 1, k, 1) - slice(offsets, -1, 0, k - 1, 1)
    lengths = clamp_min(lengths, 1) if given else lengths
    lengths = reshape(lengths, (*lengths.shape, *(1,) * (like.ndim - axis - 1)))
    return lengths.to(float32 if like.dtype.itemsize == 2 else like.dtype)


def segments(data, offsets, axis, reduce, start, given):
    count = offsets.shape[-1] - 1
    shape = (*data.shape[:axis], count + 2, *data.shape[axis + 1:])
    result = full(shape, start, dtype=data.dtype, device=data.device)
    alone = reduce in ("max", "min") and start == start         # elements that equal start share no gradient with it
    result = result.scatter_reduce(axis, _buckets(data, offsets, axis), data, _REDUCE[reduce], include_self=not alone)
    result = slice(result, axis, 1, count + 1, 1)
    if alone:
        return masked_fill(result, result < start if reduce == "max" else result > start, start)
    return divided(result, _lengths(offsets, data, axis, given)) if reduce == "mean" else result


def segments_slope(g, data, out, offsets, axis, reduce, start, given):
    if reduce == "mean":
        g = divided(g, _lengths(offsets, data, axis, given))
    bucket = _buckets(data, offsets, axis)
    rim = full((*data.shape[:axis], 1, *data.shape[axis + 1:]), 0.0, dtype=data.dtype, device=data.device)

    def beside(x):
        return gather(cat([rim, x, rim], axis), axis, bucket)

    def counted(mask):
        total = zeros_like(cat([rim, out, rim], axis))
        return gather(total.scatter_add(axis, bucket, mask.to(data.dtype)), axis, bucket)

    if reduce in ("sum", "mean"):
        return beside(g)
    if reduce == "prod":
        zero, lost = data == 0, isnan(data)
        others = beside(out) / where(zero | lost, ones_like(data), data)
        for special in (zero, lost):    # a product is not divided by these
            rest = beside(segments(where(special, ones_like(data), data), offsets, axis, reduce, start, given))
            others = where(special & (counted(special) == 1), rest, others)
        return beside(g) * others
    same = (data == beside(out)) | (isnan(data) & isnan(beside(out)))
    return where(same & (counted(ones_like(data)) > 0), beside(g) / clamp_min(counted(same), 1), 0.0)


FUNCTIONS = {f.__name__: f for f in (nansum, segments, segments_slope)}
