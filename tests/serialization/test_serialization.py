"""save and load: round trips, foreign files, damaged files, atomic writing."""

import math
import os
import struct
import sys
from collections import Counter, OrderedDict
from pathlib import Path

import numpy as np
import pytest

import ptcore as pt
from ptcore import nn, optim, serialization
from ptcore.serialization import CorruptFileError, _options
from ptcore.serialization._constructors import pickle_is_allowed

pytestmark = pytest.mark.core

DTYPES = (
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 "
    "float16 bfloat16 float32 float64 complex64 complex128"
).split()
VALUES = [[0, 1, 2], [3, 4, 5]]


@pytest.fixture(params=[".npz", ".safetensors", ".pt"])
def suffix(request):
    return request.param


@pytest.fixture
def path(tmp_path, suffix):
    return tmp_path / f"file{suffix}"


def round_trip(obj, path):
    pt.save(obj, path)
    return pt.load(path)


def bits(tensor):
    if tensor.dtype == pt.bfloat16:
        tensor = tensor.view(pt.uint16)
    return tensor.contiguous().numpy().tobytes()


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_and_shape(name, path):
    dtype = getattr(pt, name)
    tensors = [
        pt.tensor(VALUES).to(dtype),
        pt.tensor(1).to(dtype),
        pt.empty((0, 3), dtype=dtype),
        pt.tensor(VALUES).to(dtype).t(),
        pt.tensor(VALUES).to(dtype)[:, ::2],
    ]
    for before, after in zip(tensors, round_trip(tensors, path), strict=True):
        assert after.dtype == dtype
        assert after.shape == before.shape
        assert bits(after) == bits(before)
        assert not after.requires_grad


def test_special_values(path):
    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e308])
    loaded = round_trip({"x": pt.from_numpy(values)}, path)["x"].numpy()
    assert loaded.tobytes() == values.tobytes()


def test_plain_data(path):
    obj = {
        "none": None, 3: [True, -(10**30), 2.5, "text", "ü\n\0"], True: (), None: [(), {}],
        "floats": (math.inf, -math.inf, 1e-300, 0.1),
        "ordered": OrderedDict([("b", 1), ("a", {"nested": [{}]})]),
        "counter": Counter({4: 2}), "size": pt.Size([2, 3]), "dtype": pt.bfloat16,
        "device": pt.device("cpu"), 2.5: "float key", (1, "t"): "tuple key",
    }  # fmt: skip
    loaded = round_trip(obj, path)
    assert loaded == obj
    assert [type(k) for k in loaded] == [type(k) for k in obj]
    assert type(loaded["ordered"]) is OrderedDict
    assert type(loaded["counter"]) is Counter
    assert type(loaded["size"]) is pt.Size
    assert math.isnan(round_trip([math.nan], path)[0])
    assert round_trip({"n": np.float32(0.5), "i": np.int64(3)}, path) == {
        "n": 0.5,
        "i": 3,
    }
    assert round_trip(pt.ones(2), path).tolist() == [1, 1]


def test_names_that_collide(path):
    obj = {
        "a.b": pt.ones(1), "a": {"b": pt.zeros(1)}, "x.npy": pt.full((1,), 2.0),
        "x": pt.full((1,), 3.0), "__ptcore__": pt.full((1,), 4.0), "": pt.full((1,), 5.0),
        "file": pt.full((1,), 6.0), "../up": pt.full((1,), 7.0), "zero\0a": pt.full((1,), 8.0),
        "zero\0b": pt.full((1,), 9.0), "__metadata__": pt.full((1,), 10.0),
    }  # fmt: skip
    loaded = round_trip(obj, path)
    assert loaded["a.b"].item() == 1
    assert loaded["a"]["b"].item() == 0
    assert [loaded[k].item() for k in list(obj)[2:]] == list(range(2, 11))


def test_checkpoint_of_model_and_optimizer(path):
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    schedule = optim.lr_scheduler.MultiStepLR(optimizer, [1, 2])
    x = pt.ones(2, 3)

    def step(model, optimizer, schedule):
        optimizer.zero_grad()
        model(x).pow(2).sum().backward()
        optimizer.step()
        schedule.step()

    step(model, optimizer, schedule)
    checkpoint = {
        "model": model.state_dict(), "optimizer": optimizer.state_dict(),
        "schedule": schedule.state_dict(), "epoch": 1,
    }  # fmt: skip
    loaded = round_trip(checkpoint, path)
    twin = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    twin_optimizer = optim.Adam(twin.parameters())
    twin_schedule = optim.lr_scheduler.MultiStepLR(twin_optimizer, [9])
    twin.load_state_dict(loaded["model"])
    twin_optimizer.load_state_dict(loaded["optimizer"])
    twin_schedule.load_state_dict(loaded["schedule"])
    step(model, optimizer, schedule)
    step(twin, twin_optimizer, twin_schedule)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        assert bits(p.detach()) == bits(q.detach())
    assert twin_schedule.get_last_lr() == schedule.get_last_lr()


def test_metadata_of_state_dict_survives(path):
    state = nn.Linear(1, 1).state_dict()
    assert round_trip(state, path)._metadata == {"": {"version": 1}}


def test_shared_tensor_is_stored_twice(path):
    if path.suffix == ".pt":
        pytest.skip("stored once")
    t = pt.ones(3)
    a, b = round_trip([t, t], path)
    a.add_(1)
    assert b.tolist() == [1, 1, 1]


def test_loaded_tensors_can_be_written(path):
    assert round_trip([pt.zeros(2)], path)[0].add_(1).tolist() == [1, 1]


def test_paths(tmp_path, suffix):
    obj = {"x": 1}
    for path in (str(tmp_path / f"a{suffix}"), tmp_path / f"b{suffix.upper()}"):
        assert round_trip(obj, path) == obj
    link = tmp_path / f"link{suffix}"
    link.symlink_to(tmp_path / f"a{suffix}")
    pt.save({"x": 2}, link)
    assert link.is_symlink()
    assert pt.load(tmp_path / f"a{suffix}") == {"x": 2}
    with pytest.raises(FileNotFoundError):
        pt.load(tmp_path / f"absent{suffix}")
    with pytest.raises(FileNotFoundError):
        pt.save(obj, tmp_path / "absent" / f"a{suffix}")


def test_what_is_no_path():
    for call in (lambda f: pt.save({}, f), pt.load):
        with pytest.raises(TypeError, match="must be a path or a file, got int"):
            call(3)


def test_unsupported_objects(path):
    if path.suffix == ".pt":
        pytest.skip("holds more: tests/serialization/test_torch_files.py")
    pt.save({"old": 1}, path)
    loop = []
    loop.append({"loop": loop})
    deep = []
    for _ in range(5000):
        deep = [deep]
    for obj, error, text in [
        ({"a": [1, {2}]}, TypeError, "got set at 'a.1'"),
        (object(), TypeError, "got object"),
        ({"a": np.ones(2)}, TypeError, "got ndarray"),
        ({pt.ones(1): 1}, TypeError, "is a tensor"),
        (loop, ValueError, "contains itself"),
        (deep, ValueError, "100 levels"),
        ({"m": pt.empty(2, device="meta")}, ValueError, "'m' is on meta"),
    ]:
        with pytest.raises(error, match=text):
            pt.save(obj, path)
    assert pt.load(path) == {"old": 1}
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_mode_of_the_old_file_is_kept(path):
    for mode in (0o600, 0o664):
        pt.save({"a": 1}, path)
        path.chmod(mode)
        pt.save({"a": 2}, path)
        assert path.stat().st_mode & 0o7777 == mode
        assert pt.load(path) == {"a": 2}


def test_interrupted_write_keeps_the_old_file(path, monkeypatch):
    pt.save({"old": 1}, path)

    def fails(*args):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="disk full"):
        pt.save({"new": pt.ones(3)}, path)
    monkeypatch.undo()
    assert pt.load(path) == {"old": 1}
    assert os.listdir(path.parent) == [path.name]


def test_equal_data_gives_equal_bytes(path):
    obj = {"a": pt.arange(5), "b": [1, 2.5]}
    pt.save(obj, path)
    first = path.read_bytes()
    pt.save(obj, path)
    assert path.read_bytes() == first


def test_truncated_files(path):
    pt.save({"w": pt.arange(40.0), "n": {"k": pt.ones(3, dtype=pt.int16)}}, path)
    whole = path.read_bytes()
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match="truncated or not a valid") as info:
            pt.load(path)
        assert str(path) in str(info.value)


@pytest.mark.outer
def test_damaged_files_never_crash(path):
    pt.save({"w": pt.arange(10.0), "n": {"k": pt.ones(3, dtype=pt.int16)}}, path)
    whole = path.read_bytes()
    damaged = 0
    for i in range(len(whole)):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 0x55]) + whole[i + 1 :])
        try:
            pt.load(path)
        except ValueError:
            damaged += 1
    assert damaged > len(whole) // 4  # zip has checksums, safetensors a checked header


@pytest.mark.parametrize(
    "header",
    [
        '{"version": 2, "root": 1}',
        '{"version": 1, "root": {"tensor": "absent"}}',
        '{"version": 1, "root": {"tensor": "x", "dtype": "int8"}}',
        '{"version": 1, "root": {"class": "os.system"}}',
        '{"version": 1, "root": {"dtype": "Tensor"}}',
        '{"version": 1, "root": {"dict": [[[], 1]]}}',
        "[" * 100_000,
        "[]",
    ],
)
def test_hostile_headers(tmp_path, header):
    path = tmp_path / "x.npz"
    array = np.frombuffer(header.encode(), np.uint8)
    np.savez(path, x=np.ones(2), **{"__ptcore__": array})
    with pytest.raises(ValueError, match="not a valid"):
        pt.load(path)


def test_pickles_inside_npz_are_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, x=np.array([object()], dtype=object))
    with pytest.raises(NotImplementedError, match="holds Python objects"):
        pt.load(path)


def test_foreign_npz(tmp_path):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=np.arange(3, dtype=">i4"), b=np.float32(2))
    loaded = pt.load(path)
    assert list(loaded) == ["a", "b"]
    assert loaded["a"].dtype == pt.int32
    assert loaded["a"].tolist() == [0, 1, 2]
    assert loaded["b"].item() == 2
    np.savez(path, a=np.array(["text"]))
    with pytest.raises(NotImplementedError, match=r"a\.npy has the dtype <U4"):
        pt.load(path)


def test_npz_is_readable_by_numpy(tmp_path):
    path = tmp_path / "x.npz"
    pt.save(nn.Linear(2, 3).state_dict(), path)
    with np.load(path, allow_pickle=False) as archive:
        assert archive["weight"].shape == (3, 2)


def test_safetensors_of_every_dtype_for_its_library(tmp_path):
    """The library checks a file as a whole, and gives back the bits that were saved."""
    numpy_io = pytest.importorskip("safetensors.numpy")
    pytest.importorskip("ml_dtypes")        # gives NumPy bfloat16
    path = tmp_path / "x.safetensors"
    obj = {"z": pt.ones(3).bool(), "ü \"\\": pt.arange(3.0), "empty": pt.empty(0, 2), "__metadata__": pt.ones(1)}
    obj |= {name: pt.tensor(VALUES).to(getattr(pt, name)) for name in DTYPES}
    pt.save(obj, path)
    found = numpy_io.load_file(path)
    assert len(found) == len(obj)
    for name in set(obj) - {"__metadata__", "complex128"}:
        assert found[name].tobytes() == bits(obj[name])
        assert found[name].shape == tuple(obj[name].shape)
    assert found["complex128"].tobytes() == bits(obj["complex128"])
    assert pt.load(path)["__metadata__"].tolist() == [1]
    foreign = {str(k): v for k, v in enumerate(found.values())}
    numpy_io.save_file(foreign, path, metadata={"a": "b"})
    loaded = pt.load(path)
    assert all(bits(loaded[k]) == v.tobytes() for k, v in foreign.items())


def test_safetensors_exchange(tmp_path):
    numpy_io = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "x.safetensors"
    pt.save({"layer": {"w": pt.arange(3)}}, path)
    assert numpy_io.load_file(path)["layer.w"].tolist() == [0, 1, 2]
    import safetensors
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata()["format"] == "pt"        # other loaders ask for it
    numpy_io.save_file({"q": np.ones(2, np.float16)}, path, metadata={"key": "value"})
    loaded = pt.load(path)
    assert loaded["q"].dtype == pt.float16
    assert loaded.metadata == {"key": "value"}


def test_safetensors_bfloat16_by_hand(tmp_path):
    path = Path(tmp_path / "x.safetensors")
    header = b'{"b":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}'
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\x80\x3f\x00\xc0")
    loaded = pt.load(path)["b"]
    assert loaded.dtype == pt.bfloat16
    assert loaded.tolist() == [1.0, -2.0]


def test_map_location(path):
    pt.save({"a": pt.ones(1)}, path)
    for where in ("cpu", pt.device("cpu"), {"cuda:0": "cpu"}, None):
        assert pt.load(path, map_location=where)["a"].device.type == "cpu"
    assert pt.load(path, map_location="meta")["a"].is_meta
    assert pt.load(path, map_location={"cpu": "meta"})["a"].is_meta
    with pytest.raises(TypeError, match="map_location must be"):
        pt.load(path, map_location=3)


@pytest.mark.parametrize("size, files", [(8, 2), (8.0, 2), ("8", 2), (np.int64(8), 2), (100, 0), ("1.5KB", 0), *[
    (bad, None) for bad in (True, 0, -1, 0.5, 1.5, math.nan, math.inf, "0", "-1", "1 XB", "", None, np.bool_(True))]])
def test_bounds_of_files(tmp_path, size, files):
    path = tmp_path / "x.safetensors"
    if files is None and size is not None:
        with pytest.raises(ValueError, match="max_shard_size must be a positive number of bytes"):
            pt.save({"a": pt.ones(2), "b": pt.zeros(2)}, path, max_shard_size=size)
        assert not list(tmp_path.iterdir())
        return
    pt.save({"a": pt.ones(2), "b": pt.zeros(2)}, path, max_shard_size=size)
    assert len([p for p in tmp_path.iterdir() if "-of-" in p.name]) == (files or 0)


def test_integers_that_collide_as_keys(tmp_path):
    """A dictionary of n integers of one hash would take n * n comparisons."""
    keys = [k * sys.hash_info.modulus + 1 for k in range(20_000)]
    path = tmp_path / "x.npz"
    pt.save(dict.fromkeys(keys[:3]), path)
    assert pt.load(path) == dict.fromkeys(keys[:3])
    pt.save(dict.fromkeys(keys), path)
    with pytest.raises(CorruptFileError, match="made to collide"):
        pt.load(path)


@pytest.mark.parametrize("call", [serialization.set_crc32_options, serialization.allow_pickle])
def test_settings_are_no_texts(call):
    for bad in ("no", 2, None):
        with pytest.raises((TypeError, ValueError)):
            call(bad)
    assert serialization.get_crc32_options() is True and not pickle_is_allowed()


def test_a_tagger_must_give_a_text(tmp_path):
    before = list(_options.packages)
    serialization.register_package(5, lambda storage: 3, lambda storage, location: None)
    try:
        with pytest.raises(TypeError, match="tagger of register_package must return a str or None, got int"):
            pt.save({"a": pt.ones(2)}, tmp_path / "x.pt")
        assert not list(tmp_path.iterdir())
    finally:
        _options.packages[:] = before
