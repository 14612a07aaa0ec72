"""The inverse gamma distribution."""
import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions.gamma import Gamma
from ptcore.distributions.transformed_distribution import TransformedDistribution
from ptcore.distributions.transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    r"""Distribution of :math:`1 / X`, where :math:`X` is gamma.

    Parameters
    ----------
    concentration, rate : Tensor or float
        Parameters of :math:`X`; they broadcast to the batch shape.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> from ptcore.distributions import InverseGamma
    >>> InverseGamma(3.0, 1.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-pt.ones((), dtype=base.rate.dtype, device=base.rate.device)),
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(InverseGamma, _instance))

    @property
    def concentration(self):
        """Concentration of the gamma variable."""
        return self.base_dist.concentration

    @property
    def rate(self):
        """Rate of the gamma variable."""
        return self.base_dist.rate

    @property
    def mean(self):
        # Where a moment is infinite it has no gradient; a quotient there would give NaN.
        is_finite = self.concentration > 1
        a = self.concentration.masked_fill(~is_finite, 2.0)
        return pt.where(is_finite, self.rate / (a - 1), float("inf"))

    @property
    def mode(self):
        return self.rate / (self.concentration + 1)

    @property
    def variance(self):
        is_finite = self.concentration > 2
        a = self.concentration.masked_fill(~is_finite, 3.0)
        return pt.where(is_finite, self.rate.square() / ((a - 1).square() * (a - 2)), float("inf"))

    def entropy(self):
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
