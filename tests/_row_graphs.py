"""Rows as graphs: the calls that are traced, and the comparison of what a graph gives with what the row gives."""
import numpy as np
from _cases import CASES, ROWS, Sample, array, cases, dtypes
from test_batching import NEED_DATA
from test_gradient import NOT_REAL_RESULTS, differentiable_arguments, is_differentiable, small_cases

import ptcore as pt
from ptcore.func import vjp

FORWARD = [r for r in ROWS.values() if r.kind == "elementwise" or CASES.get(r.name)]
BACKWARD = [r for r in FORWARD if is_differentiable(r) and r.name not in NOT_REAL_RESULTS and r.name not in NEED_DATA
            and not r.random and {"float64", "complex128"} & set(dtypes(r))]
# What is computed depends on values of the arguments, in some of the calls, which are refused while they are traced.
BY_VALUES = {"allclose": "gives a bool", "equal": "gives a bool", "argwhere": "the size of the result",
             "nonzero": "the size of the result", "unique": "the size of the result",
             "unique_consecutive": "the size of the result", "bincount": "the size of the result",
             "one_hot": "the number of classes, where it is not given",
             "repeat_interleave": "the size of the result, where output_size is not given",
             "ctc_loss": "the longest target", "histogram": "the edges, where range is not given",
             "masked_select": "the size of the result"}
REFUSED = "trying to get value out of a tracing tensor|must be given for a tensor without data"


def flat(args):
    """The tensors of a call's arguments, those of lists among them."""
    return [x for a in args for x in (a if isinstance(a, tuple) and a and isinstance(a[0], pt.Tensor) else (a,))
            if isinstance(x, pt.Tensor)]


def put(args, tensors):
    """The arguments with other tensors in the place of those there are."""
    tensors = iter(tensors)
    return tuple([tuple([next(tensors) for _ in a]) if isinstance(a, tuple) and a and isinstance(a[0], pt.Tensor)
                  else next(tensors) if isinstance(a, pt.Tensor) else a for a in args])


def arguments(row, case, dtype, seed):
    """The arguments of a case, in signature order."""
    sample = Sample(row, case, dtype, np.random.default_rng(seed))
    positional, keyword = sample.arguments()
    order = iter(positional)
    return tuple([keyword[a.name] if a.keyword_only else next(order) for a in sample.args])


def forward_calls(row):
    """(case, arguments, other arguments of the same case) of the row's first small cases."""
    dtype = next((d for d in ("float32", "complex64", "int64") if d in dtypes(row)), dtypes(row)[0])
    for case in small_cases(row)[:3] or cases(row)[:3]:
        yield case, arguments(row, case, dtype, 3), arguments(row, case, dtype, 4)


def backward_calls(row):
    """(case, the call, the inputs that have derivatives) of the row's first two small cases."""
    dtype = "float64" if "float64" in dtypes(row) else "complex128"
    for case in small_cases(row)[:2]:
        call, inputs = differentiable_arguments(row, case, dtype, "contiguous")
        yield case, call, [x.detach() for x in inputs]


def pulled(call, inputs):
    """The function that gives the gradients of a call's floating results; None if it has no derivative here."""
    def tensors(*xs):
        found = call(*xs)
        return tuple([y for y in (found if isinstance(found, (tuple, list)) else (found,)) if y.dtype.kind in "fc"])
    if not inputs or not any(y.requires_grad for y in tensors(*[x.clone().requires_grad_() for x in inputs])):
        return None

    def f(*xs):
        out, pull = vjp(tensors, *xs)
        return pull(tuple([pt.ones_like(y) for y in out]))
    return f


def assert_equal(got, want, where):
    """The same bits, shapes, dtypes and strides."""
    got, want = ([x for x in (r if isinstance(r, (tuple, list)) else (r,))] for r in (got, want))
    assert len(got) == len(want), where
    for g, w in zip(got, want):
        if not isinstance(w, pt.Tensor):
            assert g == w, where
            continue
        assert (g.shape, g.dtype, g.stride()) == (w.shape, w.dtype, w.stride()), where
        np.testing.assert_array_equal(array(g), array(w), err_msg=str(where))


def seeded(f, *args):
    """A call after the same seed."""
    pt.manual_seed(5)
    return f(*args)
