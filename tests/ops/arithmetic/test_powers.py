"""Powers with a number as the exponent or the base: products, quotients and roots, the same bits in every layout."""
import numpy as np
import pytest
from native import ulp_error

import ptcore

mpmath = pytest.importorskip("mpmath")
mp = mpmath.mp
pytestmark = pytest.mark.core
EXPONENTS = (2, 3, 4, -1, -2, 0.5, -0.5, 0, 1, 1.5, 5, -3)
FLOATS = {"float32": np.float32, "float64": np.float64}


def points(dtype):
    """Numbers of all sizes, denormal ones among them, with those whose powers end below or above the range."""
    rng, info = np.random.default_rng(3), np.finfo(dtype)
    low, high = info.minexp, info.maxexp
    wide = rng.choice([-1, 1], 400) * 2.0 ** rng.uniform(low - 20, high - 1, 400).astype(np.longdouble)
    return np.concatenate([wide.astype(dtype), rng.uniform(-3, 3, 100).astype(dtype)])


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("name", FLOATS)
def test_near_the_exact_power(name, exponent):
    dtype = FLOATS[name]
    x = points(dtype)
    if exponent != int(exponent):
        x = abs(x)
    want = [mp.mpf(float(v)) ** mp.mpf(exponent) for v in x]
    got = (ptcore.from_numpy(x) ** exponent).numpy()
    assert ulp_error(got, want, dtype).max() <= (0.51 if exponent in (2, -1, 0.5, 0, 1) else 2.5)


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("name", FLOATS)
def test_special_values(name, exponent):
    dtype = FLOATS[name]
    info = np.finfo(dtype)
    x = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2, -2, info.max, -info.max, info.tiny, info.smallest_subnormal,
                  -info.smallest_subnormal] * 9, dtype)
    with np.errstate(all="ignore"):
        want = np.power(x, np.full_like(x, exponent))       # arrays, since NumPy's x ** 0.5 is sqrt
    np.testing.assert_allclose((ptcore.from_numpy(x) ** exponent).numpy(), want, rtol=4 * info.eps)
    got = (ptcore.from_numpy(x) ** exponent).numpy()
    assert (np.signbit(got) == np.signbit(want))[~np.isnan(want)].all()


def forms(x):
    """[(tensor, what its elements are)] of one array in several layouts."""
    t = ptcore.from_numpy(x)
    yield t, x
    yield t[::2], x[::2]
    yield t.reshape(5, -1).t(), x.reshape(5, -1).T
    yield t[3].expand(4, 50), np.full((4, 50), x[3])
    for k in (0, 7):
        yield t[k], x[k]
        yield t[k:k + 1], x[k:k + 1]


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16", "float16", "complex64", "int16", "uint8"])
def test_layouts_and_kinds_of_numbers_give_the_same_bits(name):
    rng = np.random.default_rng(4)
    x = rng.uniform(0.1, 9, 20_000).astype("complex64" if name[0] == "c" else "float32")
    dtype = getattr(ptcore, name)
    for exponent in (e for e in EXPONENTS if name[0] not in "iu" or (e == int(e) and e >= 0)):
        whole = (ptcore.from_numpy(x).to(dtype) ** exponent)
        bits = {float(v) if name[0] != "c" else complex(v): w for v, w in zip(x[:60].tolist(), whole[:60].tolist())}
        for t, values in forms(x):
            t = t.to(dtype)
            y = ptcore.tensor(exponent, dtype=dtype)
            results = [t ** exponent, ptcore.pow(t, exponent), t.clone().pow_(exponent),
                       ptcore.pow(t, exponent, out=ptcore.empty(t.shape, dtype=dtype)), t ** y]
            for r in results:
                assert r.dtype == dtype
                assert r.equal(results[0]), (exponent, t.shape)
            column = ptcore.pow(t[..., None], ptcore.full((1,), exponent, dtype=dtype))
            assert column[..., 0].equal(results[0])
            flat, numbers = results[0].reshape(-1).tolist(), np.asarray(values).reshape(-1).tolist()
            assert all(r == bits[v] for r, v in zip(flat, numbers) if v in bits), (exponent, t.shape)


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_wrap(name):
    info = np.iinfo(name)
    x = np.array([0, 1, 2, 3, 7, 100, info.max, info.min, info.max // 2] * 5, name)
    for exponent in (0, 1, 2, 3, 4, 5, 63):
        want = [pow(int(v), exponent, 1 << info.bits) for v in x]
        got = (ptcore.from_numpy(x) ** exponent).numpy()
        assert got.dtype == x.dtype
        assert [int(v) % (1 << info.bits) for v in got] == want
    y = np.array([0, 1, 3, 7, 8, 15, 31, 63, 64, 100], name)
    got = (2 ** ptcore.from_numpy(y)).numpy()
    assert [int(v) % (1 << info.bits) for v in got] == [pow(2, int(v), 1 << info.bits) for v in y]
    if info.min < 0:
        assert (2 ** ptcore.tensor([-1, -3], dtype=getattr(ptcore, name))).tolist() == [0, 0]


@pytest.mark.parametrize("name", FLOATS)
def test_powers_of_two(name):
    dtype = FLOATS[name]
    y = np.concatenate([np.linspace(-1100, 1100, 1500), np.arange(-40, 40)]).astype(dtype)
    want = [mp.mpf(2) ** mp.mpf(float(v)) for v in y]
    assert ulp_error((2 ** ptcore.from_numpy(y)).numpy(), want, dtype).max() <= 1
    assert (2 ** ptcore.from_numpy(np.array([np.inf, -np.inf, 10], dtype))).tolist() == [np.inf, 0, 1024]


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex(name):
    rng = np.random.default_rng(5)
    x = (rng.normal(size=500) + 1j * rng.normal(size=500)).astype(name)
    for exponent in (0, 1, 2, 3, 4, -1, -2, -3, 0.5, 1j):
        want = [complex(mp.mpc(complex(v)) ** mp.mpmathify(exponent)) for v in x]
        got = (ptcore.from_numpy(x) ** exponent).numpy()
        np.testing.assert_allclose(got, want, rtol=8 * np.finfo(name).eps)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_derivatives(exponent):
    """First and second, in reverse and forward mode, where the exponent is a number and where it is a tensor."""
    x = np.array([0.3, 1.0, 2.5, 1e-3, 40.0] * 8)
    e = mp.mpf(exponent)
    first = np.array([float(e * mp.mpf(v) ** (e - 1)) for v in x])
    second = np.array([float(e * (e - 1) * mp.mpf(v) ** (e - 2)) for v in x])
    for form in (lambda t: t ** exponent, lambda t: ptcore.compile(lambda u: u ** exponent)(t),
                 lambda t: t ** ptcore.full((40,), float(exponent), dtype=ptcore.float64)):
        t = ptcore.from_numpy(x.copy()).requires_grad_()
        g, = ptcore.autograd.grad(form(t).sum(), t, create_graph=True)
        np.testing.assert_allclose(g.detach().numpy(), first, rtol=1e-14, atol=0)
        if g.requires_grad:
            h, = ptcore.autograd.grad(g.sum(), t)
            np.testing.assert_allclose(h.numpy(), second, rtol=1e-13, atol=0)
        else:
            assert not second.any()
    _, tangent = ptcore.func.jvp(lambda t: t ** exponent, (ptcore.from_numpy(x),), (ptcore.ones(40).double(),))
    np.testing.assert_allclose(tangent.numpy(), first, rtol=1e-14, atol=0)


@pytest.mark.parametrize("exponent", [1, 2, 3, 4])
def test_derivatives_at_zero(exponent):
    t = ptcore.zeros(9, dtype=ptcore.float64, requires_grad=True)
    g, = ptcore.autograd.grad((t ** exponent).sum(), t, create_graph=True)
    assert g.tolist() == [float(exponent == 1)] * 9
    if exponent > 1:
        h, = ptcore.autograd.grad(g.sum(), t)
        assert h.tolist() == [2.0 * (exponent == 2)] * 9


def test_compiled_powers_have_the_bits_of_eager_ones():
    x = ptcore.from_numpy(np.random.default_rng(6).uniform(0.1, 5, 3000).astype(np.float32))

    def chain(x):
        return [(x + 1) ** e * 0.5 for e in EXPONENTS] + [2 ** (x - 1), 3 ** x]

    column = x[:50, None] * 1
    for t in (x, x[:1], x[3], column, column.expand(50, 40), x[:100].reshape(10, 10).t()):
        for got, want in zip(ptcore.compile(chain)(t), chain(t)):
            assert got.equal(want)


def test_negative_integer_exponents_of_integers_are_refused():
    x = ptcore.tensor([1, 2, 3])
    for call in (lambda: x ** -1, lambda: x.pow(-2), lambda: x.clone().pow_(-1)):
        with pytest.raises(RuntimeError, match="integers to negative integer powers are not allowed"):
            call()
