"""The caching CPU allocator (_memory.cpp) as Python sees it; ``ptcore.cpu`` makes it public."""
from ptcore._types cimport *


def stats():
    """The allocator's counters, as a dict."""
    cdef pt_memory_stats s
    pt_memory_get_stats(&s)
    return {"allocated": s.allocated, "peak_allocated": s.peak_allocated, "cached": s.cached,
            "live_blocks": s.live_blocks, "hits": s.hits, "misses": s.misses, "cap": s.cap}


def reset_peak():
    pt_memory_reset_peak()


def empty_cache():
    pt_memory_empty_cache()


def set_cap(int64_t nbytes):
    pt_memory_set_cap(nbytes)
