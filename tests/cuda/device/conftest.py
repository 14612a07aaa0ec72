"""Tests that run on a CUDA device: the machine's own, or with ``PTCORE_TEST_CUDA=standin`` the stand-in driver's two.

Where there is neither they are not collected: ``tests/cuda/test_on_standin.py`` runs them in processes of their own, so
that the ordinary tests never see a CUDA device.
"""
import ctypes
import os
import sys
import tempfile
import threading
from pathlib import Path

import pytest

import ptcore

HERE = Path(__file__).resolve().parent
STANDIN = os.environ.get("PTCORE_TEST_CUDA") == "standin"
sys.path[:0] = [str(HERE.parent / "host"), str(HERE.parents[1] / "ops")]

if STANDIN:
    import load
    DRIVER = load.load(os.environ.get("PTCORE_STANDIN_DIR") or Path(tempfile.gettempdir()) / "ptcore-standin",
                       os.environ.get("PTCORE_STANDIN_SANITIZE", ""), os.environ.get("PTCORE_STANDIN_FUSED") == "1")
else:
    DRIVER = None

collect_ignore_glob = [] if ptcore.cuda.is_available() else ["test_*.py"]


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in Path(item.fspath).parents:
            item.add_marker(pytest.mark.cuda)


@pytest.fixture
def driver():
    """The stand-in driver's test functions."""
    if DRIVER is None:
        pytest.skip("of the stand-in driver")
    return DRIVER


@pytest.fixture
def order():
    """``order(n)`` makes the stand-in driver do the streams' work in another order; a card has its own."""
    def choose(n):
        if DRIVER is not None:
            DRIVER.standin_seed(ctypes.c_uint64(n))
    return choose


@pytest.fixture
def launches(driver):
    """A function that counts the kernels which another one launches."""
    from standin import Driver
    counters = Driver(driver).counters

    def count(f):
        before = counters()["launches"]
        f()
        return counters()["launches"] - before

    return count


@pytest.fixture
def by_threads(order):
    """``by_threads(f)``: what f returns on each of four threads, which have streams and orders of their own."""
    def run(f):
        got = []

        def work(k):
            order(k)
            stream = ptcore.cuda.Stream()
            stream.wait_stream(ptcore.cuda.default_stream())
            with ptcore.cuda.stream(stream):
                y = f()
            stream.synchronize()
            got.append(y.cpu().numpy())

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == 4
        return got

    return run


@pytest.fixture
def exact_convolution():
    """Convolution of float32 in float32, not in TF32."""
    with ptcore.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield
