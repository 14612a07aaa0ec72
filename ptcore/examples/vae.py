"""A variational auto-encoder that draws handwritten digits.

    python -m ptcore.examples.vae

The model of Kingma and Welling, "Auto-Encoding Variational Bayes" (2014): an image ``x`` comes from a few hidden
numbers ``z ~ Normal(0, 1)`` by a network, the decoder, which gives each pixel the probability of being white. A second
network, the encoder, guesses for an image which ``z`` it came from: ``q(z | x)``, a normal distribution. Both are
trained to make the evidence lower bound (ELBO) large,

    log p(x)  >=  E_q[log p(x | z)] - KL(q(z | x) || p(z)),

the left part of which says how well an image comes back, the right part how many nats ``z`` may tell about it. The
gradient goes through the draw of ``z`` because ``rsample`` writes it as ``mean + scale * noise``.

The images are scikit-learn's digits, of 8 by 8 grey pixels. As usual with this model, a grey pixel is a coin that is
tossed anew in each epoch (Salakhutdinov and Murray, 2008), so that pixels are black or white and ``p(x | z)`` is a
Bernoulli distribution. Stated is the ELBO of images that training never saw, and a tighter bound from many draws of
``z`` (Burda, Grosse and Salakhutdinov, "Importance Weighted Autoencoders", 2016).
"""

import math
import sys

import ptcore
from ptcore import nn
from ptcore.distributions import Bernoulli, Independent, Normal, kl_divergence
from ptcore.examples._common import Example, load_images
from ptcore.nn import functional as F
from ptcore.optim.lr_scheduler import CosineAnnealingLR
from ptcore.utils.data import DataLoader, TensorDataset

PIXELS = 64
HELD = 360      # images for the test


def load_data():
    """Return grey images of shape (N, 64): (training, test), split in a fixed random order."""
    images = ptcore.from_numpy(load_images("vae")[0]).flatten(1)
    order = ptcore.randperm(len(images), generator=ptcore.Generator().manual_seed(0))
    return images[order[HELD:]], images[order[:HELD]]


class VAE(nn.Module):
    """The encoder, the decoder and the ELBO."""

    def __init__(self, hidden, width):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(PIXELS, width), nn.SiLU(), nn.Linear(width, 2 * hidden)
        )
        self.decoder = nn.Sequential(
            nn.Linear(hidden, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, PIXELS)
        )
        self.register_buffer("zeros", ptcore.zeros(hidden))

    def prior(self):
        """p(z), the distribution of the hidden numbers of all images together."""
        return Independent(Normal(self.zeros, 1.0, validate_args=False), 1)

    def encode(self, x):
        """q(z | x): what is known about the hidden numbers of these images."""
        mean, scale = self.encoder(x).chunk(2, dim=-1)
        return Independent(Normal(mean, F.softplus(scale) + 1e-3, validate_args=False), 1)

    def decode(self, z):
        """p(x | z): what images these hidden numbers make."""
        return Independent(Bernoulli(logits=self.decoder(z), validate_args=False), 1)

    def forward(self, x):
        """The ELBO of each image in nats, from one draw of z, and its second part."""
        q = self.encode(x)
        z = q.rsample()
        kl = kl_divergence(q.base_dist, self.prior().base_dist).sum(-1)
        return self.decode(z).log_prob(x) - kl, kl

    def importance_bound(self, x, draws):
        """A bound between the ELBO and log p(x): the mean of p(x, z) / q(z | x) over draws of z."""
        q = self.encode(x)
        z = q.sample((draws,))
        log_ratio = self.decode(z).log_prob(x) + self.prior().log_prob(z) - q.log_prob(z)
        return log_ratio.logsumexp(0) - math.log(draws)


def train(model, images, held, example):
    """Train for ``--epochs``; return the history of the bounds."""
    options = example.options
    optimizer = ptcore.optim.Adam(model.parameters(), options.lr)
    schedule = CosineAnnealingLR(optimizer, options.epochs)
    loader = DataLoader(TensorDataset(images), options.batch_size, shuffle=True, drop_last=True)
    history = {"training": [], "test": [], "kl": []}

    def step(grey):
        optimizer.zero_grad()
        elbo, kl = model(ptcore.bernoulli(grey))
        (-elbo.mean()).backward()
        optimizer.step()
        return elbo.mean().detach(), kl.mean().detach()

    step = example.compiled(step)
    epochs = example.progress(range(options.epochs), unit="epoch")
    for _ in epochs:
        found = ptcore.stack([ptcore.stack(step(grey.to(options.device))) for (grey,) in loader])
        schedule.step()
        elbo, kl = found.mean(0).tolist()
        history["training"].append(elbo)
        history["kl"].append(kl)
        with ptcore.no_grad():
            history["test"].append(model(held)[0].mean().item())
        epochs.set_postfix(elbo=f"{elbo:.2f}", test=f"{history['test'][-1]:.2f}")
    return history


def tiled(images, columns):
    """One picture of many images, in rows of ``columns``."""
    rows = images.reshape(-1, columns, 8, 8)
    return F.pad(rows, (1, 1, 1, 1), value=0.5).transpose(1, 2).reshape(rows.shape[0] * 10, -1).cpu().numpy()


@ptcore.no_grad()
def draw(example, model, grey, held, history):
    """Write the curves, some images with what comes back of them, and images that the model made up."""
    figure, (left, middle, right) = example.picture(columns=3)
    for name in ("training", "test"):
        left.plot(history[name], label=name)
    left.set(xlabel="epoch", ylabel="nats an image", title="evidence lower bound")
    left.set_ylim(history["training"][len(history["training"]) // 20], None)
    left.legend()
    back = model.decode(model.encode(held[:24]).mean).mean
    parts = [t[:24].reshape(3, 8, PIXELS) for t in (grey, held, back)]
    middle.imshow(tiled(ptcore.stack(parts, 1), 8), cmap="gray_r", vmin=0, vmax=1)
    middle.set_title("test images, as coins, and what comes back")
    made = model.decode(model.prior().sample((80,))).mean
    right.imshow(tiled(made, 10), cmap="gray_r", vmin=0, vmax=1)
    right.set_title("samples")
    middle.axis("off")
    right.axis("off")
    example.save(figure)


def main(argv=None):
    """Run the example; return a dictionary of the results."""
    example = Example(
        "vae", __doc__, argv,
        epochs=(150, "passes over the 1437 training images"),
        batch_size=(96, "images in a step"),
        hidden=(8, "hidden numbers of an image"),
        width=(256, "of the networks' layers"),
        lr=(2e-3, "learning rate of Adam at its highest"),
        draws=(500, "draws of z for the tighter bound"),
    )
    options = example.options
    images, grey = load_data()
    grey = grey.to(options.device)
    held = ptcore.bernoulli(grey)
    model = VAE(options.hidden, options.width).to(options.device)
    history = train(model, images, held, example)
    with ptcore.no_grad():
        elbo = ptcore.stack([model(held)[0].mean() for _ in range(20)]).mean().item()
        bound = model.importance_bound(held, options.draws).mean().item()
    draw(example, model, grey, held, history)
    example.claim("test ELBO in nats an image:", elbo, low=-23.5)
    example.claim(f"test bound from {options.draws} draws:", bound, low=-23)
    return example.result(elbo=elbo, bound=bound, history=history)


if __name__ == "__main__":
    sys.exit(main()["status"])
