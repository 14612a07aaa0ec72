"""Student's t distribution."""
import math

import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions.chi2 import Chi2
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.utils import EMPTY, _standard_normal, broadcast_all, log1p_of_square

__all__ = ["StudentT"]


class StudentT(Distribution):
    r"""Student's t distribution, with density proportional to :math:`(1 + z^2 / \nu)^{-(\nu + 1) / 2}` of
    :math:`z = (x - m) / s`.

    Parameters
    ----------
    df, loc, scale : Tensor or float
        Degrees of freedom :math:`\nu`, :math:`m` and :math:`s`; they broadcast to the batch shape.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> from ptcore.distributions import StudentT
    >>> StudentT(4.0).variance
    tensor(2.)
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df, validate_args=False)
        super().__init__(self.df.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._expanded(StudentT, _instance, batch_shape, "df", "loc", "scale")
        new._chi2 = self._chi2.expand(batch_shape)
        return new

    @property
    def mean(self):
        return self.loc.masked_fill(self.df <= 1, float("nan"))

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        # Where the variance is not finite it has no gradient; a quotient there would give NaN.
        has_variance = self.df > 2
        df = self.df.masked_fill(~has_variance, 3.0)
        found = pt.where(has_variance, self.scale.pow(2) * df / (df - 2), float("inf"))
        return found.masked_fill(self.df <= 1, float("nan"))

    def rsample(self, sample_shape=EMPTY):
        noise = _standard_normal(self._extended_shape(sample_shape), self.df.dtype, self.df.device)
        return self.loc + self.scale * noise * (self._chi2.rsample(sample_shape) / self.df).rsqrt()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        df, z = self.df, (value - self.loc) / self.scale
        whole = self.scale.log() + 0.5 * df.log() + 0.5 * math.log(math.pi) + (
            (0.5 * df).lgamma() - (0.5 * (df + 1.0)).lgamma())
        return -0.5 * (df + 1.0) * log1p_of_square(z / df.sqrt()) - whole

    def entropy(self):
        half, above = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = half.lgamma() + math.lgamma(0.5) - above.lgamma()
        return self.scale.log() + above * (above.digamma() - half.digamma()) + 0.5 * self.df.log() + log_beta
