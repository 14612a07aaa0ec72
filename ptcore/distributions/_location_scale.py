"""Distributions given by a location and a scale, and those of their absolute values."""
import math

import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.transformed_distribution import TransformedDistribution
from ptcore.distributions.transforms import AbsTransform
from ptcore.distributions.utils import broadcast_all


class LocationScale(Distribution):
    """A distribution over the real numbers, symmetric about ``loc``."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(LocationScale, _instance, batch_shape, "loc", "scale")

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc


class Half(TransformedDistribution):
    """The absolute value of a variable with a symmetric distribution, ``_whole``, about 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale, validate_args=None):
        super().__init__(self._whole(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(Half, _instance))

    @property
    def scale(self):
        """Scale of the variable."""
        return self.base_dist.scale

    @property
    def mode(self):
        return pt.zeros_like(self.scale)

    def log_prob(self, value):
        value = pt.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        if self._validate_args:
            self._validate_sample(value)
        return pt.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -float("inf"))

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)
