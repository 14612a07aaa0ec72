"""How often programs are captured, and in how many graphs: as torch.compile with a backend that counts."""
import functools

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.parity, pytest.mark.slow]


def branch(t, x):
    if x.sum() > 0:
        return x.sin() + 1
    return x.cos() - 1


def scaled(t, x, k):
    return x * k + k


def by_word(t, x, word):
    return x.sin() if word == "sin" else x.cos()


def by_size(t, x):
    return x * 2 if x.shape[0] > 5 else x.reshape(-1) + 1


def nested(t, xs, table):
    return [x * table["k"] for x in xs]


def matmul(t, x, w):
    return (x @ w).relu().sum(0)


def no_grad(t, x):
    with t.no_grad():
        y = x * 2
    return y + x


def called(t, x, f):
    return f(x)


def multiplied(k):
    return lambda x: x * k


def with_default(k):
    def f(x, n=k, *, w=k):
        return x * n + w
    return f


def power(k):
    def go(x, n=3):
        return x if n == 0 else go(x * k, n - 1)
    return go


def around(f):
    return lambda x: f(x) + f(x + 1)


def partial(k):
    return functools.partial(lambda a, x, b: a * x + b, k, b=k)


class Scale:
    def __init__(self, k):
        self.k = k

    def apply(self, x):
        return x * self.k


def ramp(n, t, scale=1.0):
    return (t.arange(float(n)) + 1) * scale


@pytest.mark.parametrize(("f", "calls"), [
    (branch, [lambda t: (ramp(3, t),), lambda t: (ramp(3, t, 2),)]),
    (scaled, [lambda t: (ramp(3, t), 0.5), lambda t: (ramp(3, t), 0.25), lambda t: (ramp(3, t), 1.5)]),
    (scaled, [lambda t: (ramp(3, t), 3), lambda t: (ramp(3, t), 4), lambda t: (ramp(3, t), 5)]),
    (by_word, [lambda t: (ramp(3, t), "sin"), lambda t: (ramp(3, t), "cos"), lambda t: (ramp(3, t), "sin")]),
    (by_size, [lambda t: (ramp(3, t),), lambda t: (ramp(4, t),), lambda t: (ramp(9, t),), lambda t: (ramp(5, t),)]),
    (nested, [lambda t: ([ramp(3, t)], {"k": 2.0}), lambda t: ([ramp(3, t)] * 2, {"k": 2.0})]),
    (matmul, [lambda t, n=n: (ramp(4 * n, t).reshape(n, 4), ramp(8, t).reshape(4, 2)) for n in (3, 5, 7, 1, 6)]),
    *[(called, [lambda t, k=k, make=make: (ramp(3, t), make(k)) for k in (2.0, 2.0, 2.0, 3.0, 4.0, 2.0)]) for make in (
        multiplied, with_default, power, partial, lambda k: Scale(k).apply, lambda k: around(multiplied(k)))],
    (called, [lambda t, k=k: (ramp(3, t), multiplied(ramp(3, t, k))) for k in (2.0, 3.0, 4.0)]),
    (called, [lambda t, k=k: (ramp(3, t), (lambda x: x + 1) if k else (lambda x: x - 1)) for k in (0, 1, 0, 1, 1)]),
    (no_grad, [lambda t: (ramp(3, t).requires_grad_(),), lambda t: (ramp(3, t),)])],
    ids=["branch", "floats", "ints", "words", "sizes", "nested", "matmul", "cells", "defaults", "itself", "partial",
         "methods", "functions", "tensors", "codes", "no_grad"])
def test_captures(f, calls):
    graphs = {"torch": 0, "ptcore": 0}
    results = {"torch": [], "ptcore": []}
    for name, t in (("torch", torch), ("ptcore", pt)):
        def backend(module, inputs, name=name):
            graphs[name] += 1
            return module.forward
        if name == "torch":
            torch._dynamo.reset()
        compiled = t.compile(lambda *args, t=t: f(t, *args), backend=backend)
        for make in calls:
            out = compiled(*make(t))
            results[name] += [x.tolist() for x in (out if isinstance(out, list) else [out])]
    for a, b in zip(results["torch"], results["ptcore"], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert graphs["ptcore"] <= graphs["torch"]
