"""Derivatives of rows at their special points: reverse, recorded, forward and second order, in float64.

The oracle is mpmath: derivatives of a formula that is written here, to 40 digits. Points are zeros of both signs, tiny
and far numbers, ones, and what is beside kinks and poles; at a kink a number of the table says what is taken. A row of
one operand that has a derivative stands here, or in ``ELSEWHERE`` with the reason.
"""
import math

import numpy as np
import pytest
from _special_oracle import number
from _walk import every_case
from mpmath import mp, mpf

import ptcore
from ptcore._ops import functions as ops
from ptcore.nn import functional as F

pytestmark = pytest.mark.core

EPS, INF = 2.0**-52, math.inf
FAR = (0.0, -0.0, 1e-300, -1e-300, 1e-20, 1e-8, -1e-8, 1e-3, 0.5, 1.0, -1.0, 3.0, -5.0, 25.0, -25.0, 40.0, -40.0,
       300.0, -300.0)
ALL = (*FAR, 1e10, -1e10, 1e150, -1e150)
UNIT = (0.0, -0.0, 1e-300, 1e-20, -1e-8, 0.25, -0.5, 0.999, 1 - EPS, EPS - 1)
POSITIVE = (1e-150, 1e-20, 1e-8, 0.5, 1.0, 3.0, 1e10, 1e100)


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def normal(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def sinc(x):
    return mp.sincpi(x)


def softplus(x):
    return mp.log1p(mp.exp(x)) if x < 0 else x + mp.log1p(mp.exp(-x))


def at_zero(first, second=0):
    """What is taken at 0 instead of a derivative that does not exist."""
    return {0.0: (first, second)}


def exact_power(n):
    return lambda x: mpf(x)**n


# name: (function, formula for mpmath, points, {point: (first, second) at a kink}, the largest error of the first
# derivative: relative, and absolute where a formula cancels); the second may have four times the relative error
ROWS = {
    "exp": (ptcore.exp, mp.exp, FAR),
    "exp2": (ptcore.exp2, lambda x: mpf(2)**x, FAR),
    "expm1": (ptcore.expm1, mp.expm1, FAR),
    "log": (ptcore.log, mp.log, POSITIVE),
    "log2": (ptcore.log2, lambda x: mp.log(x) / mp.log(2), POSITIVE),
    "log10": (ptcore.log10, mp.log10, POSITIVE),
    "log1p": (ptcore.log1p, mp.log1p, (*(x for x in ALL if x > -1), -0.5, EPS - 1)),
    "sin": (ptcore.sin, mp.sin, FAR),
    "cos": (ptcore.cos, mp.cos, FAR),
    "tan": (ptcore.tan, mp.tan, (0.0, -0.0, 1e-8, 1.0, -1.5, 1.57, 3.0)),
    "asin": (ptcore.asin, mp.asin, UNIT, {1.0: (INF, INF), -1.0: (INF, -INF)}),
    "acos": (ptcore.acos, mp.acos, UNIT, {1.0: (-INF, -INF), -1.0: (-INF, INF)}),
    "atan": (ptcore.atan, mp.atan, FAR),
    "sinh": (ptcore.sinh, mp.sinh, FAR),
    "cosh": (ptcore.cosh, mp.cosh, FAR),
    "asinh": (ptcore.asinh, mp.asinh, (*FAR, 1e10, -1e80)),
    "acosh": (ptcore.acosh, mp.acosh, (1 + EPS, 1.5, 3.0, 1e10), {1.0: (INF, -INF)}),
    "atanh": (ptcore.atanh, mp.atanh, UNIT, {1.0: (INF, INF), -1.0: (INF, -INF)}),
    "tanh": (ptcore.tanh, mp.tanh, FAR),
    "erf": (ptcore.erf, mp.erf, (0.0, -0.0, 1e-8, 1.0, -1.0, 5.0, -25.0)),
    "erfc": (ptcore.erfc, mp.erfc, (0.0, -0.0, 1e-8, 1.0, -1.0, 5.0, 25.0)),
    "erfinv": (ptcore.erfinv, mp.erfinv, (0.0, -0.0, 1e-8, 0.5, -0.9, 0.999)),
    "sigmoid": (ptcore.sigmoid, sigmoid, FAR),
    "sigmoid_slope": (ops.sigmoid_slope, lambda x: sigmoid(x) * sigmoid(-x), FAR),
    "sinc": (ptcore.sinc, sinc, (0.0, -0.0, 1e-150, 1e-20, 1e-8, -1e-5, 1e-3, 0.25, 0.5, 1.5, -3.25, 10.5), {}, 1e-13),
    "sqrt": (ptcore.sqrt, mp.sqrt, (1e-100, 1e-8, 1.0, 1e100)),
    "rsqrt": (ptcore.rsqrt, lambda x: 1 / mp.sqrt(x), (1e-50, 1e-8, 1.0, 1e50)),
    "reciprocal": (ptcore.reciprocal, lambda x: 1 / x, (1e-50, -1e-8, 1.0, -1e50)),
    "square": (ptcore.square, lambda x: x * x, ALL),
    "neg": (ptcore.neg, lambda x: -x, ALL),
    "deg2rad": (ptcore.deg2rad, lambda x: x * mp.pi / 180, ALL),
    "rad2deg": (ptcore.rad2deg, lambda x: x * 180 / mp.pi, ALL),
    "lgamma": (ptcore.lgamma, mp.loggamma, (1e-8, 0.5, 1.0, 2.0, 3.5, 100.0, 1e10), {}, 1e-12, 1e-15),
    "digamma": (ptcore.digamma, mp.digamma, (1e-8, 0.5, 1.0, 2.0, 100.0, 1e10), {}, 1e-12),
    "i0": (ptcore.i0, lambda x: mp.besseli(0, x), (0.0, -0.0, 0.5, -3.0, 40.0), {}, 1e-13, 1e-15),
    "bessel_j0": (ptcore.special.bessel_j0, lambda x: mp.besselj(0, x), (0.0, -0.0, 1e-8, 0.5, -3.0, 40.0), {}, 1e-13,
                  1e-15),
    "bessel_j1": (ptcore.special.bessel_j1, lambda x: mp.besselj(1, x), (0.0, -0.0, 1e-8, 0.5, -3.0, 40.0), {}, 1e-13,
                  1e-15),
    "bessel_y0": (ptcore.special.bessel_y0, lambda x: mp.bessely(0, x), (1e-8, 0.5, 3.0, 40.0), {}, 1e-12, 1e-15),
    "ndtri": (ptcore.special.ndtri, lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), (1e-10, 0.1, 0.5, 0.9), {}, 1e-12),
    "special_entr": (ptcore.special.entr, lambda x: -x * mp.log(x), (1e-100, 1e-8, 0.5, 3.0), {}, 1e-14, 1e-15),
    "special_log_ndtr": (ptcore.special.log_ndtr, lambda x: mp.log(normal(x)),
                         (0.0, 1e-8, 1.0, -1.0, -5.0, -30.0, 5.0), {}, 1e-12, 1e-13),
    "erfcx": (ptcore.special.erfcx, lambda x: mp.exp(x * x) * mp.erfc(x), (0.0, -0.0, 1e-8, 0.5, -3.0, 10.0), {}, 1e-11,
              1e-14),
    "logit_of": (ptcore.logit, lambda x: mp.log(x / (1 - x)), (1e-100, 1e-8, 0.25, 0.5, 0.75, 1 - EPS), {}, 1e-14,
                 1e-15),
    # -- activations
    "relu": (F.relu, lambda x: x if x > 0 else x * 0, ALL, at_zero(0)),
    "leaky_relu": (F.leaky_relu, lambda x: x if x > 0 else x * mpf(0.01), ALL, at_zero(0.01)),
    "gelu": (F.gelu, lambda x: x * normal(x), (0.0, -0.0, 1e-8, 1.0, -1.0, -5.0, 8.0, -25.0, 25.0), {}, 1e-13, 1e-16),
    "softplus": (lambda x: F.softplus(x, threshold=1e3), softplus, FAR),
    "silu": (F.silu, lambda x: x * sigmoid(x), FAR, {}, 1e-13),
    "mish": (F.mish, lambda x: x * mp.tanh(softplus(x)), FAR, {}, 1e-12, 1e-16),
    "elu": (F.elu, lambda x: x if x > 0 else mp.expm1(x), FAR, at_zero(1)),
    "selu": (F.selu, lambda x: 1.0507009873554805 * x if x > 0 else 1.7580993408473766 * mp.expm1(x), FAR,
             at_zero(1.7580993408473766)),
    "celu": (F.celu, lambda x: x if x > 0 else mp.expm1(x), FAR, at_zero(1)),
    "relu6": (F.relu6, lambda x: min(max(x, mpf(0)), mpf(6)), ALL, {0.0: (0, 0), 6.0: (0, 0)}),
    "hardtanh_of": (F.hardtanh, lambda x: min(max(x, mpf(-1)), mpf(1)), ALL, {1.0: (0, 0), -1.0: (0, 0)}),
    "hardsigmoid": (F.hardsigmoid, lambda x: min(max(x / 6 + mpf(1) / 2, mpf(0)), mpf(1)), ALL,
                    {3.0: (0, 0), -3.0: (0, 0)}),
    "hardswish": (F.hardswish, lambda x: x * min(max(x / 6 + mpf(1) / 2, mpf(0)), mpf(1)), ALL, {3.0: (1, 0)}),
    "hardshrink": (F.hardshrink, lambda x: x if abs(x) > 0.5 else x * 0, ALL, {0.5: (0, 0)}),
    "softshrink_of": (F.softshrink, lambda x: x - mp.sign(x) / 2 if abs(x) > 0.5 else x * 0, ALL, {0.5: (0, 0)}),
    "tanhshrink": (F.tanhshrink, lambda x: x - mp.tanh(x), FAR, {}, 1e-14),
    "softsign_of": (F.softsign, lambda x: x / (1 + abs(x)), (*(x for x in FAR if x), 1e10), {}, 1e-14),
    "logsigmoid": (F.logsigmoid, lambda x: -softplus(-x), FAR),
    "threshold": (lambda x: F.threshold(x, 1.0, 5.0), lambda x: x if x > 1 else x * 0 + 5, ALL, {1.0: (0, 0)}),
    # -- powers
    "pow 0": (lambda x: x**0, lambda x: x * 0 + 1, ALL),
    "pow 1": (lambda x: x**1, lambda x: x, ALL),
    "pow 2": (lambda x: x**2, exact_power(2), ALL),
    "pow 3": (lambda x: x**3, exact_power(3), FAR),
    "pow 4.0": (lambda x: ptcore.pow(x, ptcore.tensor(4.0, dtype=x.dtype)), exact_power(4), FAR),
    "pow -1": (lambda x: x**-1, exact_power(-1), (1e-50, -1e-8, 1.0, 1e50)),
    "pow 0.5": (lambda x: x**0.5, mp.sqrt, (1e-100, 1.0, 1e100)),
    "2 ** x": (lambda x: 2.0**x, lambda x: mpf(2)**x, FAR),
    "0 ** x": (lambda x: 0.0**x, lambda x: x * 0, (1.0, 3.0, 25.0)),
    # -- of two operands, by the first or the second
    "xlogy 0": (lambda x: ptcore.xlogy(x, 2.0), lambda x: x * mp.log(2), ALL),
    "xlogy by 0": (lambda x: ptcore.xlogy(ptcore.tensor(0.0, dtype=x.dtype), x), lambda x: x * 0,
                   (0.0, 1e-300, 0.5, 1e10)),
    "xlog1py 0": (lambda x: ptcore.special.xlog1py(x, 0.5), lambda x: x * mp.log(1.5), FAR),
    "xlog1py by": (lambda x: ptcore.special.xlog1py(ptcore.tensor(2.0, dtype=x.dtype), x), lambda x: 2 * mp.log1p(x),
                   (0.0, -0.0, 1e-8, 0.5, 1e10)),
    "hypot": (lambda x: ptcore.hypot(x, ptcore.full_like(x, 3.0)), lambda x: mp.sqrt(x * x + 9), ALL[:-4], {}, 1e-14,
              1e-16),
    "atan2": (lambda x: ptcore.atan2(x, ptcore.full_like(x, 3.0)), lambda x: mp.atan2(x, 3), FAR, {}, 1e-14),
    "logaddexp": (lambda x: ptcore.logaddexp(x, ptcore.full_like(x, 1.0)), lambda x: softplus(x - 1) + 1, FAR),
    "gated": (lambda x: F.glu(ptcore.stack([ptcore.full_like(x, 2.0), x]), 0)[0], lambda x: 2 * sigmoid(x), FAR),
    "norm": (lambda x: ptcore.stack([x, x * 0 + 3]).norm(), lambda x: mp.sqrt(x * x + 9), FAR, {}, 1e-14, 1e-16),
    "norm 3": (lambda x: ptcore.stack([x, x * 0 + 3]).norm(3), lambda x: mp.cbrt(abs(x)**3 + 27),
               (0.0, 0.5, 1.0, -5.0, 25.0), {}, 1e-13, 1e-16),
}

# rows of one operand that have a derivative and are not walked
ELSEWHERE = {
    "gelu_tanh": "test_gelu", "gelu_erf_grad": "gelu, second order", "gelu_tanh_grad": "gelu, second order",
    "sign": "0", "floor": "0", "ceil": "0", "trunc": "0", "round": "0", "round_to": "0", "frexp_exponent": "0",
    "frac": "1", "frexp_mantissa": "a step", "root_of_variance": "sqrt", "clamp_between": "test_extreme_gradients",
    "nan_replaced": "test_extreme_gradients", "i0e": "special/", "i1": "special/", "i1e": "special/",
    "polygamma_of": "digamma", "bessel_j_of": "bessel_j1", "bessel_y1": "bessel_y0", "modified_bessel_k0": "special/",
    "modified_bessel_k1": "special/", "scaled_modified_bessel_k0": "special/",
    "scaled_modified_bessel_k1": "special/", "spherical_bessel_j0": "sinc", "spherical_bessel_j_of": "sinc",
    "airy_ai": "special/", "airy_ai_slope": "special/",
}


def orders(function, value):
    """First derivatives in reverse, recorded and forward mode, then the second, in reverse and forward over reverse."""
    x = ptcore.tensor(value, dtype=ptcore.float64, requires_grad=True)
    reverse = ptcore.autograd.grad(function(x), x)[0]
    recorded = ptcore.autograd.grad(function(x), x, create_graph=True)[0]
    second = ptcore.autograd.grad(recorded, x)[0] if recorded.requires_grad else ptcore.zeros_like(x)
    x, one = x.detach(), ptcore.ones((), dtype=ptcore.float64)
    forward = ptcore.func.jvp(function, (x,), (one,))[1]
    both = ptcore.func.jvp(ptcore.func.grad(function), (x,), (one,))[1]
    return {"reverse": reverse, "recorded": recorded, "forward": forward}, {"second": second, "forward over": both}


def close(got, want, relative, absolute):
    if want != want or math.isinf(want):
        return np.array_equal(got, want, equal_nan=True)
    return abs(got - want) <= relative * abs(want) + absolute


def derivatives(formula, value):
    """The first and the second derivative by mpmath: differences over 1e-90 of the number, with the digits that takes."""
    size = abs(value) or 1.0
    with mp.workdps(400 + int(2 * abs(math.log10(size)))):
        x, h = mpf(value), mpf(10)**-90 * mpf(size)
        below, at, above = (formula(v) for v in (x - h, x, x + h))
        return number((above - below) / (2 * h)), number((above - 2 * at + below) / (h * h))


@pytest.mark.parametrize("name", ROWS)
def test_special_points(name):
    function, formula, points, *rest = ROWS[name]
    kinks, relative, absolute = (*rest, *({}, 3e-15, 0.0)[len(rest):])
    with every_case() as case:
        for value in (*points, *kinks):
            with case(repr(value)):
                want = kinks.get(value) if value in kinks else derivatives(formula, value)
                for k, found in enumerate(orders(function, value)):
                    for mode, got in found.items():
                        assert close(got.item(), want[k], relative * (1, 4)[k], max(absolute, 1e-170)), (
                            mode, got.item(), want[k])


def test_rows_of_one_operand_are_walked():
    names = {name for name in map(str, ptcore.ops) if (row := ptcore.ops[name]).kind == "elementwise"
             and len(row.tensors) == 1 and any(text is not None for text in row.partial or ())}
    assert names - set(ROWS) - set(ELSEWHERE) == set()
    assert set(ELSEWHERE) <= names
