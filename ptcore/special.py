"""Special functions under the names of ``torch.special``; most are public under other names too."""
from ptcore._names.special import *
from ptcore._names.special import __all__ as _own
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

__all__ = ["digamma", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gammaln", "i0", "log1p", "log_softmax",
           "logit", "logsumexp", "modified_bessel_i0", "modified_bessel_i1", "polygamma", "psi", "round", "sinc",
           "softmax", "xlogy", *_own]
