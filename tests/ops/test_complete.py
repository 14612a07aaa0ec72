"""Every row of the table is complete: kind, derivative, doc with an example, reference, cases."""
import importlib
import inspect
import re
from pathlib import Path

import pytest
from _cases import CASES, ROWS
from _references import NAMESPACE
from _walk import every_case
from test_gradient import has_rule, is_differentiable

import ptcore
from ptcore._ops import batching, decompositions, function
from ptcore._ops.table import schema
from ptcore._sizes import rules

pytestmark = pytest.mark.core

PUBLIC_ROWS = [r for r in ROWS.values() if not r.internal]
OWN = [r for r in ROWS.values() if not r.spells]            # the others have theirs from the row that they spell


def each(rows, check):
    """Checks every row; the rows that fail are told together."""
    with every_case() as case:
        for row in rows:
            with case(row.name):
                check(row)


def kind_and_derivative(row):
    """A rule, an inherited derivative, or the word nondifferentiable."""
    assert row.kind in schema.KINDS
    if row.kind in ("composite", "nondifferentiable") or row.random:
        return
    if row.kind == "elementwise":
        assert row.partial or row.vjp or row.out == "bool" or not set(row.types) & set(schema.FLOATING), (
            "an elementwise row with floating types needs partials")
        return
    assert row.vjp or has_rule(row), "no derivative"
    if row.vjp:
        assert len(row.vjp) in (1, len(row.tensors))


def doc(row):
    """A first line that is a sentence, and an example."""
    text = row.doc.strip()
    assert ">>> " in text
    first = text.partition(">>>")[0].partition("\n\nParameters\n")[0].strip()
    assert first.endswith("."), first


def reference(row):
    """A reference that NumPy can evaluate: every name in it is an argument or in the namespace."""
    import ast
    if row.random or row.family == "optimizers":
        return                          # the generator's words and moments, and steps, have tests of their own
    assert row.reference
    names = {n.id for n in ast.walk(ast.parse(row.reference)) if isinstance(n, ast.Name)}
    known = set(NAMESPACE) | {a.name for a in row.args} | set("xyzw"[:len(row.tensors) or 2])
    assert names <= known | {"abs", "bool", "int", "float", "len", "tuple", "range", "min", "max"}, (
        names - known)


def cases(row):
    """Elementwise rows have generated cases; every other row stands in the table of cases."""
    assert row.kind == "elementwise" or row.random or row.name in CASES


def test_rows_without_cases_have_tests_of_their_own():
    """An empty list of cases, or none, says that other tests call the row: they have its name or a public one of it."""
    words = set()
    for path in Path(__file__).resolve().parents[1].rglob("test_*.py"):
        if not path.name.startswith("test_parity"):             # those need PyTorch
            words.update(re.findall(r"\w+", path.read_text()))
    of_other_walks = [row.name for row in ROWS.values() if row.kind == "elementwise" or row.spells
                      or row.family == "optimizers"]
    rest = [row for name, row in ROWS.items() if not CASES.get(name) and name not in of_other_walks]
    assert len(rest) > 50
    assert [row.name for row in rest
            if not words & {row.name, row.called, *(name.rpartition(".")[2] for name in row.public or ())}] == []


def test_no_cases_without_a_row():
    assert set(CASES) <= set(ROWS)


def shape_rule(row):
    """Structured rows name a rule of shapes, and an argument of theirs or a dtype for each of its parameters."""
    if row.kind in ("elementwise", "view", "composite"):
        return
    name, given = schema.shape_rule(row.out)
    parameters = list(inspect.signature(rules.find(name)).parameters)[1:]
    assert given is None or len(given) == len(parameters)
    assert set(given or parameters) <= {a.name for a in row.args} | {"BOOL", "INT64"}


def transformations(row):
    """Batching, autocast and forward mode have an answer for every row, a refusal with its reason."""
    word, _, rest = row.batch.partition(" ")
    assert word in schema.BATCH
    assert {row.autocast_on("cpu"), row.autocast_on("cuda")} <= set(schema.AUTOCAST)
    if row.kind == "composite":
        assert (word, row.jvp) == ("decompose", "decompose")
        return
    if word == "refused:":
        assert rest
    elif not row.tensors:
        assert word == "constant"
    else:
        assert word == "broadcast" or word in batching._RULES or word == "decompose"
    if word == "decompose" or (rest and word == "shift") or row.jvp == "decompose":
        assert decompositions.function(row.name)
    if is_differentiable(row) or row.name == "dropout_masked":
        assert row.jvp is not None, "no forward derivative"
    else:
        assert row.jvp is None


def names(row):
    """The function stands where the row says, with its own docstring and the row's signature."""
    found = function(row.name)
    for path in row.public:
        where, _, name = path.rpartition(".")
        module = importlib.import_module(f"ptcore.{where}") if where else ptcore
        assert getattr(module, name) is not None
    spread = [a.name for a in row.args if a.letter == "L" and a.name == row.varargs]
    parameters = inspect.signature(found).parameters
    for a in row.args:
        p = parameters[a.name]
        if a.name in spread:
            assert p.kind is p.VAR_POSITIONAL
            continue
        assert (p.kind is p.KEYWORD_ONLY) == a.keyword_only
        if not a.required:
            assert p.default == a.default
    if "dim" in parameters:
        assert parameters["axis"].kind is inspect.Parameter.KEYWORD_ONLY
    assert found.__doc__.startswith(row.doc.strip().partition("\n")[0])
    if row.inplace:
        assert function(row.name, True).__doc__.startswith(f"In-place form of ``{row.called}``: ")
    if row.method and not row.varargs and not row.numpy:
        assert inspect.getattr_static(ptcore.Tensor, row.method_name) is found
    for alias in row.alias:
        if row.method:
            assert hasattr(ptcore.Tensor, alias)
        if row.name in row.public:
            assert getattr(ptcore, alias) is getattr(ptcore, row.name)


@pytest.mark.parametrize("check", [kind_and_derivative, reference, cases, shape_rule, transformations],
                         ids=lambda f: f.__name__)
def test_every_row(check):
    each(OWN, check)


def test_documented_rows():
    each([r for r in PUBLIC_ROWS if not r.spells], doc)


def test_public_rows():
    each(PUBLIC_ROWS, names)


# Parameters of spellings that are PyTorch's alone.
UNUSED = {"cudnn_enable", "cudnn_enabled", "return_indices"}


def spelling(row):
    """Each parameter is one of the row that is spelled, or is named here; what is left out has a default there."""
    base, given = row.spells
    base = ROWS[base]
    names = {a.name for a in base.args}
    assert {a.name for a in row.args} - UNUSED <= names and set(given) <= names
    assert all(not a.required or a.name in {b.name for b in row.args} for a in base.args)
    assert row.jvp == row.batch == "decompose" and base.kind == "composite"


def test_spellings():
    found = [r for r in ROWS.values() if r.spells]
    assert len(found) >= 20
    each(found, spelling)


def test_three_of_every_kind():
    for kind in ("elementwise", "linear", "bilinear", "structured", "view", "composite", "nondifferentiable"):
        assert sum(r.kind == kind for r in PUBLIC_ROWS) >= 3, kind
