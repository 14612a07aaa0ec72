"""A second device registered at run time: memory, copies, ops, gradients, errors; no file of ``_ops`` knows it."""
import ctypes
import gc
from pathlib import Path

import numpy as np
import pytest
from native import build, needs_compiler

import ptcore as pt
from ptcore._ops.calling import run
from ptcore._ops.optimizers import optimizers

pytestmark = [pytest.mark.core, needs_compiler]


@pytest.fixture(scope="module")
def stub():
    library = build((Path(__file__).parent / "backend.cpp").read_text())
    address = ctypes.addressof(ctypes.c_char.in_dll(library, "stub_backend"))
    pt.ops.register_backend("stub", address)
    pt.ops.register_kernel("sum", "stub", ctypes.cast(library.stub_sum_all, ctypes.c_void_p).value)
    pt.ops.register_kernel("mm", "stub", library.stub_mm)
    pt.ops.register_kernel("index_accumulate", "stub", library.stub_index_accumulate)
    return library


def test_device_object(stub):
    assert pt.empty(2, device="stub").device == pt.device("stub", 0)
    assert pt.device("stub").type == "stub"
    with pytest.raises(RuntimeError, match="index 0 alone"):
        pt.empty(2, device="stub:1")
    with pytest.raises(ValueError, match="register_backend"):
        pt.ops.register_backend("cpu", 1)


@pytest.mark.parametrize("dtype", [pt.bool, pt.int64, pt.float32, pt.float64])
def test_round_trip(stub, dtype):
    x = pt.tensor([[0, 1, 2], [3, 4, 5]]).to(dtype)
    there = x.to("stub")
    assert there.device.type == "stub" and there.dtype is dtype
    assert there.cpu().tolist() == x.tolist()
    assert there.tolist() == x.tolist()
    assert there.t()[1:].tolist() == x.t()[1:].tolist()
    assert there[1, 2].item() == x[1, 2].item()
    assert x.t()[::-1].to("stub").tolist() == x.t()[::-1].tolist()
    assert there.to("stub") is there


def test_memory_is_returned(stub):
    before = stub.stub_live_bytes()
    x = pt.zeros(100, device="stub")
    y = x[10:]
    assert stub.stub_live_bytes() == before + 400
    del x
    assert y.tolist() == [0] * 90
    del y
    gc.collect()
    assert stub.stub_live_bytes() == before
    with pytest.raises(pt.OutOfMemoryError, match="stub:0: cannot allocate"):
        pt.empty(1 << 24, device="stub")
    assert pt.empty(0, device="stub").tolist() == []


def test_ops_and_promotion(stub):
    x = pt.tensor([[1., -2., 3.], [4., 5., -6.]])
    there = x.to("stub")
    for f in (lambda t: t + 1, lambda t: 2 / t, lambda t: (t * t.sum()) - t, pt.relu, pt.exp,
              lambda t: t > 0, lambda t: t + pt.tensor(2.), lambda t: t[:, ::2] * t[:, 1:2],
              lambda t: t @ t.t(), lambda t: (-t).double() + t, lambda t: t.clone().fill_(7)):
        got, expected = f(there), f(x)
        assert got.device.type == "stub" and got.dtype is expected.dtype
        np.testing.assert_allclose(got.cpu().numpy(), expected.numpy(), rtol=1e-6)


def test_in_place_and_copy(stub):
    there = pt.zeros(2, 3, device="stub")
    there += 1
    there[0] *= 5
    there[:, 1].copy_(pt.tensor([8., 9.]))
    assert there.tolist() == [[5, 8, 5], [1, 9, 1]]
    back = pt.zeros(2, 3)
    back.copy_(there)
    assert back.tolist() == there.tolist()


def test_gradients_cross_devices(stub):
    w = pt.tensor([[1., 2.], [3., 4.]], requires_grad=True)
    x = pt.tensor([[1., -1.], [2., 0.5]]).to("stub")
    loss = (pt.relu(x @ w.to("stub")) * 2).sum()
    loss.backward()
    reference = w.detach().clone().requires_grad_()
    (pt.relu(x.cpu() @ reference) * 2).sum().backward()
    assert w.grad.device.type == "cpu"
    np.testing.assert_allclose(w.grad.numpy(), reference.grad.numpy())
    leaf = pt.ones(3, device="stub", requires_grad=True)
    (leaf * leaf).sum().backward()
    assert leaf.grad.device.type == "stub" and leaf.grad.tolist() == [2, 2, 2]


def test_an_output_that_starts_as_a_copy(stub):
    x = pt.tensor([[1., 2.], [3., 4.]]).to("stub")
    there = run("index_accumulate", (x.t(), x, (pt.tensor([0]).to("stub"),), (0,), True))
    assert there.tolist() == [[2, 3], [2, 4]]


def test_a_kernel_that_leaves_a_call_to_the_decomposition(stub):
    for op in ("addmm", "cumsum"):
        pt.ops.register_kernel(op, "stub", stub.stub_decline)
    x = pt.tensor([[1., 2.], [3., 4.]]).to("stub")
    assert pt.addmm(x, x, x).tolist() == [[8, 12], [18, 26]]
    with pytest.raises(NotImplementedError, match=r"cumsum: a kernel leaves these sizes to a decomposition, which"):
        x.cumsum(0)


def test_failures_name_the_device_and_its_reason(stub):
    with pytest.raises(RuntimeError, match=r"sqrt: failed on stub:0: the stub was unplugged"):
        pt.ones(2, device="stub").sqrt()
    with pytest.raises(TypeError, match=r"copy: cpu to stub:0 failed: the stub was unplugged"):
        pt.ones(2, dtype=pt.int16).to("stub")


@pytest.mark.parametrize(("name", "error", "text"), [
    ("other_abi", RuntimeError, r"'fresh' was compiled against ABI 2 of ptcore, and the ptcore that runs has ABI 3: build it again"),
    ("too_small", RuntimeError, r"must have the size of a pt_backend, at least \d+, got 16"),
    ("no_copy", ValueError, r"'fresh' must have the functions allocate, release, copy")])
def test_a_backend_of_another_version_is_refused(stub, name, error, text):
    address = ctypes.addressof(ctypes.c_char.in_dll(stub, name))
    with pytest.raises(error, match=text):
        pt.ops.register_backend("fresh", address)
    with pytest.raises(RuntimeError, match="type must be one of"):
        pt.device("fresh")


def test_a_step_asks_for_its_own_kernel(stub):
    """A backend that counts the steps of one formula runs the others by ops."""
    stub.stub_asked.restype = ctypes.c_char_p
    p, a, g = (pt.tensor(values).to("stub") for values in ([1.0, 2.0], [0.0, 0.0], [0.5, 0.5]))
    counters = [pt.tensor(value).to("stub") for value in (0.0, 0.5, 1.0)]
    step = pt._ops.function("step_asgd")
    with pt.no_grad():
        step([p], [a], [g], *[[c] for c in counters], 0.5, 0.0, 0.75, 1e6, 0.0, False)
    assert {*stub.stub_asked().decode().split()} == {"step_counted:asgd", "step:asgd"}
    assert p.tolist() == [0.75, 1.75] and counters[0].item() == 1
    optimizers.zero_([p])
    assert p.tolist() == [0, 0]


def test_errors(stub):
    x = pt.ones(2, device="stub")
    with pytest.raises(RuntimeError, match=r"add: all tensors must be on one device, got stub:0 and cpu"):
        x + pt.ones(2)
    with pytest.raises(NotImplementedError, match=r"tanh: there is no kernel for float32 on device stub:0"):
        x.tanh()
    with pytest.raises(NotImplementedError, match=r"softmax: there is no kernel for device stub"):
        x.softmax(0)
    with pytest.raises(RuntimeError, match=r"sum: the stub sums over everything only"):
        pt.ones(2, 2, device="stub").sum(0)
    with pytest.raises(TypeError, match=r"stub:0 to numpy"):
        x.numpy()
    with pytest.raises(NotImplementedError, match="meta tensor"):
        pt.empty(2, device="meta").to("stub")
    assert x.to("meta").device.type == "meta"
    assert "device='stub:0'" in repr(x)
