"""Special functions under the names of ``torch.special``; most are public elsewhere too. SciPy computes the Bessel
functions and orthogonal polynomials, on the host."""
from ptcore import _public
from ptcore._ops._results import names_of_files as _names_of_files

_own = _public[""]
digamma = _own["digamma"]
psi = _own["digamma"]
erf = _own["erf"]
erfc = _own["erfc"]
erfinv = _own["erfinv"]
exp2 = _own["exp2"]
expit = _own["sigmoid"]
expm1 = _own["expm1"]
gammaln = _own["lgamma"]
i0 = _own["i0"]
log1p = _own["log1p"]
log_softmax = _own["log_softmax"]
logit = _own["logit"]
logsumexp = _own["logsumexp"]
polygamma = _own["polygamma"]
round = _own["round"]
sinc = _own["sinc"]
softmax = _own["softmax"]
xlogy = _own["xlogy"]
globals().update(_public["special"])
modified_bessel_i0, modified_bessel_i1 = i0, _public["special"]["i1"]
# Functions that SciPy computes, by the file that is read when one is first asked for.
_LATER = {"utils._special": ("airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t",
                             "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
                             "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
                             "legendre_polynomial_p", "modified_bessel_k0", "modified_bessel_k1", "ndtri",
                             "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "shifted_chebyshev_polynomial_t",
                             "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
                             "shifted_chebyshev_polynomial_w", "spherical_bessel_j0", "zeta")}
__getattr__, __dir__ = _names_of_files(__name__, _LATER)
__all__ = ["digamma", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gammaln", "i0", "log1p", "log_softmax",
           "logit", "logsumexp", "modified_bessel_i0", "modified_bessel_i1", "polygamma", "psi", "round", "sinc",
           "softmax", "xlogy", *_public["special"], *_LATER["utils._special"]]
