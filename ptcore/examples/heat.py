"""A physics-informed network: the heat equation solved by a network that knows nothing else.

    python -m ptcore.examples.heat

A rod of length 1 begins with a given temperature, its ends are kept at 0, and heat flows:

    u_t = a u_xx,        u(x, 0) = sin(pi x) + sin(3 pi x) / 2,        u(0, t) = u(1, t) = 0.

A network ``u(x, t)`` is trained to fulfil this at random points, without any solution to learn from (Raissi, Perdikaris
and Karniadakis, "Physics-informed neural networks", 2019). Its loss is

    mean (u_t - a u_xx)^2  +  w mean (u(x, 0) - u0(x))^2  +  w mean u(0 or 1, t)^2,

whose first part has derivatives of the network by its input, and whose gradient has derivatives of those by the
weights: ``autograd.grad(..., create_graph=True)``, twice. ``--derivatives func`` takes them by ``ptcore.func`` instead,
in forward mode: ``jvp`` of a ``jvp``. Adam walks, and LBFGS, with a line search, makes the last steps. Stated is the
relative L2 error against the closed form

    u(x, t) = exp(-a pi^2 t) sin(pi x) + exp(-9 a pi^2 t) sin(3 pi x) / 2.
"""

import itertools
import math
import sys

import ptcore
from ptcore import nn
from ptcore.examples._common import Example
from ptcore.func import jvp
from ptcore.optim.lr_scheduler import CosineAnnealingLR

WAVES = ((1, 1.0), (3, 0.5))    # numbers and heights of the sines


def exact(x, t, diffusivity):
    """The closed form."""
    return sum(
        height * ptcore.exp(-diffusivity * (k * math.pi) ** 2 * t) * ptcore.sin(k * math.pi * x)
        for k, height in WAVES
    )


class Network(nn.Module):
    """Temperature at (x, t): a perceptron of tanh, which has all derivatives."""

    def __init__(self, width, layers):
        super().__init__()
        sizes = [2] + [width] * layers
        body = [part for a, b in itertools.pairwise(sizes) for part in (nn.Linear(a, b), nn.Tanh())]
        self.layers = nn.Sequential(*body, nn.Linear(width, 1))
        for layer in self.layers[::2]:
            nn.init.xavier_normal_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x, t):
        """Return u for x and t of shape (N,)."""
        return self.layers(ptcore.stack([2 * x - 1, 2 * t - 1], -1)).squeeze(-1)


def by_grad(u, x, t):
    """Return (u_t, u_xx) by reverse mode: the sum's gradient has each point's derivative, as points are apart."""
    x, t = x.detach().requires_grad_(), t.detach().requires_grad_()
    u_x, u_t = ptcore.autograd.grad(u(x, t).sum(), (x, t), create_graph=True)
    (u_xx,) = ptcore.autograd.grad(u_x.sum(), x, create_graph=True)
    return u_t, u_xx


def by_func(u, x, t):
    """Return (u_t, u_xx) by forward mode: the change of u along t, and the change along x of the change along x."""
    along = ptcore.ones_like(x)
    u_t = jvp(lambda t: u(x, t), (t,), (along,))[1]
    u_xx = jvp(lambda x: jvp(lambda x: u(x, t), (x,), (along,))[1], (x,), (along,))[1]
    return u_t, u_xx


DERIVATIVES = {"grad": by_grad, "func": by_func}


def loss_of(u, inside, initial, edges, options):
    """The three parts of the loss at the points that are given."""
    u_t, u_xx = DERIVATIVES[options.derivatives](u, *inside)
    x0, t0 = initial
    return (
        (u_t - options.diffusivity * u_xx).square().mean()
        + options.weight * (u(x0, t0) - exact(x0, t0, options.diffusivity)).square().mean()
        + options.weight * u(*edges).square().mean()
    )


def draw_points(count, where):
    """Random points: in the rod's history, at its beginning and at its ends, as pairs (x, t)."""
    x, t, x0, t1 = ptcore.rand(4, count, device=where)
    return (x, t), (x0, ptcore.zeros_like(x0)), ((x > 0.5).float(), t1)


def train(u, example):
    """Adam on new points in each step, then LBFGS on fixed ones; return the losses."""
    options = example.options
    adam = ptcore.optim.Adam(u.parameters(), options.lr)
    schedule = CosineAnnealingLR(adam, max(1, options.steps))
    lbfgs = ptcore.optim.LBFGS(u.parameters(), max_iter=20, history_size=50, line_search_fn="strong_wolfe")

    def loss_and_gradient(inside, initial, edges):
        adam.zero_grad()
        loss = loss_of(u, inside, initial, edges, options)
        loss.backward()
        return loss.detach()

    loss_and_gradient = example.compiled(loss_and_gradient)
    fixed = draw_points(4 * options.points, options.device)
    losses = []
    steps = example.progress(range(options.steps + options.polish), unit="step")
    for step in steps:
        if step < options.steps:
            loss = loss_and_gradient(*draw_points(options.points, options.device))
            adam.step()
            schedule.step()
        else:
            loss = lbfgs.step(lambda: loss_and_gradient(*fixed))
        losses.append(loss.item())
        steps.set_postfix(loss=f"{losses[-1]:.1e}", refresh=False)
    return losses


@ptcore.no_grad()
def compare(u, options, side=101):
    """Return (found, true) on a grid, t along the rows."""
    axis = ptcore.linspace(0, 1, side, device=options.device)
    t, x = ptcore.meshgrid(axis, axis, indexing="ij")
    return u(x.flatten(), t.flatten()).reshape(side, side), exact(x, t, options.diffusivity)


def draw(example, losses, found, true):
    """Write the losses, the solution and its error."""
    figure, (left, middle, right) = example.picture(columns=3)
    left.semilogy(losses, lw=0.7)
    left.set(xlabel="step", ylabel="loss", title="Adam, then LBFGS")
    x = ptcore.linspace(0, 1, found.shape[1]).numpy()
    for row in (0, 5, 15, 40, 100):
        (line,) = middle.plot(x, found[row].cpu().numpy(), label=f"t = {row / 100:g}")
        middle.plot(x, true[row].cpu().numpy(), "--", lw=3, alpha=0.3, color=line.get_color())
    middle.set(xlabel="x", ylabel="u", title="network (thin) and closed form (broad)")
    middle.legend(ncols=2, fontsize="small")
    middle.set_ylim(0, 1.5)
    image = right.imshow((found - true).abs().cpu().numpy(), origin="lower", extent=(0, 1, 0, 1), cmap="magma")
    figure.colorbar(image)
    right.set(xlabel="x", ylabel="t", title="error")
    example.save(figure)


def main(argv=None):
    """Run the example; return a dictionary of the results."""
    example = Example(
        "heat", __doc__, argv,
        steps=(2000, "of Adam"),
        polish=(60, "steps of LBFGS, of 20 iterations each"),
        points=(256, "of each kind in a step of Adam"),
        diffusivity=(0.1, "a"),
        weight=(10.0, "w, of the beginning and the ends"),
        derivatives=(("grad", "func"), "reverse mode or forward mode"),
        width=(32, "of the network's layers"),
        layers=(3, "of the network"),
        lr=(5e-3, "learning rate of Adam at its highest"),
    )
    options = example.options
    u = Network(options.width, options.layers).to(options.device)
    losses = train(u, example)
    found, true = compare(u, options)
    error = ((found - true).norm() / true.norm()).item()
    draw(example, losses, found, true)
    example.claim("relative L2 error against the closed form:", error, high=5e-3)
    return example.result(error=error, losses=losses)


if __name__ == "__main__":
    sys.exit(main()["status"])
