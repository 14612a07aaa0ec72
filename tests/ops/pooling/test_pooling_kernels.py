"""Pooling, padding, sliding windows and resampling against the loops of tests/ops/_references_window.py."""

import importlib.util
import pathlib

import numpy as np
import pytest

from _kernel_arrays import EPS, FLOAT, REAL, make, wide
from _kernels import KernelError, kernels_of

import ptcore
from ptcore._ops import functions
from ptcore._ops.resample import decompositions

kernels = kernels_of("max_pool", "resample", "pad_constant")

_path = pathlib.Path(__file__).resolve().parents[2] / "ops" / "_references_window.py"
_spec = importlib.util.spec_from_file_location("_references_window", _path)
reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)

# shape, kernel, stride, padding, dilation, size; no kernel: adaptive
POOLS = [
    ((2, 3, 9), [3], [2], [1], [1], (5,)), ((1, 2, 40), [4], [1], [2], [3], (35,)), ((2, 2, 7, 33), [2, 3], [2, 3], [0, 1], [1, 1], (3, 11)),
    ((2, 1, 20, 20), [3, 3], [1, 1], [1, 1], [1, 1], (20, 20)), ((1, 2, 12, 30), [2, 2], [2, 2], [0, 0], [2, 1], (5, 15)),
    ((1, 2, 4, 5, 18), [2, 2, 2], [1, 2, 2], [1, 0, 1], [1, 2, 1], (5, 2, 10)), ((2, 2, 9, 7), [], [], [], [], (4, 3)),
    ((1, 2, 6, 50), [2, 5], [3, 5], [1, 2], [1, 1], (3, 11)), ((1, 3, 5, 6, 7), [], [], [], [], (2, 6, 3)),
    ((1, 2, 8), [19], [1], [9], [1], (8,)),
]


def near(got, want, dtype):
    if dtype not in EPS:
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(wide(got), want, rtol=EPS[dtype], atol=EPS[dtype])


def layouts(x):
    yield x
    yield np.ascontiguousarray(x[..., ::-1])[..., ::-1].view(type(x))
    yield np.swapaxes(np.ascontiguousarray(np.swapaxes(x, 1, -1)), 1, -1).view(type(x))


@pytest.mark.parametrize("dtype", REAL[1:])
def test_max(kernels, dtype):
    rng = np.random.default_rng(0)
    for shape, kernel, stride, padding, dilation, size in POOLS:
        for x in layouts(make(rng, shape, dtype)):
            values, indices = kernels("max_pool", [x], [((*shape[:2], *size), dtype), ((*shape[:2], *size), "int64")],
                                      [kernel, stride, padding, dilation, list(size)])
            want, where = reference.max_pool(wide(x), kernel, stride, padding, dilation, size)
            np.testing.assert_array_equal(wide(values), want)
            np.testing.assert_array_equal(indices, where)


@pytest.mark.parametrize("dtype", [*FLOAT, "int64"])
def test_mean_and_its_transpose(kernels, dtype):
    rng = np.random.default_rng(1)
    for shape, kernel, stride, padding, dilation, size in POOLS:
        if set(dilation) > {1}:
            continue
        y = make(rng, (*shape[:2], *size), dtype)
        for x in layouts(make(rng, shape, dtype)):
            for include, divisor in ((True, None), (False, None), (True, 5)):
                settings = [kernel, stride, padding]
                got = kernels("mean_pool", [x], [(y.shape, dtype)], [*settings, list(size), include, divisor])
                near(got, reference.mean_pool(wide(x), *settings, size, include, divisor), dtype)
                got = kernels("mean_pool_transposed", [y], [(shape, dtype)], [*settings, list(shape[2:]), include, divisor])
                near(got, reference.mean_pool_transposed(wide(y), *settings, shape[2:], include, divisor), dtype)


def test_maximum_of_special_values(kernels):
    """A NaN is the maximum; where all is -inf the first place counts."""
    x = np.full((1, 1, 3, 20), -np.inf)
    x[0, 0, 1, 5] = np.nan
    x[0, 0, 2, 6] = np.inf
    values, indices = kernels("max_pool", [x], [((1, 1, 2, 19), "float64"), ((1, 1, 2, 19), "int64")], [[2, 2], [1, 1], [0, 0], [1, 1], [2, 19]])
    assert np.isnan(values[0, 0, :, 4:6]).all() and (indices[0, 0, :, 4:6] == 25).all()
    assert values[0, 0, 1, 6] == np.inf and indices[0, 0, 1, 6] == 46
    assert values[0, 0, 0, 10] == -np.inf and indices[0, 0, 0, 10] == 10


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "bfloat16", "float32", "complex128"])
def test_pad(kernels, dtype):
    rng = np.random.default_rng(2)
    for shape, pad in [((3, 4), [1, 2]), ((3, 4), [-1, 2, 0, -2]), ((2, 3, 4), [1, 0, 2, 1, -1, 1]), ((3, 4), [0, 0, -3, 0]), ((70, 300), [3, 4, 1, 0])]:
        for x in layouts(make(rng, shape, dtype)):
            want = reference.pad_constant(np.asarray(x), pad, 0)
            got = kernels("pad_constant", [x], [(want.shape, dtype)], [pad, 0])
            np.testing.assert_array_equal(np.asarray(got), want)
    got = kernels("pad_constant", [np.zeros((2, 2), np.uint8)], [((2, 3), "uint8")], [[0, 1], 7])
    assert (got[:, 2] == 7).all()


@pytest.mark.parametrize("dtype", ["bool", "int16", "float16", "bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_pad_edges(kernels, dtype, mode):
    rng = np.random.default_rng(3)
    word = ("reflect", "replicate", "circular")[mode]
    for shape, pad in [((3, 4), [1, 2]), ((1, 5), [4, 4]), ((2, 3, 4), [1, 0, 2, 1]), ((3, 4, 2, 5), [0, 3, 1, 1, 2, 0]), ((30, 8, 700), [3, 4, 1, 0])]:
        for x in layouts(make(rng, shape, dtype)):
            pads = [min(p, x.shape[-1 - i // 2] - 1) for i, p in enumerate(pad)]
            want = reference.pad_edges(np.asarray(x), pads, word)
            got = kernels("pad_edges", [x], [(want.shape, dtype)], [pads, mode])
            np.testing.assert_array_equal(np.asarray(got), want)
        if dtype in (*FLOAT, "complex64"):
            y = make(rng, reference.pad_edges(np.zeros(shape), pad, word).shape, dtype)
            back = kernels("pad_edges_transposed", [y], [(shape, dtype)], [pad, mode])
            near(back, reference.pad_edges_transposed(wide(y), pad, word), dtype)
    with pytest.raises(KernelError, match="pads and sizes do not fit"):
        kernels("pad_edges", [np.zeros((2, 2))], [((2, 4), "float64")], [[1, 2], mode])


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
def test_sliding_windows(kernels, dtype):
    rng = np.random.default_rng(3)
    for shape, settings in [((2, 3, 5, 6), ((2, 3), (1, 1), (0, 0), (1, 1), (4, 4))), ((1, 2, 7, 7), ((3, 2), (2, 1), (1, 1), (2, 3), (3, 3)))]:
        lists = [list(s) for s in settings]
        x = make(rng, shape, dtype)
        columns = reference.unfold_windows(wide(x), *settings)
        y = kernels("unfold_windows", [x], [(columns.shape, dtype)], lists)
        np.testing.assert_array_equal(wide(y), columns)
        back = kernels("fold_windows", [y], [(shape, dtype)], [*lists, list(shape[2:])])
        near(back, reference.fold_windows(columns, *settings, shape[2:]), dtype)


@pytest.mark.parametrize("dtype", FLOAT)
def test_resample(kernels, dtype):
    rng = np.random.default_rng(4)
    words = ("nearest", "nearest-exact", "linear", "cubic")
    for shape, dim, size in [((2, 5, 3), 1, 9), ((2, 9), 1, 4), ((7, 2, 3), 0, 13), ((3, 40, 1100), 1, 20), ((5,), 0, 1), ((1,), 0, 4)]:
        out = tuple(size if d == dim else n for d, n in enumerate(shape))
        x, y = make(rng, shape, dtype), make(rng, out, dtype)
        for mode, align, scale in [(0, False, 0.0), (1, False, 0.0), (2, False, 0.0), (2, True, 0.0), (3, False, 0.0), (3, True, 0.0), (2, False, 1.7)]:
            got = kernels("resample", [x], [(out, dtype)], [dim, size, mode, align, scale])
            want = reference.resample(wide(x), dim, size, words[mode], align, scale)
            np.testing.assert_allclose(wide(got), want, rtol=4 * EPS[dtype], atol=4 * EPS[dtype])
            got = kernels("resample_transposed", [y], [(shape, dtype)], [dim, shape[dim], mode, align, scale])
            want = reference.resample_transposed(wide(y), dim, shape[dim], words[mode], align, scale)
            np.testing.assert_allclose(wide(got), want, rtol=8 * EPS[dtype], atol=20 * EPS[dtype])


def test_windows_far_longer_than_the_input(kernels):
    """Taps in the padding are not looked at one by one: there are 2**40 of them."""
    x = np.arange(10.0).reshape(1, 1, 10)
    long, half = 2**40, 2**39
    got = kernels("mean_pool", [x], [((1, 1, 11), "float64")], [[long], [1], [half], [11], False, None])
    np.testing.assert_array_equal(got.ravel(), [4.5] * 11)
    got = kernels("max_pool", [x], [((1, 1, 11), "float64"), ((1, 1, 11), "int64")], [[long], [1], [half], [1], [11]])
    assert [a.ravel().tolist() for a in got] == [[9.0] * 11, [9] * 11]


def test_long_windows_are_summed_in_double(kernels):
    rng = np.random.default_rng(0)
    x = rng.uniform(0.5, 1.5, (1, 2, 300, 301)).astype(np.float32)
    for kernel, out in (([300, 301], [1, 1]), ([299, 300], [2, 2]), ([], [2, 2])):
        settings = [kernel, [1] * len(kernel), [0] * len(kernel), out, True, None]
        got = kernels("mean_pool", [x], [((1, 2, *out), "float32")], settings)
        want = kernels("mean_pool", [x.astype(np.float64)], [((1, 2, *out), "float64")], settings)
        np.testing.assert_array_equal(got, want.astype(np.float32))
    ones = np.ones((1, 1, 2**24 + 2**22), np.float32)
    size = ones.shape[2]
    assert kernels("mean_pool", [ones], [((1, 1, 1), "float32")], [[size], [1], [0], [1], True, None]) == 1


def test_a_sum_divided_by_minus_one_wraps(kernels):
    x = np.array([[[-2**63, 5, -3]]])
    got = kernels("mean_pool", [x], [(x.shape, "int64")], [[1], [1], [0], [3], True, -1])
    assert got.ravel().tolist() == [-2**63, -5, 3]


def test_threads_do_not_change_bits(kernels):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(8, 16, 40, 40)).astype(np.float32)
    results = []
    for threads in (1, 2):
        kernels.threads(threads)
        settings = [[3, 3], [2, 2], [1, 1]]
        results.append([kernels("mean_pool", [x], [((8, 16, 20, 20), "float32")], [*settings, [20, 20], True, None]).tobytes(),
                        kernels("mean_pool_transposed", [x[:, :, :20, :20]], [(x.shape, "float32")], [*settings, [40, 40], True, None]).tobytes(),
                        kernels("resample_transposed", [x], [((8, 16, 9, 40), "float32")], [2, 9, 2, False, 0.0]).tobytes()])
    kernels.threads(1)
    assert results[0] == results[1]


def test_errors(kernels):
    with pytest.raises(KernelError, match="kernel, stride and dilation must be positive"):
        kernels("max_pool", [np.ones((1, 1, 4))], [((1, 1, 2), "float64"), ((1, 1, 2), "int64")], [[0], [1], [0], [1], [2]])
    with pytest.raises(KernelError, match="no maximum"):
        kernels("max_pool", [np.ones((1, 1, 0))], [((1, 1, 2), "float64"), ((1, 1, 2), "int64")], [[1], [1], [1], [1], [2]])


@pytest.mark.parametrize("mode", ["linear", "cubic", "linear-taps", "cubic-taps"])
def test_bytes_are_filtered_alike_on_devices(mode):
    """The ops that devices run give the kernel's bytes: sums of wide windows are beyond the whole numbers of float32."""
    x = ptcore.from_numpy(np.random.default_rng(0).integers(0, 256, (8, 3, 300, 260), dtype=np.uint8))
    for size in (7, 70):
        want = functions.filtered(x, 2, size, mode, False, 0.0)
        got = decompositions.filtered(x, 2, size, mode, False, 0.0)
        np.testing.assert_array_equal(got.numpy(), want.numpy())
