"""Tests that others would disturb, or that would disturb others, are marked ``alone``."""
import re
from pathlib import Path

import pytest
from conftest import ALONE

pytestmark = pytest.mark.core

HERE = Path(__file__).resolve().parent
DISTURBED = re.compile(
    r"/proc/self|/proc/\{|/dev/shm|memory_stats\(|memory_allocated\(|getrusage|tracemalloc"     # counts and totals
    r"|SIG(KILL|TERM|INT|USR1|ALRM)|os\.kill|\.kill\(\)"                                         # signals
    r"|needs_compiler|\[\"(cc|c\+\+|g\+\+|meson|ninja)\"|pip\", \"install")                        # compilers


def test_marked():
    found = [path.relative_to(HERE) for path in sorted(HERE.rglob("test_*.py")) if DISTURBED.search(path.read_text())]
    assert len(found) > 25
    missing = {path.as_posix() for path in found if path.parts[0] not in ALONE
               and "pytest.mark.alone" not in (HERE / path).read_text()}
    assert not missing


@pytest.mark.parametrize("text", ["open('/proc/self/statm')", "os.kill(pid, 9)", "process.send_signal(signal.SIGKILL)",
                                  'run(["cc", "-shared"])', "cpu.memory_stats()"])
def test_what_is_recognised(text):
    assert DISTURBED.search(text)
