"""Prints the package's Python files, relative to the package, one a line (Meson installs them)."""
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
for path in sorted(PACKAGE.rglob("*.py")):
    relative = path.relative_to(PACKAGE)
    if relative.parts[0] != "_build":
        print(relative.as_posix())
