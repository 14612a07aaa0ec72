"""Long programs about modules: each operation is drawn from what the program has by then.

An operation is a name and a seed. Two libraries run it one after the other; what each has is compared by the caller
after every step, so that the draws of both agree. Numbers and names are compared, words of errors are not.
"""
import copy
import importlib
import random
import warnings
from collections import OrderedDict

from _two_libraries import values

__all__ = ["World", "classes", "draw", "seen", "step"]

NAMES = ("weight", "bias", "extra", "b", "w", "p", "0", "1", "a", "inner", "", "x.y", "lin")
TABLES = ("_parameters", "_buffers", "_modules")


def plain(m, x):
    if isinstance(x, m.Tensor):
        data = x.detach()
        data = data.double() if data.is_floating_point() else data
        return (type(x).__name__, str(x.dtype).rpartition(".")[2], tuple(x.shape), x.requires_grad,
                data.flatten().tolist())
    if isinstance(x, m.nn.Module):
        return type(x).__name__
    if isinstance(x, dict):
        return [(plain(m, k), plain(m, v)) for k, v in x.items()]
    if isinstance(x, (list, tuple)):
        return [plain(m, v) for v in x]
    if isinstance(x, str):
        return x.replace(m.__name__, "library")
    return x if isinstance(x, (bool, int, float, type(None))) else type(x).__name__


def classes(m):
    nn = m.nn

    class Named(nn.Module):
        """Finds its scale by __getattr__, counts in a buffer, has extra state."""

        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(m.ones(3))
            self.register_buffer("calls", m.zeros(()))
            self.note = 0

        def __getattr__(self, name):
            return super().__getattr__("w") * 2 if name == "scale" else super().__getattr__(name)

        def get_extra_state(self):
            return {"note": self.note}

        def set_extra_state(self, state):
            self.note = state["note"] + 1

        def forward(self, x):
            self.calls += 1
            return x * self.scale

    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin, self.none = nn.Linear(3, 3), None
            self.register_module("inner", None)
            self.register_buffer("b", m.ones(3))
            self.register_buffer("aside", m.full((3,), 2.0), persistent=False)
            self.p = nn.Parameter(m.zeros(3), requires_grad=False)

        def forward(self, x):
            y = self.lin(x) * self.b + self.aside + self.p
            return y if self.inner is None else self.inner(y)

    class Tables(nn.Module):
        def __init__(self):
            super().__init__()
            self.listed = nn.ParameterList([nn.Parameter(m.ones(3)), m.ones(3)])
            self.keyed = nn.ParameterDict({"u": nn.Parameter(m.ones(3)), "a": m.ones(3)})

        def forward(self, x):
            for p in [*self.listed, *self.keyed.values()]:
                x = x * p if isinstance(p, m.Tensor) and p.is_floating_point() else x
            return x

    class Versioned(nn.Module):
        _version = 3

        def __init__(self):
            super().__init__()
            self.w, self.seen = nn.Parameter(m.ones(3)), []

        def _load_from_state_dict(self, state, prefix, metadata, strict, *lists):
            self.seen.append((metadata.get("version"), strict, prefix))
            super()._load_from_state_dict(state, prefix, metadata, strict, *lists)

        def forward(self, x):
            return x * self.w * len(self.seen)

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    class Added(nn.ModuleList):
        def forward(self, x):
            return sum((layer(x) for layer in self if layer is not None), x)

    class Keyed(nn.ModuleDict):
        def forward(self, x):
            for layer in self.values():
                x = x if layer is None else layer(x)
            return x

    class Half(nn.Module):
        def forward(self, x):
            return x / 2

        def right_inverse(self, x):
            return x * 2

    class Pair(nn.Module):
        def forward(self, a, b):
            return a + b

        def right_inverse(self, x):
            return x * 0.25, x * 0.75
    return {c.__name__: c for c in (Named, Mixed, Tables, Versioned, Tied, Added, Keyed, Half, Pair)}


LEAVES = ("Linear", "NoBias", "BatchNorm1d", "LayerNorm", "Tanh", "Named", "Mixed", "Tables", "Versioned", "Tied")
GROUPS = ("Sequential", "Added", "Keyed")


class World:
    """What one library has: models, hooks, optimizers and what hooks saw."""

    def __init__(self, m, seed):
        self.m, self.own, self.count = m, classes(m), 0
        self.log, self.handles, self.optimizers, self.kept = [], [], [], []
        self.roots = [self.made(random.Random(seed)) for _ in range(2)]

    def part(self, name):
        return importlib.import_module(f"{self.m.__name__}.{name}")

    def made(self, r, depth=0):
        """A new module from (n, 3) to (n, 3), whose parameters are numbers of their own."""
        nn, kind = self.m.nn, r.choice(LEAVES + 2 * GROUPS if depth < 2 else LEAVES)
        inner = [self.made(r, depth + 1) for _ in range(r.randint(0, 3))] if kind in GROUPS else None
        module = {"Linear": lambda: nn.Linear(3, 3), "NoBias": lambda: nn.Linear(3, 3, bias=False),
                  "BatchNorm1d": lambda: nn.BatchNorm1d(3), "LayerNorm": lambda: nn.LayerNorm(3), "Tanh": nn.Tanh,
                  "Sequential": lambda: nn.Sequential(*inner), "Added": lambda: self.own["Added"](inner),
                  "Keyed": lambda: self.own["Keyed"](dict(zip("abc", inner)))}.get(kind, self.own.get(kind))()
        if inner is None:
            with self.m.no_grad():
                for p in module.parameters():
                    p.copy_(self.numbers(*p.shape))
        return module

    def numbers(self, *shape):
        self.count += 1
        return values(self.m, *shape, shift=self.count * self.count) * 0.5

    def parameter(self, r):
        return self.m.nn.Parameter(self.numbers(*r.choice(((3,), (3,), (3, 3)))), requires_grad=r.random() < 0.8)

    def any_value(self, r):
        m = self.m
        return r.choice((lambda: self.parameter(r), lambda: self.numbers(3), lambda: None, lambda: self.made(r, 2),
                         lambda: m.nn.Buffer(self.numbers(3), persistent=r.random() < 0.5), lambda: 3.5,
                         lambda: self.numbers(3).requires_grad_() * 2, lambda: self.slot(r)[2]))()

    def every(self, kind=None):
        return [x for x in OrderedDict.fromkeys(x for root in self.roots for x in root.modules())
                if kind is None or isinstance(x, kind)]

    def one(self, r, kind=None):
        found = self.every(kind)
        return r.choice(found) if found else None

    def slot(self, r, table="_parameters"):
        """A module, a name in one of its tables and what it holds."""
        found = [(x, name, value) for x in self.every() for name, value in getattr(x, table).items()]
        return r.choice(found) if found else (None, None, None)

    def run(self, r):
        root = r.choice(self.roots)
        dtype = next((p.dtype for p in root.parameters() if p.is_floating_point()), self.m.float32)
        x = values(self.m, 4, 3, shift=r.randrange(7), dtype=dtype).requires_grad_()
        return root, x


def _backward(w, r):
    root, x = w.run(r)
    y = root(x)
    y.pow(2).mean().backward()
    return y, x.grad


def _set(w, r):
    module, name, value = w.one(r), r.choice(NAMES), w.any_value(r)
    if not isinstance(value, w.m.nn.Module) or module not in list(value.modules()):
        setattr(module, name, value)


def _register(w, r):
    module, name, value = w.one(r), r.choice(NAMES), w.any_value(r)
    getattr(module, r.choice(("register_parameter", "register_buffer")))(name, value)


def _delete(w, r):
    module, name, _ = w.slot(r, r.choice(TABLES))
    if module is not None and name != "parametrizations":
        delattr(module, name)


def _tie(w, r):
    layers = [x for x in w.every(w.m.nn.Linear) if "weight" in x._parameters]
    if len(layers) > 1:
        r.choice(layers).weight = r.choice(layers).weight


def _freeze(w, r):
    w.one(r).requires_grad_(r.random() < 0.5)


def _mode(w, r):
    w.one(r).train(r.random() < 0.5)


def _zero(w, r):
    w.one(r).zero_grad(set_to_none=r.random() < 0.5)


def _cast(w, r):
    r.choice(w.roots).to(r.choice((w.m.float64, w.m.float32)))


def _sequence(w, r):
    layers = w.one(r, (w.m.nn.Sequential, w.own["Added"]))
    if layers is None:
        return None
    size = len(layers)
    at, part = r.randint(-size - 1, size), slice(r.randint(-size, size), None, r.choice((1, 2, -1)))
    return r.choice((
        lambda: layers.append(w.made(r, 2)) is layers,
        lambda: layers.insert(abs(at) % (size + 1), w.made(r, 2)) and None,
        lambda: layers.pop(at), lambda: layers.__delitem__(at), lambda: layers.__delitem__(part),
        lambda: layers.__setitem__(at, w.made(r, 2)), lambda: repr(layers[part]), lambda: layers[at],
        lambda: repr(layers + layers), lambda: repr(w.m.nn.Sequential(*layers) * 2),
        lambda: layers.extend([w.made(r, 2), w.made(r, 2)]) is layers, lambda: [plain(w.m, x) for x in reversed(layers)]
    ))()


def _mapping(w, r):
    table, key = w.one(r, w.own["Keyed"]), r.choice(("a", "b", "c", "z", "keys", 0, ""))
    if table is None:
        return None
    return r.choice((
        lambda: table.__setitem__(key, w.made(r, 2)), lambda: table.__delitem__(key), lambda: table.pop(key),
        lambda: table[key], lambda: table.update({"q": w.made(r, 2), "b": w.made(r, 2)}), lambda: list(table),
        lambda: table.update([("z", w.made(r, 2))]), lambda: key in table, lambda: table.__setitem__(key, None)))()


def _parameter_tables(w, r):
    table, key = w.one(r, (w.m.nn.ParameterList, w.m.nn.ParameterDict)), r.choice(("u", "a", "z", "keys", ""))
    new, at = r.choice((lambda: w.parameter(r), lambda: w.numbers(3), lambda: 3))(), r.randint(-3, 3)
    if isinstance(table, w.m.nn.ParameterList):
        return r.choice((
            lambda: table.append(new) is table, lambda: table.__setitem__(at, new), lambda: table[at],
            lambda: repr(table[at:]), lambda: table.extend([new, new]) is table, lambda: len(table)))()
    if table is None:
        return None
    return r.choice((
        lambda: table.__setitem__(key, new), lambda: table.pop(key), lambda: table.setdefault(key, new),
        lambda: table.popitem(), lambda: table.update({"z": new, "b": new}), lambda: repr(table | {"q": new}),
        lambda: list(table.copy()), lambda: list(reversed(table)), lambda: table.get(key, 3), table.clear))()


def _load(w, r):
    root = w.one(r)
    state = root.state_dict()
    given = OrderedDict()
    for name, value in state.items():
        if r.random() > 0.05:
            tensor = w.m.is_tensor(value) and value.is_floating_point()
            given[name] = (value * 1.1).to(r.choice((w.m.float32, w.m.float64))) if tensor else value
            if tensor and r.random() < 0.05:
                given[name] = value[None, None]
    if r.random() < 0.2:
        given["surplus"] = w.m.ones(1)
    if r.random() < 0.6:
        given._metadata = state._metadata
    result = root.load_state_dict(given, strict=r.random() < 0.6, assign=r.random() < 0.3)
    return list(result), repr(result)


def _hook(w, r):
    module, tag, log, m, first = w.one(r), r.randrange(1000), w.log, w.m, r.random() < 0.3

    def note(*args):
        log.append((tag, [len(a) if isinstance(a, (tuple, dict)) else 0 for a in args[1:]]))

    def once(*args):
        note(*args)
        handle.remove()

    def wrong(*args):
        once(*args)
        raise ValueError("wrong")
    handle = r.choice((
        lambda: module.register_forward_pre_hook(note, prepend=first),
        lambda: module.register_forward_hook(note, with_kwargs=True, prepend=first),
        lambda: module.register_forward_hook(note, always_call=True), lambda: module.register_forward_hook(once),
        lambda: module.register_full_backward_hook(lambda _, grads, outs: log.append((tag, plain(m, outs)))),
        lambda: module.register_full_backward_pre_hook(lambda _, outs: (outs[0] * 2,), prepend=first),
        lambda: module.register_forward_pre_hook(lambda _, args: (args[0] * 0.5,)),
        lambda: module.register_forward_hook(wrong), lambda: module.register_forward_pre_hook(wrong),
        lambda: module.register_full_backward_hook(wrong),
        lambda: module.register_state_dict_pre_hook(lambda _, prefix, keep: log.append((tag, prefix, keep))),
        lambda: module.register_load_state_dict_post_hook(lambda _, keys: keys.missing_keys.clear()),
        lambda: module._register_state_dict_hook(lambda _, state, prefix, about: state.update({prefix + "more": 1})),
    ))()
    w.handles.append(handle)


def _unhook(w, r):
    if w.handles:
        w.handles.pop(r.randrange(len(w.handles))).remove()


def _parametrize(w, r):
    parametrize = w.part("nn.utils.parametrize")
    have = [x for x in w.every() if parametrize.is_parametrized(x)]
    if have and r.random() < 0.6:
        module = r.choice(have)
        name = r.choice(list(module.parametrizations))
        if r.random() < 0.5:
            parametrize.remove_parametrizations(module, name, leave_parametrized=r.random() < 0.5)
            return type(module).__name__
        return r.choice((lambda: getattr(module, name), lambda: setattr(module, name, getattr(module, name) * 1.5),
                         lambda: parametrize.type_before_parametrizations(module).__name__))()
    module, name, value = w.slot(r)
    if value is not None:
        way = r.choice((w.own["Half"], w.own["Pair"], w.m.nn.Tanh, w.m.nn.Flatten))
        parametrize.register_parametrization(module, name, way(), unsafe=r.random() < 0.2)
    return None


def _prune(w, r):
    prune = w.part("nn.utils.prune")
    module, name, value = w.slot(r)
    if value is None or (name.endswith("_orig") and r.random() < 0.7):
        return prune.remove(module, name.removesuffix("_orig")) and None
    r.choice((lambda: prune.l1_unstructured(module, name, 1), lambda: prune.identity(module, name),
              lambda: prune.global_unstructured([(module, name)], prune.L1Unstructured, amount=0.4)))()
    return [type(x).__name__ for x in module._forward_pre_hooks.values()]


def _functional(w, r):
    root, x = w.run(r)
    if len(list(root.named_modules(remove_duplicate=False))) > len(list(root.modules())):
        return None             # in a model that has a layer twice PyTorch leaves the given tensors in it
    given = {name: p.detach() * 1.5 for name, p in root.named_parameters() if r.random() < 0.6}
    return w.m.func.functional_call(root, given, (x,), tie_weights=r.random() < 0.7)


def _copy(w, r):
    k = r.randrange(2)
    w.roots[k] = copy.deepcopy(r.choice(w.roots))


def _optimizer(w, r):
    made, root = w.m.optim, r.choice(w.roots)
    given = r.choice((lambda: list(root.parameters()), lambda: list(root.named_parameters())))()
    w.optimizers[:1] = [r.choice((lambda: made.SGD(given, 0.05, momentum=0.9), lambda: made.Adam(given, 0.01, eps=0.01),
                                  lambda: made.RMSprop(given, 0.01, eps=0.01, centered=True)))()]


def _step(w, r):
    for optimizer in w.optimizers:
        root, x = w.run(r)
        optimizer.zero_grad()
        root(x).pow(2).mean().backward()
        optimizer.step()


def _optimizer_state(w, r):
    if w.optimizers:
        optimizer, p = w.optimizers[0], w.slot(r)[2]
        r.choice((lambda: w.kept.append(copy.deepcopy(optimizer.state_dict())),
                  lambda: optimizer.load_state_dict(r.choice(w.kept)) if w.kept else None,
                  lambda: optimizer.add_param_group({"params": [p]}),
                  lambda: optimizer.add_param_group({"params": [w.parameter(r)] * 2, "lr": 0.1})))()


ACTIONS = {f.__name__[1:]: f for f in (
    _backward, _set, _register, _delete, _tie, _freeze, _mode, _zero, _cast, _sequence, _mapping, _parameter_tables,
    _load, _hook, _unhook, _parametrize, _prune, _functional, _copy, _optimizer, _step, _optimizer_state)}


def draw(seed):
    """A program: the seed of the models, and operations with seeds of their own; some are not used at all."""
    r = random.Random(seed)
    names = r.sample(sorted(ACTIONS), r.randint(6, len(ACTIONS)))
    return seed, [(r.choice([*names, "backward"]), r.randrange(10**6)) for _ in range(r.randint(10, 30))]


def step(w, name, seed):
    """("result", what an operation gives) or ("error", the builtin classes of its error)."""
    with warnings.catch_warnings(action="ignore"):
        try:
            return "result", plain(w.m, ACTIONS[name](w, random.Random(seed)))
        except Exception as error:
            return "error", {c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"} - {
                "Exception", "BaseException", "object"}


def attempted(f):
    try:
        return f()
    except Exception:
        return "failed"


def _parts(m, root, number):
    """What is seen of a model; `number` tells objects apart."""
    every = {"remove_duplicate": False}
    return {
        "modules": lambda: [(name, type(x).__name__, number(x), x.training) for name, x in root.named_modules(**every)],
        "parameters": lambda: [(name, number(p), plain(m, p), plain(m, p.grad))
                               for name, p in root.named_parameters(**every)],
        "once": lambda: [name for name, _ in (*root.named_parameters(), *root.named_buffers())],
        "buffers": lambda: [(name, number(b), plain(m, b)) for name, b in root.named_buffers(**every)],
        "state": lambda: plain(m, root.state_dict()), "text": lambda: plain(m, repr(root)),
        "versions": lambda: plain(m, root.state_dict()._metadata),
        "tables": lambda: [[list(getattr(x, table)) for table in TABLES] + [sorted(x._non_persistent_buffers_set)]
                           for x in root.modules()]}


def seen(w):
    """All that a world has, by a name each."""
    m, found = w.m, {"log": list(w.log)}
    numbers = {}
    for k, root in enumerate(w.roots):
        parts = _parts(m, root, lambda x: numbers.setdefault(id(x), len(numbers)))
        found.update({f"{k} {name}": attempted(f) for name, f in parts.items()})
    for optimizer in w.optimizers:
        state = optimizer.state_dict()
        found["optimizer"] = (sorted((k, sorted(v)) for k, v in state["state"].items()),
                              [plain(m, state["state"][k]) for k in sorted(state["state"])],
                              [(group["params"], group["lr"]) for group in state["param_groups"]])
    return found
