"""PyTorch's own viewer of memory reads our snapshots, and finds in them what was done."""
import gc
import re

import pytest

import ptcore
from ptcore import cuda
from ptcore.cuda.memory import _record_memory_history, _snapshot

MIB = 1 << 20


@pytest.fixture
def viewer():
    return pytest.importorskip("torch.cuda._memory_viz")


def test_viewer(viewer):
    gc.collect()
    cuda.synchronize()
    cuda.empty_cache()
    before = len(cuda.memory_snapshot())
    _record_memory_history()
    x = ptcore.empty(30 * MIB, dtype=ptcore.uint8, device="cuda")
    y = ptcore.empty(3 * MIB, dtype=ptcore.uint8, device="cuda")
    del x
    with pytest.raises(ptcore.OutOfMemoryError):
        ptcore.empty(1 << 50, dtype=ptcore.uint8, device="cuda")
    found = _snapshot()
    _record_memory_history(None)
    steps = re.sub(r"\d{8,}", "ADDRESS", viewer.trace(found)).splitlines()
    assert steps[2:] == [
        "a = cudaMalloc(ADDRESS, 30.0MiB)", "b = a[0:30.0MiB]", "c = cudaMalloc(ADDRESS, 20.0MiB)", "d = c[0:3.0MiB]",
        "del b # 30.0MiB", "# free completed for b 30.0MiB", "cudaFree(a) # 30.0MiB",
        *steps[9:]]
    assert steps[9].startswith("raise OutOfMemoryError # 1.0PiB requested")
    summary = viewer.segsum(found)
    assert f"segments: {before + 1}" in summary
    assert "<script" in viewer.trace_plot(found) and "<script" in viewer.segment_plot(found)
    flames = viewer.memory(found, format_flamegraph=lambda lines: lines)
    assert "test_viewer" in flames and str(3 * MIB) in flames
    del y
