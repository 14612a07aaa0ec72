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
         "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
         "signbit": np.zeros_like, "isposinf": np.zeros_like, "isneginf": np.zeros_like}
BINARY = {"add": np.add, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum, "clamp_min": np.maximum,
          "clamp_max": np.minimum, "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal,
          "gt": np.greater, "ge": np.greater_equal, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
          "bitwise_xor": np.bitwise_xor, "logical_and": np.logical_and, "logical_or": np.logical_or,
          "logical_xor": np.logical_xor, "heaviside": np.logical_or, "fmax": np.maximum, "fmin": np.minimum}
APART = {"where", "masked_fill", "assign", "add_scaled"}


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
def test_scaled_sums(step):
    a, b = tensors(step)
    for alpha in (0, 1, 2, True, False):
        same(ptcore.add(a, b, alpha=alpha), (A != 0) | ((B != 0) & bool(alpha)))


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


CASTS = [d for d in ptcore._ops.table.schema.ALL if d not in ("bool", "bfloat16")]


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("dtype", CASTS)
def test_casts(dtype, step):
    a, _ = tensors(step)
    expected = (A != 0).astype(dtype)
    same(a.to(getattr(ptcore, dtype)), expected)
    same(ptcore.zeros(len(A), dtype=getattr(ptcore, dtype)).copy_(a), expected)
    same(a.to(getattr(ptcore, dtype)).to(ptcore.bool), A != 0)


def test_promotion():
    a, _ = tensors()
    same(a + 1, (A != 0) + np.int64(1))
    same(a * ptcore.ones(len(A)), (A != 0).astype(np.float32))
    assert a.to(ptcore.bfloat16).to(ptcore.float32).numpy().max() == 1


REDUCTIONS = {
    "sum": (lambda t, d: t.sum(d), lambda x, d: x.sum(d)),
    "prod": (lambda t, d: t.prod() if d is None else t.prod(d), lambda x, d: x.prod(d)),
    "mean": (lambda t, d: t.mean(d, dtype=ptcore.float64), lambda x, d: x.mean(d)),
    "sum into float": (lambda t, d: t.sum(d, dtype=ptcore.float64), lambda x, d: x.sum(d).astype(float)),
    "sum into bool": (lambda t, d: t.sum(d, dtype=ptcore.bool), lambda x, d: x.any(d)),
    "count_nonzero": (lambda t, d: t.count_nonzero(d), lambda x, d: np.asarray(np.count_nonzero(x, d))),
    "any": (lambda t, d: t.any() if d is None else t.any(d), lambda x, d: x.any(d)),
    "all": (lambda t, d: t.all() if d is None else t.all(d), lambda x, d: x.all(d)),
    "amax": (lambda t, d: t.amax() if d is None else t.amax(d), lambda x, d: x.max(d)),
    "amin": (lambda t, d: t.amin() if d is None else t.amin(d), lambda x, d: x.min(d)),
    "argmax": (lambda t, d: t.argmax(d), lambda x, d: x.argmax(d)),
    "argmin": (lambda t, d: t.argmin(d), lambda x, d: x.argmin(d)),
}


@pytest.mark.parametrize("shape", [(320,), (4, 80), (80, 4), (2, 5, 32)])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, shape):
    """256 and more true values as well: their number must not wrap in a byte."""
    run, reference = REDUCTIONS[name]
    for data in (A, np.where(A == 0, 7, A)):
        x = data.reshape(shape)
        for view in (x, x[::-1], x.T):
            for dim in (None, *range(view.ndim)):
                same(run(ptcore.from_numpy(view.view(bool)), dim), np.asarray(reference(view != 0, dim)))


@pytest.mark.parametrize("step", [1, 3])
def test_scans_and_order(step):
    a, _ = tensors(step)
    truth = A != 0
    same(a.cumsum(0), truth.cumsum())
    same(a.cumprod(0), truth.astype(np.int64).cumprod())
    same(a.cumsum(0, dtype=ptcore.bool), np.logical_or.accumulate(truth))
    same(a.cumprod(0, dtype=ptcore.bool), np.logical_and.accumulate(truth))
    for n in (20, len(A)):
        for descending in (False, True):
            order = np.argsort(-truth[:n].astype(int) if descending else truth[:n], kind="stable")
            same(a[:n].argsort(descending=descending, stable=True), order)
        np.testing.assert_array_equal(a[:n].topk(5).indices.numpy(), np.flatnonzero(truth[:n])[:5])
    same(a.nonzero(), np.argwhere(truth))
    at = ptcore.zeros(len(A), dtype=ptcore.int64)
    same(ptcore.zeros(2, dtype=ptcore.bool).index_put((at,), a, accumulate=True), np.array([True, False]))


def test_readers():
    a, _ = tensors()
    assert a.tolist() == (A != 0).tolist()
    assert str(a[:4]) == "tensor([False,  True,  True,  True])"
    assert ptcore.equal(a, ptcore.from_numpy(A != 0))
    assert a[3:4].sum() == 1
    assert int(a[3]) == 1
    assert float(a[3]) == 1.0
