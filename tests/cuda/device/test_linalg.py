"""Linear algebra on the device, by cuSOLVER, against NumPy and SciPy: layouts, batches, derivatives, errors."""
import numpy as np
import pytest
import scipy.linalg
import scipy.stats

import ptcore
from ptcore import cuda
from ptcore.autograd import gradcheck, gradgradcheck

L = ptcore.linalg
EPS = {"float32": 2e-6, "float64": 1e-14, "complex64": 2e-6, "complex128": 1e-14}
# One matrix, a batch of small ones (one routine for all of them), one of larger ones (one after the other).
SQUARES = [(1, 1), (6, 6), (70, 70), (5, 4, 4), (2, 3, 9, 9), (2, 66, 66)]
OBLONGS = [(7, 3), (3, 7), (5, 4, 2), (5, 2, 4), (2, 70, 5), (2, 5, 70), (1, 4), (4, 1)]


@pytest.fixture(autouse=True)
def first_device():
    cuda.set_device(0)
    yield
    cuda.synchronize()


def draw(shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else x).astype(dtype)


def adjoint(a):
    return a.swapaxes(-1, -2).conj()


def positive(shape, dtype="float64", seed=0):
    a = draw(shape, dtype, seed)
    return (a @ adjoint(a) + 2 * np.eye(shape[-1])).astype(dtype)


def there(a):
    return ptcore.from_numpy(np.ascontiguousarray(a)).cuda()


def layouts(a):
    """The same values in other orders of memory."""
    yield there(a)
    yield there(a.swapaxes(-1, -2)).mT
    wide = ptcore.zeros(*a.shape[:-1], 2 * a.shape[-1], dtype=there(a).dtype, device="cuda")
    wide[..., ::2] = there(a)
    yield wide[..., ::2]
    yield there(a[..., ::-1, :]).flip(-2)


def back(x):
    assert x.device.type == "cuda"
    return x.cpu().numpy()


def near(got, want, dtype, of=None):
    """Within rounding of the largest element there, or in `of`."""
    got = back(got) if isinstance(got, ptcore.Tensor) else got
    want = np.asarray(want)
    assert got.shape == want.shape
    size = max(1, np.abs(want if of is None else of).max(initial=0))
    np.testing.assert_allclose(got, want, rtol=0, atol=40 * EPS[dtype] * size * max(1, *want.shape[-2:], 1))


def orthonormal(q, dtype):
    q = back(q)
    near(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1])), dtype)


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("shape", SQUARES)
def test_cholesky(shape, dtype):
    a = positive(shape, dtype)
    want = np.linalg.cholesky(a.astype(np.promote_types(dtype, "float64")))
    for x in layouts(a):
        near(L.cholesky(x), want, dtype)
        near(L.cholesky(x, upper=True), adjoint(want), dtype)
        factor, info = L.cholesky_ex(x)
        near(factor, want, dtype)
        assert info.dtype is ptcore.int32
        assert not back(info).any()
    half = there(np.tril(a) + np.triu(np.full_like(a, np.nan), 1))           # the other triangle is not read
    near(L.cholesky(half), want, dtype)
    b = draw((*shape[:-1], 3), dtype, 1)
    near(ptcore.cholesky_solve(there(b), L.cholesky(there(a))), np.linalg.solve(a.astype(want.dtype), b), dtype, b)
    near(ptcore.cholesky_inverse(L.cholesky(there(a))), np.linalg.inv(a.astype(want.dtype)), dtype)


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("shape", SQUARES)
def test_equations(shape, dtype):
    a = draw(shape, dtype) / shape[-1] + 2 * np.eye(shape[-1], dtype=dtype)
    wide = a.astype(np.promote_types(dtype, "float64"))
    inverse = np.linalg.inv(wide)
    for x in layouts(a):
        near(L.inv(x), inverse, dtype)
        for columns in (1, 4):
            b = draw((*shape[:-1], columns), dtype, 1)
            near(L.solve(x, there(b)), inverse @ b, dtype, inverse @ b)
            near(L.solve(x, there(b.swapaxes(-1, -2)), left=False), b.swapaxes(-1, -2) @ inverse, dtype)
        near(L.solve(x, there(b[..., 0])), (inverse @ b)[..., 0], dtype, inverse @ b)
        np.testing.assert_allclose(back(L.det(x)), np.linalg.det(wide), rtol=40 * EPS[dtype])
        sign, size = L.slogdet(x)
        near(sign, np.linalg.slogdet(wide)[0], dtype)
        near(size, np.linalg.slogdet(wide)[1], dtype)
        near(L.matrix_power(x, -2), inverse @ inverse, dtype)


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("shape", SQUARES)
def test_triangles(shape, dtype):
    a = draw(shape, dtype) / shape[-1] + 2 * np.eye(shape[-1], dtype=dtype)
    b = draw((*shape[:-1], 3), dtype, 1)
    for x in layouts(a):
        for upper in (False, True):
            for unit in (False, True):
                triangle = np.triu(a, int(unit)) if upper else np.tril(a, -int(unit))
                triangle = triangle + np.eye(shape[-1]) * unit
                want = np.linalg.solve(triangle.astype(np.promote_types(dtype, "float64")), b)
                near(L.solve_triangular(x, there(b), upper=upper, unitriangular=unit), want, dtype)
                got = L.solve_triangular(x, there(adjoint(b)), upper=upper, unitriangular=unit, left=False)
                near(back(got) @ triangle, adjoint(b), dtype)
    assert np.isinf(back(L.solve_triangular(there(np.zeros((2, 2))), there(np.ones((2, 1))), upper=True))).any()


def permuted(pivots, rows):
    order = np.arange(rows)
    for i, p in enumerate(pivots):
        order[[i, p - 1]] = order[[p - 1, i]]
    return order


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("shape", SQUARES + OBLONGS)
def test_lu(shape, dtype):
    a = draw(shape, dtype)
    m, n = shape[-2:]
    k = min(m, n)
    for x in layouts(a):
        factors, pivots, info = L.lu_factor_ex(x)
        assert pivots.dtype is info.dtype is ptcore.int32
        assert not back(info).any()
        lu, p = back(factors).reshape(-1, m, n), back(pivots).reshape(-1, k)
        for one, swaps, whole in zip(lu, p, a.reshape(-1, m, n)):
            lower = np.tril(one[:, :k], -1) + np.eye(m, k)
            near(lower @ np.triu(one[:k]), whole[permuted(swaps, m)], dtype, a)
            assert np.abs(lower).max() <= 1.5               # of each column the largest is the pivot
        P, low, up = L.lu(x)
        near(P @ low @ up, a, dtype)
        if m == n:
            b = draw((*shape[:-1], 2), dtype, 1)
            for left in (True, False):
                for turned in (True, False):
                    right = b if left else b.swapaxes(-1, -2)
                    got = back(L.lu_solve(factors, pivots, there(right), left=left, adjoint=turned))
                    of = adjoint(a) if turned else a
                    near(of @ got if left else got @ of, right, dtype, np.abs(a).max() * np.abs(got).max())


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("shape", SQUARES + OBLONGS)
def test_lu_without_pivots(shape, dtype):
    m, n = shape[-2:]
    a = draw(shape, dtype) + 2 * max(m, n) * np.eye(m, n, dtype=dtype)
    for x in layouts(a):
        factors, pivots, info = L.lu_factor_ex(x, pivot=False)
        assert not back(info).any()
        assert (back(pivots) == np.arange(1, min(m, n) + 1)).all()
        P, low, up = L.lu(x, pivot=False)
        assert P.shape == (0,)
        near(low @ up, a, dtype)
        k = min(m, n)
        near(factors, np.tril(back(low), -1) @ np.eye(k, n) + np.eye(m, k) @ np.triu(back(up)), dtype)
        if m == n:
            b = draw((*shape[:-1], 2), dtype, 1)
            near(a @ back(L.lu_solve(factors, pivots, there(b))), b, dtype)


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)])
def test_a_pivot_that_is_zero_and_not_swapped(shape):
    a = np.broadcast_to(np.array([[0., 1, 2], [1, 0, 3], [4, 5, 6]]), shape)
    assert not back(L.lu_factor_ex(there(a)).info).any()
    np.testing.assert_array_equal(back(L.lu_factor_ex(there(a), pivot=False).info), np.ones(shape[:-2]))
    with pytest.raises(ptcore.linalg.LinAlgError, match="is singular: element 1 of U's diagonal is zero"):
        L.lu_factor(there(a), pivot=False)


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("shape", [*OBLONGS, (6, 6), (3, 5, 5)])
def test_qr(shape, dtype):
    a = draw(shape, dtype)
    m, n = shape[-2:]
    for x in layouts(a):
        for mode, wide in (("reduced", min(m, n)), ("complete", m)):
            q, r = L.qr(x, mode)
            assert q.shape[-2:] == (m, wide)
            near(q @ r, a, dtype)
            orthonormal(q, dtype)
            assert not np.tril(back(r), -1).any()
        q, only = L.qr(x, "r")
        assert q.shape == (0,)
        near(np.abs(back(only)), np.abs(np.linalg.qr(a, "r")), dtype, a)
        if m < n:
            continue
        reflectors, tau = ptcore.geqrf(x)
        near(np.triu(back(reflectors))[..., :n, :], back(only), dtype)
        near(L.householder_product(reflectors, tau) @ only, a, dtype)
        near(ptcore.orgqr(reflectors, tau[..., :0]), np.broadcast_to(np.eye(m, n), shape), dtype)
        beside = ptcore.zeros_like(x)[..., :1].expand(*shape[:-1], m - n)
        whole = L.householder_product(ptcore.cat([reflectors, beside], -1), tau)
        orthonormal(whole, dtype)
        b = draw((*shape[:-2], m, 2), dtype, 1)
        near(ptcore.ormqr(reflectors, tau, there(b)), back(whole) @ b, dtype)
        near(ptcore.ormqr(reflectors, tau, there(adjoint(b)), left=False, transpose=True),
             adjoint(b) @ adjoint(back(whole)), dtype)


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("shape", [*OBLONGS, (6, 6), (3, 5, 5), (2, 3, 2, 3), (2, 32, 32), (2, 33, 2)])
def test_svd(shape, dtype):
    a = draw(shape, dtype)
    k = min(shape[-2:])
    want = np.linalg.svd(a.astype(np.promote_types(dtype, "float64")), compute_uv=False)
    for x in layouts(a):
        for full in (False, True):
            u, s, vh = L.svd(x, full_matrices=full)
            near(s, want, dtype)
            orthonormal(u, dtype)
            orthonormal(vh.mH, dtype)
            near(u[..., :k] * s.unsqueeze(-2) @ vh[..., :k, :], a, dtype)
        near(L.svdvals(x), want, dtype)
        for driver in ("gesvd", "gesvdj", "gesvda"):
            near(L.svdvals(x, driver=driver), want, dtype)
        assert x.svd(compute_uv=False).U.shape == (*shape[:-2], shape[-2], shape[-2])
    with pytest.raises(RuntimeError, match=r"driver must be None or 'gesvd' or .* on cuda, got 'gels'"):
        L.svd(x, driver="gels")


@pytest.mark.parametrize("dtype", EPS)
def test_what_is_made_of_singular_values(dtype):
    a, b = draw((6, 4), dtype), draw((6, 2), dtype, 1)
    a[:, 3] = a[:, 0]
    near(L.pinv(there(a)), np.linalg.pinv(a.astype(np.promote_types(dtype, "float64")), rcond=1e-5), dtype)
    assert int(L.matrix_rank(there(a))) == 3
    near(L.norm(there(a), "nuc"), np.linalg.norm(a, "nuc"), dtype)
    near(L.cond(there(a[:, :3])), np.linalg.cond(a[:, :3]), dtype)
    x, residuals, rank, values = L.lstsq(there(a[:, :3]), there(b), driver="gelsd")
    want = np.linalg.lstsq(a[:, :3], b)
    near(x, want[0], dtype)
    near(residuals, want[1], dtype)
    assert int(rank) == 3
    near(values, want[3], dtype)


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("shape", SQUARES)
def test_eigh(shape, dtype):
    a = draw(shape, dtype)
    a = a + adjoint(a)
    want = np.linalg.eigvalsh(a.astype(np.promote_types(dtype, "float64")))
    for x in layouts(a):
        for triangle in "LU":
            values, vectors = L.eigh(x, triangle)
            near(values, want, dtype)
            orthonormal(vectors, dtype)
            near(x @ vectors, back(vectors) * want[..., None, :], dtype, a)
            near(L.eigvalsh(x, triangle), want, dtype)
    near(L.eigvalsh(there(np.tril(a) + np.triu(draw(shape, dtype, 1), 1))), want, dtype)


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (6, 6), (5, 3, 3), (2, 2, 4, 4), (30, 30)])
def test_eig(shape, dtype):
    a = draw(shape, dtype)
    for x in layouts(a):
        values, vectors = L.eig(x)
        assert values.dtype is vectors.dtype is (ptcore.complex64 if EPS[dtype] > 1e-10 else ptcore.complex128)
        near(a @ back(vectors), back(vectors) * back(values)[..., None, :], dtype, a)
        np.testing.assert_allclose(np.linalg.norm(back(vectors), axis=-2), 1, rtol=10 * EPS[dtype])
        want = np.linalg.eigvals(a.astype(np.promote_types(dtype, "float64")))
        for got in (values, L.eigvals(x)):
            distance = np.abs(back(got)[..., :, None] - want[..., None, :])
            assert distance.min(-1).max() < 200 * EPS[dtype] * shape[-1]
    turn = there(np.array([[0., 2.], [-2., 0.]], dtype))         # a pair of conjugate numbers
    values, vectors = L.eig(turn)
    np.testing.assert_allclose(np.sort(back(values).imag), [-2, 2], rtol=10 * EPS[dtype])
    near(turn.to(vectors.dtype) @ vectors, back(vectors) * back(values), dtype)


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("shape", [(2, 2), (6, 6), (3, 5, 5), (40, 40)])
def test_ldl(shape, dtype):
    a = draw(shape, dtype)
    a = a + a.swapaxes(-1, -2)
    a[..., 0, 0] = 0                                        # blocks of two
    b = draw((*shape[:-1], 3), dtype, 1)
    real = not dtype.startswith("complex")
    for x in layouts(a):
        factors, pivots, info = L.ldl_factor_ex(x)
        assert not back(info).any()
        assert not np.triu(back(factors), 1).any()
        want, swaps = L.ldl_factor(ptcore.from_numpy(a))
        near(factors, want.numpy(), dtype, a)
        np.testing.assert_array_equal(back(pivots), swaps.numpy())
        for hermitian in (False, True) if real else (False,):
            near(a @ back(L.ldl_solve(factors, pivots, there(b), hermitian=hermitian)), b, dtype, 100 * np.abs(b))
    if not real:
        for call in (lambda: L.ldl_factor(there(a), hermitian=True),
                     lambda: L.ldl_solve(factors, pivots, there(b), hermitian=True)):
            with pytest.raises(RuntimeError, match="hermitian=True for complex matrices is not implemented on CUDA"):
                call()


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (4, 3, 3), (2, 20, 20)])
def test_matrix_exp(shape, dtype):
    a = draw(shape, dtype) / shape[-1]
    if a.ndim > 2:
        a = a * np.array([0.01, 1, 8, 30])[: shape[0], None, None].astype(a.real.dtype)
    wide = a.astype(np.promote_types(dtype, "float64")).reshape(-1, *shape[-2:])
    want = np.array([scipy.linalg.expm(m) for m in wide])
    for x in layouts(a):
        got = back(L.matrix_exp(x)).reshape(want.shape)
        for one, expected in zip(got, want):
            near(one, expected, dtype, 20 * np.abs(expected))
    x[..., 0, 0] = np.inf
    assert np.isnan(back(L.matrix_exp(x))).all()


def test_no_elements():
    def empty(*shape):
        return ptcore.empty(*shape, dtype=ptcore.float64, device="cuda")

    for shape in ((0, 0), (2, 0, 0), (0, 3, 3)):
        x = empty(*shape)
        batch, n = shape[:-2], shape[-1]
        for f in (L.cholesky, L.inv, L.matrix_exp):
            assert f(x).shape == shape
        assert L.solve(x, empty(*batch, n, 2)).shape == (*batch, n, 2)
        assert L.solve_triangular(x, empty(*batch, n, 2), upper=True).shape == (*batch, n, 2)
        np.testing.assert_array_equal(back(L.det(x)), np.ones(batch))
        np.testing.assert_array_equal(back(L.slogdet(x).logabsdet), np.zeros(batch))
        assert L.eigh(x).eigenvectors.shape == L.eig(x).eigenvectors.shape == shape
        for f in (L.cholesky_ex, L.lu_factor_ex, L.inv_ex):
            np.testing.assert_array_equal(back(f(x).info), np.zeros(batch))
        factors, pivots = L.ldl_factor(x)
        assert L.ldl_solve(factors, pivots, empty(*batch, n, 2)).shape == (*batch, n, 2)
        factors, pivots = L.lu_factor(x)
        assert L.lu_solve(factors, pivots, empty(*batch, n, 2)).shape == (*batch, n, 2)
    for shape in ((0, 3), (3, 0), (2, 0, 3), (0, 2, 3)):
        x, k = empty(*shape), min(shape[-2:])
        m, n = shape[-2:]
        u, s, vh = L.svd(x)
        near(u, np.broadcast_to(np.eye(m), (*shape[:-2], m, m)), "float64")
        near(vh, np.broadcast_to(np.eye(n), (*shape[:-2], n, n)), "float64")
        assert s.shape == (*shape[:-2], k)
        q, r = L.qr(x, "complete")
        near(q, np.broadcast_to(np.eye(m), (*shape[:-2], m, m)), "float64")
        assert r.shape == shape
        assert ptcore.geqrf(x).tau.shape == (*shape[:-2], k)
        assert L.lu(x)[0].shape == (*shape[:-2], m, m)
    assert L.solve(there(np.eye(3)), empty(3, 0)).shape == (3, 0)


def test_results_that_are_given():
    a = positive((5, 5))
    def room(*shape):
        return ptcore.empty(*shape, dtype=ptcore.float64, device="cuda")

    out = room(5, 5).mT
    assert L.cholesky(there(a), out=out) is out
    near(out, np.linalg.cholesky(a), "float64")
    x = there(a)
    L.inv(x, out=x)
    near(x, np.linalg.inv(a), "float64")
    x = there(a)
    L.solve_triangular(x, x, upper=False, out=x)
    near(x, np.linalg.solve(np.tril(a), a), "float64")
    u, s, vh = room(5, 3), room(3), room(3, 3)
    L.svd(there(draw((5, 3))), full_matrices=False, out=(u, s, vh))
    near(u * s @ vh, draw((5, 3)), "float64")
    near(s, np.linalg.svd(draw((5, 3)), compute_uv=False), "float64")


# -- derivatives --------------------------------------------------------------------------------------------

def symmetric(x):
    return x @ x.mH + 2 * ptcore.eye(x.shape[-1], dtype=x.dtype, device="cuda")


DERIVATIVES = {
    "cholesky": lambda x: L.cholesky(symmetric(x)),
    "inv": L.inv,
    "solve": lambda x: L.solve(x, x[..., :2] * 2),
    "solve_triangular": lambda x: L.solve_triangular(x, x.mT, upper=True),
    "det": L.det,
    "slogdet": lambda x: L.slogdet(x).logabsdet,
    "qr": lambda x: L.qr(x[..., :2]),
    "svdvals": L.svdvals,
    "eigh": lambda x: L.eigh(symmetric(x)).eigenvalues,
    "vectors": lambda x: L.eigh(symmetric(x)).eigenvectors.abs(),
    "svd": lambda x: [p.abs() for p in L.svd(x[..., :2], full_matrices=False)],
    "eigvals": lambda x: L.eigvals(symmetric(x)).real.sum(-1),
    "eig": lambda x: L.eig(symmetric(x)).eigenvectors.abs(),
    "lu": lambda x: L.lu(x)[1:],
    "lu without pivots": lambda x: L.lu(x, pivot=False)[1:],
    "lu_solve": lambda x: L.lu_solve(*L.lu_factor(x), x[..., :2] * 2),
    "householder_product": lambda x: L.householder_product(x[..., :2], x[..., 0, :2] / 3),
    "pinv": L.pinv,
    "lstsq": lambda x: L.lstsq(x[..., :2], x[..., 2:]).solution,
    "matrix_exp": L.matrix_exp,
    "cholesky_solve": lambda x: ptcore.cholesky_solve(x, L.cholesky(symmetric(x))),
}
TWICE = ("cholesky", "inv", "solve", "det", "eigh", "svdvals", "qr", "lu", "solve_triangular", "slogdet")


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name, dtype):
    a = draw((2, 3, 3), dtype, 3) / 2 + np.array(np.diag([1, 2, 3.5]), dtype)
    assert gradcheck(DERIVATIVES[name], (there(a).requires_grad_(),))


@pytest.mark.parametrize("name", TWICE)
def test_second_derivatives(name):
    a = draw((3, 3), "float64", 3) / 2 + np.diag([1, 2, 3.5])
    assert gradgradcheck(DERIVATIVES[name], (there(a).requires_grad_(),))


# -- what fails ---------------------------------------------------------------------------------------------

def singular(shape, k):
    """Matrices of which the last but one has a zero for its pivot k."""
    a = np.broadcast_to(np.eye(shape[-1]), shape).copy()
    flat = a.reshape(-1, *shape[-2:])
    flat[-2 if len(flat) > 1 else -1, k - 1, k - 1] = 0
    return a


@pytest.mark.parametrize(("shape", "which"), [((4, 4), "the input"), ((5, 4, 4), "matrix 3 of the batch"),
                                              ((3, 66, 66), "matrix 1 of the batch")])
def test_singular_matrices(shape, which):
    x = there(singular(shape, 3))
    b = ptcore.ones(*shape[:-1], 2, dtype=ptcore.float64, device="cuda")
    error = ptcore.linalg.LinAlgError
    pivot = f"{which} is singular: pivot 3 of its elimination is zero"
    for call in (lambda: L.solve(x, b), lambda: L.inv(x), lambda: L.inv_ex(x, check_errors=True),
                 lambda: L.solve_ex(x, b, check_errors=True)):
        with pytest.raises(error, match=pivot):
            call()
    with pytest.raises(error, match=f"{which} is singular: element 3 of U's diagonal is zero"):
        L.lu_factor(x)
    with pytest.raises(error, match=f"{which} is not positive-definite: its leading minor of order 3 is not positive"):
        L.cholesky(x)
    with pytest.raises(error, match=f"{which} is singular: block 3 of D is zero"):
        L.ldl_factor(x)
    want = np.zeros(shape[:-2], int)
    want.reshape(-1)[-2 if len(shape) > 2 else 0] = 3
    for info in (L.cholesky_ex(x).info, L.lu_factor_ex(x).info, L.inv_ex(x).info, L.solve_ex(x, b).info,
                 L.ldl_factor_ex(x).info):
        np.testing.assert_array_equal(back(info), want)
    solved = back(L.solve_ex(x, b).result).reshape(-1, shape[-1], 2)
    finite = np.isfinite(solved).all((-1, -2))
    assert finite.tolist() == (want.reshape(-1) == 0).tolist()
    assert back(L.det(x)).reshape(-1).tolist() == (want.reshape(-1) == 0).astype(float).tolist()


@pytest.mark.parametrize("shape", [(4, 4), (3, 4, 4), (2, 66, 66)])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_matrices_that_are_not_finite(shape, bad):
    a = positive(shape)
    a.reshape(-1, *shape[-2:])[-1, 1, 1] = bad
    x = there(a)
    which = f"matrix {shape[0] - 1} of the batch" if len(shape) > 2 else "the input"
    for f in (L.eigh, L.eigvalsh, L.eig, L.eigvals, L.svd, L.svdvals):
        with pytest.raises(ptcore.linalg.LinAlgError, match=f"{which} contains values that are not finite"):
            f(x)
    if np.isnan(bad):
        with pytest.raises(ptcore.linalg.LinAlgError, match=f"{which} is not positive-definite"):
            L.cholesky(x)
        assert back(L.cholesky_ex(x).info).reshape(-1).tolist() == [0] * (len(a.reshape(-1, *shape[-2:])) - 1) + [2]
    L.qr(x), L.det(x), L.lu_factor_ex(x), L.inv_ex(x)        # are as they are


def test_shapes_and_dtypes_that_do_not_fit():
    x = there(draw((3, 4)))
    for call, text in ((lambda: L.cholesky(x), "linalg_cholesky: matrices must be square"),
                       (lambda: L.solve(x[:, :3], x.mT), "linalg_solve: A and B do not fit"),
                       (lambda: L.eigh(x), "linalg_eigh: matrices must be square"),
                       (lambda: L.svd(x[0]), "linalg_svd: A must have at least 2 dimensions"),
                       (lambda: L.inv(x[:, :3].half()), "linalg_inv: dtype must be float32"),
                       (lambda: L.solve(x[:, :3], x[:, :3].float()), "linalg_solve: A and B must have one dtype"),
                       (lambda: L.solve(x[:, :3], x.cpu()), "device")):
        with pytest.raises((RuntimeError, ValueError), match=text):
            call()


def test_pivots_that_are_no_rows():
    factors, pivots = L.lu_factor(there(draw((3, 4, 4))))
    ldl, _ = L.ldl_factor(there(positive((4, 4))))
    b = there(draw((3, 4, 2)))
    for wrong in (0, 5, -1, 1 << 30):
        bad = pivots.clone()
        bad[1, 2] = wrong
        for call in (lambda bad=bad: L.lu_solve(factors, bad, b), lambda bad=bad: ptcore.lu_unpack(factors, bad)):
            call()
            with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for dimension 0 with size 4"):
                cuda.synchronize()
    for wrong in ([1, 2, 3, 5], [1, 2, 3, -4], [-1, 2, 3, 4], [0, 2, 3, 4]):
        L.ldl_solve(ldl, ptcore.tensor(wrong, dtype=ptcore.int32, device="cuda"), b[0])
        with pytest.raises(IndexError, match=r"linalg_ldl_solve: index .* is out of bounds"):
            cuda.synchronize()


# -- waiting, streams, graphs -------------------------------------------------------------------------------

WAITS = [L.cholesky, L.inv, L.lu_factor, L.eigh, L.eig, L.svd, L.matrix_exp, L.ldl_factor, lambda x: L.solve(x, x)]
DOES_NOT = [L.cholesky_ex, L.inv_ex, L.lu_factor_ex, L.ldl_factor_ex, L.qr, L.det, L.slogdet, L.lu, ptcore.geqrf,
            lambda x: L.solve_ex(x, x), lambda x: L.solve_triangular(x, x, upper=True),
            lambda x: ptcore.cholesky_solve(x, x), lambda x: L.lu_solve(*L.lu_factor_ex(x)[:2], x),
            lambda x: L.householder_product(x, x[..., 0]),
            lambda x: L.ldl_solve(*L.ldl_factor_ex(x)[:2], x)]


@pytest.mark.parametrize("shape", [(4, 4), (3, 4, 4)])
def test_what_waits(shape):
    """Where what was found may be an error the host looks at it, and nowhere else."""
    x = there(positive(shape))
    for f in DOES_NOT + WAITS:
        f(x)
    cuda.set_sync_debug_mode("error")
    try:
        for f in DOES_NOT:
            f(x)
        for f in WAITS:
            with pytest.raises(RuntimeError, match="synchronizing"):
                f(x)
    finally:
        cuda.set_sync_debug_mode("default")


def test_in_a_graph():
    x = there(positive((3, 4, 4)))
    L.cholesky_ex(x), L.solve_ex(x, x), L.qr(x)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        factor, solved = L.cholesky_ex(x).L, L.solve_ex(x, x + 1).result
    a = positive((3, 4, 4), seed=1)
    x.copy_(there(a))
    graph.replay()
    near(factor, np.linalg.cholesky(a), "float64")
    near(solved, np.linalg.solve(a, a + 1), "float64")
    with pytest.raises(RuntimeError, match="cannot become part of a CUDA graph"), cuda.graph(cuda.CUDAGraph()):
        L.cholesky(x)


def test_threads_and_streams(by_threads):
    """Handles of their own, workspaces in each stream's order."""
    a = positive((3, 20, 20))
    x = there(a)

    def work():
        for _ in range(10):
            y = L.cholesky_ex(x).L
            y = L.lu_solve(*L.lu_factor_ex(x)[:2], x @ y)
        return y

    for y in by_threads(work):
        near(y, np.linalg.cholesky(a), "float64")


def test_two_devices():
    if cuda.device_count() < 2:
        pytest.skip("of several devices")
    a = draw((4, 4))
    for device in ("cuda:1", "cuda:0", "cuda:1"):
        x = ptcore.from_numpy(a).to(device)
        y = L.inv(x)
        assert str(y.device) == device
        near(y, np.linalg.inv(a), "float64")


@pytest.mark.parametrize("shape", [(3, 3), (4, 5, 5), (70, 70)])
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_eigh_reads_one_triangle(shape, dtype):
    a = positive(shape, dtype)
    for side, other in (("L", np.triu_indices(shape[-1], 1)), ("U", np.tril_indices(shape[-1], -1))):
        x = a.copy()
        x[..., other[0], other[1]] = np.nan
        values, vectors = L.eigh(there(x), side)
        near(values, np.linalg.eigvalsh(a), dtype, 1e3 * np.abs(a).max())
        near(vectors * values.unsqueeze(-2) @ vectors.mH, a, dtype, 1e3 * np.abs(a).max())


def test_determinants_that_are_infinite():
    a = np.diag([np.inf, 1.0, -2.0, -np.inf, 3.0])
    found, expected = L.slogdet(there(a)), np.linalg.slogdet(a)
    assert [x.item() for x in found] == [x.item() for x in expected]


def test_others_that_are_made_of_them():
    a = draw((8, 8))
    a = a @ a.T + np.eye(8)
    values, _ = ptcore.lobpcg(there(a), 2)
    near(values, np.linalg.eigvalsh(a)[:-3:-1], "float64", 1e8 * np.ones(1))
    u, s, v = ptcore.svd_lowrank(there(a), 8)
    near(u * s @ v.mT, a, "float64")
    x = there(draw((2, 2, 4)))
    near(L.tensorinv(x), np.linalg.tensorinv(back(x)), "float64")
    near(L.multi_dot([x[0], x[1].mT, x[0]]), back(x)[0] @ back(x)[1].T @ back(x)[0], "float64")
    normal = ptcore.distributions.MultivariateNormal(there(np.zeros(8)), there(a))
    near(normal.log_prob(there(np.ones(8))), scipy.stats.multivariate_normal(np.zeros(8), a).logpdf(np.ones(8)),
         "float64")


def test_the_library_that_is_preferred():
    from ptcore.backends.cuda import preferred_linalg_library as preferred
    assert preferred() == "default"
    try:
        assert preferred("cusolver") == preferred() == "cusolver"
    finally:
        assert preferred("default") == "default"
    for wrong, error, text in (("magma", RuntimeError, "MAGMA"), ("lapack", RuntimeError, "'default' or 'cusolver'"),
                               (1, TypeError, "int")):
        with pytest.raises(error, match=f"preferred_linalg_library: .*{text}"):
            preferred(wrong)


@pytest.mark.parametrize("dtype", [ptcore.float32, ptcore.float64, ptcore.complex128])
@pytest.mark.parametrize("size", [1e2, 1e6, 1e12])
def test_exponentials_of_nilpotent_matrices(dtype, size):
    """The series ends, so it is exact: no rounding of the identity is raised to a power by squarings."""
    a = np.triu(np.random.default_rng(3).normal(size=(4, 4)), 1) * size
    want, order = np.eye(4) + a + a @ a / 2 + a @ a @ a / 6, np.array([2, 0, 3, 1])
    for given, result in ((a, want), (a.T, want.T), (a[order][:, order], want[order][:, order])):
        got = ptcore.matrix_exp(ptcore.from_numpy(given.copy()).to(dtype).cuda()).cpu().numpy()
        np.testing.assert_allclose(got, result, rtol=1e-5 if dtype is ptcore.float32 else 1e-12)
