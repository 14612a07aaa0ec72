"""Regression that says how sure it is: a network gives a distribution in place of a number.

    python -m ptcore.examples.regression

The data have a noise that depends on ``x``: ``y = sin(3 x) + x / 2 + s(x) e`` with normal ``e`` and
``s(x) = 0.05 + 0.4 / (1 + exp(-4 x))``. A network gives for each ``x`` the parameters of a distribution, and is trained
to make the negative log-likelihood of what was seen small,

    loss = -mean log p(y | x),        p = Normal(mean(x), scale(x)),

(Nix and Weigend, "Estimating the mean and variance of the target probability distribution", 1994). ``--likelihood``
takes another distribution: ``student`` for outliers, ``mixture`` for several normal ones (Bishop, "Mixture density
networks", 1994). Beside it, a network of the same size is trained with one scale for all ``x``.

Stated, on data that training never saw: how many of the points lie in the interval of 90 % (it should be 90 %), and by
how many nats the likelihood of a point is better than that of the constant scale.
"""

import sys

import ptcore
from ptcore import nn
from ptcore.distributions import Categorical, MixtureSameFamily, Normal, StudentT
from ptcore.examples._common import Example
from ptcore.nn import functional as F
from ptcore.optim.lr_scheduler import CosineAnnealingLR

PARTS = 3       # of the mixture
LEAST = 1e-3    # of a scale


def true_distribution(x):
    """Where the data come from."""
    return Normal(ptcore.sin(3 * x) + x / 2, 0.05 + 0.4 * ptcore.sigmoid(4 * x))


def make_data(count, where):
    """Return x in (-2, 2) and y, of shape (count,): the same on every device."""
    x = 4 * ptcore.rand(count) - 2
    return x.to(where), true_distribution(x).sample().to(where)


def positive(t):
    """What a scale is made of: any number to a positive one."""
    return F.softplus(t) + LEAST


def normal(raw):
    """A mean and a scale."""
    mean, scale = raw.unbind(-1)
    return Normal(mean, positive(scale), validate_args=False)


def student(raw):
    """A normal distribution with heavier tails, how heavy is learned too."""
    tails, mean, scale = raw.unbind(-1)
    return StudentT(2 + positive(tails), mean, positive(scale), validate_args=False)


def mixture(raw):
    """One of some normal distributions, chosen by lot."""
    logits, mean, scale = raw.unflatten(-1, (3, PARTS)).unbind(-2)
    parts = Normal(mean, positive(scale), validate_args=False)
    return MixtureSameFamily(Categorical(logits=logits, validate_args=False), parts, validate_args=False)


LIKELIHOODS = {"normal": (normal, 2), "student": (student, 3), "mixture": (mixture, 3 * PARTS)}


def perceptron(width, outputs):
    """A number to ``outputs`` numbers."""
    return nn.Sequential(
        nn.Linear(1, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, outputs)
    )


class Network(nn.Module):
    """The distribution of y for each x."""

    def __init__(self, likelihood, width):
        super().__init__()
        self.likelihood, outputs = LIKELIHOODS[likelihood]
        self.layers = perceptron(width, outputs)

    def forward(self, x):
        """Return a distribution of batch shape (N,) for x of shape (N,)."""
        return self.likelihood(self.layers(x[:, None]))


class ConstantScale(nn.Module):
    """The same with one scale for all x, which is what least squares assume."""

    def __init__(self, width):
        super().__init__()
        self.layers = perceptron(width, 1)
        self.scale = nn.Parameter(ptcore.zeros(()))

    def forward(self, x):
        """Return a distribution of batch shape (N,) for x of shape (N,)."""
        return Normal(self.layers(x[:, None]).squeeze(-1), positive(self.scale), validate_args=False)


def train(model, x, y, example, name):
    """Train on minibatches; return the losses."""
    options = example.options
    optimizer = ptcore.optim.AdamW(model.parameters(), options.lr, weight_decay=options.weight_decay)
    schedule = CosineAnnealingLR(optimizer, options.steps)

    def step(x, y):
        optimizer.zero_grad()
        loss = -model(x).log_prob(y).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    step = example.compiled(step)
    losses = []
    steps = example.progress(range(options.steps), desc=name, unit="step")
    for _ in steps:
        rows = ptcore.randint(len(x), (options.batch_size,), device=x.device)
        losses.append(step(x[rows], y[rows]).item())
        schedule.step()
        steps.set_postfix(nll=f"{losses[-1]:.3f}", refresh=False)
    return losses


@ptcore.no_grad()
def interval(distribution, share=0.9, draws=1000):
    """Ends of the middle interval of probability ``share``: quantiles of draws, which every distribution has."""
    ends = ptcore.tensor([(1 - share) / 2, (1 + share) / 2], device=distribution.mean.device)
    return distribution.sample((draws,)).quantile(ends, dim=0)


@ptcore.no_grad()
def examine(model, x, y):
    """Return the mean negative log-likelihood and the coverage of the interval of 90 %."""
    found = model(x)
    low, high = interval(found)
    return -found.log_prob(y).mean().item(), ((low <= y) & (y <= high)).float().mean().item()


@ptcore.no_grad()
def draw(example, data, models):
    """Write the data with the intervals of both models."""
    x, y = (t.cpu().numpy() for t in data)
    figure, axes = example.picture(columns=len(models), sharey=True)
    grid = ptcore.linspace(-2, 2, 201, device=example.options.device)
    for ax, (name, model) in zip(axes, models.items(), strict=True):
        found = model(grid)
        low, high = interval(found).cpu().numpy()
        ax.plot(x, y, ".", ms=2, color="0.6")
        ax.fill_between(grid.cpu().numpy(), low, high, alpha=0.3, label="90 % interval")
        ax.plot(grid.cpu().numpy(), found.mean.cpu().numpy(), label="mean")
        ax.plot(grid.cpu().numpy(), true_distribution(grid).mean.cpu().numpy(), "k:", label="truth")
        ax.set(xlabel="x", title=name)
    axes[0].legend()
    example.save(figure)


def main(argv=None):
    """Run the example; return a dictionary of the results."""
    example = Example(
        "regression", __doc__, argv,
        likelihood=(tuple(LIKELIHOODS), "what the network gives"),
        steps=(3000, "of the optimiser"),
        points=(2000, "that training sees"),
        held=(10_000, "points for the test"),
        batch_size=(128, "points in a step"),
        width=(48, "of the networks' layers"),
        lr=(5e-3, "learning rate of AdamW at its highest"),
        weight_decay=(1e-2, "of AdamW"),
    )
    options = example.options
    data = make_data(options.points, options.device)
    x, y = make_data(options.held, options.device)
    models = {
        options.likelihood: Network(options.likelihood, options.width).to(options.device),
        "constant scale": ConstantScale(options.width).to(options.device),
    }
    scores = {}
    for name, model in models.items():
        train(model, *data, example, name)
        scores[name] = examine(model, x, y)
        print(f"{name}: {scores[name][0]:.3f} nats, {scores[name][1]:.1%} of the points in the interval of 90 %")
    best = -true_distribution(x).log_prob(y).mean().item()
    print(f"the true distribution: {best:.3f} nats")
    draw(example, data, models)
    (nll, coverage), (constant, _) = scores.values()
    example.claim("coverage of the interval of 90 %:", coverage, low=0.87, high=0.93)
    example.claim("nats better than a constant scale:", constant - nll, low=0.2)
    return example.result(nll=nll, coverage=coverage, constant=constant, best=best)


if __name__ == "__main__":
    sys.exit(main()["status"])
