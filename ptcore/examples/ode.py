"""A learned ordinary differential equation: foxes, rabbits and a network that finds out how they live.

    python -m ptcore.examples.ode

The equation of Lotka (1925) and Volterra (1926),

    u' = a u - b u v,        v' = d u v - c v,

makes some trajectories, which are seen at a few times and with noise. A network ``f`` takes the place of the right-hand
side, in the logarithms ``y = (log u, log v)``, which keep numbers of animals positive: ``y' = f(y)``. It is fitted
through the integrator, as in "Neural Ordinary Differential Equations" (Chen, Rubanova, Bettencourt, Duvenaud, 2018):
the classical method of Runge and Kutta (1901) is written in ops,

    k1 = f(y),  k2 = f(y + h k1 / 2),  k3 = f(y + h k2 / 2),  k4 = f(y + h k3),  y <- y + h (k1 + 2 k2 + 2 k3 + k4) / 6,

so that ``backward`` goes through all of its steps. Training looks at pieces of the trajectories that begin at a seen
point. Stated is the error of whole trajectories, from their true start, over twice the time that training saw,
against SciPy's ``solve_ivp`` with the true equation.
"""

import sys

import numpy as np
from scipy import integrate

import ptcore
from ptcore import nn
from ptcore.examples._common import Example
from ptcore.optim.lr_scheduler import CosineAnnealingLR

A, B, C, D = 2 / 3, 4 / 3, 1.0, 1.0
SPAN = 8.0      # the time that training sees: a little more than one period
SEEN = 41       # points of a trajectory in that time
FINE = 1        # steps of the integrator between two points


def true_rate(_, y):
    """The right-hand side in logarithms."""
    u, v = np.exp(y)
    return np.array([A - B * v, D * u - C])


def make_data(count, noise, seed):
    """Return (times, true, seen): trajectories of shape (time, count, 2) over twice the span, and the noisy points."""
    rng = np.random.default_rng(seed)
    times = np.linspace(0.0, 2 * SPAN, 2 * SEEN - 1)
    starts = np.log(rng.uniform([0.6, 0.3], [1.6, 0.9], (count, 2)))
    exactly = {"t_eval": times, "rtol": 1e-9, "atol": 1e-9}
    true = np.stack([integrate.solve_ivp(true_rate, times[[0, -1]], y, **exactly).y.T for y in starts], axis=1)
    seen = true[:SEEN] + noise * rng.standard_normal((SEEN, count, 2))
    return times, ptcore.from_numpy(true).float(), ptcore.from_numpy(seen).float()


class Rate(nn.Module):
    """The right-hand side that is learned."""

    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2)
        )

    def forward(self, y):
        """Return y' for y of shape (..., 2)."""
        return self.layers(y)


def runge_kutta(rate, y, h):
    """One step of size ``h``."""
    k1 = rate(y)
    k2 = rate(y + h / 2 * k1)
    k3 = rate(y + h / 2 * k2)
    k4 = rate(y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def solve(rate, y, points):
    """The trajectory from y at ``points`` times, y the first of them, of shape (points, ..., 2)."""
    h = SPAN / (SEEN - 1) / FINE
    found = [y]
    for _ in range(points - 1):
        for _ in range(FINE):
            y = runge_kutta(rate, y, h)
        found.append(y)
    return ptcore.stack(found)


def pieces(seen, length, count):
    """Random pieces of the trajectories, of shape (length, count, 2)."""
    first = ptcore.randint(SEEN - length + 1, (count,), device=seen.device)
    which = ptcore.randint(seen.shape[1], (count,), device=seen.device)
    rows = first + ptcore.arange(length, device=seen.device)[:, None]
    return seen[rows, which]


def train(rate, seen, example):
    """Fit the network; return the losses."""
    options = example.options
    optimizer = ptcore.optim.Adam(rate.parameters(), options.lr)
    schedule = CosineAnnealingLR(optimizer, options.steps)

    def step(piece):
        optimizer.zero_grad()
        found = solve(rate, piece[0], options.length)
        loss = (found[1:] - piece[1:]).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    step = example.compiled(step)
    losses = []
    steps = example.progress(range(options.steps), unit="step")
    for _ in steps:
        losses.append(step(pieces(seen, options.length, options.batch_size)).item())
        schedule.step()
        steps.set_postfix(loss=f"{losses[-1]:.5f}", refresh=False)
    return losses


def relative(found, true):
    """The L2 error, relative to how far the truth is from its mean."""
    return ((found - true).norm() / (true - true.mean((0, 1))).norm()).item()


def draw(example, times, true, seen, found, rate):
    """Write one trajectory and the learned field."""
    figure, (left, right) = example.picture()
    for i, name in enumerate(("rabbits", "foxes")):
        (line,) = left.plot(times, true[:, 0, i].exp().cpu().numpy(), lw=3, alpha=0.3, label=name)
        left.plot(times, found[:, 0, i].exp().cpu().numpy(), color=line.get_color())
        left.plot(times[:SEEN], seen[:, 0, i].exp().cpu().numpy(), ".", color=line.get_color())
    left.axvspan(SPAN, 2 * SPAN, color="0.93")
    left.set(xlabel="time", ylabel="animals", title="true (broad), seen (dots), learned (thin)")
    left.legend()
    for path, look in ((true, {"color": "0.8", "lw": 3}), (found, {"lw": 0.8})):
        right.plot(*path.exp().cpu().numpy().transpose(2, 0, 1), **look)
    u, v = np.meshgrid(np.linspace(0.4, 2.0, 16), np.linspace(0.15, 1.1, 16))
    y = ptcore.from_numpy(np.stack([u, v], -1)).float().log().to(true.device)
    arrows = (rate(y) * y.exp()).detach().cpu().numpy()
    right.quiver(u, v, arrows[..., 0], arrows[..., 1], width=0.003)
    right.set(xlabel="rabbits", ylabel="foxes", title="the learned field and its orbits")
    example.save(figure)


def main(argv=None):
    """Run the example; return a dictionary of the results."""
    example = Example(
        "ode", __doc__, argv,
        steps=(3000, "of the optimiser"),
        trajectories=(12, "that are seen"),
        noise=(0.02, "standard deviation of the logarithms that are seen"),
        length=(11, "points of a piece"),
        batch_size=(64, "pieces in a step"),
        width=(32, "of the network's layers"),
        lr=(1e-2, "learning rate of Adam at its highest"),
    )
    options = example.options
    times, *data = make_data(options.trajectories, options.noise, options.seed)
    true, seen = (t.to(options.device) for t in data)
    rate = Rate(options.width).to(options.device)
    losses = train(rate, seen, example)
    with ptcore.no_grad():
        found = solve(rate, true[0], len(times))
    inside, beyond = relative(found[:SEEN], true[:SEEN]), relative(found[SEEN:], true[SEEN:])
    draw(example, times, true, seen, found, rate)
    example.claim("relative error in the time of training:", inside, high=0.05)
    example.claim("relative error in the time after it:", beyond, high=0.12)
    return example.result(inside=inside, beyond=beyond, losses=losses)


if __name__ == "__main__":
    sys.exit(main()["status"])
