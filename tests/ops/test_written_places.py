"""Writes to all tensors of a call, also to those that have no derivative: positions, masks, lengths, and results such
as indices. After the call, or between the first backward and the second. Rows are drawn.

Each write counts, whatever makes it: a backward raises, or its gradients are those of the values at the call. The
oracle is the program without the write, since what is written has no history. Other writes: test_written_operands.py,
test_written_results.py.
"""
import itertools
import os
from operator import attrgetter

import numpy as np
import pytest
from _cases import Sample, case_id, dtypes, function
from _draw import drawn
from _walk import walk
from _written import REASONS
from test_gradient import small_cases
from test_written_operands import differentiable
from test_written_results import WALKED

import ptcore as pt
from ptcore.utils._pytree import tree_leaves, tree_map

pytestmark = pytest.mark.core
CASES_EACH = int(os.environ.get("PTCORE_TEST_PROGRAMS", "1"))
# No derivative by all operands that require grad here, as their messages say.
REFUSED = ("is not implemented", "must not require grad")


def other(x):
    """Other values of the same kind; positions that are valid."""
    if x.dtype is pt.bool:
        return ~x
    return x.detach().flip(tuple(range(x.ndim))) + 0.37 if is_continuous(x) else pt.zeros_like(x)


def is_continuous(x):
    return x.is_floating_point() or x.is_complex()


WRITES = {
    "copy_": lambda x: x.copy_(other(x)), "detach": lambda x: x.detach()[...].copy_(other(x)),
    "out": lambda x: pt.where(pt.ones(x.shape, dtype=pt.bool), other(x), x.clone(), out=x),
    "foreach": lambda x: pt._foreach_copy_([x], [other(x)]), "set_": lambda x: x.set_(other(x)),
    "index": lambda x: x.__setitem__(..., other(x)), "resize_": lambda x: x.resize_(0)}


def tensors(x):
    return [y for y in tree_leaves(x) if isinstance(y, pt.Tensor)]


def total(results):
    parts = [pt.view_as_real(y) if y.is_complex() else y for y in results]
    return sum([(y.double() * pt.from_numpy(np.random.default_rng(k).uniform(0.5, 1.5, tuple(y.shape)))).sum()
                for k, y in enumerate(parts)])


def gradients(call, given, order, write=None):
    """Gradients of an order. ``write``: (whether operands are leaves, "operand" or "result", number, name, whether it
    is made after the first backward). None: there is no such tensor, or it cannot be written to so."""
    leaves, (as_leaves, kind, number, name, late) = [], write or (False, None, 0, None, False)

    def prepared(x):
        if not isinstance(x, pt.Tensor) or not x.requires_grad:
            return x.clone() if isinstance(x, pt.Tensor) else x
        leaves.append(x.detach().clone().requires_grad_())
        return leaves[-1] if as_leaves else leaves[-1].clone()
    args = tree_map(prepared, given)
    pt.manual_seed(3)
    results = tensors(call(args))
    y = total([r.clone() for r in results if r.requires_grad])

    def written():
        places = tensors(args) if kind == "operand" else results
        with pt.no_grad():
            try:
                WRITES[name](places[number])
            except Exception:
                return False
        return True
    if not isinstance(y, pt.Tensor) or (name and not late and not written()):
        return None
    found = pt.autograd.grad(y, leaves, allow_unused=True, create_graph=order == 2)
    if order == 2:
        found = [g for g in found if g is not None and g.requires_grad]
        if not found or (name and late and not written()):
            return None
        found = pt.autograd.grad(total(found), leaves, allow_unused=True)
    return [None if g is None else g.numpy().copy() for g in found]


def check(call, given, where):
    operands = len(tensors(given))
    for order in (1, 2):
        try:
            want = gradients(call, given, order)
        except (RuntimeError, NotImplementedError) as e:
            if order == 1 and not any(text in str(e) for text in REFUSED):
                raise AssertionError(f"{where}: {e}") from e
            continue
        if want is None:
            continue
        places = [*itertools.product((False, True), ["operand"], range(operands)),
                  *[(False, "result", k) for k in range(3)]]
        for place, name, late in itertools.product(places, WRITES, (False, True)[:order]):
            program = f"{where}, order {order}: {name} of {place}, {'late' if late else 'early'}"
            try:
                got = gradients(call, given, order, (*place, name, late))
            except RuntimeError as e:
                if not any(text in str(e) for text in REASONS):
                    raise AssertionError(f"{program}: {e}") from e
                continue
            for a, b in zip(got or (), want):
                assert (a is None) == (b is None), program
                assert a is None or (a.shape == b.shape and np.allclose(a, b, 1e-9, 1e-9, equal_nan=True)), program


@walk("row", [pytest.param(r, id=r.name) for r in drawn(WALKED, attrgetter("name"))])
@pytest.mark.outer
def test_writes(row):
    dtype = "float64" if "float64" in dtypes(row) else "complex128"
    for case in small_cases(row)[:CASES_EACH]:
        given = list(Sample(row, case, dtype, np.random.default_rng(11), away_from_kinks=True).arguments())
        for x in tensors(given):
            x.requires_grad_(is_continuous(x))
        check(lambda g: differentiable(row, function(row)(*g[0], **g[1])), given, case_id(row, case))
