"""What processes share on disk: where compiled things are kept, and files that one process at a time holds."""
import os
import sys


def cache_dir(part):
    """A folder of the cache, which need not exist: in ``$PTCORE_CACHE_DIR``, or with the user's other caches."""
    from pathlib import Path
    named = os.environ.get("PTCORE_CACHE_DIR")
    if named:
        return Path(named) / part
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "ptcore" / part


def hold(fd, on):
    """Waits until no other process holds a file, and holds it; or lets the next one do so.

    A child that was forked meanwhile keeps the file, and what is held of it, beyond its closing.
    """
    if sys.platform == "win32":
        import msvcrt
        os.lseek(fd, 0, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_LOCK if on else msvcrt.LK_UNLCK, 1)
    else:
        import fcntl
        fcntl.flock(fd, fcntl.LOCK_EX if on else fcntl.LOCK_UN)
