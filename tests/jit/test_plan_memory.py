"""Where a plan's temporary memory lies: in one arena, in results that are written later, over operands that are read
for the last time; and random programs of kernels, elementwise steps and calls from Python, bit for bit what eager
calls give."""
import random

import numpy as np
import pytest

import ptcore as pt
from ptcore.fx.experimental.proxy_tensor import make_fx
from ptcore.jit._plan import Planned


def planned(f, *xs, runs=3):
    """The plan of a function, whose results are those of eager calls, on other data in each run."""
    made = Planned(make_fx(f)(*xs))
    for k in range(runs):
        given = [x + k if x.dtype.is_floating_point else x for x in xs]
        got, want = made(*given), f(*given)
        got, want = [r if isinstance(r, tuple) else (r,) for r in (got, want)]
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
        del got
    (plan,) = made.plans
    return plan


X = pt.randn(4, 8, 32, 32)                  # 128 KiB
MAP = X.numel() * 4


def test_a_step_writes_over_what_it_reads_last():
    plan = planned(lambda x: x.cumsum(0).exp().cumsum(1).tanh().cumsum(2).sum(), X)
    assert plan.arena_bytes <= 2 * MAP + 1024
    plan = planned(lambda x: x.cumsum(0).exp().sum(), X)
    assert plan.arena_bytes <= MAP + 1024


def test_results_hold_what_is_done_before_them():
    plan = planned(lambda x: x.cumsum(0).cumsum(1).cumsum(2).cumsum(3), X)
    assert plan.arena_bytes <= MAP
    plan = planned(lambda x: x.cumsum(0).cumsum(1), X)
    assert plan.arena_bytes <= MAP
    plan = planned(lambda x: x.cumsum(0).exp(), X)
    assert plan.arena_bytes == 0
    plan = planned(lambda x: (x.cumsum(0).exp(), x.cumsum(1).exp(), x.cumsum(2)), X)
    assert plan.arena_bytes == 0


def test_what_is_read_again_is_not_written_over():
    def f(x):
        y = x.cumsum(0)
        z = y.exp()
        return z.cumsum(1) + y
    planned(f, X)

    def twice(x):
        y = x.cumsum(0)
        return (y.exp() * y.cumsum(1)).sum(0), y.tanh()
    planned(twice, X)


def test_groups_store_before_they_read():
    """A result that is written while an operand is still to be read must not lie over it."""
    def f(x):
        y = x.cumsum(0)
        a = y * 2 + 1
        b = a * y - 3
        return a, b.cumsum(1), (b * y).cumsum(2)
    planned(f, X)

    def chain(x):
        y = x.cumsum(0)
        a = y + 1
        b = (a * 2 + y).relu() * y
        return a.cumsum(1), b
    planned(chain, X)


def test_parts_and_other_sizes():
    planned(lambda x: x.cumsum(0)[1:].exp().cumsum(0), X)
    planned(lambda x: x.cumsum(0).double().exp().cumsum(1).float(), X)
    planned(lambda x: x.cumsum(0).flip(0).add(1).cumsum(1), X)
    planned(lambda x: x.cumsum(0).transpose(0, 1).exp().contiguous().cumsum(0), X)


@pytest.mark.parametrize("shape", [(1, 8, 1, 1), (8, 1, 1), (1, 1, 32, 1), (4, 1, 1, 1), (1, 8, 32, 1), (1, 8, 1, 32),
                                   (4, 1, 32, 1), (32,), (1,)])
def test_channels_are_in_groups(shape):
    w, b = pt.randn(shape), pt.rand(shape) + 1
    plan = planned(lambda x, w, b: ((x - w) * b + w).relu(), X, w, b)
    repeated = shape not in ((1, 8, 1, 32), (4, 1, 32, 1))
    assert (len(plan) == 1) == repeated, plan.steps


def test_the_first_call_runs_each_kernel_once():
    """A recording runs no kernel: what is drawn is drawn once, and no memory is touched before the plan runs."""
    f = Planned(make_fx(lambda x: pt.nn.functional.dropout(x.cumsum(0), 0.5).exp())(X))
    pt.manual_seed(3)
    first, draw = f(X), pt.rand(())
    pt.manual_seed(3)
    assert pt.equal(first, pt.nn.functional.dropout(X.cumsum(0), 0.5).exp()) and pt.equal(draw, pt.rand(()))
    assert len(f.plans) == 1


def test_errors_of_a_first_call():
    """The error is that of the graph run op by op, and nothing is left of the recording."""
    index = pt.tensor([0, 9])
    f = Planned(make_fx(lambda x, i: x.cumsum(0).index_select(0, i) + pt.rand(()))(X, pt.tensor([0, 1])))
    pt.manual_seed(3)
    with pytest.raises(IndexError, match="index_select"):
        f(X, index)
    assert not f.plans and pt.default_generator.get_offset() == 0
    assert f(X, pt.tensor([1, 0])).shape == (2, 8, 32, 32) and len(f.plans) == 1


def test_what_python_reads_stays():
    """Work in Python reads memory that no step behind it reads any more."""
    def f(x):
        y = (x * 2 + 1).cumsum(0).int().flatten().sort()[0]
        a = (x + 3).cumsum(0).int().flatten().sort()[0]
        c = ((a * 2).sort()[0] * 3).sort()[0]
        return c.sum() + (y // (y * 0 + 3)).sum(), c
    plan = planned(f, X)
    assert "" in plan.steps                  # it pauses


ROWS = {
    "cumsum": lambda r, a: a.cumsum(r.randrange(4)), "flip": lambda r, a: a.flip(r.randrange(4)),
    "sort": lambda r, a: a.sort(r.randrange(4))[0], "softmax": lambda r, a: a.softmax(r.randrange(4)),
    "roll": lambda r, a: a.roll(r.randrange(5), r.randrange(4)), "exp": lambda r, a: (a * 0.1).clamp(-2, 2).exp(),
    "tanh": lambda r, a: a.tanh(), "relu": lambda r, a: a.relu(), "neg": lambda r, a: -a,
    "half": lambda r, a: a.half().float(), "double": lambda r, a: a.double().sin().float(),
    "number": lambda r, a: a * r.choice([2, 0.5]) - 1, "rows": lambda r, a: a - a.mean(r.randrange(4), keepdim=True),
    "python": lambda r, a: (a * 3).clamp(-99, 99).int().div(3, rounding_mode="floor").float(),
}
PAIRS = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b.tanh(),
         "max": lambda a, b: a.maximum(b), "where": lambda a, b: pt.where(a > b, a, b * 0.5)}


def program(seed):
    """A program of some values, of which later ones are made of any before; some are returned."""
    r = random.Random(seed)
    steps = []
    for k in range(r.randrange(4, 22)):
        if r.randrange(3):
            at = max(0, k + 2 - r.choice([1, 1, 1, 2, 5]))
            steps.append(("row", r.choice(sorted(ROWS)), at, r.randrange(1 << 30)))
        else:
            steps.append(("pair", r.choice(sorted(PAIRS)), r.randrange(k + 2), r.randrange(k + 2)))
    n = len(steps) + 2
    outs = sorted({n - 1, *[r.randrange(n) for _ in range(r.randrange(3))]})

    def f(x, w):
        values = [x, w]
        for kind, name, i, j in steps:
            if kind == "row":
                values.append(ROWS[name](random.Random(j), values[i]))
            else:
                values.append(PAIRS[name](values[i], values[j]))
        return tuple([values[k] * 1 if k < 2 else values[k] for k in outs])
    return f


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_random_programs(first):
    for seed in range(first, first + 20):
        shape = (2, 5, 33, 70) if seed % 2 else (3, 4, 5, 6)
        g = pt.Generator().manual_seed(seed)
        x, w = pt.randn(shape, generator=g), pt.randn(*[n if seed >> k & 4 else 1 for k, n in enumerate(shape)],
                                                      generator=g)
        f = program(seed)
        made = Planned(make_fx(f)(x, w))
        for k in range(3):
            for a, b in zip(made(x + k, w), f(x + k, w), strict=True):
                np.testing.assert_array_equal(a.numpy(), b.numpy(), err_msg=f"program {seed}, run {k}")


def test_writes_to_inputs_are_counted_once():
    def f(x, w):
        x.mul_(2)
        w[0] = x.sum()
        return x + w
    made = Planned(make_fx(f)(pt.ones(3), pt.ones(3)))
    for _ in range(3):
        x, y, w, v = pt.arange(3.0), pt.arange(3.0), pt.ones(3), pt.ones(3)
        assert pt.equal(made(x, w), f(y, v)) and pt.equal(x, y) and pt.equal(w, v)
        assert (x._version, w._version) == (y._version, v._version)
    index = pt.tensor([0, 9])
    g = Planned(make_fx(lambda x, i: (x.mul_(2), x.index_select(0, i))[1])(pt.ones(3), pt.tensor([0, 1])))
    x = pt.ones(3)
    with pytest.raises(IndexError):
        g(x, index)
    assert x.tolist() == [2.0, 2.0, 2.0]            # written once
