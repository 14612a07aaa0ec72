"""``fx``: graphs that are written, checked, copied, kept in files, run and exchanged in parts; what cannot be
traced."""
import copy
import math
import operator
import pickle
import threading

import numpy as np
import pytest

import ptcore as pt
from ptcore import fx, nn
from ptcore.fx import (
    PH,
    Graph,
    GraphModule,
    Interpreter,
    Node,
    TraceError,
    Tracer,
    Transformer,
    replace_pattern,
    symbolic_trace,
    wrap,
)
from ptcore.fx.experimental.proxy_tensor import make_fx
from ptcore.fx.immutable_collections import immutable_dict, immutable_list
from ptcore.fx.node import _effects
from ptcore.fx.passes.shape_prop import ShapeProp
from ptcore.fx.passes.split_module import split_module

pytestmark = pytest.mark.core

X = pt.arange(6.).reshape(2, 3)


def helper(x, n):
    return x * n if n > 1 else x


wrap("helper")
wrap(math.sqrt)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.scale = nn.Linear(3, 3), nn.Parameter(pt.ones(3))
        self.register_buffer("shift", pt.ones(3))

    def forward(self, x):
        return pt.relu(self.linear(x) * self.scale) + self.shift


class Axis(int):
    def __repr__(self):
        return f"Axis({int(self)})"


class Text(str):
    def __repr__(self):
        return f"Text({self!s})"


def names(graph):
    return [node.name for node in graph.nodes]


def test_writing_a_graph():
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y", default_value=2.0)
    total = graph.call_function(pt.add, (x, y))
    graph.output((graph.call_method("sum", (total, 0)), [total, {"k": y}]))
    graph.lint()
    module = GraphModule({}, graph)
    got = module(X)
    assert got[0].tolist() == (X + 2).sum(0).tolist() and got[1][1]["k"] == 2.0
    assert isinstance(got[1], list) and isinstance(got[1][1], dict)
    assert module(X, 1.0)[0].tolist() == module(X, y=1.0)[0].tolist() == (X + 1).sum(0).tolist()
    with graph.inserting_before(total):
        twice = graph.call_function(operator.mul, (x, 2))
        thrice = graph.call_function(operator.mul, (twice, 1.5))
    total.replace_input_with(x, thrice)
    assert names(graph) == ["x", "y", "mul", "mul_1", "add", "sum_1", "output"]
    with graph.inserting_after(total):
        last = graph.call_function(pt.neg, (total,))
    total.replace_all_uses_with(last)
    last.args = (total,)
    assert [u.name for u in total.users] == ["neg"] and [u.name for u in last.users] == ["sum_1", "output"]
    module.recompile()
    assert module(X)[0].tolist() == (-(X * 3 + 2)).sum(0).tolist()
    twice.append(y)                     # moved
    assert names(graph)[:3] == ["x", "mul", "y"]
    assert [n.name for n in reversed(graph.nodes)][:2] == ["output", "sum_1"] and len(graph.nodes) == 8
    assert graph.output_node().op == "output" and graph.find_nodes(op="call_function", target=operator.mul) == [twice,
                                                                                                                thrice]


def test_arguments_of_nodes():
    graph = Graph()
    x = graph.placeholder("x")
    node = graph.call_function(pt.cat, ([x, x],), {"dim": 0})
    assert type(node.args[0]) is immutable_list and type(node.kwargs) is immutable_dict
    assert node.all_input_nodes == [x] and list(x.users) == [node]
    for write in (lambda: node.args[0].append(x), lambda: node.args[0].__setitem__(0, x), lambda:
    node.kwargs.update(dim=1),
                  lambda: node.kwargs.__setitem__("dim", 1)):
        with pytest.raises(TypeError, match="cannot be written to"):
            write()
    node.update_kwarg("dim", 1)
    node.update_arg(0, [x])
    node.insert_arg(1, 5)
    assert node.kwargs == {"dim": 1} and node.args == ([x], 5)
    assert node.args[0] == [x] and pickle.loads(pickle.dumps(immutable_list([1, {"a": 2}]))) == [1, {"a": 2}]


def test_constants_are_numbered():
    constants = [pt.full((2, 3), float(k)) for k in range(3)]
    traced = symbolic_trace(lambda x: x + constants[0] * constants[1] - constants[2] + constants[1])
    assert [node.target for node in traced.graph.find_nodes(op="get_attr")] == [
        "_tensor_constant0", "_tensor_constant1", "_tensor_constant2"]
    assert pt.equal(traced(X), X + constants[0] * constants[1] - constants[2] + constants[1])


def test_lint_and_dead_code():
    graph = symbolic_trace(lambda x: (x.sin(), x.cos(), x.add_(1))[1]).graph
    assert names(graph) == ["x", "sin", "cos", "add_", "output"]
    assert graph.eliminate_dead_code() and names(graph) == ["x", "cos", "add_", "output"]      # what writes stays
    assert not graph.eliminate_dead_code()
    graph.lint()
    x, cos, *_ = graph.nodes
    with pytest.raises(RuntimeError, match="erase_node: x is still used by"):
        graph.erase_node(x)
    with pytest.raises(RuntimeError, match="belongs to another graph"):
        Graph().erase_node(list(graph.nodes)[2])
    x.prepend(cos)
    with pytest.raises(RuntimeError, match="stands before its argument"):
        graph.lint()
    other = Graph()
    with pytest.raises(RuntimeError, match="belongs to another graph"):
        other.call_function(pt.sin, (x,))
    mixed = Graph()
    mixed.call_function(pt.sin, (mixed.placeholder("x"),))._input_nodes = {x: None}      # as no public way leaves it
    with pytest.raises(RuntimeError, match="lint: argument x of sin belongs to another graph"):
        mixed.lint()
    lacking = Graph()
    lacking.call_module("nothing")
    with pytest.raises(RuntimeError, match="root has no nothing, which a node uses"):
        GraphModule({}, lacking)
    with pytest.raises(AttributeError):
        GraphModule(nn.Module(), lacking)


def test_modules():
    net = Net()
    traced = symbolic_trace(net)
    assert traced(X).equal(net(X)) and dict(traced.named_parameters()).keys() == dict(net.named_parameters()).keys()
    assert traced.linear is net.linear and traced.shift is net.shift
    assert [n.target for n in traced.graph.nodes if n.op == "get_attr"] == ["scale", "shift"]
    traced(X).sum().backward()
    assert net.scale.grad is not None
    assert traced.add_submodule("a.b", nn.ReLU()) and isinstance(traced.a.b, nn.ReLU)
    traced.delete_all_unused_submodules()
    assert not hasattr(traced, "a") and hasattr(traced, "linear")
    assert not traced.delete_submodule("a.b")
    traced.eval()
    assert not traced.training and "GraphModule" not in repr(traced) and "Net" in repr(traced)


def test_copies_and_files():
    net = symbolic_trace(Net())
    for other in (copy.deepcopy(net), copy.copy(net), pickle.loads(pickle.dumps(net))):
        assert type(other) is GraphModule and other(X).equal(net(X)) and other.code == net.code
        assert other.graph is not net.graph
        other.graph.lint()
        next(n for n in other.graph.nodes if n.target is pt.relu).target = pt.sigmoid
        other.recompile()
        assert not other(X).equal(net(X))
    assert copy.deepcopy(net).linear.weight is not net.linear.weight
    for other in (copy.deepcopy(net), copy.copy(net), pickle.loads(pickle.dumps(net))):
        other.scale = nn.Parameter(pt.full((3,), 7.0))              # is what is read and what is run
        assert other.scale[0] == 7 and other._parameters["scale"] is other.scale and not other(X).equal(net(X))
        other._buffers["shift"] = pt.full((3,), 5.0)
        assert other.shift[0] == 5
        del other.scale
        assert not hasattr(other, "scale")
    graph = pickle.loads(pickle.dumps(net.graph))
    names = [graph._namespace.create_name("other", node) for node in graph.nodes]       # a node keeps its own
    assert names == [node.name for node in graph.nodes]
    data = pickle.dumps(net)
    assert b"def forward" not in data and b"exec" not in data       # nodes, no source
    program = symbolic_trace(lambda x, s=2: {"a": x[:, 1:] * s, "b": (x.shape[0], None)})
    assert pickle.loads(pickle.dumps(program))(X)["a"].tolist() == (X[:, 1:] * 2).tolist()


def test_code_is_a_program():
    for f in (lambda x: (x + 1) ** 2 // 3, lambda x: pt.cat([x, -x], dim=1)[0, 1:],
              lambda x: x.view(3, 2).sum(dim=(0, 1)), lambda x: pt.full_like(x, float("inf")),
              lambda x: x.to(pt.float64), lambda x: {"a": [x, (x,)]}):
        module = symbolic_trace(f)
        space = dict(module.graph.python_code("self").globals)
        exec(module.code, space)
        got, want = space["forward"](module, X.clone()), f(X)
        assert str(got) == str(want)


def test_nodes_know_the_users_line(tmp_path):
    traced = symbolic_trace(Net())
    node = next(n for n in traced.graph.nodes if n.target is pt.relu)
    assert __file__ in node.stack_trace and "pt.relu(self.linear(x)" in node.stack_trace
    with pytest.raises(RuntimeError) as caught:
        traced(pt.ones(2, 5))
    assert any("While running %linear" in note and __file__ in note for note in caught.value.__notes__)


@pytest.mark.parametrize(("f", "words"), [
    (lambda x: x if x.sum() > 0 else -x, "neither true nor false"),
    (lambda x: [row for row in x], "cannot be iterated"),
    (lambda x: pt.ones(2) if x else x, "neither true nor false")])
def test_what_cannot_be_traced(f, words):
    with pytest.raises(TraceError, match=words) as caught:
        symbolic_trace(f)
    assert __file__ in str(caught.value)            # the user's line
    with pytest.raises(RuntimeError, match="len\\(\\) of a traced value"):
        symbolic_trace(lambda x: len(x))
    assert nn.Module.__call__.__qualname__ == "Module.__call__"      # all as before


def test_wrapped_functions_and_unpacking():
    def f(x):
        a, b = x.unbind(0)
        return helper(a, b.sum()) + math.sqrt(4.0) + helper(pt.ones(3), 5)
    graph = symbolic_trace(f).graph
    assert [n.target for n in graph.nodes if n.op == "call_function"][2:3] == [helper]
    assert symbolic_trace(f)(X).tolist() == f(X).tolist()
    with pytest.raises(NotImplementedError, match="top level"):
        wrap("helper")
    with pytest.raises(RuntimeError, match="wrap: fn_or_name must be"):
        wrap(3)


def test_concrete_arguments():
    def f(x, flag, parts):
        return x * 2 + parts["a"] if flag else x
    traced = symbolic_trace(f, {"flag": True, "parts": {"a": PH, "b": 3}})
    assert traced(X, True, {"a": X, "b": 3}).tolist() == (X * 3).tolist()
    with pytest.raises(AssertionError, match="flag was True when the program was traced, got False"):
        traced(X, False, {"a": X, "b": 3})
    with pytest.raises(RuntimeError, match="expected"):
        traced(X, True, {"a": X})

    def several(x, *xs, **more):
        return x + xs[0] + xs[1] * more["k"]
    assert symbolic_trace(several)(X, X, X, k=3).tolist() == (X * 5).tolist()

    gelu = symbolic_trace(nn.functional.gelu)
    assert pt.equal(gelu(X, approximate="tanh"), nn.functional.gelu(X, approximate="tanh"))

    def unclear(*xs, k):
        return xs[0]
    with pytest.raises(NotImplementedError, match="both \\*args and a keyword-only argument"):
        symbolic_trace(unclear)

    def keyword(x, *, k=2):
        return x * k
    assert symbolic_trace(keyword)(X).tolist() == (X * 2).tolist()
    assert symbolic_trace(keyword)(X, k=3).tolist() == (X * 3).tolist()


def test_graphs_are_traced_again():
    def gated(x, y: float = 2.0, *, z):
        return {"a": [x + y * z, pt.relu(x)]}["a"]
    for program, given in ((Net(), ()), (gated, (("z", X),)), (lambda x, y=3.0: x.exp() * y, ())):
        first = symbolic_trace(program)
        again = symbolic_trace(first)
        assert str(again.graph) == str(first.graph) and list(again.state_dict()) == list(first.state_dict())
        for args, kwargs in (((X,), {}), ((), {"x": X})):
            got, want = again(*args, **kwargs, **dict(given)), program(*args, **kwargs, **dict(given))
            assert all(pt.equal(a, b) for a, b in zip(got, want, strict=True))
    part = symbolic_trace(symbolic_trace(lambda x, y: x * y), {"y": 2})
    assert pt.equal(part(X, 2), X * 2)
    with pytest.raises(NotImplementedError, match=r"args of a graph\(self, /, x, \*rest\) are not"):
        symbolic_trace(symbolic_trace(lambda x, *rest: x + rest[0]))


def test_threads_trace_one_after_another():
    """What one puts back is what was there before both."""
    before, made = (nn.Module.__call__, nn.Module.__getattr__), []
    inside, go_on = threading.Event(), threading.Event()

    def slow(x):
        inside.set()
        go_on.wait(0.2)
        return x + 1

    def quick(x):
        go_on.set()
        return x * 2
    threads = [threading.Thread(target=lambda f=f: made.append(symbolic_trace(f))) for f in (slow, quick)]
    threads[0].start()
    inside.wait()
    threads[1].start()
    for thread in threads:
        thread.join()
    assert (nn.Module.__call__, nn.Module.__getattr__) == before
    assert [pt.equal(traced(X), want) for traced, want in zip(made, (X + 1, X * 2))] == [True, True]


def test_own_tracers():
    class Deep(Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return False
    net = nn.Sequential(nn.Linear(3, 2), nn.Tanh())
    tracer = Deep()
    graph = tracer.trace(net)
    assert [n.op for n in graph.nodes] == ["placeholder", "get_attr", "get_attr", "call_function", "call_function",
                                           "output"]
    assert GraphModule(net, graph)(X).equal(net(X))


def test_interpreters_and_transformers():
    net = symbolic_trace(Net())

    class Times(Interpreter):
        def run_node(self, n):
            self.seen = [*getattr(self, "seen", []), n.name]
            return super().run_node(n)
    times = Times(net)
    assert times.run(X).equal(net(X)) and times.seen == names(net.graph)
    assert Interpreter(net).boxed_run([X]).equal(net(X))
    relu = next(n for n in net.graph.nodes if n.target is pt.relu)
    assert Interpreter(net).run(X, initial_env={relu: pt.zeros(2, 3)}).tolist() == [[1, 1, 1]] * 2
    with pytest.raises(RuntimeError, match="no argument was given for x"):
        Interpreter(net).run()

    class Leaky(Transformer):
        def call_function(self, target, args, kwargs):
            if target is pt.relu:
                return pt.nn.functional.leaky_relu(args[0], 0.5)
            return super().call_function(target, args, kwargs)
    changed = Leaky(net).transform()
    y = net.linear(X) * net.scale
    assert changed(X).tolist() == (pt.nn.functional.leaky_relu(y, 0.5) + 1).tolist()


def test_shapes():
    net = symbolic_trace(Net())
    ShapeProp(net).propagate(X)
    for node in net.graph.nodes:
        if node.op != "get_attr":
            assert tuple(node.meta["tensor_meta"].shape) == (2, 3) and node.meta["tensor_meta"].stride == (3, 1)


def test_patterns():
    def f(x, w):
        a = pt.relu(x @ w) + 1
        return pt.relu(a @ w) + pt.relu(x)
    traced = symbolic_trace(f)
    w = pt.ones(3, 3)
    matches = replace_pattern(traced, lambda a, b: pt.relu(a @ b), lambda a, b: pt.sigmoid(pt.mm(a, b)))
    assert [m.nodes_map[m.anchor].name for m in matches] == ["relu", "relu_1"] and len(matches[0].nodes_map) == 4
    traced.graph.lint()

    def want(x, w):
        a = pt.sigmoid(x @ w) + 1
        return pt.sigmoid(a @ w) + pt.relu(x)
    assert pt.allclose(traced(X, w), want(X, w))
    # What is used outside of the part stays, as do numbers that differ.
    for g, n in ((lambda x: (x + 1, (x + 1).sin()), 1), (lambda x: ((y := x + 1).sin(), y), 0),
                 (lambda x: (x + 1).sin(), 1), (lambda x: (x + 2).sin(), 0)):
        assert len(replace_pattern(symbolic_trace(g), lambda a: (a + 1).sin(), lambda a: a.cos())) == n, g
    # So do keywords that the pattern has not, and such that it has alone.
    for g, n in ((lambda x: pt.sum(x, dim=0), 1), (lambda x: pt.sum(x, dim=0, keepdim=True), 0),
                 (lambda x: pt.sum(x), 0), (lambda x: pt.sum(x, 0), 0)):
        assert len(replace_pattern(symbolic_trace(g), lambda a: pt.sum(a, dim=0), lambda a: a.cos())) == n, n
    with pytest.raises(RuntimeError, match="must take 1 arguments, got 2"):
        replace_pattern(symbolic_trace(lambda x: x.sin()), lambda a: a.sin(), lambda a, b: a)


def test_patterns_name_different_nodes():
    traced = symbolic_trace(lambda x, y: x * x + x * y)
    assert len(replace_pattern(traced, lambda a, b: a * b, lambda a, b: a - b)) == 1
    assert pt.equal(traced(X, X + 1), X * X - 1)
    assert len(replace_pattern(traced, lambda a: a * a, lambda a: a.exp())) == 1


def test_modules_of_replacements_are_taken_over():
    class Before(nn.Module):
        def __init__(self, last=nn.ReLU):
            super().__init__()
            self.linear, self.last = nn.Linear(3, 3), last()

        def forward(self, x):
            return self.last(self.linear(x))

    class After(Before):
        def __init__(self):
            super().__init__()
            self.other, self.shift = nn.Sequential(nn.Tanh()), nn.Parameter(pt.ones(3))

        def forward(self, x):
            return self.other(self.linear(x)) + self.shift
    traced, after = symbolic_trace(Before()), After()
    linear = traced.linear
    assert len(replace_pattern(traced, Before(), after)) == 1
    traced.graph.lint()
    assert traced.linear is linear and traced.shift is not after.shift and not hasattr(traced, "last")
    assert pt.equal(traced(X), linear(X).tanh() + 1)


def test_tensors_in_patterns():
    """Those of a pattern stand for any; those of a replacement are its own, whatever they are called."""
    one, two, scale = pt.full((3,), 1.), pt.full((3,), 2.), pt.arange(3.)
    for program, want in ((lambda x: x.sin(), X * scale), (lambda x: x.sin() + one, X * scale + one),
                          (lambda x: (x + one).sin().sin(), (X + one) * scale * scale)):
        traced = symbolic_trace(program)
        replace_pattern(traced, lambda x: x.sin(), lambda x: x * scale)
        traced.graph.lint()
        assert pt.equal(traced(X), want) and pt.equal(pickle.loads(pickle.dumps(traced))(X), want)
    traced = symbolic_trace(lambda x: x + one)
    assert not replace_pattern(traced, lambda x: x.cos(), lambda x: x * scale) and len(traced.state_dict()) == 1
    assert len(replace_pattern(traced, lambda x: x + two, lambda x: x * scale)) == 1
    assert pt.equal(traced(X), X * scale)
    named, other = nn.Module(), nn.Module()
    named.weight, other.scale = nn.Parameter(pt.ones(3)), nn.Parameter(pt.zeros(3))
    graphs = []
    for module, name in ((named, "weight"), (other, "scale")):
        graph = Graph()
        graph.output(graph.call_function(pt.mul, (graph.placeholder("x"), graph.get_attr(name))))
        graphs.append(GraphModule(module, graph))
    assert len(replace_pattern(graphs[0], graphs[1], lambda x: x.exp())) == 1
    assert pt.equal(graphs[0](X), X.exp())
    assert not replace_pattern(symbolic_trace(lambda x: pt.mul(x, one)), graphs[1], lambda x: x.exp())


def test_printing(capsys):
    net = symbolic_trace(Net())
    line = str(net.graph).splitlines()[2]
    assert line == "    %linear : [num_users=1] = call_module[target=linear](args = (%x,), kwargs = {})"
    net.graph.print_tabular()
    assert capsys.readouterr().out.splitlines()[0].split() == ["opcode", "name", "target", "args", "kwargs"]
    assert "class Net(ptcore.nn.Module)" in net.print_readable(print_output=False)
    assert isinstance(next(iter(net.graph.nodes)), Node)


def test_parts_that_need_each_other():
    traced = symbolic_trace(lambda x: ((y := x + 1) * 2).sin() + y.cos())
    with pytest.raises(RuntimeError, match="need values of each other"):
        split_module(traced, None, lambda n: int(n.name == "sin"))
    with pytest.raises(RuntimeError, match="keep_original_order"):
        split_module(symbolic_trace(lambda x: (x.sin(), (y := x.cos()) + 1, y * x.sin())), None,
                     lambda n: {"sin": 0, "cos": 1, "add": 1, "sin_1": 2, "mul": 0}[n.name], keep_original_order=True)


def test_writes_into_constants():
    held = pt.zeros(2, 3)

    def f(x):
        held[0] = x[1]
        return held + x
    traced = symbolic_trace(f)
    assert [n.target for n in traced.graph.nodes][3:6:2] == [operator.setitem, pt.Tensor.add]
    traced.graph.eliminate_dead_code()          # what writes is kept
    got = traced(X)
    assert got.tolist() == f(X).tolist() and held[0].tolist() == X[1].tolist()


def test_sizes_of_parameters():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(pt.ones(3))

        def forward(self, x):
            w = self.w
            if w.shape[0] == 3 and w.ndim == w.dim() == 1:      # a branch on what is a number then
                return x * w + w.size(0) * w.numel()
            return x
    graph = Tracer(param_shapes_constant=True).trace(own := Own())
    assert [n.name for n in graph.nodes] == ["x", "w", "mul", "add", "output"]
    assert GraphModule(own, graph)(X).tolist() == (X + 9).tolist()
    with pytest.raises(TraceError):
        Tracer().trace(own)
    assert "__getattribute__" not in vars(nn.Module)                # all as before


def test_what_is_computed_of_parameters_is_no_constant():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(pt.ones(3))

        def forward(self, x):
            return self.w.exp() * x
    own = Own()
    traced = symbolic_trace(own)
    assert [n.name for n in traced.graph.nodes] == ["x", "w", "exp", "mul", "output"]
    with pt.no_grad():
        own.w.fill_(2)
    assert traced(X).tolist() == own(X).tolist()
    traced(X).sum().backward()
    assert own.w.grad is not None


def mine_(x):
    return x + 1


wrap("mine_")


def dies(x):
    x.clamp(0, 1), pt.relu(x), mine_(x), pt.nn.functional.relu(x, inplace=False), x.detach(), operator.add(x, 1)
    return x


WRITES = [
    lambda x: (x.add_(1), x)[1], lambda x: (x.copy_(x), x)[1], lambda x: (x.unsqueeze_(0), x)[1],
    lambda x: (x.fill_(1), x)[1], lambda x: (x.normal_(), x)[1], lambda x: (x.backward(), x)[1],
    lambda x: (x.requires_grad_(), x)[1], lambda x: (x.register_hook(None), x)[1],
    lambda x: (x.index_put_((x,), x), x)[1],
    lambda x: (pt.nn.functional.relu(x, inplace=True), x)[1], lambda x: (pt.nn.functional.relu_(x), x)[1],
    lambda x: (pt.nn.functional.elu(x, 1.0, True), x)[1], lambda x: (pt.add(x, 1, out=x), x)[1],
    lambda x: (pt.nn.functional.hardtanh_(x), x)[1], lambda x: (pt.Tensor.mul_(x, 2), x)[1],
    lambda x: (x.__setitem__(0, 1), x)[1], lambda x: (x.fill_diagonal_(1), x)[1],
]
DRAWS = [lambda x: (pt.nn.functional.dropout(x), x)[1], lambda x: (pt.nn.functional.rrelu(x), x)[1],
         lambda x: (pt.nn.functional.alpha_dropout(x), x)[1], lambda x: (pt.multinomial(x, 1), x)[1],
         lambda x: (pt.poisson(x), x)[1]]


@pytest.mark.parametrize("f", [*WRITES, *DRAWS])
def test_what_writes_or_draws_is_kept(f):
    traced = symbolic_trace(f)
    node = list(traced.graph.nodes)[-2]
    assert node.op.startswith("call") and node.is_impure() and not node.users
    n = len(traced.graph.nodes)
    assert traced.graph.eliminate_dead_code() is False
    assert len(traced.graph.nodes) == n


def test_what_is_kept_is_said_by_rows_not_by_names():
    traced = symbolic_trace(dies)
    assert len(traced.graph.nodes) == 8 and traced.graph.eliminate_dead_code()
    assert names(traced.graph) == ["x", "output"]
    graph = Graph()
    x = graph.placeholder("x")
    strange = graph.call_method("custom_", (x,))                # of a class that nobody knows
    drawn = graph.call_function(pt.nn.functional.dropout, (x,))
    assert not strange.is_impure() and drawn.is_impure() and not drawn.is_impure(impure_random=False)
    own = graph.call_function(mine_, (x,))
    assert not own.is_impure()
    fx.has_side_effect(mine_)
    try:
        assert own.is_impure()
    finally:
        _effects.discard(mine_)


def test_values_are_handed_on_as_they_are():
    traced = symbolic_trace(lambda x: x.max(1).values)          # a tuple with names
    assert pt.equal(traced(X), X.max(1).values)
    assert pt.equal(Interpreter(traced).run(X), X.max(1).values)
    own = [X]
    traced = symbolic_trace(lambda parts, x: [parts, [x]])
    for run in (traced, Interpreter(traced).run):
        given, made = run(own, X)
        assert given is own and type(made) is list
        made.append(1)                                          # what is made anew each time
        assert len(run(own, X)[1]) == 1


def test_dead_code_of_graphs_inside():
    inner = symbolic_trace(lambda x: (x.sin(), x.cos())[1])
    graph = Graph()
    x, part = graph.placeholder("x"), graph.get_attr("part")
    graph.output(graph.call_function(mine_, (x,)), type_expr=None)
    module = GraphModule({"part": inner}, graph)
    assert not part.users and graph.eliminate_dead_code() and names(graph) == ["x", "mine_", "output"]
    graph = Graph()
    x, part = graph.placeholder("x"), graph.get_attr("part")
    graph.output(graph.call_method("__call__", (part, x)))
    module = GraphModule({"part": inner}, graph)
    assert graph.eliminate_dead_code() and names(inner.graph) == ["x", "cos", "output"]
    assert pt.equal(module(X), X.cos())


def test_normalized_arguments():
    class Program(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.own, self.part = nn.Conv1d(3, 3, 1), Net(), nn.Sequential(nn.ReLU())

        def forward(self, x):
            return pt.nn.functional.pad(self.own(self.part[0](self.conv(x))), (1, 1), value=2.0).sum(1)

    class Whole(Tracer):
        def is_leaf_module(self, m, name):
            return name in ("own", "conv", "part.0")
    program = Program()
    graph = Whole().trace(program)
    nodes = {n.name: n for n in graph.nodes}
    x = nodes["x"]
    assert nodes["conv"].normalized_arguments(program) == ((x,), {})
    assert nodes["conv"].normalized_arguments(program, normalize_to_only_use_kwargs=True).kwargs == {"input": x}
    assert nodes["own"].normalized_arguments(program) is None       # no module of nn
    assert nodes["sum_1"].normalized_arguments(program) is None     # a method
    assert nodes["pad"].normalized_arguments(program) == (
        (nodes["own"], (1, 1)), {"mode": "constant", "value": 2.0})
    graph = Graph()
    x = graph.placeholder("x")
    add = graph.call_function(pt.add, (x, 2))
    assert add.normalized_arguments(None, normalize_to_only_use_kwargs=True).kwargs == {
        "input": x, "other": 2, "alpha": 1}
    given = graph.call_function(pt.add, (x, 2), {"out": x}).normalized_arguments(None)
    assert given == ((x, 2), {"alpha": 1, "out": x}) and type(given) is fx.node.ArgsKwargsPair
    assert graph.call_function(pt.sum, (x,), {"axis": 1}).normalized_arguments(None) == (
        (x,), {"dim": 1, "keepdim": False, "dtype": None})
    assert graph.call_function(pt.add, ()).normalized_arguments(None) is None
    with pytest.raises(TypeError):
        graph.call_function(pt.nn.functional.linear, (x,)).normalized_arguments(None)
    with pytest.raises(RuntimeError, match="has no module gone"):
        graph.call_module("gone", (x,)).normalized_arguments(program)
    assert graph.call_function(pt.einsum, ("ij", x)).normalized_arguments(None) is None     # any number of operands


def test_no_source_is_written(tmp_path):
    traced = symbolic_trace(Net())
    with pytest.raises(NotImplementedError, match="no source is written"):
        traced.to_folder(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()
    with pytest.raises(NotImplementedError, match="run by its nodes"):
        traced.graph.on_generate_code(lambda code: code)
    again = pickle.loads(pickle.dumps(traced))
    assert pt.equal(again(X), traced(X)) and again.code == traced.code


def test_operands_of_einsum():
    """However they are given, a traced program has them one by one, as PyTorch's has."""
    for f in (lambda x, y: pt.einsum("ij,jk->ik", x, y), lambda x, y: pt.einsum("ij,jk->ik", (x, y)),
              lambda x, y: pt.einsum("ij,jk->ik", [x, y])):
        traced = pt.fx.symbolic_trace(f)
        (node,) = traced.graph.find_nodes(op="call_function", target=pt.einsum)
        assert len(node.args) == 3
        x, y = pt.ones(2, 3), pt.ones(3, 2)
        assert traced(x, y).equal(x @ y)


@pytest.mark.parametrize("f", [
    lambda x: (-2) ** x, lambda x: (-2.0) ** x + (-x) ** 2, lambda x: np.float64(2) * x ** np.float64(-2),
    lambda x: pt.mul(x, np.float64("inf")) - np.float64(3), lambda x: pt.where(x > 1, -math.inf, x),
    lambda x: pt.sum(x, Axis(0)), lambda x: pt.einsum(Text("ij->i"), x)])
def test_numbers_in_code(f):
    """The text alone gives what the graph gives."""
    graph = symbolic_trace(f).graph
    names = {"inf": math.inf, "nan": math.nan}
    code = graph.python_code("self")
    exec(code.src, names | dict(code.globals), names)
    pt.testing.assert_close(names["forward"](None, X), f(X), equal_nan=True)
    assert "np." not in code.src and "Axis" not in code.src and "Text" not in code.src


def test_parts_whose_modules_have_like_names():
    net = nn.Module()
    net.a, net.a_b, net.a_b_ = nn.Module(), nn.Linear(3, 3), nn.Linear(3, 3)
    net.a.b = nn.Linear(3, 3)
    graph = Graph()
    x = graph.placeholder("x")
    y = x
    for name in ("a.b", "a_b", "a.b", "a_b_"):
        y = graph.call_module(name, (y,))
    graph.output(y)
    traced = GraphModule(net, graph)
    parts = split_module(traced, net, lambda node: 0)
    pt.testing.assert_close(parts(X), net.a_b_(net.a.b(net.a_b(net.a.b(X)))))
    assert len(list(parts.parameters())) == 6


def test_nested_arguments_by_name():
    traced = make_fx(lambda a, b: a[0] - a[1] * b)([X, X], X)
    for args, kwargs in ((([X, X + 1], X), {}), (([X, X + 1],), {"b": X}), ((), {"b": X, "a": [X, X + 1]})):
        assert pt.equal(traced(*args, **kwargs), X - (X + 1) * X)
    for args, kwargs in ((([X, X], X), {"b": X}), (([X, X],), {"c": X}), ((), {"a": [X, X]})):
        with pytest.raises(TypeError, match="takes the arguments a, b"):
            traced(*args, **kwargs)
