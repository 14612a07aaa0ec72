"""Rearranging, scanning and sorting kernels against NumPy."""

import numpy as np
import pytest

from _kernel_arrays import ALL, EPS, FLOAT, REAL, close, layouts, make, nonempty, same, wide
from _kernels import KernelError


@pytest.mark.parametrize("dtype", ALL)
def test_cat(kernels, dtype):
    rng = np.random.default_rng(0)
    for shape in [(5,), (4, 6), (3, 5, 7), (2, 1, 40), (0, 3)]:
        for dim in range(len(shape)):
            parts = [make(rng, (*shape[:dim], n, *shape[dim + 1:]), dtype) for n in (3, 1, 0, 5)]
            parts.append(np.asfortranarray(parts[0]).view(type(parts[0])))
            parts.append(parts[-1][..., ::-1])
            want = np.concatenate(parts, dim)
            same(kernels("cat", parts, [(want.shape, dtype)], [dim - len(shape)]), want)
    two = make(rng, (2, 3), dtype)
    same(kernels("cat", [make(rng, (0,), dtype), two], [((2, 3), dtype)], [0]), two)


@pytest.mark.parametrize("dtype", ALL)
def test_flip_triangles(kernels, dtype):
    rng = np.random.default_rng(1)
    for shape in [(5,), (4, 6), (3, 5, 7), (2, 1, 40), (0, 3)]:
        for x in layouts(make(rng, shape, dtype)):
            for dims in [(), (0,), (-1,), tuple(range(x.ndim))]:
                same(kernels("flip", [x], [(x.shape, dtype)], [list(dims)]), np.flip(x, dims) if dims else np.asarray(x))
            if x.ndim > 1:
                for k in (0, 1, -2, 50, -50, 2**62, -(2**62)):
                    c = max(-100, min(100, k))
                    same(kernels("tril", [x], [(x.shape, dtype)], [k]), np.tril(x, c))
                    same(kernels("triu", [x], [(x.shape, dtype)], [k]), np.triu(x, c))


@pytest.mark.parametrize("dtype", ALL)
def test_made_from_nothing(kernels, dtype):
    for start, end, step in [(0, 10, 1), (3, -20, -2), (-5, 6, 3), (0, 0, 1)]:
        n = max(0, -(-(end - start) // step))
        if dtype in ("bool", "uint8", "uint64") and min(start, end) < 0:
            continue
        want = start + step * np.arange(n)
        got = kernels("arange", [], [((n,), dtype)], [start, end, step])
        np.testing.assert_array_equal(wide(got), want.astype(bool) if dtype == "bool" else want)
    for start, end, n in [(0, 1, 5), (-3, 7, 1), (2, 2, 3), (10, -10, 11), (0, 1, 0)]:
        if dtype in ("bool", "uint8", "uint64") and min(start, end) < 0:
            continue
        want = np.linspace(start, end, n)
        got = kernels("linspace", [], [((n,), dtype)], [start, end, n])
        if dtype in EPS:
            np.testing.assert_allclose(wide(got), want, rtol=EPS[dtype], atol=EPS[dtype])
            assert n < 2 or (got[0], wide(got)[-1]) == (start, end) or dtype == "bfloat16"
        elif dtype != "bool":
            np.testing.assert_array_equal(got, np.trunc(np.round(want, 9)).astype(dtype))
    for shape in [(3, 3), (2, 5), (5, 2), (0, 4)]:
        np.testing.assert_array_equal(wide(kernels("eye", [], [(shape, dtype)], list(shape))), np.eye(*shape))


def test_large_integers_are_exact(kernels):
    got = kernels("arange", [], [((3,), "int64")], [2**62 + 1, 2**62 + 4, 1])
    np.testing.assert_array_equal(got, [2**62 + 1, 2**62 + 2, 2**62 + 3])


@pytest.mark.parametrize("dtype", REAL + ["complex64", "complex128"])
def test_cumulative_sums(kernels, dtype):
    rng = np.random.default_rng(2)
    for shape in [(5,), (7, 33), (4, 9, 70), (3, 300, 2), (0, 4), (2, 600)]:
        for x in layouts(make(rng, shape, dtype)):
            for dim in range(x.ndim):
                out = dtype if dtype in EPS else "int64"
                w = wide(x) if dtype in EPS else x.astype(np.int64)
                want = np.cumsum(w, dim)
                got = kernels("cumsum", [x], [(x.shape, out)], [dim])
                np.testing.assert_allclose(wide(got), want, rtol=EPS.get(out, 0), atol=EPS.get(out, 0) * (1 + np.abs(want).max(initial=0)))
                if x.ndim and x.size and x.shape[dim] < 10:
                    want = np.cumprod(w, dim)
                    got = kernels("cumprod", [x], [(x.shape, out)], [dim - x.ndim])
                    np.testing.assert_allclose(wide(got), want, rtol=8 * EPS.get(out, 0), atol=EPS.get(out, 0))
    assert kernels("cumsum", [np.asarray(3.0)], [((), "float64")], [-1]) == 3
    if dtype == "int8":
        np.testing.assert_array_equal(kernels("cumsum", [np.full(3, 100, np.int8)], [((3,), "int8")], [0]), np.array([100, -56, 44]))


@pytest.mark.parametrize("dtype", FLOAT)
def test_logcumsumexp(kernels, dtype):
    rng = np.random.default_rng(3)
    for shape in [(5,), (7, 33), (3, 40, 6)]:
        for x in layouts(make(rng, shape, dtype)):
            for dim in range(x.ndim):
                want = np.logaddexp.accumulate(wide(x), dim)
                np.testing.assert_allclose(wide(kernels("logcumsumexp", [x], [(x.shape, dtype)], [dim])), want, rtol=EPS[dtype] * 2, atol=EPS[dtype] * 2)
    inf, nan = np.inf, np.nan
    got = kernels("logcumsumexp", [np.array([-inf, -inf, 0, 800, inf, 1])], [((6,), "float64")], [0])
    np.testing.assert_array_equal(got, [-inf, -inf, 0, 800, inf, inf])
    got = kernels("logcumsumexp", [np.array([1, nan, 2, inf])], [((4,), "float64")], [0])
    np.testing.assert_array_equal(got, [1, nan, nan, nan])


@pytest.mark.parametrize("dtype", REAL)
def test_cumulative_extrema(kernels, dtype):
    rng = np.random.default_rng(4)
    for shape in [(5,), (7, 33), (4, 9, 70)]:
        for x in layouts(make(rng, shape, dtype)):
            w = wide(x)
            for dim in range(x.ndim):
                for name, f, wins in (("cummax", np.maximum, np.greater_equal), ("cummin", np.minimum, np.less_equal)):
                    values, index = kernels(name, [x], [(x.shape, dtype), (x.shape, "int64")], [dim])
                    np.testing.assert_array_equal(wide(values), f.accumulate(w, dim))
                    lines, at = np.moveaxis(w, dim, -1), np.moveaxis(index, dim, -1)
                    for i in np.ndindex(lines.shape[:-1]):
                        best = 0
                        for j, v in enumerate(lines[i]):
                            best = j if wins(v, lines[i][best]) else best
                            assert at[i][j] == best
    if dtype in ("float32", "float64", "float16"):
        x = np.array([1, np.nan, 5, np.nan], dtype)
        values, index = kernels("cummax", [x], [((4,), dtype), ((4,), "int64")], [0])
        np.testing.assert_array_equal(values, [1, np.nan, np.nan, np.nan])
        np.testing.assert_array_equal(index, [0, 1, 1, 3])


def ordered(w, dim, descending):
    """Stable order with NaN greatest."""
    if not descending:
        return np.argsort(w, dim, kind="stable")
    n = w.shape[dim]
    return n - 1 - np.flip(np.argsort(np.flip(w, dim), dim, kind="stable"), dim)


@pytest.mark.parametrize("dtype", REAL)
def test_sort_and_topk(kernels, dtype):
    rng = np.random.default_rng(5)
    for shape in [(1,), (5,), (7, 33), (4, 9, 70), (3000,), (3, 1025), (0, 4), (4, 0)]:
        base = make(rng, shape, dtype)
        if dtype in ("float16", "float32", "float64") and base.size > 4:
            base[rng.random(shape) < 0.1] = np.nan
            base[rng.random(shape) < 0.1] = 0.0
            base[rng.random(shape) < 0.1] = -0.0
            base[rng.random(shape) < 0.05] = -np.inf
        for x in layouts(base):
            w = wide(x)
            for dim in range(x.ndim):
                for descending in (0, 1):
                    index = ordered(w, dim, descending)
                    values, got = kernels("sort", [x], [(x.shape, dtype), (x.shape, "int64")], [dim, descending, 1])
                    np.testing.assert_array_equal(got, index)
                    same(values, np.take_along_axis(x, index, dim))
                    for k in {0, 1, x.shape[dim] // 2, x.shape[dim]}:
                        if k > x.shape[dim]:
                            continue
                        want = np.take(index, np.arange(k), dim)
                        values, got = kernels("topk", [x], [(want.shape, dtype), (want.shape, "int64")], [k, dim, descending, 1])
                        np.testing.assert_array_equal(got, want)
                        same(values, np.take_along_axis(x, want, dim))


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32", "uint32", "float32", "float64"])
def test_sort_extremes(kernels, dtype):
    if np.dtype(dtype).kind == "f":
        info = np.finfo(dtype)
        x = np.array([info.max, -np.inf, info.tiny, -info.tiny, np.inf, info.min, 0, info.smallest_subnormal] * 200, dtype)
    else:
        info = np.iinfo(dtype)
        x = np.array([info.max, info.min, 0, 1, info.max - 1, info.min + 1] * 200, dtype)
    for k in (len(x), 10):
        for y in (x, x[:12]):
            n = min(k, len(y))
            values, index = kernels("topk", [y], [((n,), dtype), ((n,), "int64")], [n, 0, 0, 1])
            np.testing.assert_array_equal(index, np.argsort(y, kind="stable")[:n])
            np.testing.assert_array_equal(values, np.sort(y)[:n])


def test_large_topk_and_threads(kernels):
    x = np.random.default_rng(6).normal(size=(40, 5000)).astype(np.float32)
    for k in (7, 2000, 4900):
        want = ordered(x, 1, True)[:, :k]
        for threads in (1, 2):
            kernels.threads(threads)
            np.testing.assert_array_equal(kernels("topk", [x], [((40, k), "float32"), ((40, k), "int64")], [k, 1, 1, 1])[1], want)
    kernels.threads(1)


def test_errors(kernels):
    x = np.ones((2, 3))
    two = [((2, 3), "float64"), ((2, 3), "int64")]
    with pytest.raises(KernelError, match=r"k must be in \[0, 3\], got 4"):
        kernels("topk", [x], two, [4, 1, 1, 1])
    with pytest.raises(KernelError, match=r"dim must be in \[-2, 1\], got -3"):
        kernels("sort", [x], two, [-3, 0, 1])
    with pytest.raises(KernelError, match=r"dim must be in \[-2, 1\], got 2"):
        kernels("cumsum", [x], two[:1], [2])
    with pytest.raises(KernelError, match="must match except in dimension 0"):
        kernels("cat", [x, np.ones((2, 4))], [((4, 3), "float64")], [0])
    with pytest.raises(KernelError, match="appears multiple times"):
        kernels("flip", [x], two[:1], [[0, -2]])
    with pytest.raises(KernelError, match="at least 2 dimensions, got 1"):
        kernels("tril", [x[0]], [((3,), "float64")], [0])


def test_helpers_agree():
    """The helper `close` fails on a wrong value, so that the tests above can fail."""
    with pytest.raises(AssertionError):
        close(np.ones(2, np.float32), np.array([1, 1.1]), "float32")
    assert len(list(nonempty(np.ones((2, 2))))) >= 4
