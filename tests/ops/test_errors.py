"""Bad arguments: a clear error that names the op, whatever is passed; nothing crashes.

The cases are the table's own with one argument replaced by something absurd. The absurd values
run in a process of their own, so that a crash is a failure of one test and not of the run.
"""
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from _cases import ROWS, F, I, Sample, cases, dtypes, function
from _walk import walk

import ptcore

pytestmark = pytest.mark.core

PUBLIC = [r for r in ROWS.values() if not r.internal and cases(r)]
# The kinds of errors that a bad argument may raise; AttributeError, SystemError and the rest are bugs.
CLEAR = (TypeError, ValueError, RuntimeError, IndexError, OverflowError, MemoryError, ZeroDivisionError)
def names_of(row):
    """What the error of a row may begin with: its own names."""
    names = {row.name, row.called or row.name, *row.alias, *row.public, *(p.rpartition(".")[2] for p in row.public)}
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True)))


def absurd():
    return [None, 2**40, -2**40, 2**63, -2**63 - 1, 2**70, -1, math.nan, math.inf, 1e300, "x", b"x", object(),
            [], [[]], (2**40, 2**40), (-1,), (-5,), (1,) * 65, {}, 1 + 2j, np.array([1, 2]), np.float32(3), True,
            ptcore.zeros(0), ptcore.zeros(0, 3), ptcore.ones((1,) * 64), ptcore.tensor(5), ptcore.tensor([2**40]),
            ptcore.tensor([-9]), ptcore.ones(3, dtype=ptcore.complex64), ptcore.ones(2, dtype=ptcore.bool),
            ptcore.ones(2, 3, device="meta"), ptcore.tensor(math.nan), slice(None), ..., ptcore.float32,
            ptcore.ones(3)]


def attempts(row):
    """(positional, keyword, what was replaced) for every argument of two cases and absurd value."""
    dtype = "float64" if "float64" in dtypes(row) else dtypes(row)[-1]
    for case in {id(c): c for c in (cases(row)[0], cases(row)[-1])}.values():
        positional, keyword = Sample(row, case, dtype, np.random.default_rng(0)).arguments()
        names = [*range(len(positional)), *keyword]
        for place in names:
            for value in absurd():
                p, k = list(positional), dict(keyword)
                (k if isinstance(place, str) else p)[place] = value
                yield p, k, f"argument {place}: {type(value).__name__}"


def named(value):
    """What a value is called in a test's name: the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


# How a message says what it was given: by the word, or as a part of the sentence.
GOT = re.compile(r"\bgot\b|\bshape \[|\bsize \d|\bsize \[|\bto \[|0-d tensor|appears twice in|out of (bounds|range)"
                 r"|singular|not supported|no order|exceed size|both were given|must not be (given|empty|negative)"
                 r"|cannot be converted|must be a multiple|device '.*' is not available|needs scale_factor"
                 r"|could not allocate")
# What several arguments are called together, what an argument is of, and what the first one has become in a kernel.
TOGETHER = (r"operands|shapes?|tensors|arguments|inputs|sizes|dims?|dimensions|dtype|device|value|index|indices|number"
            r"|matrix|matrices|the input|operand|numbers|scratch memory")
# Of what lies below an op: memory, numbers in place of tensors, a meta tensor where the result's shape is in the data.
BARE = (r"^allocation of \d+ bytes failed", r"^a tensor of sizes .* has too many elements",
        r"^tensor: a complex value cannot become a real element", r"^item: a meta tensor has no data",
        r"^type_as: a meta tensor has no values to copy to cpu")


def complaint(row, error):
    """What an error lacks: the op's own name at its head, an argument's name, what was given. None: nothing."""
    text = str(error)
    if isinstance(error, CLEAR):
        if any(re.search(p, text) for p in BARE):
            return None
        head = re.match(rf"_?({names_of(row)})_?(\(\))?:? ", text)
        rest = text[head.end():] if head else ""
        arguments = "|".join([TOGETHER, *(re.escape(a.name) for a in row.args)])
        if re.search(rf"\b({arguments})\b", rest) and GOT.search(rest):
            return None
    return f"{type(error).__name__}: {text[:150]}"


def complaints(row):
    """What is wrong with the errors of a row."""
    found = []
    for positional, keyword, what in attempts(row):
        try:
            function(row)(*positional, **keyword)
        except Exception as e:
            lack = complaint(row, e)
            if lack:
                found.append(f"{row.name}, {what}: {lack}")
    return found


def run_apart(code):
    here = Path(__file__).resolve().parent
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-X", "faulthandler", "-c", code], capture_output=True, text=True,
        cwd=here, timeout=300)


@pytest.mark.outer
def test_absurd_arguments():
    """No crash, no stray exception class, no message without the op's and an argument's name and what was given."""
    code = ("import json, sys; sys.path[:0] = ['.', '..']\n"
            "import test_errors as t\n"
            "print(json.dumps([c for r in t.PUBLIC for c in t.complaints(r)]))")
    done = run_apart(code)
    assert done.returncode == 0, done.stderr[-3000:]
    complaints = json.loads(done.stdout.splitlines()[-1])
    assert not complaints, "\n".join(complaints[:50])


# -- by the letters of the signature ----------------------------------------------------------------

def with_letter(letters):
    result = []
    for row in PUBLIC:
        for k, a in enumerate(row.args):
            if a.letter in letters and a.name not in (row.select or {}):
                result.append(pytest.param(row, k, a.name, id=f"{row.name}-{a.name}"))
    return result


def call_with(row, k, name, value):
    dtype = "float64" if "float64" in dtypes(row) else dtypes(row)[-1]
    positional, keyword = Sample(row, cases(row)[0], dtype, np.random.default_rng(0)).arguments()
    if k < len(positional):
        positional[k] = value
    else:
        keyword[name] = value
    return function(row)(*positional, **keyword)


@walk(("row", "k", "name"), with_letter("de"))
@pytest.mark.parametrize(("value", "error"), [(64, IndexError), (-65, IndexError), (2**40, IndexError),
                                              (2**70, OverflowError), ("x", TypeError), (1.5, TypeError)])
def test_dim(row, k, name, value, error):
    with pytest.raises(error, match=f"^({names_of(row)}): ({name} must be .*, got |Dimension out of range .* got "
                                    rf".* for {name}$)"):
        call_with(row, k, name, value)


@pytest.mark.parametrize(("row", "k", "name"), with_letter("D"))
def test_dims(row, k, name):
    for value, error in (((0, 64), IndexError), ((0, 0), RuntimeError), (("x",), TypeError), ((1.5,), TypeError)):
        with pytest.raises(error, match=f"^{row.name}: .*({name}.* got|got .* for {name}|appears twice in)"):
            call_with(row, k, name, value)


@pytest.mark.parametrize(("row", "k", "name"), with_letter("I"))
def test_index_dtype(row, k, name):
    if row.kind == "elementwise":       # where, masked_fill: a mask
        return
    with pytest.raises((RuntimeError, TypeError), match=f"{row.name}: (index|indices) must be"):
        call_with(row, k, name, ptcore.ones(2, 3))
    with pytest.raises(TypeError, match=f"{row.name}: {name} must be a Tensor, got str"):
        call_with(row, k, name, "x")


@walk(("row", "k", "name"), [
    p for p in with_letter("T") if p.values[0].kind not in ("composite", "elementwise")])
@pytest.mark.parametrize("value", ["x", None, {}, object()], ids=["str", "None", "dict", "object"])
def test_not_a_tensor(row, k, name, value):
    with pytest.raises(TypeError, match=f"^{row.name}: .* got {type(value).__name__}"):
        call_with(row, k, name, value)


@walk("row", [pytest.param(r, id=r.name) for r in PUBLIC])
def test_dtypes_without_a_loop(row):
    """A dtype that is not in ``types`` is refused by the op's name, with what is allowed."""
    if row.kind in ("composite", "view") or row.promote == "float":
        return
    whole = {"bool"} if row.promote == "whole" else set()       # computed in int64
    for name in {"bool", "int32", "float32", "complex64"} - set(dtypes(row)) - whole:
        case = cases(row)[0]
        try:
            arguments = Sample(row, case, name, np.random.default_rng(0)).arguments()
        except ValueError:
            continue                    # the sampling domain holds no such value
        with pytest.raises(RuntimeError, match=f"^{row.name}: (dtype must be one of .*, got {name}|.* not supported)"):
            function(row)(*arguments[0], **arguments[1])


@pytest.mark.parametrize("row", [pytest.param(r, id=r.name) for r in PUBLIC if r.kind == "elementwise"
                                 and len(r.tensors) > 1 and r.name != "assign"])
def test_shapes_that_do_not_broadcast(row):
    case = [F(2, 3) if isinstance(s, (F, I)) else s for s in cases(row)[0]]
    dtype = "float64" if "float64" in dtypes(row) else dtypes(row)[-1]
    positional, keyword = Sample(row, case, dtype, np.random.default_rng(0)).arguments()
    positional[0] = ptcore.zeros(4, 5, dtype=positional[0].dtype)
    with pytest.raises(ValueError, match=f"^{row.name}: shapes must broadcast, got"):
        function(row)(*positional, **keyword)


@walk("row", [pytest.param(r, id=r.name) for r in PUBLIC])
def test_unknown_keyword(row):
    with pytest.raises(TypeError, match=f"^{function(row).__name__}.*nonsense"):
        function(row)(*Sample(row, cases(row)[0], dtypes(row)[0], np.random.default_rng(0)).arguments()[0],
                      nonsense=1)


# -- creation, conversion, indexing ------------------------------------------------------------------

MAKERS = ("empty", "zeros", "ones", "rand", "randn")


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(("size", "error"), [
    ((-1,), RuntimeError), ((2, -3), RuntimeError), ((2**62,), (RuntimeError, MemoryError)),
    ((2**40, 2**40), (RuntimeError, MemoryError)), ((2**70,), OverflowError), ((1.5,), TypeError),
    (("x",), TypeError), ((None,), TypeError), (((1,) * 65,), ValueError), ((2**63 - 1, 0), RuntimeError)], ids=str)
def test_sizes(name, size, error):
    if size == (2**63 - 1, 0):          # holds nothing
        assert getattr(ptcore, name)(*size).numel() == 0
        return
    with pytest.raises(error):
        getattr(ptcore, name)(*size)


def test_64_dims():
    x = ptcore.ones((1,) * 64)
    assert x.sum().item() == 1 and (x + x).ndim == 64 and repr(x).count("[") == 64
    for grow in (lambda: x.unsqueeze(0), lambda: ptcore.ones((1,) * 65), lambda: ptcore.stack([x]),
                 lambda: x.reshape((1,) * 65), lambda: x[None], lambda: x.expand((1,) * 65),
                 lambda: ptcore.tensor(np.ones((1,) * 64)).unsqueeze(-1)):
        with pytest.raises((ValueError, RuntimeError, IndexError), match="64"):
            grow()


@pytest.mark.parametrize("data", [
    object(), "x", b"x", {}, [1, "x"], [[1], [1, 2]], [[1], 2], [None], [object()], {1}, lambda: 0, [[[[]], [1]]],
    slice(None)], ids=named)
def test_tensor_of_nonsense(data):
    with pytest.raises((TypeError, ValueError, RuntimeError), match=r"^tensor: "):
        ptcore.tensor(data)


def test_a_list_that_holds_itself():
    data = [1]
    data.append(data)
    with pytest.raises((ValueError, RecursionError, RuntimeError)):
        ptcore.tensor(data)
    nested = []
    for _ in range(100000):
        nested = [nested]
    with pytest.raises((ValueError, RecursionError)):
        ptcore.tensor(nested)
    while nested:                       # so that its own end does not recurse
        nested = nested[0]


@pytest.mark.parametrize(("value", "dtype"), [
    (math.nan, "int64"), (math.inf, "int32"), (300, "uint8"), (2**63, "int64"), (2**64, "uint64"),
    (1j, "float32"), (2**200, "float32")])
def test_numbers_that_do_not_fit(value, dtype):
    """No number is changed in silence, and none crashes."""
    try:
        x = ptcore.tensor(value, dtype=getattr(ptcore, dtype))
    except (ValueError, RuntimeError, TypeError, OverflowError):
        return
    assert x.item() == value or math.isinf(x.item())


@pytest.mark.parametrize("key", [
    2**40, -2**40, 2**70, 1.5, "x", object(), (0, 0, 0), ptcore.tensor([5]), ptcore.tensor([-4]),
    ptcore.tensor([1.0]), ptcore.ones(4, dtype=ptcore.bool), ([[0], [1, 2]],), {}, (0,) * 70, (None,) * 70,
    ptcore.tensor([2**62]), slice(None, None, 0), slice("a"), slice(1.5)], ids=named)
def test_keys(key):
    x = ptcore.zeros(3, 2)
    for use in (lambda: x[key], lambda: x.__setitem__(key, 1.0)):
        with pytest.raises((IndexError, TypeError, ValueError, RuntimeError, OverflowError)):
            use()
    assert not x.any()


@pytest.mark.parametrize(("method", "args"), [
    ("view", ((2, -1, -1),)), ("view", (7,)), ("reshape", (-2, 3)), ("expand", (2, 7)), ("expand", (-1, 3, 2)),
    ("permute", (0, 0)), ("permute", (0,)), ("transpose", (0, 2)),
    ("as_strided", ((3,), (1, 1))), ("as_strided", ((3,), (1,), -1)), ("as_strided", ((100,), (1,))),
    ("resize_", (-1,)), ("diagonal", (0, 0, 0)), ("squeeze", (5,)), ("unsqueeze", (4,)), ("flip", (3,)),
    ("select", (0, 9)), ("narrow", (0, 1, 9)), ("split", (0,)), ("chunk", (0,)), ("unflatten", (0, (5, 5)))])
def test_views(method, args):
    x = ptcore.arange(6.0).reshape(2, 3)
    with pytest.raises((RuntimeError, IndexError, ValueError, TypeError)):
        getattr(x, method)(*args)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]


# -- wrong dimensions, sizes, dtypes --------------------------------------------------------------------

def misfits(x):
    """(what, tensor) with other dimensions, other sizes or another dtype than x."""
    shape = tuple(x.shape)
    for ndim in sorted({0, 1, len(shape) - 1, len(shape) + 1, len(shape) + 2} - {len(shape), -1}):
        new = shape[:ndim] if ndim <= len(shape) else (1,) * (ndim - len(shape)) + shape
        yield f"{ndim} dimensions", ptcore.ones(new, dtype=x.dtype)
    for dim, size in enumerate(shape):
        for other in (size + 1, size + 3, 0):
            yield f"size {other} at {dim}", ptcore.ones((*shape[:dim], other, *shape[dim + 1:]), dtype=x.dtype)
    for dtype in (ptcore.bool, ptcore.int32, ptcore.int64, ptcore.uint16, ptcore.float16, ptcore.complex64):
        if dtype is not x.dtype:
            yield str(dtype), ptcore.ones(shape, dtype=dtype)


@pytest.mark.filterwarnings("ignore:.*rarely meant")
@walk("row", [pytest.param(r, id=r.name) for r in PUBLIC if r.tensors])
def test_wrong_shapes_and_dtypes(row):
    """Each tensor of two cases replaced: the op works, or its error names it and says what it got."""
    dtype = "float64" if "float64" in dtypes(row) else dtypes(row)[-1]
    found = []
    for case in {id(c): c for c in (cases(row)[0], cases(row)[-1])}.values():
        positional, keyword = Sample(row, case, dtype, np.random.default_rng(0)).arguments()
        for k, x in enumerate(positional):
            if not isinstance(x, ptcore.Tensor):
                continue
            for what, value in misfits(x):
                try:
                    function(row)(*positional[:k], value, *positional[k + 1:], **keyword)
                except Exception as e:
                    lack = complaint(row, e)
                    if lack:
                        found.append(f"argument {k} of {what}: {lack}")
    assert not found, "\n".join(found)
