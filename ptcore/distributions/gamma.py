"""The gamma distribution."""
import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions._gamma import StandardGamma
from ptcore.distributions.exp_family import ExponentialFamily
from ptcore.distributions.utils import EMPTY, broadcast_all

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    r"""Gamma distribution, with density :math:`\beta^\alpha x^{\alpha - 1} e^{-\beta x} / \Gamma(\alpha)`.

    Parameters
    ----------
    concentration, rate : Tensor or float
        :math:`\alpha` and :math:`\beta`; they broadcast to the batch shape.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Notes
    -----
    Draws have gradients by both parameters. The gradient by the concentration is computed through the distribution
    function. Gradients can be differentiated once.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import Gamma
    >>> Gamma(1.0, 2.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration, rate, validate_args=None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Gamma, _instance, batch_shape, "concentration", "rate")

    @property
    def mean(self):
        return self.concentration / self.rate

    @property
    def mode(self):
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self):
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape=EMPTY):
        value = StandardGamma.apply(self.concentration.expand(self._extended_shape(sample_shape))) / self.rate
        # values stay in the support of distributions made from this one
        return value.clamp(min=pt.finfo(value.dtype).tiny)

    def log_prob(self, value):
        value = pt.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        a = self.concentration
        return a.xlogy(self.rate) + (a - 1).xlogy(value) - self.rate * value - a.lgamma()

    def entropy(self):
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1.0 - a) * a.digamma()

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return pt.special.gammainc(self.concentration, self.rate * value)

    @property
    def _natural_params(self):
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x, y):
        return (x + 1).lgamma() + (x + 1) * (-y.reciprocal()).log()
