"""The examples of the user guide, and of the pages for developers that need no build, run as they stand, each page in
a folder of its own."""
import doctest
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from ptcore import _node

GUIDE = Path(__file__).resolve().parent.parent / "doc" / "source" / "guide"
PAGES = sorted(GUIDE.glob("*.rst"))
DEVELOPERS = [GUIDE.parent / "dev" / "interpreters.rst"]

pytestmark = [pytest.mark.core, pytest.mark.skipif(not GUIDE.exists(), reason="needs the source tree")]


@pytest.mark.parametrize("page", [p for p in PAGES + DEVELOPERS if ">>>" in p.read_text()], ids=lambda p: p.stem)
@pytest.mark.outer
def test_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page.stem == "torch_programs":           # other tests have PyTorch itself imported
        out = subprocess.run([sys.executable, "-P", "-m", "doctest", "-o", "ELLIPSIS", str(page)], capture_output=True,
                             text=True)
        assert out.returncode == 0, out.stdout + out.stderr
        return
    text = page.read_text()
    test = doctest.DocTestParser().get_doctest(text, {"__name__": "__main__"}, page.name, str(page), 0)
    if not importlib.util.find_spec("numba"):   # which the extra "parity" has, and CI with it
        test.examples = [e for e in test.examples if "numba" not in e.source]
    if not _node.HAS_FRAMES:                    # then errors name no line
        test.examples = [e for e in test.examples if "__notes__" not in e.source]
    failures, tries = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
    assert tries > 0
    assert failures == 0


def test_every_page_is_in_the_contents():
    contents = (GUIDE / "index.rst").read_text().split()
    assert {p.stem for p in PAGES} - {"index"} <= set(contents)
