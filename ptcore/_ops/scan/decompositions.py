"""Cumulative operations as functions of smaller ops; see decompositions.py."""
from ptcore._ops.functions import abs, exp, flip, log, logcumsumexp, masked_fill


def logcumsumexp_slope(g, input, dim):
    """``exp(input) * (sum of g / exp(result) from here on)``, computed in logarithms for each sign of g."""
    if not input.shape:
        return g
    out = logcumsumexp(input, dim)
    out = masked_fill(out, out == float("-inf"), 0)
    size = log(abs(g))
    parts = [masked_fill(size, other, float("-inf")) - out for other in (g <= 0, g >= 0)]
    up, down = [exp(flip(logcumsumexp(flip(part, (dim,)), dim), (dim,)) + input) for part in parts]
    return up - down


FUNCTIONS = {f.__name__: f for f in (logcumsumexp_slope,)}
