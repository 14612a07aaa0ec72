"""PyTorch's files without torch: layout, sharing, mapped files, names that are allowed, damage, and what does harm."""
import argparse
import collections
import io
import os
import pickle
import struct
import sys
import zipfile

import numpy as np
import pytest
from _pickles import archive, load_pickle, number, old_stream, round_trip, saved, storage, tensor, text

import ptcore as pt
from ptcore import serialization
from ptcore._atomic import _lock
from ptcore.nn import Parameter
from ptcore.serialization import CorruptFileError

pytestmark = pytest.mark.core


@pytest.fixture(autouse=True)
def nothing_allowed(monkeypatch):
    """No name on the list, no permission, before and after each test."""
    monkeypatch.delenv("PTCORE_ALLOW_PICKLE", raising=False)
    monkeypatch.setattr("ptcore.serialization._constructors._allow_pickle", None)
    yield
    serialization.clear_safe_globals()


# -- what is kept ----------------------------------------------------------------------------------

@pytest.mark.parametrize("stream", [False, True])
def test_values(stream):
    obj = {
        "nested": [(1, (2, [3, {}])), (), [], {}], "many": tuple(range(1000)), "set": {1, "a"},
        "frozen": frozenset([2]), "bytes": b"\xff\0", "none": b"", "array": bytearray(b"xy"), "complex": 1 - 2j,
        "floats": [1.5, float("inf")],
        "ints": [0, 255, 256, 65535, 65536, -1, 2**31, -(2**31), 2**63, 10**300, -(10**700)],
        "text": "ü\n\0" * 300, "keys": {(1, "a"): 1, None: 2, 1.5: 3, pt.float32: 4},
        "counter": collections.Counter("aab"), "default": collections.defaultdict(list, {1: [2]}),
        "size": pt.Size([2, 3]), "dtype": pt.bfloat16, "device": [pt.device("cpu"), pt.device("cuda", 1)],
        "big": {i: str(i) for i in range(2500)},
    }
    loaded = round_trip(obj, stream)
    assert loaded == obj
    assert [type(v) for v in loaded.values()] == [type(v) for v in obj.values()]
    assert loaded["default"].default_factory is list


@pytest.mark.parametrize("stream", [False, True])
def test_tensors(stream):
    base = pt.arange(12.0).view(3, 4)
    obj = {
        "base": base, "again": base, "row": base[1], "t": base.t(), "every": base[:, ::2],
        "wide": base[:1].expand(5, 4), "p": Parameter(base[2]), "frozen": Parameter(pt.ones(1), requires_grad=False),
        "empty": pt.empty(0, 3),
        "scalar": pt.tensor(2.5), "grad": pt.ones(2, requires_grad=True), "meta": pt.empty(2, 3, device="meta").t(),
        "back": base[::-1],
    }
    loaded = round_trip(obj, stream)
    for name in obj.keys() - {"meta", "back"}:
        assert type(loaded[name]) is type(obj[name]), name
        assert loaded[name].stride() == obj[name].stride(), name
        assert loaded[name].requires_grad == obj[name].requires_grad, name
        assert loaded[name].tolist() == obj[name].tolist(), name
    assert loaded["meta"].is_meta
    assert loaded["meta"].stride() == (1, 3)
    assert loaded["back"].tolist() == base[::-1].tolist()
    assert loaded["again"] is loaded["base"]
    loaded["base"][2, 3] = 99
    assert loaded["row"].untyped_storage() is loaded["t"].untyped_storage() is loaded["wide"].untyped_storage()
    assert loaded["p"][3].item() == loaded["t"][3, 2].item() == 99
    assert round_trip(base[1], stream).untyped_storage().nbytes() == 48     # a view brings its storage along


def test_one_storage_of_several_dtypes():
    base = pt.arange(6, dtype=pt.uint32)
    obj = [base, base.view(pt.int16)[1:3], base.view(pt.float32), base.untyped_storage(), pt.ones(3, dtype=pt.uint64)]
    loaded = round_trip(obj)
    assert [t.dtype for t in (*loaded[:3], loaded[4])] == [pt.uint32, pt.int16, pt.float32, pt.uint64]
    loaded[0][0] = 7 << 16
    assert loaded[1].tolist() == [7, 1]
    assert loaded[2].untyped_storage() is loaded[0].untyped_storage() is loaded[3]
    with pytest.raises(NotImplementedError, match="storages of one dtype"):
        saved(obj[1:3], _use_new_zipfile_serialization=False)
    with pytest.raises(NotImplementedError, match="storages of one dtype"):
        saved([pt.ones(2), pt.ones(2, dtype=pt.uint16)], _use_new_zipfile_serialization=False)


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
def test_unsigned_numbers_in_a_stream(dtype):
    """They have no class of storages there: PyTorch writes bytes of no dtype, which it cannot read itself."""
    data = np.arange(6).astype(dtype)

    def window(offset, size, stride, kind=dtype):
        reference = (b"(" + text("storage") + b"ctorch.storage\nUntypedStorage\n" + text("7") + text("cpu")
                     + number(data.nbytes) + b"NtQ")
        return (b"(ctorch._utils\n_rebuild_tensor_v3\n(" + reference + number(offset) + number(size) + b"\x85"
                + number(stride) + b"\x85\x89ccollections\nOrderedDict\n)Rctorch\n" + kind.encode() + b"\ntR0")

    def file(content):
        body = b"(" + window(0, 6, 1)[1:-1] + window(1, 3, 2)[1:-1] + window(0, 2, 1, "uint8")[1:-1] + b"t"
        return old_stream(body, ("7", content), itemsize=1)

    loaded = pt.load(file(data.tobytes()))
    assert [t.dtype.name for t in loaded] == [dtype, dtype, "uint8"]
    assert [t.tolist() for t in loaded] == [data.tolist(), [1, 3, 5], data.view("u1")[:2].tolist()]
    assert loaded[0].untyped_storage() is loaded[1].untyped_storage() is loaded[2].untyped_storage()
    for content in (data.tobytes()[:-1], data.tobytes() + b"\0"):
        with pytest.raises(CorruptFileError):
            pt.load(file(content))
    with pytest.raises(CorruptFileError):
        pt.load(io.BytesIO(file(data.tobytes()).getvalue()[:-1]))


@pytest.mark.parametrize("version", [b"1", b"3\n", b"10\n"])
def test_versions_of_archives(version):
    assert pt.load(archive(b"\x80\x02]." , version=version)) == []


@pytest.mark.parametrize(("version", "error"), [
    (b"11\n", "version 11 .* newest that is known is 10"), (b"999999", "version 999999 "),
    (b"0", "does not say which version"), (b"-1", "which version"), (b"x", "which version"), (b"", "which version"),
    (b"9" * 5000, "which version")])
def test_other_versions_of_archives(version, error):
    newer = NotImplementedError if error.startswith("version") else CorruptFileError
    for read in (pt.load, serialization.get_unsafe_globals_in_checkpoint):
        with pytest.raises(newer, match=error):
            read(archive(b"\x80\x02].", version=version))


def test_versions_of_streams():
    def stream(magic, version):
        return io.BytesIO(b"".join([pickle.dumps(part, protocol=2) for part in (magic, version, {}, [], [])]))

    magic = 0x1950A86A20F9469CFC6C
    assert pt.load(stream(magic, 1001)) == []
    with pytest.raises(NotImplementedError, match="version 1002 of the layout"):
        pt.load(stream(magic, 1002))
    for other in ("1001", 10**5000, -1, None):
        with pytest.raises(CorruptFileError, match="which version"):
            pt.load(stream(magic, other))
    with pytest.raises(CorruptFileError, match="does not begin"):
        pt.load(stream(magic + 1, 1001))
    with pytest.raises(NotImplementedError, match="protocol 6, the newest that is known is 5"):
        load_pickle(b"\x80\x06]")


def test_attributes():
    t, p = pt.ones(2), Parameter(pt.ones(2))
    t.note, p.note = {"a": [1]}, "b"
    loaded = round_trip([t, p])
    assert [x.note for x in loaded] == [{"a": [1]}, "b"]
    assert [type(x) for x in loaded] == [pt.Tensor, Parameter]


def test_self_reference_and_depth():
    loop = [1]
    loop.append({"loop": loop})
    loaded = round_trip(loop)
    assert loaded[1]["loop"] is loaded
    deep = []
    for _ in range(200):
        deep = [deep]
    with pytest.raises(ValueError, match="100 levels"):
        saved(deep)


def test_metadata_conj_and_neg():
    values = struct.pack("<4f", 1, 2, 3, 4)
    body = (b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage("ComplexFloatStorage", size=2) + number(0) + number(2)
            + b"\x85" + number(1) + b"\x85\x89N}" + text("conj") + b"\x88stR")
    assert load_pickle(body, [values]).tolist() == [1 - 2j, 3 - 4j]
    negative = body.replace(b"X\4\0\0\0conj", b"X\3\0\0\0neg")
    assert load_pickle(negative, [values]).tolist() == [-1 - 2j, -3 - 4j]
    # In the layout of before 1.6 the numbers come behind the pickle.
    assert pt.load(old_stream(body, ("0", values), itemsize=8)).tolist() == [1 - 2j, 3 - 4j]
    assert pt.load(old_stream(negative, ("0", values), itemsize=8)).tolist() == [-1 - 2j, -3 - 4j]


def test_byte_order():
    body = b"\x80\x02" + tensor(kind="IntStorage") + b"."
    data = struct.pack(">4i", 1, 2, 3, 4)
    assert pt.load(archive(body, [data], byteorder=b"big")).tolist() == [1, 2, 3, 4]
    assert pt.load(archive(body, [data], byteorder=b"big", deflated=True)).tolist() == [1, 2, 3, 4]
    complexes = b"\x80\x02" + tensor(kind="ComplexFloatStorage", size=(2,)).replace(number(4), number(2)) + b"."
    data = struct.pack(">4f", 1, 2, 3, 4)
    assert pt.load(archive(complexes, [data], byteorder=b"big")).tolist() == [1 + 2j, 3 + 4j]
    with pytest.raises(CorruptFileError, match="byte order"):
        pt.load(archive(body, [data], byteorder=b"middle"))


def test_streams_of_long_ago():
    """Views of storages, storages of devices by class, tensors of the first function."""
    def view(start, n):
        return (b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("7") + text("cpu") + number(6)
                + b"(" + text(f"v{start}") + number(start) + number(n) + b"ttQ")

    def window(place, n):
        return b"ctorch._utils\n_rebuild_tensor\n(" + place + number(0) + number(n) + b"\x85" + number(1) + b"\x85tR"

    values = struct.pack("<6f", *range(6))
    loaded = pt.load(old_stream(b"(" + window(view(2, 3), 3) + window(view(0, 6), 6) + b"t", ("7", values)))
    assert [t.tolist() for t in loaded] == [[2, 3, 4], [0, 1, 2, 3, 4, 5]]
    assert loaded[0].untyped_storage() is loaded[1].untyped_storage()
    on_device = view(0, 6).replace(b"ctorch\n", b"ctorch.cuda\n").replace(text("cpu"), text("cuda:0"))
    loaded = pt.load(old_stream(window(on_device, 2), ("7", values)), map_location="cpu")
    assert loaded.tolist() == [0, 1]
    for start, n in ((4, 3), (1 << 59, 1), (0, 7)):
        with pytest.raises(CorruptFileError):
            pt.load(old_stream(window(view(start, n), 1), ("7", values)))
    with pytest.raises(CorruptFileError, match="leaves its storage"):
        pt.load(old_stream(window(view(2, 3), 4), ("7", values)))
    two = window(view(0, 6), 6) + window(view(0, 6).replace(text("7"), text("9")).replace(b"v0", b"w0"), 6)
    with pytest.raises(CorruptFileError, match="not those of its tensors"):     # one would stay as it was allocated
        pt.load(old_stream(b"(" + two + b"t", ("7", values), ("7", values)))
    assert len(pt.load(old_stream(b"(" + two + b"t", ("7", values), ("9", values)))) == 2
    for storages in ([], [("8", values)], [("7", values[:20])], [("7", values), ("8", values)]):
        with pytest.raises(CorruptFileError):
            pt.load(old_stream(window(view(0, 6), 6), *storages))


def test_texts_of_python_2():
    body = b"U\x03abc"
    assert load_pickle(body) == "abc"
    file = archive(b"\x80\x02" + b"U\x02\xff\xfe.")
    with pytest.raises(CorruptFileError):
        pt.load(file)
    file.seek(0)
    assert pt.load(file, encoding="latin1") == "ÿþ"
    file.seek(0)
    assert pt.load(file, encoding="bytes") == b"\xff\xfe"


# -- layout ----------------------------------------------------------------------------------------

def test_layout_of_an_archive(tmp_path):
    """Stored entries with PyTorch's names, data at multiples of 64 bytes, right checksums."""
    path = tmp_path / "x.pt"
    pt.save({"a": pt.arange(3), "b": pt.ones(1000), "e": pt.empty(0)}, path)
    data = path.read_bytes()
    with zipfile.ZipFile(path) as found:
        assert found.namelist() == [f"archive/{n}" for n in (
            "data.pkl", ".format_version", ".storage_alignment", "byteorder", "data/0", "data/1", "data/2", "version")]
        assert found.testzip() is None
        for info in found.infolist():
            n_name, n_extra = struct.unpack_from("<2H", data, info.header_offset + 26)
            assert (info.header_offset + 30 + n_name + n_extra) % 64 == 0
            assert info.compress_type == zipfile.ZIP_STORED
        assert found.read("archive/byteorder") == sys.byteorder.encode()
        assert found.read("archive/data/0") == struct.pack("=3q", 0, 1, 2)
    assert saved({"a": pt.arange(3)}).read() == saved({"a": pt.arange(3)}).read()


@pytest.mark.slow
def test_large_archives_have_64_bit_fields():
    """Offsets and sizes of 4 GiB and more: the writer's numbers, read back, without the bytes in between."""
    from ptcore.serialization import zip_files

    class Sparse(io.RawIOBase):
        """A file that keeps what is written in small pieces; large ones read as zeros."""

        def __init__(self):
            self.parts, self.at, self.end = {}, 0, 0

        def write(self, data):
            if len(data) < 1 << 20:
                self.parts[self.at] = bytes(data)
            self.at += len(data)
            self.end = max(self.end, self.at)

        def seek(self, at):
            self.at = at

        def read(self, n):
            out = bytearray(min(n, self.end - self.at))
            for start, part in self.parts.items():
                low, high = max(start, self.at), min(start + len(part), self.at + len(out))
                if low < high:
                    out[low - self.at:high - self.at] = part[low - start:high - start]
            self.at += len(out)
            return bytes(out)

    file, zeros = Sparse(), bytes(1 << 26)
    writer = zip_files.Writer(file)
    writer.add("a/big", (1 << 32) + 5, [*[zeros] * 64, b"12345"])
    writer.add("a/small", 3, [b"abc"])
    writer.close()
    reader = zip_files.Reader(file, 0, file.end)
    assert reader.entries["a/big"].size == (1 << 32) + 5
    assert reader.entries["a/small"].header > 1 << 32
    assert reader.read("a/small") == b"abc"


def test_open_files(tmp_path):
    file = io.BytesIO(b"before")
    file.seek(6)
    pt.save([pt.ones(2)], file)
    for _ in range(2):                  # one stream after the other, as PyTorch's legacy layout allows
        pt.save([pt.zeros(2)], file, _use_new_zipfile_serialization=False)
    end = file.tell()
    file = io.BytesIO(file.getvalue()[:end])
    whole = saved([pt.ones(2)]).getvalue()
    assert pt.load(io.BytesIO(whole))[0].tolist() == [1, 1]
    file.seek(6 + len(whole))
    assert [pt.load(file)[0].tolist() for _ in range(2)] == [[0, 0]] * 2
    after = io.BytesIO(b"before" + whole)
    after.seek(6)
    assert pt.load(after)[0].tolist() == [1, 1]
    read, write = os.pipe()             # neither can be moved in
    with open(write, "wb") as out:
        pt.save([pt.ones(2)], out)
    with open(read, "rb") as source:
        assert pt.load(source)[0].tolist() == [1, 1]
    with open(tmp_path / "x", "wb") as out:
        pt.save([1], out)
    with open(tmp_path / "x", "rb") as source:
        assert pt.load(source) == [1]


def test_open_files_of_few_talents(tmp_path):
    """What takes a few bytes at a time, what can only write, text."""
    class Drops(io.RawIOBase):
        def __init__(self):
            self.data = bytearray()

        def writable(self):
            return True

        def write(self, data):
            self.data += data[:7]
            return min(len(data), 7)

    class Writes:
        def __init__(self):
            self.data = bytearray()

        def write(self, data):
            self.data += data

    for stream in (False, True):
        for file in (Drops(), Writes()):
            pt.save([pt.arange(1000)], file, _use_new_zipfile_serialization=not stream)
            assert pt.load(io.BytesIO(file.data))[0].sum().item() == 499500
            assert not getattr(file, "closed", False)
    import gzip
    with gzip.open(tmp_path / "x.pt.gz", "wb") as file:
        pt.save([pt.arange(1000)], file)
    with gzip.open(tmp_path / "x.pt.gz", "rb") as file:
        assert pt.load(file)[0].sum().item() == 499500
    with open(tmp_path / "x.txt", "w+") as file:
        for call in (lambda: pt.save([1], file), lambda: pt.load(file)):
            with pytest.raises(TypeError, match="open in binary mode, got a TextIOWrapper"):
                call()
    file = io.BytesIO()
    pt.save([1], file)
    with pytest.raises(CorruptFileError, match="empty, or read to its end"):
        pt.load(file)


def test_memory_that_was_saved_can_still_move():
    t = pt.ones(5)
    loaded = round_trip(t)
    for each in (t, loaded):
        assert each.untyped_storage().resizable()


# -- where tensors go --------------------------------------------------------------------------------

@pytest.mark.parametrize("stream", [False, True])
def test_map_location(stream):
    file = saved([pt.ones(2), pt.zeros(1)], _use_new_zipfile_serialization=not stream)

    def load(where):
        file.seek(0)
        return pt.load(file, map_location=where)[0]

    for where in (None, "cpu", pt.device("cpu"), {"cuda:0": "cpu"}, lambda storage, saved: storage,
                  lambda storage, saved: None, lambda storage, saved: saved, lambda storage, saved: pt.device("cpu")):
        assert load(where).tolist() == [1, 1]
    for where in ("meta", {"cpu": "meta"}, lambda storage, saved: "meta"):
        assert load(where).is_meta
        assert load(where).shape == (2,)
    with pytest.raises(KeyError, match="mine"):         # not an error of the file
        load(lambda storage, saved: {}["mine"])
    with pytest.raises(TypeError, match="map_location must return a storage, a device or None, got int"):
        load(lambda storage, saved: 3)
    with pytest.raises(TypeError, match="map_location must be"):
        load(3)


def test_device_that_is_not_here():
    data = saved([pt.ones(2)]).getvalue()
    at = data.index(b"X\3\0\0\0cpu")
    for name in (b"mps", b"xyz"):
        other = archive(zipfile.ZipFile(io.BytesIO(data)).read("archive/data.pkl").replace(b"cpu", name), [b"\0" * 8])
        with pytest.raises(RuntimeError, match="map_location='cpu'") as info:
            pt.load(other)
        assert not isinstance(info.value, CorruptFileError)
        other.seek(0)
        assert pt.load(other, map_location="cpu")[0].tolist() == [0, 0]
    assert at > 0


def test_mmap(tmp_path):
    path = tmp_path / "x.pt"
    pt.save({"a": pt.arange(1000.0), "b": [pt.ones(3), pt.empty(0)]}, path)
    before = path.read_bytes()
    loaded = pt.load(path, mmap=True)
    assert not loaded["a"].untyped_storage().resizable()        # memory of the file
    loaded["a"].add_(1)
    assert loaded["a"][:3].tolist() == [1, 2, 3]
    assert loaded["b"][0].tolist() == [1, 1, 1]
    assert path.read_bytes() == before
    os.unlink(path)
    assert loaded["a"].sum().item() == 500500
    with pytest.raises(ValueError, match="needs a path"):
        pt.load(saved([1]), mmap=True)
    pt.save([1], path, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap=True is for archives"):
        pt.load(path, mmap=True)
    path.write_bytes(archive(b"\x80\x02" + tensor() + b".", [b"\0" * 16], deflated=True).getvalue())
    assert pt.load(path, mmap=True).tolist() == [0] * 4


# -- names -------------------------------------------------------------------------------------------

class Point:
    """What a user may have in a checkpoint."""

    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return type(other) is Point and self.x == other.x

    __hash__ = None


class Slotted:
    __slots__ = ("a",)


def double(x):
    return 2 * x


class Pickled:
    """A class whose objects Python's unpickler alone makes."""

    def __reduce__(self):
        return Pickled, ()


class Reduced:
    def __reduce__(self):
        return double, (21,)


def test_safe_globals():
    with pytest.raises(TypeError, match=r"got Reduced at 'p': a class with a __reduce__ of its own; "
                                        r".*add_safe_globals\(\[Reduced\]\)"):
        saved({"p": Reduced()})
    slotted = Slotted()
    slotted.a = 3
    with serialization.safe_globals([Point, Slotted]):
        assert set(serialization.get_safe_globals()) == {Point, Slotted}
        file = saved({"p": Point([1]), "s": slotted, "class": Point})
        loaded = pt.load(file)
        assert loaded["p"] == Point([1])
        assert loaded["s"].a == 3
        assert loaded["class"] is Point
    assert serialization.get_safe_globals() == []
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match=rf"{__name__}\.Point.* add_safe_globals".replace(" add", ".*add")):
        pt.load(file)
    serialization.add_safe_globals([(Point, f"{__name__}.Slotted"), Point])
    file.seek(0)
    assert type(pt.load(file)["s"]) is Point            # by the name that was given
    serialization.clear_safe_globals()
    with serialization.safe_globals([double, Reduced]):
        assert pt.load(saved(Reduced())) == 42
    with pytest.raises(TypeError, match="it needs classes"):
        serialization.add_safe_globals([("a", "b")])


def test_namespaces_and_other_classes_of_the_library():
    with serialization.safe_globals([argparse.Namespace]):
        assert round_trip(argparse.Namespace(lr=0.1)) == argparse.Namespace(lr=0.1)


class Tagged(pt.Tensor):
    pass


class TaggedParameter(Parameter):
    pass


def test_subclasses_of_tensor():
    t = pt.ones(2).as_subclass(Tagged)
    t.note = 1
    file = saved(t)
    with pytest.raises(pickle.UnpicklingError, match="Tagged"):
        pt.load(file)
    file.seek(0)
    loaded = pt.load(file, weights_only=False)
    assert type(loaded) is Tagged and vars(loaded) == {"note": 1} and loaded.tolist() == [1, 1]
    assert type(round_trip(TaggedParameter(pt.ones(2)))) is Parameter
    buffer = pt.nn.Buffer(pt.ones(2), persistent=False)
    assert isinstance(round_trip(buffer), pt.nn.Buffer)
    with serialization.safe_globals([Tagged]):
        file = saved(t)
        loaded = pt.load(file)
    assert type(loaded) is Tagged
    assert loaded.note == 1
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Tagged"):
        pt.load(file)


class Items(list):
    pass


def test_lists_of_classes_that_were_added():
    """Their items come as those of a list do, by ``append``."""
    with serialization.safe_globals([Items, collections.deque]):
        loaded = round_trip([Items([1, [2]]), collections.deque([1, 2, 3], 2), Items(range(3000))])
    assert loaded == [[1, [2]], collections.deque([2, 3], 2), list(range(3000))]
    assert [type(v) for v in loaded] == [Items, collections.deque, Items]
    assert loaded[1].maxlen == 2


def test_names_of_python_2():
    """The older protocols have them, Python 3 writes them too."""
    data = pickle.dumps([range(3), int, str], protocol=2)
    assert b"xrange" in data
    with serialization.safe_globals([range]):
        assert pt.load(archive(data)) == [range(3), int, str]
    assert load_pickle(b"c__builtin__\nunicode\n") is str
    with pytest.raises(pickle.UnpicklingError, match=r"builtins\.eval"):
        load_pickle(b"c__builtin__\neval\n")
    with pytest.raises(pickle.UnpicklingError, match=r"__builtin__\.xrange|builtins\.xrange"):
        pt.load(archive(b"\x80\x04c__builtin__\nxrange\n."))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_unsafe_globals(protocol, tmp_path):
    """The names that load would refuse, in the order of the file; nothing is made or called."""
    find = serialization.get_unsafe_globals_in_checkpoint
    data = pickle.dumps({"p": Point([Reduced(), {}]), "q": Point(1), "n": np.ones(2), "ns": argparse.Namespace(a=1),
                         "set": {1}, "big": [{i: (i, {str(i)})} for i in range(2000)]}, protocol=protocol)
    names = [f"{__name__}.Point", f"{__name__}.double", "argparse.Namespace"]
    file = archive(data)
    assert find(file) == names
    file.seek(0)
    (tmp_path / "x.pt").write_bytes(file.read())
    assert find(tmp_path / "x.pt") == find(str(tmp_path / "x.pt")) == names
    assert find(old_stream(data[2:-1] if protocol == 2 else data[:-1])) == names
    with serialization.safe_globals([Point, double]):
        assert find(tmp_path / "x.pt") == ["argparse.Namespace"]
    calls = b"\x80\x02(cos\nsystem\n" + text("true") + b"\x85Rcbuiltins\neval\n0t."
    assert find(archive(calls)) == ["os.system", "builtins.eval"]
    assert find(saved({"a": [pt.ones(2)], "o": collections.OrderedDict(a=Parameter(pt.ones(1)))})) == []
    pt.save([1], tmp_path / "x.npz")
    assert find(tmp_path / "x.npz") == []
    for damaged in (b"", b"nonsense", archive(b"\x80\x02(").getvalue()):
        with pytest.raises(CorruptFileError, match="get_unsafe_globals_in_checkpoint: "):
            find(io.BytesIO(damaged))
    with pytest.raises(TypeError, match="get_unsafe_globals_in_checkpoint: f must be"):
        find(3)


def test_errors_name_the_way_out():
    class Net(pt.nn.Linear):
        pass
    net = Net(1, 1)
    for obj, words in (
        ([net], "got Net at '0': .* has no class .*; or save its state_dict"),
        (net.parameters(), "got generator: .*; save a list"),
        (collections.defaultdict(lambda: 1), "its default_factory is not one .* save a dict"),
        ({"f": double}, r"got function at 'f': functions of a program .*add_safe_globals\(\[double\]\)"),
    ):
        with pytest.raises(TypeError, match=words):
            saved(obj)
    with pytest.raises(pickle.UnpicklingError, match=r"torch\.nn\.modules\.linear\.Linear, .*weights_only=False"):
        load_pickle(b"ctorch.nn.modules.linear\nLinear\n")
    file = saved([pt.ones(1)])
    with pytest.raises(RuntimeError, match="map_location wants cuda:99, which cannot be used here"):
        pt.load(file, map_location="cuda:99")


def test_pickles_need_permission(monkeypatch):
    file = archive(b"\x80\x02}(X\x01\0\0\0p%b)\x81}X\x01\0\0\0xK\x01sbX\x01\0\0\0n%bu." % (
        f"c{__name__}\nPickled\n".encode(), pickle.dumps(np.arange(2), protocol=2)[2:-1]))

    def load():
        file.seek(0)
        return pt.load(file, weights_only=False)

    refused = pytest.raises(pickle.UnpicklingError, match=r"a class with a __reduce__ .*add_safe.*allow_pickle\(True\)")
    with refused:
        load()
    monkeypatch.setenv("PTCORE_ALLOW_PICKLE", "1")
    assert load()["p"].x == 1
    serialization.allow_pickle(False)
    with refused:
        load()
    monkeypatch.delenv("PTCORE_ALLOW_PICKLE")
    serialization.allow_pickle(True)
    assert load()["n"].tolist() == [0, 1]
    everything = [Point(2), Parameter(pt.ones(2)), collections.OrderedDict(a=pt.zeros(1)), pt.float32, {1}]
    loaded = pt.load(saved(everything), weights_only=False)
    assert loaded[0] == Point(2)
    assert type(loaded[1]) is Parameter
    assert loaded[3:] == [pt.float32, {1}]
    with pytest.raises(CorruptFileError):
        pt.load(archive(b"\x80\x02]"), weights_only=False)
    assert pt.load(archive(b"\x80\x02ctorch.nn.modules.linear\nLinear\n."), weights_only=False) is pt.nn.Linear
    with pytest.raises(NotImplementedError, match=r"torch\.hub\.load, .*state_dict"):
        pt.load(archive(b"\x80\x02ctorch.hub\nload\n."), weights_only=False)


def test_pickle_module():
    """PyTorch's argument: whose unpickler runs what the file names."""
    used = []

    class Module:
        __name__ = "mine"

        class Unpickler(pickle.Unpickler):
            def find_class(self, module, name):
                used.append(name)
                return super().find_class(module, name)

    file = archive(pickle.dumps([Point(1)], protocol=2))
    with pytest.raises(RuntimeError, match="pickle_module unpickles more"):
        pt.load(file, pickle_module=Module, weights_only=True)
    with pytest.raises(RuntimeError, match=r"unpickler of Module runs .*allow_pickle"):
        pt.load(file, None, Module)
    assert pt.load(file, None, pickle) == [Point(1)]
    assert used == []
    file.seek(0)
    serialization.allow_pickle(True)
    assert pt.load(file, None, Module) == [Point(1)]
    assert used == ["Point"]
    assert pt.load(saved([pt.ones(2)]), pickle_module=Module)[0].tolist() == [1, 1]
    with pytest.raises(ValueError, match="pickle_module must be pickle"):
        saved([1], pickle_module=Module)


def test_arguments_of_save():
    for protocol in (2, 3, 4, 5):
        for new in (True, False):
            file = saved([1, "a"], pickle_module=pickle, pickle_protocol=protocol, _use_new_zipfile_serialization=new)
            assert b"\x80" + bytes([protocol]) + b"]" in file.getvalue()
            assert pt.load(file) == [1, "a"]
    for protocol in (1, 6, None, 2.0):
        with pytest.raises(ValueError, match="pickle_protocol must be"):
            saved([1], pickle_protocol=protocol)
    file = saved([pt.arange(3)], _disable_byteorder_record=True)
    assert "archive/byteorder" not in zipfile.ZipFile(file).namelist()
    file.seek(0)
    assert pt.load(file)[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("allowed", [False, True])
def test_whole_modules(allowed):
    """With permission on both sides Python's unpickler reads them, as in PyTorch."""
    net = pt.nn.Sequential(pt.nn.Linear(2, 3), pt.nn.BatchNorm1d(3), pt.nn.Dropout()).eval()
    serialization.allow_pickle(allowed)
    loaded = pt.load(saved(net), weights_only=False)
    x = pt.rand(4, 2)
    assert loaded(x).equal(net(x))
    with pytest.raises(pickle.UnpicklingError, match="Sequential"):
        pt.load(saved(net))


# -- several files -------------------------------------------------------------------------------------

@pytest.fixture
def shards(tmp_path):
    return tmp_path / "model.safetensors"


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def test_sharded(shards):
    folder, index = shards.parent, shards.parent / "model.safetensors.index.json"
    state = {f"layer.{i}": pt.full((100,), float(i)) for i in range(5)}
    pt.save(state, shards, max_shard_size="0.9KB")
    assert names(folder) == [*(f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)), index.name]
    loaded = pt.load(index)
    assert list(loaded) == list(state)
    assert all(loaded[k].equal(state[k]) for k in state)
    import json
    content = json.loads(index.read_text())
    assert content["metadata"]["total_size"] == 2000
    assert content["weight_map"]["layer.4"] == "model-00003-of-00003.safetensors"
    # another time: other names, so that what the old index lists is whole until the new one is there
    pt.save({"model": [state["layer.1"]], "big": pt.ones(500), "epoch": 2}, shards, max_shard_size=1000)
    assert len(names(folder)) == 3
    loaded = pt.load(index, map_location="cpu")
    assert loaded["epoch"] == 2
    assert loaded["model"][0].tolist() == [1.0] * 100
    pt.save(state, shards, max_shard_size="5GB")
    assert names(folder) == [shards.name]
    pt.save(state, shards, max_shard_size=400)
    assert len(names(folder)) == 6
    for size in ("5 parsecs", 0, "-1", "0KB"):
        with pytest.raises(ValueError, match="max_shard_size"):
            pt.save(state, shards, max_shard_size=size)
    with pytest.raises(ValueError, match=r"for \.safetensors"):
        pt.save(state, folder / "x.pt", max_shard_size=100)
    with pytest.raises(ValueError, match=r"name the \.safetensors file"):
        pt.save(state, index)


def test_sharded_write_that_is_cut_short(shards, monkeypatch):
    """Wherever it stops, the old index and its files are whole."""
    index = shards.parent / "model.safetensors.index.json"
    old = {"a": pt.zeros(10), "b": pt.zeros(10)}
    pt.save(old, shards, max_shard_size=40)
    replace = os.replace
    for stop in range(4):
        left = [stop]

        def stops(source, target, left=left):
            if not left[0]:
                raise OSError("no power")
            left[0] -= 1
            replace(source, target)

        monkeypatch.setattr(os, "replace", stops)
        new = {k: pt.full((10,), stop + 1.0) for k in "abc"}
        with pytest.raises(OSError, match="no power"):
            pt.save(new, shards, max_shard_size=40)
        monkeypatch.undo()
        assert {k: v.tolist() for k, v in pt.load(index).items()} == {k: [0.0] * 10 for k in "ab"}
    pt.save(new, shards, max_shard_size=40)
    assert len(names(shards.parent)) == 4


@pytest.mark.parametrize("name", ["../x.safetensors", "/etc/passwd", "a/b.safetensors", "", "..", "absent", 3])
def test_hostile_index(shards, name):
    import json
    index = shards.parent / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": {"a": name}}))
    with pytest.raises(CorruptFileError):
        pt.load(index)


# -- writing -------------------------------------------------------------------------------------------

def test_what_killed_writers_left_is_removed(tmp_path, monkeypatch):
    path = tmp_path / "x.pt"
    old, fresh, held = (tmp_path / f".x.pt.{n}.tmp" for n in ("old", "fresh", "held"))
    other = tmp_path / ".y.pt.old.tmp"
    for file in (old, fresh, held, other):
        file.write_bytes(b"half")
        if file is not fresh:
            os.utime(file, (1, 1))
    with open(held, "rb+") as writer:
        assert _lock(writer.fileno())
        pt.save([1], path)
    assert set(names(tmp_path)) == {path.name, fresh.name, held.name, other.name}


def test_failed_write_to_an_open_file_raises():
    class Full(io.BytesIO):
        def write(self, data):
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        pt.save([1], Full())
