"""Ranges and marks that NVIDIA's profilers show, by the package nvtx (the extra ``cuda13-tools``)."""
import threading
from contextlib import contextmanager

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

_state = threading.local()              # of each thread: how many ranges are open


def _nvtx():
    try:
        import nvtx
    except ImportError as e:
        raise RuntimeError(f"cuda.nvtx: the package nvtx is missing ({e}): pip install "
                           "'ptcore[cuda13-tools]'") from None
    return nvtx


def range_push(msg):
    """Opens a range within those that this thread has open; how many those are.

    Parameters
    ----------
    msg : str
        What the range is called.

    Raises
    ------
    RuntimeError
        If the package nvtx is not installed; so do the others.
    """
    _nvtx().push_range(msg)
    depth = getattr(_state, "depth", 0)
    _state.depth = depth + 1
    return depth


def range_pop():
    """Ends this thread's innermost range; how many are left, or -1 where none was open."""
    nvtx, depth = _nvtx(), getattr(_state, "depth", 0)
    if not depth:
        return -1
    nvtx.pop_range()
    _state.depth = depth - 1
    return depth - 1


def range_start(msg):
    """Opens a range that any thread may end; what ``range_end`` is given."""
    return _nvtx().start_range(msg)


def range_end(range_id):
    """Ends a range of ``range_start``."""
    _nvtx().end_range(range_id)


def mark(msg):
    """Marks a moment."""
    _nvtx().mark(msg)


@contextmanager
def range(msg, *args, **kwargs):
    """``with range("step {}", 3):`` the block is a range, called ``msg.format(*args, **kwargs)``."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
