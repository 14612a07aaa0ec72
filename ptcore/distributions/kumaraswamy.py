"""The Kumaraswamy distribution."""
import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions.transformed_distribution import TransformedDistribution
from ptcore.distributions.transforms import AffineTransform, PowerTransform
from ptcore.distributions.uniform import Uniform
from ptcore.distributions.utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    r"""Kumaraswamy distribution: :math:`P(X \le x) = 1 - (1 - x^a)^b` on [0, 1].

    Parameters
    ----------
    concentration1, concentration0 : Tensor or float
        :math:`a` and :math:`b`; they broadcast to the batch shape.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> from ptcore.distributions import Kumaraswamy
    >>> Kumaraswamy(1.0, 1.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        a, b = self.concentration1, self.concentration0
        base = Uniform(pt.zeros_like(b), pt.ones_like(b), validate_args=validate_args)
        transforms = [PowerTransform(b.reciprocal()), AffineTransform(1.0, -1.0), PowerTransform(a.reciprocal())]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Kumaraswamy, _instance)
        for name in ("concentration1", "concentration0"):
            setattr(new, name, getattr(self, name).expand(batch_shape))
        return super().expand(batch_shape, new)

    # The transforms would lose x^a beside 1, where it is small.
    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        inside = (value >= 0) & (value <= 1)
        x = pt.where(inside, value, 0.5)
        density = a.log() + b.log() + pt.xlogy(a - 1, x) + pt.special.xlog1py(b - 1, -x.pow(a))
        return pt.where(inside, density, float("-inf"))

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return -(self.concentration0 * (-value.clamp(0, 1).pow(self.concentration1)).log1p()).expm1()

    def icdf(self, value):
        return (-((-value).log1p() / self.concentration0).expm1()).pow(self.concentration1.reciprocal())

    def _moment(self, n):
        a, b = 1 + n / self.concentration1, self.concentration0
        return b * (a.lgamma() + b.lgamma() - (a + b).lgamma()).exp()

    @property
    def mean(self):
        return self._moment(1)

    @property
    def mode(self):
        a, b = self.concentration1, self.concentration0
        # x^a has its mode at (a - 1) / (a b - 1)
        log_mode = ((a - 1) / (a * b - 1)).log() / a
        return log_mode.masked_fill((a < 1) | (b < 1), float("nan")).exp()

    @property
    def variance(self):
        return self._moment(2) - self.mean.pow(2)

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * ((b + 1).digamma() + euler_constant) - a.log() - b.log()
