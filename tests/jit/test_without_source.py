"""Functions whose text Python does not keep run as they are, which is told once; all others are captured."""
import doctest
import importlib
import linecache
import subprocess
import sys
import warnings

import pytest

import ptcore as pt
from ptcore.jit import compiled as _compile

TEXT = "def f(x):\n    return x * 2 + 1\n"
PROGRAM = """
import warnings
import ptcore as pt
from ptcore.jit import compiled
f = pt.compile(lambda x: x * 2 + 1)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    found = [f(pt.ones(2)).tolist() for _ in range(3)]
print(found, [str(w.message).partition(":")[0] for w in told], compiled.counts["captures"])
"""


def made(name):
    """A function of ``TEXT``, and the number of captures before it is called."""
    space = {}
    exec(compile(TEXT, name, "exec"), space)
    return space["f"], _compile.counts["captures"]


def test_told_once_and_run_directly():
    f, before = made("<no text>")
    g = pt.compile(f)
    with pytest.warns(UserWarning, match="compile: f: no source for f: <no text> cannot be read; it is not captured"):
        g(pt.ones(2))
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sys.setprofile(lambda frame, event, arg: seen.append(frame.f_code.co_name) if event == "call" else None)
        try:
            y = g(pt.ones(3))
            z = g(x=pt.ones(1))
        finally:
            sys.setprofile(None)
    assert seen == ["f", "f"]           # no frame beside the function's own
    assert y.tolist() == [3.0, 3.0, 3.0] and z.tolist() == [3.0]
    assert _compile.counts["captures"] - before == 1


def test_told_again_after_a_reset():
    g = pt.compile(made("<no text>")[0])
    for _ in range(2):
        with pytest.warns(UserWarning, match="not captured"):
            g(pt.ones(2))
        _compile.reset()


def test_module_whose_forward_has_no_text():
    space = {"pt": pt}
    exec("class M(pt.nn.Module):\n    def forward(self, x):\n        return x * 3\n", space)
    m = pt.compile(space["M"]())
    with pytest.warns(UserWarning, match="forward: no source"):
        m(pt.ones(2))
    assert m(pt.ones(2)).tolist() == [3.0, 3.0]


def test_fullgraph_names_the_function():
    with pytest.raises(_compile.CaptureError, match="no source for f"):
        pt.compile(made("<no text>")[0], fullgraph=True)(pt.ones(2))


def test_called_function_without_text():
    """The caller is not captured, and nothing is told of it: ``explain`` says why."""
    f, _ = made("<no text>")

    def outer(x):
        return f(x) + 1
    g = pt.compile(outer)
    for n in (1, 2, 3):
        assert g(pt.ones(n)).tolist() == [4.0] * n
    assert "no source for f" in str(pt.compiler.explain(outer)(pt.ones(2)))


def test_captured_where_linecache_has_the_text():
    name = "<a cell of a notebook>"
    linecache.cache[name] = len(TEXT), None, TEXT.splitlines(True), name
    try:
        f, before = made(name)
        g = pt.compile(f, fullgraph=True)
        assert [g(pt.ones(2)).tolist() for _ in range(2)] == [[3.0, 3.0]] * 2
        assert _compile.counts["captures"] - before == 1
    finally:
        del linecache.cache[name]


def test_captured_in_a_doctest():
    text = (">>> import ptcore as pt\n>>> def f(x):\n...     return x * 2 + 1\n"
            ">>> pt.compile(f, fullgraph=True)(pt.ones(2)).tolist()\n[3.0, 3.0]\n")
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(doctest.DocTestParser().get_doctest(text, {}, "captured", None, None))
    assert runner.summarize(verbose=False) == (0, 3)


@pytest.mark.parametrize("way", ["-c", "-"])
def test_command_line_and_standard_input(way, tmp_path):
    command = [sys.executable, "-P", way, *([PROGRAM] if way == "-c" else [])]
    out = subprocess.run(command, input=None if way == "-c" else PROGRAM, capture_output=True, text=True, cwd=tmp_path,
                         check=True).stdout
    found, told, captures = out.strip().rpartition("]] [")[0] + "]]", out.count("'compile'"), out.split()[-1]
    assert found == "[[3.0, 3.0], [3.0, 3.0], [3.0, 3.0]]"
    assert (told, captures) in ((1, "1"), (0, "1"))     # some releases of Python keep these texts
    if sys.version_info < (3, 13):
        assert told == 1


def asserted(x, limit=3):
    assert x.shape[0] < limit, f"at most {limit}"
    inner = [k for k in range(2) if x.dim() == 1]
    assert inner and len(inner) == 2
    assert (isinstance(x, pt.Tensor) and not x.requires_grad) or x.is_leaf

    def last(y):
        assert y.dtype == pt.float32
        return y + 1
    return last(x * 2)


class Asserting(pt.nn.Module):
    def forward(self, x):
        assert pt.is_tensor(x)
        return x - 1


def test_assertions_that_pytest_rewrites_are_captured():
    assert "@pytest_ar" in asserted.__code__.co_names       # this file's are
    x = pt.ones(2)
    compiled = pt.compile(asserted, fullgraph=True)
    assert compiled(x).tolist() == compiled(x).tolist() == [3.0, 3.0]
    assert pt.compiler.explain(asserted)(x).graph_count == 1
    assert pt.compile(Asserting(), fullgraph=True)(x).tolist() == [0.0, 0.0]
    with pytest.raises(AssertionError, match="at most 3"):
        pt.compile(asserted)(pt.ones(4))
    assert pt.jit.script(Asserting())(x).tolist() == [0.0, 0.0]


def test_a_function_that_was_moved_in_its_file(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "moved_after_import.py"
    path.write_text("short = lambda x: x - 1\ndef same(x):\n    return x + 1\ndef other(x):\n    return x * 2\n")
    moved = importlib.import_module("moved_after_import")
    path.write_text("import os\nshort = lambda x: x - 1\n\n\ndef same(x):\n    # as before\n    return x + 1\n\n\n"
                    "def other(x):\n    return x * 3\n")
    x = pt.ones(2)
    assert pt.compile(moved.same, fullgraph=True)(x).tolist() == pt.jit.script(moved.same)(x).tolist() == [2.0, 2.0]
    assert pt.compile(moved.short, fullgraph=True)(x).tolist() == [0.0, 0.0]
    with pytest.warns(UserWarning, match="the source of other has changed"):
        assert pt.compile(moved.other)(x).tolist() == [2.0, 2.0]
    with pytest.raises(pt.jit.ScriptError, match="the source of other has changed"):
        pt.jit.script(moved.other)
