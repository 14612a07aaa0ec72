"""The Laplace distribution."""
import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.utils import EMPTY, broadcast_all

__all__ = ["Laplace"]


class Laplace(Distribution):
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

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Laplace, _instance, batch_shape, "loc", "scale")

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return 2 * self.scale.pow(2)

    @property
    def stddev(self):
        return 2 ** 0.5 * self.scale

    def rsample(self, sample_shape=EMPTY):
        loc = self.loc
        u = pt.empty(self._extended_shape(sample_shape), dtype=loc.dtype, device=loc.device)
        u.uniform_(pt.finfo(loc.dtype).eps - 1, 1)          # -1 would be infinite
        return loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * (-away.abs() / self.scale).expm1()

    def icdf(self, value):
        middle = value - 0.5
        return self.loc - self.scale * middle.sign() * (-2 * middle.abs()).log1p()

    def entropy(self):
        return 1 + (2 * self.scale).log()
