"""Distributions of transformed variables."""
import functools
import operator

import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.independent import Independent
from ptcore.distributions.transforms import ComposeTransform, Transform
from ptcore.distributions.utils import EMPTY, _sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    r"""The distribution of :math:`f(X)`, with density :math:`p(f^{-1}(y))\, |df^{-1}(y)/dy|`.

    Parameters
    ----------
    base_distribution : Distribution
        That of :math:`X`.
    transforms : Transform or list of Transform
        :math:`f`, or its parts, the first of which is applied first.
    validate_args : bool, optional
        Whether values are checked.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import ExpTransform, Normal, TransformedDistribution
    >>> TransformedDistribution(Normal(0.0, 1.0), ExpTransform()).cdf(ptcore.ones(1))
    tensor([0.5000])
    """

    arg_constraints = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        its = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(its, list) or not all(isinstance(t, Transform) for t in its):
            raise ValueError(f"transforms must be a Transform or a list of Transforms, but was {transforms}")
        self.transforms = its
        # The base is expanded to the shape that the transforms require.
        base, transform = base_distribution, ComposeTransform(its)
        shape = base.batch_shape + base.event_shape
        if len(shape) < transform.domain.event_dim:
            raise ValueError(f"base_distribution needs to have shape with size at least {transform.domain.event_dim}, "
                             f"but got {base}.")
        final = transform.forward_shape(shape)
        wanted = transform.inverse_shape(final)
        if wanted != shape:
            base = base.expand(wanted[:len(wanted) - len(base.event_shape)])
        more = transform.domain.event_dim - len(base.event_shape)
        if more > 0:
            base = Independent(base, more)
        self.base_dist = base
        event_dim = max(transform.codomain.event_dim,
                        len(base.event_shape) + transform.codomain.event_dim - transform.domain.event_dim)
        cut = len(final) - event_dim
        super().__init__(final[:cut], final[cut:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(TransformedDistribution, _instance)
        shape = pt.Size(batch_shape) + self._event_shape
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[:len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        return self._finish(new, batch_shape, self._event_shape)

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self._event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    @property
    def has_rsample(self):
        return self.base_dist.has_rsample

    def _through(self, x):
        for t in self.transforms:
            x = t(x)
        return x

    def sample(self, sample_shape=EMPTY):
        with pt.no_grad():
            return self._through(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=EMPTY):
        return self._through(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        event_dim, log_prob, y = len(self._event_shape), 0.0, value
        for t in reversed(self.transforms):
            x = t.inv(y)
            inside = t.domain.event_dim
            event_dim += inside - t.codomain.event_dim
            log_prob = log_prob - _sum_rightmost(t.log_abs_det_jacobian(x, y), event_dim - inside)
            y = x
        return log_prob + _sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value):
        """The value, or 1 minus the value if the transforms reverse the order."""
        sign = functools.reduce(operator.mul, [t.sign for t in self.transforms], 1)
        if isinstance(sign, int):
            return value if sign == 1 else 1 - value
        return pt.where(sign > 0, value, 1 - value)

    def cdf(self, value):
        for t in reversed(self.transforms):
            value = t.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value):
        return self._through(self.base_dist.icdf(self._monotonize_cdf(value)))
