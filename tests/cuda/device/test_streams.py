"""Devices, streams, events, copies, and errors that are found on the device."""
import os
import threading

import numpy as np
import pytest

import ptcore
from ptcore import cuda

TWO = cuda.device_count() > 1


@pytest.fixture(autouse=True)
def first_device():
    cuda.set_device(0)
    yield
    cuda.synchronize()


def test_properties():
    assert cuda.is_available()
    assert cuda.is_initialized()
    p = cuda.get_device_properties(0)
    assert p.name == cuda.get_device_name(0) != ""
    assert (p.major, p.minor) == cuda.get_device_capability("cuda:0")
    free, total = cuda.mem_get_info()
    assert 0 < free <= total == p.total_memory
    assert p.warp_size == 32
    assert p.multi_processor_count > 0
    assert cuda.get_arch_list()[0].startswith("sm_")
    assert repr(p).startswith("DeviceProperties(name=")


def test_current_device():
    assert cuda.current_device() == 0
    assert ptcore.ones(2, device="cuda").device == ptcore.device("cuda:0")
    with pytest.raises(RuntimeError, match="device index must be in"):
        cuda.set_device(77)
    with pytest.raises(RuntimeError, match="device index must be in"):
        ptcore.ones(2, device="cuda:77")
    with pytest.raises(ValueError, match="must be a CUDA device, got 'cpu'"):
        cuda.synchronize("cpu")
    with cuda.device(-1):
        assert cuda.current_device() == 0


@pytest.mark.skipif(not TWO, reason="needs two devices")
def test_two_devices():
    with cuda.device(1):
        assert ptcore.ones(2, device="cuda").device.index == 1
        assert cuda.current_stream().device_index == 1
    x = ptcore.arange(6., device="cuda:0").reshape(2, 3)
    y = x.t().to("cuda:1")
    assert y.device.index == 1
    np.testing.assert_array_equal(y.cpu().numpy(), np.arange(6.).reshape(2, 3).T)
    assert x.to("cuda:1", ptcore.float16).cpu().tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(RuntimeError, match="all tensors must be on one device, got cuda:0 and cuda:1"):
        x + y.t()
    with cuda.device_of(y):
        assert cuda.current_device() == 1
    seen = []
    thread = threading.Thread(target=lambda: seen.append(cuda.current_device()))
    cuda.set_device(1)
    thread.start()
    thread.join()
    assert seen == [0]                  # each thread has its own


def test_streams_run_beside_each_other():
    x = ptcore.ones(1000, device="cuda")
    side = cuda.Stream()
    assert cuda.current_stream() == cuda.default_stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        assert cuda.current_stream() == side
        y = x + 1
        done = side.record_event()
    assert cuda.current_stream() == cuda.default_stream()
    done.wait()
    z = y * 2
    assert z.sum().item() == 4000
    assert side.query()
    assert done.query()
    with cuda.stream(None):
        assert cuda.current_stream() == cuda.default_stream()
    urgent = cuda.Stream(priority=-1)
    assert urgent != side and urgent.priority == -1 and side.priority == 0
    with cuda.stream(urgent):
        assert cuda.current_stream() == urgent and cuda.current_stream().priority == -1
    assert side == cuda.ExternalStream(side.cuda_stream)
    least, greatest = cuda.Stream.priority_range()
    assert greatest <= 0 <= least


def test_events():
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    assert start.query()
    with pytest.raises(ValueError, match="must be recorded first"):
        start.elapsed_time(end)
    start.record()
    x = ptcore.ones(100, device="cuda") + 1
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 0
    assert x.cpu()[0] == 2
    plain = cuda.Event()
    plain.record()
    with pytest.raises(ValueError, match="enable_timing"):
        plain.elapsed_time(end)


COPIED = ("float32", "float16", "bfloat16", "int8", "uint16", "bool", "complex64", "float64")


@pytest.mark.parametrize("source", COPIED)
@pytest.mark.parametrize("target", COPIED)
def test_copies_convert(source, target):
    """To the device and back, dense and strided, with another dtype: as on the CPU."""
    values = ptcore.tensor([[0., 1, 2.5], [3, -1, 100]]).abs().to(getattr(ptcore, source))
    want = values.to(getattr(ptcore, target))
    for x, y in ((values, want), (values.t(), want.t()), (values[:, ::2], want[:, ::2])):
        assert x.cuda().to(y.dtype).cpu().equal(y)
        assert x.to("cuda", y.dtype).cpu().equal(y)
        out = ptcore.zeros(y.shape[::-1], dtype=y.dtype).t()
        out.copy_(x.cuda())
        assert out.equal(y)
        there = ptcore.zeros(y.shape, dtype=y.dtype, device="cuda")
        there.t().copy_(x.t())
        assert there.cpu().equal(y)


def test_large_transpose():
    x = ptcore.arange(70. * 90 * 3).reshape(3, 70, 90)
    y = x.cuda().transpose(1, 2).contiguous()
    np.testing.assert_array_equal(y.cpu().numpy(), x.numpy().transpose(0, 2, 1))


def test_more_dims_than_a_kernel_takes():
    x = ptcore.arange(2. ** 14).reshape([2] * 14)
    order = [13, 0, 12, 1, 11, 2, 10, 3, 9, 4, 8, 5, 7, 6]
    y = x.cuda().permute(order) + 1
    np.testing.assert_array_equal(y.cpu().numpy(), x.numpy().transpose(order) + 1)


def test_a_bad_index_is_an_error_and_no_corruption():
    before = ptcore.arange(8., device="cuda")
    x = ptcore.zeros(8, device="cuda")
    after = ptcore.arange(8., device="cuda")
    x.index_add_(0, ptcore.tensor([1, 9, -3], device="cuda"), ptcore.ones(3, device="cuda"))
    with pytest.raises(IndexError, match=r"index_add.*index (9|-3) is out of bounds for dimension 0 with size 8"):
        cuda.synchronize()
    cuda.synchronize()                  # told once
    assert x.cpu().tolist() == [0, 1, 0, 0, 0, 0, 0, 0]
    assert before.cpu().tolist() == after.cpu().tolist() == list(range(8))
    with pytest.raises(IndexError, match=r"gather.*index 50 is out of bounds"):
        ptcore.gather(before, 0, ptcore.tensor([50], device="cuda")).cpu()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_use_after_fork_is_refused():
    x = ptcore.ones(2, device="cuda")
    child = os.fork()
    if child == 0:
        said = []
        for use in (lambda: ptcore.ones(2, device="cuda"), lambda: cuda.synchronize(), lambda: x + 1, lambda: x.cpu()):
            try:
                use()
                said.append("nothing")
            except RuntimeError as e:
                said.append(str(e))
        os._exit(0 if "forked" in said[0] and "spawn" in said[1] and "nothing" not in said else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (x + 1).cpu().tolist() == [2, 2]


def test_accelerator():
    accelerator = ptcore.accelerator
    assert accelerator.is_available()
    assert accelerator.current_accelerator() == ptcore.device("cuda")
    assert accelerator.device_count() == cuda.device_count()
    assert accelerator.current_device_index() == 0
    side = cuda.Stream()
    accelerator.set_stream(side)
    assert accelerator.current_stream() == side
    accelerator.set_stream(cuda.default_stream())
    accelerator.synchronize()


def test_streams_and_events_at_the_end_of_a_process():
    """What is still alive when the interpreter ends says nothing."""
    global kept
    kept = cuda.Stream(), cuda.Event()
    kept[1].record(kept[0])
