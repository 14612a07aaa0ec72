"""The special functions of the scalar header against mpmath, SciPy and NumPy, at every ISA level of the machine."""

import ctypes
import functools

import numpy as np
import pytest
from native import address, build, isa_levels, needs_compiler, ulp_error
from scipy import special

mpmath = pytest.importorskip("mpmath")
mp = mpmath.mp
pytestmark = [pytest.mark.core, needs_compiler]

FLOATS = {"f": np.float32, "d": np.float64}
inf, nan = np.inf, np.nan
# name -> (value, lowest and highest argument, error of doubles beside that of rounding, in units of the largest of 1
# and the value)
ONE = {
    "bessel_j0": (lambda x: mp.besselj(0, x), -60, 60, 1e-15), "bessel_j1": (lambda x: mp.besselj(1, x), -60, 60, 1e-15),
    "bessel_y0": (lambda x: mp.bessely(0, x), 0, 60, 2e-15), "bessel_y1": (lambda x: mp.bessely(1, x), 0, 60, 2e-15),
    "modified_bessel_k0": (lambda x: mp.besselk(0, x), 0, 80, 1e-15),
    "modified_bessel_k1": (lambda x: mp.besselk(1, x), 0, 80, 1e-15),
    "scaled_modified_bessel_k0": (lambda x: mp.besselk(0, x) * mp.exp(x), 0, 80, 1e-15),
    "scaled_modified_bessel_k1": (lambda x: mp.besselk(1, x) * mp.exp(x), 0, 80, 1e-15),
    "spherical_bessel_j0": (lambda x: mp.sin(x) / x, -60, 60, 1e-15),
    "airy_ai": (mp.airyai, -30, 20, 1e-14), "airy_ai_slope": (lambda x: mp.airyai(x, derivative=1), -30, 20, 5e-14),
    "i0": (lambda x: mp.besseli(0, x), -88, 88, 3e-15), "i1": (lambda x: mp.besseli(1, x), -88, 88, 3e-15),
    "i0e": (lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), -300, 300, 1e-15),
    "i1e": (lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), -300, 300, 1e-15),
    "erfcx": (lambda x: mp.erfc(x) * mp.exp(x * x), -9, 100, 3e-15),
    "ndtri": (lambda p: -mp.sqrt(2) * mp.erfinv(1 - 2 * p), 0, 1, 1e-15),
    "log_ndtr": (lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2), -100, 12, 1e-15),
    "entr": (lambda x: -x * mp.log(x), 0, 1000, 1e-15),
    "lgamma": (lambda x: mp.log(abs(mp.gamma(x))), -30, 200, 3e-15), "digamma": (mp.digamma, -30, 200, 2e-14),
}
POLYNOMIALS = [f"{s}chebyshev_polynomial_{k}" for s in ("", "shifted_") for k in "tuvw"] + [
    "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"]
TWO = ["zeta", "polygamma", "nextafter", "remainder", "floor_divide", "fmod", "bessel_j_of", "spherical_bessel_j_of",
       *POLYNOMIALS]
FAST = ["remainder", "floor_divide", "fmod"]

SOURCE = r"""
#include "ptcore/scalar.h"
#define LOOP(name, T, call) \
    extern "C" __attribute__((visibility("default"))) void name(const T *PT_RESTRICT a, const T *PT_RESTRICT b, \
                                                                T *PT_RESTRICT r, int64_t n) \
    { (void)b; for (int64_t i = 0; i < n; i++) r[i] = call; }
namespace pt {
""" + "\n".join(f"LOOP({prefix}{f}_{t}, {c}, {space}{f}({args}))" for t, c in (("f", "float"), ("d", "double"))
                for prefix, space, names, args in (
                    ("", "", [*ONE, "frexp_mantissa", "frexp_exponent", "clamp_to_one"], "a[i]"),
                    ("", "", TWO, "a[i], b[i]"), ("fast_", "fast::", FAST, "a[i], b[i]"),
                    ("fast_", "fast::", ["spherical_bessel_j0"], "a[i]")) for f in names) + "\n}"


@pytest.fixture(scope="module", params=[pytest.param(level, marks=[pytest.mark.slow] if i else [])
                                        for i, level in enumerate(isa_levels())])
def header(request):
    lib = build(SOURCE, level=request.param)

    def call(name, x, y=None):
        x = np.ascontiguousarray(x)
        y = x if y is None else np.ascontiguousarray(y, x.dtype)
        r = np.empty_like(x)
        getattr(lib, f"{name}_{x.dtype.char}")(address(x), address(y), address(r), ctypes.c_int64(x.size))
        return r

    return call


def drawn(name, dtype, n=40):
    """Numbers of the whole range, near 0 and near the integers, where some functions are 0."""
    _, low, high, _ = ONE[name]
    rng = np.random.default_rng(sum(map(ord, name)))
    near = 10**rng.uniform(-12, 0, n // 2)
    x = np.concatenate([rng.uniform(low, high, n), rng.uniform(max(low, -5), min(high, 5), n), near,
                        -near if low < 0 else high - near if high == 1 else near, 1 + near, 2 + near]).astype(dtype)
    x = x[(x > low) & (x < high)]
    return x[x != np.floor(x)] if name in ("lgamma", "digamma") else x


@functools.cache
def exact(name, code):
    """Arguments and values, the same for every level."""
    x = drawn(name, FLOATS[code])
    with mp.workprec(120):
        return x, [ONE[name][0](mp.mpf(float(v))) for v in x]


@pytest.mark.parametrize("code", FLOATS)
@pytest.mark.parametrize("name", ONE)
@pytest.mark.outer
def test_accuracy(header, name, code):
    """Floats are rounded once; doubles have the error that the table states."""
    x, want = exact(name, code)
    got = header(name, x)
    if code == "f":
        error = ulp_error(got, want, np.float32)
        assert error.max() < (2.5 if name in ("spherical_bessel_j0", "entr") else 1.1), x[error.argmax()]
        return
    scale = np.array([max(1.0, abs(float(w))) for w in want])
    error = np.abs(np.array([float(mp.mpf(float(g)) - w) for g, w in zip(got, want)])) / scale
    assert error.max() < ONE[name][3], x[error.argmax()]


# name -> (arguments, values)
ENDS = {
    "bessel_j0": ([0, nan], [1, nan]), "bessel_j1": ([0, -0.0, nan], [0, -0.0, nan]),
    "bessel_y0": ([0, -1, nan], [-inf, nan, nan]), "bessel_y1": ([0, -1, nan], [-inf, nan, nan]),
    "modified_bessel_k0": ([0, -1, inf, nan], [inf, nan, 0, nan]),
    "modified_bessel_k1": ([0, -1, inf, nan], [inf, nan, 0, nan]),
    "scaled_modified_bessel_k0": ([0, -1, inf, nan], [inf, nan, 0, nan]),
    "scaled_modified_bessel_k1": ([0, -1, inf, nan], [inf, nan, 0, nan]),
    "spherical_bessel_j0": ([0, inf, -inf, nan], [1, 0, 0, nan]), "airy_ai": ([1e3, nan], [0, nan]),
    "i0": ([0, inf, -inf, nan, 1e30], [1, inf, inf, nan, inf]), "i1": ([0, inf, -inf, nan, -1e30], [0, inf, -inf, nan, -inf]),
    "i0e": ([0, inf, -inf, nan], [1, 0, 0, nan]), "i1e": ([0, inf, -inf, nan], [0, 0, -0.0, nan]),
    "erfcx": ([0, inf, -inf, nan, -1e3], [1, 0, inf, nan, inf]),
    "ndtri": ([0, 1, -0.1, 1.1, nan, 0.5], [-inf, inf, nan, nan, nan, 0]),
    "log_ndtr": ([inf, -inf, nan], [0, -inf, nan]), "entr": ([0, -1, inf, -inf, nan], [0, -inf, -inf, -inf, nan]),
    "lgamma": ([0, -0.0, -3, inf, -inf, nan, 1, 2], [inf, inf, inf, inf, inf, nan, 0, 0]),
    "digamma": ([0, -0.0, -3, inf, -inf, nan], [-inf, inf, nan, inf, nan, nan]),
    "clamp_to_one": ([-inf, -2, -0.0, 0.25, 1, 3, inf, nan], [0, 0, 0, 0.25, 1, 1, 1, nan]),
}


@pytest.mark.parametrize("code", FLOATS)
@pytest.mark.parametrize("name", ENDS)
@pytest.mark.outer
def test_ends(header, name, code):
    x, want = ENDS[name]
    np.testing.assert_array_equal(header(name, np.array(x, FLOATS[code])), np.array(want, FLOATS[code]))


@pytest.mark.parametrize("code", FLOATS)
def test_zeta(header, code):
    """NaN below 1, as in torch."""
    s = np.concatenate([np.linspace(1.01, 9, 37), [20, 40, 100, 1, 0.5, -3]])
    q = np.array([-1.5, -2, 0, 1e-30, 0.01, 0.5, 1, 1.5, 2, 3, 10, 100, 1e5, 1e10, nan, inf])
    s, q = [v.astype(FLOATS[code]) for v in np.broadcast_arrays(s[:, None], q)]
    with np.errstate(all="ignore"):
        want = special.zeta(s.astype(float), q.astype(float))
        # The terms beside 0 cancel for odd s; SciPy adds what is rounded off them.
        cancel = (q == -1.5) & (s % 2 == 1) & (s > 1)
        want = np.where(s < 1, nan, np.where(cancel, special.zeta(s.astype(float), 2.5), want)).astype(FLOATS[code])
    np.testing.assert_allclose(header("zeta", s, q), want, rtol=2e-7 if code == "f" else 5e-14)


@pytest.mark.parametrize("code", FLOATS)
def test_polygamma(header, code):
    n, x = np.broadcast_arrays(np.array([1, 2, 3, 5, 9])[:, None], np.concatenate([np.linspace(0.1, 30, 60), [1e4, 1e9]]))
    n, x = n.astype(FLOATS[code]), x.astype(FLOATS[code])
    want = special.polygamma(n.astype(int), x.astype(float)).astype(FLOATS[code])
    smallest = float(np.finfo(FLOATS[code]).smallest_subnormal)
    np.testing.assert_allclose(header("polygamma", n, x), want, rtol=2e-7 if code == "f" else 1e-13, atol=smallest)


def test_bessel_orders(header):
    x = np.concatenate([np.random.default_rng(0).uniform(-30, 30, 200), [0, 1e-9, 1e-200, 0.3, 2.404825557695773]])
    n, x = np.broadcast_arrays(np.arange(-5.0, 13)[:, None], x)
    np.testing.assert_allclose(header("bessel_j_of", x, n), special.jv(n, x), rtol=1e-12, atol=2e-15)
    n = np.maximum(n, 0)
    want = np.vectorize(lambda n, x: special.spherical_jn(int(n), x))(n, x)
    np.testing.assert_allclose(header("spherical_bessel_j_of", x, n), want, rtol=1e-12, atol=1e-14)


def by_recurrence(name, x, n):
    """In 60 digits; the kinds of Chebyshev differ in the first degree."""
    if name.startswith("shifted_"):
        x, name = 2 * x - 1, name[8:]
    first, step = {
        "chebyshev_polynomial_t": (x, lambda k, p, q: 2 * x * p - q),
        "chebyshev_polynomial_u": (2 * x, lambda k, p, q: 2 * x * p - q),
        "chebyshev_polynomial_v": (2 * x - 1, lambda k, p, q: 2 * x * p - q),
        "chebyshev_polynomial_w": (2 * x + 1, lambda k, p, q: 2 * x * p - q),
        "hermite_polynomial_h": (2 * x, lambda k, p, q: 2 * x * p - 2 * k * q),
        "hermite_polynomial_he": (x, lambda k, p, q: x * p - k * q),
        "laguerre_polynomial_l": (1 - x, lambda k, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1)),
        "legendre_polynomial_p": (x, lambda k, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1))}[name]
    if n < 1:
        return mp.mpf(n == 0)
    before, now = mp.mpf(1), first
    for k in range(1, n):
        before, now = now, step(k, now, before)
    return now


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(header, name):
    """Small and large degrees, inside the interval, at its ends and outside."""
    x = np.concatenate([np.linspace(-1, 1, 21), [-3, -1.5, 1.01, 4, 1e-8, 1 - 1e-9, -1 + 1e-9, 0.5]])
    n = np.array([-3, 0, 1, 2, 3, 5, 8, 17, 41, 90])
    x, n = np.broadcast_arrays(x[:, None], n)
    with mp.workdps(60):
        want = np.array([float(by_recurrence(name, mp.mpf(float(a)), int(b))) for a, b in zip(x.flat, n.flat)])
    got = header(name, x, n + np.copysign(0.5, n) * (n != 0)).reshape(-1)         # the fraction is cut off
    # a polynomial of this size somewhere in between has zeros that rounding moves
    size = 1 + np.abs(want)
    if "hermite" in name:
        size += np.array([float(abs(by_recurrence(name, mp.mpc(0, 1), int(b)))) for b in n.flat])
    np.testing.assert_array_less(np.abs(got - want) / size, 2e-12)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_without_an_end(header, name):
    """Degrees and arguments that no recurrence comes to the end of."""
    sign = -1 if "laguerre" in name else 1
    degrees = np.array([0, -1, 3, 4, nan, inf, -inf])
    for x in (inf, -inf):
        odd = inf * sign * np.sign(x)
        np.testing.assert_array_equal(header(name, np.full(7, x), degrees), [1, 0, odd, inf, nan, nan, nan])
    np.testing.assert_array_equal(header(name, np.full(7, nan), degrees), [1, 0, nan, nan, nan, nan, nan])
    if "chebyshev" in name:
        x = 2.0 if name.startswith("shifted") else 3.0
        np.testing.assert_array_equal(header(name, np.array([x, 0.75]), np.full(2, 1e15))[:1], [inf])
    if "hermite" in name:
        assert np.isnan(header(name, np.ones(1, np.float32), np.full(1, 129, np.float32))[0])
        assert np.isnan(header(name, np.ones(1), np.full(1, 513.0))[0])


def bits(rng, dtype, n):
    """Numbers of any bits, and ordinary ones."""
    raw = rng.integers(0, 2**(8 * np.dtype(dtype).itemsize), n, dtype=f"u{np.dtype(dtype).itemsize}").view(dtype)
    ends = np.array([0.0, -0.0, 1, -1, inf, -inf, nan, 2.5, -7, np.finfo(dtype).max, np.finfo(dtype).tiny,
                     np.finfo(dtype).smallest_subnormal], dtype)
    return np.concatenate([raw, rng.normal(size=n).astype(dtype), rng.integers(-9, 9, n).astype(dtype),
                           np.resize(ends, n)])


@pytest.mark.parametrize("code", FLOATS)
def test_by_bits(header, code):
    rng = np.random.default_rng(4)
    x, y = bits(rng, FLOATS[code], 3000), bits(rng, FLOATS[code], 3000)
    for a, b in ((x, y), (x, rng.permutation(y)), (y, x)):
        with np.errstate(all="ignore"):
            want = np.nextafter(a, b)
        got = header("nextafter", a, b)
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got)[want == 0], np.signbit(want)[want == 0])
    with np.errstate(all="ignore"):         # signalling NaNs among the bits
        mantissa, exponent = np.frexp(x)
    exponent = np.where(np.isfinite(x), exponent, 0)
    np.testing.assert_array_equal(header("frexp_mantissa", x), mantissa)
    np.testing.assert_array_equal(header("frexp_exponent", x), exponent)


@pytest.mark.parametrize("code", FLOATS)
@pytest.mark.parametrize("name", FAST)
def test_fast_divisions(header, name, code):
    """They are those without a limit, or NaN where the quotient is large."""
    rng = np.random.default_rng(5)
    x, y = bits(rng, FLOATS[code], 3000), bits(rng, FLOATS[code], 3000)
    with np.errstate(all="ignore"):
        multiple = rng.integers(-999, 999, y.size).astype(y.dtype) * y
    for a, b in ((x, y), (x, rng.permutation(y)), (multiple, y)):
        with np.errstate(all="ignore"):
            fast, whole, quotient = header("fast_" + name, a, b), header(name, a, b), np.abs(a / b)
        inside = (quotient < 2.0**20) & np.isfinite(b)
        np.testing.assert_array_equal(fast[inside], whole[inside])
        np.testing.assert_array_equal(np.signbit(fast)[inside], np.signbit(whole)[inside])
        beyond = ~np.isnan(fast)
        np.testing.assert_array_equal(fast[beyond], whole[beyond])


@pytest.mark.parametrize("code", FLOATS)
def test_fast_spherical_bessel(header, code):
    x = np.concatenate([np.random.default_rng(0).uniform(-60, 60, 500), [0, -0.0]]).astype(FLOATS[code])
    np.testing.assert_array_equal(header("fast_spherical_bessel_j0", x), header("spherical_bessel_j0", x))
    assert np.isnan(header("fast_spherical_bessel_j0", np.array([inf, 1e30, nan], FLOATS[code]))).all()
