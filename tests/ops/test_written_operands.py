"""Operands that are written to in place after the call and before its backward: each row's, alone and in place.

No gradient is wrong in silence: a program raises one of autograd's errors, or its gradients are those of copied
operands. Which programs run in PyTorch: test_parity_written_operands.py. Results: test_written_results.py.
"""
import itertools

import numpy as np
import pytest
from _cases import Sample, case_id, dtypes, function, inplace_function
from _walk import walk
from _written import WRITES_TO_OPERANDS, wrong
from test_gradient import UNRECORDED, small_cases
from test_written_results import WALKED

import ptcore as pt

pytestmark = pytest.mark.core


def differentiable(row, result):
    """What of a result may be differentiated; see test_gradient.py."""
    if row.name == "recurrent_layer":
        return result[:2]
    beside = row.internal and row.fields and row.name.endswith("_stats")
    return result[0] if beside or row.name in UNRECORDED else result


def calls(row, form):
    """(name, call of [positional, keywords], these) of the row's first small cases: also positions and masks are
    operands."""
    dtype = "float64" if "float64" in dtypes(row) else "complex128"
    for case in small_cases(row)[:2]:
        given = Sample(row, case, dtype, np.random.default_rng(11), away_from_kinks=True).arguments()
        for x in pt.utils._pytree.tree_leaves(given):
            if isinstance(x, pt.Tensor) and (x.is_floating_point() or x.is_complex()):
                x.requires_grad_()
        yield case_id(row, case), lambda g: differentiable(row, form(row)(*g[0], **g[1])), list(given)


def check(row, form):
    for (name, call, given), number, (write, f) in itertools.product(
            calls(row, form), range(5), WRITES_TO_OPERANDS.items()):
        _, text = wrong(pt, call, given, number, f, operand=True)
        assert text is None, f"{name}, operand {number}, {write}: {text}"


@walk("row", [pytest.param(r, id=r.name) for r in WALKED])
@pytest.mark.outer
def test_operands(row):
    check(row, function)


@walk("row", [pytest.param(r, id=r.name) for r in WALKED if r.inplace])
def test_operands_in_place(row):
    """All but the first, of which the call gets a copy."""
    check(row, lambda row: lambda x, *args, **kwargs: inplace_function(row)(x.clone(), *args, **kwargs))


@pytest.mark.parametrize("change", [lambda x: x.resize_(1, 2), lambda x: x.resize_(2, 4), lambda x: x.resize_as_(pt.ones(1)),
                                    lambda x: x.detach().resize_(1), lambda x: x.set_(pt.ones(2, 1))])
def test_operands_of_other_sizes(change):
    """A resize counts as a write: the saved operand is not the one of the call, even where its sizes broadcast."""
    w = pt.ones(2, 2, requires_grad=True)
    for f in (pt.mul, pt.mm):
        x = pt.full((2, 2), 3.0)
        y = f(w, x)
        change(x)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
    x = pt.full((2, 2), 3.0)
    y, version = w * x, x._version
    x.resize_(2, 2).resize_as_(pt.ones(2, 2))
    y.sum().backward()
    assert x._version == version and w.grad.tolist() == [[3, 3], [3, 3]]
