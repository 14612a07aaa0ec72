"""doc/source/reference/coverage.md says the truth about which names there are."""
import re
import sys
from pathlib import Path

import pytest

import ptcore as pt

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "doc" / "source" / "reference" / "coverage.md"
STATES = ("Same", "Same, and more", "Differs", "Not proven", "Absent")


def sections():
    """(module, state, names) of each paragraph."""
    module = None
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            module = line[3:].removeprefix("torch").strip(".")
        paragraph = re.match(r"\*\*(Same, and more|Same|Differs|Not proven|Absent)\b.*?\*\*.*?: (`.*)$", line)
        if paragraph and module != "Left out":
            state, names = paragraph.groups()
            # The reason may have names of its own: those of the list stand behind the last colon.
            yield module, state, re.findall(r"`([\w.]+)`", names.rpartition(": ")[2])


def exists(module, name):
    thing = pt
    for part in filter(None, [*module.split("."), name]):
        thing = getattr(thing, part, pytest)
        if thing is pytest:
            return False
    return True


def test_names():
    seen = list(sections())
    assert {"Same", "Same, and more", "Differs"} <= {state for _, state, _ in seen} <= set(STATES) and len(seen) > 50
    for module, state, names in seen:
        wrong = [n for n in names if exists(module, n) is (state == "Absent")]
        assert not wrong, f"{module} {state}: {wrong}; run tools/coverage_page.py"


def test_totals():
    head = re.search(r"^Of (\d+) names", PAGE.read_text(), re.M)
    row = re.search(r"^\| all \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE.read_text(), re.M)
    counts = [sum(len(names) for _, s, names in sections() if s == state) for state in STATES]
    assert [int(n) for n in row.groups()] == counts and int(head[1]) == sum(counts)


def test_tests_exist():
    """Those that compare with PyTorch are not in an sdist, as benchmarks are not."""
    named = set(re.findall(r"by the tests of\*\* (\S+):", PAGE.read_text()))
    missing = {path for path in named if not (ROOT / path).exists()}
    assert named and all("test_parity_" in path for path in missing)
    assert not missing or not (ROOT / "benchmarks").exists()


@pytest.mark.parity
def test_every_documented_name_is_on_the_page(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
    import coverage_page
    names, left = coverage_page.documented(torch)
    listed = {(module, name) for module, _, own in sections() for name in own}
    assert {(module, name) for module, own in names.items() for name in own} == listed
    text = PAGE.read_text().partition("## Left out")[2]
    assert all(f"`{name}`" in text for name in left)
