"""The transport of batches from a worker to its loader.

A batch is sent as a pickle. A worker has a ring of segments of shared memory, since making a segment takes several
times as long as filling it. ``default_collate`` stacks large batches in a segment, and other large tensors are copied
to one; the pickle then has the segment's number. Small tensors are sent as their elements. Tensors that are shared
already stay so.

Invariant: memory that a tensor shows is never overwritten. A segment holds one storage, whose deleter reports its end;
a view keeps the storage alive. The loader's next message acknowledges all batches that named the segment. The worker
uses the segment again when every batch is acknowledged (``away`` counts the others) and no tensor of its own shows it.
A forked child shows the same memory as its parent, so the parent gives up its used segments for good at a fork. Neither
end keeps a descriptor.
"""
import io
import itertools
import os
import pickle
import threading
import weakref
from multiprocessing.reduction import ForkingPickler

import ptcore
from ptcore import Tensor
from ptcore._exchange import copying
from ptcore._exchange.copying import rebuild
from ptcore._memory import segments as _shared_memory
from ptcore.multiprocessing.channels import packing, transit, unpacking
from ptcore.utils.data._utils import collate

_SMALL = 16 << 10       # bytes of a tensor that is cheaper to send as elements
_IDLE = 16              # number of messages after which an unused segment is given up
_ends = weakref.WeakSet()


class Ring:
    """The worker's end, for the thread that makes it."""

    def __init__(self):
        self.segments, self.ended = {}, []      # number -> segment in use; numbers whose storage has ended
        self._free = {}                         # bytes -> [(number of messages at its return, segment)]
        self._numbers, self._messages, self._thread = itertools.count(1), 0, threading.get_ident()
        self._new, self._gone, self._outgoing = {}, [], []      # parts of the next message
        _ends.add(self)

    def output_for(self, tensors):
        """An empty tensor in a segment for the stack of tensors; None if they are small or cannot be stacked there."""
        first = tensors[0]
        nbytes = len(tensors) * first.numel() * first.element_size()
        if (nbytes <= _SMALL or threading.get_ident() != self._thread or first.device.type != "cpu"
                or {(type(t), t.dtype, t.requires_grad) for t in tensors} != {(Tensor, first.dtype, False)}):
            return None
        empty = ptcore.empty(0, dtype=first.dtype, device="cpu")
        return empty.set_(self._storage(nbytes), 0, (len(tensors), *first.shape))

    def _storage(self, nbytes):
        """A storage in a segment that no tensor shows."""
        # four sizes for each power of two, so that segments can be used for other sizes
        step = max(4096, 1 << (nbytes.bit_length() - 3))
        size = -(-nbytes // step) * step
        while self.ended:
            self._release(self.ended.pop(), 0)
        if self._free.get(size):
            segment = self._free[size].pop()[1]
        else:
            segment = _shared_memory.new_segment(size)
            segment.use_again(next(self._numbers), self.ended)
            self._new[segment.number] = segment
        self.segments[segment.number] = segment
        return segment.storage(segment.first, nbytes)

    def _release(self, number, answered):
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
        """Handles the answer of ``Reader.answered``: releases segments, or gives them up."""
        self._messages += 1
        for number, count in answered.items():
            self._release(number, count) if count else self.give_up(number)
        for found in self._free.values():
            while found and found[0][0] + _IDLE < self._messages:
                self._gone.append(found.pop(0)[1].number)

    def reduce(self, tensor, copies):
        """The form of a tensor in a pickle; NotImplemented for the usual one. ``copies`` maps the batch's storages to
        their copies, so that tensors of one storage still share it."""
        nbytes = tensor.numel() * tensor.element_size()
        if (nbytes == 0 or tensor.requires_grad or tensor.device.type != "cpu" or tensor.grad is not None
                or getattr(tensor, "__dict__", None) or tensor.is_shared()):
            return NotImplemented
        if nbytes <= _SMALL:
            return copying.__reduce_ex__(tensor if tensor.is_contiguous() else tensor.clone(), 2)
        storage = tensor.untyped_storage()
        place = storage._place
        if place is not None and self.segments.get(place[0].number) is place[0]:
            copies[storage] = storage
        elif storage not in copies:
            if storage.nbytes() > 2 * nbytes:                   # the tensor is a small part of its storage
                tensor = tensor.clone()
                storage = tensor.untyped_storage()
            copies[storage] = self._storage(storage.nbytes())
            whole, copy = (ptcore.empty(0, dtype=ptcore.uint8, device="cpu").set_(s)
                           for s in (storage, copies[storage]))
            copy.copy_(whole)
        return _rebuild, (copies[storage]._place[0].number, tensor.dtype.name, tuple(tensor.shape),
                          tuple(tensor.stride()), tensor.storage_offset())

    def pack(self, batch):
        """(pickle of a batch, {number of a segment that it names: bytes})"""
        file, copies = io.BytesIO(), {}
        pickler = _Pickler(file, 5)
        pickler.reduce = lambda tensor: self.reduce(tensor, copies)
        with packing(self._outgoing):
            pickler.dump(batch)
        for copy in copies.values():
            copy._place[0].away += 1
        return file.getvalue(), {copy._place[0].number: copy.nbytes() for copy in copies.values()}

    def send(self, connection, head, batches):
        """Sends batches, packed or not, and the tuple ``head``."""
        new, gone, outgoing = self._new, self._gone, self._outgoing
        self._new, self._gone, self._outgoing = {}, [], []
        with packing(outgoing):
            connection.send_bytes(bytes(ForkingPickler.dumps((head, new, gone, batches), 5)))
        for segment in new.values():
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
        """``(*head, batches)`` of the next message; a packed batch becomes a :class:`Packed`."""
        with unpacking():
            head, new, gone, batches = pickle.loads(connection.recv_bytes())
            for number, segment in new.items():
                segment.close()
                segment.use_again(number, self.ended)
            self.segments.update(new)
            batches = [Packed(self.segments, *b, transit.arrived) if type(b) is tuple else b for b in batches]
        for number in gone:
            del self.segments[number]
        return *head, batches

    def answered(self):
        """``{number: batches that named the segment}`` of segments that no tensor shows any more; 0 gives one up.
        """
        found = {}
        while self.ended:
            segment = self.segments.get(self.ended.pop())
            if segment is not None and segment.away and segment.is_idle():
                found[segment.number], segment.away = segment.away, 0
        while self._given_up:
            found[self._given_up.pop()] = 0
        return found


class Packed:
    """A batch that has arrived and is unpickled once, when it is used; ``nbytes`` of it lie in segments."""

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


def _before_fork():
    for end in list(_ends):
        for number in [number for number, segment in end.segments.items() if not segment.is_idle()]:
            end.give_up(number)


def _in_child():
    collate.output_for = None
    for end in list(_ends):
        end.segments.clear()            # unused mappings would keep their memory during the child's life


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)
