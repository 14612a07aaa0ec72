"""Random programs under nested transformations, in float64.

A program is one to eight steps on a vector: ops, views, writes, broadcasting, constants made inside, a custom Function.
The oracle takes no transformation: a loop over the samples, the tape, and a backward of a backward for forward mode.
More programs than the suite runs: ``PTCORE_TEST_PROGRAMS=100000`` (from the seed ``PTCORE_TEST_SEED`` on).
"""
import os
import random

import numpy as np
import pytest

import ptcore as pt
from ptcore.autograd import Function
from ptcore.autograd import grad as tape_grad
from ptcore.func import grad, jacfwd, jacrev, jvp, vjp, vmap

pytestmark = pytest.mark.core

N = 4
PROGRAMS = int(os.environ.get("PTCORE_TEST_PROGRAMS", "2000"))
SEED = int(os.environ.get("PTCORE_TEST_SEED", "0"))
PARTS = 20


class Twice(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, c):
        return x * x * c

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.c = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x * 2 * ctx.c, None

    @staticmethod
    def jvp(ctx, t, _):
        (x,) = ctx.saved_tensors
        return t * x * 2 * ctx.c


def bounded(x):
    return pt.tanh(x)


def written(x, i, value):
    y = x.clone()
    y[i] = value
    return y


def through_views(x):
    y = x * 1.5
    z = y.view(2, 2)
    z.t()[0].mul_(x[:2])
    z[1].add_(x[1:3].sin())
    return y + z.reshape(-1)


def onto_constants(x):
    y = pt.zeros_like(x)
    y[1:].add_(x[:-1])
    y.select(0, 0).copy_(x.sum())
    return y


def new_of(x):
    y = x.new_ones(2, N)
    y[0] = x
    y[1].mul_(x.cos())
    return y.prod(0)


def strided(x):
    return x.as_strided((2, 2), (1, 2), x.storage_offset()).reshape(-1) * x


def accumulated(x):
    return pt.zeros_like(x).index_add(0, pt.tensor([0, 2, 2, 1]), x)


# Each takes the vector and a random source of numbers that are the same at every run.
STEPS = [
    lambda x, r: x * r.uniform(-2, 2) + 0.1, lambda x, r: x.sin(), lambda x, r: bounded(x), lambda x, r: x * x * 0.5,
    lambda x, r: (x * 0.3).exp(), lambda x, r: x.flip(0) - x, lambda x, r: x / (2 + x.cos()), lambda x, r: x.softmax(0),
    lambda x, r: x.cumsum(0) * 0.5, lambda x, r: x.roll(r.randrange(N), 0) * x, lambda x, r: x - x.mean(),
    lambda x, r: (x[:, None] * x[None] * 0.2).sum(r.randrange(2)), lambda x, r: x.view(2, 2).t().reshape(-1) + x,
    lambda x, r: pt.cat([x[2:], x[:2] * 2]), lambda x, r: x[pt.tensor([3, 0, 0, 1])] * 0.7,
    lambda x, r: x.sort().values,
    lambda x, r: pt.where(x > 0, x, x.sin() * 0.2), lambda x, r: pt.arange(N, dtype=x.dtype) * x,
    lambda x, r: pt.eye(N, dtype=x.dtype).mv(x) + pt.ones(N, dtype=x.dtype).outer(x).sum(0) * 0.1,
    lambda x, r: written(x, r.randrange(N), x.sum() * 0.3), lambda x, r: through_views(x),
    lambda x, r: onto_constants(x),
    lambda x, r: new_of(x), lambda x, r: Twice.apply(x, 0.5), lambda x, r: x.clone().mul_(x).add_(1).log_(),
    lambda x, r: x.expand(3, N).sum(0) * 0.3, lambda x, r: x.unfold(0, 2, 2).prod(1).repeat(2),
    lambda x, r: pt.stack(x.unbind(0)[::-1]).mul(x), lambda x, r: accumulated(x), lambda x, r: x.detach() * x,
    lambda x, r: pt.nn.functional.layer_norm(x, (N,)), lambda x, r: pt.nn.functional.pad(x[1:], (0, 1), value=0.5) * x,
    lambda x, r: x.max() * x, lambda x, r: strided(x.contiguous()), lambda x, r: pt.einsum("i,j->j", x, x) * 0.2,
    lambda x, r: x.norm() * x * 0.3,
    lambda x, r: pt.linalg.solve(pt.eye(N, dtype=x.dtype) * 3 + x[:, None] * x[None] * 0.1, x),
    lambda x, r: x.gather(0, x.argsort()) * x, lambda x, r: x.masked_fill(x > 0.5, 0.25) + x,
]


def program(seed):
    """A function of a vector to one of its size."""
    source = random.Random(seed)
    steps = [(source.choice(STEPS), source.random()) for _ in range(source.randint(1, 8))]

    def f(x):
        for step, number in steps:
            x = step(x, random.Random(number))
        return bounded(x)
    return f


# -- transformations and what they are held against: both take a function of a vector ----------------------

def leaf_of(x):
    return x.view_as(x) if x.requires_grad else x.detach().requires_grad_()


def tape_gradient(f, x):
    with pt.enable_grad():
        y = leaf_of(x)
        out = f(y).sum()
        if not out.requires_grad:
            return pt.zeros_like(x)
        return tape_grad(out, y, create_graph=True, materialize_grads=True)[0]


def tape_jvp(f, x, t):
    with pt.enable_grad():
        y = leaf_of(x)
        out = f(y)
        u = pt.zeros_like(out).requires_grad_()
        if not out.requires_grad:
            return pt.zeros_like(out)
        (g,) = tape_grad(out, y, u, create_graph=True, materialize_grads=True)
        if not g.requires_grad:
            return pt.zeros_like(out)
        return tape_grad(g, u, t, create_graph=True, materialize_grads=True)[0]


def by_rows(f, x):
    return pt.stack([f(x * s) for s in (1.0, 0.8, 1.1)])


def scales(x):
    return pt.tensor([1.0, 0.8, 1.1], dtype=x.dtype)


PAIRS = {
    "grad": (lambda f: lambda x: grad(lambda y: f(y).sum())(x), lambda f: lambda x: tape_gradient(f, x)),
    "vmap": (lambda f: lambda x: vmap(lambda s: f(x * s))(scales(x)).sum(0),
             lambda f: lambda x: by_rows(f, x).sum(0)),
    "vmap in": (lambda f: lambda x: vmap(f, 1, 1)(x[:, None] * scales(x)).sum(1),
                lambda f: lambda x: by_rows(f, x).sum(0)),
    "jvp": (lambda f: lambda x: jvp(f, (x,), (x.detach().cos(),))[1],
            lambda f: lambda x: tape_jvp(f, x, x.detach().cos())),
    "jvp of x": (lambda f: lambda x: jvp(f, (x,), (x.cos(),))[1], lambda f: lambda x: tape_jvp(f, x, x.cos())),
    "vjp": (lambda f: lambda x: vjp(f, x)[1](x * 2)[0],
            lambda f: lambda x: tape_gradient(lambda y: f(y) * (x * 2), x)),
    "jacrev": (lambda f: lambda x: jacrev(f)(x).sum(0), lambda f: lambda x: tape_gradient(f, x)),
    "jacfwd": (lambda f: lambda x: jacfwd(f)(x).sum(0), lambda f: lambda x: tape_gradient(f, x)),
}


def check(seed):
    source = random.Random(-1 - seed)
    names = [source.choice(list(PAIRS)) for _ in range(source.randint(1, 3))]
    f = g = program(seed)
    for name in names:
        f, g = PAIRS[name][0](f), PAIRS[name][1](g)
    x = pt.tensor([source.uniform(-1, 1) for _ in range(N)], dtype=pt.float64)
    kept = x.clone()
    got, want = f(x), g(x).detach()
    assert not got.requires_grad and x.equal(kept)
    if not bool(want.isfinite().all()):     # a norm of what is 0 but for rounding, or the like
        return names
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6, atol=1e-8 * (1 + float(want.abs().max())))
    return names


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.outer
def test_programs(part):
    for seed in range(SEED + part, SEED + PROGRAMS, PARTS):
        try:
            check(seed)
        except Exception as e:
            raise AssertionError(f"program {seed}: {type(e).__name__}: {e}") from e
