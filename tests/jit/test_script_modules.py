"""``jit.script`` of modules and classes: what a module does eagerly is the oracle."""
# ruff: noqa: B007, B018, B009, RUF012, PYI,  UP006, UP035, UP045 - these forms are what is tested
import copy
import dataclasses
from typing import Final, NamedTuple

import pytest
from _script_outcomes import again

import ptcore
from ptcore import Tensor, jit, nn


def same(module, *calls):
    """A module does what its script does, and what a file of that does."""
    scripted = jit.script(module)
    loaded = again(scripted)
    for args in calls:
        got, want = scripted(*args), module(*args)
        assert plain(got) == plain(want)
        if loaded is not None:
            assert plain(loaded(*args)) == plain(want)
    return scripted


def plain(x):
    if isinstance(x, Tensor):
        return x.dtype, x.tolist()
    if isinstance(x, (list, tuple)):
        return [plain(i) for i in x]
    if isinstance(x, dict):
        return [(k, plain(v)) for k, v in x.items()]
    return x


class Net(nn.Module):
    __constants__ = ["scale"]
    names: list[str]
    offset: Tensor | None

    def __init__(self, depth=3):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(depth)])
        self.heads = nn.ModuleDict({"a": nn.Linear(4, 2), "b": nn.Linear(4, 3)})
        self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
        self.scale = 2.0
        self.calls = 0
        self.names = []
        self.offset = None
        self.absent = None
        self.table = {"x": 1}
        self.weight = nn.Parameter(ptcore.ones(4))
        self.register_buffer("seen", ptcore.zeros(()))

    def forward(self, x, use: list[int] | None = None):
        for k, layer in enumerate(self.layers):
            if use is None or k in use:
                x = ptcore.relu(layer(x)) * self.scale
        x = self.body(x) + self.weight
        if self.absent is not None:
            x = self.absent(x)
        found = jit.annotate(dict[str, Tensor], {})
        for name, head in self.heads.items():
            found[name] = head(x)
        self.calls += 1
        self.seen += 1
        self.names.append("call")
        if self.training:
            x = self.helper(x, 2)
        offset = self.offset
        if offset is not None:
            x = x + offset
        return x, found, self.layers[0](x), self.heads["b"](x), self.static(3)

    def helper(self, x, n: int):
        return x * n + self.table["x"]

    @staticmethod
    def static(n: int):
        return n + 1

    @jit.export
    def double(self, x):
        return self.helper(x, 2) + self.body[0](x)

    @jit.ignore
    def python(self, x):
        return x + len({1, 2})

    @jit.unused
    def never(self, x):
        return [*x]

    @property
    def total(self):
        return self.weight.sum() + 1

    @jit.export
    def others(self, x):
        return self.python(x) + self.total

    @jit.export
    def calls_never(self, x):
        return self.never(x)


def test_modules():
    ptcore.manual_seed(0)
    net = Net()
    x = ptcore.randn(2, 4)
    scripted = same(net, (x,), (x, [0, 2]))
    assert isinstance(scripted, jit.ScriptModule) and isinstance(scripted, nn.Module)
    assert scripted.original_name == "Net"
    assert scripted.calls == 2 and scripted.names == ["call", "call"] and net.names == ["call", "call"]
    scripted.eval()
    net.eval()
    assert not scripted.layers[0].training
    assert plain(scripted(x)) == plain(net(x))
    assert plain(scripted.double(x)) == plain(net.double(x))
    assert plain(scripted.others(x)) == plain(net.others(x))
    assert plain(scripted.total) == plain(net.total)
    with pytest.raises(jit.Error, match="never is marked @unused"):
        scripted.calls_never(x)
    with pytest.raises(AttributeError):
        scripted.nothing
    assert scripted(x)[1].keys() == {"a", "b"}


def test_state_is_shared_and_kept():
    net = Net()
    scripted = jit.script(net)
    assert [*scripted.state_dict()] == [*net.state_dict()]
    assert scripted.weight is net.weight and scripted.layers[1].weight is net.layers[1].weight
    assert [n for n, _ in scripted.named_parameters()] == [n for n, _ in net.named_parameters()]
    assert len(scripted.layers) == 3 and [*scripted.heads] == ["a", "b"] and scripted.layers[-1] is scripted.layers[2]
    assert jit.script(scripted) is scripted
    other = copy.deepcopy(scripted)
    with ptcore.no_grad():
        other.weight.fill_(7)
    x = ptcore.ones(1, 4)
    assert scripted.weight[0] == 1 and not ptcore.equal(other(x)[0], scripted(x)[0])
    scripted.load_state_dict(other.state_dict())
    assert ptcore.equal(other(x)[0], scripted(x)[0])
    scripted.to(ptcore.float64)
    assert scripted(x.double())[0].dtype == ptcore.float64


def test_training():
    """A scripted module trains to the same weights as the module."""
    def train(net):
        optimizer = ptcore.optim.SGD(net.parameters(), lr=0.01)
        for _ in range(5):
            optimizer.zero_grad()
            out = net(ptcore.ones(2, 4))
            (out[0].tanh().sum() + out[3].sigmoid().sum()).backward()
            optimizer.step()
        return [p.tolist() for p in net.parameters()]
    net = Net()
    assert train(jit.script(copy.deepcopy(net))) == train(net)


LIBRARY = [
    (nn.Linear(4, 3), (2, 4)), (nn.Conv2d(2, 3, 3, padding=1), (1, 2, 5, 5)), (nn.Conv1d(2, 3, 3), (1, 2, 5)),
    (nn.BatchNorm1d(4), (3, 4)), (nn.BatchNorm2d(2), (2, 2, 3, 3)), (nn.LayerNorm(4), (2, 4)),
    (nn.GroupNorm(2, 4), (2, 4, 3)),
    (nn.ReLU(), (2, 3)), (nn.GELU(), (2, 3)), (nn.Tanh(), (2, 3)), (nn.Softmax(dim=1), (2, 3)), (nn.Identity(), (2, 3)),
    (nn.MaxPool2d(2), (1, 2, 4, 4)), (nn.AvgPool2d(2), (1, 2, 4, 4)), (nn.AdaptiveAvgPool2d(1), (1, 2, 4, 4)),
    (nn.Flatten(), (2, 3, 4)), (nn.Dropout(0.0), (2, 3)), (nn.LeakyReLU(0.1), (2, 3)),
    (nn.ConvTranspose2d(2, 3, 2), (1, 2, 3, 3)), (nn.Embedding(5, 3), None), (nn.LSTM(4, 3), (5, 2, 4)),
    (nn.GRU(4, 3), (5, 2, 4)), (nn.TransformerEncoderLayer(4, 2, 8, 0.0), (3, 2, 4)),
    (nn.InstanceNorm2d(2), (2, 2, 3, 3)), (nn.Upsample(scale_factor=2), (1, 2, 3, 3)), (nn.PReLU(), (2, 3)),
    (nn.RMSNorm(4), (2, 4)), (nn.ZeroPad2d(1), (1, 2, 3, 3)), (nn.Sigmoid(), (2, 3)), (nn.SiLU(), (2, 3)),
]


class Around(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


@pytest.mark.parametrize("module, sizes", LIBRARY, ids=[type(m).__name__ for m, _ in LIBRARY])
def test_modules_of_the_library(module, sizes):
    x = ptcore.tensor([[1, 2], [0, 4]]) if sizes is None else ptcore.randn(sizes)
    scripted = jit.script(Around(copy.deepcopy(module)))
    for mode in (True, False):
        module.train(mode)
        scripted.train(mode)
        assert plain(scripted(x)) == plain(module(x))
    assert plain([*scripted.state_dict().values()]) == plain([*module.state_dict().values()])


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4)
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x, state: tuple[Tensor, Tensor] | None = None):
        out, (h, c) = self.lstm(x, state)
        y = self.cell(h[0])
        for row in out:
            y = self.cell(row, y)
        return y, (h, c)


def test_recurrent_modules():
    x = ptcore.randn(5, 2, 3)
    scripted = same(Recurrent(), (x,))
    assert scripted(x, scripted(x)[1])[0].shape == (2, 4)


class Base(nn.Module):
    def forward(self, x):
        return self.step(x) + 1

    def step(self, x):
        return x * 2


class Derived(Base):
    def forward(self, x):
        return super().forward(x) * 3

    def step(self, x):
        return super().step(x) - 1


def test_inheritance():
    same(Derived(), (ptcore.ones(2),))


class Old(jit.ScriptModule):
    def __init__(self, n: int):
        super().__init__()
        self.weight = nn.Parameter(ptcore.ones(n))
        self.memory = jit.Attribute({}, dict[str, int])
        self.number = jit.Attribute(3, "int")

    @jit.script_method
    def forward(self, x):
        return self.twice(x) + self.weight * (self.number - 2)

    @jit.script_method
    def twice(self, x):
        return x * 2


def test_script_methods():
    old = Old(2)
    assert old(ptcore.ones(2)).tolist() == [3, 3] and old.twice(ptcore.ones(1)).tolist() == [2]
    assert len(old.graph.nodes) and [*old.state_dict()] == ["weight"]
    old.weight.data.fill_(5)
    assert old(ptcore.ones(2)).tolist() == [7, 7]
    assert (old.number, old.memory) == (3, {})              # values, as jit.Attribute is for the type alone
    old.number = 4
    assert old(ptcore.ones(2)).tolist() == [12, 12]


# -- classes -------------------------------------------------------------------------------------------

@jit.script
class Counter:
    def __init__(self, start: int, names: list[str]):
        self.n = start
        self.names = names
        self.last: int | None = None

    def add(self, k: int = 1):
        self.n += k
        self.last = k
        return self

    def __len__(self):
        return self.n

    def __getitem__(self, k: int):
        return self.names[k]

    def __contains__(self, name: str):
        return name in self.names

    def __add__(self, other: "Counter") -> "Counter":
        return Counter(self.n + other.n, self.names + other.names)

    def __lt__(self, other: "Counter") -> bool:
        return self.n < other.n

    @property
    def double(self):
        return self.n * 2

    @staticmethod
    def make(n: int):
        return n + 5

    def __enter__(self):
        self.n += 100
        return self.n

    def __exit__(self, kind: int, value: int, trace: int):
        self.n -= 100


def use_class(n: int):
    c = Counter(n, ["a", "b"])
    c.add().add(3)
    d = c + Counter(5, ["z"])
    total = 0
    for k in range(len(d)):
        total += k
    last = c.last
    if last is None:
        last = -1
    d.n = 70
    found = [x.n for x in sorted([d, c])]
    return c.n, d.n, total, c[1], "z" in d, "q" in d, c.double, last, d.names, Counter.make(2), c < d, found


def take_object(c: Counter, n: int):
    c.add(n)
    return c


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.counter = Counter(1, [])

    def forward(self, x):
        self.counter.add(2)
        return x + self.counter.n


def test_classes():
    scripted = jit.script(use_class)
    assert plain(scripted(3)) == plain(use_class(3))
    c = Counter(2, [])
    assert jit.script(take_object)(c, 4) is c and c.n == 6
    holder = Holder()
    assert jit.script(holder)(ptcore.zeros(1)).tolist() == [3]
    assert "Counter" in str(jit.script(take_object).returns)


def enter_object(c: Counter):
    with c as n:
        m = n + 1
    return m, c.n


def test_with_of_objects():
    assert jit.script(enter_object)(Counter(2, [])) == (103, 2)


class Pair(NamedTuple):
    first: Tensor
    second: int


class Gives(nn.Module):
    def forward(self, x) -> Pair:
        return Pair(x + 1, 3)


class Takes(nn.Module):
    def __init__(self):
        super().__init__()
        self.gives = Gives()

    def forward(self, x):
        pair = self.gives(x)
        return pair.first * pair.second, [m(x).second for m in [self.gives, self.gives]] if False else [pair.second]


def test_named_tuples_between_modules():
    same(Takes(), (ptcore.ones(2),))


def test_hooks_run():
    net = nn.Sequential(nn.Linear(2, 2))
    seen = []
    scripted = jit.script(net)
    scripted.register_forward_hook(lambda m, args, out: seen.append(out.shape))
    scripted[0].register_forward_pre_hook(lambda m, args: seen.append(1))
    scripted(ptcore.ones(1, 2))
    assert seen == [1, (1, 2)]


@jit.script
@dataclasses.dataclass(order=True)
class Record:
    n: int
    names: list[str]
    rate: float = 2.5

    def total(self):
        return self.n * self.rate


def use_dataclass(n: int):
    a, b = Record(n, ["a"]), Record(names=["b"], n=n + 1, rate=1.0)
    b.rate += 1
    return a.total(), b.total(), a == b, a == Record(n, ["a"]), a < b, b.names, max([a.n, b.n])


@dataclasses.dataclass
class Spread:
    low: int
    step: int = dataclasses.field(default=2, kw_only=True)
    high: int = 4


def use_keyword_fields(n: int):
    a, b = Spread(n, 3), Spread(n, step=5)
    return a.low, a.step, a.high, b.low, b.step, b.high


def too_many_positions(n: int):
    return Spread(n, 3, 5).low


def test_dataclasses():
    assert plain(jit.script(use_dataclass)(3)) == plain(use_dataclass(3))
    assert plain(jit.script(use_keyword_fields)(3)) == plain(use_keyword_fields(3)) == [3, 2, 3, 3, 5, 4]
    with pytest.raises(RuntimeError, match="Spread takes 2 fields by position, not 3"):
        jit.script(too_many_positions)


class Many(nn.Module):
    rate: Final[float] = 3.0
    kind: Final = "a"
    flag: bool
    pair: tuple[int, str]

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Identity(), nn.Linear(2, 2)])
        self.table = nn.ModuleDict({"one": nn.ReLU(), "two": nn.Identity()})
        self.weights = nn.ParameterList([ptcore.ones(2), ptcore.zeros(2)])
        self.sequence = nn.Sequential(nn.Identity(), nn.Sequential(nn.ReLU()))
        self.flag = True
        self.pair = (1, "x")
        self.maybe = None
        self.function = ptcore.tanh
        self.size = [1, 2]

    def forward(self, x):
        for a, b in zip(self.layers, [1.0, 2.0, 3.0]):
            x = a(x) * b
        for k, (name, layer) in enumerate(self.table.items()):
            x = layer(x) + k
        for layer in self.layers[1:]:
            x = layer(x)
        for layer in self.table.values():
            x = layer(x)
        x = self.layers[-1](x) + self.weights[0]
        for w in self.weights:
            x = x + w
        for part in self.sequence:
            x = part(x)
        if "one" in self.table and "three" not in self.table:
            x = x * self.rate
        if self.kind == "a" and self.flag:
            x = x + 1
        if hasattr(self, "maybe") and not hasattr(self, "nothing"):
            x = x - 1
        if self.maybe is not None:
            x = self.maybe(x)
        names = [name for name in self.table.keys()]
        outs = [layer(x) for layer in self.layers]
        self.flag = not self.flag
        self.size.append(3)
        if isinstance(self.layers[1], nn.Identity):
            x = x + getattr(self, "rate") + getattr(self, "other", 2.0)
        return self.function(x), names, outs, len(self.layers), self.pair, self.size


def test_what_modules_hold():
    scripted = same(Many(), (ptcore.ones(1, 2),), (ptcore.ones(1, 2),))
    assert scripted.flag is True and scripted.size == [1, 2, 3, 3]


def test_attributes_that_are_set_keep_their_types():
    scripted = jit.script(Many())
    scripted.flag = False
    assert scripted(ptcore.ones(1, 2))[0].shape == (1, 2) and scripted.flag is True
    for name, value in (("flag", "a"), ("pair", (1, 2)), ("maybe", 3), ("size", ["a"])):
        with pytest.raises(TypeError, match="expected a value of type"):
            setattr(scripted, name, value)
    with pytest.raises(AttributeError, match="'rate' is a constant"):
        scripted.rate = 4.0
    with pytest.raises(RuntimeError, match="can become another ScriptModule only"):
        scripted.layers = nn.ReLU()
    linear = jit.script(nn.Linear(2, 2, bias=False))
    with pytest.raises(RuntimeError, match="'bias' of a ScriptModule cannot be set"):
        linear.bias = nn.Parameter(ptcore.ones(2))
    with pytest.raises(RuntimeError, match="'weight' of a ScriptModule cannot become None"):
        linear.weight = None
    linear.weight = nn.Parameter(ptcore.ones(2, 2))
    assert linear(ptcore.ones(1, 2)).tolist() == [[2, 2]]


class Both(nn.ModuleList):
    def forward(self, x):
        for layer in self:
            x = layer(x)
        return x


class Reparametrized(nn.Module):
    def __init__(self):
        super().__init__()
        self.normed = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
        self.pruned = nn.utils.prune.l1_unstructured(nn.Linear(2, 2), "weight", 1)
        self.both = Both([nn.Linear(2, 2), nn.ReLU()])

    def forward(self, x):
        return self.both(self.pruned(self.normed(x)))


def test_modules_that_compute_their_weights():
    net = Reparametrized()
    scripted = same(net, (ptcore.ones(1, 2),))
    with ptcore.no_grad():
        for p in scripted.parameters():
            p.mul_(2)
    assert plain(scripted(ptcore.ones(1, 2))) == plain(net(ptcore.ones(1, 2)))
    assert [*scripted.state_dict()] == [*net.state_dict()]


class OwnLSTM(nn.LSTM):
    @jit.export
    def last(self, x):
        return self.forward(x)[0][-1]


class OwnLinear(nn.Linear):
    def forward(self, x):
        return super().forward(x) + 1


class OwnConv(nn.Conv1d):
    pass


def test_classes_that_inherit_from_the_library():
    lstm = OwnLSTM(2, 3)
    scripted = jit.script(lstm)
    x = ptcore.randn(4, 1, 2)
    assert plain(scripted(x)) == plain(lstm(x)) and plain(scripted.last(x)) == plain(lstm.last(x))
    same(OwnLinear(2, 3), (x,))
    same(nn.Sequential(OwnConv(1, 2, 1), OwnLinear(2, 2)), (x,))


class Words(nn.Module):
    def forward(self, x, n: int):
        """Text that starts
at the left edge of the file, as code may.
        """
        text = """a
b"""
# a comment at the left edge
        if n > 2:
            text = text + "ü" * n + self.more(n)
        return x, text

    def more(self, n: int):
        # type: (int) -> str
        return "ä" + str(n)


def test_text_at_the_left_edge():
    same(Words(), (ptcore.ones(1), 1), (ptcore.ones(1), 3))


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = self.b = nn.Linear(2, 2)

    def forward(self, x):
        return self.a(self.b(x))


def test_shared_modules_stay_shared():
    scripted = same(Shared(), (ptcore.ones(1, 2),))
    assert scripted.a is scripted.b and len(list(scripted.parameters())) == 2


def test_code_is_text_of_python():
    code = jit.script(Many()).code
    compile(code, "code", "exec")
    assert code.startswith("def forward(self, x: Tensor) -> Tuple[Tensor, List[str], List[Tensor], int")
    assert "self.layers" in code


def test_ignored_methods_keep_state():
    class Stateful(nn.Module):
        def __init__(self):
            super().__init__()
            self.count = 0

        @jit.ignore
        def bump(self) -> int:
            self.count += 1
            return self.count

        def forward(self, x):
            self.bump()
            return x + self.count
    same(Stateful(), (ptcore.zeros(1),), (ptcore.zeros(1),))


def test_settings():
    before = jit.set_fusion_strategy([("STATIC", 1)])
    assert jit.set_fusion_strategy(before) == [("STATIC", 1)]
    with pytest.raises(ValueError, match="'STATIC' or 'DYNAMIC'"):
        jit.set_fusion_strategy([("a", 1)])
    with jit.optimized_execution(False):
        assert jit.script(nn.ReLU())(ptcore.ones(1)).item() == 1
    with pytest.raises((TypeError, ValueError)):
        jit.optimized_execution("no")
    assert jit.onednn_fusion_enabled() is False and jit.enable_onednn_fusion(False) is None
    for use in (jit.strict_fusion, lambda: jit.fuser("fuser1"), jit.last_executed_optimized_graph,
                lambda: jit.enable_onednn_fusion(True)):
        with pytest.raises(NotImplementedError):
            use()
    names = jit.export_opnames(jit.script(nn.Sequential(nn.Linear(2, 2), nn.ReLU())))
    assert names == ["linear", "relu"]
    assert jit.export_opnames(jit.script(use_loop)) == ["cos", "sin"]
    assert jit.export_opnames(jit.script(calls_loop)) == ["cos", "sin", "tan"]
    with pytest.raises(TypeError, match="expected a ScriptModule"):
        jit.export_opnames(nn.ReLU())


def use_loop(x, n: int):
    for _ in range(n):
        x = ptcore.sin(x)
    return ptcore.cos(x)


def calls_loop(x, n: int):
    return use_loop(ptcore.tan(x), n + 1)


class Beyond(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(ptcore.full((1,), float(k))) for k in range(3)])

    def forward(self, x):
        return x * self.weights[3]


class Zipped(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(1, 1) for _ in range(3)])

    def forward(self, x, more: list[Tensor]):
        for layer, y in zip(self.layers, more):
            x = x + layer(y)
        return x


class Finality(nn.Module):
    stage: "Finals"     # noqa: F821
    known: "Final[int]"

    def __init__(self):
        super().__init__()
        self.known = 2

    def forward(self, x):
        return x * self.known


def test_lists_of_other_lengths_than_modules():
    with pytest.raises(jit.ScriptError, match="index 3 is out of the range of 3 parameters"):
        jit.script(Beyond())
    x = ptcore.ones(1, 1)
    scripted = same(Zipped(), (x, [x, x, x]), (x, [x, x, x, x]))
    with pytest.raises(ValueError, match=r"zip: expected 3 items or more.*got 1"):
        scripted(x, [x])


def test_names_that_begin_as_final():
    scripted = jit.script(Finality())
    with pytest.raises(AttributeError, match="'known' is a constant"):
        scripted.known = 3
    scripted.stage = 3                      # no constant
    assert scripted.stage == 3


def test_a_shallow_copy_shares_the_tensors():
    scripted = jit.script(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    other = copy.copy(scripted)
    assert other[0].weight is scripted[0].weight and other[0] is scripted[0] and other is not scripted
    layer = jit.script(nn.Linear(2, 2))
    other = copy.copy(layer)
    assert other.weight is layer.weight and copy.deepcopy(layer).weight is not layer.weight
    other.weight = nn.Parameter(ptcore.zeros(2, 2))
    assert layer.weight is not other.weight and ptcore.equal(other(ptcore.ones(2)), layer.bias)


class _Counted(nn.ModuleList):
    def __len__(self):
        return 7


class _Sizes(nn.Module):
    """What a module says of its parts: a child of None has no name, parameters count where they are the items."""

    def __init__(self):
        super().__init__()
        self.d = nn.Sequential()
        self.d.add_module("a", nn.ReLU())
        self.d.register_module("skip", None)
        self.d.add_module("b", nn.Sigmoid())
        self.p = nn.ParameterList([ptcore.zeros(1), ptcore.zeros(1), ptcore.zeros(1)])
        self.q = nn.ParameterDict({"a": ptcore.zeros(1)})
        self.c = _Counted([nn.ReLU()])

    def forward(self, x):
        for name, f in self.d.named_children():
            x = f(x)
            if name == "b":
                x = x + 100.0
        for k in range(len(self.p)):
            x = x + 1000.0
        if "a" in self.q:
            x = x + 0.25
        if "b" in self.q:
            x = x + 7.0
        return x + len(self.c)


def test_lengths_and_names_of_parts():
    model = _Sizes()
    x = ptcore.tensor([0.0])
    assert ptcore.jit.script(model)(x).item() == model(x).item() == 3107.75

    class Bad(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(1, 1)

        def forward(self, x):
            return x + len(self.linear)
    with pytest.raises(RuntimeError, match="a module Linear has no length"):
        ptcore.jit.script(Bad())
