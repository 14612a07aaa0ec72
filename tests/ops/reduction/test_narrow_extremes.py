"""``amax`` and ``amin`` of narrow integers, which are compared in their own type."""
import numpy as np
import pytest

import ptcore as pt


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint16"])
@pytest.mark.parametrize("shape", [(1,), (7,), (1000,), (3, 5, 70), (64, 64), (300, 3)])
def test_extremes(dtype, shape):
    limits = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(limits.min, limits.max + 1, shape).astype(dtype)
    t = pt.from_numpy(x)
    for ours, theirs in ((t, x), (t.flip(0), x[::-1]), (t[..., ::2], x[..., ::2]), (t.permute(*range(x.ndim)[::-1]), x.T)):
        for dim in (None, *range(x.ndim)):
            for f, g in ((pt.amax, np.max), (pt.amin, np.min)):
                got = f(ours) if dim is None else f(ours, dim)
                assert got.dtype is t.dtype
                np.testing.assert_array_equal(got.numpy(), g(theirs, axis=dim))


def test_bools_of_any_byte():
    x = pt.tensor([[0, 255], [3, 0]], dtype=pt.uint8).view(pt.bool)
    assert x.amax().view(pt.uint8).item() == 1 and x.amin(1).view(pt.uint8).tolist() == [0, 0]
    assert x.amax(0).view(pt.uint8).tolist() == [1, 1]
