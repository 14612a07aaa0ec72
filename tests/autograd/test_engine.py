"""The walk: what backward and grad return, who owns a gradient, re-entrance, threads, memory.

Expected values are worked out by hand; test_parity_autograd_walks.py compares more with torch.
"""

import gc
import itertools
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import ptcore as pt
from ptcore.autograd import Function, backward, grad

pytestmark = pytest.mark.core


def leaf(*values):
    return pt.tensor(list(values), dtype=pt.float64, requires_grad=True)


def values(t):
    return t.detach().numpy().tolist()


# -- who owns a gradient ----------------------------------------------------------------------


def memory_of(t):
    start = t.data_ptr()
    return start, start + t.numel() * t.element_size()


def assert_disjoint(tensors):
    spans = sorted(memory_of(t) for t in tensors)
    for (_, end), (start, _) in itertools.pairwise(spans):
        assert end <= start


class Twice(Function):
    """Hands one new tensor to both of its inputs."""

    @staticmethod
    def forward(ctx, x, y):
        return x + y

    @staticmethod
    def backward(ctx, g):
        h = g * 1
        return h, h


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: x + y,
        lambda x, y: x - y,
        lambda x, y: x * y,
        lambda x, y: Twice.apply(x, y),
        lambda x, y: pt.cat([x, y]),
        lambda x, y: pt.stack([x, y]),
        lambda x, y: (x + y).reshape(3, 1),
        lambda x, y: pt.where(pt.tensor([True, False, True]), x, y),
    ],
)
def test_no_two_grads_share_memory(f, create_graph):
    x, y = leaf(1, 2, 3), leaf(4, 5, 6)
    out = f(x, y)
    seed = pt.ones_like(out)
    out.backward(seed, create_graph=create_graph)
    assert_disjoint([x.grad, y.grad, seed, x, y])
    before = values(y.grad)
    with pt.no_grad():
        x.grad.zero_()
    assert values(y.grad) == before
    assert values(seed) == np.ones(seed.shape).tolist()


def test_matrix_product_gives_grads_of_their_own():
    a = pt.ones(2, 3, requires_grad=True)
    b = pt.ones(3, 2, requires_grad=True)
    (a @ b).sum().backward()
    assert_disjoint([a.grad, b.grad, a, b])


@pytest.mark.parametrize("f", [lambda x: x * 2, lambda x: x * x, lambda x: x.exp()])
def test_a_gradient_that_a_node_hook_keeps_is_not_taken(f):
    x = leaf(1, 2)
    y = f(x)
    kept = []
    y.grad_fn.register_hook(lambda gi, go: kept.extend(gi))
    y.sum().backward()
    expected = values(kept[0])
    x.grad.zero_()
    assert values(kept[0]) == expected
    assert expected != [0, 0]


def test_a_gradient_that_a_function_keeps_is_not_taken():
    kept = []

    class Keep(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            kept.append(g * 2)
            return kept[0]

    x = leaf(1, 2)
    Keep.apply(x).sum().backward()
    x.grad.zero_()
    assert values(kept[0]) == [2, 2]


def test_a_gradient_whose_memory_another_tensor_shows_is_not_taken():
    kept = []

    class Window(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            whole = pt.ones(4, dtype=pt.float64)
            kept.append(whole)
            return whole[:2]

    x = leaf(1, 2)
    Window.apply(x).sum().backward()
    x.grad.zero_()
    assert values(kept[0]) == [1, 1, 1, 1]


def test_the_seed_is_not_taken():
    x = leaf(1, 2)
    g = pt.ones(2, dtype=pt.float64)
    x.backward(g)
    x.grad.zero_()
    assert values(g) == [1, 1]


def test_accumulation_is_in_place_and_keeps_the_object():
    x = leaf(1, 2)
    (x * 2).sum().backward()
    first = x.grad
    (x * 2).sum().backward()
    assert x.grad is first
    assert values(first) == [4, 4]


def test_accumulation_under_create_graph_is_not_in_place():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    first = x.grad
    (x * x).sum().backward(create_graph=True)
    assert x.grad is not first
    assert values(first) == [2, 4]
    assert values(x.grad) == [4, 8]
    assert x.grad.requires_grad


# -- several roots, shared sub-graphs, inputs ---------------------------------------------------


def test_a_diamond_of_diamonds_visits_each_node_once():
    x = leaf(1.0)
    y = x
    for _ in range(40):
        y = y + y
    visits = []
    y.grad_fn.register_prehook(lambda g: visits.append(1))
    y.sum().backward()
    assert values(x.grad) == [2.0**40]
    assert len(visits) == 1


def test_roots_at_different_depths():
    x = leaf(2.0)
    y = x * 3
    z = y * y
    backward([y, z], [pt.ones(1).double(), pt.ones(1).double()])
    assert values(x.grad) == [3 + 2 * 6 * 3]


def test_inputs_leave_other_grads_alone():
    x, y = leaf(1.0), leaf(2.0)
    y.grad = pt.full((1,), 7.0, dtype=pt.float64)
    (x * y).sum().backward(inputs=x)
    assert values(x.grad) == [2]
    assert values(y.grad) == [7]


def test_inputs_must_require_grad():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="does not require grad"):
        (x * 2).sum().backward(inputs=[pt.ones(1)])
    assert x.grad is None


def test_grad_of_one_of_several_outputs():
    x = leaf(3.0, 1.0, 2.0)
    ordered, index = x.max(0)
    (g,) = grad(ordered, x)
    assert values(g) == [1, 0, 0]
    assert not index.requires_grad


def test_wrong_arguments():
    x = leaf(1.0)
    y = x * 2
    with pytest.raises(TypeError, match="tensors"):
        backward([y, 3])
    for wrong in ("text", 3, [3]):
        with pytest.raises(TypeError, match="gradients must be"):
            y.backward(wrong)
    with pytest.raises(RuntimeError, match="empty"):
        grad(y, [])
    with pytest.raises(RuntimeError, match="not have been used"):
        grad(y, leaf(1.0))
    assert x.grad is None


# -- re-entrance and exceptions -----------------------------------------------------------------


def test_backward_inside_a_function_backward():
    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with pt.enable_grad():
                y = x.detach().requires_grad_()
                (d,) = grad((y**3).sum(), y)
            return g * d

    x = leaf(2.0)
    y = x * 1
    (Inner.apply(y) + y).sum().backward()
    assert values(x.grad) == [13]


def test_backward_of_the_same_graph_inside_a_hook():
    x = leaf(2.0)
    y = x * x
    z = y * y
    inner = []

    def hook(g):
        if not inner:
            inner.append(None)
            inner[0] = grad(total, x, retain_graph=True)[0]

    y.register_hook(hook)
    total = z.sum()
    total.backward(retain_graph=True)
    assert values(x.grad) == [32]
    assert values(inner[0]) == [32]


def test_deep_reentrance():
    class Nested(Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.save_for_backward(x)
            ctx.depth = depth
            return x * 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            if ctx.depth:
                with pt.enable_grad():
                    y = x.detach().requires_grad_()
                    Nested.apply(y, ctx.depth - 1).sum().backward()
                    return g * y.grad, None
            return g * 2, None

    x = leaf(1.0)
    Nested.apply(x, 50).sum().backward()
    assert values(x.grad) == [2]


def buffers(t):
    """All nodes behind t that hold a gradient."""
    found, pending, seen = [], [t.grad_fn], set()
    while pending:
        n = pending.pop()
        if n is None or hasattr(n, "variable") or n in seen:
            continue
        seen.add(n)
        if n.gbuf is not None:
            found.append(n)
        pending += [e for e, _ in n.next_functions]
    return found


def test_an_exception_leaves_nothing_behind():
    x = leaf(1.0, 2.0)
    a, b = x * 2, x * 3
    y = (a * b) + a.exp()
    handle = b.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward(retain_graph=True)
    assert buffers(y) == []
    assert pt.is_grad_enabled()
    handle.remove()
    x.grad = None
    y.sum().backward()
    expected = 12 * np.array([1.0, 2.0]) + 2 * np.exp(2 * np.array([1.0, 2.0]))
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-12)


def test_a_failing_rule_names_its_op():
    x = leaf(1.0)
    y = x * 1
    z = y.exp() * y
    with pt.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="inplace") as caught:
        z.sum().backward()
    assert any("MulBackward0" in note for note in caught.value.__notes__)


def test_the_innermost_backward_names_the_op():
    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise KeyError("broken")

    class Outer(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            with pt.enable_grad():
                Inner.apply(leaf(1.0)).backward()

    with pytest.raises(KeyError) as caught:
        Outer.apply(leaf(1.0)).backward()
    assert len(caught.value.__notes__) == 1
    assert "InnerBackward" in caught.value.__notes__[0]


# -- threads ------------------------------------------------------------------------------------


def run_in_threads(functions):
    errors = []

    def guarded(f):
        try:
            f()
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=guarded, args=(f,)) for f in functions]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not any(t.is_alive() for t in threads)
    if errors:
        raise errors[0]


@pytest.fixture
def eager_switching():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


class Slow(Function):
    """The identity, with Python code in which threads change."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        for _ in range(50):
            pass
        return g * 1


def test_threads_on_one_graph(eager_switching):
    x = leaf(1.0, 2.0)
    y = x
    for _ in range(20):
        y = Slow.apply(y) + y * 0.5
    total = y.sum()
    expected = 1.5**20
    found = []

    def walk():
        for _ in range(10):
            found.append(grad(total, x, retain_graph=True)[0])

    run_in_threads([walk] * 3)
    assert len(found) == 30
    for g in found:
        np.testing.assert_allclose(g.numpy(), [expected, expected], rtol=1e-12)
    assert buffers(total) == []


def test_threads_on_graphs_of_their_own(eager_switching):
    found = {}

    def walk(k):
        x = leaf(float(k))
        for _ in range(20):
            x.grad = None
            (Slow.apply(x) * x).sum().backward()
        found[k] = values(x.grad)

    run_in_threads([lambda k=k: walk(k) for k in range(4)])
    assert found == {k: [2.0 * k] for k in range(4)}


def test_modes_belong_to_a_thread():
    seen = []
    with pt.no_grad():
        run_in_threads([lambda: seen.append(pt.is_grad_enabled())])
    assert seen == [True]


# -- size and memory -----------------------------------------------------------------------------


@pytest.mark.outer
def test_a_chain_of_a_million_nodes():
    x = leaf(1.0)
    y = x
    for _ in range(1_000_000):
        y = y + 1
    y.sum().backward()
    assert values(x.grad) == [1]
    del y


@pytest.mark.outer
def test_a_retained_million_is_dropped_without_recursion():
    x = leaf(1.0)
    y = x
    for _ in range(1_000_000):
        y = y * 1.0
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None


MEASURE = """
import gc, os
import ptcore as pt
gc.disable()
def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
x = pt.ones(4, requires_grad=True)
y = x
for _ in range(1000):
    y = y * x                   # warms every path
held = [y]
before = resident()
for _ in range(100_000):
    y = y * x
    held.append(y)
print((resident() - before - 8 * len(held)) / 100_000)
"""


@pytest.mark.counts
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
@pytest.mark.skipif("PYTHONMALLOC" in os.environ, reason="needs Python's own allocator")
def test_memory_of_a_recorded_op():
    # A fresh process: the result (kept by the graph and by us), its node and its block.
    run = subprocess.run(
        [sys.executable, "-P", "-c", MEASURE], capture_output=True, text=True, check=True
    )
    assert 200 < float(run.stdout) <= 900


# -- garbage --------------------------------------------------------------------------------------


@pytest.fixture
def collected():
    """No automatic collection during the test; gives a function that counts what gc finds."""
    gc.collect()
    gc.disable()
    yield gc.collect
    gc.enable()


def test_graphs_alone_are_no_garbage(collected):
    x = leaf(1.0, 2.0)
    for _ in range(1000):
        y = x.exp().tanh().sigmoid()
        z = (y * y.softmax(0) + y[0]).sum()
        z.backward()
    del y, z
    assert collected() == 0


def test_graphs_of_functions_are_no_garbage(collected):
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            _, y = ctx.saved_tensors
            return g * y

    x = leaf(1.0)
    F.apply(x).sum().backward()
    collected()
    for _ in range(100):
        F.apply(x).sum().backward()
    F.apply(x)
    assert collected() == 0


def test_a_tensor_is_tracked_while_it_refers_to_something():
    x = pt.ones(3)
    assert not gc.is_tracked(x)
    assert gc.is_tracked(x[0])
    y = pt.ones(3, requires_grad=True)
    assert not gc.is_tracked(y)
    assert gc.is_tracked(y * 2)
    y.grad = pt.ones(3)
    assert gc.is_tracked(y)
    z = pt.ones(3)
    z.note = "text"
    assert gc.is_tracked(z)


def dies(make, collected):
    """Whether what make returns is freed by a collection after the last reference is gone."""
    probe = weakref.ref(make())
    collected()
    return probe() is None


def test_cycle_through_an_attribute(collected):
    def make():
        x = pt.ones(3)
        x.first = x[0]
        return x

    assert dies(make, collected)


def test_cycle_through_grad(collected):
    def make():
        t = pt.ones(3, requires_grad=True)
        g = pt.ones(3)
        t.grad = g
        g.owner = t
        return t

    assert dies(make, collected)


def test_cycle_through_create_graph(collected):
    def make():
        x = leaf(1.0)
        (x * x).sum().backward(create_graph=True)
        return x

    assert dies(make, collected)


@pytest.mark.parametrize("early", [True, False])
def test_cycle_through_a_hook(collected, early):
    def make():
        x = leaf(1.0)
        cell = []
        if early:
            x.register_hook(lambda g: cell)
        loss = (x * x).sum()
        cell.append(loss)
        if not early:
            x.register_hook(lambda g: cell)
        return x

    assert dies(make, collected)


@pytest.mark.parametrize("kind", ["tensor", "node", "pre", "retain"])
def test_cycle_through_a_hook_on_a_node(collected, kind):
    def make():
        x = leaf(1.0)
        loss = (x * x).sum()
        if kind == "tensor":
            loss.register_hook(lambda g: loss)
        elif kind == "node":
            loss.grad_fn.register_hook(lambda a, b: loss)
        elif kind == "pre":
            loss.grad_fn.register_prehook(lambda a: loss)
        else:
            loss.retain_grad()
            loss.backward()
        return loss

    assert dies(make, collected)


def test_a_payload_is_freed_with_its_tensor():
    x = leaf(1.0)
    y = x * 2
    node = weakref.ref(y.grad_fn)
    z = y.exp()
    del y
    assert node() is not None
    del z
    assert node() is None


def test_inputs_that_are_given_twice():
    seen = []
    x, y = leaf(2.0), leaf(3.0)
    x.register_hook(lambda g: seen.append(g.item()) or g * 10)
    (x * y).sum().backward(inputs=[x, y, x, y, y])
    assert (values(x.grad), values(y.grad), seen) == ([30], [2], [3])
    z = x * x
    z.retain_grad()
    (z * y).sum().backward(inputs=[z, x, z])
    assert (values(z.grad), values(x.grad), seen) == ([3], [30 + 120], [3, 12])
    assert [values(g) for g in grad((x * y).sum(), [x, y, x])] == [[30], [2], [30]] and seen == [3, 12, 3]
