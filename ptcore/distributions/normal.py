"""The normal distribution."""
import math

import ptcore as pt
from ptcore.distributions._location_scale import LocationScale
from ptcore.distributions.exp_family import ExponentialFamily
from ptcore.distributions.utils import EMPTY

__all__ = ["Normal"]

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


class Normal(LocationScale, ExponentialFamily):
    r"""Normal distribution, with density :math:`\exp(-(x - \mu)^2 / 2\sigma^2) / \sigma\sqrt{2\pi}`.

    Parameters
    ----------
    loc, scale : Tensor or float
        Mean and standard deviation; they broadcast to the batch shape.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import Normal
    >>> Normal(0.0, 1.0).log_prob(ptcore.zeros(1))
    tensor([-0.9189])
    """

    _mean_carrier_measure = 0

    @property
    def stddev(self):
        return self.scale

    @property
    def variance(self):
        return self.scale.pow(2)

    def sample(self, sample_shape=EMPTY):
        with pt.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=EMPTY):
        loc = self.loc
        noise = pt.randn(self._extended_shape(sample_shape), dtype=loc.dtype, device=loc.device)
        return loc + noise * self.scale

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return z * z * -0.5 - (self.scale.log() + _HALF_LOG_2PI)

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return pt.special.ndtr((value - self.loc) / self.scale)         # not 1 + erf, which is 0 far out

    def icdf(self, value):
        return self.loc + self.scale * pt.special.ndtri(value)          # not erfinv(2 p - 1), which is infinite far out

    def entropy(self):
        return 0.5 + _HALF_LOG_2PI + self.scale.log()

    @property
    def _natural_params(self):
        return self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()

    def _log_normalizer(self, x, y):
        return -0.25 * x.pow(2) / y + 0.5 * (-math.pi / y).log()
