"""Probability distributions, their transforms, supports and divergences.

Draws (``sample``, ``rsample`` with gradients), ``log_prob``, moments and entropies of batches of distributions; regions
of parameters and values (``constraints``), transforms from unconstrained numbers to them (``transform_to``,
``biject_to``), and Kullback-Leibler divergences of pairs (``kl_divergence``).
"""
from ptcore.distributions import _kl_across, _kl_same, _kl_vectors
from ptcore.distributions import constraints as constraints
from ptcore.distributions.bernoulli import Bernoulli
from ptcore.distributions.beta import Beta
from ptcore.distributions.binomial import Binomial
from ptcore.distributions.categorical import Categorical
from ptcore.distributions.cauchy import Cauchy
from ptcore.distributions.chi2 import Chi2
from ptcore.distributions.constraint_registry import biject_to, transform_to
from ptcore.distributions.continuous_bernoulli import ContinuousBernoulli
from ptcore.distributions.dirichlet import Dirichlet
from ptcore.distributions.distribution import Distribution
from ptcore.distributions.exp_family import ExponentialFamily
from ptcore.distributions.exponential import Exponential
from ptcore.distributions.fishersnedecor import FisherSnedecor
from ptcore.distributions.gamma import Gamma
from ptcore.distributions.generalized_pareto import GeneralizedPareto
from ptcore.distributions.geometric import Geometric
from ptcore.distributions.gumbel import Gumbel
from ptcore.distributions.half_cauchy import HalfCauchy
from ptcore.distributions.half_normal import HalfNormal
from ptcore.distributions.independent import Independent
from ptcore.distributions.inverse_gamma import InverseGamma
from ptcore.distributions.kl import kl_divergence, register_kl
from ptcore.distributions.kumaraswamy import Kumaraswamy
from ptcore.distributions.laplace import Laplace
from ptcore.distributions.lkj_cholesky import LKJCholesky
from ptcore.distributions.log_normal import LogNormal
from ptcore.distributions.logistic_normal import LogisticNormal
from ptcore.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from ptcore.distributions.mixture_same_family import MixtureSameFamily
from ptcore.distributions.multinomial import Multinomial
from ptcore.distributions.multivariate_normal import MultivariateNormal
from ptcore.distributions.negative_binomial import NegativeBinomial
from ptcore.distributions.normal import Normal
from ptcore.distributions.one_hot_categorical import OneHotCategorical, OneHotCategoricalStraightThrough
from ptcore.distributions.pareto import Pareto
from ptcore.distributions.poisson import Poisson
from ptcore.distributions.relaxed_bernoulli import RelaxedBernoulli
from ptcore.distributions.relaxed_categorical import RelaxedOneHotCategorical
from ptcore.distributions.studentT import StudentT
from ptcore.distributions.transformed_distribution import TransformedDistribution
from ptcore.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from ptcore.distributions.uniform import Uniform
from ptcore.distributions.von_mises import VonMises
from ptcore.distributions.weibull import Weibull
from ptcore.distributions.wishart import Wishart

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "identity_transform",
    "kl_divergence",
    "register_kl",
    "transform_to",
]
