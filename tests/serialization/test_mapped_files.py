"""mmap=True: tensors are windows of the file, of every format, and nothing of them is read before it is used."""
import json
import os
import struct
import sys
import zipfile

import numpy as np
import pytest

import ptcore as pt

pytestmark = pytest.mark.core

DTYPES = ("bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 "
          "float16 bfloat16 float32 float64 complex64 complex128").split()
BIG = 1 << 25


@pytest.fixture(params=["x.npz", "x.safetensors", "x.pt", "sharded"])
def files(request, tmp_path):
    """(function that saves an object, path to load it from)"""
    if request.param == "sharded":
        return (lambda obj: pt.save(obj, tmp_path / "y.safetensors", max_shard_size=40),
                tmp_path / "y.safetensors.index.json")
    path = tmp_path / request.param
    return lambda obj: pt.save(obj, path), path


def mapped(tensor):
    """Whether the memory is that of a file: it cannot grow."""
    return not tensor.untyped_storage().resizable()


def same(a, b):
    assert a.dtype is b.dtype
    assert a.shape == b.shape
    bits = [t.view(pt.int16) if t.dtype == pt.bfloat16 else t for t in (a, b)]
    assert bits[0].numpy().tobytes() == bits[1].contiguous().numpy().tobytes()


def test_values(files):
    save, path = files
    obj = {name: pt.arange(6).view(2, 3).to(getattr(pt, name)) for name in DTYPES}
    obj |= {"scalar": pt.tensor(2.5), "empty": pt.empty(0, 3), "t": pt.arange(6.0).view(2, 3).t(),
            "nested": [pt.ones(3)]}
    save(obj)
    plain, loaded = pt.load(path), pt.load(path, mmap=True)
    for name in obj.keys() - {"nested"}:
        assert mapped(loaded[name]) == (name != "empty"), name
        assert not mapped(plain[name])
        same(loaded[name], obj[name])
        same(plain[name], obj[name])
    assert mapped(loaded["nested"][0])


def test_the_file_is_not_changed_and_may_go(files):
    save, path = files
    save({"a": pt.arange(1000.0), "b": pt.zeros(3)})
    before = {each: each.read_bytes() for each in path.parent.iterdir()}
    first, second = pt.load(path, mmap=True), pt.load(path, mmap=True)
    first["a"].add_(1)
    assert first["a"][:3].tolist() == [1, 2, 3]
    assert second["a"][:3].tolist() == [0, 1, 2]
    assert {each: each.read_bytes() for each in path.parent.iterdir()} == before
    save({"a": pt.full((1000,), -1.0), "b": pt.ones(3)})
    assert second["a"].sum().item() == 499500
    assert pt.load(path, mmap=True)["a"][0].item() == -1
    save(first)                         # what is mapped, over the file that it lies in
    assert pt.load(path)["a"].tolist() == first["a"].tolist() == list(range(1, 1001))
    for each in path.parent.iterdir():
        each.unlink()
    window = second["a"][10:20]
    del second
    assert window.tolist() == list(range(10, 20))


def read_bytes():
    with open("/proc/self/io") as f:
        return int(f.readline().split()[1])


def resident():
    with open("/proc/self/smaps_rollup") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("Rss:"))


@pytest.mark.counts
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts as Linux does")
def test_nothing_is_read_before_it_is_used(files):
    save, path = files
    save({"big": pt.ones(BIG // 4), "small": pt.arange(10.0)})
    pt.load(path, mmap=True)
    before = read_bytes(), resident()
    loaded = pt.load(path, mmap=True)
    small = loaded["small"].tolist()
    after = read_bytes(), resident()
    assert small == list(range(10))
    assert after[0] - before[0] < 1 << 18
    assert after[1] - before[1] < BIG // 4
    assert loaded["big"].sum().item() == BIG // 4
    assert resident() - before[1] > BIG // 2
    before = read_bytes()
    pt.load(path, map_location="meta")
    assert read_bytes() - before < 1 << 18
    before = read_bytes()
    pt.load(path)
    assert read_bytes() - before > BIG


def safetensors_file(path, tensors, data, padding=b""):
    text = json.dumps(tensors).encode() + padding
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def test_safetensors_that_are_not_aligned(tmp_path):
    path = tmp_path / "x.safetensors"
    entry = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
             "b": {"dtype": "U8", "shape": [3], "data_offsets": [8, 11]}}
    for extra in range(8):
        safetensors_file(path, entry, struct.pack("<2f", 1, 2) + b"\1\2\3", b" " * extra)
        loaded = pt.load(path, mmap=True)
        assert loaded["a"].tolist() == [1, 2]
        assert loaded["b"].tolist() == [1, 2, 3]
        assert mapped(loaded["a"]) == ((len(json.dumps(entry)) + extra) % 4 == 0)
        assert mapped(loaded["b"])


def test_npz_of_numpy(tmp_path):
    """Where NumPy puts its arrays depends on their names: those that are not aligned are copied."""
    path = tmp_path / "x.npz"
    for n in range(8):
        name = "n" * (n + 1)
        array = np.arange(6.0).reshape(2, 3)
        np.savez(path, **{name: array, "bytes": np.arange(3, dtype="u1"), "f": np.asfortranarray(array),
                          "big": np.arange(3, dtype=">i4")})
        with zipfile.ZipFile(path) as found:
            at = found.getinfo(name + ".npy").header_offset
        data = path.read_bytes()
        n_name, n_extra = struct.unpack_from("<2H", data, at + 26)
        aligned = (at + 30 + n_name + n_extra) % 8 == 0
        for loaded in (pt.load(path), pt.load(path, mmap=True)):
            assert loaded[name].tolist() == loaded["f"].tolist() == array.tolist()
            assert loaded["big"].tolist() == [0, 1, 2]
        assert mapped(loaded[name]) == aligned
        assert mapped(loaded["bytes"])
        assert not mapped(loaded["big"])
    np.savez_compressed(path, a=array)
    loaded = pt.load(path, mmap=True)
    assert loaded["a"].tolist() == array.tolist()
    assert not mapped(loaded["a"])


def test_npz_is_written_aligned(tmp_path):
    path = tmp_path / "x.npz"
    pt.save({name: pt.ones(3) for name in ("a", "bb", "cccc", "ü" * 50, "c" * 40_000)}, path)
    data = path.read_bytes()
    with zipfile.ZipFile(path) as found:
        assert found.testzip() is None
        for info in found.infolist():
            n_name, n_extra = struct.unpack_from("<2H", data, info.header_offset + 26)
            assert (info.header_offset + 30 + n_name + n_extra) % 64 == 0
    with np.load(path) as found:
        assert found["bb"].tolist() == [1, 1, 1]


def test_a_file_that_is_empty(tmp_path):
    for name in ("x.npz", "x.safetensors", "x.pt", "x.safetensors.index.json"):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(pt.serialization.CorruptFileError):
            pt.load(tmp_path / name, mmap=True)


def test_files_that_are_open(tmp_path):
    pt.save([pt.ones(2)], tmp_path / "x.pt")
    with open(tmp_path / "x.pt", "rb") as file, pytest.raises(ValueError, match="needs a path"):
        pt.load(file, mmap=True)
    assert os.listdir(tmp_path) == ["x.pt"]
