"""Results that nobody uses: calls that raise an error for some values stay in every kind of graph."""
import warnings

import numpy as np
import pytest

import ptcore as pt
from ptcore.fx.experimental.proxy_tensor import make_fx
from ptcore.nn import functional as F

EYE, ZERO = pt.eye(2), pt.zeros(2, 2)
FIRST, FAR = pt.tensor([0, 1]), pt.tensor([0, 9])
# A call whose result is unused, a good argument, and a bad one.
CALLS = {
    "inverse": (pt.linalg.inv, EYE, ZERO),
    "cholesky": (pt.linalg.cholesky, EYE, -EYE),
    "solve": (lambda a: pt.linalg.solve(a, EYE), EYE, ZERO),
    "index": (lambda i: EYE[i], FIRST, FAR),
    "gather": (lambda i: EYE.gather(0, i[None]), FIRST, FAR),
    "index_select": (lambda i: EYE.index_select(0, i), FIRST, FAR),
    "take": (lambda i: EYE.take(i), FIRST, FAR),
    "scatter": (lambda i: EYE.scatter(0, i[None], 1.0), FIRST, FAR),
    "embedding": (lambda i: F.embedding(i, EYE), FIRST, FAR),
    "embedding_bag": (lambda i: F.embedding_bag(i[None], EYE), FIRST, FAR),
    "cross_entropy": (lambda i: F.cross_entropy(EYE, i), FIRST, FAR),
    "nll_loss": (lambda i: F.nll_loss(EYE, i), FIRST, FAR),
    "one_hot": (lambda i: F.one_hot(i, 3), FIRST, FAR),
    "multi_margin_loss": (lambda i: F.multi_margin_loss(EYE, i), FIRST, FAR),
    "integer division": (lambda i: 7 // i, FIRST + 1, FIRST),
    "integer remainder": (lambda i: 7 % i, FIRST + 1, FIRST),
    "binary_cross_entropy": (lambda p: F.binary_cross_entropy(p, p), EYE, EYE * 2),
    "repeat_interleave": (lambda n: EYE.repeat_interleave(n), pt.tensor([1, 2, 1, 2]), pt.tensor([1, 2, 1, -2])),
    "result of a result": (lambda i: EYE[i].exp() + 1, FIRST, FAR),
}


def outcome(f, *args):
    try:
        return f(*args).numpy().tolist()
    except (RuntimeError, IndexError, ArithmeticError, ValueError) as error:
        return type(error)


# make_fx writes no checks of values, and a trace fixes sizes that depend on values.
LEFT_OUT = {"one_hot": ("real", "fake"), "binary_cross_entropy": ("real", "fake"),
            "repeat_interleave": ("real", "fake", "trace")}


@pytest.mark.parametrize(("name", "wrap"), [(name, wrap) for name in CALLS for wrap in (
    "compile", "eager backend", "trace", "real", "fake") if wrap not in LEFT_OUT.get(name, ())])
def test_calls_that_raise(name, wrap):
    call, good, bad = CALLS[name]

    def program(x):
        call(x)
        return x * 2
    if wrap == "compile" or wrap == "eager backend":
        g = pt.compile(program, backend="cpu" if wrap == "compile" else "eager")
    elif wrap == "trace":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            g = pt.jit.trace(program, (good,), check_trace=False)
    else:
        g = make_fx(program, tracing_mode=wrap)(good)
    assert type(outcome(program, bad)) is type
    for x in (good, good, bad, good, bad):
        assert outcome(g, x) == outcome(program, x)


@pytest.mark.parametrize("name", CALLS)
def test_handled(name):
    call, good, bad = CALLS[name]

    def program(x):
        try:
            call(x)
        except Exception:
            return False
        return True
    g = pt.compile(program)
    assert [g(x) for x in (good, bad, good, good, bad)] == [True, False, True, True, False]


def test_with_gradients():
    w = pt.ones(2, requires_grad=True)
    i = pt.tensor([0, 1])

    @pt.compile
    def program(x):
        (w * x)[i]
        return (w * x).sum()
    for _ in range(3):
        program(pt.ones(2)).backward()
    i[0] = 5
    with pytest.raises(IndexError):
        program(pt.ones(2))
    np.testing.assert_array_equal(w.grad.numpy(), [3, 3])


def test_custom_ops():
    met = []

    @pt.library.custom_op("unused_results::check", mutates_args=())
    def check(x: pt.Tensor) -> pt.Tensor:
        met.append(x.shape[0])
        return x * 2

    @check.register_fake
    def _(x):
        return pt.empty_like(x)

    @pt.compile
    def program(x):
        check(x)
        return x + 1
    for _ in range(3):
        program(pt.ones(2))
    assert met == [2, 2, 2]


def test_nodes_of_fakes_go():
    @pt.library.custom_op("unused_results::rows", mutates_args=())
    def rows(x: pt.Tensor) -> pt.Tensor:
        return x[:1] * 1

    @rows.register_fake
    def _(x):
        return x[pt.zeros(1, dtype=pt.int64)]
    graph = make_fx(lambda x: rows(x) + 1, tracing_mode="symbolic")(pt.ones(3)).graph
    assert not any(["index" in node.name for node in graph.nodes])


def test_others_go():
    def program(x):
        x.exp().sum()
        x @ x
        return x + 1
    assert [n.name for n in make_fx(program)(EYE).graph.nodes if n.op == "call_function"] == ["add"]
