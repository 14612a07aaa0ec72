"""Files that are written whole or not at all."""
import contextlib
import errno
import os
import time

from ptcore._memory.host import sync_folder

_OLD = 60  # seconds
_SHORT = 55  # letters of the file's name that a temporary name keeps, so that it is not too long


def write_atomically(path, write):
    """Calls ``write(file)`` on a temporary file, which gets the name `path` when it is complete and on the disk.

    Until then an older file of that name stays as it is; its mode is kept. Temporary files left by killed processes
    that wrote to `path` are removed.
    """
    path = os.path.realpath(path)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe is not replaced
        with open(path, "wb") as file:
            write(file)
        return
    folder, name = os.path.split(path)
    prefix = f".{name[:_SHORT]}."
    remove_left(folder, prefix)
    temporary = os.path.join(folder, f"{prefix}{os.urandom(6).hex()}.tmp")
    try:
        with _created(temporary, path) as file:
            _lock(file.fileno())
            if hasattr(os, "fchmod") and os.path.exists(path):
                os.fchmod(file.fileno(), os.stat(path).st_mode & 0o7777)
            write(file)
            file.flush()
            os.fsync(file.fileno())
            if os.name != "posix":  # other systems cannot rename an open file; on POSIX the lock is held to the end
                file.close()
            os.replace(temporary, path)
    except BaseException:  # an interrupt may come before the file is made, and after it has its name
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    if os.name == "posix":  # a new name is on the disk when its folder is
        _sync_folder(folder)


def _created(temporary, path):
    """A new file. An interrupt before it has a name here drops the object, which closes it; a descriptor would stay."""
    try:
        return open(temporary, "xb")
    except PermissionError as error:
        raise PermissionError(error.errno, "a file is written beside the one that it replaces, and "
                              f"{os.path.dirname(path)} cannot be written to", path) from None


def _sync_folder(folder):
    """Syncs a folder to the disk, if the file system can; some network file systems cannot."""
    try:
        sync_folder(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EBADF):
            raise


def _lock(descriptor):
    """Whether this process now holds the lock of the file. The lock of a killed process is released."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def remove_left(folder, prefix):
    """Removes temporary files that no process writes: unlocked ones that are too old to be waiting for their lock."""
    for entry in os.scandir(folder):
        if entry.name.startswith(prefix[:_SHORT + 1]) and entry.name.endswith(".tmp"):
            with contextlib.suppress(OSError):
                if time.time() - entry.stat().st_mtime > _OLD:
                    with open(entry.path, "rb+") as file:
                        if _lock(file.fileno()):
                            os.unlink(entry.path)


def write_text_atomically(path, text):
    """``write_atomically`` of a text in UTF-8."""
    write_atomically(path, lambda file: file.write(text.encode("utf-8", "surrogateescape")))
