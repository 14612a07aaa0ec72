"""Writes to ``data`` in captured programs. They change the values that a backward has saved, and raise nothing, as in
eager calls; a program that clamps its parameters after a step stays one that is captured."""
import pytest

import ptcore as pt
from ptcore import nn
from ptcore.jit import compiled as _compile


def argument(x, w):
    y = x * w
    x.data.add_(0.5)
    return y.sum()


def rows(xs, w):
    total = 0
    for x in xs:
        total = total + (x * w).sum()
        if total.abs() < 1e9:
            x.data.mul_(2)
    return total


def part(x, w):
    y = x * w
    x.data[0] = 5.0
    return y.sum()


def result(x, w):
    z = x * 1
    y = z * w
    z[0].data.add_(5.0)
    return y.sum() + z.sum()


def parameter(x, w):
    y = (x * w).exp().sum()
    w.data.mul_(0.5)
    return y + (w * w).sum()


@pytest.mark.parametrize("backend", ["cpu", "eager"])
@pytest.mark.parametrize("program", [argument, rows, part, result, parameter])
def test_values_that_a_backward_has_saved(program, backend):
    def calls(f):
        w, seen = pt.tensor([0.5, -1.0, 2.0], requires_grad=True), []
        for k in range(4):
            x = pt.arange(6.0).reshape(2, 3) + k
            y = f(x, w)
            y.backward()
            seen.append((y.tolist(), x.tolist(), w.tolist(), w.grad.tolist()))
        return seen

    assert calls(pt.compile(program, backend=backend)) == calls(program)


def test_steps_that_clamp_are_captured():
    pt.manual_seed(0)
    model = nn.Linear(3, 1)
    optimizer = pt.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        loss = model(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for p in model.parameters():
            p.data.clamp_(-0.01, 0.01)
        return loss

    f = pt.compile(step)
    for k in range(3):
        before = _compile.counts["captures"]
        f(pt.ones(2, 3) * k)
        assert _compile.counts["captures"] - before == (k == 0)
    assert all((p.abs() <= 0.01).all() for p in model.parameters())
