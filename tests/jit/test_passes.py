"""Passes over graphs of rows: the same bits with fewer calls, and memory that somebody else sees is left alone."""
import pytest
from _row_graphs import assert_equal

import ptcore as pt
from ptcore import nn
from ptcore.fx import verify
from ptcore.fx.experimental.proxy_tensor import make_fx
from ptcore.jit.passes import absorb_affine, copy_of, fold, merge_equal

F = nn.functional


def names(module):
    return [n.target.__name__ for n in module.graph.nodes if n.op == "call_function"]


def after(passes, module):
    """The module after some passes, each of which leaves a sound graph."""
    made = copy_of(module)
    dialect = verify(made.graph)
    for p in passes:
        p(made)
        assert verify(made.graph) == dialect
    return made


def both(f, *args, mode="real"):
    """The graph of a function before and after both passes; with the same results."""
    traced = make_fx(f, tracing_mode=mode)(*args)
    made = after([fold, merge_equal], traced)
    pt.manual_seed(0)
    want = traced(*[x.clone() for x in args])
    for _ in range(2):
        pt.manual_seed(0)
        assert_equal(made(*[x.clone() for x in args]), want, names(made))
    return traced, made


X = pt.tensor([[0.5, -1.0], [2.0, 3.0]])


# -- folding ----------------------------------------------------------------------------------------------------------

def test_constants_are_worked_out_once():
    traced, made = both(lambda x: x * pt.ones(2, 2).tril() + pt.arange(2).cumsum(0).float().exp(), X)
    assert names(made) == ["mul", "add"] and len(names(traced)) == 8
    assert [n.op for n in made.graph.nodes] == ["placeholder", "get_attr", "call_function", "get_attr",
                                                "call_function", "output"]


def test_fills_stay():
    _, made = both(lambda x: x + pt.zeros(2, 2), X)
    assert names(made) == ["fill_full", "add"]


def test_numbers_of_constants():
    outside = pt.tensor([3.0, 4.0])
    _, made = both(lambda x: x * outside.square().sum().sqrt(), X)
    assert names(made) == ["mul"]


def test_what_is_drawn_is_drawn_again():
    def f(x):
        return x + pt.rand(2, 2).exp()
    traced = make_fx(f)(X)
    made = after([fold, merge_equal], traced)
    assert names(made) == names(traced)
    pt.manual_seed(0)
    a, b = made(X), made(X)
    assert not pt.equal(a, b)
    pt.manual_seed(0)
    assert pt.equal(a, f(X)) and pt.equal(b, f(X))


def test_what_is_written_to_or_returned_is_made_anew():
    def written(x):
        y = pt.ones(2).cumsum(0)
        y.mul_(x[0])
        return y + 1
    _, made = both(written, X)
    assert "cumsum" in names(made)

    def view(x):
        y = pt.ones(2, 2).tril()
        return x + y, y[0]
    _, made = both(view, X)
    assert "tril" in names(made)
    made(X)[1].zero_()
    assert made(X)[1].tolist() == [1.0, 0.0]


def test_only_what_is_said_to_be_constant():
    weight = pt.tensor([1.0, 2.0])
    traced = make_fx(lambda x: x + weight.exp().sum())(X)
    made = copy_of(traced)
    assert fold(made, lambda name: False) == 0 and names(made) == names(traced)
    assert fold(made) == 2 and names(made) == ["add"]


def test_large_constants_stay():
    traced = make_fx(lambda x: x + pt.ones(3000, 3000).cumsum(0)[-1, 0])(X)
    made = copy_of(traced)
    fold(made)
    assert sum([b.numel() for b in made.buffers()]) < 3000 * 3000


# -- common subexpressions --------------------------------------------------------------------------------------------

def test_equal_calls_are_one():
    traced, made = both(lambda x: (x.exp() + 1) * (x.exp() + 1) + (x.exp() + 1).sum(), X)
    assert names(traced).count("exp") == 3 and names(made).count("exp") == 1
    assert len(names(made)) == 5


def test_numbers_of_other_kinds_are_others():
    i = pt.tensor([1, 2])
    _, made = both(lambda x: (x * 2).sum() + (x * 2.0).sum(), i)
    assert names(made).count("mul") == 2
    _, made = both(lambda x: (x * 0.0).sum() + (x * -0.0).sum(), X)
    assert names(made).count("mul") == 2
    _, made = both(lambda x: (x + 1).sum() + (x + True).sum(), X)
    assert names(made).count("add") == 3


def test_results_are_memory_of_their_own():
    _, made = both(lambda x: (x + 1, x + 1), X)
    a, b = made(X)
    assert a is not b and a.data_ptr() != b.data_ptr()

    @pt.compile(fullgraph=True)
    def f(x):
        y = (x + 1).exp()
        return y, (x + 1).exp(), (x + 1).exp().view(-1)
    for _ in range(3):
        a, b, c = f(X)
        a.zero_()
        assert pt.equal(b, (X + 1).exp()) and pt.equal(c, b.view(-1))


def test_writes_between():
    def f(x):
        y = x.clone()
        a = y * 2
        y.add_(1)
        return a + y * 2
    _, made = both(f, X)
    assert names(made).count("mul") == 2

    def to_argument(x):
        a = (x * 2).sum()
        x.add_(1)
        return a + (x * 2).sum()
    _, made = both(to_argument, X)
    assert names(made).count("mul") == 2


def test_attributes_are_read_at_each_call():
    from ptcore.jit._backend import compile_graph
    w = nn.Parameter(pt.ones(2))
    module = make_fx(lambda x: (x * w + 1) + (x * w + 1))(X)
    compiled = compile_graph(module)
    (name,) = [n.target for n in module.graph.find_nodes(op="get_attr")]
    with pt.no_grad():
        for k in range(3):
            setattr(module, name, nn.Parameter(pt.full((2,), float(k))))
            assert pt.equal(compiled(X), (X * k + 1) * 2)


def test_draws_are_two():
    _, made = both(lambda x: F.dropout(x, 0.5) + F.dropout(x, 0.5), X)
    assert names(made).count("dropout_masked") == 2


def test_modes_of_recording():
    """What is recorded, and what is not, is not the same."""
    @pt.compile(fullgraph=True)
    def f(x):
        with pt.no_grad():
            y = x.exp().sum()
        return x.exp().sum() + y
    x = pt.ones(2, requires_grad=True)
    for _ in range(2):
        x.grad = None
        f(x).backward()
        assert pt.allclose(x.grad, pt.ones(2).exp())


def test_sums_of_gradients_keep_their_terms():
    """What is computed twice gets two gradients, whose sum is rounded as eagerly."""
    @pt.compile(fullgraph=True)
    def f(x):
        return (x.tanh() * w).sum() + (x.tanh() * w.flip(0)).exp().sum()
    w, x = pt.randn(50), pt.randn(50, requires_grad=True)
    want, = pt.autograd.grad(f._compiled.function(x), x)
    for _ in range(2):
        assert pt.equal(pt.autograd.grad(f(x), x)[0], want)


def test_symbolic_sizes():
    _, made = both(lambda x: x.reshape(x.shape[0] * x.shape[1]) + x.flatten(), X, mode="symbolic")
    traced = make_fx(lambda x: (x * 2).flatten() + (x * 2).flatten(), tracing_mode="symbolic")(X)
    made = after([fold, merge_equal], traced)
    assert names(made).count("mul") == 1
    other = pt.randn(3, 3)
    assert pt.equal(made(other), traced(other))


# -- what rounds otherwise --------------------------------------------------------------------------------------------

LAYERS = {
    "conv1d": (nn.Conv1d(3, 4, 2), nn.BatchNorm1d(4), (2, 3, 9)),
    "conv2d": (nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), nn.BatchNorm2d(6), (2, 4, 9, 9)),
    "conv3d": (nn.Conv3d(2, 3, 2, bias=False), nn.BatchNorm3d(3, affine=False), (2, 2, 4, 5, 6)),
    "linear": (nn.Linear(5, 3), nn.BatchNorm1d(3), (4, 5)),
    "no bias": (nn.Linear(5, 3, bias=False), nn.BatchNorm1d(3), (4, 5)),
}


def drawn(net):
    """A net with statistics and weights that are none of the first ones."""
    pt.manual_seed(5)
    for p in [*net.parameters(), *net.buffers()]:
        if p.dtype.is_floating_point:
            p.detach().uniform_(0.5, 1.5)
    return net.eval()


@pytest.mark.parametrize("dtype", [pt.float32, pt.float64])
@pytest.mark.parametrize("name", LAYERS)
def test_batch_norm_goes_into_layers(name, dtype):
    layer, norm, shape = LAYERS[name]
    net = drawn(nn.Sequential(layer, norm, nn.ReLU())).to(dtype)
    x = pt.randn(shape, dtype=dtype)
    made = after([fold, absorb_affine], make_fx(net)(x))
    assert len(names(made)) == 2 and names(made)[1] == "relu"
    pt.testing.assert_close(made(x), net(x))


def test_what_cannot_be_absorbed():
    x, w = pt.randn(2, 3), pt.randn(4, 3)
    for f in (lambda x: F.linear(x, w) * x[0, 0],                        # of an argument
              lambda x: F.linear(x, w) * pt.arange(8.0).reshape(2, 4),      # not one number a channel
              lambda x: F.linear(x, w).add(pt.arange(4.0), alpha=2),
              lambda x: 1 - F.linear(x, w), lambda x: 2 / F.linear(x, w),
              lambda x: F.linear(x, w) + pt.arange(4.0).double(),
              lambda x: F.linear(x, w) * F.linear(x, w),
              lambda x: F.linear(x, w).add_(1.0)):
        traced = make_fx(f)(x)
        made = after([fold, absorb_affine], traced)
        assert pt.equal(made(x), traced(x)), names(made)

    def twice(x):
        y = F.linear(x, w)
        return y + 1.0, y
    made = after([fold, absorb_affine], make_fx(twice)(x))
    assert names(made) == ["linear", "add"]


def test_numbers_are_absorbed():
    x, w = pt.randn(2, 3).double(), pt.randn(4, 3).double()
    made = after([fold, absorb_affine], make_fx(lambda x: (2 * (F.linear(x, w) - 1) / 4 + 3) * w[:, 0])(x))
    assert names(made) == ["linear"]
    pt.testing.assert_close(made(x), (2 * (F.linear(x, w) - 1) / 4 + 3) * w[:, 0])
