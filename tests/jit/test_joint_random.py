"""Random programs of views, parts, writes and reductions under ``compile``: values and gradients are eager ones bit for
bit, as losses with a backward outside, and as whole steps with it inside."""
import random

import pytest

import ptcore as pt
from ptcore.jit import compiled

F = pt.nn.functional
SHAPE = (3, 4, 5)


def written(a, k, other):
    b = a * 1
    if k % 4 == 0:
        b[k % 3] = other.sum()
    elif k % 4 == 1:
        b[..., 1:].mul_(2)
    elif k % 4 == 2:
        b.add_(other)
    else:
        b[:, ::2] += 1
    return b


# Each takes a tensor of SHAPE, a number that chooses and another such tensor, and gives one of SHAPE.
OPS = {
    "exp": lambda a, k, b: (a * 0.1).exp(), "tanh": lambda a, k, b: a.tanh(), "sin": lambda a, k, b: a.sin(),
    "softmax": lambda a, k, b: a.softmax(k % 3), "norm": lambda a, k, b: F.layer_norm(a, (5,)),
    "cumsum": lambda a, k, b: a.cumsum(k % 3) * 0.3, "flip": lambda a, k, b: a.flip(k % 3),
    "sort": lambda a, k, b: a.sort(k % 3)[0], "roll": lambda a, k, b: a.roll(k % 4, k // 4 % 3),
    "add": lambda a, k, b: a + b, "mul": lambda a, k, b: a * b.tanh(), "max": lambda a, k, b: a.maximum(b),
    "where": lambda a, k, b: pt.where(a > b, a, b * 0.5), "masked": lambda a, k, b: a.masked_fill(b > 0, 0.5),
    "slice": lambda a, k, b: pt.cat([a[:1], b[1:]]), "last": lambda a, k, b: a[-1] + b[0] * a,
    "narrow": lambda a, k, b: F.pad(a.narrow(2, 1, 3), (1, 1)), "select": lambda a, k, b: a * b.select(1, 2)[:, None],
    "index": lambda a, k, b: a.index_select(1, pt.tensor([k % 4, k // 4 % 4, 3, k % 2])),
    "gather": lambda a, k, b: a.gather(2, b.argsort(2)), "take": lambda a, k, b: a[[2, 0, 1]] - b[:, [3, 3, 0, 1]],
    "unbind": lambda a, k, b: pt.stack([x * (j + 1) for j, x in enumerate(a.unbind(1))], 1),
    "chunk": lambda a, k, b: pt.cat(a.chunk(2, 1)[::-1], 1),
    "split": lambda a, k, b: pt.cat(b.split([1, 2, 2], 2), 2) * a,
    "transpose": lambda a, k, b: (a.transpose(0, 1).contiguous() * 2).transpose(0, 1),
    "reshape": lambda a, k, b: a.reshape(4, 15).t().reshape(3, 4, 5),
    "expand": lambda a, k, b: a[:, :1].expand(SHAPE) + b,
    "mean": lambda a, k, b: a - a.mean(k % 3, keepdim=True), "var": lambda a, k, b: a / (1 + b.var(2, keepdim=True)),
    "matmul": lambda a, k, b: a @ b.transpose(1, 2) @ b * 0.1, "amax": lambda a, k, b: a - b.amax(2, keepdim=True),
    "detach": lambda a, k, b: a * b.detach(), "written": lambda a, k, b: written(a, k, b),
    "scatter": lambda a, k, b: a.scatter(2, pt.zeros(3, 4, 1, dtype=pt.int64), b[..., :1]),
    "add parts": lambda a, k, b: a.index_add(0, pt.tensor([0, 2]), b[:2]),
    "diagonal": lambda a, k, b: a + b.diagonal().sum(),
    "dropout": lambda a, k, b: F.dropout(a, 0.3),
    "unfold": lambda a, k, b: a.unfold(2, 2, 1).sum(-1).repeat(1, 1, 2)[..., :5],
    "prod": lambda a, k, b: a * b.prod(2, keepdim=True), "norms": lambda a, k, b: a / (1 + b.norm(dim=2, keepdim=True)),
    "einsum": lambda a, k, b: pt.einsum("abc,adc->adc", a, b) * 0.2, "lerp": lambda a, k, b: a.lerp(b, 0.25),
    "number": lambda a, k, b: a * (0.5, 2.0)[k % 2] + 1, "clone": lambda a, k, b: a.clone().mul_(0.5),
}


def program(seed):
    r = random.Random(seed)
    steps, n = [], 2
    for _ in range(r.randrange(3, 14)):
        at = max(0, n - r.choice([1, 1, 1, 2, 4]))
        steps.append((r.choice(sorted(OPS)), at, r.randrange(n), r.randrange(1 << 30)))
        n += 1
    outs = sorted({n - 1, *[r.randrange(2, n) for _ in range(r.randrange(3))]})
    weights = [r.uniform(-1, 1) for _ in outs]

    def f(x, w):
        values = [x, w]
        for name, i, j, s in steps:
            values.append(OPS[name](values[i], s, values[j]))
        return sum([(values[k] * c).square().mean() + values[k][1:, :2].sum() * c for k, c in zip(outs, weights)])
    return f


def outcome(f, seed, inside):
    pt.manual_seed(seed)
    x, w = [pt.randn(SHAPE).requires_grad_() for _ in range(2)]
    found = []
    for _ in range(2):
        loss = f(x, w)
        if not inside:
            loss.backward()
        found += [loss.detach(), *[None if t.grad is None else t.grad.clone() for t in (x, w)]]
        x.grad = w.grad = None
    return found, pt.rand(())


def differs(seed, inside):
    f = program(seed)

    def step(x, w):
        loss = f(x, w)
        loss.backward()
        return loss
    g = step if inside else f
    before = compiled.counts["eager"]
    (want, draw), (got, other) = outcome(g, seed, inside), outcome(pt.compile(g), seed, inside)
    same = all([(a is None and b is None) or bool(((a == b) | ((a != a) & (b != b))).all()) for a, b in zip(got, want)])
    return not same or not pt.equal(draw, other), compiled.counts["eager"] - before


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("first", range(0, 100, 20))
def test_programs(first, inside):
    eager = 0
    for seed in range(first, first + 20):
        found, left = differs(seed, inside)
        assert not found, f"program {seed}"
        eager += left
    assert eager == 0
