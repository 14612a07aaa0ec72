"""What is recorded of memory: entries in order, from which line they come, how many stay, and files of it."""
import gc
import pickle
import threading
import time

import numpy as np
import pytest
from in_process import run

import ptcore
from ptcore import cuda
from ptcore.cuda.memory import _dump_snapshot, _record_memory_history, _snapshot

MIB = 1 << 20


@pytest.fixture(autouse=True)
def empty():
    cuda.set_device(0)
    gc.collect()
    cuda.synchronize()
    cuda.empty_cache()
    yield
    _record_memory_history(None)


def entries(device=0):
    return _snapshot()["device_traces"][device]


def allocates(n):
    return ptcore.empty(n, dtype=ptcore.uint8, device="cuda")


def calls(entry, n=3):
    """The innermost functions of this file, from the inside."""
    return [f["name"] for f in entry["frames"] if f["filename"] == __file__][:n]


def lines(entry):
    """Those lines of this file that an entry comes from."""
    with open(__file__) as file:
        text = file.readlines()
    return [text[f["line"] - 1].strip() for f in entry["frames"] if f["filename"] == __file__]


def test_a_life():
    start = time.time()
    _record_memory_history()
    x = allocates(3 * MIB)
    place = x.data_ptr()
    del x                                                       # here it ends
    cuda.empty_cache()
    found = entries()
    assert [(e["action"], e["addr"], e["size"], e["stream"], e["pool_id"]) for e in found] == [
        ("segment_alloc", place, 20 * MIB, 0, (0, 0)), ("alloc", place, 3 * MIB, 0, (0, 0)),
        ("free_requested", place, 3 * MIB, 0, (0, 0)), ("free_completed", place, 3 * MIB, 0, (0, 0)),
        ("segment_free", place, 20 * MIB, 0, (0, 0))]
    assert [calls(e, 2) for e in found[:2]] == [["allocates", "test_a_life"]] * 2
    assert lines(found[1])[:2] == ["return ptcore.empty(n, dtype=ptcore.uint8, device=\"cuda\")",
                                   "x = allocates(3 * MIB)"]
    assert lines(found[2])[0].startswith("del x") and lines(found[4])[0] == "cuda.empty_cache()"
    times = [e["time_us"] / 1e6 for e in found]
    assert times == sorted(times) and start - 1 < times[0] and times[-1] < time.time() + 1


def test_blocks_have_the_place_where_they_were_made():
    _record_memory_history("state")
    x = allocates(3 * MIB)
    snapshot = _snapshot()
    segment = next(s for s in snapshot["segments"] if s["address"] == x.data_ptr())
    block, rest = segment["blocks"]
    assert calls(block) == calls(segment) == ["allocates", "test_blocks_have_the_place_where_they_were_made"]
    assert rest["frames"] == [] and (block["size"], rest["size"]) == (3 * MIB, 17 * MIB)
    assert snapshot["device_traces"] == [[]] * cuda.device_count()
    del x
    assert not any(b["frames"] for s in cuda.memory_snapshot() for b in s["blocks"])


@pytest.mark.parametrize("context", [None, "state", "alloc", "all"])
def test_context(context):
    keep = allocates(1)
    _record_memory_history(context=context, stacks="all")
    x = allocates(1)
    block = next(b for s in cuda.memory_snapshot() for b in s["blocks"] if b["address"] == x.data_ptr())
    del x
    alloc, free = (calls(e) for e in entries()[:2])
    name = "test_context"
    assert calls(block) == ([] if context is None else ["allocates", name])
    assert alloc == (["allocates", name] if context in ("alloc", "all") else [])
    assert free == {"alloc": ["allocates", name], "all": [name]}.get(context, [])
    del keep


def test_the_latest_stay():
    _record_memory_history(max_entries=4, skip_actions=["free_requested", "free_completed"])
    kept = [allocates(512) for _ in range(10)]
    assert [e["addr"] for e in entries()] == [x.data_ptr() for x in kept[-4:]]
    assert entries()[-1]["action"] == "snapshot" and len(entries()) == 4
    _record_memory_history(clear_history=True)
    assert entries() == []
    _record_memory_history(None)
    kept.append(allocates(512))
    assert entries() == []
    _record_memory_history(True)
    kept.append(allocates(512))
    assert [e["addr"] for e in entries()] == [kept[-1].data_ptr()]
    _record_memory_history(False)
    assert entries() == []


def test_running_out():
    _record_memory_history()
    seen, free, total = [], *cuda.mem_get_info()
    cuda.memory._attach_out_of_memory_observer(lambda *numbers: seen.append(numbers))
    with pytest.raises(ptcore.OutOfMemoryError):
        ptcore.empty(2 * total, dtype=ptcore.uint8, device="cuda")
    entry, = (e for e in entries() if e["action"] == "oom")
    assert entry["size"] == 2 * total and 0 < entry["device_free"] <= free + 20 * MIB and "addr" not in entry
    assert calls(entry) == ["test_running_out"]
    assert seen == [(0, 2 * total, total, entry["device_free"])]
    assert (ptcore.ones(10, device="cuda") + 1).sum().item() == 20
    with pytest.raises(TypeError, match="observer must be callable, got int"):
        cuda.memory._attach_out_of_memory_observer(3)


def test_an_observer_that_fails():
    lines = run("""
cuda.memory._attach_out_of_memory_observer(lambda *numbers: 1 / 0)
print(type(failure(lambda: ptcore.empty(1 << 50, dtype=ptcore.uint8, device="cuda"))).__name__)
""")
    assert lines == ["OutOfMemoryError"]


def test_threads_pools_and_streams():
    pool, stream, found = cuda.MemPool(), cuda.Stream(), []

    def work():
        with cuda.use_mem_pool(pool), cuda.stream(stream):
            found.append(allocates(100).data_ptr())

    _record_memory_history()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    alloc = next(e for e in entries() if e["action"] == "alloc")
    assert (alloc["addr"], alloc["stream"], alloc["pool_id"]) == (found[0], stream.cuda_stream, pool.id)
    assert calls(alloc) == ["allocates", "work"]
    assert [f["name"] for f in alloc["frames"]][-1] == "_bootstrap"


def test_results_of_operations_and_backward():
    x = ptcore.ones(100, device="cuda", requires_grad=True)
    _record_memory_history()
    loss = (x * 3).sum()
    loss.backward()
    made = [e for e in entries() if e["action"] == "alloc" and calls(e)]
    assert {"loss = (x * 3).sum()", "loss.backward()"} <= {lines(e)[0] for e in made}
    np.testing.assert_array_equal(x.grad.cpu().numpy(), np.full(100, 3, "f"))


def test_memory_that_ends_with_an_error():
    """The error goes on, and the entry has its place."""
    x = ptcore.ones(6, device="cuda")
    _record_memory_history()
    with pytest.raises(RuntimeError, match="reshape"):
        (x * 2).reshape(7)
    freed = next(e for e in entries() if e["action"] == "free_completed")
    assert calls(freed)[0] == "test_memory_that_ends_with_an_error"


def test_many_equal_stacks_are_kept_once():
    from ptcore.cuda.allocator import allocators
    _record_memory_history()
    allocates(1)
    numbers = []
    for _ in range(100):
        allocates(512)
        numbers.append(allocators.history(0)[-1][-1])
    assert len(set(numbers)) == 1 and len(entries()) == 1 + 3 * 101


def test_a_file(tmp_path):
    _record_memory_history()
    x = allocates(100)
    _dump_snapshot(str(tmp_path / "memory.pickle"))
    with open(tmp_path / "memory.pickle", "rb") as f:
        found = pickle.load(f)
    assert set(found) == {"segments", "device_traces", "allocator_settings", "external_annotations"}
    assert found["device_traces"][0] == _snapshot()["device_traces"][0][:-1]
    assert found["segments"] == cuda.memory_snapshot()
    assert {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0,
            "expandable_segments": False}.items() <= found["allocator_settings"].items()
    del x


@pytest.mark.parametrize("wrong, text", [
    (dict(enabled="some"), "enabled must be one of None, 'state', 'all', got 'some'"),
    (dict(context="some"), "context must be one of None, 'state', 'alloc', 'all', got 'some'"),
    (dict(stacks="c"), "stacks must be one of 'python', 'all', got 'c'"),
    (dict(skip_actions=["free"]), "skip_actions must be one of 'alloc', .*, got 'free'")])
def test_wrong_words(wrong, text):
    with pytest.raises(RuntimeError, match=text):
        _record_memory_history(**wrong)
