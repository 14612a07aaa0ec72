"""Every row as a plan: forward and backward, on the data that it was recorded with and on other data, bit for bit what
the row gives."""
import sys
from pathlib import Path

import pytest

import ptcore as pt
from ptcore._ops import run
from ptcore.func import vjp
from ptcore.fx.experimental.proxy_tensor import make_fx
from ptcore.jit._plan import Planned

sys.path.insert(0, str(Path(__file__).parent.parent / "ops"))
sys.path.insert(0, str(Path(__file__).parent.parent / "fx"))
from _cases import case_id, cases, dtypes
from test_gradient import differentiable_arguments, small_cases
from test_make_fx_rows import BACKWARD, BY_VALUES, FORWARD, arguments, assert_equal, flat, put, seeded


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in FORWARD])
def test_forward(row):
    dtype = next((d for d in ("float32", "complex64", "int64") if d in dtypes(row)), dtypes(row)[0])
    for case in small_cases(row)[:3] or cases(row)[:3]:
        where = case_id(row, case)
        first, second = arguments(row, case, dtype, 3), arguments(row, case, dtype, 4)

        def f(*tensors, first=first):
            return run(row.name, put(first, tensors))
        try:
            traced = seeded(make_fx(lambda *tensors, f=f: f(*tensors)), *flat(first))
        except RuntimeError:
            assert row.name in BY_VALUES, where
            continue
        planned = Planned(traced)
        for args in (first, second, first):
            want = seeded(run, row.name, args)
            assert_equal(seeded(planned, *flat(args)), want, where)
        assert planned.refused is None and len(planned.plans) == 1, (where, planned.refused)


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in BACKWARD])
def test_backward(row):
    dtype = "float64" if "float64" in dtypes(row) else "complex128"
    for case in small_cases(row)[:2]:
        call, inputs = differentiable_arguments(row, case, dtype, "contiguous")
        inputs = [x.detach() for x in inputs]
        if not inputs:
            continue
        where = case_id(row, case)

        def tensors(*xs, call=call):
            found = call(*xs)
            return tuple([y for y in (found if isinstance(found, (tuple, list)) else (found,)) if y.dtype.kind in "fc"])
        if not any(y.requires_grad for y in tensors(*[x.clone().requires_grad_() for x in inputs])):
            continue

        def f(*xs, tensors=tensors):
            out, pull = vjp(tensors, *xs)
            return pull(tuple([pt.ones_like(y) for y in out]))
        planned = Planned(make_fx(lambda *xs, f=f: f(*xs))(*inputs))
        others = [x * 0.99 for x in inputs]
        for xs in (inputs, others, inputs):
            assert_equal(planned(*xs), f(*xs), where)
        assert planned.refused is None and len(planned.plans) == 1, (where, planned.refused)
