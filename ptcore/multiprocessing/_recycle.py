"""Segments that are used again, between a process that makes batches and the only one that receives them.

The kernel clears the pages of new shared memory, which costs several times what filling it does. So the receiver tells
which segments it has dropped, and the sender puts its next tensors there.

Invariant: nobody shows a segment that is used again. One that is lent is sent once and holds one storage; the receiver
keeps no descriptor, so that it cannot go further (its storage does not count as shared, and is moved or copied as any
other if it is sent), and does not give it back if a forked child has it; the sender takes it only if no storage of its
own lies in it, and if it has no forked child that may have it.
"""
import os
import threading
import weakref

from ptcore._untyped_storage import Segment
from ptcore.multiprocessing import _segments

__all__ = ["Lent", "Spares", "lending"]


class Spares:
    """What the sender has: segments on their way, and those that came back.

    Parameters
    ----------
    most : int
        Segments of either kind.
    """

    def __init__(self, most):
        self.most = most
        self.sent, self.free = {}, []
        self._lock = threading.RLock()

    def take(self, nbytes):
        """A segment of about this size, or None."""
        with self._lock:
            for i in reversed(range(len(self.free))):       # the last one may be in a cache still
                if nbytes <= self.free[i].nbytes <= nbytes + nbytes // 4:
                    return self.free.pop(i)
        return None

    def note_sent(self, segment, to_receiver):
        """The segment goes into a message; returns whether it is lent."""
        with self._lock:
            before = self.sent.pop(segment.key, None)
            if not segment.alone or before is not None or not to_receiver:
                segment.alone = False
                return False
            if len(self.sent) == self.most:
                self.sent.pop(next(iter(self.sent))).alone = False
            self.sent[segment.key] = segment
            return True

    def give_back(self, keys):
        """The receiver has dropped these."""
        with self._lock:
            for key in keys:
                segment = self.sent.pop(key, None)
                if segment is not None and segment.is_idle() and len(self.free) < self.most:
                    segment.new_fd, segment.used_again = -1, True
                    self.free.append(segment)

    def clear(self):
        """None of them is used again."""
        for segment in (*self.free, *self.sent.values()):
            segment.alone = False
        self.free.clear()
        self.sent.clear()


class _Receiving(threading.local):
    dropped = None


_receiving = _Receiving()
_lent = weakref.WeakSet()


class lending:
    """What is lent to the receiver of a message inside: keys go to the list when their segments are dropped."""

    def __init__(self, dropped):
        self.dropped = dropped

    def __enter__(self):
        _receiving.dropped = self.dropped

    def __exit__(self, *exception):
        _receiving.dropped = None


class Lent(Segment):
    """A segment that the receiver has for a while."""

    dropped = None

    def __init__(self, fd, nbytes, key):
        self.key, self.dropped, self.shared = key, _receiving.dropped, False
        _lent.add(self)

    def __del__(self):
        if self.dropped is not None:
            self.dropped.append(self.key)


def _before_fork():
    """A child shows what there is."""
    for segment in list(_lent):
        segment.dropped = None
    if _segments.spares is not None:
        _segments.spares.clear()


def _in_child():
    _segments.spares = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)
