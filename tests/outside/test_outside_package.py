"""Builds the Cython package in package/ against the installed ptcore and uses its ops."""
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ptcore as pt

PACKAGE = Path(__file__).parent / "package"


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outside")
    source = shutil.copytree(PACKAGE, folder / "source")
    for command in (["setup", str(folder / "build"), str(source)], ["compile", "-C", str(folder / "build")]):
        done = subprocess.run([sys.executable, "-P", "-m", "mesonbuild.mesonmain", *command],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    (module,) = [p for p in (folder / "build").glob("outside.*") if p.suffix in (".so", ".pyd")]
    spec = importlib.util.spec_from_file_location("outside", module)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_reads_strided_memory(outside):
    x = pt.arange(12, dtype=pt.float64).reshape(3, 4)
    assert outside.total(x) == 66
    assert outside.total(x.t()[1:, ::2]) == np.arange(12).reshape(3, 4).T[1:, ::2].sum()
    assert outside.total(x[::-1]) == 66
    with pytest.raises(TypeError, match="float64"):
        outside.total(x.float())
    with pytest.raises(TypeError, match="Tensor"):
        outside.total(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="data_ptr"):
        outside.total(x.to("meta"))


def test_makes_and_writes(outside):
    assert outside.ramp(4).tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="negative"):
        outside.ramp(-1)
    x = pt.zeros(3, dtype=pt.float64)
    version = x._version
    assert outside.add_one_(x).tolist() == [1, 1, 1]
    assert x._version == version + 1
    with pytest.raises(RuntimeError, match="leaf"):
        outside.add_one_(pt.zeros(3, dtype=pt.float64, requires_grad=True))
    frozen = np.zeros(3)
    frozen.setflags(write=False)
    with pytest.raises(RuntimeError, match="read-only"):
        outside.add_one_(pt.from_numpy(frozen))


def test_a_write_to_a_saved_tensor_is_caught(outside):
    w = pt.ones(3, dtype=pt.float64, requires_grad=True)
    x = pt.ones(3, dtype=pt.float64)
    y = (w * x).sum()
    outside.add_one_(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_wraps_foreign_memory(outside):
    memory = np.arange(5.)
    t = outside.over(memory)
    t += 1
    assert memory.tolist() == [1, 2, 3, 4, 5]
    reverse = outside.over(memory, True)
    assert reverse.tolist() == [5, 4, 3, 2, 1]
    alive = sys.getrefcount(memory)
    del t, reverse
    assert sys.getrefcount(memory) < alive


def test_calls_ops(outside):
    x = pt.tensor([1., 2.], requires_grad=True)
    outside.product(x, 3).sum().backward()
    assert x.grad.tolist() == [3, 3]
    with pytest.raises(ValueError, match="elementwise"):
        outside.call_binary("sum", x, x)
    with pytest.raises(KeyError):
        outside.call_binary("no_such_op", x, x)


@pytest.mark.parametrize("name", ["cube", "hypot"])
def test_gradients_of_both_orders(outside, name):
    op = getattr(outside, name)
    inputs = [pt.rand(4, dtype=pt.float64) + 0.5 for _ in range(1 if name == "cube" else 2)]
    expected = inputs[0].numpy() ** 3 if name == "cube" else np.hypot(*[t.numpy() for t in inputs])
    np.testing.assert_allclose(op(*inputs).numpy(), expected, rtol=1e-15)
    for t in inputs:
        t.requires_grad_()
    assert pt.autograd.gradcheck(op, tuple(inputs))
    assert pt.autograd.gradgradcheck(op, tuple(inputs))


def test_meta_and_errors(outside):
    m = pt.empty(3, dtype=pt.float64, device="meta")
    assert outside.hypot(m, m).shape == (3,)
    assert outside.hypot(m, m).device.type == "meta"
    with pytest.raises(RuntimeError, match="outside_hypot: shapes must agree"):
        outside.hypot(m, pt.empty(4, dtype=pt.float64, device="meta"))
    sliced = pt.ones(6, dtype=pt.float64)[::2]
    with pytest.raises(RuntimeError, match="outside_hypot: both inputs must be contiguous"):
        outside.hypot(sliced, sliced)
    with pytest.raises(TypeError, match="outside_cube"):
        outside.cube(pt.ones(3))
    assert pt.ops["outside_cube"].doc == "The third power."


def test_under_the_tracer(outside):
    from interpreters import Tracer

    def program(x, y):
        return (outside.hypot(x, y) + outside.cube(x)).sum()
    x, y = pt.rand(3, dtype=pt.float64), pt.rand(3, dtype=pt.float64)
    with Tracer() as tracer:
        program(x, y)
    assert [entry[0] for entry in tracer.tape] == ["outside_hypot", "outside_cube", "add", "sum"]
    x2 = pt.rand(3, dtype=pt.float64)
    assert tracer.replay({id(x): x2, id(y): y}).item() == program(x2, y).item()
