"""What a worker and its loader say about tensors: beside the pickle, in numbers of eight bytes as both ends have them.

A tensor in a segment that is lent is a window of it, a small one is its elements; the pickle has a number in its place
(a persistent id). See ``ptcore.multiprocessing._recycle``.

The end of a packet: ``how many are gone, their numbers, how many are new, (number, bytes, descriptor, key) of each,
records, length of the pickle``; the key is empty where the segment is lent. A record: ``segment, or -1, and what
_copying.pxd describes``. A tensor's id is where its record begins, that of a segment is ``-1 - number``.
"""
cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.string cimport memcpy

from ptcore._types cimport *
from ptcore._copying cimport is_plain, read_small, read_window, small_size, window_size, write_small, write_window
from ptcore._tensor cimport *
from ptcore._untyped_storage cimport Segment, share
from ptcore._untyped_storage import lend_memory, take_segment

cdef int64_t INSIDE = -1
cdef enum:
    KEY_WORDS = 10
    NEW_WORDS = 3 + KEY_WORDS


@cython.binding(False)                  # so that methods check their self
cdef class Spares:
    """What the sender has: segments on their way, those that came back, and those that the receiver maps for good.

    Parameters
    ----------
    most, most_shown : int
        Segments on their way, and again in new tensors; segments that are shown for good.
    numbers : iterator of int
        That no segment has had.

    Attributes
    ----------
    sent : dict
        Number to segment, of those that are lent.
    free : list of Segment
    shown : dict
        The numbers of those that are shown for good and live here, the longest unused first.
    gone : list of int
        Numbers that are not used any more, and which the receiver has not been told of.
    """
    cdef readonly dict sent, shown
    cdef readonly list free, gone
    cdef object numbers
    cdef int64_t most, most_shown, peak

    def __init__(self, int64_t most, int64_t most_shown, numbers):
        self.sent, self.shown, self.free, self.gone = {}, {}, [], []
        self.most, self.most_shown, self.numbers = most, most_shown, numbers
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
        if not segment.alone:
            return False
        if segment.number in self.sent:
            self.forget(segment)
            return False
        if len(self.sent) == self.most:
            self.forget(self.sent[next(iter(self.sent))])
        self.sent[segment.number] = segment
        return True

    cpdef forget(self, Segment segment):
        """It is lent no more. Its number is told to be gone, later than it may be shown for good: by another one."""
        if segment.alone:
            segment.alone = False
            self.gone.append(segment.number)
            self.sent.pop(segment.number, None)
            segment.number = next(self.numbers)

    cdef bint show(self, Segment segment) except -1:
        """Whether the receiver is to be told of the segment, which it will map until it is gone."""
        cdef bint new = self.shown.pop(segment.number, True)
        self.shown[segment.number] = False
        return new

    def end(self, Segment segment):
        """The segment is about to be freed."""
        if segment.alone or self.shown.pop(segment.number, True) is False:
            self.gone.append(segment.number)

    def begin(self):
        """Before a packet is made: what is gone by now. What comes to be so meanwhile is told with the next one."""
        while len(self.shown) > self.most_shown:
            oldest = next(iter(self.shown))
            del self.shown[oldest]
            self.gone.append(oldest)
        return self.gone[:]

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


@cython.binding(False)                  # so that methods check their self
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
    cdef list gone
    cdef list new                   # (number, bytes, place in outgoing, key) of segments
    cdef set named                  # numbers of segments

    def __cinit__(self, Spares spares not None, int64_t limit, list outgoing):
        self.spares, self.limit, self.outgoing = spares, limit, outgoing
        self.known, self.kept, self.new, self.named = {}, [], [], set()
        self.gone = spares.begin()

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
            if t.storage.flags & PT_STORAGE_SHARED and self.names(<Segment>t.storage.owner):
                segment = <Segment>t.storage.owner
                write_window(t, segment, self.record(t, segment.number, window_size(t)))
                return self.known[<size_t><void *>t]
        elif isinstance(obj, Segment) and self.names(<Segment>obj):
            return -1 - (<Segment>obj).number
        return None

    cdef bint names(self, Segment segment) except -1:
        """Whether the receiver knows the segment by its number, if need be by this packet."""
        if segment.number in self.named:
            return True
        key = b""
        if self.spares.send(segment):
            self.named.add(segment.number)
            if segment.used_again:
                return True
        elif not hasattr(segment, "fd") or len(segment.key) > 8 * KEY_WORDS:
            return False
        else:
            self.named.add(segment.number)
            if not self.spares.show(segment):
                return True
            key = segment.key.encode()
        self.new.append((segment.number, segment.nbytes, len(self.outgoing), key))
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
        cdef int64_t before = -length % 8, i = 1 + len(self.gone), value
        cdef int64_t words = i + 1 + NEW_WORDS * len(self.new)
        cdef bytes packed = bytes(before + 8 * (words + self.words + 1)), key
        cdef char *data = packed
        data += before
        put(data, 0, len(self.gone))
        for k, value in enumerate(self.gone):
            put(data, 1 + k, value)
        put(data, i, len(self.new))
        i += 1
        for number, nbytes, index, key in self.new:
            put(data, i, number)
            put(data, i + 1, nbytes)
            put(data, i + 2, index)
            memcpy(data + 8 * (i + 3), <char *>key, len(key))
            i += NEW_WORDS
        if self.words:
            memcpy(data + 8 * words, self.records, 8 * self.words)
        put(data, words + self.words, length)
        return packed

    def sent(self):
        """The receiver will have it."""
        del self.spares.gone[:len(self.gone)]           # what is behind these has come since

    def undo(self):
        """The receiver will not have it."""
        for number in self.named:
            self.spares.sent.pop(number, None)
        for number, *_ in self.new:
            self.spares.shown.pop(number, None)


cdef inline void put(char *data, int64_t word, int64_t value) noexcept:
    memcpy(data + 8 * word, &value, 8)


@cython.binding(False)                  # so that methods check their self
cdef class Arrival:
    """A message that has come: the file that an unpickler reads, and its persistent ids.

    Parameters
    ----------
    data : bytes
    segments : dict
        Number to segment, of those that the receiver has; it is to be brought up to date before the pickle is read.

    Attributes
    ----------
    gone : list of int
        Numbers that the sender does not use any more.
    new : list of tuple
        ``(number, bytes, which descriptor, key)`` of those that it uses from now on.
    lent : int
        Bytes of the segments that were lent for the tensors which were read.
    """
    cdef bytes data
    cdef dict segments, made
    cdef set counted
    cdef readonly list gone, new
    cdef readonly int64_t lent
    cdef const int64_t *records
    cdef int64_t at, length, words  # of the pickle: how much was read, its bytes; of the records: their numbers

    def __cinit__(self, bytes data not None, dict segments not None):
        cdef const char *begin = <const char *>data
        cdef const int64_t *numbers
        cdef int64_t size = len(data), first = size, i, n
        self.data, self.segments, self.made, self.counted = data, segments, {}, set()
        self.gone, self.new = [], []
        if size >= 24 and size % 8 == 0:
            self.length = (<const int64_t *>(begin + size - 8))[0]
            if 0 < self.length < size:
                first = self.length + -self.length % 8
        n = (size - first) // 8 - 1                 # numbers that are left
        if n < 2:
            raise broken(size)
        numbers = <const int64_t *>(begin + first)
        if not 0 <= numbers[0] <= n - 2:
            raise broken(size)
        for i in range(numbers[0]):
            self.gone.append(numbers[1 + i])
        n -= 1 + numbers[0]
        numbers += 1 + numbers[0]
        if not 0 <= numbers[0] <= (n - 1) // NEW_WORDS:
            raise broken(size)
        for i in range(1, 1 + NEW_WORDS * numbers[0], NEW_WORDS):
            key = (<const char *>(numbers + i + 3))[:8 * KEY_WORDS]
            self.new.append((numbers[i], numbers[i + 1], numbers[i + 2], key.rstrip(b"\0").decode()))
        self.words = n - 1 - NEW_WORDS * numbers[0]
        self.records = numbers + 1 + NEW_WORDS * numbers[0]

    def peek(self, size):
        return self.data[self.at:self.length]           # more is not asked for, but of a pickle without an end

    def read(self, int64_t size):
        first, self.at = self.at, min(self.at + max(size, 0), self.length)
        return self.data[first:self.at]

    def readline(self):
        return b""                                      # has no place in this protocol

    def persistent_load(self, int64_t which):
        """The tensor or the segment of an id."""
        cdef const int64_t *record
        cdef Segment segment
        if which < 0:
            return self.segments[-1 - which]
        found = self.made.get(which)
        if found is None:
            if which >= self.words:
                raise ValueError(f"loader: a packet has no record {which}")
            record = self.records + which
            nbytes = 8 * (self.words - which - 1)
            if record[0] == INSIDE:
                found = read_small(record + 1, nbytes)
            else:
                segment = self.segments[record[0]]
                found = read_window(record + 1, nbytes, segment)
                if segment.dropped is not None and record[0] not in self.counted:
                    self.counted.add(record[0])
                    self.lent += segment.nbytes
            self.made[which] = found
        return found


cdef object broken(int64_t size):
    return ValueError(f"loader: {size} bytes are no packet")
