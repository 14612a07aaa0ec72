"""Many derivatives at once: ``grad(is_grads_batched=)``, ``functional`` with ``vectorize`` and ``strategy``, and what
``gradcheck`` and ``gradgradcheck`` ask beside the gradient."""
import random

import numpy as np
import pytest

import ptcore as pt
from ptcore.autograd import Function, grad, gradcheck, gradgradcheck
from ptcore.autograd._gradcheck import GradcheckError
from ptcore.autograd.functional import hessian, jacobian

pytestmark = pytest.mark.core

X = pt.tensor([[1., 2., 3.], [4., 5., 6.]], dtype=pt.float64)


def same(got, want):
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-12)


def test_batched_cotangents():
    x, w = X.clone().requires_grad_(), X[0].clone().requires_grad_()
    y = (x * w).sin()
    gs = pt.arange(18., dtype=pt.float64).reshape(3, 2, 3)
    loop = [grad(y, (x, w), g, retain_graph=True) for g in gs]
    for got, want in zip(grad(y, (x, w), gs, retain_graph=True, is_grads_batched=True), zip(*loop)):
        same(got, pt.stack(list(want)))
    unused = pt.ones(2, dtype=pt.float64, requires_grad=True)
    found = grad(y, (x, unused), (gs,), retain_graph=True, allow_unused=True, is_grads_batched=True)
    assert found[1] is None
    found = grad(y, (x, unused), gs, retain_graph=True, is_grads_batched=True, materialize_grads=True)
    same(found[1], pt.zeros(3, 2, dtype=pt.float64))
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        grad(y, (x, unused), gs, retain_graph=True, is_grads_batched=True)
    with pytest.raises(RuntimeError, match="we interpret the first dimension"):
        grad(y, x, gs[0], is_grads_batched=True)
    with pytest.raises(RuntimeError, match="needs a tensor in grad_outputs"):
        grad(y, x, is_grads_batched=True)
    (first,) = grad(y, x, gs, create_graph=True, is_grads_batched=True)
    same(grad(first.sum(), x)[0], -(x * w).sin() * w ** 2 * gs.sum(0))


def f(x, w):
    return (x * w).sin(), (x @ w).exp()


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_jacobians(strategy):
    inputs = (X / 10, X[0] / 10)
    for got, want in zip(jacobian(f, inputs, vectorize=True, strategy=strategy), jacobian(f, inputs)):
        for a, b in zip(got, want):
            same(a, b)
    same(jacobian(pt.sin, X, vectorize=True, strategy=strategy), jacobian(pt.sin, X))

    def loss(x, w):
        return (x ** 2 * w).sum().exp()
    found = hessian(loss, inputs, vectorize=True, outer_jacobian_strategy=strategy)
    for got, want in zip(found, hessian(loss, inputs)):
        for a, b in zip(got, want):
            same(a, b)
    assert not jacobian(pt.sin, X.clone().requires_grad_(), vectorize=True, strategy=strategy).requires_grad


def test_recorded_jacobian():
    x = X[0].clone().requires_grad_()
    j = jacobian(pt.sin, x, create_graph=True, vectorize=True)
    same(grad(j.sum(), x)[0], -x.sin())


def test_strategies_that_are_refused():
    with pytest.raises(NotImplementedError, match="needs vectorize=True"):
        jacobian(pt.sin, X, strategy="forward-mode")
    with pytest.raises(NotImplementedError, match="create_graph=True and strategy='forward-mode'"):
        jacobian(pt.sin, X, create_graph=True, vectorize=True, strategy="forward-mode")
    with pytest.raises(RuntimeError, match="strict=True and vectorize=True"):
        jacobian(pt.sin, X, strict=True, vectorize=True)
    with pytest.raises(ValueError, match="strategy must be"):
        jacobian(pt.sin, X, strategy="sideways")


# -- gradcheck ----------------------------------------------------------------------------------------

def wrong(backward=1.0, forward=1.0, dtype=None, noise=False):
    """x ** 2, whose derivatives are off by factors, of another dtype, or differ from call to call."""
    class Square(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * backward * g * x * (1 + random.random() * 1e-9 * noise)

        @staticmethod
        def jvp(ctx, t):
            (x,) = ctx.saved_tensors
            return 2 * forward * t * x
    return Square.apply


ALL = dict(check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True, check_grad_dtypes=True)


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_of_both_modes(fast):
    x = (X / 10).requires_grad_()
    z = pt.complex(X, X.flip(0)).requires_grad_()
    for g, inputs in ((pt.sin, (x,)), (f, (x, X[0].clone().requires_grad_())), (lambda a: a * a * 1j, (z,)),
                      (lambda a: (a.abs(), a.real), (z,)), (wrong(), (x,)), (lambda a, b: a * b, (x, z))):
        assert gradcheck(g, inputs, fast_mode=fast, **ALL)
        assert gradgradcheck(g, inputs, fast_mode=fast, check_fwd_over_rev=True, check_batched_grad=True)
        assert gradcheck(g, inputs, fast_mode=fast, check_backward_ad=False, check_forward_ad=True)
    with pytest.raises(GradcheckError, match="numerical"):
        gradcheck(wrong(backward=1.1), (x,), fast_mode=fast)
    with pytest.raises(GradcheckError, match="forward"):
        gradcheck(wrong(forward=1.1), (x,), check_forward_ad=True, fast_mode=fast)
    assert gradcheck(wrong(forward=1.1), (x,), fast_mode=fast)
    assert gradcheck(wrong(backward=1.1), (x,), fast_mode=fast, check_backward_ad=False, check_forward_ad=True)
    assert not gradcheck(wrong(backward=1.1), (x,), fast_mode=fast, raise_exception=False)
    with pytest.raises(GradcheckError, match="not reentrant"):
        gradcheck(wrong(noise=True), (x,), fast_mode=fast)
    assert gradcheck(wrong(noise=True), (x,), fast_mode=fast, nondet_tol=1e-6)


def test_gradcheck_asks_for_sense():
    x = X.clone().requires_grad_()
    with pytest.raises(ValueError, match="at least one of check_forward_ad"):
        gradcheck(pt.sin, (x,), check_backward_ad=False)
    with pytest.raises(ValueError, match="check_batched_grad=True needs"):
        gradcheck(pt.sin, (x,), check_backward_ad=False, check_forward_ad=True, check_batched_grad=True)
    with pytest.raises(ValueError, match="check_batched_forward_grad=True needs"):
        gradcheck(pt.sin, (x,), check_batched_forward_grad=True)
    with pytest.warns(UserWarning, match="not of double precision"):
        gradcheck(pt.sin, (x.detach().float().requires_grad_(),), eps=1e-2, atol=1e-1)


def test_gradcheck_finds_what_cannot_be_batched():
    class Unbatched(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * g * x if float(g.sum()) > -1e9 else g
    x = X.clone().requires_grad_()
    assert gradcheck(Unbatched.apply, (x,))
    with pytest.raises(GradcheckError, match="cannot be batched"):
        gradcheck(Unbatched.apply, (x,), check_batched_grad=True)
