"""Every row in a graph of ``make_fx``: the graph of the forward and of the backward, run on the data it was made with
and on other data, gives bit for bit what the row gives."""
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import ptcore as pt
from ptcore._ops import run
from ptcore.func import vjp
from ptcore.fx import verify
from ptcore.fx.experimental.proxy_tensor import make_fx

sys.path.insert(0, str(Path(__file__).parent.parent / "ops"))
from _cases import CASES, ROWS, Sample, array, case_id, cases, dtypes
from test_batching import NEED_DATA
from test_gradient import NOT_REAL_RESULTS, differentiable_arguments, is_differentiable, small_cases

MODES = ("real", "fake", "symbolic")
FORWARD = [r for r in ROWS.values() if r.kind == "elementwise" or CASES.get(r.name)]
BACKWARD = [r for r in FORWARD if is_differentiable(r) and r.name not in NOT_REAL_RESULTS and r.name not in NEED_DATA
            and not r.random and {"float64", "complex128"} & set(dtypes(r))]
# What is computed depends on values of the arguments, in some of the calls, which are refused while they are traced.
BY_VALUES = {"allclose": "gives a bool", "equal": "gives a bool", "argwhere": "the size of the result",
             "unique": "the size of the result", "unique_consecutive": "the size of the result",
             "bincount": "the size of the result", "one_hot": "the number of classes, where it is not given",
             "repeat_interleave": "the size of the result, where output_size is not given",
             "ctc_loss": "the longest target", "histogram": "the edges, where range is not given"}
REFUSED = "trying to get value out of a tracing tensor|must be given for a tensor without data"


def flat(args):
    return [x for a in args for x in (a if isinstance(a, tuple) and a and isinstance(a[0], pt.Tensor) else (a,))
            if isinstance(x, pt.Tensor)]


def put(args, tensors):
    """The arguments with other tensors in the place of those there are."""
    tensors = iter(tensors)
    return tuple([tuple([next(tensors) for _ in a]) if isinstance(a, tuple) and a and isinstance(a[0], pt.Tensor)
                  else next(tensors) if isinstance(a, pt.Tensor) else a for a in args])


def arguments(row, case, dtype, seed):
    sample = Sample(row, case, dtype, np.random.default_rng(seed))
    positional, keyword = sample.arguments()
    order = iter(positional)
    return tuple([keyword[a.name] if a.keyword_only else next(order) for a in sample.args])


def assert_equal(got, want, where):
    got, want = ([x for x in (r if isinstance(r, (tuple, list)) else (r,))] for r in (got, want))
    assert len(got) == len(want), where
    for g, w in zip(got, want):
        if not isinstance(w, pt.Tensor):
            assert g == w, where
            continue
        assert (g.shape, g.dtype, g.stride()) == (w.shape, w.dtype, w.stride()), where
        np.testing.assert_array_equal(array(g), array(w), err_msg=where)


def seeded(f, *args):
    pt.manual_seed(5)
    return f(*args)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in FORWARD])
def test_forward(row, mode):
    dtype = next((d for d in ("float32", "complex64", "int64") if d in dtypes(row)), dtypes(row)[0])
    for case in small_cases(row)[:3] or cases(row)[:3]:
        where = f"{mode} {case_id(row, case)}"
        first, second = arguments(row, case, dtype, 3), arguments(row, case, dtype, 4)

        def f(*tensors, first=first):
            return run(row.name, put(first, tensors))
        trace = make_fx(lambda *tensors, f=f: f(*tensors), tracing_mode=mode)
        try:
            traced = seeded(trace, *flat(first))
        except RuntimeError as error:
            refused, message = row.name in BY_VALUES, str(error)
        else:
            refused, message = False, ""
        if message:
            assert refused, f"{where}: {message}"
            assert re.search(REFUSED, message), where
            continue
        assert verify(traced.graph) == "rows", where
        for args in (first, second):
            want = seeded(run, row.name, args)
            assert_equal(seeded(traced, *flat(args)), want, where)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in BACKWARD])
def test_backward(row, mode):
    dtype = "float64" if "float64" in dtypes(row) else "complex128"
    for case in small_cases(row)[:2]:
        call, inputs = differentiable_arguments(row, case, dtype, "contiguous")
        inputs = [x.detach() for x in inputs]
        if not inputs:
            continue
        where = f"{mode} {case_id(row, case)}"

        def tensors(*xs, call=call):
            found = call(*xs)
            return tuple([y for y in (found if isinstance(found, (tuple, list)) else (found,)) if y.dtype.kind in "fc"])
        if not any(y.requires_grad for y in tensors(*[x.clone().requires_grad_() for x in inputs])):
            continue

        def f(*xs, tensors=tensors):
            out, pull = vjp(tensors, *xs)
            return pull(tuple([pt.ones_like(y) for y in out]))
        traced = make_fx(lambda *xs, f=f: f(*xs), tracing_mode=mode)(*inputs)
        assert verify(traced.graph) == "rows", where
        assert_equal(traced(*inputs), f(*inputs), where)
        others = [x * 0.99 for x in inputs]
        assert_equal(traced(*others), f(*others), where)
