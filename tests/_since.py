"""What CI runs only where it has changed since it passed last: ``benchmarks/NIGHTLY.md`` names the commit."""
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "benchmarks" / "NIGHTLY.md"


def passed_last(part):
    """The commit at which a part of ``tools/nightly.py`` passed last, or None. Of a tree with local changes there is
    no commit."""
    lines = RECORD.read_text().splitlines() if RECORD.exists() else []
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith(f"| {part} |")]
    commit = cells[0][-1] if cells else "never"
    return None if commit in ("never", "unknown") or "+" in commit else commit


def git(*arguments):
    """What git answers, or None if it does not know."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def changed(part, *paths):
    """The paths below which something has changed since the part passed last; the reason where that is not known."""
    if os.environ.get("PTCORE_TEST_BUILDS"):
        return ["all is run"]
    commit = passed_last(part)
    if commit is None:
        return ["it has not passed yet"]
    found = git("diff", "--name-only", commit, "--", *paths)
    return ["git does not know"] if found is None else found.split()


def since(part, *paths):
    """A mark of tests that run where something below the paths has changed since the part passed, and at night."""
    return pytest.mark.skipif(not changed(part, *paths),
                              reason=f"as at the commit of the row {part!r} of benchmarks/NIGHTLY.md")
