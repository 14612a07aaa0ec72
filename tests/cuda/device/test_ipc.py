"""Tensors and events of a device between processes: values, who keeps the memory, and what cannot be sent."""
import gc
import os
import signal

import ipc_children
import numpy as np
import pytest
from in_process import STANDIN, run

import ptcore
import ptcore.multiprocessing as mp
from ptcore import cuda, nn
from ptcore.multiprocessing import _devices

MIB = 1 << 20
pytestmark = pytest.mark.skipif(os.name != "posix", reason="the driver has it on Linux")


class Child:
    """A process that does what it is told (``ipc_children.serve``)."""

    def __init__(self, *tensors):
        context = mp.get_context("spawn")
        self.pipe, there = context.Pipe()
        self.process = context.Process(target=ipc_children.serve, args=(there, *tensors), daemon=True)
        self.process.start()

    def tell(self, *order):
        self.pipe.send(order)

    def answer(self):
        assert self.pipe.poll(60)
        return self.pipe.recv()

    def __call__(self, *order):
        self.tell(*order)
        return self.answer()

    def end(self):
        self.pipe.send(None)
        self.process.join(60)
        assert self.process.exitcode == 0


@pytest.fixture
def start():
    children = []

    def begin(*tensors):
        children.append(Child(*tensors))
        return children[-1]

    yield begin
    for child in children:
        if child.process.is_alive():
            child.end()
    gc.collect()
    cuda.ipc_collect()


def test_values_and_writes(start):
    x = ptcore.arange(1000.0, device="cuda")
    child = start()
    got, = child("values", x)
    np.testing.assert_array_equal(got, np.arange(1000.0))
    child("add", 5)
    np.testing.assert_array_equal(x.cpu().numpy(), np.arange(1000.0) + 5)
    x *= 2
    cuda.synchronize()
    np.testing.assert_array_equal(child("values")[0], 2 * np.arange(1000.0) + 10)


def test_arguments_of_a_process(start):
    child = start(ptcore.arange(5, device="cuda"))
    np.testing.assert_array_equal(child("values")[0], np.arange(5))


@pytest.mark.parametrize("strategy", sorted(mp.get_all_sharing_strategies()))
def test_every_strategy(start, strategy):
    before, used = mp.get_sharing_strategy(), cuda.memory_allocated()
    mp.set_sharing_strategy(strategy)
    try:
        child = start()
        x = ptcore.arange(7.0, device="cuda")
        np.testing.assert_array_equal(child("values", x)[0], np.arange(7.0))
    finally:
        mp.set_sharing_strategy(before)
    del x
    cuda.ipc_collect()
    assert cuda.memory_allocated() == used + 512
    child("drop")
    cuda.ipc_collect()
    assert cuda.memory_allocated() == used


def test_views_and_parameters(start):
    expected = np.arange(24.0, dtype="f").reshape(4, 6)
    x = ptcore.tensor(expected, device="cuda")
    parameter = nn.Parameter(ptcore.ones(3, device="cuda"))
    parameter.grad = ptcore.full((3,), 2.0, device="cuda")
    child = start()
    got = child("values", x.t()[2:5], x[1:, ::2], ptcore.empty(0, 3, device="cuda"), x[2, 3], parameter, parameter.grad)
    for a, b in zip(got, [expected.T[2:5], expected[1:, ::2], np.empty((0, 3)), expected[2, 3], np.ones(3),
                          np.full(3, 2.0)], strict=True):
        np.testing.assert_array_equal(a, b)


def test_one_storage_in_a_message_stays_one(start):
    x = ptcore.zeros(6, device="cuda")
    child = start()
    child("keep", x, x[2:4])
    assert child("share") == [7, 7]
    assert x.tolist() == [7] * 6


def test_the_sender_keeps_what_the_receiver_has(start):
    expected = np.arange(3.0 * MIB, dtype="f")
    child = start()
    before = cuda.memory_allocated()
    x = ptcore.tensor(expected, device="cuda")
    place = x.data_ptr()
    child("keep", x)
    del x
    cuda.ipc_collect()
    assert cuda.memory_allocated() == before + 12 * MIB
    others = [ptcore.zeros(3 * MIB, device="cuda") for _ in range(3)]       # they get other memory
    assert place not in [t.data_ptr() for t in others]
    cuda.synchronize()
    cuda.empty_cache()
    np.testing.assert_array_equal(child("values")[0], expected)
    child("drop")
    cuda.ipc_collect()
    assert cuda.memory_allocated() == before + 36 * MIB
    assert ptcore.empty(3 * MIB, device="cuda").data_ptr() == place


def test_the_receivers_work_is_done_before_the_memory_is_used_again(start):
    child = start()
    x = ptcore.ones(1000, device="cuda")
    child("keep", x)
    child("double_and_drop", 3.0)
    cuda.ipc_collect()
    assert x.tolist() == [3] * 1000


def test_the_senders_work_is_done_before_it_is_read(start):
    child = start()
    x = ptcore.ones(1 << 16, device="cuda")
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        for _ in range(20):
            x += 1
        got, = child("values", x)
    np.testing.assert_array_equal(got, np.full(1 << 16, 21.0))


def test_a_receiver_that_is_killed(start):
    before = cuda.memory_allocated()
    child = start()
    x = ptcore.ones(MIB, device="cuda")
    child("keep", x)
    del x
    os.kill(child.process.pid, signal.SIGKILL)
    child.process.join()
    cuda.ipc_collect()
    assert cuda.memory_allocated() == before


def test_memory_that_receivers_have_returned_serves_before_a_request_fails(start):
    total = cuda.mem_get_info()[1]
    child = start()
    cuda.empty_cache()
    cuda.set_per_process_memory_fraction((cuda.memory_reserved() + 100 * MIB) / total)
    try:
        x = ptcore.empty(60 * MIB, dtype=ptcore.uint8, device="cuda")
        child("keep", x)
        del x
        with pytest.raises(ptcore.OutOfMemoryError):
            ptcore.empty(60 * MIB, dtype=ptcore.uint8, device="cuda")
        child("drop")
        ptcore.empty(60 * MIB, dtype=ptcore.uint8, device="cuda")
    finally:
        cuda.set_per_process_memory_fraction(1.0)


def test_a_tensor_of_a_child(start):
    child = start()
    x = child("make", 10)
    assert x.is_cuda and x.tolist() == list(range(10))
    with pytest.raises(RuntimeError, match=r"came from another process cannot be sent on; send a clone\(\)"):
        child.tell("keep", x)
    np.testing.assert_array_equal(child("values", x.clone())[0], np.arange(10.0))
    y = x[3:]
    del x
    assert (y + 1).tolist() == [4, 5, 6, 7, 8, 9, 10]
    del y
    cuda.synchronize()


def test_memory_of_another_process_ends_within_a_capture(start):
    """It stays open until the capture has ended, and its owner keeps it until then."""
    child = start()
    x, y = child("make", 10), ptcore.zeros(3, device="cuda")
    cuda.synchronize()
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        del x
        gc.collect()
        y += 1
        assert child("needed") == 1
    assert child("needed") == 0
    g.replay()
    assert y.tolist() == [1, 1, 1]


def test_within_a_process():
    here, there = mp.Pipe()
    x = ptcore.arange(10.0, device="cuda")
    here.send((x[2:], x))
    y, z = there.recv()
    assert y.data_ptr() == x[2:].data_ptr() and z.data_ptr() == x.data_ptr()
    y += 1
    assert x.tolist() == [0, 1, *range(3, 11)]


def test_a_sender_that_has_ended(start):
    child = start()
    child.tell("make", 10)
    child.pipe.poll(60)
    child.end()
    with pytest.raises(RuntimeError, match="is gone, since the process that sent it has ended"):
        child.pipe.recv()


def test_a_fork_of_the_receiver_returns_nothing(start):
    x = ptcore.arange(1000.0, device="cuda")
    child = start()
    child("keep", x)
    assert child("fork_and_drop") == 1
    assert not _devices.collect() and len(_devices._sent) == 1
    child("drop")
    assert _devices.collect() and not _devices._sent


def test_a_message_for_a_device_that_is_not_there():
    """It is returned."""
    x = ptcore.arange(4.0, device="cuda")
    rebuild, (_, *message, _, number) = _devices.reduce_storage(x.untyped_storage())
    with pytest.raises(RuntimeError, match="99"):
        rebuild(99, *message, (os.getpid(), b"another"), number)
    assert _devices.collect() and not _devices._sent


def test_a_message_that_is_read_twice():
    x = ptcore.ones(3, device="cuda")
    rebuild, arguments = _devices.reduce_storage(x.untyped_storage())
    assert rebuild(*arguments).data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="read for the second time"):
        rebuild(*arguments)


def test_training_in_another_process():
    ptcore.manual_seed(0)
    model = nn.Linear(4, 2).to("cuda")
    model.share_memory()
    x, y = ptcore.randn(8, 4, device="cuda"), ptcore.randn(8, 2, device="cuda")
    w, b = (p.detach().cpu().numpy().astype("f8") for p in (model.weight, model.bias))
    xs, ys = x.cpu().numpy().astype("f8"), y.cpu().numpy().astype("f8")
    for _ in range(3):
        g = 2 * (xs @ w.T + b - ys) / ys.size
        w, b = w - 0.1 * g.T @ xs, b - 0.1 * g.sum(0)
    mp.spawn(ipc_children.train, args=(model, x, y), nprocs=1)
    np.testing.assert_allclose(model.weight.detach().cpu().numpy(), w, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.bias.detach().cpu().numpy(), b, rtol=1e-5, atol=1e-6)


# Events

def test_events(start):
    child = start()
    x = ptcore.ones(1000, device="cuda")
    event = cuda.Event(interprocess=True)
    x += 1
    event.record()
    assert child("waits", event) == (True, 0)
    handle = event.ipc_handle()
    assert isinstance(handle, bytes) and len(handle) == 64
    assert len(cuda.Event(interprocess=True).ipc_handle()) == 64            # it need not have been recorded


def test_wrong_events():
    with pytest.raises(RuntimeError, match="must be made with interprocess=True"):
        cuda.Event().ipc_handle()
    with pytest.raises(RuntimeError, match="keeps no time"):
        cuda.Event(interprocess=True, enable_timing=True)
    with pytest.raises(TypeError, match="the 64 bytes"):
        cuda.Event.from_ipc_handle(0, b"3")
    with pytest.raises(RuntimeError, match=r"Event.from_ipc_handle: CUDA error"):
        cuda.Event.from_ipc_handle(0, bytes(64))


# What cannot be sent

@pytest.mark.parametrize("settings, text", [
    (dict(PTCORE_CUDA_ALLOC_CONF="expandable_segments:True"), "it lies in an expandable segment"),
    (dict(PTCORE_CUDA_ALLOC="async"), "it comes from the allocator 'async'")])
def test_memory_that_no_other_process_can_have(settings, text):
    lines = run("""
import ptcore.multiprocessing as mp
here, there = mp.Pipe()
x = ptcore.ones(3, device="cuda")
print(failure(lambda: here.send(x)))
print(x.sum().item())
""", **settings)
    assert "memory of cuda:0 cannot be given to another process: " + text in lines[0]
    assert lines[0].endswith("send tensor.cpu()") and lines[1] == "3.0"


def test_without_a_cache(start):
    run(f"""
sys.path.insert(0, {os.path.dirname(__file__)!r})
import test_ipc
child = test_ipc.Child()
assert child("values", ptcore.arange(5.0, device="cuda"))[0].tolist() == [0, 1, 2, 3, 4]
child("drop")
cuda.ipc_collect()
assert cuda.memory_allocated() == 0
child.end()
""", PTCORE_CUDA_ALLOC="none")


@pytest.mark.skipif(not STANDIN, reason="of the stand-in driver")
def test_where_the_driver_fails():
    lines = run("""
import ptcore.multiprocessing as mp
here, there = mp.Pipe()
x = ptcore.ones(3, device="cuda")
before = cuda.memory_allocated()
fail_next(b"cuIpcGetMemHandle", 999)
print(failure(lambda: here.send(x)))
del x
assert cuda.memory_allocated() < before
""")
    assert "memory of cuda:0 cannot be given to another process: unknown" in lines[0]


def test_a_process_that_ends_while_others_need_its_memory():
    lines = run(f"""
sys.path.insert(0, {os.path.dirname(__file__)!r})
import ptcore.multiprocessing as mp
here, there = mp.Pipe()
here.send(ptcore.ones(3, device="cuda"))
sys.stderr = sys.stdout
""")
    assert any("this process ends while others need 1 of its CUDA storages" in line for line in lines)
