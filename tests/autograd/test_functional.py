"""autograd.functional against Jacobians and Hessians worked out in NumPy."""

import numpy as np
import pytest

import ptcore as pt
from ptcore.autograd import functional as F

pytestmark = pytest.mark.core

A = np.arange(6.0).reshape(2, 3) - 2.5
X = np.array([0.5, -1.0, 2.0])
Y = np.array([1.5, 0.25])


def t(a):
    return pt.tensor(a, dtype=pt.float64)


def close(a, b):
    np.testing.assert_allclose(a.detach().numpy(), b, rtol=1e-12, atol=1e-14)


def linear_square(x):
    """(A x)^2, of Jacobian 2 diag(A x) A."""
    return (t(A) @ x) ** 2


def mixed(x, y):
    """sum_ij x_i^2 A_ji y_j^2."""
    return (y**2 * (t(A) @ x**2)).sum()


JACOBIAN = 2 * (A @ X)[:, None] * A
H_XX = np.diag(2 * A.T @ Y**2)
H_YY = np.diag(2 * A @ X**2)
H_XY = 4 * X[:, None] * A.T * Y


def test_jacobian():
    close(F.jacobian(linear_square, t(X)), JACOBIAN)


def test_jacobian_structure():
    def f(x, y):
        return x * 2, (y * y).reshape(2, 1)

    (xx, xy), (yx, yy) = F.jacobian(f, (t(X), t(Y)))
    close(xx, 2 * np.eye(3))
    close(xy, np.zeros((3, 2)))
    close(yx, np.zeros((2, 1, 3)))
    close(yy, np.diag(2 * Y).reshape(2, 1, 2))
    (only,) = F.jacobian(linear_square, (t(X),))
    close(only, JACOBIAN)
    (only,) = F.jacobian(lambda x: (linear_square(x),), t(X))
    close(only, JACOBIAN)


def test_products():
    v, w = np.array([1.0, -2.0]), np.array([0.5, 3.0, -1.0])
    out, product = F.vjp(linear_square, t(X), t(v))
    close(out, (A @ X) ** 2)
    close(product, v @ JACOBIAN)
    out, product = F.jvp(linear_square, t(X), t(w))
    close(out, (A @ X) ** 2)
    close(product, JACOBIAN @ w)


def test_vjp_of_a_scalar_needs_no_vector():
    _, product = F.vjp(lambda x: (x * x).sum(), t(X))
    close(product, 2 * X)
    with pytest.raises(RuntimeError, match="v must be given"):
        F.vjp(linear_square, t(X))


def test_hessian():
    (xx, xy), (yx, yy) = F.hessian(mixed, (t(X), t(Y)))
    close(xx, H_XX)
    close(xy, H_XY)
    close(yx, H_XY.T)
    close(yy, H_YY)
    close(F.hessian(lambda x: (x**3).sum(), t(X)), np.diag(6 * X))


@pytest.mark.parametrize("f", [F.hvp, F.vhp])
def test_hessian_products(f):
    v, w = np.array([1.0, 2.0, -1.0]), np.array([0.5, -3.0])
    out, (px, py) = f(mixed, (t(X), t(Y)), (t(v), t(w)))
    close(out, (Y**2 * (A @ X**2)).sum())
    close(px, H_XX @ v + H_XY @ w)
    close(py, H_XY.T @ v + H_YY @ w)


def test_create_graph_reaches_the_callers_tensors():
    x = t(X).requires_grad_()
    J = F.jacobian(lambda x: x**3, x, create_graph=True)
    (g,) = pt.autograd.grad(J.sum(), x)
    close(g, 6 * X)
    assert not F.jacobian(lambda x: x**3, x).requires_grad


def test_independence():
    close(F.jacobian(lambda x: pt.ones(2).double(), t(X)), np.zeros((2, 3)))
    _, (_a, b) = F.vjp(lambda x, y: (x * x).sum(), (t(X), t(Y)))
    close(b, np.zeros(2))
    close(F.hessian(lambda x: x.sum(), t(X)), np.zeros((3, 3)))
    close(F.hvp(lambda x: x.sum(), t(X), t(X))[1], np.zeros(3))
    with pytest.raises(RuntimeError, match="strict"):
        F.jacobian(lambda x: pt.ones(2).double(), t(X), strict=True)
    with pytest.raises(RuntimeError, match="strict"):
        F.vjp(lambda x, y: (x * x).sum(), (t(X), t(Y)), strict=True)


def test_works_under_no_grad_and_leaves_grad_alone():
    x = t(X).requires_grad_()
    with pt.no_grad():
        close(F.jacobian(linear_square, x), JACOBIAN)
    assert x.grad is None


def test_empty_output():
    assert F.jacobian(lambda x: x[:0], t(X)).shape == (0, 3)


def test_wrong_arguments():
    with pytest.raises(TypeError, match="jacobian: The inputs given to jacobian must be either a Tensor"):
        F.jacobian(linear_square, 3)
    with pytest.raises(TypeError, match="The outputs of the user-provided function given to vjp must be"):
        F.vjp(lambda x: 3, t(X))
    with pytest.raises(RuntimeError, match=r"must have shape \[2\], got \[3\]"):
        F.vjp(linear_square, t(X), t(X))
    with pytest.raises(RuntimeError, match="single element"):
        F.hessian(linear_square, t(X))
    with pytest.raises(RuntimeError, match="single element"):
        F.vhp(linear_square, t(X), t(X))
    with pytest.raises(NotImplementedError, match="needs vectorize=True"):
        F.jacobian(linear_square, t(X), strategy="forward-mode")
    with pytest.raises(ValueError, match="strategy"):
        F.jacobian(linear_square, t(X), strategy="sideways")


@pytest.mark.parametrize("name", ["jvp", "vjp", "hvp", "vhp"])
def test_vectors_are_a_tensor_or_a_tuple(name):
    x = pt.ones(2)
    with pytest.raises(TypeError, match=f"{name}: v must be a Tensor or a tuple of Tensors, got list"):
        getattr(F, name)(lambda x: (x * x).sum(), x, [])


def test_complex_results_have_no_jacobian():
    x = pt.ones(2) * 1j
    for name in ("jacobian", "hessian", "hvp", "vhp"):
        with pytest.raises(RuntimeError, match="func must return real tensors, got complex64"):
            getattr(F, name)(lambda x: (x * x).sum(), x, *[x] * (name in ("hvp", "vhp")))
    with pytest.raises(TypeError, match="jacobian: vectorize must be bool, got str"):
        F.jacobian(lambda x: x, pt.ones(2), vectorize="x")
