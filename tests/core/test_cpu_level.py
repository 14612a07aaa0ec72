"""The level of kernels that is chosen, beside what the system says of the processor."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ptcore._ops import levels

pytestmark = pytest.mark.core

CPUINFO = Path("/proc/cpuinfo")
V3 = {"avx2", "fma", "bmi1", "bmi2", "movbe", "f16c", "abm"}            # abm: with lzcnt
V4 = {"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"}
LEVELS = ("base", "v3", "v4")


def level(**env):
    """The level of a new process."""
    code = "import ptcore; print(ptcore.show_config())"
    said = subprocess.run([sys.executable, "-P", "-c", code], env={**os.environ, **env}, capture_output=True, text=True,
                          check=True).stdout
    return re.search(r"^CPU level: (\w+)$", said, re.MULTILINE).group(1)


@pytest.mark.skipif(not CPUINFO.exists() or " avx" not in CPUINFO.read_text(), reason="no flags of x86-64 are listed")
def test_the_best_that_processor_and_build_have():
    flags = set(re.search(r"^flags\s*: (.*)$", CPUINFO.read_text(), re.MULTILINE).group(1).split())
    best = min(2 if flags >= V3 | V4 else 1 if flags >= V3 else 0, levels.built_levels() - 1)
    assert level(PTCORE_CPU_CAPABILITY="") == LEVELS[best]
    assert [level(PTCORE_CPU_CAPABILITY=asked) for asked in LEVELS] == [LEVELS[min(k, best)] for k in range(3)]


def test_what_the_build_has():
    assert levels.built_levels() in (1, 3) and levels.cpu_capability() in LEVELS[:levels.built_levels()]
