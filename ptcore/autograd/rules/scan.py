"""Rules of cumulative operations."""
from ptcore._ops.functions import (
    abs,
    any,
    cumsum,
    exp,
    flip,
    gather,
    log,
    masked_fill,
    real,
    unbind,
    where,
)
from ptcore._ops.functions import cumprod as cumprod_of
from ptcore._ops.functions import logcumsumexp as logcumsumexp_of
from ptcore._ops.shaping.bodies import stack
from ptcore.autograd._helpers import conj_of, differentiated, interposed, ungathered
from ptcore.autograd.rules import jvp, vjp


def cumsum_from_end(x, dim):
    return flip(cumsum(flip(x, (dim,)), dim), (dim,))


@vjp("cumprod")
def cumprod(g, input, out, dim):
    """Before the first zero of a line ``sum(g * out) / input`` from here on; at it the same with
    the zero left out of the products; behind it nothing. The last is a constant here, which is
    wrong for a further derivative: the recorded backward of data with zeros multiplies instead.
    """
    if not input.shape:
        return g
    zero = input == 0
    if not interposed() and not input.is_meta and not bool(any(zero)):
        return cumsum_from_end(g * conj_of(out), dim) / conj_of(input)
    if differentiated() and not input.is_meta and bool(any(zero)):
        return _by_products(g, input, dim)
    count = cumsum(zero, dim)
    first = zero & (count == 1)
    before = cumsum_from_end(g * conj_of(out), dim) / conj_of(masked_fill(input, zero, 1))
    others = cumprod_of(masked_fill(input, first, 1), dim)
    others = masked_fill(g * conj_of(others), count == 0, 0)
    at = masked_fill(cumsum_from_end(others, dim), ~first, 0)
    return where(count == 0, before, at)


def _by_products(g, input, dim):
    """Line by line: what lies before an element times ``g[k] + input[k + 1] * (the same for k + 1)``."""
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
    """``out * cumsum(t / input)``; data with zeros goes line by line."""
    if not input.shape:
        return t
    if not input.is_meta and bool(any(input == 0)):
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
    """Logarithms of the positive and of the negative elements, -inf for the others."""
    size = log(abs(x))
    return masked_fill(size, x <= 0, float("-inf")), masked_fill(size, x >= 0, float("-inf"))


@vjp("logcumsumexp")
def logcumsumexp(g, input, out, dim):
    """``exp(input) * (sum of g / exp(out) from here on)`` in logarithms, for each sign of g."""
    if not input.shape:
        return g
    out = masked_fill(out, (real(out) if out.dtype.is_complex else out) == float("-inf"), 0)
    if out.dtype.is_complex:
        behind = flip(logcumsumexp_of(flip(log(conj_of(g)) - out, (dim,)), dim), (dim,))
        return conj_of(exp(behind + input))
    up, down = [exp(flip(logcumsumexp_of(flip(part - out, (dim,)), dim), (dim,)) + input)
                for part in signed_logs(g)]
    return up - down


@jvp("logcumsumexp")
def logcumsumexp_forward(t, input, out, dim):
    if not input.shape:
        return t
    out = masked_fill(out, (real(out) if out.dtype.is_complex else out) == float("-inf"), 0)
    if out.dtype.is_complex:
        return exp(logcumsumexp_of(log(t) + input, dim) - out)
    up, down = [exp(logcumsumexp_of(part + input, dim) - out) for part in signed_logs(t)]
    return up - down
