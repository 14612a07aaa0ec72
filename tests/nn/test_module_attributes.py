"""The slot that reads modules' attributes: which classes have it, and that it answers as CPython does."""
import copy
import gc
import pickle
import sys

import pytest

import ptcore as pt
from ptcore import nn
from ptcore.nn.modules._attributes import has_slot

pytestmark = pytest.mark.core

SLOT = pytest.mark.skipif(not sys._is_gil_enabled() if sys.version_info >= (3, 13) else False,
                          reason="a build without the GIL has no slot")


def classes(cls=nn.Module):
    return {cls, *[c for below in cls.__subclasses__() for c in classes(below)]}


def read(net):
    """A read that comes to ``Module.__getattr__``."""
    return getattr(net, "absent", None)


@SLOT
def test_a_class_gets_the_slot_at_its_first_read():
    class Net(nn.Linear):
        pass
    net = Net(2, 2)
    read(net)
    assert has_slot(Net)
    assert net.weight is net._parameters["weight"]

    class Below(Net):
        pass
    read(Below(1, 1))
    assert has_slot(Below)


@SLOT
def test_the_slot_is_on_no_class_that_asks_otherwise():
    """A walk over all classes that are alive: the two methods that decide, by Python's own lookup."""
    def first(cls, name):
        return next(vars(c)[name] for c in cls.__mro__ if name in vars(c))
    found = [cls for cls in classes() if has_slot(cls)]
    assert nn.Linear in found or read(nn.Linear(1, 1)) is None
    for cls in found:
        assert first(cls, "__getattr__") is vars(nn.Module)["__getattr__"], cls
        assert first(cls, "__getattribute__") is object.__getattribute__, cls


@SLOT
@pytest.mark.parametrize("name", ["__getattr__", "__getattribute__"])
@pytest.mark.parametrize("on", ["itself", "base", "mixin", "module"])
def test_an_assigned_method_takes_the_slot_away_at_once(name, on):
    class Mixin:
        pass

    class Base(nn.Module):
        pass

    class Net(Base, Mixin):
        pass
    cls = {"itself": Net, "base": Base, "mixin": Mixin, "module": nn.Module}[on]
    before = vars(cls).get(name)
    net = Net()
    net.w = nn.Parameter(pt.ones(1))
    read(net)
    assert has_slot(Net)
    # Module's own __getattr__ is found before that of a mixin behind it
    not_asked = (on, name) == ("mixin", "__getattr__")
    setattr(cls, name, lambda self, key: "asked")
    try:
        assert not_asked or not has_slot(Net)
        assert (net.w is net._parameters["w"]) if not_asked else (net.w == "asked")
    finally:
        if before is None:
            delattr(cls, name)
        else:
            setattr(cls, name, before)
    assert net.w is net._parameters["w"]
    assert has_slot(Net)


@SLOT
def test_a_trace_leaves_the_slot_in_place():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    pt.fx.symbolic_trace(net)
    net(pt.ones(1, 2))
    assert has_slot(nn.Linear)
    read(net)
    assert has_slot(nn.Sequential)


def test_reads_keep_no_references():
    net = nn.Linear(2, 2)
    net.child = nn.Identity()
    net.register_buffer("b", pt.ones(1))
    held = [net.weight, net.child, net.b, net._parameters, net._buffers, net._modules, vars(net)]
    before = [sys.getrefcount(x) for x in held]
    for _ in range(1000):
        net.weight, net.child, net.b, net.in_features, net.training, net.forward  # noqa: B018
        read(net)
    assert [sys.getrefcount(x) for x in held] == before


def test_errors_name_what_was_asked_for():
    net = nn.Linear(2, 2)
    for read_it in (lambda: net.wieght, lambda: nn.Module.__getattr__(net, "wieght")):
        with pytest.raises(AttributeError, match=r"^'Linear' object has no attribute 'wieght'$"):
            read_it()
    with pytest.raises(AttributeError) as info:
        net.wieght  # noqa: B018
    assert info.value.name == "wieght" and info.value.obj is net
    with pytest.raises(TypeError):
        nn.Module.__getattr__(net, 3)
    with pytest.raises(TypeError):
        nn.Module.__getattr__(object(), "weight")
    with pytest.raises(TypeError):
        nn.Module.__getattr__(net)


def test_a_dict_that_was_replaced_or_emptied():
    net = nn.Linear(2, 2)
    own = dict(reversed(vars(net).items()))         # the tables at other places
    net.__dict__ = own
    assert net.weight is own["_parameters"]["weight"] and net.in_features == 2
    net.__dict__ = {"_modules": {"x": 3}, "y": 4}
    assert (net.x, net.y, hasattr(net, "weight")) == (3, 4, False)
    net.__dict__ = {}
    assert not hasattr(net, "x")
    bare = nn.Module.__new__(nn.Module)
    assert not hasattr(bare, "x") and not hasattr(bare, "_parameters")


def test_names_that_are_no_plain_str():
    class Name(str):
        __slots__ = ()

        def __eq__(self, other):
            return str(self) == "weight" and other == "weight"

        def __hash__(self):
            return hash("weight")
    net = nn.Linear(2, 2)
    assert getattr(net, Name("weight")) is net.weight
    assert getattr(net, "".join(["wei", "ght"])) is net.weight


def test_a_table_that_changes_while_it_is_read():
    class Key:
        def __hash__(self):
            return hash("x")

        def __eq__(self, other):
            net._parameters = {}
            net.__dict__.pop("_buffers", None)
            gc.collect()
            return False
    net = nn.Module()
    net._parameters[Key()] = nn.Parameter(pt.ones(1))
    net._modules["x"] = nn.Identity()
    assert type(net.x) is nn.Identity


class OwnState(nn.Module):
    """Takes its state from ``__dict__``, where earlier versions kept entries of the tables a second time."""

    def __init__(self):
        super().__init__()
        self.w, self.child, self.nothing = nn.Parameter(pt.ones(1)), nn.Identity(), 3
        self.register_buffer("b", None)

    def __getstate__(self):
        own = vars(self)
        return {**own, **own["_parameters"], **own["_buffers"], **own["_modules"]}


def test_states_of_earlier_versions():
    net = OwnState()
    for made in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net)):
        assert not {"w", "child", "b"} & vars(made).keys() and made.nothing == 3
        made.w = nn.Parameter(pt.zeros(1))
        made._parameters["w"] = value = nn.Parameter(pt.zeros(1))
        assert made.w is value and type(made.child) is nn.Identity and made.b is None


def test_making_a_module_keeps_the_order_of_its_dict():
    """The slot finds the tables at these places without a lookup."""
    net = nn.Linear(1, 1)
    for made in (net, copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        found = list(vars(made))[1:4]
        assert found == ["_parameters", "_buffers", "_modules"]
        assert all(sys.intern(name) is name for name in vars(made))


def test_a_base_whose_instances_have_no_weak_references():
    net = type("Net", (int, nn.Module), {"__init__": lambda self: nn.Module.__init__(self)})()
    net.x, net.y = nn.Parameter(pt.ones(1)), nn.Identity()
    assert list(net._parameters) == ["x"]
    assert list(net._modules) == ["y"]
    assert "x" not in vars(net)
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'z'"):
        net.z  # noqa: B018
