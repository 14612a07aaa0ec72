"""Samples of distributions with a generator of the kind "pytorch" against PyTorch.

Counts and categories are equal; continuous samples are computed from equal draws by other logarithms and exponentials,
so that they agree up to rounding. The states are always equal.
"""
import numpy as np
import pytest
from _pytorch_numbers import states

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

LIBS = (pt, torch)


@pytest.fixture(autouse=True)
def pytorch():
    with pt.random.use("pytorch"):
        yield


def numbers(lib, dtype):
    return lib.tensor([0.3, 1.5, 0.7, 2.0, 4.0], dtype=getattr(lib, dtype))


def shares(lib, dtype):
    return lib.tensor([0.3, 0.5, 0.05, 0.9, 0.2], dtype=getattr(lib, dtype))


def matrix(lib, dtype):
    m = lib.eye(3, dtype=getattr(lib, dtype))
    m[1, 0] = m[2, 1] = 0.5
    return m


DISTRIBUTIONS = {
    "Normal": lambda d, x, p, m: d.Normal(x, x + 1), "Uniform": lambda d, x, p, m: d.Uniform(-x, x),
    "Exponential": lambda d, x, p, m: d.Exponential(x), "Cauchy": lambda d, x, p, m: d.Cauchy(x, x),
    "HalfCauchy": lambda d, x, p, m: d.HalfCauchy(x), "HalfNormal": lambda d, x, p, m: d.HalfNormal(x),
    "Laplace": lambda d, x, p, m: d.Laplace(x, x), "Gumbel": lambda d, x, p, m: d.Gumbel(x, x),
    "LogNormal": lambda d, x, p, m: d.LogNormal(x, x), "Logistic": lambda d, x, p, m: d.LogisticNormal(x, x),
    "Pareto": lambda d, x, p, m: d.Pareto(x, x), "Weibull": lambda d, x, p, m: d.Weibull(x, x),
    "Kumaraswamy": lambda d, x, p, m: d.Kumaraswamy(x, x), "VonMises": lambda d, x, p, m: d.VonMises(x, x),
    "Generalized": lambda d, x, p, m: d.GeneralizedPareto(x, x, p),
    "ContinuousBernoulli": lambda d, x, p, m: d.ContinuousBernoulli(p),
    "RelaxedBernoulli": lambda d, x, p, m: d.RelaxedBernoulli(x[0], p),
    "RelaxedOneHot": lambda d, x, p, m: d.RelaxedOneHotCategorical(x[0], p),
    "MultivariateNormal": lambda d, x, p, m: d.MultivariateNormal(x[:3], scale_tril=m),
    "LowRank": lambda d, x, p, m: d.LowRankMultivariateNormal(x[:3], m[:, :2], x[:3]),
    "Mixture": lambda d, x, p, m: d.MixtureSameFamily(d.Categorical(p), d.Normal(x, x)),
    "Independent": lambda d, x, p, m: d.Independent(d.Normal(x, x), 1),
    "Gamma": lambda d, x, p, m: d.Gamma(x, x), "Chi2": lambda d, x, p, m: d.Chi2(x),
    "Beta": lambda d, x, p, m: d.Beta(x, p),
    "Dirichlet": lambda d, x, p, m: d.Dirichlet(x), "StudentT": lambda d, x, p, m: d.StudentT(x),
    "FisherSnedecor": lambda d, x, p, m: d.FisherSnedecor(x, x + 1),
    "InverseGamma": lambda d, x, p, m: d.InverseGamma(x, x),
    "NegativeBinomial": lambda d, x, p, m: d.NegativeBinomial(x, p)}
EXACT = {
    "Bernoulli": lambda d, x, p, m: d.Bernoulli(p), "Binomial": lambda d, x, p, m: d.Binomial(40, p),
    "Poisson": lambda d, x, p, m: d.Poisson(x * 8), "Categorical": lambda d, x, p, m: d.Categorical(p),
    "Multinomial": lambda d, x, p, m: d.Multinomial(10, p), "OneHot": lambda d, x, p, m: d.OneHotCategorical(p),
    "Geometric": lambda d, x, p, m: d.Geometric(p)}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*EXACT, *DISTRIBUTIONS])
def test_samples(name, dtype):
    made = []
    for lib in LIBS:
        made_of = [make(lib, dtype) for make in (numbers, shares, matrix)]
        d = (EXACT | DISTRIBUTIONS)[name](lib.distributions, *made_of)
        lib.manual_seed(7)
        made.append([d.sample(shape) for shape in ((), (2,), (3, 4), (50,))])
    for mine, theirs in zip(*made, strict=True):
        assert tuple(mine.shape) == tuple(theirs.shape)
        if name in EXACT:
            assert mine.tolist() == theirs.tolist()
        else:
            rtol = 1e-9 if dtype == "float64" else 2e-4
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=rtol, atol=rtol)
    assert states(pt) == states(torch)
