"""Where modules keep what they hold, and who is asked for an attribute: the same programs with PyTorch.

Each program gets a library and returns what it saw as plain data. Names of the library in messages count as equal.
"""
import abc
import copy
import functools
import pickle
import re
import sys
import warnings
from typing import Generic, TypeVar

import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

TABLES = ("_parameters", "_buffers", "_modules")
OWN = {*TABLES, "training", "_non_persistent_buffers_set"}
HOOKS = {name for name in vars(torch.nn.Module()) if "hook" in name} | {"_hooks"}


def text(x):
    return re.sub(r"\b(ptcore|torch)\b(\.nn\.modules\.\w+|\.nn\.parameter|\._tensor)?", "LIB", str(x))


def outcome(program, *args):
    """The result of a call, or the class and the text of its error."""
    try:
        return program(*args)
    except Exception as error:
        cls = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
        return cls.__name__, text(error).partition("\n")[0]


def where(module, name):
    """The places that have a name, and the kind of what is read."""
    places = [table for table in TABLES if name in vars(module).get(table, ())]
    places += ["own"] * (name in vars(module)) + ["not persistent"] * (name in module._non_persistent_buffers_set)
    return places, outcome(lambda: text(type(getattr(module, name)).__name__))


def same(program):
    assert outcome(program, pt) == outcome(program, torch)


# -- what stands where ------------------------------------------------------------------------------

ARGUMENTS = ((), (2,), (2, 2), (2, 2, 2), (2, 2, 1), (8, 10, [2, 4]), (0, (1, 1)), ("GRU", 2, 2), (2, 2, True, 3))
CLASSES = sorted(name for name in dir(torch.nn) if isinstance(getattr(torch.nn, name), type)
                 and issubclass(getattr(torch.nn, name), torch.nn.Module) and hasattr(pt.nn, name)
                 and name not in ("DataParallel", "Container"))


def made(m, name):
    """The first module of a class that PyTorch makes of the arguments."""
    if name in ("TransformerEncoder", "TransformerDecoder"):
        return getattr(m.nn, name)(getattr(m.nn, f"{name}Layer")(4, 2, 8), 2)
    for args in ARGUMENTS:
        try:
            getattr(torch.nn, name)(*args)
        except Exception:
            continue
        return getattr(m.nn, name)(*args)
    return None


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_keeps_its_state_in_the_tables_alone(name):
    with warnings.catch_warnings(action="ignore"):
        ours, theirs = made(pt, name), made(torch, name)
    assert ours is not None, f"{name}: no arguments are known"
    for module in (ours, copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        for m, like in zip(module.modules(), theirs.modules(), strict=True):
            own = vars(m)
            assert [type(own[table]) for table in TABLES] == [dict] * 3
            assert [list(own[table]) for table in TABLES] == [list(vars(like)[table]) for table in TABLES]
            for key, value in ((k, v) for table in TABLES for k, v in own[table].items()):
                assert key not in own and getattr(m, key) is value
            assert OWN <= own.keys() and OWN <= vars(like).keys()
            public = {key for key in vars(like) if not key.startswith("_")}
            assert {key for key in own if not key.startswith("_")} >= public & set(dir(m))


# -- every kind of write to every kind of attribute --------------------------------------------------

def holder(m, kind):
    """A module with an attribute x of some kind."""
    class Holder(m.nn.Module):
        fixed = 3

        @property
        def reads(self):
            return 5

        def method(self):
            return 6

        x = {"class": 1, "property": property(lambda self: 2, lambda self, value: vars(self).update(given=value)),
             "reader": property(lambda self: 2), "function": lambda self: 3}.get(kind)
    if kind not in ("class", "property", "reader", "function"):
        del Holder.x
    net = Holder()
    if kind == "own":
        net.x = 4
    elif kind == "parameter":
        net.x = m.nn.Parameter(m.ones(1))
    elif kind == "buffer":
        net.register_buffer("x", m.ones(1))
    elif kind == "hidden buffer":
        net.register_buffer("x", m.ones(1), persistent=False)
    elif kind == "module":
        net.x = m.nn.Identity()
    elif kind.startswith("no "):
        {"no parameter": net.register_parameter, "no buffer": net.register_buffer,
         "no module": net.add_module}[kind]("x", None)
    return net


KINDS = ("nothing", "own", "parameter", "buffer", "hidden buffer", "module", "no parameter", "no buffer", "no module",
         "class", "property", "reader", "function")
VALUES = {"int": lambda m: 7, "none": lambda m: None, "tensor": lambda m: m.ones(2),
          "parameter": lambda m: m.nn.Parameter(m.ones(2)), "module": lambda m: m.nn.ReLU(),
          "buffer": lambda m: m.nn.Buffer(m.ones(2)),
          "hidden": lambda m: m.nn.Buffer(m.ones(2), persistent=False),
          "result": lambda m: m.ones(1, requires_grad=True) * 2}


def seen(net, write):
    done = outcome(lambda: write() and None)
    return done, where(net, "x"), outcome(lambda: sorted(net.state_dict())), [n for n, _ in net.named_parameters()]


@pytest.mark.parametrize("kind", KINDS)
def test_assignments(kind):
    for value in VALUES:
        def program(m, value=value):
            net = holder(m, kind)
            return seen(net, lambda: setattr(net, "x", VALUES[value](m)))
        assert program(pt) == program(torch), value


@pytest.mark.parametrize("kind", KINDS)
def test_registrations(kind):
    for how in ("register_parameter", "register_buffer", "add_module", "register_module"):
        for value in VALUES:
            def program(m, value=value, how=how):
                net = holder(m, kind)
                return seen(net, lambda: getattr(net, how)("x", VALUES[value](m)))
            assert program(pt) == program(torch), (how, value)


@pytest.mark.parametrize("kind", KINDS)
def test_deletions(kind):
    def program(m):
        net = holder(m, kind)
        return seen(net, lambda: delattr(net, "x")), outcome(lambda: delattr(net, "x"))
    same(program)


@pytest.mark.parametrize("how", ["register_parameter", "register_buffer", "add_module"])
def test_bad_names(how):
    def program(m):
        net = holder(m, "nothing")
        found = [outcome(getattr(net, how), name, None)
                 for name in ("", 3, "fixed", "reads", "method", "forward", None)]
        found.append(outcome(getattr(net, how), "a.b", None)[0])
        return found
    same(program)


def test_before_init():
    def program(m):
        class Late(m.nn.Module):
            def __init__(self):
                pass

        def attempt(f):
            return outcome(f, Late())
        return [attempt(f) for f in (
            lambda n: setattr(n, "x", m.nn.Parameter(m.ones(1))), lambda n: setattr(n, "x", m.nn.Identity()),
            lambda n: n.register_buffer("x", None), lambda n: n.register_parameter("x", None), lambda n: n.x,
            lambda n: delattr(n, "x"), lambda n: setattr(n, "x", 3), lambda n: setattr(n, "x", m.ones(1)),
            lambda n: list(n.parameters()), lambda n: n._parameters)]
    same(program)


# -- who is asked --------------------------------------------------------------------------------------

def asked_first(m):
    """As Pyro's modules do: what the tables hold is given out changed."""
    class Net(m.nn.Linear):
        def __getattr__(self, name):
            asked.append(name)
            value = super().__getattr__(name)
            return value * 2 if name == "weight" else value

    asked = []
    net = Net(1, 1)
    del asked[:]
    net.weight.sum().backward()
    found = net.in_features, net.bias.shape[0], net.training, net._parameters["weight"].grad.item()
    return found, asked, outcome(lambda: net.absent), hasattr(net, "absent"), type(net.weight).__name__


def never_asked(m):
    class Net(m.nn.Module):
        plain = 1

        def __init__(self):
            super().__init__()
            self.own = 2

        def method(self):
            return 3

        @property
        def computed(self):
            return 4

        def __getattr__(self, name):
            asked.append(name)
            raise AttributeError(name)

    asked = []
    net = Net()
    del asked[:]
    return net.plain, net.own, net.method(), net.computed, net.training, asked, outcome(lambda: net.x), asked


def sees_all(m):
    class Net(m.nn.Linear):
        def __getattribute__(self, name):
            if name in ("weight", "in_features", "absent", "forward"):
                asked.append(name)
            return super().__getattribute__(name)

    asked = []
    net = Net(1, 1)
    del asked[:]
    found = net.weight.shape[0], net.in_features, outcome(lambda: net.absent), net(m.ones(1, 1)).shape[0]
    return found, [name for name in asked if name != "forward"]


def answers_all(m):
    class Net(m.nn.Linear):
        def __getattribute__(self, name):
            return 42 if name == "weight" else super().__getattribute__(name)
    net = Net(1, 1)
    return net.weight, net.bias.shape[0]


def property_that_fails(m):
    class Net(m.nn.Module):
        @property
        def broken(self):
            return self.missing

        @property
        def wrong(self):
            raise ValueError("wrong")

        @property
        def hides(self):
            raise AttributeError("hidden")
    net = Net()
    net._parameters["hides"] = m.nn.Parameter(m.ones(1))
    return (outcome(lambda: net.broken), outcome(lambda: net.wrong), net.hides.shape[0], hasattr(net, "broken"),
            outcome(getattr, net, "broken", 3))


def class_before_tables(m):
    class Data:
        def __get__(self, x, cls):
            return "data"

        def __set__(self, x, value):
            raise AttributeError("read only")

    class NoData:
        def __get__(self, x, cls):
            return "no data"

    class Net(m.nn.Module):
        a, b, c = Data(), NoData(), 1

        def d(self):
            return 2
    net = Net()
    for name in "abcde":
        net._parameters[name] = m.nn.Parameter(m.ones(1))
    first = [net.a, net.b, net.c, net.d(), net.e.shape[0]]
    for name in "abcde":
        vars(net)[name] = "own"
    return first, [net.a, net.b, net.c, net.d, net.e]


def order_of_the_tables(m):
    net = m.nn.Module()
    net._modules["x"], net._buffers["x"], net._parameters["x"] = "module", "buffer", "parameter"
    found = [net.x]
    for table in TABLES:
        del vars(net)[table]["x"]
        found.append(outcome(lambda: net.x))
    return found


def tables_of_other_kinds(m):
    class Counted(dict):
        def __contains__(self, key):
            asked.append(key)
            return super().__contains__(key)

    asked = []
    net = m.nn.Module()
    net._parameters = Counted(x="x")
    vars(net)["_buffers"] = {"y": "y"}
    found = net.x, net.y, asked
    del vars(net)["_parameters"], vars(net)["_buffers"]
    net._modules["z"] = "z"
    return found, net.z, outcome(lambda: net.x)


def odd_keys(m):
    class Key:
        def __hash__(self):
            return hash("x")

        def __eq__(self, other):
            raise ValueError("compared")
    found = []
    for k in range(4):
        net = m.nn.Module()
        net._modules["x"] = m.nn.Identity()
        [vars(net), *[vars(net)[table] for table in TABLES]][k][Key()] = 1
        found.append(outcome(lambda net=net: type(net.x).__name__))
    return found


def twice(m):
    net = m.nn.Sequential(m.nn.ReLU(), m.nn.Linear(1, 1))
    net.note = 3
    net.register_forward_hook(lambda *args: None)
    net.eval()
    net.__init__(m.nn.Tanh())
    return repr(net), net.note, net.training, len(net._forward_hooks), list(net.parameters()), sorted(net.state_dict())


PROGRAMS = [asked_first, never_asked, sees_all, answers_all, property_that_fails, class_before_tables,
            order_of_the_tables, tables_of_other_kinds, odd_keys, twice]


# -- classes of other kinds -----------------------------------------------------------------------------

def mixed(m):
    class Asks:
        def __getattr__(self, name):
            if name.startswith("x"):
                return f"mixin {name}"
            up = getattr(super(), "__getattr__", None)
            if up is None:
                raise AttributeError(name)
            return up(name)

    class Before(Asks, m.nn.Linear):
        pass

    class After(m.nn.Linear, Asks):
        pass

    class Sees:
        def __getattribute__(self, name):
            return "seen" if name == "weight" else super().__getattribute__(name)

    class SeesBefore(Sees, m.nn.Linear):
        pass

    class SeesAfter(m.nn.Linear, Sees):
        pass
    return [(outcome(lambda c=c: c(1, 1).x), text(type(c(1, 1).weight).__name__), c(1, 1).bias.shape[0])
            for c in (Before, After, SeesBefore, SeesAfter)]


def with_builtins(m):
    found = []
    # No int: its instances have no weak references, which PyTorch's compiler wants of every module once it has run.
    for bases in ((m.nn.Module, dict), (dict, m.nn.Module), (m.nn.Module, Exception), (Exception, m.nn.Module),
                  (m.nn.Module, list)):
        net = type("Net", bases, {"__init__": lambda self: m.nn.Module.__init__(self)})()
        net.x, net.y = m.nn.Parameter(m.ones(1)), m.nn.Identity()
        found.append((net.x.shape[0], type(net.y).__name__, "x" in vars(net), outcome(lambda net=net: net.z)))
    return found


def generic_and_abstract(m):
    T = TypeVar("T")

    class Box(m.nn.Module, Generic[T]):
        def __init__(self):
            super().__init__()
            self.x = m.nn.Parameter(m.ones(1))

    class Other(Generic[T], m.nn.Module):
        def __init__(self):
            super().__init__()
            self.x = m.nn.Parameter(m.ones(1))

    class Abstract(m.nn.Module, abc.ABC):
        def __init__(self):
            super().__init__()
            self.x = m.nn.Parameter(m.ones(1))

        @abc.abstractmethod
        def wanted(self):
            pass

    class Concrete(Abstract):
        def wanted(self):
            return self.x.shape[0]
    return (Box[int]().x.shape[0], Other[int]().x.shape[0], Concrete().wanted(), outcome(Abstract)[0],
            outcome(lambda: Box().y))


def subclass_words(m):
    class Base(m.nn.Module):
        def __init_subclass__(cls, word=None, **kwargs):
            super().__init_subclass__(**kwargs)
            cls.word = word

    class Net(Base, word=3):
        pass
    net = Net()
    net.x = m.nn.Identity()
    return Net.word, type(net.x).__name__, outcome(lambda: type("Bad", (m.nn.Module,), {}, word=3))[0]


def cooperative(m):
    class Writes:
        def __setattr__(self, name, value):
            written.append(name)
            super().__setattr__(name, value)

        def __delattr__(self, name):
            written.append(name + " gone")
            super().__delattr__(name)

    class After(m.nn.Module, Writes):
        pass

    written = []
    net = After()
    del written[:]
    net.a, net.b, net.c = 1, m.nn.Parameter(m.ones(1)), m.nn.Identity()
    del net.a, net.b, net.c
    return written


def super_init(m):
    class Other:
        def __init__(self, x=0):
            self.given = x

    class Net(m.nn.Module, Other):
        call_super_init = True
    return Net(x=4).given, Net().given, outcome(lambda: m.nn.Module(3)), outcome(lambda: m.nn.Module(x=3))


def transforms(m):
    """Transforms and distributions that are modules, as Pyro's are."""
    D = m.distributions

    class Scale(D.Transform, m.nn.Module):
        domain = codomain = D.constraints.real
        bijective = True

        def __init__(self, cache_size=0):
            super().__init__(cache_size=cache_size)
            self.s = m.nn.Parameter(m.full((1,), 3.0))

        def _call(self, x):
            return x * self.s

        def _inverse(self, y):
            return y / self.s

        def log_abs_det_jacobian(self, x, y):
            return self.s.abs().log().expand(x.shape)

    class Mean(D.Distribution, m.nn.Module):
        @property
        def arg_constraints(self):
            return {}

        def __init__(self):
            super().__init__()
            self.mean_ = m.nn.Parameter(m.ones(1))
    t = Scale(cache_size=1)
    t(m.ones(2)).sum().backward()
    d = D.TransformedDistribution(D.Normal(m.zeros(1), m.ones(1)), [Scale()])
    d.log_prob(m.ones(1)).sum().backward()
    return ([n for n, _ in t.named_parameters()], t.s.grad.item(), t.inv(m.ones(1)).item(), t._cache_size,
            [n for n, _ in Mean().named_parameters()], round(d.transforms[0].s.grad.item(), 5))


def class_assigned(m):
    class Asks(m.nn.Linear):
        def __getattr__(self, name):
            return "asked" if name == "weight" else super().__getattr__(name)
    net = m.nn.Linear(1, 1)
    found = [type(net.weight).__name__]
    net.__class__ = Asks
    found.append(net.weight)
    net.__class__ = m.nn.Linear
    return [*found, type(net.weight).__name__]


PROGRAMS += [mixed, with_builtins, generic_and_abstract, subclass_words, cooperative, super_init, transforms,
             class_assigned]


# -- classes that change ----------------------------------------------------------------------------------

def late(m):
    """Methods that a class, a base or a mixin gets and loses after modules were made and read."""
    class Mixin:
        pass

    class Base(m.nn.Module):
        pass

    class Net(Base, Mixin):
        pass

    class Below(Net):
        pass
    nets = [Net(), Below()]
    for net in nets:
        net.w, net.own = m.nn.Parameter(m.ones(1)), "own"

    def read():
        return [type(x).__name__ if isinstance(x, m.Tensor) else x
                for net in nets for x in (net.w, net.own, outcome(lambda net=net: net.z))]
    found = [read()]
    for cls in (Below, Net, Base, Mixin):
        cls.__getattr__ = lambda self, name: f"asked {name}"
        found.append(read())
        del cls.__getattr__
        found.append(read())
        cls.__getattribute__ = lambda self, name: f"seen {name}"
        found.append(read())
        del cls.__getattribute__
        found.append(read())
    return found


def bases_assigned(m):
    class Asks(m.nn.Module):
        def __getattr__(self, name):
            return f"asked {name}"

    class Plain(m.nn.Module):
        pass

    class Net(Plain):
        pass
    net = Net()
    net.w = m.nn.Parameter(m.ones(1))
    found = [type(net.w).__name__]
    Net.__bases__ = (Asks,)
    found.append(net.w)
    Net.__bases__ = (Plain,)
    return [*found, type(net.w).__name__]


def module_itself_patched(m):
    """As tracers do: what replaces Module.__getattr__ sees the reads of all modules."""
    net, before, asked = m.nn.Linear(1, 1), m.nn.Module.__getattr__, []
    net.weight  # noqa: B018

    @functools.wraps(before)
    def patched(self, name):
        asked.append(name)
        return before(self, name)
    m.nn.Module.__getattr__ = patched
    try:
        net(m.ones(1, 1))
    finally:
        m.nn.Module.__getattr__ = before
    net(m.ones(1, 1))
    return asked, m.nn.Module.__getattr__ is before


PROGRAMS += [late, bases_assigned, module_itself_patched]


# -- copies and pickles --------------------------------------------------------------------------------------

def own_state(m):
    """The idiom of __getstate__ and __setstate__ by __dict__."""
    net = pickle.loads(pickle.dumps(STATEFUL[m.__name__]()))
    net.load_state_dict({"w": m.full((1,), 5.0)}, assign=True)
    net(m.ones(1)).sum().backward()
    return net(m.ones(1)).item(), net.state_dict()["w"].item(), [p.grad is not None for p in net.parameters()]


def shallow(m):
    net = m.nn.Linear(1, 1)
    other = copy.copy(net)
    found = [other.weight is net.weight, other._parameters is net._parameters]
    other.weight = m.nn.Parameter(m.zeros(1, 1))
    other.note, other.child = 3, m.nn.Identity()
    return [*found, net.weight is other.weight, hasattr(net, "note"), hasattr(net, "child")]


def deep(m):
    net = m.nn.Sequential(m.nn.Linear(1, 1), m.nn.BatchNorm1d(1))
    net[0].twin = net[0].weight
    net.register_buffer("shared", net[1].running_mean)
    found = []
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net)), pickle.loads(pickle.dumps(net, 2))):
        found.append([other[0].weight is net[0].weight, other[0].twin is other[0].weight,
                      other.shared is other[1].running_mean, sorted(vars(other[0]).keys() - HOOKS), list(vars(other[1])[
                          "_buffers"]), other._modules["0"] is other[0]])
    return found


def pruned_and_normed(m):
    import importlib
    prune = importlib.import_module(f"{m.__name__}.nn.utils.prune")
    found = []
    with warnings.catch_warnings(action="ignore"):
        nets = [m.nn.utils.weight_norm(m.nn.Linear(2, 2)), m.nn.utils.spectral_norm(m.nn.Linear(2, 2)),
                prune.identity(m.nn.Linear(2, 2), "weight")]
        nets.append(m.nn.utils.parametrizations.weight_norm(m.nn.Linear(2, 2)))
    for net in nets:
        found.append([[list(vars(net)[table]) for table in TABLES], "weight" in vars(net)])
        for mode in (m.no_grad, m.enable_grad):
            with mode():
                net(m.ones(1, 2))
            found.append(outcome(lambda net=net: list(copy.deepcopy(net).state_dict()))[:1])
    return found


def called_with_others(m):
    net = m.nn.Sequential(m.nn.Linear(1, 1))
    given = {"0.weight": m.full((1, 1), 3.0), "0.bias": m.zeros(1)}
    result = m.func.functional_call(net, given, (m.ones(1, 1),)).item()
    return result, [where(net[0], name) for name in ("weight", "bias")], type(net[0].weight).__name__


PROGRAMS += [own_state, shallow, deep, pruned_and_normed, called_with_others]


def _stateful(m):
    class Net(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.log = m.nn.Parameter(m.ones(1)), print

        def forward(self, x):
            return x * self.w

        def __getstate__(self):
            state = self.__dict__.copy()
            del state["log"]
            return state

        def __setstate__(self, state):
            self.__dict__.update(state)
    Net.__name__ = Net.__qualname__ = f"Stateful_{m.__name__}"
    setattr(sys.modules[__name__], Net.__name__, Net)
    return Net


STATEFUL = {m.__name__: _stateful(m) for m in (pt, torch)}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(program):
    same(program)
