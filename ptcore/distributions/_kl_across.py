"""Divergences of distributions of different families: minus the entropy of p and minus the mean of log q under p."""
import math

import ptcore as pt
from ptcore.distributions.bernoulli import Bernoulli
from ptcore.distributions.beta import Beta
from ptcore.distributions.binomial import Binomial
from ptcore.distributions.continuous_bernoulli import ContinuousBernoulli
from ptcore.distributions.exponential import Exponential
from ptcore.distributions.gamma import Gamma
from ptcore.distributions.gumbel import Gumbel
from ptcore.distributions.kl import register_kl
from ptcore.distributions.laplace import Laplace
from ptcore.distributions.normal import Normal
from ptcore.distributions.pareto import Pareto
from ptcore.distributions.poisson import Poisson
from ptcore.distributions.uniform import Uniform
from ptcore.distributions.utils import euler_constant

INF = float("inf")
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def _infinite(p, q):
    """For p with values outside of q's support."""
    shape = pt.broadcast_shapes(p.batch_shape, q.batch_shape)
    return p.mean.new_full(shape, INF)


for _p, _its in ((Exponential, (Beta, ContinuousBernoulli, Pareto, Uniform)),
                 (Gamma, (Beta, ContinuousBernoulli, Pareto, Uniform)),
                 (Gumbel, (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
                 (Laplace, (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
                 (Normal, (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
                 (Pareto, (Beta, ContinuousBernoulli, Uniform)), (Beta, (Pareto,)), (ContinuousBernoulli, (Pareto,)),
                 (Poisson, (Bernoulli, Binomial))):
    for _q in _its:
        register_kl(_p, _q)(_infinite)


# -- minus the mean of log q, from moments of p ------------------------------------------------------------
def _from_normal(q, mean, variance):
    return q.scale.log() + _HALF_LOG_2PI + 0.5 * (variance + (mean - q.loc).pow(2)) / q.scale.pow(2)


def _from_gamma(q, mean, mean_log):
    a = q.concentration
    return a.lgamma() - a * q.rate.log() - (a - 1) * mean_log + q.rate * mean


def _from_exponential(q, mean):
    return q.rate * mean - q.rate.log()


def _from_continuous_bernoulli(q, mean):
    return -(mean * q.logits + (-q.probs).log1p() + q._cont_bern_log_norm())


def _from_gumbel(q, mean, mean_exp):
    """``mean_exp``: the mean of exp(-x / scale)."""
    return q.scale.log() + (mean - q.loc) / q.scale + (q.loc / q.scale).exp() * mean_exp


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
@register_kl(Uniform, ContinuousBernoulli)
def _to_continuous_bernoulli(p, q):
    kl = -p.entropy() + _from_continuous_bernoulli(q, p.mean)
    return pt.where((p.low < 0) | (p.high > 1), INF, kl) if isinstance(p, Uniform) else kl


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
def _to_exponential(p, q):
    return -p.entropy() + _from_exponential(q, p.mean)


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _to_normal(p, q):
    return -p.entropy() + _from_normal(q, p.mean, p.variance)


@register_kl(Pareto, Normal)
def _pareto_normal(p, q):
    alpha = pt.where(p.alpha > 2, p.alpha, 3)       # up to 2 the variance, and so the result, is infinite
    mean = alpha * p.scale / (alpha - 1)
    variance = p.scale.pow(2) * alpha / ((alpha - 1).pow(2) * (alpha - 2))
    return pt.where(p.alpha <= 2, INF, -p.entropy() + _from_normal(q, mean, variance))


@register_kl(Beta, Gamma)
def _beta_gamma(p, q):
    a, b = p.concentration1, p.concentration0
    return -p.entropy() + _from_gamma(q, p.mean, a.digamma() - (a + b).digamma())


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _unit_uniform(p, q):
    return pt.where((q.low > 0) | (q.high < 1), INF, -p.entropy() + (q.high - q.low).log())


@register_kl(Exponential, Gamma)
def _exponential_gamma(p, q):
    return -p.entropy() + _from_gamma(q, p.mean, -p.rate.log() - euler_constant)


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p, q):
    product = p.rate * q.scale
    return -p.entropy() + _from_gumbel(q, p.mean, product / (product + 1))


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p, q):
    mean_exp = (1 + (p.rate * q.scale).reciprocal()).pow(-p.concentration)
    return -p.entropy() + _from_gumbel(q, p.mean, mean_exp)


@register_kl(Normal, Gumbel)
def _normal_gumbel(p, q):
    mean_exp = (0.5 * (p.scale / q.scale).pow(2) - p.loc / q.scale).exp()
    return -p.entropy() + _from_gumbel(q, p.mean, mean_exp)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p, q):
    mean_exp = ((-p.low / q.scale).exp() - (-p.high / q.scale).exp()) * q.scale / (p.high - p.low)
    return -p.entropy() + _from_gumbel(q, p.mean, mean_exp)


@register_kl(Normal, Laplace)
def _normal_laplace(p, q):
    away = p.loc - q.loc
    z = away / p.scale
    distance = math.sqrt(2 / math.pi) * p.scale * (-0.5 * z.pow(2)).exp() + away * (math.sqrt(0.5) * z).erf()
    return -p.entropy() + (2 * q.scale).log() + distance / q.scale


def _pareto_mean(p):
    """The mean where it is finite, and a number with a gradient elsewhere."""
    alpha = pt.where(p.alpha > 1, p.alpha, 2)
    return alpha * p.scale / (alpha - 1)


@register_kl(Pareto, Exponential)
def _pareto_exponential(p, q):
    kl = -p.entropy() + _from_exponential(q, _pareto_mean(p))
    return pt.where(p.alpha <= 1, INF, kl)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p, q):
    mean_log = p.scale.log() + p.alpha.reciprocal()
    kl = -p.entropy() + _from_gamma(q, _pareto_mean(p), mean_log)
    return pt.where(p.alpha <= 1, INF, kl)


def _mean_log(low, high):
    """The mean of the logarithm of a uniform between two positive numbers."""
    return (high.xlogy(high) - low.xlogy(low)) / (high - low) - 1


def _within(p, outside):
    """The ends of a uniform, and positive numbers where they do not count, so that logarithms have a gradient."""
    return pt.where(outside, 1, p.low), pt.where(outside, 2, p.high)


@register_kl(Uniform, Beta)
def _uniform_beta(p, q):
    a, b = q.concentration1, q.concentration0
    outside = (p.high > 1) | (p.low < 0)
    low, high = pt.where(outside, 0.25, p.low), pt.where(outside, 0.75, p.high)     # logarithms with a gradient
    kl = (a.lgamma() + b.lgamma() - (a + b).lgamma() - (a - 1) * _mean_log(low, high)
          - (b - 1) * _mean_log(1 - high, 1 - low) - p.entropy())
    return pt.where(outside, INF, kl)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p, q):
    return pt.where(p.low < 0, INF, -p.entropy() + _from_exponential(q, p.mean))


@register_kl(Uniform, Gamma)
def _uniform_gamma(p, q):
    return pt.where(p.low < 0, INF, -p.entropy() + _from_gamma(q, p.mean, _mean_log(*_within(p, p.low < 0))))


@register_kl(Uniform, Pareto)
def _uniform_pareto(p, q):
    outside = p.low < q.scale
    kl = (q.alpha + 1) * _mean_log(*_within(p, outside)) - q.alpha.log() - q.alpha * q.scale.log() - p.entropy()
    return pt.where(outside, INF, kl)
