"""What the examples with stated results are made of, against NumPy and SciPy."""
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import solve_ivp
from scipy.special import expit, log_expit, logsumexp

import ptcore as pt

pytestmark = pytest.mark.core

for package in ("sklearn", "tqdm", "matplotlib"):
    pytest.importorskip(package)

from ptcore.examples import heat, ode, pendulum, regression, vae  # noqa: E402


def test_bounds_of_the_auto_encoder():
    """One hidden number: log p(x) is an integral, the ELBO is below it and many draws come near."""
    model = vae.VAE(1, 8).double()
    images, held = vae.load_data()
    assert (len(images), len(held)) == (1437, 360)
    x = pt.bernoulli(held[:5].double())
    grid = np.linspace(-8, 8, 4001)
    with pt.no_grad():
        model.encoder[-1].bias[1] = 1.0         # wider than the prior: draws reach all that matters
        logits = model.decoder(pt.from_numpy(grid)[:, None]).numpy()
        found = model.importance_bound(x, 20_000).numpy()
        elbo = np.mean([model(x)[0].numpy() for _ in range(300)], axis=0)
        kl = model(x)[1].numpy()
        q = model.encode(x).base_dist
    rows = x.numpy()
    log_p = rows @ log_expit(logits).T + (1 - rows) @ log_expit(-logits).T + stats.norm.logpdf(grid)
    true = logsumexp(log_p, axis=1) + math.log(grid[1] - grid[0])
    np.testing.assert_allclose(found, true, atol=0.02)
    assert (elbo < true + 0.05).all()
    mean, scale = q.loc.numpy(), q.scale.numpy()
    np.testing.assert_allclose(kl, (0.5 * (mean**2 + scale**2 - 1) - np.log(scale)).sum(1), rtol=1e-10)


def test_physics_of_the_pendulum():
    state = pt.tensor([[3.0, -7.9], [-3.5, 1.0], [0.2, 7.95]], dtype=pt.float64)
    torque = pt.tensor([-5.0, 1.0, 2.0], dtype=pt.float64)
    found, reward = pendulum.advance(state, torque)
    (angle, rate), u = state.numpy().T, np.clip(torque.numpy(), -2, 2)
    near = (angle + np.pi) % (2 * np.pi) - np.pi
    np.testing.assert_allclose(reward.numpy(), -(near**2 + 0.1 * rate**2 + 0.001 * u**2), rtol=1e-12)
    rate = np.clip(rate + (15 * np.sin(angle) + 3 * u) * 0.05, -8, 8)
    np.testing.assert_allclose(found.numpy().T, [angle + rate * 0.05, rate], rtol=1e-12)
    first = pendulum.start(500, "cpu").abs()
    assert ((first < pt.tensor([math.pi, 1.0])).all() and (first.amax(0) > pt.tensor([3.0, 0.95])).all())


def test_advantages(rng):
    rewards, values = rng.standard_normal((7, 3)), rng.standard_normal((8, 3))
    surprise = rewards + 0.9 * values[1:] - values[:-1]
    want = [sum((0.9 * 0.8)**(s - t) * surprise[s] for s in range(t, 7)) for t in range(7)]
    np.testing.assert_allclose(pendulum.advantages(*map(pt.from_numpy, (rewards, values)), 0.9, 0.8), want)


def test_runge_kutta_is_of_fourth_order():
    start = np.log([1.5, 0.7])

    def rate(y):
        u, v = y.exp().unbind(-1)
        return pt.stack([ode.A - ode.B * v, ode.D * u - ode.C], -1)

    true = solve_ivp(ode.true_rate, (0, 1.6), start, rtol=1e-12, atol=1e-12).y[:, -1]
    errors = []
    for steps in (8, 16):
        y = pt.from_numpy(start)
        for _ in range(steps):
            y = ode.runge_kutta(rate, y, 1.6 / steps)
        errors.append(np.abs(y.numpy() - true).max())
    assert 12 < errors[0] / errors[1] < 20
    found = ode.solve(rate, pt.from_numpy(start), 9)
    assert found.shape == (9, 2)
    np.testing.assert_allclose(found[-1], true, rtol=1e-4)


def test_data_of_the_equation():
    _, true, seen = ode.make_data(3, 0.0, 0)
    assert (true.shape, seen.shape) == ((81, 3, 2), (41, 3, 2))
    assert pt.equal(true[:41], seen)
    u, v = true.double().exp().unbind(-1)
    kept = ode.D * u - ode.C * u.log() + ode.B * v - ode.A * v.log()        # the equation's invariant
    np.testing.assert_allclose(kept, kept[:1].expand_as(kept), rtol=1e-5)
    pieces = ode.pieces(seen, 5, 20)
    windows = seen.unfold(0, 5, 1).permute(0, 1, 3, 2).flatten(0, 1)
    assert all((windows == piece).flatten(1).all(1).any() for piece in pieces.transpose(0, 1))


@pytest.mark.parametrize("derivatives", ["grad", "func"])
def test_heat(derivatives):
    """The closed form fulfils the equation, its beginning and its ends."""
    options = pt.nn.Module()
    options.derivatives, options.diffusivity, options.weight = derivatives, 0.1, 10.0
    points = [tuple(t.double() for t in pair) for pair in heat.draw_points(40, "cpu")]

    def u(x, t):
        return heat.exact(x, t, 0.1)

    assert heat.loss_of(u, *points, options).item() < 1e-24
    x, t = points[0]
    u_t, u_xx = heat.DERIVATIVES[derivatives](lambda x, t: x**3 * t**2, x, t)
    np.testing.assert_allclose(u_t.detach(), 2 * x**3 * t)
    np.testing.assert_allclose(u_xx.detach(), 6 * x * t**2)


def test_both_derivatives_train_alike():
    found = []
    for name in heat.DERIVATIVES:
        pt.manual_seed(0)
        network, points = heat.Network(8, 2).double(), heat.draw_points(20, "cpu")
        options = pt.nn.Module()
        options.derivatives, options.diffusivity, options.weight = name, 0.1, 10.0
        heat.loss_of(network, *[tuple(t.double() for t in pair) for pair in points], options).backward()
        found.append([p.grad.numpy() for p in network.parameters()])
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_likelihoods(rng):
    raw = pt.from_numpy(rng.standard_normal((4, 9)))
    y = pt.from_numpy(rng.standard_normal(4))

    def scale(t):
        return np.log1p(np.exp(t)) + 1e-3

    a = raw.numpy()
    np.testing.assert_allclose(regression.normal(raw[:, :2]).log_prob(y), stats.norm.logpdf(y, a[:, 0], scale(a[:, 1])))
    np.testing.assert_allclose(regression.student(raw[:, :3]).log_prob(y),
                               stats.t.logpdf(y, 2 + scale(a[:, 0]), a[:, 1], scale(a[:, 2])))
    logits, mean, width = a.reshape(4, 3, 3).transpose(1, 0, 2)
    parts = stats.norm.logpdf(y.numpy()[:, None], mean, scale(width))
    np.testing.assert_allclose(regression.mixture(raw).log_prob(y),
                               logsumexp(logits + parts, axis=1) - logsumexp(logits, axis=1))


def test_interval_and_data():
    found = regression.interval(pt.distributions.Normal(pt.tensor([1.0, -2.0]), pt.tensor([0.1, 3.0])), draws=50_000)
    np.testing.assert_allclose(found.T, np.transpose(stats.norm.interval(0.9, [1.0, -2.0], [0.1, 3.0])), atol=0.1)
    x, y = regression.make_data(20_000, "cpu")
    assert stats.kstest(x.numpy(), "uniform", (-2, 4)).pvalue > 1e-3
    noise = (y - np.sin(3 * x) - x / 2) / (0.05 + 0.4 * expit(4 * x))
    assert stats.kstest(noise.numpy(), "norm").pvalue > 1e-3


def test_the_picture_of_ode_has_time_on_its_axis():
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots(1, 2)
    saved = []
    example = SimpleNamespace(picture=lambda: (figure, axes), save=saved.append)
    times = np.linspace(0, 1, ode.SEEN + 3)
    true, found = (pt.rand(ode.SEEN + 3, 1, 2) for _ in range(2))
    ode.draw(example, times, true, true[:ode.SEEN], found, lambda y: y)
    assert saved == [figure]
    for line, values in zip(axes[0].lines, [part[:, 0, i].exp() for i in range(2)
                                            for part in (true, found, true[:ode.SEEN])], strict=True):
        np.testing.assert_array_equal(line.get_xdata(), times[:len(values)])
        np.testing.assert_array_equal(line.get_ydata(), values.numpy())
    for line, values in zip(axes[1].lines, (true, found), strict=True):
        np.testing.assert_array_equal(line.get_xydata(), values[:, 0].exp().numpy())
