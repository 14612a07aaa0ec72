"""The examples of the user guide run as they stand, each page in a folder of its own."""
import doctest
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parent.parent / "doc" / "source" / "guide"
PAGES = sorted(GUIDE.glob("*.rst"))

pytestmark = [pytest.mark.core, pytest.mark.skipif(not GUIDE.exists(), reason="needs the source tree")]


@pytest.mark.parametrize("page", [p for p in PAGES if ">>>" in p.read_text()], ids=lambda p: p.stem)
def test_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page.stem == "torch_programs":           # other tests have PyTorch itself imported
        out = subprocess.run([sys.executable, "-P", "-m", "doctest", "-o", "ELLIPSIS", str(page)], capture_output=True,
                             text=True)
        assert out.returncode == 0, out.stdout + out.stderr
        return
    failures, tries = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert tries > 0
    assert failures == 0


def test_every_page_is_in_the_contents():
    contents = (GUIDE / "index.rst").read_text().split()
    assert {p.stem for p in PAGES} - {"index"} <= set(contents)
