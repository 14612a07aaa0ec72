"""Gradients where a function has a kink, a pole or a NaN.

The numbers are those of PyTorch 2.13 (printed by it, float64), with the reason beside them;
where ptcore's differ on purpose the line says so. The incoming gradient is 1, 2, 3, ... so that a
value in the wrong place shows.
"""
import math

import numpy as np
import pytest

import ptcore
from ptcore.nn import functional as F

pytestmark = pytest.mark.core

INF, NAN = math.inf, math.nan


def gradients(function, *inputs, dtype=ptcore.float64):
    leaves = [ptcore.tensor(x, dtype=dtype, requires_grad=True) for x in inputs]
    out = function(*leaves)
    weights = ptcore.arange(1, out.numel() + 1, dtype=dtype).reshape(out.shape)
    out.backward(weights)
    return [leaf.grad.to(ptcore.float64).tolist() for leaf in leaves]


# name: (function, inputs, gradient of each input)
CASES = {
    # a subgradient of 0 at the kink
    "abs": (ptcore.abs, [[0.0, -0.0, INF, -INF]], [[0, 0, 3, -4]]),
    "relu": (ptcore.relu, [[0.0, -0.0, INF, -1.0]], [[0, 0, 3, 0]]),
    # NaN is not <= 0, so its gradient passes: the NaN does not hide an unhealthy weight behind a 0
    "relu of nan": (ptcore.relu, [[NAN]], [[1]]),
    # beyond a bound nothing passes, and NaN is not within; PyTorch's last elements of an array pass 1
    "relu6": (F.relu6, [[NAN, INF, -INF, 0.0, 6.0, 1.0]], [[0, 0, 0, 0, 0, 6]]),
    "hardtanh": (F.hardtanh, [[NAN, INF, -INF, -1.0, 1.0, 0.0]], [[0, 0, 0, 0, 0, 6]]),
    "hardshrink": (F.hardshrink, [[NAN, INF, -INF, 0.5, -0.5, 0.0]], [[0, 2, 3, 0, 0, 0]]),
    "softshrink": (F.softshrink, [[NAN, INF, -INF, 0.5, -0.5, 0.0]], [[0, 2, 3, 0, 0, 0]]),
    "elu": (F.elu, [[NAN, INF, -INF, 0.0]], [[NAN, 2, 0, 4]]),
    "celu": (F.celu, [[NAN, INF, -INF, 0.0]], [[NAN, 2, 0, 4]]),
    "hardswish": (F.hardswish, [[NAN, INF, -INF, 0.0]], [[NAN, 2, 0, 2]]),
    # the slope of a norm at 0 is 0, and a product with 0 has a derivative where it has a value
    "hypot": (ptcore.hypot, [[0.0, 3.0, INF], [0.0, 0.0, 1.0]], [[0, 2, NAN], [0, 0, 0]]),
    "xlogy": (ptcore.xlogy, [[0.0, 0.0, 2.0], [0.0, 2.0, 1.0]], [[0, 2 * math.log(2), 0], [0, 0, 6]]),
    "tanh far out": (ptcore.tanh, [[INF, -INF, NAN, 400.0]], [[0, 0, NAN, 0]]),
    "sigmoid far out": (ptcore.sigmoid, [[INF, -INF, NAN, 800.0]], [[0, 0, NAN, 0]]),
    "expm1": (ptcore.expm1, [[INF, -INF, NAN, -800.0]], [[INF, 0, NAN, 0]]),
    "sinc": (ptcore.sinc, [[0.0, -0.0, NAN, 1.0]], [[0, 0, NAN, -4]]),
    "huber": (lambda x, y: F.huber_loss(x, y, reduction="none", delta=2.0),
              [[0.0, 1.0, 2.0, -3.0, NAN, 0.0, INF, INF], [0.0, 0.0, 0.0, 0.0, 0.0, NAN, INF, 0.0]],
              [[0, 2, 6, -8, NAN, NAN, NAN, 16], [0, -2, -6, 8, NAN, NAN, NAN, -16]]),
    "smooth_l1": (lambda x, y: F.smooth_l1_loss(x, y, reduction="none", beta=2.0),
                  [[0.0, 1.0, 2.0, -3.0, NAN, 0.0, INF, INF], [0.0, 0.0, 0.0, 0.0, 0.0, NAN, INF, 0.0]],
                  [[0, 1, 3, -4, NAN, NAN, NAN, 8], [0, -1, -3, 4, NAN, NAN, NAN, -8]]),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.5), [[0.0, -0.0, 2.0]], [[0.5, 1, 3]]),
    "sign": (ptcore.sign, [[0.0, 2.0]], [[0, 0]]),
    # poles
    "sqrt": (ptcore.sqrt, [[0.0, INF, 4.0]], [[INF, 0, 0.75]]),
    "rsqrt": (ptcore.rsqrt, [[0.0, INF]], [[-INF, 0]]),
    "log": (ptcore.log, [[0.0, INF, 1.0]], [[INF, 0, 3]]),
    "reciprocal": (ptcore.reciprocal, [[0.0, INF]], [[-INF, 0]]),
    # the exponent 0 gives 1 everywhere, so no base counts, not even NaN
    "pow 0": (lambda x: x ** 0, [[0.0, INF, NAN, -2.0]], [[0, 0, 0, 0]]),
    "pow 1": (lambda x: x ** 1, [[0.0, -2.0]], [[1, 2]]),
    "pow 2": (lambda x: x ** 2, [[0.0, -0.0, 3.0]], [[0, 0, 18]]),
    "pow half": (lambda x: x ** 0.5, [[0.0, 4.0]], [[INF, 0.5]]),
    "pow -1": (lambda x: x ** -1, [[0.0, 2.0]], [[-INF, -0.5]]),
    # 0**y is 0 around y > 0 and jumps at y = 0, where the gradient is taken as 0; a pole below
    "0 ** y": (lambda y: 0.0 ** y, [[0.0, 1.0, 2.0, -1.0, INF]], [[0, 0, 0, -INF, 0]]),
    "1 ** y": (lambda y: 1.0 ** y, [[0.0, 1.0]], [[0, 0]]),
    "tensor pow": (ptcore.pow, [[0.0, 0.0, 0.0, NAN, 2.0], [0.0, 1.0, -1.0, 0.0, 1.0]],
                   [[0, 2, -INF, 0, 5], [0, 0, -INF, NAN, 10 * math.log(2)]]),
    # equal ones share; beside NaN neither is smaller and both get everything
    "maximum": (ptcore.maximum, [[1.0, 2.0, INF, NAN, 1.0, NAN], [1.0, 1.0, INF, 1.0, NAN, NAN]],
                [[0.5, 2, 1.5, 4, 5, 6], [0.5, 0, 1.5, 4, 5, 6]]),
    "minimum": (ptcore.minimum, [[1.0, 2.0, INF, NAN, 1.0, NAN], [1.0, 1.0, INF, 1.0, NAN, NAN]],
                [[0.5, 0, 1.5, 4, 5, 6], [0.5, 2, 1.5, 4, 5, 6]]),
    # without a dim equals share; with one the index that was returned gets everything
    "max": (ptcore.max, [[1.0, 3.0, 3.0, 2.0]], [[0, 0.5, 0.5, 0]]),
    "min": (ptcore.min, [[1.0, 1.0, 3.0, 2.0]], [[0.5, 0.5, 0, 0]]),
    "max of nan": (ptcore.max, [[1.0, NAN, 3.0, NAN]], [[0, 0.5, 0, 0.5]]),
    "amax": (lambda x: x.amax(0), [[1.0, 3.0, 3.0, 2.0]], [[0, 0.5, 0.5, 0]]),
    "max along": (lambda x: x.max(0).values, [[1.0, 3.0, 3.0, 2.0]], [[0, 1, 0, 0]]),
    "max along, nan": (lambda x: x.max(0).values, [[1.0, NAN, 3.0, NAN]], [[0, 1, 0, 0]]),
    # the bound itself passes the gradient; NaN does not
    "clamp": (lambda x: x.clamp(-1, 1), [[-1.0, 1.0, 0.0, 2.0, -2.0, NAN]], [[1, 2, 3, 0, 0, 0]]),
    "clamp min": (lambda x: x.clamp(min=1), [[-1.0, 1.0, 2.0]], [[0, 2, 3]]),
    "clamp max": (lambda x: x.clamp(max=1), [[-1.0, 1.0, 2.0]], [[1, 2, 0]]),
    # norms of zero: the subgradient 0, as for abs; the largest of equals share
    "norm 1": (lambda x: x.norm(1), [[0.0, 3.0, -3.0]], [[0, 1, -1]]),
    "norm 2": (lambda x: x.norm(2), [[0.0, 0.0]], [[0, 0]]),
    "norm 3": (lambda x: x.norm(3), [[0.0, 0.0]], [[0, 0]]),
    "norm 1.5": (lambda x: x.norm(1.5), [[0.0, 0.0]], [[0, 0]]),
    "norm inf": (lambda x: x.norm(INF), [[0.0, 3.0, -3.0]], [[0, 0.5, -0.5]]),
    "norm along": (lambda x: x.norm(2, dim=1), [[[0.0, 0.0], [0.0, 2.0]]], [[[0, 0], [0, 2]]]),
    "distance of equals": (lambda x, y: (x - y).norm(dim=-1), [[[1.0, 1.0]], [[1.0, 1.0]]], [[[0, 0]], [[0, 0]]]),
    # a product with zeros is differentiated without dividing by them
    "prod, one zero": (ptcore.prod, [[0.0, 2.0, 3.0]], [[6, 0, 0]]),
    "prod, two zeros": (ptcore.prod, [[0.0, 0.0, 3.0]], [[0, 0, 0]]),
    "cumprod": (lambda x: x.cumprod(0), [[2.0, 0.0, 3.0, 0.0, 1.0]], [[1, 22, 0, 0, 0]]),
    # equal numbers: the deviation's kink has the gradient 0, the variance is smooth
    "std": (ptcore.std, [[2.0, 2.0, 2.0]], [[0, 0, 0]]),
    "std of one": (lambda x: x.std(unbiased=False), [[2.0]], [[0]]),
    "var": (ptcore.var, [[2.0, 2.0, 2.0]], [[0, 0, 0]]),
    "var of one": (ptcore.var, [[2.0]], [[NAN]]),
    # saturation
    "sigmoid": (ptcore.sigmoid, [[-1000.0, 1000.0, INF, -INF]], [[0, 0, 0, 0]]),
    "tanh": (ptcore.tanh, [[-1000.0, 1000.0, INF, -INF]], [[0, 0, 0, 0]]),
    "softplus": (F.softplus, [[-1000.0, 1000.0, INF, -INF]], [[0, 2, 3, 0]]),
    "gelu": (F.gelu, [[-1000.0, 1000.0, 0.0]], [[0, 2, 1.5]]),
    "silu": (F.silu, [[-1000.0, 1000.0, 0.0]], [[0, 2, 1.5]]),
    "gelu, far out": (F.gelu, [[1e30, -1e30, INF, -INF, NAN]], [[1, 0, 3, 0, NAN]]),
    "gelu by tanh, far out": (lambda x: F.gelu(x, approximate="tanh"), [[1e30, -1e30, INF, -INF, NAN]],
                              [[1, 0, 3, 0, NAN]]),
    "mish": (F.mish, [[-1000.0, 1e38, 3e38, -3e38]], [[0, 2, 3, 0]]),
    # the quotient of the function and a number whose inverse is infinite
    "i1": (ptcore.special.i1, [[1e-40, -1e-45, 0.0]], [[0.5, 1, 1.5]]),
    "i1e": (ptcore.special.i1e, [[1e-40, -1e-45, 0.0]], [[0.5, 1, 1.5]]),
    "softmax": (lambda x: x.softmax(0), [[-INF, 1.0]], [[0, 0]]),
    "log_softmax": (lambda x: x.log_softmax(0), [[-INF, 1.0]], [[1, -1]]),
    "logsumexp": (lambda x: x.logsumexp(0), [[-INF, 1.0]], [[0, 1]]),
    "logsumexp of inf": (lambda x: x.logsumexp(0), [[INF, 1.0]], [[NAN, 0]]),
    # on purpose: PyTorch gives NaN, which would spread from a fully masked row
    "logsumexp of nothing": (lambda x: x.logsumexp(0), [[-INF, -INF]], [[0, 0]]),
    # the branch not taken counts 0 times its gradient: the well-known NaN of where
    "where": (lambda x: ptcore.where(x > 0, x.log(), x), [[1.0, -1.0]], [[1, 2]]),
    "where at a pole": (lambda x: ptcore.where(x > 0, x.log(), x), [[0.0]], [[NAN]]),
    "masked first": (lambda x: x.masked_fill(x == 0, 1.0).log(), [[0.0, 1.0]], [[0, 2]]),
    "div": (ptcore.div, [[0.0, 1.0], [0.0, 0.0]], [[INF, INF], [NAN, -INF]]),
    # the rounded quotient is constant almost everywhere
    "remainder": (ptcore.remainder, [[5.0, -5.0], [3.0, 3.0]], [[1, 2], [-1, 4]]),
    "fmod": (ptcore.fmod, [[5.0, -5.0], [3.0, 3.0]], [[1, 2], [-1, 2]]),
    # ignored targets have no gradient even if nothing else is there
    "cross_entropy, all ignored": (lambda x: F.cross_entropy(x, ptcore.tensor([-100, -100]), reduction="sum"),
                                   [[[1.0, 0.0], [2.0, 0.0]]], [[[0, 0], [0, 0]]]),
    "nll_loss": (lambda x: F.nll_loss(x, ptcore.tensor([0])), [[[1.0, -INF]]], [[[-1, 0]]]),
    "layer_norm of equals": (lambda x: F.layer_norm(x, (3,)), [[[1.0, 1.0, 1.0]]],
                             [[[-1 / math.sqrt(1e-5), 0, 1 / math.sqrt(1e-5)]]]),
    "sort": (lambda x: x.sort(stable=True).values, [[1.0, 1.0, 0.0, NAN]], [[2, 3, 1, 4]]),
    "topk": (lambda x: x.topk(2).values, [[1.0, 3.0, 0.0, NAN]], [[0, 2, 0, 1]]),
    "empty sum": (lambda x: x[:0].sum(), [[1.0]], [[0]]),
    "empty mean": (lambda x: x[:0].mean(), [[1.0]], [[0]]),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_gradient(name, dtype):
    function, inputs, expected = CASES[name]
    got = gradients(function, *inputs, dtype=getattr(ptcore, dtype))
    for g, e in zip(got, expected, strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-12 if dtype == "float64" else 1e-5, err_msg=name)


@pytest.mark.parametrize("n", [1, 3, 67])
@pytest.mark.parametrize("name", ["abs", "relu", "relu of nan", "relu6", "hardshrink", "elu", "maximum", "minimum",
                                  "clamp", "pow 0", "0 ** y"])
def test_in_every_part_of_a_loop(name, n):
    """The fused backward loops: vector body, tail and strided input alike."""
    function, inputs, expected = CASES[name]
    count = len(inputs[0])
    wide = [np.repeat(np.tile(x, n), 2) for x in inputs]
    leaves = [ptcore.from_numpy(w)[::2].requires_grad_() for w in wide]
    function(*leaves).backward(ptcore.from_numpy(np.tile(np.arange(1.0, count + 1), n)))
    for leaf, e in zip(leaves, expected, strict=True):
        np.testing.assert_array_equal(leaf.grad.numpy(), np.tile(np.array(e, float), n))


@pytest.mark.parametrize("name", ["abs", "relu", "pow 2", "maximum", "norm 2", "clamp", "std", "prod, one zero", "tanh far out",
                                  "sigmoid far out", "expm1", "hypot", "xlogy", "sinc"])
def test_recorded(name):
    """The same numbers from the differentiable form of the rule."""
    function, inputs, expected = CASES[name]
    leaves = [ptcore.tensor(x, dtype=ptcore.float64, requires_grad=True) for x in inputs]
    out = function(*leaves)
    weights = ptcore.arange(1, out.numel() + 1, dtype=ptcore.float64).reshape(out.shape)
    got = ptcore.autograd.grad(out, leaves, weights, create_graph=True)
    for g, e in zip(got, expected, strict=True):
        np.testing.assert_allclose(g.detach().numpy(), e, rtol=1e-12)


@pytest.mark.parametrize(("function", "derivatives"), [
    (lambda x: x**0 + x**2, [0, 2, 0, 0]), (lambda x: x**1, [1, 0, 0, 0]), (lambda x: x**3, [0, 0, 6, 0]),
    (lambda x: x**4, [0, 0, 0, 24]), (lambda x: ptcore.pow(x, ptcore.tensor(0.0, dtype=ptcore.float64)), [0, 0, 0, 0]),
    (lambda x: ptcore.pow(x, ptcore.tensor(3.0, dtype=ptcore.float64)), [0, 0, 6, 0])])
@pytest.mark.parametrize("dtype", [ptcore.float64, ptcore.complex128])
def test_derivatives_of_powers_at_zero(function, derivatives, dtype):
    x = ptcore.tensor(0.0, dtype=dtype, requires_grad=True)
    y = function(x)
    for derivative in derivatives:
        (y,) = ptcore.autograd.grad(y, x, ptcore.ones_like(y), create_graph=True)
        assert y.item() == derivative
        if not y.requires_grad:
            y = y + 0 * x


@pytest.mark.parametrize("other", [0.5, -0.5, 3.0])
def test_xlog1py_at_zero(other):
    """0 is a product where the other has a logarithm."""
    x = ptcore.tensor([0.0, -0.0, 1e-3], dtype=ptcore.float64, requires_grad=True)
    y = ptcore.special.xlog1py(x, ptcore.tensor(other, dtype=ptcore.float64))
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), math.log1p(other), rtol=1e-15)


def test_xlog1py_where_there_is_no_logarithm():
    x = ptcore.zeros(4, dtype=ptcore.float64, requires_grad=True)
    other = ptcore.tensor([-1.0, -2.0, INF, NAN], dtype=ptcore.float64)
    y = ptcore.special.xlog1py(x, other)
    np.testing.assert_array_equal(y.detach().numpy(), [0, 0, 0, NAN])
    y[:3].sum().backward()
    assert x.grad[:3].tolist() == [0, 0, 0]
