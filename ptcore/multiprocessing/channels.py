"""Pipes through which descriptors travel beside the bytes, and the queues over them.

A descriptor is in the message itself: the kernel keeps the file open until the message is read or can no longer be
read. So a sender may end in any way before its message is received, and an unread message leaves nothing behind.
"""
import errno
import io
import os
import socket
import struct
import threading
import time
from collections import deque
from multiprocessing import connection, queues, reduction

from ptcore._contexts import Changed
from ptcore.multiprocessing._socket import AT_ONCE, Descriptors, receive, send

_HEAD = struct.Struct("!QI")        # number of bytes and of descriptors of a message
_USUAL = 64 << 10                   # largest message whose pickler is kept for the next one


class _Transit(threading.local):
    """The state of the message that this thread packs or unpacks."""

    outgoing = None     # its segments, if it goes through a pipe of this file
    arrived = None      # its descriptors
    storages = None     # storages that it names in another way; see ``utils.data._ring``


transit = _Transit()


class packing(Changed):
    """Context that collects the segments of objects pickled inside, for this thread's next message.
    """

    def __init__(self, segments=None):
        self.segments = [] if segments is None else segments
        super().__init__((transit.__dict__, {"outgoing": self.segments}), gives=self.segments)


class unpacking(Changed):
    """Context with the state of a message that is unpickled inside; at its end unused descriptors are closed."""

    def __init__(self, arrived=None, storages=None):
        super().__init__((transit.__dict__, {"arrived": arrived, "storages": storages}))


class Connection(connection.Connection):
    """One end of a pipe: ``multiprocessing.Connection`` over a socket."""

    def __init__(self, handle, readable=True, writable=True):
        super().__init__(handle, readable, writable)
        self._posted = deque()      # (bytes, segments sent with them) not sent yet
        self._writer = None         # the pickler of ``post`` and its file; making one takes as long as using it

    def send(self, obj):
        with packing():
            super().send(obj)

    def post(self, obj):
        """Sends without waiting: bytes that the pipe does not accept go with the next ``post`` or ``flush``.

        Returns
        -------
        bool
            Whether all has gone.
        """
        self._check_closed()
        file, pickler = self._writer or _new_writer()
        self._writer = None             # a nested call, as of a signal's handler, makes a new pickler
        with packing() as segments:
            pickler.dump(obj)
        data = file.getvalue()
        self._posted.extend(_parts(data, segments))
        if len(data) <= _USUAL:         # the memo of a larger message would stay large
            pickler.clear_memo()
            file.seek(0)
            file.truncate()
            self._writer = file, pickler
        return self.flush()

    def flush(self):
        """Sends waiting messages as far as the pipe accepts them; returns whether all were sent."""
        while self._posted:
            data, segments = self._posted[0]
            try:
                done = send(self._handle, data, [s.fd for s in segments], False)
            except OSError as e:
                if e.errno != errno.ETOOMANYREFS:       # see _send_bytes
                    raise
                time.sleep(0.001)
                return False
            if done < len(data):
                self._posted[0] = (memoryview(data)[done:], ()) if done else (data, segments)
                return False
            self._posted.popleft()
        return True

    def recv(self):
        with unpacking():
            return reduction.ForkingPickler.loads(self.recv_bytes())

    # The standard module's methods need several calls where these two need one for almost every message.

    def recv_bytes(self, maxlength=None):
        if maxlength is not None or not self._readable or self._handle is None:
            return super().recv_bytes(maxlength)
        transit.arrived = descriptors = Descriptors()
        return receive(self._handle, descriptors)

    def send_bytes(self, buf, *args, **keywords):
        if type(buf) is not bytes or args or keywords or not self._writable or self._handle is None:
            super().send_bytes(buf, *args, **keywords)
        else:
            self._send_bytes(buf)

    def _send_bytes(self, buf):
        segments, transit.outgoing = transit.outgoing, transit.outgoing and []
        for data, some in _parts(buf, segments or ()):
            pause = 0.001
            while True:
                try:
                    send(self._handle, data, [segment.fd for segment in some], True)
                    break
                except OSError as e:
                    # The user's limit of descriptors on their way is reached, so the pipe counts as full.
                    if e.errno != errno.ETOOMANYREFS:
                        raise
                time.sleep(pause)
                pause = min(2 * pause, 0.05)

    def _recv_bytes(self, maxsize=None):
        transit.arrived = descriptors = Descriptors()
        data = receive(self._handle, descriptors, maxsize)
        if data is None:
            return None
        buf = io.BytesIO(data)
        buf.seek(0, os.SEEK_END)        # the position that the standard module's buffer has
        return buf


def _new_writer():
    file = io.BytesIO()
    return file, reduction.ForkingPickler(file)


def _parts(buf, segments):
    """(bytes, segments whose descriptors go with them) for the parts of a message, in order."""
    head = _HEAD.pack(len(buf), len(segments))
    if len(segments) <= AT_ONCE and len(buf) <= 16384:
        return [(head + buf, segments)]
    parts = [(head, segments[:AT_ONCE])]
    parts += [(b"\0", segments[i:i + AT_ONCE]) for i in range(AT_ONCE, len(segments), AT_ONCE)]
    if len(buf):
        parts.append((buf, ()))
    return parts


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
    """An object in a queue, sent by the queue's thread. The thread that calls ``put`` pickles it. So its tensors are in
    shared memory when ``put`` returns, and later changes by the caller go to shared memory."""

    def __init__(self, content):
        self.content, self.segments = content, None
        self.lock = threading.Lock()

    def pack(self):
        """Pickles the object once it is in the queue; if that fails, the queue's thread reports the error."""
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
