"""Sampling at positions as functions of smaller ops: for forward mode and higher derivatives. And filters of images,
for devices that have no kernel of them.

Along each dim a point has one, two or four neighbours, as in grid_sample.cpp. A neighbour is (place,
weight, derivative of the weight by the position): tensors of the grid's shape without its last dim.
"""
import math
from itertools import product

from ptcore._dtype import as_dtype
from ptcore._exchange.convert import tensor
from ptcore._ops.creation.creation import eye, full_like, zeros
from ptcore._ops.functions import (
    cat,
    clamp,
    clone,
    expand,
    floor,
    gather,
    resample,
    resample_transposed,
    reshape,
    scatter_add,
    select,
    sign,
    stack,
    transpose,
    trunc,
    unsqueeze,
    where,
)
from ptcore._ops.functions import sum as sum_of
from ptcore._ops.product.bodies import matmul

FLOAT64, UINT8 = as_dtype("float64"), as_dtype("uint8")


def _triangle(x):
    x = x if x >= 0 else -x
    return 1 - x if x < 1 else 0.0


def _bump(x):
    """Keys' cubic with a = -0.5, which image filters use."""
    x = x if x >= 0 else -x
    if x < 1:
        return (1.5 * x - 2.5) * x * x + 1
    return ((-0.5 * x + 2.5) * x - 4) * x + 2 if x < 2 else 0.0


def _filter(n, count, how, align_corners, scale):
    """The windows (first place, weights) of a filter, which is as wide as the output's step."""
    if align_corners:
        step = (n - 1) / (count - 1) if count > 1 else 0.0
    else:
        step = 1 / scale if scale > 0 else n / count
    kernel, half = (_triangle, 1) if how == "linear" else (_bump, 2)
    stretch = step if step >= 1 else 1.0
    windows = []
    for i in range(count):
        centre = step * (i + 0.5)
        first = max(int(centre - half * stretch + 0.5), 0)
        last = min(int(centre + half * stretch + 0.5), n)
        weights = [kernel((j - centre + 0.5) / stretch) for j in range(first, last)]
        total = sum(weights)
        windows.append((first, [w / total if total else w for w in weights]))
    return windows


def _matrix(windows, n, dtype, device):
    """The windows of a filter as rows of a matrix."""
    return tensor([[0.0] * first + weights + [0.0] * (n - first - len(weights)) for first, weights in windows],
                  dtype=dtype, device=device)


def _lines(matrix, x, dim):
    """Each line along a dim, multiplied by a matrix."""
    return transpose(matmul(transpose(x, dim, -1), transpose(matrix, 0, 1)), dim, -1)


def filtered(input, dim, size, mode, align_corners, scale):
    """Products with a matrix. Its zeros would carry an infinity or NaN everywhere: these are counted in each window
    instead."""
    antialias, mode = not mode.endswith("-taps"), mode.removesuffix("-taps")
    if input.dtype is UINT8:
        return _bytes(input, dim, size, mode, align_corners, scale, antialias)
    if not antialias:
        return resample(input, dim, size, mode, align_corners, scale)
    dim = dim - input.ndim if dim >= 0 else dim         # counts have one more dim in front
    windows = _filter(input.shape[dim], size, mode, align_corners, scale)
    n, dtype, where_is = input.shape[dim], input.dtype, input.device
    matrix = _matrix(windows, n, dtype, where_is)
    values = input.detach()
    infinite, nan = values.isinf(), values.isnan()
    finite = clone(input)
    finite.detach().masked_fill_(infinite | nan, 0)     # derivatives are those of input
    ones = _matrix([(first, [1.0] * len(weights)) for first, weights in windows], n, dtype, where_is)
    counts = _lines(ones, stack([infinite, nan]).to(dtype), dim)
    towards = _lines(sign(matrix), where(infinite, sign(values), 0), dim)
    infinities, nans = counts[0], counts[1]
    # what a window adds to the sum of its finite numbers: infinities of one sign, else NaN
    special = where((nans > 0) | (towards.abs() < infinities), math.nan, towards * math.inf)
    return _lines(matrix, finite, dim) + where((infinities > 0) | (nans > 0), special, 0)


def filtered_transposed(input, dim, size, mode, align_corners, scale):
    if mode.endswith("-taps"):
        return resample_transposed(input, dim, size, mode.removesuffix("-taps"), align_corners, scale)
    windows = _filter(size, input.shape[dim], mode, align_corners, scale)
    matrix = _matrix(windows, size, input.dtype, input.device)
    return _lines(transpose(matrix, 0, 1), input, dim)


def _bytes(x, dim, count, how, align_corners, scale, antialias):
    """Bytes resampled along a dim as by the kernel on the CPU: weights are integers of 16 bits."""
    n = x.shape[dim]
    if antialias:
        matrix = _matrix(_filter(n, count, how, align_corners, scale), n, FLOAT64, "cpu")
    else:
        unit = reshape(eye(n, dtype=FLOAT64, device="cpu"), (1, n, n, 1))
        matrix = transpose(reshape(resample(unit, 2, count, how, align_corners, scale), (n, count)), 0, 1)
    largest, bits = matrix.max().item(), 0
    while bits < 22 and int(0.5 + largest * 2 ** (bits + 1)) < 2**15:
        bits += 1
    matrix = trunc(matrix * 2**bits + where(matrix < 0, -0.5, 0.5))       # sums of up to 2**30 are exact in float64
    total = _lines(matrix.to(x.device), x.to(FLOAT64), dim)
    return clamp(floor((total + 2 ** (bits - 1)) * 2.0**-bits), 0, 255).to(UINT8)


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


FUNCTIONS = {f.__name__: f for f in (filtered, filtered_transposed, grid_sampled)}
