"""Bessel functions, orthogonal polynomials, zeta and the like: values against integrals, sums and recurrences, and all
that an op does: dtypes, layouts, out=, meta, gradients of every order, forward mode, batching, tracing, errors."""
import math
import pickle

import numpy as np
import pytest
from _cases import LAYOUTS, array, tensor
from _tolerance import TOLERANCE, assert_near
from interpreters import Batcher, Forward, Tracer

import ptcore as pt

pytestmark = pytest.mark.core

S = pt.special
NODES, WEIGHTS = np.polynomial.legendre.leggauss(400)


def integral(f, low, high, x):
    """The integrals over t of f(t, x)."""
    t = (NODES + 1) * (high - low) / 2 + low
    return (f(t, x[..., None]) * WEIGHTS).sum(-1) * (high - low) / 2


def first_kind(n):
    return lambda x: integral(lambda t, x: np.cos(n * t - x * np.sin(t)) / np.pi, 0, np.pi, x)


def second_kind(n):
    return lambda x: (integral(lambda t, x: np.sin(x * np.sin(t) - n * t) / np.pi, 0, np.pi, x)
                      - integral(lambda t, x: (np.exp(n * t) + (-1)**n * np.exp(-n * t)) * np.exp(-x * np.sinh(t))
                                 / np.pi, 0, 8, x))


def modified(n, scaled=False):
    return lambda x: integral(lambda t, x: np.exp(x * (scaled - np.cosh(t))) * np.cosh(n * t), 0, 8, x)


def airy(x):
    """The integral of exp(i (x t + t^3 / 3)) along a ray of the complex plane where it falls."""
    ray = np.exp(1j * np.pi / 6)
    return integral(lambda t, x: (np.exp(1j * (x * ray * t + (ray * t)**3 / 3)) * ray).real / np.pi, 0, 9, x)


def hurwitz(x, q):
    """The sum of the first terms and Euler's and Maclaurin's of the rest."""
    n = 30
    head = sum((q + k)**-x for k in range(n))
    a = q + n
    return (head + a**(1 - x) / (x - 1) + a**-x / 2 + x * a**(-x - 1) / 12
            - x * (x + 1) * (x + 2) * a**(-x - 3) / 720
            + x * (x + 1) * (x + 2) * (x + 3) * (x + 4) * a**(-x - 5) / 30240)


def below(p):
    """Bisection with the error function of the standard library."""
    low, high = np.full_like(p, -9), np.full_like(p, 9)
    for _ in range(80):
        middle = (low + high) / 2
        less = np.vectorize(lambda y: math.erfc(-y / math.sqrt(2)) / 2)(middle) < p
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return middle


def recurrence(first, step):
    """p_0 = 1, p_1 = first(x), p_{k+1} = step(k, x, p_k, p_{k-1}), at degrees that are numbers."""
    def at(x, n):
        x, n = np.broadcast_arrays(x, n)
        before, now = np.ones_like(x), first(x)
        found = np.where(n >= 1, now, np.where(n >= 0, 1, 0))
        for k in range(1, 12):
            before, now = now, step(k, x, now, before)
            found = np.where(n >= k + 1, now, found)
        return found
    return at


def chebyshev(first):
    return recurrence(first, lambda k, x, p, q: 2 * x * p - q)


def shifted(f):
    return lambda x, n: f(2 * x - 1, n)


T, U = chebyshev(lambda x: x), chebyshev(lambda x: 2 * x)
V, W = chebyshev(lambda x: 2 * x - 1), chebyshev(lambda x: 2 * x + 1)
# name -> (oracle, lowest and highest of what is drawn)
ONE = {
    "bessel_j0": (first_kind(0), -20, 20), "bessel_j1": (first_kind(1), -20, 20),
    "bessel_y0": (second_kind(0), 0.3, 20), "bessel_y1": (second_kind(1), 0.3, 20),
    "modified_bessel_k0": (modified(0), 0.3, 9), "modified_bessel_k1": (modified(1), 0.3, 9),
    "scaled_modified_bessel_k0": (modified(0, 1), 0.3, 9), "scaled_modified_bessel_k1": (modified(1, 1), 0.3, 9),
    "spherical_bessel_j0": (lambda x: np.sinc(x / np.pi), -9, 9), "airy_ai": (airy, -6, 4),
    "ndtri": (below, 0.001, 0.999),
}
TWO = {
    "zeta": (hurwitz, 1.5, 6), "chebyshev_polynomial_t": (T, -2, 2), "chebyshev_polynomial_u": (U, -2, 2),
    "chebyshev_polynomial_v": (V, -2, 2), "chebyshev_polynomial_w": (W, -2, 2),
    "shifted_chebyshev_polynomial_t": (shifted(T), -1, 2), "shifted_chebyshev_polynomial_u": (shifted(U), -1, 2),
    "shifted_chebyshev_polynomial_v": (shifted(V), -1, 2), "shifted_chebyshev_polynomial_w": (shifted(W), -1, 2),
    "hermite_polynomial_h": (recurrence(lambda x: 2 * x, lambda k, x, p, q: 2 * x * p - 2 * k * q), -3, 3),
    "hermite_polynomial_he": (recurrence(lambda x: x, lambda k, x, p, q: x * p - k * q), -3, 3),
    "laguerre_polynomial_l": (recurrence(lambda x: 1 - x, lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1)),
                              -2, 6),
    "legendre_polynomial_p": (recurrence(lambda x: x, lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1)),
                              -2, 2),
}
EVERY = {**ONE, **TWO}
DEGREES = np.array([-2., 0., 1., 2., 5., 9., 3.7])


def drawn(name, dtype="float64", shape=(5, 7)):
    """Arguments as arrays: numbers, and for two the degrees or, of zeta, positive numbers."""
    _, low, high = EVERY[name]
    rng = np.random.default_rng(3)
    x = rng.uniform(low, high, shape)
    values = [x] if name in ONE else [x, rng.uniform(0.2, 5, shape[-1:]) if name == "zeta" else DEGREES]
    return [array(pt.from_numpy(v).to(getattr(pt, dtype))) for v in values]


def test_every_function_is_here():
    assert set(EVERY) <= set(S.__all__)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", EVERY)
def test_values(name, dtype):
    values = drawn(name, dtype)
    wide = [v.astype(float) for v in values]
    want = EVERY[name][0](*wide)
    if dtype == "float16":
        want = np.where(np.abs(want) < 65520, want, np.copysign(np.inf, want))
    for layout in LAYOUTS:
        got = getattr(S, name)(*[tensor(v, dtype, layout) for v in values])
        assert got.dtype is getattr(pt, dtype)
        table = {**TOLERANCE, "float64": (3e-11, 3e-13)}      # the recurrences and integrals round too
        assert_near(array(got), want, dtype, f"{name} {layout}", table)


@pytest.mark.parametrize("name", EVERY)
def test_integers_and_bools(name):
    """They are numbers of the default dtype."""
    more = [] if name in ONE else [pt.tensor([2, 3])]
    for x in (pt.tensor([1, 2]), pt.tensor([True, False]), pt.tensor([1, 2], dtype=pt.uint8)):
        got = getattr(S, name)(x, *more)
        assert got.dtype is pt.float32
        want = getattr(S, name)(x.double(), *[m.double() for m in more])
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", TWO)
def test_numbers(name):
    x, n = pt.tensor([1.5, 2.5]), pt.tensor([2., 3.])
    f = getattr(S, name)
    np.testing.assert_array_equal(f(x, 2).numpy(), f(x, pt.full((2,), 2.)).numpy())
    np.testing.assert_array_equal(f(1.5, n).numpy(), f(pt.full((2,), 1.5), n).numpy())
    assert f(x.double(), 2).dtype is pt.float64
    assert f(pt.tensor(1.5, dtype=pt.float64), n).dtype is pt.float32        # without dims it gives way
    assert f(x, pt.tensor(2., dtype=pt.float64)).dtype is pt.float32
    assert f(x, n.double()).dtype is pt.float64
    assert f(pt.tensor([1, 2]), 2.5).dtype is pt.float32
    with pytest.raises(TypeError, match=f"{name}: input must be a Tensor, got float"):
        f(1.5, 2)


@pytest.mark.parametrize("name", EVERY)
def test_out_and_meta(name):
    f, values = getattr(S, name), [pt.from_numpy(v) for v in drawn(name)]
    out = pt.empty(0, dtype=pt.float64)
    assert f(*values, out=out) is out
    np.testing.assert_array_equal(out.numpy(), f(*values).numpy())
    with pytest.raises(RuntimeError, match=f"{name}: result dtype float64 can't be cast"):
        f(*values, out=pt.empty(5, 7, dtype=pt.int64))
    other = pt.empty(3, dtype=pt.float64)
    with pytest.warns(UserWarning, match=f"An output .* was resized .* of {name};"):
        np.testing.assert_array_equal(f(*values, out=other).numpy(), out.numpy())
    meta = f(*[v.to("meta") for v in values])
    assert (meta.shape, meta.dtype, meta.device.type) == ((5, 7), pt.float64, "meta")
    assert f(*[v[:0] if k == 0 else v for k, v in enumerate(values)]).shape == (0, 7)


@pytest.mark.parametrize("name", EVERY)
def test_gradients(name):
    """Of both orders, through broadcasting; that by a degree is refused."""
    f = getattr(S, name)
    values = [pt.from_numpy(v) for v in drawn(name, shape=(3, 7))]
    if name == "zeta":
        y = values[1].requires_grad_()
        assert pt.autograd.gradcheck(lambda y: f(values[0], y), y)
        assert pt.autograd.gradgradcheck(lambda y: f(values[0], y), y)
    else:
        x = values[0].requires_grad_()
        assert pt.autograd.gradcheck(lambda x: f(x, *values[1:]), x)
        assert pt.autograd.gradgradcheck(lambda x: f(x, *values[1:]), x)
    if name in TWO:
        k = int(name != "zeta")
        args = [v.detach() for v in values]
        args[k].requires_grad_()
        with pytest.raises(NotImplementedError, match=f"{name}: the derivative by (n|input) is not implemented"):
            f(*args).sum().backward()
        with Forward() as forward, pytest.raises(NotImplementedError, match="is not implemented"):
            f(*[forward.pair(v.detach(), pt.ones_like(v) if j == k else None) for j, v in enumerate(args)])


@pytest.mark.parametrize(("name", "slope"), [("bessel_j1", 0.5), ("spherical_bessel_j0", 0.), ("bessel_j0", 0.)])
def test_gradients_at_zero(name, slope):
    x = pt.zeros(1, dtype=pt.float64, requires_grad=True)
    (g,) = pt.autograd.grad(getattr(S, name)(x).sum(), x, create_graph=True)
    assert g.item() == slope
    (second,) = pt.autograd.grad(g.sum(), x)
    assert second.item() == pytest.approx({"bessel_j1": 0, "spherical_bessel_j0": -1 / 3, "bessel_j0": -0.5}[name])


@pytest.mark.parametrize("name", [n for n in TWO if "polynomial" in n])
def test_gradients_at_the_ends(name):
    """Of polynomials on an interval there is nothing to divide by zero."""
    f = getattr(S, name)
    x = pt.tensor([-1., 0., 1.], dtype=pt.float64, requires_grad=True)
    for n in (0, 1, 4):
        assert pt.autograd.gradcheck(lambda x, n=n: f(x, n), x)


@pytest.mark.parametrize("name", EVERY)
def test_dtypes_of_gradients(name):
    f = getattr(S, name)
    k = int(name == "zeta")
    for dtype in (pt.float32, pt.float16):
        values = [pt.from_numpy(v) for v in drawn(name)]
        values[k] = values[k].to(dtype).requires_grad_()
        f(*values).sum().backward()
        assert values[k].grad.dtype is dtype
        assert values[k].grad.shape == values[k].shape


@pytest.mark.parametrize("name", EVERY)
def test_forward_mode(name):
    f, values, k = getattr(S, name), [pt.from_numpy(v) for v in drawn(name)], int(name == "zeta")
    with Forward() as forward:
        args = [forward.pair(v, pt.ones_like(v) if j == k else None) for j, v in enumerate(values)]
        tangent = forward.tangent(f(*args))
    values[k].requires_grad_()
    (want,) = pt.autograd.grad(f(*values).sum(), values[k])
    got = tangent if k == 0 else tangent.sum(0)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", EVERY)
def test_batched_and_traced(name):
    f, values = getattr(S, name), [pt.from_numpy(v) for v in drawn(name)]
    with Batcher() as batcher:
        got = batcher.stack(f(batcher.sample(values[0]), *values[1:]))
    np.testing.assert_array_equal(got.numpy(), f(*values).numpy())
    with Tracer() as tracer:
        inputs = [v.clone() for v in values]
        f(*inputs)
    assert name in [op for op, _, _ in tracer.tape]


@pytest.mark.parametrize("name", EVERY)
def test_bad_input(name):
    f, more = getattr(S, name), [] if name in ONE else [2]
    with pytest.raises(NotImplementedError, match=f"{name}: dtype must be one of .*, got complex64"):
        f(pt.ones(2, dtype=pt.complex64), *more)
    with pytest.raises(TypeError, match=f"{name}: (input|operands) must be"):
        f("x", *more)
    with pytest.raises(TypeError):
        f()
    with pytest.raises(TypeError):
        f(pt.ones(2), *more, axis=0)
    if more:
        with pytest.raises(RuntimeError, match=f"{name}: shapes must broadcast"):
            f(pt.ones(2), pt.ones(3))
        with pytest.raises((TypeError, ValueError)):
            f(pt.ones(2), "x")
        with pytest.raises((TypeError, ValueError)):
            f(pt.ones(2), None)


@pytest.mark.parametrize("name", EVERY)
def test_a_function_like_others(name):
    f = getattr(S, name)
    assert f is getattr(S, name)
    assert pickle.loads(pickle.dumps(f)) is f
    assert f.__module__ == "ptcore.special"

    class Loud(pt.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, args

    x = pt.ones(2).as_subclass(Loud)
    more = () if name in ONE else (2,)
    assert f(x, *more) == (f, (x, *more))


def test_ends():
    """Infinities, and degrees that are none."""
    inf, nan = float("inf"), float("nan")
    x = pt.tensor([inf, -inf, nan])
    for n, want in ((0, [1, 1, 1]), (-1, [0, 0, 0]), (3, [inf, -inf, nan]), (nan, [nan] * 3), (inf, [nan] * 3)):
        np.testing.assert_array_equal(S.chebyshev_polynomial_t(x, n).numpy(), want)
        flipped = [-v for v in want] if n == 3 else want
        np.testing.assert_array_equal(S.laguerre_polynomial_l(x, n).numpy(), flipped)
    np.testing.assert_array_equal(S.bessel_y0(pt.tensor([0., -1.])).numpy(), [-inf, nan])
    np.testing.assert_array_equal(S.modified_bessel_k1(pt.tensor([0., -1., inf])).numpy(), [inf, nan, 0])
    np.testing.assert_array_equal(S.ndtri(pt.tensor([0., 1., -1., 2.])).numpy(), [-inf, inf, nan, nan])
    np.testing.assert_array_equal(S.zeta(pt.tensor([1., 0.5, 2., 2.]), pt.tensor([1., 1., 0., inf])).numpy(),
                                  [inf, nan, inf, 0])
    np.testing.assert_array_equal(S.modified_bessel_i0(x).numpy(), [inf, inf, nan])
    np.testing.assert_array_equal(S.modified_bessel_i1(x).numpy(), [inf, -inf, nan])


@pytest.mark.parametrize("x", [-2.0, -1e-3, 0.0, 1e-3, 2.0])
def test_log_ndtr_of_third_order(x):
    """Also where its two forms meet; by the Mills ratio."""
    t = pt.tensor(x, dtype=pt.float64, requires_grad=True)
    y = pt.special.log_ndtr(t)
    got = []
    for _ in range(3):
        y, = pt.autograd.grad(y, t, create_graph=True)
        got.append(y.item())
    r = math.exp(-x * x / 2) / math.sqrt(2 * math.pi) / (math.erfc(-x / math.sqrt(2)) / 2)
    second = -r * (x + r)
    np.testing.assert_allclose(got, [r, second, -second * (x + r) - r * (1 + second)], rtol=1e-12)
