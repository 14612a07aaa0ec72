"""Norms and distances as functions of smaller ops; see decompositions.py."""
from ptcore._ops.calling import run
from ptcore._ops.creation.creation import arange, zeros
from ptcore._ops.functions import abs, expand, masked_fill, pow, scatter_add, sgn, transpose, unsqueeze, vector_norm
from ptcore._ops.functions import index_select as select_rows
from ptcore._ops.functions import pair_distances as distances_of
from ptcore._ops.functions import sum as sum_of
from ptcore._ops.reduction.decompositions import shared_equally


def norm_slope(g, input, out, ord, dim):
    """The gradient of ``out``, a norm of input over dims that g and out keep."""
    if ord == 0:
        return zeros(input.shape, dtype=input.dtype, device=input.device)
    if ord == 1:
        return g * sgn(input)
    if ord == 2:
        return run("hypot__d0", (g, input, out))        # g * (input / out), whose g / out may leave the dtype's range
    if ord in (float("inf"), float("-inf")):
        return sgn(input) * shared_equally(g, abs(input) == out, dim)
    none = out == 0
    size = abs(input)
    share = size / masked_fill(out, none, 1)        # the power of each would leave the dtype's range
    if ord < 2:
        power = masked_fill(pow(masked_fill(share, size == 0, 1), ord - 1), size == 0, 0)
    else:
        power = pow(share, ord - 1)
    return sgn(input) * power * masked_fill(g, none, 0)


def _gap_slope(g, gap, dist, p):
    """The gradient of the p-norm of gaps. Each of several largest gaps gets all of it, as from the kernel."""
    if p == float("inf"):
        return masked_fill(sgn(gap) * g, abs(gap) != dist, 0)
    return norm_slope(g, gap, dist, p, (-1,))


def pair_distances(x1, x2, p):
    gap = unsqueeze(x1, -2) - unsqueeze(x2, -3)
    if not x1.shape[-1]:
        return sum_of(gap, -1)
    if p == 0:                          # unlike the norm, a distance does not count NaN
        return masked_fill(vector_norm(gap, p, -1), (gap != gap).any(-1), float("nan"))
    if p != float("inf"):
        return vector_norm(gap, p, -1)
    size = abs(gap)                     # each of several largest gaps has the whole derivative, as in the gradient
    dist = vector_norm(gap.detach(), p, -1)
    return dist + sum_of(masked_fill(size - size.detach(), size.detach() != unsqueeze(dist, -1), 0), -1)


def pair_distances_slope(g, x1, x2, dist, p):
    gap = unsqueeze(x1, -2) - unsqueeze(x2, -3)
    return sum_of(_gap_slope(unsqueeze(g, -1), gap, unsqueeze(dist, -1), p), -2)


def _pairs(input):
    """The positions of all pairs of rows, as two vectors."""
    n = input.shape[0]
    rows = arange(n, device=input.device)
    return transpose((unsqueeze(rows, 1) < rows).nonzero(), 0, 1)


def row_distances(input, p):
    """By the op on pairs, which like this one gives each of several largest gaps the whole gradient."""
    first, second = _pairs(input)
    return distances_of(unsqueeze(select_rows(input, 0, first), -2), unsqueeze(select_rows(input, 0, second), -2),
                        p).reshape((-1,))


def row_distances_slope(g, input, dist, p):
    first, second = _pairs(input)
    gap = select_rows(input, 0, first) - select_rows(input, 0, second)
    slope = _gap_slope(unsqueeze(g, -1), gap, unsqueeze(dist, -1), p)
    none = zeros(input.shape, dtype=input.dtype, device=input.device)
    return (scatter_add(none, 0, expand(unsqueeze(first, 1), slope.shape), slope)
            - scatter_add(none, 0, expand(unsqueeze(second, 1), slope.shape), slope))


FUNCTIONS = {f.__name__: f for f in (
    pair_distances, pair_distances_slope, row_distances, row_distances_slope)}
