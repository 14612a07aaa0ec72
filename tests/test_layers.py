"""Imports only go down: layer 0 (the ground), 1 (ops, cuda), 2 (autograd), 3 (the rest).

Parses every import and cimport of the package, function bodies included, and fails on an edge that climbs. A name
that the package itself offers, and no module of it, is of the highest layer: what stands below takes it from its
own file. The one table that leads up, _lazy.py, is for users: nothing in the package reads a name through it.
What may import what above layer 2 says test_rooms.py.
"""
import ast
import re
from pathlib import Path

import pytest
from _imports import PACKAGE, imports, is_module, module_of, sources

from ptcore._lazy import MODULES, TABLE

pytestmark = pytest.mark.core

SOURCE_ONLY = pytest.mark.skipif(not (PACKAGE / "_build").exists(), reason="needs the source tree")


def layer(module):
    parts = module.split(".")
    if len(parts) == 1:
        return 3
    head = parts[1]
    if head in ("_ops", "_names", "cuda"):
        return 1
    if head == "autograd":
        return 2
    if head.startswith("_"):
        return 0
    return 3


@SOURCE_ONLY
@pytest.mark.outer
def test_no_import_climbs():
    climbing = []
    for path in sources():
        here = module_of(path)
        name = path.relative_to(PACKAGE).as_posix()
        climbing += [f"{name} imports {i.module}" for i in imports(path) if layer(i.module) > layer(here)]
    assert not climbing, "\n".join(climbing)


@SOURCE_ONLY
@pytest.mark.outer
def test_the_lazy_table_is_for_users():
    """Names that it holds are taken from their files."""
    lazy = {(package, name) for package, files in TABLE.items() for names in files.values() for name in names}
    found = []
    for path in sources():
        if path.suffix != ".py" or "examples" in path.parts:       # those are users
            continue
        tree = ast.parse(path.read_text())
        aliases = {a.asname or a.name: a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        aliases |= {a.asname or a.name: f"{n.module}.{a.name}" for n in ast.walk(tree)
                    if isinstance(n, ast.ImportFrom) for a in n.names}
        for node in ast.walk(tree):
            used = []
            if isinstance(node, ast.ImportFrom):
                used = [(node.module, a.name) for a in node.names]
            elif isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.Attribute)):
                head, _, rest = ast.unparse(node.value).partition(".")
                used = [(".".join(filter(None, (aliases.get(head), rest))), node.attr)]
            found += [f"{path.relative_to(PACKAGE)}:{node.lineno}: {'.'.join(use)}" for use in used if use in lazy]
    assert not found, "\n".join(found)


LONGEST = 80        # lines of a body
C_FUNCTION = re.compile(r"^[A-Za-z][^\n;{}=#]*\([^;{}]*\)(?: const)? \{\n((?:(?!\}).*\n)*)\}", re.M)


@SOURCE_ONLY
@pytest.mark.outer
def test_long_functions_say_why():
    """Of C, C++ and CUDA, in the comment above them: "One function: ...". Of Python, without docstrings, there are
    none."""
    found, said = [], 0
    for path in sorted(p for suffix in ("c", "cpp", "h", "cu", "cuh") for p in PACKAGE.rglob(f"*.{suffix}")):
        text = path.read_text()
        for match in C_FUNCTION.finditer(text):
            if match[1].count("\n") > LONGEST:
                above = text[:match.start()].rpartition("\n\n")[2]
                above = above.partition("template <")[0] if "template <" in above else above
                said += "One function: " in above
                if "One function: " not in above:
                    found.append(f"{path.relative_to(PACKAGE)}:{text.count(chr(10), 0, match.start()) + 1}")
    for path in sources():
        if path.suffix == ".py":
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
                    if node.end_lineno - first.lineno + 1 > LONGEST:
                        found.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert not found, "\n".join(found)
    assert said >= 5        # what is looked for is found


@SOURCE_ONLY
def test_the_lazy_table_names_what_there_is():
    for files in TABLE.values():
        assert all(is_module(f"ptcore.{file}") for file in files)
    for package, modules in MODULES.items():
        assert all(is_module(f"{package}.{name}") for name in modules)


# Who tells the allocator of kernels that run, beside the bracket in _gil.pxd, and why.
KERNELS_APART = {
    "_ops/call/run.pyx": "the BLAS is imported before the kernel runs, and other threads run meanwhile",
    "_ops/fft/pocketfft.pyx": "the kernel takes the GIL, which the library behind it gives up",
}


@SOURCE_ONLY
def test_ops_give_up_the_gil_in_one_place():
    paths = sorted((PACKAGE / "_ops").rglob("*.pyx"))
    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in paths}
    apart = re.compile(r"with nogil|PyEval_|Py_BEGIN_ALLOW_THREADS")
    assert [name for name, text in texts.items() if apart.search(text)] == []
    assert [name for name, text in texts.items() if "pt_kernels_enter" in text] == list(KERNELS_APART)
    # One call of a C function stands in a bracket.
    brackets = [(name, lines) for name, text in texts.items()
                for lines in re.findall(r"= release_gil\(.*\)\n((?:.*\n)*?) *restore_gil\(", text)]
    assert len(brackets) == sum(len(re.findall(r"= release_gil\(", text)) for text in texts.values()) > 5
    assert [(name, lines) for name, lines in brackets if lines.count("\n") != 1] == []


@SOURCE_ONLY
def test_no_file_over_800_lines():
    for suffix in ("*.py", "*.pyx", "*.pxd", "*.hpp", "*.h", "*.c", "*.cpp", "*.cuh"):
        for path in PACKAGE.rglob(suffix):
            assert len(path.read_text().splitlines()) <= 800, path


@SOURCE_ONLY
@pytest.mark.parametrize("most, suffixes", [(100, ("c", "h", "cpp", "hpp", "cuh", "cu")), (120, ("pyx", "pxd", "pxi"))])
def test_lines_are_short(most, suffixes):
    paths = [path for folder in (PACKAGE, Path(__file__).parent) for suffix in suffixes
             for path in folder.rglob(f"*.{suffix}")]
    assert len(paths) > 80
    assert [f"{path}:{k}" for path in paths for k, line in enumerate(path.read_text().splitlines(), 1)
            if len(line) > most] == []
