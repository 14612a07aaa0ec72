"""Values of special functions at the edges of their dtypes, where SciPy has none or loses digits: by mpmath, and
those of polynomials by their recurrences and cosines."""
import numpy as np
from mpmath import mp

inf, nan = np.inf, np.nan


def number(value):
    """An mpmath number as a double, inf where it is too large."""
    value = mp.mpf(value)
    if mp.isfinite(value) and abs(value) >= mp.mpf(2)**1024:
        return float(inf * int(mp.sign(value)))
    return float(value)


def far(order, x):
    """Hankel's series of x > 1000, which mpmath is slow at: the parts of even and of odd powers of i / x."""
    parts, term = [mp.mpf(0), mp.mpf(0)], mp.mpf(1)
    for k in range(16):
        parts[k % 2] += term * (-1)**(k // 2)
        term *= mp.mpf(4 * order**2 - (2 * k + 1)**2) / ((k + 1) * 8 * x)
    return parts


def bessel(order, second):
    def value(x):
        if second and x <= 0:
            return nan if x else -inf
        if abs(x) < 1000:
            return (mp.bessely if second else mp.besselj)(order, x)
        even, odd = far(order, abs(x))
        c, s = (f(abs(x) - (2 * order + 1) * mp.pi / 4) for f in (mp.cos, mp.sin))
        found = (even * s + odd * c if second else even * c - odd * s) * wave(x)
        return -found if x < 0 and order % 2 else found
    return value


def modified(order, scaled):
    """The second kind, and exp(x) times it."""
    def value(x):
        if x <= 0:
            return nan if x else inf
        if x < 1000:
            return mp.besselk(order, x) * (mp.exp(x) if scaled else 1)
        return mp.sqrt(mp.pi / (2 * x)) * mp.fsum(
            mp.fprod(mp.mpf(4 * order**2 - (2 * j - 1)**2) / (8 * j * x) for j in range(1, k + 1))
            for k in range(16)) if scaled else 0
    return value


def wave(x):
    """How far J and Y of x swing."""
    return mp.sqrt(2 / (mp.pi * abs(x))) if abs(x) > 1 else mp.mpf(1)


def small_wave(x):
    """The same of those that are 0 at 0."""
    return wave(x) if abs(x) > 1 else mp.mpf(0)


def airy(slope):
    """Ai or its derivative, how far it swings left of 0, and what is lost there: the phase 2/3 (-x)^(3/2) is rounded
    to a double, as in PyTorch. Beyond doubles there is none."""
    def value(x):
        if x < -mp.mpf(10)**205:
            return nan
        return mp.airyai(x, derivative=slope) if x < 1e3 else -0.0 if slope else 0

    def swing(x):
        return abs(x)**(0.25 if slope else -0.25) / mp.sqrt(mp.pi) if x < -1 else 0

    def lost(x):
        return swing(x) * min(2, 2e-16 * abs(x)**1.5) if x < -1 else 0
    return value, swing, nan, 0, lost


def nothing(x):
    return 0


def zeta(s, q):
    """The sum of its terms left of 0; to the right mpmath's, or Euler's and Maclaurin's sum from far on. NaN as in
    PyTorch where powers are complex."""
    if s == 1:
        return inf
    if s < 1:
        return nan
    if q <= 0 and (mp.isinf(q) or q == mp.floor(q)):        # before NaN, as in PyTorch
        return inf
    if mp.isnan(s) or mp.isnan(q) or (q <= 0 and s != mp.floor(s)):
        return nan
    if mp.isinf(s) or mp.isinf(q) or s > 10**6:
        return 0 if q > 1 else 1 if q == 1 else inf
    head = mp.mpf(0)
    while q <= 0:
        head += q**-s
        q += 1
    if s <= 20 and q <= 1000:
        return head + mp.zeta(s, q)
    if q < s:
        return head + mp.fsum((q + k)**-s for k in range(int(q * mp.expm1(92 / s)) + 2))
    rising = s
    head += q**(1 - s) / (s - 1) + q**-s / 2
    for k in range(1, 25):
        head += mp.bernoulli(2 * k) / mp.factorial(2 * k) * rising * q**(1 - s - 2 * k)
        rising *= (s + 2 * k - 1) * (s + 2 * k)
    return head


def spherical(x):
    """The one of order 2."""
    if abs(x) < 1e-9:
        return x * x / 15
    return (3 / x**2 - 1) * mp.sin(x) / x - 3 * mp.cos(x) / x**2


# name -> (value, what else rounding is measured by, values at -inf and inf, what else is lost)
ONE = {
    "bessel_j0": (bessel(0, False), wave, nan, nan), "bessel_j1": (bessel(1, False), small_wave, nan, nan),
    "bessel_y0": (bessel(0, True), wave, nan, nan), "bessel_y1": (bessel(1, True), wave, nan, nan),
    **{f"{s}modified_bessel_k{n}": (modified(n, s), nothing, nan, 0) for s in ("", "scaled_") for n in (0, 1)},
    "spherical_bessel_j0": (lambda x: mp.sin(x) / x if x else 1, lambda x: 1 / abs(x) if abs(x) > 1 else 0, 0, 0),
    # of the order 2 that the tests give the rows
    "bessel_j_of": (bessel(2, False), small_wave, nan, nan),
    "spherical_bessel_j_of": (spherical, lambda x: 1 / abs(x) if abs(x) > 1 else 0, 0, 0),
    "airy_ai": airy(0), "airy_ai_slope": airy(1),
    "ndtri": (lambda p: -mp.sqrt(2) * mp.erfinv(1 - 2 * p) if 0 < p < 1 else -inf if p == 0 else inf if p == 1 else nan,
              nothing, nan, nan),
    "special_log_ndtr": (lambda x: -x * x / 2 - mp.log(-x * mp.sqrt(2 * mp.pi)) if x < -1e8 else 0 if x > 50 else
                         mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2) if x > 0 else mp.log(mp.erfc(-x / mp.sqrt(2)) / 2),
                         nothing, -inf, 0),
    "special_entr": (lambda x: -x * mp.log(x) if x > 0 else 0 if x == 0 else -inf, nothing, -inf, -inf),
}


# ---- polynomials: a degree is a special value too ----

def chebyshev(kind):
    """By cosines and sines, or the hyperbolic ones, in as many digits as the degree has; and what is lost where the
    library rounds the angle to a double, as PyTorch does."""
    def at(x, n):
        if abs(x) == 1:
            mirrored = {"v": "w", "w": "v"}.get(kind, kind) if x < 0 else kind
            end = {"t": 1, "u": n + 1, "v": 1, "w": 2 * n + 1}[mirrored]
            return (-end if x < 0 and n % 2 else mp.mpf(end)), 0
        t, half = mp.acos(x), mp.mpf(0.5)
        above, of, f = {"t": (0, 0, mp.cos), "u": (1, 1, mp.sin), "v": (half, half, mp.cos),
                        "w": (half, half, mp.sin)}[kind]
        if abs(x) < 1 and (n + above) * mp.acos(abs(x)) >= mp.mpf(2)**1024:        # without an angle, as in PyTorch
            return mp.nan, 0
        value = (f((n + above) * t) / f(of * t)).real if of else f(n * t).real
        swing = abs(value) if abs(x) > 1 else 1 / abs(f(of * t)) if of else 1
        return value, swing * min(2, 4e-16 * (n + 1) * (1 + abs(t)))
    return at


def by_steps(first, step, size):
    """p_0 = 1, p_1 = first(x), p_(k + 1) = step(k, x, p_k, p_(k - 1)); rounding goes by the size."""
    def at(x, n):
        before, now = mp.mpf(1), first(x)
        for k in range(1, int(n)):
            before, now = now, step(mp.mpf(k), x, now, before)
        return now, 4e-16 * n * size(x, n, now)

    def high(x, degrees):
        """The same of large degrees, in long doubles, for all degrees at once."""
        found, x = {}, np.longdouble(x)
        before, now = np.longdouble(1), first(x)
        with np.errstate(all="ignore"):
            for k in range(1, int(max(degrees))):
                if k in degrees:
                    found[k] = now
                before, now = now, step(np.longdouble(k), x, now, before)
        found[max(degrees)] = now
        return {k: (mp.mpf(v), 4e-16 * k * size(mp.mpf(float(x)), k, mp.mpf(v))) for k, v in
                ((k, np.format_float_scientific(v, unique=True) if np.isfinite(v) else None) for k, v in found.items())
                if v is not None}
    at.high = high
    return at


def laguerre(alpha):
    def step(k, x, p, q):
        return ((2 * k + 1 + alpha - x) * p - (k + alpha) * q) / (k + 1)

    def size(x, n, value):
        """Outside of the zeros, which end before 4 n + 2 alpha + 2, the value, inside a bound of it."""
        outside = x <= 0 or x > 4 * n + 2 * alpha + 2
        return abs(value) if outside else mp.exp(x / 2) * mp.binomial(n + alpha, n)

    return by_steps(lambda x: alpha + 1 - x, step, size)


def jacobi(a, b):
    """Divided by the value at 1."""
    def step(k, x, p, q):
        n, s = k + 1, 2 * (k + 1) + a + b
        ratio = n / (n + a)
        older = ratio * (n - 1) / (n - 1 + a)
        return (ratio * (s - 1) * (s * (s - 2) * x + a * a - b * b) * p
                - older * 2 * (n + a - 1) * (n + b - 1) * s * q) / (2 * n * (n + a + b) * (s - 2))
    return by_steps(lambda x: (a + 1 + (a + b + 2) * (x - 1) / 2) / (a + 1), step,
                    lambda x, n, value: abs(value) if abs(x) > 1 else n + 1 if x < 0 and b > a else 1)


def hermite(scale):
    """H (2) and He (1); their terms add up to the value at an imaginary number."""
    def step(k, x, p, q):
        return scale * x * p - scale * k * q

    def size(x, n, value):
        before, now = mp.mpf(1), scale * abs(x)
        for k in range(1, int(n)):
            before, now = now, scale * abs(x) * now + scale * k * before
        bound = mp.sqrt(mp.mpf(scale)**n * mp.factorial(n)) * mp.exp(x * x * scale / 4) * 2
        return min(now, bound)
    return by_steps(lambda x: scale * x, step, size)


# name -> (polynomial, sign of odd degrees' leading coefficient, highest degrees of floats and of doubles, parameters)
POLYNOMIALS = {
    **{f"{s}chebyshev_polynomial_{k}": (chebyshev(k), 1, (inf, inf)) for s in ("", "shifted_") for k in "tuvw"},
    "hermite_polynomial_h": (hermite(2), 1, (128, 512)), "hermite_polynomial_he": (hermite(1), 1, (128, 512)),
    "laguerre_polynomial_l": (laguerre(0), -1, (2**24, 2**24)),
    "laguerre_of": (laguerre(1), -1, (2**24, 2**24), 1.0),
    "legendre_polynomial_p": (jacobi(0, 0), 1, (2**24, 2**24)),
    "jacobi_ratio": (jacobi(0.5, 1.5), 1, (2**24, 2**24), 0.5, 1.5),
}
COVERED = {*ONE, "zeta", *POLYNOMIALS}


def polynomial(name, values, wide):
    """(value, what is lost) of all pairs of values and degrees, the degree first."""
    evaluate, sign, highest, *_ = POLYNOMIALS[name]
    results = {}
    for x in values:
        at = float(2 * x - 1) if name.startswith("shifted_") else x         # rounded to a double, as in PyTorch
        large = {}
        degrees = {int(n) for n in values if 1000 < n <= 2**17 and n <= highest[wide]}
        if degrees and hasattr(evaluate, "high") and np.isfinite(at):
            large = evaluate.high(at, degrees)
        for n in values:
            exact = name == "legendre_polynomial_p" and abs(x) == 1      # at the ends of any degree
            results[n, x] = one(evaluate, sign, inf if exact else highest[wide], at, n, large)
    return results


def one(evaluate, sign, highest, x, n, large):
    if not np.isfinite(n):
        return nan, 0
    n = int(n)                          # towards 0
    if n <= 0:
        return float(n == 0), 0
    if not np.isfinite(x):
        return (x * sign if n % 2 else abs(x)), 0
    if n > highest:
        return nan, 0
    if highest == inf and n > 1000 and hasattr(evaluate, "high"):
        return x**(n % 2), 0
    if n in large:
        value, lost = large[n]
    elif n > 1000 and hasattr(evaluate, "high") and (abs(x) > 1 if sign > 0 else x < 0 or x > 4 * n + 8):
        return (inf if n % 2 == 0 else inf * sign * np.sign(x)), 0      # beyond the zeros, too large for a long double
    else:
        with mp.workdps(700 if n > 1e6 else 60):
            value, lost = evaluate(mp.mpf(x), mp.mpf(n))
    return number(value), number(lost)
