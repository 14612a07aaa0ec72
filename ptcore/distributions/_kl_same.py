"""Divergences within one family, of transformed distributions and of independent ones."""
import ptcore as pt
from ptcore.distributions.bernoulli import Bernoulli
from ptcore.distributions.beta import Beta
from ptcore.distributions.binomial import Binomial
from ptcore.distributions.categorical import Categorical
from ptcore.distributions.cauchy import Cauchy
from ptcore.distributions.continuous_bernoulli import ContinuousBernoulli
from ptcore.distributions.dirichlet import Dirichlet
from ptcore.distributions.exp_family import ExponentialFamily
from ptcore.distributions.exponential import Exponential
from ptcore.distributions.gamma import Gamma
from ptcore.distributions.geometric import Geometric
from ptcore.distributions.gumbel import Gumbel
from ptcore.distributions.half_normal import HalfNormal
from ptcore.distributions.independent import Independent
from ptcore.distributions.kl import kl_divergence, register_kl
from ptcore.distributions.laplace import Laplace
from ptcore.distributions.normal import Normal
from ptcore.distributions.one_hot_categorical import OneHotCategorical
from ptcore.distributions.pareto import Pareto
from ptcore.distributions.poisson import Poisson
from ptcore.distributions.transformed_distribution import TransformedDistribution
from ptcore.distributions.uniform import Uniform
from ptcore.distributions.utils import _sum_rightmost, euler_constant
from ptcore.nn.functional import softplus

INF = float("inf")


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    ones = pt.where(p.probs == 0, 0.0, pt.where(q.probs == 0, INF, ones))
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    return ones + pt.where(p.probs == 1, 0.0, pt.where(q.probs == 1, INF, zeros))


def _log_beta(d):
    a, b = d.concentration1, d.concentration0
    return a.lgamma() + b.lgamma() - (a + b).lgamma()


@register_kl(Beta, Beta)
def _beta(p, q):
    a, b = p.concentration1, p.concentration0
    total, other = a + b, q.concentration1 + q.concentration0
    return (_log_beta(q) - _log_beta(p) + (a - q.concentration1) * a.digamma() + (b - q.concentration0) * b.digamma()
            + (other - total) * total.digamma())


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    return pt.where(p.total_count > q.total_count, INF, p.total_count * _bernoulli(p, q))


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    terms = p.probs * (p.logits - q.logits)
    return pt.where(p.probs == 0, 0.0, pt.where(q.probs == 0, INF, terms)).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    return (p.mean * (p.logits - q.logits) + p._cont_bern_log_norm() + (-p.probs).log1p()
            - q._cont_bern_log_norm() - (-q.probs).log1p())


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    return (total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
            + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1))


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p, q):
    """The Bregman divergence of the log normaliser."""
    if type(p) is not type(q):
        raise NotImplementedError("The cross KL-divergence between different exponential families cannot be computed "
                                  "using Bregman divergences")
    ours, normalizer, slopes = p._slopes()
    result = q._log_normalizer(*q._natural_params) - normalizer
    for mine, other, slope in zip(ours, q._natural_params, slopes):
        # A parameter need not have the dims of the event, such as the degrees of freedom of matrices.
        result = result - _sum_rightmost((other - mine) * slope, mine.ndim - len(p.batch_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    a, b = p.concentration, q.concentration
    return (b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma() + (a - b) * a.digamma()
            + (q.rate - p.rate) * (a / p.rate))


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio, shift = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return (shift - ratio.log() + ratio * euler_constant + ((1 + ratio).lgamma() - shift).exp()
            - (1 + euler_constant))


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return away / q.scale - ratio.log() + ratio * (-away / p.scale).exp() - 1


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    return _normal(p.base_dist, q.base_dist)


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    ratio = q.alpha / p.alpha
    kl = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return pt.where(p.scale < q.scale, INF, kl)


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate.xlogy(p.rate) - p.rate.xlogy(q.rate) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    kl = ((q.high - q.low) / (p.high - p.low)).log()
    return pt.where((q.low > p.low) | (q.high < p.high), INF, kl)


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("The KL-divergence of transformed distributions needs equal transforms and event "
                                  "shapes")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("The KL-divergence of Independent distributions needs equal "
                                  "reinterpreted_batch_ndims")
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
