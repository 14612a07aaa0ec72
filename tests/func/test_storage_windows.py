"""Random programs of ``as_strided``, views and writes, over arguments of every layout, under interpreters.

A window counts places of a storage, also those between, before and after the elements of its argument. The oracle is a
plain run: results, the whole storage afterwards, and gradients. More programs than the suite runs:
``PTCORE_TEST_PROGRAMS=5000`` (from the seed ``PTCORE_TEST_SEED`` on).
"""
import os
import random

import numpy as np
import pytest

import ptcore as pt
from ptcore.func import functionalize
from ptcore.fx.experimental.proxy_tensor import make_fx

pytestmark = pytest.mark.core

PLACES = 12
PROGRAMS = int(os.environ.get("PTCORE_TEST_PROGRAMS", "300"))
SEED = int(os.environ.get("PTCORE_TEST_SEED", "0"))
PARTS = 6
LAYOUTS = {
    "whole": lambda b: b, "table": lambda b: b.view(3, 4), "turned": lambda b: b.view(3, 4).t(),
    "gaps": lambda b: b[::2], "offset": lambda b: b[5:], "start": lambda b: b[:7], "gaps and offset": lambda b: b[1::3],
    "columns": lambda b: b.view(3, 4)[:, 1:3], "turned columns": lambda b: b.view(3, 4)[:, 1:3].t(),
    "reversed": lambda b: b[::-1], "one": lambda b: b[7], "block": lambda b: b.as_strided((2, 2), (5, 2), 1),
    "none": lambda b: b[3:3]}


def window(x, r, places):
    """A window in bounds; now and then one whose elements share places."""
    shape = r.choice([(), (1,), (2,), (3,), (4,), (2, 2), (3, 2), (2, 1, 2), (0,)])
    stride = tuple([r.choice([1, 2, 3, 4, 5, -1]) for _ in shape])
    reach = [(n - 1) * s for n, s in zip(shape, stride) if n]
    low, high = -sum(min(k, 0) for k in reach), places - 1 - sum(max(k, 0) for k in reach)
    if low > high:
        return x.as_strided((2,), (1,), r.randrange(places - 1))
    if r.random() < 0.2 and low <= x.storage_offset() <= high:
        return x.as_strided(shape, stride)
    return x.as_strided(shape, stride, r.randint(low, high))


def shares(x):
    places = np.zeros((), int)
    for n, s in zip(x.shape, x.stride()):
        places = places[..., None] + s * np.arange(n)
    return len(np.unique(places)) < places.size


def view(x, r):
    kind = r.randrange(7)
    if kind == 0 and x.ndim and x.shape[0]:
        return x[r.randrange(x.shape[0])]
    if kind == 1 and x.ndim:
        return x[r.randrange(2):]
    if kind == 2 and x.ndim > 1:
        return x.transpose(0, 1)
    if kind == 3:
        return x.unsqueeze(0)
    if kind == 4 and x.ndim:
        return x[::2]
    if kind == 5 and x.is_contiguous():
        return x.reshape(-1)
    return x[...]


def write(x, other, r):
    kind = r.randrange(5)
    if kind == 0:
        x.mul_(1.5)
    elif kind == 1:
        x.add_(other.sum())
    elif kind == 2:
        x.copy_(other.sum() * 0.5)
    elif kind == 3:
        x.fill_(r.randrange(9))
    else:
        x.sin_()


def program(seed, first=lambda x: (x, PLACES), inner=True):
    """A function of a tensor; each call makes the same choices. ``first`` gives what the program begins with, and how
    many places its storage has. ``inner``: whether windows are made of any tensor, not of the first alone."""
    def f(x):
        r = random.Random(seed)
        seen, out = [first(x)], []
        x = seen[0][0]
        if r.random() < 0.4:
            y = x * 1
            seen.append((y, y.numel()))
        for _ in range(r.randint(2, 8)):
            (y, room), kind = r.choice(seen), r.randrange(8)
            if kind < 3 and seen[0][1] > 1 and room > 1:
                y, room = (y, room) if inner else seen[0]
                seen.append((window(y, r, room), room))
            elif kind < 4:
                seen.append((view(y, r), room))
            elif kind < 7 and not shares(y):
                write(y, r.choice(seen)[0], r)
            elif kind == 7:
                out.append(y * 2)
        return (*out, *[y * 1 for y, _ in seen])
    return f


def run(f, layout, leaf=False):
    """Results, the storage afterwards and the gradient."""
    base = pt.arange(1., PLACES + 1, dtype=pt.float64)
    x = LAYOUTS[layout](base)
    if leaf:
        x = x.detach().requires_grad_()
    results = f(x)
    slope = None
    if leaf:
        total = sum([(y * (k + 1)).sin().sum() for k, y in enumerate(results)])
        slope = pt.autograd.grad(total, x, allow_unused=True)[0] if total.requires_grad else None
    return [y.detach().numpy() for y in (*results, base)] + ([] if slope is None else [slope.numpy()])


MAKERS = {"functional": lambda f, x: functionalize(f),
          "copies": lambda f, x: functionalize(f, remove="mutations_and_views"),
          "twice": lambda f, x: functionalize(functionalize(f)),
          "graph": lambda f, x: make_fx(functionalize(f))(x),
          "graph of copies": lambda f, x: make_fx(functionalize(f, remove="mutations_and_views"))(x),
          "fake graph": lambda f, x: make_fx(functionalize(f), tracing_mode="fake")(x),
          "make_fx": lambda f, x: make_fx(f)(x), "compile": lambda f, x: pt.compile(f)}


def check(maker, f, layout, leaf=False):
    base = pt.arange(2., PLACES + 2, dtype=pt.float64)
    want = run(f, layout, leaf)
    made = MAKERS[maker](f, LAYOUTS[layout](base))
    for _ in range(2):
        got = run(made, layout, leaf)
        assert len(got) == len(want)
        for g, w in zip(got, want):
            np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("maker", MAKERS)
def test_values(maker, part):
    for seed in range(SEED + part, SEED + PROGRAMS, PARTS):
        layout = random.Random(seed).choice(list(LAYOUTS))
        try:
            check(maker, program(seed), layout)
        except Exception as e:
            raise AssertionError(f"program {seed}, {layout}: {type(e).__name__}: {e}") from e


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("maker", MAKERS)
def test_gradients(maker, part):
    """Of what is made from the argument. Windows are those of a whole storage: others have no gradient where they leave
    their argument, as in PyTorch, until a write makes them windows of the base."""
    for seed in range(SEED + part, SEED + PROGRAMS, PARTS):
        layout = random.Random(seed).choice(list(LAYOUTS))
        try:
            check(maker, program(seed, lambda x: (x * 1, x.numel()), False), layout, True)
        except Exception as e:
            raise AssertionError(f"program {seed}, {layout}: {type(e).__name__}: {e}") from e
