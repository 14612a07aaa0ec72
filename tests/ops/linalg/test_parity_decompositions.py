"""LU, LDL, eigenvalues of any matrix, reflectors and exponentials against torch.linalg: values, gradients, result
types,
errors."""
import re

import numpy as np
import pytest
from test_parity_linalg import DTYPES, RTOL, both, draw, product

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

CALLS = [
    lambda lib, a, b: tuple(lib.linalg.lu(a)[1:]), lambda lib, a, b: lib.linalg.lu_factor(a)[0],
    lambda lib, a, b: lib.linalg.lu_factor_ex(a).LU, lambda lib, a, b: a.lu()[0],
    lambda lib, a, b: tuple(lib.lu_unpack(*lib.linalg.lu_factor(a)))[1:],
    lambda lib, a, b: lib.linalg.lu_solve(*lib.linalg.lu_factor(a), b),
    lambda lib, a, b: lib.linalg.lu_solve(*lib.linalg.lu_factor(a), b, adjoint=True),
    lambda lib, a, b: lib.linalg.lu_solve(*lib.linalg.lu_factor(a), b.mT, left=False),
    lambda lib, a, b: lib.linalg.lu_solve(*lib.linalg.lu_factor(a), b.mT, left=False, adjoint=True),
    lambda lib, a, b: b.lu_solve(*lib.linalg.lu_factor(a)),
    lambda lib, a, b: lib.linalg.solve_ex(a, b).result, lambda lib, a, b: lib.linalg.solve_ex(a, b.mT, left=False)[0],
    lambda lib, a, b: lib.linalg.inv_ex(a).inverse, lambda lib, a, b: lib.matrix_exp(a),
    lambda lib, a, b: a.matrix_exp(),
    lambda lib, a, b: lib.linalg.matmul(a, b), lambda lib, a, b: lib.triangular_solve(b, a)[0],
    lambda lib, a, b: lib.triangular_solve(b, a, upper=False, transpose=True, unitriangular=True)[0],
    lambda lib, a, b: lib.linalg.eigvals(a).sum(-1), lambda lib, a, b: (lib.linalg.eig(a)[0]**3).sum(-1),
    lambda lib, a, b: lib.linalg.householder_product(a, b[..., 0]),
    lambda lib, a, b: lib.orgqr(a[..., :2], b[..., 0, :]),
    lambda lib, a, b: lib.ormqr(a[0], b[0, :, 0], b[0]), lambda lib, a, b: a[0].ormqr(b[0, :, 0], b[0].mT, left=False),
    lambda lib, a, b: lib.linalg.tensorinv(a[0], ind=1), lambda lib, a, b: lib.linalg.tensorsolve(a[0], b[0, :, 0]),
    lambda lib, a, b: lib.linalg.vander(b),
]


@pytest.mark.parametrize("k", range(len(CALLS)))
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_and_gradients(k, dtype):
    a = draw((2, 3, 3), dtype, 3) + 2 * np.eye(3, dtype=dtype)
    both(CALLS[k], (a, draw((2, 3, 2), dtype, 1)), RTOL[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (2, 3, 2)], ids=str)
def test_rectangular(shape, dtype):
    arrays = (draw(shape, dtype, 2), draw((1,), dtype, 1))
    for call in (lambda lib, a, b: tuple(lib.linalg.lu(a)[1:]), lambda lib, a, b: lib.linalg.lu_factor(a)[0]):
        both(call, arrays, RTOL[dtype])


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_eigenvectors(dtype):
    def f(lib, a, b):
        values, vectors = lib.linalg.eig(a)
        return product((vectors * values.exp().unsqueeze(-2), lib.linalg.inv(vectors)), 0, 1)

    both(f, (draw((2, 3, 3), dtype, 3), draw((1,), dtype)), RTOL[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
def test_pivots_and_ldl(dtype):
    a = draw((2, 4, 4), dtype, 5)
    for is_hermitian in (False, True):
        x = a + np.swapaxes(a.conj() if is_hermitian else a, -1, -2)
        results = []
        for lib in (pt, torch):
            t = lib.tensor(x)
            pivots = lib.linalg.lu_factor(lib.tensor(a))[1]
            P = lib.lu_unpack(*lib.linalg.lu_factor(lib.tensor(a)))[0]
            LD, swaps, info = lib.linalg.ldl_factor_ex(t, hermitian=is_hermitian)
            solved = lib.linalg.ldl_solve(LD, swaps, lib.tensor(a[..., :2]), hermitian=is_hermitian)
            r, tau = lib.geqrf(lib.tensor(a))
            results.append([y.numpy() for y in (pivots, P, LD.tril(), swaps, info, solved, r, tau)])
        for mine, theirs in zip(*results, strict=True):
            assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_allclose(mine, theirs, rtol=RTOL[dtype], atol=RTOL[dtype])


def test_result_types():
    for lib in (pt, torch):
        a = lib.eye(2)
        lu = lib.linalg.lu_factor(a)
        for result, names in ((lu, "LU pivots"), (lib.linalg.lu_factor_ex(a), "LU pivots info"),
                              (lib.linalg.lu(a), "P L U"), (lib.lu_unpack(*lu), "P L U"),
                              (lib.linalg.solve_ex(a, a), "result info"), (lib.linalg.inv_ex(a), "inverse info"),
                              (lib.linalg.ldl_factor(a), "LD pivots"), (lib.linalg.ldl_factor_ex(a), "LD pivots info"),
                              (lib.linalg.eig(a), "eigenvalues eigenvectors"), (lib.geqrf(a), "a tau"),
                              (lib.triangular_solve(a, a), "solution cloned_coefficient"),
                              (lib.histogram(a, 2), "hist bin_edges")):
            assert list(type(result).__match_args__) == names.split()
            assert [getattr(result, n) is r for n, r in zip(names.split(), result, strict=True)]
        assert len(a.lu()) == 2
        assert len(lib.lu(a, get_infos=True)) == 3
        assert [tuple(r.shape) for r in lib.lu_unpack(*lu, unpack_data=False)] == [(2, 2), (0,), (0,)]
        assert lib.linalg.lu_factor_ex(lib.zeros(2, 2)).info.item() == 1
        assert lib.linalg.inv_ex(lib.zeros(2, 2)).info.item() == 1
        assert not lib.linalg.inv_ex(lib.zeros(2, 2)).inverse.isfinite().any()


def test_the_loss_must_not_see_the_phase():
    for lib in (pt, torch):
        a = lib.tensor(draw((3, 3), "complex128"), requires_grad=True)
        with pytest.raises(RuntimeError, match="e\\^"):
            lib.linalg.eig(a)[1].real.sum().backward()


ERRORS = [
    lambda lib: lib.linalg.lu_factor(lib.zeros(2, 2)), lambda lib: lib.linalg.lu(lib.eye(2), pivot=False),
    lambda lib: lib.linalg.eig(lib.full((2, 2), float("nan"))), lambda lib: lib.linalg.eig(lib.ones(2, 3)),
    lambda lib: lib.linalg.eig(lib.eye(2, dtype=lib.int64)), lambda lib: lib.linalg.lu(lib.ones(2)),
    lambda lib: lib.lu_unpack(lib.eye(2), lib.tensor([1, 2])),
    lambda lib: lib.linalg.lu_solve(lib.eye(2), lib.tensor([1, 2], dtype=lib.int32), lib.ones(3, 1)),
    lambda lib: lib.linalg.solve_ex(lib.zeros(2, 2), lib.ones(2), check_errors=True),
    lambda lib: lib.linalg.inv_ex(lib.zeros(2, 2), check_errors=True), lambda lib: lib.linalg.inv_ex(lib.ones(2, 3)),
    lambda lib: lib.linalg.householder_product(lib.ones(2, 3), lib.ones(2)),
    lambda lib: lib.linalg.householder_product(lib.ones(3, 2), lib.ones(3)),
    lambda lib: lib.linalg.householder_product(lib.ones(3, 2), lib.ones(2).double()),
    lambda lib: lib.ormqr(lib.ones(3, 2), lib.ones(2), lib.ones(2, 2)), lambda lib: lib.geqrf(lib.ones(2)),
    lambda lib: lib.matrix_exp(lib.eye(2, dtype=lib.int64)), lambda lib: lib.matrix_exp(lib.ones(2, 3)),
    lambda lib: lib.linalg.tensorinv(lib.ones(2, 2), ind=0), lambda lib: lib.linalg.tensorinv(lib.ones(2, 3), ind=1),
    lambda lib: lib.linalg.tensorsolve(lib.ones(2, 3), lib.ones(2)), lambda lib: lib.linalg.vander(lib.ones(3), N=1),
    lambda lib: lib.vander(lib.ones(2, 2)), lambda lib: lib.linalg.ldl_factor(lib.ones(2, 3)),
    lambda lib: lib.linalg.ldl_solve(lib.eye(2), lib.ones(2), lib.ones(2, 1)),
]


# What each says: which op, which argument.
SAYS = [
    "linalg_lu_factor: the input is singular: element 1 of U's diagonal is",
    "linalg_lu: LU without pivoting is not implemented on cpu",
    "linalg_eig: the input contains values that are not finite",
    "linalg_eig: matrices must be square, got shape [2, 3]",
    "linalg_eig: dtype must be float32, float64, complex64 or complex128,",
    "linalg_lu: A must have at least 2 dimensions, got shape [2]", "lu_unpack: LU_pivots must be int32, got int64",
    "linalg_lu_solve: A and B do not fit for left=True, got shapes [2, 2]",
    "linalg_solve_ex: the input is singular: pivot 1 of its elimination is",
    "linalg_inv_ex: the input is singular: pivot 1 of its elimination is",
    "linalg_inv_ex: matrices must be square, got shape [2, 3]",
    "linalg_householder_product: input must not have more columns than",
    "linalg_householder_product: tau must have the batch shape [] and at",
    "linalg_householder_product: tau must have dtype float32, got float64",
    "ormqr: input, tau and other do not fit for left=True, got shapes [3,",
    "geqrf: input must have at least 2 dimensions, got shape [2]",
    "matrix_exp: dtype must be float32, float64, complex64 or complex128,",
    "matrix_exp: matrices must be square, got shape [2, 3]", "linalg_tensorinv: ind must be positive, got 0",
    "linalg_tensorinv: the sizes before and behind ind=1 must have one",
    "linalg_tensorsolve: B must have as many elements as the solution,",
    "linalg_vander: N must be greater than 1, got 1", "vander: x must be a vector, got shape [2, 2]",
    "linalg_ldl_factor: matrices must be square, got shape [2, 3]",
    "linalg_ldl_solve: pivots must be int32, got float32"]


@pytest.mark.parametrize(("call", "says"), [*zip(ERRORS, SAYS, strict=True)], ids=range(len(ERRORS)))
def test_errors(call, says):
    with pytest.raises((RuntimeError, TypeError)) as theirs:
        call(torch)
    expected = type(theirs.value)
    expected = pt.linalg.LinAlgError if expected is torch.linalg.LinAlgError else expected
    with pytest.raises(expected, match="^" + re.escape(says)):
        call(pt)
