"""The Weibull distribution."""
import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions.exponential import Exponential
from ptcore.distributions.transformed_distribution import TransformedDistribution
from ptcore.distributions.transforms import AffineTransform, PowerTransform
from ptcore.distributions.utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    r"""Weibull distribution: :math:`P(X > x) = \exp(-(x / s)^k)`.

    Parameters
    ----------
    scale, concentration : Tensor or float
        :math:`s` and :math:`k`; they broadcast to the batch shape.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> from ptcore.distributions import Weibull
    >>> Weibull(2.0, 1.0).mean
    tensor(2.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(pt.ones_like(self.scale), validate_args=validate_args)
        transforms = [PowerTransform(self.concentration.reciprocal()), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Weibull, _instance)
        new.scale, new.concentration = self.scale.expand(batch_shape), self.concentration.expand(batch_shape)
        return super().expand(batch_shape, new)

    @property
    def mean(self):
        return self.scale * (1 + self.concentration.reciprocal()).lgamma().exp()

    @property
    def mode(self):
        k = self.concentration
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    @property
    def variance(self):
        inverse = self.concentration.reciprocal()
        return self.scale.pow(2) * ((1 + 2 * inverse).lgamma().exp() - (2 * (1 + inverse).lgamma()).exp())

    def entropy(self):
        inverse = self.concentration.reciprocal()
        return euler_constant * (1 - inverse) + (self.scale * inverse).log() + 1
