"""The order of autograd hooks of every two and three kinds, what each sees, and what becomes of the gradient."""
import itertools

import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

KINDS = {"leaf": ("hook", "post"), "result": ("hook", "node", "pre", "retain"), "captured": ("hook", "node", "pre")}


def plain(gradients):
    return [None if g is None else g.tolist() for g in gradients]


def attach(t, kind, tag, seen):
    """A hook that notes what it gets, and changes it if it may."""
    def changed(g):
        seen.append((tag, g.tolist()))
        return g * 2

    def before(gradients):
        seen.append((tag, plain(gradients)))
        return tuple(g * 10 for g in gradients)

    if kind == "hook":
        t.register_hook(changed)
    elif kind == "post":
        t.register_post_accumulate_grad_hook(lambda p: seen.append((tag, p.grad.tolist())))
    elif kind == "node":
        t.grad_fn.register_hook(lambda after, outputs: seen.append((tag, plain(after), plain(outputs))))
    elif kind == "pre":
        t.grad_fn.register_prehook(before)
    else:
        t.retain_grad()


def events(m, where, kinds):
    seen = []
    x = m.ones(2, requires_grad=True)
    y = x * 2
    for i, kind in enumerate(kinds):
        attach(x if where == "leaf" else y, kind, f"{kind} {i}", seen)
    out = (y * 3).sum() + (y * 0).sum()
    if where == "captured":
        # each alone: of both torch takes that of y before its hooks
        return seen, [plain(m.autograd.grad(out, t, retain_graph=True)) for t in (x, y)]
    out.backward()
    return seen, x.grad.tolist(), y.grad.tolist() if where == "result" and y.retains_grad else None


@pytest.mark.parametrize(("where", "kinds"), [
    (where, kinds) for where, names in KINDS.items() for n in (1, 2, 3)
    for kinds in itertools.product(names, repeat=n)])
def test_order(where, kinds):
    assert events(pt, where, kinds) == events(torch, where, kinds)


@pytest.mark.parametrize("kinds", [*itertools.permutations(("hook", "pre", "node"))])
def test_of_several_outputs(kinds):
    found = []
    for m in (pt, torch):
        seen = []
        x = m.arange(4.0, requires_grad=True)
        a, b = (x * 1).split(2)
        for i, kind in enumerate(kinds):
            attach(b, kind, f"{kind} {i}", seen)
        (a * 2 + b * 3).sum().backward()
        found.append((seen, x.grad.tolist()))
    assert found[0] == found[1]
