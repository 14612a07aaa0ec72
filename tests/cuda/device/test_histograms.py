"""Histograms and counts of integers on a device, against NumPy."""
import numpy as np
import pytest

import ptcore

WHOLE = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]


@pytest.mark.parametrize("bins", [1, 7, 1000, 30000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_histc_counts(bins, dtype):
    """Of few bins in copies for each warp, of many in one, of more than shared memory holds in the device's."""
    x = np.random.default_rng(0).normal(size=20011).astype(dtype)
    x[::97] = np.nan
    got = ptcore.histc(ptcore.from_numpy(x).cuda(), bins, -2, 2)
    want = ptcore.histc(ptcore.from_numpy(x), bins, -2, 2)
    assert got.is_cuda
    np.testing.assert_array_equal(got.cpu().numpy(), want.numpy())
    inside = x[(x >= -2) & (x <= 2)].astype(np.float64)
    assert float(got.sum()) == inside.size
    if bins < 1000:                     # where no value lies within an edge's rounding
        np.testing.assert_array_equal(got.cpu().numpy(), np.histogram(inside, bins, (-2, 2))[0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves(dtype):
    x = np.random.default_rng(0).integers(0, 8, 5000)
    got = ptcore.histc(ptcore.from_numpy(x).to(getattr(ptcore, dtype)).cuda(), 8, 0, 8)
    np.testing.assert_array_equal(got.cpu().double().numpy(),
                                  ptcore.tensor(np.bincount(x)).to(getattr(ptcore, dtype)).double().numpy())


def test_limits_of_the_elements():
    x = np.random.default_rng(1).integers(0, 50, 3000).astype(np.float32)
    got = ptcore.histc(ptcore.from_numpy(x).cuda()[::3], 10)
    np.testing.assert_array_equal(got.cpu().numpy(), np.histogram(x[::3], 10)[0])
    assert ptcore.histc(ptcore.full((70,), 2.0, device="cuda"), 2).tolist() == [0, 70]


@pytest.mark.parametrize("edges", [5, [-1.0, -0.5, 0.1, 0.4, 2.0]])
def test_histogram_with_weights(edges):
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=4001), rng.integers(-3, 4, 4001).astype(np.float64)
    given = edges if isinstance(edges, int) else ptcore.tensor(edges, dtype=ptcore.float64, device="cuda")
    got = ptcore.histogram(ptcore.from_numpy(x).cuda(), given, weight=ptcore.from_numpy(w).cuda())
    hist, at = np.histogram(x, edges, weights=w)
    np.testing.assert_array_equal(got.hist.cpu().numpy(), hist)
    np.testing.assert_allclose(got.bin_edges.cpu().numpy(), at, rtol=1e-12)


def test_rows_of_coordinates():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(3000, 3))
    got = ptcore.histogramdd(ptcore.from_numpy(x).cuda(), [3, 4, 5])
    hist, edges = np.histogramdd(x, [3, 4, 5])
    np.testing.assert_array_equal(got.hist.cpu().numpy(), hist)
    for one, other in zip(got.bin_edges, edges):
        np.testing.assert_allclose(one.cpu().numpy(), other, rtol=1e-12)
    many = np.zeros((2, 33))
    with pytest.raises(RuntimeError, match=r"^histogramdd: .*at most 32 coordinates"):
        ptcore.histogramdd(ptcore.from_numpy(many).cuda(), [1] * 33)


@pytest.mark.parametrize("dtype", WHOLE)
def test_bincount(dtype):
    x = np.random.default_rng(4).integers(0, 100, 9001).astype(dtype)
    t = ptcore.from_numpy(x).cuda()
    got = ptcore.bincount(t, minlength=130)
    assert got.dtype == ptcore.int64
    np.testing.assert_array_equal(got.cpu().numpy(), np.bincount(x.astype(np.int64), minlength=130))
    np.testing.assert_array_equal(ptcore.bincount(t[::2]).cpu().numpy(), np.bincount(x[::2].astype(np.int64)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_bincount_with_weights(dtype):
    rng = np.random.default_rng(5)
    x, w = rng.integers(0, 20000, 6000), rng.integers(-5, 6, 6000).astype(dtype)
    got = ptcore.bincount(ptcore.from_numpy(x).cuda(), ptcore.from_numpy(w).cuda())
    assert got.dtype == (ptcore.float32 if dtype == "float32" else ptcore.float64)
    np.testing.assert_array_equal(got.cpu().numpy(), np.bincount(x, w))


def test_nothing():
    x = ptcore.tensor([], dtype=ptcore.int64, device="cuda")
    assert ptcore.bincount(x).shape == (0,)
    assert ptcore.bincount(x, minlength=3).tolist() == [0, 0, 0]
    assert ptcore.histc(x.float(), 3, 0, 1).tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match=r"^bincount: .*non-negative"):
        ptcore.bincount(ptcore.tensor([1, -1], device="cuda"))
