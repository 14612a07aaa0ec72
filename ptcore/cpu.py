"""The CPU as a device: its memory, and the names that programs for several devices ask for.

Tensors on the CPU live in blocks of an allocator that keeps freed blocks for the next tensor.
A block is the tensor's bytes and a header of 64 bytes, rounded up to one of four sizes for each
power of two; these rounded sizes are what the functions below count.
"""
from ptcore._memory import allocate as _allocate

__all__ = ["Event", "Stream", "StreamContext", "current_device", "current_stream", "device_count", "empty_cache",
           "is_available", "is_initialized", "max_memory_allocated", "memory_allocated", "memory_stats",
           "reset_peak_memory_stats", "set_device", "set_memory_cap", "stream", "synchronize"]


def is_available():
    """Whether there is a CPU: always True."""
    return True


def device_count():
    """The number of CPU devices: always 1."""
    return 1


def current_device():
    """The name of the current CPU device: always ``"cpu"``."""
    return "cpu"


def set_device(device):
    """Makes a CPU device current: there is one."""


def is_initialized():
    """Whether the CPU can be used: always True."""
    return True


def synchronize(device=None):
    """Waits for the work on the CPU, which is done when an operation returns."""


class Stream:
    """A stream of the CPU, whose work is done when an operation returns: there is nothing to wait for."""

    def __init__(self, priority=-1):
        pass

    def wait_stream(self, stream):
        """Waits for nothing."""

    def record_event(self):
        """Records nothing."""

    def wait_event(self, event):
        """Waits for nothing."""


class Event:
    """A point of a stream of the CPU, which has always been reached."""

    def query(self):
        """Always True."""
        return True

    def record(self, stream=None):
        """Records nothing."""

    def synchronize(self):
        """Waits for nothing."""

    def wait(self, stream=None):
        """Waits for nothing."""


_current = Stream()


def current_stream(device=None):
    """The stream that was made current last, one for all threads."""
    return _current


class StreamContext:
    """Makes a stream current for a block; None changes nothing."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        global _current
        self._before = _current
        if self.stream is not None:
            _current = self.stream

    def __exit__(self, kind, value, trace):
        global _current
        _current = self._before


def stream(stream):
    """A `StreamContext`.

    >>> import ptcore
    >>> s = ptcore.cpu.Stream()
    >>> with ptcore.cpu.stream(s):
    ...     ptcore.cpu.current_stream() is s
    True
    """
    return StreamContext(stream)


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
