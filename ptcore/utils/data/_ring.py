"""Batches on their way from a worker to its loader.

A batch is a pickle. New shared memory costs several times what filling it does, so a worker has a ring of segments that
are used again: ``default_collate`` puts large batches together there, other large tensors are copied there, and the
pickle has the segment's number. Small tensors go as their elements; what is shared already stays so.

Invariant: what somebody shows is never written to. A segment holds one storage. The storage's deleter tells the loader
when nothing shows it any more (a view does), and its next message answers for all batches that named the segment. The
worker uses it again when each was answered for and it shows nothing there itself. A forked child shows what its parent
does, who gives that up for good. Neither end keeps a descriptor.

Both ends have ``segments``, by number; ``segment.away`` counts the batches that named it and were not answered for, and
``ended`` has the numbers of those in which the process's last storage was freed.
"""
import io
import os
import pickle
import threading
import weakref
from multiprocessing.reduction import ForkingPickler

import ptcore
from ptcore import Tensor
from ptcore._copying import rebuild
from ptcore.multiprocessing import _shared_memory
from ptcore.multiprocessing._connection import packing, transit, unpacking
from ptcore.utils.data._utils import collate

_SMALL = 16 << 10       # bytes of a tensor that cost less as its elements than as a place in shared memory
_IDLE = 16              # messages after which a segment is given up that none of them needed
_ends = weakref.WeakSet()


class Ring:
    """The worker's end, for the thread that makes it."""

    def __init__(self):
        self.segments, self.ended = {}, []      # without those that are free
        self._free = {}                         # bytes -> [(how many messages had come when it came back, segment)]
        self._made = self._messages = 0
        self._thread = threading.get_ident()
        self._new, self._gone, self._outgoing = [], [], []      # for the next message
        _ends.add(self)

    def room_for(self, tensors):
        """Where these are to be stacked; None where that does not matter, or is not known."""
        first = tensors[0]
        nbytes = len(tensors) * first.numel() * first.element_size()
        if (nbytes <= _SMALL or {type(t) for t in tensors} != {Tensor} or len({t.dtype for t in tensors}) > 1
                or any(t.requires_grad for t in tensors) or first.device.type != "cpu"
                or threading.get_ident() != self._thread):
            return None
        return self._empty(first.dtype, (len(tensors), *first.shape), None, nbytes)

    def _empty(self, dtype, shape, strides, nbytes):
        step = max(4096, 1 << (nbytes.bit_length() - 3))        # four sizes a power of two: others find room there
        size = -(-nbytes // step) * step
        while self.ended:
            self._come_back(self.ended.pop(), 0)
        if self._free.get(size):
            segment = self._free[size].pop()[1]
        else:
            self._made, segment = self._made + 1, _shared_memory.new_segment(size)
            _begin(self, self._made, segment)
            self._new.append(segment)
        storage = segment.storage(segment.first, nbytes)
        self.segments[segment.number] = segment
        return ptcore.empty(0, dtype=dtype).set_(storage, 0, shape, strides)

    def _come_back(self, number, answered):
        segment = self.segments.get(number)
        if segment is not None:
            segment.away -= answered
            if segment.away == 0 and segment.is_idle():
                del self.segments[number]
                self._free.setdefault(segment.nbytes - segment.first, []).append((self._messages, segment))

    def give_up(self, number):
        if self.segments.pop(number, None) is not None:
            self._gone.append(number)

    def take_back(self, answered):
        """What ``Reader.answered`` told."""
        self._messages += 1
        for number, count in answered.items():
            self._come_back(number, count) if count else self.give_up(number)
        for found in self._free.values():
            while found and found[0][0] + _IDLE < self._messages:
                self._gone.append(found.pop(0)[1].number)

    def reduce(self, tensor, named):
        """What a pickle has in a tensor's place; NotImplemented where that is what any message has."""
        nbytes = tensor.numel() * tensor.element_size()
        if (nbytes == 0 or tensor.requires_grad or tensor.device.type != "cpu" or tensor.grad is not None
                or getattr(tensor, "__dict__", None) or tensor.is_shared()):
            return NotImplemented
        if nbytes <= _SMALL:
            return Tensor.__reduce_ex__(tensor if tensor.is_contiguous() else tensor.clone(), 2)
        place = tensor.untyped_storage()._place
        if place is None or self.segments.get(place[0].number) is not place[0]:
            strides = ptcore.empty_like(tensor, device="meta").stride()
            tensor = self._empty(tensor.dtype, tensor.shape, strides, nbytes).copy_(tensor)
            place = tensor.untyped_storage()._place
        named[place[0].number] = tensor.untyped_storage()       # which holds it until the batch is packed
        return _rebuild, (place[0].number, tensor.dtype.name, tuple(tensor.shape), tuple(tensor.stride()),
                          tensor.storage_offset())

    def pack(self, batch):
        """(pickle of a batch as it is now, {number of a segment that it names: bytes})"""
        file, named = io.BytesIO(), {}
        pickler = _Pickler(file, 5)
        pickler.reduce = lambda tensor: self.reduce(tensor, named)
        with packing(self._outgoing):
            pickler.dump(batch)
        for storage in named.values():
            storage._place[0].away += 1
        return file.getvalue(), {number: storage.nbytes() for number, storage in named.items()}

    def send(self, connection, head, batches):
        """Sends batches, packed or not, and ``head``, a tuple."""
        new, gone, outgoing = self._new, self._gone, self._outgoing
        self._new, self._gone, self._outgoing = [], [], []
        with packing(outgoing):
            connection.send_bytes(bytes(ForkingPickler.dumps((head, [(s.number, s) for s in new], gone, batches), 5)))
        for segment in new:
            segment.close()


class _Pickler(ForkingPickler):
    def reducer_override(self, obj):
        return self.reduce(obj) if type(obj) is Tensor else super().reducer_override(obj)


class Reader:
    """The loader's end for one worker."""

    def __init__(self):
        self.segments, self.ended, self._given_up = {}, [], []
        self.give_up = self._given_up.append
        _ends.add(self)

    def receive(self, connection):
        """``(*head, batches)`` of the next message; in the place of what was packed stands a :class:`Packed`."""
        with unpacking():
            head, new, gone, batches = pickle.loads(connection.recv_bytes())
            arrived = transit.arrived
        for number, segment in new:
            segment.close()
            self.segments[number] = _begin(self, number, segment)
        batches = [Packed(self.segments, *b, arrived) if type(b) is tuple else b for b in batches]
        for number in gone:
            del self.segments[number]
        return *head, batches

    def answered(self):
        """``{number: how many batches named a segment that nothing shows any more}``; 0 of one that is given up."""
        found = {}
        while self.ended:
            segment = self.segments.get(self.ended.pop())
            if segment is not None and segment.away and segment.is_idle():
                found[segment.number], segment.away = segment.away, 0
        while self._given_up:
            found[self._given_up.pop()] = 0
        return found


class Packed:
    """A batch that has come, to be read once when it is its turn; ``nbytes`` of it lie in segments."""

    def __init__(self, segments, data, named, arrived):
        self._data, self._storages, self._arrived, self.nbytes = data, {}, arrived, sum(named.values())
        for number, nbytes in named.items():
            segments[number].away += 1
            self._storages[number] = segments[number].storage(segments[number].first, nbytes)

    def load(self):
        with unpacking(self._arrived, self._storages):
            return pickle.loads(self._data)


def _rebuild(number, dtype, shape, strides, first):
    return rebuild(Tensor, dtype, shape, strides, first, transit.storages[number], False, None)


def _begin(end, number, segment):
    segment.shared, segment.number, segment.ended, segment.away = False, number, end.ended, 0
    return segment


def _before_fork():
    for end in list(_ends):
        for number, segment in list(end.segments.items()):
            if not segment.is_idle():
                end.give_up(number)


def _in_child():
    """What is mapped in vain would keep its memory for as long as the child lives."""
    collate.room = None
    for end in list(_ends):
        end.segments.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)
