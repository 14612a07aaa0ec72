"""linalg.svd, linalg.svdvals and svd against NumPy, and their derivatives against differences.

Singular vectors are defined up to a factor of modulus one: values are compared through products
that do not depend on it.
"""
import functools

import numpy as np
import pytest

import ptcore
from ptcore.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.core

DTYPES = ["float32", "float64", "complex64", "complex128"]
SHAPES = [(1, 1), (3, 3), (5, 3), (3, 5), (2, 4, 3), (2, 3, 3, 4), (40, 7), (1, 6), (6, 1)]
EPS = {"float32": 2e-6, "complex64": 2e-6, "float64": 1e-14, "complex128": 1e-14}


def matrices(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def check_factors(a, u, s, vh, full, dtype):
    m, n = a.shape[-2:]
    k = min(m, n)
    tolerance = EPS[dtype] * max(m, n)
    assert u.shape == (*a.shape[:-2], m, m if full else k)
    assert vh.shape == (*a.shape[:-2], n if full else k, n)
    values = np.linalg.svd(a.astype("complex128"), compute_uv=False)
    np.testing.assert_allclose(s, values, atol=tolerance * 5)
    np.testing.assert_allclose(u[..., :k] * s[..., None, :] @ vh[..., :k, :], a, atol=tolerance * 5)
    for product in (adjoint(u) @ u, vh @ adjoint(vh)):
        identity = np.broadcast_to(np.eye(product.shape[-1]), product.shape)
        np.testing.assert_allclose(product, identity, atol=tolerance)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_values(dtype, full):
    for shape in SHAPES:
        a = matrices(shape, dtype)
        result = ptcore.linalg.svd(ptcore.from_numpy(a), full_matrices=full)
        assert result.__match_args__ == ("U", "S", "Vh")
        check_factors(a, *[x.numpy() for x in result], full, dtype)
        values = ptcore.linalg.svdvals(ptcore.from_numpy(a))
        assert values.dtype.name == a.real.dtype.name
        np.testing.assert_allclose(values.numpy(), result.S.numpy(), rtol=EPS[dtype] * 50)


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_layouts(dtype):
    """Any strides; the input is left as it was."""
    base = matrices((4, 8, 6), dtype)
    views = [base.transpose(0, 2, 1), base[::-1, ::2], base[:, ::-1, ::-2], base.transpose(2, 1, 0)]
    tensors = [ptcore.from_numpy(a) for a in views]
    views.append(np.broadcast_to(base[:1], (3, 8, 6)))
    tensors.append(ptcore.from_numpy(base[:1]).expand(3, 8, 6))
    for a, x in zip(views, tensors):
        before = a.copy()
        check_factors(a, *[r.numpy() for r in ptcore.linalg.svd(x, False)], False, dtype)
        np.testing.assert_array_equal(a, before)


def test_large_and_many():
    a = matrices((300, 200), "float32")
    check_factors(a, *[r.numpy() for r in ptcore.linalg.svd(ptcore.from_numpy(a))], True, "float32")
    a = matrices((500, 6, 4), "float64")
    check_factors(a, *[r.numpy() for r in ptcore.linalg.svd(ptcore.from_numpy(a), False)], False, "float64")


def test_threads_do_not_change_bits():
    a = ptcore.from_numpy(matrices((64, 20, 12), "float32"))
    before, results = ptcore.get_num_threads(), []
    try:
        for n in (1, 2):
            ptcore.set_num_threads(n)
            results.append([r.numpy().tobytes() for r in ptcore.linalg.svd(a)])
    finally:
        ptcore.set_num_threads(before)
    assert results[0] == results[1]


def test_rank_and_order():
    a = np.outer(np.arange(1.0, 6), [3.0, 4.0])
    s = ptcore.linalg.svdvals(ptcore.from_numpy(a)).numpy()
    np.testing.assert_allclose(s, [np.sqrt(55) * 5, 0], atol=1e-13)
    u, s, _ = ptcore.linalg.svd(ptcore.zeros(3, 2))
    assert s.tolist() == [0, 0]
    np.testing.assert_allclose((u.mT @ u).numpy(), np.eye(3), atol=1e-6)


def test_old_form():
    a = matrices((2, 5, 3), "complex128")
    x = ptcore.from_numpy(a)
    u, s, v = ptcore.svd(x)
    assert (u.shape, s.shape, v.shape) == ((2, 5, 3), (2, 3), (2, 3, 3))
    np.testing.assert_allclose(u.numpy() * s.numpy()[..., None, :] @ adjoint(v.numpy()), a, atol=1e-13)
    assert ptcore.svd(x).__match_args__ == ("U", "S", "V")
    assert x.svd(some=False).U.shape == (2, 5, 5)
    u, s, v = ptcore.svd(x, compute_uv=False)
    assert (u.shape, v.shape) == ((2, 5, 5), (2, 3, 3))
    assert not u.any() and not v.any()
    np.testing.assert_allclose(s.numpy(), np.linalg.svd(a, compute_uv=False))


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (0, 2, 3), (2, 0, 3), (2, 3, 0)])
def test_empty(shape, full):
    u, s, vh = ptcore.linalg.svd(ptcore.empty(shape), full)
    want = np.linalg.svd(np.empty(shape, np.float32), full)
    assert (u.shape, s.shape, vh.shape) == tuple(w.shape for w in want)
    for got in (u, vh):
        n = got.shape[-1]
        if n == got.shape[-2]:
            np.testing.assert_array_equal(got.numpy(), np.broadcast_to(np.eye(n), got.shape))
    assert ptcore.linalg.svdvals(ptcore.empty(shape)).shape == want[1].shape


def test_meta():
    for shape in SHAPES:
        for full in (False, True):
            for dtype in DTYPES:
                a = matrices(shape, dtype)
                real = ptcore.linalg.svd(ptcore.from_numpy(a), full)
                ghost = ptcore.linalg.svd(ptcore.empty(shape, dtype=getattr(ptcore, dtype), device="meta"), full)
                for r, g in zip(real, ghost):
                    assert (g.shape, g.dtype, g.stride(), g.device.type) == (r.shape, r.dtype, r.stride(), "meta")
    x = ptcore.empty(4, 3, dtype=ptcore.complex64, device="meta", requires_grad=True)
    u, s, vh = ptcore.linalg.svd(x, False)
    ((u * s) @ vh).abs().sum().backward()
    assert x.grad.shape == (4, 3) and x.grad.device.type == "meta"


# -- errors -------------------------------------------------------------------------------------

def test_bad_input():
    with pytest.raises(RuntimeError, match=r"linalg_svd: A must have at least 2 dimensions, got shape \[3\]"):
        ptcore.linalg.svd(ptcore.ones(3))
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        ptcore.svd(ptcore.tensor(1.0), compute_uv=False)
    for dtype in (ptcore.int64, ptcore.float16, ptcore.bool):
        with pytest.raises(RuntimeError, match=f"dtype must be one of float32, .* got {dtype.name}"):
            ptcore.linalg.svd(ptcore.ones(2, 2, dtype=dtype))
    with pytest.raises(TypeError):
        ptcore.linalg.svd([[1.0]])
    with pytest.raises(RuntimeError, match="linalg_svd: driver must be None on cpu, got 'gesvd'"):
        ptcore.linalg.svd(ptcore.ones(2, 2), driver="gesvd")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("dtype", DTYPES)
def test_not_finite(dtype, value):
    a = matrices((5, 4), dtype)
    a[3, 2] = value
    for call in (ptcore.linalg.svd, ptcore.linalg.svdvals, ptcore.svd):
        with pytest.raises(ptcore.linalg.LinAlgError, match="input contains values that are not finite"):
            call(ptcore.from_numpy(a))
    a = np.stack([matrices((5, 4), dtype), a, a])
    with pytest.raises(ptcore.linalg.LinAlgError, match="matrix 1 of the batch contains values that are not finite"):
        ptcore.linalg.svd(ptcore.from_numpy(a))


# -- derivatives --------------------------------------------------------------------------------

def leaf(shape, dtype, seed=3):
    return ptcore.from_numpy(matrices(shape, dtype, seed)).requires_grad_()


def weights(shape, dtype, seed=8):
    return ptcore.from_numpy(matrices(shape, dtype, seed))


def through_values(a, full):
    return ptcore.linalg.svdvals(a)


def through_factors(a, full):
    """A product that every gauge gives: the part of A outside U and Vh takes part as well."""
    u, s, vh = ptcore.linalg.svd(a, full_matrices=full)
    k = s.shape[-1]
    return (u[..., :k] * s.exp().unsqueeze(-2)) @ vh[..., :k, :]


def through_left(a, full):
    """U U^H weighted, so that it is no constant: a function of U alone."""
    u, s, _ = ptcore.linalg.svd(a, full_matrices=full)
    k = s.shape[-1]
    u = u[..., :k]
    return (u * ptcore.arange(1, k + 1, dtype=s.dtype)) @ u.mH


def through_right(a, full):
    _, s, vh = ptcore.linalg.svd(a, full_matrices=full)
    k = s.shape[-1]
    vh = vh[..., :k, :]
    return (vh.mH * ptcore.arange(1, k + 1, dtype=s.dtype)) @ vh


def through_old(a, full):
    u, s, v = ptcore.svd(a, some=not full)
    k = s.shape[-1]
    return u[..., :k] @ v[..., :k].mH * s.sum()


@pytest.mark.parametrize("f", [through_values, through_factors, through_left, through_right, through_old])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients(f, dtype):
    for shape in [(3, 3), (4, 2), (2, 4), (2, 3, 2), (1, 3), (3, 1)]:
        for full in (False, True):
            assert gradcheck(functools.partial(f, full=full), [leaf(shape, dtype)], check_forward_ad=True), (shape, full)
        assert gradgradcheck(functools.partial(f, full=False), [leaf(shape, dtype)]), shape


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradient_of_values_is_outer_product(dtype):
    """d S[i] / d A = u_i v_i^H: the nuclear norm's gradient is U Vh."""
    for shape in [(4, 3), (3, 5)]:
        a = leaf(shape, dtype)
        ptcore.linalg.svdvals(a).sum().backward()
        u, _, vh = np.linalg.svd(a.detach().numpy(), full_matrices=False)
        np.testing.assert_allclose(a.grad.numpy(), u @ vh, atol=1e-12)


def test_old_form_values_have_gradient():
    a = leaf((3, 2), "float64")
    ptcore.svd(a, compute_uv=False).S.sum().backward()
    u, _, vh = np.linalg.svd(a.detach().numpy(), full_matrices=False)
    np.testing.assert_allclose(a.grad.numpy(), u @ vh, atol=1e-12)


def test_unused_outputs():
    a = leaf((3, 2), "float64")
    u, s, vh = ptcore.linalg.svd(a, False)
    assert all(r.requires_grad for r in (u, s, vh))
    (g,) = ptcore.autograd.grad(s[0], a)
    want = np.linalg.svd(a.detach().numpy(), False)
    np.testing.assert_allclose(g.numpy(), np.outer(want[0][:, 0], want[2][0]), atol=1e-12)
    with ptcore.no_grad():
        assert not ptcore.linalg.svdvals(a).requires_grad


def test_gauge_is_checked():
    """|sum(U)| is one number for every phase only if U has one row; its real part never is."""
    a = leaf((3, 3), "complex128")
    u, _, _ = ptcore.linalg.svd(a)
    with pytest.raises(RuntimeError, match="the loss depends on this quantity"):
        u.real.sum().backward()
    b = leaf((3, 3), "complex128")
    ptcore.linalg.svd(b).U.abs().sum().backward()
    assert b.grad is not None


def test_loss_of_weights():
    """A scalar loss with fixed weights, against torch's formula by central differences."""
    w = weights((3, 2), "complex128")
    assert gradcheck(lambda a: (through_factors(a, False) * w).real.sum(), [leaf((3, 2), "complex128")])
