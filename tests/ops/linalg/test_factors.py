"""Equations, inverses, factors and determinants: values against NumPy in every dtype and layout, derivatives against
differences, what batching and meta give, and errors. tests/ops has the cases that need no special matrices.
"""
import functools

import numpy as np
import pytest

import ptcore
from ptcore.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.core

L = ptcore.linalg
DTYPES = ["float32", "float64", "complex64", "complex128"]
EPS = {"float32": 3e-5, "complex64": 3e-5, "float64": 1e-12, "complex128": 1e-12}
SHAPES = [(1, 1), (3, 3), (2, 4, 4), (2, 3, 2, 2), (40, 40)]
EMPTY = [(0, 0), (0, 3, 3), (2, 0, 0)]


def matrices(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def positive(shape, dtype, seed=0):
    x = matrices(shape, dtype, seed)
    return (x @ adjoint(x) / shape[-1] + np.eye(shape[-1])).astype(dtype)


def hermitian(shape, dtype, seed=0):
    x = matrices(shape, dtype, seed)
    return (x + adjoint(x)) / 2


def close(got, expected, dtype):
    got = got.numpy()
    assert got.shape == np.shape(expected)
    np.testing.assert_allclose(got, expected, rtol=EPS[dtype] * 30, atol=EPS[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES + EMPTY, ids=str)
def test_cholesky(shape, dtype):
    a = positive(shape, dtype) if shape not in EMPTY else np.zeros(shape, dtype)
    x = ptcore.from_numpy(a)
    factor = np.linalg.cholesky(a)
    close(L.cholesky(x), factor, dtype)
    close(L.cholesky(x, upper=True), adjoint(factor), dtype)
    close(ptcore.cholesky(x, True), adjoint(factor), dtype)
    close(x.cholesky(), factor, dtype)
    result = L.cholesky_ex(x)
    close(result.L, factor, dtype)
    assert result.info.dtype is ptcore.int32
    assert result.info.shape == shape[:-2]
    assert not result.info.any()
    # of the triangle that is asked for, the other one is not read
    close(L.cholesky(ptcore.from_numpy(np.tril(a))), factor, dtype)
    close(L.cholesky(ptcore.from_numpy(np.triu(a)), upper=True), adjoint(factor), dtype)
    if shape not in EMPTY:
        b = matrices((*shape[:-1], 2), dtype, 4)
        close(ptcore.cholesky_solve(ptcore.from_numpy(b), ptcore.from_numpy(factor)), np.linalg.solve(a, b), dtype)
        close(ptcore.cholesky_inverse(ptcore.from_numpy(factor)), np.linalg.inv(a), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES + EMPTY, ids=str)
def test_eigh(shape, dtype):
    a = hermitian(shape, dtype) if shape not in EMPTY else np.zeros(shape, dtype)
    for uplo, part in (("L", np.tril(a)), ("U", np.triu(a)), ("l", a)):
        values, vectors = L.eigh(ptcore.from_numpy(part), UPLO=uplo)
        close(values, np.linalg.eigvalsh(a), dtype)
        close(L.eigvalsh(ptcore.from_numpy(part), uplo), np.linalg.eigvalsh(a), dtype)
        q = vectors.numpy()
        np.testing.assert_allclose(q * values.numpy()[..., None, :] @ adjoint(q), a, atol=EPS[dtype] * 20)
        np.testing.assert_allclose(adjoint(q) @ q, np.broadcast_to(np.eye(shape[-1]), shape), atol=EPS[dtype] * 20)
    assert values.dtype.name == a.real.dtype.name


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_a_step_along_the_gradient_of_eigh(dtype):
    """It stays among the matrices that equal their adjoint, and changes the loss as the gradient says."""
    a, weight = hermitian((4, 4), dtype), matrices((4, 4), "float64", 1)

    def loss(x):
        values, vectors = L.eigh(x)
        return (vectors.abs() ** 2 * ptcore.from_numpy(weight)).sum() + (values ** 2).sum()

    x = ptcore.tensor(a, requires_grad=True)
    loss(x).backward()
    g = x.grad.numpy()
    np.testing.assert_allclose(g, adjoint(g), rtol=1e-12, atol=1e-12)
    after, before = [float(loss(ptcore.from_numpy(a + step * g))) for step in (1e-6, -1e-6)]
    np.testing.assert_allclose((after - before) / 2e-6, (np.abs(g) ** 2).sum(), rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (5, 2), (2, 5), (2, 4, 3), (0, 3), (3, 0), (2, 0, 0), (50, 20)], ids=str)
def test_qr(shape, dtype):
    a = matrices(shape, dtype)
    x = ptcore.from_numpy(a)
    for mode in ("reduced", "complete"):
        q, r = L.qr(x, mode)
        assert (q.numpy().shape, r.numpy().shape) == tuple(e.shape for e in np.linalg.qr(a, mode))
        np.testing.assert_allclose(q.numpy() @ r.numpy(), a, atol=EPS[dtype] * 10)
        identity = np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], q.shape[-1], q.shape[-1]))
        np.testing.assert_allclose(adjoint(q.numpy()) @ q.numpy(), identity, atol=EPS[dtype] * 10)
        assert np.all(np.tril(r.numpy(), -1) == 0)
    q, only = L.qr(x, "r")
    assert q.shape == (0,)
    close(only, L.qr(x).R.numpy(), dtype)
    np.testing.assert_array_equal(ptcore.qr(x, some=False).Q.numpy(), L.qr(x, "complete").Q.numpy())


@pytest.mark.parametrize("dtype", DTYPES)
def test_solve_and_inverse(dtype):
    for shape in SHAPES:
        a = matrices(shape, dtype) + 2 * np.eye(shape[-1], dtype=dtype)
        x = ptcore.from_numpy(a)
        b = matrices((*shape[:-1], 3), dtype, 1)
        close(L.solve(x, ptcore.from_numpy(b)), np.linalg.solve(a, b), dtype)
        close(L.solve(x, ptcore.from_numpy(adjoint(b)), left=False), adjoint(np.linalg.solve(adjoint(a), b)), dtype)
        vector = matrices(shape[:-1], dtype, 2)
        close(L.solve(x, ptcore.from_numpy(vector)), np.linalg.solve(a, vector[..., None])[..., 0], dtype)
        for inverse in (L.inv, ptcore.inverse, ptcore.Tensor.inverse):
            close(inverse(x), np.linalg.inv(a), dtype)
        for det in (L.det, ptcore.det, ptcore.Tensor.det):
            got, want = det(x).numpy(), np.linalg.det(a)
            np.testing.assert_allclose(got, want, rtol=EPS[dtype] * 100)
        for slogdet in (L.slogdet, ptcore.slogdet):
            sign, size = slogdet(x)
            want = np.linalg.slogdet(a)
            close(sign, want[0], dtype)
            close(size, want[1], dtype)
        close(ptcore.matrix_power(x, -2), np.linalg.matrix_power(a, -2), dtype)
    assert float(L.det(ptcore.empty(0, 0))) == 1
    assert [float(r) for r in L.slogdet(ptcore.empty(0, 0))] == [1, 0]
    assert L.inv(ptcore.empty(2, 0, 0)).shape == (2, 0, 0)
    assert L.solve(ptcore.empty(0, 0), ptcore.empty(0, 3)).shape == (0, 3)


def test_singular():
    a = ptcore.tensor([[1.0, 2.0], [2.0, 4.0]])
    assert float(L.det(a)) == 0
    sign, size = L.slogdet(a)
    assert (float(sign), float(size)) == (0, -np.inf)
    x = L.solve_triangular(ptcore.tensor([[1.0, 2.0], [0.0, 0.0]]), ptcore.ones(2, 1), upper=True)
    assert not np.isfinite(x.numpy()).all()
    assert np.isnan(float(ptcore.logdet(ptcore.tensor([[0.0, 1.0], [1.0, 0.0]]))))


@pytest.mark.parametrize("dtype", DTYPES)
def test_pseudoinverse_and_rank(dtype):
    for shape in [(3, 3), (5, 2), (2, 5), (2, 4, 3), (1, 4)]:
        a = matrices(shape, dtype)
        close(L.pinv(ptcore.from_numpy(a)), np.linalg.pinv(a), dtype)
        assert L.matrix_rank(ptcore.from_numpy(a)).numpy().tolist() == np.linalg.matrix_rank(a).tolist()
    low = (matrices((5, 2), dtype) @ matrices((2, 4), dtype, 1)).astype(dtype)
    x = ptcore.from_numpy(low)
    close(L.pinv(x, rtol=1e-4), np.linalg.pinv(low, rcond=1e-4), dtype)
    assert int(L.matrix_rank(x, rtol=1e-4)) == 2
    assert int(L.matrix_rank(x, 1e-3)) == 2
    assert int(L.matrix_rank(x, atol=1e9)) == 0
    big = ptcore.from_numpy(np.stack([low, low * 100]))
    limits = ptcore.tensor([1e3, 1e-2], dtype=x.abs().dtype)
    assert L.matrix_rank(big, atol=limits).tolist() == [0, 2]
    assert L.pinv(big, atol=limits)[0].abs().max() == 0
    own = hermitian((4, 4), dtype)
    close(L.pinv(ptcore.from_numpy(own), hermitian=True), np.linalg.pinv(own), dtype)
    assert int(L.matrix_rank(ptcore.from_numpy(own), hermitian=True)) == 4
    assert L.pinv(ptcore.empty(3, 0)).shape == (0, 3)
    assert int(L.matrix_rank(ptcore.empty(3, 0))) == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_least_squares(dtype):
    for m, n in [(5, 3), (3, 3), (3, 5)]:
        a, b = matrices((m, n), dtype), matrices((m, 2), dtype, 1)
        want = np.linalg.lstsq(a, b, rcond=None)
        for driver in (None, "gels", "gelsy", "gelsd", "gelss"):
            got = L.lstsq(ptcore.from_numpy(a), ptcore.from_numpy(b), driver=driver)
            close(got.solution, want[0], dtype)
            close(got.residuals, want[1] if m > n and driver not in (None, "gelsy") else np.zeros(0), dtype)
            assert got.rank.tolist() == ([] if driver == "gels" else want[2])
            if driver in ("gelsd", "gelss"):
                close(got.singular_values, want[3], dtype)
            else:
                assert got.singular_values.shape == (0,)


def test_condition():
    a = matrices((4, 4), "float64")
    for p in (None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"):
        np.testing.assert_allclose(float(L.cond(ptcore.from_numpy(a), p)), np.linalg.cond(a, p), rtol=1e-10)
    assert float(L.cond(ptcore.from_numpy(matrices((4, 2), "float64")))) > 1
    singular = ptcore.tensor([[1.0, 1.0], [1.0, 1.0]])
    assert float(L.cond(singular, 1)) == np.inf


# -- layouts, meta, batching ---------------------------------------------------------------------

CALLS = {
    "solve": lambda a: L.solve(a, a + 1), "inv": L.inv, "det": L.det, "slogdet": lambda a: L.slogdet(a)[1],
    "cholesky": L.cholesky, "cholesky upper": lambda a: L.cholesky(a, upper=True), "eigvalsh": L.eigvalsh,
    "eigh": lambda a: (lambda r: (r[1] * r[0].exp().unsqueeze(-2)) @ r[1].mH)(L.eigh(a)), "qr": lambda a: L.qr(a)[1],
    "pinv": L.pinv, "lstsq": lambda a: L.lstsq(a, a * 2).solution,
    "triangular": lambda a: L.solve_triangular(a, a + 1, upper=False),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_layouts(name, dtype):
    base = positive((4, 6, 6), dtype)
    plain = CALLS[name](ptcore.from_numpy(base)).numpy()
    tensors = {"transposed": ptcore.from_numpy(np.ascontiguousarray(base.swapaxes(1, 2))).mT,
               "reversed": ptcore.from_numpy(base[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1]),
               "sliced": ptcore.from_numpy(np.repeat(base, 2, axis=2))[:, :, ::2]}
    for x in tensors.values():
        before = x.numpy().copy()
        tolerance = 1e-4 if dtype == "complex64" else 1e-10
        np.testing.assert_allclose(CALLS[name](x).numpy(), plain, rtol=tolerance, atol=tolerance)
        np.testing.assert_array_equal(x.numpy(), before)


@pytest.mark.parametrize("name", [n for n in CALLS if n != "lstsq"])
def test_meta(name):
    real = CALLS[name](ptcore.from_numpy(positive((2, 3, 3), "complex64")))
    ghost = CALLS[name](ptcore.empty(2, 3, 3, dtype=ptcore.complex64, device="meta"))
    assert (ghost.shape, ghost.dtype, ghost.device.type) == (real.shape, real.dtype, "meta")


def test_threads_do_not_change_bits():
    a = ptcore.from_numpy(positive((64, 20, 20), "float32"))
    before, results = ptcore.get_num_threads(), []
    try:
        for n in (1, 2):
            ptcore.set_num_threads(n)
            results.append([f(a).numpy().tobytes() for f in CALLS.values()])
    finally:
        ptcore.set_num_threads(before)
    assert results[0] == results[1]


# -- errors ----------------------------------------------------------------------------------------

BAD = [
    (L.LinAlgError, "linalg_solve: the input is singular", lambda: L.solve(ptcore.ones(2, 2), ptcore.ones(2))),
    (L.LinAlgError, "linalg_inv: matrix 1 of the batch is singular",
     lambda: L.inv(ptcore.stack([ptcore.eye(2), ptcore.zeros(2, 2)]))),
    (L.LinAlgError, "inverse: the input is singular", lambda: ptcore.zeros(2, 2).inverse()),
    (L.LinAlgError, "leading minor of order 2 is not positive",
     lambda: L.cholesky(ptcore.tensor([[1.0, 2.0], [2.0, 1.0]]))),
    (L.LinAlgError, "linalg_cholesky_ex: .* order 1",
     lambda: L.cholesky_ex(ptcore.tensor([[-1.0]]), check_errors=True)),
    (L.LinAlgError, "linalg_eigh: the input contains values that are not finite",
     lambda: L.eigh(ptcore.tensor([[np.nan]]))),
    (RuntimeError, r"linalg_det: matrices must be square, got shape \[2, 3\]",
     lambda: L.det(ptcore.ones(2, 3))),
    (RuntimeError, "linalg_inv: matrices must be square", lambda: L.inv(ptcore.ones(3))),
    (RuntimeError, "linalg_cholesky: matrices must be square", lambda: L.cholesky(ptcore.ones(2, 3))),
    (RuntimeError, "linalg_qr: A must have at least 2", lambda: L.qr(ptcore.ones(3))),
    (RuntimeError, "linalg_solve: A and B do not fit", lambda: L.solve(ptcore.eye(2), ptcore.ones(3, 2))),
    (RuntimeError, "linalg_solve: A and B must have one dtype",
     lambda: L.solve(ptcore.eye(2), ptcore.ones(2).double())),
    (RuntimeError, "linalg_solve: left=False needs a matrix",
     lambda: L.solve(ptcore.eye(2), ptcore.ones(2), left=False)),
    (RuntimeError, "linalg_inv: dtype must be float32", lambda: L.inv(ptcore.eye(2, dtype=ptcore.int64))),
    (RuntimeError, "linalg_det: dtype must be float32", lambda: L.det(ptcore.eye(2).half())),
    (RuntimeError, "UPLO must be 'L' or 'U', got 'X'", lambda: L.eigh(ptcore.eye(2), "X")),
    (ValueError, "mode must be", lambda: L.qr(ptcore.eye(2), "full")),
    (RuntimeError, "driver must be", lambda: L.lstsq(ptcore.eye(2), ptcore.eye(2), driver="x")),
    (RuntimeError, "equally many rows", lambda: L.lstsq(ptcore.eye(2), ptcore.ones(3, 1))),
    (TypeError, "upper", lambda: L.solve_triangular(ptcore.eye(2), ptcore.eye(2))),
    (TypeError, "tol and atol", lambda: L.matrix_rank(ptcore.eye(2), 0.1, atol=0.1)),
    (RuntimeError, "linalg_cond: p must be", lambda: L.cond(ptcore.eye(2), "x")),
    (TypeError, "A must be a Tensor", lambda: L.inv([[1.0]])),
]


@pytest.mark.parametrize("k", range(len(BAD)))
def test_bad_input(k):
    kind, text, call = BAD[k]
    with pytest.raises(kind, match=text):
        call()


def test_cholesky_without_check():
    a = ptcore.stack([ptcore.eye(2), -ptcore.eye(2), ptcore.tensor([[1.0, 2.0], [2.0, 1.0]])])
    assert L.cholesky_ex(a).info.tolist() == [0, 1, 2]


# -- derivatives -----------------------------------------------------------------------------------

def symmetric(f):
    """f of the part of a matrix that equals its adjoint, which is what factors are differentiable in."""
    return lambda a: f((a + a.mH) / 2)


def gauge_free_eigh(a):
    values, q = L.eigh(a)
    return (q * values.exp().unsqueeze(-2)) @ q.mH


def general_qr(a):
    """Of a matrix that equals its adjoint, what is left of the last column is real but for rounding, by which LAPACK
    chooses the sign of R there (NumPy's and SciPy's jump alike): not differentiable."""
    q, r = L.qr(a + (a.new_ones(a.shape) * (0.5 + 0.25j if a.is_complex() else 0.5)).triu())
    return q @ r.exp()


SMOOTH = {
    "cholesky": symmetric(L.cholesky), "cholesky upper": symmetric(functools.partial(L.cholesky, upper=True)),
    "cholesky_ex": symmetric(lambda a: L.cholesky_ex(a).L),
    "eigvalsh": symmetric(L.eigvalsh), "eigh": symmetric(gauge_free_eigh),
    "inv": L.inv, "det": L.det, "logabsdet": lambda a: L.slogdet(a)[1], "sign": lambda a: L.slogdet(a)[0].abs(),
    "qr": general_qr, "pinv": L.pinv, "solve": lambda a: L.solve(a, a @ a + 1),
    "triangular": lambda a: L.solve_triangular(a, a @ a, upper=True),
    "unit triangular": lambda a: L.solve_triangular(a, a @ a, upper=False, unitriangular=True),
    "lstsq": lambda a: L.lstsq(a, a @ a + 1).solution, "cond": L.cond, "power": lambda a: ptcore.matrix_power(a, -2),
    "cholesky_solve": lambda a: ptcore.cholesky_solve(a, a), "cholesky_inverse": ptcore.cholesky_inverse,
}


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients(name, dtype):
    for shape in [(3, 3), (2, 2, 2)]:
        x = ptcore.from_numpy(positive(shape, dtype, 3)).requires_grad_()
        assert gradcheck(SMOOTH[name], (x,)), shape
    x = ptcore.from_numpy(positive((2, 2), dtype, 5)).requires_grad_()
    assert gradgradcheck(SMOOTH[name], (x,))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (2, 3, 2)], ids=str)
def test_gradients_of_rectangular(shape, dtype):
    x = ptcore.from_numpy(matrices(shape, dtype, 1)).requires_grad_()
    for f in (L.pinv, lambda a: L.qr(a)[0] @ L.qr(a)[1].exp(), lambda a: L.lstsq(a, a @ a.mH).solution):
        assert gradcheck(f, (x,))
        assert gradgradcheck(f, (x,))
    rows, columns = shape[-2:]
    if rows <= columns:
        assert gradcheck(lambda a: L.qr(a, "complete")[1], (x,))


def test_gradient_of_singular_determinant():
    for low in ([[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 1.0, 1.0]], [[0.0, 0.0]] * 2):
        x = ptcore.tensor(low, dtype=ptcore.float64, requires_grad=True)
        L.det(x).backward()
        a = np.array(low)
        n = len(a)
        cofactors = [[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(n)]
                     for i in range(n)]
        np.testing.assert_allclose(x.grad.numpy(), cofactors, atol=1e-12)


def test_no_derivative():
    x = ptcore.from_numpy(matrices((4, 2), "float64")).requires_grad_()
    with pytest.raises(RuntimeError, match="mode 'r'"):
        L.qr(x, "r")[1].sum().backward()
    with pytest.raises(RuntimeError, match="mode 'complete'"):
        L.qr(x, "complete")[1].sum().backward()
    z = ptcore.from_numpy(hermitian((3, 3), "complex128")).requires_grad_()
    with pytest.raises(RuntimeError, match="depends on this quantity"):
        L.eigh(z)[1].real.sum().backward()
    assert not L.matrix_rank(x).requires_grad


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_eigh_reads_one_triangle(dtype, value):
    a = np.array([[2, 1, 0], [1, 3, -1], [0, -1, 5]], dtype)
    for side, k in (("L", 1), ("U", -1)):
        x = a.copy()
        x[np.triu_indices(3, 1) if k == 1 else np.tril_indices(3, -1)] = value
        np.testing.assert_allclose(ptcore.linalg.eigvalsh(ptcore.tensor(x), side).numpy(), np.linalg.eigvalsh(a),
                                   rtol=1e-5)
        found = ptcore.linalg.eigh(ptcore.tensor(x), side)
        np.testing.assert_allclose((found[1] * found[0] @ found[1].mH).numpy(), a, atol=1e-5)
        for place in ((1, 1), (2, 0) if k == 1 else (0, 2)):
            y = a.copy()
            y[place] = value
            with pytest.raises(ptcore.linalg.LinAlgError, match="not finite"):
                ptcore.linalg.eigh(ptcore.tensor(y), side)
