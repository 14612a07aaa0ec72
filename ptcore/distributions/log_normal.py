"""The log-normal distribution."""
from ptcore.distributions import constraints
from ptcore.distributions.normal import Normal
from ptcore.distributions.transformed_distribution import TransformedDistribution
from ptcore.distributions.transforms import ExpTransform

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    r"""Distribution of :math:`e^X`, where :math:`X` is normal.

    Parameters
    ----------
    loc, scale : Tensor or float
        Mean and standard deviation of :math:`X`.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> from ptcore.distributions import LogNormal
    >>> LogNormal(0.0, 1.0).mean
    tensor(1.6487)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(LogNormal, _instance))

    @property
    def loc(self):
        """Mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self):
        """Standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self):
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self):
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self):
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self):
        return self.base_dist.entropy() + self.loc
