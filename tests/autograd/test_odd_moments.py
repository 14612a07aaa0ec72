"""Derivatives where memory, shapes or views change at an odd moment: what was lost or wrong in silence."""
import numpy as np
import pytest

import ptcore as pt
from ptcore.autograd import Function, forward_ad
from ptcore.func import grad, jacfwd, jacrev, jvp, vmap
from ptcore.fx.experimental.proxy_tensor import make_fx
from ptcore.utils.checkpoint import checkpoint

pytestmark = pytest.mark.core


def leaf(n=3):
    return pt.arange(1., n + 1, dtype=pt.float64).requires_grad_()


def test_set_of_a_tensor_with_history():
    x, y = leaf(), pt.zeros(3, dtype=pt.float64)
    y.set_(x * 2)
    assert y.requires_grad and y.tolist() == [2, 4, 6]
    with pytest.raises(RuntimeError, match="derivative for set_ is not implemented"):
        y.sum().backward()
    with pt.no_grad():
        assert not pt.zeros(3, dtype=pt.float64).set_(x * 2).requires_grad


@pytest.mark.parametrize("backward", [lambda y, x: pt.autograd.grad(y.sum(), x), lambda y, x: y.sum().backward()])
def test_data_of_another_shape(backward):
    x = leaf()
    y = x * 1
    y.data = pt.ones(5, dtype=pt.float64)
    with pytest.raises(RuntimeError, match=r"shape \[5\], expected that of its tensor, \[3\]"):
        backward(y, x)
    assert x.grad is None


@pytest.mark.parametrize("named", [False, True])
def test_checkpoint_of_an_argument_that_is_written_to_later(named):
    x = leaf()
    y = x * 1
    given = ((), {"t": y}) if named else ((y,), {})
    out = checkpoint(lambda t: t.exp() * t, *given[0], use_reentrant=False, **given[1])
    y.mul_(2)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*argument of checkpoint"):
        out.sum().backward()


def test_a_level_as_a_decorator():
    @forward_ad.dual_level()
    def slope(x, t):
        """Along t."""
        return forward_ad.unpack_dual(forward_ad.make_dual(x, t).sin()).tangent

    x = leaf().detach()
    for _ in range(2):
        np.testing.assert_allclose(slope(x, x).numpy(), np.cos([1., 2, 3]) * [1, 2, 3])
    assert slope.__doc__ == "Along t."


class Rest(Function):
    """A view without the first element."""

    @staticmethod
    def forward(x):
        return x[1:]

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return pt.cat([g.new_zeros(1), g])

    @staticmethod
    def jvp(ctx, t):
        return t[1:]


class Doubled(Rest):
    """The same view, with a tangent of its own."""

    @staticmethod
    def jvp(ctx, t):
        return 2 * t[1:]


def test_a_write_through_a_view_of_a_function_in_forward_mode():
    def f(x):
        y = x * 2
        part = Rest.apply(y)
        part.mul_(3)
        y[1:].mul_(y[:-1].clone())
        return y, part

    x, t = leaf(4).detach(), pt.tensor([1., -1, 2, 0.5], dtype=pt.float64)
    step = 1e-6
    want = [(a - b).numpy() / (2 * step) for a, b in zip(f(x + step * t), f(x - step * t))]
    for got, expected in zip(jvp(f, (x,), (t,))[1], want):
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-7)
    assert jvp(Doubled.apply, (x,), (t,))[1].tolist() == [-2, 4, 1]


def test_numpy_arrays_beside_stand_ins():
    factors, x, t = np.arange(1., 4), leaf().detach(), pt.ones(3, dtype=pt.float64)

    def f(v):
        return (v * v * factors).sum()

    assert jvp(lambda y: jvp(f, (y,), (t,))[1], (x,), (t,))[1].item() == 12
    assert grad(lambda y: jvp(f, (y,), (t,))[1])(x).tolist() == [2, 4, 6]
    assert vmap(lambda y: jvp(f, (y,), (t,))[1])(pt.stack([x, x])).tolist() == [28, 28]
    assert make_fx(lambda y: jvp(f, (y,), (t,))[1])(x)(x).item() == 28


def test_the_backward_of_a_recurrent_layer_in_a_graph_is_refused():
    cell = pt.nn.LSTM(2, 3, dtype=pt.float64).requires_grad_(False)
    graph = make_fx(grad(lambda x: cell(x)[0].sum()))(pt.ones(4, 1, 2, dtype=pt.float64))
    x = pt.ones(4, 1, 2, dtype=pt.float64, requires_grad=True)
    found = graph(x)                    # values are there
    assert found.shape == x.shape
    for call in (lambda: found.sum().backward(), lambda: jvp(graph, (x.detach(),), (pt.ones_like(x.detach()),))):
        with pytest.raises(RuntimeError, match=r"recurrent_layer_backward: .* has no\s+derivative"):
            call()


def test_scaled_gradients_of_embeddings_in_a_graph():
    rows = pt.tensor([0, 1, 1])

    def f(w):
        return pt.nn.functional.embedding(rows, w, scale_grad_by_freq=True).sum()

    w = pt.ones(3, 2, dtype=pt.float64, requires_grad=True)
    make_fx(f)(w.detach())(w).backward()
    assert w.grad.tolist() == [[1, 1], [1, 1], [0, 0]]


def test_ties_of_the_largest_gap():
    """Each of several largest gaps has the whole derivative, in the gradient as in forward mode."""
    x, y = pt.tensor([[1., 2], [0, 0]], dtype=pt.float64), pt.tensor([[0., 1], [1, 1]], dtype=pt.float64)
    for f in (lambda x: pt.cdist(x, y, p=float("inf")), lambda x: pt.nn.functional.pdist(x - y, p=float("inf"))):
        np.testing.assert_array_equal(jacfwd(f)(x).numpy(), jacrev(f)(x).numpy())
    assert jvp(lambda x: pt.cdist(x, y, p=float("inf")), (x,), (pt.ones_like(x),))[1].tolist() == [[2, 1], [-1, -2]]
