"""Densities, their slopes, and tails of distributions at values far out, in float32 and float16. The oracle is SciPy in
float64."""
import numpy as np
import pytest
from scipy import stats

import ptcore
from ptcore import distributions as D

pytestmark = pytest.mark.core

FAR = np.array([-1e30, -1e20, -3e3, -2.0, -1.0, -0.25, 0.0, 1e-3, 1.0, 1.5, 7.0, 1e10, 1e25])
SMALL = np.array([1e-30, 1e-12, 1e-4, 0.1, 0.25, 0.3, 0.5, 0.7, 0.75, 0.9, 0.984375])


def number(x):
    return ptcore.tensor(x, dtype=ptcore.float32)


HEAVY = {"Cauchy": (D.Cauchy(number(0.5), number(2.0)), stats.cauchy(0.5, 2.0)),
         "HalfCauchy": (D.HalfCauchy(number(2.0)), stats.halfcauchy(scale=2.0)),
         "StudentT": (D.StudentT(number(3.0), number(0.5), number(2.0)), stats.t(3.0, 0.5, 2.0)),
         "InverseGamma": (D.InverseGamma(number(3.0), number(2.0)), stats.invgamma(3.0, scale=2.0)),
         "Weibull": (D.Weibull(number(1.0), number(2.0)), stats.weibull_min(2.0, scale=1.0))}


def as_numbers(x):
    return ptcore.tensor(x, dtype=ptcore.float32).double().numpy()


@pytest.mark.parametrize("name", ["Cauchy", "HalfCauchy", "StudentT", "InverseGamma"])
def test_densities(name):
    own, oracle = HEAVY[name]
    values = as_numbers(FAR if name in ("Cauchy", "StudentT") else FAR[FAR > 0])
    if name == "InverseGamma":
        values = values[values < 1e19]          # beyond, the derivative of 1 / x is 0 in float32
    x = number(values).requires_grad_()
    density = own.log_prob(x)
    np.testing.assert_allclose(density.detach().numpy(), oracle.logpdf(values), rtol=2e-6, atol=2e-6)
    slope = ptcore.autograd.grad(density.sum(), x)[0].numpy()
    if name == "InverseGamma":
        want = -4 / values + 2 / values / values
    else:
        z, nu = values - (0.0 if name == "HalfCauchy" else 0.5), 3.0 if name == "StudentT" else 1.0
        want = -(nu + 1) * z / (4 * nu + z * z)
    np.testing.assert_allclose(slope, want, rtol=1e-5, atol=0)


def test_densities_of_half_numbers():
    for make, oracle in ((lambda t: D.Cauchy(t(0.0), t(1.0)), stats.cauchy()),
                         (lambda t: D.StudentT(t(3.0)), stats.t(3.0))):
        own = make(lambda x: ptcore.tensor(x, dtype=ptcore.float16))
        got = own.log_prob(ptcore.tensor([300.0, -6e4], dtype=ptcore.float16))
        np.testing.assert_allclose(got.float().numpy(), oracle.logpdf([300.0, -59_968.0]), rtol=3e-3)


@pytest.mark.parametrize("name", ["Cauchy", "Weibull"])
def test_tails(name):
    own, oracle = HEAVY[name]
    values = as_numbers(FAR if name == "Cauchy" else SMALL[1:])
    np.testing.assert_allclose(own.cdf(number(values)).numpy(), oracle.cdf(values), rtol=2e-6)
    shares = as_numbers(SMALL)
    np.testing.assert_allclose(own.icdf(number(shares)).numpy(), oracle.ppf(shares), rtol=2e-6, atol=1e-7)


def test_ends_of_cauchy():
    own = D.Cauchy(number(1.0), number(2.0))
    assert own.icdf(ptcore.tensor([0.0, 0.5, 1.0])).tolist() == [-np.inf, 1.0, np.inf]
    assert own.cdf(ptcore.tensor([-np.inf, 1.0, np.inf])).tolist() == [0.0, 0.5, 1.0]
    q = ptcore.tensor([1e-3, 0.25, 0.5, 0.75, 0.999], requires_grad=True)
    got = ptcore.autograd.grad(own.icdf(q).sum(), q)[0].numpy()
    exact = q.detach().double().numpy()
    np.testing.assert_allclose(got, 2 * np.pi / np.sin(np.pi * exact)**2, rtol=2e-5)


def test_reversed_order():
    """Where the transforms fall, the share is that of the other side."""
    own = D.TransformedDistribution(D.Exponential(number(1.0)), [D.AffineTransform(number(0.0), number(-1.0))])
    np.testing.assert_allclose(own.cdf(number([-3.0, -0.5])).numpy(), np.exp([-3.0, -0.5]), rtol=1e-6)


def test_small_values_of_kumaraswamy():
    own = D.Kumaraswamy(number(3.0), number(2.0))
    values = as_numbers(np.array([1e-12, 1e-3, 0.5, 0.9375]))
    x = number(values).requires_grad_()
    density = own.log_prob(x)
    np.testing.assert_allclose(density.detach().numpy(), np.log(6) + 2 * np.log(values) + np.log1p(-values**3),
                               rtol=1e-6)
    np.testing.assert_allclose(ptcore.autograd.grad(density.sum(), x)[0].numpy(),
                               2 / values - 3 * values**2 / (1 - values**3), rtol=1e-5)
    shares = -np.expm1(2 * np.log1p(-values**3))
    np.testing.assert_allclose(own.cdf(x).detach().numpy(), shares, rtol=1e-6)
    np.testing.assert_allclose(own.icdf(number(shares)).numpy(), values, rtol=1e-6)
    at_ends = D.Kumaraswamy(number(1.0), number(1.0), validate_args=False)
    assert at_ends.log_prob(ptcore.tensor([-1.0, 0.0, 1.0, 2.0])).tolist() == [-np.inf, 0.0, 0.0, -np.inf]
