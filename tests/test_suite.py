"""The suite itself: tests that others would disturb, or that would disturb others, are marked ``alone``; no file that
compares with torch ignores all warnings; ten draws are all rows."""
import re
from pathlib import Path

import pytest
from _alone import DISTURBED, FOLDERS
from _draw import described, drawn

pytestmark = pytest.mark.core

HERE = Path(__file__).resolve().parent


def test_marked():
    found = [path.relative_to(HERE) for path in sorted(HERE.rglob("test_*.py")) if DISTURBED.search(path.read_text())]
    assert len(found) > 25
    missing = {path.as_posix() for path in found if path.parts[0] not in FOLDERS
               and "pytest.mark.alone" not in (HERE / path).read_text()}
    assert not missing


@pytest.mark.parametrize("text", ["open('/proc/self/statm')", "os.kill(pid, 9)", "process.send_signal(signal.SIGKILL)",
                                  'run(["cc", "-shared"])', "cpu.memory_stats()"])
def test_what_is_recognised(text):
    assert DISTURBED.search(text)


EVERYTHING = re.compile(r"""filterwarnings\(["']ignore["']|(simplefilter|filterwarnings)\(["']ignore["']\)""")


def test_parity_does_not_ignore_all_warnings():
    files = [*HERE.rglob("test_parity_*.py")]
    assert len(files) > 40 or not (HERE.parent / "benchmarks").exists()     # an sdist has neither
    assert [path.name for path in files if EVERYTHING.search(path.read_text())] == []
    assert EVERYTHING.search('pytest.mark.filterwarnings("ignore")')
    assert not EVERYTHING.search('pytest.mark.filterwarnings("ignore:Creating a tensor:UserWarning")')


def test_ten_draws_are_all_rows():
    rows = [f"row {i}" for i in range(37)]
    assert drawn(rows, None) == rows
    parts = [drawn(rows, str(k)) for k in range(1234, 1244)]
    assert sorted([row for part in parts for row in part], key=rows.index) == rows
    assert {len(part) for part in parts} == {3, 4}
    assert drawn(rows, "1234") == drawn(iter(rows), "1254") == ["row 4", "row 14", "row 24", "row 34"]
    assert "rows 4, 14, ..." in described("1234") and "all rows" in described(None)
