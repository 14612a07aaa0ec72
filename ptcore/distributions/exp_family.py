"""Exponential families: entropy and divergences from the log normaliser alone."""
from ptcore.autograd import grad
from ptcore.distributions.distribution import Distribution

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

    def entropy(self):
        """``F - <theta, F'>`` less the mean of the carrier measure."""
        natural = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*natural)
        slopes = grad(normalizer.sum(), natural, create_graph=True)
        result = normalizer - self._mean_carrier_measure
        for p, slope in zip(natural, slopes):
            result = result - (p * slope).reshape(*self._batch_shape, -1).sum(-1)
        return result
