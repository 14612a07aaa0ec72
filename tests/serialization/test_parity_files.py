"""save and load against torch.save and torch.load, both ways."""
import collections
import io
import zipfile

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity
DTYPES = ("bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 "
          "float16 bfloat16 float32 float64 complex64 complex128").split()
UNSIGNED = ("uint16", "uint32", "uint64")


def theirs(obj, stream=False, **options):
    file = io.BytesIO()
    torch.save(obj, file, _use_new_zipfile_serialization=not stream, **options)
    file.seek(0)
    return file


def ours(obj, stream=False):
    file = io.BytesIO()
    pt.save(obj, file, _use_new_zipfile_serialization=not stream)
    file.seek(0)
    return file


def same(a, b):
    """A value of ptcore and one of torch."""
    if isinstance(b, torch.Tensor):
        assert isinstance(a, pt.Tensor)
        assert isinstance(a, pt.nn.Parameter) == isinstance(b, torch.nn.Parameter)
        assert str(a.dtype).rpartition(".")[2] == str(b.dtype).rpartition(".")[2]
        assert tuple(a.shape) == tuple(b.shape)
        assert a.requires_grad == b.requires_grad
        assert a.is_meta == b.is_meta
        assert tuple(a.stride()) == tuple(b.stride())
        if not b.is_meta:
            assert a.untyped_storage().nbytes() == b.untyped_storage().nbytes()
            bits = a.detach(), b.detach()
            if a.dtype == pt.bfloat16:
                bits = bits[0].view(pt.int16), bits[1].view(torch.int16)
            np.testing.assert_array_equal(bits[0].numpy(), bits[1].resolve_conj().numpy())
    elif isinstance(b, dict):
        assert type(a) is type(b)
        assert list(a) == list(b)
        for key in b:
            same(a[key], b[key])
    elif isinstance(b, (torch.Size, torch.dtype, torch.device)):
        assert str(a).replace("ptcore", "torch") == str(b)
    elif isinstance(b, (list, tuple)):
        assert type(a) is type(b)
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)
    elif isinstance(b, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    else:
        assert type(a) is type(b)
        assert a == b


def tensors(lib, dtype):
    """All kinds of windows of shared memory, of one dtype."""
    base = lib.tensor(np.arange(24).reshape(2, 3, 4)).to(getattr(lib, dtype))
    return {
        "base": base, "t": base.permute(2, 0, 1), "row": base[1, 1], "step": base[:, :, 1::2],
        "wide": base[:1].expand(3, 3, 4), "scalar": base[1, 2, 3], "none": base[2:],
        "empty": lib.empty((0, 3), dtype=getattr(lib, dtype)),
    }


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_strides_and_sharing(dtype, stream):
    a, b = tensors(pt, dtype), tensors(torch, dtype)
    loaded = pt.load(theirs(b, stream))
    same(loaded, b)
    first, *others = [t.untyped_storage() for k, t in loaded.items() if k != "empty"]
    assert all(s is first for s in others)
    if stream and dtype in UNSIGNED:            # bytes of no dtype, which torch writes and cannot read
        with pytest.raises(AttributeError, match="UntypedStorage"):
            torch.load(theirs(b, stream))
        with pytest.raises(NotImplementedError, match=dtype):
            ours(a, stream)
        return
    back = torch.load(ours(a, stream), weights_only=True)
    same(a, back)
    back["base"].zero_()
    assert not back["row"].any()


def values(lib):
    p = lib.nn.Parameter(lib.tensor([1.0, 2.0]))
    frozen = lib.nn.Parameter(lib.tensor([3]), requires_grad=False)
    return {
        "nested": [(1, (2, [3, {}])), (), [], {}], "long": list(range(3000)), "none": None, "bools": [True, False],
        "floats": [1.5, float("inf"), -0.0], "ints": [0, 255, 256, 65536, -1, 2**40, -(10**40)], "text": "ü\n\0",
        "keys": {1: "a", (1, 2): "b", None: "c"}, "od": collections.OrderedDict([("b", 1), ("a", 2)]),
        "counter": collections.Counter("aab"), "size": lib.Size([2, 3]), "dtype": lib.bfloat16,
        "device": lib.device("cpu"), "bytes": b"\xff\0", "array": bytearray(b"x"), "set": {1, 2},
        "complex": 1 - 2j, "p": p, "frozen": frozen,
        "again": p, "leaf": lib.ones(2, requires_grad=True), "meta": lib.empty((2, 3), device="meta"),
    }


@pytest.mark.parametrize("stream", [False, True])
def test_values(stream):
    a, b = values(pt), values(torch)
    for protocol in (2, 3, 4, 5):
        loaded = pt.load(theirs(b, stream, pickle_protocol=protocol))
        same(loaded, b)
        assert loaded["again"] is loaded["p"]
    back = torch.load(ours(a, stream), weights_only=True)
    same(a, back)
    assert back["again"] is back["p"]


@pytest.mark.parametrize("stream", [False, True])
def test_numpy_both_ways(stream):
    values = {
        "scalars": [np.dtype(c).type(1) for c in "?bBhHiIlLefdFD"], "text": np.str_("a"), "bytes": np.bytes_(b"b"),
        "zero": np.array(2.5), "f": np.asfortranarray(np.ones((2, 3))), "texts": np.array(["ab", "c"]),
        "dtype": np.dtype("float16"), "big": np.arange(3, dtype=">i4"), "again": np.float32(0.1)}
    for protocol in (2, 5):
        # NumPy's own pickles of protocol 2 forget the byte order
        same(pt.load(theirs(values, stream, pickle_protocol=protocol)), torch.load(
            theirs(values, stream, pickle_protocol=protocol), weights_only=False))
    same(torch.load(ours(values, stream), weights_only=False), values)


def test_versions_are_those_of_torch():
    """Of the archive's layout: what torch refuses is refused here."""
    names = {0: False, 1: True, 3: True, 10: True, 11: False}
    for version, known in names.items():
        file = theirs({"a": torch.ones(2)})
        content = zipfile.ZipFile(file)
        other = io.BytesIO()
        with zipfile.ZipFile(other, "w", zipfile.ZIP_STORED) as out:
            for name in content.namelist():
                out.writestr(name, str(version) if name.endswith("/version") else content.read(name))
        for lib in (pt, torch):
            other.seek(0)
            if known:
                assert lib.load(other)["a"].tolist() == [1, 1]
            else:
                with pytest.raises(RuntimeError, match=f"version.* {version}|{version}.*version|which version"):
                    lib.load(other)


def test_what_torch_allows_by_list_only():
    b = {"frozen": frozenset([1]), "scalar": np.float32(2.5), "c": np.arange(6).reshape(2, 3), "i": np.int64(3),
         "f": np.asfortranarray(np.ones((2, 3))), "text": np.array(["ab", "c"]), "bool": np.bool_(True),
         "half": np.ones(2, np.float16), "empty": np.empty((0, 2)), "default": collections.defaultdict(list, {1: [2]})}
    for protocol in (2, 5):
        same(pt.load(theirs(b, pickle_protocol=protocol)), b)
    assert pt.load(theirs({"dtype": np.dtype(">f4")}))["dtype"] == np.dtype(">f4")
    arrays = {k: b[k] for k in ("c", "f", "text", "half", "empty")}
    dtypes = [type(v.dtype) for v in arrays.values()]
    with torch.serialization.safe_globals([np._core.multiarray._reconstruct, np.ndarray, np.dtype, *dtypes]):
        for name, array in torch.load(ours(arrays), weights_only=True).items():
            np.testing.assert_array_equal(array, arrays[name])


def test_attributes_conj_and_neg():
    t = torch.ones(2)
    t.note = [1]
    p = torch.nn.Parameter(torch.ones(2))
    p.note = "b"
    loaded = pt.load(theirs([t, p]))
    assert [x.note for x in loaded] == [[1], "b"]
    a, q = pt.ones(2), pt.nn.Parameter(pt.ones(2))
    a.note, q.note = [1], "b"
    back = torch.load(ours([a, q]), weights_only=True)
    assert [x.note for x in back] == [[1], "b"]
    assert type(back[1]) is torch.nn.Parameter
    c = torch.tensor([1 + 2j, 3 - 4j])
    for stream in (False, True):
        loaded = pt.load(theirs([c.conj(), torch.nn.Parameter(c.conj()), c], stream))
        assert [x.tolist() for x in loaded] == [[1 - 2j, 3 + 4j], [1 - 2j, 3 + 4j], [1 + 2j, 3 - 4j]]
        assert loaded[1].requires_grad
        assert pt.load(theirs(c.conj().imag, stream)).tolist() == [-2, 4]


def test_storages():
    base = torch.arange(4.0)
    assert pt.load(theirs(base.untyped_storage())).nbytes() == 16
    tensor, storage = pt.load(theirs([base, base.storage()]))
    assert storage._untyped_storage is tensor.untyped_storage()
    assert storage._tensor().tolist() == [0, 1, 2, 3]
    assert storage._size() == 4
    assert storage.dtype == pt.float32
    mine = pt.arange(4.0)
    back = torch.load(ours([mine.untyped_storage(), mine]), weights_only=True)
    assert back[0].data_ptr() == back[1].data_ptr()
    for stream in (False, True):
        back = torch.load(ours([storage], stream), weights_only=True)
        assert list(back[0]) == [0, 1, 2, 3]


def test_one_storage_of_several_dtypes():
    base = pt.arange(6, dtype=pt.uint32)
    a = [base, base.view(pt.float32), base.view(pt.int16)[1:5]]
    back = torch.load(ours(a), weights_only=True)
    same(a, back)
    assert len({t.data_ptr() - 2 * (i == 2) for i, t in enumerate(back)}) == 1
    floats = pt.arange(4.0)
    same([floats, floats.view(pt.int32)], torch.load(ours([floats, floats.view(pt.int32)]), weights_only=True))


def test_negative_strides_become_positive():
    assert torch.load(ours(pt.arange(4)[::-1]), weights_only=True).tolist() == [3, 2, 1, 0]


NETWORK = [("BatchNorm1d", 4), ("Linear", 4, 8), ("Tanh",), ("Linear", 8, 2)]
OPTIMIZERS = {"SGD": {"lr": 0.1, "momentum": 0.9}, "Adam": {"amsgrad": True}, "AdamW": {},
              "RMSprop": {"centered": True}, "Adagrad": {}, "Adadelta": {}, "NAdam": {}, "RAdam": {},
              "Rprop": {}, "ASGD": {}, "Adamax": {}}


def training(lib, name):
    lib.manual_seed(0)
    net = lib.nn.Sequential(*[getattr(lib.nn, kind)(*sizes) for kind, *sizes in NETWORK]).double()
    optimizer = getattr(lib.optim, name)(net.parameters(), **OPTIMIZERS[name])
    return net, optimizer, lib.optim.lr_scheduler.MultiStepLR(optimizer, [2, 3])


def step(lib, net, optimizer, schedule):
    x = lib.tensor(np.random.default_rng(1).normal(size=(5, 4)))
    optimizer.zero_grad()
    net(x).pow(2).sum().backward()
    optimizer.step()
    schedule.step()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on_in_the_other_library(name, stream):
    """Two steps here, the state through a file, one step there: the numbers of three steps."""
    for first, second, save, load in (
        (torch, pt, theirs, pt.load), (pt, torch, ours, lambda f: torch.load(f, weights_only=True)),
    ):
        one = training(first, name)
        for _ in range(2):
            step(first, *one)
        state = dict(zip(("net", "optimizer", "schedule"), (part.state_dict() for part in one)))
        file = save(state, stream)
        step(first, *one)
        two = training(second, name)
        state = load(file)
        two[0].load_state_dict(state["net"])
        two[1].load_state_dict(state["optimizer"])
        two[2].load_state_dict(state["schedule"])
        step(second, *two)
        for p, q in zip(one[0].state_dict().values(), two[0].state_dict().values(), strict=True):
            np.testing.assert_allclose(np.asarray(p), np.asarray(q), rtol=1e-9, atol=1e-12)
        assert two[2].get_last_lr() == pytest.approx(one[2].get_last_lr())


def test_metadata_of_state_dicts():
    net = training(torch, "SGD")[0]
    same(dict(pt.load(theirs(net.state_dict()))._metadata), dict(net.state_dict()._metadata))
    net = training(pt, "SGD")[0]
    assert torch.load(ours(net.state_dict()), weights_only=True)._metadata == net.state_dict()._metadata


def test_mmap_both_ways(tmp_path, monkeypatch):
    """With PyTorch's own check that data lie where it works out they do."""
    monkeypatch.setenv("TORCH_SERIALIZATION_DEBUG", "1")
    path = tmp_path / "x.pt"
    a = {"a": pt.arange(1000.0), "b": pt.arange(3), "empty": pt.empty(0), "big": pt.ones(70_000),
         "u": pt.ones(1).bool()}
    pt.save(a, path)
    for mapped in (False, True):
        same(a, torch.load(path, weights_only=True, mmap=mapped))
    assert torch.load(path, weights_only=True, map_location="meta")["a"].untyped_storage()._checkpoint_offset % 64 == 0
    b = {k: torch.from_numpy(v.numpy().copy()) for k, v in a.items()}
    torch.save(b, path)
    for mapped in (False, True):
        same(pt.load(path, mmap=mapped), b)


def test_archives_without_checksums():
    torch.serialization.set_crc32_options(False)
    try:
        file = theirs([torch.arange(3)])
    finally:
        torch.serialization.set_crc32_options(True)
    assert pt.load(file)[0].tolist() == [0, 1, 2]


def test_layout_is_pytorchs():
    """Entries, flags and the bytes around the data, but for the identifier that torch adds."""
    def described(file):
        with zipfile.ZipFile(file) as found:
            return [(i.header_offset, i.filename, i.file_size, i.flag_bits, i.compress_type, i.CRC, i.extra)
                    for i in found.infolist() if not i.filename.endswith(("data.pkl", "serialization_id"))]

    a, b = described(ours([pt.arange(3), pt.ones(100)])), described(theirs([torch.arange(3), torch.ones(100)]))
    assert [entry[1:] for entry in a] == [entry[1:] for entry in b]
    assert a[4][0] - a[3][0] == b[4][0] - b[3][0]       # the first storage's bytes and what fills up


def test_quantised_sparse_and_unknown_are_refused_by_name():
    import argparse
    import pickle
    for obj, word in (
        (torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "qtensor|QInt8"),
        (torch.eye(3).to_sparse(), "sparse"), (torch.eye(3).to_sparse_csr(), "sparse"),
    ):
        with pytest.raises(NotImplementedError, match=word):
            pt.load(theirs([obj]))
    file = theirs(argparse.Namespace(a=torch.ones(2)))
    with pytest.raises(pickle.UnpicklingError, match=r"argparse\.Namespace"):
        pt.load(file)
    file.seek(0)
    with pt.serialization.safe_globals([argparse.Namespace]):
        assert pt.load(file).a.tolist() == [1, 1]
    with pytest.raises(pickle.UnpicklingError, match=r"torch\.nn\.modules\.linear\.Linear"):
        pt.load(theirs(torch.nn.Linear(1, 1)))
    script = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.ReLU()), script)
    script.seek(0)
    with pytest.raises(NotImplementedError, match="TorchScript"):
        pt.load(script)


def test_classes_of_the_user_both_ways():
    import argparse
    with pt.serialization.safe_globals([argparse.Namespace]), torch.serialization.safe_globals([argparse.Namespace]):
        back = torch.load(ours(argparse.Namespace(a=pt.ones(2), b=1)), weights_only=True)
    assert back.a.tolist() == [1, 1]
    assert back.b == 1


def test_sharded_safetensors_index(tmp_path):
    """The index is the one that Hugging Face's loaders follow."""
    import json
    safetensors = pytest.importorskip("safetensors.torch")
    state = {f"w{i}": pt.full((10,), float(i)) for i in range(4)}
    pt.save(state, tmp_path / "model.safetensors", max_shard_size=80)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    for name, file in index["weight_map"].items():
        assert safetensors.load_file(tmp_path / file)[name].tolist() == state[name].tolist()
    for i in (1, 2):
        safetensors.save_file({f"v{i}": torch.full((3,), float(i))}, tmp_path / f"other-0000{i}-of-00002.safetensors")
    path = tmp_path / "other.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {"total_size": 24}, "weight_map": {
        f"v{i}": f"other-0000{i}-of-00002.safetensors" for i in (1, 2)}}))
    loaded = pt.load(path)
    assert {k: v.tolist() for k, v in loaded.items()} == {"v1": [1.0] * 3, "v2": [2.0] * 3}
    assert loaded.metadata == {"total_size": 24}


def test_unsafe_globals_are_those_of_torch():
    import argparse
    import datetime
    import decimal
    import enum
    import fractions
    import pathlib
    import uuid
    values = [argparse.Namespace(x=1), fractions.Fraction(1, 2), datetime.datetime(2020, 1, 1), decimal.Decimal("1.5"),
              pathlib.PurePosixPath("/x"), uuid.UUID(int=3), torch.nn.Linear(1, 1), slice(1, 2), range(3),
              collections.deque([1]), print, ..., enum.Enum("E", "A", module="argparse", qualname="E"), {1}, 1j, b"x",
              torch.ones(2), torch.eye(2).to_sparse(), torch.Size([1]), torch.float32, collections.Counter("a")]
    argparse.E = values[12]
    try:
        for value in values:
            file = theirs({"value": value, "more": [torch.ones(1)]})
            expected = sorted(torch.serialization.get_unsafe_globals_in_checkpoint(file))
            file.seek(0)
            assert sorted(pt.serialization.get_unsafe_globals_in_checkpoint(file)) == expected, value
            if expected == [f"{type(value).__module__}.{type(value).__name__}"]:
                with pt.serialization.safe_globals([type(value)]):
                    file.seek(0)
                    assert pt.serialization.get_unsafe_globals_in_checkpoint(file) == []
    finally:
        del argparse.E


def test_options_of_save():
    state = {"a": pt.arange(3), "nested": [1, "x", {2.5: None}]}
    for options in ({"pickle_protocol": 4}, {"pickle_protocol": 5}, {"_disable_byteorder_record": True}):
        file = io.BytesIO()
        pt.save(state, file, **options)
        file.seek(0)
        same(state, torch.load(file, weights_only=True))
        mine = pt.load(theirs({"a": torch.arange(3), "nested": state["nested"]}, **options))
        same(mine, {"a": torch.arange(3), "nested": state["nested"]})


def test_signatures():
    """Positions and names of PyTorch's arguments."""
    import inspect
    for name in ("load", "save"):
        mine, other = (list(inspect.signature(getattr(lib, name)).parameters) for lib in (pt, torch))
        assert mine[:len(other) - 1] == other[:-1]
