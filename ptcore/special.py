"""Special functions under the names of ``torch.special``; most are public elsewhere too. SciPy computes the Bessel
functions and orthogonal polynomials, on the host."""
from ptcore._names.special import *
from ptcore._names.special import __all__ as _own
from ptcore._ops._results import names_of_files as _names_of_files
from ptcore._ops.functions import digamma as digamma
from ptcore._ops.functions import digamma as psi
from ptcore._ops.functions import erf as erf
from ptcore._ops.functions import erfc as erfc
from ptcore._ops.functions import erfinv as erfinv
from ptcore._ops.functions import exp2 as exp2
from ptcore._ops.functions import expm1 as expm1
from ptcore._ops.functions import i0 as i0
from ptcore._ops.functions import i0 as modified_bessel_i0
from ptcore._ops.functions import i1 as modified_bessel_i1
from ptcore._ops.functions import lgamma as gammaln
from ptcore._ops.functions import log1p as log1p
from ptcore._ops.functions import log_softmax as log_softmax
from ptcore._ops.functions import logit as logit
from ptcore._ops.functions import logsumexp as logsumexp
from ptcore._ops.functions import polygamma_function as polygamma
from ptcore._ops.functions import round as round
from ptcore._ops.functions import sigmoid as expit
from ptcore._ops.functions import sinc as sinc
from ptcore._ops.functions import softmax as softmax
from ptcore._ops.functions import xlogy as xlogy

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
           "softmax", "xlogy", *_own, *_LATER["utils._special"]]
