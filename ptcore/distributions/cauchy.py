"""The Cauchy distribution."""
import math

import ptcore as pt
from ptcore.distributions._location_scale import LocationScale
from ptcore.distributions.utils import EMPTY, log1p_of_square

__all__ = ["Cauchy"]


class Cauchy(LocationScale):
    r"""Cauchy distribution, with density :math:`1 / \pi s (1 + ((x - m) / s)^2)`; it has no mean.

    Parameters
    ----------
    loc, scale : Tensor or float
        Median :math:`m` and half width :math:`s` at half maximum; they broadcast to the batch shape.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import Cauchy
    >>> Cauchy(0.0, 1.0).cdf(ptcore.ones(1))
    tensor([0.7500])
    """

    @property
    def mean(self):
        return self.loc.new_full(self._batch_shape, float("nan"))

    @property
    def variance(self):
        return self.loc.new_full(self._batch_shape, float("inf"))

    def rsample(self, sample_shape=EMPTY):
        noise = pt.empty(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device).cauchy_()
        return self.loc + noise * self.scale

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - log1p_of_square((value - self.loc) / self.scale)

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return pt.atan2(self.scale, self.loc - value) / math.pi         # keeps its digits on the left

    def icdf(self, value):
        low, high = value < 0.25, value > 0.75
        tail = (math.pi * pt.where(low, value, 1 - value)).tan().reciprocal()
        z = pt.where(low, -tail, pt.where(high, tail, (math.pi * (value - 0.5)).tan()))
        return z * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()
