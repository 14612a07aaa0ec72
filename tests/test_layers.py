"""Imports only go down: floor 0 (the ground), 1 (ops, cuda), 2 (autograd, func), 3 (the rest).

Parses every import and cimport of the package, function bodies included, and fails on an edge
that climbs.
"""
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.core

PACKAGE = Path(__file__).resolve().parent.parent / "ptcore"
IMPORT = re.compile(r"^\s*(?:from\s+(ptcore[\w.]*)\s+c?import\s+\(?([^#\n]*)|c?import\s+(ptcore[\w.]+))", re.M)


def floor(module):
    parts = module.split(".")
    if len(parts) == 1:
        return 3
    head = parts[1]
    if head in ("_ops", "cuda"):
        return 1
    if head in ("autograd", "func"):
        return 2
    if head.startswith("_"):
        return 0
    return 3


def module_of(path):
    return "ptcore." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts).replace(".__init__", "")


def sources():
    for path in sorted(PACKAGE.rglob("*")):
        relative = path.relative_to(PACKAGE).parts
        if path.suffix in (".py", ".pyx", ".pxd") and relative[0] not in ("_build",) and path.name != "__init__.py":
            yield path


@pytest.mark.skipif(not (PACKAGE / "_build").exists(), reason="needs the source tree")
def test_no_import_climbs():
    climbing = []
    for path in sources():
        here = module_of(path)
        name = path.relative_to(PACKAGE).as_posix()
        for where, _, plain in IMPORT.findall(path.read_text()):
            target = where or plain
            if target == "ptcore":
                continue
            if floor(target) > floor(here):
                climbing.append(f"{name} imports {target}")
    assert not climbing, "\n".join(climbing)


@pytest.mark.skipif(not (PACKAGE / "_build").exists(), reason="needs the source tree")
def test_no_file_over_800_lines():
    for suffix in ("*.py", "*.pyx", "*.pxd", "*.hpp", "*.h", "*.cpp"):
        for path in PACKAGE.rglob(suffix):
            assert len(path.read_text().splitlines()) <= 800, path
