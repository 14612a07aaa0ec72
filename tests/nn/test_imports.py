"""What importing ptcore.nn, optim and utils costs: no heavy standard modules."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ptcore

pytestmark = pytest.mark.core

ROOT = Path(ptcore.nn.__file__).parents[1]
FILES = sorted(
    path for folder in ("_ops", "nn", "optim", "utils") for path in (ROOT / folder).rglob("*.py")
)
# These are read when one of their functions is first asked for.
LATER = {ROOT / name for name in ("_ops/table/function_schema.py", "utils/_selective.py", "utils/_summaries.py",
                                  "utils/benchmark.py",
                                  "utils/restart.py", "utils/_extension_build.py", "nn/attention/__init__.py",
                                  "nn/attention/_block_mask.py",
                                  "nn/attention/flex_attention.py",
                                  "nn/modules/linear_cross_entropy_options.py", "nn/utils/prune.py")}
HEAVY = {
    "typing", "dataclasses", "inspect", "re", "enum", "contextlib", "warnings", "json",
    "tempfile", "numpy", "scipy", "torch",
}  # fmt: skip


def top_level_imports(path):
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_heavy_import_at_the_top(path):
    assert HEAVY.isdisjoint(top_level_imports(path)) != (path in LATER)


def test_these_are_read_later():
    names = [".".join(("ptcore", *path.relative_to(ROOT).with_suffix("").parts)) for path in LATER]
    script = ("import sys, ptcore, ptcore.special, ptcore.nn, ptcore.optim, ptcore.utils, ptcore.utils.data\n"
              f"print(set({names!r}) & set(sys.modules))")
    out = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"


def test_files_were_found():
    assert len(FILES) > 30


def test_torch_is_never_imported():
    for path in [*FILES, *(ROOT / "serialization").glob("*.py"), ROOT / "testing.py"]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in getattr(node, "names", []) if hasattr(a, "name")]
            names.append(getattr(node, "module", None) or "")
            assert not any(n.partition(".")[0] == "torch" for n in names), path
