"""Pipes through which descriptors travel beside the bytes, and the queues over them.

A descriptor is in the message itself: the kernel keeps what it refers to until the message is read or can no longer be
read. So a sender may end, in any way, before its message is received, and nothing is left behind if it never is.
"""
import array
import errno
import os
import socket
import struct
import threading
import time
from collections import deque
from multiprocessing import connection, queues, reduction

_HEAD = struct.Struct("!QI")        # bytes and descriptors of a message
_AT_ONCE = 250                      # descriptors; the kernel takes 253


class _Arrived(list):
    """Descriptors that came with a message; -1 for one that was taken. The others are closed with the list."""

    def __del__(self):
        for fd in self:
            if fd >= 0:
                os.close(fd)


class _Transit(threading.local):
    """What belongs to the message that this thread packs or unpacks."""

    outgoing = None     # segments, where the message goes through a pipe of this file
    arrived = None


transit = _Transit()


class packing:
    """The segments of what is pickled inside go with the next message of this thread; they are added to a list."""

    def __init__(self, segments=None):
        self.segments = [] if segments is None else segments

    def __enter__(self):
        self.before = transit.outgoing
        transit.outgoing = self.segments
        return self.segments

    def __exit__(self, *exception):
        transit.outgoing = self.before


class unpacking:
    """Closes what came with a message and was known before."""

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        transit.arrived = None


def _rights(descriptors):
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []


class Connection(connection.Connection):
    """One end of a pipe; what ``multiprocessing.Connection`` is, over a socket."""

    def __init__(self, handle, readable=True, writable=True):
        super().__init__(handle, readable, writable)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, handle)
        if self._socket.gettimeout() is not None:       # socket.setdefaulttimeout is not meant for pipes
            self._socket.settimeout(None)
        self._posted = deque()      # what the pipe has not taken yet: (bytes, segments that go with them)

    def _close(self):
        self._socket.close()

    def send(self, obj):
        with packing():
            super().send(obj)

    def post(self, obj):
        """``send`` that never waits: what the pipe does not take now goes with the next ``post`` or ``flush``.

        Returns
        -------
        bool
            Whether all has gone.
        """
        with packing() as segments:
            self._posted.extend(_parts(reduction.ForkingPickler.dumps(obj), segments))
        return self.flush()

    def flush(self):
        """Sends what waits, as far as the pipe takes it; whether all has gone."""
        while self._posted:
            data, segments = self._posted[0]
            try:
                done = self._socket.sendmsg([data], _rights([s.fd for s in segments]), socket.MSG_DONTWAIT)
            except BlockingIOError:
                return False
            except OSError as e:
                if e.errno != errno.ETOOMANYREFS:       # see _send_with
                    raise
                time.sleep(0.001)
                return False
            if done == len(data):
                self._posted.popleft()
            else:
                self._posted[0] = memoryview(data)[done:], ()
        return True

    def recv(self):
        with unpacking():
            return super().recv()

    def _send_bytes(self, buf):
        segments, transit.outgoing = transit.outgoing, transit.outgoing and []
        for data, some in _parts(buf, segments or ()):
            if some:
                _send_with(self._socket, data, [segment.fd for segment in some])
            else:
                self._send(data)

    def _recv_bytes(self, maxsize=None):
        transit.arrived = descriptors = _Arrived()
        size, count = _HEAD.unpack(_receive_with(self._socket, _HEAD.size, descriptors))
        for _ in range(_AT_ONCE, count, _AT_ONCE):
            _receive_with(self._socket, 1, descriptors)
        if maxsize is not None and size > maxsize:
            return None
        buf = self._recv(size)
        if len(descriptors) < count:
            raise OSError(errno.EMFILE, "recv: the process may open no more files, the message's descriptors are lost")
        return buf


def _parts(buf, segments):
    """(bytes, segments whose descriptors go with them) of a message, in their order."""
    head = _HEAD.pack(len(buf), len(segments))
    if not segments and len(buf) <= 16384:
        return [(head + buf, ())]
    parts = [(head, segments[:_AT_ONCE])]
    parts += [(b"\0", segments[i:i + _AT_ONCE]) for i in range(_AT_ONCE, len(segments), _AT_ONCE)]
    if len(buf):
        parts.append((buf, ()))
    return parts


def _send_with(s, data, descriptors):
    pause = 0.001
    while True:
        try:
            s.sendmsg([data], _rights(descriptors))     # so few bytes go at once or not at all
            return
        except OSError as e:
            # As many descriptors are on their way as the user may open: the pipe is full.
            if e.errno != errno.ETOOMANYREFS:
                raise
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def _receive_with(s, size, descriptors):
    data = b""
    while len(data) < size:
        part, ancillary, _, _ = s.recvmsg(size - len(data), socket.CMSG_SPACE(4 * _AT_ONCE), socket.MSG_CMSG_CLOEXEC)
        for level, kind, value in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.extend(array.array("i", value[:len(value) // 4 * 4]))
        if not part:
            if data:
                raise OSError("got end of file during message")
            raise EOFError
        data += part
    return data


def _reduce(self):
    return _rebuild, (reduction.DupFd(self.fileno()), self.readable, self.writable)


def _rebuild(descriptor, readable, writable):
    return Connection(descriptor.detach(), readable, writable)


reduction.register(Connection, _reduce)


def Pipe(duplex=True):
    """Two connections, each at one end of a pipe; without ``duplex`` the first only receives, the second only sends."""
    a, b = (s.detach() for s in socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM))
    for fd in (a, b):
        os.set_blocking(fd, True)
    return Connection(a, writable=duplex), Connection(b, readable=duplex)


# -- queues --------------------------------------------------------------------------------------

class _Packed:
    """An object on its way to a queue's thread, which sends it. It is pickled by whoever puts it: so its tensors have
    moved when ``put`` returns, and what the caller does to them next is done to shared memory."""

    def __init__(self, content):
        self.content, self.segments = content, None
        self.lock = threading.Lock()

    def pack(self):
        """Once it has its place in the queue; what cannot be pickled is left to the thread, which reports that."""
        with packing() as segments:
            try:
                self.content = bytes(reduction.ForkingPickler.dumps(self.content))
                self.segments = segments
            except Exception:
                pass

    def __reduce__(self):
        with self.lock:
            if self.segments is None:
                transit.outgoing = []
                return _unpacked, (self.content,)
            transit.outgoing = self.segments
            return reduction.ForkingPickler.loads, (self.content,)


def _unpacked(content):
    return content


class _OverPipe:
    """A queue whose messages carry descriptors."""

    def __init__(self, *args, **keywords):
        super().__init__(*args, **keywords)
        self._reader.close()
        self._writer.close()
        self._reader, self._writer = Pipe(duplex=False)

    def get(self, *args, **keywords):
        with unpacking():
            return super().get(*args, **keywords)


class _Buffered(_OverPipe):
    def __init__(self, *args, **keywords):
        super().__init__(*args, **keywords)
        self._reset()

    def put(self, obj, block=True, timeout=None):
        packed = _Packed(obj)
        with packed.lock:       # the thread waits
            super().put(packed, block, timeout)
            packed.pack()

    @staticmethod
    def _on_queue_feeder_error(e, obj):
        transit.outgoing = None
        queues.Queue._on_queue_feeder_error(e, obj.content if isinstance(obj, _Packed) else obj)


class Queue(_Buffered, queues.Queue):
    """A queue between processes; ``multiprocessing.Queue`` whose tensors travel as shared memory."""


class JoinableQueue(_Buffered, queues.JoinableQueue):
    """A queue whose items are counted until they are done."""


class SimpleQueue(_OverPipe, queues.SimpleQueue):
    """A pipe with locks at both ends."""

    def __init__(self, *, ctx):
        super().__init__(ctx=ctx)
        self._poll = self._reader.poll

    def put(self, obj):
        with packing():
            super().put(obj)
