"""Eigenvalues of any matrix, elimination, LDL, reflectors and exponentials: values against NumPy and SciPy in every
dtype, derivatives against differences, what batching and meta give, and errors. tests/ops has what needs no special
matrices.
"""
import numpy as np
import pytest
import scipy.linalg
from test_factors import DTYPES, EPS, adjoint, close, hermitian, matrices

import ptcore
from ptcore.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.core

L = ptcore.linalg
SHAPES = [(1, 1), (3, 3), (2, 4, 4), (2, 3, 2, 2), (40, 40)]


def sorted_values(values):
    """Along the last dim, by real and then by imaginary part."""
    return np.take_along_axis(values, np.lexsort((values.imag.round(4), values.real.round(4)), axis=-1), -1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*SHAPES, (0, 0), (2, 0, 0), (0, 3, 3)], ids=str)
def test_eig(shape, dtype):
    a = matrices(shape, dtype)
    x = ptcore.from_numpy(a)
    values, vectors = L.eig(x)
    assert values.dtype is vectors.dtype is {4: ptcore.complex64, 8: ptcore.complex128}[a.real.dtype.itemsize]
    v, w = vectors.numpy(), values.numpy()
    assert (v.shape, w.shape) == (shape, shape[:-1])
    np.testing.assert_allclose(a @ v, v * w[..., None, :], atol=EPS[dtype] * 100)
    np.testing.assert_allclose(np.sqrt((abs(v)**2).sum(-2)), np.ones(w.shape), rtol=EPS[dtype] * 10)
    np.testing.assert_allclose(sorted_values(L.eigvals(x).numpy()), sorted_values(w), atol=EPS[dtype] * 100)
    if a.size:
        np.testing.assert_allclose(np.prod(w, -1), np.linalg.det(a), rtol=EPS[dtype] * 300)
    # any layout
    np.testing.assert_allclose(sorted_values(L.eigvals(x.mT).numpy()), sorted_values(w), atol=EPS[dtype] * 100)


def test_eig_of_rotations():
    """Pairs of conjugate vectors beside real ones."""
    turn = np.zeros((5, 5))
    turn[:2, :2], turn[2, 2], turn[3:, 3:] = [[0, -2], [2, 0]], 7, [[1, 3], [-3, 1]]
    values, vectors = (r.numpy() for r in L.eig(ptcore.from_numpy(turn)))
    np.testing.assert_allclose(sorted_values(values), [-2j, 2j, 1 - 3j, 1 + 3j, 7], atol=1e-12)
    np.testing.assert_allclose(turn @ vectors, vectors * values, atol=1e-12)


def invariant(vectors):
    """What does not see the phases of the vectors."""
    return (vectors * vectors.conj()).real


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives_of_eig(dtype):
    x = ptcore.from_numpy(matrices((2, 3, 3), dtype, 5)).requires_grad_()
    assert gradcheck(lambda a: L.eig(a)[0].sum(-1), (x,))
    assert gradcheck(lambda a: (L.eigvals(a)**3).sum(-1), (x,))
    assert gradcheck(lambda a: invariant(L.eig(a)[1]), (x,))
    assert gradcheck(lambda a: L.eig(a)[0].abs().sum(-1) + invariant(L.eig(a)[1])[..., 0, :].sum(-1), (x,))
    assert gradgradcheck(lambda a: (L.eigvals(a)**2).sum(-1), (x,))
    one = ptcore.from_numpy(matrices((3, 3), dtype, 5)).requires_grad_()
    assert gradgradcheck(lambda a: invariant(L.eig(a)[1]), (one,))


def test_a_loss_that_depends_on_the_phase_is_refused():
    x = ptcore.from_numpy(matrices((3, 3), "complex128")).requires_grad_()
    with pytest.raises(RuntimeError, match="linalg_eig: eigenvectors are defined up to multiplication by"):
        L.eig(x)[1].real.sum().backward()


def test_errors_of_eig():
    for bad in (np.nan, np.inf):
        with pytest.raises(L.LinAlgError, match="linalg_eig: matrix 1 of the batch contains values that"):
            L.eig(ptcore.from_numpy(np.stack([np.eye(2), np.full((2, 2), bad)])))
    with pytest.raises(RuntimeError, match="linalg_eig: matrices must be square, got shape"):
        L.eig(ptcore.ones(2, 3))
    with pytest.raises(RuntimeError, match="linalg_eigvals: dtype must be float32"):
        L.eigvals(ptcore.eye(2, dtype=ptcore.int64))
    assert L.eig(ptcore.empty(2, 3, 3, device="meta"))[1].shape == (2, 3, 3)
    assert L.eigvals(ptcore.empty(2, 3, 3, device="meta")).dtype is ptcore.complex64


# -- elimination ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*SHAPES, (5, 2), (2, 5), (2, 4, 3), (0, 0), (3, 0), (0, 3), (2, 0, 0)], ids=str)
def test_lu(shape, dtype):
    a = matrices(shape, dtype)
    x = ptcore.from_numpy(a)
    m, n = shape[-2:]
    k = min(m, n)
    P, lower, upper = (r.numpy() for r in L.lu(x))
    assert (P.shape, lower.shape, upper.shape) == tuple((*shape[:-2], *s) for s in ((m, m), (m, k), (k, n)))
    np.testing.assert_allclose(P @ lower @ upper, a, atol=EPS[dtype] * 10)
    assert np.all(np.triu(lower, 1) == 0)
    assert np.all(np.tril(upper, -1) == 0)
    np.testing.assert_array_equal(np.einsum("...ii->...i", lower[..., :k, :]), np.ones((*shape[:-2], k)))
    np.testing.assert_array_equal(P.sum(-1), np.ones((*shape[:-2], m)))
    factors, pivots = L.lu_factor(x)
    assert pivots.dtype is ptcore.int32
    assert pivots.shape == (*shape[:-2], k)
    for mine, again in zip((P, lower, upper), ptcore.lu_unpack(factors, pivots), strict=True):
        np.testing.assert_array_equal(again.numpy(), mine)
    assert not L.lu_factor_ex(x).info.any()
    if m == n and a.size:
        b = matrices((*shape[:-1], 3), dtype, 1)
        c = adjoint(b)
        y, z = ptcore.from_numpy(b), ptcore.from_numpy(c.copy())
        close(L.lu_solve(factors, pivots, y), np.linalg.solve(a, b), dtype)
        close(ptcore.lu_solve(y, factors, pivots), np.linalg.solve(a, b), dtype)
        close(L.lu_solve(factors, pivots, y, adjoint=True), np.linalg.solve(adjoint(a), b), dtype)
        close(L.lu_solve(factors, pivots, z, left=False), c @ np.linalg.inv(a), dtype)
        close(L.lu_solve(factors, pivots, z, left=False, adjoint=True), c @ np.linalg.inv(adjoint(a)), dtype)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 3)], ids=str)
def test_derivatives_of_lu(shape, dtype):
    x = ptcore.from_numpy(matrices(shape, dtype, 2)).requires_grad_()
    assert gradcheck(lambda a: L.lu(a)[1:], (x,))
    assert gradgradcheck(lambda a: L.lu(a)[1:], (x,))
    if shape[-1] == shape[-2]:
        b = ptcore.from_numpy(matrices((*shape[:-1], 2), dtype, 1)).requires_grad_()
        for options in ({}, {"adjoint": True}):
            assert gradcheck(lambda a, b, options=options: L.lu_solve(*L.lu_factor(a), b, **options), (x, b))
        assert gradgradcheck(lambda a, b: L.lu_solve(*L.lu_factor(a), b), (x, b))


def test_singular_matrices():
    a = ptcore.tensor([[[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [2.0, 4.0]]])
    assert L.lu_factor_ex(a).info.tolist() == [0, 2]
    assert L.solve_ex(a, ptcore.ones(2, 2, 1)).info.tolist() == [0, 2]
    result = L.inv_ex(a)
    assert result.info.tolist() == [0, 2]
    close(result.inverse[0], np.linalg.inv(a[0].numpy()), "float32")
    assert not result.inverse[1].isfinite().all()
    for call in (lambda: L.lu_factor(a), lambda: L.lu_factor_ex(a, check_errors=True), lambda: ptcore.lu(a),
                 lambda: L.solve_ex(a, ptcore.ones(2, 2, 1), check_errors=True),
                 lambda: L.inv_ex(a, check_errors=True)):
        with pytest.raises(L.LinAlgError, match="matrix 1 of the batch is singular"):
            call()
    assert ptcore.lu(a, get_infos=True)[2].tolist() == [0, 2]
    assert np.isfinite(L.lu(a).U.numpy()).all()


@pytest.mark.parametrize("pivots", [[0, 1], [1, 3], [-1, 2], [1, 2**31 - 1]])
def test_pivots_of_strangers(pivots):
    """They say where LAPACK writes."""
    factors, pivots = ptcore.eye(2), ptcore.tensor(pivots, dtype=ptcore.int32)
    for call in (lambda: ptcore.lu_unpack(factors, pivots), lambda: L.lu_solve(factors, pivots, ptcore.ones(2, 1))):
        with pytest.raises(RuntimeError, match=r"pivots must be in \[1, 2\], got"):
            call()
    with pytest.raises(RuntimeError, match="linalg_ldl_solve: pivots must be those of an LDL factorisation of order 2"):
        L.ldl_solve(factors, pivots, ptcore.ones(2, 1))


def test_errors_of_lu():
    a, pivots = ptcore.eye(2), ptcore.tensor([1, 2], dtype=ptcore.int32)
    for call, text in ((lambda: L.lu(a, pivot=False), "linalg_lu: LU without pivoting is not implemented on cpu"),
                       (lambda: ptcore.lu_unpack(a, pivots.long()), "LU_pivots must be int32, got int64"),
                       (lambda: ptcore.lu_unpack(a, pivots[:1]), r"LU_pivots must have shape \[2\]"),
                       (lambda: L.lu_solve(a, pivots, ptcore.ones(3, 1)), "A and B do not fit"),
                       (lambda: L.lu_solve(a, pivots, ptcore.ones(2, 1).double()), "must have one dtype"),
                       (lambda: L.lu(ptcore.ones(2)), "linalg_lu: A must have at least 2 dimensions")):
        with pytest.raises(RuntimeError, match=text):
            call()
    unpacked = ptcore.lu_unpack(a, pivots, unpack_data=False)
    assert [tuple(r.shape) for r in unpacked] == [(2, 2), (0,), (0,)]
    assert [tuple(r.shape) for r in ptcore.lu_unpack(a, pivots, unpack_pivots=False)] == [(0,), (2, 2), (2, 2)]


# -- L D L^H -------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*SHAPES, (0, 0), (2, 0, 0)], ids=str)
def test_ldl(shape, dtype):
    for is_hermitian in (False, True):
        a = hermitian(shape, dtype) if is_hermitian else matrices(shape, dtype)
        a = a if is_hermitian else a + np.swapaxes(a, -1, -2)
        x = ptcore.from_numpy(np.tril(a))               # the other triangle is not read
        factors, pivots = L.ldl_factor(x, hermitian=is_hermitian)
        assert pivots.dtype is ptcore.int32
        assert np.all(np.triu(factors.numpy(), 1) == 0)
        assert not L.ldl_factor_ex(x, hermitian=is_hermitian).info.any()
        b = matrices((*shape[:-1], 2), dtype, 3)
        got = L.ldl_solve(factors, pivots, ptcore.from_numpy(b), hermitian=is_hermitian)
        close(got, np.linalg.solve(a, b), dtype)
        if len(shape) == 2 and shape[0]:
            d = scipy.linalg.ldl(a, hermitian=is_hermitian)[1]
            close(factors.diagonal(), np.diag(d), dtype)


def test_ldl_has_no_derivative():
    x = ptcore.eye(2, dtype=ptcore.float64).requires_grad_()
    factors, pivots = L.ldl_factor(x)
    b = ptcore.ones(2, 1, dtype=ptcore.float64).requires_grad_()
    for op, result in (("linalg_ldl_factor", factors), ("linalg_ldl_solve", L.ldl_solve(factors.detach(), pivots, b)),
                       ("geqrf", ptcore.geqrf(x)[0])):
        with pytest.raises(NotImplementedError, match=f"{op}: its derivative is not implemented"):
            result.sum().backward()


def test_ldl_of_a_singular_matrix():
    zero = ptcore.zeros(2, 2)
    assert int(L.ldl_factor_ex(zero).info) == 1
    with pytest.raises(L.LinAlgError, match="block 1 of D is zero"):
        L.ldl_factor(zero)


# -- reflectors ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (5, 2), (2, 5), (2, 4, 3), (0, 3), (3, 0), (60, 50)], ids=str)
def test_reflectors(shape, dtype):
    a = matrices(shape, dtype)
    x = ptcore.from_numpy(a)
    r, tau = ptcore.geqrf(x)
    m, n = shape[-2:]
    assert tau.shape == (*shape[:-2], min(m, n))
    if m >= n:
        q = ptcore.orgqr(r, tau)
        np.testing.assert_allclose((q @ r[..., :n, :].triu()).numpy(), a, atol=EPS[dtype] * 20)
        np.testing.assert_array_equal(q.numpy(), L.householder_product(r, tau).numpy())
        by_steps = L.householder_product(r.requires_grad_(), tau).detach()      # the way that has derivatives
        close(by_steps, q.numpy(), dtype)
        r = r.detach()
    full = ptcore.ormqr(r, tau, ptcore.eye(m, dtype=x.dtype).expand(*shape[:-2], m, m))
    np.testing.assert_allclose((full @ r.triu()).numpy(), a, atol=EPS[dtype] * 20)
    other = ptcore.from_numpy(matrices((*shape[:-2], m, 2), dtype, 1))
    close(ptcore.ormqr(r, tau, other, transpose=True), (full.mH @ other).numpy(), dtype)
    close(ptcore.ormqr(r, tau, other.mT, left=False), (other.mT @ full).numpy(), dtype)


def test_errors_of_reflectors():
    a, tau = ptcore.ones(3, 2), ptcore.ones(2)
    for call, text in ((lambda: L.householder_product(a.mT, tau), "must not have more columns than rows"),
                       (lambda: L.householder_product(a, ptcore.ones(3)), "at most 2 elements each"),
                       (lambda: L.householder_product(a, tau.double()), "tau must have dtype float32, got float64"),
                       (lambda: ptcore.ormqr(a, tau, ptcore.ones(2, 2)), "ormqr: input, tau and other do not fit"),
                       (lambda: ptcore.geqrf(ptcore.ones(2)), "geqrf: input must have at least 2 dimensions")):
        with pytest.raises(RuntimeError, match=text):
            call()
    with pytest.raises(RuntimeError, match="at most 2 elements each"):
        L.householder_product(a.clone().requires_grad_(), ptcore.ones(3))


# -- exponentials --------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1e-8, 0.01, 0.3, 1.0, 5.0, 30.0])
def test_matrix_exp(size, dtype):
    for shape in ((4, 4), (2, 3, 3), (20, 20)):
        a = matrices(shape, dtype) * size / shape[-1]
        a = (a - adjoint(a)).astype(dtype)              # the exponential is unitary: no digits are lost
        want = np.stack([scipy.linalg.expm(m.astype(np.complex128)) for m in a.reshape(-1, *shape[-2:])]).reshape(shape)
        got = ptcore.matrix_exp(ptcore.from_numpy(a)).numpy()
        np.testing.assert_allclose(got, want, atol=EPS[dtype] * (1 + size))


def test_exponentials_of_special_matrices():
    np.testing.assert_array_equal(L.matrix_exp(ptcore.zeros(3, 3)).numpy(), np.eye(3))
    close(L.matrix_exp(ptcore.tensor([1.0, -300.0, 80.0]).diag()), np.diag(np.exp([1.0, -300.0, 80.0])), "float32")
    assert L.matrix_exp(ptcore.full((2, 2), float("nan"))).isnan().all()
    assert L.matrix_exp(ptcore.full((2, 2), 1e30)).shape == (2, 2)
    for huge in (ptcore.full((2, 2), 1.7e308, dtype=ptcore.float64),                # the norms overflow
                 ptcore.full((2, 2), 3e38 + 3e38j, dtype=ptcore.complex64)):
        assert L.matrix_exp(huge).isnan().all()
    assert L.matrix_exp(ptcore.empty(0, 3, 3)).shape == (0, 3, 3)
    half = L.matrix_exp(ptcore.eye(2).half())
    assert half.dtype is ptcore.float16
    np.testing.assert_array_equal(half.numpy(), (np.e * np.eye(2)).astype(np.float16))
    with pytest.raises(RuntimeError, match="linalg_matrix_exp: dtype must be float32"):
        L.matrix_exp(ptcore.eye(2, dtype=ptcore.int64))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives_of_exponentials(dtype):
    x = ptcore.from_numpy(matrices((2, 3, 3), dtype)).requires_grad_()
    assert gradcheck(L.matrix_exp, (x,))
    assert gradgradcheck(L.matrix_exp, (x,))


def test_tensors_as_maps():
    a = matrices((2, 3, 6), "float64")
    inverse = L.tensorinv(ptcore.from_numpy(a), 2)
    close(ptcore.tensordot(inverse, ptcore.from_numpy(a), 2), np.eye(6), "float64")
    for call, text in ((lambda: L.tensorinv(ptcore.ones(2, 3), 1), "must have one product"),
                       (lambda: L.tensorinv(ptcore.ones(2, 2), 0), "ind must be positive, got 0"),
                       (lambda: L.tensorsolve(ptcore.ones(2, 3), ptcore.ones(2)), "as many elements as the solution"),
                       (lambda: L.vander(ptcore.ones(2), N=1), "N must be greater than 1"),
                       (lambda: ptcore.vander(ptcore.ones(2, 2)), "x must be a vector")):
        with pytest.raises(RuntimeError, match=text):
            call()


def test_extreme_eigenvalues_in_every_transformation():
    """lobpcg iterates only where no derivative is asked for: the iteration's own has no limit."""
    a, t = (hermitian((9, 9), "float64", seed) for seed in range(2))
    values, vectors = np.linalg.eigh(a)
    x, moved = ptcore.from_numpy(a), ptcore.from_numpy(t)

    def largest(x):
        return ptcore.lobpcg(x, 2)[0]

    slopes = [v @ t @ v for v in (vectors[:, -1], vectors[:, -2])]
    got, tangent = ptcore.func.jvp(largest, (x,), (moved,))
    np.testing.assert_allclose(got, values[[-1, -2]], rtol=1e-7)
    np.testing.assert_allclose(tangent, slopes, rtol=1e-6)
    np.testing.assert_allclose(ptcore.func.vmap(largest)(ptcore.stack([x, 2 * x])),
                               np.stack([values[[-1, -2]], 2 * values[[-1, -2]]]), rtol=1e-7)
    gradient = ptcore.func.grad(lambda x: largest(x).sum())(x)
    np.testing.assert_allclose(gradient, vectors[:, -2:] @ vectors[:, -2:].T, atol=1e-7)
    with ptcore.no_grad():
        np.testing.assert_allclose(largest(x.clone().requires_grad_()), values[[-1, -2]], rtol=1e-7)


@pytest.mark.parametrize("size", [1e6, 1e12, 1e17, 1e20])
@pytest.mark.parametrize("dtype", [ptcore.float64, ptcore.complex128])
def test_exponential_of_nilpotent_matrices(size, dtype):
    """The series ends, so it is exact: squaring must not raise a rounding of the solver to a high power."""
    a = np.triu(np.random.default_rng(3).normal(size=(4, 4)), 1) * size
    want = np.eye(4) + a + a @ a / 2 + a @ a @ a / 6
    order = np.array([2, 0, 3, 1])                  # also where no triangle is 0, so that a solver would take pivots
    for given, result in ((a, want), (a.T, want.T), (a[order][:, order], want[order][:, order])):
        got = ptcore.matrix_exp(ptcore.from_numpy(given.copy()).to(dtype)).numpy()
        np.testing.assert_allclose(got, result, rtol=1e-12)
    x = ptcore.tensor([[0, size], [0, 0]], dtype=dtype)
    assert ptcore.matrix_exp(x).tolist() == [[1, size], [0, 1]]
