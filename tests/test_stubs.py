"""The type stubs agree with the package: names, parameters and defaults; the pages with the functions."""
import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import ptcore as pt
from ptcore.nn import functional

PACKAGE = Path(__file__).resolve().parent.parent / "ptcore"
SOURCE_ONLY = pytest.mark.skipif(not (PACKAGE / "_build").exists(), reason="needs the source tree")


@pytest.fixture(scope="module")
def stubs(tmp_path_factory):
    if not (PACKAGE / "_build").exists():
        pytest.skip("needs the source tree")
    folder = tmp_path_factory.mktemp("stubs")
    subprocess.run([sys.executable, str(PACKAGE / "_build" / "generate_ops.py"), str(folder), "--stubs"], check=True)
    return {path.name: ast.parse(path.read_text()) for path in folder.glob("*.pyi")}


def described(node):
    """[(name, kind, default text)] of a stub's function."""
    a = node.args
    plain = a.posonlyargs + a.args
    defaults = [None] * (len(plain) - len(a.defaults)) + [ast.unparse(d) for d in a.defaults]
    found = [(p.arg, "plain", d) for p, d in zip(plain, defaults)]
    if a.vararg:
        found.append((a.vararg.arg, "*", None))
    found += [(p.arg, "keyword", d and ast.unparse(d)) for p, d in zip(a.kwonlyargs, a.kw_defaults)]
    return found


def actual(function):
    kinds = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.KEYWORD_ONLY: "keyword"}
    return [(p.name, kinds.get(p.kind, "plain"), None if p.default is p.empty else repr(p.default))
            for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]


def check(nodes, owner, is_class=False):
    checked = 0
    for node in nodes:
        if not isinstance(node, ast.FunctionDef) or any(
                getattr(d, "id", None) == "property" for d in node.decorator_list):
            continue
        assert hasattr(owner, node.name), node.name
        if is_class and node.name.startswith("__"):
            continue                            # slots have no Python signature
        got, want = described(node), actual(getattr(owner, node.name))
        if any(getattr(d, "id", None) == "overload" for d in node.decorator_list):
            assert [p[:2] for p in got] == [p[:2] for p in want][:len(got)], node.name
            continue
        assert got[is_class:] == want[is_class:], node.name
        checked += 1
    return checked


def test_functions(stubs):
    assert check(stubs["__init__.pyi"].body, pt) > 250
    assert check(stubs["functional.pyi"].body, functional) > 10
    assert check(stubs["linalg.pyi"].body, pt.linalg) >= 1
    assert check(stubs["special.pyi"].body, pt.special) >= 1


def test_tensor_methods(stubs):
    (tensor,) = [n for n in stubs["__init__.pyi"].body if isinstance(n, ast.ClassDef) and n.name == "Tensor"]
    assert check(tensor.body, pt.Tensor, True) > 250


def names(nodes):
    found = set()
    for n in nodes:
        if isinstance(n, (ast.FunctionDef, ast.ClassDef)):
            found.add(n.name)
        elif isinstance(n, ast.AnnAssign):
            found.add(n.target.id)
        elif isinstance(n, (ast.Import, ast.ImportFrom)):
            found |= {a.asname or a.name for a in n.names}
    return found


def test_nothing_public_is_missing(stubs):
    body = stubs["__init__.pyi"].body
    (tensor,) = [n for n in body if isinstance(n, ast.ClassDef) and n.name == "Tensor"]
    assert {n for n in dir(pt.Tensor) if not n.startswith("_")} <= names(tensor.body)
    public = {n for n in vars(pt) if not n.startswith("_")}
    modules = {n for n in public if inspect.ismodule(getattr(pt, n))}
    assert public - modules <= names(body)
    for stub, module in (("functional.pyi", functional), ("linalg.pyi", pt.linalg),
                         ("special.pyi", pt.special)):
        own = {n for n, f in vars(module).items() if callable(f) and not n.startswith("_")
               and not isinstance(f, type) and getattr(f, "__module__", "ptcore") != "ptcore._errors"}
        assert own - names(stubs[stub].body) <= {"cross_entropy_stats", "nll_loss_stats", "layer_norm_stats",
                                                 "dropout_masked"}


@SOURCE_ONLY
def test_reference_pages(tmp_path):
    subprocess.run([sys.executable, str(PACKAGE / "_build" / "emit_docs.py"), str(tmp_path)], check=True)
    text = "".join(path.read_text() for path in tmp_path.glob("*.rst"))
    for row in pt.ops.values():
        if row.internal or row.family == "registered":
            continue
        where = f"ptcore.{row.public[0]}" if row.public else f"ptcore.Tensor.{row.name}"
        assert f":: {where}\n" in text, row.name
    assert "Derivative for input" in text
