"""Reductions against NumPy and SciPy over dtypes, layouts, dims and chunk boundaries."""

import itertools
import warnings

import numpy as np
import pytest
from scipy.special import logsumexp

from _kernel_arrays import EPS, FLOAT, REAL, layouts, make, wide
from _kernels import KernelError, dtype_name, from_bfloat16, to_bfloat16

def dim_lists(ndim):
    for r in range(ndim + 1):
        yield from itertools.combinations(range(ndim), r)


def out_shape(shape, dims):
    dims = dims or range(len(shape))
    return tuple(n for d, n in enumerate(shape) if d not in dims)


def check(got, want, dtype, scale=1.0):
    got = wide(got)
    assert got.shape == np.shape(want)
    eps = EPS.get(dtype)
    if eps is None:
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got, want, rtol=eps, atol=eps * scale)


@pytest.mark.parametrize("dtype", REAL + ["complex64", "complex128"])
def test_sum_layouts(kernels, dtype):
    rng = np.random.default_rng(0)
    out_dtype = dtype if dtype in EPS else "int64"
    for shape in [(), (5,), (7, 33), (4, 9, 70), (3, 300, 2), (0, 4), (4, 0)]:
        for x in layouts(make(rng, shape, dtype)):
            for dims in dim_lists(x.ndim):
                want = wide(x).astype(np.int64).sum(dims or None) if out_dtype == "int64" else wide(x).sum(dims or None)
                got = kernels("sum", [x], [(out_shape(x.shape, dims), out_dtype)], [list(dims), 0])
                check(got, want, out_dtype, np.sqrt(x.size + 1) * 4)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32", "complex64", "bool"])
def test_long_and_wide(kernels, dtype):
    """Sizes beyond a run, a chunk and a block of columns; equal on one and two threads."""
    rng = np.random.default_rng(1)
    out_dtype = dtype if dtype in EPS else "int64"
    for shape, dims in [((100003,), (0,)), ((3, 40000), (1,)), ((2000, 700), (0,)), ((3, 600, 1100), (1,)), ((40, 130, 33), (0, 2)), ((1500, 9), (0,))]:
        x = make(rng, shape, dtype)
        results = []
        for threads in (1, 2):
            kernels.threads(threads)
            results.append(kernels("sum", [x], [(out_shape(shape, dims), out_dtype)], [list(dims), 0]))
        kernels.threads(1)
        assert results[0].tobytes() == results[1].tobytes()
        want = wide(x).astype(np.int64).sum(dims) if out_dtype == "int64" else wide(x).sum(dims)
        count = np.prod([shape[d] for d in dims])
        check(results[0], want, out_dtype, np.sqrt(count) * 2)


def test_sum_widens_and_wraps(kernels):
    x = np.array([2**63 - 1, 1, 5], np.int64)
    assert kernels("sum", [x], [((), "int64")], [[], 0]) == -(2**63) + 5
    assert kernels("sum", [np.full(1000, 255, np.uint8)], [((), "int64")], [[], 0]) == 255000
    assert kernels("sum", [np.full(1000, 255, np.uint8)], [((), "float32")], [[], 0]) == 255000
    assert kernels("sum", [np.full(3, 100, np.int8)], [((), "int8")], [[], 0]) == 44


@pytest.mark.parametrize("dtype", FLOAT + ["complex64", "complex128"])
def test_mean_prod_var(kernels, dtype):
    rng = np.random.default_rng(2)
    for shape in [(), (6,), (5, 40), (3, 9, 30), (300, 20)]:
        for x in layouts(make(rng, shape, dtype)):
            for dims in dim_lists(x.ndim):
                axes, shape_out = dims or None, out_shape(x.shape, dims)
                check(kernels("mean", [x], [(shape_out, dtype)], [list(dims), 0]), wide(x).mean(axes), dtype, 2)
                if x.size <= 50:
                    check(kernels("prod", [x], [(shape_out, dtype)], [list(dims), 0]), wide(x).prod(axes), dtype, 20)
                real = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
                for correction in (0, 1.0):
                    with np.errstate(all="ignore"), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        want = wide(x).var(axes, ddof=correction)
                    check(kernels("var", [x], [(shape_out, real)], [list(dims), correction, 0]), want, real, 0.3)


def test_var_is_stable(kernels):
    x = (1e4 + np.random.default_rng(3).normal(size=(50, 5000))).astype(np.float32)
    for dims in [(0,), (1,), (0, 1)]:
        want = x.astype(np.float64).var(dims, ddof=1)
        np.testing.assert_allclose(kernels("var", [x], [(out_shape(x.shape, dims), "float32")], [list(dims), 1, 0]), want, rtol=2e-5)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
def test_prod_integers(kernels, dtype):
    x = np.random.default_rng(4).integers(1, 4, (9, 20)).astype(dtype)
    for dims in [(), (0,), (1,)]:
        got = kernels("prod", [x], [(out_shape(x.shape, dims), "int64")], [list(dims), 0])
        np.testing.assert_array_equal(got, x.astype(np.int64).prod(dims or None))


@pytest.mark.parametrize("dtype", FLOAT + ["complex64", "complex128"])
def test_vector_norm(kernels, dtype):
    rng = np.random.default_rng(5)
    real = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    for shape in [(6,), (5, 40), (3, 9, 30), (300, 20)]:
        for x in layouts(make(rng, shape, dtype)):
            for dims in dim_lists(x.ndim):
                a, axes = np.abs(wide(x)), dims or None
                for p in (0, 1, 2, 3.5, -1.0, np.inf, -np.inf):
                    want = {0: (a != 0).sum(axes), np.inf: a.max(axes), -np.inf: a.min(axes)}.get(p)
                    if want is None:
                        want = (a**p).sum(axes) ** (1 / p)
                    got = kernels("vector_norm", [x], [(out_shape(x.shape, dims), real)], [float(p), list(dims), 0])
                    check(got, want, real)


def test_norm_does_not_overflow(kernels):
    x = np.full(100, 1e30, np.float32)
    assert kernels("vector_norm", [x], [((), "float32")], [2.0, [], 0]) == pytest.approx(1e31, rel=1e-6)


@pytest.mark.parametrize("dtype", FLOAT)
def test_logsumexp(kernels, dtype):
    rng = np.random.default_rng(6)
    for shape in [(), (6,), (5, 40), (3, 9, 30), (300, 20), (3, 40000)]:
        for x in layouts(make(rng, shape, dtype)):
            for dims in dim_lists(x.ndim):
                want = logsumexp(wide(x), axis=dims or None)
                check(kernels("logsumexp", [x], [(out_shape(x.shape, dims), dtype)], [list(dims), 0]), want, dtype)


def test_logsumexp_special(kernels):
    inf, nan = np.inf, np.nan
    x = np.array([[-inf, -inf], [inf, 1], [nan, 1], [800, 801], [inf, -inf], [-inf, 3]])
    want = np.array([-inf, inf, nan, 801 + np.log1p(np.exp(-1)), inf, 3])
    np.testing.assert_allclose(kernels("logsumexp", [x], [((6,), "float64")], [[1], 0]), want)
    tall = np.repeat(x.T.reshape(2, 1, 6), 2, 1).reshape(2, 12)
    np.testing.assert_allclose(kernels("logsumexp", [tall], [((12,), "float64")], [[0], 0]), np.tile(want, 2))
    assert kernels("logsumexp", [np.empty(0)], [((), "float64")], [[0], 0]) == -inf


@pytest.mark.parametrize("dtype", REAL + ["complex64", "complex128"])
def test_truth(kernels, dtype):
    rng = np.random.default_rng(7)
    for shape in [(), (5,), (7, 33), (4, 9, 70), (0, 4), (4, 0), (300, 17), (40000,)]:
        base = make(rng, shape, dtype)
        base = np.where(rng.random(shape) < 0.2, base, np.zeros((), base.dtype)).view(type(base))
        for y in (base, np.ones_like(base)):
            for x in layouts(y):
                for dims in dim_lists(x.ndim):
                    axes, shape_out = dims or None, out_shape(x.shape, dims)
                    np.testing.assert_array_equal(kernels("count_nonzero", [x], [(shape_out, "int64")], [list(dims), 0]), (wide(x) != 0).sum(axes))
                    np.testing.assert_array_equal(kernels("any", [x], [(shape_out, "bool")], [list(dims), 0]), (wide(x) != 0).any(axes))
                    np.testing.assert_array_equal(kernels("all", [x], [(shape_out, "bool")], [list(dims), 0]), (wide(x) != 0).all(axes))


@pytest.mark.parametrize("dtype", REAL)
def test_extrema(kernels, dtype):
    rng = np.random.default_rng(8)
    for shape in [(), (5,), (7, 33), (4, 9, 70), (3, 300, 2), (70000,), (700, 600)]:
        for x in layouts(make(rng, shape, dtype)):
            w = wide(x)
            for dims in dim_lists(x.ndim) if x.size < 10000 else [(), (0,)]:
                for name, f in (("amax", np.max), ("amin", np.min)):
                    got = kernels(name, [x], [(out_shape(x.shape, dims), dtype)], [list(dims), 0])
                    np.testing.assert_array_equal(wide(got), f(w, dims or None))
            for name, f in (("max", np.argmax), ("min", np.argmin)):
                np.testing.assert_array_equal(kernels("arg" + name, [x], [((), "int64")], [None, 0]), f(w))
                for d in range(x.ndim):
                    o = out_shape(x.shape, (d,))
                    index = f(w, d)
                    np.testing.assert_array_equal(kernels("arg" + name, [x], [(o, "int64")], [d, 0]), index)
                    values, got = kernels(name + "_dim", [x], [(o, dtype), (o, "int64")], [d - x.ndim, 0])
                    np.testing.assert_array_equal(got, index)
                    np.testing.assert_array_equal(wide(values), np.take_along_axis(w, np.expand_dims(index, d), d).squeeze(d))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_extrema_nan_and_infinite(kernels, dtype):
    rng = np.random.default_rng(9)
    for shape in [(200, 30), (30, 300)]:
        x = rng.normal(size=shape).astype(dtype)
        x[rng.random(shape) < 0.01] = np.nan
        x[5] = -np.inf
        x[7] = np.inf
        for d in (0, 1):
            o = out_shape(shape, (d,))
            np.testing.assert_array_equal(kernels("amax", [x], [(o, dtype)], [[d], 0]), x.max(d))
            np.testing.assert_array_equal(kernels("amin", [x], [(o, dtype)], [[d], 0]), x.min(d))
            np.testing.assert_array_equal(kernels("argmax", [x], [(o, "int64")], [d, 0]), x.argmax(d))
            np.testing.assert_array_equal(kernels("argmin", [x], [(o, "int64")], [d, 0]), x.argmin(d))
    low = np.full((3, 100), -np.inf, dtype)
    np.testing.assert_array_equal(kernels("argmax", [low], [((3,), "int64")], [1, 0]), 0)
    np.testing.assert_array_equal(kernels("argmax", [low], [((100,), "int64")], [0, 0]), 0)


def test_errors(kernels):
    x = np.ones((2, 3), np.float32)
    with pytest.raises(KernelError, match=r"index: dim must be in \[-2, 1\], got 2"):
        kernels("sum", [x], [((2,), "float32")], [[2], 0])
    with pytest.raises(KernelError, match="not implemented for dtype complex64"):
        kernels("amax", [x.astype(np.complex64)], [((), "complex64")], [[], 0])
    with pytest.raises(KernelError, match="non-zero size"):
        kernels("argmax", [np.ones((2, 0))], [((2,), "int64")], [1, 0])


def test_dtype_name_of_bfloat16():
    assert dtype_name(to_bfloat16([1.0])) == "bfloat16"
    np.testing.assert_array_equal(from_bfloat16(to_bfloat16([1.0, -2.5, np.inf])), [1, -2.5, np.inf])
