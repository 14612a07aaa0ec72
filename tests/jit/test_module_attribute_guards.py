"""Compiled functions that read parameters, buffers and children: what is guarded, and who is asked."""
import pytest

import ptcore as pt
from ptcore import nn

X = pt.ones(1, 2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.child = nn.Linear(2, 2)
        self.scale = nn.Parameter(pt.full((2,), 2.0))
        self.register_buffer("shift", pt.ones(2))
        self.register_buffer("nothing", None)

    def forward(self, x):
        x = self.child(x) * self.scale + self.shift
        return x if self.nothing is None else x + self.nothing


def hide(net):
    vars(net)["scale"] = pt.full((2,), 5.0)


def replace(net):
    net.scale = nn.Parameter(pt.full((2,), 7.0))


def replace_in_the_table(net):
    net._parameters["scale"] = nn.Parameter(pt.full((2,), 7.0))


def other_table(net):
    net._parameters = {**net._parameters, "scale": nn.Parameter(pt.full((2,), 7.0))}


def moved(net):
    del net.scale
    net.register_buffer("scale", pt.full((2,), 7.0))


def earlier_table(net):
    net._parameters["shift"] = nn.Parameter(pt.full((2,), 9.0))


def child(net):
    net.child = nn.Linear(2, 2)


def given(net):
    net.nothing = pt.full((2,), 3.0)


def hides_by_class(net):
    type(net).scale = property(lambda self: pt.full((2,), 11.0))


@pytest.mark.parametrize("change", [hide, replace, replace_in_the_table, other_table, moved, earlier_table, child,
                                    given, hides_by_class], ids=lambda f: f.__name__)
def test_a_changed_place_is_noticed(change):
    class Own(Net):
        pass
    net = Own()
    compiled = pt.compile(net, fullgraph=True)
    for _ in range(8):                  # the later calls run the compiled check
        assert pt.equal(compiled(X), net(X))
    change(net)
    for _ in range(8):
        assert pt.equal(compiled(X), net(X))


def by_super(self, name):
    value = super(Asks, self).__getattr__(name)
    return value * 2 if name == "scale" else value


def by_module(self, name):
    value = nn.Module.__getattr__(self, name)
    return value * 3 if name == "scale" else value


def own_answer(self, name):
    return 4.0 if name == "scale" else super(Asks, self).__getattr__(name)


class Asks(Net):
    """Its ``__getattr__`` is set by the test."""


@pytest.mark.parametrize("answer", [by_super, by_module, own_answer], ids=lambda f: f.__name__)
def test_own_getattr_is_captured(answer):
    net = Asks()
    Asks.__getattr__ = answer
    try:
        compiled = pt.compile(net, fullgraph=True)
        for _ in range(8):
            assert pt.equal(compiled(X), net(X))
        x = pt.ones(1, 2, requires_grad=True)
        compiled(x).sum().backward()
        assert net._parameters["scale"].grad is not None or answer is own_answer
    finally:
        del Asks.__getattr__


def test_a_missing_name_is_guarded():
    net = Net()

    @pt.compile(fullgraph=True)
    def run(x):
        return x * 2 if hasattr(net, "late") else x
    assert run(X).tolist() == [[1.0, 1.0]]
    net.late = nn.Identity()
    assert run(X).tolist() == [[2.0, 2.0]]
    del net.late
    net.register_buffer("late", None)
    assert run(X).tolist() == [[2.0, 2.0]]
