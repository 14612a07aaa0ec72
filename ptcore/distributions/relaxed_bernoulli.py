"""Continuous relaxations of Bernoulli variables."""
from ptcore.distributions import constraints
from ptcore.distributions._probabilities import ByOdds, one_of, uniform_like
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.transformed_distribution import TransformedDistribution
from ptcore.distributions.transforms import SigmoidTransform
from ptcore.distributions.utils import EMPTY, broadcast_all, clamp_probs
from ptcore.nn.functional import softplus

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ByOdds, Distribution):
    """Log-odds of the draws of :class:`RelaxedBernoulli`.

    Parameters
    ----------
    temperature : Tensor
        The lower, the nearer to 0 and 1.
    probs, logits : Tensor or float
        Probabilities of 1, or their log-odds: one of the two.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
    >>> LogitRelaxedBernoulli(ptcore.tensor(0.5), ptcore.tensor([0.5, 0.1])).sample().shape
    ptcore.Size([2])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature, by_probs = temperature, one_of(probs, logits)
        self._set(by_probs, *broadcast_all(probs if by_probs else logits))
        super().__init__(self._param.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._expanded(LogitRelaxedBernoulli, _instance, batch_shape, "probs", "logits")
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape=EMPTY):
        shape = self._extended_shape(sample_shape)
        p = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(uniform_like(p, shape))
        return (u.log() - (-u).log1p() + p.log() - (-p).log1p()) / self.temperature

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        away = logits - value * self.temperature
        return self.temperature.log() + away - 2 * softplus(away)


class RelaxedBernoulli(TransformedDistribution):
    """Draws in [0, 1] that tend to 0 and 1 as the temperature falls, with gradients.

    Parameters
    ----------
    temperature : Tensor
        The lower, the nearer to 0 and 1.
    probs, logits : Tensor or float
        Probabilities of 1, or their log-odds: one of the two.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import RelaxedBernoulli
    >>> RelaxedBernoulli(ptcore.tensor(0.5), ptcore.tensor([0.5, 0.1])).rsample().shape
    ptcore.Size([2])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(),
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(RelaxedBernoulli, _instance))

    @property
    def temperature(self):
        """The temperature: low values give draws near 0 and 1."""
        return self.base_dist.temperature

    @property
    def logits(self):
        """Log-odds."""
        return self.base_dist.logits

    @property
    def probs(self):
        """Probabilities."""
        return self.base_dist.probs
