"""``round(decimals=)``, ``where`` with one argument, conditions that are no bool, against NumPy and
Python's decimal arithmetic."""
import math
from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import pytest

import ptcore as pt

pytestmark = pytest.mark.core


@pytest.mark.parametrize("decimals", range(-4, 6))
def test_round_to_decimals(decimals):
    rng = np.random.default_rng(decimals + 10)
    x = rng.uniform(-30000, 30000, 257)
    want = [float(Decimal(v).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_EVEN)) for v in x.tolist()]
    for dtype, rtol in ((pt.float64, 4e-16), (pt.float32, 3e-7)):
        data = pt.tensor(x).to(dtype)
        got = pt.round(data, decimals=decimals)
        assert got.dtype is dtype
        # float32 may round a number near a half to the other side
        step = 10.0 ** -decimals if dtype is pt.float32 else 0
        near = np.abs(got.to(pt.float64).numpy() - want) <= step + rtol * np.abs(want)
        assert near.all()
        np.testing.assert_array_equal(data.round(decimals=decimals).numpy(), got.numpy())
        np.testing.assert_array_equal(data.clone().round_(decimals=decimals).numpy(), got.numpy())
        out = pt.empty(0, dtype=dtype)
        assert pt.round(data, decimals=decimals, out=out) is out
        np.testing.assert_array_equal(out.numpy(), got.numpy())


def test_round_of_halves_and_special_values():
    assert pt.round(pt.tensor([0.125, 0.375, -0.125, 2.5]), decimals=2).tolist() == pytest.approx(
        [0.12, 0.38, -0.12, 2.5])
    assert pt.round(pt.tensor([50.0, 150.0, -250.0]), decimals=-2).tolist() == [0, 200, -200]
    special = pt.round(pt.tensor([math.nan, math.inf, -math.inf]), decimals=3).tolist()
    assert math.isnan(special[0])
    assert special[1:] == [math.inf, -math.inf]
    assert pt.round(pt.tensor([2.5, 3.5]), decimals=0).tolist() == [2, 4]
    assert math.isnan(pt.round(pt.tensor([1.5], dtype=pt.float64), decimals=400).item())


def test_round_refusals_and_gradient():
    with pytest.raises(NotImplementedError, match="dtype must be one of float16"):
        pt.round(pt.tensor([12]), decimals=-1)
    with pytest.raises(TypeError, match="round: decimals must be int, got float"):
        pt.round(pt.tensor([1.0]), decimals=1.5)
    x = pt.tensor([1.26], requires_grad=True)
    y = pt.round(x, decimals=1)
    assert y.grad_fn.name() == "RoundBackward1"
    y.sum().backward()
    assert x.grad.tolist() == [0]


@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4), (2, 0, 3), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["bool", "int64", "float32"])
def test_where_of_a_condition(shape, dtype):
    data = np.random.default_rng(1).integers(0, 2, shape).astype(dtype)
    got = pt.where(pt.from_numpy(np.array(data)))
    want = np.where(np.atleast_1d(data))
    assert type(got) is tuple
    assert [g.tolist() for g in got] == [w.tolist() for w in want]
    assert all(g.dtype is pt.int64 for g in got)


def test_where_arguments():
    x = pt.tensor([1.0, 2.0])
    mask = pt.tensor([True, False])
    assert x.where(mask, 0).tolist() == [1, 0]
    assert x.where(mask, pt.tensor([5, 6])).tolist() == [1, 6]
    for call in (lambda: pt.where([1, 2]), lambda: pt.where(mask, x), lambda: pt.where(mask, other=x)):
        with pytest.raises(TypeError, match=r"^where: "):
            call()


def test_conditions_are_bool():
    x, other = pt.zeros(2), pt.ones(2)
    for condition in (pt.tensor([1, 0]), pt.tensor([1.0, 0.0])):
        name = condition.dtype.name
        for call, text in (
                (lambda c=condition: pt.where(c, x, other), "where: condition"),
                (lambda c=condition: pt.where(c, 1, 2), "where: condition"),
                (lambda c=condition: x.masked_fill(c, 1), "masked_fill: mask"),
                (lambda c=condition: x.masked_fill_(c, 1), "masked_fill: mask"),
                (lambda c=condition: x.masked_select(c), "masked_select: mask")):
            with pytest.raises(RuntimeError, match=f"{text} must have dtype bool, got {name}"):
                call()
    assert x.tolist() == [0, 0]
