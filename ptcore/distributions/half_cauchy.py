"""The half-Cauchy distribution."""
import math

import ptcore as pt
from ptcore.distributions._location_scale import Half
from ptcore.distributions.cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    r"""Distribution of :math:`|X|`, where :math:`X` is Cauchy with median 0.

    Parameters
    ----------
    scale : Tensor or float
        Half width of :math:`X`.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import HalfCauchy
    >>> HalfCauchy(1.0).cdf(ptcore.ones(1))
    tensor([0.5000])
    """

    _whole = Cauchy

    @property
    def mean(self):
        return pt.full_like(self.scale, float("inf"))

    @property
    def variance(self):
        return self.base_dist.variance

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return (value / self.scale).atan() * (2 / math.pi)

    def icdf(self, prob):
        return self.scale * (math.pi / 2 * prob).tan()
