"""Memory of CUDA devices: what the caching allocator holds, its peaks, and what it gives back."""
from ptcore.cuda import _stats
from ptcore.cuda._load import index_of, runtime, started

__all__ = ["caching_allocator_alloc", "caching_allocator_delete", "empty_cache", "empty_host_cache",
           "get_allocator_backend", "get_per_process_memory_fraction", "host_memory_stats",
           "host_memory_stats_as_nested_dict", "max_memory_allocated", "max_memory_cached", "max_memory_reserved",
           "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved", "memory_snapshot", "memory_stats",
           "memory_stats_as_nested_dict", "memory_summary", "reset_accumulated_host_memory_stats",
           "reset_accumulated_memory_stats",
           "reset_max_memory_allocated", "reset_max_memory_cached", "reset_peak_host_memory_stats",
           "reset_peak_memory_stats", "set_per_process_memory_fraction"]


def _memory():
    runtime()
    from ptcore.cuda import _memory
    return _memory


def mem_get_info(device=None):
    """(free, total) bytes of a device's memory, as the driver sees them."""
    return runtime().memory_info(index_of(device, "mem_get_info"))


def memory_stats(device=None):
    """The allocator's counters as an OrderedDict from keys such as ``"allocated_bytes.all.peak"``; empty before the
    first use of a device.

    Parameters
    ----------
    device : device, str or int, optional
        The current device if None; so in all functions here.
    """
    if started() is None:
        return _stats.flat([])
    return _stats.flat(_memory().stats(index_of(device, "memory_stats")))


def memory_stats_as_nested_dict(device=None):
    """The counters of ``memory_stats`` with a dictionary for each part of a key."""
    return _stats.nested(memory_stats(device).items())


def _one(device, key):
    return memory_stats(device).get(key, 0)


def memory_allocated(device=None):
    """Bytes that tensors use."""
    return _one(device, "allocated_bytes.all.current")


def max_memory_allocated(device=None):
    """The most bytes that tensors have used since the start or ``reset_peak_memory_stats``."""
    return _one(device, "allocated_bytes.all.peak")


def memory_reserved(device=None):
    """Bytes that the allocator has from the driver."""
    return _one(device, "reserved_bytes.all.current")


def max_memory_reserved(device=None):
    """The most bytes that the allocator has had from the driver."""
    return _one(device, "reserved_bytes.all.peak")


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved        # the names before


def reset_peak_memory_stats(device=None):
    """Starts the peaks again from what is in use now."""
    if started() is not None:
        _memory().reset_peak(index_of(device, "reset_peak_memory_stats"))


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device=None):
    """Starts the sums of what was allocated and freed again from zero."""
    if started() is not None:
        _memory().reset_accumulated(index_of(device, "reset_accumulated_memory_stats"))


def host_memory_stats():
    """The counters of the pool of pinned host memory."""
    return _stats.flat(_memory().host_stats() if started() is not None else [])


def host_memory_stats_as_nested_dict():
    """The counters of ``host_memory_stats`` with a dictionary for each part of a key."""
    return _stats.nested(host_memory_stats().items())


def reset_peak_host_memory_stats():
    """Starts the peaks of pinned memory again."""
    if started() is not None:
        _memory().reset_host_peak()


def reset_accumulated_host_memory_stats():
    """Starts the sums of pinned memory again."""
    if started() is not None:
        _memory().reset_host_accumulated()


def memory_summary(device=None, abbreviated=False):
    """The counters as a table.

    Parameters
    ----------
    device : device, str or int, optional
    abbreviated : bool
        Whether to leave out the pools.
    """
    index = index_of(device, "memory_summary")
    return _stats.summary(memory_stats(index), index, abbreviated)


def memory_snapshot():
    """All segments of all devices with their blocks, as dictionaries."""
    memory = _memory()
    found = []
    for device in range(runtime().device_count()):
        found += _stats.segments(memory.snapshot(device), device)
    return found


def empty_cache():
    """Gives memory that no tensor uses back to the driver; nothing happens where no device was used."""
    if started() is not None:
        for device in range(runtime().device_count()):
            _memory().empty_cache(device)


def empty_host_cache():
    """Gives pinned memory that nothing uses back to the system."""
    if started() is not None:
        _memory().empty_host_cache()


def set_per_process_memory_fraction(fraction, device=None):
    """Lets the allocator take at most a part of a device's memory; beyond it allocations fail.

    Raises
    ------
    ValueError
        If the part is not in [0, 1].
    TypeError
        If it is no number.
    """
    if not isinstance(fraction, float):
        raise TypeError(f"set_per_process_memory_fraction: fraction must be a float, got {type(fraction).__name__}")
    if not 0 <= fraction <= 1:
        raise ValueError(f"set_per_process_memory_fraction: fraction must be in [0, 1], got {fraction}")
    _memory().set_fraction(index_of(device, "set_per_process_memory_fraction"), fraction)


def get_per_process_memory_fraction(device=None):
    """The part of a device's memory that the allocator may take."""
    return _memory().fraction(index_of(device, "get_per_process_memory_fraction"))


def get_allocator_backend():
    """``"native"``, ``"async"`` or ``"none"``: PTCORE_CUDA_ALLOC's word."""
    return _memory().backend()


def caching_allocator_alloc(size, device=None, stream=None):
    """The address of ``size`` bytes of device memory for another library, for work on a stream (the current one if
    None). ``caching_allocator_delete`` gives it back.

    Raises
    ------
    OutOfMemoryError
        If there is none left.
    """
    index = index_of(device, "caching_allocator_alloc")
    handle = runtime().current_stream(index) if stream is None else getattr(stream, "cuda_stream", stream)
    return _memory().allocate_raw(index, size, handle)


def caching_allocator_delete(mem_ptr):
    """Gives back memory of ``caching_allocator_alloc``.

    Raises
    ------
    ValueError
        If the address is none of those.
    """
    memory = _memory()
    if not any(memory.release_raw(device, mem_ptr) for device in range(runtime().device_count())):
        raise ValueError(f"caching_allocator_delete: {mem_ptr:#x} is not an address of caching_allocator_alloc")
