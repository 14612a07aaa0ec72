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


def test_hooks_of_other_graphs_change_no_walk(plain, monkeypatch):
    """Edges to leaves with hooks are counted in graphs that have such a leaf, once, and marks are for named inputs."""
    counted, marked = [], []
    for name, calls in (("expect", counted), ("survey", marked)):
        before = getattr(plain.Run, name)
        monkeypatch.setattr(plain.Run, name, lambda *args, before=before, calls=calls: (calls.append(1), before(*args)))
    other = pt.ones(2, requires_grad=True)
    handles = [other.register_hook(lambda g: g), other.register_post_accumulate_grad_hook(lambda t: None)]
    x = pt.tensor([1., 2.], requires_grad=True)

    def backward(x):
        y = x
        for _ in range(3):
            y = y * x
        plain.run_backward([y.sum()], [pt.tensor(1.)], False, False, None, True)

    backward(x)
    assert x.grad.tolist() == [4, 32] and not counted and not marked
    seen = []
    handles.append(x.register_hook(lambda g: seen.append(g.tolist())))
    backward(x)
    assert seen == [[4, 32]] and len(counted) == 1 and not marked
    for handle in handles:
        handle.remove()
    backward(x)
    assert x.grad.tolist() == [12, 96] and len(counted) == 1 and not marked
