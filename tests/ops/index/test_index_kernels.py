"""Indexing kernels against NumPy's indexing and element-by-element loops."""

import numpy as np
import pytest

from _kernel_arrays import ALL, EPS, FLOAT, close, layouts, make, nonempty, same, wide
from _kernels import KernelError, kernels_of

kernels = kernels_of("gather", "index_get", "scatter", "nonzero", "embedding")

def indices(rng, shape, size):
    base = np.asarray(rng.integers(0, size, shape), np.int64)
    yield base
    if base.ndim:
        yield np.asarray(rng.integers(0, size, (*shape[:-1], 2 * shape[-1])), np.int64)[..., ::-2]
        yield np.broadcast_to(base[:1], shape)


@pytest.mark.parametrize("dtype", ALL)
def test_gather_scatter(kernels, dtype):
    rng = np.random.default_rng(0)
    for shape in [(5,), (4, 6), (6, 4), (3, 5, 7), (2, 1, 40)]:
        for x in nonempty(make(rng, shape, dtype)):
            for dim in range(x.ndim):
                part = tuple(n if d == dim else max(1, n - 1) for d, n in enumerate(x.shape))
                for index in indices(rng, part, x.shape[dim]):
                    region = x[tuple(slice(n) if d != dim else slice(None) for d, n in enumerate(part))]
                    same(kernels("gather", [x, index], [(part, dtype)], [dim]), np.take_along_axis(region, index, dim))
                    src = make(rng, x.shape, dtype)[..., ::-1]
                    put = np.array(x, subok=True)
                    added = wide(x).copy() if dtype in EPS or dtype == "bool" else x.astype(object)
                    for i in np.ndindex(part):
                        to = (*i[:dim], index[i], *i[dim + 1:])
                        put[to] = src[i]
                        term = wide(src)[i]
                        added[to] = added[to] | term if dtype == "bool" else added[to] + (term if dtype in EPS else int(term))
                    same(kernels("scatter", [x, index, src], [(x.shape, dtype)], [dim]), put)
                    got = kernels("scatter_add", [x, index, src], [(x.shape, dtype)], [dim - x.ndim])
                    if dtype in EPS or dtype == "bool":
                        close(got, np.asarray(added), dtype)
                    else:
                        bits = 8 * x.itemsize
                        wrapped = np.array([int(v) % 2**bits for v in added.ravel()], dtype=f"uint{bits}").view(dtype)
                        np.testing.assert_array_equal(got.ravel(), wrapped)


@pytest.mark.parametrize("dtype", ALL)
def test_index_select_and_add(kernels, dtype):
    rng = np.random.default_rng(1)
    for shape in [(5,), (4, 6), (3, 5, 7), (2, 1, 40), (6, 2000)]:
        for x in nonempty(make(rng, shape, dtype)):
            for dim in range(x.ndim):
                for index in indices(rng, (7,), x.shape[dim]):
                    out = (*x.shape[:dim], 7, *x.shape[dim + 1:])
                    same(kernels("index_select", [x, index], [(out, dtype)], [dim]), np.take(x, index, dim))
                    src = make(rng, out, dtype)[::-1]
                    alpha = 1 if dtype == "bool" else 2
                    want = wide(x).copy()
                    with np.errstate(all="ignore"):
                        for k, i in enumerate(index):
                            at, from_ = (slice(None),) * dim + (i,), (slice(None),) * dim + (k,)
                            term = src[from_] if dtype == "bool" else np.asarray(wide(src)[from_] * alpha).astype(want.dtype)
                            want[at] = want[at] | term if dtype == "bool" else want[at] + term
                    close(kernels("index_add", [x, index, src], [(x.shape, dtype)], [dim, alpha]), want, dtype)


def test_zero_dimensions_and_empty(kernels):
    x = np.asarray(3.0)
    zero = np.zeros((), np.int64)
    assert kernels("gather", [x, zero], [((), "float64")], [0]) == 3
    assert kernels("gather", [np.arange(5.0), np.asarray(4)], [((), "float64")], [0]) == 4
    assert kernels("scatter_add", [x, zero, np.asarray(2.0)], [((), "float64")], [-1]) == 5
    assert kernels("index_select", [np.arange(5.0), np.empty(0, np.int64)], [((0,), "float64")], [0]).size == 0
    np.testing.assert_array_equal(
        kernels("scatter", [np.ones((2, 3)), np.empty((0, 3), np.int64), np.ones((2, 3))], [((2, 3), "float64")], [0]), 1)


@pytest.mark.parametrize("dtype", FLOAT)
def test_embedding(kernels, dtype):
    rng = np.random.default_rng(2)
    for rows, n, shape in [(5, 3, (4,)), (7, 100, (2, 3)), (4, 1, ()), (6, 2, (0,)), (50, 300, (400,))]:
        for w in (make(rng, (rows, n), dtype), make(rng, (n, rows), dtype).T, make(rng, (rows, n), dtype)[:, ::-1]):
            for index in indices(rng, shape, rows):
                same(kernels("embedding", [w, index], [((*shape, n), dtype)], [-1]), w[index])
                g = make(rng, (*shape, n), dtype)[..., ::-1]
                for padding in (-1, 1):
                    want, counts = np.zeros((rows, n)), index != padding
                    np.add.at(want, index[counts], wide(g)[counts])
                    got = kernels("embedding_backward", [g, index], [((rows, n), dtype)], [rows, padding])
                    np.testing.assert_allclose(wide(got), want, rtol=4 * EPS[dtype], atol=EPS[dtype] * 40)


def selections(rng, shape):
    """(index tuple as NumPy takes it, dims) for one array."""
    ndim = len(shape)

    def idx(dim, s):
        return np.asarray(rng.integers(-shape[dim], shape[dim], s), np.int64)

    for s in [(), (3,), (2, 4), (0,)]:
        for dim in range(ndim):
            yield (slice(None),) * dim + (idx(dim, s),), [dim]
        if ndim > 1:
            yield (idx(0, s), idx(1, s)), [0, 1]
        if ndim > 2:
            yield (slice(None), idx(1, s), idx(2, s)), [1, 2]
            if s:
                yield (idx(0, s), slice(None), idx(2, s)), [0, 2]
        if ndim > 3 and s:
            yield (slice(None), idx(1, s), slice(None), idx(3, s)), [1, 3]


@pytest.mark.parametrize("dtype", ALL)
def test_index_get_and_put(kernels, dtype):
    rng = np.random.default_rng(3)
    for shape in [(5,), (4, 6), (3, 5, 7), (2, 3, 4, 5)]:
        for x in nonempty(make(rng, shape, dtype)):
            for key, dims in selections(rng, x.shape):
                arrays = [k for k in key if not isinstance(k, slice)]
                want = np.asarray(x[key]) if not isinstance(x[key], np.ndarray) else x[key]
                same(kernels("index_get", [x, *arrays], [(want.shape, dtype)], [dims]), want)
                if 0 in x.strides:
                    continue
                full = make(rng, want.shape, dtype)
                for values in [full, make(rng, want.shape[-1:], dtype), make(rng, (), dtype)] + ([full[::-1]] if full.ndim else []):
                    base = np.array(x, subok=True)
                    store = np.repeat(base, 2, -1).view(type(base))
                    destination = store[..., ::2]
                    expected = base.copy()
                    expected[key] = values
                    kernels("index_put", [None, values, *arrays], [destination], [dims, 0])
                    same(destination, expected)
                    same(store[..., 1::2], base)
                    if dtype == "bool":
                        continue
                    total = wide(base)
                    with np.errstate(all="ignore"):
                        np.add.at(total, key, np.broadcast_to(wide(values), want.shape).copy())
                    destination = np.array(x, order="F", subok=True)
                    kernels("index_put", [None, values, *arrays], [destination], [dims, 1])
                    close(destination, total, dtype)


@pytest.mark.parametrize("dtype", ALL)
def test_nonzero(kernels, dtype):
    rng = np.random.default_rng(4)
    for shape in [(), (1,), (7,), (4, 6), (3, 5, 7), (0, 3), (90000,), (300, 200)]:
        base = make(rng, shape, dtype)
        base = np.where(rng.random(shape) < 0.3, base, np.zeros((), base.dtype)).view(type(base))
        for x in layouts(base):
            want = np.stack(np.nonzero(np.atleast_1d(wide(x))), -1).astype(np.int64)[:, :x.ndim]
            for threads in (1, 2):
                kernels.threads(threads)
                same(kernels("nonzero", [x], [(want.shape, "int64")]), want)
            kernels.threads(1)


def test_out_of_bounds_writes_nothing(kernels):
    x = np.zeros((5, 3))
    out = np.full((5, 3), 7.0)
    message = "index: index {} is out of bounds for dimension {} with size {}"
    for bad in (5, -1, 7, -(2**63), 2**63 - 1):
        index = np.array([0, bad])
        with pytest.raises(KernelError, match=message.format(bad, 0, 5)):
            kernels("index_select", [x, index], [out[:2]], [0])
        with pytest.raises(KernelError, match=message.format(bad, 0, 5)):
            kernels("index_add", [x, index, x[:2]], [out], [0, 1])
        with pytest.raises(KernelError, match=message.format(bad, 0, 5)):
            kernels("embedding", [x, index], [out[:2]], [-1])
        square = np.repeat(index[:, None], 3, 1)
        for name in ("scatter", "scatter_add"):
            with pytest.raises(KernelError, match=message.format(bad, 0, 5)):
                kernels(name, [x, square, x], [out], [0])
    with pytest.raises(KernelError, match=message.format(3, 1, 3)):
        kernels("gather", [x, np.array([[0], [3]])], [out[:2, :1]], [1])
    for bad in (3, -4):
        with pytest.raises(KernelError, match=message.format(bad, 1, 3)):
            kernels("index_put", [None, np.ones(()), np.array([1, 0]), np.array([0, bad])], [out], [[0, 1], 0])
        with pytest.raises(KernelError, match=message.format(bad, 1, 3)):
            kernels("index_get", [x, np.array([bad])], [out[:, :1]], [[1]])
    assert (out == 7).all()


def test_errors(kernels):
    x = np.zeros((5, 3))
    with pytest.raises(KernelError, match="dtype int64, got int32"):
        kernels("index_select", [x, np.array([0], np.int32)], [((1, 3), "float64")], [0])
    with pytest.raises(KernelError, match="index with 2 dimensions like input"):
        kernels("gather", [x, np.array([0])], [((1,), "float64")], [0])
    with pytest.raises(KernelError, match="larger than that of input"):
        kernels("gather", [x, np.zeros((6, 3), np.int64)], [((6, 3), "float64")], [1])
    with pytest.raises(KernelError, match="cannot be broadcast"):
        kernels("index_put", [None, np.ones(4), np.array([0])], [x], [[0], 0])
    with pytest.raises(KernelError, match="an output for 2 elements, got one for 3"):
        kernels("nonzero", [np.array([1, 0, 1])], [((3, 1), "int64")])
