"""Every row under ``compile``: values, strides and gradients are the row's, bit for bit, on the data that the call was
captured with and on other data."""
import sys
from pathlib import Path

import numpy as np
import pytest

import ptcore as pt
from ptcore._ops import run
from ptcore.jit import _compile

sys.path.insert(0, str(Path(__file__).parent.parent / "fx"))
from _cases import case_id, cases, dtypes
from test_gradient import differentiable_arguments, small_cases
from test_make_fx_rows import BACKWARD, FORWARD, arguments, assert_equal, flat, put, seeded

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in FORWARD])
def test_forward(row):
    dtype = next((d for d in ("float32", "complex64", "int64") if d in dtypes(row)), dtypes(row)[0])
    for case in small_cases(row)[:3] or cases(row)[:3]:
        first, second = arguments(row, case, dtype, 3), arguments(row, case, dtype, 4)

        def f(*tensors, first=first):
            return run(row.name, put(first, tensors))
        compiled = pt.compile(f, backend="eager")
        before = _compile.counts["raised"]
        for args in (first, second, first):
            assert_equal(seeded(compiled, *flat(args)), seeded(run, row.name, args), case_id(row, case))
        # one_hot refuses what has no data, where it must count: it runs eagerly
        assert _compile.counts["raised"] == before or row.name == "one_hot", compiled._compiled.error


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in BACKWARD])
def test_backward(row):
    dtype = "float64" if "float64" in dtypes(row) else "complex128"
    for case in small_cases(row)[:2]:
        call, inputs = differentiable_arguments(row, case, dtype, "contiguous")
        compiled = pt.compile(call, backend="eager")
        for scale in (1, 0.99):
            results = []
            for f in (compiled, call):
                xs = [(x.detach() * scale).requires_grad_() for x in inputs]
                found = f(*xs)
                found = found if isinstance(found, (tuple, list)) else (found,)
                found = [y for y in found if isinstance(y, pt.Tensor)]
                wanted = [y for y in found if y.requires_grad]
                grads = pt.autograd.grad(wanted, xs, [pt.ones_like(y) for y in wanted], allow_unused=True) \
                    if wanted and xs else ()
                results.append((found, grads))
            (a, ga), (b, gb) = results
            assert_equal(a, b, case_id(row, case))
            assert [y.requires_grad for y in a] == [y.requires_grad for y in b]
            for x, y in zip(ga, gb):
                assert (x is None) == (y is None)
                if x is not None:
                    np.testing.assert_array_equal(x.numpy(), y.numpy())
