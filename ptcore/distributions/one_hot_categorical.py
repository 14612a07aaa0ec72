"""Categorical distributions over one-hot vectors."""
import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions._probabilities import ByCategorical
from ptcore.distributions.categorical import Categorical
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.utils import EMPTY
from ptcore.nn.functional import one_hot

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(ByCategorical, Distribution):
    """:class:`Categorical` over one-hot vectors.

    Parameters
    ----------
    probs, logits : Tensor
        Probabilities up to a factor, or logarithms of them up to a constant, along the last dim: one of the two.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import OneHotCategorical
    >>> OneHotCategorical(probs=ptcore.tensor([0., 1.])).sample()
    tensor([0., 1.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:],
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(OneHotCategorical, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return self._finish(new, batch_shape, self._event_shape)

    @property
    def _param(self):
        return self._categorical._param

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        return one_hot(self.probs.argmax(-1), self._event_shape[0]).to(self.probs)

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=EMPTY):
        return one_hot(self._categorical.sample(sample_shape), self._event_shape[0]).to(self.probs)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        n, batch = self._event_shape[0], self._batch_shape
        values = pt.eye(n, dtype=self._param.dtype, device=self._param.device).view(n, *[1] * len(batch), n)
        return values.expand(n, *batch, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """:class:`OneHotCategorical` whose draws have the gradients of the probabilities.

    Parameters
    ----------
    probs, logits : Tensor
        Probabilities up to a factor, or logarithms of them up to a constant, along the last dim: one of the two.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import OneHotCategoricalStraightThrough
    >>> OneHotCategoricalStraightThrough(probs=ptcore.tensor([0., 1.])).rsample()
    tensor([0., 1.])
    """

    has_rsample = True

    def rsample(self, sample_shape=EMPTY):
        probs = self.probs
        return self.sample(sample_shape) + (probs - probs.detach())
