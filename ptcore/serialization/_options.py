"""Settings of saving and loading. They hold for the thread, as in PyTorch; each thread begins with the defaults."""
import enum
import mmap
import os

from ptcore._contexts import Changed
from ptcore._state import set_setting, setting

_PRIVATE = getattr(mmap, "MAP_PRIVATE", None)


class LoadEndianness(enum.Enum):
    """Byte orders of files."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_crc32_options():
    """Whether `save` writes checksums into PyTorch's archives; True by default."""
    return setting("save crc32", True)


def set_crc32_options(compute_crc32):
    """Sets whether `save` writes checksums. Programs other than `load` may take an archive without them for damaged.

    >>> import ptcore
    >>> ptcore.serialization.set_crc32_options(False)
    >>> ptcore.serialization.get_crc32_options()
    False
    >>> ptcore.serialization.set_crc32_options(True)
    """
    if not isinstance(compute_crc32, bool):
        raise TypeError(f"set_crc32_options: compute_crc32 must be a bool, got {compute_crc32!r}")
    set_setting("save crc32", compute_crc32)


def get_default_load_endianness():
    """The byte order of archives that do not name theirs; None means the machine's."""
    return setting("load endianness")


def set_default_load_endianness(endianness):
    """Sets the byte order of archives that do not name theirs.

    >>> import ptcore
    >>> ptcore.serialization.set_default_load_endianness(ptcore.serialization.LoadEndianness.LITTLE)
    >>> ptcore.serialization.set_default_load_endianness(None)
    """
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("set_default_load_endianness: endianness must be a LoadEndianness or None, got "
                        f"{type(endianness).__name__}")
    set_setting("load endianness", endianness)


def get_default_mmap_options():
    """`mmap.MAP_PRIVATE` or `mmap.MAP_SHARED`: how `load` maps files."""
    return setting("load mmap", _PRIVATE)


class set_default_mmap_options(Changed):
    """Sets how `load(..., mmap=True)` maps files, at once or for a block.

    Parameters
    ----------
    flags : int
        `mmap.MAP_PRIVATE`, the default, or `mmap.MAP_SHARED`, with which writes to a tensor change the file.
    """

    def __init__(self, flags):
        if os.name == "nt":
            raise RuntimeError(f"set_default_mmap_options: flags cannot be set on Windows, got {flags}")
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError("set_default_mmap_options: flags must be mmap.MAP_PRIVATE or mmap.MAP_SHARED, got "
                             f"{flags}")
        super().__init__((None, {"load mmap": flags}))
        self._switch()


def skips_data():
    """Whether :class:`skip_data` is active."""
    return setting("skip data", False)


class skip_data(Changed):
    """Context in which `save` leaves out the elements of tensors, and `load` does not read elements.

    The file has its full size. The context has no effect on files in the format before PyTorch 1.6.

    Parameters
    ----------
    materialize_fake_tensors : bool, default: False
        Changes nothing.
    """

    def __init__(self, materialize_fake_tensors=False):
        super().__init__((None, {"skip data": True}))
        self.materialize_fake_tensors = materialize_fake_tensors


# (priority, tagger, deserializer), in order of use. ``_OWN`` has the priorities of ptcore's own devices.
packages = []
_OWN = {"cpu": 10, "cuda": 20, "meta": 22}


def register_package(priority, tagger, deserializer):
    """Registers functions that name the places of storages in files, and that make storages from these names.

    Parameters
    ----------
    priority : int
        Those with lower ones are asked first; 10 stands for the CPU, 20 for CUDA, 22 for ``meta``.
    tagger : callable
        Gets a storage that is saved, and returns the name of its place in the file, or None.
    deserializer : callable
        Gets a storage on the CPU and the name that the file gives; returns a storage, or None.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.serialization.register_package(30, lambda storage: None, lambda storage, location: None)
    """
    packages.append((priority, tagger, deserializer))
    packages.sort(key=lambda package: package[0])


def tag(storage):
    """The name of a storage's place, for a file."""
    device = storage.device
    for priority, tagger, _ in packages:
        if priority >= _OWN.get(device.type, priority + 1):
            break
        location = tagger(storage)
        if location is not None:
            if type(location) is not str:
                raise TypeError("save: a tagger of register_package must return a str or None, got "
                                f"{type(location).__name__}")
            return location
    return str(device)


def placed(storage, location):
    """The storage that a registered deserializer makes for the name of a place; None if there is none."""
    for priority, _, deserializer in packages:
        if priority >= _OWN.get(location.partition(":")[0], priority + 1):
            break
        result = deserializer(storage, location)
        if result is not None:
            return result
    return None


def fallback_order():
    """The word for the byte order of archives that do not name it."""
    import sys
    wanted = get_default_load_endianness() or LoadEndianness.NATIVE
    return sys.byteorder if wanted is LoadEndianness.NATIVE else wanted.name.lower()
