"""Graphs keep where a program leaves the history: gradients of every kind of graph are those of the program."""
import io

import numpy as np
import pytest

import ptcore as pt
from ptcore import jit
from ptcore.fx.experimental.proxy_tensor import make_fx


def scaled(x):
    return (x * (x * x).detach()).sum()


def data(x):
    return (x * x.data).sum()


def shown_and_written(x):
    y = x * 1
    y.detach().mul_(2)
    return (y * y).sum()


def view_of_detached(x):
    y = x.reshape(3, 1).detach().t()
    return (x * y[0] * y.sum()).sum()


def detached_twice(x):
    y = (x * 2).detach()
    return (x * y.detach() * y).sum()


def of_a_view(x):
    y = x * 1
    part = y[1:].detach()
    part += 1
    return (y * y).sum() + (part * x[1:]).sum()


def before_the_write(x):
    y = x * 1
    shown = y.detach()
    y.mul_(x)
    return (shown * y).sum()


def in_samples(x):
    return pt.vmap(lambda row: (row * row.detach()).sum())(x.reshape(3, 1)).sum()


def in_gradient(x):
    return (pt.func.grad(lambda z: (z.detach() * z * z).sum())(x) * x).sum()


def complex_part(x):
    z = pt.complex(x, x * x)
    return (z.detach().real * z.imag).sum()


def not_used(x):
    x.detach()
    return (x * x).sum()


def under_no_grad(x):
    y = x * 1
    with pt.no_grad():
        y.mul_(2)
    return (y * y).sum()


PROGRAMS = [scaled, data, shown_and_written, view_of_detached, detached_twice, of_a_view, before_the_write, in_samples,
            in_gradient, complex_part, not_used]


def loaded(program, x):
    file = io.BytesIO()
    jit.save(jit.trace(program, (x,)), file)
    file.seek(0)
    return jit.load(file)


MAKERS = {"make_fx": lambda f, x: make_fx(f)(x), "fake": lambda f, x: make_fx(f, tracing_mode="fake")(x),
          "symbolic": lambda f, x: make_fx(f, tracing_mode="symbolic")(x), "trace": lambda f, x: jit.trace(f, (x,)),
          "file": loaded, "compile": lambda f, x: pt.compile(f),
          "functional": lambda f, x: pt.func.functionalize(f),
          "functional graph": lambda f, x: make_fx(pt.func.functionalize(f))(x)}


def gradients(f, x):
    """The result, its gradient, and the gradient of the gradient's sum."""
    x = x.clone().requires_grad_()
    y = f(x)
    (first,) = pt.autograd.grad(y, x, create_graph=True)
    second = None
    if first.requires_grad:
        (second,) = pt.autograd.grad(first.sum(), x, allow_unused=True)
    return [None if t is None else t.detach().numpy() for t in (y, first, second)]


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients_end_at_detach(program, maker):
    x = pt.tensor([1.0, 2.0, -3.0], dtype=pt.float64)
    graph = MAKERS[maker](program, x)
    for values in (x, x * 3):
        want = gradients(program, values)
        for _ in range(2):                  # the second call runs the plan
            got = gradients(graph, values)
            for g, w in zip(got, want):
                assert (g is None) == (w is None)
                if w is not None:
                    np.testing.assert_allclose(g, w, rtol=1e-14)


@pytest.mark.parametrize("maker", ["compile", "functional", "functional graph"])
def test_writes_that_are_not_recorded(maker):
    x = pt.tensor([1.0, pt.inf, -0.0, pt.nan], dtype=pt.float64)
    graph = MAKERS[maker](under_no_grad, x)
    for _ in range(2):
        np.testing.assert_array_equal(gradients(graph, x)[1], gradients(under_no_grad, x)[1])
    integers = MAKERS[maker](lambda x: x.clone().detach().add_(2), pt.arange(3))
    assert integers(pt.arange(3)).tolist() == [2, 3, 4]


def test_a_graph_has_a_node_for_each_use():
    names = [n.name for n in make_fx(scaled)(pt.ones(3)).graph.nodes]
    assert names == ["x_1", "mul", "detach", "mul_1", "sum_1", "output"]
    traced = jit.trace(scaled, (pt.ones(3),))
    assert [n.name for n in traced.graph.nodes if n.name.startswith("detach")] == ["detach"]


def test_results_of_graphs_have_no_history():
    def f(x):
        return x.detach(), x * 2
    x = pt.ones(3, requires_grad=True)
    for maker in ("make_fx", "trace", "file", "compile"):
        graph = MAKERS[maker](f, pt.ones(3))
        for _ in range(2):
            first, second = graph(x)
            assert not first.requires_grad and second.requires_grad, maker
            assert first.data_ptr() == x.data_ptr(), maker


def test_with_values_has_the_derivatives_of_its_first_operand():
    with_values = pt._ops.function("with_values")
    x, y = pt.tensor([1.0, pt.inf, pt.nan, -0.0], requires_grad=True), pt.tensor([-0.0, 2.0, pt.nan, pt.inf])
    result = with_values(x * 3, y.requires_grad_())
    np.testing.assert_array_equal(result.detach().numpy(), y.detach().numpy())
    assert np.signbit(result[0].item())
    (slope,) = pt.autograd.grad(result.sum(), x, create_graph=True)
    assert slope.tolist() == [3.0] * 4
    assert pt.autograd.grad(with_values(x, y).sum(), y, allow_unused=True) == (None,)
    _, tangent = pt.func.jvp(with_values, (x.detach(), y.detach()), (pt.ones(4), pt.full((4,), 5.0)))
    assert tangent.tolist() == [1.0] * 4
    rows = pt.func.vmap(with_values, in_dims=(0, None))(pt.zeros(2, 4), y.detach())
    np.testing.assert_array_equal(rows.numpy(), np.stack([y.detach().numpy()] * 2))
