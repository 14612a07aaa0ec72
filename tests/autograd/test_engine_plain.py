"""The engine's file as plain Python (-Dcompile_python=false): two threads that walk one graph."""
import importlib.util
import sys
import threading
from pathlib import Path

import pytest

import ptcore as pt

pytest.importorskip("cython")
# Of the checkout: a build that compiles the module does not install its source.
SOURCE = Path(__file__).resolve().parents[2] / "ptcore" / "autograd" / "engine.py"


@pytest.fixture
def plain():
    before = set(sys.modules)
    spec = importlib.util.spec_from_file_location("plain_engine", SOURCE)
    engine = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(engine)
    assert engine.undivided is not None and not engine.cython.compiled
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield engine
    sys.setswitchinterval(interval)
    for name in set(sys.modules) - before:
        if name.startswith("cython.cimports"):
            del sys.modules[name]


def test_two_threads_on_one_graph(plain):
    x = pt.tensor([1., 2., 3.], dtype=pt.float64, requires_grad=True)
    y = x
    for _ in range(20):
        y = y * 1.5 + x.sin() * y
    loss = y.sum()
    (expected,) = pt.autograd.grad(loss, x, retain_graph=True)
    wrong = []

    def walk():
        for _ in range(600):
            try:
                (got,) = plain.run_backward([loss], [pt.ones_like(loss)], True, False, [x], False)
                if not pt.allclose(got, expected):
                    wrong.append(got)
            except Exception as error:
                wrong.append(error)
    threads = [threading.Thread(target=walk) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong, wrong[:3]
