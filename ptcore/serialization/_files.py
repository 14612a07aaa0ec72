"""What all formats share: the error of damaged files, writing that never destroys an older file, moving the bytes of
storages, and where ``map_location`` puts them.

Bytes are moved through a scratch tensor: a view of a storage's own memory would fix its address for good (it could
neither be resized nor moved to shared memory afterwards).
"""

import contextlib
import os
import time

import ptcore
from ptcore._errors import DeviceError, OutOfMemoryError

MAX_DEPTH = 100  # levels of containers that are written
_CHUNK = 1 << 20
_OLD = 60  # seconds


class CorruptFileError(RuntimeError, ValueError):
    """A file that is truncated, damaged or made to do harm."""


class CallerError(BaseException):
    """An exception of a function that the caller gave: it says nothing about the file."""

    def __init__(self, error):
        self.error = error


def write_atomically(path, write):
    """Call ``write(file)`` on a file that takes the name `path` when it is complete and on the disk.

    Until then an older file of that name is untouched; its mode is kept. What processes that were killed while they
    wrote to `path` have left is removed.
    """
    path = os.path.realpath(path)
    folder, name = os.path.split(path)
    _remove_left(folder, f".{name}.")
    temporary = os.path.join(folder, f".{name}.{os.urandom(6).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o666)
    try:
        with open(descriptor, "wb") as file:
            _lock(descriptor)
            if hasattr(os, "fchmod") and os.path.exists(path):
                os.fchmod(descriptor, os.stat(path).st_mode & 0o7777)
            write(file)
            file.flush()
            os.fsync(descriptor)
            if os.name != "posix":  # where open files cannot be renamed; elsewhere the lock is held to the end
                file.close()
            os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    if os.name == "posix":  # the new name is on the disk once the folder is
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _lock(descriptor):
    """Whether this process now holds the file: one that is killed lets go of it."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _remove_left(folder, prefix):
    """Removes temporary files that nobody writes to: not held, and too old to be between its creation and its lock."""
    for entry in os.scandir(folder):
        if entry.name.startswith(prefix) and entry.name.endswith(".tmp"):
            with contextlib.suppress(OSError):
                if time.time() - entry.stat().st_mtime > _OLD:
                    with open(entry.path, "rb+") as file:
                        if _lock(file.fileno()):
                            os.unlink(entry.path)


def bytes_of(storage):
    """The storage as a tensor of bytes on its device."""
    return ptcore.empty(0, dtype=ptcore.uint8, device=storage.device).set_(storage)


def pieces_of(storage):
    """The bytes of a storage, piece by piece as memoryviews, each valid until the next."""
    flat = bytes_of(storage)
    size = flat.numel()
    scratch = ptcore.empty(min(size, _CHUNK), dtype=ptcore.uint8)
    view = memoryview(scratch) if size else None
    for start in range(0, size, _CHUNK):
        n = min(_CHUNK, size - start)
        scratch[:n].copy_(flat[start:start + n])
        yield view[:n]


def fill(flat, readinto):
    """Fill a tensor of bytes by ``readinto(memoryview)``, which has to fill what it is given."""
    size = flat.numel()
    scratch = ptcore.empty(min(size, _CHUNK), dtype=ptcore.uint8)
    view = memoryview(scratch) if size else None
    for start in range(0, size, _CHUNK):
        n = min(_CHUNK, size - start)
        readinto(view[:n])
        flat[start:start + n].copy_(scratch[:n])


def exactly(file):
    """The ``readinto`` of a file that fills what it is given or raises."""

    def readinto(view):
        done = 0
        while done < len(view):
            got = file.readinto(view[done:])
            if not got:
                raise ValueError("the file ends too early")
            done += got

    return readinto


def _sent(tensor, device):
    """The tensor on a device that a file or the caller names."""
    if str(tensor.device) == str(device):
        return tensor
    try:
        return tensor.to(device)
    except OutOfMemoryError:
        raise
    except RuntimeError as error:
        raise DeviceError(f"load: a tensor was saved on {device!s}, which cannot be used here ({error}); "
                          "map_location='cpu' loads it to the CPU") from error


def placer(map_location):
    """Function (tensor, name of the saved device) -> the tensor where `map_location` wants it."""
    if map_location is None:
        return _sent
    if isinstance(map_location, dict):
        table = {str(k): str(v) for k, v in map_location.items()}
        return lambda tensor, saved: _sent(tensor, table.get(saved, saved))
    if isinstance(map_location, (str, ptcore.device)):
        device = ptcore.device(map_location)
        return lambda tensor, saved: _sent(tensor, device)
    if not callable(map_location):
        raise TypeError("load: map_location must be a device, a str, a dict, a function or None, got "
                        f"{type(map_location).__name__}")

    def by_function(tensor, saved):
        storage = tensor.untyped_storage()
        try:
            chosen = map_location(storage, saved)
        except Exception as error:
            raise CallerError(error) from None
        if chosen is None:
            return _sent(tensor, saved)
        if isinstance(chosen, (str, ptcore.device)):
            return _sent(tensor, chosen)
        if chosen is storage:
            return tensor
        return ptcore.empty(0, dtype=tensor.dtype, device=chosen.device).set_(
            chosen, tensor.storage_offset(), tensor.shape, tensor.stride())

    return by_function
