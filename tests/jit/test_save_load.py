"""``jit.save`` and ``jit.load``: traced functions and modules, what they share, extra files, damaged files."""
import io
import json
import random
import typing
import zipfile

import numpy as np
import pytest

import ptcore as pt
from ptcore import jit
from ptcore.serialization import CorruptFileError

F = pt.nn.functional


def again(m, **options):
    file = io.BytesIO()
    jit.save(m, file)
    return jit.load(io.BytesIO(file.getvalue()), **options)


def same(got, want):
    np.testing.assert_array_equal(got.detach().numpy(), want.detach().numpy())


NETS = {
    "mlp": (lambda: pt.nn.Sequential(pt.nn.Linear(3, 4), pt.nn.ReLU(), pt.nn.Linear(4, 2)), (2, 3), (5, 3)),
    "conv": (lambda: pt.nn.Sequential(pt.nn.Conv2d(1, 2, 3, bias=False), pt.nn.BatchNorm2d(2), pt.nn.GELU()),
             (2, 1, 6, 6), (3, 1, 9, 7)),
    "encoder": (lambda: pt.nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), (2, 5, 8), (3, 4, 8)),
    "norm": (lambda: pt.nn.Sequential(pt.nn.LayerNorm(4), pt.nn.Softmax(-1)), (2, 4), (7, 4)),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", NETS)
def test_modules(name, training):
    make, shape, other = NETS[name]
    net = make().train(training)
    traced = jit.trace(net, pt.randn(*shape))
    loaded = again(traced)
    assert isinstance(loaded, jit.ScriptModule) and loaded.training is training
    assert loaded.state_dict().keys() == net.state_dict().keys()
    assert sorted(str(loaded.graph).split("\n")) == sorted(str(traced.graph).split("\n"))
    for size in (shape, other):
        x = pt.randn(*size)
        same(loaded(x), net(x))
    x = pt.randn(*other)
    for m in (net, loaded):
        m(x).square().sum().backward()
    for a, b in zip(loaded.parameters(), net.parameters()):
        same(a.grad, b.grad)
    same(again(loaded)(x), net(x))


def test_functions_and_nested_arguments():
    class Pair(typing.NamedTuple):
        a: pt.Tensor
        b: pt.Tensor
    w = pt.randn(3)

    def f(x, more):
        return Pair(x * w, more["k"][0] + 1), [x]
    traced = jit.trace(f, (pt.ones(2, 3), {"k": (pt.ones(2),)}))
    loaded = again(traced)
    assert isinstance(loaded, jit.ScriptFunction) and loaded.name == "f"
    pair, (x,) = loaded(pt.ones(4, 3), {"k": (pt.zeros(5),)})
    assert type(pair).__name__ == "Pair" and pair._fields == ("a", "b") and x.shape == (4, 3)
    same(pair.a, pt.ones(4, 3) * w)
    same(pair.b, pt.ones(5))


def test_tensors_that_share_memory_do_so_again():
    net = pt.nn.Sequential(pt.nn.Linear(3, 3), pt.nn.Linear(3, 3))
    net[1].weight = net[0].weight
    loaded = again(jit.trace(net, pt.ones(2, 3)))
    with pt.no_grad():
        loaded.get_parameter("0.weight").zero_()
    assert not loaded.get_parameter("1.weight").any()


def test_several_methods_and_what_is_not_saved():
    class Net(pt.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = pt.nn.Parameter(pt.full((2,), 3.0))
            self.register_buffer("cache", pt.ones(2), persistent=False)

        def forward(self, x):
            return x * self.w + self.cache

        def twice(self, x):
            return 2 * x * self.w
    loaded = again(jit.trace_module(Net(), {"forward": pt.ones(3, 2), "twice": pt.ones(3, 2)}))
    assert loaded(pt.ones(5, 2)).tolist() == [[4.0, 4.0]] * 5
    assert loaded.twice(pt.ones(4, 2)).tolist() == [[6.0, 6.0]] * 4
    assert [*loaded.state_dict()] == ["w"]


def test_a_path_extra_files_and_the_map(tmp_path):
    path = tmp_path / "net.ptc"
    net = pt.nn.Linear(3, 2)
    jit.trace(net, pt.ones(2, 3)).save(path, _extra_files={"notes": "text", "more": b"\0\1"})
    found = {"notes": None}
    loaded = jit.load(path, _extra_files=found, mmap=True)
    assert found == {"notes": b"text"}
    same(loaded(pt.ones(2, 3)), net(pt.ones(2, 3)))
    with pytest.raises(RuntimeError, match="no extra file 'other'"):
        jit.load(path, _extra_files={"other": None})
    meta = jit.load(path, map_location="meta")
    assert meta.weight.device.type == "meta" and meta(pt.ones(5, 3, device="meta")).shape == (5, 2)
    with pytest.raises(TypeError, match="what trace or script gave, got Linear"):
        jit.save(net, path)
    with pytest.raises(FileNotFoundError):
        jit.load(tmp_path / "nothing")


def test_archives_of_torchscript_are_declined(tmp_path):
    path = tmp_path / "old.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("old/code/__torch__.py", "import os")
        archive.writestr("old/data.pkl", b"")
    with pytest.raises(NotImplementedError, match="archive of TorchScript"):
        jit.load(path)


def changed(file, **more):
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(file)) as old, zipfile.ZipFile(out, "w") as new:
        for i in old.infolist():
            data = old.read(i)
            if i.filename == "format.json":
                found = json.loads(data)
                found["data"] = {**found["data"], **more}
                data = json.dumps(found).encode()
            new.writestr(i.filename, data)
    return out.getvalue()


def test_damaged_descriptions():
    file = io.BytesIO()
    jit.save(jit.trace(pt.nn.Linear(3, 2), pt.ones(2, 3)), file)
    file = file.getvalue()
    right = {"parameters": ["input"], "in": {"tuple": ["*"]}, "out": "*"}
    assert jit.load(io.BytesIO(changed(file, methods={"forward": right})))(pt.ones(1, 3)).shape == (1, 2)
    named = {"namedtuple": "a b", "fields": [], "items": []}
    items = {**right, "out": {"result": "max", "items": "**"}}
    with pytest.raises(CorruptFileError, match="how arguments are nested is damaged"):
        jit.load(io.BytesIO(changed(file, methods={"forward": items})))
    for about in ({**right, "out": {"tuple": ["*", "*"]}}, {**right, "in": "*"}, {**right, "parameters": ["a", "b"]},
                  {**right, "in": {"set": ["*"]}}, {}, {**right, "out": named}):
        with pytest.raises(CorruptFileError):
            jit.load(io.BytesIO(changed(file, methods={"forward": about})))
    for more in ({"methods": {"other": right}}, {"methods": None}, {"name": 3}, {"methods": {"forward": 5}}):
        with pytest.raises(CorruptFileError):
            jit.load(io.BytesIO(changed(file, **more)))


def test_changed_bytes_are_found_or_harmless():
    file = io.BytesIO()
    jit.save(jit.trace(NETS["conv"][0](), pt.randn(2, 1, 6, 6)), file)
    draw, refused = random.Random(1), 0
    for _ in range(600):
        data = bytearray(file.getvalue())
        data[draw.randrange(len(data))] = draw.randrange(256)
        try:
            jit.load(io.BytesIO(bytes(data)))
        except CorruptFileError:
            refused += 1
    assert refused > 300
