"""The CPU as a device: its memory, and the names that programs for several devices ask for.

Tensors on the CPU live in blocks of an allocator that keeps freed blocks for the next tensor.
A block is the tensor's bytes and a header of 64 bytes, rounded up to one of four sizes for each
power of two; these rounded sizes are what the functions below count.
"""
from ptcore import _lazy
from ptcore._contexts import Changed as _Changed
from ptcore._memory import allocate as _allocate

__all__ = ["Event", "Stream", "StreamContext", "current_device", "current_stream", "device_count", "empty_cache",
           "get_capabilities", "is_available", "is_initialized", "max_memory_allocated", "memory_allocated",
           "memory_stats", "reset_peak_memory_stats", "set_device", "set_memory_cap", "stream", "synchronize"]

__getattr__, __dir__ = _lazy.names(__name__)


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


# Names of PyTorch's -> those of Linux, where they are others.
_FLAGS = {
    "x86_64": {
        **{n: n for n in ("sse", "sse2", "ssse3", "sse4_1", "sse4_2", "sse4a", "avx", "avx2", "avx_vnni", "avx512_bf16",
                          "avx512_fp16", "avx512_vbmi2", "avx512_bitalg", "avx512_vpopcntdq", "avx512_vnni",
                          "avx512_vp2intersect", "avx512_4vnniw", "avx512_4fmaps", "amx_bf16", "amx_tile", "amx_int8",
                          "amx_fp16", "fma4", "f16c", "bmi2", "popcnt", "aes", "clflush", "clflushopt", "clwb",
                          "avx10_1", "avx10_2", "avx_vnni_int8", "avx_vnni_int16", "avx_ne_convert")},
        **{f"avx512_{n}": f"avx512{n}" for n in ("f", "cd", "dq", "bw", "vl", "ifma", "vbmi")},
        "sse3": "pni", "fma3": "fma", "bmi": "bmi1", "lzcnt": "abm", "sha": "sha_ni"},
    "aarch64": {
        **{n: n for n in ("bf16", "i8mm", "sve", "sve2", "sme", "sme2", "atomics", "crc32", "aes", "sha1", "sha2",
                          "pmull")},
        "neon": "asimd", "fp16_arith": "asimdhp", "dot": "asimddp", "sve_bf16": "svebf16", "fhm": "asimdfhm",
        "rdm": "asimdrdm"},
}
_found = None


def get_capabilities():
    """What the processor can do: names of sets of instructions with True or False, and numbers.

    ``backends.cpu.get_cpu_capability`` says which of them kernels use. Off Linux there is ``architecture`` and
    ``num_logical_cores`` alone.

    Returns
    -------
    mapping
        Which cannot be changed.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.cpu.get_capabilities()["num_logical_cores"] > 0
    True
    """
    global _found
    if _found is None:
        import os
        import platform
        from types import MappingProxyType
        architecture = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
        found = {"architecture": architecture, "num_logical_cores": os.cpu_count()}
        try:
            found.update(_read(_text("/proc/cpuinfo"), architecture))
            for cache in range(4):
                level, kind, size = [_text(f"/sys/devices/system/cpu/cpu0/cache/index{cache}/{part}").strip()
                                     for part in ("level", "type", "size")]
                name = {("1", "Data"): "l1d_cache_size", ("2", "Unified"): "l2_cache_size"}.get((level, kind))
                if name is not None and size.endswith("K"):
                    found[name] = int(size[:-1]) << 10
        except OSError:
            pass            # another system, or one that does not say
        _found = MappingProxyType(found)
    return _found


def _text(path):
    with open(path) as f:
        return f.read()


def _read(text, architecture):
    """What Linux says of its processors."""
    found, sockets, cores = {}, set(), set()
    for processor in text.split("\n\n"):
        lines = dict([part.strip() for part in line.split(":", 1)] for line in processor.splitlines() if ":" in line)
        flags = lines.get("flags", lines.get("Features", "")).split()
        if flags:
            table = _FLAGS.get(architecture, {})
            found = {name: flag in flags for name, flag in table.items()}
        if "model name" in lines:
            found["cpu_name"] = lines["model name"]
        if "processor" in lines:
            sockets.add(lines.get("physical id", "0"))
            cores.add((lines.get("physical id", "0"), lines.get("core id", lines["processor"])))
    return {**found, "num_sockets": len(sockets), "num_physical_cores": len(cores)}


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


_current = {"stream": Stream()}


def current_stream(device=None):
    """The stream that was made current last, one for all threads."""
    return _current["stream"]


class StreamContext(_Changed):
    """Makes a stream current for a block; None changes nothing."""

    def __init__(self, stream):
        super().__init__((_current, {} if stream is None else {"stream": stream}))
        self.stream = stream


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
