"""Custom ops in graphs: traced, compiled, scripted, saved; what a kernel gives against what its fake says."""


import numpy as np
import pytest

import ptcore as pt
from ptcore import Tensor, library
from ptcore.fx.experimental.proxy_tensor import make_fx

pytestmark = pytest.mark.core


@pytest.fixture
def runs():
    return []


@pytest.fixture
def square(runs):
    """y = x^2 by NumPy; each run of the kernel is counted."""

    @library.custom_op("graphs::square", mutates_args=())
    def square(x: Tensor) -> Tensor:
        runs.append("square")
        return pt.from_numpy(x.numpy() ** 2)

    square.register_fake(lambda x: x.new_empty(x.shape))
    square.register_autograd(
        lambda ctx, g: g * 2 * ctx.saved_tensors[0],
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    return square


@pytest.fixture
def accumulate(runs):
    """Adds to its first argument."""

    @library.custom_op("graphs::accumulate", mutates_args={"x"})
    def accumulate(x: Tensor, y: Tensor) -> None:
        runs.append("accumulate")
        x.numpy()[...] += y.numpy()

    return accumulate


@pytest.fixture
def parts():
    """The first n rows, and a list of the rest; sizes by a fake."""

    @library.custom_op("graphs::parts", mutates_args=())
    def parts(x: Tensor, n: int) -> tuple[Tensor, list[Tensor]]:
        return x[:n].clone(), [row.clone() for row in x[n:]]

    parts.register_fake(
        lambda x, n: (x.new_empty(n, x.shape[1]), [x.new_empty(x.shape[1]) for _ in range(x.shape[0] - n)])
    )
    return parts


def targets(graph):
    return [node.target for node in graph.nodes if node.op == "call_function"]


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_one_node(square, mode, runs):
    g = make_fx(lambda x: square(x + 1) * 2, tracing_mode=mode)(pt.ones(3))
    assert targets(g.graph).count(pt.ops.graphs.square.default) == 1
    assert len(runs) == (1 if mode == "real" else 0)
    x = pt.randn(3)
    pt.testing.assert_close(g(x), 2 * (x + 1) ** 2)
    if mode == "symbolic":
        x = pt.randn(7)
        pt.testing.assert_close(g(x), 2 * (x + 1) ** 2)


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_several_results(parts, mode):
    def f(x):
        head, rows = parts(x, 2)
        return head.sum() + rows[0].sum() * 3

    g = make_fx(f, tracing_mode=mode)(pt.ones(3, 4))
    x = pt.randn(3, 4)
    pt.testing.assert_close(g(x), f(x))
    if mode == "symbolic":
        x = pt.randn(3, 5)
        pt.testing.assert_close(g(x), f(x))


def test_sizes_are_symbols(parts):
    def f(x):
        head, _ = parts(x, 2)
        return head.reshape(head.shape[1], 2) * head.shape[0]

    g = make_fx(f, tracing_mode="symbolic")(pt.ones(3, 4))
    x = pt.randn(3, 6)
    pt.testing.assert_close(g(x), f(x))


def test_gradients_are_traced(square):
    g = make_fx(pt.func.grad(lambda x: square(x).sum()))(pt.ones(3))
    x = pt.randn(3)
    pt.testing.assert_close(g(x), 2 * x)

    def step(x):
        x = x.detach().requires_grad_()
        return pt.autograd.grad(square(square(x)).sum(), x)[0]

    g = make_fx(step)(pt.ones(3))
    pt.testing.assert_close(g(x), 4 * x**3)


def test_batches_are_traced(square):
    g = make_fx(pt.vmap(square))(pt.ones(2, 3))
    x = pt.randn(2, 3)
    pt.testing.assert_close(g(x), x * x)


def test_symbolic_trace(square):
    g = pt.fx.symbolic_trace(lambda x: pt.ops.graphs.square(x) + 1)
    assert pt.ops.graphs.square.default in targets(g.graph) or "square" in g.code
    assert g(pt.tensor([2.0])).tolist() == [5]


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_compile(square, runs, dynamic):
    @pt.compile(fullgraph=True, dynamic=dynamic)
    def f(x, w):
        return (square(x * w) + x).sum()

    for k in range(4):
        x, w = pt.randn(3 + k % 2, dtype=pt.float64), pt.randn((), dtype=pt.float64, requires_grad=True)
        x.requires_grad_(k >= 2)
        y = f(x, w)
        expected = ((x * w) ** 2 + x).sum()
        pt.testing.assert_close(y, expected)
        wanted = [x, w] if k >= 2 else [w]
        for a, b in zip(pt.autograd.grad(y, wanted, create_graph=True), pt.autograd.grad(expected, wanted)):
            pt.testing.assert_close(a.detach(), b)
    before = len(runs)
    with pt.no_grad():
        f(x, w)
        f(x, w)
    assert len(runs) - before >= 2  # the kernel is called each time: its values are in no graph


def test_compiled_writes(accumulate, runs):
    def f(x, y):
        z = x * 2
        accumulate(z, y)
        accumulate(x, y)
        return z + x

    compiled = pt.compile(f, fullgraph=True)
    traced = pt.jit.trace(f, (pt.zeros(3), pt.ones(3)))
    for g in (compiled, traced):
        for k in range(3):
            x, y = pt.full((3,), float(k)), pt.arange(3.0)
            twin = x.clone()
            expected = f(twin, y)
            assert g(x, y).equal(expected) and x.equal(twin)


def test_writes_that_nobody_uses(accumulate):
    def f(x, y):
        accumulate(x, y)
        return y * 2

    g = make_fx(f)(pt.zeros(2), pt.ones(2))
    assert pt.ops.graphs.accumulate.default in targets(g.graph)
    x = pt.zeros(2)
    g(x, pt.ones(2))
    pt.compile(f, fullgraph=True)(x, pt.ones(2))
    assert x.tolist() == [2, 2]


def test_writes_in_the_order_of_the_program(accumulate):
    """A value that is computed before a write is none after it, also where both are the same expression."""

    def f(x, y):
        before = x * 3
        accumulate(x, y)
        after = x * 3
        return before, after

    for g in (
        make_fx(f)(pt.zeros(2), pt.ones(2)),
        pt.compile(f, fullgraph=True),
        pt.jit.trace(f, (pt.zeros(2), pt.ones(2))),
    ):
        before, after = g(pt.ones(2), pt.ones(2))
        assert before.tolist() == [3, 3] and after.tolist() == [6, 6]


def test_jit_trace_and_files(square, runs, tmp_path):
    class Net(pt.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = pt.nn.Linear(3, 2)

        def forward(self, x):
            return square(self.fc(x))

    net = Net()
    x = pt.randn(4, 3)
    for made in (pt.jit.trace(net, pt.randn(2, 3)), pt.jit.script(net)):
        pt.testing.assert_close(made(x), net(x))
        made(x).sum().backward()
        expected = pt.autograd.grad(net(x).sum(), net.fc.weight)[0]
        pt.testing.assert_close(made.fc.weight.grad, expected)
        net.fc.weight.grad = made.fc.weight.grad = None
        pt.jit.save(made, tmp_path / "net.pt")
        pt.testing.assert_close(pt.jit.load(tmp_path / "net.pt")(x), net(x))
        frozen = pt.jit.freeze(made.eval())
        for _ in range(3):
            pt.testing.assert_close(frozen(x), net(x))


def test_a_file_whose_op_is_not_there(tmp_path):
    lib = library.Library("gone", "FRAGMENT")
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x * 2, "CPU")
    traced = pt.jit.trace(lambda x: pt.ops.gone.f(x) + 1, pt.ones(2))
    pt.jit.save(traced, tmp_path / "f.pt")
    lib._destroy()
    with pytest.raises(RuntimeError, match="gone::f"):
        pt.jit.load(tmp_path / "f.pt")
    lib = library.Library("gone", "FRAGMENT")
    lib.define("f(Tensor x, int n) -> Tensor")
    with pytest.raises(RuntimeError, match="gone::f"):
        pt.jit.load(tmp_path / "f.pt")
    lib._destroy()


def test_script(square, parts):
    @pt.jit.script
    def f(x: Tensor, n: int):
        if n > 0:
            return pt.ops.graphs.square(x)
        return square(x) + 1

    assert f(pt.tensor([3.0]), 1).tolist() == [9] and f(pt.tensor([3.0]), 0).tolist() == [10]

    @pt.jit.script
    def g(x: Tensor):
        head, rows = pt.ops.graphs.parts.default(x, 1)
        total = head.sum()
        for row in rows:
            total = total + 2 * row.sum()
        return total

    assert g(pt.ones(3, 2)).item() == 2 + 8
    with pytest.raises(RuntimeError, match=r"graphs::square|square"):
        pt.jit.script(_wrong)(pt.ones(2))


def _wrong(x: Tensor):
    return pt.ops.graphs.square(x, 3)


def test_a_fake_that_lies():
    @library.custom_op("graphs::liar", mutates_args=())
    def liar(x: Tensor, n: int) -> Tensor:
        return pt.ones(n)

    liar.register_fake(lambda x, n: x.new_empty(2))
    f = pt.compile(lambda x: liar(x, 3) + 1, fullgraph=True)
    with pytest.raises(
        RuntimeError,
        match=r"graphs::liar: the fake implementation says that the result is "
        r"ptcore.float32\[2\], but the kernel gave ptcore.float32\[3\]",
    ):
        f(pt.ones(1))
    assert pt.compile(lambda x: liar(x, 2) + 1, fullgraph=True)(pt.ones(1)).tolist() == [2, 2]


def test_without_a_fake(runs):
    @library.custom_op("graphs::faceless", mutates_args=())
    def faceless(x: Tensor) -> Tensor:
        runs.append("faceless")
        return x * 2

    f = pt.compile(lambda x: faceless(x + 1) + 1)
    assert f(pt.ones(2)).tolist() == [5, 5] and f(pt.zeros(2)).tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="no fake impl registered for graphs::faceless"):
        pt.compile(lambda x: faceless(x), fullgraph=True)(pt.ones(2))
    with pytest.raises(NotImplementedError, match="no fake impl registered for graphs::faceless"):
        make_fx(lambda x: faceless(x), tracing_mode="fake")(pt.ones(2))
    g = make_fx(lambda x: faceless(x) + 1)(pt.ones(2))
    assert g(pt.ones(2)).tolist() == [3, 3]
    t = pt.jit.trace(lambda x: faceless(x) + 1, pt.ones(2))
    assert t(pt.ones(3)).tolist() == [3, 3, 3]


def test_sizes_that_depend_on_values():
    @library.custom_op("graphs::positive", mutates_args=())
    def positive(x: Tensor) -> Tensor:
        return x[x > 0].clone()

    @positive.register_fake
    def _(x):
        return x.new_empty(library.get_ctx().new_dynamic_size())

    x = pt.tensor([1.0, -1.0, 2.0])
    assert pt.compile(lambda x: positive(x * 2) + 1)(x).tolist() == [3, 5]
    t = pt.jit.trace(lambda x: positive(x) * 2, x)
    assert t(pt.tensor([1.0, 2.0, 3.0, -1.0])).tolist() == [2, 4, 6]


@pytest.mark.parametrize("fake", [None, "dynamic", "lies"])
def test_other_sizes_for_the_same_arguments(fake):
    """A plan has memory of the sizes that it was recorded with: what gives others is run op by op, or raises."""
    @library.custom_op("graphs::above", mutates_args=())
    def above(x: Tensor) -> Tensor:
        return x[x > 0].clone()

    if fake == "dynamic":
        above.register_fake(lambda x: x.new_empty(library.get_ctx().new_dynamic_size()))
    elif fake == "lies":
        above.register_fake(lambda x: x.new_empty(3))
    traced = pt.jit.trace(lambda x: above(x) * 2, pt.tensor([1., -1., 2., 3.]))
    assert traced(pt.tensor([1., -1., 2., 3.])).tolist() == [2, 4, 6]
    for values in ([1., 2., 3., 4.], [-1., -1., -1., 5.], [-1., -1., -1., -1.]):
        if fake == "lies":
            with pytest.raises(RuntimeError, match=r"above: (its results have other|the fake implem)"):
                traced(pt.tensor(values))
        else:
            assert traced(pt.tensor(values)).tolist() == [2 * v for v in values if v > 0]


def test_autocast_in_graphs():
    @library.custom_op("graphs::product", mutates_args=())
    def product(x: Tensor, y: Tensor) -> Tensor:
        assert x.dtype is pt.bfloat16
        return x @ y

    product.register_fake(lambda x, y: x.new_empty(x.shape[0], y.shape[1]))
    product.register_autocast("cpu", pt.bfloat16)

    def f(x):
        with pt.autocast("cpu", dtype=pt.bfloat16):
            return product(x, x) + 1

    x = pt.ones(2, 2)
    for g in (f, pt.compile(f, fullgraph=True), make_fx(f)(x)):
        assert g(x).dtype is pt.bfloat16 and g(x).tolist() == [[3, 3], [3, 3]]


@pytest.mark.outer
def test_random_programs(square, accumulate):
    """Programs of custom ops and others, traced and compiled, give what they give line by line; so do their writes."""
    rng = np.random.default_rng(0)

    def program(steps, x, y):
        pool = [x, y]
        for k, i, j in steps:
            a, b = pool[i % len(pool)], pool[j % len(pool)]
            if k == 0:
                pool.append(square(a) * 0.25)
            elif k == 1 and a is not b and a is not x and a is not y:
                accumulate(a, b * 0.5)
            elif k == 2:
                pool.append(a + b)
            elif k == 3:
                pool.append(a[1:].repeat(2)[:4] if a.shape[0] > 1 else a * 1)
            elif k == 4:
                pool.append(a.tanh())
            else:
                pool.append(a * 2 - b)
        return pool[-1], sum(pool)

    for seed in range(40):
        steps = [tuple(map(int, rng.integers([6, 100, 100]))) for _ in range(12)]
        x, y = (pt.from_numpy(rng.standard_normal(4)) for _ in range(2))
        expected = program(steps, x.clone(), y.clone())
        for g in (
            pt.compile(lambda x, y, steps=steps: program(steps, x, y), fullgraph=True),
            pt.jit.trace(lambda x, y, steps=steps: program(steps, x, y), (x.clone(), y.clone())),
            make_fx(lambda x, y, steps=steps: program(steps, x, y))(x.clone(), y.clone()),
        ):
            for _ in range(2):
                found = g(x.clone(), y.clone())
                assert all(a.equal(b) for a, b in zip(found, expected)), seed
