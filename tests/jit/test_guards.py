"""Between calls, each kind of state that a capture can have read is changed: the result is eager's, and what did not
matter is not captured again."""
import collections
import dataclasses
import enum
import math

import numpy as np
import pytest

import ptcore as pt
from ptcore import nn
from ptcore.jit import compiled as _compile
from ptcore.jit.capture import guards

HERE = globals()
SCALE, NAMES, TABLE, UNUSED = 2, ["a", "b"], {"a": 1.5, "b": 2.5}, 0
WEIGHT = pt.arange(4.0)
SETTINGS = collections.namedtuple("SETTINGS", "rate power")(0.5, 2)


def helper(x):
    return x + 1


def other(x):
    return x - 1


helper_of = helper


class Plain:
    kind = "sum"

    def __init__(self):
        self.scale, self.parts, self.table, self.on = 2.0, [1, 2], {"k": 3}, True

    @property
    def twice(self):
        return 2 * self.scale

    @classmethod
    def made(cls, x):
        return x if cls.kind == "sum" else -x

    @staticmethod
    def plus(x):
        return x + 1

    def apply(self, x):
        return x * self.scale + self.twice

    def __len__(self):
        return len(self.parts)

    def __getitem__(self, k):
        return self.parts[k]


class Slots:
    __slots__ = ("a",)


class Mode(enum.Enum):
    UP = 1
    DOWN = 2


@dataclasses.dataclass
class Config:
    rate: float = 0.5
    depth: int = 2


PLAIN, MODE = Plain(), Mode.UP


def equal(a, b):
    if isinstance(a, pt.Tensor):
        assert type(a) is type(b) and a.dtype is b.dtype and a.shape == b.shape and a.stride() == b.stride()
        assert a.requires_grad == b.requires_grad
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
    elif isinstance(a, (list, tuple)):
        assert type(a) is type(b) and len(a) == len(b)
        for x, y in zip(a, b):
            equal(x, y)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for k in a:
            equal(a[k], b[k])
    else:
        assert type(a) is type(b) and a == b


class Watched:
    """A compiled function whose results are compared with eager's; ``captures`` counts."""

    def __init__(self, f, **options):
        options.setdefault("backend", "eager")
        self.f, self.compiled = f, pt.compile(f, **options)
        self.captures = self.eager = 0

    def __call__(self, *args, **kwargs):
        before = dict(_compile.counts)
        expected = self.f(*args, **kwargs)
        found = self.compiled(*args, **kwargs)
        equal(found, expected)
        assert _compile.counts["raised"] == before["raised"]
        self.captures += _compile.counts["captures"] - before["captures"]
        self.eager += _compile.counts["eager"] - before["eager"]
        return self


def check(f, args, *changes, captures=None, one_graph=True):
    """Calls with nothing changed, then after each change, twice."""
    watched = Watched(f)
    watched(*args)(*args)
    for change in changes:
        change()
        watched(*args)(*args)
    if captures is not None:
        assert watched.captures == captures
    if one_graph:
        assert watched.eager == 0
    return watched


X = pt.tensor([1.0, -2.0, 3.0, 0.5])


def setting(space, **values):
    def change():
        for name, value in values.items():
            if isinstance(space, dict):
                space[name] = value
            else:
                setattr(space, name, value)
    return change


@pytest.fixture(autouse=True, params=[0, guards.SLOW_CHECKS], ids=["compiled", "asked"])
def restore(request, monkeypatch):
    monkeypatch.setattr(guards, "SLOW_CHECKS", request.param)
    kept, state, cls = dict(HERE), dict(vars(PLAIN)), dict(vars(Plain))
    state |= {"parts": list(PLAIN.parts), "table": dict(PLAIN.table)}
    names, table = list(NAMES), dict(TABLE)
    yield
    HERE.update(kept)
    vars(PLAIN).clear()
    vars(PLAIN).update(state)
    for name in set(vars(Plain)) - set(cls):
        delattr(Plain, name)
    for name, value in cls.items():
        if vars(Plain).get(name) is not value:
            setattr(Plain, name, value)
    NAMES[:], _ = names, TABLE.clear()
    TABLE.update(table)


# -- names ------------------------------------------------------------------------------------------------------------

def test_a_global_number():
    check(lambda x: x * SCALE, (X,), setting(HERE, SCALE=3), setting(HERE, SCALE=3.0), setting(HERE, SCALE=True),
          captures=4)


def test_what_is_not_read_does_not_matter():
    check(lambda x: x * SCALE, (X,), setting(HERE, UNUSED=1), setting(Plain, unused=1), setting(PLAIN, unused=2),
          captures=1)


def test_signs_of_zero_and_nan():
    watched = check(lambda x: x / SCALE, (X,), setting(HERE, SCALE=0.0), setting(HERE, SCALE=-0.0),
                    setting(HERE, SCALE=math.nan), setting(HERE, SCALE=float("nan")))
    assert watched.captures <= 4


def test_a_global_function():
    check(lambda x: helper_of(x), (X,), setting(HERE, helper_of=other), setting(HERE, helper_of=lambda x: x * 5),
          captures=3)


def test_the_code_of_a_function():
    def f(x):
        return helper(x)
    before = helper.__code__

    def change():
        helper.__code__ = other.__code__
    try:
        check(f, (X,), change, captures=2)
    finally:
        helper.__code__ = before


def test_defaults_of_a_function():
    def g(x, k=1, *, w=2.0):
        return x * k + w

    def f(x):
        return g(x)

    def positional():
        g.__defaults__ = (3,)

    def keyword():
        g.__kwdefaults__["w"] = 5.0
    check(f, (X,), positional, keyword, captures=3)


def test_a_default_that_is_a_list():
    given = [1, 2]

    def f(x, k=given):
        return x * k[0]
    check(f, (X,), lambda: given.__setitem__(0, 7), lambda: given.append(4), captures=2)


def test_a_cell():
    k, on = 2.0, False

    def f(x):
        return x * k if on else x + k

    def change():
        nonlocal k
        k = 3.0

    def switch():
        nonlocal on
        on = True
    assert check(f, (X,), change, switch).captures == 3


def test_a_global_tensor():
    def metadata():
        HERE["WEIGHT"] = pt.ones(4, dtype=pt.float64)

    def values():
        WEIGHT.mul_(2)
    check(lambda x: x * WEIGHT, (X,), values, setting(HERE, WEIGHT=pt.ones(4)), metadata,
          setting(HERE, WEIGHT=pt.ones(4, requires_grad=True)), captures=3)


def test_a_builtin_name_is_covered():
    def f(x):
        return x + abs(-3)
    try:
        check(f, (X,), setting(HERE, abs=lambda v: 10), captures=2)
    finally:
        HERE.pop("abs", None)


def test_a_name_of_the_package_is_replaced(monkeypatch):
    def f(x):
        return pt.nn.functional.relu(x)

    def change():
        monkeypatch.setattr(pt.nn.functional, "relu", lambda x: x * 7)
    check(f, (X,), change, monkeypatch.undo, captures=2)


# -- containers -------------------------------------------------------------------------------------------------------

def test_elements_of_a_list():
    def f(x):
        return x + len(NAMES) if NAMES[0] == "a" else x - 1
    check(f, (X,), lambda: NAMES.append("c"), lambda: NAMES.__setitem__(0, "z"), lambda: NAMES.clear() or
          NAMES.extend(["a", "b"]), captures=3)


def test_a_list_is_iterated():
    def f(x):
        for name in NAMES:
            x = x * 2 if name == "a" else x + 1
        return x
    check(f, (X,), lambda: NAMES.reverse(), lambda: NAMES.pop(), captures=3)


@pytest.mark.parametrize("f", [
    lambda x: x * sum(TABLE.values()), lambda x: x * TABLE["a"], lambda x: x * TABLE.get("a", 1),
    lambda x: x + len(TABLE) + ("c" in TABLE), lambda x: x * [v for k, v in TABLE.items() if k == "a"].pop(),
    lambda x: x * max(TABLE.values()) + sum(v for v in TABLE.values()), lambda x: x * dict(TABLE)["a"],
    lambda x: {k: x * v for k, v in TABLE.items()}, lambda x: [x * TABLE[k] for k in sorted(TABLE)],
    lambda x: x * TABLE.get("missing", 4.0), lambda x: x * {**TABLE}["a"], lambda x: x * min(list(TABLE.values()))])
def test_values_of_a_dict(f):
    check(f, (X,), lambda: TABLE.__setitem__("a", 4.0), lambda: TABLE.__setitem__("c", 1.0),
          lambda: TABLE.__setitem__("missing", 2.0), lambda: TABLE.pop("b"))


def test_a_key_that_is_absent():
    def f(x):
        try:
            return x * TABLE["q"]
        except KeyError:
            return x
    check(f, (X,), lambda: TABLE.__setitem__("q", 4.0), lambda: TABLE.pop("q"), captures=2)


def test_a_named_tuple():
    check(lambda x: x * SETTINGS.rate ** SETTINGS.power, (X,),
          setting(HERE, SETTINGS=SETTINGS._replace(rate=0.25)), setting(HERE, SETTINGS=SETTINGS._replace(power=3)))


def test_a_set():
    chosen = {1, 2}
    check(lambda x: x * 2 if 3 in chosen else x + len(chosen), (X,), lambda: chosen.add(3), lambda: chosen.add(9),
          captures=2)


def test_nested_containers():
    nested = {"a": [1, (2, [3])], "b": {"c": 4}}
    check(lambda x: x * nested["a"][1][1][0] + nested["b"]["c"], (X,),
          lambda: nested["a"][1][1].__setitem__(0, 8), lambda: nested["b"].update(c=5), lambda: nested["a"].append(1),
          captures=3)


class Bag(dict):
    def more(self):
        return len(self) + self["a"]


class Row(list):
    pass


class Odd(dict):
    def __getitem__(self, k):
        return super().__getitem__(k) + 1


def test_subclasses_of_containers():
    bag, row, odd = Bag(a=1, b=[2, 3]), Row([1, [2]]), Odd(a=1)
    check(lambda x: x * bag.more() + sum(row[1]) + sum(v for v in bag["b"]) + len([k for k in bag]) + row[0], (X,),
          lambda: bag.update(a=5), lambda: row[1].append(3), lambda: bag["b"].append(1), captures=4)
    check(lambda x: x * odd["a"], (X,), lambda: odd.update(a=5), one_graph=False)
    check(lambda x: x * [v for v in odd.values()].pop() + odd["a"], (X,), lambda: odd.update(a=7), one_graph=False)


def test_sums_of_lists_keep_their_elements():
    """A list made of parts of one from outside holds what that one holds: a write to it is one to the outside."""
    def f(x, nested):
        both = [[0]] + nested
        both[1].append(5)
        return x + len(nested[0])
    nested, twin = [[1], [2]], [[1], [2]]
    compiled = pt.compile(f, backend="eager")
    for _ in range(3):
        equal(compiled(X, nested), f(X, twin))
        assert nested == twin
    check(lambda x: x + sum([len(v) for v in nested * 2 + nested]), (X,), lambda: nested[0].pop(), captures=2)


def test_a_list_of_tensors():
    parts = [pt.ones(4), pt.zeros(4)]
    check(lambda x: pt.stack(parts).sum(0) + x, (X,), lambda: parts.append(pt.ones(4)), lambda: parts[0].add_(1),
          lambda: parts.__setitem__(0, pt.full((4,), 7.0)), captures=2)


# -- objects ----------------------------------------------------------------------------------------------------------

def test_attributes_of_an_object():
    def f(x):
        return PLAIN.apply(x) + len(PLAIN) + PLAIN[0]
    check(f, (X,), setting(PLAIN, scale=3.0), lambda: PLAIN.parts.append(3), lambda: PLAIN.parts.__setitem__(0, 9),
          setting(PLAIN, parts=[5]))


def test_attributes_of_a_class():
    check(lambda x: Plain.made(PLAIN.plus(x)) + (PLAIN.kind == "sum"), (X,), setting(Plain, kind="product"),
          setting(PLAIN, kind="sum"), captures=3)


def test_methods_of_a_class_are_replaced():
    check(lambda x: PLAIN.apply(x), (X,), setting(Plain, apply=lambda self, x: x - self.scale),
          setting(PLAIN, apply=lambda x: x + 100), captures=3)


def test_a_property_is_replaced():
    check(lambda x: x * PLAIN.twice, (X,), setting(Plain, twice=property(lambda self: 7)), captures=2)


def test_an_attribute_covers_what_the_class_has():
    class Base:
        factor = 2

    class Derived(Base):
        pass
    thing = Derived()
    check(lambda x: x * thing.factor, (X,), setting(Derived, factor=3), setting(thing, factor=4),
          lambda: delattr(thing, "factor"), lambda: delattr(Derived, "factor"), captures=3)


def test_the_bases_of_a_class():
    class Base:
        factor = 2

    class More(Base):
        factor = 3

    class Derived(Base):
        def value(self, x):
            return x * super().factor + self.factor

    class Between(More):
        pass
    thing = Derived()
    check(lambda x: thing.value(x), (X,), setting(Derived, __bases__=(Between,)), setting(Base, factor=5),
          setting(More, factor=7), setting(Between, factor=8))


def test_another_object():
    fresh = Plain()
    fresh.scale = 9.0
    check(lambda x: PLAIN.apply(x), (X,), setting(HERE, PLAIN=fresh), captures=2)


def test_the_class_of_an_object():
    class Other(Plain):
        def apply(self, x):
            return x
    check(lambda x: PLAIN.apply(x), (X,), setting(PLAIN, __class__=Other), setting(PLAIN, __class__=Plain), captures=2)


def test_slots_and_enums():
    thing = Slots()
    thing.a = 2.0
    check(lambda x: x * thing.a if MODE is Mode.UP else x, (X,), setting(thing, a=3.0), setting(HERE, MODE=Mode.DOWN),
          captures=3)


def test_hasattr_and_getattr():
    thing = Plain()
    check(lambda x: x * getattr(thing, "more", 2) if hasattr(thing, "on") else x, (X,), setting(thing, more=5),
          lambda: delattr(thing, "on"), captures=3)


def test_what_leads_to_a_value_is_gone():
    """A path that a guard follows ends before its value: the guard does not hold, and nothing raises."""
    class Holder:
        pass
    holder = Holder()
    holder.parts, holder.table = [pt.ones(4), pt.ones(4)], {"a": Plain(), "b": Plain()}

    def f(x):
        if hasattr(holder, "parts") and len(holder.parts) > 1 and "b" in holder.table:
            x = (x + holder.parts[1] * len({holder.table["a"], holder.table["b"]})).clone()
            x.add_(holder.parts[0])
            return x
        return x * 2
    check(f, (X,), lambda: holder.parts.pop(), lambda: holder.parts.append(pt.zeros(4)), lambda: holder.table.clear(),
          lambda: delattr(holder, "parts"), setting(holder, parts=[pt.ones(4)] * 2, table={"a": 1, "b": 2}))


def test_identity_in_sets():
    """Objects in sets and as keys: they are told apart by what they are, not by what is in them."""
    module = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)})
    things = [Plain(), Plain()]

    def replaced():
        module["b"].weight = module["a"].weight
    check(lambda x: x * sum(p.sum() for p in module.parameters()), (X,), replaced,
          lambda: module.update({"b": module["a"]}), captures=3)
    for f in (lambda x: x + len({t: 1 for t in things}), lambda x: x + len({t for t in things}),
              lambda x: x + len(set(things)), lambda x: x + len(dict([(t, 1) for t in things])),
              lambda x: x + len(set().union(t for t in things))):
        things[1] = Plain()
        check(f, (X,), lambda: things.__setitem__(1, things[0]), captures=2)
    first, second = pt.ones(4), pt.ones(4)
    watched = Watched(lambda x, y: x + len({x, y}) + (x in {y: 1}))
    watched(first, second)(first, first)(second, first)(second, second)
    assert watched.captures == 2


def test_identity():
    class Holder:
        pass
    holder = Holder()
    holder.a = holder.b = pt.ones(4)
    holder.p = holder.q = [1]
    check(lambda x: x * 2 if holder.a is holder.b and holder.p is holder.q else x, (X,),
          setting(holder, b=pt.ones(4)), setting(holder, b=holder.a, q=[1]))


# -- arguments --------------------------------------------------------------------------------------------------------

def test_numbers_and_words():
    watched = Watched(lambda x, k: x * k if k != "up" else x)
    for k in (2, 2.0, True, "up", "down"):
        if k != "down":
            watched(X, k)(X, k)
    assert watched.captures == 4


def test_objects_of_one_kind_share_a_graph():
    watched = Watched(lambda x, c: x * c.rate + c.depth)
    watched(X, Config())(X, Config())(X, Config(depth=3))
    assert watched.captures == 2


def test_containers_of_arguments():
    watched = Watched(lambda xs, table: [x * table["k"] for x in xs])
    watched([X, X + 1], {"k": 2.0})([X, X + 2], {"k": 2.0})([X], {"k": 2.0})((X,), {"k": 2.0})
    assert watched.captures == 4 - 1


def test_the_same_argument_twice():
    def f(x, y):
        return x * 2 if x is y else x + y
    watched = Watched(f)
    watched(X, X)(X, X.clone())(X, X)
    assert watched.captures == 2


def test_keywords():
    watched = Watched(lambda x, *more, k=1, **rest: x * k + sum(more) + sum(rest.values()))
    watched(X)(X, k=2)(X, 1, 2)(X, 1, 2, z=X)(X, z=X, k=3)(X, k=3, z=X)(X)


@pytest.mark.parametrize("change", [
    lambda x: x.double(), lambda x: x.requires_grad_(), lambda x: x[:2], lambda x: x.repeat(2)[::2],
    lambda x: x.reshape(2, 2), lambda x: x.long(), lambda x: nn.Parameter(x), lambda x: x[::-1],
    lambda x: x.expand(3, 4), lambda x: (x.requires_grad_() * 1)])
def test_metadata(change):
    def f(x):
        return (x * 2).sum(-1) if x.dtype is pt.float32 else x.reshape(-1)
    watched = Watched(f)
    watched(X.clone())(change(X.clone()))(X.clone())(change(X.clone()))
    assert watched.captures == 2


def test_a_transposed_input():
    x = pt.arange(6.0).reshape(2, 3)
    watched = Watched(lambda x: (x.stride(), x.is_contiguous(), x.contiguous() + 1))
    watched(x)(pt.arange(6.0).reshape(3, 2).T)(x)
    assert watched.captures == 2


# -- modules ----------------------------------------------------------------------------------------------------------

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)
        self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
        self.drop, self.flag, self.rate = nn.Dropout(0.5), True, 0.5
        self.register_buffer("shift", pt.ones(4))

    def forward(self, x):
        x = self.norm(self.first(x)) + self.shift
        for block in self.blocks:
            x = block(x).relu()
        if self.flag:
            x = self.drop(x) * self.rate
        return self.second(x)


def net_check(*changes, captures=None):
    module = Net()
    x = pt.randn(3, 4)
    compiled = pt.compile(module, backend="eager")
    before = dict(_compile.counts)
    for change in (lambda m: None, *changes):
        change(module)
        for _ in range(2):
            pt.manual_seed(0)
            state = {k: v.clone() for k, v in module.state_dict().items()}
            expected = module(x)
            with pt.no_grad():
                for k, v in module.state_dict().items():
                    v.copy_(state[k])
            pt.manual_seed(0)
            equal(compiled(x), expected)
    now = {k: v - before[k] for k, v in _compile.counts.items()}
    assert now["raised"] == now["eager"] == 0
    if captures is not None:
        assert now["captures"] == captures


def test_modes_of_a_module():
    net_check(lambda m: m.eval(), lambda m: m.train(), lambda m: m.norm.eval(), captures=3)


def test_flags_and_numbers_of_a_module():
    net_check(lambda m: setattr(m, "flag", False), lambda m: setattr(m, "flag", True),
              lambda m: setattr(m.drop, "p", 0.25), captures=3)


def test_parameters_are_replaced():
    def replace(m):
        m.first.weight = nn.Parameter(pt.ones(4, 4))

    def freeze(m):
        m.first.weight.requires_grad_(False)

    def widen(m):
        m.second = nn.Linear(4, 3)

    def no_bias(m):
        m.second.bias = None

    def data(m):
        m.first.weight.data = pt.full((4, 4), 0.5)
    net_check(replace, data, freeze, widen, no_bias, captures=4)


def test_submodules_are_replaced():
    net_check(lambda m: m.blocks.append(nn.Linear(4, 4)), lambda m: m.blocks.__setitem__(0, nn.Linear(4, 4)),
              lambda m: m.blocks.__setitem__(0, nn.Identity()), lambda m: setattr(m, "norm", nn.LayerNorm(4)),
              captures=4)


def test_buffers_are_replaced():
    net_check(lambda m: setattr(m, "shift", pt.zeros(4)), lambda m: m.shift.add_(3),
              lambda m: setattr(m, "shift", pt.zeros(1)), lambda m: setattr(m, "shift", pt.zeros(3, 4)))


def test_forward_is_replaced():
    def own(m):
        m.first.forward = lambda x: x * 3

    def of_class(m):
        m.forward = lambda x: x
    net_check(own, of_class, captures=3)


def test_hooks():
    handles = []

    def forward_hook(m):
        handles.append(m.first.register_forward_hook(lambda mod, args, out: out * 2))

    def pre_hook(m):
        handles.append(m.second.register_forward_pre_hook(lambda mod, args: (args[0] + 1,)))
    net_check(forward_hook, pre_hook, lambda m: handles.pop().remove(), lambda m: handles.pop().remove())


def test_a_global_hook():
    module, x = nn.Linear(4, 4), pt.randn(2, 4)
    compiled = pt.compile(module, backend="eager")
    equal(compiled(x), module(x))
    handle = nn.modules.module.register_module_forward_hook(lambda mod, args, out: out * 2)
    try:
        equal(compiled(x), module(x))
    finally:
        handle.remove()
    equal(compiled(x), module(x))


def test_instances_share_a_method():
    class Cell(nn.Module):
        def __init__(self, k):
            super().__init__()
            self.weight, self.k = nn.Parameter(pt.ones(4) * k), k

        @pt.compile(backend="eager")
        def forward(self, x):
            return x * self.weight + self.k
    before = _compile.counts["captures"]
    a, b, c = Cell(1), Cell(1), Cell(2)
    for cell in (a, b, c, a):
        equal(cell(X), X * cell.weight + cell.k)
    assert _compile.counts["captures"] - before == 2


# -- modes ------------------------------------------------------------------------------------------------------------

def test_grad_mode():
    w = pt.ones(4, requires_grad=True)

    def f(x):
        return (x * w, pt.is_grad_enabled())
    watched = Watched(f)
    watched(X)
    with pt.no_grad():
        watched(X)(X)
    with pt.inference_mode():
        watched(X)
    watched(X)
    assert watched.captures == 3


def test_default_dtype():
    def f(x):
        return pt.ones(4) + x.sum() * 0 + pt.tensor(1.5)
    watched = Watched(f)
    watched(X)
    pt.set_default_dtype(pt.float64)
    try:
        watched(X)(X)
    finally:
        pt.set_default_dtype(pt.float32)
    watched(X)
    assert watched.captures == 2


def test_a_function_mode_is_asked():
    names = []

    class Names(pt.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            names.append(func.__name__)
            return func(*args, **(kwargs or {}))
    compiled = pt.compile(lambda x: x.sin() + 1, backend="eager")
    compiled(X)
    with Names():
        compiled(X)
    assert names == ["sin", "add"]


def test_transformations_go_through():
    def f(x):
        return (x * x).sum()
    compiled = pt.compile(f, backend="eager")
    compiled(X)
    equal(pt.func.grad(compiled)(X), 2 * X)
    equal(pt.vmap(compiled)(X.reshape(2, 2)), (X * X).reshape(2, 2).sum(1))
    graph = pt.fx.experimental.proxy_tensor.make_fx(compiled)(X)
    equal(graph(X), f(X))


# -- memory -----------------------------------------------------------------------------------------------------------

def test_overlapping_inputs():
    def f(x, y):
        x.add_(1)
        return x * y
    compiled = pt.compile(f, backend="eager")
    def twice():
        b = pt.ones(4)
        return b, b

    def parts():
        b = pt.ones(6)
        return b[:4], b[2:]
    for make in (lambda: (pt.ones(4), pt.ones(4)), twice, parts, lambda: (pt.ones(4), pt.ones(4))):
        (a, b), (c, d) = make(), make()
        equal(compiled(a, b), f(c, d))
        equal((a, b), (c, d))
