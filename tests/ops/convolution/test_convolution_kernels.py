"""Convolution, its transpose and the gradient of its weight against sums over taps in NumPy."""

import itertools

import numpy as np
import pytest

from _kernel_arrays import EPS, REAL, make, wide
from _kernels import KernelError

DTYPES = [*REAL[1:], "complex64", "complex128"]
# n, groups, channels and filters of a group, sizes, kernel, stride, padding, dilation
SHAPES = [
    (2, 1, 3, 4, (7,), (3,), (1,), (1,), (1,)),
    (1, 2, 2, 3, (20,), (4,), (3,), (2,), (2,)),
    (3, 1, 1, 1, (5, 6), (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 1, 2, 7, (9, 8), (3, 2), (2, 1), (0, 1), (1, 2)),
    (1, 3, 1, 2, (8, 11), (1, 3), (1, 2), (2, 0), (1, 1)),
    (2, 2, 1, 1, (6, 6), (1, 1), (3, 2), (1, 1), (1, 1)),
    (1, 1, 2, 2, (4, 5, 6), (2, 3, 2), (1, 2, 1), (1, 1, 0), (1, 1, 2)),
    (2, 1, 2, 2, (5, 3, 4), (3, 1, 2), (2, 1, 3), (2, 0, 1), (2, 1, 1)),
    (1, 1, 1, 1, (3,), (3,), (5,), (4,), (4,)),
]
# for float32: many channels, several tiles of filters, several windows, images packed together
LARGE = [
    (2, 1, 17, 13, (40, 37), (3, 3), (1, 1), (1, 1), (1, 1)),
    (5, 1, 9, 8, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1)),
    (3, 1, 8, 20, (30, 33), (3, 3), (2, 2), (1, 1), (1, 1)),
    (2, 1, 1, 6, (28, 28), (5, 5), (1, 1), (0, 0), (1, 1)),
    (2, 1, 3, 5, (300, 301), (7, 7), (2, 2), (3, 3), (1, 1)),
    (2, 32, 1, 1, (20, 21), (3, 3), (1, 1), (1, 1), (1, 1)),
    (1, 1, 40, 30, (6, 20, 22), (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1)),
    (2, 1, 64, 32, (14, 14), (1, 1), (1, 1), (0, 0), (1, 1)),
    (1, 1, 70, 90, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1)),
    (2, 1, 4, 4, (2000,), (9,), (1,), (4,), (1,)),
]
# the same where columns are multiplied: rows too short for planes, filters enough to make up for packing
COLUMNS = [
    (70, 1, 6, 50, (8, 8), (3, 3), (1, 1), (1, 1), (1, 1)),
    (3, 2, 30, 70, (5, 4), (3, 3), (1, 1), (1, 1), (1, 1)),
    (5, 1, 64, 48, (7, 7), (3, 3), (2, 2), (1, 1), (1, 1)),
    (9, 1, 50, 130, (7, 7), (1, 1), (1, 1), (0, 0), (1, 1)),
    (2, 1, 20, 49, (9, 6), (2, 3), (3, 1), (0, 2), (2, 1)),
    (6, 1, 8, 60, (3, 4, 3), (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1)),
    (1, 1, 3, 50, (8, 5), (17, 2), (1, 1), (8, 0), (1, 1)),
    (4, 1, 300, 64, (5,), (3,), (2,), (1,), (1,)),
]


def result_size(size, kernel, stride, padding, dilation):
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(size, kernel, stride, padding, dilation))


def windows(size, out, kernel, stride, padding, dilation):
    """For each tap: its index, and the slices of input and output that it joins."""
    for tap in itertools.product(*map(range, kernel)):
        source, target = [], []
        for n, o, r, s, p, d in zip(size, out, tap, stride, padding, dilation):
            first = r * d - p
            lo = max(0, -(first // s))
            hi = min(o, (n - 1 - first) // s + 1)
            if hi <= lo:
                break
            source.append(slice(first + lo * s, first + (hi - 1) * s + 1, s))
            target.append(slice(lo, hi))
        else:
            yield tap, (..., *source), (..., *target)


def grouped(a, groups, axis):
    return a.reshape(*a.shape[:axis], groups, a.shape[axis] // groups, *a.shape[axis + 1:])


def correlate(x, w, groups, out, settings):
    """The sum itself, in the operands' own dtype."""
    x, w = grouped(x, groups, 1), grouped(w, groups, 0)
    y = np.zeros((x.shape[0], groups, w.shape[1], *out), x.dtype)
    for tap, source, target in windows(x.shape[3:], out, w.shape[3:], *settings):
        y[target] += np.einsum("ngc...,gfc->ngf...", x[source], w[(..., *tap)])
    return y.reshape(x.shape[0], -1, *out)


def scatter(y, w, groups, size, settings):
    y, w = grouped(y, groups, 1), grouped(w, groups, 0)
    x = np.zeros((y.shape[0], groups, w.shape[2], *size), y.dtype)
    for tap, source, target in windows(size, y.shape[3:], w.shape[3:], *settings):
        x[source] += np.einsum("ngf...,gfc->ngc...", y[target], w[(..., *tap)])
    return x.reshape(y.shape[0], -1, *size)


def weight_gradient(x, y, groups, kernel, settings):
    x, y = grouped(x, groups, 1), grouped(y, groups, 1)
    w = np.zeros((groups, y.shape[2], x.shape[2], *kernel), x.dtype)
    for tap, source, target in windows(x.shape[3:], y.shape[3:], kernel, *settings):
        a, b = x[source], y[target]
        a, b = a.reshape(*a.shape[:3], -1), b.reshape(*b.shape[:3], -1)
        w[(..., *tap)] = np.einsum("ngcp,ngfp->gfc", a, b)
    return w.reshape(-1, *w.shape[2:])


def number(a, dtype):
    return wide(a) if dtype in EPS else a.astype(np.int64)


def near(got, want, dtype, terms):
    assert got.shape == want.shape
    if dtype not in EPS:
        np.testing.assert_array_equal(got, want.astype(dtype))
        return
    scale = np.abs(want).max(initial=0)
    np.testing.assert_allclose(wide(got), want, rtol=EPS[dtype], atol=EPS[dtype] * (1 + scale + np.sqrt(terms)))


def turned(a):
    """The same values, with negative strides in a larger array."""
    larger = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype).view(type(a))
    window = larger[(slice(None, None, -1),) * (a.ndim - 1) + (slice(None, None, -2),)]
    window[...] = a
    return window


def check(kernels, shape, dtype, layouts):
    n, groups, channels, filters, size, kernel, *settings = shape
    rng = np.random.default_rng(0)
    out = result_size(size, kernel, *settings)
    x, w = make(rng, (n, groups * channels, *size), dtype), make(rng, (groups * filters, channels, *kernel), dtype)
    y, bias = make(rng, (n, groups * filters, *out), dtype), make(rng, (groups * filters,), dtype)
    params = [list(s) for s in settings] + [groups]
    taps = int(np.prod(kernel))
    for layout in layouts:
        a, b, c = layout(x), layout(w), layout(y)
        wa, wb, wc = number(a, dtype), number(b, dtype), number(c, dtype)
        with np.errstate(all="ignore"):
            want = correlate(wa, wb, groups, out, settings)
            near(kernels("convolve", [a, b, None], [(want.shape, dtype)], params), want, dtype, channels * taps)
            want = want + number(bias, dtype).reshape(-1, *[1] * len(size))
            near(kernels("convolve", [a, b, bias], [(want.shape, dtype)], params), want, dtype, channels * taps)
            want = scatter(wc, wb, groups, size, settings)
            near(kernels("convolve_transposed", [c, b, None], [(want.shape, dtype)], params), want, dtype, filters * taps)
            want = weight_gradient(wa, wc, groups, kernel, settings)
            near(kernels("convolve_weight", [a, c], [(want.shape, dtype)], params), want, dtype, n * np.prod(out))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_small(kernels, shape, dtype):
    check(kernels, shape, dtype, [np.asarray if dtype != "bfloat16" else lambda a: a, turned])


@pytest.mark.parametrize("shape", LARGE + COLUMNS, ids=str)
def test_large(kernels, shape):
    check(kernels, shape, "float32", [lambda a: a])


@pytest.mark.parametrize("shape", COLUMNS, ids=str)
def test_columns(kernels, shape):
    check(kernels, shape, "float64", [lambda a: a, turned])
    check(kernels, shape, "float16", [lambda a: a])


def test_float64(kernels):
    check(kernels, LARGE[0], "float64", [lambda a: a, turned])


def test_what_is_not_read(kernels):
    """Infinities and NaNs reach the results that they are part of, and no others."""
    rng = np.random.default_rng(1)
    for size, padding, filters in [((9, 20), 0, 4), ((9, 20), 1, 4), ((40, 7), 0, 4), ((9, 7), 0, 50), ((7, 7), 1, 50)]:
        x, w = rng.normal(size=(2, 7, *size)), rng.normal(size=(filters, 7, 3, 3))
        x[0, 1, 4, 0] = np.inf
        x[1, 2, 0, 3] = np.nan
        settings = (1, 1), (padding, padding), (1, 1)
        params = [list(s) for s in settings] + [1]
        out = result_size(size, (3, 3), *settings)
        y = rng.normal(size=(2, filters, *out))
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(kernels("convolve", [x, w, None], [((2, filters, *out), "float64")], params),
                                       correlate(x, w, 1, out, settings))
            np.testing.assert_allclose(kernels("convolve_weight", [x, y], [((filters, 7, 3, 3), "float64")], params),
                                       weight_gradient(x, y, 1, (3, 3), settings))


def test_memory_behind_is_not_touched(kernels):
    """The input ends where its memory ends: what lies behind is NaN here."""
    for size, kernel in [((7, 9), 1), ((7, 9), 3), ((5, 5), 3), ((40, 41), 5)]:
        memory = np.full(2 * 3 * np.prod(size) + 64, np.nan, np.float32)
        x = memory[:-64].reshape(2, 3, *size)
        x[...] = np.random.default_rng(2).normal(size=x.shape)
        w = np.ones((7, 3, kernel, kernel), np.float32)
        out = result_size(size, w.shape[2:], (1, 1), (0, 0), (1, 1))
        got = kernels("convolve", [x, w, None], [((2, 7, *out), "float32")], [[1, 1], [0, 0], [1, 1], 1])
        assert np.isfinite(got).all()


def test_empty(kernels):
    one = [[1], [0], [1], 1]
    y = kernels("convolve", [np.zeros((2, 0, 5)), np.zeros((3, 0, 2)), np.ones(3)], [((2, 3, 4), "float64")], one)
    assert (y == 1).all()
    w = kernels("convolve_weight", [np.zeros((0, 2, 5)), np.zeros((0, 3, 4))], [((3, 2, 2), "float64")], one)
    assert (w == 0).all()
    assert kernels("convolve", [np.zeros((0, 2, 5)), np.zeros((3, 2, 2)), None], [((0, 3, 4), "float64")], one).size == 0


def test_threads_do_not_change_bits(kernels):
    rng = np.random.default_rng(3)
    for n, groups, channels, filters, size, kernel, *settings in LARGE + COLUMNS:
        x, w = (rng.normal(size=s).astype(np.float32) for s in [(n, groups * channels, *size), (groups * filters, channels, *kernel)])
        out = result_size(size, kernel, *settings)
        y = rng.normal(size=(n, groups * filters, *out)).astype(np.float32)
        params, results = [list(s) for s in settings] + [groups], []
        for threads in (1, 2):
            kernels.threads(threads)
            results.append([kernels("convolve", [x, w, None], [(y.shape, "float32")], params).tobytes(),
                            kernels("convolve_transposed", [y, w, None], [(x.shape, "float32")], params).tobytes(),
                            kernels("convolve_weight", [x, y], [(w.shape, "float32")], params).tobytes()])
        kernels.threads(1)
        assert results[0] == results[1]


def test_errors(kernels):
    x, w = np.ones((1, 4, 5)), np.ones((2, 3, 2))
    with pytest.raises(KernelError, match="channels, filters and groups do not fit together"):
        kernels("convolve", [x, w, None], [((1, 2, 4), "float64")], [[1], [0], [1], 1])
    with pytest.raises(KernelError, match="stride must hold 1 numbers of at least 1"):
        kernels("convolve", [x, np.ones((2, 4, 2)), None], [((1, 2, 4), "float64")], [[0], [0], [1], 1])
    with pytest.raises(KernelError, match="one dtype, got float64 and float32"):
        kernels("convolve", [x, np.ones((2, 4, 2), np.float32), None], [((1, 2, 4), "float64")], [[1], [0], [1], 1])
