"""What a capture leaves alone, and what leaves a capture alone: memory, random numbers, other threads and devices."""
import gc
import threading

import in_process
import pytest
from in_process import STANDIN

import ptcore
from ptcore import cuda

MIB = 1 << 20


def captured(function, **options):
    g = cuda.CUDAGraph()
    with cuda.graph(g, **options):
        result = function()
    return g, result


def in_thread(function):
    """What a function returns, or raises, in another thread."""
    found = []

    def run():
        try:
            found.append(function())
        except Exception as e:
            found.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.skipif(not STANDIN, reason="a card has more memory than a test fills")
@pytest.mark.parametrize("settings", ["", "garbage_collection_threshold:0.1", "max_split_size_mb:24",
                                      "expandable_segments:True"])
def test_no_memory_goes_back_under_capture(settings):
    """It would end the capture, and the memory would be lost."""
    said = in_process.run("""
ptcore.zeros(1, device="cuda")
memory_limit(200 << 20)
old = [ptcore.empty(40 << 20, dtype=ptcore.uint8, device="cuda") for _ in range(3)]
x = ptcore.zeros(1000, device="cuda")
with cuda.memory.caching_allocator_disabled():
    uncached = ptcore.zeros(5 << 20, device="cuda")
g = cuda.CUDAGraph()
before = cuda.memory_reserved()
with cuda.graph(g):
    del old, uncached
    gc.collect()
    y = x + 1
    cuda.empty_cache()
    print(type(failure(lambda: ptcore.empty(150 << 20, dtype=ptcore.uint8, device="cuda"))).__name__)
    z = y * 2
    assert cuda.memory_reserved() >= before
g.replay()
print(z[0].item())
ptcore.empty(150 << 20, dtype=ptcore.uint8, device="cuda")
""", PTCORE_CUDA_ALLOC_CONF=settings)
    assert said == ["OutOfMemoryError", "2.0"]


def test_large_blocks_of_a_graph_stay():
    """Not given back for a request of the pool, as the graph has their addresses."""
    said = in_process.run("""
x = ptcore.ones(16 << 20, device="cuda")
if DRIVER is not None:
    memory_limit(300 << 20)
pool, g = cuda.MemPool(), cuda.CUDAGraph()
with cuda.graph(g, pool=pool.id):
    t = x * 2
    y = t.sum()
    del t
with cuda.use_mem_pool(pool):
    if DRIVER is not None:
        failure(lambda: ptcore.empty(250 << 20, dtype=ptcore.uint8, device="cuda"))
g.replay()
print(y.item())
""", PTCORE_CUDA_ALLOC_CONF="max_split_size_mb:32")
    assert said == [f"{2.0 * (16 << 20)}"]


def test_every_launch_is_waited_for_but_those_of_a_graph():
    said = in_process.run("""
x, g = ptcore.ones(5, device="cuda"), cuda.CUDAGraph()
with cuda.graph(g):
    y = (x + 1) @ x
g.replay()
print(y.item())
""", CUDA_LAUNCH_BLOCKING="1")
    assert said == ["10.0"]


def products(a, stream):
    now = cuda.current_stream()
    stream.wait_stream(now)
    with cuda.stream(stream):
        c = a @ a
    now.wait_stream(stream)
    return c


def workspaces():
    """Addresses of what is as large as cuBLAS's workspaces, and in use."""
    return {r["address"] for s in cuda.memory_snapshot() for r in s["blocks"]
            if r["state"] == "active_allocated" and r["size"] >= 4 * MIB}


def test_workspaces_of_a_graph_are_its_own():
    """Of each stream that takes part: not those of eager work, which may go back or run beside it."""
    gc.collect()
    a, side = ptcore.eye(64, device="cuda") * 2, cuda.Stream()
    with cuda.stream(side):
        a @ a
    side.synchronize()
    eager = workspaces()
    assert eager
    g, c = captured(lambda: products(a, side))
    others = [captured(lambda: a @ a, stream=side) for _ in range(2)]
    cuda.empty_cache()
    g.replay()
    assert c.sum().item() == 64 * 4
    assert eager <= workspaces()                    # nobody has given eager work's workspace back
    del others
    with cuda.stream(side):
        assert (a @ a).sum().item() == 64 * 4


def test_libraries_begin_within_a_capture():
    """Products and solvers get their handles there, transforms need a plan that there is."""
    lines = in_process.run("""
x = ptcore.eye(4, device="cuda") * 3
g = cuda.CUDAGraph()
with cuda.graph(g):
    y = x @ x
    z = ptcore.linalg.cholesky_ex(x)[0]
g.replay()
print(y[0, 0].item(), round(z[0, 0].item() ** 2, 5))

g = cuda.CUDAGraph()
with cuda.graph(g):
    print(failure(lambda: ptcore.fft.fft(x)))
    y = x + 1
g.replay()
print(y[0].tolist())
want = ptcore.fft.fft(x)
g = cuda.CUDAGraph()
with cuda.graph(g):
    y = ptcore.fft.fft(x)
g.replay()
print(y.equal(want))
""")
    assert lines[0] == "9.0 3.0"
    assert "cuFFT makes no plan while a graph is captured; run a transform of these sizes and dtype once" in lines[1]
    assert lines[2:] == ["[4.0, 1.0, 1.0, 1.0]", "True"]


def test_workspaces_are_not_of_the_users_pool():
    said = in_process.run("""
a = ptcore.eye(64, device="cuda")
pool = cuda.MemPool()
with cuda.use_mem_pool(pool):
    b = a @ a
number = pool.id
del b, pool
gc.collect()
print([s["segment_pool_id"] for s in cuda.memory_snapshot() if tuple(s["segment_pool_id"]) == tuple(number)])
""")
    assert said == ["[]"]


def test_events_of_another_device_do_not_end_a_capture():
    if cuda.device_count() < 2:
        pytest.skip("needs two devices")
    side = cuda.Stream(1)
    y = ptcore.ones(1000, device="cuda:1")
    with cuda.stream(side):
        y.mul_(2)
    y.record_stream(side)
    x = ptcore.ones(4, device="cuda:0")
    cuda.set_device(0)

    def work():
        nonlocal y
        y = None
        t = ptcore.empty(10, device="cuda:1")
        assert not isinstance(in_thread(lambda: ptcore.empty(10, device="cuda:1")), Exception)
        cuda.empty_cache()
        del t
        return x + 1

    g, z = captured(work)
    g.replay()
    assert z.tolist() == [2] * 4


def test_pinned_memory_under_capture():
    """Another thread page-locks memory meanwhile."""
    x = ptcore.ones(4, device="cuda")

    def work():
        assert in_thread(lambda: ptcore.zeros(3 * MIB).pin_memory().is_pinned()) is True
        ptcore.zeros(5 * MIB).pin_memory()
        cuda.empty_cache()
        return x + 1

    g, z = captured(work)
    g.replay()
    assert z.tolist() == [2] * 4


def test_random_numbers_of_other_threads():
    """They do not draw from what the capture has, and may draw from a generator of their own."""
    ptcore.manual_seed(5)
    want = [ptcore.rand(3, device="cuda").tolist() for _ in range(3)]
    ptcore.manual_seed(5)
    own = ptcore.Generator("cuda").manual_seed(5)
    found = []

    def work():
        y = ptcore.rand(3, device="cuda")
        found.append(in_thread(lambda: ptcore.rand(3, device="cuda")))
        found.append(in_thread(lambda: ptcore.rand(3, device="cuda", generator=own).tolist()))
        return y

    g, y = captured(work, capture_error_mode="thread_local")
    assert isinstance(found[0], RuntimeError) and "has the default generator of cuda:0" in str(found[0])
    assert found[1] == want[0]
    for k in range(2):
        g.replay()
        assert y.tolist() == want[k]
    assert ptcore.rand(3, device="cuda").tolist() == want[2]


@pytest.mark.parametrize("draws", [0, 1, 2])
def test_the_same_seed_within_a_capture(draws):
    ptcore.manual_seed(0)
    for _ in range(draws):
        ptcore.rand(3, device="cuda")

    def work():
        ptcore.manual_seed(0)
        return ptcore.rand(3, device="cuda")

    if draws:
        with pytest.raises(RuntimeError, match="seeded or set back within the capture"):
            captured(work)
        with pytest.raises(RuntimeError, match="seeded within the capture"):
            captured(lambda: (ptcore.ones(3, device="cuda"), ptcore.manual_seed(0)))
        assert cuda.default_generators[0].get_offset() == draws
    else:
        g, y = captured(work)
        g.replay()
        first = y.tolist()
        g.replay()
        assert y.tolist() != first


def test_events_in_a_thread_without_a_context():
    start, end, side = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True), cuda.Stream()
    start.record()
    x = ptcore.ones(1000, device="cuda")
    end.record()
    end.synchronize()
    assert in_thread(lambda: start.elapsed_time(end)) >= 0
    with cuda.stream(side):
        x.mul_(2)
    x.record_stream(side)
    del x
    gc.collect()
    assert in_thread(cuda.empty_cache) is None
    pinned = ptcore.ones(1000).pin_memory()
    y = pinned.to("cuda", non_blocking=True)
    del pinned
    assert in_thread(cuda.memory.empty_host_cache) is None
    assert y.sum().item() == 1000


def test_the_runtime_has_the_current_device():
    said = in_process.run("""
import ctypes
import numpy as np
page = np.zeros(3 * 4096, np.uint8)
first = page.ctypes.data + -page.ctypes.data % 4096
print(int(cuda.cudart().cudaHostRegister(first, 4096, 0)), int(cuda.cudart().cudaHostUnregister(first)))
if cuda.device_count() > 1:
    cuda.set_device(0)
    ptcore.zeros(3, device="cuda:1")
    handle = ctypes.c_void_p()
    assert int(cuda.cudart().cudaStreamCreate(ctypes.addressof(handle))) == 0
    with cuda.stream(cuda.ExternalStream(handle.value, device=0)):
        print((ptcore.ones(2, device="cuda:0") + 1).tolist())
else:
    print([2.0, 2.0])
""")
    assert said == ["0 0", "[2.0, 2.0]"]
