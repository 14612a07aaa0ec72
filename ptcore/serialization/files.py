"""The parts that all formats share: the error of damaged files, transfer of bytes of storages, mapped files, and
``map_location``.

Bytes are transferred through a scratch tensor. A view of a storage's own memory would fix its address, so that it could
not be resized or moved to shared memory later.
"""

import mmap as mmap_module

import ptcore
from ptcore._errors import DeviceError, OutOfMemoryError
from ptcore._untyped_storage import UntypedStorage
from ptcore.serialization._options import get_default_mmap_options, packages, placed, skips_data

MAX_DEPTH = 100  # levels of nested containers that are written
_CHUNK = 1 << 20
_MAX_COLLISIONS = 200


class CorruptFileError(RuntimeError, ValueError):
    """A file that is truncated, damaged or made to do harm."""


class CallerError(BaseException):
    """An exception of the caller's function, which says nothing about the file."""

    def __init__(self, error):
        self.error = error


class Collisions:
    """Counts keys of a container with equal hashes. Files can be made in which all keys have one hash; then each new
    key would be compared with all earlier ones. Tuples and numbers have predictable hashes, text does not.
    """

    def __init__(self):
        self._numbers, self._made = {}, 0

    def fresh(self):
        """A number for a new container, whose ``id`` may have belonged to another one before."""
        self._made -= 1
        return self._made

    def add(self, container, key):
        """Raises if too many keys of this container (an ``id``, or a fresh number) share the hash of `key`."""
        at = container, hash(key)
        number = self._numbers[at] = self._numbers.get(at, 0) + 1
        if number > _MAX_COLLISIONS:
            raise ValueError("the keys of a dictionary or set are made to collide")


def bytes_of(storage):
    """The storage as a tensor of bytes on its device."""
    return ptcore.empty(0, dtype=ptcore.uint8, device=storage.device).set_(storage)


def dense_bytes(tensor):
    """The elements of a tensor in order, as a tensor of bytes on its device."""
    tensor = tensor.detach().contiguous()
    start = tensor.storage_offset() * tensor.element_size()
    return bytes_of(tensor.untyped_storage())[start:start + tensor.numel() * tensor.element_size()]


def swap_bytes(flat, dtype):
    """Turns the bytes of each element around, in a tensor of bytes."""
    item = dtype.itemsize // (2 if dtype.is_complex else 1)
    if item > 1 and flat.numel():
        flat.copy_(flat.view(-1, item).flip(1).reshape(-1))


def pieces_of(flat):
    """The memory of a tensor of bytes, piece by piece as memoryviews; each is valid until the next."""
    size = flat.numel()
    scratch = ptcore.empty(min(size, _CHUNK), dtype=ptcore.uint8, device="cpu")
    view = memoryview(scratch) if size else None
    for start in range(0, size, _CHUNK):
        n = min(_CHUNK, size - start)
        scratch[:n].copy_(flat[start:start + n])
        yield view[:n]


def zeros(nbytes):
    """`nbytes` zeros in pieces."""
    piece = bytes(min(nbytes, 1 << 20))
    for start in range(0, nbytes, len(piece) or 1):
        yield piece[:nbytes - start]


def _mapped(file):
    if get_default_mmap_options() == getattr(mmap_module, "MAP_SHARED", None):
        with open(file.name, "r+b") as writable:
            return mmap_module.mmap(writable.fileno(), 0, access=mmap_module.ACCESS_WRITE)
    return mmap_module.mmap(file.fileno(), 0, access=mmap_module.ACCESS_COPY)


class Source:
    """Makes tensors from the bytes of a file, which are read, mapped or left out.

    Parameters
    ----------
    file : file
    mapped : bool
        Whether tensors are mapped over the file if possible. The map is private (writes to a tensor do not reach the
        file) unless `set_default_mmap_options` says otherwise. It lives as long as the last of the tensors, even if the
        file is renamed or removed.
    meta : bool
        Whether the data are left out.
    """

    def __init__(self, file, mapped, meta):
        self.meta = meta
        self._map = None
        if mapped and not meta:
            self._map = memoryview(_mapped(file))

    def take(self, nbytes, readinto, start=None, alignment=1):
        """A tensor of bytes.

        Parameters
        ----------
        nbytes : int
        readinto : function
            Gives the function (memoryview) that reads them.
        start : int, optional
            The position of the bytes in the file, if they are stored unchanged.
        alignment : int
            `start` must be a multiple of this, so that the elements are aligned.
        """
        if self.meta:
            return ptcore.empty(nbytes, dtype=ptcore.uint8, device="meta")
        if self._map is not None and nbytes and start is not None and start % alignment == 0:
            return ptcore.frombuffer(self._map[start:start + nbytes], dtype=ptcore.uint8)
        flat = ptcore.empty(nbytes, dtype=ptcore.uint8, device="cpu")
        if skips_data():
            return flat
        fill(flat, readinto())
        return flat


def fill(flat, readinto):
    """Fills a tensor of bytes by ``readinto(memoryview)``, which must fill its argument."""
    size = flat.numel()
    scratch = ptcore.empty(min(size, _CHUNK), dtype=ptcore.uint8, device="cpu")
    view = memoryview(scratch) if size else None
    for start in range(0, size, _CHUNK):
        n = min(_CHUNK, size - start)
        readinto(view[:n])
        flat[start:start + n].copy_(scratch[:n])


def exactly(file):
    """A ``readinto`` of a file that fills its argument or raises."""

    def readinto(view):
        done = 0
        while done < len(view):
            got = file.readinto(view[done:])
            if not got:
                raise ValueError("the file ends too early")
            done += got

    return readinto


def _sent(tensor, device, why="a tensor was saved on"):
    """The tensor on a device. `why` begins the message of an error."""
    if packages:
        storage = placed(tensor.untyped_storage(), str(device))
        if storage is not None:
            return _over(tensor, storage)
    if str(tensor.device) == str(device):
        return tensor
    try:
        return tensor.to(device)
    except OutOfMemoryError:
        raise
    except RuntimeError as error:
        raise DeviceError(f"load: {why} {str(device)[:100]}, which cannot be used here ({error}); "
                          "map_location='cpu' loads it to the CPU") from error


def _over(tensor, storage):
    """A tensor with the dtype, shape and strides of another one, over a storage."""
    return ptcore.empty(0, dtype=tensor.dtype, device=storage.device).set_(
        storage, tensor.storage_offset(), tensor.shape, tensor.stride())


def placer(map_location):
    """A function of (tensor, name of the saved device) that moves the tensor as `map_location` says."""
    if map_location is None:
        return _sent
    if isinstance(map_location, dict):
        table = {str(k): str(v) for k, v in map_location.items()}
        return lambda tensor, saved: (
            _sent(tensor, table[saved], "map_location wants") if saved in table else _sent(tensor, saved))
    if isinstance(map_location, (str, ptcore.device)):
        device = ptcore.device(map_location)
        return lambda tensor, saved: _sent(tensor, device, "map_location wants")
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
            return _sent(tensor, chosen, "map_location wants")
        if chosen is storage:
            return tensor
        if not isinstance(chosen, UntypedStorage):
            raise CallerError(TypeError("load: map_location must return a storage, a device or None, got "
                                        f"{type(chosen).__name__}"))
        return _over(tensor, chosen)

    return by_function
