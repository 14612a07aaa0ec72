"""The multinomial distribution."""
import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions._probabilities import ByCategorical
from ptcore.distributions.binomial import Binomial
from ptcore.distributions.categorical import Categorical
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.utils import EMPTY, broadcast_all

__all__ = ["Multinomial"]


class Multinomial(ByCategorical, Distribution):
    r"""Counts of K categories in :math:`n` draws: :math:`P(x) = n! \prod_i p_i^{x_i} / x_i!`

    Parameters
    ----------
    total_count : int
        Number :math:`n` of draws.
    probs, logits : Tensor
        Probabilities up to a factor, or logarithms of them up to a constant, along the last dim: one of the two.
    validate_args : bool, optional
        Whether parameters and values are checked. ``log_prob`` takes vectors of any sum up to `total_count`.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import Multinomial
    >>> Multinomial(4, probs=ptcore.tensor([1., 3.])).mean
    tensor([1., 3.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:],
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Multinomial, _instance)
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(batch_shape)
        return self._finish(new, batch_shape, self._event_shape)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    @property
    def mean(self):
        return self.probs * self.total_count

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=EMPTY):
        drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
        counts = drawn.new_zeros(self._extended_shape(sample_shape))
        return counts.scatter_add_(-1, drawn, pt.ones_like(drawn)).to(self.probs.dtype)

    def entropy(self):
        n = self.total_count
        counts = Binomial(n, probs=self.probs, validate_args=False)
        values = counts.enumerate_support(expand=False)[1:]
        spread = (counts.log_prob(values).exp() * (values + 1).lgamma()).sum((0, -1))
        return n * self._categorical.entropy() - pt.lgamma(self.probs.new_tensor(n + 1.0)) + spread

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -float("inf")), 0)        # 0 times -inf
        return (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1) + (logits * value).sum(-1)
