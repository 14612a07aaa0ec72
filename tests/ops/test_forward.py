"""Every op of the table against its reference, over dtypes and memory layouts."""
import itertools

import numpy as np
import pytest
from _cases import (
    CASES,
    ELEMENTWISE,
    LAYOUTS,
    ROWS,
    Sample,
    array,
    case_id,
    cases,
    draw,
    dtypes,
    function,
    layouts,
    tensor,
)
from _tolerance import ACCUMULATED, TOLERANCE, assert_near
from _walk import every_case

import ptcore
from ptcore._ops.table import schema

pytestmark = pytest.mark.core

STRUCTURED = [r for r in ROWS.values() if r.kind != "elementwise" and r.name in CASES
              and CASES[r.name]]
# The op's result in half precision rounds more often than its formula does.
CHAINED = {"gelu_tanh_grad", "gelu_erf_grad", "pow", "tan", "gelu", "gelu_tanh", "remainder"}


def check(row, case, dtype, layout, table):
    sample = Sample(row, case, dtype, np.random.default_rng(7))
    positional, keyword = sample.arguments(layout)
    result = function(row)(*positional, **keyword)
    results = list(result) if isinstance(result, tuple) else [result]
    expected = sample.expected()
    context = f"{case_id(row, case)} {dtype} {layout}"
    assert len(results) == len(expected), context
    for got, want in zip(results, expected):
        if not isinstance(got, ptcore.Tensor):
            assert got == want, context
            continue
        name = dtype if dtype in table and got.dtype.kind in "fc" else got.dtype.name
        if got.dtype.kind in "fc" and dtype not in table:
            name = got.dtype.name
        assert_near(array(got), want, name, context, table)


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in ELEMENTWISE])
def test_elementwise(row):
    """The full cross of dtype, shape and layout."""
    table = ACCUMULATED if row.name in CHAINED or len(row.tensors) > 3 else TOLERANCE
    with every_case() as tried:
        for dtype, case, layout in itertools.product(dtypes(row), cases(row), LAYOUTS):
            with tried(dtype, layout, case):
                check(row, case, dtype, layout, table)


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in STRUCTURED])
def test_structured(row):
    """Every case in every dtype, with the layouts dealt out so that each meets each dtype and each case; in one dtype
    every case in every layout."""
    every, whole = layouts(row), "float64" if "float64" in dtypes(row) else dtypes(row)[-1]
    with every_case() as tried:
        for (first, dtype), (i, case) in itertools.product(enumerate(dtypes(row)), enumerate(cases(row))):
            for layout in every if dtype == whole else [every[(first + i) % len(every)]]:
                with tried(dtype, layout, case):
                    check(row, case, dtype, layout, ACCUMULATED)


@pytest.mark.parametrize("row", [
    pytest.param(r, id=r.name) for r in ELEMENTWISE
    if len(r.tensors) == 2 and not r.internal and all(a.letter == "T" for a in r.tensors)])
def test_python_scalar(row):
    """A number on the right gives what a full tensor of that number gives."""
    from _references import evaluate
    for dtype in row.types:
        if dtype == "bool" or dtype in schema.HALF:
            continue
        x = draw(np.random.default_rng(3), (3, 5), dtype, row.sample)
        got = function(row)(tensor(x, dtype), 2)
        wide = x.astype({"float32": "float64", "complex64": "complex128"}.get(dtype, dtype))
        args = [a for a in row.args if a.is_tensor]
        want = evaluate(row.reference, "TT", [a.name for a in args],
                        [wide, wide.dtype.type(2)])
        name = dtype if got.dtype.kind in "fc" else got.dtype.name
        assert_near(array(got), want, name, f"{row.name} {dtype}",
                    ACCUMULATED if row.name in CHAINED else TOLERANCE)


def test_nonzero():
    for dtype in ("bool", "int32", "float32", "complex64"):
        x = draw(np.random.default_rng(3), (3, 5), dtype, ("integers", -1, 1))
        np.testing.assert_array_equal(ptcore.nonzero(tensor(x, dtype)).numpy(), np.argwhere(x))
