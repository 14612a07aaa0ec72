"""Compiled graphs with gradients, beside eager: values, gradients, second derivatives, what is written to."""
import numpy as np
import pytest

import ptcore as pt
from ptcore.fx.experimental.proxy_tensor import make_fx
from ptcore.jit._backend import compile_graph

F = pt.nn.functional


def tensors(a):
    return [x for x in (a if isinstance(a, (tuple, list)) else [a]) if isinstance(x, pt.Tensor)]


def assert_same(got, want, rtol=0):
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert (g is None) == (w is None)
        if w is not None:
            assert (g.dtype, g.shape) == (w.dtype, w.shape)
            np.testing.assert_allclose(g.detach().numpy(), w.detach().numpy(), rtol=rtol)


def gradients(f, xs, create_graph=False):
    xs = [x.detach().clone().requires_grad_(x.is_floating_point()) for x in xs]
    outs = [y for y in tensors(f(*xs)) if y.requires_grad]
    total = sum((y * y).sum() for y in outs)
    return xs, pt.autograd.grad(total, [x for x in xs if x.requires_grad], create_graph=create_graph, allow_unused=True)


PROGRAMS = {
    "chain": (lambda x, y: (x * y + x).tanh().sum(), (4, 3), (3,)),
    "linear": (lambda x, w, b: F.gelu(F.linear(x, w, b)), (5, 4), (3, 4), (3,)),
    "softmax": (lambda x: (F.softmax(x, -1), F.log_softmax(x, 0)), (4, 6)),
    "norm": (lambda x, w, b: F.layer_norm(x, (6,), w, b), (4, 6), (6,), (6,)),
    "views": (lambda x: x.t()[1:].reshape(-1).exp(), (3, 4)),
    "writes": (lambda x: (x * 2).clone().add_(x).mul_(3).relu_(), (3, 4)),
    "parts": (lambda x, y: x.clone().index_put((pt.tensor([0, 2]),), y), (3, 4), (2, 4)),
    "unused": (lambda x, y: x * 3, (3,), (3,)),
    "conv": (lambda x, w: F.max_pool2d(F.conv2d(x, w, padding=1).relu(), 2), (2, 3, 8, 8), (4, 3, 3, 3)),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), (1, 2, 5, 4), (1, 2, 5, 4), (1, 2, 5, 4)),
    "cross_entropy": (lambda x: F.cross_entropy(x, pt.tensor([1, 0, 2])), (3, 4)),
    "constant": (lambda x: (x * 2, pt.ones(3)), (3,)),
    "twice": (lambda x: (x.sin(), x.sin()), (3,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients(name):
    f, *shapes = PROGRAMS[name]
    xs = [pt.randn(*s) for s in shapes]
    compiled = compile_graph(make_fx(f)(*xs))
    for _ in range(3):
        xs = [pt.randn(*s) for s in shapes]
        assert_same(tensors(compiled(*xs)), tensors(f(*xs)))
        (_, got), (_, want) = gradients(compiled, xs), gradients(f, xs)
        assert_same(got, want)
    assert len(compiled.joints) == 1
    (joint,) = compiled.joints
    assert joint.first.refused is None and joint.second.refused is None
    assert len(joint.first.plans) == 1


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "conv"])
def test_second_derivatives(name):
    f, *shapes = PROGRAMS[name]
    xs = [pt.randn(*s, dtype=pt.float64) for s in shapes]
    compiled = compile_graph(make_fx(f)(*xs))

    def second(f):
        ys, first = gradients(f, xs, create_graph=True)
        found = [g for g in first if g is not None and g.requires_grad]
        return pt.autograd.grad(sum((g * g).sum() for g in found), ys, allow_unused=True) if found else []
    assert_same(second(compiled), second(f), 1e-12)         # sums in another order


def test_dropout_keeps_its_mask():
    def f(x):
        return F.dropout(x, 0.5) * x
    x = pt.randn(100, dtype=pt.float64)
    compiled = compile_graph(make_fx(f)(x))
    for create_graph in (False, True):
        found = []
        for g in (compiled, f):
            pt.manual_seed(7)
            ys, (first,) = gradients(g, [x], create_graph)
            found.append([first, *(pt.autograd.grad(first.sum(), ys) if create_graph else ()), pt.rand(2)])
        assert_same(*found)


def test_training_steps():
    model = pt.nn.Sequential(pt.nn.Linear(8, 16), pt.nn.ReLU(), pt.nn.BatchNorm1d(16), pt.nn.Linear(16, 4))
    import copy
    other = copy.deepcopy(model)
    x, y = pt.randn(10, 8), pt.randint(0, 4, (10,))
    names = [n for n, _ in [*model.named_parameters(), *model.named_buffers()]]

    def loss(x, y, *state):
        return F.cross_entropy(pt.func.functional_call(model, dict(zip(names, state)), (x,)), y)

    def state_of(m):
        return [*m.parameters(), *m.buffers()]
    with pt.no_grad():
        graph = make_fx(loss)(x, y, *[s.clone() for s in state_of(model)])
    compiled = compile_graph(graph)
    ours, theirs = [pt.optim.SGD(m.parameters(), 0.1, momentum=0.9) for m in (model, other)]
    for _ in range(20):
        ours.zero_grad()
        a = compiled(x, y, *state_of(model))
        a.backward()
        ours.step()
        theirs.zero_grad()
        b = F.cross_entropy(other(x), y)
        b.backward()
        theirs.step()
        assert a.item() == b.item()
    assert_same(state_of(model), state_of(other))
    assert len(compiled.joints) == 1


def test_what_has_no_joint_runs_op_by_op():
    x = pt.randn(3, requires_grad=True)
    compiled = compile_graph(make_fx(lambda x: (x, x.view(3, 1), x * 2))(pt.ones(3)))
    same, view, twice = compiled(x)
    assert same is x and view._base is x and twice.requires_grad
    assert not compiled.joints
    compiled = compile_graph(make_fx(lambda x: x.mul_(2).sin())(pt.ones(3)))
    y = x * 1
    compiled(y).sum().backward()
    assert_same([x.grad], [2 * (2 * x).cos()])


def test_gradients_that_are_written_into_parts():
    """A gradient that begins as zeros, of which a part is written: what reads it depends on the gradient of results."""
    x, order = pt.randn(4, 3, 5, dtype=pt.float64), pt.tensor([1, 2, 0])

    def f(x, order):
        y = pt.cat([part.unsqueeze(0) for part in x.cumsum(0).unbind(0)], 0)
        z = y.index_select(1, order)
        return z[-1].square().sum() + z[:2, 1:].exp().sum(), y[0, 1]
    compiled = compile_graph(make_fx(f)(x, order))
    leaves = [x.clone().requires_grad_() for _ in range(2)]
    for _ in range(2):
        grads = []
        for call, leaf in zip((compiled, f), leaves):
            a, b = call(leaf, order)
            grads += pt.autograd.grad(a + b.sum(), leaf)
        assert_same(grads[:1], grads[1:])


def test_errors_of_backward():
    x, w = pt.randn(3, requires_grad=True), pt.randn(3)
    compiled = compile_graph(make_fx(lambda x, w: x * w)(x.detach(), w))
    out = compiled(x, w).sum()
    w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()
    out = compiled(x, w).sum()
    out.backward()
    with pytest.raises(RuntimeError, match="second time"):
        out.backward()
    out = compiled(x, w).sum()
    out.backward(retain_graph=True)
    out.backward()


def test_numbers_among_arguments():
    graph = make_fx(lambda x, n: (x * n + x.shape[0], x - n), tracing_mode="symbolic")(pt.ones(3), 4)
    plain = compile_graph(graph)
    for n in (4, 5, 4, 7):
        x = pt.randn(3)
        assert_same(plain(x, n), [x * n + 3, x - n])
        got, want = [gradients(f, [x])[1] for f in (lambda x, n=n: plain(x, n), lambda x, n=n: (x * n + 3, x - n))]
        assert_same(got, want)
    w = pt.ones(3)
    held = compile_graph(make_fx(lambda x, n: x * n * w, tracing_mode="symbolic")(pt.ones(3), 4))
    for n in (4, 5, 4):
        x = pt.randn(3, requires_grad=True)
        assert_same([held(x, n)], [x * n])


def test_work_in_python_and_memory_that_storages_share():
    def f(x, y):
        return (pt.linalg.matrix_exp(x) * y).sum(), (x * 10).to(pt.int64) // 3
    xs = [pt.randn(3, 3), pt.randn(3, 3)]
    compiled = compile_graph(make_fx(f)(*xs))
    for _ in range(3):
        xs = [pt.randn(3, 3) for _ in range(2)]
        assert_same(tensors(compiled(*xs)), tensors(f(*xs)))
        assert_same(gradients(compiled, xs)[1], gradients(f, xs)[1])
    assert len(compiled.joints) == 1
    shared = np.random.default_rng(0).normal(size=9).astype(np.float32).reshape(3, 3)
    x, y = pt.from_numpy(shared).requires_grad_(), pt.from_numpy(shared)
    got, want = compiled(x, y)[0], f(x, y)[0]
    assert_same([got, *pt.autograd.grad(got, x)], [want, *pt.autograd.grad(want, x)])


def test_histories_that_begin_inside():
    def leaf(x):
        w = x.detach().requires_grad_()
        return (w * w).sum(), w

    def mode(x):
        with pt.enable_grad():
            y = x * 2
        return y * 3
    compiled = pt.compile(leaf)
    for _ in range(8):
        x = pt.randn(3)
        total, w = compiled(x)
        assert total.requires_grad and w.is_leaf
        assert_same(pt.autograd.grad(total, w), [2 * x])
    compiled = pt.compile(mode)
    for k in range(8):
        x = pt.randn(3, requires_grad=True)
        with pt.no_grad():
            y = compiled(x)
        with pt.no_grad():
            want = mode(x)
        assert y.requires_grad is want.requires_grad
        assert_same([y], [want])
        assert_same([compiled(x)], [mode(x)])
        assert compiled(x).requires_grad and k >= 0


def test_stand_ins_run_the_graph():
    f = lambda x: (x * x).sum()          # noqa: E731
    compiled = compile_graph(make_fx(f)(pt.ones(3)))
    x = pt.randn(2, 3)
    assert_same([pt.func.vmap(pt.func.grad(compiled))(x)], [2 * x])
    assert_same([pt.func.hessian(compiled)(x[0])], [2 * pt.eye(3)])
