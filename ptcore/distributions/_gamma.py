r"""Draws of gamma and Dirichlet variables, with derivatives by their concentrations.

Draws are made by the rejection method of Marsaglia and Tsang (2000), in float64 and as logarithms, so that draws of
small concentrations do not underflow to zero before they are divided.

Derivatives are implicit ones: of a draw :math:`x` with distribution function :math:`F`, density :math:`p` and
concentration :math:`a`,

.. math:: \frac{dx}{da} = -\frac{\partial F(x; a) / \partial a}{p(x)}
          = -\frac{1}{p(x)} \int_0^x p(t)\, (\log t - E \log t)\, dt.

The integrand changes its sign once, and its integral over all :math:`t` is zero. So the integral is taken on the side
of :math:`x` where the integrand keeps its sign, and nothing cancels. In a variable :math:`u` that is 0 at :math:`x`,
the integrand falls at least exponentially; with :math:`u = e^s` the trapezoidal rule converges geometrically on all
scales.
"""
import ptcore as pt
from ptcore._ops.functions import random_gamma
from ptcore._ops.history import has_values
from ptcore._random import draws_as_pytorch
from ptcore.autograd.function import Function, once_differentiable

_STEP = 0.3             # step of the rule in s, for errors of about 1e-7
_SMALL = 1e-9           # end of the integral next to x, in the scale of the integrand
_FALL = 40.0            # end far from x: exp(-40)
_AT_ONCE = 1 << 20      # number of values of the integrand in memory at once


def _log_gamma_draws(concentration):
    """Logarithms of standard gamma draws, one for each element, in float64."""
    a = concentration.detach().to(pt.float64)
    if not has_values(a):               # meta
        return a
    if draws_as_pytorch(None, a.device):
        return random_gamma(a, None).log()
    small = a < 1
    boosted = bool(small.any())
    d = (pt.where(small, a + 1, a) if boosted else a).reshape(-1) - 1 / 3
    out = left = None
    while True:
        here = d if left is None else d[left]
        x = pt.randn(here.shape, dtype=here.dtype, device=here.device)
        root = 1 + x / (9 * here).sqrt()
        log_v = 3 * root.clamp(min=1e-300).log()
        u = pt.rand(here.shape, dtype=here.dtype, device=here.device)
        # The comparison is False for NaN, so NaN is not drawn again.
        again = (root <= 0) | ((-u).log1p() >= 0.5 * x * x + here * (1 - root ** 3 + log_v))
        draws = here.log() + log_v
        if left is None:
            out, left = draws, again.nonzero().squeeze(-1)
        else:
            out[left] = draws
            left = left[again]
        if not left.numel():
            break
    out = out.reshape(a.shape)
    if not boosted:
        return out
    # For a concentration below 1: a draw for a + 1, times a power of a uniform.
    u = pt.rand(a.shape, dtype=a.dtype, device=a.device)
    return pt.where(small, out + (-u).log1p() / a, out)


def _integral(exponent, factor, first, last):
    """The integral over u of exp(exponent(u)) factor(u) for each element, between scales ``first`` and ``last``."""
    start, width = first.log(), (last / first).log()
    n = int((width.nan_to_num().max() / _STEP).clamp(16, 4096)) + 1
    s = start.unsqueeze(-1) + width.unsqueeze(-1) * pt.linspace(0, 1, n, dtype=width.dtype, device=width.device)
    u = s.exp()
    return (exponent(u).exp() * factor(u) * u).sum(-1) * (width / (n - 1))


def _in_parts(function, *tensors):
    """``function`` applied to flat float64 tensors in parts, so that memory stays small."""
    tensors = pt.broadcast_tensors(*tensors)
    like = tensors[0]
    if not like.numel() or not has_values(like):
        return pt.zeros_like(like)
    flat = [t.detach().to(pt.float64).reshape(-1) for t in tensors]
    size = _AT_ONCE // 128
    parts = [function(*(t[k:k + size] for t in flat)) for k in range(0, len(flat[0]), size)]
    return pt.cat(parts).reshape(like.shape).to(like.dtype)


def _gamma_slope(a, x):
    x = x.clamp(min=1e-300)
    log_x = x.log()
    # For x below 1: the power series of F, of which the first terms suffice.
    weight, psi = 1 / a, pt.digamma(a + 1)
    series = weight * (psi - log_x)
    for n in range(1, 18):
        weight, psi = weight * x / (a + n), psi + 1 / (a + n)
        series = series + weight * (psi - log_x)
    far = log_x - pt.digamma(a)
    left = far < 0
    # Towards 0 with t = x exp(-u), towards infinity with t = x (1 + u).
    power = pt.where(left, a, a - 1).unsqueeze(-1)
    below = left.unsqueeze(-1)

    def exponent(u):
        return pt.where(below, -power * u - x.unsqueeze(-1) * (-u).expm1(), power * u.log1p() - x.unsqueeze(-1) * u)

    def factor(u):
        return pt.where(below, u - far.unsqueeze(-1), u.log1p() + far.unsqueeze(-1))

    large = x >= 1
    last = pt.where(left, (_FALL + x) / a, 2 * _FALL / x + (2 * _FALL / x).sqrt())
    first = _SMALL / (a + x)
    found = _integral(exponent, factor, pt.where(large, first, 1.0), pt.where(large, last, 2.0))
    return x * pt.where(large, found, series)


def standard_gamma_grad(concentration, value):
    """Derivative of standard gamma draws by their concentrations."""
    return _in_parts(_gamma_slope, concentration, value)


def _beta_slope(x, a, b):
    """For draws of Beta(a, b): the derivative by a, over 1 - x."""
    x = x.clamp(1e-300, 1 - 2e-16)
    odds = x / (1 - x)
    far = x.log() - pt.digamma(a) + pt.digamma(a + b)
    left = far < 0
    # Towards 0 with t = x exp(-u), towards 1 with 1 - t = (1 - x) exp(-u).
    rate, other = pt.where(left, a, b), pt.where(left, b, a) - 1
    r = pt.where(left, odds, 1 / odds)

    def growth(u):
        return (r.unsqueeze(-1) * -(-u).expm1()).log1p()

    def exponent(u):
        return other.unsqueeze(-1) * growth(u) - rate.unsqueeze(-1) * u

    def factor(u):
        return pt.where(left.unsqueeze(-1), u - far.unsqueeze(-1), growth(u) + far.unsqueeze(-1))

    last = (_FALL + other.clamp(min=0) * r.log1p()) / rate
    found = _integral(exponent, factor, _SMALL / (rate + (1 + other.abs()) * r), last)
    return pt.where(left, odds, 1.0) * found


def dirichlet_grad(value, concentration, total):
    """Derivative of each number of a Dirichlet draw by its own concentration, divided by 1 minus the number."""
    return _in_parts(lambda x, a, t: _beta_slope(x, a, (t - a).clamp(min=1e-300)), value, concentration, total)


class StandardGamma(Function):
    """Draws of gamma variables of rate 1."""

    @staticmethod
    def forward(concentration):
        value = _log_gamma_draws(concentration).exp().to(concentration.dtype)
        return value.clamp(min=pt.finfo(value.dtype).tiny)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * standard_gamma_grad(*ctx.saved_tensors)


class DirichletDraw(Function):
    """Draws of Dirichlet variables.

    If one concentration grows, its own number changes as a beta variable does, and the others keep their proportions.
    """

    @staticmethod
    def forward(concentration):
        value = _log_gamma_draws(concentration).softmax(-1).to(concentration.dtype)
        return value.clamp(min=pt.finfo(value.dtype).tiny)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        concentration, value = ctx.saved_tensors
        slopes = dirichlet_grad(value, concentration, concentration.sum(-1, True))
        return slopes * (grad - (value * grad).sum(-1, True))
