"""The logistic-normal distribution."""
from ptcore.distributions import constraints
from ptcore.distributions.normal import Normal
from ptcore.distributions.transformed_distribution import TransformedDistribution
from ptcore.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    r"""Distribution on the simplex: normals transformed by stick-breaking.

    Parameters
    ----------
    loc, scale : Tensor or float
        Means and standard deviations of the K - 1 normals, along the last dim.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import LogisticNormal
    >>> LogisticNormal(ptcore.zeros(2), 1.0).sample().shape
    ptcore.Size([3])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(LogisticNormal, _instance))

    @property
    def loc(self):
        """Means of the normals."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self):
        """Standard deviations of the normals."""
        return self.base_dist.base_dist.scale
