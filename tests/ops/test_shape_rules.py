"""The rules of shapes (_sizes/rules): compiled for calls, run by Python, and as expressions, they say the same.

What a call of tensors on ``meta`` gives is what the compiled rule says; where that gives up, the rule is run by Python
to say what does not fit. NumPy is the oracle of the results' sizes themselves (tests/ops/test_forward.py).
"""
import copy
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from _cases import CASES, ROWS, case_id, cases, dtypes
from _walk import walk
from test_symbolic_sizes import arguments, mapped

import ptcore as pt
from ptcore import _ops as ops
from ptcore._ops.calling import run
from ptcore._ops.table import ids
from ptcore._ops.table.rules import rule, rule_of
from ptcore._ops.table.size_expressions import size_expressions
from ptcore._sizes import language, rules

pytestmark = pytest.mark.core
KINDS = ("structured", "linear", "bilinear", "nondifferentiable")
STRUCTURED = [r for r in ROWS.values() if r.kind in KINDS]
UNDER_TEST = [r for r in STRUCTURED if CASES.get(r.name)]
# Their results lie on the device that an argument names.
ON_A_DEVICE = {"to_device"}
BUILD = Path(pt.__file__).resolve().parent / "_build"


def tensors_in(x):
    if isinstance(x, (tuple, list)):
        return [t for y in x for t in tensors_in(y)]
    return [x] if isinstance(x, pt.Tensor) else []


def on_meta(args, sizes=None):
    """The arguments without data, or with other sizes of their tensors."""
    given = iter(sizes or [tuple(t.shape) for t in tensors_in(args)])
    return mapped(lambda t: pt.empty(next(given), dtype=t.dtype, device="meta"), args)


def described(result):
    """(sizes, dtype) of each output."""
    return [(tuple(r.shape), r.dtype) for r in (result if isinstance(result, tuple) else (result,))]


def said(specs):
    return [(tuple(s[0]), s[1]) for s in (specs if isinstance(specs, list) else [specs])]


def own_numbers(row, args):
    """What leaves of expressions stand for: the sizes of the tensors, and the ints of the other arguments."""
    sizes, numbers = [], []
    for value, own in zip(args, ops.arguments(row)):
        if own.is_tensor:
            given = value if own.letter == "L" else [value]
            sizes += [tuple(t.shape) if isinstance(t, pt.Tensor) else () for t in given]
        else:
            numbers.append(tuple(value) if isinstance(value, (tuple, list)) else (value,))
    return sizes, numbers


def rule_arguments(row, args):
    """Arguments as interpreters get them, as a rule gets them: dims counted from 0, several ints as a tuple."""
    return [tuple(a) if isinstance(a, list) else (a,) if own.letter in "zZ" and type(a) is int else a
            for a, own in zip(ops.wrapped(row, args), ops.arguments(row))]


class Asked:
    """Counts how often a compiled rule gives up."""

    def __init__(self, row):
        self.op, self.count = ids.op_id(row.name), 0
        self.rule = rule(self.op)

    def __call__(self, *args):
        self.count += 1
        return self.rule(*args)

    def __enter__(self):
        ids.set_spec(self.op, self)
        return self

    def __exit__(self, *failed):
        ids.set_spec(self.op, self.rule)


def dtype_of(row):
    return "float64" if "float64" in dtypes(row) else dtypes(row)[-1]


@walk("row", [pytest.param(r, id=r.name) for r in UNDER_TEST])
def test_three_ways(row):
    """Of the rows' own samples, and of other sizes wherever the conditions of the expressions hold."""
    draw = random.Random(row.name)
    for case in cases(row):
        args = arguments(row, case, dtype_of(row))
        context = case_id(row, case)
        with Asked(row) as asked:
            compiled = described(run(row.name, args))
        assert not asked.count, f"{context}: the compiled rule gave up"
        by_python = said(rule_of(row)(*rule_arguments(row, args)))
        assert by_python == compiled or row.promote == "float", f"{context}: {by_python}, compiled {compiled}"
        assert [s for s, _ in by_python] == [s for s, _ in compiled], context
        expressions(row, args, [s for s, _ in compiled], context, draw)


@walk("row", [pytest.param(r, id=r.name) for r in ROWS.values() if r.kind == "elementwise" or (
    r.kind == "view" and CASES.get(r.name))])
def test_expressions_of_other_rows(row):
    """Those of elementwise rows, which broadcast, and of views."""
    draw = random.Random(row.name)
    for case in cases(row):
        args = arguments(row, case, dtype_of(row))
        expressions(row, args, [s for s, _ in described(run(row.name, args))], case_id(row, case), draw)


def expressions(row, args, want, context, draw):
    """Checks the expressions at the sizes that they are of, and at others for which their conditions hold."""
    found = size_expressions(row.name, args)
    sizes, numbers = own_numbers(row, args)
    assert found.holds(sizes, numbers), f"{context}: {found.conditions}"
    assert found.sizes(sizes, numbers) == want, f"{context}: {found.outputs}"
    assert json.loads(json.dumps([found.outputs, found.conditions])) == [found.outputs, found.conditions]
    if row.name in ON_A_DEVICE or not tensors_in(args):
        return
    tried = 0
    for _ in range(40):
        other = [tuple([n if draw.random() < 0.5 else draw.choice([n, 2 * n, n + 1, max(n - 1, 0)]) for n in s])
                 for s in sizes]
        if other != sizes and found.holds(other, numbers):
            tried += 1
            want = [s for s, _ in described(run(row.name, with_sizes(row, args, other)))]
            assert found.sizes(other, numbers) == want, f"{context}: {other} {found.outputs} {found.conditions}"
            if tried == 2:
                break


def with_sizes(row, args, sizes):
    """The arguments on ``meta``, the tensors among them of these sizes."""
    sizes, result = iter(sizes), []
    for value, own in zip(args, ops.arguments(row)):
        if own.is_tensor:
            count = len(value) if own.letter == "L" else 1
            value = on_meta(value, [s for _, s in zip(range(count), sizes)])
        result.append(value if own.is_tensor else on_meta(value))
    return tuple(result)


def outcome(call):
    try:
        return call()
    except Exception as e:
        return type(e), str(e)


def misfits(sizes):
    """Sizes of which one is another, or a tensor has a dim more."""
    for k, s in enumerate(sizes):
        for d in range(len(s)):
            for n in {s[d] + 1, max(s[d] - 1, 0), 2 * s[d], 0, 1} - {s[d]}:
                yield [*sizes[:k], (*s[:d], n, *s[d + 1:]), *sizes[k + 1:]]
        yield [*sizes[:k], (*s, 2), *sizes[k + 1:]]
        yield [*sizes[:k], (1, *s), *sizes[k + 1:]]


@walk("row", [pytest.param(r, id=r.name) for r in UNDER_TEST if r.name not in ON_A_DEVICE])
def test_misfits(row):
    """For other sizes the compiled rule and Python say the same: the sizes, or the error and its message."""
    by_python = rule_of(row)
    for case in cases(row):
        args = arguments(row, case, dtype_of(row))
        if not tensors_in(args):
            continue
        for sizes in misfits([tuple(t.shape) for t in tensors_in(args)]):
            given = on_meta(args, sizes)
            with Asked(row) as asked:
                compiled = outcome(lambda given=given: [s for s, _ in described(run(row.name, given))])
            python = outcome(lambda given=given: [s for s, _ in said(by_python(*rule_arguments(row, given)))])
            if isinstance(compiled, tuple) and not asked.count:
                continue                # refused before the rule: a dim that is none
            assert compiled == python, f"{case_id(row, case)}: {sizes}"
            assert isinstance(python, tuple) or not asked.count, f"{case_id(row, case)}: {sizes}: gave up"


def test_every_structured_row_names_a_rule():
    for row in STRUCTURED:
        assert callable(rule_of(row)), row.name


def test_every_rule_is_used():
    """What rows name, and the parts of it."""
    used = {ops.table.schema.shape_rule(row.out)[0] for row in STRUCTURED}
    assert len(used) > 80
    for name in used:
        assert rules.find(name).__module__.startswith("ptcore._sizes.rules."), name
    with pytest.raises(KeyError):
        rules.find("no_rule")


def test_strides_are_kept():
    """A copy keeps the strides of a tensor that fills its memory, else their order."""
    x = pt.empty(2, 3, 4).permute(2, 0, 1)
    for t in (x, x[:, :, ::2]):
        spec = rule_of(ops.row("clone"))(t)
        assert spec[3] == t.clone().stride()


def test_numbers_of_64_bits_are_left_to_python():
    """Sums and products that C could not hold."""
    with pytest.raises(OverflowError):
        pt.nn.functional.pad(pt.empty(2, 3, device="meta"), (2**62, 2**62))
    with Asked(ROWS["row_distances"]) as asked, pytest.raises(OverflowError, match="pdist"):
        run("row_distances", (pt.empty(1, 1, device="meta").expand(2**33, 1), 2.0))
    assert asked.count == 1


@pytest.mark.parametrize("name, args, message", [
    ("segments", (pt.zeros(3), pt.zeros(2, 2, dtype=pt.int64), 1, "sum", 0.0, False), "data must have the dims"),
    ("ctc_loss_stats", (pt.zeros(3), *[pt.zeros(1, dtype=pt.int64)] * 3, 0), "at least 2 dimensions"),
    ("row_distances", (pt.zeros(()), 2.0), "input must have 2 dimensions"),
    ("pair_distances", (pt.zeros(2, 2), pt.zeros(2), 2.0), "at least 2 dimensions"),
    ("_pivot_order", (pt.zeros((), dtype=pt.int32), 2), "at least one dimension"),
])
def test_tensors_without_the_dims(name, args, message):
    """Ops that nobody calls by name but the package: what they read of sizes is there."""
    with pytest.raises(RuntimeError, match=message):
        run(name, args)


GOOD = '''
def check_four(call: Call, x: View, name: Text):
    """A docstring."""
    if x.ndim != 4:
        raise ShapeError(f"{call.name}: {name} is {x.shape}")

def rule(call: Call, input: View, dim: Dims, mode: Words("a|b"), dtype: DType):
    check_four(call, input, "input")
    if mode == "b" and 2 not in dim:
        return
    out = like(call, 0, input, BOOL)
'''
IN_C = '''cdef inline bint check_four(Call * call, const pt_view * x, const char * name) noexcept nogil:
    if x.ndim != 4:
        return False
    return True

cdef inline bint rule(Call * call, const pt_view * input, uint64_t dim, int64_t mode, int64_t dtype) noexcept nogil:
    if not check_four(call, input, b'input'):
        return False
    if mode == 1 and (not dim >> 2 & 1):
        return True
    out = like(call, 0, input, PT_BOOL)
    return True
'''
REFUSED = {
    "def rule(call: Call, mode: Words('a|b')):\n    if mode == 'c':\n        return": "_sizes/rules/shown.py:2: rule: 'c' is none of ['a', 'b']",
    "def rule(call: Call, n: Int):\n    if 1 < n < 3:\n        return": "_sizes/rules/shown.py:2: rule: one comparison at a time",
    "def rule(call: Call, n: Int):\n    if n in (1, 2):\n        return": "_sizes/rules/shown.py:2: rule: `in` is for dims",
    "def rule(call: Call, n: Int):\n    return n": "_sizes/rules/shown.py:2: rule: a function returns a value where its annotation says "
                                                 "so, and only there",
    "def rule(call: Call, x: Tensor):\n    return": "_sizes/rules/shown.py:1: rule: x must be annotated with one of",
    "def size(x: View) -> Int:\n    raise ShapeError('no')": "_sizes/rules/shown.py:2: size: a function that returns a value cannot raise",
}
EMIT = """
import json, sys
from pathlib import Path
import emit_shapes

def emitted(text):
    rules = {}
    try:
        emit_shapes.read_text(Path("shown.py"), text, rules)
        return "\\n".join(emit_shapes.function(rule, rules).rstrip() + "\\n" for rule in rules.values())
    except ValueError as e:
        return str(e)

print(json.dumps([emitted(text) for text in json.load(sys.stdin)]))
"""


@pytest.mark.skipif(not BUILD.exists(), reason="needs the source tree")
def test_rules_in_c():
    """What rules are written in, as C gets it; what has no form in C is refused with its place."""
    done = subprocess.run([sys.executable, "-P", "-c", EMIT], input=json.dumps([GOOD, *REFUSED]), capture_output=True,
                          text=True, check=True, env={**os.environ, "PYTHONPATH": str(BUILD)})
    good, *refused = json.loads(done.stdout)
    assert good == IN_C
    for message, want in zip(refused, REFUSED.values()):
        assert message.startswith(want)


def test_dtype_tables():
    """Those of the language are those of dtypes."""
    for code, dtype in enumerate(language._DTYPES):
        assert language.ITEMSIZE[code] == dtype.itemsize
        assert language._DTYPES[language.REAL_OF[code]] == dtype.to_real()
        assert (language.CATEGORY[code] == 2) == dtype.is_floating_point
        assert (language.CATEGORY[code] == 3) == dtype.is_complex
    assert copy.copy(language._DTYPES[language.INT64]) is pt.int64


def test_an_empty_dim_that_is_not_padded():
    """It is left as it is in each mode, by calls and by traces."""
    x = pt.empty(1, 2, 0, 3)
    for mode in ("reflect", "replicate", "circular"):
        pad = (1, 1, 0, 0)
        assert run("pad_edges", (x, pad, mode)).shape == (1, 2, 0, 5)
        assert rule_of(ops.row("pad_edges"))(x, pad, mode)[0] == (1, 2, 0, 5)
        with pytest.raises(RuntimeError, match=f"pad: mode {mode!r} pads at most"):
            run("pad_edges", (x, (0, 0, 1, 1), mode))
