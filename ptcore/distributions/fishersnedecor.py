"""The F distribution."""
import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.gamma import Gamma
from ptcore.distributions.utils import EMPTY, broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    r"""F distribution: the ratio of two chi-squared variables, each over its degrees of freedom.

    Parameters
    ----------
    df1, df2 : Tensor or float
        Degrees of freedom above and below; they broadcast to the batch shape.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> from ptcore.distributions import FisherSnedecor
    >>> FisherSnedecor(2.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1, df2, validate_args=None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1, validate_args=False)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2, validate_args=False)
        super().__init__(self.df1.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._expanded(FisherSnedecor, _instance, batch_shape, "df1", "df2")
        new._gamma1, new._gamma2 = self._gamma1.expand(batch_shape), self._gamma2.expand(batch_shape)
        return new

    @property
    def mean(self):
        below = self.df2.masked_fill(self.df2 <= 2, float("nan"))
        return below / (below - 2)

    @property
    def mode(self):
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, float("nan"))

    @property
    def variance(self):
        below = self.df2.masked_fill(self.df2 <= 4, float("nan"))
        return 2 * below.pow(2) * (self.df1 + below - 2) / (self.df1 * (below - 2).pow(2) * (below - 4))

    def rsample(self, sample_shape=EMPTY):
        ratio = self._gamma1.rsample(sample_shape) / self._gamma2.rsample(sample_shape)
        return ratio.clamp(min=pt.finfo(ratio.dtype).tiny)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        return ((half1 + half2).lgamma() - half1.lgamma() - half2.lgamma() + half1 * ratio.log()
                + (half1 - 1) * value.log() - (half1 + half2) * (ratio * value).log1p())
