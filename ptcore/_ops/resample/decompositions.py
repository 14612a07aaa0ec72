"""Sampling at positions as functions of smaller ops: for forward mode and higher derivatives.

Along each dim a point has one, two or four neighbours, as in grid_sample.cpp. A neighbour is (place,
weight, derivative of the weight by the position): tensors of the grid's shape without its last dim.
"""
from itertools import product

from ptcore._ops.creation.creation import full_like, zeros
from ptcore._ops.functions import cat, expand, gather, reshape, scatter_add, select, unsqueeze, where
from ptcore._ops.functions import sum as sum_of


def _product(sizes):
    n = 1
    for size in sizes:
        n *= size
    return n


def _reflected(x, low, high):
    if low == high:
        return x * 0
    least, span = low / 2, (high - low) / 2
    behind = x.detach() < least
    x = (x - least) * (1 - 2 * behind.to(x.dtype))
    turns = (x.detach() / span).floor()
    odd = (turns % 2 != 0).to(x.dtype)
    over = x - turns * span
    return over * (1 - 2 * odd) + odd * span + least


def _padded(x, size, padding_mode, align_corners):
    if padding_mode == "reflection":
        x = _reflected(x, 0, 2 * (size - 1)) if align_corners else _reflected(x, -1, 2 * size - 1)
    if padding_mode == "zeros":
        return x
    x = where((x > 0) & (x < size - 1), x, x.detach().clamp(0, size - 1))           # constant at the ends, too
    return x.masked_fill(x.detach().isnan(), 0)


def _neighbours(x, size, mode, padding_mode, align_corners):
    """The neighbours of coordinates x of the grid along a dim: [(place, weight, derivative by x)]."""
    x = (x + 1) / 2 * (size - 1) if align_corners else ((x + 1) * size - 1) / 2
    if mode != "bicubic":
        x = _padded(x, size, padding_mode, align_corners)
    one = full_like(x.detach(), 1)
    if mode == "nearest":
        return [(x.detach().round(), one, one * 0)]
    first = x.detach().floor()
    t = x - first
    if mode == "bilinear":
        return [(first, 1 - t, -one), (first + 1, t, one)]
    a, u = -0.75, 1 - t
    weights = (((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a, ((a + 2) * t - (a + 3)) * t * t + 1,
               ((a + 2) * u - (a + 3)) * u * u + 1, ((a * (u + 1) - 5 * a) * (u + 1) + 8 * a) * (u + 1) - 4 * a)
    slopes = ((3 * a * (t + 1) - 10 * a) * (t + 1) + 8 * a, (3 * (a + 2) * t - 2 * (a + 3)) * t,
              -(3 * (a + 2) * u - 2 * (a + 3)) * u, -((3 * a * (u + 1) - 10 * a) * (u + 1) + 8 * a))
    places = [_padded(first + k, size, padding_mode, align_corners) for k in (-1, 0, 1, 2)]
    return list(zip(places, weights, slopes))


def _by_position(coordinate, size, mode, padding_mode, align_corners):
    """The derivative of the position along a dim by the grid's coordinate."""
    x = coordinate.detach()
    per_unit = (size - 1) / 2 if align_corners else size / 2
    if mode == "bicubic" or padding_mode == "zeros":
        return full_like(x, per_unit)
    x = (x + 1) / 2 * (size - 1) if align_corners else ((x + 1) * size - 1) / 2
    sign = full_like(x, per_unit)
    if padding_mode == "reflection":
        low, high = (0, 2 * (size - 1)) if align_corners else (-1, 2 * size - 1)
        if low == high:
            return x * 0
        odd = ((x - low / 2) / ((high - low) / 2)).floor() % 2 != 0
        sign = sign * (1 - 2 * odd.to(x.dtype))
        x = _reflected(x, low, high)
    return sign * ((x > 0) & (x < size - 1)).to(x.dtype)


def _taps(shape, grid, mode, padding_mode, align_corners):
    """For each neighbour of a point: flat place, whether it is inside, weight, derivatives; (N, P) each."""
    n, dims = grid.shape[0], grid.shape[-1]
    sizes = shape[2:]
    flat = reshape(grid, (n, _product(grid.shape[1:-1]), dims))
    coordinates = [select(flat, 2, dims - 1 - d) for d in range(dims)]
    along = [_neighbours(x, size, mode, padding_mode, align_corners) for x, size in zip(coordinates, sizes)]
    for chosen in product(*along):
        place, inside, weight = 0, True, 1
        for (at, w, _), size in zip(chosen, sizes):
            inside = inside & (at >= 0) & (at <= size - 1)
            place = place * size + at.clamp(0, size - 1).nan_to_num(0).to("int64")
            weight = w * weight
        slopes = []
        for d in range(dims):
            slope = chosen[d][2]
            for e in range(dims):
                slope = slope if e == d else slope * chosen[e][1]
            slopes.append(slope)
        if dims == 3:                   # as in the kernel: outside, weights that are NaN do not count
            weight, *slopes = [w.masked_fill(~inside, 0) for w in (weight, *slopes)]
        yield place, inside, weight, slopes[::-1]


def _values(x, place, inside):
    """The values of x at the places, (N, C, P), and the index that was gathered."""
    index = expand(unsqueeze(place, 1), (place.shape[0], x.shape[1], place.shape[1]))
    return gather(x, 2, index).masked_fill(~unsqueeze(inside, 1), 0), index


def grid_sampled(input, grid, mode, padding_mode, align_corners):
    x = reshape(input, (*input.shape[:2], _product(input.shape[2:])))
    total = 0
    for place, inside, weight, _ in _taps(input.shape, grid, mode, padding_mode, align_corners):
        term = (_values(x, place, inside)[0] * unsqueeze(weight, 1)).masked_fill(~unsqueeze(inside, 1), 0)
        total = total + term + unsqueeze(weight.masked_fill(inside, 0) * 0, 1)      # outside, 0 times a weight of NaN
    return reshape(total, (*input.shape[:2], *grid.shape[1:-1]))


def grid_sample_backward(g, input, grid, mode, padding_mode, align_corners):
    shape, dims = input.shape, grid.shape[-1]
    x = reshape(input, (*shape[:2], _product(shape[2:])))
    gy = reshape(g, (*shape[:2], _product(g.shape[2:])))
    gx, by_position = zeros(tuple(x.shape), dtype=x.dtype, device=x.device), [0] * dims
    for place, inside, weight, slopes in _taps(shape, grid, mode, padding_mode, align_corners):
        value, index = _values(x, place, inside)
        gx = scatter_add(gx, 2, index, (gy * unsqueeze(weight, 1)).masked_fill(~unsqueeze(inside, 1), 0))
        share = sum_of(gy * value, 1)
        by_position = [total + share * slope for total, slope in zip(by_position, slopes)]
    flat = reshape(grid, (grid.shape[0], _product(grid.shape[1:-1]), dims))
    by_grid = [total * _by_position(select(flat, 2, d), shape[-1 - d], mode, padding_mode, align_corners)
               for d, total in enumerate(by_position)]
    return reshape(gx, shape), reshape(cat([unsqueeze(total, -1) for total in by_grid], -1), grid.shape)


FUNCTIONS = {f.__name__: f for f in (grid_sampled,)}
