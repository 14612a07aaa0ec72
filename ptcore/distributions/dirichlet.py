"""The Dirichlet distribution."""
import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions._gamma import DirichletDraw
from ptcore.distributions.exp_family import ExponentialFamily
from ptcore.nn.functional import one_hot

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    r"""Dirichlet distribution on the simplex, with density
    :math:`\frac{\Gamma(\sum_i \alpha_i)}{\prod_i \Gamma(\alpha_i)} \prod_i x_i^{\alpha_i - 1}`.

    Parameters
    ----------
    concentration : Tensor
        :math:`\alpha`, along the last dim.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Notes
    -----
    Draws have gradients, which can be differentiated once.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import Dirichlet
    >>> Dirichlet(ptcore.tensor([1., 3.])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args=None):
        if concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Dirichlet, _instance)
        new.concentration = self.concentration.expand(*batch_shape, *self._event_shape)
        return self._finish(new, batch_shape, self._event_shape)

    def rsample(self, sample_shape=()):
        return DirichletDraw.apply(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        a = self.concentration
        return (a - 1.0).xlogy(value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self):
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        corner = one_hot(mode.argmax(-1), mode.shape[-1]).to(mode)
        return pt.where((self.concentration < 1).all(-1, True), corner, mode)

    @property
    def variance(self):
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self):
        a = self.concentration
        total = a.sum(-1)
        return (a.lgamma().sum(-1) - total.lgamma() - (a.shape[-1] - total) * total.digamma()
                - ((a - 1.0) * a.digamma()).sum(-1))

    @property
    def _natural_params(self):
        return (self.concentration,)

    def _log_normalizer(self, x):
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()
