"""Traced functions and modules inside scripted ones: results, gradients, names of parameters, files."""
import copy
import sys
from pathlib import Path

import pytest

import ptcore as pt
from ptcore import jit, nn

sys.path.insert(0, str(Path(__file__).parent))
from _script_outcomes import again

X, Y = pt.randn(4, 5), pt.randn(4, 5)
double = jit.trace(lambda a: a * 2, X)
pairs = jit.trace(lambda p, q: (p[0] * 2 + q[0], (p[1], [q[1]])), ((X, Y), [X, Y]))
named = jit.trace(lambda d: {"a": d["x"] + d["y"], "b": d["x"]}, ({"x": X, "y": Y},), strict=False)


class Branches(nn.Module):
    def __init__(self, inside):
        super().__init__()
        self.inside = inside

    def forward(self, x):
        if bool(x.sum() > 0):
            x = -x
        for _ in range(2):
            x = self.inside(x)
        return x


def test_modules():
    base = nn.Sequential(nn.Linear(5, 5), nn.LayerNorm(5), nn.Dropout(0.5)).eval()
    traced = jit.trace(base, X)
    assert jit.script(traced) is traced
    net, want = jit.script(Branches(traced).eval()), Branches(base).eval()
    for x in (X, -X, pt.randn(7, 5)):
        for m in (net, again(net), copy.deepcopy(net), jit.freeze(net), again(jit.freeze(net)), pt.compile(net)):
            assert pt.equal(m(x), want(x))
    assert [n for n, _ in net.named_parameters()] == [n for n, _ in want.named_parameters()]
    assert net.inside.get_parameter("0.weight") is traced.get_parameter("0.weight")
    net(X).square().sum().backward()
    want(X).square().sum().backward()
    for p, q in zip(net.parameters(), want.parameters(), strict=True):
        assert pt.equal(p.grad, q.grad)
    with pytest.raises(RuntimeError):
        net(pt.ones(4, 6))


class TwoMethods(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(5, 5)

    def forward(self, x):
        return self.l(x)

    def other(self, x):
        return self.l(x) * 2


class Calls(nn.Module):
    def __init__(self, t):
        super().__init__()
        self.t = t

    def forward(self, x, n: int):
        for _ in range(n):
            x = self.t.other(x)
        return self.t(x)


def test_methods():
    m = TwoMethods()
    net = jit.script(Calls(jit.trace_module(m, {"forward": X, "other": X})))
    for made in (net, again(net)):
        assert pt.equal(made(X, 2), m(m.other(m.other(X))))


def test_functions():
    @jit.script
    def f(x, y, n: int):
        for _ in range(n):
            x = double(x)
        first, (second, rest) = pairs((x, y), [x, y])
        d = named({"x": x, "y": y})
        return first, second, rest[0], d["a"], d["b"], jit.wait(jit.fork(double, y))
    x = X * 4
    want = (x * 2 + x, Y, Y, x + Y, x, Y * 2)
    for g in (f, again(f)):
        for a, b in zip(g(X, Y, 2), want, strict=True):
            assert pt.equal(a, b)


def test_what_is_refused():
    c = pt.ones(5)
    has_tensors = jit.trace(lambda a: a + c, X)

    def f(x):
        return has_tensors(x)
    with pytest.raises(RuntimeError, match="has tensors of its own") as caught:
        jit.script(f)
    assert "return has_tensors(x)" in str(caught.value)
    sizes = jit.trace(lambda a: a.max(0), X)

    def g(x):
        return sizes(x)
    with pytest.raises(RuntimeError, match="gives a max"):
        jit.script(g)

    @jit.script
    def one(x):
        return pairs((x, x), [x])
    with pytest.raises(ValueError, match="not enough values"):
        one(X)

    def wrong(x):
        return double(x, x)
    with pytest.raises(RuntimeError, match="argument"):
        jit.script(wrong)
