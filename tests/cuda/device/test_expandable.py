"""Segments that grow: the same results and statistics from memory that is put behind addresses piece by piece."""
import pytest
from in_process import STANDIN, run

SETTING = dict(PTCORE_CUDA_ALLOC_CONF="expandable_segments:True")
COMMON = """
import numpy as np
MIB = 1 << 20
if DRIVER is not None:
    from standin import Driver
    counters = Driver(DRIVER).counters

def empty(n):
    return ptcore.empty(n * MIB, dtype=ptcore.uint8, device="cuda")

def free():                             # on a card the driver takes some for programs
    return cuda.mem_get_info()[0] if DRIVER is not None else 0

def reserved():
    return cuda.memory_reserved() // MIB
"""


def run_expandable(code):
    return run(COMMON + code, **SETTING)


def test_values_and_statistics():
    run_expandable("""
x = np.random.default_rng(0).standard_normal((3000, 2000)).astype("f")
a = ptcore.tensor(x, device="cuda")
kept = [a]
for i in range(4):                      # each step's results lie in parts that came one after the other
    kept.append(kept[-1] + i)
expected = x
for i, b in enumerate(kept[1:]):
    expected = expected + np.float32(i)
    np.testing.assert_array_equal(b.cpu().numpy(), expected)
assert [b.data_ptr() - a.data_ptr() for b in kept] == [24000000 // 512 * 512 * i for i in range(5)]
large, = [s for s in cuda.memory_snapshot() if s["segment_type"] == "large"]
assert large["is_expandable"] and large["total_size"] == 120 * MIB == sum(b["size"] for b in large["blocks"])
assert reserved() == 120 + sum(s["total_size"] for s in cuda.memory_snapshot() if s["segment_type"] == "small") // MIB
assert cuda.memory_allocated() == 5 * 24000000 + sum(
    s["allocated_size"] for s in cuda.memory_snapshot() if s["segment_type"] == "small")
""")


def test_what_is_free_serves_what_is_larger():
    run_expandable("""
x, y = empty(30), empty(30)
place = x.data_ptr()
assert y.data_ptr() == place + 30 * MIB and reserved() == 60
del x, y
z = empty(200)
assert z.data_ptr() == place and reserved() == 200
z.fill_(7)
assert z.sum().item() == 7 * 200 * MIB
""")


def test_the_free_end_goes_back():
    run_expandable("""
before = free()
x, y = empty(30), empty(45)
assert reserved() == 80 and before - free() == (80 * MIB if DRIVER else 0)
y.fill_(3)
side = cuda.Stream()
with cuda.stream(side):
    z = x[:1000] * 2                    # at work elsewhere when memory goes back
del y
cuda.empty_cache()
assert reserved() == 42 and before - free() == (42 * MIB if DRIVER else 0)
x.fill_(5)
y = empty(45).fill_(4)
assert (x[:1000].sum() + y[-1000:].sum()).item() == 9000
cuda.synchronize()
del x, y, z
cuda.empty_cache()
assert reserved() == 0 and cuda.memory_snapshot() == [] and before == free()
if DRIVER is not None:
    now = counters()
    assert now["pieces"] == now["pieces_released"] == 8 and now["allocations"] == 0
""")


def test_memory_goes_back_after_the_work_there():
    run_expandable("""
x, y = empty(30), empty(45)
x.fill_(1)
y.fill_(3)
del y
cuda.empty_cache()
assert reserved() == 40
cuda.synchronize()
assert x.sum().item() == 30 * MIB
""")


def test_running_out_and_after():
    run_expandable("""
if DRIVER is not None:
    memory_limit(200 * MIB)
total = cuda.mem_get_info()[1]
x = empty(50)
for n in (2 * total // MIB, total // MIB - 10):
    assert isinstance(failure(lambda: empty(n)), ptcore.OutOfMemoryError)
    assert reserved() == 60
x.fill_(2)
y = empty(100)
assert reserved() == 160 and x.sum().item() == 100 * MIB
""")


def test_graphs_and_pools():
    run_expandable("""
x = ptcore.arange(6.0, device="cuda")
g = cuda.CUDAGraph()
with cuda.graph(g):
    y = (x * 2).cumsum(0)
    big = empty(30).fill_(1)
for i in range(3):
    x.fill_(i)
    g.replay()
    np.testing.assert_array_equal(y.cpu().numpy(), 2 * i * np.arange(1, 7))
pool = cuda.MemPool()
with cuda.use_mem_pool(pool):
    z = ptcore.ones(1000, device="cuda")
segment, = pool.snapshot()
assert segment["is_expandable"] and segment["total_size"] == 2 * MIB
cuda.empty_cache()
g.replay()
assert y[5].item() == 24 and z.sum().item() == 1000 and big.sum().item() == 30 * MIB
cuda.synchronize()
del g, y, big, z, pool, x
gc.collect()
cuda.empty_cache()
assert reserved() == 0
""")


def test_history():
    run_expandable("""
cuda.memory._record_memory_history()
x = empty(30)
place = x.data_ptr()
del x
cuda.empty_cache()
snapshot = cuda.memory._snapshot()
assert snapshot["allocator_settings"]["expandable_segments"]
assert [(e["action"], e["addr"], e["size"] // MIB) for e in snapshot["device_traces"][0]] == [
    ("segment_map", place, 40), ("alloc", place, 30), ("free_requested", place, 30), ("free_completed", place, 30),
    ("segment_unmap", place, 40)]
""")


@pytest.mark.skipif(not STANDIN, reason="of the stand-in driver")
@pytest.mark.parametrize("function", ["cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess"])
def test_where_the_driver_fails(function):
    run_expandable(f"""
ptcore.ones(3, device="cuda")
used = cuda.mem_get_info()[0]
fail_next(b"{function}", 801)
e = failure(lambda: empty(30))
assert "driver error 801" in str(e), e
assert cuda.mem_get_info()[0] == used and reserved() == 2
assert empty(30).fill_(1).sum().item() == 30 * MIB
""")
