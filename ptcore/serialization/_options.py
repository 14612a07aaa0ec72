"""Settings of saving and loading that hold for the whole process."""
import enum
import mmap
import os

settings = {"crc32": True, "endianness": None, "mmap": getattr(mmap, "MAP_PRIVATE", None), "skip": False}


class LoadEndianness(enum.Enum):
    """Byte orders of files."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_crc32_options():
    """Whether `save` writes checksums into PyTorch's archives; True by default."""
    return settings["crc32"]


def set_crc32_options(compute_crc32):
    """Sets whether `save` writes checksums. Programs other than `load` may take an archive without them for damaged.

    >>> import ptcore
    >>> ptcore.serialization.set_crc32_options(False)
    >>> ptcore.serialization.get_crc32_options()
    False
    >>> ptcore.serialization.set_crc32_options(True)
    """
    settings["crc32"] = bool(compute_crc32)


def get_default_load_endianness():
    """The byte order of archives that do not name theirs; None means the machine's."""
    return settings["endianness"]


def set_default_load_endianness(endianness):
    """Sets the byte order of archives that do not name theirs.

    >>> import ptcore
    >>> ptcore.serialization.set_default_load_endianness(ptcore.serialization.LoadEndianness.LITTLE)
    >>> ptcore.serialization.set_default_load_endianness(None)
    """
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("set_default_load_endianness: endianness must be a LoadEndianness or None, got "
                        f"{type(endianness).__name__}")
    settings["endianness"] = endianness


def get_default_mmap_options():
    """`mmap.MAP_PRIVATE` or `mmap.MAP_SHARED`: how `load` maps files."""
    return settings["mmap"]


class set_default_mmap_options:
    """Sets how `load(..., mmap=True)` maps files, at once or for a block.

    Parameters
    ----------
    flags : int
        `mmap.MAP_PRIVATE`, the default, or `mmap.MAP_SHARED`: then what is written to a tensor goes to the file.
    """

    def __init__(self, flags):
        if os.name == "nt":
            raise RuntimeError(f"set_default_mmap_options: flags cannot be set on Windows, got {flags}")
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError("set_default_mmap_options: flags must be mmap.MAP_PRIVATE or mmap.MAP_SHARED, got "
                             f"{flags}")
        self.before, settings["mmap"] = settings["mmap"], flags

    def __enter__(self):
        pass

    def __exit__(self, kind, value, trace):
        settings["mmap"] = self.before


class skip_data:
    """For a block: `save` leaves out the elements of tensors, `load` gives tensors whose elements are not read.

    The file is as long as ever. Neither holds for files of before PyTorch 1.6.

    Parameters
    ----------
    materialize_fake_tensors : bool, default: False
        Changes nothing.
    """

    def __init__(self, materialize_fake_tensors=False):
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self):
        self.before, settings["skip"] = settings["skip"], True

    def __exit__(self, kind, value, trace):
        settings["skip"] = self.before


def fallback_order():
    """The word for the byte order of archives that do not name theirs."""
    import sys
    wanted = settings["endianness"] or LoadEndianness.NATIVE
    return sys.byteorder if wanted is LoadEndianness.NATIVE else wanted.name.lower()
