"""Cumulative operations as functions of smaller ops; see decompositions.py."""
from ptcore._ops.functions import abs, cat, cumprod, exp, flip, log, logcumsumexp, masked_fill, real, slice


def signed_logs(x):
    """Logarithms of the positive and of the negative elements, -inf for the others."""
    size = log(abs(x))
    return masked_fill(size, x <= 0, float("-inf")), masked_fill(size, x >= 0, float("-inf"))


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


def ratios(out, dim):
    """``exp(out[k] - out[k + 1])``, at most 1, of a log-sum-exp in which -inf stands for no terms so far; and out with
    these replaced by 0."""
    n = out.shape[dim]
    empty = (real(out) if out.dtype.is_complex else out) == float("-inf")
    out = masked_fill(out, empty, 0)
    ratio = exp(slice(out, dim, 0, n - 1) - slice(out, dim, 1, n))
    return masked_fill(ratio, slice(empty, dim, 0, n - 1), 0), out


def carried_up(total, ratio, dim):
    """``total[k + 1] += ratio[k] * total[k]``, from the start."""
    return flip(carried(flip(total, (dim,)), flip(ratio, (dim,)), dim), (dim,))


def weights_up_to(input, out, dim):
    """The weights ``exp(input - out)``, their ratios, and the sums of the weights up to each element: these are 1, or
    what rounding the logarithm of a sum has lost beside large inputs."""
    ratio, out = ratios(out, dim)
    weight = exp(input - out)
    whole = carried_up(weight, ratio, dim)
    return weight, ratio, masked_fill(whole, whole == 0, 1)


def logcumsumexp_slope(g, input, dim):
    """``exp(input) * (sum of g / exp(result) from here on)``, added by halves."""
    if not input.shape:
        return g
    weight, ratio, whole = weights_up_to(input, logcumsumexp(input, dim), dim)
    return weight * carried(g / whole, ratio, dim)


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
