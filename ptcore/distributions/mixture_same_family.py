"""Mixtures of distributions of one family."""
import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions.categorical import Categorical
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.utils import EMPTY

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    r"""Mixture :math:`\sum_k w_k p_k(x)` of distributions that are the last batch dim of one object.

    Parameters
    ----------
    mixture_distribution : Categorical
        The weights :math:`w`.
    component_distribution : Distribution
        The components, with one more batch dim.
    validate_args : bool, optional
        Whether values are checked.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import Categorical, MixtureSameFamily, Normal
    >>> weights = Categorical(ptcore.tensor([1., 3.]))
    >>> MixtureSameFamily(weights, Normal(ptcore.tensor([0., 4.]), 1.0)).mean
    tensor(3.)
    """

    arg_constraints = {}
    has_rsample = False

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        mixture, component = mixture_distribution, component_distribution
        if not isinstance(mixture, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of ptcore.distributions.Categorical")
        if not isinstance(component, Distribution):
            raise ValueError("The Component distribution needs to be an instance of ptcore.distributions.Distribution")
        batch = component.batch_shape[:-1]
        if any(n != m and n != 1 and m != 1 for n, m in zip(reversed(mixture.batch_shape), reversed(batch))):
            raise ValueError(f"`mixture_distribution.batch_shape` ({mixture.batch_shape}) is not compatible with "
                             f"`component_distribution.batch_shape`({batch})")
        count, its = mixture.param_shape[-1], component.batch_shape[-1]
        if count != its:
            raise ValueError(f"`mixture_distribution component` ({count}) does not equal "
                             f"`component_distribution.batch_shape[-1]` ({its})")
        self._mixture_distribution, self._component_distribution = mixture, component
        self._num_component, self._event_ndims = count, len(component.event_shape)
        super().__init__(batch, component.event_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        new._component_distribution = self._component_distribution.expand((*batch_shape, self._num_component))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component, new._event_ndims = self._num_component, self._event_ndims
        return self._finish(new, batch_shape, self._event_shape)

    @constraints.dependent_property
    def support(self):
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self):
        """The weights."""
        return self._mixture_distribution

    @property
    def component_distribution(self):
        """The components."""
        return self._component_distribution

    def _pad(self, x):
        """Adds a dim for the components."""
        return x.unsqueeze(-1 - self._event_ndims)

    def _mixed(self, values):
        """The weighted sum over components of values with event dims."""
        weights = self._mixture_distribution.probs
        weights = weights.reshape(*weights.shape, *[1] * self._event_ndims)
        return (weights * values).sum(-1 - self._event_ndims)

    @property
    def mean(self):
        return self._mixed(self._component_distribution.mean)

    @property
    def variance(self):
        its = self._component_distribution
        return self._mixed(its.variance) + self._mixed((its.mean - self._pad(self.mean)).pow(2.0))

    def cdf(self, x):
        return (self._component_distribution.cdf(self._pad(x)) * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x):
        if self._validate_args:
            self._validate_sample(x)
        log_weights = self._mixture_distribution.logits.log_softmax(-1)
        return (self._component_distribution.log_prob(self._pad(x)) + log_weights).logsumexp(-1)

    def sample(self, sample_shape=EMPTY):
        with pt.no_grad():
            dim = len(sample_shape) + len(self._batch_shape)
            which = self._mixture_distribution.sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            which = which.reshape(*which.shape, *[1] * (1 + self._event_ndims))
            which = which.expand(*drawn.shape[:dim], 1, *self._event_shape)
            return drawn.gather(dim, which).squeeze(dim)

    def __repr__(self):
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
