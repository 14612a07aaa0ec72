"""Prints files of the package, relative to it, one a line: all of Python (Meson installs them), or those of a pattern.

    python list_sources.py [PATTERN]        such as "cuda/kernels/*.cuh"
"""
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
for path in sorted(PACKAGE.rglob(sys.argv[1] if len(sys.argv) > 1 else "*.py")):
    relative = path.relative_to(PACKAGE)
    if relative.parts[0] != "_build":
        print(relative.as_posix())
