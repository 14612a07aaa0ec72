"""PyTorch's files: the zip archive of today and the stream of pickles of before 2020, written and read without torch.

Archive: ``archive/data.pkl`` is the pickle, ``archive/data/N`` the bytes of storage N, ``archive/byteorder`` their byte
order. Stream: a magic number, a version, facts about the machine, the pickle, the list of storages, and each one as the
number of its elements and their bytes, always little-endian.
"""

import io
import mmap as mmap_module
import os
import pickle
import sys

import ptcore
from ptcore.serialization import _constructors, _zip
from ptcore.serialization._constructors import StorageType, TypedStorage
from ptcore.serialization._files import bytes_of, exactly, fill, pieces_of
from ptcore.serialization._pickle_reader import Reader
from ptcore.serialization._pickle_writer import Writer

_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001


# -- writing ---------------------------------------------------------------------------------------------------

def write_zip(file, obj):
    """Writes `obj` as an archive."""
    writer = Writer()
    data = writer.dump(obj)
    archive = _zip.Writer(file)

    def add(name, data):
        archive.add(f"archive/{name}", len(data), (data,))

    add("data.pkl", data)
    add(".format_version", b"1")
    add(".storage_alignment", b"64")
    add("byteorder", sys.byteorder.encode())
    for entry in writer.storages:
        archive.add(f"archive/data/{entry.key}", entry.storage.nbytes(), pieces_of(entry.storage))
    add("version", b"3\n")
    archive.close()


def write_stream(file, obj):
    """Writes `obj` as a stream of pickles."""
    writer = Writer(legacy=True)
    data = writer.dump(obj)
    sizes = {"short": 2, "int": 4, "long": 4}
    for part in (_MAGIC, _VERSION, {"protocol_version": _VERSION, "little_endian": True, "type_sizes": sizes}):
        file.write(Writer().dump(part))
    file.write(data)
    storages = sorted(writer.storages, key=lambda entry: entry.key)
    file.write(Writer().dump([entry.key for entry in storages]))
    for entry in storages:
        file.write((entry.storage.nbytes() // entry.itemsize).to_bytes(8, "little"))
        for piece in pieces_of(_swapped(entry) if sys.byteorder == "big" else entry.storage):
            file.write(piece)


def _swapped(entry):
    flat = bytes_of(entry.storage).cpu().clone()
    _swap(flat, entry.dtype)
    return flat.untyped_storage()


def _swap(flat, dtype):
    """Turns the bytes of each element around."""
    item = dtype.itemsize // (2 if dtype.is_complex else 1)
    if item > 1 and flat.numel():
        flat.copy_(flat.view(-1, item).flip(1).reshape(-1))


# -- reading ---------------------------------------------------------------------------------------------------

class Options:
    """How a file is read: `place` as in :class:`Reader`, whether to leave the data out (meta), to map, to unpickle."""

    def __init__(self, place, meta, mmap, weights_only, encoding):
        self.place, self.meta, self.mmap, self.weights_only, self.encoding = place, meta, mmap, weights_only, encoding

    def read(self, file, persistent, size):
        """One pickle with tensors in it."""
        if self.weights_only:
            return Reader(file, persistent, size=size, place=self.place, encoding=self.encoding).load()
        return _Unpickler(file, persistent, self, size).load()


class _Unpickler(pickle.Unpickler):
    """Runs whatever a file names; PyTorch's names still lead to the table, since they have no counterpart here."""

    def __init__(self, file, persistent, options, size):
        super().__init__(file, encoding=options.encoding)
        self.persistent_load = persistent
        self._reader = Reader(file, persistent, size=size, place=options.place)

    def find_class(self, module, name):
        if module.partition(".")[0] != "torch":
            return super().find_class(module, name)
        try:
            found = _constructors.find(module, name, _constructors.added())
        except pickle.UnpicklingError:
            raise NotImplementedError(f"the file holds a {module}.{name}, which there is not here; save its "
                                      "state_dict() with PyTorch") from None
        call = _constructors.CALLS.get(id(found))
        if call is None or isinstance(found, type):
            return found
        return _Bound(found, call, self._reader)


class _Bound:
    """A function of the table with its reader."""

    def __init__(self, function, call, reader):
        self.function, self.call, self.reader = function, call, reader

    def __call__(self, *args):
        return self.call(self.reader, *(a.function if isinstance(a, _Bound) else a for a in args))


def read(file, options):
    """The object in an open file, from where it stands on."""
    begin = file.tell()
    size = file.seek(0, os.SEEK_END) - begin
    file.seek(begin)
    magic = file.read(4)
    file.seek(begin)
    if magic == b"PK\3\4":
        return _read_zip(file, begin, size, options)
    if options.mmap:
        raise ValueError("load: mmap=True is for archives, this file has the layout of before PyTorch 1.6")
    return _read_stream(file, size, options)


class _Storages:
    """The storages of a file by key; ``get(key, nbytes, dtype)`` makes a tensor of bytes on the CPU or on meta."""

    def __init__(self, options, get):
        self._options, self._get = options, get
        self.made = {}

    def find(self, name):
        """What a persistent id stands for."""
        if len(name) not in (5, 6) or _text(name[0]) != "storage" or not isinstance(name[1], StorageType):
            raise ValueError("a reference to a storage is damaged")
        dtype, key, location, number = name[1].dtype, _key(name[2]), _text(name[3]), name[4]
        if type(location) is not str or type(number) is not int or not 0 <= number < 1 << 60:
            raise ValueError("a reference to a storage is damaged")
        nbytes = number * (1 if dtype is None else dtype.itemsize)
        if key not in self.made:
            flat = self._get(key, nbytes, dtype)
            self.made[key] = self._options.place(flat, location).untyped_storage(), dtype
        storage = self.made[key][0]
        if dtype is None:
            return storage
        start = 0
        if len(name) == 6 and name[5] is not None:  # a part of it, as PyTorch had them before 0.4
            _, start, number = name[5]
            if any(type(n) is not int or not 0 <= n < 1 << 60 for n in (start, number)):
                raise ValueError("a reference to a storage is damaged")
            start, nbytes = start * dtype.itemsize, number * dtype.itemsize
        if start + nbytes > storage.nbytes():
            raise ValueError(f"storage {key} has {storage.nbytes()} bytes, {start + nbytes} are used")
        return TypedStorage(storage, dtype, start, nbytes)


def _key(value):
    value = _text(value)
    if type(value) not in (str, int):
        raise ValueError("the key of a storage is no text")
    return str(value)


def _text(value):
    return value.decode("ascii") if type(value) is bytes else value


def _read_zip(file, begin, size, options):
    archive = _zip.Reader(file, begin, size)
    entries = archive.entries
    folder = next((name[:-8] for name in entries if name.count("/") == 1 and name.endswith("/data.pkl")), None)
    if folder is None:
        raise ValueError("the archive has no data.pkl")
    if folder + "constants.pkl" in entries:
        raise NotImplementedError("the file is a TorchScript program, not a checkpoint")
    order = archive.read(folder + "byteorder").decode() if folder + "byteorder" in entries else "little"
    if order not in ("little", "big"):
        raise ValueError("the byte order of the archive is unknown")
    swap = order != sys.byteorder
    mapped = None
    if options.mmap:
        mapped = memoryview(mmap_module.mmap(file.fileno(), 0, access=mmap_module.ACCESS_COPY))

    def get(key, nbytes, dtype):
        name = f"{folder}data/{key}"
        if name not in entries:
            raise ValueError(f"the archive has no storage {key}")
        entry = entries[name]
        if entry.size < nbytes:
            raise ValueError(f"storage {key} has {entry.size} bytes, {nbytes} are used")
        if options.meta:
            return ptcore.empty(entry.size, dtype=ptcore.uint8, device="meta")
        start = begin + entry.start
        if mapped is not None and entry.size and not (swap or entry.deflated or start % 16):
            return ptcore.frombuffer(mapped[start:start + entry.size], dtype=ptcore.uint8)
        flat = ptcore.empty(entry.size, dtype=ptcore.uint8)
        fill(flat, archive.readinto(name))
        if swap and dtype is not None:
            _swap(flat, dtype)
        return flat

    data = archive.read(folder + "data.pkl")
    return options.read(io.BytesIO(data), _Storages(options, get).find, max(size, len(data)))


def _read_stream(file, size, options):
    begin = file.tell()

    def plain():
        return Reader(file, size=size).load()

    if file.read(257 + 5)[257:] == b"ustar":
        raise NotImplementedError("the file has the tar layout of PyTorch 0.1, which cannot be loaded")
    file.seek(begin)
    if plain() != _MAGIC or plain() != _VERSION:
        raise ValueError("it does not begin as a file of PyTorch does")
    plain()
    left = size

    def get(key, nbytes, dtype):
        nonlocal left
        left -= nbytes
        if dtype is None or left < 0:
            raise ValueError(f"storage {key} is larger than the file")
        return ptcore.empty(nbytes, dtype=ptcore.uint8, device="meta" if options.meta else "cpu")

    storages = _Storages(options, get)
    result = options.read(file, storages.find, size)
    keys = dict.fromkeys(map(_key, plain()))
    if keys.keys() != storages.made.keys():  # none may stay as it was allocated
        raise ValueError("its storages are not those of its tensors")
    readinto = exactly(file)
    for key in keys:
        storage, dtype = storages.made[key]
        flat = bytes_of(storage)
        number = int.from_bytes(file.read(8), "little")
        if number * dtype.itemsize != storage.nbytes():
            raise ValueError(f"storage {key} has {number} elements, {storage.nbytes() // dtype.itemsize} are used")
        if options.meta:
            file.seek(storage.nbytes(), os.SEEK_CUR)
            continue
        fill(flat, readinto)
        if sys.byteorder == "big":
            _swap(flat, dtype)
    return result


def seekable(file):
    """`file`, or its content where it cannot be read twice."""
    try:
        can = file.seekable() and hasattr(file, "readinto")
    except AttributeError:
        can = False
    return file if can else io.BytesIO(file.read())
