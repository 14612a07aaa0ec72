"""Files of tensors on devices: what they say, and where load puts the tensors."""
import io
import pickle
import zipfile

import pytest

import ptcore as pt
from ptcore import cuda

CPU = pt.device("cpu")


def saved(obj, **options):
    file = io.BytesIO()
    pt.save(obj, file, **options)
    file.seek(0)
    return file


@pytest.mark.parametrize("stream", [False, True])
def test_tensors_come_back_to_their_device(stream):
    last = f"cuda:{cuda.device_count() - 1}"
    base = pt.arange(300_000.0, device="cuda")       # more than one piece of the scratch tensor
    state = {"base": base, "view": base[5:9], "p": pt.nn.Parameter(pt.ones(2, device=last)), "cpu": pt.ones(1),
             "where": pt.device(last)}
    file = saved(state, _use_new_zipfile_serialization=not stream)
    loaded = pt.load(file)
    assert [str(t.device) for t in list(loaded.values())[:4]] == ["cuda:0", "cuda:0", last, "cpu"]
    assert loaded["where"] == pt.device(last)
    assert loaded["base"].cpu().equal(base.cpu())
    loaded["base"][5] = -1.0
    assert loaded["view"].tolist() == [-1.0, 6.0, 7.0, 8.0]
    assert type(loaded["p"]) is pt.nn.Parameter


def test_location_is_pytorchs():
    with zipfile.ZipFile(saved([pt.ones(1, device="cuda")])) as archive:
        assert b"cuda:0" in archive.read("archive/data.pkl")


@pytest.mark.parametrize("stream", [False, True])
def test_map_location(stream, tmp_path):
    file = saved([pt.full((3,), 2.0, device="cuda"), pt.ones(1)], _use_new_zipfile_serialization=not stream)
    for where, expected in (
        ("cpu", (CPU, CPU)), ("cuda:0", (pt.device("cuda:0"),) * 2), ({"cuda:0": "cpu"}, (CPU, CPU)),
        ({"cpu": "cuda:0"}, (pt.device("cuda:0"),) * 2), (lambda storage, location: storage, (CPU, CPU)),
        (lambda storage, location: storage.cuda(), (pt.device("cuda:0"),) * 2),
        (lambda storage, location: storage.cuda(0) if location == "cpu" else storage.cpu(), (CPU, pt.device("cuda:0"))),
        (lambda storage, location: "cuda:0" if location == "cpu" else None, (pt.device("cuda:0"),) * 2),
    ):
        file.seek(0)
        loaded = pt.load(file, map_location=where)
        assert tuple(t.device for t in loaded) == expected
        assert loaded[0].tolist() == [2.0] * 3
    if not stream:
        path = tmp_path / "x.pt"
        path.write_bytes(file.getvalue())
        assert pt.load(path, mmap=True)[0].tolist() == [2.0] * 3
        assert pt.load(path, mmap=True, map_location="cpu")[0].device == CPU


def test_device_that_is_not_here():
    file = saved([pt.ones(1, device="cuda")])
    other = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(other, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"X\6\0\0\0cuda:0", b"X\7\0\0\0cuda:99"))
    other.seek(0)
    with pytest.raises(RuntimeError, match=r"saved on cuda:99.*map_location='cpu'"):
        pt.load(other)
    other.seek(0)
    assert pt.load(other, map_location={"cuda:99": "cuda:0"})[0].device == pt.device("cuda:0")


def test_pickles_come_back_to_their_device():
    last = f"cuda:{cuda.device_count() - 1}"
    state = {"x": pt.arange(6.0, device="cuda").reshape(2, 3).T, "empty": pt.zeros(0, 3, device="cuda"),
             "half": pt.ones(2, dtype=pt.bfloat16, device=last), "p": pt.nn.Parameter(pt.ones(3, device=last)),
             "cpu": pt.ones(2), "net": pt.nn.Linear(2, 3, device="cuda")}
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        loaded = pickle.loads(pickle.dumps(state, protocol))
        for name in ("x", "empty", "half", "p", "cpu"):
            got, want = loaded[name], state[name]
            assert type(got) is type(want) and got.dtype is want.dtype and got.requires_grad == want.requires_grad
            assert got.device == want.device and got.stride() == want.stride() and got.equal(want)
        assert loaded["net"].weight.equal(state["net"].weight)
    text = pickle.dumps(state["x"]).replace(b"cuda:0", b"cuda:9")
    with pytest.raises(RuntimeError, match="cuda:9"):
        pickle.loads(text)
