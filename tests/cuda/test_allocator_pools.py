"""The allocator's private pools, expandable segments and history over a pretended driver."""
import time

import allocator_library
import pytest
from allocator_library import EXPANDABLE, OUT_OF_MEMORY, current
from allocator_model import MIB
from native import needs_compiler

pytestmark = [pytest.mark.core, needs_compiler]

GIB = 1 << 30
library, start = allocator_library.library, allocator_library.start


def test_private_pools(start):
    driver = start(limit=64 * MIB)
    a = driver.allocate(1000, pool=7)
    driver.release(a)
    assert driver.allocate(1000) != a and driver.allocate(1000, pool=8) != a
    assert {r[6] for r in driver.snapshot()} == {0, 7, 8}
    assert driver.lib.empty_cache(0) == 0
    assert driver.allocate(1000, pool=7) == a       # its address stays while the pool lives
    driver.release(a)
    driver.lib.retire_pool(0, 7)
    driver.lib.empty_cache(0)
    assert {r[6] for r in driver.snapshot()} == {0, 8}
    assert driver.allocate(1000, pool=7) != a


def test_a_pool_that_nobody_holds_goes_back_at_once(start, library):
    driver = start()
    a, b = driver.allocate(30 * MIB, pool=7), driver.allocate(1000, pool=7)
    driver.release(driver.allocate(1000))
    driver.release(a)
    library.retire_pool(0, 7)
    library.capture(1)
    assert library.empty_retired(0) == 0 and library.used(0) == 34 * MIB         # not while a stream captures
    library.capture(0)
    assert library.empty_retired(0) == 0 and library.used(0) == 4 * MIB          # what the common pool caches stays
    driver.release(b)
    assert library.empty_retired(0) == 0 and [r[6] for r in driver.snapshot()] == [0]


def test_a_pool_without_splits(start, library):
    driver = start()
    library.make_pool(0, 7, 0, 1, 0)
    a = driver.allocate(2 * MIB, pool=7)
    assert current(driver, "allocated_bytes", "reserved_bytes", "requested_bytes") == (20 * MIB, 20 * MIB, 2 * MIB)
    assert driver.allocate(2 * MIB, pool=7) != a and current(driver, "segment") == 2
    driver.release(a)
    assert driver.allocate(3 * MIB, pool=7) == a and current(driver, "inactive_split") == 0
    library.make_pool(0, 8, 0, 0, 0)
    b = driver.allocate(2 * MIB, pool=8)
    assert driver.allocate(2 * MIB, pool=8) == b + 2 * MIB


def test_free_memory_of_a_pool_is_the_last_resort(start, library):
    driver = start(limit=40 * MIB)
    library.make_pool(0, 7, 0, 0, 0)
    library.make_pool(0, 8, 1, 0, 0)
    kept, lent = driver.allocate(20 * MIB, pool=7), driver.allocate(20 * MIB, pool=8)
    driver.release(kept)
    assert driver.allocate(20 * MIB) == 0           # both are in use or closed
    driver.release(lent)
    assert driver.allocate(20 * MIB, stream=1) == 0                 # of another stream
    assert driver.allocate(15 * MIB) == lent and driver.stats()["num_ooms"] == 2
    assert {r[6] for r in driver.snapshot() if r[8]} == {8}
    assert driver.allocate(20 * MIB, pool=8) == 0   # a private pool borrows from none
    assert driver.release(lent) and driver.allocate(20 * MIB, pool=8) == lent


def test_segments_of_another_source(start, library):
    driver = start()
    library.make_pool(0, 7, 0, 0, 0xa0)
    a, b = driver.allocate(1000, pool=7), driver.allocate(30 * MIB, stream=5, pool=7)
    c = driver.allocate(1000)
    assert a >> 50 and b >> 50 and not c >> 50
    assert driver.calls("allocate", "foreign_allocate") == [1, 2] and library.foreign_used() == 32 * MIB
    driver.release(a)
    assert driver.allocate(512, pool=7) == a                        # its segments are cached as others
    driver.release(a)
    driver.release(b)
    library.retire_pool(0, 7)
    assert library.empty_retired(0) == 0 == library.foreign_used()
    driver.fail("foreign_allocate", 2, count=2)
    library.make_pool(0, 8, 0, 0, 0xb0)
    assert driver.allocate(1000, pool=8) == 0 and driver.failure()["status"] == OUT_OF_MEMORY
    assert driver.allocate(1000, pool=8) >> 50


def test_another_source_of_everything_is_not_cached(start, library):
    driver = start("", "none", source=0xa0)
    a = driver.allocate(1000, stream=3)
    assert library.foreign_used() == 1024 and driver.calls("allocate") == [0]
    driver.record(a, 2)
    driver.release(a)
    assert library.foreign_used() == 1024           # the other stream is not done
    library.complete(0, 2, 1)
    driver.release(driver.allocate(1000))
    assert library.foreign_used() == 0 and driver.calls("foreign_allocate", "foreign_release") == [2, 2]


def test_without_caching(start, library):
    driver = start()
    cached = driver.allocate(1000)
    driver.release(cached)
    library.set_caching(0, 0)
    a = driver.allocate(1000)
    assert a != cached and library.used(0) == 2 * MIB + 1024
    b = driver.allocate(1000, pool=7)
    driver.release(a)
    assert library.used(0) == 4 * MIB and driver.release(b) and library.used(0) == 4 * MIB
    c = driver.allocate(1000)
    library.set_caching(0, 1)
    assert driver.allocate(1000) == cached
    driver.release(c)
    assert library.used(0) == 4 * MIB               # what was made without a cache goes back all the same


# Expandable segments

def test_a_segment_grows_at_its_end(start):
    driver = start(EXPANDABLE, limit=GIB)
    a, b = driver.allocate(15 * MIB), driver.allocate(15 * MIB)
    assert b == a + 15 * MIB and driver.calls("reserve", "map", "allocate") == [1, 2, 0]
    assert current(driver, "segment", "reserved_bytes", "allocated_bytes") == (1, 40 * MIB, 30 * MIB)
    assert {r[:2] + r[9:] for r in driver.snapshot()} == {(a, 40 * MIB, 1)}
    driver.release(a)
    driver.release(b)
    c = driver.allocate(300 * MIB)                  # what was free serves what is larger
    assert c == a and current(driver, "reserved_bytes") == 300 * MIB
    assert driver.allocate(700 * MIB) == c + 300 * MIB and driver.lib.used(0) == 1000 * MIB
    assert driver.allocate(100 * MIB) == 0 and driver.failure()["status"] == OUT_OF_MEMORY
    assert driver.lib.used(0) == 1000 * MIB         # of what was tried nothing stays
    small = driver.allocate(100)
    assert current(driver, "segment") == 2 and driver.stats()["reserved_bytes.small_pool.current"] == 2 * MIB
    assert not a <= small < a + GIB


def test_the_free_end_goes_back(start):
    driver = start(EXPANDABLE)
    a, b = driver.allocate(30 * MIB), driver.allocate(45 * MIB)
    assert driver.lib.used(0) == 80 * MIB
    driver.release(b)
    assert driver.lib.empty_cache(0) == 0 and driver.lib.used(0) == 40 * MIB
    assert [r[3] for r in driver.snapshot()] == [30 * MIB, 10 * MIB]
    assert driver.calls("device", "unreserve") == [1, 0]            # it was waited for
    assert driver.allocate(45 * MIB) == b and driver.lib.used(0) == 80 * MIB
    driver.release(a)
    assert driver.lib.empty_cache(0) == 0 and driver.lib.used(0) == 80 * MIB    # the beginning stays
    driver.release(b)
    assert driver.lib.empty_cache(0) == 0 == driver.lib.used(0)
    assert driver.snapshot() == [] and driver.calls("unreserve") == [1]
    whole = driver.allocate(40 * MIB)
    end = driver.allocate(20 * MIB)
    driver.release(end)
    assert driver.lib.empty_cache(0) == 0 and [r[2:4] for r in driver.snapshot()] == [(whole, 40 * MIB)]
    assert driver.allocate(20 * MIB) == end


def test_a_segment_of_each_pool_and_stream(start, library):
    driver = start(EXPANDABLE)
    library.make_pool(0, 8, 0, 1, 0)
    library.make_pool(0, 9, 0, 0, 0xa0)
    for stream, pool in (0, 0), (1, 0), (0, 7), (0, 0), (0, 8), (0, 9):
        driver.allocate(2 * MIB, stream=stream, pool=pool)
    assert sorted((r[5], r[6], r[9]) for r in driver.snapshot() if r[8]) == [
        (0, 0, 1), (0, 0, 1), (0, 7, 1), (0, 8, 0), (0, 9, 0), (1, 0, 1)]       # not without splits, nor of others
    assert driver.calls("reserve") == [3]


def test_nothing_is_unmapped_while_a_graph_is_captured(start, library):
    driver = start(EXPANDABLE, limit=60 * MIB)
    a, b, small = driver.allocate(20 * MIB), driver.allocate(20 * MIB), driver.allocate(100)
    library.capture(1)
    driver.release(b)
    driver.release(small)
    assert driver.lib.empty_cache(0) == 0 and driver.lib.used(0) == 42 * MIB
    assert driver.allocate(20 * MIB, stream=1) == 0 and driver.calls("unmap", "device") == [0, 0]
    library.capture(0)
    assert driver.allocate(20 * MIB, stream=1) and driver.calls("unmap") == [2]
    driver.release(a)


def test_nothing_goes_back_while_a_graph_is_captured(start, library):
    """Nor memory that was asked of the driver without a cache, nor on other devices; the request fails."""
    driver = start("garbage_collection_threshold:0.1,max_split_size_mb:24", devices=2, limit=100 * MIB)
    library.set_caching(0, 0)
    uncached = driver.allocate(10 * MIB)
    library.set_caching(0, 1)
    a, b, other = driver.allocate(30 * MIB), driver.allocate(40 * MIB), driver.allocate(90 * MIB, device=1)
    driver.release(a)
    driver.release(other, device=1)
    library.capture(1)
    driver.release(uncached)
    assert driver.allocate(60 * MIB) == driver.allocate(60 * MIB, device=1, stream=1) == 0
    assert library.empty_cache(0) == library.empty_cache(1) == 0 and driver.calls("release") == [0]
    assert driver.allocate(30 * MIB) == a           # what is cached serves on
    driver.release(a)
    library.capture(0)
    assert driver.calls("release") == [1]           # what has no cache
    assert driver.allocate(60 * MIB) and driver.allocate(60 * MIB, device=1, stream=1)
    assert driver.calls("release") == [3]
    driver.release(b)


def test_large_blocks_of_a_pool_stay(start, library):
    """Graphs have their addresses."""
    driver = start("max_split_size_mb:32", limit=200 * MIB)
    a = driver.allocate(64 * MIB, pool=7)
    driver.release(a)
    assert driver.allocate(150 * MIB, pool=7) == 0 and driver.calls("release") == [0]
    library.retire_pool(0, 7)
    assert driver.allocate(150 * MIB) and driver.calls("release") == [1]


@pytest.mark.parametrize("function", ["info", "granularity", "reserve", "map", "device", "unmap"])
def test_expandable_where_the_driver_fails(start, function):
    driver = start(EXPANDABLE)
    driver.fail(function, 719, after=1 if function == "map" else 0)
    a = driver.allocate(50 * MIB)
    if function in ("device", "unmap"):
        b = driver.allocate(20 * MIB)
        driver.release(b)
        assert driver.lib.empty_cache(0) == 719
        if function == "unmap":                     # the memory is lost, the allocator goes on
            return
        assert driver.lib.used(0) == 80 * MIB
    else:
        assert a == 0 and driver.failure()["status"] == 719 and driver.lib.used(0) == 0 and driver.snapshot() == []
        assert driver.calls("reserve") == driver.calls("unreserve") or function == "reserve"
        a = driver.allocate(50 * MIB)
    assert driver.release(a) and driver.lib.empty_cache(0) == 0 == driver.lib.used(0)


def test_history_of_expandable_segments(start, library):
    driver = start(EXPANDABLE)
    record(library)
    library.set_stack(3)
    a, b = driver.allocate(30 * MIB), driver.allocate(30 * MIB)
    driver.release(b)
    library.empty_retired(0)
    driver.lib.empty_cache(0)
    driver.release(a)
    driver.lib.empty_cache(0)
    library.set_stack(0)
    assert [h[:3] for h in history(library) if h[0].startswith("segment")] == [
        ("segment_map", a, 40 * MIB), ("segment_map", a + 40 * MIB, 20 * MIB),
        ("segment_unmap", a + 40 * MIB, 20 * MIB), ("segment_unmap", a, 40 * MIB)]


# What is recorded

ACTIONS = ("alloc free_requested free_completed segment_alloc segment_free segment_map segment_unmap oom "
           "snapshot").split()


def history(library, device=0):
    """(action, address, size, stream, pool, stack) of each entry."""
    rows = [line.split() for line in library.history(device).decode().splitlines()]
    times = [int(r[5]) for r in rows]
    assert times == sorted(times) and (not times or abs(times[-1] / 1e6 - time.time()) < 100)
    return [(ACTIONS[int(r[0])], *map(int, r[1:5]), int(r[6])) for r in rows]


def stacks(library):
    """(of the block, of its segment) of each block."""
    return [tuple(map(int, line.split())) for line in library.stacks(0).decode().splitlines()]


def record(library, on=1, trace=1, stacks=3, skipped=(), most=1000, clear=0):
    library.record_history(0, on, trace, stacks, sum(1 << ACTIONS.index(a) for a in skipped), most, clear)


def test_history(start, library):
    driver = start(limit=4 * MIB)
    record(library)
    library.set_stack(1)
    a = driver.allocate(1000, stream=5)
    library.set_stack(2)
    b = driver.allocate(1500, stream=5, pool=7)
    driver.record(a, 6)
    library.set_stack(3)
    driver.release(a)
    library.set_stack(4)
    assert driver.allocate(5 * MIB) == 0
    assert history(library) == [
        ("segment_alloc", a, 2 * MIB, 5, 0, 1), ("alloc", a, 1024, 5, 0, 1),
        ("segment_alloc", b, 2 * MIB, 5, 7, 2), ("alloc", b, 1536, 5, 7, 2),
        ("free_requested", a, 1024, 5, 0, 3), ("free_completed", a, 1024, 5, 0, 4),
        ("segment_free", a, 2 * MIB, 5, 0, 4), ("oom", 2 * MIB, 5 * MIB, 0, 0, 4)]
    assert stacks(library) == [(2, 2), (0, 2)]
    library.set_stack(0)
    driver.release(b)                                   # where nobody says from where: of what had it
    assert history(library)[-2:] == [("free_requested", b, 1536, 5, 7, 2), ("free_completed", b, 1536, 5, 7, 2)]
    assert history(library, 1) == []


def test_history_keeps_the_latest(start, library):
    driver = start()
    driver.allocate(1)
    record(library, most=5)
    live = [driver.allocate(512) for _ in range(13)]
    assert [h[1] for h in history(library)] == live[-5:]
    record(library, most=3)
    assert [h[1] for h in history(library)] == live[-3:]
    record(library, most=4)
    live += [driver.allocate(512) for _ in range(2)]
    assert [h[1] for h in history(library)] == live[-4:]
    record(library, clear=1)
    assert history(library) == []
    driver.allocate(512)
    record(library, on=0)
    driver.allocate(512)
    assert history(library) == []
    record(library, trace=0)
    library.set_stack(8)
    driver.allocate(512)
    library.set_stack(0)
    assert history(library) == [] and (8, 0) in stacks(library)


@pytest.mark.parametrize("level, entries, block", [(0, (0, 0, 0), 0), (1, (0, 0, 0), 1), (2, (1, 1, 1), 1),
                                                   (3, (1, 2, 2), 1)])
def test_history_has_as_many_stacks_as_it_is_asked_for(start, library, level, entries, block):
    driver = start()
    driver.allocate(512)
    record(library, stacks=level)
    library.set_stack(1)
    a = driver.allocate(512)
    assert stacks(library)[1] == (block, 0)
    library.set_stack(2)
    driver.release(a)
    library.set_stack(0)
    assert tuple(h[5] for h in history(library)) == entries


def test_history_without_some_actions(start, library):
    driver = start()
    record(library, skipped=("free_requested", "segment_alloc"))
    driver.release(driver.allocate(512))
    assert [h[0] for h in history(library)] == ["alloc", "free_completed"]
