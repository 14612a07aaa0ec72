"""Fifty whole steps under ``compile``, of models as people write them: the weights are those of eager steps, bit for
bit."""
import copy
import math

import pytest

import ptcore as pt
from ptcore import nn
from ptcore.jit import compiled as _compile

F = nn.functional


def drawn(*shape, seed=0):
    return pt.randn(*shape, generator=pt.Generator().manual_seed(seed))


def whole(high, *shape, seed=0):
    return pt.randint(0, high, shape, generator=pt.Generator().manual_seed(seed))


class Job:
    """What is trained: a module, a loss of it and its data, and an optimizer of its parameters."""

    def __init__(self, module, loss, data, optimizer=None, rate=0.01):
        self.module, self.loss, self.data = module, loss, data
        make = optimizer or pt.optim.AdamW
        self.optimizer = make(module.parameters(), lr=rate)


def mlp():
    net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Dropout(0.2), nn.Linear(16, 3))
    return Job(net, lambda m, x, y: F.cross_entropy(m(x), y), lambda k: (drawn(8, 6, seed=k), whole(3, 8, seed=k)))


def convolutions():
    net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                        nn.Conv2d(4, 8, 3), nn.GroupNorm(2, 8), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                        nn.Linear(8, 4))
    return Job(net, lambda m, x, y: F.cross_entropy(m(x), y, label_smoothing=0.1),
               lambda k: (drawn(4, 1, 8, 8, seed=k), whole(4, 4, seed=k)), pt.optim.SGD, 0.05)


class Residual(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(n, n) for _ in range(3)])
        self.norms = nn.ModuleList([nn.LayerNorm(n) for _ in range(3)])
        self.scale = nn.Parameter(pt.ones(3))

    def forward(self, x):
        for k, (layer, norm) in enumerate(zip(self.layers, self.norms)):
            x = x + self.scale[k] * F.silu(layer(norm(x)))
        return x


def residual():
    return Job(Residual(8), lambda m, x: F.smooth_l1_loss(m(x), x.flip(1)), lambda k: (drawn(5, 8, seed=k),))


class LanguageModel(nn.Module):
    def __init__(self, words=11, n=8):
        super().__init__()
        self.words = nn.Embedding(words, n)
        self.lstm = nn.LSTM(n, n, 2, dropout=0.1, batch_first=True)
        self.out = nn.Linear(n, words)
        self.out.weight = self.words.weight

    def forward(self, x, state=None):
        h, state = self.lstm(self.words(x), state)
        return self.out(h), state


def language_model():
    def loss(m, text):
        logits, _ = m(text[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
    return Job(LanguageModel(), loss, lambda k: (whole(11, 3, 7, seed=k),))


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.head = nn.GRU(3, 6, bidirectional=True), nn.Linear(12, 2)

    def forward(self, x):
        h, _ = self.gru(x)
        return self.head(h.mean(0))


def gru():
    return Job(Gru(), lambda m, x, y: F.cross_entropy(m(x), y), lambda k: (drawn(5, 4, 3, seed=k), whole(2, 4, seed=k)))


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRUCell(4, 8), nn.Linear(8, 4)

    def forward(self, xs):
        h = xs.new_zeros(xs.shape[1], 8)
        found = []
        for x in xs.unbind(0):
            h = self.cell(x, h)
            found.append(self.out(h))
        return pt.stack(found)


def cells():
    return Job(Cells(), lambda m, xs: F.mse_loss(m(xs[:-1]), xs[1:]), lambda k: (drawn(6, 3, 4, seed=k),),
               pt.optim.RMSprop)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, 0.1, batch_first=True, norm_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(8, 3)
        self.register_buffer("places", pt.arange(6.0)[:, None] / 6)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.head(self.encoder(x + self.places[:x.shape[1]], mask=mask, is_causal=True)).mean(1)


def transformer():
    return Job(Transformer(), lambda m, x, y: F.cross_entropy(m(x), y),
               lambda k: (drawn(3, 6, 8, seed=k), whole(3, 3, seed=k)))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = [nn.Linear(6, 6, bias=False) for _ in range(3)]

    def forward(self, x, hidden):
        score = self.q(x) @ self.k(x).transpose(-1, -2) / math.sqrt(6)
        return score.masked_fill(hidden[:, None, :], float("-inf")).softmax(-1) @ self.v(x)


def attention():
    return Job(Attention(), lambda m, x, hidden: m(x, hidden).square().mean() + m.q.weight.abs().mean(),
               lambda k: (drawn(2, 5, 6, seed=k), pt.arange(5)[None] >= pt.tensor([[4], [2]])))


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(8, 6), nn.Linear(3, 8)

    def forward(self, x):
        mean, log_var = self.encoder(x).chunk(2, 1)
        z = mean + pt.randn_like(mean) * (log_var / 2).exp()
        return self.decoder(z), -0.5 * (1 + log_var - mean.pow(2) - log_var.exp()).sum(1).mean()


def autoencoder():
    def loss(m, x):
        made, divergence = m(x)
        return F.binary_cross_entropy_with_logits(made, x.sigmoid()) + 0.1 * divergence
    return Job(Autoencoder(), loss, lambda k: (drawn(4, 8, seed=k),))


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.users, self.items = nn.Embedding(9, 4), nn.Embedding(7, 4)
        self.bias = nn.Parameter(pt.zeros(()))

    def forward(self, u, i):
        return (self.users(u) * self.items(i)).sum(-1) + self.bias


def factors():
    return Job(Factors(), lambda m, u, i, r: F.mse_loss(m(u, i), r),
               lambda k: (whole(9, 12, seed=k), whole(7, 12, seed=k + 1), drawn(12, seed=k)), pt.optim.Adagrad, 0.1)


def bags():
    net = nn.ModuleDict({"bag": nn.EmbeddingBag(20, 6, mode="mean"), "out": nn.Linear(6, 3)})

    def loss(m, words, offsets, y):
        return F.cross_entropy(m["out"](m["bag"](words, offsets)), y)
    return Job(net, loss, lambda k: (whole(20, 12, seed=k), pt.tensor([0, 3, 7]), whole(3, 3, seed=k)), pt.optim.SGD,
               0.1)


def siamese():
    net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 4))

    def loss(m, a, b, c):
        return F.triplet_margin_loss(F.normalize(m(a)), F.normalize(m(b)), F.normalize(m(c)), margin=0.5)
    return Job(net, loss, lambda k: tuple(drawn(6, 5, seed=3 * k + j) for j in range(3)))


def contrastive():
    net = nn.Sequential(nn.Linear(5, 8), nn.ELU(), nn.Linear(8, 4))

    def loss(m, a, b):
        score = F.cosine_similarity(m(a)[:, None], m(b)[None], dim=-1) / 0.1
        return F.cross_entropy(score, pt.arange(len(a)))
    return Job(net, loss, lambda k: (drawn(5, 5, seed=k), drawn(5, 5, seed=k + 99)))


class Sine(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 16), nn.Linear(16, 16), nn.Linear(16, 1)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = pt.sin(3 * layer(x))
        return self.layers[-1](x)


def sine():
    x = pt.stack(pt.meshgrid(pt.linspace(-1, 1, 6), pt.linspace(-1, 1, 6), indexing="ij"), -1).reshape(-1, 2)
    return Job(Sine().double(), lambda m, x: F.mse_loss(m(x), x.prod(1, keepdim=True)), lambda k: (x.double(),))


def regression():
    """Least squares with a penalty, by plain tensors in a ParameterList."""
    w = nn.ParameterList([pt.zeros(4, 1), pt.zeros(1)])

    def loss(m, x, y):
        return (x @ m[0] + m[1] - y).square().mean() + 0.01 * sum(p.abs().sum() for p in m)
    return Job(w, loss, lambda k: (drawn(9, 4, seed=k), drawn(9, 1, seed=k)), pt.optim.SGD, 0.1)


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(4, 3), nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        weights = self.gate(x).softmax(-1)
        made = pt.stack([e(x) for e in self.experts], -1)
        return (made * weights.unsqueeze(-2)).sum(-1), weights


def experts():
    def loss(m, x):
        out, weights = m(x)
        return F.huber_loss(out, x.cos()) + 0.1 * (weights.mean(0) - 1 / 3).pow(2).sum()
    return Job(Experts(), loss, lambda k: (drawn(7, 4, seed=k),))


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 2)) for _ in range(4)])

    def forward(self, x):
        a, b, volume = x[:, :1], x[:, 1:], 0
        for part in self.parts:
            scale, shift = part(a).chunk(2, 1)
            a, b, volume = b * scale.exp() + shift, a, volume + scale.sum(1)
        return pt.cat([a, b], 1), volume


def flow():
    def loss(m, x):
        z, volume = m(x)
        return (0.5 * z.square().sum(1) - volume).mean()
    return Job(Flow(), loss, lambda k: (drawn(6, 2, seed=k) * 2 + 1,), pt.optim.Adam)


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward(self, x, steps: int):
        for _ in range(steps):
            x = x + 0.1 * self.f(x + 0.05 * self.f(x))
        return x


def equation():
    return Job(Field().double(), lambda m, x: F.mse_loss(m(x, 8), x.flip(1)), lambda k: (drawn(4, 2, seed=k).double(),))


class Upscaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv2d(1, 4, 3, 2, 1), nn.ConvTranspose2d(4, 4, 2, 2)
        self.skip, self.out = nn.Conv2d(1, 4, 1), nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, x):
        y = self.up(F.leaky_relu(self.down(x)))
        y = pt.cat([y, self.skip(x)], 1)
        return self.out(F.interpolate(F.avg_pool2d(y, 2), scale_factor=2, mode="bilinear"))


def upscaled():
    return Job(Upscaled(), lambda m, x: F.l1_loss(m(x), x.tanh()), lambda k: (drawn(2, 1, 8, 8, seed=k),))


def sequences():
    net = nn.ModuleDict({"conv": nn.Conv1d(3, 8, 3, padding=1), "out": nn.Conv1d(8, 5, 1)})

    def loss(m, x, y):
        chances = m["out"](m["conv"](x).relu()).permute(2, 0, 1).log_softmax(-1)
        return F.ctc_loss(chances, y, pt.full((2,), 9), pt.tensor([3, 2]), zero_infinity=True)
    return Job(net, loss, lambda k: (drawn(2, 3, 9, seed=k), whole(4, 2, 3, seed=k) + 1))


JOBS = [mlp, convolutions, residual, language_model, gru, cells, transformer, attention, autoencoder, factors, bags,
        siamese, contrastive, sine, regression, experts, flow, equation, upscaled, sequences]


def step_of(job):
    def step(*batch):
        job.optimizer.zero_grad()
        loss = job.loss(job.module, *batch)
        loss.backward()
        job.optimizer.step()
        return loss.detach()
    return step


def trained(job, compiled, steps=50):
    pt.manual_seed(7)
    step = step_of(job)
    step = pt.compile(step) if compiled else step
    losses = [step(*job.data(k)) for k in range(steps)]
    return [*losses, *job.module.state_dict().values(), pt.rand(())], step


@pytest.mark.parametrize("make", JOBS, ids=lambda f: f.__name__)
def test_fifty_steps(make):
    jobs = []
    for _ in range(2):
        pt.manual_seed(1)
        jobs.append(make())
    before = dict(_compile.counts)
    (want, _), (got, step) = trained(jobs[0], False), trained(jobs[1], True)
    reasons = [getattr(v, "reason", None) for vs in step._compiled.forms.values() for v in vs]
    assert _compile.counts["eager"] == before["eager"], reasons
    assert _compile.counts["captures"] == before["captures"] + 1, reasons
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        assert a.dtype is b.dtype and pt.equal(a, b), k
    assert math.isfinite(sum([x.item() for x in want[:50]])) and want[49] < want[0] * 3


def test_a_copy_of_the_model_is_another():
    """A step is captured for its own model."""
    job = residual()
    other = copy.deepcopy(job.module)
    trained(job, True, 5)
    for a, b in zip(job.module.parameters(), other.parameters()):
        assert not pt.equal(a, b) and b.grad is None
