"""``functionalize``: what a write may do is what it may do outside."""
import pytest

import ptcore as pt
from ptcore.func import functionalize
from ptcore.fx.experimental.proxy_tensor import make_fx

REFUSED = {
    "a float to ints": (lambda x: x.add_(1.5), lambda: pt.arange(3)),
    "true division of ints": (lambda x: x.div_(2), lambda: pt.arange(3)),
    "a larger shape": (lambda x: x.add_(pt.ones(3)), lambda: pt.ones(1)),
    "a larger shape to a view": (lambda x: x[0].add_(pt.ones(3)), lambda: pt.ones(2, 1)),
    "a value made inside": (lambda x: x.clone().mul_(pt.ones(2, 3)), lambda: pt.ones(3)),
    "out of another kind": (lambda x: pt.add(x, 1.5, out=pt.empty_like(x, dtype=pt.int64)), lambda: pt.ones(3)),
}
ALLOWED = {
    "a comparison": (lambda x: x.gt_(1), lambda: pt.arange(3.)),
    "a wider dtype": (lambda x: x.add_(pt.ones(3, dtype=pt.float64)), lambda: pt.arange(3.)),
    "a reversed view": (lambda x: x[::-1].add_(pt.arange(3, dtype=pt.float64)), lambda: pt.arange(3.)),
    "a comparison of part": (lambda x: x[1:].ge_(2), lambda: pt.arange(3)),
    "bits": (lambda x: x.view(pt.int32).add_(1), lambda: pt.arange(4.).reshape(2, 2)),
    "bits of a part": (lambda x: x[0].view(pt.int32).add_(1), lambda: pt.arange(4.).reshape(2, 2)),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
def test_a_write_is_refused_as_it_is_outside(name, remove):
    f, make = REFUSED[name]
    x, y = make(), make()
    with pytest.raises(RuntimeError) as outside:
        f(x)
    with pytest.raises(type(outside.value)) as inside:
        functionalize(f, remove=remove)(y)
    assert str(inside.value).partition("\n")[0] == str(outside.value).partition("\n")[0]
    assert y.tolist() == make().tolist()


@pytest.mark.parametrize("name", ALLOWED)
@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
def test_a_write_casts_as_it_does_outside(name, remove):
    f, make = ALLOWED[name]
    x, y = make(), make()
    expected, got = f(x), functionalize(f, remove=remove)(y)
    assert (got.dtype, got.tolist(), y.dtype, y.tolist()) == (expected.dtype, expected.tolist(), x.dtype, x.tolist())


def reshaped_reverse(x):
    y = x[::-1].reshape(2, 2)
    y.zero_()
    return x + 0


def reshaped_columns(x):
    y = x.reshape(2, 2)[:, ::-1].reshape(4)         # a copy
    y.zero_()
    return x + 0


@pytest.mark.parametrize("f", [reshaped_reverse, reshaped_columns])
def test_views_with_negative_strides(f):
    want, given = f(pt.arange(4.0)), pt.arange(4.0)
    assert pt.equal(pt.func.functionalize(f)(given), want)
    graph = make_fx(pt.func.functionalize(f))(pt.arange(4.0))
    assert pt.equal(graph(pt.arange(4.0)), want)


def test_a_tensor_that_is_given_twice():
    for change, shape in ((lambda a: a.unsqueeze_(0), (1, 2, 3)), (lambda a: a.t_(), (3, 2))):
        x = pt.ones(2, 3)
        pt.func.functionalize(lambda a, b, change=change: change(a).sum())(x, x)
        assert tuple(x.shape) == shape


def test_arguments_that_share_memory_within_a_transformation():
    def f(a, b):
        a.add_(1)
        return b * 1
    assert pt.vmap(lambda x: f(x, x.view(-1)))(pt.ones(2, 3)).tolist() == [[2.0] * 3] * 2
    with pytest.raises(RuntimeError, match="two arguments show the same memory"):
        pt.vmap(lambda x: pt.func.functionalize(f)(x, x.view(-1)))(pt.ones(2, 3))
    assert pt.vmap(lambda x: pt.func.functionalize(f)(x, x * 2))(pt.ones(2, 3)).tolist() == [[2.0] * 3] * 2


class Straight(pt.autograd.Function):
    """Rounds; its derivative is a number that no rule of ``round`` gives."""

    @staticmethod
    def forward(x):
        return x.round()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def jvp(ctx, t):
        return t * 10


def test_custom_functions_inside_forward_mode_are_refused():
    x = pt.tensor([0.25, 1.75])
    slope = pt.func.functionalize(lambda y: pt.func.jvp(Straight.apply, (y,), (y,))[1])(x)
    assert slope.tolist() == [2.5, 17.5]
    assert pt.func.functionalize(Straight.apply)(x).tolist() == [0.0, 2.0]
    with pytest.raises(RuntimeError, match="runs no custom"):
        pt.func.jvp(pt.func.functionalize(Straight.apply), (x,), (x,))
