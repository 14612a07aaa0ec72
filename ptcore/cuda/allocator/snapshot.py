"""What the allocator of device memory holds: segments with their blocks."""
from ptcore.cuda.allocator import stats
from ptcore.cuda.driver import loading


def frames_of():
    """Returns a function that turns a stack's number into a list of calls; equal calls share a dictionary."""
    memory, calls, known = loading.memory(), {}, {0: []}

    def call(code, place):
        if (code, place) not in calls:
            line = next((line for start, end, line in code.co_lines() if start <= place < end), None)
            calls[code, place] = {"filename": code.co_filename, "line": line or code.co_firstlineno,
                                  "name": code.co_name}
        return calls[code, place]

    def frames(stack):
        if stack not in known:
            known[stack] = [call(*one) for one in memory.stack(stack)]
        return known[stack]

    return frames


def memory_snapshot(mempool_id=None, include_traces=True):
    """All segments of all devices with their blocks, as dictionaries.

    Parameters
    ----------
    mempool_id : tuple, optional
        Of `MemPool`: the segments of this pool alone.
    include_traces : bool
        Has no effect: segments have no traces.
    """
    memory = loading.memory()
    found = []
    for device in range(loading.runtime().device_count()):
        found += stats.segments(memory.snapshot(device), device, frames_of())
    return [s for s in found if mempool_id in (None, s["segment_pool_id"])]
