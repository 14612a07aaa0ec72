"""The suite itself: tests that others would disturb, or that would disturb others, are marked ``alone``; no file of
tests/parity ignores all warnings."""
import re
from pathlib import Path

import pytest
from _alone import DISTURBED, FOLDERS

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
    files = [*(HERE / "parity").glob("*.py")]
    assert len(files) > 40
    assert [path.name for path in files if EVERYTHING.search(path.read_text())] == []
    assert EVERYTHING.search('pytest.mark.filterwarnings("ignore")')
    assert not EVERYTHING.search('pytest.mark.filterwarnings("ignore:Creating a tensor:UserWarning")')
