"""The categorical distribution."""
import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions._probabilities import one_of
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.utils import EMPTY, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Categorical"]


class Categorical(Distribution):
    r"""One of :math:`0, \ldots, K - 1`, each with its probability.

    Parameters
    ----------
    probs, logits : Tensor
        Probabilities up to a factor, or logarithms of them up to a constant, along the last dim: one of the two. They
        are normalised.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import Categorical
    >>> Categorical(probs=ptcore.tensor([1., 3.])).probs
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        if one_of(probs, logits):
            if probs.ndim < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.probs = param = probs / probs.sum(-1, True)
        else:
            if logits.ndim < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self.logits = param = logits - logits.logsumexp(-1, True)
        self._num_events = param.shape[-1]
        super().__init__(param.shape[:-1], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Categorical, _instance)
        for name in ("probs", "logits"):
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name].expand(*batch_shape, self._num_events)
        new._num_events = self._num_events
        return self._finish(new, batch_shape)

    @lazy_property
    def _param(self):
        return self.__dict__["probs"] if "probs" in self.__dict__ else self.__dict__["logits"]

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self):
        """Logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self):
        """Probabilities."""
        return logits_to_probs(self.logits)

    @property
    def param_shape(self):
        """Shape of the parameter."""
        return self._param.shape

    @property
    def mean(self):
        return self.probs.new_full(self._batch_shape, float("nan"))

    @property
    def mode(self):
        return self.probs.argmax(-1)

    @property
    def variance(self):
        return self.mean

    def sample(self, sample_shape=EMPTY):
        count = pt.Size(sample_shape).numel()
        with pt.no_grad():
            drawn = pt.multinomial(self.probs.reshape(-1, self._num_events), count, True) if count else (
                pt.empty(self._batch_shape.numel(), 0, dtype=pt.int64, device=self._param.device))
        return drawn.mT.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value, logits = pt.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        logits = self.logits.clamp(min=pt.finfo(self.logits.dtype).min)         # 0 times -inf
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        values = pt.arange(self._num_events, device=self._param.device).view(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values
