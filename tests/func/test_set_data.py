"""The data of a tensor are set, or written to, under interpreters: right, or refused by name, never lost in silence."""
import pytest

import ptcore as pt
from ptcore import jit
from ptcore.func import functionalize, grad, jvp, vmap
from ptcore.fx.experimental.proxy_tensor import make_fx

pytestmark = pytest.mark.core

INTERPRETERS = {
    "functionalize": lambda f, x, y: functionalize(f)(x, y), "make_fx": lambda f, x, y: make_fx(f)(x, y),
    "fake": lambda f, x, y: make_fx(f, tracing_mode="fake")(x, y), "trace": lambda f, x, y: jit.trace(f, (x, y)),
    "vmap": lambda f, x, y: vmap(f)(x.unsqueeze(0), y.unsqueeze(0)), "vmap of one": lambda f, x, y: vmap(f, (None, 0))(
        x, y.unsqueeze(0)), "jvp": lambda f, x, y: jvp(f, (x, y), (y, y))}


def set_to_another(x, y):
    x.data = y
    return x + 1


def set_to_a_result(x, y):
    x.data = y * 3
    x.mul_(2)
    return x + 1


def set_of_a_result(x, y):
    z = x * 1
    z.data = y * 3
    return z.mul_(2)


OUTSIDE = pt.zeros(2)


def set_outside(x, y):
    OUTSIDE.data = y * 3
    return OUTSIDE + x


def set_to_outside(x, y):
    x.data = pt.zeros(2)
    return x + y


FUNCTIONS = [set_to_another, set_to_a_result, set_of_a_result, set_outside, set_to_outside]


@pytest.mark.parametrize(("f", "name"), [(f, name) for f in FUNCTIONS for name in INTERPRETERS
                                         if (f, name) != (set_to_outside, "vmap of one")],     # both plain
                         ids=lambda x: getattr(x, "__name__", x))
def test_set(f, name):
    x, y = pt.zeros(2), pt.ones(2)
    with pytest.raises(RuntimeError, match="data: the memory of a traced or batched tensor cannot be set"):
        INTERPRETERS[name](f, x, y)
    assert x.tolist() == [0, 0] and y.tolist() == [1, 1] and OUTSIDE.tolist() == [0, 0]
    assert set_to_another(x, y).tolist() == [2, 2]          # nothing stays on


def test_compile_runs_it_eagerly():
    for _ in range(2):
        x, y = pt.zeros(2), pt.ones(2)
        assert pt.compile(set_to_a_result)(x, y).tolist() == [7, 7]
        assert x.tolist() == [6, 6] and y.tolist() == [1, 1]


def test_under_grad_alone_it_is_that_of_a_plain_run():
    def f(x):
        y = x * 2
        y.data = pt.full((2,), 5.0)
        return (y * y).sum()
    assert grad(f)(pt.ones(2)).tolist() == [20, 20]


WRITES = {"data": lambda s, x: s.data.add_(x), "detach": lambda s, x: s.detach().add_(x),
          "part": lambda s, x: s.data[0].add_(x[0]), "copy": lambda s, x: s.clone().data.add_(x),
          "made": lambda s, x: pt.zeros(2).data.add_(x),
          "in no_grad": lambda s, x: pt.no_grad()(lambda: s.data.add_(x))()}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("captured", [True, False])
def test_what_samples_share_does_not_take_their_values(name, captured):
    s, xs, write = pt.zeros(2), pt.arange(4.0).reshape(2, 2), WRITES[name]
    with pytest.raises(RuntimeError, match="input is not batched, but a value that is would be written to it"):
        vmap(lambda x: write(s, x))(xs) if captured else vmap(write, (None, 0))(s, xs)
    assert s.tolist() == [0, 0]


@pytest.mark.parametrize("captured", [True, False])
def test_what_samples_share_takes_what_they_share(captured):
    """Once for all samples, as in PyTorch."""
    s, xs = pt.zeros(2), pt.arange(4.0).reshape(2, 2)

    def f(s, x):
        s.data.add_(1)
        return s + x
    found = vmap(lambda x: f(s, x))(xs) if captured else vmap(f, (None, 0))(s, xs)
    assert found.tolist() == [[1, 2], [3, 4]] and s.tolist() == [1, 1]


def read(x):
    return ((x * x).data * x.sin()).sum()


def written(x):
    y = x * 1
    y.data.mul_(2)
    return (y * y * x).sum()


def written_in_part(x):
    y = x * 1
    y[:1].data.mul_(2)
    return (y * y * x).sum()


def written_behind_a_rule(x):
    y = x * 1
    y.detach().mul_(2)
    return (y * y * x).sum()


def data_of_data(x):
    return (x.data.data * x * x).sum()


@pytest.mark.parametrize("f", [read, written, written_in_part, written_behind_a_rule, data_of_data])
def test_data_are_constant_at_every_level(f):
    """As on the tape: `.data` has no history at any order, whichever transformations are around it."""
    x = pt.tensor([0.5, 1.5, -2.0], dtype=pt.float64, requires_grad=True)
    (first,) = pt.autograd.grad(f(x), x, create_graph=True)
    (second,) = pt.autograd.grad(first.sum(), x)
    x, ones = x.detach(), pt.ones(3, dtype=pt.float64)
    for slope in (grad(f)(x), jvp(f, (x,), (ones,))[1], grad(functionalize(f))(x),
                  vmap(grad(f))(x.expand(2, 3).clone())[1]):
        pt.testing.assert_close(slope, first.detach() if slope.ndim else first.detach().sum(), rtol=1e-14, atol=0)
    for curve in (grad(lambda x: grad(f)(x).sum())(x), jvp(grad(f), (x,), (ones,))[1],
                  grad(lambda x: jvp(f, (x,), (ones,))[1])(x), pt.func.hessian(f)(x).sum(1)):
        pt.testing.assert_close(curve, second, rtol=1e-14, atol=0)


@pytest.mark.parametrize("name", ["vmap", "jvp", "trace"])
def test_files_of_stand_ins_are_refused(name):
    import io

    def f(x, y):
        pt.save(x, io.BytesIO())
        return x + y
    with pytest.raises(RuntimeError, match="of a traced or batched tensor is not known here"):
        INTERPRETERS[name](f, pt.ones(2), pt.ones(2))
