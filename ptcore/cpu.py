"""The CPU as a device: its memory, and the names that programs for several devices ask for.

Tensors on the CPU live in blocks of an allocator that keeps freed blocks for the next tensor.
A block is the tensor's bytes and a header of 64 bytes, rounded up to one of four sizes for each
power of two; these rounded sizes are what the functions below count.
"""
from ptcore._memory import allocate as _allocate

__all__ = ["current_device", "device_count", "empty_cache", "is_available",
           "max_memory_allocated", "memory_allocated", "memory_stats", "reset_peak_memory_stats",
           "set_memory_cap", "synchronize"]


def is_available():
    """Whether there is a CPU: always True."""
    return True


def device_count():
    """The number of CPU devices: always 1."""
    return 1


def current_device():
    """The name of the current CPU device: always ``"cpu"``."""
    return "cpu"


def synchronize(device=None):
    """Waits for the work on the CPU, which is done when an operation returns."""


def memory_stats():
    """The counters of the allocator.

    Returns
    -------
    dict
        ``allocated``: bytes in use by storages; ``peak_allocated``: the most since the start or
        `reset_peak_memory_stats`; ``cached``: bytes kept for reuse; ``live_blocks``: storages
        that exist; ``hits`` and ``misses``: allocations served from the cache and by the
        system; ``cap``: the most bytes that the cache keeps.

    Examples
    --------
    >>> import ptcore
    >>> before = ptcore.cpu.memory_stats()["live_blocks"]
    >>> x = ptcore.zeros(1000)
    >>> ptcore.cpu.memory_stats()["live_blocks"] - before
    1
    """
    return _allocate.stats()


def memory_allocated():
    """Bytes in use by storages, in whole blocks."""
    return _allocate.stats()["allocated"]


def max_memory_allocated():
    """The largest `memory_allocated` since the start or `reset_peak_memory_stats`."""
    return _allocate.stats()["peak_allocated"]


def reset_peak_memory_stats():
    """Lets `max_memory_allocated` start again from what is in use now."""
    _allocate.reset_peak()


def empty_cache():
    """Gives the memory of all cached blocks back to the system."""
    _allocate.empty_cache()


def set_memory_cap(nbytes):
    """Sets the most bytes of freed memory that the allocator keeps.

    By default that is 1 GiB or a tenth of the memory that the machine or its cgroup allows,
    whichever is less. What is in use is never limited.

    Parameters
    ----------
    nbytes : int
        Non-negative; 0 keeps nothing. A cache that is larger is emptied at once.

    Raises
    ------
    ValueError
        If ``nbytes`` is negative.
    """
    import operator
    nbytes = operator.index(nbytes)
    if nbytes < 0:
        raise ValueError(f"set_memory_cap: nbytes must be non-negative, got {nbytes}")
    _allocate.set_cap(min(nbytes, 1 << 62))
