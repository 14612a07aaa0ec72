"""The half-Cauchy distribution."""
import math

import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions.cauchy import Cauchy
from ptcore.distributions.transformed_distribution import TransformedDistribution
from ptcore.distributions.transforms import AbsTransform

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
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

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale, validate_args=None):
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(HalfCauchy, _instance))

    @property
    def scale(self):
        """Half width."""
        return self.base_dist.scale

    @property
    def mean(self):
        return pt.full_like(self.scale, float("inf"))

    @property
    def mode(self):
        return pt.zeros_like(self.scale)

    @property
    def variance(self):
        return self.base_dist.variance

    def log_prob(self, value):
        value = pt.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        if self._validate_args:
            self._validate_sample(value)
        return pt.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -float("inf"))

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob):
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)
