"""Copies that transpose, in squares of one vector, and rows that are selected by whole vectors: every size around those
where a square or a vector ends. The oracle is NumPy."""
import numpy as np
import pytest

import ptcore

pytestmark = pytest.mark.core

SIZES = [*range(1, 20), 31, 32, 33, 63, 64, 65, 130]


def numbers(shape, dtype):
    return np.random.default_rng(0).integers(0, 250, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["uint8", "bool", "int16", "float32", "int64", "complex64", "complex128"])
@pytest.mark.parametrize("rows", SIZES)
def test_squares(dtype, rows):
    for columns in SIZES:
        x = numbers((rows, columns), dtype)
        t = ptcore.from_numpy(x)
        np.testing.assert_array_equal(t.t().contiguous().numpy(), x.T)
        np.testing.assert_array_equal(t.t().flip(0).numpy(), x.T[::-1])
        np.testing.assert_array_equal(t[:, 1:].t().contiguous().numpy(), x[:, 1:].T)
        into = ptcore.zeros(columns, rows, dtype=t.dtype)
        into.t().copy_(t)
        np.testing.assert_array_equal(into.numpy(), x.T)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
def test_images(dtype):
    x = numbers((3, 5, 37, 41), dtype)
    t = ptcore.from_numpy(x)
    for order in ((0, 2, 3, 1), (0, 3, 1, 2), (3, 2, 1, 0), (1, 0, 3, 2), (2, 0, 3, 1)):
        np.testing.assert_array_equal(t.permute(order).contiguous().numpy(), x.transpose(order))
        np.testing.assert_array_equal((t.permute(order) + 0).numpy(), x.transpose(order))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 64, 65, 128, 129, 300])
def test_selected_rows(dtype, width):
    rng = np.random.default_rng(1)
    x, at = numbers((3, 11, width), dtype), rng.integers(0, 11, 50)
    t, index = ptcore.from_numpy(x), ptcore.from_numpy(at)
    np.testing.assert_array_equal(t.index_select(1, index).numpy(), x[:, at])
    np.testing.assert_array_equal(t[0].index_select(0, index[::3]).numpy(), x[0][at[::3]])
    np.testing.assert_array_equal(t.transpose(0, 1).index_select(0, index).numpy(), x.swapaxes(0, 1)[at])
    np.testing.assert_array_equal(t[:, :, ::2].index_select(1, index).numpy(), x[:, at, ::2])
    np.testing.assert_array_equal(t.transpose(1, 2).index_select(2, index).numpy(), x.swapaxes(1, 2)[:, :, at])
