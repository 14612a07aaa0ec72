"""The CPU allocator through ``ptcore.cpu``: exact counts, the cap, the cache, threads."""

import gc
import sys
import threading

import numpy as np
import pytest

import ptcore as pt

pytestmark = [pytest.mark.core, pytest.mark.counts]
cpu = pt.cpu


def block(nbytes):
    """What a tensor of nbytes takes: a header of 64 bytes, four sizes for each power of two."""
    size = 128
    while size < nbytes + 64:
        step = 1 << (size.bit_length() - 3)
        size += step
    return size


@pytest.fixture(autouse=True)
def fresh():
    """Each test starts with nothing cached and leaves the cap as it was."""
    gc.collect()
    cpu.empty_cache()
    cap = cpu.memory_stats()["cap"]
    yield
    cpu.set_memory_cap(cap)


@pytest.mark.parametrize("count", [0, 1, 16, 17, 33, 100, 1000, 4096, 10**5, 10**6 + 1])
def test_allocated_counts_whole_blocks(count):
    before = cpu.memory_allocated()
    x = pt.empty(count)
    assert cpu.memory_allocated() - before == block(4 * count)
    assert 4 * count + 64 <= block(4 * count) <= max(128, 1.25 * (4 * count + 64) + 1)
    view = x[: count // 2]
    assert cpu.memory_allocated() - before == block(4 * count)
    del x
    assert cpu.memory_allocated() - before == block(4 * count)
    del view
    assert cpu.memory_allocated() == before


def test_foreign_and_meta_tensors_take_a_header():
    a = np.zeros(10**6)
    before = cpu.memory_allocated()
    kept = pt.from_numpy(a), pt.empty(10**12, device="meta")
    assert cpu.memory_allocated() - before == 2 * 128
    del kept
    assert cpu.memory_allocated() == before


def test_live_blocks_and_peak():
    cpu.reset_peak_memory_stats()
    before = cpu.memory_stats()
    assert before["peak_allocated"] == before["allocated"] == cpu.max_memory_allocated()
    x = [pt.empty(10**5) for _ in range(5)]
    assert cpu.memory_stats()["live_blocks"] == before["live_blocks"] + 5
    del x
    after = cpu.memory_stats()
    assert after["live_blocks"] == before["live_blocks"]
    assert after["allocated"] == before["allocated"]
    assert cpu.max_memory_allocated() - before["allocated"] == 5 * block(4 * 10**5)
    cpu.reset_peak_memory_stats()
    assert cpu.max_memory_allocated() == cpu.memory_allocated()


def test_temporaries_of_an_expression_are_the_peak():
    n = 10**5
    x = pt.ones(n)
    cpu.reset_peak_memory_stats()
    before = cpu.memory_allocated()
    y = x * 2 + 1
    assert cpu.max_memory_allocated() - before == 2 * block(4 * n)
    assert cpu.memory_allocated() - before == block(4 * n)
    del y


def caches():
    """Whether this build keeps freed blocks (a sanitizer build does not)."""
    x = pt.empty(1000)
    del x
    return cpu.memory_stats()["cached"] > 0


def test_freed_blocks_are_kept_and_used_again():
    if not caches():
        return
    x = pt.empty(10**5)
    size = block(4 * 10**5)
    before = cpu.memory_stats()
    del x
    freed = cpu.memory_stats()
    assert freed["cached"] - before["cached"] == size
    x = pt.empty(10**5 - 5)
    after = cpu.memory_stats()
    assert after["cached"] == before["cached"]
    assert after["hits"] == freed["hits"] + 1
    assert after["misses"] == freed["misses"]
    del x


def test_empty_cache():
    x = [pt.empty(n) for n in (1, 100, 10**4, 10**6)]
    y = pt.ones(1000)
    del x
    cpu.empty_cache()
    assert cpu.memory_stats()["cached"] == 0
    assert y.sum().item() == 1000
    misses = cpu.memory_stats()["misses"]
    pt.empty(10**6)
    assert cpu.memory_stats()["misses"] == misses + 1


@pytest.mark.parametrize("cap", [0, 1000, 10**6, 10**7])
def test_the_cap_holds(cap):
    cpu.set_memory_cap(cap)
    assert cpu.memory_stats()["cap"] == cap
    rng = np.random.default_rng(0)
    kept = []
    for n in rng.integers(1, 400_000, 300).tolist() + [10] * 3000 + [20_000] * 300:
        kept.append(pt.empty(n))
        if len(kept) > 20:
            kept.pop(int(rng.integers(len(kept))))
        assert cpu.memory_stats()["cached"] <= cap
    kept.clear()
    assert cpu.memory_stats()["cached"] <= cap


def test_small_blocks_displace_large_ones_under_the_cap():
    if not caches():
        return
    cpu.empty_cache()
    cpu.set_memory_cap(block(4 * 10**6) + 100)
    x = pt.empty(10**6)
    del x
    assert cpu.memory_stats()["cached"] == block(4 * 10**6)
    x = pt.empty(10)
    del x
    assert cpu.memory_stats()["cached"] == block(40)


def test_a_smaller_cap_empties_the_cache():
    x = pt.empty(10**6)
    del x
    cpu.set_memory_cap(100)
    assert cpu.memory_stats()["cached"] <= 100


@pytest.mark.parametrize(("value", "error"), [(-1, ValueError), (1.5, TypeError), (None, TypeError)])
def test_cap_refusals(value, error):
    with pytest.raises(error):
        cpu.set_memory_cap(value)
    cpu.set_memory_cap(2**100)
    cpu.set_memory_cap(np.int64(1000))
    assert cpu.memory_stats()["cap"] == 1000


def test_exhaustion_is_an_error_that_loses_nothing():
    x = pt.ones(1000)
    before = cpu.memory_stats()
    with pytest.raises((MemoryError, RuntimeError), match="allocation of"):
        pt.empty(2**50, dtype=pt.uint8)
    after = cpu.memory_stats()
    assert after["allocated"] == before["allocated"]
    assert after["live_blocks"] == before["live_blocks"]
    assert x.sum().item() == 1000


def test_threads():
    before = cpu.memory_stats()
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        kept = []
        for k in range(300):
            n = int(rng.integers(1, 50_000))
            t = pt.full((n,), float(k + 1000 * seed))
            kept.append((t, float(k + 1000 * seed)))
            if len(kept) > 8:
                t, value = kept.pop(int(rng.integers(len(kept))))
                if t[0].item() != value or t[-1].item() != value:
                    wrong.append(value)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    gc.collect()
    after = cpu.memory_stats()
    assert not wrong
    assert after["allocated"] == before["allocated"]
    assert after["live_blocks"] == before["live_blocks"]


def test_the_names_that_programs_ask_for():
    assert cpu.is_available()
    assert cpu.device_count() == 1
    assert cpu.current_device() == "cpu"
    assert cpu.synchronize() is None


@pytest.mark.parametrize("change", ["dims", "storage"])
def test_changes_while_a_kernel_runs(change):
    """A kernel without the GIL sees the sizes and the memory that it was started with."""
    a = pt.randn(700, 90)
    data = a.clone()
    other = data.t().contiguous()
    good = {(90,): data.sum(0), (700,): other.sum(0)}
    stop = False

    def turn():
        while not stop:
            if change == "dims":
                a.t_()
            else:
                a.data = (other if a.shape[1] == 90 else data).clone()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread = threading.Thread(target=turn)
    thread.start()
    try:
        for _ in range(1500):
            total = a.sum(0)
            assert pt.allclose(total, good[tuple(total.shape)], atol=1e-3)
    finally:
        stop = True
        thread.join()
        sys.setswitchinterval(before)
