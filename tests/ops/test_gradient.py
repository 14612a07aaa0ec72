"""First and second derivatives of every differentiable op against central differences.

Samples keep away from kinks (where a derivative does not exist), except in the tests that ask
for the documented choice there.
"""
import importlib

import numpy as np
import pytest
from _cases import CASES, FIXED_LAYOUT, ROWS, B, C, F, I, Sample, case_id, cases, dtypes, function, laid_out, tensor
from _composite_cases import NO_GRADIENT
from _walk import walk

import ptcore
from ptcore._ops.table.ids import op_id
from ptcore.autograd import gradcheck, gradgradcheck
from ptcore.autograd.accumulate import rule_of

pytestmark = pytest.mark.core

# A zero derivative almost everywhere, and outputs that jump: nothing to difference.
STEPS = {"sign", "heaviside", "floor", "ceil", "trunc", "round", "floor_divide", "trunc_divide", "frexp_exponent"}
# Their statistics have no history, as torch's have none.
UNRECORDED = {"native_layer_norm", "native_batch_norm"}
# The largest data of a case of which each element is differenced; larger ones are differenced along a random direction.
MOST_ELEMENTS = 60
SPREAD = {"amax", "amin", "max_dim", "min_dim", "max", "min", "vector_norm", "maximum", "minimum",
          "clamp", "clamp_min", "clamp_max", "norm", "prod_dims", "prod", "fmin", "fmax", "cummax", "cummin",
          "kthvalue", "median", "nanmedian", "mode", "quantile", "nanquantile", "aminmax", "msort", "sort", "scatter_reduce",
          "scatter_amax", "scatter_amin", "index_reduce",
          "linalg_norm", "linalg_vector_norm", "embedding_bag"}


def is_differentiable(row):
    if row.kind == "nondifferentiable" or row.random or row.name == "detach":
        return False
    return row.kind in ("view", "composite") or bool(row.partial or row.vjp) or has_rule(row)


def has_rule(row):
    importlib.import_module(f"ptcore.autograd._vjp_{row.family}")
    return rule_of(op_id(row.name)) is not None


def small_cases(row):
    """Cases small enough for differences, without duplicates and empty data."""
    return cases_of_size(row, 1, MOST_ELEMENTS)


def cases_of_size(row, least, most):
    def size(spec):
        if isinstance(spec, (list, tuple)):
            return sum(size(s) for s in spec)
        return int(np.prod(spec.shape)) if isinstance(spec, F) else 0

    return [c for c in cases(row) if least <= sum(size(s) for s in c) <= most
            and c[1:2] != [ptcore.float32]              # too coarse for differences
            and not (row.name in ("var_dims", "std_dims") and c[0].shape == ())]      # no freedom left: NaN


def differentiable_arguments(row, case, dtype, layout, form=function):
    """(call, inputs): a function of the data tensors alone, and those tensors. ``form`` gives the row's function."""
    rng = np.random.default_rng(11)
    sample = Sample(row, case, dtype, rng, away_from_kinks=True)
    if row.name in SPREAD:              # no two elements near each other, none near zero
        places = [k for k, v in enumerate(sample.data)
                  if isinstance(v, np.ndarray) and v.dtype.kind == "f"]
        total = sum(sample.data[k].size for k in places)
        order = list(rng.permutation(total) + 0.6 - total // 2)
        for k in places:
            v = sample.data[k]
            sample.data[k] = np.array([order.pop() * 4 / total for _ in range(v.size)]).reshape(
                v.shape)
    positional, keyword = sample.arguments(layout)
    inputs, places = [], []

    def visit(value, spec, place):
        if isinstance(spec, C):
            return
        if isinstance(spec, F) and value.dtype.kind in "fc":
            inputs.append(value.requires_grad_())
            places.append(place)
        elif isinstance(value, tuple):
            for i, (v, s) in enumerate(zip(value, spec)):
                visit(v, s, (*place, i))

    specs = [s for s, a in zip(sample.case, sample.args) if not a.keyword_only]
    for i, (v, s) in enumerate(zip(positional, specs)):
        if isinstance(s, (F, I, B, list, tuple)):
            visit(v, s, (i,))

    def call(*data):
        args = [list(v) if isinstance(v, tuple) else v for v in positional]
        for place, x in zip(places, data):
            if len(place) == 1:
                args[place[0]] = x
            else:
                args[place[0]][place[1]] = x
        args = [tuple(v) if isinstance(v, list) else v for v in args]
        result = form(row)(*args, **keyword)
        if row.name == "recurrent_layer":       # the states and cells; what it keeps is for its gradient
            return result[:2]
        # Statistics beside the first output are saved for its gradient, not differentiated.
        saved = row.internal and row.fields and row.name.endswith("_stats")
        return result[0] if saved or row.name in UNRECORDED else result

    return call, inputs


ROWS_UNDER_TEST = [r for r in ROWS.values() if is_differentiable(r)
                   and (r.kind == "elementwise" or CASES.get(r.name))]
NOT_REAL_RESULTS = {"allclose", "isclose", "equal", *NO_GRADIENT}


def check(row, dtype, layout, second, large=False):
    for case in cases_of_size(row, MOST_ELEMENTS + 1, 5000) if large else small_cases(row):
        call, inputs = differentiable_arguments(row, case, dtype, layout)
        if not inputs:
            continue
        context = f"{case_id(row, case)} {dtype} {layout}"
        try:
            assert gradcheck(call, inputs, fast_mode=large)
            if second:
                assert gradgradcheck(call, inputs, fast_mode=large)
        except Exception as e:
            raise AssertionError(f"{context}: {type(e).__name__}: {e}") from e


@walk("row", [
    pytest.param(r, id=r.name) for r in ROWS_UNDER_TEST
    if "float64" in dtypes(r) and r.name not in NOT_REAL_RESULTS])
def test_real(row):
    check(row, "float64", "contiguous", row.name not in STEPS)


@walk("row", [
    pytest.param(r, id=r.name) for r in ROWS_UNDER_TEST
    if r.kind != "elementwise" and r.name not in NOT_REAL_RESULTS])
def test_large_cases(row):
    """Arguments, ranks and words that stand in large cases alone, as the projection of a recurrent layer does."""
    for dtype in ("float64", "complex128"):
        if dtype in dtypes(row):
            check(row, dtype, "contiguous", row.name not in STEPS, large=True)


@walk("row", [
    pytest.param(r, id=r.name) for r in ROWS_UNDER_TEST
    if "complex128" in dtypes(r) and r.name not in NOT_REAL_RESULTS])
def test_complex(row):
    check(row, "complex128", "contiguous", True)


@walk("row", [
    pytest.param(r, id=r.name) for r in ROWS_UNDER_TEST
    if r.name not in NOT_REAL_RESULTS | {*FIXED_LAYOUT}])
@pytest.mark.outer
def test_layouts(row):
    """The derivative does not depend on how the operands lie in memory."""
    dtype = "float64" if "float64" in dtypes(row) else "complex128"
    for layout in ("transposed", "reversed"):
        check(row, dtype, layout, False)


def test_layout_helper_keeps_values():
    x = np.arange(6.0).reshape(2, 3)
    for layout in ("transposed", "sliced", "reversed", "offset"):
        np.testing.assert_array_equal(laid_out(x, layout), x)
        assert tensor(x, "float64", layout).stride() != (3, 1)


# -- the choices at kinks, as PyTorch documents them ----------------------------------------------

def gradient(f, *values):
    leaves = [ptcore.tensor(v, dtype=ptcore.float64, requires_grad=True) for v in values]
    f(*leaves).sum().backward()
    return [None if x.grad is None else x.grad.tolist() for x in leaves]


@pytest.mark.parametrize(("f", "values", "expected"), [
    (ptcore.abs, [[0.0]], [[0.0]]),
    (ptcore.relu, [[0.0, 1.0]], [[0.0, 1.0]]),
    (ptcore.maximum, [[1.0], [1.0]], [[0.5], [0.5]]),
    (ptcore.minimum, [[1.0], [1.0]], [[0.5], [0.5]]),
    (ptcore.amax, [[2.0, 2.0, 1.0]], [[0.5, 0.5, 0.0]]),
    (lambda x: ptcore.max(x, 0).values, [[2.0, 2.0, 1.0]], [[1.0, 0.0, 0.0]]),
    (lambda x: ptcore.clamp(x, 0, 1), [[0.0, 1.0, 2.0]], [[1.0, 1.0, 0.0]]),
    (lambda x: x**0, [[0.0, 3.0]], [[0.0, 0.0]]),
    (lambda x: x**2, [[0.0]], [[0.0]]),
    (lambda x: ptcore.norm(x), [[0.0, 0.0]], [[0.0, 0.0]]),
    (lambda x: ptcore.prod(x, 0), [[0.0, 2.0, 3.0]], [[6.0, 0.0, 0.0]]),
    (lambda x: ptcore.prod(x, 0), [[0.0, 0.0, 3.0]], [[0.0, 0.0, 0.0]]),
    (ptcore.sign, [[2.0]], [[0.0]]),
])
def test_kinks(f, values, expected):
    assert gradient(f, *values) == expected
