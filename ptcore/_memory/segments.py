"""Segments: the files in memory that shared storages lie in, by one of two strategies.

``file_descriptor``: a file without a name. The kernel frees it with the last process that maps it and the last
message that carries its descriptor, however they end.

``file_system``: a file with a name, for messages that can carry no descriptor. At its beginning stands who needs it:
processes, each with the time it was started at and a count (one for its mapping, one for each message on its way).
Whoever changes the entries leaves out those of dead processes, and the last one removes the file; a sweep does so for
the files of processes that were killed.

Small storages share a segment with others of about their size, so that ten thousand of them need about a hundred
descriptors, and so that what is kept for long keeps only its like. A place is given once: memory that another process
may still show is never given again.
"""
import itertools
import os
import struct
import sys
import tempfile
import threading
import time
import weakref
from multiprocessing import parent_process, util

from ptcore._cache import hold
from ptcore._errors import OutOfMemoryError
from ptcore._untyped_storage import Segment, known

LARGE = 64 << 10        # from here on a storage has a segment of its own, while there are descriptors
STRATEGIES = ("file_descriptor", "file_system") if sys.platform == "linux" else ("file_system",)
strategy = STRATEGIES[0]

_lock = threading.RLock()
_late = []              # names that are to be released
_numbers = itertools.count(1)   # of segments; a forked child goes on with them
_slabs = {}             # (class, bytes of a place) -> [segment, offset of its next place]


class _Release:
    """``with _lock, late``: one thread at a time; names whose segment is collected inside are released at the end.

    So ``_late`` may grow at any moment; only the one who holds the lock shortens it. The lock is no part of this class:
    a signal's handler may raise between any two of its lines, and would leave it locked.
    """

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        while _late:
            key = _late.pop()
            try:
                _edit(key, {_me(): -1})
            except OSError:         # out of descriptors: the next one tries again, at last the end of the process
                _late.append(key)
                break


late = _Release()


def allocate(nbytes):
    """(segment, offset) of bytes that nobody has had."""
    with _lock, late:
        kind = Anonymous if strategy == "file_descriptor" else Named
        shift = len(known) // kind.step()
        if nbytes > LARGE << shift:
            return kind.new(kind.first + nbytes), kind.first
        place = max(64, 1 << max(nbytes - 1, 0).bit_length())
        slab = _slabs.get((kind, place))
        if slab is None or slab[1] + place > slab[0].nbytes:
            count = max(16 << shift, LARGE // place)
            slab = _slabs[kind, place] = [kind.new(kind.first + count * place), kind.first]
        slab[1] += place
        return slab[0], slab[1] - place


def new_segment(nbytes):
    """A segment with so many bytes from ``segment.first`` on."""
    kind = Anonymous if strategy == "file_descriptor" else Named
    return kind.new(kind.first + nbytes)


def find(key):
    """The segment of a key, if this process maps it."""
    found = known.get(key)
    return found and found()


def _of_names():
    return [segment for key in list(known) if isinstance(segment := find(key), Named)]


class Anonymous(Segment):
    """A file without a name; ``fd`` is what other processes are given."""

    first = 0

    def __init__(self, fd, nbytes, key):
        known[key] = weakref.ref(self)
        self.key = key

    @classmethod
    def owning(cls, fd, nbytes, key):
        """The segment of a descriptor that it closes. A signal's handler may raise in between: rather not at all than
        twice."""
        try:
            segment = cls(fd, nbytes, key)
        except BaseException:
            os.close(fd)
            raise
        segment.fd = fd
        return segment

    @staticmethod
    def step():
        """Segments after which the next ones are twice as large: far fewer than the process may open."""
        import resource
        allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return max(4, min(allowed if allowed > 0 else 4096, 4096) // 32)

    @classmethod
    def new(cls, nbytes):
        try:
            if hasattr(os, "memfd_create"):
                fd = os.memfd_create("ptcore")
            else:
                fd = os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as e:
            raise OSError(e.errno, f"shared memory: no descriptor for {nbytes} bytes ({e.strerror}); raise the limit "
                                   "(ulimit -n), or set_sharing_strategy('file_system')") from None
        try:
            os.ftruncate(fd, nbytes)
        except OSError as e:
            os.close(fd)
            raise OutOfMemoryError(f"shared memory: {nbytes} bytes have no room ({e.strerror})") from None
        return cls.owning(fd, nbytes, _new_key())

    @classmethod
    def received(cls, fd, nbytes, key):
        """The segment behind a descriptor, which it takes over."""
        with _lock, late:
            segment = find(key)
            if segment is None:
                return cls.owning(fd, nbytes, key)
            os.close(fd)
            return segment


# -- files with names ------------------------------------------------------------------------

HEADER = 4096
SWEEP = 10.0            # seconds between two looks for what the dead have left
_ENTRY = struct.Struct("<qqq")
_FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()
_swept = -SWEEP
_watching = None        # the process that has been told to clean up at its end


def _room():
    """What to do about a folder that is full, for a message."""
    try:
        found = os.statvfs(_FOLDER)
    except (AttributeError, OSError):
        return ""
    size = found.f_blocks * found.f_frsize
    how = "TMPDIR names another folder"
    if _FOLDER == "/dev/shm":
        how = ("a container gets more by --shm-size=8g or --ipc=host; the sharing strategy 'file_descriptor' does not "
               "use it")
    return f", which holds {size // 2**20} MB, {found.f_bavail * found.f_frsize // 2**20} MB of them free: {how}"


class Named(Segment):
    """A file with a name, unlinked by the last process that needs it."""

    first = HEADER

    def __init__(self, fd, nbytes, key):
        known[key] = weakref.ref(self)
        self.key = key

    def close(self):
        """It has no descriptor, and is known for as long as it is mapped."""

    def __del__(self):
        if self.key is None:
            return
        _late.append(self.key)
        if not _lock._is_owned():
            with _lock, late:
                pass

    @staticmethod
    def step():
        return 1 << 62

    @classmethod
    def new(cls, nbytes):
        global _swept
        _watch()
        if time.monotonic() - _swept > SWEEP:
            _swept = time.monotonic()
            sweep()
        key = _new_key()
        path = os.path.join(_FOLDER, key)
        # Where the system can, a file gets its name when its entries are written: a sweep finds none without.
        nameless = hasattr(os, "O_TMPFILE")
        fd = (os.open(_FOLDER, os.O_TMPFILE | os.O_RDWR, 0o600) if nameless
              else os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), 0o600))
        try:
            _store(fd, {_me(): 1})
            if hasattr(os, "posix_fallocate"):      # a folder that is full must not become a SIGBUS
                os.posix_fallocate(fd, 0, nbytes)
            else:
                os.ftruncate(fd, nbytes)
            if nameless:
                os.link(f"/proc/self/fd/{fd}", path, src_dir_fd=fd)     # with a dir_fd links are followed
            return cls(fd, nbytes, key)
        except OSError as e:
            if not nameless:
                os.unlink(path)
            raise OutOfMemoryError(f"shared memory: {nbytes} bytes have no room in {_FOLDER} ({e.strerror})"
                                   f"{_room()}") from None
        finally:
            os.close(fd)

    def count_message(self):
        """Counts a message on its way, for the parent, who outlives its children; returns the process."""
        with _lock, late:
            parent = parent_process()
            guard = parent and (parent.pid, started(parent.pid))
            if guard is None or guard[1] is None:
                guard = _me()
            if not _edit(self.key, {guard: 1}):
                raise RuntimeError(f"shared memory: {self.key} was removed, its processes were killed; send a clone()")
            return guard

    @classmethod
    def received(cls, key, guard, nbytes):
        """The segment of a message that ``guard`` was counted for."""
        with _lock, late:
            segment = find(key)
            _watch()
            changes = {guard: -1}
            changes[_me()] = changes.get(_me(), 0) + (segment is None)      # the guard may be this process

            def mapped(path):       # by a descriptor of its own: a mapping keeps a file, and what is held of it
                with open(path, "r+b", buffering=0) as file:
                    return cls(file.fileno(), nbytes, key)

            made = _edit(key, changes, mapped if segment is None else lambda path: segment)
            if made is None and segment is None:
                raise RuntimeError(f"shared memory: {key} was removed before it was received: its sender was killed, "
                                   "or the message is read for the second time")
            return made or segment


def started(pid):
    """When a process was started, in a unit of the system (0 where it does not say); None if it does not run."""
    if sys.platform == "linux":
        try:
            with open(f"/proc/{pid}/stat", "rb") as f:
                state, *fields = f.read().rpartition(b")")[2].split()
        except OSError:
            return None
        return None if state in (b"Z", b"X") else int(fields[18])
    if sys.platform == "win32":
        import _winapi
        try:
            handle = _winapi.OpenProcess(_winapi.SYNCHRONIZE, False, pid)
        except OSError:
            return None
        try:
            return 0 if _winapi.WaitForSingleObject(handle, 0) == _winapi.WAIT_TIMEOUT else None
        finally:
            _winapi.CloseHandle(handle)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return 0


def _me():
    return os.getpid(), started(os.getpid())


def _store(fd, entries):
    packed = [_ENTRY.pack(*process, count) for process, count in entries.items()]
    # Behind a hundred living processes the next ones are not counted: they map what may have lost its name.
    os.lseek(fd, 0, os.SEEK_SET)
    os.write(fd, b"".join(packed[:100]) + bytes(_ENTRY.size))


def _edit(key, changes, then=lambda path: True):
    """Adds to the counts of a file's living processes, removes it where none is left, and returns then(path); None
    if there is no such file."""
    path = os.path.join(_FOLDER, key)
    try:
        file = open(path, "r+b", buffering=0)       # which is closed, and not held, wherever a signal's handler raises
    except (FileNotFoundError, PermissionError):
        return None
    with file:
        fd = file.fileno()
        hold(fd, True)
        try:
            return _change(fd, path, changes, then)
        finally:
            hold(fd, False)


def _change(fd, path, changes, then):
    written = os.read(fd, HEADER // _ENTRY.size * _ENTRY.size)
    if not written:             # it is just being made
        return None
    entries = dict(changes)
    for pid, start, count in _ENTRY.iter_unpack(written):
        if pid == 0:
            break
        if started(pid) == start:
            entries[pid, start] = entries.get((pid, start), 0) + count
    entries = {process: count for process, count in entries.items() if count > 0}
    result = then(path)
    _store(fd, entries)
    if not entries:
        try:
            os.unlink(path)
        except (FileNotFoundError, PermissionError):    # Windows: it is mapped; a later sweep removes it
            pass
    return result


def sweep(changes=()):
    """Removes the files that only dead processes needed."""
    for key in os.listdir(_FOLDER):
        if key.startswith(_PREFIX):
            _edit(key, changes)


def _leave():
    """At the end of the process: nothing is needed here, nor waited for."""
    with _lock, late:
        for segment in _of_names():
            segment.key = None
        sweep({_me(): -(1 << 62)})


def _watch(*forked):
    global _watching
    if _watching != os.getpid() or forked:
        _watching = os.getpid()
        # Below 0: after the children have been joined.
        util.Finalize(None, _leave, exitpriority=-100)


# -- names, and what a forked child begins with ---------------------------------------------------

def _namespace():
    """Process numbers mean nothing in another container that shows the same folder."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


_PREFIX = f"ptcore-{_namespace():x}-"


def _new_key():
    return f"{_PREFIX}{_own}-{next(_numbers)}"


def _begin():
    """Keys of this process's own, and no place that its parent may be giving away."""
    global _lock, _own
    _lock = threading.RLock()
    _own = os.urandom(8).hex()
    _late.clear()
    _slabs.clear()


def _after_fork():
    _begin()
    names = [segment.key for segment in _of_names()]
    for key in names:
        _edit(key, {_me(): 1})
    if names:
        _watch()


_begin()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
    # multiprocessing forgets in its children what is to be done at the end; this runs after it has.
    util.register_after_fork(late, lambda _: _watching == os.getpid() and _watch(True))
