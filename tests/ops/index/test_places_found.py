"""Positions that are found, written and repeated, at the sizes where a kernel's runs and reads begin and end."""
import numpy as np
import pytest

import ptcore

pytestmark = pytest.mark.core

SHAPES = [(1,), (4095,), (4096,), (4097,), (70_000,), (3, 5), (2, 4097), (5000, 4), (70, 1001), (3, 4, 5), (2, 1, 4100),
          (1025, 2, 3), (0,), (3, 0), (0, 3), (2, 2, 2, 2)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_nonzero(shape, share):
    rng = np.random.default_rng(0)
    x = np.where(rng.random(shape) < share, rng.integers(1, 100, shape), 0)
    np.testing.assert_array_equal(ptcore.nonzero(ptcore.from_numpy(x)).numpy(), np.argwhere(x))
    turned = ptcore.from_numpy(np.ascontiguousarray(x.T)).permute(tuple(range(x.ndim))[::-1])
    np.testing.assert_array_equal(ptcore.nonzero(turned).numpy(), np.argwhere(x))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("share", [0.0, 0.0002, 0.5, 1.0])
@pytest.mark.parametrize("fill", [-1, 7])
def test_first_places(shape, share, fill):
    x = np.random.default_rng(1).random(shape) < share
    want = np.argwhere(x)
    for size in {0, 1, 10, len(want) - 1, len(want), len(want) + 1} - {-1}:
        found = ptcore.nonzero_static(ptcore.from_numpy(x), size=size, fill_value=fill).numpy()
        more = np.full((max(size - len(want), 0), x.ndim), fill)
        np.testing.assert_array_equal(found, np.concatenate([want[:size], more]))


@pytest.mark.parametrize("before", [0, 1023, 1024, 1027, 1028, 1029, 4111, 4112, 70_000])
def test_first_places_behind_zeros(before):
    x = np.zeros(before + 5, "float32")
    x[before] = x[before + 2] = 1
    for size, want in ((1, [before]), (2, [before, before + 2]), (3, [before, before + 2, -1])):
        found = ptcore.nonzero_static(ptcore.from_numpy(x), size=size)
        assert found.tolist() == [[k] for k in want] and found.untyped_storage().nbytes() == 8 * size


@pytest.mark.parametrize("counts", [[], [0], [3], [0, 0], [2, 0, 3], [0, 1, 0], [1, 0, 0], [0, 0, 4]])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_repeats(counts, dtype):
    counts = np.array(counts, dtype)
    x = np.arange(3.0 * len(counts)).reshape(len(counts), 3)
    t, r = ptcore.from_numpy(x), ptcore.from_numpy(counts)
    np.testing.assert_array_equal(t.repeat_interleave(r, 0).numpy(), np.repeat(x, counts, 0))
    np.testing.assert_array_equal(t.t().repeat_interleave(r, 1).numpy(), np.repeat(x.T, counts, 1))
    np.testing.assert_array_equal(ptcore.repeat_interleave(r).numpy(), np.repeat(np.arange(len(counts)), counts))


def test_many_repeats():
    rng = np.random.default_rng(2)
    counts = rng.integers(0, 5, 100_000)
    x = rng.random(100_000)
    found = ptcore.from_numpy(x).repeat_interleave(ptcore.from_numpy(counts))
    np.testing.assert_array_equal(found.numpy(), np.repeat(x, counts))


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_copies_to_the_last_dim(dtype, step):
    rng = np.random.default_rng(3)
    x, source = (rng.integers(0, 2, (300, n)).astype(dtype) for n in (40, 200))
    index = rng.integers(0, 40, 400)[::4][::step].copy()
    source = source[:, ::2][:, ::step][:, :len(index)]
    want = x.copy()
    for k, at in enumerate(index):              # of equal positions the last one stays
        want[:, at] = source[:, k]
    found = ptcore.from_numpy(x).index_copy(-1, ptcore.from_numpy(index), ptcore.from_numpy(source))
    np.testing.assert_array_equal(found.numpy(), want)


@pytest.mark.parametrize("n", [0, 1, 2, 4097, 50_000])
def test_runs(n):
    x = np.sort(np.random.default_rng(4).integers(0, max(n // 3, 1), n))
    x[: n // 2] = x[: n // 2][::-1].copy()
    begins = np.flatnonzero(np.concatenate([np.ones(min(n, 1), bool), x[1:] != x[:-1]]))
    values, inverse, counts = ptcore.unique_consecutive(ptcore.from_numpy(x), return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(values.numpy(), x[begins])
    np.testing.assert_array_equal(counts.numpy(), np.diff(np.append(begins, n)) if n else [])
    np.testing.assert_array_equal(values.numpy()[inverse.numpy()], x)
    got, want = ptcore.unique(ptcore.from_numpy(x), return_counts=True), np.unique(x, return_counts=True)
    for a, b in zip(got, want):
        np.testing.assert_array_equal(a.numpy(), b)
