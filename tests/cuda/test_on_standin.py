"""The tests of tests/cuda/device on the stand-in driver: each file in a process of its own, which alone sees it.

All files run where the backend, or what hands it its calls, has changed since they passed at night; else CI draws some.
"""
import os
import subprocess
import sys
from pathlib import Path

import pytest
from _draw import drawn
from _since import changed

pytest.importorskip("cuda.bindings")

HERE = Path(__file__).resolve().parent
FILES = sorted(path.name for path in (HERE / "device").glob("test_*.py"))
ABOUT = ("ptcore/cuda", "tests/cuda", "ptcore/_device.pyx", "ptcore/_memory", "ptcore/_ops/call", "ptcore/_ops/include",
         "ptcore/_ops/table")


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("name", FILES if changed("cuda/device", *ABOUT) else drawn(FILES))
def test_file(name):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    done = subprocess.run([sys.executable, "-P", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--durations=3",
                           HERE / "device" / name], env={**environment, "PTCORE_TEST_CUDA": "standin"},
                          cwd=HERE.parents[1], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout[-6000:]
    print(done.stdout[-600:])
