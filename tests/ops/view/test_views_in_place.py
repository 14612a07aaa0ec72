"""The in-place forms of views: a tensor gets other dims, under every transformation, tracer and mode."""
import pytest
from _names_seen import NamesSeen

import ptcore as pt
from ptcore import _ops as ops
from ptcore.func import functionalize, grad, hessian, jvp, vmap
from ptcore.fx.experimental.proxy_tensor import make_fx

CHANGES = {
    "t_": lambda x: x.t_(), "transpose_": lambda x: x.transpose_(0, -1), "swapdims_": lambda x: x.swapdims_(1, 0),
    "swapaxes_": lambda x: x.swapaxes_(0, 1), "unsqueeze_": lambda x: x.unsqueeze_(-1),
    "squeeze_": lambda x: x.unsqueeze_(1).squeeze_(), "as_strided_": lambda x: x.as_strided_((3,), (2,), 1),
    "several": lambda x: x.unsqueeze_(0).t_() if x.ndim < 2 else x.t_().unsqueeze_(1).squeeze_(1).unsqueeze_(0),
}
SAME_MEMORY = [name for name in CHANGES if name != "as_strided_"]
X = pt.arange(6.0).reshape(2, 3)


def test_every_view_in_place_is_here():
    found = {f"{row.called}_" for row in ops.rows() if row.inplace and row.family == "view"}
    assert found | {"swapdims_", "several"} == set(CHANGES)


def made_inside(change):
    """A function that changes the dims of what it makes, beside an alias and an older view of it."""
    def f(x):
        y = x * x
        alias, row = y.detach(), y[0]
        changed = change(y)         # no assert, which pytest rewrites: the text would not be the function's any more
        y.mul_(x.sum())
        return changed, alias, row
    return f


def of_argument(change):
    """A function that changes the dims of its argument."""
    def f(x):
        line = x.view(-1)
        change(x)
        line.mul_(2)
        return x.sum(), x * 1, line
    return f


def same(a, b, strides=True):
    assert len(a) == len(b)
    for x, y in zip(a, b):
        assert x.tolist() == y.tolist()
        assert x.stride() == y.stride() or not strides


WAYS = {
    "functionalize": functionalize, "copied views": lambda f: functionalize(f, remove="mutations_and_views"),
    **{f"make_fx {mode}": lambda f, mode=mode: make_fx(f, tracing_mode=mode)(X.clone()) for mode in (
        "real", "fake", "symbolic")},
    "make_fx of functionalize": lambda f: make_fx(functionalize(f))(X.clone()),
    "trace": lambda f: pt.jit.trace(f, (X.clone(),)), "compile": pt.compile,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CHANGES)
def test_graphs(name, way):
    x = X.clone()
    assert CHANGES[name](x) is x
    for program in (made_inside, of_argument):
        f = program(CHANGES[name])
        other = WAYS[way](f)
        for k in range(3):
            a, b = X.clone() + k, X.clone() + k
            wanted, got = f(a), other(b)
            same(wanted, got, strides=way not in ("copied views", "functionalize", "make_fx of functionalize"))
            same([a], [b])


@pytest.mark.parametrize("name", CHANGES)
def test_vmap(name):
    f = made_inside(CHANGES[name])
    stack = pt.stack([X, X + 1, X - 2])
    for k, found in enumerate(zip(*vmap(f)(stack))):
        assert [x.tolist() for x in found] == [x.tolist() for x in f(stack[k])]
    shared = pt.vmap(lambda x, y: (CHANGES[name](y * 1), x * 2), in_dims=(0, None), out_dims=(None, 0))
    assert shared(stack, X)[0].tolist() == CHANGES[name](X.clone()).tolist()


@pytest.mark.parametrize("name", CHANGES)
def test_gradients(name):
    def f(x):
        y, _, row = made_inside(CHANGES[name])(x)
        # The history of a base that shows less than before has nothing of the rest, as in PyTorch.
        return y.sin().sum() + (0 if name == "as_strided_" else row.sum())
    x = X.double() / 4 + 0.1
    leaf = x.clone().requires_grad_()
    f(leaf).backward()
    assert grad(f)(x).tolist() == leaf.grad.tolist()
    assert pt.allclose(vmap(grad(f))(pt.stack([x, x + 1]))[0], leaf.grad)
    assert pt.autograd.gradcheck(f, (leaf,))
    assert pt.autograd.gradgradcheck(f, (leaf,))


@pytest.mark.parametrize("name", SAME_MEMORY)
def test_forward_mode(name):
    """An older view, and a view that is changed itself, keep the tangents of their elements."""
    change = CHANGES[name]

    def f(x):
        y = x * x
        older = y[0]
        change(y)
        first = y[0] if y.ndim else y
        y.mul_(x.sum())
        z = (x * 3)[0:2]
        inside = z[1]
        change(z)
        z.mul_(x.max())
        inside.sin_()
        return y, older, first, z, inside
    x = X.double() / 4 + 0.1
    t = pt.linspace(-1, 1, 6, dtype=pt.float64).reshape(2, 3)
    _, found = jvp(f, (x,), (t,))
    step = 1e-6
    for a, up, down in zip(found, f(x + step * t), f(x - step * t)):
        assert pt.allclose(a, (up - down) / (2 * step), atol=1e-7)
    assert hessian(lambda x: f(x)[0].sum())(x).shape == (2, 3, 2, 3)


def test_forward_mode_refuses_other_memory():
    with pytest.raises(RuntimeError, match=r"^as_strided_: a tensor with a tangent"):
        jvp(lambda x: (x * 1).as_strided_((3,), (1,), 1), (X,), (X,))


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_tensors_from_outside(mode):
    """A graph cannot hold their new dims; where nothing is traced they change as ever."""
    outside = pt.ones(3)
    with pytest.raises(RuntimeError, match="make it an argument"):
        make_fx(lambda x: x + outside.unsqueeze_(0), tracing_mode=mode)(X)
    assert outside.shape == (3,)
    assert vmap(lambda x: x + outside.unsqueeze_(0))(X).shape == (2, 1, 3)
    assert outside.shape == (1, 3)


def test_graph_of_an_argument():
    """The argument changes last: other nodes see its first dims."""
    def f(x):
        alias = x.detach()
        x.t_().unsqueeze_(0)
        return alias, x + 1
    traced = make_fx(f)(X.clone())
    assert [n.name for n in traced.graph.nodes] == ["x_1", "detach", "t", "unsqueeze", "add", "t_", "unsqueeze_", "output"]
    x = X.clone()
    _, y = traced(x)
    assert (x.shape, y.shape) == ((1, 3, 2), (1, 3, 2))


def test_scripted():
    @pt.jit.script
    def f(x):
        y = x * 2
        y.t_()
        x.unsqueeze_(0)
        return y + 1
    for _ in range(3):
        x = X.clone()
        assert f(x).tolist() == (X.T * 2 + 1).tolist()
        assert x.shape == (1, 2, 3)


SEEN = []


class Sub(pt.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        SEEN.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


@pytest.mark.parametrize("name", [name for name in CHANGES if name not in ("several", "squeeze_", "swapdims_")])
def test_modes_and_classes_see_the_name(name):
    x = X.clone()
    with NamesSeen() as mode:
        CHANGES[name](x)
    assert mode.names == [name]
    y = X.clone().as_subclass(Sub)
    SEEN.clear()
    assert CHANGES[name](y) is y
    assert SEEN == [name]
    assert y.shape == x.shape


def test_other_tensors_of_the_memory_keep_their_dims():
    x = X.clone()
    row, alias = x[1], x.detach()
    x.t_()
    assert (row.tolist(), alias.shape) == ([3, 4, 5], (2, 3))
    traced = make_fx(lambda x: (x.view(-1), x.t_())[0] * 2)(X.clone())
    assert traced(X.clone()).shape == (6,)


def test_interpreters_that_refuse():
    """What ``becomes`` raises ends the call before anything is changed."""
    y = None

    def f(x):
        nonlocal y
        y = x * 1
        with pytest.raises(RuntimeError, match=r"^as_strided_: "):
            y.as_strided_((2,), (1,))
        assert y.shape == (2, 3)
        return y * 2
    assert jvp(f, (X,), (X,))[1].tolist() == (X * 2).tolist()


def test_inference_tensors():
    """They keep their dims outside of inference mode, as in PyTorch."""
    with pt.inference_mode():
        x = pt.ones(2, 3)
        assert x.t_().shape == (3, 2)
    with pytest.raises(RuntimeError, match=r"^t_: Inplace update to inference tensor"):
        x.t_()


def test_errors_name_the_form():
    for call, message in ((lambda: pt.ones(2, 2, 2).t_(), "t_: input must have at most 2"),
                          (lambda: pt.ones(2, 2).transpose_(0, 5), "transpose_: Dimension out of range"),
                          (lambda: pt.ones(2, 2).swapaxes_(0, 5), "swapaxes_: Dimension out of range"),
                          (lambda: pt.ones(2).as_strided_((5,), (1,)), "as_strided_: sizes"),
                          (lambda: pt.Tensor.t_(3), "t_: input must be a Tensor, got int"),
                          (lambda: pt.Tensor.as_strided_(3, (1,), (1,)), "as_strided_: input must be a Tensor")):
        with pytest.raises((RuntimeError, TypeError, IndexError)) as error:
            call()
        assert str(error.value).startswith(message)


def windows_of(x):
    return {"unfold": x.unfold(0, 2, 1), "as_strided": x.as_strided((3, 3), (1, 1)), "transposed": x.unfold(0, 3, 2).t(),
            "odd strides": x.as_strided((2, 3), (2, 1))}


@pytest.mark.parametrize("name", windows_of(pt.arange(7.0)))
def test_a_recorded_write_to_windows_that_overlap_is_refused(name):
    """Several elements of the view are one of the base, of which the last write counts."""
    x = pt.arange(7.0, requires_grad=True)
    writes = {"mul_": lambda v: v.mul_(2), "copy_": lambda v: v.copy_(v * 3), "exp_": lambda v: v.exp_(),
              "scatter_": lambda v: v.scatter_(0, pt.zeros(1, 2, dtype=pt.int64), pt.ones(1, 2)),
              "tril_": lambda v: v.tril_(), "index_add_": lambda v: v.index_add_(0, pt.tensor([1]), pt.ones(1, v.size(1)))}
    for write in writes.values():
        y = x * 1
        with pytest.raises(RuntimeError, match="elements of the written-to view overlap in memory"):
            write(windows_of(y)[name])
        assert y.equal(x)
        with pt.no_grad():
            write(windows_of(y)[name])
    y = x * 1
    windows_of(y)[name].fill_(4)
    windows_of(y)[name].zero_()
    windows_of(y)[name].normal_()
    windows_of(y)[name].copy_(windows_of(x.detach())[name] * 2)
    windows_of(y)[name][:] = windows_of(x.detach())[name]
    y.sum().backward()
    touched = set(windows_of(pt.arange(7))[name].reshape(-1).tolist())
    assert x.grad.tolist() == [float(k not in touched) for k in range(7)]


@pytest.mark.parametrize("strides", [(3, 1), (1, 2), (2, 3), (7, 3)])
def test_a_recorded_write_to_places_that_differ(strides):
    x = pt.arange(12.0, requires_grad=True)
    y = x * 1
    y.as_strided((2, 2), strides).mul_(5)
    y.sum().backward()
    places = {a * strides[0] + b * strides[1] for a in range(2) for b in range(2)}
    assert len(places) == 4
    assert x.grad.tolist() == [5.0 if k in places else 1.0 for k in range(12)]
