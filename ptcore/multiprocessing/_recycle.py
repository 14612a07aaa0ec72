"""Segments that are used again, between a process that makes batches and the only one that receives them.

The kernel clears the pages of new shared memory, which costs several times what filling it does; a descriptor in a
message and a mapping cost as much again. So the receiver keeps its mappings and tells which of them no storage lies in
any more; the sender puts its next tensors there, and of those that the receiver knows the message says the key alone.

New tensors of the sender lie there as well, so that most of what it sends is not even copied. Such a tensor is as any
other one until it is sent or shared, or the sender forks: then its pages become the sender's own, so that a child has
a copy of them.

Invariant: nobody shows a segment that is used again. One that is lent holds one storage and is sent once before it is
given back; the receiver keeps no descriptor, so that it cannot go further (its storage does not count as shared, and is
moved or copied as any other if it is sent), and does not give it back if a forked child has it; the sender takes it
only if no storage of its own lies in it, and if it has no forked child that may have it. What the sender lends no more
it says, so that the receiver keeps none in vain.
"""
import os
import threading
import weakref

from ptcore._untyped_storage import Segment, lend_memory, take_segment
from ptcore.multiprocessing import _segments

__all__ = ["Borrowed", "Lent", "Spares", "lending"]

LENT, KNOWN = "lent", "known"


class Spares:
    """What the sender has: segments on their way, and those that came back.

    Parameters
    ----------
    most : int
        Segments on their way, and again in new tensors.

    Attributes
    ----------
    gone : list of str
        Keys of those that are lent no more, and which the receiver has not been told of.
    """

    def __init__(self, most):
        self.most = most
        self.sent, self.free, self.gone = {}, [], []
        self._sent_bytes = self._peak = 0
        self._lock = threading.RLock()

    def lend(self):
        """New tensors lie in what came back, so that sending them copies nothing."""
        lend_memory(self.free, _segments.SMALL + 1, self.most)

    def take(self, nbytes):
        """A segment of about this size, or None."""
        return take_segment(self.free, nbytes)

    def note_sent(self, segment, to_receiver):
        """The segment goes into a message; how: LENT with its descriptor, KNOWN without one, or None, for good."""
        key, sent = segment.key, self.sent
        with self._lock:
            if not segment.alone or key in sent or not to_receiver:
                if sent.pop(key, None) is not None:
                    self._sent_bytes -= segment.nbytes
                self._forget(segment)
                return None
            if len(sent) == self.most:
                oldest = sent.pop(next(iter(sent)))
                self._sent_bytes -= oldest.nbytes
                self._forget(oldest)
            sent[key] = segment
            self._sent_bytes += segment.nbytes
            if self._sent_bytes > self._peak:
                self._peak = self._sent_bytes
        return KNOWN if segment.used_again else LENT

    def _forget(self, segment):
        if segment.alone:
            segment.alone = False
            self.gone.append(segment.key)

    def give_back(self, keys):
        """The receiver shows these no more. As many are kept as once were on their way together, and a quarter more:
        what a sample is computed from lies there as well."""
        with self._lock:
            for key in keys:
                segment = self.sent.pop(key, None)
                if segment is None:
                    continue
                self._sent_bytes -= segment.nbytes
                if not segment.is_idle():
                    self._forget(segment)
                    continue
                segment.new_fd, segment.used_again = -1, True
                self.free.append(segment)
            kept = 0
            for segment in reversed(self.free[:]):
                kept += segment.nbytes
                if kept > self._peak + self._peak // 4:
                    try:
                        self.free.remove(segment)
                    except ValueError:          # a new tensor of another thread lies in it
                        continue
                    self._forget(segment)

    def clear(self):
        """None of them is used again, nor what batches lie in that are being made; new tensors become as others."""
        with self._lock:
            segments = [s for s in list(_segments.known.values()) if isinstance(s, _segments.Anonymous)]
            for segment in segments:
                self._forget(segment)
            self.free.clear()
            self.sent.clear()
            self._sent_bytes = 0
            for segment in segments:
                segment.make_private()


class Borrowed:
    """What the receiver has of one sender.

    Attributes
    ----------
    segments : dict
        Key to :class:`Lent`.
    dropped : list of str
        Keys of those that no storage lies in any more, and which the sender has not been told of.
    """

    def __init__(self):
        self.segments, self.dropped = {}, []
        _everything.add(self)

    def take_dropped(self):
        """What the sender is to be told. Whatever has a storage again is noted once more when that one goes."""
        keys = self.dropped[:]
        del self.dropped[:len(keys)]            # the collector may have added to it
        return [key for key in keys if key in self.segments and self.segments[key].is_idle()]

    def keep_no_more(self, keys):
        """The sender lends these no more."""
        for key in keys:
            segment = self.segments.pop(key, None)
            if segment is not None:
                segment.dropped = None


_everything = weakref.WeakSet()


class _Receiving(threading.local):
    of = None


_receiving = _Receiving()


class lending:
    """What is lent to the receiver of a message inside."""

    def __init__(self, borrowed):
        self.borrowed = borrowed

    def __enter__(self):
        _receiving.of = self.borrowed

    def __exit__(self, *exception):
        _receiving.of = None


class Lent(Segment):
    """A segment that the receiver has for a while."""

    def __init__(self, fd, nbytes, key):
        self.key, self.shared = key, False
        if _receiving.of is not None:
            self.dropped = _receiving.of.dropped
            _receiving.of.segments[key] = self


def rebuild_known(key):
    """The segment that the receiver has mapped."""
    return _receiving.of.segments[key]


def _before_fork():
    """A child shows what there is."""
    for borrowed in list(_everything):
        borrowed.keep_no_more([key for key, segment in list(borrowed.segments.items()) if not segment.is_idle()])
    if _segments.spares is not None:
        _segments.spares.clear()


def _in_child():
    """What is mapped in vain would keep its memory for as long as the child lives."""
    _segments.spares = None
    lend_memory(None)
    for borrowed in list(_everything):
        borrowed.segments.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)
