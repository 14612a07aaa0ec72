"""Distributions against PyTorch's: names, signatures, reprs, shapes, moments, densities, divergences, errors."""
import inspect
import itertools

import numpy as np
import pytest
from _walk import walk

import ptcore as pt
from ptcore import distributions as ours

torch = pytest.importorskip("torch")
theirs = torch.distributions
pytestmark = pytest.mark.parity

EYE = [[2.0, 0.3], [0.3, 1.0]]
TRIL = [[1.5, 0.0], [0.4, 0.7]]
POSITIVE, UNIT, REAL = [0.5, 1.0, 3.0], [0.2, 0.5, 0.9], [-1.0, 0.3, 2.0]
# name -> [arguments], values in the support
CASES = {
    "Bernoulli": ([{"probs": UNIT}, {"logits": REAL}, {"probs": 0.3}], [1.0, 0.0, 1.0]),
    "Beta": ([{"concentration1": [0.5, 1.5, 3.0], "concentration0": [2.0, 1.2, 0.7]},
              {"concentration1": 2.0, "concentration0": 3.0}], UNIT),
    "Binomial": ([{"total_count": 5, "probs": UNIT}, {"total_count": 3, "logits": REAL}], [1.0, 0.0, 3.0]),
    "Categorical": ([{"probs": UNIT}, {"logits": [REAL, UNIT]}], [1, 2]),
    "Cauchy": ([{"loc": REAL, "scale": POSITIVE}], REAL),
    "Chi2": ([{"df": POSITIVE}], POSITIVE),
    "ContinuousBernoulli": ([{"probs": UNIT}, {"logits": REAL}], UNIT),
    "Dirichlet": ([{"concentration": POSITIVE}, {"concentration": [POSITIVE, UNIT]}], [0.2, 0.5, 0.3]),
    "Exponential": ([{"rate": POSITIVE}, {"rate": 2.0}], POSITIVE),
    "FisherSnedecor": ([{"df1": POSITIVE, "df2": [1.0, 3.0, 6.0]}], POSITIVE),
    "Gamma": ([{"concentration": POSITIVE, "rate": [2.0, 1.0, 0.4]}], POSITIVE),
    "GeneralizedPareto": ([{"loc": 0.0, "scale": POSITIVE, "concentration": [0.2, 0.0, 0.6]}], POSITIVE),
    "Geometric": ([{"probs": UNIT}, {"logits": REAL}], [0.0, 3.0, 1.0]),
    "Gumbel": ([{"loc": REAL, "scale": POSITIVE}], REAL),
    "HalfCauchy": ([{"scale": POSITIVE}], POSITIVE),
    "HalfNormal": ([{"scale": POSITIVE}], POSITIVE),
    "InverseGamma": ([{"concentration": POSITIVE, "rate": [2.0, 1.0, 0.4]}], POSITIVE),
    "Kumaraswamy": ([{"concentration1": POSITIVE, "concentration0": [2.0, 1.0, 0.4]}], UNIT),
    "LKJCholesky": ([{"dim": 2, "concentration": 1.5}, {"dim": 2, "concentration": POSITIVE}],
                    [[1.0, 0.0], [0.6, 0.8]]),
    "Laplace": ([{"loc": REAL, "scale": POSITIVE}], REAL),
    "LogNormal": ([{"loc": REAL, "scale": POSITIVE}], POSITIVE),
    "LogisticNormal": ([{"loc": [0.3, -1.0], "scale": [1.0, 0.5]}], [0.2, 0.5, 0.3]),
    "LowRankMultivariateNormal": ([{"loc": [0.0, 1.0], "cov_factor": [[1.0], [0.5]], "cov_diag": [0.5, 2.0]}],
                                  [0.3, -1.0]),
    "Multinomial": ([{"total_count": 4, "probs": UNIT}, {"total_count": 4, "logits": REAL}], [1.0, 1.0, 2.0]),
    "MultivariateNormal": ([{"loc": [0.0, 1.0], "covariance_matrix": EYE}, {"loc": [0.0, 1.0], "scale_tril": TRIL},
                            {"loc": [[0.0, 1.0], [2.0, 2.0]], "precision_matrix": EYE}], [0.3, -1.0]),
    "NegativeBinomial": ([{"total_count": 5, "probs": UNIT}, {"total_count": [1.0, 2.5, 0.0], "logits": REAL}],
                         [1.0, 0.0, 3.0]),
    "Normal": ([{"loc": REAL, "scale": POSITIVE}, {"loc": 0.5, "scale": 2.0}, {"loc": 0, "scale": POSITIVE}], REAL),
    "OneHotCategorical": ([{"probs": UNIT}, {"logits": [REAL, UNIT]}], [0.0, 1.0, 0.0]),
    "OneHotCategoricalStraightThrough": ([{"probs": UNIT}], [0.0, 1.0, 0.0]),
    "Pareto": ([{"scale": UNIT, "alpha": [0.5, 1.5, 3.0]}], POSITIVE),
    "Poisson": ([{"rate": POSITIVE}, {"rate": 2.0}], [1.0, 0.0, 3.0]),
    "RelaxedBernoulli": ([{"temperature": 0.5, "probs": UNIT}], [0.3, 0.5, 0.8]),
    "RelaxedOneHotCategorical": ([{"temperature": 0.5, "probs": UNIT}], [0.2, 0.5, 0.3]),
    "StudentT": ([{"df": [0.5, 1.5, 4.0], "loc": REAL, "scale": POSITIVE}], REAL),
    "Uniform": ([{"low": REAL, "high": [1.0, 4.0, 5.0]}, {"low": 0.0, "high": 1.0}], [0.5, 0.6, 2.5]),
    "VonMises": ([{"loc": REAL, "concentration": POSITIVE}], REAL),
    "Weibull": ([{"scale": POSITIVE, "concentration": [0.5, 1.5, 3.0]}], POSITIVE),
    "Wishart": ([{"df": 3.5, "covariance_matrix": EYE}, {"df": 4.0, "scale_tril": TRIL}], EYE),
}
NAMES = [(name, k) for name, (its, _) in CASES.items() for k in range(len(its))]
# What is meant to differ, on the page of differences.
MEANT = {("Kumaraswamy", "mode"), ("GeneralizedPareto", "density")}


def tensor(lib, value):
    return lib.tensor(value, dtype=None if isinstance(value, int) or np.asarray(value).dtype.kind == "i" else
                      lib.float64)


def made(lib, name, k=0):
    kwargs = {key: value if (key in ("total_count", "dim") and isinstance(value, int)) or (
        isinstance(value, float) and key != "temperature") or value == 0 else tensor(lib, value)
        for key, value in CASES[name][0][k].items()}
    return getattr(lib.distributions, name)(**kwargs)


def plain(text):
    """Words without the names of the libraries."""
    return str(text).replace("ptcore.", "").replace("torch.", "")


def outcome(f):
    try:
        return f()
    except (NotImplementedError, ValueError, RuntimeError) as e:
        return type(e).__mro__


def same(got, want, rtol=2e-6, atol=1e-7):
    if isinstance(want, tuple) and want and isinstance(want[0], type):
        assert want[0] in got
    elif isinstance(want, torch.Tensor):
        assert tuple(got.shape) == tuple(want.shape)
        assert str(got.dtype).rpartition(".")[2] == str(want.dtype).rpartition(".")[2]
        np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=rtol, atol=atol)
    else:
        assert got == want


def test_names():
    assert sorted(ours.__all__) == sorted(theirs.__all__)
    for module in ("constraints", "constraint_registry", "transforms", "utils", "kl"):
        its = getattr(getattr(theirs, module), "__all__", [])
        assert sorted(getattr(ours, module).__all__) == sorted(its)
    for name in theirs.__all__:
        file = getattr(theirs, name).__class__.__module__ if not inspect.isclass(getattr(theirs, name)) else (
            getattr(theirs, name).__module__)
        its = __import__(file.replace("torch", "ptcore"), fromlist=[name])
        if file.startswith("torch.distributions"):
            assert hasattr(its, name) or not inspect.isclass(getattr(theirs, name))


@pytest.mark.parametrize("name", [n for n in theirs.__all__ if inspect.isclass(getattr(theirs, n))])
def test_signatures(name):
    def described(function):
        return [(p.name, p.kind, plain(p.default)) for p in
                inspect.signature(function).parameters.values()]
    mine, other = getattr(ours, name), getattr(theirs, name)
    assert described(mine.__init__) == described(other.__init__)
    public = {n for n in dir(other) if not n.startswith("_")}
    assert public - set(dir(mine)) == set()
    for method in ("expand", "sample", "rsample", "log_prob", "cdf", "icdf", "entropy", "enumerate_support",
                   "with_cache", "log_abs_det_jacobian"):
        if method in public:
            assert described(getattr(mine, method)) == described(getattr(other, method)), method


def kept(name, what):
    return (name, what) not in MEANT


@pytest.mark.parametrize("name, k", NAMES)
@pytest.mark.filterwarnings("ignore:Singular sample:UserWarning")
def test_distribution(name, k):
    mine, other = made(pt, name, k), made(torch, name, k)
    assert plain(mine) == plain(other)
    for shape in ("batch_shape", "event_shape"):
        assert tuple(getattr(mine, shape)) == tuple(getattr(other, shape))
    assert mine.has_rsample == other.has_rsample
    assert mine.has_enumerate_support == other.has_enumerate_support
    assert plain(mine.support) == plain(other.support)
    assert {a: plain(c) for a, c in mine.arg_constraints.items()} == {
        a: plain(c) for a, c in other.arg_constraints.items()}
    for what in ("mean", "mode", "variance", "stddev"):
        if kept(name, what):
            same(outcome(lambda: getattr(mine, what)), outcome(lambda: getattr(other, what)))  # noqa: B023
    same(outcome(mine.entropy), outcome(other.entropy))
    value = CASES[name][1]
    if kept(name, "density"):           # PyTorch's takes no float64
        same(outcome(lambda: mine.log_prob(tensor(pt, value))), outcome(lambda: other.log_prob(tensor(torch, value))))
        same(outcome(lambda: mine.cdf(tensor(pt, value))), outcome(lambda: other.cdf(tensor(torch, value))))
    if not other.event_shape:
        at = [0.2, 0.5, 0.7]
        same(outcome(lambda: mine.icdf(tensor(pt, at))), outcome(lambda: other.icdf(tensor(torch, at))))
    wide, wider = mine.expand((2, *mine.batch_shape)), other.expand((2, *other.batch_shape))
    assert tuple(wide.batch_shape) == tuple(wider.batch_shape) and type(wide) is type(mine)
    if kept(name, "density"):
        same(outcome(lambda: wide.log_prob(tensor(pt, value))), outcome(lambda: wider.log_prob(tensor(torch, value))))
    assert tuple(wide.sample((3,)).shape) == tuple(wider.sample((3,)).shape)
    assert str(wide.sample().dtype).rpartition(".")[2] == str(wider.sample().dtype).rpartition(".")[2]
    same(outcome(wide.enumerate_support), outcome(wider.enumerate_support))
    same(outcome(lambda: mine.enumerate_support(False)), outcome(lambda: other.enumerate_support(False)))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_values_outside(name):
    """The same values and parameters are refused, in the same words."""
    def said(lib):
        mine = made(lib, name)
        with pytest.raises(ValueError, match="Expected value") as e:
            mine.log_prob(lib.full((*mine.batch_shape, *mine.event_shape), float("nan"), dtype=lib.float64))
        return plain(e.value).partition(" of the distribution")[0]
    assert said(pt) == said(torch)


@pytest.mark.parametrize("name, k", NAMES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_parameters_outside(name, k):
    """Of each parameter NaN, a negative number and a large one: the same are refused, in the same words.

    Where PyTorch names a parameter of a distribution inside, the user's own is named here.
    """
    inside = name in ("FisherSnedecor", "LKJCholesky", "StudentT", "LowRankMultivariateNormal")

    def tried(lib):
        found = []
        for key in CASES[name][0][k]:
            for bad in (float("nan"), -1.5, 7.25)[:2 if key.endswith("matrix") else 3]:     # singular up to rounding
                kwargs = {n: v if isinstance(v, (int, float)) and n != "temperature" else tensor(lib, v)
                          for n, v in CASES[name][0][k].items()}
                kwargs[key] = lib.full_like(kwargs[key], bad) if isinstance(kwargs[key], lib.Tensor) else bad
                try:
                    getattr(lib.distributions, name)(**kwargs)
                    found.append((key, bad, None))
                except Exception as e:
                    said = True if inside or isinstance(e, (TypeError, RuntimeError)) else plain(e)[:150]
                    found.append((key, bad, said))
        return repr(found)
    assert tried(pt) == tried(torch)


PAIRS = sorted({(p.__name__, q.__name__) for p, q in theirs.kl._KL_REGISTRY})
# Where PyTorch says infinity though the supports are equal or nested.
NESTED = {("Uniform", "ContinuousBernoulli"), ("ContinuousBernoulli", "Uniform")}


def test_pairs():
    mine = {(p.__name__, q.__name__) for p, q in ours.kl._KL_REGISTRY if hasattr(ours, p.__name__)}
    assert sorted(mine) == PAIRS


@walk("p, q", [pair for pair in itertools.product(CASES, CASES) if pair not in NESTED], by=str)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_kl(p, q):
    got = outcome(lambda: ours.kl_divergence(made(pt, p), made(pt, q)))
    want = outcome(lambda: theirs.kl_divergence(made(torch, p), made(torch, q)))
    same(got, want)


@pytest.mark.parametrize("name", [c for c in theirs.constraints.__all__ if isinstance(
    getattr(theirs.constraints, c), theirs.constraints.Constraint)])
def test_constraints(name):
    def tried(lib):
        constraint = getattr(lib.distributions.constraints, name)
        words = repr(constraint)
        values = [[[1.0, 0.0], [0.6, 0.8]], [[0.5, 0.5], [0.2, 0.3]], [[1.0, 0.0], [0.0, 1.0]],
                  [[2.0, 1.0], [1.0, 2.0]], [[-1.0, 3.0], [float("nan"), 0.0]]]
        found = []
        for value in values:
            try:
                found.append(constraint.check(lib.tensor(value)).tolist())
            except Exception as e:
                found.append(type(e).__mro__[-3].__name__)
        try:
            return words, constraint.is_discrete, constraint.event_dim, found
        except NotImplementedError as e:
            return words, str(e), found
    assert tried(pt) == tried(torch)
