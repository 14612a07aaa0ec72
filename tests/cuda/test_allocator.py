"""The caching allocators over a pretended driver, against a slow model and against PyTorch's documented numbers."""
import ctypes
import random
import shutil
import subprocess

import allocator_library
import pytest
from _since import since
from allocator_library import EXPANDABLE, OUT_OF_MEMORY, compile_sources, current, parsed
from allocator_model import MIB, Model
from native import needs_compiler

pytestmark = [pytest.mark.core, needs_compiler]

GIB = 1 << 30
library, start = allocator_library.library, allocator_library.start


# Random traces against the model

TRACES = {
    "roomy": dict(limit=1 << 40),
    "tight": dict(limit=72 * MIB),
    "tight, oversize": dict(limit=180 * MIB, settings="max_split_size_mb:21", max_split=21 * MIB),
    "roundup": dict(limit=90 * MIB, settings="roundup_power2_divisions:[2:1,8:8,>:4]",
                    divisions=[1] + [8] * 2 + [4] * 13),
    "expandable, roomy": dict(limit=1 << 32, settings="expandable_segments:True", expandable=True),
    "expandable, tight": dict(limit=110 * MIB, settings="expandable_segments:True,max_split_size_mb:21",
                              expandable=True),
}


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.outer
def test_random_trace_equals_model(start, trace, seed):
    options = dict(TRACES[trace])
    driver = start(options.pop("settings", ""), limit=options["limit"])
    model = Model(**options)
    rng = random.Random(f"{trace} {seed}")
    live = {}                       # address -> bytes that may be written
    waiting = []                    # (address, end, stream, ticket) of released blocks other streams still use
    recorded, done = {}, {}
    failures = 0
    for step in range(700):
        kind = rng.random()
        if kind < 0.5 and len(live) < 60:
            top = 27 if trace == "tight, oversize" and rng.random() < 0.3 else 24
            n, stream = int(2 ** rng.uniform(0, top)), rng.choice([0, 0, 0x10, 0x20])
            address = driver.allocate(n, stream)
            assert address == model.allocate(n, stream), (step, n, stream)
            if not address:
                failures += 1
                continue
            assert address % 512 == 0
            assert all(end <= address or a >= address + n for a, end in live.items())
            done = dict(model.done)             # a request may have waited for events
            waiting = [w for w in waiting if w[3] > done.get(w[2], 0)]
            assert all(end <= address or a >= address + n for a, end, *_ in waiting)
            live[address] = address + n
        elif kind < 0.85 and live:
            address = rng.choice(list(live))
            uses = model.find(address).uses[:]
            end = live.pop(address)
            for stream in uses:
                recorded[stream] = recorded.get(stream, 0) + 1
                waiting.append((address, end, stream, recorded[stream]))
            model.release(address)
            assert driver.release(address)
            assert not driver.release(address)
        elif kind < 0.93 and live:
            address, stream = rng.choice(list(live)), rng.choice([0, 0x10, 0x20, 0x30])
            model.record(address, stream)
            driver.record(address, stream)
        elif kind < 0.985:
            stream, tickets = rng.choice([0, 0x10, 0x20, 0x30]), rng.randrange(4)
            model.complete(stream, tickets)
            driver.lib.complete(0, stream, tickets)
        elif kind < 0.99:
            model.empty_cache()
            assert driver.lib.empty_cache(0) == 0
        elif kind < 0.995:
            model.reset_peak()
            driver.lib.reset_peak(0)
        else:
            model.reset_accumulated()
            driver.lib.reset_accumulated(0)
        assert driver.stats() == model.stats(), step
        if step % 50 == 0:
            assert driver.snapshot() == model.snapshot()
    assert (failures > 0) == ("roomy" not in trace)
    assert driver.snapshot() == model.snapshot()
    assert driver.lib.used(0) == sum(s.size for s in model.segments)
    for address in live:
        driver.release(address)
    assert driver.lib.empty_cache(0) == 0
    assert driver.lib.used(0) == 0 and driver.snapshot() == []
    assert {k: v for k, v in driver.stats().items() if k.endswith(".current")} == {
        k + ".current": 0 for k in model.counters}
    if model.expandable:
        assert driver.calls("allocate", "release") == [0, 0]
        assert driver.calls("map")[0] >= driver.calls("unmap")[0] >= driver.stats()["num_device_alloc"] > 10
        assert driver.calls("reserve") == driver.calls("unreserve")
    else:
        assert driver.calls("allocate")[0] >= driver.calls("release")[0] == driver.stats()["num_device_alloc"]


# PyTorch's documented numbers

@pytest.mark.parametrize("n, allocated, reserved", [
    (1, 512, 2 * MIB), (512, 512, 2 * MIB), (513, 1024, 2 * MIB), (1000, 1024, 2 * MIB),
    (MIB, MIB, 2 * MIB), (MIB + 1, MIB + 512, 20 * MIB), (10 * MIB - 512, 10 * MIB - 512, 20 * MIB),
    (10 * MIB, 10 * MIB, 10 * MIB), (10 * MIB + 1, 10 * MIB + 512, 12 * MIB), (11 * MIB + 1, 12 * MIB, 12 * MIB),
    (19 * MIB, 20 * MIB, 20 * MIB),
    (35 * MIB + 7, 36 * MIB, 36 * MIB),
])
@pytest.mark.outer
def test_sizes(start, n, allocated, reserved):
    driver = start()
    driver.allocate(n)
    pool = "small_pool" if n <= MIB else "large_pool"
    stats = driver.stats()
    assert current(driver, "allocated_bytes", "reserved_bytes", "requested_bytes") == (allocated, reserved, n)
    assert stats[f"segment.{pool}.current"] == stats[f"allocation.{pool}.peak"] == stats["segment.all.current"] == 1
    split = int(allocated < reserved)
    assert current(driver, "inactive_split", "inactive_split_bytes") == (split, split * (reserved - allocated))


def test_remainder_of_large_block_is_split_above_one_mib(start):
    driver = start()
    a = driver.allocate(9 * MIB)
    assert driver.allocate(10 * MIB - 512) == a + 9 * MIB          # the rest of 1 MiB + 512 bytes stays behind
    assert current(driver, "inactive_split_bytes") == MIB + 512
    assert driver.allocate(MIB + 512) == a + 19 * MIB - 512
    assert current(driver, "segment", "inactive_split") == (1, 0)
    driver = start()
    a = driver.allocate(9 * MIB)
    assert driver.allocate(10 * MIB - 512) and driver.release(a)
    assert driver.allocate(8 * MIB) == a                            # a rest of 1 MiB is not split
    assert current(driver, "allocated_bytes") == 19 * MIB - 512


def test_streams_and_devices_do_not_share(start):
    driver = start()
    a = driver.allocate(1000, stream=1)
    driver.release(a)
    assert driver.allocate(1000, stream=2) != a
    assert driver.allocate(1000, stream=1) == a
    b = driver.allocate(1000, device=1)
    assert b >> 44 == 2 and not driver.release(b) and driver.release(b, device=1)
    assert current(driver, "segment") == 2 and current(driver, "segment", device=1) == 1
    assert driver.allocate(10, device=2) == 0 and driver.failure()["status"] == 101


def test_block_of_two_streams_waits_for_both(start):
    driver = start()
    a = driver.allocate(1000, stream=1)
    driver.record(a, 1)             # its own: no event
    driver.record(a, 2)
    driver.record(a, 3)
    driver.record(a, 3)
    driver.release(a)
    assert driver.calls("record") == [2]
    assert current(driver, "allocation", "active", "allocated_bytes", "active_bytes") == (0, 1, 0, 1024)
    assert [r[8] for r in driver.snapshot()] == [2, 0]
    driver.lib.complete(0, 2, 1)
    assert driver.allocate(1000, stream=1) != a
    driver.lib.complete(0, 3, 1)
    assert driver.allocate(1000, stream=1) == a
    assert driver.lib.live_events() == 2
    driver.record(a, 2)             # events are used again
    driver.release(a)
    assert driver.calls("create", "destroy") == [2, 0]


def test_many_waiting_blocks_and_many_streams(start):
    driver = start()
    for round_ in range(3):
        blocks = [driver.allocate(512) for _ in range(1000)]
        for i, a in enumerate(blocks):
            driver.record(a, 100 + i % 7 if i % 2 else 1000 + 500 * round_ + i)     # a few busy streams and many new
            driver.release(a)
        assert current(driver, "active") == 1000
        for stream in [*range(100, 107), *range(1000 + 500 * round_, 2000 + 500 * round_)]:
            driver.lib.complete(0, stream, 10**6)
        driver.release(driver.allocate(512))
        assert current(driver, "active") == 0
    assert driver.lib.live_events() == 1000
    assert driver.lib.empty_cache(0) == 0 and driver.lib.used(0) == 0


def test_failed_events_wait_for_the_device(start):
    driver = start()
    for function in ("create", "record"):
        a = driver.allocate(1000)
        driver.record(a, 2)
        driver.fail(function, 999)
        before = driver.calls("device")[0]
        driver.release(a)
        assert driver.calls("device") == [before + 1]
        assert current(driver, "active") == 0
        assert driver.allocate(1000) == a
        driver.release(a)
    a = driver.allocate(1000)       # nothing works: the block must never be given away
    driver.record(a, 2)
    driver.fail("record", 999)
    driver.fail("device", 999)
    driver.release(a)
    assert driver.allocate(1000) != a and current(driver, "active") == 2
    b = driver.allocate(1000)       # an event that fails: the same, without end
    driver.record(b, 2)
    driver.release(b)
    driver.fail("query", 719, count=100)
    driver.fail("synchronize", 719, count=100)
    assert all(driver.allocate(1000) not in (a, b) for _ in range(10))
    assert driver.lib.empty_cache(0) == 719


# Memory runs out

def test_cached_blocks_go_back_before_a_request_fails(start):
    driver = start(limit=100 * MIB)
    for n in (30, 42, 50):
        driver.release(driver.allocate(n * MIB))
    assert driver.lib.used(0) == 50 * MIB           # the smaller ones went back for the larger
    a = driver.allocate(90 * MIB)
    stats = driver.stats()
    assert a and stats["num_ooms"] == 0 and stats["num_alloc_retries"] == 2
    assert driver.allocate(20 * MIB) == 0
    failure = driver.failure()
    assert failure["status"] == OUT_OF_MEMORY and failure["requested"] == failure["segment"] == 20 * MIB
    assert (failure["device_total"], failure["device_free"]) == (100 * MIB, 10 * MIB)
    assert failure["allocated"] == failure["reserved"] == 90 * MIB
    assert failure["largest_free"] == 0 and failure["cap"] == (1 << 64) - 1
    assert driver.stats()["num_ooms"] == 1
    driver.release(a)
    assert driver.allocate(20 * MIB)                # usable as before


def test_request_waits_for_the_blocks_of_other_streams(start):
    driver = start(limit=20 * MIB)
    a = driver.allocate(20 * MIB, stream=1)
    driver.record(a, 2)
    driver.release(a)
    b = driver.allocate(20 * MIB, stream=1)
    assert b and driver.stats()["num_sync_all_streams"] == 1 and driver.calls("synchronize") == [1]
    assert current(driver, "segment") == 1
    small = start(limit=2 * MIB)                    # part of a segment that is otherwise in use
    a, b = small.allocate(MIB), small.allocate(MIB)
    small.record(a, 2)
    small.release(a)
    assert small.allocate(MIB) == a and small.release(b)


def test_cap(start):
    driver = start(limit=100 * MIB)
    assert driver.lib.fraction(0) == 1
    assert driver.lib.set_fraction(0, 0.5) == 0 and driver.lib.fraction(0) == 0.5
    assert driver.allocate(50 * MIB) and not driver.allocate(512)
    failure = driver.failure()
    assert failure["cap"] == 50 * MIB and failure["device_free"] == 50 * MIB
    assert driver.calls("allocate") == [1]
    assert driver.allocate(60 * MIB, device=1)
    assert driver.lib.set_fraction(0, 1.0) == 0 and driver.allocate(512)
    assert driver.lib.set_fraction(5, 1.0) == 101


def test_other_errors_are_not_taken_for_a_lack_of_memory(start):
    driver = start()
    driver.release(driver.allocate(30 * MIB))
    driver.fail("allocate", 719)
    assert driver.allocate(40 * MIB) == 0
    failure = driver.failure()
    assert failure["status"] == 719 and "driver error 719" in failure["text"]
    stats = driver.stats()
    assert stats["num_ooms"] == stats["num_alloc_retries"] == 0 and stats["segment.all.current"] == 1
    assert driver.allocate(40 * MIB)


@pytest.mark.parametrize("n", [(1 << 60) + 1, (1 << 64) - 1, (1 << 63) + 5, 1 << 60])
def test_absurd_sizes_fail(start, n):
    driver = start()
    assert driver.allocate(n) == 0 and driver.failure()["status"] == OUT_OF_MEMORY
    assert driver.stats()["num_ooms"] == 1 and driver.allocate(0)


def test_text_of_the_error(start):
    driver = start(limit=8 * GIB)
    a, b = driver.allocate(9 * MIB), driver.allocate(3 * GIB)
    assert a and b and driver.allocate(6 * GIB) == 0
    assert driver.failure()["text"] == (
        "CUDA out of memory. Tried to allocate 6.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which 4.98 GiB is "
        "free. Of the allocated memory 3.01 GiB is allocated by ptcore, and 11.00 MiB is reserved by ptcore but "
        "unallocated (the largest free block has 11.00 MiB). If reserved but unallocated memory is large try setting "
        "PTCORE_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.")
    driver.lib.set_fraction(0, 0.5)
    assert driver.allocate(2 * GIB) == 0
    assert "is free. 4.00 GiB allowed; Of the allocated memory" in driver.failure()["text"]


# Settings

def test_max_split_size(start):
    driver = start("max_split_size_mb:100", limit=GIB)
    big = driver.allocate(200 * MIB)
    assert driver.stats()["max_split_size"] == 100 * MIB
    assert driver.stats()["oversize_allocations.current"] == driver.stats()["oversize_segments.current"] == 1
    driver.release(big)
    assert driver.allocate(50 * MIB) != big         # a large block is kept for large requests
    assert driver.allocate(179 * MIB) != big        # not of much smaller ones
    driver.release(driver.allocate(181 * MIB))
    again = driver.allocate(181 * MIB)
    assert again == big and current(driver, "allocated_bytes") == (50 + 180 + 200) * MIB
    # several cached ones go back, without waiting for events, when together they are enough
    driver = start("max_split_size_mb:100", limit=GIB)
    for a in [driver.allocate(n * MIB) for n in (300, 300, 300)]:
        driver.release(a)
    assert driver.allocate(600 * MIB)
    stats = driver.stats()
    assert stats["num_alloc_retries"] == stats["num_sync_all_streams"] == 0 and stats["segment.all.current"] == 2


@pytest.mark.parametrize("fraction", [None, 0.5])
def test_garbage_collection(start, fraction):
    driver = start("garbage_collection_threshold:0.6", limit=1000 * MIB if fraction is None else 2000 * MIB)
    if fraction:
        driver.lib.set_fraction(0, fraction)
    old, new = [driver.allocate(n * MIB) for n in (200, 210)]
    driver.release(old)
    for _ in range(20):
        driver.release(driver.allocate(300 * MIB))
    driver.release(new)
    assert driver.lib.used(0) == 710 * MIB
    assert driver.allocate(220 * MIB)               # served from what is cached: nothing is collected
    assert driver.lib.used(0) == 710 * MIB
    assert driver.allocate(250 * MIB)               # 110 MiB above 600: the block that is unused for longest goes
    assert driver.lib.used(0) == (710 - 200 + 250) * MIB
    assert driver.stats()["num_alloc_retries"] == 0


@pytest.mark.parametrize("settings, sizes", [
    ("roundup_power2_divisions:4", {1200: 1536, 5 * MIB + 1: 6 * MIB, 10 * MIB + 1: 12 * MIB, 65 * MIB: 80 * MIB}),
    ("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
     {65 * MIB: 66 * MIB, 257 * MIB: 384 * MIB, 600 * MIB: 640 * MIB, 1100 * MIB: 1152 * MIB}),
])
def test_roundup(start, settings, sizes):
    for n, size in sizes.items():
        driver = start(settings)
        driver.allocate(n)
        assert current(driver, "allocated_bytes") == size, n


@pytest.mark.parametrize("settings, problem", [
    ("max_split_size_mb:20", "must be more than 20"), ("max_split_size_mb", "expected ':'"),
    ("max_split_size_mb:x", 'expected a number, got "x"'), ("max_split_size_mb:2.5,", "x"),
    ("garbage_collection_threshold:1", "between 0 and 1"), ("garbage_collection_threshold:nan", "number"),
    ("roundup_power2_divisions:3", "power of two"), ("roundup_power2_divisions:[256:2", "expected ']'"),
    ("roundup_power2_divisions:[512:2,256:2]", "must rise"), ("roundup_power2_divisions:[300:2]", "powers of two"),
    ("backend:mine", "native, async or none"), ("expandable_segments:1", "expected True or False"),
    ("split:1", "unknown setting \"split\""), ("backend:native max_split_size_mb:64", "expected ','"),
    ("max_split_size_mb:1e30", "number"), ("max_split_size_mb:-64", "number"),
])
def test_bad_settings(library, settings, problem):
    text = library.start(1, settings.encode(), b"", MIB, MIB, 0)
    assert text is not None
    assert problem == "x" or problem in text.decode()


def test_settings_that_are_understood(start):
    start(" max_split_size_mb : 64 , backend:native, expandable_segments:False,garbage_collection_threshold:0.8,")
    assert start("max_split_size_mb:64").stats()["max_split_size"] == 64 * MIB
    assert start("").stats()["max_split_size"] == -1


@pytest.mark.parametrize("setting", ["backend:none", "backend:async", "backend:cudaMallocAsync", "none", "async"])
def test_backends_without_a_cache(start, setting):
    driver = start(*((setting, "") if ":" in setting else ("", setting)), limit=10 * MIB)
    a = driver.allocate(1000)
    assert current(driver, "allocated_bytes", "reserved_bytes", "requested_bytes") == (1024, 1024, 1000)
    driver.record(a, 2)
    driver.release(a)
    assert driver.lib.used(0) == 1024               # the other stream is not done
    b = driver.allocate(10 * MIB)
    assert b and driver.lib.used(0) == 10 * MIB and driver.stats()["num_alloc_retries"] == 1
    driver.release(b)
    assert driver.lib.used(0) == 0 and driver.snapshot() == []
    assert driver.stats()["num_device_alloc"] == driver.stats()["num_device_free"] == 2


# Cost and threads

@pytest.mark.parametrize("settings", ["", EXPANDABLE])
def test_steady_state_takes_no_memory_and_no_driver_call(start, library, settings):
    rng = random.Random(0)
    for n, low, high in ((1, 9, 9), (100, 4, 20), (1000, 4, 24)):
        driver = start(settings)
        sizes = (ctypes.c_size_t * n)(*(int(2 ** rng.uniform(low, high)) for _ in range(n)))
        made = ctypes.c_long()
        library.steady(sizes, n, 1, ctypes.byref(made))
        before = driver.calls()
        ns = min(library.steady(sizes, n, 100_000 // n, ctypes.byref(made)) for _ in range(5))
        print(f"a hit and its release, {n} blocks: {ns:.0f} ns")
        assert made.value == 0 and driver.calls() == before


@pytest.mark.parametrize("settings", ["", EXPANDABLE])
def test_threads(start, library, settings):
    driver = start(settings, limit=256 * MIB, host_limit=64 * MIB)
    assert library.hammer(6, 5000) == 0
    for device in (0, 1):
        assert library.empty_cache(device) == 0 and library.used(device) == 0
        stats = driver.stats(device)
        assert stats["allocation.all.allocated"] == stats["allocation.all.freed"] > 500
        assert stats["allocation.all.current"] == 0
    assert library.pinned_empty() == 0 and library.host_used() == 0


@pytest.mark.slow
@since("cuda/host", "ptcore/cuda/allocator", *(f"tests/cuda/{name}" for name in (
    "allocator_driver.cpp", "allocator_library.py", "test_allocator.py")))
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_threads_under_sanitizers(tmp_path, sanitizer):
    program = tmp_path / "hammer"
    compile_sources(program, "-O1", "-g", "-DHAMMER", f"-fsanitize={sanitizer}")
    prefix = ["setarch", "-R"]      # some versions of TSan know only addresses that are not random
    if not shutil.which("setarch") or subprocess.run([*prefix, "true"], capture_output=True).returncode:
        prefix = []
    for settings in ("", EXPANDABLE):
        done = subprocess.run([*prefix, str(program), settings], capture_output=True, text=True)
        assert done.returncode == 0, settings + done.stdout + done.stderr
        assert done.stdout.split() == ["0"] * 5, settings


# Pinned host memory

def test_pinned_blocks(start, library):
    driver = start(host_limit=1 * MIB)
    a = library.pinned_allocate(1000)
    assert library.host_used() == 1024 and library.pinned_owns(a + 1023) and not library.pinned_owns(a + 1024)
    assert library.pinned_release(a) and not library.pinned_release(a) and not library.pinned_owns(a)
    assert library.pinned_allocate(513) == a and library.host_used() == 1024
    assert library.pinned_record(a + 100, 0, 1) and library.pinned_record(a, 1, 1) and library.pinned_record(a, 0, 1)
    assert not library.pinned_record(a + 5000, 0, 1)
    library.pinned_release(a)
    assert driver.calls("record") == [2]
    b = library.pinned_allocate(1000)
    assert b != a
    driver.lib.complete(0, 1, 1)
    assert library.pinned_allocate(1000) not in (0, a)
    driver.lib.complete(1, 1, 1)
    assert library.pinned_allocate(1000) == a
    stats = parsed(library.pinned_stats())
    assert stats["active_requests.current"] == 3 and stats["active_bytes.current"] == 3 * 1024
    assert stats["allocations.allocated"] == stats["num_host_alloc"] == stats["host_alloc_time.count"] == 3
    assert stats["active_requests.allocated"] == 5 and stats["active_requests.freed"] == 2
    for p in (a, b):
        library.pinned_release(p)
    assert library.pinned_empty() == 0 and library.host_used() == 1024
    library.pinned_reset_peak()
    library.pinned_reset_accumulated()
    stats = parsed(library.pinned_stats())
    assert stats["allocated_bytes.peak"] == stats["allocated_bytes.current"] == 1024 and stats["num_host_free"] == 0


def test_pinned_memory_that_the_driver_refuses_to_take_back(start, library):
    """It stays a free block of the pool, and goes back later."""
    driver = start(host_limit=1 * MIB)
    blocks = [library.pinned_allocate(1000) for _ in range(3)]
    for p in blocks:
        library.pinned_release(p)
    driver.fail("host_release", 201, after=1)
    assert library.pinned_empty() == 201
    assert library.host_used() == 1024 == parsed(library.pinned_stats())["allocated_bytes.current"]
    assert library.pinned_allocate(600) in blocks and library.host_used() == 1024
    driver.fail("host_release", 201)
    library.pinned_release(blocks[1])
    assert library.pinned_empty() == 201
    assert library.pinned_empty() == 0 == library.host_used() == library.mistakes()


def test_pinned_memory_runs_out(start, library):
    driver = start(host_limit=1 * MIB)
    a = library.pinned_allocate(512 * 1024)
    library.pinned_record(a, 0, 1)
    library.pinned_release(a)
    assert library.pinned_allocate(MIB)             # waited for the event, gave the block back
    assert driver.calls("host_release") == [1]
    assert library.pinned_allocate(600) == 0
    failure = driver.failure()
    assert (failure["status"], failure["segment"], failure["allocated"]) == (OUT_OF_MEMORY, 1024, MIB)
    assert failure["text"] == ("CUDA could not allocate 1.00 KiB of pinned host memory (driver error 2); 1.00 MiB are "
                               "in use and 0 bytes cached.")
    assert library.pinned_allocate((1 << 64) - 1) == 0


def test_pinned_block_is_lost_where_nothing_can_be_waited_for(start, library):
    driver = start()
    a = library.pinned_allocate(1000)
    library.pinned_record(a, 0, 1)
    driver.fail("record", 999)
    driver.fail("device", 999)
    library.pinned_release(a)
    assert library.pinned_allocate(1000) != a
    b = library.pinned_allocate(1000)
    library.pinned_record(b, 0, 1)
    driver.fail("record", 999)
    library.pinned_release(b)
    assert library.pinned_allocate(1000) == b       # the device was waited for
