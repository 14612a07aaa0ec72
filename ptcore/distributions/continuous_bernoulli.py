"""The continuous Bernoulli distribution."""
import math

import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions._probabilities import ByOdds, one_of, uniform_like
from ptcore.distributions.exp_family import ExponentialFamily
from ptcore.distributions.utils import EMPTY, broadcast_all, clamp_probs, lazy_property, logits_to_probs
from ptcore.nn.functional import binary_cross_entropy_with_logits

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ByOdds, ExponentialFamily):
    r"""Continuous Bernoulli distribution on [0, 1], with density proportional to :math:`p^x (1 - p)^{1 - x}`.

    Parameters
    ----------
    probs, logits : Tensor or float
        :math:`p`, or its log-odds: one of the two. Unlike a Bernoulli's, the mean is not :math:`p`.
    lims : tuple of two float
        Between these, formulas that divide by :math:`1 - 2p` are replaced by Taylor's about 1/2.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import ContinuousBernoulli
    >>> ContinuousBernoulli(0.5).mean
    tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        by_probs = one_of(probs, logits)
        param, = broadcast_all(probs if by_probs else logits)
        if by_probs:
            if validate_args is not None and not self.arg_constraints["probs"].check(param).all():
                raise ValueError(f"The parameter probs has invalid values: {param} does not satisfy "
                                 f"{self.arg_constraints['probs']!r}")
            param = clamp_probs(param)
        self._set(by_probs, param)
        self._lims = lims
        super().__init__(param.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._expanded(ContinuousBernoulli, _instance, batch_shape, "probs", "logits")
        new._lims = self._lims
        return new

    @lazy_property
    def probs(self):
        """The parameter p, limited to values with finite log-odds."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside_unstable_region(self):
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self):
        """The probabilities, with those near 1/2 replaced by a value that allows division."""
        return pt.where(self._outside_unstable_region(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self):
        """The logarithm of the normalising factor of the density."""
        p = self._cut_probs()
        odds = ((-p).log1p() - p.log()).abs().log() - (1 - 2 * p).abs().log()
        x = (self.probs - 0.5).pow(2)
        return pt.where(self._outside_unstable_region(), odds, math.log(2.0) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self):
        p, x = self._cut_probs(), self.probs - 0.5
        mean = p / (2.0 * p - 1.0) + 1.0 / ((-p).log1p() - p.log())
        return pt.where(self._outside_unstable_region(), mean, 0.5 + (1 / 3 + 16 / 45 * x.pow(2)) * x)

    @property
    def stddev(self):
        return self.variance.sqrt()

    @property
    def variance(self):
        p, x = self._cut_probs(), (self.probs - 0.5).pow(2)
        variance = p * (p - 1.0) / (1.0 - 2.0 * p).pow(2) + 1.0 / ((-p).log1p() - p.log()).pow(2)
        return pt.where(self._outside_unstable_region(), variance, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def sample(self, sample_shape=EMPTY):
        with pt.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=EMPTY):
        return self.icdf(uniform_like(self.probs, self._extended_shape(sample_shape)))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return self._cont_bern_log_norm() - binary_cross_entropy_with_logits(logits, value, reduction="none")

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        p = self._cut_probs()
        cdf = (p.pow(value) * (1.0 - p).pow(1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        taylor = value - 2 * value * (1 - value) * (self.probs - 0.5)
        cdf = pt.where(self._outside_unstable_region(), cdf, taylor)
        return pt.where(value <= 0.0, 0.0, pt.where(value >= 1.0, 1.0, cdf))

    def icdf(self, value):
        p = self._cut_probs()
        low = (-p).log1p()
        found = ((value * (2.0 * p - 1.0) - p).log1p() - low) / (p.log() - low)
        taylor = value + 2 * value * (1 - value) * (self.probs - 0.5)
        return pt.where(self._outside_unstable_region(), found, taylor)

    def entropy(self):
        low = (-self.probs).log1p()
        return self.mean * (low - self.probs.log()) - self._cont_bern_log_norm() - low

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        stable = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        safe = pt.where(stable, x, self._lims[0] - 0.5)
        exact = safe.expm1().abs().log() - safe.abs().log()
        return pt.where(stable, exact, 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0)
