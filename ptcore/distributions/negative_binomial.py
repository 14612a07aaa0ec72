"""The negative binomial distribution."""
import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions._probabilities import ByOdds, one_of
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.gamma import Gamma
from ptcore.distributions.utils import EMPTY, broadcast_all, lazy_property
from ptcore.nn.functional import logsigmoid

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ByOdds, Distribution):
    r"""Successes before the ``total_count``-th failure:
    :math:`P(k) = \frac{\Gamma(r + k)}{k!\, \Gamma(r)} p^k (1 - p)^r`.

    Parameters
    ----------
    total_count : float or Tensor
        Numbers :math:`r` of failures that end the trials; they need not be whole.
    probs, logits : Tensor
        Probabilities of success in [0, 1), or their log-odds: one of the two.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import NegativeBinomial
    >>> NegativeBinomial(2, probs=ptcore.tensor([0.5])).mean
    tensor([2.])
    """

    arg_constraints = {"total_count": constraints.greater_than_eq(0),
                       "probs": constraints.half_open_interval(0.0, 1.0), "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        by_probs = one_of(probs, logits)
        count, param = broadcast_all(total_count, probs if by_probs else logits)
        self.total_count = count.to(param.dtype)
        self._set(by_probs, param)
        super().__init__(param.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(NegativeBinomial, _instance, batch_shape, "total_count", "probs", "logits")

    @property
    def mean(self):
        return self.total_count * self.logits.exp()

    @property
    def mode(self):
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self):
        return self.mean / (-self.logits).sigmoid()

    @lazy_property
    def _gamma(self):
        # not checked, since a count of 0 is allowed here
        return Gamma(concentration=self.total_count, rate=(-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape=EMPTY):
        with pt.no_grad():
            return pt.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        r = self.total_count
        free = r * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        counted = (r + value).lgamma() - (1.0 + value).lgamma() - r.lgamma()
        return free + counted.masked_fill(r + value == 0.0, 0.0)
