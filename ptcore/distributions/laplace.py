"""The Laplace distribution."""
import ptcore as pt
from ptcore.distributions._location_scale import LocationScale
from ptcore.distributions.utils import EMPTY

__all__ = ["Laplace"]


class Laplace(LocationScale):
    r"""Laplace distribution, with density :math:`e^{-|x - m| / s} / 2s`.

    Parameters
    ----------
    loc, scale : Tensor or float
        :math:`m` and :math:`s`; they broadcast to the batch shape.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> from ptcore.distributions import Laplace
    >>> Laplace(0.0, 1.0).variance
    tensor(2.)
    """

    @property
    def variance(self):
        return 2 * self.scale.pow(2)

    @property
    def stddev(self):
        return 2 ** 0.5 * self.scale

    def rsample(self, sample_shape=EMPTY):
        loc = self.loc
        u = pt.empty(self._extended_shape(sample_shape), dtype=loc.dtype, device=loc.device)
        u.uniform_(pt.finfo(loc.dtype).eps - 1, 1)          # -1 is excluded, since it would give an infinite value
        return loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        away = value - self.loc
        tail = 0.5 * (-away.abs() / self.scale).exp()
        return pt.where(away < 0, tail, 1 - tail)               # not 1/2 minus nearly 1/2, which is 0 far out

    def icdf(self, value):
        below = value < 0.5
        tail = pt.where(below, value, 1 - value)
        return self.loc + self.scale * pt.where(below, 1, -1) * (2 * tail).log()

    def entropy(self):
        return 1 + (2 * self.scale).log()
