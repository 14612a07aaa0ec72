"""The generalised Pareto distribution."""
import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions._probabilities import uniform_like
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.utils import EMPTY, broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    r"""Generalised Pareto distribution: :math:`P(X > x) = (1 + \xi z)^{-1/\xi}` of :math:`z = (x - m) / s`.

    With :math:`\xi = 0` it is the exponential distribution, :math:`e^{-z}`; with a negative :math:`\xi` its support
    ends at :math:`m - s / \xi`.

    Parameters
    ----------
    loc, scale, concentration : Tensor or float
        :math:`m`, :math:`s` and :math:`\xi`; they broadcast to the batch shape.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> from ptcore.distributions import GeneralizedPareto
    >>> GeneralizedPareto(0.0, 1.0, 0.5).mean
    tensor(2.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc, scale, concentration, validate_args=None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(GeneralizedPareto, _instance, batch_shape, "loc", "scale", "concentration")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        end = self.loc - self.scale / self._curved()[1]
        return constraints.interval(self.loc, pt.where(self.concentration < 0, end, float("inf")))

    def _curved(self):
        """Whether the concentration is nearly 0, and a concentration that allows division."""
        flat = pt.isclose(self.concentration, pt.zeros_like(self.concentration))
        return flat, self.concentration.masked_fill(flat, 1.0)

    def _z(self, x):
        return (x - self.loc) / self.scale

    def rsample(self, sample_shape=EMPTY):
        return self.icdf(uniform_like(self.loc, self._extended_shape(sample_shape)))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        z, (flat, xi) = self._z(value), self._curved()
        power = 1 / xi + 1
        # avoids 0 times -inf at the end of the support
        falls = pt.where(power == 0, pt.zeros_like(z), power * (xi * z).log1p())
        return -self.scale.log() - pt.where(flat, z, falls)

    def log_survival_function(self, value):
        """Logarithm of the probability of a draw above ``value``."""
        if self._validate_args:
            self._validate_sample(value)
        z, (flat, xi) = self._z(value), self._curved()
        return pt.where(flat, -z, -(xi * z).log1p() / xi)

    def log_cdf(self, value):
        """Logarithm of the probability of a draw of at most ``value``."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value):
        return -self.log_survival_function(value).expm1()

    def icdf(self, value):
        log_rest, (flat, xi) = (-value).log1p(), self._curved()
        return self.loc + self.scale * pt.where(flat, -log_rest, (-xi * log_rest).expm1() / xi)

    def _where_below(self, limit, value, other):
        return pt.where(self.concentration < limit, value, other)

    @property
    def mean(self):
        xi = self._where_below(1, self.concentration, 0.5)
        return self._where_below(1, self.loc + self.scale / (1 - xi), float("nan"))

    @property
    def variance(self):
        xi = self._where_below(0.5, self.concentration, 0.25)
        return self._where_below(0.5, self.scale.pow(2) / ((1 - xi).pow(2) * (1 - 2 * xi)), float("nan"))

    @property
    def mode(self):
        return self.loc

    def entropy(self):
        return self.scale.log() + self.concentration + 1
