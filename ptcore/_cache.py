"""The disk cache that processes share: its folders, and locks on files."""
import os
import sys


def cache_dir(part):
    """A folder of the cache, which need not exist: below ``$PTCORE_CACHE_DIR``, or with the user's other caches."""
    from pathlib import Path
    named = os.environ.get("PTCORE_CACHE_DIR")
    if named:
        return Path(named) / part
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ptcore" / part


def hold(fd, on):
    """Waits for the lock of a file and takes it, or with ``on=False`` releases it.

    A child forked meanwhile keeps the file open, and with it the lock, after this process has closed it.
    """
    if sys.platform == "win32":
        import msvcrt
        os.lseek(fd, 0, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_LOCK if on else msvcrt.LK_UNLCK, 1)
    else:
        import fcntl
        fcntl.flock(fd, fcntl.LOCK_EX if on else fcntl.LOCK_UN)
