"""Gradients of compiled and traced programs that a backward reaches in part: what nothing leads to gets None."""
import numpy as np
import pytest

import ptcore as pt


def program(kind):
    """A function of three tensors with three results, each of which leads to some of them."""
    if kind == "apart":
        return lambda a, b, c: (a.sin(), b.sqrt(), (c * c).exp())
    if kind == "shared":
        return lambda a, b, c: (a * b, (b * c).exp(), c.sqrt() * a.sqrt())
    if kind == "detached":
        return lambda a, b, c: (a * b.detach(), (b.detach() * c).exp(), c.sin() * a)
    if kind == "written":
        def write(a, b, c):
            y = a * 2
            y.mul_(b)
            return y, y.sqrt() * c, b.log() * c
        return write
    if kind == "several":
        return lambda a, b, c: (*(a * b).topk(2), (b * c).max(0)[0])[::1]
    return lambda a, b, c: (pt.nn.functional.dropout(a * b, 0.5), b.sqrt() * c, c.exp())


MASKS = [m for m in range(1, 8)]


def gradients(f, mask, create_graph=False):
    leaves = [pt.tensor([0.0, 2.0, 3.0]).requires_grad_(), pt.tensor([1.0, 0.0, 2.0]).requires_grad_(),
              pt.tensor([2.0, 0.5, 0.0]).requires_grad_()]
    pt.manual_seed(3)
    outs = [x for x in f(*leaves) if x.requires_grad]
    asked = [x.sum() for k, x in enumerate(outs) if mask >> k & 1]
    if not asked:
        return []
    return pt.autograd.grad(asked, leaves, allow_unused=True, create_graph=create_graph)


@pytest.mark.parametrize("kind,wrap", [
    *[(kind, "compile") for kind in ("apart", "shared", "detached", "written", "several", "random")],
    *[(kind, "trace") for kind in ("apart", "shared", "written", "several")]])
def test_each_choice_of_results(kind, wrap):
    f = program(kind)
    g = pt.compile(f) if wrap == "compile" else pt.jit.trace(f, tuple(pt.ones(3) for _ in range(3)), check_trace=False)
    for create_graph in (False, True):
        for _ in range(2):
            for mask in MASKS:
                got, want = gradients(g, mask, create_graph), gradients(f, mask, create_graph)
                for a, b in zip(got, want, strict=True):
                    assert (a is None) == (b is None), (mask, got, want)
                    if b is not None:
                        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def test_optimizer_leaves_unreached_parameters_alone():
    a, b = pt.nn.Linear(2, 1), pt.nn.Linear(2, 1)
    before = b.weight.detach().clone()
    optimizer = pt.optim.AdamW([*a.parameters(), *b.parameters()], 0.1, weight_decay=0.5)
    f = pt.compile(lambda x: (a(x), b(x)))
    for _ in range(3):
        optimizer.zero_grad()
        f(pt.ones(1, 2))[0].sum().backward()
        optimizer.step()
    assert b.weight.grad is None
    np.testing.assert_array_equal(b.weight.detach().numpy(), before.numpy())


def test_gradients_in_part_are_not_computed_again():
    """The saved values of the first graph serve: the program does not run a second time."""
    calls = []

    @pt.library.custom_op("unreached::seen", mutates_args=())
    def seen(x: pt.Tensor) -> pt.Tensor:
        calls.append(1)
        return x.clone()
    seen.register_fake(lambda x: pt.empty_like(x))
    seen.register_autograd(lambda ctx, g: g)
    f = pt.compile(lambda a, b: (seen(a) * b, b.exp()))
    a, b = pt.ones(2).requires_grad_(), pt.ones(2).requires_grad_()
    for k in range(1, 4):
        f(a, b)[0].sum().backward()
        assert len(calls) == k, calls
