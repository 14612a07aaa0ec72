"""safetensors and npz files that are made to do harm: an error that says what is wrong, bounded memory."""
import io
import json
import struct
import zipfile

import numpy as np
import pytest

import ptcore as pt
from ptcore.serialization import CorruptFileError

pytestmark = pytest.mark.core


# -- safetensors -----------------------------------------------------------------------------------

def entry(dtype="F32", shape=(2,), first=0, last=8):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [first, last]}


def safetensors_file(path, header, data=b"\0" * 8, size=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if size is None else size) + text + data)
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.safetensors"


@pytest.fixture(params=[False, True])
def mapped(request):
    return request.param


DEEP = "recursion|Stack overflow"            # from Python 3.14 on


@pytest.mark.parametrize("header, word", [
    ({"a": entry(shape=(3,))}, "need 12"), ({"a": entry(shape=(-2,))}, "shape"), ({"a": entry(shape=(2.0,))}, "shape"),
    ({"a": entry(shape=(True, 2))}, "shape"), ({"a": entry(shape=(1 << 62, 8))}, "need"),
    ({"a": entry(shape=(1 << 64,))}, "shape"), ({"a": entry(shape=[10**400])}, "shape"),
    ({"a": {**entry(), "shape": "ab"}}, "shape"), ({"a": {**entry(), "shape": None}}, "shape"),
    ({"a": {"dtype": "F32", "data_offsets": [0, 8]}}, "shape"),
    ({"a": entry(last=9)}, "end at"), ({"a": entry(last=4, shape=(1,))}, "end at"),
    ({"a": entry(first=8, last=0)}, "gap"),
    ({"a": entry(first=4, shape=(1,))}, "gap"), ({"a": entry(first=-8)}, "damaged"),
    ({"a": entry(last=1 << 63)}, "damaged"),
    ({"a": entry(last=1 << 62)}, "end at"), ({"a": {**entry(), "data_offsets": [0]}}, "damaged"),
    ({"a": {**entry(), "data_offsets": [0.0, 8.0]}}, "damaged"), ({"a": {**entry(), "data_offsets": {}}}, "damaged"),
    ({"a": entry(), "b": entry()}, "over each other"),
    ({"a": entry(last=6), "b": entry(first=4, last=8)}, "over each other"),
    ({"a": [1]}, "damaged"), ({"a": None}, "damaged"), ({"a": entry("F99")}, "unknown dtype"),
    ({"a": {**entry(), "dtype": ["F32"]}}, "unknown dtype"), ({}, "end at"), ([], "no object"),
    (b"", "Expecting value"),
    (b"null", "no object"), (b"\xff\xfe{\0}\0", "utf-8"), (b"{" * 50_000, "Expecting|recursion"),
    (b"[" * 200_000, DEEP), (b'{"a":NaN}', "NaN"), (b'{"a":Infinity}', "Infinity"),
    (b'{"a":{"dtype":"F32","dtype":"F64","shape":[2],"data_offsets":[0,8]}}', "two entries"),
    (b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
     "two entries"),
    ({"__metadata__": {"a": 1}, "a": entry()}, "texts"), ({"__metadata__": [1], "a": entry()}, "texts"),
    ({"__metadata__": {"ptcore": "[" * 100_000}, "a": entry()}, DEEP),
    ({"__metadata__": {"ptcore": "{}"}, "a": entry()}, "version"),
    ({"a": entry(shape=(1,) * 70 + (2,))}, "dim"),
])
def test_headers_of_safetensors(path, mapped, header, word):
    safetensors_file(path, header)
    with pytest.raises(CorruptFileError, match=f"truncated or not a valid .safetensors file: .*({word})"):
        pt.load(path, mmap=mapped)


@pytest.mark.parametrize("size", [9, 1 << 30, 1 << 60, (1 << 64) - 1])
def test_headers_longer_than_the_file(path, mapped, size):
    with pytest.raises(CorruptFileError, match=f"a header of {size} bytes in a file of 10"):
        pt.load(safetensors_file(path, b"{}", b"", size), mmap=mapped)


def test_shapes_that_hold_nothing(path, mapped):
    safetensors_file(path, {"a": entry(shape=(0, 1 << 62), last=0), "b": entry()})
    assert pt.load(path, mmap=mapped)["a"].shape == (0, 1 << 62)
    safetensors_file(path, {"a": entry(shape=(1 << 62, 1 << 62, 0), last=0), "b": entry()})
    with pytest.raises(CorruptFileError):
        pt.load(path, mmap=mapped)


def test_dtypes_that_are_not_here_are_named(path):
    safetensors_file(path, {"a": entry("F4", shape=(8,))})
    with pytest.raises(NotImplementedError, match="'a' has the dtype F4"):
        pt.load(path)


def nested(root):
    return {"__metadata__": {"ptcore": json.dumps({"version": 1, "root": root})}, "a": entry()}


def test_a_tensor_that_is_named_again_and_again_is_one(path):
    """A megabyte of names must not become a copy of the tensor for each."""
    data = b"\0" * (1 << 20)
    header = nested([{"tensor": "a"}, {"tensor": "a", "dtype": "float32"}] * 50_000)
    header["a"] = entry(shape=(1 << 18,), last=1 << 20)
    loaded = pt.load(safetensors_file(path, header, data))
    assert len(loaded) == 100_000
    assert len({t.data_ptr() for t in loaded}) == 1


def test_keys_that_collide(path):
    numbers = [2.0 ** (61 * k) for k in range(-16, 16)]
    keys = [{"tuple": [a, b, c]} for a in numbers for b in numbers for c in numbers]
    with pytest.raises(CorruptFileError, match="made to collide"):
        pt.load(safetensors_file(path, nested({"dict": [[key, 1] for key in keys]})))
    assert len(pt.load(safetensors_file(path, nested([{"dict": [[keys[0], 1]]}] * 1000)))) == 1000


@pytest.mark.parametrize("root", [
    {"tensor": "b"}, {"tensor": "a", "dtype": "complex128"}, {"tensor": "a", "dtype": "bfloat16"}, {"tensor": ["a"]},
    {"tensor": "a", "dtype": []}, {"float": "1" * 100_000}, {"float": 1}, {"Size": "ab"}, {"Size": [0.5]}, {"Size": 3},
    {"device": "nonsense"}, {"device": [1]}, {"dtype": ["x"]}, {"dict": [[1]]}, {"dict": [[{"dict": []}, 1]]},
    {"os.system": "true"}, {}, {"tuple": 1}, {"tuple": [], "float": "nan"},
])
def test_nodes(path, root):
    with pytest.raises(CorruptFileError):
        pt.load(safetensors_file(path, nested(root)))


# -- npz -------------------------------------------------------------------------------------------

def npz(path, compression=zipfile.ZIP_STORED, **entries):
    with zipfile.ZipFile(path, "w", compression) as out:
        for name, data in entries.items():
            out.writestr(name + ".npy", data)
    return path


def npy(descr="'<f4'", shape="(2,)", order="False", data=b"\0" * 8, version=b"\1\0", more=""):
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}{more}}}\n".encode("latin1")
    return b"\x93NUMPY" + version + struct.pack("<H" if version == b"\1\0" else "<I", len(text)) + text + data


@pytest.mark.parametrize("content", [
    npy(shape="(3,)"), npy(shape="(1,)"), npy(shape="(-2,)"), npy(shape=f"({1 << 40},)"), npy(shape="(2.0,)"),
    npy(shape="2"),
    npy(shape=f"({1 << 62}, 8)"), npy(shape=f"({10**30},)"), npy(descr="'nonsense'"), npy(descr="__import__('os')"),
    npy(descr="-" * 9000 + "1"), npy(descr="(" * 3000), npy(descr="[" * 9000), npy(order="1"), npy(more=", 'x': 1"),
    npy(version=b"\3\0"), npy(version=b"\xff\0"),
    npy(version=b"\2\0")[:20], b"\x93NUMPY\2\0\xff\xff\xff\xff{}", b"", b"x",
    b"\x93NUMPY\1\0\xff\xff{}", npy(shape="(" + "1," * 70 + "2)"),
])
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_arrays_of_npz(tmp_path, mapped, content, compression):
    with pytest.raises(CorruptFileError, match=r"truncated or not a valid \.npz file"):
        pt.load(npz(tmp_path / "x.npz", compression, a=content), mmap=mapped)


@pytest.mark.parametrize("descr, word", [
    ("'|O'", "Python objects"), ("'<M8[s]'", "datetime64"), ("[('a', '<i4'), ('b', '<i4')]", "a.npy has the dtype"),
    ("'<U2'", "U2"), ("'<V8'", "V8"), ("'<f16'", "float128|<f16|longdouble"),
])
def test_dtypes_of_npz_that_are_not_here(tmp_path, descr, word):
    with pytest.raises(NotImplementedError, match=word):
        pt.load(npz(tmp_path / "x.npz", a=npy(descr, shape="(1,)", data=b"\0" * 16)))


def test_bombs_of_npz(tmp_path):
    """What grows beyond a multiple of the file and 256 MB is refused before it does; zeros of less are not."""
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for k in range(3):
            with out.open(f"a{k}.npy", "w") as f:
                f.write(npy("'|u1'", f"({100 << 20},)", data=b""))
                for _ in range(100):
                    f.write(bytes(1 << 20))
    with pytest.raises(CorruptFileError, match="would expand to"):
        pt.load(path)
    np.savez_compressed(path, mask=np.zeros(50_000_000, np.uint8))
    assert path.stat().st_size < 100_000
    assert pt.load(path)["mask"].shape == (50_000_000,)


def test_archives_of_npz(tmp_path):
    path = tmp_path / "x.npz"
    pt.save({"a": pt.arange(4.0), "b": pt.arange(4.0)}, path)
    whole = path.read_bytes()
    central = b"PK\1\2"
    for magic, offset, form, value in (
        (b"PK\3\4", 6, "<H", 1), (central, 8, "<H", 1), (central, 10, "<H", 12), (central, 16, "<I", 1),
        (central, 20, "<I", 5), (central, 24, "<I", 1 << 30), (central, 42, "<I", 64), (central, 42, "<I", 1 << 31),
        (b"PK\5\6", 10, "<H", 9), (b"PK\5\6", 16, "<I", 1),
    ):
        data = bytearray(whole)
        struct.pack_into(form, data, data.index(magic) + offset, value)
        path.write_bytes(data)
        with pytest.raises(CorruptFileError):
            pt.load(path)
    data = bytearray(whole)
    struct.pack_into("<I", data, data.rindex(central) + 42, 0)
    path.write_bytes(data)
    with pytest.raises(CorruptFileError, match="over each other"):
        pt.load(path)
    data = bytearray(whole)
    data[data.index(struct.pack("<4f", 0, 1, 2, 3)) + 5] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptFileError, match="checksum"):
        pt.load(path)
    npz(path, **{"a": npy(), "a.npy": npy()})
    assert sorted(pt.load(path)) == ["a", "a.npy"]
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("a", npy())
        out.writestr("a.npy", npy())
    with pytest.raises(CorruptFileError, match="two arrays"):
        pt.load(path)
    np.savez(path)
    assert pt.load(path) == {}


# -- an index of several files -----------------------------------------------------------------------

def test_index(tmp_path):
    path = tmp_path / "m.safetensors.index.json"
    safetensors_file(tmp_path / "m1", {"a": entry()})
    link = tmp_path / "m2"
    link.symlink_to(tmp_path / "m1")        # as caches of downloads have them
    path.write_text(json.dumps({"weight_map": {"a": "m2"}}))
    assert list(pt.load(path)) == ["a"]
    for index, word in (
        ('{"weight_map": {"a": "m1", "b": "m1"}}', "lacks tensors that the index lists: .'b'"),
        ('{"weight_map": {"a": "m1", "a": "m1"}}', "two entries"), ('{"weight_map": []}', "truncated"),
        ('{"weight_map": {"a": NaN}}', "NaN"), ("{}", "weight_map"),
        ('{"weight_map": {"a": "../m1"}}', "outside its folder"),
        ('{"weight_map": {"a": "x\\\\y"}}', "outside its folder"),
        ('{"weight_map": {"a": "m.safetensors.index.json"}}', "a header of"),
    ):
        path.write_text(index)
        with pytest.raises(CorruptFileError, match=word):
            pt.load(path)


def test_files_of_another_kind_are_told(tmp_path):
    path = tmp_path / "x.pt"
    pt.save([pt.ones(2)], path)
    for name in ("x.npz", "x.safetensors"):
        (tmp_path / name).write_bytes(path.read_bytes())
    with pytest.raises(CorruptFileError, match="is it a file of PyTorch's"):
        pt.load(tmp_path / "x.npz")
    with pytest.raises(CorruptFileError, match="it is a zip archive"):
        pt.load(tmp_path / "x.safetensors")
    for name in ("y.npz", "y.safetensors"):
        pt.save([pt.ones(2)], tmp_path / name)
    for content, word in (
        ((tmp_path / "y.npz").read_bytes(), "an npz file's name"),
        ((tmp_path / "y.safetensors").read_bytes(), "safetensors"),
        (b"\x1f\x8b\x08\0\0", "gzip"), (b"<html>", "web page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "LFS"),
        (b"", "empty"), (b"\x89HDF\r\n", "HDF5"),
    ):
        with pytest.raises(CorruptFileError, match=word):
            pt.load(io.BytesIO(content))
