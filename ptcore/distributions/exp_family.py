"""Exponential families: entropy and divergences from the log normaliser alone."""
from ptcore._state import enable_grad
from ptcore.autograd import grad
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.utils import _sum_rightmost

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    r"""Distributions with density :math:`\exp(\langle t(x), \theta\rangle - F(\theta) + k(x))`.

    :math:`\theta` are the natural parameters, :math:`t` the sufficient statistics, :math:`F` the log normaliser and
    :math:`k` the carrier measure. A subclass gives ``_natural_params`` (a tuple), ``_log_normalizer`` (a function of
    them) and ``_mean_carrier_measure``; the entropy follows, with a gradient.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import Exponential, ExponentialFamily
    >>> ExponentialFamily.entropy(Exponential(ptcore.tensor([1.0])))
    tensor([1.], grad_fn=<SubBackward0>)
    """

    @property
    def _natural_params(self):
        raise NotImplementedError(f"{type(self).__name__}: _natural_params is not defined")

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError(f"{type(self).__name__}: _log_normalizer is not defined")

    @property
    def _mean_carrier_measure(self):
        raise NotImplementedError(f"{type(self).__name__}: _mean_carrier_measure is not defined")

    def _slopes(self):
        """The natural parameters with history, the log normaliser, and its slopes by each of them."""
        with enable_grad():
            natural = [p if p.requires_grad else p.detach().requires_grad_() for p in self._natural_params]
            normalizer = self._log_normalizer(*natural)
            return natural, normalizer, grad(normalizer.sum(), natural, create_graph=True)

    def entropy(self):
        """``F - <theta, F'>`` less the mean of the carrier measure."""
        natural, normalizer, slopes = self._slopes()
        result = normalizer - self._mean_carrier_measure
        for p, slope in zip(natural, slopes):
            result = result - _sum_rightmost(p * slope, max(p.ndim - len(self._batch_shape), 0))
        return result
