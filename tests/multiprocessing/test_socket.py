"""Messages of bytes and descriptors over a socket, by themselves."""
import errno
import os
import signal
import socket
import struct
import sys
import threading
import time

import pytest

from ptcore.multiprocessing import _socket

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sockets of the Unix family carry descriptors")


@pytest.fixture
def ends():
    a, b = socket.socketpair()
    yield a, b
    a.close()
    b.close()


def head(size, count=0):
    return struct.pack("!QI", size, count)


@pytest.mark.parametrize("size", [0, 1, 4096, 3_000_000])
def test_bytes_arrive(ends, size):
    a, b = ends
    data = os.urandom(size)
    thread = threading.Thread(target=_socket.send, args=(a.fileno(), memoryview(head(size) + data), [], True))
    thread.start()
    found = _socket.Descriptors()
    assert _socket.receive(b.fileno(), found) == data
    thread.join()
    assert found.count == 0


@pytest.mark.parametrize("count", [1, 2, 250, 251, 600])
def test_descriptors_arrive(ends, count):
    """Their own, closed by exec; those behind the first 250 with a byte each time."""
    a, b = ends
    with open(os.devnull) as file:
        fds = [file.fileno()] * count
        parts = [(b"\0", fds[k:k + 250]) for k in range(250, count, 250)]
        parts = [(head(3, count), fds[:250]), *parts, (b"abc", [])]
        for data, some in parts:
            assert _socket.send(a.fileno(), data, some, True) == len(data)
        found = _socket.Descriptors()
        assert _socket.receive(b.fileno(), found) == b"abc"
        assert found.count == count
        taken = [found.take(k) for k in range(count)]
        assert len(set(taken)) == count
        assert [found.take(k) for k in (0, count - 1, count, -1)] == [-1] * 4
        for fd in taken:
            assert os.fstat(fd).st_ino == os.fstat(file.fileno()).st_ino
            assert not os.get_inheritable(fd)
            os.close(fd)
        with pytest.raises(ValueError, match="at most 250 descriptors go at once, got 251"):
            _socket.send(a.fileno(), b"x", [file.fileno()] * 251, True)


def test_descriptors_that_nobody_takes_are_closed(ends):
    a, b = ends
    before = len(os.listdir("/dev/fd"))
    with open(os.devnull) as file:
        _socket.send(a.fileno(), head(0, 5), [file.fileno()] * 5, True)
    found = _socket.Descriptors()
    _socket.receive(b.fileno(), found)
    assert len(os.listdir("/dev/fd")) == before + 5
    os.close(found.take(2))
    del found
    assert len(os.listdir("/dev/fd")) == before


def test_what_a_full_socket_takes(ends):
    a, b = ends
    data = bytes(4_000_000)
    done = _socket.send(a.fileno(), data, [], False)
    assert 0 < done < len(data)
    assert _socket.send(a.fileno(), data, [], False) == 0
    left = done
    while left:
        left -= len(b.recv(left))


def test_a_message_that_is_too_long(ends):
    a, b = ends
    a.sendall(head(100))
    assert _socket.receive(b.fileno(), _socket.Descriptors(), 99) is None
    a.sendall(head(100) + bytes(100))
    assert _socket.receive(b.fileno(), _socket.Descriptors(), 100) == bytes(100)
    for size, error, match in ((2**63, OSError, "no message has 9223372036854775808 bytes"),
                               (2**64 - 1, OSError, "no message has"), (2**62, MemoryError, "^$")):
        a.sendall(head(size))
        with pytest.raises(error, match=match):
            _socket.receive(b.fileno(), _socket.Descriptors())


@pytest.mark.parametrize("sent", [0, 1, 11, 12, 15])
def test_an_end_that_goes(ends, sent):
    """As the standard module tells it: between two parts of a message it has ended, inside one it broke off."""
    a, b = ends
    a.sendall((head(4) + b"abcd")[:sent])
    a.close()
    with pytest.raises(EOFError) as caught:
        _socket.receive(b.fileno(), _socket.Descriptors())
    assert isinstance(caught.value, OSError) == (sent not in (0, 12))
    assert str(caught.value) == ("" if sent in (0, 12) else "got end of file during message")
    with pytest.raises(BrokenPipeError):
        _socket.send(b.fileno(), b"abc", [], True)


def test_errors_of_the_system(ends):
    a, _ = ends
    with open(os.devnull) as file:
        for call in (lambda: _socket.send(file.fileno(), b"abc", [], True),
                     lambda: _socket.receive(file.fileno(), _socket.Descriptors())):
            with pytest.raises(OSError, match="socket") as caught:
                call()
            assert caught.value.errno == errno.ENOTSOCK
    with pytest.raises(OSError, match="send: Bad file descriptor") as caught:
        _socket.send(a.fileno(), b"abc", [999_999], True)
    assert caught.value.errno == errno.EBADF
    for wrong in ((a.fileno(), "text", [], True), ("a", b"", [], True), (a.fileno(), b"", None, True),
                  (a.fileno(), b"abc", ["x"], True)):
        with pytest.raises(TypeError):
            _socket.send(*wrong)


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("receives", [True, False])
def test_signals_while_it_waits(ends, receives, number):
    """A handler runs at once, and what it raises ends the waiting; though only one signal comes."""
    a, b = ends

    class Told(Exception):
        pass

    ran = []

    def handler(*_):
        ran.append(time.monotonic())
        if len(ran) == number:
            raise Told

    def give_up():                      # else it would wait for ever
        a.close()
        b.shutdown(socket.SHUT_RDWR)

    wait = (lambda: _socket.receive(b.fileno(), _socket.Descriptors())) if receives else (
        lambda: _socket.send(a.fileno(), bytes(4_000_000), [], True))
    before = signal.signal(signal.SIGALRM, handler)
    watchdog = threading.Timer(10.0, give_up)
    watchdog.start()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1 if number > 1 else 0)
        with pytest.raises(Told):
            wait()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        watchdog.cancel()
    assert len(ran) == number


# -- messages that are posted ----------------------------------------------------------------------

@pytest.fixture
def pipe():
    if sys.platform != "linux":
        pytest.skip("connections that post are those that carry descriptors, on Linux alone; a thread sends elsewhere")
    from ptcore.multiprocessing.channels import Pipe
    here, there = Pipe()
    yield here, there
    here.close()
    there.close()


class Posting:
    """Posts another message while it is pickled, as a signal's handler may."""

    def __init__(self, connection):
        self.connection = connection

    def __reduce__(self):
        assert self.connection.post(["inner", 1.5])
        return str, ("outer",)


class Failing:
    def __reduce__(self):
        raise ValueError("not this one")


def test_posted_messages_are_whole(pipe):
    here, there = pipe
    shared = ["the same list"]
    assert here.post((shared, shared))
    first, second = there.recv()
    assert first is second
    assert first == shared
    shared.append("and another")                # a message knows nothing of those before it
    assert here.post((shared, "x" * 1000))
    assert there.recv() == (["the same list", "and another"], "x" * 1000)
    with pytest.raises(ValueError, match="not this one"):
        here.post([shared, Failing()])
    assert here.post((1, shared))
    assert there.recv() == (1, ["the same list", "and another"])


def test_posting_while_posting(pipe):
    here, there = pipe
    assert here.post([["before"], Posting(here), ["behind"]])
    assert there.recv() == ["inner", 1.5]
    assert there.recv() == [["before"], "outer", ["behind"]]
    assert here.post("next")
    assert there.recv() == "next"


def test_posting_tensors(pipe):
    import ptcore
    here, there = pipe
    for k in range(3):
        x = ptcore.full((50_000,), float(k))
        assert here.post([x, k])
        got, number = there.recv()
        assert number == k
        assert got.is_shared()
        got[0] = 7
        assert x[0] == 7
