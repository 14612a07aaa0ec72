"""Shifts of integers by every count, in the forms that have loops of their own. The oracle is Python's integers."""
import numpy as np
import pytest

import ptcore

pytestmark = pytest.mark.core


def shifted(x, y, bits, signed, left):
    """Bits that leave are lost; a negative count or one of at least the width shifts all of them out."""
    if not 0 <= y < bits:
        return -1 if signed and x < 0 and not left else 0
    wrapped = (x << y if left else x >> y) & ((1 << bits) - 1)
    return wrapped - (1 << bits) if signed and wrapped >> (bits - 1) else wrapped


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("left", [True, False])
def test_every_count(dtype, left):
    info = np.iinfo(dtype)
    signed, bits = info.min < 0, info.bits
    numbers = sorted({*range(max(info.min, -130), 130), info.min, info.max, info.max // 3})
    numbers = np.array([v for v in numbers if info.min <= v <= info.max], dtype)
    counts = [v for v in (*range(-2, bits + 3), info.max) if info.min <= v]
    want = np.array([[shifted(int(x), y, bits, signed, left) for x in numbers] for y in counts], dtype)
    op = ptcore.bitwise_left_shift if left else ptcore.bitwise_right_shift
    t, c = ptcore.from_numpy(numbers), ptcore.tensor(counts, dtype=getattr(ptcore, dtype))
    np.testing.assert_array_equal(op(t, c[:, None]).numpy(), want)
    np.testing.assert_array_equal(op(t.expand(len(counts), -1).contiguous(),
                                     c[:, None].expand(-1, len(numbers)).contiguous()).numpy(), want)
    np.testing.assert_array_equal(op(t[:, None], c).numpy(), want.T)
    for y, row in zip(counts, want):
        np.testing.assert_array_equal(op(t, y).numpy(), row)
