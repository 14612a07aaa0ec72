"""PyTorch's formats, written and read without torch: the zip archive, and the stream of pickles of before 2020.

Archive: ``archive/data.pkl`` is the pickle, ``archive/data/N`` the bytes of storage N, ``archive/byteorder`` their byte
order. Stream: a magic number, a version, facts about the machine, the pickle, the list of storages, and each one as the
number of its elements and their bytes, always little-endian.
"""

import io
import os
import pickle
import sys

import ptcore
from ptcore.serialization import _constructors, zip_files
from ptcore.serialization._constructors import StorageType, StoredView, typed
from ptcore.serialization._options import fallback_order, skips_data
from ptcore.serialization._pickle_reader import Names, Reader
from ptcore.serialization._pickle_writer import Writer
from ptcore.serialization.files import CallerError, Source, bytes_of, exactly, fill, pieces_of, swap_bytes, zeros

_MAGIC = 0x1950A86A20F9469CFC6C
_MAGIC_PICKLED = b"\x8a\x0a" + _MAGIC.to_bytes(10, "little")
_VERSION = 1001
_ARCHIVE_VERSIONS = range(1, 11)  # versions that PyTorch 2 reads; it writes 3
_OTHER = ((b"\x1f\x8b", "a file compressed with gzip: load from gzip.open(path)"), (b"\x89HDF", "an HDF5 file"),
          (b"<", "a web page: the download failed"), (b"version https://git-lfs", "a pointer of Git LFS"))


# -- writing ---------------------------------------------------------------------------------------------------

def write_zip(file, obj, protocol=2, byteorder=True):
    """Writes `obj` as an archive."""
    writer = Writer(protocol=protocol)
    data = writer.dump(obj)
    archive = zip_files.Writer(file)

    def add(name, data):
        archive.add(f"archive/{name}", len(data), (data,))

    add("data.pkl", data)
    add(".format_version", b"1")
    add(".storage_alignment", b"64")
    if byteorder:
        add("byteorder", sys.byteorder.encode())
    for entry in writer.storages:
        nbytes = entry.storage.nbytes()
        archive.add(f"archive/data/{entry.key}", nbytes,
                    zeros(nbytes) if skips_data() else pieces_of(bytes_of(entry.storage)))
    add("version", b"3\n")
    archive.close()


def write_stream(file, obj, protocol=2, byteorder=True):
    """Writes `obj` as a stream of pickles, which names its own byte order."""
    writer = Writer(legacy=True, protocol=protocol)
    data = writer.dump(obj)
    sizes = {"short": 2, "int": 4, "long": 4}
    for part in (_MAGIC, _VERSION, {"protocol_version": _VERSION, "little_endian": True, "type_sizes": sizes}):
        file.write(Writer().dump(part))
    file.write(data)
    storages = sorted(writer.storages, key=lambda entry: entry.key)
    file.write(Writer().dump([entry.key for entry in storages]))
    for entry in storages:
        file.write((entry.storage.nbytes() // entry.itemsize).to_bytes(8, "little"))
        flat = bytes_of(entry.storage)
        if sys.byteorder == "big":
            flat = flat.clone()
            swap_bytes(flat, entry.dtype)
        for piece in pieces_of(flat):
            file.write(piece)


# -- reading ---------------------------------------------------------------------------------------------------

class Options:
    """How a file is read. `place` as in :class:`Reader`; `meta` leaves the data out; `mmap` maps the file; `objects`
    makes objects of the program's own classes; `module` has the ``Unpickler`` that runs the code of the file (None:
    nothing is run); `texts` has the unpickler's keywords about texts and names of Python 2."""

    def __init__(self, place, meta, mmap, module, texts, objects=False):
        self.place, self.meta, self.mmap, self.module, self.texts = place, meta, mmap, module, texts
        self.objects = objects

    def read(self, file, persistent, size, then=None):
        """Reads one pickle that contains tensors."""
        if self.module is None:
            options = {"size": size, "place": self.place, "then": then, **self.texts}
            if not self.objects:
                return Reader(file, persistent, **options).load()
            from ptcore.serialization._object_reader import ObjectReader

            return ObjectReader(file, persistent, **options, nested=self._nested).load()
        unpickler = type("_Unpickler", (_Lookup, self.module.Unpickler), {})(file, **self.texts)
        unpickler.persistent_load = persistent
        unpickler.reader = Reader(file, persistent, size=size, place=self.place, then=then)
        return unpickler.load()

    def _nested(self, file):
        """The storage in a file within a pickle, as ``pickle.dumps`` of PyTorch's tensors has it."""
        return read(file, Options(self.place, self.meta, False, None, self.texts))


class _Lookup:
    """Part of an unpickler that looks up PyTorch's names in the table, since ptcore has no modules of these names."""

    def find_class(self, module, name):
        if module.partition(".")[0] != "torch":
            return super().find_class(module, name)
        try:
            found = _constructors.find(module, name, _constructors.added())
        except pickle.UnpicklingError:
            from ptcore.serialization import _torch_names

            found = _torch_names.found(module, name)
            if found is not None:
                return found
            raise NotImplementedError(f"the file holds a {module}.{name}, which there is not here; save its "
                                      "state_dict() with PyTorch") from None
        call = _constructors.CALLS.get(id(found))
        if call is None or isinstance(found, type):
            return found
        return _Bound(found, call, self.reader)


class _Bound:
    """A function of the table, bound to its reader."""

    def __init__(self, function, call, reader):
        self.function, self.call, self.reader = function, call, reader

    def __call__(self, *args):
        return self.call(self.reader, *(a.function if isinstance(a, _Bound) else a for a in args))


def _kind_of(file):
    """The position at which a file begins, its first bytes, and whether it is an archive."""
    begin = file.tell()
    size = file.seek(0, os.SEEK_END) - begin
    file.seek(begin)
    magic = file.read(4)
    file.seek(begin)
    return begin, size, magic == b"PK\3\4"


def read_names(file):
    """The names in an open file that are not allowed."""
    begin, size, is_zip = _kind_of(file)
    if is_zip:
        archive, folder = _open_zip(file, begin, size)
        data = archive.read(folder + "data.pkl")
        return Names(io.BytesIO(data), size=len(data)).load()
    _begin_stream(file, size)
    return Names(file, size=size).load()


def read(file, options):
    """The object in an open file, from its present position on."""
    begin, size, is_zip = _kind_of(file)
    if is_zip:
        return _read_zip(file, begin, size, options)
    if options.mmap:
        _begin_stream(file, size)
        raise CallerError(RuntimeError(
            "load: mmap=True is for archives, this file has the layout of before PyTorch 1.6"))
    return _read_stream(file, size, options)


class _Storages:
    """The storages of a file by key; ``get(key, nbytes, dtype)`` makes a tensor of bytes on the CPU or on meta."""

    def __init__(self, options, get):
        self._options, self._get = options, get
        self.made = {}

    def find(self, name):
        """The storage or view of a persistent id."""
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
        if len(name) == 6 and name[5] is not None:  # a view of a part, as PyTorch saved storages before 0.4
            _, start, number = name[5]
            if any(type(n) is not int or not 0 <= n < 1 << 60 for n in (start, number)):
                raise ValueError("a reference to a storage is damaged")
            start, nbytes = start * dtype.itemsize, number * dtype.itemsize
        if start + nbytes > storage.nbytes():
            raise ValueError(f"storage {key} has {storage.nbytes()} bytes, {start + nbytes} are used")
        if len(name) == 6 and name[5] is not None:
            return StoredView(storage, dtype, start, nbytes)
        return typed(storage, dtype)


def _key(value):
    value = _text(value)
    if type(value) not in (str, int):
        raise ValueError("the key of a storage is no text")
    return str(value)


def _text(value):
    return value.decode("ascii") if type(value) is bytes else value


def _open_zip(file, begin, size):
    """The reader of an archive and the folder in it."""
    archive = zip_files.Reader(file, begin, size)
    entries = archive.entries
    folder = next((name[:-8] for name in entries if name.count("/") == 1 and name.endswith("/data.pkl")), None)
    if folder is None:
        arrays = any(name.endswith(".npy") for name in entries)
        raise ValueError("the archive has no data.pkl" + arrays * ", but arrays: an npz file's name has to end so")
    if folder + "constants.pkl" in entries:
        raise NotImplementedError("the file is a TorchScript program, not a checkpoint")
    _check_version(archive, folder)
    return archive, folder


def _check_version(archive, folder):
    """Raises for an archive of an unknown version, whose entries may have another meaning."""
    name = next((name for name in (folder + ".data/version", folder + "version") if name in archive.entries), None)
    number = b"" if name is None else archive.read(name).strip()
    if not number.isdigit() or len(number) > 18 or int(number) < _ARCHIVE_VERSIONS[0]:
        raise ValueError("the archive does not say which version of the layout it has")
    if int(number) not in _ARCHIVE_VERSIONS:
        raise NotImplementedError(f"the archive has version {int(number)} of PyTorch's layout, the newest that is "
                                  f"known is {_ARCHIVE_VERSIONS[-1]}")


def _read_zip(file, begin, size, options):
    archive, folder = _open_zip(file, begin, size)
    entries = archive.entries
    order = archive.read(folder + "byteorder").decode() if folder + "byteorder" in entries else fallback_order()
    if order not in ("little", "big"):
        raise ValueError("the byte order of the archive is unknown")
    swap = order != sys.byteorder
    source = Source(file, options.mmap, options.meta)

    def get(key, nbytes, dtype):
        name = f"{folder}data/{key}"
        if name not in entries:
            raise ValueError(f"the archive has no storage {key}")
        entry = entries[name]
        if entry.size < nbytes:
            raise ValueError(f"storage {key} has {entry.size} bytes, {nbytes} are used")
        moved = swap or entry.deflated
        flat = source.take(entry.size, lambda: archive.readinto(name), None if moved else begin + entry.start, 16)
        if swap and dtype is not None and not options.meta:
            swap_bytes(flat, dtype)
        return flat

    data = archive.read(folder + "data.pkl")
    return options.read(io.BytesIO(data), _Storages(options, get).find, max(size, len(data)))


def _begin_stream(file, size, plain=False):
    """Reads the headers before the object; with `plain` returns False for a pickle that has none."""
    begin = file.tell()
    head = file.read(257 + 5)
    if head[257:] == b"ustar":
        raise NotImplementedError("the file has the tar layout of PyTorch 0.1, which cannot be loaded")
    if not head:
        raise ValueError("it is empty, or read to its end")
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 32:
        raise ValueError("it looks like a safetensors file, whose name has to end so")
    for beginning, what in _OTHER:
        if head.startswith(beginning):
            raise ValueError(f"it looks like {what}")
    file.seek(begin)
    if plain and head[:1] == b"\x80":
        body = head[11:] if head[2:3] == b"\x95" else head[2:]          # behind the length of a frame
        if not body.startswith(_MAGIC_PICKLED):
            return False
    if Reader(file, size=size).load() != _MAGIC:
        raise ValueError("it does not begin as a file of PyTorch does")
    version = Reader(file, size=size).load()
    if type(version) is not int or not 0 <= version < 1 << 60:
        raise ValueError("it does not say which version of the layout it has")
    if version != _VERSION:
        raise NotImplementedError(f"the file has version {version} of the layout of before PyTorch 1.6, of which only "
                                  f"{_VERSION} is known")
    Reader(file, size=size).load()
    return True


def _read_stream(file, size, options):
    begin = file.tell()
    if not _begin_stream(file, size, options.objects):
        file.seek(begin)            # a pickle without storages beside it
        return options.read(file, None, size)
    left = size

    def get(key, nbytes, dtype):
        nonlocal left
        left -= nbytes
        if left < 0:
            raise ValueError(f"storage {key} is larger than the file")
        return ptcore.empty(nbytes, dtype=ptcore.uint8, device="meta" if options.meta else "cpu")

    storages, then = _Storages(options, get), []
    result = options.read(file, storages.find, size, then)
    keys = dict.fromkeys(map(_key, Reader(file, size=size).load()))
    if keys.keys() != storages.made.keys():  # otherwise a storage would keep uninitialised memory
        raise ValueError("its storages are not those of its tensors")
    readinto = exactly(file)
    for key in keys:
        storage, dtype = storages.made[key]
        flat = bytes_of(storage)
        number = int.from_bytes(file.read(8), "little")
        item = 1 if dtype is None else dtype.itemsize
        if number * item != storage.nbytes():
            raise ValueError(f"storage {key} has {number} elements, {storage.nbytes() // item} are used")
        if options.meta:
            file.seek(storage.nbytes(), os.SEEK_CUR)
            continue
        fill(flat, readinto)
        if sys.byteorder == "big" and dtype is not None:
            swap_bytes(flat, dtype)
    for compute in then:
        compute()
    return result


def seekable(file):
    """`file`, or a copy of its content if it cannot seek."""
    try:
        can = file.seekable() and hasattr(file, "readinto")
    except AttributeError:
        can = False
    return file if can else io.BytesIO(file.read())
