"""Numbers that become elements: taken or refused as PyTorch does, by every way that writes a number."""
import math

import pytest
from _walk import every_case

import ptcore

torch = pytest.importorskip("torch")

VALUES = (-257, -256, -255, -129, -128, -1, 0, 127, 128, 255, 256, -0.5, -1.0, 127.5, 128.0, -128.5, -129.0, 255.5, 256.0,
          32767.5, 65535.5, -32768.5, math.nan, math.inf, -math.inf)
WAYS = {
    "full": lambda m, x, v: m.full((2,), v, dtype=x.dtype),
    "full_like": lambda m, x, v: m.full_like(x, v),
    "new_full": lambda m, x, v: x.new_full((2,), v),
    "tensor": lambda m, x, v: m.tensor([v], dtype=x.dtype),
    "scalar_tensor": lambda m, x, v: m.scalar_tensor(v, dtype=x.dtype),
    "fill_": lambda m, x, v: x.fill_(v),
    "masked_fill": lambda m, x, v: x.masked_fill(x > 0, v),
    "index_fill": lambda m, x, v: x.index_fill(0, m.tensor([1]), v),
    "scatter": lambda m, x, v: x.scatter(0, m.tensor([1]), v),
    "fill_diagonal_": lambda m, x, v: x.reshape(2, 1).fill_diagonal_(v),
    "item": lambda m, x, v: x.__setitem__(0, v) or x,
    "slice": lambda m, x, v: x.__setitem__(slice(0, 1), v) or x,
    "mask": lambda m, x, v: x.__setitem__(x > 0, v) or x,
    "index": lambda m, x, v: x.__setitem__(m.tensor([1]), v) or x,
    "threshold": lambda m, x, v: m.nn.functional.threshold(x, 0, v),
}
UINT16 = {"full", "full_like", "new_full", "tensor", "scalar_tensor", "fill_", "item", "slice"}     # PyTorch's kernels


def outcome(m, dtype, way, value):
    try:
        return WAYS[way](m, m.tensor([1, 0]).to(getattr(m, dtype)), value).tolist()
    except (RuntimeError, ValueError, OverflowError):
        return "refused"


@pytest.mark.parametrize("way", WAYS)
def test_ranges(way):
    with every_case() as case:
        for dtype in ("uint8", "int8", "int16", "int32", "int64", *["uint16"] * (way in UINT16)):
            for value in VALUES:
                with case(f"{dtype} {value}"):
                    assert outcome(ptcore, dtype, way, value) == outcome(torch, dtype, way, value)
