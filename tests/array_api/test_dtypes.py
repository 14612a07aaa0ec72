"""Promotion, kinds and casts."""
import itertools
import operator

import numpy as np
import pytest
from _array_api_standard import DTYPES

import ptcore as pt
from ptcore import array_api as xp

pytestmark = pytest.mark.core
KINDS = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
         "complex floating": "c", "numeric": "iufc"}
OPERATORS = ("add", "sub", "mul", "and_", "or_", "xor", "lshift", "rshift", "truediv", "pow", "mod", "floordiv")


def promotes(a, b):
    """The standard's tables: the same kind, integers of both kinds but uint64, real with complex."""
    a, b = np.dtype(a), np.dtype(b)
    if {a.kind, b.kind} == {"i", "u"}:
        return "uint64" not in (a.name, b.name)
    return a.kind == b.kind or {a.kind, b.kind} == {"f", "c"}


PAIRS = [pair for pair in itertools.product(DTYPES, DTYPES) if promotes(*pair)]


@pytest.mark.parametrize("a, b", PAIRS, ids="-".join)
def test_promotion(a, b):
    """Shapes take no part in it: an array without dims weighs as one with dims."""
    want = getattr(xp, np.result_type(np.dtype(a), np.dtype(b)).name)
    assert xp.result_type(getattr(xp, a), getattr(xp, b)) is want
    for shapes in itertools.product([(), (1,), (2, 1), (0,)], repeat=2):
        if shapes == ((2, 1), (0,)) or shapes == ((0,), (2, 1)):
            continue
        x, y = (xp.ones(s, dtype=getattr(xp, d)) for s, d in zip(shapes, (a, b)))
        assert xp.result_type(x, y) is want
        assert xp.result_type(x, getattr(xp, b)) is want
        assert xp.where(xp.asarray(True), x, y).dtype is want
        assert xp.equal(x, y).dtype is (x == y).dtype is xp.bool
        if want.kind != "b":
            assert (x * y).dtype is xp.multiply(x, y).dtype is (x + y).dtype is want
            assert (y * x).dtype is want
        if want.kind in "biu":
            assert (x & y).dtype is xp.bitwise_xor(x, y).dtype is want
        if want.kind in "iuf":
            assert xp.maximum(x, y).dtype is want
            assert xp.less(x, y).dtype is xp.bool


def test_values_are_compared_as_promoted():
    """A 0-d int16 of -156 is 100 as uint8."""
    assert not bool(xp.asarray(-156, dtype=xp.int16) >= xp.asarray([14], dtype=xp.uint8))
    assert bool(xp.all(xp.asarray([300, 2], dtype=xp.uint16) > xp.asarray(1, dtype=xp.int8)))


def test_tensors_that_are_not_of_the_namespace_promote_as_in_torch():
    x, zero = pt.ones(2, dtype=pt.int8), pt.tensor(1, dtype=pt.int64)
    assert (x + zero).dtype is pt.int8
    assert (pt.ones(2) * pt.tensor(2.0, dtype=pt.float64)).dtype is pt.float32
    assert (xp.asarray(x) + zero).dtype is pt.int8                      # the 0-d one decides
    assert (x + xp.asarray(zero)).dtype is pt.int64
    assert (x + zero).dtype is pt.int8                                  # asarray marks no tensor of the user's


@pytest.mark.parametrize("make", [
    lambda x: x + x, lambda x: -x, lambda x: x[0, ...], lambda x: xp.sum(x), lambda x: x.sum(), lambda x: x * 2,
    lambda x: 2 * x, lambda x: xp.reshape(x, (-1,)), lambda x: x.T, lambda x: x[x > 0], lambda x: xp.matmul(x, x),
    lambda x: x @ x, lambda x: xp.sort(x), lambda x: x.to(pt.float64), lambda x: xp.astype(x, xp.int8),
    lambda x: x == x, lambda x: xp.real(x.to(pt.complex64)), lambda x: xp.linalg.svd(x)[1], lambda x: xp.max(x),
    lambda x: x.detach(), lambda x: x[:, None] * pt.ones(2), lambda x: pt.ones(2, 2) * x,
    lambda x: pt.ones(2) + x[1, ...], lambda x: x.clone(), lambda x: xp.concat([x, x]), lambda x: xp.stack([x, x]),
    lambda x: xp.where(x > 0, x, 0), lambda x: xp.unstack(x)[0], lambda x: xp.var(x),
    lambda x: xp.take(x, pt.tensor([0]), axis=0), lambda x: xp.expand_dims(x, axis=0),
    lambda x: xp.broadcast_to(x, (3, 2, 2)), lambda x: xp.unique_values(x), lambda x: xp.cumulative_sum(x, axis=0),
    lambda x: xp.linalg.inv(x), lambda x: xp.linalg.solve(x, x), lambda x: xp.std(x),
    lambda x: xp.meshgrid(x[0, ...])[0]])
def test_results_inherit_the_promotion(make):
    x = xp.asarray([[2.0, 1.0], [1.0, 3.0]])
    out = make(x)
    assert out._is_standard
    assert not make(pt.tensor([[2.0, 1.0], [1.0, 3.0]]))._is_standard


@pytest.mark.parametrize("make", [
    lambda: xp.asarray(1), lambda: xp.asarray([1.0]), lambda: xp.asarray(np.ones(2)), lambda: xp.asarray(pt.ones(2)),
    lambda: xp.zeros(1), lambda: xp.ones(1), lambda: xp.empty(1), lambda: xp.full(1, 2), lambda: xp.arange(3),
    lambda: xp.linspace(0, 1, 3), lambda: xp.eye(2), lambda: xp.eye(2, k=1), lambda: xp.zeros_like(pt.ones(1)),
    lambda: xp.ones_like(pt.ones(1)), lambda: xp.empty_like(pt.ones(1)), lambda: xp.full_like(pt.ones(1), 2),
    lambda: xp.from_dlpack(np.ones(2)), lambda: xp.from_dlpack(pt.ones(2)), lambda: xp.arange(0),
    lambda: xp.full(2, xp.asarray(3)), lambda: xp.linspace(0, 1j, 3), lambda: xp.asarray(xp.ones(1), copy=True)])
def test_what_is_made_is_marked(make):
    assert make()._is_standard


@pytest.mark.parametrize("name", DTYPES)
def test_python_numbers_are_weak(name):
    dtype = getattr(xp, name)
    for shape in ((), (2,)):
        x = xp.ones(shape, dtype=dtype)
        for number in (True, 2, 1.5, 2j):
            kind = np.asarray(number).dtype.kind
            if kind == "b" != dtype.kind or "bifc".index(kind) > "bifc".index(dtype.kind.replace("u", "i")):
                continue
            if kind == "b":
                assert (x & number).dtype is (number | x).dtype is dtype
                continue
            if dtype.kind == "b":
                continue
            for function in (operator.add, operator.mul, xp.add, xp.multiply, xp.subtract):
                assert function(x, number).dtype is function(number, x).dtype is dtype
            assert xp.result_type(x, number) is xp.result_type(number, dtype) is dtype
            if dtype.kind in "iuf":
                assert xp.maximum(x, number).dtype is xp.minimum(number, x).dtype is dtype
            assert xp.where(x == 1, x, number).dtype is xp.where(x == 1, number, x).dtype is dtype
    if dtype.kind in "iu":
        assert xp.result_type(dtype, 1.0) is pt.float32
    if name == "float64":
        assert xp.result_type(dtype, 1j) is pt.complex128


def test_result_type_of_other_arguments():
    assert xp.result_type(1, 2.0) is pt.float32
    assert xp.result_type(True) is pt.bool
    assert xp.result_type(xp.int8, np.float64(1.0)) is pt.float64
    assert xp.result_type(np.dtype("int16"), xp.int8) is pt.int16
    assert xp.result_type(*[xp.float32] * 3, xp.float64) is pt.float64
    with pytest.raises(ValueError, match="at least one"):
        xp.result_type()
    with pytest.raises(TypeError, match="result_type"):
        xp.result_type("word")


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_isdtype(name, kind):
    dtype = getattr(xp, name)
    assert xp.isdtype(dtype, kind) == (dtype.kind in KINDS[kind])
    assert xp.isdtype(dtype, kind=(dtype, kind))
    assert not xp.isdtype(dtype, ())
    assert [d for d in DTYPES if xp.isdtype(dtype, kind=getattr(xp, d))] == [name]
    with pytest.raises(ValueError, match="kind must be a dtype or one of 'bool'"):
        xp.isdtype(dtype, "float")


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("b", DTYPES)
def test_can_cast_and_astype(a, b):
    da, db = getattr(xp, a), getattr(xp, b)
    if promotes(a, b):
        want = np.can_cast(np.dtype(a), np.dtype(b), "safe")
        assert xp.can_cast(da, db) == xp.can_cast(xp.zeros(2, dtype=da), db) == want
    values = [0, 1] if da.kind == "b" else [0, 1, 100]
    x = xp.asarray(values, dtype=da)
    out = xp.astype(x, db)
    assert out.dtype is db
    assert out is not x
    if not (da.kind == "c" and db.kind != "c"):
        np.testing.assert_array_equal(np.asarray(out), np.asarray(values).astype(a).astype(b))
    assert (xp.astype(x, db, copy=False) is x) == (a == b)
    if a == b:
        assert out.data_ptr() != x.data_ptr()
    assert xp.astype(x, db, device="cpu").dtype is db


def test_finfo_and_iinfo():
    for name in ("float32", "float64", "complex64", "complex128"):
        got, want = xp.finfo(getattr(xp, name)), np.finfo(name)
        for attribute in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(got, attribute) == getattr(want, attribute), attribute
            assert type(getattr(got, attribute)) is (int if attribute == "bits" else float)
        assert got.dtype is getattr(xp, want.dtype.name)
        assert xp.finfo(xp.ones(1, dtype=getattr(xp, name))).eps == want.eps
    for name in DTYPES[1:9]:
        got, want = xp.iinfo(getattr(xp, name)), np.iinfo(name)
        assert (got.bits, got.max, got.min) == (want.bits, want.max, want.min)
        assert got.dtype is getattr(xp, name)
        assert xp.iinfo(xp.ones(1, dtype=getattr(xp, name))).max == want.max
    with pytest.raises(TypeError, match="finfo"):
        xp.finfo(xp.int8)
    with pytest.raises(TypeError, match="iinfo"):
        xp.iinfo(xp.float32)


@pytest.mark.parametrize("name", OPERATORS)
def test_in_place_operators_keep_the_dtype(name):
    x = xp.asarray([4, 6], dtype=xp.int16) if name != "truediv" else xp.asarray([4.0, 6.0], dtype=xp.float32)
    y = xp.asarray(2, dtype=xp.int8) if name != "truediv" else xp.asarray(2.0, dtype=xp.float32)
    want = getattr(operator, name)(np.asarray(x), np.asarray(y))
    out = getattr(operator, "i" + name.rstrip("_"))(x, y)
    assert out is x
    np.testing.assert_array_equal(np.asarray(out), want)
