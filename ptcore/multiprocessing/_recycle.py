"""Segments that are used again, between a process that makes batches and the only one that receives them.

The kernel clears the pages of new shared memory, which costs several times what filling it does; a descriptor in a
message and a mapping cost as much again. So the receiver keeps its mappings and tells, in memory that both show, which
of them no storage lies in any more; the sender puts its next tensors there, while a cache holds them still, and of what
the receiver knows the message says the number alone.

New tensors of the sender lie there as well, so that most of what it sends is not even copied. Such a tensor is as any
other one until it is sent or shared, or the sender forks: then its pages become the sender's own, so that a child has
a copy of them.

What the sender holds itself (tensors of its dataset) is shown for good: the receiver maps it for as long as it lives
there, so that it is not mapped anew for each sample, nor described by more than a number.

Invariant: nobody shows a segment that is used again. One that is lent holds one storage and is sent once before it is
given back; the receiver keeps no descriptor, so that it cannot go further (its storage does not count as shared, and is
moved or copied as any other if it is sent), and does not give it back if a forked child has it; the sender takes it
only if no storage of its own lies in it, and if it has no forked child that may have it. What the sender lends no more
it says, so that the receiver keeps none in vain.
"""
import contextlib
import os
import pickle
import weakref
from multiprocessing.reduction import ForkingPickler

from ptcore._array_memory import sole_arrays
from ptcore._lending import Arrival, Packet, Spares
from ptcore._untyped_storage import Segment, lend_memory
from ptcore.multiprocessing import _segments

if _segments.STRATEGIES[0] == "file_descriptor":
    from ptcore.multiprocessing._connection import packing, transit, unpacking
else:
    packing = unpacking = contextlib.nullcontext

_PACKETS = Packet.__module__
_LONG = 32 << 10        # bytes of a pickle that is read later, if it needs no segments
_KEPT = 16 << 20        # bytes of a file that is kept for the next letter

__all__ = ["Borrowed", "Later", "Letter", "Spares", "Unreadable", "receive"]


class Letter:
    """A message for the receiver, who gives the segments of its tensors back.

    Parameters
    ----------
    spares : Spares
    file : io.BytesIO
        Where it is written. One is enough for letters that follow each other: pages that are there cost nothing.
    """

    def __init__(self, spares, file):
        large = file.tell() > _KEPT
        file.seek(0)
        if large:
            file.truncate()
        self._segments, self._file, self._entries = [], file, []
        self._packet = Packet(spares, _segments.SMALL, self._segments)
        self._packet.elsewhere = _segments.strategy == "file_descriptor"
        self._pickler = None

    def add(self, made):
        """Packs what a list of one object holds, as it is now; what the list alone holds may be given away. Raises what
        pickling does, and then nothing of it is sent."""
        self._packet.alone = sole_arrays(made)
        (obj,) = made
        form = self._packet.form(obj)
        self._entries.append(self._pickle(obj) if form is None else form)

    def _pickle(self, obj):
        """``(where its pickle ends, whether it may be read later, the number of its first buffer)``"""
        if self._pickler is None:
            self._pickler = _Pickler(self._file, 5, True, self._packet.buffer)
            self._pickler.reduce = self._packet.reduce
        place, mark, places = self._file.tell(), self._packet.mark(), self._packet.places + len(self._segments)
        try:
            with packing(self._segments):
                self._pickler.dump(obj)
        except BaseException:
            self._file.seek(place)
            self._packet.undo(mark)
            raise
        finally:
            self._pickler.clear_memo()      # the same array may have other elements in the next object
        end = self._file.tell()
        later = end - place >= _LONG and places == self._packet.places + len(self._segments)
        return end, later, mark[0]

    def send(self, connection, head):
        """Sends all that was added, and ``head``, a tuple of what any pickler takes."""
        place = self._file.tell()
        self._file.write(pickle.dumps((head, self._entries), 5))
        with packing(self._segments):
            try:
                connection.send_bytes(self._packet.finish(self._file.getbuffer()[:self._file.tell()], place))
            except BaseException:
                self._packet.undo()
                raise


class _Pickler(ForkingPickler):
    """One that asks a packet first."""

    def reducer_override(self, obj):
        reduced = self.reduce(obj)
        return super().reducer_override(obj) if reduced is NotImplemented else reduced


class _Unpickler(pickle.Unpickler):
    """One that asks a packet for its items."""

    def __init__(self, arrival):
        super().__init__(arrival, buffers=arrival)
        self.item = arrival.item

    def find_class(self, module, name):
        return self.item if name == "item" and module == _PACKETS else super().find_class(module, name)


def receive(connection, borrowed):
    """``(*head, objects)`` of the next letter of the sender whose segments these are. In the place of a large object
    without tensors, and of what raises, stands a :class:`Later`."""
    with unpacking():
        arrival = borrowed.open(connection.recv_bytes())
        lent = 0
        if arrival.elsewhere:
            whole = arrival.item(0)
            lent = len(whole)
            arrival = borrowed.open(whole)
        head, entries = pickle.loads(arrival.head)
        objects, begin = [], 0
        for entry in entries:
            try:
                if type(entry) is not tuple or len(entry) < 3:
                    objects.append(arrival.made(entry))
                    continue
                arrival.at = place = begin
                begin, later, arrival.buffer = entry
                objects.append(Later(arrival, place) if later else _Unpickler(arrival).load())
            except Exception as error:      # whose traceback is not to hold the other objects
                objects.append(Unreadable(error.with_traceback(error.__traceback__.tb_next)))
        borrowed.brought = arrival.lent + lent
        return *head, objects


class Later:
    """In the place of an object that is read when it is its turn, into memory that the one before had."""

    def __init__(self, arrival, place):
        self._arrival, self._place = arrival, place

    def load(self):
        self._arrival.at = self._place
        return _Unpickler(self._arrival).load()


class Unreadable(Later):
    """What raised an error when it was read, to be raised when it is its turn. It is not read twice: segments that it
    showed may have been given back since."""

    def __init__(self, error):
        self._error = error

    def load(self):
        error, self._error = self._error, None
        try:
            raise error
        finally:
            del error                   # its traceback holds this frame


class Borrowed:
    """What the receiver has of one sender.

    Attributes
    ----------
    segments : dict
        Number to :class:`Lent`, or to an own segment that the sender shows.
    dropped : list of int
        Numbers of those that no storage lies in any more, and which the sender has not been told of.
    brought : int
        Bytes of lent memory that came with the last message.
    """

    def __init__(self):
        self.segments, self.dropped, self.brought = {}, [], 0
        _everything.add(self)

    def open(self, data):
        """The message in these bytes; the segments are those that it speaks of from then on."""
        arrival = Arrival(data, self.segments)
        self.keep_no_more(arrival.gone)
        for number, nbytes, which, key in arrival.new:
            segment = _segments.known.get(key)          # it may be of this process
            if segment is None:
                segment = Lent(transit.arrived[which], nbytes, number, None if key else self.dropped)
            self.segments[number] = segment
        return arrival

    def keep_no_more(self, numbers):
        """The sender lends or shows these no more."""
        for number in numbers:
            segment = self.segments.pop(number, None)
            if segment is not None:
                segment.dropped = None


_everything = weakref.WeakSet()


class Lent(Segment):
    """A segment of the sender. That no storage lies in it any more is noted where it is lent, not where it is shown."""

    def __init__(self, fd, nbytes, number, dropped):
        self.key, self.shared, self.dropped = number, False, dropped


def _before_fork():
    """A child shows what there is."""
    for borrowed in list(_everything):
        borrowed.keep_no_more([n for n, segment in list(borrowed.segments.items())
                               if segment.dropped is not None and not segment.is_idle()])
    if _segments.spares is not None:
        _segments.spares.clear([s for s in list(_segments.known.values()) if isinstance(s, _segments.Anonymous)])


def _in_child():
    """What is mapped in vain would keep its memory for as long as the child lives."""
    _segments.spares = None
    lend_memory(None)
    for borrowed in list(_everything):
        borrowed.segments.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)
