"""The tests of tests/cuda/device on the stand-in driver: each file in a process of its own, which alone sees it."""
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("cuda.bindings")

HERE = Path(__file__).resolve().parent
FILES = sorted(path.name for path in (HERE / "device").glob("test_*.py"))


def run(name):
    environment = {**os.environ, "PTCORE_TEST_CUDA": "standin"}
    return subprocess.run([sys.executable, "-P", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--durations=3",
                           HERE / "device" / name], env=environment, cwd=HERE.parents[1], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.fixture(scope="module")
def runs(request):
    """File to what becomes of it: two at a time, of those that were asked for."""
    wanted = [item.callspec.params["name"] for item in request.session.items if item.path == Path(__file__)]
    with ThreadPoolExecutor(2) as pool:
        yield {name: pool.submit(run, name) for name in wanted}


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("name", FILES)
def test_file(name, runs):
    done = runs[name].result()
    assert done.returncode == 0, done.stdout[-6000:]
    print(done.stdout[-600:])
