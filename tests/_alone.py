"""Which tests run alone, and which run together in one worker: what others would disturb, or would disturb others.

``alone``: what kills, stops and waits, and is wrong where the machine is busy; while one runs, the other workers wait.
``counts``: what counts descriptors, segments or blocks of memory, of its own process or of a folder that processes
share; one test after another, beside what counts nothing. It runs first, since then it is all in one worker.
"""
import contextlib
import os
import re

import _walk

try:
    import fcntl
except ImportError:             # Windows: tests with the marker run beside others
    fcntl = None

# Folders whose tests count, each of them.
COUNTING = ("multiprocessing",)
# What a test outside them says that belongs to one of the two markers.
DISTURBED = re.compile(
    r"/proc/self|/proc/\{|/dev/shm|memory_stats\(|memory_allocated\(|getrusage|tracemalloc"     # counts and totals
    r"|SIG(KILL|TERM|INT|USR1|ALRM)|os\.kill|\.kill\(\)")                                       # signals


def place(item):
    """The key by which tests are ordered. Xdist's ``worksteal`` gives one worker the first half of all tests, in order,
    and others take from its end: what counts has to stand before the rest."""
    return 0 if item.get_closest_marker("alone") else 1 if item.get_closest_marker("counts") else 2


WORKER = False          # whether this process is a worker of xdist, not one that a test of a worker has started
_locks = []


@contextlib.contextmanager
def machine(alone, counts):
    """Holds the machine during a test: together with the tests of other workers, or alone.

    A test that runs alone keeps the turn, so that no test of another worker starts before it has ended. A test that
    counts waits, in the room, for another worker's that counts.
    """
    if fcntl is None or not WORKER:
        yield
        return
    if not _locks:
        _walk.FOLDER.mkdir(exist_ok=True)
        for name in ("turn.lock", "room.lock", "count.lock"):
            _locks.append(os.open(_walk.FOLDER / name, os.O_CREAT | os.O_RDWR, 0o600))
    turn, room, count = _locks
    fcntl.flock(turn, fcntl.LOCK_EX)
    try:
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        if not alone:
            fcntl.flock(turn, fcntl.LOCK_UN)
            if counts:
                fcntl.flock(count, fcntl.LOCK_EX)
        yield
    finally:
        for lock in reversed(_locks):
            fcntl.flock(lock, fcntl.LOCK_UN)
