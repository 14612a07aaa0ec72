"""Bessel functions, orthogonal polynomials and other special functions of ``ptcore.special`` that SciPy computes."""
import numpy as np
from scipy import special

from ptcore._ops.table.host import hosted

# -- Bessel functions --------------------------------------------------------------------------------


@hosted("-bessel_j1(x)")
def bessel_j0(input, *, out=None):
    """Bessel function of the first kind, of order 0.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.bessel_j0(ptcore.tensor([0., 1.]))
    tensor([1.0000, 0.7652])
    """
    return special.j0(input)


@hosted("(bessel_j0(x) - bessel_j_of(x, 2.0)) / 2")
def bessel_j1(input, *, out=None):
    """Bessel function of the first kind, of order 1.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.bessel_j1(ptcore.tensor([0., 1.]))
    tensor([0.0000, 0.4401])
    """
    return special.j1(input)


@hosted("(bessel_j_of(x, order - 1) - bessel_j_of(x, order + 1)) / 2", numbers=("order",))
def bessel_j_of(input, order):
    """Bessel functions of the first kind of any order, for derivatives."""
    return special.jv(order, input)


@hosted("-bessel_y1(x)")
def bessel_y0(input, *, out=None):
    """Bessel function of the second kind, of order 0: -inf at 0, NaN below.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.bessel_y0(ptcore.tensor([1., 2.]))
    tensor([0.0883, 0.5104])
    """
    return special.y0(input)


@hosted("bessel_y0(x) - out / x")
def bessel_y1(input, *, out=None):
    """Bessel function of the second kind, of order 1: -inf at 0, NaN below.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.bessel_y1(ptcore.tensor([1., 2.]))
    tensor([-0.7812, -0.1070])
    """
    return special.y1(input)


@hosted("-modified_bessel_k1(x)")
def modified_bessel_k0(input, *, out=None):
    """Modified Bessel function of the second kind, of order 0: inf at 0, NaN below.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.modified_bessel_k0(ptcore.tensor([1., 2.]))
    tensor([0.4210, 0.1139])
    """
    return special.k0(input)


@hosted("-modified_bessel_k0(x) - out / x")
def modified_bessel_k1(input, *, out=None):
    """Modified Bessel function of the second kind, of order 1: inf at 0, NaN below.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.modified_bessel_k1(ptcore.tensor([1., 2.]))
    tensor([0.6019, 0.1399])
    """
    return special.k1(input)


@hosted("out - scaled_modified_bessel_k1(x)")
def scaled_modified_bessel_k0(input, *, out=None):
    """``exp(input)`` times the modified Bessel function of the second kind, of order 0.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.scaled_modified_bessel_k0(ptcore.tensor([1., 2.]))
    tensor([1.1445, 0.8416])
    """
    return special.k0e(input)


@hosted("out - scaled_modified_bessel_k0(x) - out / x")
def scaled_modified_bessel_k1(input, *, out=None):
    """``exp(input)`` times the modified Bessel function of the second kind, of order 1.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.scaled_modified_bessel_k1(ptcore.tensor([1., 2.]))
    tensor([1.6362, 1.0335])
    """
    return special.k1e(input)


@hosted("-spherical_bessel_j_of(x, 1.0)")
def spherical_bessel_j0(input, *, out=None):
    """Spherical Bessel function of the first kind, of order 0: ``sin(input) / input``, and 1 at 0.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.spherical_bessel_j0(ptcore.tensor([0., 1.]))
    tensor([1.0000, 0.8415])
    """
    return special.spherical_jn(0, input)


@hosted("(order * spherical_bessel_j_of(x, order - 1) - (order + 1) * spherical_bessel_j_of(x, order + 1)) "
        "/ (2 * order + 1)", numbers=("order",))
def spherical_bessel_j_of(input, order):
    """Spherical Bessel functions of any order, for derivatives."""
    return special.spherical_jn(int(order), input)


@hosted("airy_ai_slope(x)")
def airy_ai(input, *, out=None):
    """Airy function Ai.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.airy_ai(ptcore.tensor([0., 1.]))
    tensor([0.3550, 0.1353])
    """
    return special.airy(input)[0]


@hosted("x * airy_ai(x)")
def airy_ai_slope(input, *, out=None):
    """The derivative of Ai."""
    return special.airy(input)[1]


# -- others ------------------------------------------------------------------------------------------

@hosted("2.5066282746310002 * exp(out * out / 2)")
def ndtri(input, *, out=None):
    """The number below which a standard normal variable is with probability ``input``.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.ndtri(ptcore.tensor([0.5, 0.975]))
    tensor([0.0000, 1.9600])
    """
    return special.ndtri(input)


@hosted(None, "-x * zeta(x + 1, y)")
def zeta(input, other, *, out=None):
    """Hurwitz zeta function: the sum of ``(k + other)**-input`` over k = 0, 1, ...

    Either argument may be a number. There is no derivative by ``input``.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.zeta(ptcore.tensor([2., 4.]), 1)
    tensor([1.6449, 1.0823])
    """
    return np.where(input < 1, np.nan, special.zeta(input, other))


# -- orthogonal polynomials --------------------------------------------------------------------------
#
# Those on an interval are Jacobi polynomials. Divided by their value at 1 they have a derivative of one form:
# n * (n + alpha + beta + 1) / (2 * (alpha + 1)) times that of degree n - 1 with both parameters one larger.

def _polynomial(evaluate, n, x, sign=1.0):
    """A polynomial whose degree is an array of numbers, ``sign**n`` being the sign of its leading coefficient."""
    n = np.trunc(n)
    known = np.isfinite(n)
    degree = np.where(known, np.clip(n, 0, 2.0**62), 0).astype(np.int64)
    value = np.where(np.isinf(x), (np.sign(x) * sign) ** (degree % 2) * np.inf, evaluate(degree, x))
    return np.where(known, np.where(n < 0, 0, np.where(degree == 0, 1, value)), np.nan)


def _t(n, x):
    return special.eval_chebyt(n, x)


def _u(n, x):
    return special.eval_chebyu(n, x)


def _v(n, x):
    """By those of the first two kinds of half the angle, which does not cancel."""
    sign, root = 1.0 - 2.0 * (n % 2), np.sqrt((1 + np.abs(x)) / 2)
    return np.where(x < 0, sign * _u(2 * n, root), _t(2 * n + 1, root) / root)


def _w(n, x):
    return (1.0 - 2.0 * (n % 2)) * _v(n, -x)


@hosted("trunc(y) * (trunc(y) + alpha + beta + 1) / (2 * (alpha + 1)) "
        "* jacobi_ratio(x, trunc(y) - 1, alpha + 1, beta + 1)", None, numbers=("alpha", "beta"))
def jacobi_ratio(input, n, alpha, beta):
    """Jacobi polynomials divided by their value at 1, for derivatives."""
    return _polynomial(lambda n, x: special.eval_jacobi(n, alpha, beta, x) / special.binom(n + alpha, n), n, input)


_T = "trunc(y) * trunc(y) * jacobi_ratio({x}, trunc(y) - 1, 0.5, 0.5)"
_U = "(trunc(y) + 1) * trunc(y) * (trunc(y) + 2) / 3 * jacobi_ratio({x}, trunc(y) - 1, 1.5, 1.5)"
_V = "trunc(y) * (trunc(y) + 1) * jacobi_ratio({x}, trunc(y) - 1, 0.5, 1.5)"
_W = "(2 * trunc(y) + 1) * trunc(y) * (trunc(y) + 1) / 3 * jacobi_ratio({x}, trunc(y) - 1, 1.5, 0.5)"


@hosted(_T.format(x="x"), None)
def chebyshev_polynomial_t(input, n, *, out=None):
    """Chebyshev polynomial of the first kind and degree ``n``: ``cos(n * t)`` at ``cos(t)``.

    ``n`` is a number or a tensor, taken without its fractional part; polynomials of negative degree are 0.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.chebyshev_polynomial_t(ptcore.tensor([0.5, 2.]), 2)
    tensor([-0.5000,  7.0000])
    """
    return _polynomial(_t, n, input)


@hosted(_U.format(x="x"), None)
def chebyshev_polynomial_u(input, n, *, out=None):
    """Chebyshev polynomial of the second kind and degree ``n``: ``sin((n + 1) * t) / sin(t)`` at ``cos(t)``.

    See :func:`ptcore.special.chebyshev_polynomial_t`.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.chebyshev_polynomial_u(ptcore.tensor([0.5, 2.]), 2)
    tensor([ 0., 15.])
    """
    return _polynomial(_u, n, input)


@hosted(_V.format(x="x"), None)
def chebyshev_polynomial_v(input, n, *, out=None):
    """Chebyshev polynomial of the third kind and degree ``n``: ``cos((n + 1/2) * t) / cos(t / 2)`` at ``cos(t)``.

    See :func:`ptcore.special.chebyshev_polynomial_t`.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.chebyshev_polynomial_v(ptcore.tensor([0.5, 2.]), 2)
    tensor([-1., 11.])
    """
    return _polynomial(_v, n, input)


@hosted(_W.format(x="x"), None)
def chebyshev_polynomial_w(input, n, *, out=None):
    """Chebyshev polynomial of the fourth kind and degree ``n``: ``sin((n + 1/2) * t) / sin(t / 2)`` at ``cos(t)``.

    See :func:`ptcore.special.chebyshev_polynomial_t`.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.chebyshev_polynomial_w(ptcore.tensor([0.5, 2.]), 2)
    tensor([ 1., 19.])
    """
    return _polynomial(_w, n, input)


@hosted("2 * " + _T.format(x="2 * x - 1"), None)
def shifted_chebyshev_polynomial_t(input, n, *, out=None):
    """:func:`ptcore.special.chebyshev_polynomial_t` at ``2 * input - 1``, for numbers in [0, 1].

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.shifted_chebyshev_polynomial_t(ptcore.tensor([0.5, 2.]), 2)
    tensor([-1., 17.])
    """
    return _polynomial(_t, n, 2 * input - 1)


@hosted("2 * " + _U.format(x="2 * x - 1"), None)
def shifted_chebyshev_polynomial_u(input, n, *, out=None):
    """:func:`ptcore.special.chebyshev_polynomial_u` at ``2 * input - 1``, for numbers in [0, 1].

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.shifted_chebyshev_polynomial_u(ptcore.tensor([0.5, 2.]), 2)
    tensor([-1., 35.])
    """
    return _polynomial(_u, n, 2 * input - 1)


@hosted("2 * " + _V.format(x="2 * x - 1"), None)
def shifted_chebyshev_polynomial_v(input, n, *, out=None):
    """:func:`ptcore.special.chebyshev_polynomial_v` at ``2 * input - 1``, for numbers in [0, 1].

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.shifted_chebyshev_polynomial_v(ptcore.tensor([0.5, 2.]), 2)
    tensor([-1., 29.])
    """
    return _polynomial(_v, n, 2 * input - 1)


@hosted("2 * " + _W.format(x="2 * x - 1"), None)
def shifted_chebyshev_polynomial_w(input, n, *, out=None):
    """:func:`ptcore.special.chebyshev_polynomial_w` at ``2 * input - 1``, for numbers in [0, 1].

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.shifted_chebyshev_polynomial_w(ptcore.tensor([0.5, 2.]), 2)
    tensor([-1., 41.])
    """
    return _polynomial(_w, n, 2 * input - 1)


@hosted("2 * trunc(y) * hermite_polynomial_h(x, trunc(y) - 1)", None)
def hermite_polynomial_h(input, n, *, out=None):
    """Physicists' Hermite polynomial of degree ``n``, orthogonal under ``exp(-input**2)``.

    See :func:`ptcore.special.chebyshev_polynomial_t`.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.hermite_polynomial_h(ptcore.tensor([0.5, 2.]), 2)
    tensor([-1., 14.])
    """
    return _polynomial(special.eval_hermite, n, input)


@hosted("trunc(y) * hermite_polynomial_he(x, trunc(y) - 1)", None)
def hermite_polynomial_he(input, n, *, out=None):
    """Probabilists' Hermite polynomial of degree ``n``, orthogonal under ``exp(-input**2 / 2)``.

    See :func:`ptcore.special.chebyshev_polynomial_t`.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.hermite_polynomial_he(ptcore.tensor([0.5, 2.]), 2)
    tensor([-0.7500,  3.0000])
    """
    return _polynomial(special.eval_hermitenorm, n, input)


@hosted("-laguerre_of(x, trunc(y) - 1, alpha + 1)", None, numbers=("alpha",))
def laguerre_of(input, n, alpha):
    """Generalised Laguerre polynomials, for derivatives."""
    return _polynomial(lambda n, x: special.eval_genlaguerre(n, alpha, x), n, input, -1.0)


@hosted("-laguerre_of(x, trunc(y) - 1, 1.0)", None)
def laguerre_polynomial_l(input, n, *, out=None):
    """Laguerre polynomial of degree ``n``, orthogonal under ``exp(-input)`` on the positive numbers.

    See :func:`ptcore.special.chebyshev_polynomial_t`.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.laguerre_polynomial_l(ptcore.tensor([0.5, 2.]), 2)
    tensor([ 0.1250, -1.0000])
    """
    return _polynomial(special.eval_laguerre, n, input, -1.0)


@hosted("trunc(y) * (trunc(y) + 1) / 2 * jacobi_ratio(x, trunc(y) - 1, 1.0, 1.0)", None)
def legendre_polynomial_p(input, n, *, out=None):
    """Legendre polynomial of degree ``n``, orthogonal on [-1, 1].

    See :func:`ptcore.special.chebyshev_polynomial_t`.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.special.legendre_polynomial_p(ptcore.tensor([0.5, 2.]), 2)
    tensor([-0.1250,  5.5000])
    """
    return _polynomial(special.eval_legendre, n, input)
