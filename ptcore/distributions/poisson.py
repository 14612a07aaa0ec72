"""The Poisson distribution."""
import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions.exp_family import ExponentialFamily
from ptcore.distributions.utils import EMPTY, broadcast_all

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    r"""Poisson distribution, :math:`P(k) = \lambda^k e^{-\lambda} / k!`

    Parameters
    ----------
    rate : Tensor or float
        Rates :math:`\lambda`, not negative.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import Poisson
    >>> Poisson(2.0).log_prob(ptcore.zeros(1))
    tensor([-2.])
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate, validate_args=None):
        self.rate, = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Poisson, _instance, batch_shape, "rate")

    @property
    def mean(self):
        return self.rate

    @property
    def mode(self):
        return self.rate.floor()

    @property
    def variance(self):
        return self.rate

    def sample(self, sample_shape=EMPTY):
        with pt.no_grad():
            return pt.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self):
        return (self.rate.log(),)

    def _log_normalizer(self, x):
        return x.exp()
