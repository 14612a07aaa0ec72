"""Continuous relaxations of one-hot categorical variables."""
import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions._probabilities import ByCategorical, uniform_like
from ptcore.distributions.categorical import Categorical
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.transformed_distribution import TransformedDistribution
from ptcore.distributions.transforms import ExpTransform
from ptcore.distributions.utils import EMPTY, broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(ByCategorical, Distribution):
    """Logarithms of the draws of :class:`RelaxedOneHotCategorical`.

    Parameters
    ----------
    temperature : Tensor
        The lower, the nearer to one-hot.
    probs, logits : Tensor
        Probabilities up to a factor, or logarithms of them up to a constant, along the last dim: one of the two.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions.relaxed_categorical import ExpRelaxedCategorical
    >>> ExpRelaxedCategorical(ptcore.tensor(0.5), ptcore.ones(3)).sample().shape
    ptcore.Size([3])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self._categorical, self.temperature = Categorical(probs, logits), temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:],
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(ExpRelaxedCategorical, _instance)
        new._categorical, new.temperature = self._categorical.expand(batch_shape), self.temperature
        return self._finish(new, batch_shape, self._event_shape)

    def rsample(self, sample_shape=EMPTY):
        u = clamp_probs(uniform_like(self.logits, self._extended_shape(sample_shape)))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, True)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        k, (logits, value) = self._event_shape[0], broadcast_all(self.logits, value)
        whole = pt.full_like(self.temperature, float(k)).lgamma() + (k - 1) * self.temperature.log()
        return (logits - value * self.temperature).log_softmax(-1).sum(-1) + whole


class RelaxedOneHotCategorical(TransformedDistribution):
    """Draws on the simplex that tend to one-hot ones as the temperature falls, with gradients (Gumbel softmax).

    Parameters
    ----------
    temperature : Tensor
        The lower, the nearer to one-hot.
    probs, logits : Tensor
        Probabilities up to a factor, or logarithms of them up to a constant, along the last dim: one of the two.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import RelaxedOneHotCategorical
    >>> RelaxedOneHotCategorical(ptcore.tensor(0.5), ptcore.ones(3)).rsample().sum()
    tensor(1.)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(RelaxedOneHotCategorical, _instance))

    @property
    def temperature(self):
        """The temperature: low values give draws near one-hot vectors."""
        return self.base_dist.temperature

    @property
    def logits(self):
        """Logarithms of the probabilities."""
        return self.base_dist.logits

    @property
    def probs(self):
        """Probabilities."""
        return self.base_dist.probs
