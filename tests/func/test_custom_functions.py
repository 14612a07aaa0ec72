"""Custom functions inside transformations: at every level their own derivative is taken, never that of their ops."""
from typing import ClassVar

import numpy as np
import pytest

import ptcore as pt
from ptcore.autograd import Function
from ptcore.func import functionalize, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from ptcore.fx.experimental.proxy_tensor import make_fx

pytestmark = pytest.mark.core


class Cube(Function):
    """x ** 3, whose derivative claims to be that of 10 x ** 3, so that it is told from that of the ops inside."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x ** 3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 30 * x ** 2

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return t * 30 * x ** 2


class Scaled(Function):
    """(x * w, x + w), with a number and an argument that may be shared by all samples."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, w, factor):
        return x * w * factor, x + w

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, ctx.factor = inputs
        ctx.save_for_backward(x, w)
        ctx.save_for_forward(x, w)

    @staticmethod
    def backward(ctx, g, h):
        x, w = ctx.saved_tensors
        return g * w * ctx.factor + h, (g * x * ctx.factor + h), None

    @staticmethod
    def jvp(ctx, tx, tw, _):
        x, w = ctx.saved_tensors
        return (tx * w + x * tw) * ctx.factor, tx + tw


class Own(Cube):
    """With a rule of its own for batches, which says so."""

    generate_vmap_rule = False
    calls: ClassVar[list] = []

    @staticmethod
    def vmap(info, in_dims, x):
        Own.calls.append((info.batch_size, info.randomness, in_dims))
        return Own.apply(x.movedim(in_dims[0], 0)), 0


X = pt.tensor([[1., 2., 3.], [4., 5., 6.]], dtype=pt.float64)


def same(got, want):
    np.testing.assert_allclose(got.detach().numpy(), np.asarray(want), rtol=1e-12)


@pytest.mark.parametrize("cls", [Cube, Own])
def test_every_level(cls):
    f, x = cls.apply, X.numpy()
    same(vmap(f)(X), x ** 3)
    same(vmap(f, in_dims=1, out_dims=1)(X), x ** 3)
    same(vmap(vmap(f))(X), x ** 3)
    same(grad(lambda x: f(x).sum())(X), 30 * x ** 2)
    same(vmap(grad(lambda x: f(x).sum()))(X), 30 * x ** 2)
    same(grad(lambda x: vmap(f)(x).sum())(X), 30 * x ** 2)
    same(grad(lambda x: vmap(vmap(f))(x).sum())(X), 30 * x ** 2)
    same(vmap(vmap(grad(f)))(X), 30 * x ** 2)
    same(grad(lambda x: grad(lambda y: f(y).sum())(x).sum())(X), 60 * x)
    same(vmap(grad(lambda x: grad(lambda y: f(y).sum())(x).sum()))(X), 60 * x)
    same(grad(lambda x: vmap(grad(lambda y: f(y).sum()))(x).sum())(X), 60 * x)
    same(jvp(f, (X,), (X,))[1], 30 * x ** 3)
    same(vmap(lambda x: jvp(f, (x,), (x,))[1])(X), 30 * x ** 3)
    same(jvp(vmap(f), (X,), (X,))[1], 30 * x ** 3)
    same(jvp(lambda x: jvp(f, (x,), (x,))[1], (X,), (X,))[1], 90 * x ** 3)
    same(jvp(grad(lambda x: f(x).sum()), (X,), (X,))[1], 60 * x ** 2)
    same(grad(lambda x: jvp(f, (x,), (X,))[1].sum())(X), 60 * x ** 2)
    same(jacrev(f)(X[0]), np.diag(30 * x[0] ** 2))
    same(jacfwd(f)(X[0]), np.diag(30 * x[0] ** 2))
    same(hessian(lambda x: f(x).sum())(X[0]), np.diag(60 * x[0]))


def test_own_rule_is_told():
    Own.calls.clear()
    vmap(Own.apply, in_dims=1, randomness="same")(X)
    assert Own.calls == [(3, "same", (0,))]


def test_shared_arguments_and_several_outputs():
    w = pt.tensor([2., 3., 5.], dtype=pt.float64)

    def loss(x, w):
        a, b = Scaled.apply(x, w, 7)
        return (a * b).sum()

    def plain(x, w):
        return ((x * w * 7) * (x + w)).sum()
    for argnums in (0, 1, (0, 1)):
        for dims in ((0, None), (0, 0), (None, 0)):
            args = [X if d == 0 else X[0] for d in dims]
            if dims[1] is None:
                args[1] = w
            got, want = [vmap(grad(f, argnums), dims)(*args) for f in (loss, plain)]
            for a, b in zip(*[r if isinstance(r, tuple) else (r,) for r in (got, want)]):
                same(a, b)
    # From outside the gradient of what all samples share is summed.
    got, want = [grad(lambda w, f=f: vmap(f, (0, None))(X, w).sum())(w) for f in (loss, plain)]
    same(got, want)
    got, want = [jvp(vmap(f, (0, None)), (X, w), (X, w))[1] for f in (loss, plain)]
    same(got, want)
    got, want = [jacrev(jacfwd(f, 1), 0)(X[0], w) for f in (loss, plain)]
    same(got, want)


def test_a_forward_with_context_is_refused_where_it_cannot_be_taken():
    class Old(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 20
    with pytest.raises(RuntimeError, match="must override the setup_context staticmethod: Old"):
        vmap(Old.apply)(X)
    same(grad(lambda x: Old.apply(x).sum())(X), np.full((2, 3), 20))
    # What is mapped from outside is seen as an op is.
    same(vmap(lambda x: x * Old.apply(X[0]))(X), X * 2 * X[0])


def test_what_is_missing():
    class Bare(Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * 2
    with pytest.raises(RuntimeError, match="You tried to vmap over Bare, but it does not have vmap support"):
        vmap(Bare.apply)(X)
    with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
        jvp(Bare.apply, (X,), (X,))
    with pytest.raises(RuntimeError, match="has both generate_vmap_rule=True and an overridden vmap"):
        vmap(type("Both", (Own,), {"generate_vmap_rule": True}).apply)(X)
    same(vjp(Bare.apply, X)[1](X)[0], 2 * X)


def test_an_argument_that_is_written_to_inside_vmap():
    """What was computed with it before and after the write has the right gradient and tangent."""
    class Doubled(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x.mul_(2)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_dirty(inputs[0])

        @staticmethod
        def backward(ctx, g):
            return 2 * g

        @staticmethod
        def jvp(ctx, t):
            return t.mul_(2)

    def f(x):
        y = x * 1
        before = y + 0
        return (before.square() + y * Doubled.apply(y)).sum()       # x ** 2 + (2 * x) ** 2

    x = X.clone().requires_grad_()
    out = vmap(f)(x)
    same(out.detach(), 5 * (X * X).sum(1))
    out.sum().backward()
    same(x.grad, 10 * X)
    same(jvp(vmap(f), (X,), (pt.ones_like(X),))[1], 10 * X.sum(1))


class Added(Function):
    """a + b ** 2, written over a, whose derivative claims to be that of a + 10 b ** 2."""

    @staticmethod
    def forward(ctx, a, b):
        if ctx.needs_input_grad[1]:
            ctx.save_for_backward(b)
        ctx.mark_dirty(a)
        return a.add_(b * b)

    @staticmethod
    def backward(ctx, g):
        (b,) = ctx.saved_tensors
        return g, 20 * g * b


class Written(Function):
    """tanh, written over its argument."""

    @staticmethod
    def forward(x):
        return x.tanh_()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_dirty(inputs[0])
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (1 - y * y)


def of_values(x):
    return (Cube.apply(x) * Scaled.apply(x, x.sin(), 2)[0]).sum()


def of_a_view(x):
    y = x * 1
    view = y.t()
    Added.apply(view, x.t())
    return (view * view.sin()).sum() + (y[0] ** 2).sum()


def of_a_result(x):
    y = x * 2
    old = y[0]
    z = Written.apply(y)
    return (z * z * x).sum() + (old ** 3).sum()


@pytest.mark.parametrize("f", [of_values, of_a_view, of_a_result])
def test_histories_of_values_under_functionalize(f):
    """The histories of values outside of ``functionalize`` go through the function's own backward."""
    x = X.clone()
    want, second = grad(f)(x), jacrev(grad(f))(x)
    inside = functionalize(f)
    for g in (grad(inside), functionalize(grad(f)), functionalize(grad(inside)), grad(functionalize(inside)),
              grad(functionalize(f, remove="mutations_and_views")), make_fx(grad(inside))(x), make_fx(grad(f))(x + 1)):
        same(g(x), want)
    for h in (jacrev(grad(inside)), jacrev(functionalize(grad(f))), functionalize(jacrev(grad(f))),
              jacrev(functionalize(grad(inside)))):
        same(h(x), second)
    x.requires_grad_()
    inside(x).backward()
    same(x.grad, want)


def test_a_view_returned_under_functionalize():
    class First(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.shape = x.shape
            return x[0]

        @staticmethod
        def backward(ctx, g):
            return pt.cat([10 * g.unsqueeze(0), g.new_zeros(ctx.shape[0] - 1, *ctx.shape[1:])])

    def f(x):
        y = x * 1
        row = First.apply(y)
        return (row * row).sum() + y.sin().sum()

    want = grad(f)(X)
    same(want[0], 20 * X[0] + X[0].cos())
    same(grad(functionalize(f))(X), want)
