"""Files of programs: what comes back, memory that is shared, damaged files."""
import io
import json
import random
import zipfile

import numpy as np
import pytest

import ptcore as pt
from ptcore.fx import GraphModule
from ptcore.fx.experimental.proxy_tensor import make_fx
from ptcore.jit._files import Contents, read, write
from ptcore.serialization import CorruptFileError


def program():
    layer = pt.nn.Sequential(pt.nn.Linear(3, 4), pt.nn.Tanh())
    made = make_fx(layer)(pt.randn(2, 3))
    tensors = {node.target: getattr(made, node.target) for node in made.graph.nodes if node.op == "get_attr"}
    return layer, made, tensors


def written(contents):
    file = io.BytesIO()
    write(contents, file)
    return file.getvalue()


def test_a_program_comes_back(tmp_path):
    layer, made, tensors = program()
    path = tmp_path / "program.ptc"
    write(Contents("function", {"forward": made.graph}, tensors, {"a": [1, None, "b"]}, {"notes.txt": b"hello"}), path)
    for mmap in (False, True):
        got = read(path, mmap=mmap)
        assert (got.kind, got.data, got.extra) == ("function", {"a": [1, None, "b"]}, {"notes.txt": b"hello"})
        again = GraphModule(got.tensors, got.graphs["forward"])
        x = pt.randn(5, 3)
        np.testing.assert_array_equal(again(x).detach().numpy(), layer(x).detach().numpy())
        assert all(isinstance(t, pt.nn.Parameter) and t.requires_grad for t in got.tensors.values())
    assert read(path, extra=()).extra == {}
    with zipfile.ZipFile(path) as archive:                 # other programs read it
        assert archive.testzip() is None
        assert {"format.json", "graph/forward.txt", "tensors.safetensors", "extra/notes.txt"} == {*archive.namelist()}
        assert all(i.compress_type == zipfile.ZIP_STORED for i in archive.infolist())
        assert json.loads(archive.read("format.json"))["rows"]["linear"].startswith("linear(")
        import struct
        for i in archive.infolist():                        # data at multiples of 64 bytes
            with open(path, "rb") as file:
                file.seek(i.header_offset + 26)
                n_name, n_extra = struct.unpack("<2H", file.read(4))
            assert (i.header_offset + 30 + n_name + n_extra) % 64 == 0


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float64", "complex64",
                                   "complex128"])
def test_tensors(dtype):
    x = (pt.randn(4, 6) * 3).to(getattr(pt, dtype))
    given = {"x": x, "t": x.t()[1:], "back": x[::-1], "empty": x[:0], "one": x[0, 0], "apart": x.clone()}
    got = read(io.BytesIO(written(Contents("k", {}, given, None)))).tensors
    for name, want in given.items():
        y = got[name]
        assert (y.dtype, y.shape, y.stride(), y.requires_grad) == (want.dtype, want.shape, want.stride(), False)
        assert y.tolist() == want.tolist()
    got["x"].zero_()
    assert not got["back"].any() and not got["t"].any() and got["apart"].tolist() == x.tolist()


def test_where_tensors_are_put():
    file = written(Contents("k", {}, {"x": pt.ones(2)}, None))
    assert read(io.BytesIO(file), map_location="meta").tensors["x"].device.type == "meta"
    with pytest.raises(ValueError, match="mmap needs a path"):
        read(io.BytesIO(file), mmap=True)
    with pytest.raises(NotImplementedError, match="x is a meta tensor"):
        written(Contents("k", {}, {"x": pt.ones(2, device="meta")}, None))


def test_an_old_file_stays_until_the_new_one_is_complete(tmp_path):
    path = tmp_path / "p"
    write(Contents("k", {}, {"x": pt.ones(2)}, 1), path)
    with pytest.raises(TypeError):
        write(Contents("k", {}, {"x": 3}, 1), path)
    assert read(path).data == 1 and [p.name for p in tmp_path.iterdir()] == ["p"]


def changed(file, name, change):
    """The file with one entry changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(file)) as old, zipfile.ZipFile(out, "w") as new:
        for i in old.infolist():
            data = old.read(i)
            new.writestr(i.filename, change(data) if i.filename == name else data)
    return out.getvalue()


def test_damaged_files():
    _, made, tensors = program()
    file = written(Contents("function", {"forward": made.graph}, tensors, None))

    def refused(file, why):
        with pytest.raises(CorruptFileError, match=why):
            read(io.BytesIO(file))

    def header(**more):
        return changed(file, "format.json", lambda data: json.dumps({**json.loads(data), **more}).encode())
    refused(b"", "damaged|cut off")
    refused(file[:-1], "damaged|cut off")
    refused(header(version=2), "version 2 of the format")
    refused(header(format="x"), "no program of ptcore")
    refused(header(rows={"nosuch": "nosuch(x)"}), "op nosuch that there is not")
    refused(header(rows={"linear": "linear(other)"}), r"calls linear as linear\(other\), and here")
    refused(header(graphs=["other"]), "damaged")
    refused(header(extra=["x"]), "damaged")
    refused(header(tensors={}), "memory of no tensor")
    refused(header(tensors={k: {"dtype": "float32", "shape": [10**9], "stride": [1], "offset": 0, "memory": k,
                                "device": "cpu"} for k in tensors}), "reaches out of its memory")
    refused(changed(file, "graph/forward.txt", lambda data: data.replace(b"row.tanh", b"os.system")),
            "there is no function 'os.system'")
    refused(changed(file, "graph/forward.txt", lambda data: data[:-3]), "cut off|damaged|text: expected")


def test_changed_bytes_are_found_or_harmless():
    _, made, tensors = program()
    file = written(Contents("function", {"forward": made.graph}, tensors, {"a": 1}, {"n": b"x" * 30}))
    draw, refused = random.Random(0), 0
    for _ in range(1500):
        data = bytearray(file)
        for _ in range(draw.choice((1, 1, 4))):
            data[draw.randrange(len(data))] = draw.randrange(256)
        if draw.random() < 0.2:
            del data[draw.randrange(len(data)):]
        try:
            read(io.BytesIO(bytes(data)))
        except CorruptFileError:
            refused += 1
    assert refused > 500


class Tied(pt.nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.out = pt.nn.Embedding(5, 3), pt.nn.Linear(3, 5, bias=False)
        self.out.weight = self.into.weight

    def forward(self, i):
        return self.out(self.into(i))


@pytest.mark.parametrize("make", [lambda m: pt.jit.trace(m, pt.tensor([1, 2])), pt.jit.script], ids=["trace", "script"])
def test_one_parameter_under_two_names(make):
    file = io.BytesIO()
    pt.jit.save(make(Tied()), file)
    file.seek(0)
    again = pt.jit.load(file)
    assert len(list(again.parameters())) == 1
    assert again.into.weight is again.out.weight
    again(pt.tensor([1, 2])).sum().backward()
    assert again.into.weight.grad is not None


def test_a_false_tie_is_refused():
    one = pt.nn.Parameter(pt.ones(3))
    made = make_fx(lambda x: x + 1)(pt.ones(3))
    tensors = {"a": one, "b": one, "c": pt.zeros(3)}
    data = written(Contents("function", {"forward": made.graph}, tensors, {}))
    got = read(io.BytesIO(data)).tensors
    assert got["a"] is got["b"] and got["c"] is not got["a"]
    for other in ("c", "none", 3):
        source, out = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO()
        with zipfile.ZipFile(out, "w") as changed:
            for name in source.namelist():
                part = source.read(name)
                if name.endswith("format.json"):
                    about = json.loads(part)
                    about["tensors"]["b"]["same"] = other
                    part = json.dumps(about).encode()
                changed.writestr(source.getinfo(name), part)
        with pytest.raises(CorruptFileError):
            read(io.BytesIO(out.getvalue()))
