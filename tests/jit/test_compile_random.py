"""Programs of random tensor steps: views, writes in place, branches and numbers from data, random numbers, modes, sizes
that vary. Results, inputs, versions, gradients and the generator are eager's."""
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ptcore as pt
from ptcore.jit.capture import guards

EXAMPLES = int(os.environ.get("PTCORE_GUARD_EXAMPLES", "1000"))
STEPS = ("add", "mul", "add_", "mul_", "relu_", "view", "first", "flip", "branch", "branch_else", "item", "count",
         "mask", "dropout", "no_grad", "detach", "loop", "size", "number", "cat", "set", "where", "sum", "keep", "swap",
         "detached_write", "copy", "transposed", "tolist", "enable", "grad")


def program(steps, x, w, k):
    kept, y = [], x
    for name in steps:
        if name == "add":
            y = y + w[0]
        elif name == "mul":
            y = y * k
        elif name == "add_":
            y.add_(1)
        elif name == "mul_":
            y = (y * 1).mul_(w[1])
        elif name == "relu_":
            y = (y + 0).relu_()
        elif name == "view":
            y = y.reshape(-1)
        elif name == "first":
            y = y[1:] if y.shape[0] > 2 else y
        elif name == "flip":
            y = y.flip(0)
        elif name == "branch":
            if y.sum() > 0:
                y = y * 2
        elif name == "branch_else":
            if (y * w[0]).max() > 1:
                y = y - w[1]
                kept.append(y)
            else:
                y = y.tanh() + 1
        elif name == "item":
            y = y * (1 if y.sum().item() > 0.5 else -1)
        elif name == "count":
            y = y + int((y > 0).sum())
        elif name == "mask":
            y = pt.cat([y, y[y > 0].sum().reshape(1)])
        elif name == "dropout":
            y = pt.nn.functional.dropout(y, 0.5) + pt.rand(1)
        elif name == "no_grad":
            with pt.no_grad():
                kept.append(y * w[0])
        elif name == "enable":
            with pt.no_grad(), pt.enable_grad():
                y = y * w[1]
        elif name == "detach":
            y = y.detach() + w[0]
        elif name == "loop":
            while y.abs().sum() > 30:
                y = y / 4
        elif name == "size":
            y = y * y.shape[0] + y.numel()
        elif name == "number":
            y = y + k * 2 if k > 1 else y - k
        elif name == "cat":
            y = pt.cat([y, x.reshape(-1)])
        elif name == "set":
            y = y + 0
            y[0] = w[0]
        elif name == "where":
            y = pt.where(y > 0, y, w[1])
        elif name == "sum":
            y = y.sum().reshape(1) + w[0]
        elif name == "keep":
            kept.append(y)
        elif name == "swap":
            y = kept.pop() if kept else y
        elif name == "detached_write":
            z = (y * 2).detach()
            z.add_(1)
            kept.append(z)
        elif name == "copy":
            x.copy_(x * 0.5)
        elif name == "transposed":
            y = pt.stack([y, y * 2]).T[:, 1]
        elif name == "grad":
            z = y.detach().requires_grad_()
            with pt.enable_grad():
                (g,) = pt.autograd.grad((z * z * w[0]).sum(), z, create_graph=True)
            y = y + g
            kept.append(z)
        elif name == "tolist":
            y = y + len([v for v in y.tolist() if v > 0])
    return y, kept


def outcome(f, steps, n, k, values, needs):
    pt.manual_seed(0)
    x = pt.tensor((values * n)[:n])
    w = pt.tensor([0.5, 1.5], requires_grad="w" in needs)
    if "x" in needs:
        x.requires_grad_()
    given_ = x * 1 if "h" in needs else x
    try:
        y, kept = f(steps, given_, w, k)
    except (RuntimeError, IndexError) as error:
        return [type(error)]
    found = [y, *kept]
    wanted = [t for t in found if t.requires_grad]
    grads = []
    if wanted:
        leaves = [t for t in (x, w) if t.requires_grad]
        try:
            grads = [g for g in pt.autograd.grad([(t * t).sum() for t in wanted], leaves, allow_unused=True)]
        except RuntimeError as error:
            grads = [type(error)]
    return [*found, x, w, *grads, pt.rand(1), [t._version for t in (given_, w)], [t.requires_grad for t in found],
            [t.stride() for t in found], [any(t is s for s in (x, w, given_)) for t in found]]


def agree(a, b):
    assert len(a) == len(b)
    for s, t in zip(a, b):
        if isinstance(t, pt.Tensor):
            assert s.dtype is t.dtype
            np.testing.assert_array_equal(s.detach().numpy(), t.detach().numpy())
        else:
            assert s == t


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(st.sampled_from(STEPS), min_size=1, max_size=7).map(tuple),
       calls=st.lists(st.tuples(st.integers(1, 4), st.sampled_from([0.5, 1.5, 2.5, 2, 3]),
                                st.lists(st.sampled_from([-2.0, -0.5, 0.0, 1.0, 3.0]), min_size=1, max_size=3),
                                st.sampled_from(["", "w", "x", "xw", "xhw"])), min_size=2, max_size=6),
       slow=st.sampled_from([0, 4]))
@pytest.mark.filterwarnings("ignore:compile")
def test_random_programs(steps, calls, slow):
    before, guards.SLOW_CHECKS = guards.SLOW_CHECKS, slow
    compiled = pt.compile(program, backend="eager")
    try:
        for n, k, values, needs in calls:
            agree(outcome(compiled, steps, n, k, values, needs), outcome(program, steps, n, k, values, needs))
    finally:
        guards.SLOW_CHECKS = before
