"""Scripted programs in files: what comes out is what went in, and a file can do nothing but compute."""
import copy
import io
import json
import sys
import zipfile
from pathlib import Path

import pytest

import ptcore as pt
from ptcore import jit, nn
from ptcore.serialization import CorruptFileError

sys.path.insert(0, str(Path(__file__).parent))
import test_script_control_flow as control_flow
import test_script_models as models
import test_script_modules as modules
from _module_table import MODULES, RANDOM, as_made, given
from _script_outcomes import again


def leaves(x):
    return [x] if isinstance(x, pt.Tensor) else [leaf for y in x for leaf in leaves(y)]


def same(a, b):
    a, b = leaves(a), leaves(b)
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert x.dtype is y.dtype and x.shape == y.shape and x.requires_grad == y.requires_grad
        assert bool(((x == y) | ((x != x) & (y != y))).all())


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", sorted(MODULES))
@pytest.mark.filterwarnings("ignore")
def test_modules_of_the_library(name, training):
    """Result, gradients and buffers of each module of nn, out of a file."""
    net = jit.script(as_made(name, training))
    loaded = again(net)
    assert loaded.original_name == net.original_name and loaded.training is training
    assert [*loaded.state_dict()] == [*net.state_dict()]
    found = []
    for m in (net, loaded):
        pt.manual_seed(4)
        out = m(*given(name))
        graded = [x for x in leaves(out) if x.requires_grad]
        if graded:
            sum([x.float().sum() for x in graded]).backward()
        found.append((out, [p.grad for p in m.parameters() if p.grad is not None], list(m.buffers())))
    for a, b in zip(*found, strict=True):
        same(a, b)
    assert name.rstrip("123d").startswith(RANDOM) or not training or isinstance(loaded, jit.ScriptModule)


@pytest.mark.parametrize("made, inputs", models.MODELS, ids=["GPT", "ResNet", "VAE", "Tree"])
def test_models_train_on(made, inputs):
    net = jit.script(made())
    loaded, args = again(net), inputs()
    for _ in range(2):
        found = []
        for model in (net, loaded):
            pt.manual_seed(3)
            optimizer = pt.optim.AdamW(model.parameters(), lr=1e-2)
            for _ in range(2):
                optimizer.zero_grad()
                models.loss_of(model(*args)).backward()
                optimizer.step()
            found.append(list(model.state_dict().values()))
        same(*found)
        loaded = again(loaded)          # as it is by now
    net.eval(), loaded.eval()
    same(leaves_of_eval(net, args), leaves_of_eval(loaded, args))


def leaves_of_eval(net, args):
    pt.manual_seed(5)
    return [x for x in leaves(net(*args))]


def test_a_file_of_a_file_is_the_same():
    for m in (jit.script(modules.Many()), jit.script(models.GPT()), jit.script(control_flow.deep)):
        texts = []
        for x in (m, again(m)):
            file = io.BytesIO()
            jit.save(x, file)
            with zipfile.ZipFile(file) as archive:
                texts.append({n: archive.read(n) for n in archive.namelist() if n.startswith("graph/")})
        assert texts[0] == texts[1] and texts[0]


class Parts(nn.Module):
    step: int

    def __init__(self):
        super().__init__()
        self.first = self.second = nn.Linear(2, 2)
        self.register_buffer("kept", pt.ones(2))
        self.register_buffer("left", pt.zeros(2), persistent=False)
        self.register_buffer("absent", None)
        self.register_parameter("none", None)
        self.plain = pt.arange(2.0)
        self.step = 3
        self.names = {"a": [1, 2], "b": [3]}
        self.logger = sys                   # which no graph reads
        self.tied = self.first.weight

    def forward(self, x):
        self.step += 1
        return self.second(self.first(x)) * self.step + self.kept + self.left + self.plain + len(self.names["a"])

    @jit.export
    def more(self, x, k: int = 2):
        return self.tied.sum() * k + x

    @property
    def total(self):
        return self.kept.sum() + self.step


def test_what_modules_hold(tmp_path):
    net = Parts()
    loaded = again(jit.script(net))
    x = pt.randn(3, 2)
    same(loaded(x), net(x))
    same(loaded(x), net(x))
    assert loaded.step == 5 and loaded.names == {"a": [1, 2], "b": [3]} and not hasattr(loaded, "logger")
    same(loaded.more(x, k=3), net.more(x, 3))
    assert loaded.first is loaded.second and loaded.tied is loaded.first.weight
    assert loaded.state_dict().keys() == net.state_dict().keys() and "left" not in loaded.state_dict()
    assert loaded.absent is None and loaded.none is None and isinstance(loaded.plain, pt.Tensor)
    other = copy.deepcopy(loaded)
    other.first.weight.detach().zero_()
    assert loaded.first.weight.abs().sum() > 0
    loaded.load_state_dict(net.state_dict())
    loaded.train(False)
    assert not loaded.first.training
    with pytest.raises(TypeError, match="expected a value of type int"):
        loaded.step = "a"
    path = tmp_path / "a.ptc"
    jit.script(net).save(path, _extra_files={"notes": "x"})
    extra = {"notes": None}
    same(jit.load(path, mmap=True, _extra_files=extra)(x), net(x))
    assert extra["notes"] == b"x"
    meta = jit.load(path, map_location="meta")
    assert meta.kept.device.type == "meta" and meta(pt.ones(3, 2, device="meta")).shape == (3, 2)


def test_functions_of_one_name():
    def outer(k):
        def inner(x: int):
            return x + 1 if k else x * 10
        return inner
    a, b = jit.script(outer_one), jit.script(outer_two)

    def both(x: int):
        return a(x), b(x), a(b(x))
    assert again(jit.script(both))(3) == (4, 30, 31)


def named(f):
    f.__qualname__ = "same"
    return f


@named
def outer_one(x: int):
    return x + 1


@named
def outer_two(x: int):
    return x * 10


def test_classes_of_a_program():
    loaded = again(jit.script(modules.Takes()))
    assert isinstance(loaded, jit.ScriptModule)
    pair = again(jit.script(modules.Gives()))(pt.ones(2))
    assert type(pair).__name__ == "Pair" and pair._fields == modules.Pair._fields
    assert again(jit.script(modules.use_class))(3) == modules.use_class(3)
    assert again(jit.script(modules.use_dataclass))(3) == modules.use_dataclass(3)


def test_what_cannot_be_written(tmp_path):
    path = tmp_path / "a.ptc"
    path.write_bytes(b"before")

    class Asks(nn.Module):
        @jit.ignore
        def python(self, x):
            return x

        def forward(self, x):
            return self.python(x)
    for m in (Asks(), jit.script(Asks())):
        with pytest.raises(TypeError, match=r"what trace or script gave, got Asks|called as they are \(@ignore\)"):
            jit.save(m, path)
    with pytest.raises(TypeError, match="is a method; save its module"):
        jit.save(jit.script(nn.ReLU())._jit_method("forward"), path)
    assert path.read_bytes() == b"before"


# -- damaged files, and such that mean harm ---------------------------------------------------------------------------

def entries_of(m):
    file = io.BytesIO()
    jit.save(m, file)
    with zipfile.ZipFile(file) as archive:
        return {n: archive.read(n) for n in archive.namelist()}


def loaded_of(entries):
    from ptcore.serialization.zip_files import Writer
    file = io.BytesIO()
    archive = Writer(file)
    for name, data in entries.items():
        archive.add(name, len(data), [data])
    archive.close()
    file.seek(0)
    return jit.load(file)


def with_graph(entries, change):
    """A file with another text of its first graph."""
    name = next(n for n in entries if n.startswith("graph/"))
    return {**entries, name: change(entries[name].decode()).encode()}


class Simple(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.count = 0

    def forward(self, x):
        self.count += 1
        return self.linear(x).exp()


HARMFUL = [
    ('%a = call "builtins.getattr" (%x, "__class__")', "no graph may ask for"),
    ('%a = call "builtins.getattr" (%x, "_base")', "no graph may ask for"),
    ('%n = attr "" \n %a = call "builtins.getattr" (%n, "__dict__")', "no graph may ask for"),
    ('%n = attr "" \n %a = call "builtins.getattr" (%n, "register_forward_hook")', "no graph may ask for"),
    ('%s : str = call "operator.add" ("__cl", "ass__") \n %a = call "builtins.getattr" (%x, %s)', "name is not known"),
    ('%a = method "numpy" (%x)', "which no graph may call"),
    ('%a = method "__reduce__" (%x)', "which no graph may call"),
    ('%a = method "apply_" (%x, object "builtins.print")', "which no graph may call"),
    ('%a = method "map_" (%x, %x, object "builtins.print")', "which no graph may call"),
    ('%n = attr "" \n %a = method "save" (%n, "/tmp/harm")', "is no graph"),
    ('%n = attr "" \n %a = method "register_buffer" (%n, "a", %x)', "is no graph"),
    ('%n = attr "linear" \n %a = method "register_forward_hook" (%n, object "builtins.print")', "is no graph"),
    ('%a = attr "__class__"', "leads nowhere"),
    ('%a = attr "linear.__init__"', "leads nowhere"),
    ('%a = attr "_modules"', "leads nowhere"),
    ('%a = attr "_jit_original"', "leads nowhere"),
    ('%a = module "__class__" (%x)', "leads nowhere"),
    ('%a = module "linear.weight" (%x)', "calls no module"),
    ('%a = call "ptcore.from_file" ("/etc/passwd", True, 3)', "no function"),
    ('%a = call "Tensor.numpy" (%x)', "no function"),
    ('%a = call "ptcore.load" ("/etc/passwd")', "no function"),
    ('%a = call "os.system" ("true")', "no function"),
    ('%a = call "builtins.eval" ("1")', "no function"),
    ('%a = call "builtins.open" ("/etc/passwd")', "no function"),
    ('%n = attr "" \n %a = call "script.set_attribute" (%n, "forward", %x)', "no graph may ask for"),
    ('%n = attr "" \n %a = call "script.set_attribute" (%n, "__class__", %x)', "no graph may ask for"),
    ('%n = attr "" \n %a = call "script.set_attribute" (%n, "_jit_methods", %x)', "no graph may ask for"),
    ('%a = call "script.set_attribute" (%x, "__class__", %x)', "no graph may ask for"),
    ('%a = call "library.LSTM" (%x, %x)', "a module that it has not"),
    ('%n = attr "linear" \n %a = call "library.LSTM" (%n, %x)', "a module that it has not"),
    ('%a = call "function.other" (%x)', "no function"),
    ('%a = call "class.other" (%x)', "no function"),
]


@pytest.mark.parametrize("lines, message", HARMFUL, ids=[line[-50:] for line, _ in HARMFUL])
def test_harm_is_refused(lines, message):
    entries = entries_of(jit.script(Simple()))

    def change(text):
        at = text.index("\n", text.index("placeholder")) + 1
        assert '%x : Tensor = placeholder "x"' in text
        return text[:at] + "\n".join([f"  {line.strip()}" for line in lines.split("\n")]) + "\n" + text[at:]
    with pytest.raises(CorruptFileError, match=message):
        loaded_of(with_graph(entries, change))


def plain(x):
    return x.exp()


class Calls(nn.Module):
    def forward(self, x):
        return plain(x) + 1


@pytest.mark.parametrize("program", [plain, Calls()], ids=["alone", "called"])
@pytest.mark.parametrize("lines, message", HARMFUL, ids=[line[-50:] for line, _ in HARMFUL])
def test_harm_in_functions_is_refused(lines, message, program):
    """Of a function itself, and of one that a module calls: they have no attributes to ask for."""
    entries = entries_of(jit.script(program))
    name, = [n for n, data in entries.items() if n.startswith("graph/") and b"exp" in data]
    text = entries[name].decode()
    at = text.index("\n", text.index('%x : Tensor = placeholder "x"')) + 1
    lines = "\n".join([f"  {line.strip()}" for line in lines.split("\n")]) + "\n"
    if " = attr " in lines or " = module " in lines or "library.LSTM" in lines:
        message = f"a function reads attributes of a module|{message}"
    with pytest.raises(CorruptFileError, match=message):
        loaded_of({**entries, name: (text[:at] + lines + text[at:]).encode()})


def test_texts_print_no_attributes():
    def f(x: int):
        return "{}".format(x)       # noqa: UP032 - what is tested
    entries = entries_of(jit.script(f))
    assert loaded_of(entries)(3) == "3"
    for text in ("{0.__class__}", "{0[0]}", "{x}", "{:{0.real}}"):
        changed = with_graph(entries, lambda old, text=text: old.replace('"{}"', json.dumps(text)))
        with pytest.raises((ValueError, IndexError)):
            loaded_of(changed)(3)


def changed_data(entries, change):
    data = json.loads(entries["format.json"])
    change(data["data"])
    return {**entries, "format.json": json.dumps(data).encode()}


DAMAGE = {
    "no modules": lambda d: d.update(modules=[]),
    "no root": lambda d: d["modules"].pop(0),
    "a module is missing": lambda d: d["modules"].pop(),
    "another class": lambda d: d["modules"][1][1].update({"class": "os"}),
    "a function as class": lambda d: d["modules"][1][1].update({"class": "functional"}),
    "a name of Module": lambda d: d["modules"][0][1].update(attributes=[["forward", "1", None]]),
    "a hidden name": lambda d: d["modules"][0][1].update(attributes=[["__class__", "1", None]]),
    "hooks": lambda d: d["modules"][0][1].update(attributes=[["_hooks", "1", None]]),
    "own tables": lambda d: d["modules"][0][1].update(attributes=[["_jit_methods", "{}", None]]),
    "a child": lambda d: d["modules"][0][1].update(children=[["__class__", True]]),
    "a child of Module": lambda d: d["modules"][0][1].update(children=[["train", True]]),
    "a buffer": lambda d: d["modules"][0][1]["buffers"].append(["state_dict", False]),
    "a parameter that is none": lambda d: d["modules"][1][1]["parameters"].append(["bias2", True]),
    "a method": lambda d: d["modules"][0][1]["methods"].append(["__init__", d["modules"][0][1]["methods"][0][1]]),
    "a method twice": lambda d: d["modules"][0][1]["methods"].append(["a", "nothing"]),
    "a property": lambda d: d["modules"][0][1]["properties"].append("other"),
    "itself": lambda d: d["modules"].append(["linear", {"same": ""}]),
    "the name": lambda d: d["modules"][0][1].update(name=3),
    "functions": lambda d: d.update(functions=[["a", 3]]),
    "classes": lambda d: d.update(classes=[["a", {"kind": "Other", "name": "a", "module": "b"}]]),
    "an exception": lambda d: d.update(classes=[["a", {"kind": "Exception", "name": "a", "module": "b",
                                                       "base": "open"}]]),
    "fields": lambda d: d.update(classes=[["a", {"kind": "NamedTuple", "name": "a", "module": "b", "defaults": [],
                                                 "fields": [["__class__", "int"]]}]]),
    "defaults": lambda d: d.update(classes=[["a", {"kind": "NamedTuple", "name": "a", "module": "b", "fields": [],
                                                   "defaults": [["x", "1"]]}]]),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_told(name):
    entries = entries_of(jit.script(Simple()))
    with pytest.raises(CorruptFileError):
        loaded_of(changed_data(entries, DAMAGE[name]))


def test_tensors_of_other_modules():
    entries = entries_of(jit.script(Simple()))
    data = json.loads(entries["format.json"])
    data["tensors"]["other"] = data["tensors"]["linear.weight"]
    with pytest.raises(CorruptFileError, match="tensors of no module"):
        loaded_of({**entries, "format.json": json.dumps(data).encode()})
    del data["tensors"]["other"]
    data["tensors"]["linear.weight"]["parameter"] = False
    with pytest.raises(CorruptFileError, match="is no parameter"):
        loaded_of({**entries, "format.json": json.dumps(data).encode()})


def test_every_byte_of_the_texts():
    """A byte less or another one: the file is refused, or loads."""
    entries = entries_of(jit.script(Simple()))
    name = next(n for n in entries if n.startswith("graph/"))
    text = entries[name]
    for k in range(0, len(text), 3):
        for changed in (text[:k] + text[k + 1:], text[:k] + b"%" + text[k + 1:]):
            try:
                loaded_of({**entries, name: changed})
            except CorruptFileError:
                continue


class Marked(jit.ScriptModule):
    """A module whose class marks its method, and that changes later on."""

    def __init__(self):
        super().__init__()
        self.inside = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
        self.k = 2

    @jit.script_method
    def forward(self, x):
        if self.training:
            x = x + 100
        return self.inside(x) * self.k


class HasMarked(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = Marked()

    def forward(self, x):
        return self.m(x) + 1


def test_marked_modules_are_written_as_they_are_now():
    net, x = Marked(), pt.ones(1, 2)
    net.eval()
    net.k = 7
    net.inside[0].weight = nn.Parameter(pt.full((2, 2), 3.0))
    want = (3 * x @ pt.ones(2, 2) + net.inside[0].bias) * 7
    for m in (net, again(net), jit.freeze(net)):
        assert m.training is False and pt.equal(m(x), want)
    assert [*again(net).state_dict()] == ["inside.0.weight", "inside.0.bias"]


def test_marked_modules_inside_others_have_their_mode():
    made = HasMarked()
    net, x = jit.script(made), pt.ones(1, 2)
    net.eval()
    inside = made.m.inside[0]
    want = (x @ inside.weight.T + inside.bias) * 2 + 1
    for m in (net, again(net), jit.freeze(net), copy.deepcopy(net)):
        pt.testing.assert_close(m(x), want)
    assert net.m.inside[0].weight is inside.weight
