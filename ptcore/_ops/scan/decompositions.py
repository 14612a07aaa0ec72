"""Cumulative operations as functions of smaller ops; see decompositions.py."""
from ptcore._ops.functions import abs, cat, cumprod, exp, flip, log, logcumsumexp, masked_fill, slice


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


def carried(total, ratio, dim):
    """``total[k] += ratio[k] * total[k + 1]``, from the end. The spans that are summed double until they cover the
    line."""
    n, span = total.shape[dim], 1
    while span < n:                         # ratio has n - span elements: that of the last ones is 0
        total = cat([slice(total, dim, 0, n - span) + ratio * slice(total, dim, span, n),
                     slice(total, dim, n - span, n)], dim)
        if 2 * span < n:
            ratio = slice(ratio, dim, 0, n - 2 * span) * slice(ratio, dim, span, n - span)
        span *= 2
    return total


def products_slope(g, input, out, dim):
    """The product of earlier elements times ``g[k] + input[k + 1] * (the same for k + 1)``; or, where g has one element
    along the dim, times g and the product of later elements."""
    n = input.shape[dim] if input.shape else 1
    if n < 2:
        return g
    factors = input.conj() if input.dtype.is_complex else input
    before, later = cumprod(slice(factors, dim, 0, n - 1), dim), slice(factors, dim, 1, n)
    if g.shape[dim] == n:
        behind = carried(g, later, dim)
    else:
        behind = g * flip(cumprod(flip(later, (dim,)), dim), (dim,))
        behind = cat([behind, g], dim)
    return cat([slice(behind, dim, 0, 1), before * slice(behind, dim, 1, n)], dim)


FUNCTIONS = {f.__name__: f for f in (logcumsumexp_slope, products_slope)}
