"""``freeze`` of scripted modules: one graph that computes the same bits, with constants where nobody sets anything."""
import copy
import sys
from pathlib import Path
from typing import Dict, List, Optional  # noqa: UP035 - script reads these, too

import pytest

import ptcore as pt
from ptcore import jit, nn
from ptcore.jit._script.functions import from_graph

sys.path.insert(0, str(Path(__file__).parent))
import test_script_models as models
from _module_table import MODULES, as_made, given
from _script_outcomes import again
from test_script_files import same


def calls(graph):
    """The names of what a graph and its blocks call or look up, in order."""
    made = []
    for node in graph.nodes:
        if node.op not in ("placeholder", "output"):
            made.append(getattr(node.target, "__name__", node.target))
        for block in node.blocks:
            made += calls(block)
    return made


@jit.script
def loud(n: int) -> int:
    print("called")
    return n + 1


@jit.script
def twice_loud(n: int) -> int:
    return loud(n) + loud(n + 1)


@pytest.mark.parametrize("name", sorted(MODULES))
@pytest.mark.filterwarnings("ignore")
def test_modules_of_the_library(name):
    net = jit.script(as_made(name, False))
    frozen = jit.freeze(net)
    assert list(frozen.parameters()) == [] and list(frozen.state_dict()) == []
    assert not frozen.graph.find_nodes(op="call_module")
    found = []
    loaded = again(frozen)
    for m in (net, frozen, frozen, loaded, loaded, copy.deepcopy(frozen), jit.freeze(frozen)):    # twice: by a plan
        pt.manual_seed(4)
        with pt.no_grad():
            found.append(m(*given(name)))
    for x in found[1:]:
        same(found[0], x)


@pytest.mark.parametrize("name", sorted(MODULES))
@pytest.mark.filterwarnings("ignore")
def test_inlined_graphs_compute_the_same(name):
    net = jit.script(as_made(name, False))
    graph = net.inlined_graph
    assert not graph.find_nodes(op="call_module")
    found = []
    for run in (net, from_graph("f", graph, net)):
        pt.manual_seed(4)
        with pt.no_grad():
            found.append(run(*given(name)))
    same(*found)


class Marked(jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.inside = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    @jit.script_method
    def forward(self, x):
        return self.twice(x) + loud(1)

    @jit.script_method
    def twice(self, x):
        return self.inside(self.inside(x))


def test_inlined_graph():
    net = Marked().eval()
    frozen = jit.freeze(net)
    assert pt.equal(frozen(X), net(X)) and pt.equal(from_graph("f", net.inlined_graph, net)(X), net(X))
    found = calls(net.inlined_graph)
    assert found.count("linear") == 2 and "inside.0.weight" in found and "print" in found
    assert "twice" in calls(net.graph) and "twice" not in found
    assert calls(twice_loud.inlined_graph).count("print") == 2 and "print" not in calls(twice_loud.graph)
    assert from_graph("f", twice_loud.inlined_graph)(3) == twice_loud(3) == 9


@pytest.mark.parametrize("made, inputs", models.MODELS, ids=["GPT", "ResNet", "VAE", "Tree"])
def test_models(made, inputs):
    net = jit.script(made().eval())
    frozen, args = jit.freeze(net), inputs()
    assert not frozen.graph.find_nodes(op="call_module")
    found = []
    loaded = again(frozen)
    for m in (net, frozen, frozen, loaded, loaded):
        pt.manual_seed(4)
        with pt.no_grad():
            found.append(m(*args))
    for x in found[1:]:
        same(found[0], x)


def test_a_method_that_is_preserved():
    net = jit.script(models.GPT().eval())
    frozen, idx = jit.freeze(net, ["generate"]), pt.tensor([[1, 2, 3]])
    assert pt.equal(frozen.generate(idx, 4), net.generate(idx, 4))
    with pytest.raises(AttributeError):
        jit.freeze(net).generate(idx, 4)


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.n, self.k, self.weights = 0, 3, [1.0, 2.0]
        self.lin = nn.Linear(2, 2)
        self.register_buffer("seen", pt.zeros(()))

    def forward(self, x):
        self.n += 1
        self.seen = self.seen + 1
        if self.k > 2 and not self.training:
            x = self.lin(x) * self.weights[1]
        else:
            x = x.exp()
        for i in range(self.k):
            if self.k == 3:
                x = x + i
            else:
                x = x.sin()
        self.weights.append(float(self.n))
        return x + self.seen + self.n + len(self.weights)


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.rnn = Inner(), nn.LSTM(2, 2)
        self.b = self.a                                 # one module by two names
        self.sizes: Dict[str, int] = {"q": 4}           # noqa: UP006
        self.scale: Optional[int] = None                # noqa: UP045
        self.p = nn.Parameter(pt.ones(2))
        self.tied = self.p
        self.register_buffer("count", pt.zeros(2))

    def side(self, x):
        return self.rnn(x)[0] * self.sizes["q"]

    @jit.export
    def other(self, x):
        return self.a(x) * 2

    def forward(self, x):
        first, second = jit.fork(self.side, x), jit.fork(self.a, x)
        scale = self.scale
        if scale is not None:
            x = x * scale
        self.count += 1
        with pt.no_grad():
            y = self.a(x) + self.b(x) * self.p + self.tied
        return y + jit.wait(first) + jit.wait(second) + self.count, self.a.n


def outer():
    pt.manual_seed(0)
    return jit.script(Outer().eval())


X = pt.randn(3, 2)


def test_what_is_set_stays_an_attribute():
    """Numbers, lists and buffers that methods change go on changing, in copies of their own."""
    net, again_net = outer(), outer()
    frozen = jit.freeze(net)
    loaded = again(frozen)
    assert list(frozen.state_dict()) == []
    for _ in range(3):
        want = again_net(X)
        for m in (frozen, loaded):
            got = m(X)
            assert pt.equal(got[0], want[0]) and got[1] == want[1]
    assert net.a.n == 0 and not net.a.seen and not net.count.any() and net.a.weights == [1.0, 2.0]
    other = copy.deepcopy(frozen)
    assert pt.equal(other(X)[0], frozen(X)[0]) and other.count is not frozen.count


def test_branches_on_constants_are_decided():
    found = calls(jit.freeze(outer()).graph)
    assert "cond" not in found and "exp" not in found and "sin" not in found
    assert found.count("linear") == 2 and "is_not_none" not in found        # the third is in what fork calls
    assert {"cond", "exp"} <= {*calls(outer().a.graph)}


def test_attributes_and_modules_that_are_preserved():
    net, want = outer(), outer()
    frozen = jit.freeze(net, ["other", "a", "p", "scale"])
    assert {*frozen.state_dict()} == {"p", "a.seen", "a.lin.weight", "a.lin.bias"}
    assert frozen.p is net.p and frozen.a is net.a
    for _ in range(2):
        assert pt.equal(frozen(X)[0], want(X)[0]) and pt.equal(frozen.other(X), want.other(X))
    frozen.scale = want.scale = 5
    with pt.no_grad():
        frozen.p.fill_(3.0)
        want.p.fill_(3.0)
    assert pt.equal(frozen(X)[0], want(X)[0])
    loaded = again(frozen)
    assert pt.equal(loaded(X)[0], want(X)[0]) and {*loaded.state_dict()} == {*frozen.state_dict()}
    with pytest.raises(RuntimeError, match="no attribute 'nothing'"):
        jit.freeze(net, ["nothing"])
    for made in (jit.optimize_for_inference(frozen, ["other"]), jit.freeze(frozen, ["other"])):
        assert list(made.state_dict()) == [] and pt.equal(made.other(X), copy.deepcopy(frozen).other(X))


def test_tensors_are_copies():
    model = nn.Linear(2, 2).eval()
    frozen, want = jit.freeze(jit.script(model)), model(X)
    with pt.no_grad():
        model.weight.zero_()
    assert pt.equal(frozen(X), want) and not frozen(X).requires_grad
    x = X.clone().requires_grad_()
    frozen(x).sum().backward()
    assert x.grad is not None
    jit.run_frozen_optimizations(frozen)
    assert pt.equal(frozen(X), want)


def test_the_module_stays_as_it_is():
    net = jit.script(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).eval())
    before = [{**vars(m)} for m in net.modules()]
    jit.freeze(net)
    assert [{**vars(m)} for m in net.modules()] == before


class Views(nn.Module):
    """An attribute that shows the memory of a buffer, to which is written."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", pt.ones(3))
        self.first = self.total[:1]

    def forward(self, x):
        self.total.add_(1)
        return x + self.first


def test_tensors_over_one_memory_stay_so():
    net = jit.script(Views().eval())
    frozen = jit.freeze(net)
    assert [frozen(pt.zeros(1)).item() for _ in range(3)] == [2., 3., 4.]
    assert net.total.tolist() == [1., 1., 1.]


class Partly(nn.Module):
    """A module whose dropout is meant to stay on."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x)


def test_each_module_has_its_own_mode():
    net = Partly().eval()
    net.drop.train()
    frozen = jit.freeze(jit.script(net))
    pt.manual_seed(1)
    got = frozen(pt.ones(50))
    pt.manual_seed(1)
    assert pt.equal(got, net(pt.ones(50))) and bool((got == 0).any())


class Prints(nn.Module):
    def __init__(self):
        super().__init__()
        self.k, self.zero = 3, 0

    def forward(self, x):
        pt.manual_seed(5)
        return x + loud(self.k) + (1 // self.zero if bool(x.sum() > 0) else 0)


def test_nothing_runs_ahead_that_does_anything(capsys):
    pt.manual_seed(9)
    want = pt.rand(1)
    pt.manual_seed(9)
    frozen = jit.freeze(jit.script(Prints().eval()))
    assert pt.equal(pt.rand(1), want) and capsys.readouterr().out == ""
    assert pt.equal(frozen(pt.zeros(1)), pt.full((1,), 4.0)) and capsys.readouterr().out == "called\n"
    with pytest.raises(ZeroDivisionError):
        frozen(pt.ones(1))


class Calls(nn.Module):
    @jit.ignore
    def python(self, x):
        return x

    def forward(self, x):
        return self.python(x) + 1


def test_what_is_refused():
    with pytest.raises(RuntimeError, match="python of the module is run by Python as it is"):
        jit.freeze(jit.script(Calls().eval()))
    net = nn.Sequential(nn.Linear(2, 2)).eval()
    net[0].register_forward_hook(lambda m, args, out: out + 1)
    with pytest.raises(RuntimeError, match="the module '0' has hooks"):
        jit.freeze(jit.script(net))


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_parity():
    """The same module by torch: what changes state and what stays the same."""
    torch = pytest.importorskip("torch")

    def counts(base):
        class Counts(base):
            def __init__(self):
                super().__init__()
                self.n, self.k = 0, 2
                self.items: List[int] = [1]                 # noqa: UP006

            def forward(self, x):
                self.n += self.k
                self.items.append(self.n)
                if self.k > 1:
                    return x + self.n + len(self.items)
                return x
        return Counts().eval()
    ours = jit.freeze(jit.script(counts(nn.Module)))
    theirs = torch.jit.freeze(torch.jit.script(counts(torch.nn.Module)))
    for _ in range(3):
        assert ours(pt.zeros(2)).tolist() == theirs(torch.zeros(2)).tolist()
