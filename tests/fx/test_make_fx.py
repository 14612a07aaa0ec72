"""``make_fx``: what a traced program may do, and what its graph is."""
import copy
import pickle

import numpy as np
import pytest

import ptcore as pt
from ptcore import fx
from ptcore.fx.experimental.proxy_tensor import make_fx

pytestmark = pytest.mark.core

MODES = pytest.mark.parametrize("mode", ["real", "fake"])


def calls(traced):
    return [n.target.__name__ for n in traced.graph.nodes if n.op == "call_function"]


def same(got, want):
    got, want = (fx.graph.tree_flatten(x)[0] for x in (got, want))
    assert len(got) == len(want)
    for g, w in zip(got, want):
        if isinstance(w, pt.Tensor):
            assert (g.shape, g.dtype, g.stride(), g.device) == (w.shape, w.dtype, w.stride(), w.device)
            np.testing.assert_array_equal(g.detach().numpy(), w.detach().numpy())
        else:
            assert g == w


def inputs(seed=0, *shapes, dtype=pt.float64):
    rng = np.random.default_rng(seed)
    return [pt.from_numpy(rng.normal(size=s)).to(dtype) for s in shapes or ((3, 4),)]


@pytest.fixture
def network():
    pt.manual_seed(0)
    return pt.nn.Sequential(pt.nn.Linear(4, 8), pt.nn.GELU(), pt.nn.LayerNorm(8), pt.nn.Linear(8, 2)).double()


# -- programs --------------------------------------------------------------------------------------

def views_and_writes(x):
    y = x.clone()
    y[0].mul_(2)
    y[:, 1:3] += x[:, :2]
    y.t()[0] = 7
    z = pt.zeros(3, dtype=x.dtype)
    z.copy_(y.sum(1))
    return y, z.add_(1), y[1:].reshape(-1)


def made_inside(x):
    a = pt.arange(4, dtype=x.dtype) + pt.tensor([1.0, 2, 3, 4], dtype=x.dtype)
    b = pt.empty(4, dtype=x.dtype).fill_(3) * pt.full((4,), 2.0, dtype=x.dtype)
    c = pt.zeros_like(x) + pt.ones_like(x.t()).t() + x.new_ones(4)
    d = pt.empty_strided((3, 4), (1, 3), dtype=x.dtype).copy_(x)
    return x + a * b + c, d, pt.linspace(0, 1, 4, dtype=x.dtype) + pt.eye(4, dtype=x.dtype)


def control_flow_of_sizes(x):
    total = x.new_zeros(())
    for row in x:
        total = total + row.max()
    if x.shape[0] > 2 and x.dtype is pt.float64:
        total = total * x.numel()
    return {"total": total, "parts": [p.sum() for p in x.split(2, 1)]}


def gradients(x):
    g = pt.func.grad(lambda y: (y.sin() * y).sum())(x)
    h = pt.func.vmap(pt.func.hessian(lambda v: (v ** 3).sum()))(x)
    _, t = pt.func.jvp(lambda y: pt.softmax(y, 1), (x,), (pt.ones_like(x),))
    return g, h, t


def recorded(x):
    y = x.detach().requires_grad_()
    loss = (pt.tanh(y) @ y.t()).logsumexp(0).sum()
    (g,) = pt.autograd.grad(loss, [y], create_graph=True)
    (h,) = pt.autograd.grad(g.pow(2).sum(), [y])
    return loss, g, h


class Cube(pt.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x * x


def custom_function(x):
    y = x.detach().requires_grad_()
    return Cube.apply(x), pt.autograd.grad(Cube.apply(y).sum(), y)


def with_out(x):
    out = pt.empty(0, dtype=x.dtype)
    pt.add(x, x, out=pt.empty_like(x))
    values, indices = pt.empty(3, dtype=x.dtype), pt.empty(3, dtype=pt.int64)
    pt.max(x, 1, out=(values, indices))
    return values, indices, out


PROGRAMS = [views_and_writes, made_inside, control_flow_of_sizes, gradients, recorded, custom_function, with_out]


@MODES
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_program(f, mode):
    """The graph has rows alone, and runs on other data as the program does; twice, as nothing is kept between."""
    (x,), (y,) = inputs(1), inputs(2)
    traced = make_fx(f, tracing_mode=mode)(x.clone())
    assert fx.verify(traced.graph) == "rows"
    for data in (x, y, y):
        got, want = traced(data.clone()), f(data.clone())
        if isinstance(want, dict):
            assert list(got) == list(want)
        same(got, want)


@MODES
def test_module(network, mode):
    """Parameters of a module that is traced are the module's own."""
    (x,) = inputs(3, (5, 4))
    traced = make_fx(network, tracing_mode=mode)(x)
    same(traced(x), network(x))
    with pt.no_grad():
        network[0].weight.mul_(2)
    same(traced(x), network(x))
    assert {name for name, _ in traced.named_parameters()} == {f"_param_constant{k}" for k in range(6)}


@MODES
def test_training_step(network, mode):
    """A step by ``functional_call`` is a function of parameters and data alone."""
    params = {k: v.detach() for k, v in network.named_parameters()}
    x, y = inputs(4, (5, 4), (5, 2))

    def step(params, x, y):
        def loss(p):
            return pt.nn.functional.mse_loss(pt.func.functional_call(network, p, (x,)), y)
        grads, value = pt.func.grad_and_value(loss)(params)
        return {k: p - 0.1 * grads[k] for k, p in params.items()}, value
    traced = make_fx(step, tracing_mode=mode)(params, x, y)
    assert not [n for n in traced.graph.nodes if n.op == "get_attr"]
    other = {k: v * 1.5 for k, v in params.items()}
    got, want = traced(other, y @ x[:2, :].t()[:2, :].sum(0, keepdim=True).expand(2, 2) @ x[:2], y), None
    x2 = y @ x[:2, :].t()[:2, :].sum(0, keepdim=True).expand(2, 2) @ x[:2]
    want = step(other, x2, y)
    assert list(got[0]) == list(want[0])
    same(got, want)


def test_random_numbers_are_drawn_at_each_run():
    traced = make_fx(lambda x: pt.nn.functional.dropout(x, 0.5) + pt.rand(4))(pt.ones(4))
    pt.manual_seed(3)
    first = traced(pt.ones(4))
    second = traced(pt.ones(4))
    assert not pt.equal(first, second)
    pt.manual_seed(3)
    assert pt.equal(traced(pt.ones(4)), first)


def test_nested_under_vmap():
    """A graph made inside a transformation, whose values are samples."""
    x = pt.arange(6.0).reshape(3, 2)

    def f(v):
        traced = make_fx(lambda a: (a * pt.ones(2)).sum() + a[0])(v)
        assert fx.verify(traced.graph) == "rows"
        return traced(v)
    same(pt.vmap(f)(x), x.sum(1) + x[:, 0])


def test_a_graph_is_traced_again():
    (x,) = inputs(5)
    once = make_fx(gradients)(x)
    twice = make_fx(once)(x)
    assert [n.target for n in twice.graph.nodes] == [n.target if n.op != "placeholder" else "arg0_1"
                                                    for n in once.graph.nodes]
    same(twice(x), once(x))


# -- constants and reads ---------------------------------------------------------------------------------

def test_what_is_made_of_data_is_made_at_each_run():
    def f(x):
        t = pt.tensor([1.0, 2.0])
        t.add_(x)
        return t
    traced = make_fx(f)(pt.ones(2))
    same([traced(pt.ones(2)), traced(pt.ones(2))], [pt.tensor([2.0, 3.0])] * 2)


def test_memory_of_others_is_shared():
    a = np.zeros(2, "float32")
    outside = pt.ones(2)

    def f(x):
        return x + pt.from_numpy(a) + outside
    traced = make_fx(f)(pt.ones(2))
    a[:] = 5
    outside.mul_(10)
    same(traced(pt.ones(2)), pt.tensor([16.0, 16.0]))


def test_arrays_as_operands():
    same(make_fx(lambda x: x * np.array([1.0, 2.0]))(pt.ones(2))(pt.ones(2)), pt.tensor([1.0, 2.0], dtype=pt.float64))


def test_constants_may_be_read():
    def f(x):
        t = pt.tensor(3.0) * 2
        return x * t.item() if t > 5 else x
    same(make_fx(f)(pt.ones(2))(pt.ones(2)), pt.tensor([6.0, 6.0]))


@MODES
def test_constants_that_are_written_to_stay_known(mode):
    """By what is known; a view, or what it is a view of, is not known any more."""
    def f(x):
        t, rows = pt.zeros(()), pt.zeros(2, 3)
        t += 1
        t.fill_(t.item() + 2)
        part = rows[1]
        part.add_(t)
        return x * t.item() + part.sum().item()
    x = inputs()[0]
    same(make_fx(f, tracing_mode=mode)(x)(-x), -3 * x + 9)
    for wrong in (lambda x: pt.zeros(()).add_(x.sum()).item(),
                  lambda x: (t := pt.zeros(2), t[0].add_(1), t.sum().item()),
                  lambda x: (t := pt.zeros(2), v := t[0], t.add_(1), v.item())):
        with pytest.raises(RuntimeError, match="tracing tensor"):
            make_fx(wrong, tracing_mode=mode)(x)


@MODES
@pytest.mark.parametrize("optimizer", [pt.optim.Adam, pt.optim.SGD, pt.optim.RMSprop, pt.optim.Adagrad])
def test_steps_of_optimizers(optimizer, mode):
    def f(w, x):
        w = w.detach().requires_grad_()
        own = optimizer([w], lr=0.1)
        for _ in range(3):
            own.zero_grad()
            (x @ w).pow(2).sum().backward()
            own.step()
        return w.detach()
    w, x = inputs(0, (3, 1), (4, 3))
    same(make_fx(f, tracing_mode=mode)(w, x)(w + 1, x * 2), f(w + 1, x * 2))


def test_reads_of_values_from_outside_are_told():
    from ptcore.fx.experimental.proxy_tensor import ProxyTracer
    a = pt.tensor([1.0, 2.0])
    tracer = ProxyTracer(pt.nn.Module())
    with tracer:
        a.tolist()
        f"{a}"
        a.numpy()
        a.data_ptr()
    kinds = [kind for kind, _ in tracer.reads]
    assert kinds[0] == "tolist"
    assert "format" in kinds
    assert kinds[-2:] == ["numpy", "data_ptr"]


@MODES
@pytest.mark.parametrize("read", [
    lambda x: x.sum().item(), lambda x: x if x.sum() > 0 else -x, lambda x: float(x[0, 0]), lambda x: int(x.argmax()),
    lambda x: x.tolist(), lambda x: x.numpy(), lambda x: x.data_ptr(), lambda x: x[x > 0], lambda x: pt.unique(x),
    lambda x: pickle.dumps(x), lambda x: [1, 2, 3][x.argmax()], lambda x: pt.from_dlpack(x), lambda x: np.asarray(x)],
    ids=range(13))
def test_reads_are_refused(read, mode):
    (x,) = inputs()
    with pytest.raises((RuntimeError, BufferError)) as error:
        make_fx(read, tracing_mode=mode)(x)
    assert pt._interpret.entered() == ()
    if "tracing tensor" in str(error.value):
        assert f'File "{__file__}", line {read.__code__.co_firstlineno}' in str(error.value)


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_writes_by_masks(mode):
    def f(x):
        y, z = x.clone(), x.clone()
        y[x > 0] = 5
        z[x[:, 0] > 0] = x.sum(0)
        return y, z
    x = inputs()[0]
    got = make_fx(f, tracing_mode=mode)(x)(-x)
    for g, want in zip(got, f(-x), strict=True):
        same(g, want)


def test_a_constant_that_was_written_to_is_none():
    def f(x):
        t = pt.tensor(1.0)
        view = t.view(1)
        view.add_(x)
        return t.item()
    with pytest.raises(RuntimeError, match="tracing tensor"):
        make_fx(f)(pt.ones(1))


@pytest.mark.parametrize("mode", ["fake", "symbolic"])
@pytest.mark.parametrize("write", [
    lambda c, part, x: c.add_(1), lambda c, part, x: part.add_(1), lambda c, part, x: c[1:].copy_(x[1:]),
    lambda c, part, x: pt.add(x, 1, out=c), lambda c, part, x: c.__setitem__(0, 3.0)], ids=range(5))
@pytest.mark.parametrize("read", [
    lambda c, part: c.sum().item(), lambda c, part: float(part[0]), lambda c, part: c.tolist()[0],
    lambda c, part: part.sum().item(), lambda c, part: int((c * 2)[1])], ids=range(5))
def test_without_values_memory_outside_is_not_known_after_a_write(read, write, mode):
    c = pt.zeros(3)
    part = c[1:]

    def f(x, writing=True):
        if writing:
            write(c, part, x)
        return x * (c + 1) * read(c, part)
    same(make_fx(lambda x: f(x, False), tracing_mode=mode)(pt.ones(3))(pt.ones(3)), pt.zeros(3))
    with pytest.raises(RuntimeError, match=r"tracing tensor|reads a tensor from outside that it has written to"):
        make_fx(f, tracing_mode=mode)(pt.ones(3))
    same(c, pt.zeros(3))
    traced = make_fx(lambda x: (write(c, part, x), c * x)[1], tracing_mode=mode)(pt.ones(3))
    same(traced(pt.ones(3)), c)


# -- graphs ------------------------------------------------------------------------------------------------

def test_names_lines_and_code():
    def f(x, pair, *, scale=2.0):
        return (x + pair[0]).sum() * scale, pair[1]
    traced = make_fx(f)(pt.ones(2), [pt.ones(2), pt.ones(3)])
    nodes = list(traced.graph.nodes)
    assert [n.name for n in nodes] == ["x_1", "pair_1", "pair_2", "add", "sum_1", "mul", "output"]
    assert "return (x + pair[0]).sum()" in nodes[3].stack_trace
    assert __file__ in nodes[3].stack_trace
    assert "add = ptcore.add(x_1, pair_1)" in traced.code
    assert nodes[3].target is pt.add
    plain = make_fx(f, record_stack_traces=False)(pt.ones(2), [pt.ones(2), pt.ones(3)])
    assert list(plain.graph.nodes)[3].stack_trace is None
    assert [n.name for n in make_fx(lambda *a: a[0] + a[1])(pt.ones(1), pt.ones(1)).graph.nodes][:2] == ["arg0_1",
                                                                                                       "arg1_1"]


def test_trees_are_checked():
    traced = make_fx(lambda d: {"sum": d["a"] + d["b"][0]})({"a": pt.ones(1), "b": (pt.ones(1),)})
    assert traced({"a": pt.ones(1), "b": (pt.ones(1) * 2,)})["sum"].item() == 3
    with pytest.raises(RuntimeError, match="structure"):
        traced({"a": pt.ones(1)})


def test_unused_nodes_go():
    assert calls(make_fx(lambda x: (x.exp(), x + 1)[1])(pt.ones(2))) == ["add"]


def test_decomposition_table():
    def softplus(x, beta=1.0, threshold=20.0):
        return (1 + (x * beta).exp()).log() / beta
    (x,) = inputs()
    traced = make_fx(pt.nn.functional.softplus, {pt.nn.functional.softplus: softplus})(x)
    assert "softplus" not in calls(traced)
    assert {"exp", "log"} <= set(calls(traced))
    by_function = make_fx(lambda y: pt.mul(y, y), decomposition_table={pt.mul: lambda a, b: a.square()})(x)
    assert calls(by_function) == ["square"]


def test_pickled_and_copied():
    (x,) = inputs()
    traced = make_fx(lambda x: views_and_writes(x)[:2] + gradients(x))(x)
    for other in (pickle.loads(pickle.dumps(traced)), copy.deepcopy(traced), copy.copy(traced)):
        same(other(x), traced(x))
        assert fx.verify(other.graph) == "rows"


def test_wrong_arguments():
    with pytest.raises(ValueError, match="tracing_mode must be one of"):
        make_fx(pt.add, tracing_mode="imaginary")
    with pytest.raises(TypeError, match="f must be callable"):
        make_fx(3)


@MODES
def test_errors_of_the_program_come_through(mode):
    def f(x):
        return x @ x
    with pytest.raises(RuntimeError, match=r"mm|matmul"):
        make_fx(f, tracing_mode=mode)(pt.ones(2, 3))
    assert pt._interpret.entered() == ()


def test_a_leaked_stand_in_is_refused():
    kept = []
    make_fx(lambda x: kept.append(x) or x)(pt.ones(2))
    with pytest.raises(RuntimeError, match="transformation that has ended"):
        kept[0] + 1


def test_fakes_have_no_data_and_tell_the_truth():
    seen = []

    def f(x):
        y = x.t()[1:]
        seen.append((x.device, y.stride(), y.storage_offset(), y.is_contiguous(), y.is_cpu, y._base is x,
                     x.requires_grad, y.shape, x.is_leaf))
        return y * 2
    x = pt.ones(3, 4)
    make_fx(f, tracing_mode="fake")(x)
    make_fx(f)(x)
    assert seen[0] == seen[1] == (pt.device("cpu"), (1, 4), 1, False, True, True, False, (3, 3), True)


def test_gradients_land_at_the_leaves_of_the_program():
    w = pt.ones(2, requires_grad=True)

    def f(x):
        (x * w).sum().backward()
        return w.grad * 1
    same(make_fx(f)(pt.tensor([2.0, 3.0]))(pt.tensor([5.0, 6.0])), pt.tensor([2.0, 3.0]))
