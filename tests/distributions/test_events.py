"""Distributions of vectors and matrices, mixtures and relaxations: against SciPy, sums over all values, integrals."""
import copy
import itertools
import pickle

import numpy as np
import pytest
from scipy import integrate, special, stats

import ptcore as pt
from ptcore import distributions as D
from ptcore.distributions import constraints

COV = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 0.7]])
MEAN = np.array([0.5, -1.0, 2.0])
POINTS = np.random.default_rng(0).normal(size=(4, 3))
UNIT = [0.2, 0.5, 0.3]


def t(x, **options):
    return pt.tensor(x, dtype=pt.float64, **options)


def close(got, want, rtol=1e-7, atol=1e-9):
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=rtol, atol=atol)


NORMALS = {
    "covariance_matrix": lambda: D.MultivariateNormal(t(MEAN), covariance_matrix=t(COV)),
    "precision_matrix": lambda: D.MultivariateNormal(t(MEAN), precision_matrix=t(np.linalg.inv(COV))),
    "scale_tril": lambda: D.MultivariateNormal(t(MEAN), scale_tril=t(np.linalg.cholesky(COV))),
    "low_rank": lambda: D.LowRankMultivariateNormal(t(MEAN), t([[1.0], [0.5], [-0.3]]), t([0.5, 1.0, 2.0])),
}


@pytest.mark.parametrize("name", NORMALS)
def test_multivariate_normal(name):
    d = NORMALS[name]()
    cov = COV if name != "low_rank" else np.outer([1, 0.5, -0.3], [1, 0.5, -0.3]) + np.diag([0.5, 1, 2])
    want = stats.multivariate_normal(MEAN, cov)
    close(d.log_prob(t(POINTS)), want.logpdf(POINTS))
    close(d.entropy(), want.entropy())
    close(d.covariance_matrix, cov)
    close(d.precision_matrix, np.linalg.inv(cov))
    close(d.scale_tril, np.linalg.cholesky(cov))
    close(d.variance, np.diag(cov))
    close(d.mean, MEAN)
    wide = d.expand((4, 2))
    assert wide.batch_shape == (4, 2) and wide.covariance_matrix.shape == (4, 2, 3, 3)
    close(wide.log_prob(t(POINTS)[:, None]), np.tile(want.logpdf(POINTS)[:, None], 2))
    pt.manual_seed(0)
    x = d.rsample((4000,)).numpy()
    white = np.linalg.solve(np.linalg.cholesky(cov), (x - MEAN).T)
    for row in white:
        assert stats.kstest(row, "norm").pvalue > 1e-3
    assert np.abs(np.corrcoef(white) - np.eye(3)).max() < 0.06
    for twin in (copy.deepcopy(d), pickle.loads(pickle.dumps(d))):
        close(twin.log_prob(t(POINTS)), want.logpdf(POINTS))


def test_batches_of_normals():
    factor = t(np.linalg.cholesky(np.stack([COV, 2 * COV]))).requires_grad_()
    d = D.MultivariateNormal(t(POINTS[:, None]), scale_tril=factor)
    assert d.batch_shape == (4, 2)
    got = d.log_prob(t(MEAN))
    want = [[stats.multivariate_normal(p, c).logpdf(MEAN) for c in (COV, 2 * COV)] for p in POINTS]
    close(got, want)
    assert pt.autograd.gradcheck(lambda f: D.MultivariateNormal(t(MEAN), scale_tril=f.tril(), validate_args=False)
                                 .log_prob(t(POINTS[:, None])), factor)


def test_normals_say_what_is_wrong():
    with pytest.raises(ValueError, match=r"(?s)covariance_matrix .*PositiveDefinite\(\).*-1\."):
        D.MultivariateNormal(pt.zeros(2), covariance_matrix=-pt.eye(2))
    with pytest.raises(ValueError, match="Exactly one of"):
        D.MultivariateNormal(pt.zeros(2))
    with pytest.raises(ValueError, match="at least one-dimensional"):
        D.MultivariateNormal(pt.tensor(0.0), pt.eye(2))
    with pytest.raises(ValueError, match="at least two-dimensional"):
        D.MultivariateNormal(pt.zeros(2), pt.zeros(2))
    with pytest.raises(ValueError, match="with shape 2 x m"):
        D.LowRankMultivariateNormal(pt.zeros(2), pt.zeros(3, 1), pt.ones(2))


def test_dirichlet():
    a = [0.6, 1.5, 3.0]
    d, want = D.Dirichlet(t(a)), stats.dirichlet(a)
    close(d.log_prob(t(UNIT)), want.logpdf(UNIT))
    close(d.entropy(), want.entropy())
    close(d.mean, want.mean())
    close(d.variance, want.var())
    close(D.Dirichlet(t([2.0, 3.0])).mode, [1 / 3, 2 / 3])
    assert sorted(D.Dirichlet(t([0.2, 0.3])).mode.tolist()) == [0.0, 1.0]
    pt.manual_seed(1)
    x = d.sample((4000,)).numpy()
    for k in range(3):
        assert stats.kstest(x[:, k], stats.beta(a[k], sum(a) - a[k]).cdf).pvalue > 1e-3


def test_categorical():
    d = D.Categorical(logits=t(np.log(UNIT) + 5))
    close(d.probs, UNIT)
    close(d.log_prob(pt.tensor([2, 0])), np.log([0.3, 0.2]))
    close(d.entropy(), stats.entropy(UNIT))
    close(D.Categorical(t([0.0, 1.0])).entropy(), 0.0)
    pt.manual_seed(0)
    seen = np.bincount(d.sample((5000,)).numpy(), minlength=3)
    assert stats.chisquare(seen, np.array(UNIT) * 5000).pvalue > 1e-3
    assert d.sample().shape == () and d.sample((0,)).shape == (0,)
    assert d.enumerate_support().tolist() == [0, 1, 2]
    one = D.OneHotCategorical(t(UNIT))
    assert constraints.one_hot.check(one.sample((7,))).all()
    close(one.log_prob(one.enumerate_support()), np.log(UNIT))
    probs = t(UNIT, requires_grad=True)
    (D.OneHotCategoricalStraightThrough(probs).rsample() * t([1.0, 2.0, 3.0])).sum().backward()
    close(probs.grad, np.array([1.0, 2.0, 3.0]) - np.dot(UNIT, [1, 2, 3]))


def test_multinomial():
    d, want = D.Multinomial(5, t(UNIT)), stats.multinomial(5, UNIT)
    for x in ([5, 0, 0], [1, 2, 2]):
        close(d.log_prob(t(x)), want.logpmf(x))
    close(d.entropy(), want.entropy())
    close(d.variance, np.diag(want.cov()))
    pt.manual_seed(0)
    x = d.sample((3000,)).numpy()
    assert (x.sum(-1) == 5).all()
    assert stats.chisquare(np.bincount(x[:, 1].astype(int), minlength=6), stats.binom(5, 0.5).pmf(range(6)) * 3000
                           ).pvalue > 1e-3
    close(D.Multinomial(2, t([0.0, 1.0])).log_prob(t([0.0, 2.0])), 0.0, atol=1e-6)


@pytest.mark.parametrize("form", ["covariance_matrix", "precision_matrix", "scale_tril"])
def test_wishart(form):
    matrix = {"covariance_matrix": COV, "precision_matrix": np.linalg.inv(COV),
              "scale_tril": np.linalg.cholesky(COV)}[form]
    d, want = D.Wishart(t(5.5), **{form: t(matrix)}), stats.wishart(5.5, COV)
    points = np.stack([np.eye(3), COV * 2])
    close(d.log_prob(t(points)), want.logpdf(np.moveaxis(points, 0, -1)))
    close(d.entropy(), want.entropy())
    close(d.mean, want.mean())
    close(d.variance, want.var())
    close(d.mode, want.mode())
    pt.manual_seed(0)
    x = d.rsample((3000,)).numpy()
    assert stats.kstest(x[:, 0, 0] / COV[0, 0], stats.chi2(5.5).cdf).pvalue > 1e-3
    np.testing.assert_allclose(x.mean(0), want.mean(), atol=0.25)
    assert d.expand((2,)).sample().shape == (2, 3, 3)
    with pytest.raises(ValueError, match="greater than ndim - 1 = 2"):
        D.Wishart(t(1.5), **{form: t(matrix)})


def test_lkj():
    eta = 1.7
    d = D.LKJCholesky(2, t(eta))
    # the correlation of two variables is 2 b - 1, b of Beta(eta, eta); in row (r, sqrt(1 - r^2)) the density by r
    r = np.array([-0.5, 0.3])
    values = np.array([[[1, 0], [x, np.sqrt(1 - x * x)]] for x in r])
    close(d.log_prob(t(values)), stats.beta(eta, eta).logpdf((r + 1) / 2) - np.log(2))
    pt.manual_seed(0)
    for n in (2, 4):
        x = D.LKJCholesky(n, t(eta)).sample((3000,))
        assert constraints.corr_cholesky.check(x).all()
        c = (x @ x.mT).numpy()
        b = eta + (n - 2) / 2
        for i, j in itertools.combinations(range(n), 2):
            assert stats.kstest((c[:, i, j] + 1) / 2, stats.beta(b, b).cdf).pvalue > 1e-3
    with pytest.raises(ValueError, match="Found dim=1"):
        D.LKJCholesky(1)


def test_mixture():
    weights, loc, scale = [0.3, 0.7], [-1.0, 2.0], [0.5, 1.5]
    d = D.MixtureSameFamily(D.Categorical(t(weights)), D.Normal(t(loc), t(scale)))
    x = np.linspace(-3, 5, 7)
    parts = [stats.norm(m, s) for m, s in zip(loc, scale)]
    close(d.log_prob(t(x)), np.log(sum(w * p.pdf(x) for w, p in zip(weights, parts))))
    close(d.cdf(t(x)), sum(w * p.cdf(x) for w, p in zip(weights, parts)))
    mean = np.dot(weights, loc)
    close(d.mean, mean)
    close(d.variance, np.dot(weights, np.square(scale) + np.square(loc)) - mean ** 2)
    pt.manual_seed(0)
    drawn = d.sample((4000,)).numpy()
    assert stats.kstest(drawn, lambda x: sum(w * p.cdf(x) for w, p in zip(weights, parts))).pvalue > 1e-3
    of_vectors = D.MixtureSameFamily(D.Categorical(pt.ones(3, 2)), D.Independent(D.Normal(pt.zeros(3, 2, 4), 1.0), 1))
    assert of_vectors.sample((5,)).shape == (5, 3, 4) and of_vectors.log_prob(pt.zeros(3, 4)).shape == (3,)
    assert of_vectors.mean.shape == of_vectors.variance.shape == (3, 4)
    assert of_vectors.expand((2, 3)).sample().shape == (2, 3, 4)
    with pytest.raises(ValueError, match=r"does not equal `component_distribution.batch_shape\[-1\]`"):
        D.MixtureSameFamily(D.Categorical(pt.ones(3)), D.Normal(t(loc), 1.0))
    with pytest.raises(ValueError, match=r"(?s)MixtureSameFamilyConstraint\(Real\(\)\).*nan"):
        d.log_prob(t(float("nan")))


def test_relaxed():
    """Densities integrate to 1, and draws follow them."""
    d = D.RelaxedBernoulli(t(0.7), probs=t(0.3))
    total, _ = integrate.quad(lambda x: float(d.log_prob(t(x)).exp()), 0, 1)
    assert abs(total - 1) < 1e-6
    pt.manual_seed(0)
    x = np.sort(d.sample((2000,)).numpy())
    logit = np.log(x / (1 - x)) * 0.7 - np.log(0.3 / 0.7)
    assert stats.kstest(logit, "logistic").pvalue > 1e-3
    d = D.RelaxedOneHotCategorical(t(0.7), probs=t([0.3, 0.7]))
    # of two numbers the first has the density of the logarithms over x (1 - x)
    total, _ = integrate.quad(lambda x: float(d.log_prob(t([x, 1 - x])).exp()), 0, 1)
    assert abs(total - 1) < 1e-6
    probs = t([0.3, 0.7], requires_grad=True)
    D.RelaxedOneHotCategorical(t(0.7), probs=probs).rsample((3,))[:, 0].sum().backward()
    assert probs.grad.abs().min() > 0


def test_independent():
    d = D.Independent(D.Normal(t(POINTS), 1.0), 1)
    assert (d.batch_shape, d.event_shape) == ((4,), (3,))
    close(d.log_prob(t(POINTS)), stats.norm.logpdf(np.zeros((4, 3))).sum(-1))
    close(d.entropy(), np.full(4, 3 * stats.norm.entropy()))
    assert d.has_rsample and d.expand((2, 4)).rsample((5,)).shape == (5, 2, 4, 3)
    assert repr(d.support) == "IndependentConstraint(Real(), 1)"
    with pytest.raises(ValueError, match="actual 3 vs 2"):
        D.Independent(d.base_dist, 3)


# -- divergences ----------------------------------------------------------------------------------------
KINDS = {
    "Bernoulli": D.Bernoulli(t(0.3)), "Beta": D.Beta(t(2.0), t(1.5)), "Binomial": D.Binomial(4, t(0.3)),
    "Cauchy": D.Cauchy(t(0.5), t(1.2)), "ContinuousBernoulli": D.ContinuousBernoulli(t(0.3)),
    "Exponential": D.Exponential(t(1.3)), "Gamma": D.Gamma(t(2.5), t(1.4)), "Geometric": D.Geometric(t(0.3)),
    "Gumbel": D.Gumbel(t(0.4), t(1.7)), "HalfNormal": D.HalfNormal(t(1.2)), "Laplace": D.Laplace(t(0.3), t(0.8)),
    "Normal": D.Normal(t(0.4), t(0.9)), "Pareto": D.Pareto(t(0.5), t(3.5)), "Poisson": D.Poisson(t(1.7)),
    "Uniform": D.Uniform(t(0.1), t(0.9))}
SECOND = {
    "Bernoulli": D.Bernoulli(t(0.6)), "Beta": D.Beta(t(0.9), t(1.2)), "Binomial": D.Binomial(4, t(0.5)),
    "Cauchy": D.Cauchy(t(-0.5), t(0.7)), "ContinuousBernoulli": D.ContinuousBernoulli(t(0.6)),
    "Exponential": D.Exponential(t(0.6)), "Gamma": D.Gamma(t(1.2), t(0.7)), "Geometric": D.Geometric(t(0.5)),
    "Gumbel": D.Gumbel(t(0.1), t(2.0)), "HalfNormal": D.HalfNormal(t(2.0)), "Laplace": D.Laplace(t(-0.3), t(1.8)),
    "Normal": D.Normal(t(0.1), t(1.6)), "Pareto": D.Pareto(t(0.05), t(1.5)), "Poisson": D.Poisson(t(2.7)),
    "Uniform": D.Uniform(t(-0.5), t(1.5))}
ENDS = {"Beta": (0, 1), "ContinuousBernoulli": (0, 1), "Exponential": (0, 50), "Gamma": (0, 50), "HalfNormal": (0, 15),
        "Pareto": (0.5, np.inf), "Uniform": (0.1, 0.9), "Gumbel": (-10, 70), "Laplace": (-40, 40),
        "Normal": (-12, 12), "Cauchy": (-np.inf, np.inf)}
COUNTS = ("Bernoulli", "Binomial", "Geometric", "Poisson")
PAIRS = [(p.__name__, q.__name__) for p, q in D.kl._KL_REGISTRY if {p.__name__, q.__name__} <= set(KINDS)]


@pytest.mark.parametrize("p, q", PAIRS)
def test_divergence(p, q):
    """The integral, or the sum, of p log(p / q); infinite where q lacks what p has."""
    one, other = KINDS[p], SECOND[q]
    got = float(D.kl_divergence(one, other))

    def log(d, x):
        d = copy.copy(d)
        d._validate_args = False
        inside = d.support.check(t(x))
        return float(d.log_prob(t(x))) if inside else -np.inf

    if p in COUNTS:
        top = {"Bernoulli": 2, "Binomial": 5}.get(p, 150)
        pairs = [(log(one, float(k)), log(other, float(k))) for k in range(top)]
        want = sum(np.exp(a) * (a - b) for a, b in pairs if a > -700)
    else:
        low, high = ENDS[p]
        inside = {"Beta": (1e-3, 0.999), "Gamma": (1e-3, 9.0)}
        points = inside[p] if p in inside else one.icdf(t([1e-3, 0.999])).tolist()
        if any(np.isinf(log(other, x)) for x in points):
            want = np.inf
        else:
            want, _ = integrate.quad(lambda x: np.exp(log(one, x)) * (log(one, x) - log(other, x)), low, high,
                                     limit=300)
    assert got == want if np.isinf(want) else abs(got - want) < 1e-5 * max(1, abs(want))


def test_divergences_of_events():
    pt.manual_seed(0)
    low = NORMALS["low_rank"]()
    wide = D.LowRankMultivariateNormal(t(MEAN * 0), t([[0.3], [1.0], [2.0]]), t([1.0, 2.0, 1.0]))
    full = D.MultivariateNormal(t(MEAN * 0), t(2 * COV))
    for p, q in [(low, wide), (low, full), (full, low), (NORMALS["scale_tril"](), full)]:
        a, b = p.covariance_matrix.numpy(), q.covariance_matrix.numpy()
        away = (q.mean - p.mean).numpy()
        inverse = np.linalg.inv(b)
        want = 0.5 * (np.trace(inverse @ a) + away @ inverse @ away - 3 + np.log(np.linalg.det(b) / np.linalg.det(a)))
        close(D.kl_divergence(p, q), want)
        close(D.kl_divergence(p.expand((2,)), q.expand((3, 1))), np.full((3, 2), want))
    for p, q in [(D.Dirichlet(t([0.6, 1.5, 3.0])), D.Dirichlet(t([1.0, 1.0, 2.0]))),
                 (D.Wishart(t(5.0), t(COV)), D.Wishart(t(6.0), t(COV))),
                 (D.LogNormal(t(0.1), t(0.5)), D.LogNormal(t(0.4), t(0.8)))]:
        x = p.sample((100000,))
        ratio = (p.log_prob(x) - q.log_prob(x)).numpy()
        assert abs(float(D.kl_divergence(p, q)) - ratio.mean()) < 5 * ratio.std() / len(ratio) ** 0.5
    assert float(D.kl_divergence(D.Categorical(t([0.5, 0.5])), D.Categorical(t([1.0, 0.0])))) == np.inf
    close(D.kl_divergence(D.OneHotCategorical(t([0.0, 1.0])), D.OneHotCategorical(t([0.5, 0.5]))), np.log(2))
    close(D.kl_divergence(D.Independent(D.Normal(t(MEAN), 1.0), 1), D.Independent(D.Normal(t(MEAN), 2.0), 1)),
          3 * (np.log(2) - 0.5 + 0.125))


def test_dispatch():
    class Mine(D.Normal):
        pass

    class Yours(D.Normal):
        pass
    close(D.kl_divergence(Mine(t(0.0), t(1.0)), D.Normal(t(1.0), t(1.0))), 0.5)
    try:
        D.register_kl(Mine, D.Normal)(lambda p, q: 1)
        D.register_kl(D.Normal, Yours)(lambda p, q: 2)
        assert D.kl_divergence(Mine(0.0, 1.0), D.Normal(0.0, 1.0)) == 1
        assert D.kl_divergence(D.Normal(0.0, 1.0), Yours(0.0, 1.0)) == 2
        with pytest.warns(RuntimeWarning, match=r"Ambiguous kl_divergence\(Mine, Yours\)"):
            assert D.kl_divergence(Mine(0.0, 1.0), Yours(0.0, 1.0)) == 1
    finally:
        for pair in ((Mine, D.Normal), (D.Normal, Yours)):
            D.kl._KL_REGISTRY.pop(pair, None)
        D.kl._KL_MEMOIZE.clear()
    with pytest.raises(NotImplementedError, match="p type Cauchy and q type Normal"):
        D.kl_divergence(D.Cauchy(0.0, 1.0), D.Normal(0.0, 1.0))
    with pytest.raises(TypeError, match="type_q to be a Distribution subclass"):
        D.register_kl(D.Normal, int)


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_no_elements(shape):
    """Batches and events without elements are drawn, judged and summed."""
    d = D.Independent(D.Normal(pt.zeros(shape), 1.0), 1)
    assert d.sample((2,)).shape == (2, *shape) and d.entropy().shape == shape[:-1]
    assert d.log_prob(pt.zeros(shape)).tolist() == pt.zeros(shape[:-1]).tolist()
    assert constraints.real_vector.check(pt.zeros(shape)).tolist() == pt.ones(shape[:-1], dtype=pt.bool).tolist()
    assert D.Wishart(t(5.0), t(np.eye(2))).sample(shape).shape == (*shape, 2, 2)
    assert D.AffineTransform(0.0, 2.0, event_dim=1).log_abs_det_jacobian(pt.zeros(shape), None).shape == shape[:-1]


def wishart_kl(df, other, p=2):
    """The divergence of Wishart distributions of the same matrix, by their log normalisers."""
    return (special.multigammaln(other / 2, p) - special.multigammaln(df / 2, p)
            + (df - other) / 2 * sum(special.digamma((df - i) / 2) for i in range(p)))


def test_divergence_of_batches_of_matrices():
    df, other = np.array([4.0, 5.0, 7.5]), np.array([6.0, 5.0, 4.5])
    mine = t(df, requires_grad=True)
    kl = D.kl_divergence(D.Wishart(mine, t(COV[:2, :2])), D.Wishart(t(other), t(COV[:2, :2])))
    close(kl, [wishart_kl(*pair) for pair in zip(df, other, strict=True)])
    slope, = pt.autograd.grad(kl.sum(), mine)
    h = 1e-5
    close(slope, [(wishart_kl(a + h, b) - wishart_kl(a - h, b)) / (2 * h) for a, b in zip(df, other, strict=True)],
          rtol=1e-6)


def test_entropy_of_an_exponential_family_has_the_gradient_of_its_parameters():
    rate = t([0.5, 2.0], requires_grad=True)
    entropy = D.ExponentialFamily.entropy(D.Exponential(rate))
    close(entropy, 1 - np.log([0.5, 2.0]))
    close(pt.autograd.grad(entropy.sum(), rate)[0], [-2.0, -0.5])
    with pt.no_grad():
        close(D.ExponentialFamily.entropy(D.Exponential(rate)), 1 - np.log([0.5, 2.0]))
