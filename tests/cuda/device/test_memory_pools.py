"""Private pools of memory, functions of another library in the driver's place, and work without a cache."""
import ctypes
import gc
import subprocess
import threading

import numpy as np
import pytest
from in_process import run
from native import COMPILER, needs_compiler

import ptcore
from ptcore import cuda

MIB = 1 << 20
# Memory of the driver, and how often and for how much it was asked.
ALLOCATOR = r"""
#include <cstddef>
#include <dlfcn.h>
#include <sys/types.h>
#define API extern "C" __attribute__((visibility("default")))
typedef int (*Allocate)(unsigned long long *, size_t);
typedef int (*Release)(unsigned long long);
static void *driver() { static void *found = dlopen("libcuda.so.1", RTLD_NOW); return found; }
// Allocations, bytes, releases, bytes, the last device, the last stream.
extern "C" { __attribute__((visibility("default"))) long counts[6]; }
API void *take(ssize_t size, int device, void *stream) {
    unsigned long long at = 0;
    if (((Allocate)dlsym(driver(), "cuMemAlloc_v2"))(&at, size)) return nullptr;
    counts[0] += 1, counts[1] += size, counts[4] = device, counts[5] = (long)stream;
    return (void *)at;
}
API void give(void *data, ssize_t size, int device, void *stream) {
    ((Release)dlsym(driver(), "cuMemFree_v2"))((unsigned long long)data);
    counts[2] += 1, counts[3] += size, counts[4] = device, counts[5] = (long)stream;
}
API void *nothing(ssize_t, int, void *) { return nullptr; }
"""


@pytest.fixture(autouse=True)
def empty():
    cuda.set_device(0)
    gc.collect()
    cuda.synchronize()
    cuda.empty_cache()
    yield
    cuda.synchronize()


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("allocator")
    (folder / "allocator.cpp").write_text(ALLOCATOR)
    out = folder / "allocator.so"
    subprocess.run([*COMPILER, "-shared", "-fPIC", folder / "allocator.cpp", "-o", out, "-ldl"], check=True)
    return out


def counts(library):
    return list((ctypes.c_long * 6).in_dll(ctypes.CDLL(str(library)), "counts"))


def pool_of(x):
    """The pool of the segment that a tensor lies in."""
    place = x.untyped_storage().data_ptr()
    return next(s["segment_pool_id"] for s in cuda.memory_snapshot()
                if s["address"] <= place < s["address"] + s["total_size"])


def test_what_is_allocated_within_lies_there():
    before = ptcore.ones(100, device="cuda")
    pool = cuda.MemPool()
    with cuda.use_mem_pool(pool):
        x = ptcore.arange(1000.0, device="cuda")
        y = x * 2
        with cuda.use_mem_pool(inner := cuda.MemPool()):
            z = y + 1
        w = z + 1
    after = w + before[0]
    assert [pool_of(t) for t in (before, x, y, z, w, after)] == [(0, 0), pool.id, pool.id, inner.id, pool.id, (0, 0)]
    np.testing.assert_array_equal(after.cpu().numpy(), np.arange(1000.0) * 2 + 3)
    assert {s["address"] for s in pool.snapshot()} == {s["address"] for s in cuda.memory_snapshot()
                                                       if s["segment_pool_id"] == pool.id}
    assert sum(s["allocated_size"] for s in pool.snapshot()) == 3 * 4096
    assert pool.allocator is None and pool.device == 0


def test_memory_of_a_pool_serves_nobody_else():
    pool = cuda.MemPool()
    with cuda.use_mem_pool(pool):
        place = ptcore.empty(1000, device="cuda").data_ptr()
    assert ptcore.empty(1000, device="cuda").data_ptr() != place
    cuda.empty_cache()
    assert len(pool.snapshot()) == 1
    with cuda.use_mem_pool(pool):
        assert ptcore.empty(1000, device="cuda").data_ptr() == place


def test_it_ends_with_its_last_user():
    reserved = cuda.memory_reserved()
    pool = cuda.MemPool()
    with cuda.use_mem_pool(pool):
        x = ptcore.ones(1000, device="cuda")
        assert pool.use_count() == 2
        ptcore.empty(30 * MIB, dtype=ptcore.uint8, device="cuda")
    assert pool.use_count() == 1 and cuda.memory_reserved() == reserved + 32 * MIB
    del pool
    assert cuda.memory_reserved() == reserved + 2 * MIB         # the segment of a tensor that lives
    assert x.sum().item() == 1000
    del x
    cuda.empty_cache()
    assert cuda.memory_reserved() == reserved
    with cuda.use_mem_pool(cuda.MemPool()):                     # nothing but the context holds it
        y = ptcore.ones(1000, device="cuda")
        place = y.data_ptr()
        del y
        assert ptcore.ones(1000, device="cuda").data_ptr() == place


def test_other_threads_and_devices_are_not_affected():
    pool, found = cuda.MemPool(), {}

    def work():
        found["thread"] = pool_of(ptcore.ones(1000, device="cuda"))

    with cuda.use_mem_pool(pool):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert pool_of(ptcore.ones(10, device="cuda")) == pool.id
        if cuda.device_count() > 1:
            assert pool_of(ptcore.ones(10, device="cuda:1")) == (0, 0)
    assert found == {"thread": (0, 0)}
    if cuda.device_count() > 1:
        with cuda.use_mem_pool(pool, device=1):
            x, y = ptcore.ones(10, device="cuda:1"), ptcore.ones(10, device="cuda")
        assert pool_of(x) == pool.id and pool_of(y) == (0, 0)


def test_an_error_ends_the_context():
    with pytest.raises(KeyError), cuda.use_mem_pool(cuda.MemPool()):
        raise KeyError
    assert pool_of(ptcore.ones(10, device="cuda")) == (0, 0)


def test_a_graph_in_a_pool():
    pool = cuda.MemPool()
    x = ptcore.arange(5.0, device="cuda")
    g = cuda.CUDAGraph()
    with cuda.graph(g, pool=pool.id):
        y = x * x
    assert pool.use_count() == 2 and pool_of(y) == pool.id and g.pool() == pool.id
    other = cuda.MemPool()
    with cuda.use_mem_pool(other):                              # a capture's memory is the graph's
        h = cuda.CUDAGraph()
        with cuda.graph(h, pool=pool.id):
            z = y + 1
    assert pool_of(z) == pool.id
    g.replay()
    h.replay()
    assert z.tolist() == [1, 2, 5, 10, 17]
    del g, h
    gc.collect()
    assert pool.use_count() == 1


def test_without_splits():
    pool = cuda.MemPool(no_split=True)
    with cuda.use_mem_pool(pool):
        x, y = (ptcore.empty(2 * MIB, dtype=ptcore.uint8, device="cuda") for _ in range(2))
    assert [s["total_size"] for s in pool.snapshot()] == [20 * MIB] * 2
    assert all(len(s["blocks"]) == 1 for s in pool.snapshot())
    del x, y


def test_the_last_resort():
    total = cuda.mem_get_info()[1]
    cuda.set_per_process_memory_fraction((cuda.memory_reserved() + 64 * MIB) / total)
    try:
        for lent in (False, True):
            pool = cuda.MemPool(use_on_oom=lent)
            with cuda.use_mem_pool(pool):
                place = ptcore.empty(60 * MIB, dtype=ptcore.uint8, device="cuda").data_ptr()
            if lent:
                assert ptcore.empty(50 * MIB, dtype=ptcore.uint8, device="cuda").data_ptr() == place
            else:
                with pytest.raises(ptcore.OutOfMemoryError):
                    ptcore.empty(50 * MIB, dtype=ptcore.uint8, device="cuda")
            del pool
    finally:
        cuda.set_per_process_memory_fraction(1.0)


@needs_compiler
def test_a_pool_of_another_library(library):
    before = counts(library)
    allocator = cuda.memory.CUDAPluggableAllocator(str(library), "take", "give")
    pool = cuda.MemPool(allocator.allocator())
    assert pool.allocator is allocator
    stream = cuda.Stream()
    with cuda.use_mem_pool(pool):
        x = ptcore.arange(1000.0, device="cuda")
        with cuda.stream(stream):
            y = ptcore.arange(30 * MIB, dtype=ptcore.uint8, device="cuda")
    now = counts(library)
    assert [a - b for a, b in zip(now[:4], before)] == [2, 32 * MIB, 0, 0] and now[4:] == [0, stream.cuda_stream]
    stream.synchronize()
    assert x.sum().item() == 999 * 500
    np.testing.assert_array_equal(y[:600].cpu().numpy(), np.arange(600).astype(np.uint8))
    del x, y, pool
    assert [a - b for a, b in zip(counts(library)[:4], before)] == [2, 32 * MIB, 2, 32 * MIB]


@needs_compiler
def test_a_library_that_has_no_memory(library):
    pool = cuda.MemPool(cuda.CUDAPluggableAllocator(str(library), "nothing", "give"))
    with cuda.use_mem_pool(pool), pytest.raises(ptcore.OutOfMemoryError, match="Tried to allocate"):
        ptcore.ones(10, device="cuda")
    assert ptcore.ones(10, device="cuda").sum().item() == 10


@needs_compiler
def test_another_library_for_everything(library):
    lines = run(f"""
allocator = cuda.memory.CUDAPluggableAllocator({str(library)!r}, "take", "give")
cuda.memory.change_current_allocator(allocator)
x = ptcore.arange(1000.0, device="cuda")
y = (x * 2).sum().item()
counts = (ctypes.c_long * 6).in_dll(ctypes.CDLL({str(library)!r}), "counts")
assert counts[0] >= 2 and counts[1] - counts[3] >= 4000 and y == 999000, list(counts)
before = list(counts)
z = ptcore.empty(300, device="cuda")            # nothing is cached
assert counts[0] == before[0] + 1 and counts[1] == before[1] + 1536
del z
assert counts[2] == before[2] + 1 and counts[3] == before[3] + 1536
assert cuda.get_allocator_backend() == "pluggable"
print(failure(lambda: cuda.memory.change_current_allocator(allocator)))
print(failure(cuda.MemPool))
""")
    assert "has been used already" in lines[0]
    assert "the allocator 'native', PTCORE_CUDA_ALLOC is 'pluggable'" in lines[1]


def test_without_a_cache():
    x = ptcore.ones(1000, device="cuda")
    calls = cuda.memory_stats()["num_device_alloc"]
    with cuda.caching_allocator_disabled():
        for _ in range(3):
            y = ptcore.empty(1000, device="cuda")
            assert cuda.memory_stats()["num_device_alloc"] == (calls := calls + 1)
            freed = cuda.memory_stats()["num_device_free"]
            del y
            assert cuda.memory_stats()["num_device_free"] == freed + 1
    place = (x + 1).data_ptr()
    assert (x + 1).data_ptr() == place and cuda.memory_stats()["num_device_alloc"] == calls
    cuda.caching_allocator_enable(False)
    with cuda.caching_allocator_disabled():
        pass
    ptcore.empty(1000, device="cuda")
    assert cuda.memory_stats()["num_device_alloc"] == calls + 1
    cuda.caching_allocator_enable(True)


@pytest.mark.parametrize("backend", ["async", "none"])
def test_backends_without_pools(backend):
    lines = run("print(failure(cuda.MemPool))", PTCORE_CUDA_ALLOC=backend)
    assert lines == [f"MemPool: pools need the allocator 'native', PTCORE_CUDA_ALLOC is '{backend}'"]


def test_wrong_arguments(tmp_path):
    with pytest.raises(TypeError, match=r"MemPool: allocator must be a CUDAPluggableAllocator, got int"):
        cuda.MemPool(3)
    with pytest.raises(TypeError, match=r"use_mem_pool: pool must be a MemPool, got tuple"), cuda.use_mem_pool((0, 1)):
        pass
    with pytest.raises(TypeError, match="change_current_allocator: allocator must be"):
        cuda.change_current_allocator(None)
    with pytest.raises(OSError, match=r"nowhere\.so"):
        cuda.CUDAPluggableAllocator(str(tmp_path / "nowhere.so"), "take", "give")
    with pytest.raises(AttributeError, match="take"):
        cuda.CUDAPluggableAllocator(None, "take", "give")
    with pytest.raises(ValueError, match="device must be a CUDA device"), cuda.use_mem_pool(cuda.MemPool(), "cpu"):
        pass
