"""Reductions, and what counts, chooses or joins along a dim."""
from ptcore._errors import OutOfRangeError, ShapeError
from ptcore._sizes.language import BOOL, INT64, Bool, Call, Dims, DType, Int, View, given, output
from ptcore._sizes.rules.elements import summed_dtype

# -- parts of rules ---------------------------------------------------------------------------------------------------

def reduce(call: Call, k: Int, x: View, dims: Dims, keepdim: Bool, dtype: DType):
    """Output k has the sizes of x without the dims, or with 1 in their place."""
    out = output(call, k, x.ndim, dtype)
    n = 0
    for j in range(x.ndim):
        if j not in dims:
            out.sizes[n] = x.sizes[j]
            n += 1
        elif keepdim:
            out.sizes[n] = 1
            n += 1
    out.ndim = n


def check_nonempty(call: Call, x: View, dims: Dims):
    """A reduction without identity needs elements along the reduced dims."""
    if x.numel == 0:
        for j in range(x.ndim):
            if j in dims and x.sizes[j] == 0:
                raise OutOfRangeError(f"{call.name}: dim {first_empty(x, dims)} has size 0, but a value for it is "
                                      "needed")


def first_empty(x, dims):
    """The first of the dims, in the order in which they are given, that has no elements."""
    return next(d for d in dims if x.sizes[d] == 0)


# -- rules ------------------------------------------------------------------------------------------------------------

def reduced(call: Call, input: View, dim: Dims, keepdim: Bool):
    reduce(call, 0, input, dim, keepdim, input.dtype)


def reduced_sum(call: Call, input: View, dim: Dims, keepdim: Bool, dtype: DType):
    reduce(call, 0, input, dim, keepdim, summed_dtype(input, dtype))


def reduced_nonempty(call: Call, input: View, dim: Dims, keepdim: Bool):
    check_nonempty(call, input, dim)
    reduce(call, 0, input, dim, keepdim, input.dtype)


def reduced_bool(call: Call, input: View, dim: Dims, keepdim: Bool):
    reduce(call, 0, input, dim, keepdim, BOOL)


def reduced_pair(call: Call, input: View, dim: Dims, keepdim: Bool):
    """Values and their positions."""
    check_nonempty(call, input, dim)
    reduce(call, 0, input, dim, keepdim, input.dtype)
    reduce(call, 1, input, dim, keepdim, INT64)


def reduced_index(call: Call, input: View, dim: Dims, keepdim: Bool):
    check_nonempty(call, input, dim)
    reduce(call, 0, input, dim, keepdim, INT64)


def counted(call: Call, input: View, dim: Dims):
    reduce(call, 0, input, dim, False, INT64)


def kth_pair(call: Call, input: View, k: Int, dim: Int, keepdim: Bool):
    if input.numel == 0 and input.sizes[dim] == 0:
        raise OutOfRangeError(f"{call.name}: dim {dim} has size 0, but a value for it is needed")
    n = input.sizes[dim] if input.ndim > 0 else 1
    if k < 1 or k > n:
        raise RuntimeError(f"{call.name}: k must be in [1, {n}], got {k}")
    out = output(call, 0, input.ndim, input.dtype)
    places = output(call, 1, input.ndim, INT64)
    m = 0
    for j in range(input.ndim):
        if j != dim or keepdim:
            out.sizes[m] = places.sizes[m] = 1 if j == dim else input.sizes[j]
            m += 1
    out.ndim = places.ndim = m


def topk(call: Call, input: View, k: Int, dim: Int):
    n = input.sizes[dim] if input.ndim > 0 else 1
    if k < 0 or k > n:
        raise OutOfRangeError(f"{call.name}: selected index k out of range: k must be in [0, {n}], got {k}")
    out = output(call, 0, input.ndim, input.dtype)
    places = output(call, 1, input.ndim, INT64)
    for j in range(input.ndim):
        out.sizes[j] = places.sizes[j] = k if j == dim else input.sizes[j]


def segments(call: Call, data: View, offsets: View, axis: Int):
    """The sizes of the data, with as many of one dim as there are pieces between the offsets."""
    if offsets.ndim != axis + 1 or offsets.sizes[axis] == 0:
        raise ShapeError(f"{call.name}: offsets must have axis {axis} as their last dim, got shape {offsets.shape}")
    if data.ndim <= axis:
        raise ShapeError(f"{call.name}: data must have the dims of offsets, {offsets.ndim}, got shape {data.shape}")
    out = output(call, 0, data.ndim, data.dtype)
    for j in range(data.ndim):
        out.sizes[j] = offsets.sizes[axis] - 1 if j == axis else data.sizes[j]


def tallied(call: Call, weight: View, bins: Int):
    """``bincount``: integers, or the weights' dtype."""
    out = output(call, 0, 1, weight.dtype if given(weight) else INT64)
    out.sizes[0] = bins


def places_of(call: Call, input: View, count: Int):
    """``nonzero``: a row of positions for each of the elements that have been counted."""
    out = output(call, 0, 2, INT64)
    out.sizes[0] = count
    out.sizes[1] = input.ndim
