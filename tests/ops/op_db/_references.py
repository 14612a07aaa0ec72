"""SciPy's functions for entries that torch's own tests compare with nothing, in double precision."""
import numpy as np
from scipy import special


def _double(function):
    """The function of doubles; of two arguments the second is a degree, whose fraction does not count."""
    def computed(x, n=None):
        x = np.asarray(x, np.float64)
        if n is None:
            return function(x)
        n = np.asarray(n, np.float64)
        known = np.abs(n) < 2.0 ** 31
        return np.where(known, function(x, np.where(known, n, 0).astype(np.int64)), np.nan)
    return computed


def _jacobi(a, b, at_one):
    """The polynomials of degree n that are those of Jacobi up to a factor: they have the value at_one(n) at 1."""
    return _double(lambda x, n: special.eval_jacobi(n, a, b, x) / special.eval_jacobi(n, a, b, 1.0) * at_one(n))


def _shifted(function):
    return lambda x, n: function(2 * np.asarray(x, np.float64) - 1, n)


_T, _U, _V, _W = (_jacobi(a, b, at_one) for a, b, at_one in (
    (-0.5, -0.5, np.ones_like), (0.5, 0.5, lambda n: n + 1), (-0.5, 0.5, np.ones_like), (0.5, -0.5, lambda n: 2 * n + 1)))

OF = {
    "special.chebyshev_polynomial_t": _T, "special.chebyshev_polynomial_u": _U, "special.chebyshev_polynomial_v": _V,
    "special.chebyshev_polynomial_w": _W, "special.shifted_chebyshev_polynomial_t": _shifted(_T),
    "special.shifted_chebyshev_polynomial_u": _shifted(_U), "special.shifted_chebyshev_polynomial_v": _shifted(_V),
    "special.shifted_chebyshev_polynomial_w": _shifted(_W),
    "special.hermite_polynomial_h": _double(lambda x, n: special.eval_hermite(n, x)),
    "special.hermite_polynomial_he": _double(lambda x, n: special.eval_hermitenorm(n, x)),
    "special.laguerre_polynomial_l": _double(lambda x, n: special.eval_laguerre(n, x)),
    "special.legendre_polynomial_p": _double(lambda x, n: special.eval_legendre(n, x)),
    "special.modified_bessel_i0": _double(special.i0), "special.modified_bessel_i1": _double(special.i1),
}
