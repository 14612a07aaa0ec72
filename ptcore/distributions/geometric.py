"""The geometric distribution."""
import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions._probabilities import ByOdds, one_of
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.utils import EMPTY, broadcast_all
from ptcore.nn.functional import binary_cross_entropy_with_logits

__all__ = ["Geometric"]


class Geometric(ByOdds, Distribution):
    r"""Failures before the first success: :math:`P(k) = (1 - p)^k p` for :math:`k = 0, 1, \ldots`

    Parameters
    ----------
    probs, logits : Tensor or float
        Probabilities of success, or their log-odds: one of the two.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import Geometric
    >>> Geometric(probs=0.5).log_prob(ptcore.tensor([1.])).exp()
    tensor([0.2500])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        by_probs = one_of(probs, logits)
        self._set(by_probs, *broadcast_all(probs if by_probs else logits))
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and by_probs and not (self.probs > 0).all():
            value = self.probs
            raise ValueError(f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of "
                             f"distribution {self!r} to be positive but found invalid values:\n{value[value <= 0]}")

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Geometric, _instance, batch_shape, "probs", "logits")

    @property
    def mean(self):
        return 1.0 / self.probs - 1.0

    @property
    def mode(self):
        return pt.zeros_like(self.probs)

    @property
    def variance(self):
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape=EMPTY):
        probs = self.probs.detach()
        u = pt.empty(self._extended_shape(sample_shape), dtype=probs.dtype, device=probs.device)
        u.uniform_(pt.finfo(probs.dtype).tiny, 1)
        return (u.log() / (-probs).log1p()).floor()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        failure = probs.masked_fill((probs == 1) & (value == 0), 0)         # 0 log 0 counts as 0
        return value * (-failure).log1p() + self.probs.log()

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
