"""tools/mutate.py: which mutations a text has, which tests are asked, what a state file keeps, what the tables say."""
import importlib.util
import itertools
import json
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PATH = ROOT / "tools" / "mutate.py"

pytestmark = [pytest.mark.core, pytest.mark.skipif(not PATH.exists(), reason="needs the source tree")]

SAMPLE = '''"""A text."""
SIZE = 3


def f(a, b=2, *, c="é", d=None):
    """What it does: 1 + 1."""
    if a < b and not d:
        raise ValueError(f"{a + 1}: wrong")
    a += 1
    g(a, b)
    return [x for x in a if x] + b


class C:
    x: int = 1

    def m(self):
        while self.x is not None:
            self.x = "é" - (  # a comment with + in it
                1)
'''


@pytest.fixture
def mutate(monkeypatch):
    """The script and, as ``mutate.m``, its mutations."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "mutations", raising=False)
    spec = importlib.util.spec_from_file_location("mutate", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_operator(mutate):
    """All mutations of a text, by hand."""
    found = {(x.operator, x.line, x.after) for x in mutate.m.mutations(SAMPLE) if mutate.m.is_change(SAMPLE, x)}
    line7, line11 = "if a < b and not d:", "return [x for x in a if x] + b"
    assert found == {
        ("default changed", 5, 'def f(a, b=3, *, c="é", d=None):'),
        ("default changed", 5, "def f(a, b=2, *, c='é_', d=None):"),
        ("comparison", 7, "if a <= b and not d:"), ("and/or", 7, "if a < b or not d:"),
        ("negation", 7, "if a < b and (d):"), ("negation", 7, f"if not ({line7[3:-1]}):"),
        ("raise removed", 8, "pass"),
        ("statement dropped", 9, "pass"), ("plus and minus", 9, "a -= 1"), ("off by one", 9, "a += 2"),
        ("off by one", 9, "a += 0"),
        ("statement dropped", 10, "pass"), ("arguments swapped", 10, "g(b, a)"),
        ("return None", 11, "return None"), ("negation", 11, line11.replace("if x", "if not (x)")),
        ("plus and minus", 11, line11.replace("+", "-")),
        ("comparison", 18, "while self.x is None:"), ("negation", 18, "while not (self.x is not None):"),
        ("statement dropped", 19, "pass"), ("plus and minus", 19, 'self.x = "é" + (  # a comment with + in it'),
        ("off by one", 20, "2)"), ("off by one", 20, "0)")}
    assert {x.scope for x in mutate.m.mutations(SAMPLE)} == {("f",), ("C", "m")}
    assert {x.operator for x in mutate.m.mutations(SAMPLE)} == {*mutate.m.OPERATORS}


def test_texts_differ_in_the_span_alone(mutate):
    for x in mutate.m.mutations(SAMPLE):
        changed = mutate.m.applied(SAMPLE, x)
        assert changed[:x.start] == SAMPLE[:x.start] and changed[x.start + len(x.new):] == SAMPLE[x.stop:]
        assert changed != SAMPLE and x.before in SAMPLE.splitlines()[x.line - 1]


def test_draw_is_of_the_seed(mutate):
    files = {"a.py": SAMPLE, "b.py": "def f(x):\n    return x\n", "c.py": "X = 1\n"}
    first, again, other = (list(mutate.m.draw(files, seed)) for seed in (1, 1, 2))
    assert first == again and first != other and sorted(first) == sorted(other)
    assert len(first) == len({*first}) == 1 + sum(mutate.m.is_change(SAMPLE, x) for x in mutate.m.mutations(SAMPLE))
    # by lines: the file of twenty lines comes first in most draws
    assert sum(next(mutate.m.draw(files, seed))[0] == "a.py" for seed in range(50)) > 35


def test_which_tests(mutate):
    tests = {"tests/jit/test_trace.py": "", "tests/jit/test_files.py": "Widget Widget",
             "tests/nn/test_module.py": "Widget", "tests/jit/test_other.py": "Widget",
             "tests/cuda/test_x.py": "Widget", "tests/jit/test_a.py": "", "tests/jit/test_b.py": ""}
    x = mutate.m.Mutation("comparison", 1, 0, 1, "", "", "", ("Widget", "_private"))
    found = mutate.stages("ptcore/jit/_trace.py", x, tests)
    assert [marks for _, marks in found] == ["not alone and not slow"] * 3 + ["alone or slow"]
    assert found[0][0][:3] == ["tests/jit/test_files.py", "tests/jit/test_other.py", "tests/jit/test_trace.py"]
    assert len(found[0][0]) == mutate.FIRST and found[3][0] == found[0][0]
    assert found[2][0] == ["tests/nn/test_module.py"]
    assert {*found[0][0], *found[1][0]} == {test for test in tests if test.startswith("tests/jit/")}
    found = mutate.stages("ptcore/backends/cuda.py", x, {**tests, "tests/test_parity_backends.py": "Widget"})
    assert found[0][0] == ["tests/test_parity_backends.py"]


def test_rooms_exist(mutate):
    """Each folder of the package has tests or is not mutated, and each folder of tests that is named exists."""
    folders = {p.name for p in (ROOT / "ptcore").iterdir() if (p / "__init__.py").exists()}
    left_out = {name for name in folders if mutate.NOT_MUTATED.match(f"{name}/x.py")}
    assert folders - left_out <= mutate.ROOMS.keys() and mutate.ROOMS.keys() - {""} <= folders
    named = {test for tests in mutate.ROOMS.values() for test in tests} - {mutate.TOP}
    assert all((ROOT / "tests" / test).is_dir() for test in named)
    assert (mutate.folder_of("tests/a/test_b.py"), mutate.folder_of("tests/test_b.py")) == ("a", mutate.TOP)
    assert mutate.room_of("ptcore/jit/_script/x.py") == "jit" and mutate.room_of("ptcore/hub.py") == ""


def test_what_is_not_mutated(mutate, tmp_path):
    texts = dict.fromkeys(("_ops/norm/rows.py", "cuda/memory.py", "version.py", "autograd/_engine.py", "py.typed",
                           "_names/root.py"), "")
    texts = {f"ptcore/{path}": text for path, text in {**texts, "jit/a.py": "jit", "hub.py": "hub"}.items()}
    files = {}
    for k, (path, text) in enumerate(texts.items()):
        files[path] = tmp_path / str(k)
        files[path].write_text(text)
    assert mutate.mutable(files, {"ptcore.autograd._engine"}) == {"ptcore/jit/a.py": "jit", "ptcore/hub.py": "hub"}


def row(number, verdict, **more):
    return {"number": number, "file": "ptcore/jit/a.py", "line": 3, "operator": "and/or", "before": "a and b",
            "after": "a or\tb", "verdict": verdict, "by": "t", "seconds": 1.5, **more}


def test_state_is_resumed(mutate, tmp_path, monkeypatch):
    path = tmp_path / "state.json"
    state = mutate.State(path, "of", 5)
    state.add(row(1, "killed"))
    state.add(row(0, "survived"))
    again = mutate.State(path, "of", None)
    assert again.seed == 5 and [r["number"] for r in again.judged] == [0, 1]
    assert (again.verdict(0), again.verdict(1), again.verdict(2)) == ("survived", "killed", None)
    for of, seed, fresh in (("other", 5, False), ("of", 6, False), ("of", 5, True)):
        assert mutate.State(path, of, seed, fresh).judged == []

    def cut(*arguments):
        raise KeyboardInterrupt
    for call in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, cut)
            with pytest.raises(KeyboardInterrupt):
                mutate.State(path, "of", 5).add(row(2, "killed"))
        assert len(json.loads(path.read_text())["judged"]) == 2
    for text in ("", "[]", "{}", "3"):
        path.write_text(text)
        assert mutate.State(path, "of", 7).judged == [] and mutate.State(path, "of", 7).seed == 7


def test_tables(mutate):
    rows = [row(0, "killed"), row(1, "survived"), row(2, "equivalent"), row(3, "timeout"),
            row(4, "killed", file="ptcore/hub.py", operator="off by one")]
    assert mutate.rate(rows) == (2, 3)
    lines = [line.split("\t") for line in mutate.table(rows).splitlines()]
    assert tuple(lines[0]) == mutate.COLUMNS and {len(line) for line in lines} == {len(mutate.COLUMNS)}
    assert lines[2] == ["1", "ptcore/jit/a.py", "3", "and/or", "a and b", "a or b", "survived", "t", "1.5"]
    page = mutate.report(rows, 5)
    assert "2 killed of 3 judged (66.7 %), 1 equivalent, 1 not judged in time" in page
    assert "| jit | 1 | 2 |" in page and "| root files | 1 | 1 |" in page and "| and/or | 1 | 2 |" in page
    assert "ptcore/jit/a.py:3, and/or\n\n    a and b" in page.partition("## Survived")[2]
    assert mutate.report([], 5)


def test_equivalent_ones(mutate):
    known = mutate.m.read_equivalent(mutate.EQUIVALENT.read_text())
    assert mutate.m.read_equivalent("head\na.py\tand/or\tx and y\tx or y\tboth are true\n") == {
        ("a.py", "and/or", "x and y", "x or y")}
    with pytest.raises(ValueError, match="5 columns"):
        mutate.m.read_equivalent("head\na.py\tand/or\tx and y\tx or y\t\n")
    for path, operator, before, after in known:
        text = (ROOT / path).read_text()
        assert (path, operator, before, after) in {mutate.m.key(path, x) for x in mutate.m.mutations(text)}, before


class Copy:
    """What a worker has: tests of a name fail on what they are told to fail on."""

    def __init__(self, fails):
        self.fails, self.text, self.asked, self.limit = fails, None, [], 1

    def put(self, path, text):
        self.text = text

    def pytest(self, arguments, limit):
        tests = [word for word in arguments if word.startswith("tests/")]
        left_out = {b for a, b in itertools.pairwise(arguments) if a == "--deselect"}
        self.asked.append((tests, self.text))
        for name, texts in self.fails.items():
            if name not in left_out and {name, name.partition("::")[0]} & {*tests} and self.text in texts:
                return 1, [name]
        return 0, []


def test_verdicts(mutate):
    """A test that fails on the unchanged package too kills nothing, and is asked once."""
    text = "def f(a):\n    return a and g\n"
    (x, _) = mutate.m.mutations(text)
    assert x.operator == "return None"
    changed = mutate.m.applied(text, x)
    tests = {"tests/fx/test_a.py": "f"}
    t, u = "tests/fx/test_a.py::t", "tests/fx/test_a.py::u"
    for fails, verdict in (({}, ("survived", "")), ({t: [changed]}, ("killed", t)),
                           ({t: [text, changed]}, ("survived", "")),
                           ({t: [text, changed], u: [changed]}, ("killed", u))):
        copy, runner = Copy(fails), mutate.Runner(tests, set())
        for _ in range(2):
            assert runner.judge(copy, text, "ptcore/fx/a.py", x) == verdict
            assert copy.text == text            # the copy is as it was
        assert sum(asked == text for _, asked in copy.asked) == len(fails)
    assert mutate.Runner(tests, {mutate.m.key("ptcore/fx/a.py", x)}).judge(None, text, "ptcore/fx/a.py", x) == (
        "equivalent", "")
