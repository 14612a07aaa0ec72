"""Order of what modules hold and call: keys of containers from every mapping, hooks of every two and three kinds."""
import itertools
from collections import OrderedDict

import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

SOURCES = {"dict": dict, "OrderedDict": OrderedDict, "list": list, "tuple": tuple, "generator": iter}
NAMES = ("b", "a", "10", "9", "c")


def entry(m, container):
    return m.nn.Linear(1, 1) if container == "ModuleDict" else m.nn.Parameter(m.ones(1))


def key_orders(m, container, source):
    def pairs(*names):
        return [(name, entry(m, container)) for name in names]

    make = getattr(m.nn, container)
    d = make(SOURCES[source](pairs(*NAMES)))
    found = [list(d)]
    for more in (dict(pairs("z", "a", "y")), OrderedDict(pairs("q", "p")), pairs("n", "m"),
                 make(dict(pairs("l", "k")))):
        d.update(more)
        found.append(list(d.keys()))
    d.pop("a")
    d["a"] = entry(m, container)
    found += [list(d), [k for k, _ in d.items()], list(d.state_dict()), [n for n, _ in d.named_parameters()]]
    if container == "ParameterDict":
        found += [list(d | dict(pairs("u", "b", "t"))), list(reversed(d)), list(d.fromkeys(["w", "v"])), list(d.copy()),
                  list(dict(pairs("u", "b", "t")) | d), d.popitem()[0]]
        d |= dict(pairs("s", "r"))
        found.append(list(d))
    return found


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("container", ["ModuleDict", "ParameterDict"])
def test_keys(container, source):
    assert key_orders(pt, container, source) == key_orders(torch, container, source)


def test_sequential_and_state():
    found = []
    for m in (pt, torch):
        net = m.nn.Sequential(OrderedDict([("b", m.nn.Linear(1, 1)), ("a", m.nn.BatchNorm1d(1))]))
        net.register_buffer("z", m.ones(1))
        net.register_parameter("y", m.nn.Parameter(m.ones(1)))
        net.a.register_buffer("hidden", m.ones(1), persistent=False)
        found.append([list(net.state_dict()), [n for n, _ in net.named_parameters()],
                      [n for n, _ in net.named_buffers()],
                      [n for n, _ in net.named_modules()], list(net.state_dict()._metadata)])
    assert found[0] == found[1]


CALLED = {
    "pre": lambda mod, note: mod.register_forward_pre_hook(lambda m, x: note()),
    "pre first": lambda mod, note: mod.register_forward_pre_hook(lambda m, x: note(), prepend=True),
    "pre with keywords": lambda mod, note: mod.register_forward_pre_hook(lambda m, x, k: note(*k), with_kwargs=True),
    "after": lambda mod, note: mod.register_forward_hook(lambda m, x, y: note()),
    "after first": lambda mod, note: mod.register_forward_hook(lambda m, x, y: note(), prepend=True),
    "after with keywords": lambda mod, note: mod.register_forward_hook(lambda m, x, k, y: note(*k), with_kwargs=True),
    "after always": lambda mod, note: mod.register_forward_hook(lambda m, x, y: note(), always_call=True),
    "backward": lambda mod, note: mod.register_full_backward_hook(lambda m, i, o: note(i[0].tolist(), o[0].tolist())),
    "backward first": lambda mod, note: mod.register_full_backward_hook(lambda m, i, o: note(), prepend=True),
    "before backward": lambda mod, note: mod.register_full_backward_pre_hook(lambda m, o: (note(), (o[0] * 2,))[1]),
    "before backward first": lambda mod, note: mod.register_full_backward_pre_hook(lambda m, o: note(), prepend=True)}
GLOBAL = {"pre of all": "register_module_forward_pre_hook", "after all": "register_module_forward_hook",
          "backward of all": "register_module_full_backward_hook",
          "before backward of all": "register_module_full_backward_pre_hook"}


def call_events(m, kinds):
    seen, handles = [], []

    class Double(m.nn.Module):
        def forward(self, x, y=None):
            seen.append("forward")
            return x * 2

    class Outer(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Double()

        def forward(self, x):
            return self.inner(x, y=1)

    net = Outer()
    for i, kind in enumerate(kinds):
        def note(*what, tag=f"{kind} {i}"):
            seen.append((tag, *what))

        if kind in CALLED:
            CALLED[kind](net.inner, note)
        else:
            register = getattr(m.nn.modules.module, GLOBAL[kind])
            handles.append(register(lambda mod, *rest, note=note: note(type(mod).__name__)))
    try:
        x = m.ones(2, requires_grad=True)
        net(x).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    return seen, x.grad.tolist()


@pytest.mark.parametrize("first", [*CALLED, *GLOBAL])
def test_calls(first):
    for kinds in itertools.chain([(first,)], *[itertools.product((first,), *[(*CALLED, *GLOBAL)] * n) for n in (1, 2)]):
        assert call_events(pt, kinds) == call_events(torch, kinds), kinds


STATE = {
    "state": lambda mod, note: mod._register_state_dict_hook(lambda m, d, *rest: note(*d)),
    "state pre": lambda mod, note: mod.register_state_dict_pre_hook(lambda m, p, k: note(p)),
    "state post": lambda mod, note: mod.register_state_dict_post_hook(lambda m, d, *rest: note(*d)),
    "load pre": lambda mod, note: mod.register_load_state_dict_pre_hook(lambda m, d, *rest: note(*d)),
    "load pre of old": lambda mod, note: mod._register_load_state_dict_pre_hook(lambda d, *rest: note(*d)),
    "load post": lambda mod, note: mod.register_load_state_dict_post_hook(lambda m, keys: note(*keys.missing_keys))}


@pytest.mark.parametrize("kinds", [kinds for n in (1, 2, 3) for kinds in itertools.product(STATE, repeat=n)])
def test_states(kinds):
    found = []
    for m in (pt, torch):
        seen = []
        net = m.nn.Linear(1, 1)
        for i, kind in enumerate(kinds):
            STATE[kind](net, lambda *what, tag=f"{kind} {i}", seen=seen: seen.append((tag, *what)))
        net.load_state_dict(net.state_dict())
        found.append(seen)
    assert found[0] == found[1]
