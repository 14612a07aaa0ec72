"""The tests of tests/cuda/device on the stand-in driver: each file in a process of its own, which alone sees it."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cuda.bindings")

HERE = Path(__file__).resolve().parent
FILES = sorted(path.name for path in (HERE / "device").glob("test_*.py"))


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("name", FILES)
def test_file(name):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    done = subprocess.run([sys.executable, "-P", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--durations=3",
                           HERE / "device" / name], env={**environment, "PTCORE_TEST_CUDA": "standin"},
                          cwd=HERE.parents[1], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout[-6000:]
    print(done.stdout[-600:])
