"""Files of every version of the format, written when it was new: a later release reads them, and they mean the same."""
from pathlib import Path

import pytest

import ptcore as pt
from ptcore import jit
from ptcore.jit._text import parse, to_text

FOLDER = Path(__file__).parent / "golden"


@pytest.mark.parametrize("mmap", [False, True])
def test_module_of_version_1(mmap):
    extra = {"notes": None}
    net = jit.load(FOLDER / "module_1.ptc", _extra_files=extra, mmap=mmap)
    assert extra["notes"] == b"written by the first release of the format"
    assert [*net.state_dict()] == ["scale", "linear.weight", "linear.bias"]
    assert net.linear.weight.tolist() == [[1, 2, 3], [-1, 0.5, 4]] and net.cache.dtype is pt.float64
    x = pt.tensor([[1.0, 0.0, -1.0], [2.0, 2.0, 2.0], [0.0, 0.0, 0.0]])
    assert net(x).tolist() == [[1.0, 8.0], [25.5, 1.0], [1.5, 3.0]]
    found = net.twice(x, {"a": pt.ones(3, 3)})
    assert found["sum"].tolist() == [2.0, 6.0, 2.0] and found["pair"][0].tolist() == x.t().tolist()
    net(x).sum().backward()
    assert net.linear.bias.grad.tolist() == [4.0, -2.0]


def test_function_of_version_1():
    f = jit.load(FOLDER / "function_1.ptc")
    first, (second,) = f(pt.arange(8.0).reshape(2, 2, 2) - 2, pt.tensor([3.0, -3.0, 8.0]))
    assert first.tolist() == [[-1, -1, 0, 1], [2, 2.5, 2.5, 2.5]]
    assert second.tolist() == [1, -2, 4]


@pytest.mark.parametrize("mmap", [False, True])
def test_script_of_version_1(mmap):
    """A scripted module with an enum, a NamedTuple, a class, a function of its own, and a convolution."""
    net = jit.load(FOLDER / "script_1.ptc", mmap=mmap)
    x = pt.tensor([[1.0, 2.0], [3.0, -1.0]])
    found = net(x)
    assert type(found).__name__ == "Found" and found._fields == ("total", "names", "count") and found.count == 3
    assert found.total.tolist() == [3.75, 0.375] and found.names == [f"n{k}" for k in range(8)]
    assert net(x, ["q"]).names == ["q"] and net.seen.item() == 2
    made, table = net.pair(pt.arange(3.0).reshape(1, 1, 3))
    assert made.tolist() == [[[1.0, 2.0], [3.0, 8.0]]] and table == {"a": [1, 2]}
    assert [*net.state_dict()] == ["seen", "layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias",
                                   "conv.weight"]


@pytest.mark.parametrize("name", ["module_1", "function_1"])
def test_texts_are_written_as_they_were(name):
    import zipfile
    with zipfile.ZipFile(FOLDER / f"{name}.ptc") as archive:
        for entry in archive.namelist():
            if entry.startswith("graph/"):
                text = archive.read(entry).decode()
                assert to_text(parse(text)) == text
