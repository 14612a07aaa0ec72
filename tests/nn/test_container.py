"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from collections import OrderedDict

import pytest

import ptcore as pt
from ptcore import nn

pytestmark = pytest.mark.core


class Add(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n

    def forward(self, x):
        return x + self.n

    def extra_repr(self):
        return str(self.n)


def ns(modules):
    return [m.n for m in modules]


@pytest.mark.parametrize("cls", [nn.Sequential, nn.ModuleList])
def test_list_behaviour(cls):
    def make(*numbers):
        modules = [Add(n) for n in numbers]
        return cls(*modules) if cls is nn.Sequential else cls(modules)

    seq = make(0, 1, 2, 3)
    assert len(seq) == 4
    assert seq[-1].n == 3
    assert ns(seq[1:3]) == [1, 2]
    assert type(seq[1:3]) is cls
    assert ns(seq[::-2]) == [3, 1]
    seq[1] = Add(9)
    assert ns(seq) == [0, 9, 2, 3]
    del seq[0]
    del seq[-2:]
    assert ns(seq) == [9]
    assert list(seq._modules) == ["0"]
    seq.append(Add(1)).extend([Add(2)]).insert(0, Add(-1))
    assert ns(seq) == [-1, 9, 1, 2]
    assert list(seq._modules) == ["0", "1", "2", "3"]
    assert seq.pop(1).n == 9
    seq += [Add(5)]
    assert ns(seq + make(7)) == [-1, 1, 2, 5, 7]
    seq.insert(-1, Add(6))
    assert ns(seq) == [-1, 1, 2, 6, 5]
    for bad in (5, -6):
        with pytest.raises(IndexError, match="out of range"):
            seq[bad]
    with pytest.raises(TypeError):
        seq.extend(3)
    with pytest.raises(TypeError):
        seq["a"]
    with pytest.raises(TypeError):
        seq.append(3)


def test_sequential():
    seq = nn.Sequential(OrderedDict(first=Add(1), second=Add(10)))
    assert seq(0) == 11
    assert seq.first.n == 1
    assert list(seq[:1]._modules) == ["first"]
    assert ns(seq * 2) == [1, 10, 1, 10] and ns(seq * 1) == [1, 10]
    assert (2 * seq)(0) == 22
    seq *= 2
    assert seq(0) == 22
    with pytest.raises(ValueError, match="Non-positive"):
        seq * 0
    with pytest.raises(TypeError):
        seq * 1.5
    with pytest.raises(ValueError, match="Sequential"):
        seq.__add__([Add(1)])


def test_module_list_repr_folds_runs():
    modules = nn.ModuleList([Add(1), Add(1), Add(2)])
    assert repr(modules) == "ModuleList(\n  (0-1): 2 x Add(1)\n  (2): Add(2)\n)"
    assert repr(nn.ModuleList()) == "ModuleList()"


def test_module_dict():
    modules = nn.ModuleDict({"a": Add(1), "b": Add(2)})
    assert list(modules) == ["a", "b"]
    assert "a" in modules
    assert modules["b"].n == 2
    assert modules.a.n == 1
    modules.update([("c", Add(3)), ("a", Add(4))])
    assert ns(modules.values()) == [4, 2, 3]
    assert modules.pop("b").n == 2
    del modules["c"]
    assert len(modules) == 1
    modules.clear()
    assert list(modules.items()) == []
    with pytest.raises(KeyError, match="already exists"):
        modules["keys"] = Add(1)
    with pytest.raises(KeyError):
        modules["absent"]
    with pytest.raises(TypeError):
        modules.update(3)
    with pytest.raises(ValueError, match="length 3; 2 is required"):
        modules.update([("a", 1, 2)])


def test_parameter_list():
    params = nn.ParameterList([pt.ones(2), nn.Parameter(pt.zeros(1))])
    assert [type(p) for p in params] == [nn.Parameter, nn.Parameter]
    params.append(pt.full((3,), 2.0)).extend([pt.ones(1)])
    assert len(params) == len(list(params.parameters())) == 4
    params[0] = pt.zeros(5)
    assert params[0].shape == (5,)
    assert params[-2].tolist() == [2, 2, 2]
    assert len(params[1:3]) == 2
    params += ["text"]
    assert params[4] == "text"
    assert "(0): Parameter containing: [" in repr(params)
    with pytest.raises(IndexError):
        params[5]
    with pytest.raises(TypeError):
        params.extend(pt.ones(3))
    with pytest.raises(RuntimeError, match="should not be called"):
        params()


def test_parameter_dict():
    params = nn.ParameterDict({"a": pt.ones(1), "b": pt.zeros(2)})
    assert isinstance(params["a"], nn.Parameter)
    assert list(params.state_dict()) == ["a", "b"]
    params.update({"c": pt.ones(3)})
    assert list(reversed(params)) == ["c", "b", "a"]
    assert params.get("zz", 3) == 3
    assert params.setdefault("a", None) is params["a"]
    other = params | nn.ParameterDict({"d": pt.ones(4)})
    assert list(other) == ["a", "b", "c", "d"]
    assert other["a"] is params["a"]
    assert params.popitem()[0] == "c"
    with pytest.raises(KeyError, match="popitem: the ParameterDict is empty"):      # no StopIteration
        nn.ParameterDict().popitem()
    assert params.pop("a").shape == (1,)
    del params["b"]
    assert len(params) == 0
    assert len(other.copy()) == 4
    other.clear()
    assert list(other.parameters()) == []
    with pytest.raises(KeyError):
        params["a"]
    with pytest.raises(TypeError, match="not a string"):
        params[3] = pt.ones(1)
    with pytest.raises(KeyError, match="already exists"):
        params["keys"] = pt.ones(1)


def test_containers_in_containers_save_and_load():
    def make():
        return nn.ModuleDict(
            {"x": nn.ModuleList([nn.Linear(1, 1)]), "p": nn.ParameterList([pt.ones(2)])}
        )

    a, b = make(), make()
    assert list(a.state_dict()) == ["x.0.weight", "x.0.bias", "p.0"]
    with pt.no_grad():
        a["p"][0].mul_(3)
    b.load_state_dict(a.state_dict())
    assert b["p"][0].tolist() == [3, 3]
