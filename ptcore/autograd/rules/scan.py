"""Rules of cumulative operations."""
from ptcore._ops.functions import (
    abs,
    cat,
    cumsum,
    exp,
    flip,
    gather,
    log,
    masked_fill,
    real,
    slice,
    unbind,
    where,
)
from ptcore._ops.functions import cumprod as cumprod_of
from ptcore._ops.functions import logcumsumexp as logcumsumexp_of
from ptcore._ops.shaping.bodies import stack
from ptcore.autograd.helpers import again, conj_of, differentiated, ungathered, zeros_among
from ptcore.autograd.rules import jvp, vjp


def cumsum_from_end(x, dim):
    return flip(cumsum(flip(x, (dim,)), dim), (dim,))


@vjp("cumprod")
@again("cumprod")
def cumprod(g, input, out, dim):
    """Gradient along a line with zeros. Before the first zero it is ``sum(g * out) / input`` over the elements from
    here on. At the first zero it is the same sum with the zero left out of the products. Behind it the gradient is 0.
    This 0 is a constant, which would be wrong for a second derivative, so a recorded backward of data with zeros uses
    products instead.
    """
    if not input.shape:
        return g
    zero = input == 0
    some = zeros_among(zero)
    if some is False:
        return cumsum_from_end(g * conj_of(out), dim) / conj_of(input)
    if some is not False and differentiated():
        return _by_products(g, input, dim)
    count = cumsum(zero, dim)
    first = zero & (count == 1)
    before = cumsum_from_end(g * conj_of(out), dim) / conj_of(masked_fill(input, zero, 1))
    others = cumprod_of(masked_fill(input, first, 1), dim)
    others = masked_fill(g * conj_of(others), count == 0, 0)
    at = masked_fill(cumsum_from_end(others, dim), ~first, 0)
    return where(count == 0, before, at)


def _by_products(g, input, dim):
    """Line by line: the product of earlier elements times ``g[k] + input[k + 1] * (the same for k + 1)``."""
    factors = [conj_of(x) for x in unbind(input, dim)]
    parts = list(unbind(g, dim))
    left = [None]
    for x in factors[:-1]:
        left.append(x if left[-1] is None else left[-1] * x)
    for k in range(len(parts) - 2, -1, -1):
        parts[k] = parts[k] + factors[k + 1] * parts[k + 1]
    return stack([p if x is None else p * x for p, x in zip(parts, left)], dim)


@jvp("cumprod")
def cumprod_forward(t, input, out, dim):
    """``out * cumsum(t / input)``; data with zeros is computed line by line."""
    if not input.shape:
        return t
    if zeros_among(input == 0) is not False:
        value, part, parts = None, None, []
        for x, d in zip(unbind(input, dim), unbind(t, dim)):
            part = d if value is None else part * x + value * d
            value = x if value is None else value * x
            parts.append(part)
        return stack(parts, dim)
    return out * cumsum(t / input, dim)


@vjp("cummax", "cummin")
def cummax(gs, input, out1, dim):
    g = gs[0]
    return ungathered(g, input.shape, dim, out1) if input.shape else g


@jvp("cummax", "cummin")
def cummax_forward(t, out1, dim):
    return (gather(t, dim, out1) if t.shape else t), None


def signed_logs(x):
    """Logarithms of the positive and of the negative elements; -inf for the others."""
    size = log(abs(x))
    return masked_fill(size, x <= 0, float("-inf")), masked_fill(size, x >= 0, float("-inf"))


@vjp("logcumsumexp")
@again("logcumsumexp")
def logcumsumexp(g, input, out, dim):
    """``exp(input) * (sum of g / exp(out) from here on)``, computed in logarithms for each sign of g. These have no
    derivative where g is 0, so the recorded backward adds without logarithms.
    """
    if not input.shape:
        return g
    if differentiated() and input.shape[dim]:
        return _by_halves(g, input, out, dim)
    out = masked_fill(out, (real(out) if out.dtype.is_complex else out) == float("-inf"), 0)
    if out.dtype.is_complex:
        behind = flip(logcumsumexp_of(flip(log(conj_of(g)) - out, (dim,)), dim), (dim,))
        return conj_of(exp(behind + input))
    up, down = [exp(flip(logcumsumexp_of(flip(part - out, (dim,)), dim), (dim,)) + input)
                for part in signed_logs(g)]
    return up - down


def _by_halves(g, input, out, dim):
    """``total[k] = g[k] + ratio[k] * total[k + 1]`` with ``ratio[k] = exp(out[k] - out[k + 1])``, which is at most 1.
    The spans that are summed double until they cover the line.
    """
    n = input.shape[dim]
    empty = (real(out) if out.dtype.is_complex else out) == float("-inf")
    out = masked_fill(out, empty, 0)
    ratio = conj_of(exp(slice(out, dim, 0, n - 1) - slice(out, dim, 1, n)))
    total, ratio, span = g, masked_fill(ratio, slice(empty, dim, 0, n - 1), 0), 1
    while span < n:                         # ratio has n - span elements: that of the last ones is 0
        total = cat([slice(total, dim, 0, n - span) + ratio * slice(total, dim, span, n),
                     slice(total, dim, n - span, n)], dim)
        if 2 * span < n:
            ratio = slice(ratio, dim, 0, n - 2 * span) * slice(ratio, dim, span, n - span)
        span *= 2
    return conj_of(exp(input - out)) * total


@jvp("logcumsumexp")
def logcumsumexp_forward(t, input, out, dim):
    if not input.shape:
        return t
    out = masked_fill(out, (real(out) if out.dtype.is_complex else out) == float("-inf"), 0)
    if out.dtype.is_complex:
        return exp(logcumsumexp_of(log(t) + input, dim) - out)
    up, down = [exp(logcumsumexp_of(part + input, dim) - out) for part in signed_logs(t)]
    return up - down
