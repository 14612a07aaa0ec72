#!/usr/bin/env python3
"""The tables of CUDA's libraries against the real ones, which are large wheels:

    python tools/cuda_libraries.py FOLDER [pytest options]

An environment is made in FOLDER, with the packages of the extras ``cuda13``, ``cuda13-fft``, ``cuda13-solver`` and
``cuda13-dnn`` in it, and with all that this interpreter imports. tests/cuda/test_library_tables.py runs there; a test
that is skipped counts as failed. Neither a device nor a driver is needed.
"""
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("cuda13", "cuda13-fft", "cuda13-solver", "cuda13-dnn")


def requirements():
    """The packages of the extras, without ptcore itself."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return [r for name in EXTRAS for r in extras[name] if not r.startswith("ptcore[")]


def environment(folder):
    """The path of the environment's interpreter, once everything is installed."""
    venv.create(folder, with_pip=True, clear=not (folder / "pyvenv.cfg").exists())
    python = folder / "bin" / "python"
    command = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
    # Behind the environment's own packages stand this interpreter's, editable ones too; pip is not to count them.
    behind = packages / "behind.pth"
    behind.unlink(missing_ok=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements()], check=True)
    behind.write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    return python


def main(arguments):
    if not arguments or arguments[0].startswith("-"):
        print(__doc__)
        return 2
    python = environment(Path(arguments[0]).resolve())
    command = [python, "-P", "-m", "pytest", "tests/cuda/test_library_tables.py", "-rs", *arguments[1:]]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    print(done.stdout)
    return done.returncode or "SKIPPED" in done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
