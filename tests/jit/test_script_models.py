"""Whole models by ``jit.script``: results, gradients and trained weights are those of the module."""
# ruff: noqa: RUF059, UP006, UP035, UP045 - these forms are what is tested
import copy
import math
from typing import List, Optional, Tuple

import pytest

import ptcore
from ptcore import jit, nn

F = nn.functional


class Attn(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.qkv = nn.Linear(d, 3*d)
        self.proj = nn.Linear(d, d)
        self.h = h
        self.register_buffer("mask", ptcore.tril(ptcore.ones(16,16)).view(1,1,16,16))
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.qkv(x).split(C, dim=2)
        k = k.view(B, T, self.h, C // self.h).transpose(1, 2)
        q = q.view(B, T, self.h, C // self.h).transpose(1, 2)
        v = v.view(B, T, self.h, C // self.h).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float('-inf'))
        att = self.drop(F.softmax(att, dim=-1))
        y = att @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.proj(y)


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.ln1 = nn.LayerNorm(d)
        self.attn = Attn(d, h)
        self.ln2 = nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, 4*d), nn.GELU(), nn.Linear(4*d, d), nn.Dropout(0.1))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, v=20, d=16, h=2, n=2):
        super().__init__()
        self.tok = nn.Embedding(v, d)
        self.pos = nn.Embedding(16, d)
        self.blocks = nn.ModuleList([Block(d, h) for _ in range(n)])
        self.ln = nn.LayerNorm(d)
        self.head = nn.Linear(d, v, bias=False)

    def forward(self, idx, targets: Optional[ptcore.Tensor] = None) -> Tuple[ptcore.Tensor, Optional[ptcore.Tensor]]:
        b, t = idx.shape
        assert t <= 16, f"Cannot forward sequence of length {t}"
        pos = ptcore.arange(0, t, dtype=ptcore.long, device=idx.device)
        x = self.tok(idx) + self.pos(pos)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss

    @jit.export
    def generate(self, idx, n: int, temperature: float = 1.0):
        for _ in range(n):
            cond = idx if idx.size(1) <= 16 else idx[:, -16:]
            logits, _ = self(cond)
            logits = logits[:, -1, :] / temperature
            probs = F.softmax(logits, dim=-1)
            nxt = ptcore.argmax(probs, dim=-1, keepdim=True)
            idx = ptcore.cat((idx, nxt), dim=1)
        return idx


class Res(nn.Module):
    def __init__(self, i, o, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(o)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(o)
        self.downsample = None
        if stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1=nn.Linear(8,4)
        self.fc21=nn.Linear(4,2)
        self.fc22=nn.Linear(4,2)
        self.fc3=nn.Linear(2,8)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = ptcore.exp(0.5*logvar)
        eps = ptcore.randn_like(std)
        return mu + eps*std

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 8))
        z = self.reparameterize(mu, logvar)
        return ptcore.sigmoid(self.fc3(z)), mu, logvar


class Tree(nn.Module):
    def __init__(self, d=4):
        super().__init__()
        self.reduce = nn.Linear(2*d, d)

    def forward(self, words: List[ptcore.Tensor], ops: List[int]):
        stack: List[ptcore.Tensor] = []
        k = 0
        for op in ops:
            if op == 0:
                stack.append(words[k])
                k += 1
            else:
                b = stack.pop()
                a = stack.pop()
                stack.append(ptcore.tanh(self.reduce(ptcore.cat([a, b], dim=-1))))
        return stack[-1]


class Beam(nn.Module):
    def forward(self, scores, width: int):
        beams: List[Tuple[List[int], float]] = [([0], 0.0)]
        for t in range(scores.size(0)):
            grown: List[Tuple[float, List[int]]] = []
            for seq, s in beams:
                for v in range(scores.size(1)):
                    grown.append((s + float(scores[t, v]), seq + [v]))
            ordered = sorted([-g[0] for g in grown])
            cut = ordered[min(width, len(ordered)) - 1]
            beams = [(g[1], g[0]) for g in grown if -g[0] <= cut][:width]
        return beams


def close(a, b):
    """Whether two results are the same."""
    if isinstance(a, ptcore.Tensor):
        return ptcore.equal(a, b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all([close(x, y) for x, y in zip(a, b)])
    return a == b


MODELS = [
    (GPT, lambda: (ptcore.randint(0, 20, (2, 5)), ptcore.randint(0, 20, (2, 5)))),
    (lambda: nn.Sequential(Res(3, 3), Res(3, 4, 2)), lambda: (ptcore.randn(2, 3, 8, 8),)),
    (VAE, lambda: (ptcore.randn(2, 8),)),
    (Tree, lambda: ([ptcore.randn(4) for _ in range(3)], [0, 0, 1, 0, 1])),
]


def loss_of(out):
    return sum([loss_of(x) for x in out]) if isinstance(out, tuple) else out.pow(2).mean()


@pytest.mark.parametrize("made, inputs", MODELS, ids=["GPT", "ResNet", "VAE", "Tree"])
def test_training(made, inputs):
    """A few steps give the same weights, bit for bit."""
    net, args = made(), inputs()
    scripted = jit.script(copy.deepcopy(net))
    scripted.graph.lint()
    found = []
    for model in (net, scripted):
        ptcore.manual_seed(3)
        optimizer = ptcore.optim.AdamW(model.parameters(), lr=1e-2)
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(model(*args)).backward()
            optimizer.step()
        found.append([p.detach().clone() for p in model.parameters()])
    assert close(*found)
    net.eval()
    scripted.eval()
    ptcore.manual_seed(4)
    a = net(*args)
    ptcore.manual_seed(4)
    assert close(scripted(*args), a)


def test_other_methods():
    net = GPT().eval()
    scripted = jit.script(net)
    idx = ptcore.randint(0, 20, (2, 5))
    assert close(scripted.generate(idx, 14), net.generate(idx, 14))
    assert scripted(idx)[1] is None
    with pytest.raises(AssertionError, match="Cannot forward sequence of length 17"):
        scripted(ptcore.zeros(1, 17, dtype=ptcore.int64))


def test_lists_of_tuples():
    scores = ptcore.randn(4, 3)
    assert jit.script(Beam())(scores, 3) == Beam()(scores, 3)
