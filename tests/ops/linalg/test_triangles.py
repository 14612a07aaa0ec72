"""Triangular systems of matrices that LAPACK solves, in every layout, against SciPy; and inverses against NumPy."""
import itertools

import numpy as np
import pytest
import scipy.linalg

import ptcore as pt


def layouts(x):
    return x, x.mT.contiguous().mT, x.repeat_interleave(2, 1)[:, ::2], x.repeat_interleave(2, 2)[..., 1::2]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(("n", "k"), [(40, 1), (40, 7), (90, 90), (70, 150)])
def test_triangles(n, k, dtype):
    rng = np.random.default_rng(n)
    a, b = [(rng.standard_normal((2, n, m)) + 1j * rng.standard_normal((2, n, m)) * (dtype[0] == "c"))
            for m in (n, k)]
    a, b = [x.astype(dtype) if dtype[0] == "c" else x.real.astype(dtype) for x in (a / np.sqrt(n) + 3 * np.eye(n), b)]
    for upper, unit, left in itertools.product((False, True), repeat=3):
        want = np.stack([scipy.linalg.solve_triangular(m if left else m.T, v, lower=upper != left, unit_diagonal=unit)
                         for m, v in zip(a, b)])
        for x, y in zip(layouts(pt.from_numpy(a)), layouts(pt.from_numpy(b))):
            got = pt.linalg.solve_triangular(x, y if left else y.mT, upper=upper, unitriangular=unit, left=left)
            got = got if left else got.mT
            error = np.abs(got.numpy() - want).max() / np.abs(want).max()
            assert error < 200 * np.finfo(dtype).eps, (upper, unit, left)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [40, 130])
def test_inverses(n, dtype):
    rng = np.random.default_rng(n)
    a = (rng.standard_normal((2, n, n)) + 1j * rng.standard_normal((2, n, n)) * (dtype[0] == "c"))
    a = a.astype(dtype) if dtype[0] == "c" else a.real.astype(dtype)
    want = np.linalg.inv(a.astype("complex128"))
    for x in layouts(pt.from_numpy(a)):
        for got in (pt.linalg.inv(x), pt.linalg.inv_ex(x)[0]):
            assert np.abs(got.numpy() - want).max() / np.abs(want).max() < 2e3 * np.finfo(dtype).eps
    a[1, :, 5] = 0
    with pytest.raises(pt.linalg.LinAlgError, match="matrix 1 of the batch is singular"):
        pt.linalg.inv(pt.from_numpy(a))
    infos = pt.linalg.inv_ex(pt.from_numpy(a))[1].tolist()
    assert infos == [0, 6]
