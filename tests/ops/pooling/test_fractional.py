"""Fractional max pooling against NumPy: the windows that Graham's sequence gives, and where the maxima lie."""
import itertools

import numpy as np
import pytest

import ptcore

pytestmark = pytest.mark.core


def starts(sample, size, window, count):
    """Where the windows along a dim begin: steps of ``(size - window) / (count - 1)`` from a random phase."""
    step = (size - window) / (count - 1) if count > 1 else 0
    return [int((i + sample) * step) - int(sample * step) for i in range(count - 1)] + [size - window]


def pooled(a, window, counts, samples):
    values, places = np.empty((*a.shape[:2], *counts)), np.empty((*a.shape[:2], *counts), np.int64)
    for n, c in np.ndindex(a.shape[:2]):
        begin = [starts(samples[n, c, d], a.shape[d + 2], window[d], counts[d]) for d in range(len(counts))]
        for at in np.ndindex(counts):
            cells = itertools.product(*[range(begin[d][at[d]], begin[d][at[d]] + window[d]) for d in range(len(counts))])
            best = max(cells, key=lambda cell, n=n, c=c: a[(n, c, *cell)])
            values[(n, c, *at)] = a[(n, c, *best)]
            places[(n, c, *at)] = np.ravel_multi_index(best, a.shape[2:])
    return values, places


@pytest.mark.parametrize(("name", "size", "window", "counts"), [
    ("fractional_max_pool2d_with_indices", (7, 9), (2, 3), (3, 4)),
    ("fractional_max_pool2d_with_indices", (5, 5), (2, 2), (1, 4)),
    ("fractional_max_pool3d_with_indices", (6, 7, 8), (2, 2, 3), (3, 4, 5)),
    ("fractional_max_pool3d_with_indices", (4, 4, 4), (4, 1, 2), (1, 4, 2))])
def test_windows(name, size, window, counts):
    rng = np.random.default_rng(5)
    a = rng.permutation(2 * 3 * int(np.prod(size))).reshape(2, 3, *size).astype(float)
    samples = rng.uniform(size=(2, 3, len(size)))
    order = [0, 1, 2] if len(size) == 3 else [1, 0]             # of images they are of the width, then of the height
    values, places = pooled(a, window, counts, samples[..., order])
    given = {"output_size": counts, "_random_samples": ptcore.tensor(samples)}
    functional, x = ptcore.nn.functional, ptcore.tensor(a)
    assert np.array_equal(getattr(functional, name.removesuffix("_with_indices"))(x, window, **given), values)
    got = getattr(functional, name)(x, window, **given)
    assert np.array_equal(got[0], values) and np.array_equal(got[1], places)


def test_sizes_below_one_are_refused():
    x = ptcore.ones(1, 1, 4, 4)
    for options in ({"output_size": 0}, {"output_size": (0, 1)}, {"output_size": (1, 0)}):
        with pytest.raises(RuntimeError, match="fractional_max_pool2d: output_size must be at least 1, got"):
            ptcore.nn.functional.fractional_max_pool2d(x, 2, **options)
    with pytest.raises(RuntimeError, match="fractional_max_pool2d: kernel_size must be at least 1, got"):
        ptcore.nn.functional.fractional_max_pool2d(x, (0, 2), output_size=1)


def test_names_without_indices():
    """The windows are drawn: each maximum is an element of its channel."""
    for f, dims in ((ptcore.nn.functional.fractional_max_pool2d, 2), (ptcore.nn.functional.fractional_max_pool3d, 3)):
        x = ptcore.arange(2 * 5.0**dims).reshape(1, 2, *[5] * dims)
        y = f(x, 2, output_ratio=0.6)
        assert y.shape == (1, 2, *[3] * dims) and all(set(y[0, c].flatten().tolist()) <= set(
            x[0, c].flatten().tolist()) and y[0, c].max() == x[0, c].max() for c in range(2))
