"""The Bernoulli distribution."""
import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions._probabilities import ByOdds, one_of
from ptcore.distributions.exp_family import ExponentialFamily
from ptcore.distributions.utils import EMPTY, broadcast_all
from ptcore.nn.functional import binary_cross_entropy_with_logits, softplus

__all__ = ["Bernoulli"]


class Bernoulli(ByOdds, ExponentialFamily):
    r"""1 with probability :math:`p`, else 0.

    Parameters
    ----------
    probs, logits : Tensor or float
        Probabilities of 1, or their log-odds: one of the two.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import Bernoulli
    >>> Bernoulli(probs=0.25).log_prob(ptcore.ones(1)).exp()
    tensor([0.2500])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, validate_args=None):
        by_probs = one_of(probs, logits)
        self._set(by_probs, *broadcast_all(probs if by_probs else logits))
        super().__init__(self._param.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Bernoulli, _instance, batch_shape, "probs", "logits")

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        mode = (self.probs >= 0.5).to(self.probs.dtype)
        return mode.masked_fill(self.probs == 0.5, float("nan"))

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=EMPTY):
        with pt.no_grad():
            return pt.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand=True):
        values = pt.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.view(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        return softplus(x)
