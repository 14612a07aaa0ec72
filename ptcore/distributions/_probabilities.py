"""Distributions given by probabilities or by log-odds; the other form is computed at its first read."""
import ptcore as pt
from ptcore.distributions.utils import lazy_property, logits_to_probs, probs_to_logits


def one_of(probs, logits):
    """Whether the probabilities are given, and not the logits; raises unless exactly one is."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return probs is not None


class ByOdds:
    """The two forms of the parameter of a binary event."""

    def _set(self, by_probs, value):
        """Keeps the form that is given."""
        self.__dict__["probs" if by_probs else "logits"] = value

    @lazy_property
    def _param(self):
        """An existing form; both have the same shape, dtype and device."""
        return self.__dict__["probs"] if "probs" in self.__dict__ else self.__dict__["logits"]

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)

    @property
    def param_shape(self):
        """Shape of the parameter."""
        return self._param.shape

    @lazy_property
    def logits(self):
        """Log-odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=True)


class ByCategorical:
    """The parameters of a distribution that holds a categorical one."""

    def _new(self, *args, **kwargs):
        return self._categorical._new(*args, **kwargs)

    @property
    def logits(self):
        """Logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def probs(self):
        """Probabilities."""
        return self._categorical.probs

    @property
    def param_shape(self):
        """Shape of the parameter."""
        return self._categorical.param_shape


def uniform_like(tensor, shape):
    """Uniforms in [0, 1) with dtype and device of a tensor."""
    return pt.rand(shape, dtype=tensor.dtype, device=tensor.device)
