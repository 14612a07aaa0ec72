"""Row groups of plans: kernels that work row by row with the elementwise steps around them, block by block of rows.

A group forms where its rows take half a megabyte and more; the sizes here leave a part of a block at the end.
"""
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_plan import recorded, same

import ptcore as pt
from ptcore._ops.functions import log_softmax_backward, softmax_backward
from ptcore._ops.plan.plan import Plan
from ptcore.nn import functional as F

ROWS, SIZE = 1201, 130

#: Kernels that take rows, with what is left of a row: the whole of it, or one element.
WHOLE = {
    "softmax": lambda x: F.softmax(x, -1),
    "log_softmax": lambda x: F.log_softmax(x, x.ndim - 1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "softmax_backward": lambda x: softmax_backward(x * 2, x, -1),
    "log_softmax_backward": lambda x: log_softmax_backward(x * 2, x, -1),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:]),
    "normalize": lambda x: F.normalize(x, dim=-1),
}
REDUCED = {
    "sum": lambda x: x.sum(-1, keepdim=True), "mean": lambda x: x.mean(-1, keepdim=True),
    "nansum": lambda x: x.nansum(-1, keepdim=True), "prod": lambda x: x.prod(-1, keepdim=True),
    "var": lambda x: x.var(-1, keepdim=True), "std": lambda x: x.std(-1, keepdim=True, correction=0),
    "norm": lambda x: x.norm(dim=-1, keepdim=True), "norm1": lambda x: x.norm(1, dim=-1, keepdim=True),
    "norm3": lambda x: x.norm(3, dim=-1, keepdim=True), "logsumexp": lambda x: x.logsumexp(-1, keepdim=True),
    "amax": lambda x: x.amax(-1, keepdim=True), "amin": lambda x: x.amin(-1, keepdim=True),
    "max": lambda x: x.max(-1, keepdim=True)[0], "argmax": lambda x: x.argmax(-1, keepdim=True),
    "min": lambda x: x.min(-1, keepdim=True)[1], "argmin": lambda x: x.argmin(-1, keepdim=True),
    "any": lambda x: (x > 1).any(-1, keepdim=True), "all": lambda x: (x > -9).all(-1, keepdim=True),
    "count_nonzero": lambda x: pt.count_nonzero(x > 0, -1).unsqueeze(-1),
}
FLOATS = (pt.float32, pt.float64, pt.float16, pt.bfloat16)


def data(*shape, dtype=pt.float32, seed=0):
    pt.manual_seed(seed)
    x = pt.randn(*shape)
    x.view(-1)[::1001] = float("inf")
    x.view(-1)[5::2003] = float("nan")
    return x.to(dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize("name", sorted({**WHOLE, **REDUCED}))
def test_kernels(name, dtype):
    kernel = {**WHOLE, **REDUCED}[name]

    def f(x):
        y = x * 2 + 1
        return kernel(y) * y + x, y
    plan = recorded(f, data(ROWS, SIZE, dtype=dtype))
    assert "rows" in plan.steps
    for seed in (1, 2):
        x = data(ROWS, SIZE, dtype=dtype, seed=seed)
        same(plan([x]), f(x))


@pytest.mark.parametrize("name", sorted(REDUCED))
@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 64, 300])
def test_short_rows(name, size):
    """Reductions of at most 16 elements take another way where there are many rows: they stay by themselves."""
    def f(x):
        return REDUCED[name](x.square()) * x
    rows = 400_000 // size
    plan = recorded(f, data(rows, size))
    assert size > 16 or "rows" not in plan.steps
    x = data(rows, size, seed=3)
    same(plan([x]), f(x))


def test_against_numpy():
    def f(x, w, b):
        y = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, correction=0) + 1e-5).sqrt()
        return y * w + b
    xs = [pt.randn(800, 257, dtype=pt.float64), pt.randn(257, dtype=pt.float64), pt.randn(257, dtype=pt.float64)]
    plan = recorded(f, *xs)
    assert plan.steps == ["rows"] and plan.arena_bytes == 0
    assert plan.work >= 2 * 800 * 257           # also of steps within row groups: a run releases the GIL
    x, w, b = (v.numpy() for v in xs)
    want = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b
    np.testing.assert_allclose(plan(xs)[0].numpy(), want, rtol=1e-12, atol=1e-12)


def test_leading_dims_and_trailing_dims():
    def softmax_of_heads(x, bias):
        return F.softmax(x * 0.125 + bias, -1) * 2

    def trailing(x, w):
        y = F.layer_norm(x + w, x.shape[-2:], w)
        return y - y.mean((-2, -1), keepdim=True), y.sum((2, 3)), y.amax((-1, 2))
    for f, xs, steps in ((softmax_of_heads, [(12, 4, 50, 70), (50, 70)], ["rows"]),
                         (softmax_of_heads, [(12, 5, 70, 70), (12, 1, 1, 70)], ["mul", "add", "rows"]),
                         (softmax_of_heads, [(12, 4, 53, 70), (4, 53, 1)], ["rows"]),
                         (softmax_of_heads, [(12, 4, 1201, 70), (1201, 70)], ["rows"]),
                         (softmax_of_heads, [(12000, 4, 70), (4, 70)], ["group", "rows"]),
                         (trailing, [(7, 40, 9, 70), (9, 70)], ["rows"])):
        plan = recorded(f, *[data(*s) for s in xs])
        assert plan.steps == steps
        xs = [data(*s, seed=4) for s in xs]
        same(plan(xs), f(*xs))


def test_group_norm_takes_samples():
    def f(x, w, b):
        return F.relu(F.group_norm(x * 2, 4, w, b)) + x
    for size in ((6, 6), (3, 5), (3, 1)):
        xs = [data(6000 // size[1], 8, *size), data(8), data(8)]
        plan = recorded(f, *xs)
        assert plan.steps == ["rows"]
        xs = [data(6000 // size[1], 8, *size, seed=1), data(8, seed=2), data(8, seed=3)]
        same(plan(xs), f(*xs))


def test_other_layouts_and_sizes_stay_by_themselves():
    def f(x):
        return F.softmax(x * 2, -1) + 1
    for x in (pt.randn(SIZE, ROWS).t(), pt.randn(ROWS, 2 * SIZE)[:, ::2], pt.randn(ROWS, SIZE).flip(0),
              pt.randn(3, SIZE), pt.randn(ROWS, SIZE).expand(2, ROWS, SIZE), pt.randn(0, SIZE)):
        same(recorded(f, x)([x + 0.5 if x.is_contiguous() else x]), [f(x + 0.5 if x.is_contiguous() else x)])

    def columns(x):
        return F.softmax(x * 2, 0) + x.sum(0)
    x = pt.randn(ROWS, SIZE)
    plan = recorded(columns, x)
    assert "rows" not in plan.steps
    same(plan([x]), columns(x))


def test_rows_that_are_large():
    """A row of more than half a megabyte, which no cache keeps beside others, is taken by itself."""
    def f(x):
        return F.softmax(x * 2, -1) + 1
    for size, group in ((30_000, True), (150_000, False)):
        x = pt.randn(5, size)
        plan = recorded(f, x)
        assert ("rows" in plan.steps) == group
        same(plan([x]), f(x))


def test_writes():
    def f(x, y):
        x.mul_(2)
        s = F.softmax(x, -1)
        y += s
        s.sub_(y.sum(-1, keepdim=True))
        x.copy_(s)
        return s
    xs = [pt.randn(ROWS, SIZE), pt.randn(ROWS, SIZE)]
    plan = recorded(f, *[x.clone() for x in xs])
    assert plan.steps == ["rows"]
    mine, theirs = [x.clone() for x in xs], [x.clone() for x in xs]
    same(plan(mine), f(*theirs))
    same(mine, theirs)


def test_what_stands_between():
    """Steps that need nothing of the group go before it; draws keep their places; what needs it ends it."""
    def f(x, w):
        y = x * 2 + 1
        d = F.dropout(w, 0.5)
        m = y.amax(-1, keepdim=True)
        e = F.dropout(w, 0.5)
        z = F.softmax(y - m, -1)
        t = z.t().contiguous()
        return z @ d, (z + t.t()) @ e, (z * m).sum(-1)
    xs = [pt.randn(ROWS, SIZE), pt.randn(SIZE, 4)]
    plan = recorded(f, *xs)
    assert "rows" in plan.steps
    pt.manual_seed(7)
    got = plan(xs)
    pt.manual_seed(7)
    same(got, f(*xs))


def test_temporary_memory_is_a_block():
    def f(x):
        y = x.exp() + 1
        z = F.log_softmax(y, -1)
        return (z * y).sum(-1)
    plan = recorded(f, pt.randn(4000, 512))
    assert plan.steps == ["rows"] and plan.arena_bytes == 0
    assert recorded(f, pt.randn(4000, 512), fuse=False).arena_bytes >= 4000 * 512 * 4

    def twice(x, w):            # the group's result lies where its operand was, which nobody reads again
        y = x @ w
        return (F.softmax(y + 1, -1) * 2) @ w
    plan = recorded(twice, pt.randn(1000, 256), pt.randn(256, 256))
    assert plan.steps == ["matmul", "rows", "matmul"] or "rows" in plan.steps
    assert plan.arena_bytes <= 1000 * 256 * 4 + 64
    xs = [pt.randn(1000, 256), pt.randn(256, 256)]
    same(plan(xs), twice(*xs))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads(threads):
    def f(x):
        y = F.gelu(x) + x
        return F.layer_norm(y, (96,)), y.sum(-1)
    x = data(20_000, 96)
    plan = recorded(f, x)
    want = f(x)
    before = pt.get_num_threads()
    pt.set_num_threads(threads)
    try:
        same(plan([x]), want)
        found = []
        workers = [threading.Thread(target=lambda k=k: found.append(recorded(f, x)([x]))) for k in range(3)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        assert len(found) == 3
        for got in found:
            same(got, want)
    finally:
        pt.set_num_threads(before)


def test_a_kernel_of_the_user_is_called_as_a_whole():
    """A kernel that was put in place of the package's is not known to work row by row."""
    out = subprocess.run([sys.executable, "-P", "-c", """
import ctypes
import ptcore as pt
from ptcore._ops.plan.plan import Plan
KERNEL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
calls = []
@KERNEL
def whole(call):
    calls.append(1)
    return 0
pt.ops.register_kernel("softmax", "cpu", ctypes.cast(whole, ctypes.c_void_p).value)
plan, x = Plan(), pt.randn(1201, 130)
plan.begin([x])
y = pt.softmax(x * 2, -1) + 1
plan.end([y])
plan([x])
print(plan.steps, len(calls))
"""], capture_output=True, text=True)
    assert out.stdout.strip() == "['mul', 'softmax', 'add'] 2", out.stderr


# -- programs ------------------------------------------------------------------------------------------

ELEMENTWISE = (
    lambda x, y, row, column: x * y, lambda x, y, row, column: x + row, lambda x, y, row, column: x - column,
    lambda x, y, row, column: (x * 2 + 1).relu(), lambda x, y, row, column: pt.where(x > y, row, column),
    lambda x, y, row, column: x / column * row, lambda x, y, row, column: x.tanh().to(pt.float64).to(x.dtype),
    lambda x, y, row, column: x.add_(y) if x.numel() == ROWS * SIZE else x + 1)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 59), st.integers(0, 50), st.integers(0, 50)), min_size=3, max_size=14),
       st.sampled_from(FLOATS[:3]))
def test_programs(steps, dtype):
    """Programs of rows: values are whole rows or one element of each."""
    kernels = [*WHOLE.values(), *REDUCED.values()]

    def f(x, row, column):
        values = [x, x * 1.5]
        for kind, a, b in steps:
            x, y = values[-1 - a % min(3, len(values))], values[b % len(values)]
            r = kernels[kind](x) if kind < len(kernels) and x.shape[-1] > 1 else \
                ELEMENTWISE[kind % len(ELEMENTWISE)](x, y, row, column)
            values.append(r.to(dtype) if r.shape[-1] in (1, SIZE) else x)
        return values[2:]

    def inputs(seed):
        return [data(ROWS, SIZE, dtype=dtype, seed=seed), data(SIZE, dtype=dtype, seed=seed + 1),
                data(ROWS, 1, dtype=dtype, seed=seed + 2)]
    np.seterr(all="ignore")
    plan = Plan()
    first = inputs(0)
    plan.begin(first)
    try:
        plan.end(f(*first), first)
    finally:
        plan.stop()
    mine, theirs = inputs(10), inputs(10)
    got, want = plan(mine), f(*theirs)
    same([*got, *mine], [*want, *theirs])
