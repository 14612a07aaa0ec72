"""A byte of bool memory that is neither 0 nor 1 (memory of others, memory not yet written) counts
as True in elementwise loops, masks and conditions."""
import numpy as np
import pytest
from _cases import ELEMENTWISE

import ptcore

pytestmark = pytest.mark.core

BYTES = np.array([0, 1, 2, 190, 255, 0, 128, 1] * 40, np.uint8)
A, B = BYTES, np.roll(BYTES, 3)
UNARY = {"sign": np.positive, "sgn": np.positive, "bitwise_not": np.invert, "logical_not": np.logical_not,
         "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}
BINARY = {"add": np.add, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum, "clamp_min": np.maximum,
          "clamp_max": np.minimum, "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal,
          "gt": np.greater, "ge": np.greater_equal, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
          "bitwise_xor": np.bitwise_xor, "logical_and": np.logical_and, "logical_or": np.logical_or,
          "logical_xor": np.logical_xor}
APART = {"where", "masked_fill", "assign"}


def tensors(step=1):
    return [ptcore.from_numpy(np.repeat(x, step).view(bool)[::step]) for x in (A, B)]


def same(got, expected):
    got = np.asarray(got)
    assert got.dtype == expected.dtype
    assert got.dtype != bool or got.view(np.uint8).max() <= 1
    np.testing.assert_array_equal(got, expected)


def test_every_row_is_here():
    assert {row.name for row in ELEMENTWISE if "bool" in row.types} == {*UNARY, *BINARY, *APART}


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_elementwise(name, step):
    a, b = tensors(step)
    function = getattr(ptcore, name)
    if name in UNARY:
        expected = A != 0 if UNARY[name] is np.positive else UNARY[name](A != 0)
        same(function(a), expected)
    else:
        same(function(a, b), BINARY[name](A != 0, B != 0))
        same(function(a, b[3]), BINARY[name](A != 0, B[3] != 0))


@pytest.mark.parametrize("step", [1, 3])
def test_masks(step):
    a, b = tensors(step)
    x = np.arange(float(len(A)))
    t = ptcore.from_numpy(x)
    same(ptcore.where(a, t, -t), np.where(A != 0, x, -x))
    same(ptcore.where(a, a, b), np.where(A != 0, A != 0, B != 0))
    same(t.masked_fill(a, -1.0), np.where(A != 0, -1.0, x))
    same(t[a], x[A != 0])
    t = t.clone()
    t[a] = 0.0
    same(t, np.where(A != 0, 0.0, x))


@pytest.mark.parametrize("step", [1, 3])
def test_truth(step):
    a, _ = tensors(step)
    assert a.all().item() is False
    assert a[2:5].all().item() is True
    assert a[5].item() is False
    assert bool(a[3]) is True
    assert a[3].item() is True


def test_filling_reads_nothing():
    """New memory has any bytes; the fill overwrites them."""
    assert ptcore.ones(1000, dtype=ptcore.bool).all()
    x = ptcore.from_numpy(BYTES.copy().view(bool))
    assert not x.fill_(False).any()
