"""The allocator seen from Python: counters, caching, what running out of memory says, and going on after it."""
import pytest

import ptcore
from ptcore import cuda

MIB = 1 << 20


@pytest.fixture(autouse=True)
def empty():
    cuda.set_device(0)
    cuda.synchronize()
    cuda.empty_cache()
    cuda.reset_peak_memory_stats()


def test_counters():
    start = cuda.memory_allocated()
    x = ptcore.empty(300, device="cuda")
    assert cuda.memory_allocated() == start + 1536              # rounded to 512
    y = ptcore.empty(3 * MIB, dtype=ptcore.uint8, device="cuda")
    assert cuda.memory_allocated() == start + 1536 + 3 * MIB
    assert cuda.memory_reserved() >= 20 * MIB
    del x, y
    assert cuda.memory_allocated() == start
    assert cuda.max_memory_allocated() == start + 1536 + 3 * MIB
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_allocated() == start
    reserved = cuda.memory_reserved()
    cuda.empty_cache()
    assert cuda.memory_reserved() < reserved


def test_a_freed_block_is_used_again():
    x = ptcore.empty(1000, device="cuda")
    place = x.data_ptr()
    calls = cuda.memory_stats()["num_device_alloc"]
    del x
    for _ in range(5):
        assert ptcore.empty(1000, device="cuda").data_ptr() == place
    assert cuda.memory_stats()["num_device_alloc"] == calls


def test_forms():
    stats = cuda.memory_stats()
    assert list(stats) == sorted(stats)
    assert cuda.memory_stats_as_nested_dict()["allocated_bytes"]["all"]["current"] == cuda.memory_allocated()
    assert "ptcore CUDA memory summary" in cuda.memory_summary()
    keep = ptcore.empty(100, device="cuda")
    blocks = [b for s in cuda.memory_snapshot() for b in s["blocks"]]
    assert any(b["address"] == keep.data_ptr() and b["state"] == "active_allocated" for b in blocks)
    assert cuda.get_allocator_backend() == "native"


def test_out_of_memory_and_after():
    total = cuda.mem_get_info()[1]
    keep = ptcore.ones(10, device="cuda")
    for _ in range(2):
        with pytest.raises(ptcore.OutOfMemoryError, match=r"(?s)Tried to allocate.*total capacity.*reserved"):
            ptcore.empty(2 * total, dtype=ptcore.uint8, device="cuda")
    assert cuda.memory_stats()["num_ooms"] >= 2
    assert (keep + 1).sum().item() == 20


def test_fraction():
    total = cuda.mem_get_info()[1]
    cuda.set_per_process_memory_fraction(0.25)
    assert cuda.get_per_process_memory_fraction() == 0.25
    try:
        with pytest.raises(ptcore.OutOfMemoryError):
            ptcore.empty(total // 3, dtype=ptcore.uint8, device="cuda")
    finally:
        cuda.set_per_process_memory_fraction(1.0)
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]"):
        cuda.set_per_process_memory_fraction(1.5)


def test_raw_memory():
    place = cuda.caching_allocator_alloc(1000)
    assert place % 512 == 0
    cuda.caching_allocator_delete(place)
    with pytest.raises(ValueError, match="not an address"):
        cuda.caching_allocator_delete(place)


def test_given_strides():
    """New memory is that of the device which is named, or the current one."""
    for device in ["cuda", "cuda:0", *(["cuda:1"] if cuda.device_count() > 1 else [])]:
        x = ptcore.empty_strided((2, 3), (1, 2), device=device)
        assert x.is_cuda
        assert x.stride() == (1, 2)
        assert x.device.index == (int(device[5:]) if device[4:] else cuda.current_device())
        assert x.fill_(2).sum().item() == 12


def test_resizing():
    """As on the CPU: values stay, all tensors over the storage follow, and the old block is freed."""
    ptcore.cuda.synchronize()
    before = ptcore.cuda.memory_allocated()
    x = ptcore.arange(6.0, device="cuda")
    y = x[2:]
    assert x.resize_(2, 5) is x and x.shape == (2, 5) and x.is_contiguous()
    assert x.flatten()[:6].tolist() == [0, 1, 2, 3, 4, 5]
    y.fill_(7)
    assert x.flatten()[:6].tolist() == [0, 1, 7, 7, 7, 7]
    storage = x.untyped_storage()
    storage.resize_(0)                              # as programs do that gather parameters before each use
    assert storage.nbytes() == 0 and ptcore.cuda.memory_allocated() <= before + 512
    storage.resize_(40)
    assert x.flatten().tolist() == [0] * 10
    x.fill_(3)
    assert y.tolist() == [3] * 4
    z = ptcore.empty(0, device="cuda:1").resize_as_(ptcore.ones(3, 2))
    assert z.shape == (3, 2) and str(z.device) == "cuda:1"
    out = ptcore.empty(0, device="cuda")
    assert ptcore.fft.fftfreq(4, out=out) is out and out.tolist() == [0, 0.25, -0.5, -0.25]
    with pytest.raises(RuntimeError, match="that require grad"):
        ptcore.ones(2, device="cuda", requires_grad=True).resize_(3)
    x.data_ptr()
    with pytest.raises(BufferError, match="in use outside"):
        x.resize_(100)
    del x, y, z, out, storage
    assert ptcore.cuda.memory_allocated() == before
