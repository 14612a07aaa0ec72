"""Equations, factors, inverses and determinants against torch.linalg: values, gradients, result types, errors."""
import re

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

DTYPES = ["float32", "float64", "complex64", "complex128"]
RTOL = {"float32": 2e-3, "complex64": 2e-3, "float64": 1e-9, "complex128": 1e-9}


def draw(shape, dtype, seed=0, positive=False):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype.startswith("complex") else 0)
    if positive:
        x = x @ np.conj(np.swapaxes(x, -1, -2)) / shape[-1] + np.eye(shape[-1])
    return x.astype(dtype)


def product(factors, *which):
    """What does not depend on the gauge of two factors."""
    return factors[which[0]] @ factors[which[1]]


SQUARE = [
    lambda lib, a, b: lib.linalg.solve(a, b), lambda lib, a, b: lib.linalg.solve(a, b.mT, left=False),
    lambda lib, a, b: lib.linalg.solve(a, b[..., 0]), lambda lib, a, b: lib.linalg.inv(a),
    lambda lib, a, b: a.inverse(),
    lambda lib, a, b: lib.linalg.det(a), lambda lib, a, b: a.det(), lambda lib, a, b: tuple(lib.linalg.slogdet(a)),
    lambda lib, a, b: tuple(a.slogdet()), lambda lib, a, b: a.logdet(),
    lambda lib, a, b: lib.linalg.solve_triangular(a, b, upper=True),
    lambda lib, a, b: lib.linalg.solve_triangular(a, b, upper=False, unitriangular=True),
    lambda lib, a, b: lib.linalg.solve_triangular(a, b.mT, upper=False, left=False),
    lambda lib, a, b: product(lib.linalg.qr(a), 0, 1), lambda lib, a, b: lib.linalg.qr(a, "complete")[1].abs(),
    lambda lib, a, b: product(a.qr(), 0, 1), lambda lib, a, b: lib.linalg.pinv(a), lambda lib, a, b: a.pinverse(),
    lambda lib, a, b: lib.linalg.cond(a),
    lambda lib, a, b: lib.linalg.cond(a, "nuc"),
    lambda lib, a, b: lib.linalg.matrix_power(a, -3), lambda lib, a, b: lib.linalg.multi_dot([a[0], a[1], b[1]]),
    # torch's derivative by elements that the value does not depend on is not zero
    lambda lib, a, b: lib.cholesky_solve(b, a.tril()), lambda lib, a, b: lib.cholesky_solve(b, a.triu(), upper=True),
    lambda lib, a, b: lib.cholesky_inverse(lib.linalg.cholesky(a @ a.mH)),
    lambda lib, a, b: lib.linalg.cholesky(a @ a.mH, upper=True).cholesky_inverse(True),
]
POSITIVE = [
    lambda lib, a, b: lib.linalg.cholesky(a), lambda lib, a, b: lib.linalg.cholesky(a, upper=True),
    lambda lib, a, b: a.cholesky(), lambda lib, a, b: lib.linalg.cholesky_ex(a).L,
    lambda lib, a, b: lib.linalg.eigvalsh(a), lambda lib, a, b: lib.linalg.eigh(a, "U").eigenvalues,
    lambda lib, a, b: lib.linalg.pinv(a, hermitian=True), lambda lib, a, b: lib.linalg.lstsq(a, b).solution,
    lambda lib, a, b: lib.linalg.slogdet(a).logabsdet,
]


def both(call, arrays, rtol):
    results = []
    for lib in (pt, torch):
        a, b = [lib.tensor(x, requires_grad=True) for x in arrays]
        out = call(lib, a, b)
        outs = out if isinstance(out, tuple) else (out,)
        loss = sum([((o * o.conj()).real if o.dtype.is_complex else o * o).sum() for o in outs])
        loss.backward()
        grads = [x.grad for x in (a, b) if x.grad is not None]
        results.append([t.detach().resolve_conj().numpy() for t in (*outs, *grads)])
    for mine, theirs in zip(*results, strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=rtol * max(1, np.abs(theirs).max(initial=0)))


@pytest.mark.parametrize("k", range(len(SQUARE)))
@pytest.mark.parametrize("dtype", DTYPES)
def test_square(k, dtype):
    a = draw((2, 3, 3), dtype, 3) + 2 * np.eye(3, dtype=dtype)
    both(SQUARE[k], (a, draw((2, 3, 2), dtype, 1)), RTOL[dtype])


@pytest.mark.parametrize("k", range(len(POSITIVE)))
@pytest.mark.parametrize("dtype", DTYPES)
def test_positive(k, dtype):
    """Gradients of factors are compared in the part that equals its adjoint: libraries differ in the other one."""
    call = POSITIVE[k]
    symmetric = lambda lib, a, b: call(lib, (a + a.mH) / 2, b)
    both(symmetric, (draw((2, 3, 3), dtype, 3, True), draw((2, 3, 2), dtype, 1)), RTOL[dtype])


# What reads one triangle of a matrix that equals its adjoint. Losses on vectors see their moduli alone.
ONE_TRIANGLE = [
    lambda lib, a, w: lib.linalg.eigh(a)[0] ** 2 * w[..., 0], lambda lib, a, w: lib.linalg.eigh(a)[1].abs() ** 2 * w,
    lambda lib, a, w: lib.linalg.eigh(a, UPLO="U")[1].abs() ** 2 * w,
    lambda lib, a, w: lib.linalg.eigh(a)[1].abs() ** 2 * lib.linalg.eigh(a)[0].unsqueeze(-1) * w,
    lambda lib, a, w: lib.linalg.eigvalsh(a, UPLO="U") ** 3 * w[..., 0],
    lambda lib, a, w: lib.linalg.cholesky(a).abs() ** 2 * w,
    lambda lib, a, w: lib.linalg.cholesky(a, upper=True).abs() ** 2 * w,
    lambda lib, a, w: lib.cholesky_inverse(lib.linalg.cholesky(a)).abs() ** 2 * w,
]


@pytest.mark.parametrize("triangle", ["both", "below", "above"])
@pytest.mark.parametrize("k", range(len(ONE_TRIANGLE)))
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_equal_their_adjoints(k, dtype, triangle):
    """As the matrices do: a step along the gradient stays among them, in second order too."""
    a = draw((2, 3, 3), dtype, 3, True) * 3
    a += {"both": 0, "below": np.tril(np.ones((3, 3)), -1), "above": np.triu(np.ones((3, 3)), 1)}[triangle] * 0.1
    weight, direction = draw((2, 3, 3), "float64", 4), draw((2, 3, 3), dtype, 5)
    results = []
    for lib in (pt, torch):
        x = lib.tensor(a, requires_grad=True)
        first, = lib.autograd.grad(ONE_TRIANGLE[k](lib, x, lib.tensor(weight)).sum(), x, create_graph=True)
        along = first * lib.tensor(direction)
        second, = lib.autograd.grad((along.real if along.is_complex() else along).sum(), x)
        results.append([first.detach().resolve_conj().numpy(), second.resolve_conj().numpy()])
    for mine, theirs in zip(*results, strict=True):
        scale = max(1, np.abs(theirs).max())
        np.testing.assert_allclose(mine, np.conj(np.swapaxes(mine, -1, -2)), rtol=1e-10, atol=1e-10 * scale)
        np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-8 * scale)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_eigenvectors(dtype):
    """torch takes the rounding errors of complex64 for a dependence on the gauge."""
    def f(lib, a, b):
        values, vectors = lib.linalg.eigh((a + a.mH) / 2)
        return (vectors * values.exp().unsqueeze(-2)) @ vectors.mH

    both(f, (draw((2, 3, 3), dtype, 3, True), draw((1,), dtype)), RTOL[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (2, 3, 2)], ids=str)
def test_rectangular(shape, dtype):
    arrays = (draw(shape, dtype, 2), draw((*shape[:-1], 2), dtype, 1))
    for call in (lambda lib, a, b: product(lib.linalg.qr(a), 0, 1), lambda lib, a, b: lib.linalg.pinv(a),
                 lambda lib, a, b: lib.linalg.lstsq(a, b).solution, lambda lib, a, b: lib.linalg.cond(a)):
        both(call, arrays, RTOL[dtype])


@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
def test_least_squares(driver):
    for shape in [(4, 2), (3, 3), (2, 4), (2, 4, 3)]:
        results = []
        for lib in (pt, torch):
            got = lib.linalg.lstsq(lib.tensor(draw(shape, "float64")), lib.tensor(draw((*shape[:-1], 2), "float64", 1)),
                                   driver=driver)
            results.append([got.solution, got.residuals, got.rank, got.singular_values])
        for name, mine, theirs in zip(("solution", "residuals", "rank", "singular_values"), *results, strict=True):
            assert tuple(mine.shape) == tuple(theirs.shape), (name, shape)
            assert str(mine.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-9, atol=1e-12)


def test_rank():
    low = draw((5, 2), "float64") @ draw((2, 4), "float64", 1)
    for options in ({}, {"rtol": 0.5}, {"atol": 2.0}, {"tol": 0.1}, {"atol": 0.0, "rtol": 0.9}):
        got = [lib.linalg.matrix_rank(lib.tensor(np.stack([low, low[::-1] * 3])), **options) for lib in (pt, torch)]
        assert got[0].tolist() == got[1].tolist()
        assert got[0].dtype is pt.int64
    for options in ({}, {"rtol": 0.5}, {"atol": 2.0}, {"hermitian": True}):
        x = low if "hermitian" not in options else low[:4] + low[:4].T
        got = [lib.linalg.pinv(lib.tensor(x), **options).numpy() for lib in (pt, torch)]
        np.testing.assert_allclose(*got, rtol=1e-6, atol=1e-9)


def test_result_types():
    for lib in (pt, torch):
        a = lib.eye(2)
        for result, names in ((lib.linalg.slogdet(a), "sign logabsdet"), (lib.slogdet(a), "sign logabsdet"),
                              (lib.linalg.qr(a), "Q R"), (lib.linalg.eigh(a), "eigenvalues eigenvectors"),
                              (lib.linalg.cholesky_ex(a), "L info"),
                              (lib.linalg.lstsq(a, a), "solution residuals rank singular_values")):
            assert list(type(result).__match_args__) == names.split()
            assert [getattr(result, n) is r for n, r in zip(names.split(), result, strict=True)]


ERRORS = [
    lambda lib: lib.linalg.solve(lib.zeros(2, 2), lib.ones(2)), lambda lib: lib.linalg.inv(lib.zeros(2, 2)),
    lambda lib: lib.linalg.cholesky(-lib.eye(2)),
    lambda lib: lib.linalg.det(lib.ones(2, 3)), lambda lib: lib.linalg.inv(lib.ones(3)),
    lambda lib: lib.linalg.solve(lib.eye(2), lib.ones(3, 2)), lambda lib: lib.linalg.inv(lib.eye(2, dtype=lib.int64)),
    lambda lib: lib.linalg.qr(lib.ones(3)), lambda lib: lib.linalg.eigh(lib.eye(2), "X"),
    lambda lib: lib.linalg.cholesky(lib.eye(2).half()),
    lambda lib: lib.linalg.lstsq(lib.eye(2), lib.eye(2), driver="x"),
    lambda lib: lib.linalg.solve_triangular(lib.eye(2), lib.eye(2)),
]


# What each says: which op, which argument.
SAYS = [
    "linalg_solve: the input is singular: pivot 1 of its elimination is",
    "linalg_inv: the input is singular: pivot 1 of its elimination is zero",
    "linalg_cholesky: the input is not positive-definite: its leading",
    "linalg_det: matrices must be square, got shape [2, 3]", "linalg_inv: matrices must be square, got shape [3]",
    "linalg_solve: A and B do not fit for left=True, got shapes [2, 2] and",
    "linalg_inv: dtype must be float32, float64, complex64 or complex128,",
    "linalg_qr: A must have at least 2 dimensions, got shape [3]", "linalg_eigh: UPLO must be 'L' or 'U', got 'X'",
    "linalg_cholesky: dtype must be float32, float64, complex64 or",
    "linalg_lstsq: driver must be 'gels', 'gelsy', 'gelsd' or 'gelss', got",
    "linalg_solve_triangular() missing required argument 'upper' (pos 3)"]


@pytest.mark.parametrize(("call", "says"), [*zip(ERRORS, SAYS, strict=True)], ids=range(len(ERRORS)))
def test_errors(call, says):
    with pytest.raises((RuntimeError, TypeError)) as theirs:
        call(torch)
    expected = type(theirs.value)
    expected = pt.linalg.LinAlgError if expected is torch.linalg.LinAlgError else expected
    with pytest.raises(expected, match="^" + re.escape(says)):
        call(pt)
