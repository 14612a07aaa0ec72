"""Reading and writing by positions as functions of smaller ops; see decompositions.py."""
from ptcore._ops._common import wrap_dim
from ptcore._ops.creation.creation import arange, full, zeros
from ptcore._ops.functions import (
    cumsum,
    expand,
    gather,
    masked_fill,
    reshape,
    scatter_add,
    scatter_src,
    transpose,
    unsqueeze,
    where,
)
from ptcore._ops.history import ValueCheck


def _places(count, device, size, stride, offset):
    """The places of a window over ``count`` elements, as a vector."""
    return reshape(arange(count, device=device).as_strided(size, stride, offset), (-1,))


def overwritten(input, src, stride, offset):
    places = _places(input.numel(), input.device, src.shape, stride, offset)
    return reshape(scatter_src(reshape(input, (-1,)), 0, places, reshape(src, (-1,))), input.shape)


def picked(input, size, stride, offset):
    places = _places(input.numel(), input.device, size, stride, offset)
    return reshape(gather(reshape(input, (-1,)), 0, places), size)


def _positions(input, index):
    """Positions of the flattened input as a vector of non-negative numbers."""
    return reshape(where(index < 0, index + input.numel(), index), (-1,))


def take(input, index):
    return reshape(gather(reshape(input, (-1,)), 0, _positions(input, index)), index.shape)


def put(input, index, source, accumulate=False):
    write = scatter_add if accumulate else scatter_src
    return reshape(write(reshape(input, (-1,)), 0, _positions(input, index), reshape(source, (-1,))), input.shape)


@ValueCheck
def check_places(count, given):
    if int(count[-1]) > given:
        raise RuntimeError(f"masked_scatter: source must have an element for each of the {int(count[-1])} places of "
                           f"mask, got {given}")


def masked_write(input, mask, source):
    flat = reshape(mask, (-1,))
    count = cumsum(flat, 0)
    if flat.numel():
        check_places(count, source.numel())
    if not source.numel():
        return input.clone()
    chosen = gather(reshape(source, (-1,)), 0, masked_fill(count - 1, ~flat, 0))
    return where(mask, reshape(chosen, input.shape), input)


def masked_collect(input, mask, shape):
    total = 1
    for n in shape:
        total *= n
    flat = reshape(mask, (-1,))
    # elements that the mask leaves out go to a place after the last one
    places = where(flat, cumsum(flat, 0) - 1, total)
    blank = zeros(total + 1, dtype=input.dtype, device=input.device)
    return reshape(scatter_src(blank, 0, places, reshape(input, (-1,)))[:total], shape)


def triangle_places(input, rows, columns, offset, lower, shape):
    gap = arange(columns, device=input.device) - unsqueeze(arange(rows, device=input.device), 1)
    found = (gap <= offset if lower else gap >= offset).nonzero()
    return transpose(found, 0, 1).to(input.dtype)


def _written(input, dim, index, source):
    if input.ndim == 0:
        return reshape(_written(reshape(input, (1,)), 0, index, reshape(source, (1,))), ())
    shape = list(input.shape)
    shape[dim] = index.numel()
    return scatter_src(input, dim, _along(reshape(index, (-1,)), shape, dim), expand(source, shape))


def index_copy(input, dim, index, source):
    return _written(input, wrap_dim("index_copy", dim, input.ndim), index, source)


def index_filled(input, dim, index, value):
    if input.ndim == 0:
        return reshape(index_filled(reshape(input, (1,)), 0, index, value), ())
    dim = wrap_dim("index_fill", dim, input.ndim)
    # A mask of the positions: a position that is named twice counts once in the gradient of the value.
    n, index = input.shape[dim], reshape(index, (-1,))
    ones = expand(full((), True, device=input.device), index.shape)
    named = scatter_src(zeros((n,), dtype=ones.dtype, device=input.device), 0, index, ones)
    return where(reshape(named, [n if d == dim else 1 for d in range(input.ndim)]), value, input)


def _along(index, shape, dim):
    """A vector of positions along a dim, expanded to the other dims."""
    ones = [1] * len(shape)
    ones[dim] = -1
    return expand(reshape(index, ones), shape)


def index_select(input, dim, index):
    if input.ndim == 0:
        return gather(reshape(input, (1,)), 0, reshape(index, (-1,))).reshape(())
    dim = wrap_dim("index_select", dim, input.ndim)
    shape = list(input.shape)
    shape[dim] = index.numel()
    return gather(input, dim, _along(index, shape, dim))


def index_add(input, dim, index, source, alpha=1):
    dim = wrap_dim("index_add", dim, input.ndim)
    if alpha != 1:
        source = source * alpha
    if input.ndim == 0:
        return scatter_add(reshape(input, (1,)), 0, reshape(index, (-1,)),
                           reshape(source, (-1,))).reshape(())
    return scatter_add(input, dim, _along(index, source.shape, dim), source)


FUNCTIONS = {f.__name__: f for f in (
    overwritten, picked, take, put, masked_write, masked_collect, triangle_places, index_copy, index_filled,
    index_select, index_add)}
