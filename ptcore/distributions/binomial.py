"""The binomial distribution."""
import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions._probabilities import ByOdds, one_of
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.utils import EMPTY, broadcast_all

__all__ = ["Binomial"]


class Binomial(ByOdds, Distribution):
    r"""Successes in :math:`n` trials: :math:`P(k) = \binom{n}{k} p^k (1 - p)^{n - k}`.

    Parameters
    ----------
    total_count : int or Tensor
        Numbers of trials.
    probs, logits : Tensor
        Probabilities of success, or their log-odds: one of the two.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import Binomial
    >>> Binomial(2, probs=ptcore.tensor([0.5])).log_prob(ptcore.tensor([1.])).exp()
    tensor([0.5000])
    """

    arg_constraints = {"total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval,
                       "logits": constraints.real}
    has_enumerate_support = True

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        by_probs = one_of(probs, logits)
        count, param = broadcast_all(total_count, probs if by_probs else logits)
        self.total_count = count.to(param.dtype)
        self._set(by_probs, param)
        super().__init__(param.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Binomial, _instance, batch_shape, "total_count", "probs", "logits")

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=EMPTY):
        shape = self._extended_shape(sample_shape)
        with pt.no_grad():
            return pt.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        n, logits = self.total_count, self.logits
        # log(1 + exp(logits)), whose derivative at 0 is 1/2
        log_odds = (logits.clamp(min=0) + logits - logits.clamp(max=0)) / 2 + (-logits.abs()).exp().log1p()
        return (value * logits - n * log_odds + (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma())

    def _one_count(self, what):
        count = int(self.total_count.max())
        if self.total_count.min() != count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return count

    def entropy(self):
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand=True):
        values = pt.arange(1 + self._one_count("enumerate_support"), dtype=self._param.dtype,
                           device=self._param.device)
        values = values.view(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values
