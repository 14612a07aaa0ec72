"""The Pareto distribution."""
import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions.exponential import Exponential
from ptcore.distributions.transformed_distribution import TransformedDistribution
from ptcore.distributions.transforms import AffineTransform, ExpTransform
from ptcore.distributions.utils import broadcast_all

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    r"""Pareto distribution: :math:`P(X > x) = (s / x)^\alpha` for :math:`x \ge s`.

    Parameters
    ----------
    scale, alpha : Tensor or float
        :math:`s` and :math:`\alpha`; they broadcast to the batch shape.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> from ptcore.distributions import Pareto
    >>> Pareto(1.0, 2.0).mean
    tensor(2.)
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale, alpha, validate_args=None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(loc=0, scale=self.scale)],
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Pareto, _instance)
        new.scale, new.alpha = self.scale.expand(batch_shape), self.alpha.expand(batch_shape)
        return super().expand(batch_shape, new)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self):
        # Where a moment is infinite it has no gradient; a quotient there would give NaN.
        is_finite = self.alpha > 1
        alpha = self.alpha.masked_fill(~is_finite, 2.0)
        return pt.where(is_finite, alpha * self.scale / (alpha - 1), float("inf"))

    @property
    def mode(self):
        return self.scale

    @property
    def variance(self):
        is_finite = self.alpha > 2
        alpha = self.alpha.masked_fill(~is_finite, 3.0)
        return pt.where(is_finite, self.scale.pow(2) * alpha / ((alpha - 1).pow(2) * (alpha - 2)), float("inf"))

    def entropy(self):
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
