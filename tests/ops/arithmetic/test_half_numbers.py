"""Numbers beside tensors of half types: taken as they are in arithmetic, refused where the type cannot hold them."""
import math

import numpy as np
import pytest
from _cases import ELEMENTWISE, dtypes, function, run_args
from _halves import HALVES, is_near
from _walk import walk

import ptcore as pt

pytestmark = pytest.mark.core

NUMBERS = (70_000, 1e5, -1e-9, 1 / 3, 1e-5, 2.5)
ARITHMETIC = [r for r in ELEMENTWISE if len(r.tensors) > 1 and not r.selects and r.out == "same"
              and set(HALVES) <= set(dtypes(r)) and all(a.letter == "T" for a in r.tensors)]


def called(row, x, number, place):
    """The row with a number in the place of one of its tensors."""
    args, k = [], 0
    for a in run_args(row):
        if a.is_tensor:
            args.append(number if k == place else x)
            k += 1
        else:
            args.append(a.default if not a.required else 1.5)
    named = {a.name: v for a, v in zip(run_args(row), args) if a.keyword_only}
    return function(row)(*[v for a, v in zip(run_args(row), args) if not a.keyword_only], **named)


@walk("row", [pytest.param(r, id=r.name) for r in ARITHMETIC])
@pytest.mark.parametrize("kind", ["number", "0-d"])
def test_are_used_as_they_are(row, kind):
    for dtype in HALVES:
        x = pt.tensor(np.linspace(0.1, 0.9, 8) * (-1) ** np.arange(8), dtype=dtype)
        for number in NUMBERS:
            for place in range(1 if kind == "number" else 0, len(row.tensors)):
                given = number if kind == "number" else pt.tensor(number, dtype=pt.float32)
                exact = np.float64(np.float32(number)).item()
                got = called(row, x, given, place)
                want = called(row, x.double(), exact if kind == "number" else pt.tensor(exact, dtype=pt.float64), place)
                assert got.dtype is x.dtype
                assert is_near(got.double().numpy(), want.numpy(), dtype).all(), (dtype, number, place, got, want)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", ["mul", "div", "sub", "add", "pow", "hypot", "atan2"])
def test_gradients_beside_scalar_tensors(name, dtype):
    """The 0-d tensor is saved in float32, and its gradient is a float32 sum."""
    for number in (1e5, 1e-5, 0.3):
        found = []
        for wide in (False, True):
            x = pt.tensor([1.0, 2.0, 3.5], dtype="float64" if wide else dtype, requires_grad=True)
            t = pt.tensor(np.float32(number).item(), dtype="float64" if wide else "float32", requires_grad=True)
            for y in (getattr(pt, name)(x, t), getattr(pt, name)(t, x)):
                for create in (False, True):
                    g = pt.tensor([1e-4, 3e-4, 2e-4], dtype=dtype).to(y.dtype)
                    found.append(pt.autograd.grad(y, (x, t), g, retain_graph=True, create_graph=create))
        half, exact = found[:4], found[4:]
        for (gx, gt), (ex, et) in zip(half, exact):
            assert (gx.dtype, gt.dtype) == (getattr(pt, dtype), pt.float32)
            assert is_near(gx.detach().double().numpy(), ex.detach().numpy(), dtype).all(), (number, gx, ex)
            assert float(gt) == pytest.approx(float(et), rel=1e-5, abs=1e-12, nan_ok=True)


def test_the_roadmap_s_gradients():
    x, big = pt.tensor([2.0], dtype=pt.float16, requires_grad=True), pt.tensor(100_000.0)
    g = pt.tensor([1e-4], dtype=pt.float16)
    assert pt.autograd.grad(x * big, x, g)[0].item() == pytest.approx(10, rel=1e-3)
    y = pt.tensor([6e4], dtype=pt.float16)
    assert pt.autograd.grad(x / big, x, y)[0].item() == pytest.approx(0.6, rel=1e-3)
    assert pt.nanmean(pt.ones(70_000, dtype=pt.float16)).item() == 1
    assert pt.add(pt.ones(2, dtype=pt.float16), pt.full((2,), 6e4, dtype=pt.float16), alpha=1e-9).tolist() == [1, 1]
    assert (pt.full((2,), -6e4, dtype=pt.float16) + 70_000).tolist() == [10_000, 10_000]


REFUSED = {
    "clamp: max": lambda x: pt.clamp(x, -1, 1e6), "clamp: min": lambda x: pt.clamp(x, -1e6, 1),
    "clamp": lambda x: pt.clamp(x, max=1e6), "clamp_min": lambda x: pt.clamp_min(x, -1e6),
    "clamp_: max": lambda x: x.clamp_(0, 1e6), "hardtanh": lambda x: pt.nn.functional.hardtanh(x, -1e6, 1e6),
    "clamp_max": lambda x: x.clamp_max(1e6), "fill_": lambda x: x.fill_(1e6),
    "masked_fill": lambda x: x.masked_fill(x > 0, 1e6), "index_fill": lambda x: x.index_fill(0, pt.tensor([0]), 1e6),
    "threshold: value": lambda x: pt.nn.functional.threshold(x, 0.5, 1e6),
    "pad: value": lambda x: pt.nn.functional.pad(x, (1, 1), value=1e6),
    "hardshrink: lambd": lambda x: pt.nn.functional.hardshrink(x, 1e6),
    "softshrink: lambd": lambda x: pt.nn.functional.softshrink(x, 1e6),
    "scatter": lambda x: x.scatter(0, pt.tensor([0]), 1e6), "full": lambda x: pt.full_like(x, 1e6),
}


@pytest.mark.parametrize("where", REFUSED)
def test_are_refused_where_they_would_be_elements(where):
    with pytest.raises(RuntimeError, match=r"1000000\.0 cannot be converted to float16 without overflow"):
        REFUSED[where](pt.ones(4, dtype=pt.float16))
    REFUSED[where](pt.ones(4, dtype=pt.bfloat16))           # it holds 1e6
    assert math.isinf(pt.nn.functional.pad(pt.ones(1, dtype=pt.float16), (1, 0), value=math.inf)[0].item())
