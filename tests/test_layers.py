"""Imports only go down: layer 0 (the core), 1 (ops, cuda), 2 (autograd), 3 (the rest).

Parses every import and cimport of the package, function bodies included, and fails on an edge
that climbs.
"""
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.core

PACKAGE = Path(__file__).resolve().parent.parent / "ptcore"
IMPORT = re.compile(r"^\s*(?:from\s+(ptcore[\w.]*)\s+c?import\s+(\([^)]*\)|[^#\n]*)|c?import\s+(ptcore[\w.]+))", re.M)


def layer(module):
    parts = module.split(".")
    if len(parts) == 1:
        return 3
    head = parts[1]
    if head in ("_ops", "cuda"):
        return 1
    if head == "autograd":
        return 2
    if head.startswith("_"):
        return 0
    return 3


def module_of(path):
    return ".".join(("ptcore", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def sources():
    for path in sorted(PACKAGE.rglob("*")):
        relative = path.relative_to(PACKAGE).parts
        if path.suffix in (".py", ".pyx", ".pxd") and relative[0] != "_build":
            yield path


def targets(text):
    """The modules that a source imports; of ``from ptcore import a, b`` those of the names that are modules."""
    for where, names, plain in IMPORT.findall(text):
        if where != "ptcore":
            yield where or plain
            continue
        for name in re.findall(r"\w+", re.sub(r"\bas\s+\w+|#.*", "", names)):
            if any((PACKAGE / f"{name}{suffix}").exists() for suffix in ("", ".py", ".pyx")):
                yield f"ptcore.{name}"


@pytest.mark.skipif(not (PACKAGE / "_build").exists(), reason="needs the source tree")
def test_no_import_climbs():
    climbing = []
    for path in sources():
        here = module_of(path)
        name = path.relative_to(PACKAGE).as_posix()
        for target in targets(path.read_text()):
            if layer(target) > layer(here):
                climbing.append(f"{name} imports {target}")
    assert not climbing, "\n".join(climbing)


@pytest.mark.skipif(not (PACKAGE / "_build").exists(), reason="needs the source tree")
def test_no_file_over_800_lines():
    for suffix in ("*.py", "*.pyx", "*.pxd", "*.hpp", "*.h", "*.cpp"):
        for path in PACKAGE.rglob(suffix):
            assert len(path.read_text().splitlines()) <= 800, path
