"""float8 and complex32 in files of all formats: the same bits come back, views stay views."""
import pytest

import ptcore as pt

STORED = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "complex32")


def bits(x):
    return x.contiguous().view(pt.int32 if x.dtype is pt.complex32 else pt.uint8).tolist()


@pytest.mark.core
@pytest.mark.parametrize("suffix", ["pt", "npz", "safetensors"])
@pytest.mark.parametrize("name", STORED)
def test_there_and_back(name, suffix, tmp_path):
    dtype = getattr(pt, name)
    raw = pt.arange(252).to(pt.uint8) if dtype.itemsize == 1 else pt.arange(1000, 1252).to(pt.int32)
    x = raw.reshape(12, 21).view(dtype)
    given = {"x": x, "columns": x.t()[3:], "none": x[:0], "scalar": x[2, 3], "list": [x[1], dtype]}
    pt.save(given, tmp_path / f"file.{suffix}")
    for mmap in (False, True):
        back = pt.load(tmp_path / f"file.{suffix}", mmap=mmap)
        assert back["list"][1] is dtype
        for key in ("x", "columns", "none", "scalar"):
            assert back[key].dtype is dtype and back[key].shape == given[key].shape
            assert bits(back[key]) == bits(given[key])
        assert bits(back["list"][0]) == bits(x[1])
    if suffix == "pt":
        assert back["columns"].untyped_storage() is back["x"].untyped_storage()


@pytest.mark.parametrize("name", STORED)
def test_a_layer_in_the_dtype(name, tmp_path):
    """A state_dict whose weights are stored in fewer bytes."""
    layer, other = pt.nn.Linear(3, 2), pt.nn.Linear(3, 2)
    state = {key: value.to(getattr(pt, name)) for key, value in layer.state_dict().items()}
    pt.save(state, tmp_path / "file.pt")
    loaded = pt.load(tmp_path / "file.pt")
    other.load_state_dict({k: (v.real if v.is_complex() else v).to(pt.float32) for k, v in loaded.items()})
    assert {v.dtype for v in loaded.values()} == {getattr(pt, name)}
    want = state["weight"].real if name == "complex32" else state["weight"]
    assert other.weight.tolist() == want.to(pt.float32).tolist()
