"""Transforms: functions of tensors with inverses and the logarithms of the determinants of their Jacobians.

This file has the elementwise transforms. ``_transform`` has the base class, ``_transforms_of_parts`` transforms made of
others, and ``_transforms_of_events`` those of vectors and matrices.
"""
import math
import numbers

import ptcore as pt
from ptcore.distributions import constraints
from ptcore.distributions._transform import Increasing, Transform, _InverseTransform, clipped_sigmoid  # noqa: F401
from ptcore.distributions._transforms_of_events import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    ReshapeTransform,
    SoftmaxTransform,
    StickBreakingTransform,
)
from ptcore.distributions._transforms_of_parts import (
    CatTransform,
    ComposeTransform,
    IndependentTransform,
    StackTransform,
    identity_transform,
)
from ptcore.distributions.utils import _sum_rightmost, broadcast_all, lazy_property
from ptcore.nn.functional import softplus

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]


class ExpTransform(Increasing):
    r""":math:`y = \exp(x)`.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import ExpTransform
    >>> ExpTransform()(ptcore.zeros(2))
    tensor([1., 1.])
    """

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class PowerTransform(Transform):
    r""":math:`y = x^{\text{exponent}}` of positive numbers.

    Parameters
    ----------
    exponent : Tensor or float
        Of any shape that broadcasts.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import PowerTransform
    >>> PowerTransform(2.0)(ptcore.tensor([3.]))
    tensor([9.])
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.exponent, = broadcast_all(exponent)

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size=cache_size)

    @lazy_property
    def sign(self):
        return self.exponent.sign()

    def __eq__(self, other):
        return isinstance(other, PowerTransform) and bool((self.exponent == other.exponent).all())

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return self.exponent.abs().log() + (self.exponent - 1) * x.abs().log()

    def forward_shape(self, shape):
        return pt.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


class SigmoidTransform(Increasing):
    r""":math:`y = 1 / (1 + \exp(-x))`.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import SigmoidTransform
    >>> SigmoidTransform()(ptcore.zeros(2))
    tensor([0.5000, 0.5000])
    """

    codomain = constraints.unit_interval

    def _call(self, x):
        return clipped_sigmoid(x)

    def _inverse(self, y):
        info = pt.finfo(y.dtype)
        y = y.clamp(min=info.tiny, max=1.0 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x) - softplus(x)


class SoftplusTransform(Increasing):
    r""":math:`y = \log(1 + \exp(x))`; the identity above 20.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import SoftplusTransform
    >>> SoftplusTransform()(ptcore.tensor([30.]))
    tensor([30.])
    """

    def _call(self, x):
        return softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x)


class TanhTransform(Increasing):
    r""":math:`y = \tanh(x)`. With ``cache_size=1`` the inverse stays exact where the function is flat.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import TanhTransform
    >>> TanhTransform()(ptcore.zeros(2))
    tensor([0., 0.])
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return y.atanh()

    def log_abs_det_jacobian(self, x, y):
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(Transform):
    """:math:`y = |x|`; the inverse is the positive preimage.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import AbsTransform
    >>> AbsTransform()(ptcore.tensor([-2.]))
    tensor([2.])
    """

    domain = constraints.real
    codomain = constraints.positive

    def __eq__(self, other):
        return isinstance(other, AbsTransform)

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


def _same_parameter(a, b):
    if isinstance(a, numbers.Number) and isinstance(b, numbers.Number):
        return a == b
    same = a == b
    return bool(same.all()) if isinstance(same, pt.Tensor) else bool(same)


class AffineTransform(Transform):
    r""":math:`y = \text{loc} + \text{scale} \cdot x`.

    Parameters
    ----------
    loc, scale : Tensor or float
        Of any shape that broadcasts.
    event_dim : int
        How many rightmost dims make one event.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import AffineTransform
    >>> AffineTransform(1.0, 2.0)(ptcore.tensor([3.]))
    tensor([7.])
    """

    bijective = True

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self):
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return constraints.independent(constraints.real, self.event_dim) if self.event_dim else constraints.real

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return self.domain

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    def __eq__(self, other):
        return isinstance(other, AffineTransform) and _same_parameter(self.loc, other.loc) and (
            _same_parameter(self.scale, other.scale))

    @property
    def sign(self):
        if isinstance(self.scale, numbers.Real):
            return (self.scale > 0) - (self.scale < 0)
        return self.scale.sign()

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        if isinstance(self.scale, numbers.Real):
            result = pt.full_like(x, math.log(abs(self.scale)) if self.scale else -math.inf)
        else:
            result = self.scale.abs().log()
        # A scale that several elements share counts for each of them, unlike in PyTorch.
        return _sum_rightmost(result.expand(x.shape), self.event_dim)

    def forward_shape(self, shape):
        return pt.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """:math:`y = F(x)`, the distribution function of a distribution.

    Parameters
    ----------
    distribution : Distribution
        One with ``cdf`` and ``icdf``.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import CumulativeDistributionTransform, Normal
    >>> CumulativeDistributionTransform(Normal(0.0, 1.0))(ptcore.zeros(1))
    tensor([0.5000])
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self):
        return self.distribution.support

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)
