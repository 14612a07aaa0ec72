"""What a worker and its loader say about tensors: beside the pickles, in numbers of eight bytes as both ends have them.

A message is some objects. A tensor in a segment that is lent is a window of it, a small one is its elements; NumPy's
arrays are as tensors. What is made of these, numbers and short strings has a form (``Packet.form``), anything else a
pickle, in which the call ``item(where its record begins)`` stands for a tensor; what else has much memory gives it its
buffers (protocol 5), each of which is a tensor of bytes. See ``multiprocessing._recycle``.

The end of a packet: ``how many are gone, their numbers, how many are new, (number, bytes, descriptor, key) of each, how
many buffers, their items, records, where the last pickle begins, length of the pickles``; the key is empty where the
segment is lent. A record: ``segment, or -1, whether it is an array, and what _copying.pxd describes``. The item of a
segment is ``-1 - number``, that of a buffer that may not be written ``-1 - where its record begins``. A packet without
pickles has one record: of the bytes of the packet that is meant.
"""
cimport cython
from cpython.buffer cimport (PyBUF_ANY_CONTIGUOUS, PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release,
                             PyObject_GetBuffer)
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.string cimport memcpy, memset

from ptcore._types cimport *
from ptcore._array_memory cimport as_sent, copy_to_send, is_sendable, segment_of_array
from ptcore._convert cimport is_plain_ndarray
from ptcore._copying cimport is_plain, read_small, read_window, small_size, window_size, write_small, write_window
from ptcore._tensor cimport *
from ptcore._untyped_storage cimport Segment, share, shared_bytes
from ptcore._untyped_storage import lend_memory, take_segment

cdef extern from *:
    """
    #include <atomic>
    // Words that another process reads or writes at the same time.
    static_assert(sizeof(std::atomic<int64_t>) == sizeof(int64_t) && std::atomic<int64_t>::is_always_lock_free,
                  "words of shared memory are atomic as they are");
    static inline int64_t read_word(int64_t *word) {
        return reinterpret_cast<std::atomic<int64_t> *>(word)->load(std::memory_order_acquire);
    }
    static inline void write_word(int64_t *word, int64_t value) {
        reinterpret_cast<std::atomic<int64_t> *>(word)->store(value, std::memory_order_release);
    }
    """
    int64_t read_word(int64_t *word)
    void write_word(int64_t *word, int64_t value)

cdef int64_t INSIDE = -1
cdef enum:
    KEY_WORDS = 10
    NEW_WORDS = 3 + KEY_WORDS
    HEAD = 2                        # words of a record before the description
    DEPTH = 4                       # of lists, tuples and dictionaries that have a form
    WIDTH = 16                      # of each of them
    LETTERS = 64                    # of strings in them
    TAKEN = 8                       # the word of Returns that tells how many were taken
    RETURNED = 16                   # where their numbers begin
    LONG = 64 << 10                 # bytes from which on a packet is not sent through the pipe, which holds 208 KiB


@cython.binding(False)                  # so that methods check their self
cdef class Returns:
    """Numbers of segments on their way back, in memory that both ends show: no message is needed, and none waits until
    it is read. One process puts them there, under its GIL, the other takes them.

    Parameters
    ----------
    segment : Segment
        Zeros at first. It begins with how many were put, and in another line of the cache with how many were taken; the
        last of them stand behind in turn.
    """
    cdef readonly Segment segment
    cdef int64_t *words
    cdef int64_t room

    def __cinit__(self, Segment segment not None):
        self.room = segment.nbytes // 8 - RETURNED
        if self.room <= 0:
            raise ValueError(f"Returns: segment must have more than {8 * RETURNED} bytes, got {segment.nbytes}")
        self.segment, self.words = segment, <int64_t *>segment.base

    def give_back(self, list dropped not None, dict segments not None):
        """Puts there what ``take_dropped`` finds; what has no room waits among the dropped ones."""
        if dropped:
            dropped += self.put(take_dropped(dropped, segments))

    cpdef list put(self, list numbers):
        """Those for which there is no room until others were taken."""
        if not numbers:                                 # a child of this process shows the same memory, and has none
            return numbers
        cdef int64_t at = self.words[0]
        cdef int64_t room = read_word(self.words + TAKEN) + self.room - at
        cdef Py_ssize_t i, count = min(<int64_t>len(numbers), room)
        for i in range(count):
            self.words[RETURNED + <uint64_t>(at + i) % <uint64_t>self.room] = numbers[i]
        write_word(self.words, at + count)
        return numbers[count:]

    cpdef list take(self):
        """What has come, in its order; None if nothing has."""
        cdef int64_t at = self.words[TAKEN]
        cdef int64_t end = read_word(self.words)
        if at == end:
            return None
        cdef list numbers = []
        while at < end:
            numbers.append(self.words[RETURNED + <uint64_t>at % <uint64_t>self.room])
            at += 1
        write_word(self.words + TAKEN, end)
        return numbers


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
    late : list of int
        Numbers that came back while the sender itself held what lies there.
    gone : list of int
        Numbers that are not used any more, and which the receiver has not been told of.
    """
    cdef readonly dict sent, shown
    cdef readonly list free, late, gone
    cdef object numbers
    cdef int64_t most, most_shown
    cdef int64_t away, peak         # bytes that are on their way, and once were at most

    def __init__(self, int64_t most, int64_t most_shown, numbers):
        self.sent, self.shown, self.free, self.late, self.gone = {}, {}, [], [], []
        self.most, self.most_shown, self.numbers = most, most_shown, numbers
        self.away = self.peak = 0

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
        self.away += segment.nbytes
        self.peak = max(self.peak, self.away)
        return True

    cdef Segment unsent(self, number):
        """The segment of a number, which is not on its way any more; None if it was not."""
        cdef Segment segment = self.sent.pop(number, None)
        if segment is not None:
            self.away -= segment.nbytes
        return segment

    cpdef forget(self, Segment segment):
        """It is lent no more. Its number is told to be gone, later than it may be shown for good: by another one."""
        if segment.alone:
            segment.alone = False
            self.gone.append(segment.number)
            self.unsent(segment.number)
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

    cdef list take_gone(self, dict named):
        """What the receiver is to be told with a packet that names these; of them it is told with the next one."""
        while len(self.shown) > self.most_shown:
            oldest = next(iter(self.shown))
            if oldest in named:             # and so all that are used later
                break
            del self.shown[oldest]
            self.gone.append(oldest)
        gone, self.gone = self.gone, []     # the collector may add to it
        told = [n for n in gone if n not in named]
        self.gone += [n for n in gone if n in named]
        return told

    def take_back(self, Returns returns):
        """What has come back so far is used again; None: nothing does."""
        cdef list numbers = None if returns is None else returns.take()
        if self.late:
            numbers, self.late = self.late + (numbers or []), []
        if numbers is not None:
            self.give_back(numbers)

    cpdef give_back(self, list numbers):
        """The receiver shows these no more. Where the sender does still, they wait until it does not, or sends it once
        more. As many are kept as once were on their way together, and a quarter more: what a sample is computed from
        lies there as well."""
        cdef Segment segment
        cdef int64_t kept = 0
        for number in numbers:
            segment = self.sent.get(number)
            if segment is None:
                continue
            if segment.living:
                self.late.append(number)
                continue
            self.unsent(number)
            segment.new_fd, segment.used_again = -1, True
            self.free.append(segment)
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
        self.away = 0
        for segment in segments:
            segment.make_private()


@cython.binding(False)                  # so that methods check their self
cdef class Packet:
    """Tells a pickler what stands in one message for tensors, arrays and segments.

    Parameters
    ----------
    spares : Spares
    limit : int
        Up to how many bytes a tensor that no other process can show goes as its elements.
    outgoing : list
        What descriptors go with the message; those of new segments are added.

    Attributes
    ----------
    alone : set of int
        Addresses of arrays that nobody holds but what is pickled.
    elsewhere : bool
        Whether what is long may lie in segments.
    places : int
        How often segments were meant by now.
    """
    cdef Spares spares
    cdef list outgoing
    cdef int64_t limit, words, room, last       # last: where the last record begins
    cdef int64_t *records
    cdef list buffers               # their items
    cdef list new                   # (number, bytes, place in outgoing, key) of segments
    cdef dict named                 # the numbers of segments, in the order in which they were named
    cdef public set alone
    cdef public bint elsewhere
    cdef readonly int64_t places
    cdef Tensor body                # what the packet lies in that is not sent through the pipe

    def __cinit__(self, Spares spares not None, int64_t limit, list outgoing not None):
        self.spares, self.limit, self.outgoing = spares, limit, outgoing
        self.buffers, self.new, self.named = [], [], {}

    def __dealloc__(self):
        PyMem_Free(self.records)

    def reduce(self, obj):
        """The call that stands for what is described beside the pickle; NotImplemented of others."""
        cdef int64_t which = -1
        if type(obj) is Tensor:
            which = self.describe(<Tensor>obj, False)
        elif isinstance(obj, Segment):
            if self.names(<Segment>obj):
                return item, (-1 - (<Segment>obj).number,)
        elif is_plain_ndarray(obj):
            t = self.tensor_of(obj)
            if t is not None:
                which = self.describe(<Tensor>t, True)
                if which < 0:                           # it goes by a name
                    return as_array, (t,)
            elif obj.dtype.kind in "mM":                # which has no buffer
                return viewed, (obj.view("i8"), obj.dtype)
        return NotImplemented if which < 0 else (item, (which,))

    def form(self, obj):
        """What stands for an object of tensors, arrays and numbers that needs no pickle; None of others.

        That is where the record of a tensor or of an array begins, ``(value,)`` of a number or a short string, and
        a list, a dictionary or ``(None, list)`` of these for a list, a dictionary or a tuple. Where segments go by
        names nothing has one.
        """
        if not self.elsewhere or not self.has_form(obj, set(), DEPTH):
            return None
        mark = self.mark()
        try:
            form = self.formed(obj)
        except BaseException:
            self.undo(mark)
            raise
        if form is None:
            self.undo(mark)
        return form

    cdef object formed(self, obj):
        cdef int64_t which
        kind = type(obj)
        if kind is Tensor or is_plain_ndarray(obj):
            t = obj if kind is Tensor else self.tensor_of(obj)
            which = -1 if t is None else self.describe(<Tensor>t, kind is not Tensor)
            return None if which < 0 else which
        if kind is dict:
            forms = {key: self.formed(x) for key, x in (<dict>obj).items()}
            return None if None in forms.values() else forms
        if kind is list or kind is tuple:
            forms = [self.formed(x) for x in obj]
            if None in forms:
                return None
            return forms if kind is list else (None, forms)
        return obj,

    cdef bint has_form(self, obj, set seen, int depth) except -1:
        """Whether ``formed`` knows what an object is made of, so that nothing is copied in vain; what occurs in it
        twice a pickle has once."""
        kind = type(obj)
        if obj is None or kind is int or kind is float or kind is bool:
            return True
        if kind is str:
            return len(<str>obj) <= LETTERS
        if <size_t><void *>obj in seen:
            return False
        seen.add(<size_t><void *>obj)
        if kind is Tensor:
            return has_record(<Tensor>obj)
        if kind is list or kind is tuple:
            if not depth or len(obj) > WIDTH:
                return False
            for x in obj:
                if not self.has_form(x, seen, depth - 1):
                    return False
            return True
        if kind is dict:
            if not depth or len(<dict>obj) > WIDTH:
                return False
            for key, x in (<dict>obj).items():
                if type(key) is not str or len(<str>key) > LETTERS or not self.has_form(x, seen, depth - 1):
                    return False
            return True
        return is_plain_ndarray(obj) and is_sendable(obj, self.limit)

    cdef Tensor tensor_of(self, array):
        return as_sent(array, self.alone is not None and <size_t><void *>array in self.alone, self.limit)

    cdef int64_t describe(self, Tensor t, bint array) except -2:
        """Where the record of a tensor begins; -1 if it has none."""
        cdef Segment segment
        cdef int64_t nbytes
        if not has_record(t):
            return -1
        nbytes = small_size(t, self.limit)
        if nbytes:
            write_small(t, self.record(INSIDE, array, nbytes))
            return self.last
        if not t.storage.flags & (PT_STORAGE_SHARED | PT_STORAGE_EXPORTED):
            share(t.storage)
        segment = <Segment>t.storage.owner if t.storage.flags & PT_STORAGE_SHARED else segment_of_array(t.storage)
        if segment is None and t.storage.flags & PT_STORAGE_EXPORTED:
            t = copy_to_send(t)
            share(t.storage)
            segment = <Segment>t.storage.owner
        if segment is None or not self.names(segment):
            return -1
        write_window(t, segment, self.record(segment.number, array, window_size(t)))
        return self.last

    def buffer(self, buffer):
        """Whether the pickle is to hold the bytes of a ``PickleBuffer``."""
        cdef Py_buffer shown
        cdef int64_t nbytes, which
        cdef Tensor t
        PyObject_GetBuffer(buffer, &shown, PyBUF_ANY_CONTIGUOUS)
        try:
            nbytes = shown.len
            if nbytes <= self.limit or not self.elsewhere:
                return True
            t = new_tensor(PT_UINT8, 1, &nbytes, DEVICE_CPU, -1)
            memcpy(t.storage.data, shown.buf, nbytes)
            which = self.describe(t, False)
            if which < 0:
                return True
            self.buffers.append(-1 - which if shown.readonly else which)
            return False
        finally:
            PyBuffer_Release(&shown)

    cdef bint names(self, Segment segment) except -1:
        """Whether the receiver knows the segment by its number, if need be by this packet."""
        self.places += 1
        if segment.number in self.named:
            return True
        key = b""
        if self.spares.send(segment):
            self.named[segment.number] = None
            if segment.used_again:
                return True
        elif not hasattr(segment, "fd") or len(segment.key) > 8 * KEY_WORDS:
            return False
        else:
            self.named[segment.number] = None
            if not self.spares.show(segment):
                return True
            key = segment.key.encode()
        self.new.append((segment.number, segment.nbytes, len(self.outgoing), key))
        self.outgoing.append(segment)
        return True

    cdef int64_t *record(self, int64_t number, bint array, int64_t nbytes) except NULL:
        """Room for so many bytes that describe a tensor in a segment."""
        cdef int64_t words = HEAD + (nbytes + 7) // 8
        cdef int64_t *begin
        if self.words + words > self.room:
            self.room = 2 * (self.words + words) + 256
            begin = <int64_t *>PyMem_Realloc(self.records, 8 * self.room)
            if begin == NULL:
                raise MemoryError()
            self.records = begin
        self.last = self.words
        begin = self.records + self.words
        self.words += words
        begin[words - 1] = 0
        begin[0], begin[1] = number, array
        return begin + HEAD

    def finish(self, pickled, int64_t head):
        """The bytes to be sent, with pickles before their end, the last of which begins at ``head``."""
        cdef Py_buffer shown
        PyObject_GetBuffer(pickled, &shown, PyBUF_SIMPLE)
        try:
            return self.finished(<const char *>shown.buf, shown.len, head)
        finally:
            PyBuffer_Release(&shown)

    cdef bytes finished(self, const char *pickled, int64_t length, int64_t head):
        cdef int64_t size, first = self.words, known = len(self.new)
        cdef bytes packed
        cdef list gone = self.spares.take_gone(self.named)
        size = length + -length % 8 + self.end(NULL, gone, self.new, self.buffers, 0, head, length)
        if self.elsewhere and size >= LONG and self.write_elsewhere(size, gone, pickled, length, head):
            packed = bytes(self.end(NULL, [], self.new[known:], [], first, 0, 0))
            self.end(packed, [], self.new[known:], [], first, 0, 0)
            return packed
        packed = bytes(size)
        self.write(packed, gone, pickled, length, head)
        return packed

    cdef bint write_elsewhere(self, int64_t size, list gone, const char *pickled, int64_t length,
                              int64_t head) except -1:
        """Whether there is memory for the packet that the receiver can show."""
        cdef int64_t room = LONG
        while room < size:                  # so that other long packets find room there
            room *= 2
        try:
            self.body = shared_bytes(size, room)
        except (MemoryError, OSError, RuntimeError):
            return False
        self.write(self.body.storage.data, gone, pickled, length, head)
        return self.describe(self.body, False) >= 0

    cdef int write(self, char *to, list gone, const char *pickled, int64_t length, int64_t head) except -1:
        cdef int64_t start = length + -length % 8
        memcpy(to, pickled, length)
        memset(to + length, 0, start - length)
        self.end(to + start, gone, self.new, self.buffers, 0, head, length)
        return 0

    cdef int64_t end(self, char *to, list gone, list new, list buffers, int64_t first, int64_t head,
                     int64_t length) except -1:
        """Writes what stands behind the pickles, with the records from ``first`` on; how many bytes it is, if NULL."""
        cdef int64_t i = 1 + len(gone), words = i + 1 + NEW_WORDS * len(new) + 1 + len(buffers), value
        cdef int64_t records = self.words - first
        cdef bytes key
        if to == NULL:
            return 8 * (words + records + 2)
        put(to, 0, len(gone))
        for k, value in enumerate(gone):
            put(to, 1 + k, value)
        put(to, i, len(new))
        i += 1
        for number, nbytes, index, key in new:
            put(to, i, number)
            put(to, i + 1, nbytes)
            put(to, i + 2, index)
            memset(to + 8 * (i + 3), 0, 8 * KEY_WORDS)
            memcpy(to + 8 * (i + 3), <char *>key, len(key))
            i += NEW_WORDS
        put(to, i, len(buffers))
        for k, value in enumerate(buffers):
            put(to, i + 1 + k, value)
        if records:
            memcpy(to + 8 * words, self.records + first, 8 * records)
        put(to, words + records, head)
        put(to, words + records + 1, length)
        return 0

    def mark(self):
        """How many buffers there are, and what else ``undo`` comes back to."""
        return len(self.buffers), self.words, len(self.new), len(self.outgoing), len(self.named)

    def undo(self, mark=(0, 0, 0, 0, 0)):
        """The receiver will not have what came since."""
        buffers, words, new, outgoing, named = mark
        for number in list(self.named)[named:]:
            del self.named[number]
            self.spares.unsent(number)
        for number, *_ in self.new[new:]:
            self.spares.shown.pop(number, None)
        self.words = words
        del self.buffers[buffers:], self.new[new:], self.outgoing[outgoing:]


cdef inline void put(char *data, int64_t word, int64_t value) noexcept:
    memcpy(data + 8 * word, &value, 8)


@cython.binding(False)                  # so that methods check their self
cdef class Arrival:
    """A message that has come: the file that an unpickler reads, its items, and, as an iterator, its buffers.

    It holds the segments that were asked for: a fork in between takes them from the receiver's.

    Parameters
    ----------
    data : bytes or Tensor
    segments : dict
        Number to segment, of those that the receiver has; it is to be brought up to date before the pickle is read.

    Attributes
    ----------
    gone : list of int
        Numbers that the sender does not use any more.
    new : list of tuple
        ``(number, bytes, which descriptor, key)`` of those that it uses from now on.
    elsewhere : bool
        Whether the packet that is meant is what item 0 shows.
    head : bytes
        The last pickle.
    at, buffer : int
        Where the next one begins, and the number of its first buffer.
    lent : int
        Bytes of the segments that were lent for the tensors which were read.
    """
    cdef Py_buffer data
    cdef const char *begin          # of the data
    cdef dict segments, shown
    cdef readonly list gone, new
    cdef readonly bint elsewhere
    cdef const int64_t *buffers     # their items
    cdef int64_t n_buffers
    cdef public int64_t buffer
    cdef readonly int64_t lent
    cdef const int64_t *records
    cdef public int64_t at
    cdef int64_t last, length       # where the last pickle begins, and the bytes of all
    cdef int64_t words              # numbers that the records are

    def __cinit__(self, data not None, dict segments not None):
        cdef const int64_t *numbers
        PyObject_GetBuffer(data, &self.data, PyBUF_ANY_CONTIGUOUS)
        cdef int64_t size = self.data.len, first = size, i, n
        self.segments, self.shown = segments, {}
        self.gone, self.new = [], []
        if size >= 40 and size % 8 == 0 and <size_t>self.data.buf % 8 == 0:
            self.begin = <const char *>self.data.buf
            self.length = (<const int64_t *>(self.begin + size - 8))[0]
            self.last = (<const int64_t *>(self.begin + size - 16))[0]
            if 0 <= self.last <= self.length < size:
                first = self.length + -self.length % 8
        n = (size - first) // 8 - 2                 # numbers that are left
        if n < 3:
            raise broken(size)
        numbers = <const int64_t *>(self.begin + first)
        if not 0 <= numbers[0] <= n - 3:
            raise broken(size)
        for i in range(numbers[0]):
            self.gone.append(numbers[1 + i])
        n -= 1 + numbers[0]
        numbers += 1 + numbers[0]
        if not 0 <= numbers[0] <= (n - 2) // NEW_WORDS:
            raise broken(size)
        for i in range(1, 1 + NEW_WORDS * numbers[0], NEW_WORDS):
            key = (<const char *>(numbers + i + 3))[:8 * KEY_WORDS]
            self.new.append((numbers[i], numbers[i + 1], numbers[i + 2], key.rstrip(b"\0").decode()))
        n -= 1 + NEW_WORDS * numbers[0]
        numbers += 1 + NEW_WORDS * numbers[0]
        if n < 1 or not 0 <= numbers[0] <= n - 1:
            raise broken(size)
        self.buffers, self.n_buffers = numbers + 1, numbers[0]
        self.words = n - 1 - numbers[0]
        self.records = numbers + 1 + numbers[0]
        self.elsewhere = self.length == 0

    def __dealloc__(self):
        PyBuffer_Release(&self.data)

    @property
    def head(self):
        return self.begin[self.last:self.length]

    def read(self, int64_t size):
        first, self.at = self.at, min(self.at + max(size, 0), self.length)
        return self.begin[first:self.at] if 0 <= first < self.at else b""

    def readinto(self, to):
        cdef Py_buffer room
        PyObject_GetBuffer(to, &room, PyBUF_WRITABLE)
        cdef int64_t size = min(room.len, self.length - self.at) if 0 <= self.at <= self.length else 0
        memcpy(room.buf, self.begin + self.at, size)
        self.at += size
        PyBuffer_Release(&room)
        return size

    def readline(self):
        return b""                                      # has no place in this protocol

    def __iter__(self):
        return self

    def __next__(self):
        if not 0 <= self.buffer < self.n_buffers:
            raise StopIteration
        cdef int64_t which = self.buffers[self.buffer]
        self.buffer += 1
        shown = memoryview(self.item(which if which >= 0 else -1 - which))
        return shown if which >= 0 else shown.toreadonly()

    def made(self, form):
        """The object that ``Packet.form`` tells of."""
        kind = type(form)
        if kind is int:
            return self.item(form)
        if kind is list:
            return [self.made(x) for x in <list>form]
        if kind is dict:
            return {key: self.made(x) for key, x in (<dict>form).items()}
        return form[0] if len(form) == 1 else tuple([self.made(x) for x in form[1]])

    def item(self, int64_t which):
        """The tensor, the array or the segment that ``item`` of the pickle means."""
        cdef const int64_t *record
        cdef Segment segment
        if which < 0:
            return self.segments[-1 - which]
        if which > self.words - HEAD:
            raise ValueError(f"loader: a packet has no record {which}")
        record = self.records + which
        nbytes = 8 * (self.words - which - HEAD)
        if record[0] == INSIDE:
            found = read_small(record + HEAD, nbytes)
        else:
            segment = self.shown.get(record[0])
            if segment is None:
                segment = self.shown[record[0]] = self.segments[record[0]]
                if segment.dropped is not None:
                    self.lent += segment.nbytes
            found = read_window(record + HEAD, nbytes, segment)
        return found.numpy() if record[1] else found


cpdef list take_dropped(list dropped, dict segments):
    """The numbers among the dropped ones whose segments no storage lies in, each once; ``dropped`` is emptied. Whatever
    has a storage again is noted there once more when that one goes."""
    cdef Segment segment
    cdef list numbers = dropped[:]
    cdef dict idle = {}
    del dropped[:len(numbers)]              # the collector may have added to it
    for number in numbers:
        segment = segments.get(number)
        if segment is not None and not segment.living:
            idle[number] = None
    return list(idle)


cdef inline bint has_record(Tensor t):
    return t.count != 0 and t.storage.device == DEVICE_CPU and is_plain(t)


def item(which):
    """Stands for ``Arrival.item`` in pickles."""
    raise RuntimeError("loader: a packet is read by _recycle.receive")


def as_array(tensor):
    return tensor.numpy()


def viewed(array, dtype):
    return array.view(dtype)


cdef object broken(int64_t size):
    return ValueError(f"loader: {size} bytes are no packet")
