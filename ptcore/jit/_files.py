"""Programs as files: one zip archive of uncompressed, aligned entries.

``format.json`` describes the contents, ``graph/NAME.txt`` are graphs as text (``_text.py``), ``tensors.safetensors``
has the tensors, ``extra/NAME`` are files added by the user. Nothing is pickled and no code is run. The page on the
format of programs documents every byte.
"""
import io
import json
import os

import ptcore
from ptcore._atomic import write_atomically
from ptcore._ops import row
from ptcore._ops.table.ids import op_name
from ptcore.fx.node import OpFunction
from ptcore.jit._text import parse, to_text
from ptcore.serialization import CorruptFileError, safetensors_files, write_open
from ptcore.serialization.arrays import parsed
from ptcore.serialization.files import CallerError, Source, placer
from ptcore.serialization.zip_files import Reader, Writer

__all__ = ["Contents", "read", "write"]

VERSION = 1
FORMAT, TENSORS = "format.json", "tensors.safetensors"
MOST_TEXT = 64 << 20                # bytes of format.json, and of a graph


class Contents:
    """The contents of a file.

    Attributes
    ----------
    kind : str
        Whose file it is, as "function", "module".
    graphs : dict of str to Graph
        As texts where a scripted program is read: they name what ``data`` describes.
    tensors : dict of str to Tensor
        Tensors may share memory: they do so again when they are loaded.
    data : object
        Further contents: dictionaries with texts as keys, lists, texts, numbers, None.
    extra : dict of str to bytes
    names : Names, optional
        The names of the program's own functions and classes in graphs.
    """

    def __init__(self, kind, graphs, tensors, data, extra=None, names=None):
        self.kind, self.graphs, self.tensors, self.data = kind, graphs, tensors, data
        self.extra, self.names = {} if extra is None else extra, names


# -- writing ------------------------------------------------------------------------------------------------

def write(contents, f):
    """Writes a file: a path, whose old content stays until the new one is complete, or an open file."""
    entries = _entries(contents)

    def to(file):
        archive = Writer(file)
        for name, data in entries:
            archive.add(name, len(data), [data])
        archive.close()
    if isinstance(f, (str, os.PathLike)):
        write_atomically(os.fspath(f), to)
    else:
        write_open(f, to)


def _entries(contents):
    texts = {name: to_text(graph, contents.names) for name, graph in contents.graphs.items()}
    storages, described, objects = {}, {}, {}
    flat = {}
    for name, x in contents.tensors.items():
        if not isinstance(x, ptcore.Tensor) or x.layout != ptcore.strided:
            raise TypeError(f"save: {name} must be a strided tensor, got {type(x).__name__}")
        if x.device.type == "meta":
            raise NotImplementedError(f"save: {name} is a meta tensor, which has no values")
        storage = x.untyped_storage()
        first = storages.setdefault(id(storage), (name, storage))[0]
        described[name] = {"dtype": x.dtype.name, "shape": list(x.shape), "stride": list(x.stride()),
                           "offset": x.storage_offset() * x.element_size(), "memory": first, "device": str(x.device),
                           "requires_grad": x.requires_grad, "parameter": isinstance(x, ptcore.nn.Parameter)}
        same = objects.setdefault(id(x), name)
        if same != name:                # one tensor under two names
            described[name]["same"] = same
    for name, storage in storages.values():
        x = contents.tensors[name].detach()
        n = storage.nbytes()
        whole = ptcore.empty(0, dtype=ptcore.uint8, device=x.device).set_(storage, 0, (n,), (1,))
        flat[name] = whole.cpu()
    data = {"format": "ptcore.program", "version": VERSION, "producer": f"ptcore {ptcore.__version__}",
            "kind": contents.kind, "graphs": list(texts), "rows": _signatures(contents.graphs.values()),
            "tensors": described, "data": contents.data, "extra": list(contents.extra)}
    packed = io.BytesIO()
    safetensors_files.write(packed, flat, {})
    yield FORMAT, json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False).encode()
    for name, text in texts.items():
        yield f"graph/{name}.txt", text.encode()
    yield TENSORS, packed.getvalue()
    for name, extra in contents.extra.items():
        yield f"extra/{name}", extra.encode() if isinstance(extra, str) else bytes(extra)


def _signatures(graphs):
    """The signatures of the rows that graphs call, by which a later release sees that arguments have changed."""
    found = {}
    for graph in graphs:
        for node in graph.nodes:
            if type(node.target) is OpFunction:
                name = op_name(node.target.op)
                found[name] = row(name).signature
            for block in node.blocks:
                found.update(_signatures([block]))
    return dict(sorted(found.items()))


# -- reading ------------------------------------------------------------------------------------------------

def read(f, map_location=None, mmap=False, extra=None):
    """Reads the contents of a file.

    Parameters
    ----------
    f : str, os.PathLike or file
    map_location : device, str, dict or function, optional
    mmap : bool
        Whether tensors lie over the file.
    extra : iterable of str, optional
        Names of the extra files to read; None reads all.

    Raises
    ------
    CorruptFileError
        If the file is damaged, or of a format or with ops that this release does not know.
    """
    place = placer(map_location)
    if not isinstance(f, (str, os.PathLike)):
        if mmap:
            raise ValueError("load: mmap needs a path, not an open file")
        return _guarded(lambda: _read(f, place, False, extra), "the file")
    with open(f, "rb") as file:
        return _guarded(lambda: _read(file, place, mmap, extra), os.fspath(f))


def _guarded(call, name):
    try:
        return call()
    except CorruptFileError as error:
        raise CorruptFileError(f"load: {name}: {error}") from None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError) as error:
        if isinstance(error, CallerError):
            raise
        raise CorruptFileError(f"load: {name} is damaged, or no program of ptcore: {error}") from error
    except CallerError as error:
        raise error.error from None


def _read(file, place, mmap, extra):
    begin = file.tell()
    size = file.seek(0, 2) - begin
    archive = Reader(file, begin, size)
    if FORMAT not in archive.entries and any([n.partition("/")[2].startswith("code/") for n in archive.entries]):
        raise NotImplementedError("load: the file is an archive of TorchScript, whose code is not run here; save its "
                                  "state_dict with PyTorch, and load that by ptcore.load")
    data = parsed(_text(archive, FORMAT))
    if type(data) is not dict or data.get("format") != "ptcore.program":
        raise CorruptFileError("it is no program of ptcore")
    version = data.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise CorruptFileError(f"it has version {str(version)[:20]} of the format, this release reads 1 to {VERSION}")
    known = {FORMAT, TENSORS}
    names = _names(data, "graphs")
    _check_rows(data)
    kind = data.get("kind")
    if type(kind) is not str:
        raise CorruptFileError("it does not say what it is")
    graphs = {}
    for name in names:
        known.add(f"graph/{name}.txt")
        text = _text(archive, f"graph/{name}.txt")
        graphs[name] = text if kind.startswith("scripted") else parse(text)
    found = {}
    for name in _names(data, "extra"):
        known.add(f"extra/{name}")
        if extra is None or name in extra:
            found[name] = archive.read(f"extra/{name}")
    if archive.entries.keys() - known:
        raise CorruptFileError(f"it has an entry {sorted(archive.entries.keys() - known)[0][:100]} that nothing names")
    tensors = _tensors(file, archive, begin, data, place, mmap)
    return Contents(kind, graphs, tensors, data.get("data"), found)


def _text(archive, name):
    entry = archive.entries[name]
    if entry.deflated or entry.size > MOST_TEXT:
        raise CorruptFileError(f"its entry {name} is deflated, or too large")
    return archive.read(name).decode()


def _names(data, kind):
    names = data.get(kind)
    if type(names) is not list or any([type(x) is not str for x in names]) or len({*names}) != len(names):
        raise CorruptFileError(f"its list of {kind} is damaged")
    return names


def _check_rows(data):
    """Refuses ops whose arguments have changed their meaning since the file was written."""
    rows = data.get("rows")
    if type(rows) is not dict:
        raise CorruptFileError("its table of ops is damaged")
    for name, signature in rows.items():
        try:
            now = row(name).signature
        except KeyError:
            raise CorruptFileError(f"it calls an op {name[:100]} that there is not in this release") from None
        if signature != now and not _extends(signature, now):
            raise CorruptFileError(f"it calls {name} as {str(signature)[:200]}, and here it is {now}")


def _extends(before, now):
    """Whether ``now`` is the signature ``before`` with more arguments at its end."""
    return type(before) is str and before.endswith(")") and now.startswith(before[:-1] + ",")


class _Window:
    """A part of a file as a file."""

    def __init__(self, file, begin, size):
        self.file, self.begin, self.size, self.at = file, begin, size, 0

    def seek(self, offset, whence=0):
        self.at = offset + (self.size if whence == 2 else 0)
        return self.at

    def read(self, n):
        self.file.seek(self.begin + self.at)
        data = self.file.read(min(n, self.size - self.at))
        self.at += len(data)
        return data

    def readinto(self, view):
        self.file.seek(self.begin + self.at)
        n = self.file.readinto(view[:max(self.size - self.at, 0)])
        self.at += n
        return n


class _SourceOfWindow(Source):
    """Makes tensors of a part of a file, over the map of all of it."""

    def __init__(self, window, file, mapped, meta):
        super().__init__(file, mapped, meta)
        self.begin = window.begin

    def take(self, nbytes, readinto, start=None, alignment=1):
        return super().take(nbytes, readinto, None if start is None else start + self.begin, alignment)


def _tensors(file, archive, begin, data, place, mmap):
    described = data.get("tensors")
    if type(described) is not dict or any([type(x) is not dict for x in described.values()]):
        raise CorruptFileError("its list of tensors is damaged")
    entry = archive.entries[TENSORS]
    if entry.deflated:
        raise CorruptFileError("its tensors are deflated")
    window = _Window(file, begin + entry.start, entry.size)
    flat, _, _ = safetensors_files.read(window, _SourceOfWindow(window, file, mmap, False))
    found, placed = {}, {}
    for name, x in described.items():
        memory = x.get("memory")
        if type(memory) is not str or memory not in flat:
            raise CorruptFileError(f"it has no memory of {name[:100]}")
        device = x.get("device")
        if type(device) is not str:
            raise CorruptFileError(f"it does not say where {name[:100]} was")
        if (memory, device) not in placed:
            placed[memory, device] = place(flat[memory], device)
        same = x.get("same")
        if same is not None and (type(same) is not str or same not in found or described[same] != {
                key: value for key, value in x.items() if key != "same"}):
            raise CorruptFileError(f"it says that {name[:100]} is another tensor, which it is not")
        found[name] = _tensor(name, x, placed[memory, device]) if same is None else found[same]
    if flat.keys() - {x.get("memory") for x in described.values()}:
        raise CorruptFileError("it has memory of no tensor")
    return found


def _tensor(name, x, flat):
    kind, shape, stride, offset = [x.get(key) for key in ("dtype", "shape", "stride", "offset")]
    dtype = getattr(ptcore, kind, None) if type(kind) is str else None
    if (not isinstance(dtype, ptcore.dtype) or type(shape) is not list or type(stride) is not list
            or any([type(n) is not int for n in [*shape, *stride, offset]]) or len(shape) != len(stride)
            or len(shape) > 64 or any([n < 0 for n in shape]) or offset % dtype.itemsize):
        raise CorruptFileError(f"what it says of {name[:100]} is damaged")
    size = flat.numel() // dtype.itemsize
    first = offset // dtype.itemsize
    low = first + sum([(n - 1) * s for n, s in zip(shape, stride) if s < 0 and n])
    high = first + sum([(n - 1) * s for n, s in zip(shape, stride) if s > 0 and n])
    if 0 not in shape and (low < 0 or high >= size):
        raise CorruptFileError(f"{name[:100]} reaches out of its memory")
    made = ptcore.empty(0, dtype=dtype, device=flat.device)
    made = made.set_(flat.untyped_storage(), first + flat.storage_offset() // dtype.itemsize, shape, stride)
    if x.get("parameter") is True:
        return ptcore.nn.Parameter(made, requires_grad=x.get("requires_grad") is True)
    return made.requires_grad_() if x.get("requires_grad") is True else made
