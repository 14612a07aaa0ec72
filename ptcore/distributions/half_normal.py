"""The half-normal distribution."""
import math

from ptcore.distributions._location_scale import Half
from ptcore.distributions.normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    r"""Distribution of :math:`|X|`, where :math:`X` is normal with mean 0.

    Parameters
    ----------
    scale : Tensor or float
        Standard deviation of :math:`X`.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> from ptcore.distributions import HalfNormal
    >>> HalfNormal(1.0).mean
    tensor(0.7979)
    """

    _whole = Normal

    @property
    def mean(self):
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self):
        return self.scale.pow(2) * (1 - 2 / math.pi)

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return (value / self.scale * math.sqrt(0.5)).erf()

    def icdf(self, prob):
        return self.scale * math.sqrt(2) * prob.erfinv()
