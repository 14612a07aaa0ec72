"""The exponential distribution."""
import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions.exp_family import ExponentialFamily
from ptcore.distributions.utils import EMPTY, broadcast_all

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    r"""Exponential distribution, with density :math:`\lambda e^{-\lambda x}`.

    Parameters
    ----------
    rate : Tensor or float
        :math:`\lambda`.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> from ptcore.distributions import Exponential
    >>> Exponential(2.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate, validate_args=None):
        self.rate, = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Exponential, _instance, batch_shape, "rate")

    @property
    def mean(self):
        return self.rate.reciprocal()

    @property
    def mode(self):
        return pt.zeros_like(self.rate)

    @property
    def stddev(self):
        return self.rate.reciprocal()

    @property
    def variance(self):
        return self.rate.pow(-2)

    def rsample(self, sample_shape=EMPTY):
        rate = self.rate
        noise = pt.empty(self._extended_shape(sample_shape), dtype=rate.dtype, device=rate.device).exponential_()
        return noise / rate

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return -(-self.rate * value).expm1()

    def icdf(self, value):
        return -(-value).log1p() / self.rate

    def entropy(self):
        return 1.0 - self.rate.log()

    @property
    def _natural_params(self):
        return (-self.rate,)

    def _log_normalizer(self, x):
        return -(-x).log()
