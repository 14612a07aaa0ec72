"""Cumulative operations as functions of smaller ops; see decompositions.py."""
from ptcore._ops.functions import abs, exp, flip, log, logcumsumexp, masked_fill


def signed_logs(x):
    """Logarithms of the positive and of the negative elements, -inf for the others."""
    size = log(abs(x))
    return masked_fill(size, x <= 0, float("-inf")), masked_fill(size, x >= 0, float("-inf"))


def logcumsumexp_slope(g, input, dim):
    """``exp(input) * (sum of g / exp(result) from here on)``, computed in logarithms for each sign of g."""
    if not input.shape:
        return g
    out = logcumsumexp(input, dim)
    out = masked_fill(out, out == float("-inf"), 0)
    up, down = [exp(flip(logcumsumexp(flip(part - out, (dim,)), dim), (dim,)) + input) for part in signed_logs(g)]
    return up - down


FUNCTIONS = {f.__name__: f for f in (logcumsumexp_slope,)}
