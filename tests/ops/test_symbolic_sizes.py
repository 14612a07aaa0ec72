"""``symbolic_sizes``: what a row's rule says of symbolic sizes is the shape of the result, at the hints and wherever the
guards hold."""
import random

import numpy as np
import pytest
from _cases import CASES, ROWS, Sample, case_id, cases, dtypes, function
from _walk import walk
from test_meta import NEED_DATA

import ptcore as pt
from ptcore._interpret import Interpreter
from ptcore._ops.calling import run
from ptcore._ops.table.evaluate import Sized, symbolic_sizes
from ptcore._ops.table.ids import op_name
from ptcore._sizes.symbolic import ShapeEnv, SymInt

pytestmark = pytest.mark.core
UNDER_TEST = [r for r in ROWS.values() if r.kind != "composite" and not r.random and r.name not in NEED_DATA
              and (r.kind == "elementwise" or CASES.get(r.name))]


class Caught(Exception):
    pass


class Catcher(Interpreter):
    """Gets the arguments of the first call of an op as an interpreter gets them."""

    def __init__(self, name):
        self.name = name

    def call(self, op, args, out, variant):
        if op_name(op) == self.name:
            self.args = args
            raise Caught
        return NotImplemented


def arguments(row, case, dtype):
    args, keyword = Sample(row, case, dtype, np.random.default_rng(5)).arguments("contiguous")
    catcher = Catcher(row.name)
    with pytest.raises(Caught), catcher:
        function(row)(*args, **keyword)
    return catcher.args


def mapped(f, x):
    if isinstance(x, (tuple, list)):
        return tuple([mapped(f, y) for y in x])
    return f(x) if isinstance(x, pt.Tensor) else x


def shapes(result):
    return [tuple(r.shape) for r in result] if isinstance(result, tuple) else tuple(result.shape)


def evaluated(env, sizes, values):
    return env.evaluate([tuple(s) for s in sizes] if isinstance(sizes, list) else tuple(sizes), values)


def values_of(env, make):
    """A value for each leaf: equal hints mostly get equal values."""
    by_hint = {}
    for _, n in env.inputs:
        if isinstance(n, SymInt):
            by_hint.setdefault(n.hint, make(n.hint))
    return [by_hint[n.hint] if isinstance(n, SymInt) else n for _, n in env.inputs]


def described_by(env, args):
    return mapped(lambda t: Sized([env.symbol(n) for n in t.shape], t.dtype, t.device), args)


def on_meta(env, args, values):
    """The arguments with other sizes."""
    given = iter(values)
    return mapped(lambda t: pt.empty([next(given) for _ in t.shape], dtype=t.dtype, device="meta"), args)


@walk("row", [pytest.param(r, id=r.name) for r in UNDER_TEST])
def test_sizes(row):
    dtype = "float64" if "float64" in dtypes(row) else dtypes(row)[-1]
    draw = random.Random(row.name)

    def larger(hint):
        return hint * draw.choice([1, 2, 3])

    def other(hint):
        return max(2, larger(hint) + draw.choice([0, 0, 1, 2, -1]))
    for case in cases(row):
        args = arguments(row, case, dtype)
        env = ShapeEnv(duck_shape=False)
        described = described_by(env, args)
        sizes = symbolic_sizes(row.name, described)
        assert sizes is not NotImplemented
        hints = values_of(env, lambda hint: hint)
        context = f"{case_id(row, case)} {sizes} {env.guards}"
        assert evaluated(env, sizes, hints) == shapes(run(row.name, args)), context
        found = 0
        for _ in range(40):
            values = values_of(env, draw.choice([larger, other]))
            if values != hints and env.check(values):
                found += 1
                assert evaluated(env, sizes, values) == shapes(run(row.name, on_meta(env, args, values))), (
                    f"{values} {context}")
                if found == 2:
                    break


def test_composites_have_no_rule():
    assert symbolic_sizes("flatten", ()) is NotImplemented
