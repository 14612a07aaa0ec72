"""What a worker and its loader say about tensors: beside the pickle, in numbers of eight bytes as both ends have them.

A tensor in a segment that is lent is a window of it, a small one is its elements; the pickle has a number in its place
(a persistent id). See ``ptcore.multiprocessing._recycle``.

The end of a packet: ``segments that are new, (number, bytes, descriptor) of each, records, length of the pickle``.
A record: ``segment, or -1, and what _copying.pxd describes``. A tensor's id is where its record begins, that of a
segment is ``-1 - number``.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.string cimport memcpy, memset

from ptcore._types cimport *
from ptcore._copying cimport is_plain, read_small, read_window, small_size, window_size, write_small, write_window
from ptcore._tensor cimport *
from ptcore._untyped_storage cimport Segment, share
from ptcore._untyped_storage import lend_memory, take_segment

cdef int64_t INSIDE = -1


cdef class Spares:
    """What the sender has: segments on their way, and those that came back.

    Parameters
    ----------
    most : int
        Segments on their way, and again in new tensors.

    Attributes
    ----------
    sent : dict
        Number to segment.
    free : list of Segment
    gone : list of int
        Numbers of those that are lent no more, and which the receiver has not been told of.
    """
    cdef readonly dict sent
    cdef readonly list free, gone
    cdef int64_t most, peak

    def __init__(self, int64_t most):
        self.sent, self.free, self.gone = {}, [], []
        self.most = most
        self.peak = 0               # bytes that were on their way at once

    def lend(self, int64_t least):
        """New tensors of at least so many bytes lie in what came back, so that sending them copies nothing."""
        lend_memory(self.free, least, self.most)

    def take(self, int64_t nbytes):
        """A segment of about this size, which holds nothing, or None."""
        return take_segment(self.free, nbytes)

    # Nothing below runs Python code between a look and what depends on it, so that the GIL is lock enough.

    cdef bint send(self, Segment segment) except -1:
        """Whether the segment is lent to the receiver; else it goes for good."""
        if not segment.alone or segment.number in self.sent:
            self.forget(segment)
            return False
        if len(self.sent) == self.most:
            self.forget(self.sent[next(iter(self.sent))])
        self.sent[segment.number] = segment
        return True

    cpdef forget(self, Segment segment):
        """It is lent no more."""
        if segment.alone:           # others are not numbered in this process alone
            segment.alone = False
            self.gone.append(segment.number)
            self.sent.pop(segment.number, None)

    def give_back(self, list numbers):
        """The receiver shows these no more. As many are kept as once were on their way together, and a quarter more:
        what a sample is computed from lies there as well."""
        cdef Segment segment
        cdef int64_t kept = 0
        for segment in list(self.sent.values()):
            kept += segment.nbytes
        self.peak = max(self.peak, kept)
        for number in numbers:
            segment = self.sent.pop(number, None)
            if segment is None:
                continue
            if segment.living:
                self.forget(segment)
                continue
            segment.new_fd, segment.used_again = -1, True
            self.free.append(segment)
        kept = 0
        for segment in reversed(self.free[:]):
            kept += segment.nbytes
            if kept > self.peak + self.peak // 4 and segment in self.free:      # else a new tensor lies in it by now
                self.free.remove(segment)
                self.forget(segment)

    def clear(self, list segments):
        """None of these is used again, nor what came back, nor what batches lie in that are being made; new tensors
        become as others."""
        cdef Segment segment
        for segment in segments:
            self.forget(segment)
        self.free.clear()
        self.sent.clear()
        for segment in segments:
            segment.make_private()


cdef class Packet:
    """Gives a pickler the persistent ids of one message.

    Parameters
    ----------
    spares : Spares
    limit : int
        Up to how many bytes a tensor that no other process can show goes as its elements.
    outgoing : list
        What descriptors go with the message; those of new segments are added.
    """
    cdef Spares spares
    cdef list outgoing
    cdef int64_t limit, words, room
    cdef int64_t *records
    cdef dict known                 # address of a tensor -> its id
    cdef list kept                  # these tensors, so that no other one comes to lie there
    cdef list new                   # segments, and their places in outgoing
    cdef dict lent                  # number -> segment

    def __cinit__(self, Spares spares not None, int64_t limit, list outgoing):
        self.spares, self.limit, self.outgoing = spares, limit, outgoing
        self.known, self.kept, self.new, self.lent = {}, [], [], {}

    def __dealloc__(self):
        PyMem_Free(self.records)

    def persistent_id(self, obj):
        """The id of what is described beside the pickle; None of others."""
        cdef Segment segment
        cdef Tensor t
        cdef int64_t nbytes
        if type(obj) is Tensor:
            t = <Tensor>obj
            found = self.known.get(<size_t><void *>t)
            if found is not None or t.count == 0 or t.storage.device != DEVICE_CPU or not is_plain(t):
                return found
            nbytes = small_size(t, self.limit)
            if nbytes:
                write_small(t, self.record(t, INSIDE, nbytes))
                return self.known[<size_t><void *>t]
            if not t.storage.flags & (PT_STORAGE_SHARED | PT_STORAGE_EXPORTED):
                share(t.storage)
            if t.storage.flags & PT_STORAGE_SHARED and self.lends(<Segment>t.storage.owner):
                segment = <Segment>t.storage.owner
                write_window(t, segment, self.record(t, segment.number, window_size(t)))
                return self.known[<size_t><void *>t]
        elif isinstance(obj, Segment) and self.lends(<Segment>obj):
            return -1 - (<Segment>obj).number
        return None

    cdef bint lends(self, Segment segment) except -1:
        if not segment.alone:
            return False
        if segment.number in self.lent:
            return True
        if not self.spares.send(segment):
            return False
        self.lent[segment.number] = segment
        if not segment.used_again:
            self.new.append((segment, len(self.outgoing)))
            self.outgoing.append(segment)
        return True

    cdef int64_t *record(self, Tensor t, int64_t number, int64_t nbytes) except NULL:
        """Room for so many bytes that describe a tensor in a segment."""
        cdef int64_t words = 1 + (nbytes + 7) // 8
        cdef int64_t *begin
        if self.words + words > self.room:
            self.room = 2 * (self.words + words) + 256
            begin = <int64_t *>PyMem_Realloc(self.records, 8 * self.room)
            if begin == NULL:
                raise MemoryError()
            self.records = begin
        self.kept.append(t)
        self.known[<size_t><void *>t] = self.words
        begin = self.records + self.words
        self.words += words
        begin[0] = number
        begin[words - 1] = 0
        return begin + 1

    def end(self, int64_t length):
        """What stands behind a pickle of so many bytes."""
        cdef int64_t before = -length % 8, words = 1 + 3 * len(self.new), i = 1
        cdef bytes packed = PyBytes_FromStringAndSize(NULL, before + 8 * (words + self.words + 1))
        cdef char *data = packed
        cdef int64_t value = len(self.new)
        cdef Segment segment
        memset(data, 0, before)
        data += before
        memcpy(data, &value, 8)
        for segment, index in self.new:
            for value in (segment.number, segment.nbytes, index):
                memcpy(data + 8 * i, &value, 8)
                i += 1
        if self.words:
            memcpy(data + 8 * words, self.records, 8 * self.words)
        memcpy(data + 8 * (words + self.words), &length, 8)
        return packed

    def undo(self):
        """It is not sent."""
        for number in self.lent:
            self.spares.sent.pop(number, None)


cdef class Arrival:
    """A message that has come: the file that an unpickler reads, and its persistent ids.

    Parameters
    ----------
    data : bytes
    segments : dict
        Number to segment, of those that the receiver has; the new ones are to be added before it is read.
    """
    cdef bytes data
    cdef dict segments, made
    cdef const int64_t *records
    cdef int64_t at, length, words  # of the pickle: how much was read, its bytes; of the rest: its numbers

    def __cinit__(self, bytes data not None, dict segments not None):
        cdef const char *begin = <const char *>data
        cdef int64_t size = len(data), first
        self.data, self.segments, self.made = data, segments, {}
        if size >= 16 and size % 8 == 0:
            self.length = (<const int64_t *>(begin + size - 8))[0]
            first = self.length + -self.length % 8 if 0 < self.length < size else size
            if first <= size - 16:
                self.records = <const int64_t *>(begin + first)
                self.words = (size - first) // 8 - 1
                if 0 <= self.records[0] <= (self.words - 1) // 3:
                    return
        raise ValueError(f"loader: {size} bytes are no packet")

    def new(self):
        """(number, bytes, which descriptor) of each segment that the receiver has not seen."""
        cdef int64_t i
        return [(self.records[3 * i + 1], self.records[3 * i + 2], self.records[3 * i + 3])
                for i in range(self.records[0])]

    def peek(self, size):
        return self.data[self.at:self.length]           # more is not asked for, but of a pickle without an end

    def read(self, int64_t size):
        first, self.at = self.at, min(self.at + max(size, 0), self.length)
        return self.data[first:self.at]

    def readline(self):
        return b""                                      # has no place in this protocol

    def persistent_load(self, int64_t which):
        """The tensor or the segment of an id."""
        cdef int64_t first = 1 + 3 * self.records[0]
        cdef const int64_t *record
        if which < 0:
            return self.segments[-1 - which]
        found = self.made.get(which)
        if found is None:
            if which >= self.words - first:
                raise ValueError(f"loader: a packet has no record {which}")
            record = self.records + first + which
            nbytes = 8 * (self.words - first - which - 1)
            found = self.made[which] = (read_small(record + 1, nbytes) if record[0] == INSIDE
                                        else read_window(record + 1, nbytes, self.segments[record[0]]))
        return found
