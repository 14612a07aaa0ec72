"""Every example in a public docstring runs: functions, methods, classes, modules.

Collected from what the names lead to, compiled functions included, which doctest's own finder
does not see. An example of a submodule may use that module's names, but those of builtins; every other name it imports.
"""
import ast
import builtins
import doctest
import importlib
import inspect
import pkgutil
import types
from pathlib import Path

import pytest
from _walk import walk

import ptcore
from ptcore._lazy import Later

pytestmark = pytest.mark.core

ROOT = Path(ptcore.__file__).parent


def modules():
    """The public modules below the package's front, each once; of ``cuda`` those that can be imported here."""
    found = []

    def add(path, prefix):
        for m in pkgutil.iter_modules(path, prefix):
            if m.name.rpartition(".")[2].startswith("_"):
                continue
            try:
                found.append(importlib.import_module(m.name))
            except ImportError:
                if not m.name.startswith("ptcore.cuda."):
                    raise
                continue
            if m.ispkg:
                add(found[-1].__path__, m.name + ".")

    add(ptcore.__path__, "ptcore.")
    return found


def members(owner):
    """(name, object) of what the owner offers, its own operators among them."""
    for name in dir(owner):
        if not name.startswith("_"):
            module = isinstance(owner, types.ModuleType)
            value = getattr(owner, name) if module else inspect.getattr_static(owner, name)
            if isinstance(value, Later):        # a method that is imported when it is first asked for
                value = getattr(owner, name)
            yield name, getattr(value, "__func__", value)


def collect():
    """{id: (docstring, globals)}: one entry for each docstring with an example."""
    seen, found = set(), {}

    def add(name, thing, scope):
        doc = getattr(thing, "__doc__", None)
        if isinstance(doc, str) and ">>>" in doc and doc not in seen:
            seen.add(doc)
            found[name] = (doc, scope)

    front = {"ptcore": ptcore}          # not the front's own names: they hide bool, abs, sum
    add("ptcore", ptcore, front)
    for name, thing in [*members(ptcore)]:
        if not isinstance(thing, types.ModuleType):
            add(f"ptcore.{name}", thing, front)
            if isinstance(thing, type):
                for key, method in members(thing):
                    add(f"ptcore.{name}.{key}", method, front)
    for module in modules():
        scope = {k: v for k, v in vars(module).items() if not hasattr(builtins, k)} | {"ptcore": ptcore}
        add(module.__name__, module, scope)
        for name, thing in members(module):
            if isinstance(thing, types.ModuleType):
                continue
            add(f"{module.__name__}.{name}", thing, scope)
            if isinstance(thing, type):
                for key, method in members(thing):
                    add(f"{module.__name__}.{name}.{key}", method, scope)
    found.update(rest_of_sources({inspect.cleandoc(doc) for doc in seen}))
    return found


def rest_of_sources(seen):
    """The same of docstrings that no public name leads to, as those of functions of private modules.

    Docstrings of private classes and functions are templates of others.
    """
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        module = ".".join(("ptcore", *path.relative_to(ROOT).with_suffix("").parts))
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                name, doc = getattr(node, "name", ""), ast.get_docstring(node)
                if doc and ">>>" in doc and doc not in seen and (name[:2] == "__" or name[:1] != "_"):
                    found[f"{module}.{name}"] = (doc, {"ptcore": ptcore})
    return found


EXAMPLES = collect()


@walk("name", EXAMPLES, by=lambda name: name.rpartition(".")[0])
def test_example(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    doc, scope = EXAMPLES[name]
    test = doctest.DocTestParser().get_doctest(doc, dict(scope), name, None, 0)
    report = []
    runner = doctest.DocTestRunner()
    runner.run(test, out=report.append)
    assert runner.tries > 0
    assert not any(e.options.get(doctest.SKIP) for e in test.examples), "an example is skipped"
    assert runner.failures == 0, "".join(report)


@pytest.mark.parametrize("thing", [ptcore.add, ptcore.Generator, ptcore.Size, ptcore.nn.Linear, ptcore.einsum,
                                   ptcore.return_types, ptcore.autograd.Function, ptcore.optim.SGD])
def test_kinds_of_things_are_found(thing):
    """Compiled functions and classes, Python ones, modules."""
    assert ">>>" in thing.__doc__
    assert any(doc == thing.__doc__ for doc, _ in EXAMPLES.values())


def public_callables():
    for name, thing in members(ptcore):
        if callable(thing) and not isinstance(thing, types.ModuleType):
            yield f"ptcore.{name}", thing
    for name, thing in members(ptcore.Tensor):
        yield f"ptcore.Tensor.{name}", thing
    for module in modules():
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if not isinstance(thing, types.ModuleType):
                yield f"{module.__name__}.{name}", thing


def test_every_public_name_has_a_docstring():
    bare = sorted(name for name, thing in public_callables()
                  if callable(thing) and not inspect.getdoc(thing))
    assert not bare


def test_every_attribute_of_tensor_has_a_docstring():
    bare = [name for name, thing in inspect.getmembers_static(ptcore.Tensor)
            if not name.startswith("_") and inspect.isdatadescriptor(thing) and not inspect.getdoc(thing)]
    assert not bare
