"""Derivatives of running log-sum-exps and products where the inputs are large, small or infinite. The oracle is NumPy in
extended precision, or exact fractions."""
import math
from fractions import Fraction

import numpy as np
import pytest

import ptcore as pt
from ptcore._ops.scan.decompositions import logcumsumexp_slope

pytestmark = pytest.mark.core


def weights(x):
    """w[k, i]: the share of term i in the k-th result."""
    n = len(x)
    w = np.zeros((n, n), np.longdouble)
    for k in range(n):
        terms = np.exp(x[:k + 1] - x[:k + 1].max()) if x[:k + 1].max() > -np.inf else np.zeros(k + 1)
        w[k, :k + 1] = terms / max(terms.sum(), 1e-300)
    return w


LINES = {
    "ordinary": [0.5, -1.0, 2.0, 0.25, 1.0], "far": [1e8, 0, 0, 0], "equal and far": [1e8, 1e8, 1e8, 1e8],
    "rising": [-3e9, 0, 1e7, 4e8, 4e8], "falling": [1e30, 1e20, 1e10, 0], "below": [-1e8, -1e8, -1e8 - 8],
    "ends": [3e38, -3e38, 3e38, 0], "nothing first": [-np.inf, -np.inf, 1.0, 2.0], "nothing": [-np.inf, -np.inf],
    "gaps": [1.0, -np.inf, 1.0], "one": [1e9],
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", LINES)
def test_logcumsumexp(name, dtype):
    dtype = getattr(pt, dtype)
    x = pt.tensor(LINES[name], dtype=dtype, requires_grad=True)
    w = weights(x.detach().double().numpy().astype(np.longdouble))
    g = pt.tensor([1.0, -2.0, 0.0, 0.5, 1e-3][:len(x)], dtype=dtype)
    numbers = g.double().numpy()
    tolerance = {pt.bfloat16: 1e-2, pt.float32: 2e-6, pt.float64: 1e-13}[dtype]
    got = pt.autograd.grad(x.logcumsumexp(0), x, g)[0]
    np.testing.assert_allclose(got.double().numpy(), np.asarray(numbers @ w, float), rtol=tolerance, atol=tolerance)
    recorded = pt.autograd.grad(x.logcumsumexp(0), x, g, create_graph=True)[0].detach()
    np.testing.assert_allclose(recorded.double().numpy(), got.double().numpy(), rtol=tolerance, atol=tolerance)
    if dtype is not pt.bfloat16:                            # as devices compute it, and graphs that are decomposed
        by_ops = logcumsumexp_slope(g, x.detach(), 0)
        np.testing.assert_allclose(by_ops.numpy(), np.asarray(numbers @ w, float), rtol=tolerance, atol=tolerance)
    for dim, shape in ((0, (-1, 1)), (1, (1, -1))):         # lines side by side, and one after the other
        rows = x.detach().reshape(shape).expand(*(37 if n == 1 else -1 for n in shape)).clone().requires_grad_()
        many = pt.autograd.grad(rows.logcumsumexp(dim), rows, g.reshape(shape).expand(rows.shape))[0]
        assert (many.movedim(dim, 0) == got.unsqueeze(1)).all()


@pytest.mark.parametrize("name", ["ordinary", "far", "falling", "ends", "nothing first", "gaps", "one"])
def test_tangents_of_logcumsumexp(name):
    x = pt.tensor(LINES[name])
    t = pt.tensor([1e-3, -2.0, 0.0, 0.5, 1.0][:len(x)])
    got = pt.func.jvp(lambda x: x.logcumsumexp(0), (x,), (t,))[1]
    want = weights(x.numpy().astype(np.longdouble)) @ t.numpy()
    np.testing.assert_allclose(got.numpy(), np.asarray(want, float), rtol=2e-6, atol=1e-9)


def test_logcumsumexp_of_infinity_and_nan():
    """As from log-sum-exps of the parts: infinity has the weight inf - inf, numbers beside it none."""
    x = pt.tensor([1.0, np.inf, 2.0], requires_grad=True)
    np.testing.assert_array_equal(pt.autograd.grad(x.logcumsumexp(0).sum(), x)[0].numpy(), [1, np.nan, 0])
    x = pt.tensor([1.0, np.nan, 2.0], requires_grad=True)
    assert pt.autograd.grad(x.logcumsumexp(0).sum(), x)[0].isnan().all()


@pytest.mark.parametrize("numbers", [[1e-40, 2.0], [2.0, 1e-40, 3.0], [1e-30, 1e30, 2.0], [3.0, -1e-45], [5e-39, 1e30]])
@pytest.mark.parametrize("scale", [1.0, 1e8])
def test_tangents_of_cumprod_of_small_numbers(numbers, scale):
    x = np.array(numbers, np.float32)
    t = (scale * np.arange(1, len(x) + 1)).astype(np.float32)
    got = pt.func.jvp(lambda x: x.cumprod(0), (pt.from_numpy(x),), (pt.from_numpy(t),))[1]
    wide = x.astype(float)
    want = [sum(t[i] * np.prod(np.delete(wide[:k + 1], i)) for i in range(k + 1)) for k in range(len(x))]
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5)


PRODUCTS = {
    "ordinary": [2.0, -3.0, 0.5, 7.0, 1.25],
    "one zero": [2.0, 0.0, 3.0, -5.0],
    "two zeros": [2.0, 0.0, 3.0, 0.0, 4.0],
    "small, then large": [1e-30, 1e-30, 1e30, 1e30, 3.0],
    "alternating": [1e-30, 1e30] * 9 + [5.0],
    "denormal": [1e-40, 1e30, 2.0],
    "one": [3.0],
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name, dtype):
    """Gradients of prod and cumprod are sums of exact products of the other factors."""
    x = [Fraction(v) for v in pt.tensor(PRODUCTS[name], dtype=pt.float32).tolist()]
    n = len(x)
    weights = [Fraction(k + 1) for k in range(n)]

    def others(i, k):
        return math.prod([x[j] for j in range(k + 1) if j != i], start=Fraction(1))
    leaf = pt.tensor([float(v) for v in x], dtype=getattr(pt, dtype), requires_grad=True)
    tiny = {"float32": 1e-45, "complex64": 1e-45}.get(dtype, 5e-324)
    tolerance = 2e-7 if tiny == 1e-45 else 1e-14
    (found,) = pt.autograd.grad(pt.prod(leaf, 0), leaf, pt.tensor(2.0, dtype=leaf.dtype))
    want = [float(2 * others(i, n - 1)) for i in range(n)]
    np.testing.assert_allclose(found.numpy(), want, rtol=tolerance, atol=tiny)
    rows = pt.stack([leaf, leaf.detach()], 1)[:, :1].expand(n, 3)
    (found,) = pt.autograd.grad((pt.cumprod(rows, 0) * pt.arange(1, n + 1)[:, None]).real.sum(), leaf)
    want = [float(3 * sum(weights[k] * others(i, k) for k in range(i, n))) for i in range(n)]
    np.testing.assert_allclose(found.numpy(), want, rtol=4 * tolerance, atol=4 * tiny)


@pytest.mark.parametrize("f", [pt.prod, pt.cumprod], ids=["prod", "cumprod"])
def test_gradients_of_lines_do_not_depend_on_their_neighbours(f):
    """A line with a zero is computed in another way than the others of its block."""
    x = np.random.default_rng(4).standard_normal((40, 9))
    with_zero = x.copy()
    with_zero[3, 5] = 0
    for view, dim in ((lambda x: x, 1), (lambda x: x.T, 0), (lambda x: x.T.copy(), 0), (lambda x: x.reshape(4, 10, 9), 2)):
        found = []
        for numbers in (x, with_zero):
            leaf = pt.from_numpy(view(numbers)).requires_grad_()
            (g,) = pt.autograd.grad(f(leaf, dim).sum(), leaf)
            found.append(g.movedim(dim, -1).reshape(40, 9).numpy())
        plain, beside = [np.delete(g, 3, 0) for g in found]
        np.testing.assert_array_equal(plain, beside)
        assert (found[0][3] != found[1][3]).any()


@pytest.mark.parametrize("f", [pt.prod, pt.cumprod], ids=["prod", "cumprod"])
def test_long_lines_with_a_zero(f):
    """Products inside of pieces of a line are computed again; the oracle is NumPy's, of what lies before and behind."""
    x = np.random.default_rng(1).uniform(0.9, 1.1, 5000) * np.random.default_rng(2).choice([-1, 1], 5000)
    x[2047] = 0
    leaf = pt.from_numpy(x).requires_grad_()
    (found,) = pt.autograd.grad(f(leaf, 0).sum(), leaf)
    before = np.concatenate([[1], np.cumprod(x[:-1])])
    rest = np.zeros(5001)
    for i in range(4999, -1, -1):
        rest[i] = (x[i + 1] * rest[i + 1] if i < 4999 else 0) + 1 if f is pt.cumprod else \
            x[i + 1] * rest[i + 1] if i < 4999 else 1
    np.testing.assert_allclose(found.numpy(), before * rest[:-1], rtol=1e-11, atol=1e-300)
