"""Distributions against SciPy's: densities, distribution functions, moments, entropies; draws by their distribution."""
import copy
import inspect
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special, stats

import ptcore as pt
from ptcore import distributions as D

A, B, R = [0.6, 1.0, 2.5], [2.0, 0.7, 1.3], [-1.0, 0.2, 2.0]
U, Q = [0.2, 0.5, 0.85], [0.05, 0.4, 0.97]


def t(x, **options):
    return pt.tensor(x, dtype=pt.float64, **options)


class _Kumaraswamy(stats.rv_continuous):
    def _cdf(self, x, a, b):
        return 1 - (1 - x ** a) ** b

    def _pdf(self, x, a, b):
        return a * b * x ** (a - 1) * (1 - x ** a) ** (b - 1)


class _ContinuousBernoulli(stats.rv_continuous):
    def _pdf(self, x, p):
        # exp(x logit) over its integral
        eta = np.log(p / (1 - p))
        return np.where(np.abs(eta) < 1e-9, 1.0, np.exp(x * eta) * eta / np.expm1(np.where(eta == 0, 1, eta)))


KUMARASWAMY, CONTINUOUS = _Kumaraswamy(a=0, b=1), _ContinuousBernoulli(a=0, b=1)
# name -> (our parameters, SciPy's distribution, values)
CONTINUOUS_CASES = {
    "Beta": ((A, B), stats.beta(A, B), U),
    "Cauchy": ((R, A), stats.cauchy(R, A), R),
    "Chi2": ((A,), stats.chi2(A), A),
    "ContinuousBernoulli": ((U,), CONTINUOUS(U), Q),
    "Exponential": ((A,), stats.expon(scale=1 / np.array(A)), A),
    "FisherSnedecor": (([3.0, 5.0, 9.0], [5.0, 6.0, 11.0]), stats.f([3.0, 5.0, 9.0], [5.0, 6.0, 11.0]), A),
    "Gamma": ((A, B), stats.gamma(A, scale=1 / np.array(B)), A),
    "GeneralizedPareto": ((R, A, [0.3, 0.0, -0.4]), stats.genpareto([0.3, 0.0, -0.4], R, A), [-0.5, 0.4, 3.0]),
    "Gumbel": ((R, A), stats.gumbel_r(R, A), R),
    "HalfCauchy": ((A,), stats.halfcauchy(scale=A), A),
    "HalfNormal": ((A,), stats.halfnorm(scale=A), A),
    "InverseGamma": (([2.5, 3.0, 4.0], B), stats.invgamma([2.5, 3.0, 4.0], scale=B), A),
    "Kumaraswamy": ((A, B), KUMARASWAMY(A, B), U),
    "Laplace": ((R, A), stats.laplace(R, A), R),
    "LogNormal": ((R, U), stats.lognorm(U, scale=np.exp(R)), A),
    "Normal": ((R, A), stats.norm(R, A), A),
    "Pareto": ((U, [2.5, 3.0, 4.0]), stats.pareto([2.5, 3.0, 4.0], scale=U), A),
    "StudentT": (([2.5, 3.0, 7.0], R, A), stats.t([2.5, 3.0, 7.0], R, A), R),
    "Uniform": ((R, [1.0, 3.0, 4.0]), stats.uniform(R, [2.0, 2.8, 2.0]), [0.5, 0.6, 2.5]),
    "VonMises": ((R, A), stats.vonmises(A, R), R),
    "Weibull": ((A, B), stats.weibull_min(B, scale=A), A),
}
DISCRETE_CASES = {
    "Bernoulli": ((U,), stats.bernoulli(U), [0.0, 1.0, 1.0]),
    "Binomial": ((7, U), stats.binom(7, U), [0.0, 3.0, 7.0]),
    "Geometric": ((U,), stats.geom(U, loc=-1), [0.0, 3.0, 1.0]),
    "NegativeBinomial": ((A, U), stats.nbinom(A, 1 - np.array(U)), [0.0, 3.0, 9.0]),
    "Poisson": ((A,), stats.poisson(A), [0.0, 3.0, 1.0]),
}
# Without distribution functions, as in PyTorch.
WITHOUT, WITHOUT_ICDF = ("Beta", "FisherSnedecor", "StudentT", "VonMises"), ("Chi2", "Gamma", "InverseGamma")
ALL_CASES = {**CONTINUOUS_CASES, **DISCRETE_CASES}


def made(name, grad=False):
    return getattr(D, name)(*(p if isinstance(p, int) else t(p, requires_grad=grad) for p in ALL_CASES[name][0]))


@pytest.mark.parametrize("name", ALL_CASES)
def test_parameters_by_name(name):
    """A distribution has its parameters by the names of its constructor, also after `expand`."""
    names = list(inspect.signature(getattr(D, name)).parameters)
    for d in (made(name), made(name).expand((2, 3))):
        for parameter, given in zip(names, ALL_CASES[name][0]):
            np.testing.assert_allclose(np.broadcast_to(getattr(d, parameter), d.batch_shape),
                                       np.broadcast_to(given, d.batch_shape), rtol=1e-12)


def close(got, want, rtol=1e-7, atol=1e-9):
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", ALL_CASES)
def test_density(name):
    d, (_, its, values) = made(name), ALL_CASES[name]
    density = its.logpmf if name in DISCRETE_CASES else its.logpdf
    close(d.log_prob(t(values)), density(values))
    many = np.tile(values, (4, 1))
    assert d.log_prob(t(many)).shape == (4, 3)
    wide = d.expand((2, 3))
    close(wide.log_prob(t(values)), np.tile(density(values), (2, 1)))
    assert wide.batch_shape == (2, 3) and type(wide) is type(d)


@pytest.mark.parametrize("name", ALL_CASES)
def test_moments(name):
    d, (_, its, _) = made(name), ALL_CASES[name]
    if name == "VonMises":
        from scipy.special import ive
        close(d.mean, R)
        close(d.variance, 1 - ive(1, A) / ive(0, A))
        return
    if name in ("Cauchy", "HalfCauchy"):
        assert (d.variance == float("inf")).all()
        return
    close(d.mean, its.mean(), rtol=1e-6)
    close(d.variance, its.var(), rtol=1e-6)
    close(d.stddev, its.std(), rtol=1e-6)


@pytest.mark.parametrize("name", ALL_CASES)
def test_entropy(name):
    d, (_, its, _) = made(name), ALL_CASES[name]
    if type(d).entropy in (D.Distribution.entropy, D.TransformedDistribution.entropy):
        with pytest.raises(NotImplementedError, match="entropy"):
            d.entropy()
        return
    if name == "Poisson":               # neither here nor in PyTorch: its carrier measure is not known
        with pytest.raises(NotImplementedError, match="carrier"):
            d.entropy()
        return
    close(d.entropy(), its.entropy(), rtol=1e-5)
    close(d.perplexity(), np.exp(its.entropy()), rtol=1e-5)


@pytest.mark.parametrize("name", CONTINUOUS_CASES)
def test_distribution_functions(name):
    d, (_, its, values) = made(name), CONTINUOUS_CASES[name]
    for method, other, at in ((d.cdf, its.cdf, values), (d.icdf, its.ppf, Q)):
        if name in WITHOUT or (name in WITHOUT_ICDF and method == d.icdf):
            with pytest.raises(NotImplementedError, match="cdf"):
                method(t(at))
        else:
            close(method(t(at)), other(at), rtol=1e-6)


@pytest.mark.parametrize("name", CONTINUOUS_CASES)
@pytest.mark.parametrize("dtype", [pt.float32, pt.float64])
def test_draws(name, dtype):
    """Kolmogorov and Smirnov's test of each distribution of the batch."""
    pt.manual_seed(8)
    params, its, _ = CONTINUOUS_CASES[name]
    d = getattr(D, name)(*(pt.tensor(p, dtype=dtype) for p in params))
    x = d.sample((3000,))
    assert x.dtype is dtype and x.shape == (3000, 3) and not x.requires_grad
    x = x.double().numpy()
    if name == "VonMises":
        assert (np.abs(x) <= np.pi).all()
        x = np.asarray(R) + (x - np.asarray(R) + np.pi) % (2 * np.pi) - np.pi
    for k, place in enumerate(its.cdf(x).T):
        assert stats.kstest(place, "uniform").pvalue > 1e-3, k


@pytest.mark.parametrize("name", DISCRETE_CASES)
def test_counts(name):
    """A chi-square test of each distribution of the batch."""
    pt.manual_seed(5)
    d, (_, its, _) = made(name), DISCRETE_CASES[name]
    x = d.sample((5000,)).numpy().astype(int)
    top = 12
    for k in range(3):
        expected = its.pmf(np.arange(top)[:, None])[:, k] * len(x)
        seen = np.bincount(np.minimum(x[:, k], top), minlength=top + 1)[:top]
        enough = expected > 5
        expected, seen = (np.append(v[enough], len(x) - v[enough].sum()) for v in (expected, seen))
        if expected[-1] < 1:
            expected, seen = expected[:-1], seen[:-1]
            expected *= seen.sum() / expected.sum()
        assert stats.chisquare(seen, expected).pvalue > 1e-3, k


@pytest.mark.parametrize("name", [n for n in CONTINUOUS_CASES if getattr(made(n), "has_rsample", False)])
def test_gradients_of_draws(name):
    """dx/dp = -(dF/dp) / density, with the distribution function of SciPy and differences of it."""
    pt.manual_seed(3)
    d, params = made(name, True), CONTINUOUS_CASES[name][0]
    x = d.rsample()
    scipys = {"Exponential": lambda r: stats.expon(scale=1 / r), "Gamma": lambda a, b: stats.gamma(a, scale=1 / b),
              "InverseGamma": lambda a, b: stats.invgamma(a, scale=b), "LogNormal": lambda m, s: stats.lognorm(
                  s, scale=np.exp(m)), "Pareto": lambda s, a: stats.pareto(a, scale=s), "Uniform": lambda lo, hi:
              stats.uniform(lo, hi - lo), "Weibull": lambda s, k: stats.weibull_min(k, scale=s), "Beta": stats.beta,
              "Cauchy": stats.cauchy, "Chi2": stats.chi2, "ContinuousBernoulli": CONTINUOUS, "FisherSnedecor": None,
              "GeneralizedPareto": lambda m, s, c: stats.genpareto(c, m, s), "Gumbel": stats.gumbel_r,
              "HalfCauchy": lambda s: stats.halfcauchy(scale=s), "HalfNormal": lambda s: stats.halfnorm(scale=s),
              "Kumaraswamy": KUMARASWAMY, "Laplace": stats.laplace, "Normal": stats.norm, "StudentT": None}
    if scipys[name] is None:            # of two draws each: no function of one
        x.sum().backward()
        assert x.grad_fn is not None
        return
    # the parameters in the order of the signature
    its = [np.array(p, dtype=float) for p in params]
    tensors = [t(p, requires_grad=True) for p in params]
    pt.manual_seed(3)
    x = getattr(D, name)(*tensors).rsample()
    at = x.detach().numpy()
    x.sum().backward()
    density = scipys[name](*its).pdf(at)
    for k, leaf in enumerate(tensors):
        step = 1e-6 * np.maximum(1, np.abs(its[k]))
        up, down = ([p + (s if i == k else 0) for i, p in enumerate(its)] for s in (step, -step))
        if name == "ContinuousBernoulli":
            step, up, down = 1e-4, [its[0] + 1e-4], [its[0] - 1e-4]
        slope = (scipys[name](*up).cdf(at) - scipys[name](*down).cdf(at)) / (2 * step)
        near = np.abs(its[-1]) > 0 if name == "GeneralizedPareto" else slice(None)      # exponential at 0
        np.testing.assert_allclose(leaf.grad.numpy()[near], (-slope / density)[near], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ALL_CASES)
def test_copies(name):
    d, values = made(name), t(ALL_CASES[name][2])
    twins = copy.deepcopy(d), pickle.loads(pickle.dumps(d))
    for twin in twins:
        assert repr(twin) == repr(made(name))
        close(twin.log_prob(values), d.log_prob(values).numpy())


@pytest.mark.parametrize("name", ALL_CASES)
def test_errors(name):
    """The value and the constraint are named."""
    params = ALL_CASES[name][0]
    bad = [t([float("nan")] * 3) for _ in params]
    cls = getattr(D, name)
    with pytest.raises(ValueError, match=r"(?s)constraint .*nan|invalid values.*nan|nan"):
        cls(*bad)
    d = made(name)
    with pytest.raises(ValueError, match=r"(?s)within the support .*nan"):
        d.log_prob(t([float("nan")] * 3))
    with pytest.raises(ValueError, match="not broadcastable"):
        d.log_prob(t([0.5] * 4))
    with pytest.raises(ValueError, match="must be a Tensor"):
        d._validate_sample(0.5)


@pytest.mark.parametrize("name", [name for name in CONTINUOUS_CASES if name not in WITHOUT])
def test_distribution_functions_are_of_the_support(name):
    with pytest.raises(ValueError, match=r"(?s)within the support .*nan"):
        made(name).cdf(t([float("nan")] * 3))


def test_modes_at_the_edge():
    """F's density has its peak at (df1 - 2) / df1 * df2 / (df2 + 2); up to two degrees there is none, as in PyTorch."""
    mode = D.FisherSnedecor(t([1.0, 2.0, 3.0]), t([4.0] * 3)).mode
    assert mode[:2].isnan().all()
    close(mode[2:], [1 / 3 * 4 / 6])


def test_validation_can_be_turned_off():
    D.Normal(0.0, -1.0, validate_args=False).log_prob(pt.zeros(1))
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
        with pytest.raises(ValueError, match="scale"):
            D.Normal(0.0, -1.0, validate_args=True)
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="True or False"):
        D.Distribution.set_default_validate_args(3)


def test_divergence_of_a_pareto_of_barely_finite_variance():
    """The divergence grows as 1 / (alpha - 2); it stood still between 2 and 2 + 1e-6."""
    q = D.Normal(pt.zeros((), dtype=pt.float64), 1.0)
    for gap in (1e-4, 1e-7, 1e-10):
        p = D.Pareto(pt.ones((), dtype=pt.float64), 2 + gap)
        assert abs(float(D.kl_divergence(p, q)) * gap - 1) < 1e-3
    alpha = pt.tensor(1.5, requires_grad=True)
    D.kl_divergence(D.Pareto(pt.ones(()), alpha), D.Normal(0.0, 1.0)).backward()
    assert alpha.grad.item() == 0


def test_gradients_of_a_variance_that_is_not_finite():
    """They are 0, also of 2 degrees of freedom, where a quotient by df - 2 would give NaN."""
    df = t([0.5, 1.0, 1.5, 2.0, 3.0, 10.0], requires_grad=True)
    scale = t([1.0, 1.0, 1.0, 1.0, 2.0, 3.0], requires_grad=True)
    variance = D.StudentT(df, 0.0, scale).variance
    np.testing.assert_allclose(variance.detach(), stats.t(df.detach().numpy(), 0, scale.detach().numpy()).var())
    by_df, by_scale = pt.autograd.grad(variance.sum(), (df, scale))
    np.testing.assert_allclose(by_df, [0, 0, 0, 0, -8, -2 * 9 / 64])            # -2 scale**2 / (df - 2)**2
    np.testing.assert_allclose(by_scale, [0, 0, 0, 0, 12, 2 * 3 * 10 / 8])


FAR = {
    "Normal": (lambda: D.Normal(t(0.5), t(2.0)), stats.norm(0.5, 2.0)),
    "Laplace": (lambda: D.Laplace(t(0.5), t(2.0)), stats.laplace(0.5, 2.0)),
    # SciPy's halfnorm goes by 1/2 plus q / 2
    "HalfNormal": (lambda: D.HalfNormal(t(2.0)), SimpleNamespace(ppf=lambda q: 8 ** 0.5 * special.erfinv(q))),
    "HalfCauchy": (lambda: D.HalfCauchy(t(2.0)), stats.halfcauchy(scale=2.0)),
    "Exponential": (lambda: D.Exponential(t(0.5)), stats.expon(scale=2.0)),
    "Gumbel": (lambda: D.Gumbel(t(0.5), t(2.0)), stats.gumbel_r(0.5, 2.0))}


@pytest.mark.parametrize("name", FAR)
def test_small_probabilities(name):
    """Digits of probabilities near 0, which differences of numbers near 1 lose."""
    made, want = FAR[name]
    q = np.array([1e-200, 1e-30, 1e-12, 0.25, 0.75])
    x = want.ppf(q)
    close(made().icdf(t(q)), x, rtol=1e-12, atol=0)
    close(made().cdf(t(x)), q, rtol=1e-11, atol=0)


@pytest.mark.parametrize("made, names", [
    (lambda a: D.InverseGamma(a, t(2.0)), ("mean", "variance", "stddev")),
    (lambda a: D.Pareto(t(2.0), a), ("mean", "variance", "stddev")),
    (lambda a: D.StudentT(a), ("variance", "stddev"))])
def test_infinite_moments_have_no_gradient(made, names):
    for name in names:
        a = t([0.5, 1.0, 1.5, 2.0, 3.0], requires_grad=True)
        moment = getattr(made(a), name)
        slope, = pt.autograd.grad(moment[moment.isfinite()].sum(), a)
        assert bool(slope.isfinite().all())
        np.testing.assert_array_equal((slope != 0).numpy(), moment.isfinite().numpy())


def uniform():
    return t([0.0, -1.0, 0.5, 0.0], requires_grad=True), t([1.0, 1.0, 2.0, 3.0], requires_grad=True)


@pytest.mark.parametrize("q", [D.Beta(t(2.0), t(3.0)), D.Gamma(t(2.0), t(3.0)), D.Pareto(t(0.5), t(3.0)),
                               D.Exponential(t(2.0)), D.ContinuousBernoulli(t(0.3)), D.Uniform(t(0.0), t(2.0))])
def test_infinite_divergences_have_no_gradient(q):
    low, high = uniform()
    kl = D.kl_divergence(D.Uniform(low, high), q)
    for slope in pt.autograd.grad(kl[kl.isfinite()].sum(), (low, high)):
        assert bool(slope.isfinite().all()) and bool((slope[kl.isinf()] == 0).all())


def test_divergences_of_certain_events():
    p, q = t([1.0, 0.0, 1.0, 0.3, 0.0]), t([0.5, 0.25, 1.0, 0.0, 0.0])
    want = [5 * np.log(2), -5 * np.log(0.75), 0, np.inf, 0]
    close(D.kl_divergence(D.Binomial(5, p), D.Binomial(5, q)), want, rtol=1e-6)


def test_a_shared_scale_counts_for_each_element():
    x = t(np.ones((4, 3)))
    for scale in (2.0, t(2.0), t([2.0]), t([2.0, 2.0, 2.0])):
        transform = D.AffineTransform(1.0, scale, event_dim=1)
        close(transform.log_abs_det_jacobian(x, transform(x)), np.full(4, 3 * np.log(2)))
        d = D.TransformedDistribution(D.Normal(t(np.zeros(3)), 1.0), [D.AffineTransform(0.0, scale, event_dim=1)])
        close(d.log_prob(x), np.full(4, 3 * stats.norm(0, 2).logpdf(1)))


def test_numbers_are_not_cut_to_integers():
    assert D.Laplace(pt.tensor([0, 1]), 1.5).scale.tolist() == [1.5, 1.5]
    assert D.utils.broadcast_all(pt.tensor([True]), 2)[1].tolist() == [2]
    assert D.utils.broadcast_all(pt.tensor([1, 2]), 2.0)[1].dtype is pt.int64
