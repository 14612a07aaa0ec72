"""The allocators' numbers in PyTorch's forms. The expected table is what torch.cuda.memory_summary of PyTorch 2.13
prints for the same numbers, but for the name in its title."""
from collections import OrderedDict

import pytest

from ptcore.cuda.allocator import stats as _stats

pytestmark = pytest.mark.core

MIB, GIB = 1 << 20, 1 << 30


def pairs():
    out = []
    for i, (key, _, is_size) in enumerate(_stats.METRICS):
        for j, column in enumerate(_stats.COLUMNS):
            large, small = ((3 * i + j) * 100 * MIB + i, (i + j) * 300_000) if is_size else (10 ** (i + j - 4), i * j)
            for pool, n in (("large_pool", large), ("small_pool", small), ("all", large + small)):
                out.append((f"{key}.{pool}.{column}", n))
    for i, (key, _) in enumerate(_stats.OVERSIZE):
        out += [(f"{key}.{column}", i + j) for j, column in enumerate(_stats.COLUMNS)]
    return [*out, ("num_ooms", 3), ("num_alloc_retries", 12345), ("max_split_size", -1)]


SUMMARY = """\
|===========================================================================|
|                  ptcore CUDA memory summary, device ID 1                  |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 3            |        cudaMalloc retries: 12345     |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      |      0 B   | 102692 KiB | 205385 KiB | 308078 KiB |
|       from large pool |      0 B   | 102400 KiB | 204800 KiB | 307200 KiB |
|       from small pool |      0 B   |    292 KiB |    585 KiB |    878 KiB |
|---------------------------------------------------------------------------|
| Active memory         | 307492 KiB | 410185 KiB | 512878 KiB | 615571 KiB |
|       from large pool | 307200 KiB | 409600 KiB | 512000 KiB | 614400 KiB |
|       from small pool |    292 KiB |    585 KiB |    878 KiB |   1171 KiB |
|---------------------------------------------------------------------------|
| Requested memory      | 614985 KiB | 717678 KiB |    801 MiB |    901 MiB |
|       from large pool | 614400 KiB | 716800 KiB |    800 MiB |    900 MiB |
|       from small pool |    585 KiB |    878 KiB |      1 MiB |      1 MiB |
|---------------------------------------------------------------------------|
| GPU reserved memory   |    900 MiB |   1001 MiB |   1101 MiB |   1201 MiB |
|       from large pool |    900 MiB |   1000 MiB |   1100 MiB |   1200 MiB |
|       from small pool |      0 MiB |      1 MiB |      1 MiB |      1 MiB |
|---------------------------------------------------------------------------|
| Non-releasable memory |   1201 MiB |   1301 MiB |   1401 MiB |   1502 MiB |
|       from large pool |   1200 MiB |   1300 MiB |   1400 MiB |   1500 MiB |
|       from small pool |      1 MiB |      1 MiB |      1 MiB |      2 MiB |
|---------------------------------------------------------------------------|
| Allocations           |      10    |     105    |    1010    |   10015    |
|       from large pool |      10    |     100    |    1000    |   10000    |
|       from small pool |       0    |       5    |      10    |      15    |
|---------------------------------------------------------------------------|
| Active allocs         |     100    |    1006    |   10012    |  100018    |
|       from large pool |     100    |    1000    |   10000    |  100000    |
|       from small pool |       0    |       6    |      12    |      18    |
|---------------------------------------------------------------------------|
| GPU reserved segments |    1000    |   10007    |  100014    |    1000 K  |
|       from large pool |    1000    |   10000    |  100000    |    1000 K  |
|       from small pool |       0    |       7    |      14    |       0 K  |
|---------------------------------------------------------------------------|
| Non-releasable allocs |   10000    |  100008    |    1000 K  |   10000 K  |
|       from large pool |   10000    |  100000    |    1000 K  |   10000 K  |
|       from small pool |       0    |       8    |       0 K  |       0 K  |
|---------------------------------------------------------------------------|
| Oversize allocations  |       0    |       1    |       2    |       3    |
|---------------------------------------------------------------------------|
| Oversize GPU segments |       1    |       2    |       3    |       4    |
|===========================================================================|
"""


def test_flat():
    stats = _stats.flat(pairs())
    assert type(stats) is OrderedDict and list(stats) == sorted(stats)
    assert list(stats.items()) == sorted(pairs()) and stats["allocated_bytes.all.peak"] == 100 * MIB + 300_000


def test_nested():
    stats = _stats.nested(pairs())
    assert stats["active"]["small_pool"] == {"current": 0, "peak": 6, "allocated": 12, "freed": 18}
    assert stats["oversize_segments"] == {"current": 1, "peak": 2, "allocated": 3, "freed": 4}
    assert stats["num_ooms"] == 3 and set(stats["segment"]) == {"all", "large_pool", "small_pool"}


def test_summary():
    assert _stats.summary(_stats.flat(pairs()), 1) == SUMMARY
    short = [line for line in SUMMARY.splitlines(True) if "from" not in line]
    assert _stats.summary(_stats.flat(pairs()), 1, abbreviated=True) == "".join(short)


@pytest.mark.parametrize("value, leader, text", [
    (0, 0, "     0 B  "), (786431, 786431, "786431 B  "), (786432, 786432, "   768 KiB"),
    (5000, 3 * GIB, "     0 MiB"), (7 * GIB, 2 * GIB, "  7168 MiB"), (900 * GIB, 900 * GIB, "   900 GiB")])
def test_size_cell(value, leader, text):
    assert _stats.size_cell(value, leader) == text


def test_segments():
    base = 1 << 40
    rows = [(base, 2 * MIB, base, 1024, 1000, 5, 0, False, 1, 4, 3, True),
            (base, 2 * MIB, base + 1024, 512, 10, 5, 0, False, 2, 0, 3, True),
            (base, 2 * MIB, base + 1536, 2 * MIB - 1536, 77, 5, 0, False, 0, 0, 3, True),
            (2 * base, 20 * MIB, 2 * base, 20 * MIB, 0, 0, 7, True, 0, 0, 0, False)]
    first, second = _stats.segments(rows, 1, lambda stack: [{"line": stack}] if stack else [])
    blocks = first.pop("blocks")
    assert first == {"device": 1, "address": base, "total_size": 2 * MIB, "allocated_size": 1024, "active_size": 1536,
                     "requested_size": 1010, "stream": 5, "segment_type": "small", "segment_pool_id": (0, 0),
                     "is_expandable": True, "frames": [{"line": 3}]}
    assert [(b["address"] - base, b["size"], b["requested_size"], b["state"], b["frames"]) for b in blocks] == [
        (0, 1024, 1000, "active_allocated", [{"line": 4}]), (1024, 512, 10, "active_pending_free", []),
        (1536, 2 * MIB - 1536, 0, "inactive", [])]
    assert second["segment_type"] == "large" and second["segment_pool_id"] == (0, 7) and second["active_size"] == 0
    assert not second["is_expandable"]
