"""The von Mises distribution."""
import math

import ptcore as pt
from ptcore._random import draws_as_pytorch
from ptcore.distributions import constraints
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.utils import EMPTY, broadcast_all, lazy_property

__all__ = ["VonMises"]


class VonMises(Distribution):
    r"""Von Mises distribution of angles, with density :math:`e^{\kappa \cos(x - m)} / 2\pi I_0(\kappa)`.

    Parameters
    ----------
    loc, concentration : Tensor
        Angle :math:`m` in radians and :math:`\kappa`; they broadcast to the batch shape.
    validate_args : bool, optional
        Whether parameters and values are checked.

    Notes
    -----
    Draws lie in :math:`[-\pi, \pi)`. They are made by the rejection of Best and Fisher (1979), in float64, and have no
    gradients.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import VonMises
    >>> VonMises(0.0, 1.0).log_prob(ptcore.zeros(1))
    tensor([-1.0738])
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc, concentration, validate_args=None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(VonMises, _instance, batch_shape, "loc", "concentration")

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        k = self.concentration
        # With cos - 1 and i0e = exp(-k) i0, no large numbers are subtracted.
        return k * ((value - self.loc).cos() - 1) - math.log(2 * math.pi) - pt.special.i0e(k).log()

    @lazy_property
    def _proposal_r(self):
        """Parameter of the wrapped Cauchy distribution, the proposal."""
        k = self.concentration.detach().to(pt.float64)
        tau = 1 + (1 + 4 * k ** 2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        return pt.where(k < 1e-5, 1 / k + k, (1 + rho ** 2) / (2 * rho))

    def sample(self, sample_shape=EMPTY):
        shape = self._extended_shape(sample_shape)
        with pt.no_grad():
            k = self.concentration.to(pt.float64).expand(shape).reshape(-1)
            r = self._proposal_r.expand(shape).reshape(-1)
            angles, left = pt.empty_like(k), pt.arange(k.numel(), device=k.device)
            # PyTorch draws all angles again until each was taken at least once
            done = pt.zeros_like(k, dtype=pt.bool) if draws_as_pytorch(None, k.device) else None
            while left.numel():
                u1, u2, u3 = pt.rand(3, left.numel(), dtype=k.dtype, device=k.device)
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                taken = (c * (2 - c) > u2) | ((c / u2).log() + 1 - c >= 0) | (c != c)
                angles[left[taken]] = ((u3 - 0.5).sign() * f.acos())[taken]
                if done is None:
                    left, k, r = left[~taken], k[~taken], r[~taken]
                elif bool((done := done | taken).all()):
                    break
            turned = angles.reshape(shape) + math.pi + self.loc.to(pt.float64)
            return (turned % (2 * math.pi) - math.pi).to(self.loc.dtype)

    @property
    def mean(self):
        """The circular mean."""
        return self.loc

    @property
    def mode(self):
        return self.loc

    @lazy_property
    def variance(self):
        """The circular variance."""
        return 1 - pt.special.i1e(self.concentration) / pt.special.i0e(self.concentration)
