"""``make_fx`` with symbolic sizes: traced at one size, run at others. Where the guards hold the graph gives bit for bit
what the program gives; where they do not it refuses to."""
import sys
from pathlib import Path

import numpy as np
import pytest

import ptcore as pt
from ptcore import fx
from ptcore.fx.experimental.proxy_tensor import make_fx

sys.path.insert(0, str(Path(__file__).parent.parent / "core"))
from test_symbolic_calls import CALLS, HINTS, OTHERS, of_shapes

pytestmark = pytest.mark.core

GUARD = "run with sizes for which it does not hold"


def same(got, want):
    got, want = (fx.graph.tree_flatten(x)[0] for x in (got, want))
    assert len(got) == len(want)
    for g, w in zip(got, want):
        if isinstance(w, pt.Tensor):
            assert (g.shape, g.dtype) == (w.shape, w.dtype)
            np.testing.assert_array_equal(g.detach().numpy(), w.detach().numpy())
        else:
            assert g == w


def run(traced, f, args):
    """Whether the graph ran; then it gives what f gives."""
    if not traced.shape_env.check(sizes_of(traced, args)):
        with pytest.raises(RuntimeError):
            traced(*args)
        return False
    same(traced(*args), f(*args))
    return True


def sizes_of(traced, args):
    sizes = [n for x in args for n in (x.shape if isinstance(x, pt.Tensor) else (x,))]
    assert len(sizes) == len(traced.shape_env.inputs)
    return sizes


@pytest.mark.parametrize("name", CALLS)
def test_call(name):
    shapes, f = CALLS[name]
    args = of_shapes(shapes, HINTS)
    f(*args)                                # weights that it makes at its first call are none of the graph's
    traced = make_fx(lambda *xs: f(*xs), tracing_mode="symbolic")(*args)
    assert fx.verify(traced.graph) == "rows"
    assert run(traced, f, args)
    for sizes in OTHERS:
        run(traced, f, of_shapes(shapes, sizes, seed=1))


# Of the calls above that many run at each of the other sizes.
def test_how_many_hold():
    held = 0
    for shapes, f in CALLS.values():
        f(*of_shapes(shapes, HINTS))
        traced = make_fx(lambda *xs, f=f: f(*xs), tracing_mode="symbolic")(*of_shapes(shapes, HINTS))
        held += all([traced.shape_env.check(sizes_of(traced, of_shapes(shapes, sizes))) for sizes in OTHERS])
    assert held >= 0.95 * len(CALLS), (held, len(CALLS))


def grown(f, *others):
    """f traced with its first arguments, and run on others."""
    traced = make_fx(f, tracing_mode="symbolic")(*others[0])
    assert fx.verify(traced.graph) == "rows"
    for args in others:
        assert run(traced, f, args)
    return traced


def test_gradients_and_batches():
    def data(n, d):
        return (pt.randn(n, d).double(),)
    several = [data(3, 4), data(6, 5), data(2, 9)]
    grown(pt.func.grad(lambda x: (x.sin() * x).sum()), *several)
    grown(pt.func.grad(lambda x: pt.softmax(x @ x.t(), 1).pow(2).mean()), *several)
    grown(pt.vmap(lambda x: x.sin().sum() * pt.ones(x.shape[0], dtype=x.dtype)), *several)
    grown(pt.vmap(pt.func.grad(lambda x: (x ** 3).sum() / x.shape[0])), *several)
    grown(lambda x: pt.func.jvp(lambda y: y.tanh().mean(), (x,), (pt.ones_like(x),))[1], *several)


def test_training_step():
    pt.manual_seed(0)
    network = pt.nn.Sequential(pt.nn.Linear(4, 8), pt.nn.GELU(), pt.nn.LayerNorm(8), pt.nn.Linear(8, 2)).double()
    params = {k: v.detach() for k, v in network.named_parameters()}

    def step(params, x, y):
        def loss(p):
            return pt.nn.functional.mse_loss(pt.func.functional_call(network, p, (x,)), y)
        return pt.func.grad_and_value(loss)(params)
    traced = make_fx(step, tracing_mode="symbolic")(params, pt.randn(5, 4).double(), pt.randn(5, 2).double())
    for n in (5, 9, 2):
        x, y = pt.randn(n, 4).double(), pt.randn(n, 2).double()
        same(traced(params, x, y), step(params, x, y))


def test_ints_are_arguments():
    grown(lambda x, n: x.repeat(n, 1)[:n * 2] * n, (pt.ones(2, 4), 3), (pt.ones(3, 7), 5))
    grown(lambda x, n: (x[n:], x.shape[0] - n, x.numel()), (pt.ones(5, 4), 3), (pt.ones(9, 2), 4))


def test_created_by_sizes():
    def f(x):
        n, m = x.shape
        return (pt.zeros(n) + pt.arange(n), pt.ones(m, n), pt.full((n * 2,), 3.0), x.new_empty(n - 1).fill_(1),
                pt.zeros_like(x), pt.empty(m).zero_(), pt.eye(n, m), pt.eye(n), pt.linspace(0, 1, n), pt.full((2,), m),
                x.clone().fill_(m), pt.full((2,), 1 / n), pt.rand(n, 3) * 0, pt.randn(x.shape).mul(0) + n)
    grown(f, (pt.ones(3, 4),), (pt.ones(7, 2),))


def test_branches_on_sizes_are_guards():
    def f(x):
        return x * 2 if x.shape[0] > 4 else x + 1
    traced = make_fx(f, tracing_mode="symbolic")(pt.ones(6))
    same(traced(pt.ones(5)), pt.ones(5) * 2)
    with pytest.raises(RuntimeError, match=GUARD) as error:
        traced(pt.ones(3))
    assert f"{__file__}:{f.__code__.co_firstlineno + 1}" in str(error.value)


def test_sizes_of_one_and_equal_sizes_are_guards():
    traced = make_fx(lambda x, y: x + y, tracing_mode="symbolic")(pt.ones(1, 3), pt.ones(4, 3))
    same(traced(pt.ones(1, 5), pt.ones(7, 5)), pt.ones(7, 5) * 2)
    for args in ((pt.ones(4, 3), pt.ones(4, 3)), (pt.ones(1, 3), pt.ones(4, 1)), (pt.ones(1, 3), pt.ones(3, 3, 3))):
        with pytest.raises((RuntimeError, IndexError)):
            traced(*args)


def test_arguments_are_checked_before_anything_is_run():
    """What is run for other sizes would say something else first, or write."""
    def f(x):
        x.add_(1)
        return x.split(2)[-1], x.tensor_split(2)[1], pt.combinations(x[:, 0])
    traced = make_fx(f, tracing_mode="symbolic")(pt.zeros(7, 3))
    for sizes in ((9, 3), (6, 3), (7, 1), (7, 3, 2)):
        x = pt.zeros(sizes)
        with pytest.raises(RuntimeError, match=GUARD):
            traced(x)
        assert not x.any()
    same(traced(pt.zeros(7, 5)), f(pt.zeros(7, 5)))
    nodes = list(traced.graph.nodes)
    first = next(k for k, node in enumerate(nodes) if node.target is not fx.experimental.sizes.check_guards
                 and isinstance(node.target, type(pt.add)))
    assert all(node.target is not fx.experimental.sizes.check_guards for node in nodes[first:])


def test_tensors_of_sizes_hold_numbers():
    def f(x):
        return x * pt.tensor(x.shape[0]) + pt.tensor([x.shape[0] / 2, 1])[0]
    traced = make_fx(f, tracing_mode="symbolic")(pt.ones(3, 4))
    same(traced(pt.ones(3, 7)), f(pt.ones(3, 7)))
    with pytest.raises(RuntimeError, match=GUARD):
        traced(pt.ones(4, 4))


def test_guards_may_be_looked_at():
    traced = make_fx(lambda x: x.reshape(2, -1), tracing_mode="symbolic")(pt.ones(6, 4))
    env = traced.shape_env
    assert env.check([8, 4])
    assert env.check([4, 5])
    assert not env.check([3, 5])
    with pytest.raises(RuntimeError):
        traced(pt.ones(3, 5))


def test_values_that_depend_on_data_have_sizes_of_their_own():
    """A row without a shape rule gives symbols that the graph asks its result for."""
    (x,) = (pt.randn(6, 4),)
    traced = make_fx(lambda x: pt.sort(x, 0).values.reshape(-1) * x.shape[1], tracing_mode="symbolic")(x)
    same(traced(pt.ones(3, 5)), pt.ones(15) * 5)
