"""Rules of cumulative operations."""
from ptcore._dtype import finfo
from ptcore._ops.functions import (
    abs,
    cumsum,
    flip,
    gather,
    logcumsumexp_slope,
    slice,  # noqa: F401  pickles may name it here
    unbind,
)
from ptcore._ops.scan.decompositions import (
    carried,
    carried_up,
    signed_logs,  # noqa: F401  pickles may name it here
    weights_up_to,
)
from ptcore._ops.scan.decompositions import logcumsumexp_slope as logcumsumexp_slope_by_ops
from ptcore._ops.shaping.bodies import stack
from ptcore.autograd.helpers import again, conj_of, differentiated, ungathered, zeros_among
from ptcore.autograd.rules import SMALLER, jvp, vjp
from ptcore.autograd.rules.reduction import products_slope_of


def cumsum_from_end(x, dim):
    return flip(cumsum(flip(x, (dim,)), dim), (dim,))


@vjp("cumprod")
@again("cumprod")
def cumprod(g, input, out, dim):
    """The product of earlier elements times the sum of the gradients behind. Without zeros this is the sum of
    ``g * out`` over the element, which takes fewer ops in a recorded backward."""
    if not input.shape:
        return g
    if differentiated() and zeros_among(input == 0) is False:
        return cumsum_from_end(g * conj_of(out), dim) / conj_of(input)
    return products_slope_of(g, input, out, dim)


@jvp("cumprod")
def cumprod_forward(t, input, out, dim):
    """``out * cumsum(t / input)``; data with zeros, or with numbers by which a quotient might leave the dtype's range,
    is computed line by line."""
    if not input.shape:
        return t
    if zeros_among(abs(input) < finfo(input.dtype).smallest_normal**0.5) is not False:
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


@vjp("logcumsumexp")
@again("logcumsumexp")
def logcumsumexp(g, input, out, dim):
    """``exp(input) * (sum of g / exp(out) from here on)``. A recorded backward, and that of complex numbers, adds by
    halves: logarithms have no derivative where g is 0.
    """
    if not input.shape or not input.shape[dim]:
        return g
    if differentiated() or out.dtype.is_complex:
        return _by_halves(g, input, out, dim)
    return logcumsumexp_slope(g, input, dim)


def _by_halves(g, input, out, dim):
    weight, ratio, whole = weights_up_to(input, out, dim)
    return conj_of(weight) * carried(g / conj_of(whole), conj_of(ratio), dim)


@jvp("logcumsumexp")
def logcumsumexp_forward(t, input, out, dim):
    """``sum of t * exp(input) up to here / exp(out)``, carried from element to element: logarithms would lose t where
    the input is large."""
    if not input.shape or not input.shape[dim]:
        return t
    weight, ratio, whole = weights_up_to(input, out, dim)
    return carried_up(t * weight, ratio, dim) / whole


SMALLER["logcumsumexp_slope"] = logcumsumexp_slope_by_ops
