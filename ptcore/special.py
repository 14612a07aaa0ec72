"""Special functions under the names of ``torch.special``; most are public elsewhere too."""
from ptcore import _public

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
__all__ = ["digamma", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gammaln", "i0", "log1p", "log_softmax",
           "logit", "logsumexp", "polygamma", "psi", "round", "sinc", "softmax", "xlogy",
           *_public["special"]]
