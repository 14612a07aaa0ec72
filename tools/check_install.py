#!/usr/bin/env python3
"""Installs ptcore in the ways that have no network and no build isolation, and uses it:

    python tools/check_install.py [--keep]

(1) ``pip install --no-index --no-build-isolation .`` into a fresh environment, (2) an editable
install in its place, whose modules are those of the source tree and which builds again what has
changed. The environment sees this interpreter's packages (build tools, NumPy, SciPy) through a path
file, so nothing is fetched. The isolated install is what the README's commands and CI do.
"""
import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
USE = """
import ptcore as pt
x = pt.ones(3, 4, requires_grad=True)
layer = pt.nn.Linear(4, 2)
layer(x).exp().sum().backward()
assert x.grad.shape == (3, 4) and layer.weight.grad.shape == (2, 4)
assert "autograd: compiled" in pt.show_config(), pt.show_config()
print(pt.__file__, pt.nn.__file__)
"""


def run(*command, cwd):
    """Output of a command; its own text on failure."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PIP_NO_INDEX")}
    done = subprocess.run(list(map(str, command)), cwd=cwd, text=True, capture_output=True, env=environment)
    if done.returncode:
        raise SystemExit(f"check_install: {' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def environment(folder):
    """A fresh environment that also finds what is installed for this interpreter; its python."""
    run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder.parent).strip()
    Path(site, "outer.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def where(python, cwd):
    return [Path(p).resolve() for p in run(python, "-P", "-c", USE, cwd=cwd).split()]


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--keep", action="store_true", help="leave the folder with the environment")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="ptcore-install-"))
    offline = ["--no-index", "--no-build-isolation", "--no-deps"]
    try:
        python = environment(folder / "env")
        run(python, "-m", "pip", "install", *offline, ROOT, cwd=folder)
        package, _ = where(python, folder)
        assert folder.resolve() in package.parents, f"imported from {package}"
        print(f"installed: {package.parent}")
        run(python, "-m", "pip", "uninstall", "-y", "ptcore", cwd=folder)

        # A copy, because an editable install rebuilds in its source tree.
        source = folder / "source"
        run("git", "clone", "-q", ROOT, source, cwd=folder)
        run(python, "-m", "pip", "install", *offline, "-e", source, cwd=folder)
        package, nn = where(python, folder)
        assert source.resolve() in nn.parents, f"imported from {nn}"
        row = source / "ptcore" / "_ops" / "activation" / "rows.py"
        row.write_text(row.read_text().replace("NaN stays NaN.", "NaN stays as it is.", 1))
        doc = run(python, "-P", "-c", "import ptcore; print(ptcore.relu.__doc__)", cwd=folder)
        assert "NaN stays as it is." in doc, "an edited row was not built again"
        print(f"editable: {package.parent}")
    finally:
        if args.keep:
            print(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
