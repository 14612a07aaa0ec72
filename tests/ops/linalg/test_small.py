"""Batches of small matrices, which have kernels of their own, beside NumPy and SciPy; sizes on both sides of every limit."""
import numpy as np
import pytest
import scipy.linalg

import ptcore

L = ptcore.linalg
SIZES = (1, 2, 3, 4, 5, 8, 9, 17, 64, 65)       # unrolled up to 4, by rows up to 64, LAPACK's beyond
DTYPES = {"float32": 2e-4, "float64": 1e-11, "complex128": 1e-11}


def matrices(dtype, batch, n, k=None, seed=0):
    """Random matrices; square ones are near a permutation, so that rows must be swapped and none is near singular."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((batch, n, k or n))
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(x.shape)
    if k is None:
        for b in range(batch):
            x[b, np.arange(n), rng.permutation(n)] += 2 * np.sqrt(n)
    return x.astype(dtype)


def close(found, expected, dtype):
    found = found.numpy()
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_allclose(found, expected, rtol=DTYPES[dtype], atol=DTYPES[dtype] * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_equations(dtype, n, turned):
    a = matrices(dtype, 5, n)
    x = ptcore.tensor(a)
    if turned:                                  # columns beside each other
        x = ptcore.tensor(np.ascontiguousarray(a.swapaxes(1, 2))).mT
    close(L.inv(x), np.linalg.inv(a), dtype)
    close(L.inv_ex(x).inverse, np.linalg.inv(a), dtype)
    for k in (1, 3, 9):
        b = matrices(dtype, 5, n, k, seed=1)
        close(L.solve(x, ptcore.tensor(b)), np.linalg.solve(a, b), dtype)
    sign, size = np.linalg.slogdet(a)
    found = L.slogdet(x)
    close(found.sign, sign, dtype)
    np.testing.assert_allclose(found.logabsdet.numpy(), size, rtol=DTYPES[dtype] * 10)
    if size.max() < 85:                         # what a float32 can hold
        np.testing.assert_allclose(L.det(x).numpy(), np.linalg.det(a.astype(complex)), rtol=DTYPES[dtype] * 10)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_triangles(dtype, n):
    a = matrices(dtype, 4, n)
    s = a @ a.conj().swapaxes(1, 2) + np.eye(n, dtype=dtype)
    expected = np.linalg.cholesky(s)
    close(L.cholesky(ptcore.tensor(s)), expected, dtype)
    close(L.cholesky(ptcore.tensor(s).mT.conj(), upper=True), expected.conj().swapaxes(1, 2), dtype)
    # only one triangle is read
    close(L.cholesky(ptcore.tensor(np.tril(s) + np.triu(np.full_like(s, np.nan), 1))), expected, dtype)
    close(L.cholesky(ptcore.tensor(np.triu(s) + np.tril(np.full_like(s, np.nan), -1)), upper=True),
          expected.conj().swapaxes(1, 2), dtype)
    b = matrices(dtype, 4, n, 3, seed=2)
    for upper in (False, True):
        for unit in (False, True):
            t = (np.triu(a) if upper else np.tril(a)) / n + 2 * np.eye(n, dtype=dtype)
            found = L.solve_triangular(ptcore.tensor(t), ptcore.tensor(b), upper=upper, unitriangular=unit)
            close(found, np.stack([scipy.linalg.solve_triangular(t[i], b[i], lower=not upper, unit_diagonal=unit)
                                   for i in range(4)]), dtype)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_lu(dtype, n):
    a = matrices(dtype, 4, n)
    factors, pivots = L.lu_factor(ptcore.tensor(a))
    expected = [scipy.linalg.lu_factor(x) for x in a]
    close(factors, np.stack([f for f, _ in expected]), dtype)
    assert (pivots.numpy() - 1 == np.stack([p for _, p in expected])).all()
    b, c = matrices(dtype, 4, n, 3, seed=3), matrices(dtype, 4, 2, n, seed=4)
    close(L.lu_solve(factors, pivots, ptcore.tensor(b)), np.linalg.solve(a, b), dtype)
    close(L.lu_solve(factors, pivots, ptcore.tensor(b), adjoint=True),
          np.linalg.solve(a.conj().swapaxes(1, 2), b), dtype)
    close(L.lu_solve(factors, pivots, ptcore.tensor(c), left=False), c @ np.linalg.inv(a), dtype)
    close(L.lu_solve(factors, pivots, ptcore.tensor(c), left=False, adjoint=True),
          c @ np.linalg.inv(a).conj().swapaxes(1, 2), dtype)
    # one matrix of factors for a batch, strided pivots
    wide = ptcore.stack([pivots[0], pivots[0]], -1)[:, 0]
    close(L.lu_solve(factors[0], wide, ptcore.tensor(b)), np.linalg.solve(a[0], b), dtype)


@pytest.mark.parametrize("n", [2, 4, 6, 64, 65])
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_of_the_batch_fails(dtype, n):
    a = matrices(dtype, 3, n)
    a[1, :, 0] = 0
    x = ptcore.tensor(a)
    for call in (lambda: L.inv(x), lambda: L.solve(x, x), lambda: L.lu_factor(x)):
        with pytest.raises(ptcore.linalg.LinAlgError, match="matrix 1 of the batch is singular"):
            call()
    for info in (L.inv_ex(x).info, L.solve_ex(x, x).info, L.lu_factor_ex(x).info):
        assert info.tolist() == [0, 1, 0]
    close(L.inv_ex(x).inverse[2], np.linalg.inv(a[2]), dtype)
    assert L.det(x)[1] == 0
    assert L.slogdet(x).logabsdet[1] == -np.inf
    s = a @ a.conj().swapaxes(1, 2) + np.eye(n, dtype=dtype)
    s[1, 1, 1] = -1
    with pytest.raises(ptcore.linalg.LinAlgError, match=r"matrix 1 of the batch is not positive-definite: .*order 2"):
        L.cholesky(ptcore.tensor(s))
    assert L.cholesky_ex(ptcore.tensor(s)).info.tolist() == [0, 2, 0]


@pytest.mark.parametrize("n", [3, 6, 65])
def test_what_is_not_finite(n):
    a = matrices("float64", 3, n)
    a[1, n - 1, n - 1] = np.nan
    x = ptcore.tensor(a)
    assert L.inv(x)[1].isnan().all()
    assert L.det(x).isnan().tolist() == [False, True, False]
    close(L.inv(x)[2], np.linalg.inv(a[2]), "float64")
    s = a @ a.swapaxes(1, 2) + np.eye(n)
    s[1] = np.eye(n)
    s[1, 1, 1] = np.nan
    assert L.cholesky_ex(ptcore.tensor(s)).info.tolist() == [0, 2, 0]


def test_pivots_of_a_user():
    factors, b = ptcore.eye(3).expand(2, 3, 3), ptcore.ones(2, 3, 1)
    for bad in (0, 4, -1, 2 ** 31 - 1, 1 - 2 ** 31):
        pivots = ptcore.tensor([[1, 2, 3], [1, bad, 3]], dtype=ptcore.int32)
        with pytest.raises(RuntimeError, match=rf"pivots must be in \[1, 3\], got {bad}$"):
            L.lu_solve(factors, pivots, b)


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3, 3)])
def test_empty(shape):
    x = ptcore.ones(shape)
    assert L.inv(x).shape == shape
    assert L.det(x).tolist() == np.linalg.det(np.ones(shape)).tolist()
    factors, pivots = L.lu_factor(x)
    assert L.lu_solve(factors, pivots, ptcore.ones(*shape[:-1], 2)).shape == (*shape[:-1], 2)


@pytest.mark.parametrize("n", [1, 3, 6])
@pytest.mark.parametrize("dtype", [ptcore.float64, ptcore.complex128])
def test_derivatives(dtype, n):
    x = ptcore.tensor(matrices("complex128" if dtype.is_complex else "float64", 2, n), requires_grad=True)
    check = ptcore.autograd.gradcheck, ptcore.autograd.gradgradcheck
    for f in (L.inv, lambda a: L.inv_ex(a).inverse, L.det, lambda a: L.slogdet(a).logabsdet,
              lambda a: L.lu_solve(*L.lu_factor(a), ptcore.ones(2, n, 2, dtype=dtype))):
        for c in check:
            assert c(f, (x,))


@pytest.mark.parametrize("n", [2, 3, 4, 8, 17])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pivots_that_cancel(dtype, n):
    """Rows that are exact multiples of the first leave a pivot of 0, and LAPACK's errors."""
    a = np.repeat(2.0 ** np.arange(n)[:, None], n, 1).astype(dtype)
    a[:, -1] = 3 * a[:, -1]
    for x in (ptcore.tensor(a), ptcore.tensor(np.stack([np.eye(n, dtype=dtype), a]))):
        one = x if x.ndim == 2 else x[1]
        info = L.inv_ex(x).info if x.ndim == 2 else L.inv_ex(x).info[1]
        _, _, expected = (scipy.linalg.lapack.sgetrf if dtype == "float32" else scipy.linalg.lapack.dgetrf)(a)
        assert expected == 2 and info == 2 and L.det(one) == 0
        assert L.solve_ex(x, ptcore.ones_like(x)).info.reshape(-1)[-1] == 2
        assert L.lu_factor_ex(x).info.reshape(-1)[-1] == 2
        for call in (L.inv, lambda x: L.solve(x, ptcore.ones_like(x))):
            with pytest.raises(L.LinAlgError):
                call(x)


def test_singular_in_many_ways():
    """Rounding alone decides which random matrices with a multiple of another row are singular. Those are, of which both
    the elimination and LAPACK say so: about half of LAPACK's. With products that are not rounded it would be none."""
    rng = np.random.default_rng(0)
    for dtype, factor in (("float32", scipy.linalg.lapack.sgetrf), ("float64", scipy.linalg.lapack.dgetrf)):
        for n in (2, 3, 4):
            a = rng.standard_normal((500, n, n)).astype(dtype)
            a[:, 1] = 3 * a[:, 0]
            found = int((L.inv_ex(ptcore.tensor(a)).info != 0).sum())
            assert found >= 0.4 * sum(factor(x)[2] != 0 for x in a)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", SIZES)
def test_determinants_that_are_infinite(dtype, n):
    a = np.eye(n, dtype=dtype)
    for place, value in ((0, np.inf), (n - 1, -np.inf)):
        a[place, place] = value
        found, expected = L.slogdet(ptcore.tensor(a)), np.linalg.slogdet(a)
        assert [x.item() for x in found] == [x.item() for x in expected]


def test_bad_pivots_are_told():
    lu, b = ptcore.eye(2), ptcore.ones(2, 1)
    for pivot in (0, 3, -1000, -2**31 + 3, 2**31 - 1):
        with pytest.raises(RuntimeError, match=rf"pivots must be in \[1, 2\], got {pivot}$"):
            L.lu_solve(lu, ptcore.tensor([pivot, 2], dtype=ptcore.int32), b)
