"""Memory of CUDA devices: what the caching allocator holds, its peaks, and what it gives back."""
import contextlib
import os
import pickle
import sys

from ptcore import _lazy
from ptcore._atomic import write_atomically
from ptcore.cuda.allocator import stats as _stats
from ptcore.cuda.allocator.pools import CUDAPluggableAllocator, MemPool, change_current_allocator, use_mem_pool
from ptcore.cuda.allocator.snapshot import frames_of, memory_snapshot
from ptcore.cuda.driver.loading import index_of, runtime, started
from ptcore.cuda.driver.loading import memory as _memory

__all__ = ["CUDAPluggableAllocator", "MemPool", "caching_allocator_alloc", "caching_allocator_delete",
           "caching_allocator_disabled", "caching_allocator_enable", "change_current_allocator", "empty_cache",
           "empty_host_cache",
           "get_allocator_backend", "get_per_process_memory_fraction", "host_memory_stats",
           "host_memory_stats_as_nested_dict", "max_memory_allocated", "max_memory_cached", "max_memory_reserved",
           "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved", "memory_snapshot", "memory_stats",
           "memory_stats_as_nested_dict", "memory_summary", "reset_accumulated_host_memory_stats",
           "reset_accumulated_memory_stats",
           "reset_max_memory_allocated", "reset_max_memory_cached", "reset_peak_host_memory_stats",
           "reset_peak_memory_stats", "set_per_process_memory_fraction", "use_mem_pool",
           *[name for names in _lazy.TABLE["ptcore.cuda.memory"].values() for name in names]]
__getattr__, __dir__ = _lazy.names(__name__)

_caching = True


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


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved        # earlier names


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


# -- what the allocator has done, in the form that pytorch.org/memory_viz reads ----------------------------------

_ACTIONS = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
            "segment_unmap", "oom", "snapshot")         # by TraceEntry::Action
_CONTEXTS = (None, "state", "alloc", "all")             # by HistoryRules::stacks


def _one_of(value, known, name):
    if value not in known:
        raise RuntimeError(f"_record_memory_history: {name} must be one of {', '.join(map(repr, known))}, got "
                           f"{value!r}")


def _record_memory_history(enabled="all", context="all", stacks="python", max_entries=sys.maxsize, device=None,
                           clear_history=False, compile_context=False, global_record_annotations=False,
                           skip_actions=None):
    """Records where the memory of devices is allocated and given back, for ``_snapshot`` and ``_dump_snapshot``.

    Parameters
    ----------
    enabled : {"all", "state", None}
        ``"state"`` keeps the stacks of what is allocated now, ``"all"`` an entry for each thing that the allocator does
        besides. None ends the recording, and forgets the entries. True and False, of older programs, mean ``"all"`` and
        None.
    context : {"all", "alloc", "state", None}
        Of what the stack of Python calls is kept: of all entries, of those for allocations, of what is allocated now,
        or of nothing.
    stacks : {"python"}
        PyTorch's ``"all"`` takes C++ functions too; here it means the same as ``"python"``.
    max_entries : int
        The latest that are kept for each device.
    device : device, str or int, optional
        Has no effect, as in PyTorch: all devices are recorded.
    clear_history : bool
        Whether earlier entries are forgotten.
    compile_context, global_record_annotations : bool
        Have no effect.
    skip_actions : list of str, optional
        Of what there is to be no entry, such as ``"free_requested"``.

    Raises
    ------
    RuntimeError
        If a word is none of these.

    Notes
    -----
    Scratch memory of kernels has no stack. Equal stacks are kept once, for the life of the process.
    """
    if isinstance(enabled, bool):
        enabled = "all" if enabled else None
    _one_of(enabled, (None, "state", "all"), "enabled")
    _one_of(context, _CONTEXTS, "context")
    _one_of(stacks, ("python", "all"), "stacks")
    skipped = 0
    for action in skip_actions or ():
        _one_of(action, _ACTIONS, "skip_actions")
        skipped |= 1 << _ACTIONS.index(action)
    _memory().record_history(enabled is not None, enabled == "all", _CONTEXTS.index(context), skipped,
                             max(max_entries, 1), clear_history)


def _snapshot(device=None, augment_with_fx_traces=False):
    """What the allocators hold and what they have done: a dictionary of ``"segments"``, ``"device_traces"`` (for each
    device a list of entries, the oldest first), ``"allocator_settings"`` and ``"external_annotations"``.

    Parameters
    ----------
    device : device, str or int, optional
        Has no effect, as in PyTorch: all devices are told.
    augment_with_fx_traces : bool
        Has no effect.
    """
    memory, frames, traces = _memory(), frames_of(), []
    for index in range(runtime().device_count()):
        traces.append([{"action": _ACTIONS[action], "device_free" if _ACTIONS[action] == "oom" else "addr": address,
                        "size": size, "stream": stream, "time_us": time, "compile_context": "N/A", "user_metadata": "",
                        "pool_id": (0, pool), "frames": frames(stack)}
                       for action, address, size, stream, pool, time, stack in memory.history(index)])
    segments = memory_snapshot()
    for index in range(runtime().device_count()):
        memory.note_snapshot(index)
    most, threshold, expandable, divisions = memory.settings()
    settings = {"PYTORCH_CUDA_ALLOC_CONF": os.environ.get("PTCORE_CUDA_ALLOC_CONF", ""), "max_split_size": most,
                "garbage_collection_threshold": threshold, "expandable_segments": expandable,
                "roundup_power2_divisions": {str(1 << i): n for i, n in enumerate(divisions)}}
    return {"segments": segments, "device_traces": traces, "allocator_settings": settings, "external_annotations": []}


def _dump_snapshot(filename="dump_snapshot.pickle", augment_with_fx_traces=False):
    """Writes ``_snapshot`` to a file that pytorch.org/memory_viz shows.

    Parameters
    ----------
    filename : str
    augment_with_fx_traces : bool
        Has no effect.
    """
    found = _snapshot()
    write_atomically(filename, lambda f: pickle.dump(found, f))


def _attach_out_of_memory_observer(observer):
    """Calls ``observer(device, size, total, free)`` before each OutOfMemoryError of a tensor.

    Parameters
    ----------
    observer : callable
        Given the device's number, what was asked of the driver, what it may give at most and what it has left, in
        bytes. What it raises is printed.
    """
    if not callable(observer):
        raise TypeError("_attach_out_of_memory_observer: observer must be callable, got "
                        f"{type(observer).__name__}")
    _memory().observers.append(observer)


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
    """``"native"``, ``"async"`` or ``"none"``: PTCORE_CUDA_ALLOC's word; ``"pluggable"`` after
    ``change_current_allocator``."""
    return _memory().backend()


def caching_allocator_enable(value=True):
    """Turns the cache off or on: without it the driver is asked for every allocation and gets it back at its end. Pools
    keep theirs. Nothing happens where no device was used.

    Parameters
    ----------
    value : bool
    """
    global _caching
    if started() is not None:
        _caching = bool(value)
        for device in range(runtime().device_count()):
            _memory().set_caching(device, _caching)


@contextlib.contextmanager
def caching_allocator_disabled():
    """``with caching_allocator_disabled():`` the cache is off; see ``caching_allocator_enable``."""
    before = _caching
    caching_allocator_enable(False)
    try:
        yield
    finally:
        caching_allocator_enable(before)


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
