"""Rules that compute with a result keep the operand beside it where that costs no memory: values far out, what may be
written to before the backward, and what nodes keep."""
import numpy as np
import pytest

import ptcore
from ptcore.autograd.graph import saved_tensors_hooks

pytestmark = pytest.mark.core

CALLS = {"tanh": (ptcore.tanh, 25.0, 7.714999391855671e-22), "sigmoid": (ptcore.sigmoid, 40.0, 4.248354255291589e-18),
         "expm1": (ptcore.expm1, -40.0, 4.248354255291589e-18)}


def leaf(value, n=1, dtype=ptcore.float64):
    return ptcore.full((n,), value, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize("name", CALLS)
def test_far_out(name):
    function, value, want = CALLS[name]
    for n in (1, 1024, 5000):               # a leaf of any size, and what is small
        for x in (leaf(value, n), leaf(value, n, ptcore.float32)):
            function(x).sum().backward()
            np.testing.assert_allclose(x.grad.numpy(), want, rtol=3e-6 if x.dtype is ptcore.float32 else 1e-14)
    x = leaf(value / 2)
    function(x * 2).backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * want, rtol=1e-14)
    x = leaf(value).detach()
    np.testing.assert_allclose(ptcore.func.grad(lambda v: function(v).sum())(x).numpy(), want, rtol=1e-14)
    np.testing.assert_allclose(ptcore.func.jacfwd(function)(x).numpy(), [[want]], rtol=1e-14)
    np.testing.assert_allclose(ptcore.func.vmap(ptcore.func.grad(function))(x).numpy(), want, rtol=1e-14)
    compiled = ptcore.compile(ptcore.func.grad(lambda v: function(v).sum()))
    np.testing.assert_allclose(compiled(x).numpy(), want, rtol=1e-14)


@pytest.mark.parametrize("name", CALLS)
def test_operands_may_be_written_to(name):
    """As in PyTorch, which keeps the result alone."""
    function = CALLS[name][0]
    want = leaf(0.5)
    function(want).backward()
    x = leaf(0.5)
    y = function(x)
    with ptcore.no_grad():
        x.fill_(7.0)
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), want.grad.numpy(), rtol=1e-14)
    x = leaf(0.25)
    inner = x * 2
    y = function(inner)
    inner.zero_()
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * want.grad.numpy(), rtol=1e-14)
    x = leaf(0.25)
    inner = x * 2
    y = getattr(inner, f"{name}_")()
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * want.grad.numpy(), rtol=1e-14)


@pytest.mark.parametrize("name", CALLS)
def test_results_may_not(name):
    x = leaf(0.5)
    y = CALLS[name][0](x)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@pytest.mark.parametrize("name", CALLS)
def test_complex_and_half(name):
    function = CALLS[name][0]
    x = ptcore.tensor([0.5 + 0.25j, -1j], requires_grad=True)
    assert ptcore.autograd.gradcheck(function, (x.detach().to(ptcore.complex128).requires_grad_(),))
    x = leaf(5.0, dtype=ptcore.float16)
    function(x).backward()
    wide = leaf(5.0)
    function(wide).backward()
    np.testing.assert_allclose(x.grad.double().numpy(), wide.grad.numpy(), rtol=1e-3, atol=6e-8)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", [ptcore.float64, ptcore.float32, ptcore.float16])
def test_operands_may_be_written_to_under_hooks(name, dtype):
    """A hook that hands the operand on does not hide that it was written to; half types keep the operand alone."""
    function = CALLS[name][0]
    want = leaf(0.5, dtype=dtype)
    function(want).backward()
    for first in (lambda x: x * 2, lambda x: (x * 2).data.requires_grad_(),
                  lambda x: (x * 2).detach().requires_grad_()):
        x = leaf(0.25, dtype=dtype)
        inner = first(x)
        with saved_tensors_hooks(lambda t: t, lambda t: t):
            y = function(inner)
        with ptcore.no_grad():
            inner.zero_()
        if dtype is ptcore.float16:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()
            continue
        g, = ptcore.autograd.grad(y.sum(), inner)
        np.testing.assert_allclose(g.numpy(), want.grad.numpy(), rtol=1e-6)

    def f(x):
        inner = x * 2
        with saved_tensors_hooks(lambda t: t, lambda t: t):
            y = function(inner)
        inner.zero_()
        return y.sum()

    if dtype is not ptcore.float16:
        x = leaf(0.25, dtype=dtype).detach()
        for g in (ptcore.func.grad(f), ptcore.func.functionalize(ptcore.func.grad(f))):
            np.testing.assert_allclose(g(x).numpy(), 2 * want.grad.numpy(), rtol=1e-6)
