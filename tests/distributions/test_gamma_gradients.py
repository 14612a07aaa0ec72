"""Derivatives of gamma, beta and Dirichlet draws by their concentrations, by mpmath's distribution functions."""
import numpy as np
import pytest
from scipy import stats

import ptcore as pt
from ptcore import distributions as D
from ptcore.distributions._gamma import DirichletDraw, StandardGamma, dirichlet_grad, standard_gamma_grad

mp = pytest.importorskip("mpmath")


def t(*x):
    return pt.tensor(x, dtype=pt.float64)


def slope(distribution, density, a, x):
    """-(dF/da) / density."""
    with mp.workdps(40):
        a, x = mp.mpf(a), mp.mpf(x)
        step = a * mp.mpf("1e-12")
        return float(-(distribution(a + step, x) - distribution(a - step, x)) / (2 * step) / density(a, x))


@pytest.mark.parametrize("a", [0.01, 0.1, 0.7, 1, 1.5, 8, 100, 1e5])
def test_gamma(a):
    xs = [x for x in stats.gamma.ppf([1e-4, 0.1, 0.5, 0.9, 0.9999], a) if x > 1e-200]
    got = standard_gamma_grad(pt.full((len(xs),), float(a), dtype=pt.float64), t(*xs)).numpy()
    want = [slope(lambda a, x: mp.gammainc(a, 0, x, regularized=True),
                  lambda a, x: mp.exp(-x + (a - 1) * mp.log(x) - mp.loggamma(a)), a, x) for x in xs]
    np.testing.assert_allclose(got, want, rtol=3e-6)


@pytest.mark.parametrize("a", [0.05, 1, 2.5, 200])
@pytest.mark.parametrize("b", [0.05, 1, 30, 1000])
def test_beta(a, b):
    xs = [x for x in stats.beta.ppf([1e-3, 0.4, 0.6, 0.999], a, b) if 1e-200 < x < 1 - 1e-9]
    full = pt.full((len(xs),), float(a), dtype=pt.float64)
    got = dirichlet_grad(t(*xs), full, full + b).numpy() * (1 - np.array(xs))
    want = [slope(lambda a, x: mp.betainc(a, b, 0, x, regularized=True),
                  lambda a, x: x ** (a - 1) * (1 - x) ** (b - 1) / mp.beta(a, b), a, x) for x in xs]
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_gradients_of_means():
    """Averages of gradients of draws are gradients of averages."""
    pt.manual_seed(0)
    a = t(0.3, 1.0, 4.0).requires_grad_()
    D.Gamma(a, 2.0).rsample((20000,)).mean(0).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), 0.5, rtol=0.05)
    a = t(0.3, 1.0, 4.0).requires_grad_()
    D.Dirichlet(a).rsample((20000,))[:, 0].mean().backward()
    total = 5.3
    want = [(total - 0.3) / total ** 2, -0.3 / total ** 2, -0.3 / total ** 2]
    np.testing.assert_allclose(a.grad.numpy(), want, rtol=0.1, atol=2e-3)


def test_draws_of_all_sizes():
    pt.manual_seed(0)
    for a in (1e-3, 0.05, 1.0, 1e4, 1e8):
        x = StandardGamma.apply(pt.full((4000,), a, dtype=pt.float64)).numpy()
        inside = x > 1e-290                     # below stands one mass
        assert inside.any() and (x > 0).all() and np.isfinite(x).all()
        assert stats.kstest(stats.gamma.cdf(x[inside], a), stats.uniform(
            stats.gamma.cdf(1e-290, a), 1 - stats.gamma.cdf(1e-290, a)).cdf).pvalue > 1e-3
    x = DirichletDraw.apply(pt.full((1000, 3), 1e-3, dtype=pt.float64))
    assert D.constraints.simplex.check(x).all()
    assert StandardGamma.apply(pt.zeros(0)).shape == (0,)
    empty = pt.zeros(0, requires_grad=True)
    StandardGamma.apply(empty).sum().backward()
    assert empty.grad.shape == (0,)
    for dtype in (pt.float16, pt.bfloat16, pt.float32):
        assert StandardGamma.apply(pt.ones(3, dtype=dtype)).dtype is dtype


def test_shapes_without_values():
    a = pt.ones(2, 3, device="meta", requires_grad=True)
    for d in (D.Gamma(a, 1.0, validate_args=False), D.Dirichlet(a, validate_args=False)):
        x = d.rsample((4,))
        assert x.shape == (4, 2, 3) and x.device.type == "meta"
        assert pt.autograd.grad(x.sum(), a)[0].shape == (2, 3)


def test_transformations():
    a = t(0.7, 2.0)

    def drawn(a):
        pt.manual_seed(0)
        return D.Gamma(a, 1.0, validate_args=False).rsample().sum()
    leaf = a.clone().requires_grad_()
    drawn(leaf).backward()
    np.testing.assert_array_equal(pt.func.grad(drawn)(a).numpy(), leaf.grad.numpy())


def test_what_is_no_concentration():
    """Unchecked: NaN where there is no distribution, and always an end."""
    a = t(float("nan"), -2.0, 1.0, float("inf")).requires_grad_()
    x = D.Gamma(a, 1.0, validate_args=False).rsample()
    x.sum().backward()
    assert x.isnan().tolist() == [True, True, False, False] and x[3] == float("inf")
    assert a.grad.isnan()[:2].all() and a.grad[2].isfinite()
    assert D.VonMises(t(0.0), t(float("nan")), validate_args=False).sample().isnan()


def test_second_derivatives_raise():
    a = t(2.0).requires_grad_()
    g, = pt.autograd.grad(D.Gamma(a, 1.0).rsample().sum(), a, create_graph=True)
    with pytest.raises(RuntimeError):
        g.sum().backward()
