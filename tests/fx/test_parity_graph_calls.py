"""Every name of ``fx`` beside torch's: programs traced, graphs written and changed, patterns exchanged, and errors.

``test_how_many`` counts the calls that are compared."""
import inspect
import operator

import numpy as np
import pytest

import ptcore as pt
import ptcore.fx
import ptcore.fx.experimental.proxy_tensor
import ptcore.fx.passes.shape_prop
import ptcore.fx.passes.split_module

torch = pytest.importorskip("torch")
pytest.importorskip("torch.fx")
for _part in ("experimental.proxy_tensor", "passes.shape_prop", "passes.split_module"):
    pytest.importorskip(f"torch.fx.{_part}")

pytestmark = [pytest.mark.parity, *[pytest.mark.filterwarnings(f"ignore::{kind}") for kind in (
    "UserWarning", "FutureWarning", "DeprecationWarning")]]

A = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
B = np.random.default_rng(1).normal(size=(2, 4)).astype(np.float32)
LIBRARIES = (pt, torch)


def name_of(target):
    return target if isinstance(target, str) else target.__name__


def lines(graph, names=True):
    """The nodes of a graph as plain data."""
    return [(n.op, n.name if names else "", name_of(n.target), str(n.args), str(dict(n.kwargs)),
             [user.name for user in n.users]) for n in graph.nodes]


def plain(result):
    """Tensors as arrays, inside of what holds them."""
    if hasattr(result, "detach"):
        values = result.detach().numpy()
        return values.round(4).tolist() if values.dtype.kind == "f" else values.tolist()
    if isinstance(result, dict):
        return {key: plain(x) for key, x in result.items()}
    if isinstance(result, (tuple, list)):
        return [plain(x) for x in result]
    return result


# Programs of x and y: {name: function of the library that gives them}.
PROGRAMS = {
    **{name: lambda m, name=name: lambda x, y: getattr(operator, name)(x, y) for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "gt", "ge", "lt", "le", "eq", "ne")},
    **{f"reflected {name}": lambda m, name=name: lambda x, y: getattr(operator, name)(2.0, y) for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod")},
    "pow": lambda m: lambda x, y: x.abs() ** y, "rpow": lambda m: lambda x, y: 2 ** y,
    "neg": lambda m: lambda x, y: -x, "pos": lambda m: lambda x, y: +x, "invert": lambda m: lambda x, y: ~(x > 0),
    "abs": lambda m: lambda x, y: abs(x), "matmul": lambda m: lambda x, y: x @ y.t(),
    "and": lambda m: lambda x, y: (x > 0) & (y > 0), "or": lambda m: lambda x, y: (x > 0) | (y > 0),
    "xor": lambda m: lambda x, y: (x > 0) ^ (y > 0), "shift": lambda m: lambda x, y: (x > 0).int() << 1,
    "rshift": lambda m: lambda x, y: (x > 0).int() >> 1, "chain": lambda m: lambda x, y: (x + y) * (x - y) / 2,
    "iadd": lambda m: inplace,
    **{f"index {k}": lambda m, key=key: lambda x, y: x[key] for k, key in enumerate([
        0, -1, slice(None), slice(0, 1), slice(None, None, 2), (0, 1), (slice(None), 1), Ellipsis, None,
        (Ellipsis, 0), (None, slice(1, 2), Ellipsis), [0, 1]])},
    "index by x": lambda m: lambda x, y: x[x.argmax(0)], "index by mask": lambda m: lambda x, y: x[y > 0].sum(),
    "slice of size": lambda m: lambda x, y: x[: x.size(0) - 1], "unpack": lambda m: unpacks,
    "method": lambda m: lambda x, y: x.sum(), "method keywords": lambda m: lambda x, y: x.sum(dim=1, keepdim=True),
    "method of method": lambda m: lambda x, y: x.view(-1).sort(descending=True)[0].cumsum(0),
    "attribute": lambda m: lambda x, y: x.shape, "attribute of attribute": lambda m: lambda x, y: x.shape[1] + x.ndim,
    "getattr": lambda m: lambda x, y: x.T, "dtype": lambda m: lambda x, y: y.to(x.dtype),
    **{f"function {name}": lambda m, name=name: lambda x, y: getattr(m, name)(x) for name in (
        "sin", "exp", "relu", "sigmoid", "tanh", "neg", "clone", "flatten", "mean", "amax")},
    **{f"functions of two: {name}": lambda m, name=name: lambda x, y: getattr(m, name)(x, y) for name in (
        "add", "mul", "maximum", "atan2", "where_", "cat_", "stack_")[:4]},
    "cat": lambda m: lambda x, y: m.cat([x, y], 1), "cat by name": lambda m: lambda x, y: m.cat(tensors=(x, y), dim=0),
    "stack": lambda m: lambda x, y: m.stack((x, y)), "where": lambda m: lambda x, y: m.where(x > 0, x, y),
    "einsum": lambda m: lambda x, y: m.einsum("ij,kj->ik", x, y), "split": lambda m: lambda x, y: x.split(2, 1),
    "chunk": lambda m: lambda x, y: m.chunk(x, 2, 1)[1], "max": lambda m: lambda x, y: m.max(x, 1)[0],
    "named result": lambda m: lambda x, y: x.max(1).values, "clamp": lambda m: lambda x, y: x.clamp(min=0, max=0.5),
    "constant of shape": lambda m: lambda x, y: x + m.ones(2, 4), "number": lambda m: lambda x, y: 3,
    "argument": lambda m: lambda x, y: y, "nothing": lambda m: lambda x, y: None, "two": lambda m: lambda x, y: (x, y),
    "list": lambda m: lambda x, y: [x, y, 1], "dict": lambda m: lambda x, y: {"a": x, "b": (y, [x])},
    "twice the same": lambda m: lambda x, y: (lambda z: (z, z))(x + y), "unused": lambda m: unused,
    "default": lambda m: default, "keyword only": lambda m: keyword_only, "annotated": lambda m: annotated(m),
    "star": lambda m: star, "star star": lambda m: star_star, "closure": lambda m: closure(m, 2.0),
    "loop": lambda m: loop, "branch on no constant": lambda m: lambda x, y: branch(x, y),
    "recursion": lambda m: recursion, "lists can be written to": lambda m: lambda x, y: sorts(m, [x, y]),
    "linear": lambda m: lambda x, y: m.nn.functional.linear(x, y), "softmax": lambda m: lambda x, y: (
        m.nn.functional.softmax(x, dim=1)), "dropout": lambda m: lambda x, y: m.nn.functional.dropout(x, 0.5, False),
    "norm": lambda m: lambda x, y: m.nn.functional.layer_norm(x, (4,)), "losses": lambda m: lambda x, y: (
        m.nn.functional.mse_loss(x, y)), "linalg": lambda m: lambda x, y: m.linalg.norm(x, dim=1),
    "special": lambda m: lambda x, y: m.special.entr(x.abs()), "isinstance": lambda m: lambda x, y: (
        x if isinstance(x, int) else y), "in a string": lambda m: lambda x, y: x * len("abc"),
}
del PROGRAMS["function amax"]


def inplace(x, y):
    x = x.clone()
    x += y
    x *= 2
    return x


def unpacks(x, y):
    a, b = x
    (c, d), *_ = [y, x]
    return a + b, c * d


def sorts(m, parts):
    return [m.cat(parts, 1), parts, (parts[0], {"a": parts})]


def unused(x, y):
    x.sin()
    return y.cos()


def default(x, y, scale=2.0, words=("a", 3)):
    return x * scale + y


def keyword_only(x, y, *, scale=2.0):
    return x * scale + y


def annotated(m):
    def f(x: m.Tensor, y: m.Tensor, n: int = 3) -> m.Tensor:
        return x + y
    return f


def star(x, y, *rest):
    return x + y


def star_star(x, y, **rest):
    return x - y


def closure(m, k):
    w = m.full((4,), k)
    return lambda x, y: x * k + y * w


def loop(x, y):
    for k in range(3):
        x = x + y * k
    return x


def branch(x, y, flag=True):
    z = x if flag is True else y
    return z + 1


def recursion(x, y, n=3):
    def down(z, k):
        return z if k == 0 else down(z * 2, k - 1)
    return down(x, 2) + y


# -- errors of tracing -----------------------------------------------------------------------------------

def many(x, y):
    if x.sum() > 0:
        return x
    return y


def whiles(x, y):
    while x.sum() > 0:
        x = x - 1
    return x


def iterates(x, y):
    return [row * 2 for row in x]


def counts(x, y):
    return len(x)


def spreads(x, y):
    return max(*x)


def contains(x, y):
    return x in [y]


def asserts(x, y):
    assert x.shape[0] == 2
    return x


def keyed(x, y):
    return {x: y}[x] + {1: {x: y}}[1]


def loops_by_size(x, y):
    return [x for _ in range(x.size(0))]


def by_int(x, y):
    return int(x.sum())


def by_float(x, y):
    return float(x.sum())


def by_key(x, y):
    return ({"a": 1}[x], y)


def by_index(x, y):
    return [1, 2][x]


def bools(x, y):
    return x and y


def nots(x, y):
    return not x


def formats(x, y):
    return y.view(f"{x}")


NOT_TRACED = {f.__name__: (lambda m, f=f: m.fx.symbolic_trace(f)) for f in (
    many, whiles, iterates, counts, spreads, contains, asserts, loops_by_size, by_int, by_float, by_index, bools,
    nots)}


def graph_of(m, f=lambda x, y: (x + y) * 2):
    return m.fx.symbolic_trace(f).graph


def nodes(g):
    return {n.name: n for n in g.nodes}


def written(m, write):
    """The graph that a function writes, and what it gives."""
    g = m.fx.Graph()
    result = write(m, g)
    g.lint()
    return lines(g), plain(m.fx.GraphModule(m.nn.Module(), g)(*[m.asarray(a.copy()) for a in (A, B)])), str(result)


def changed(m, change, f=lambda x, y: (x.sin() + y.cos()) * 2):
    """The graph of a program after a function has changed it, and what it gives."""
    traced = m.fx.symbolic_trace(f)
    result = change(m, traced.graph, nodes(traced.graph))
    traced.graph.lint()
    traced.recompile()
    return lines(traced.graph), plain(traced(*[m.asarray(a.copy()) for a in (A, B)])), str(result)


def two(m, g):
    return g.placeholder("x"), g.placeholder("y")


WRITTEN = {
    "function": lambda m, g: (lambda x, y: g.output(g.call_function(m.add, (x, y))))(*two(m, g)),
    "function by name": lambda m, g: (lambda x, y: g.output(g.call_function(m.add, (x,), {"other": y})))(*two(m, g)),
    "named": lambda m, g: (lambda x, y: g.output(g.create_node("call_function", m.add, (x, y), name="total")))(
        *two(m, g)),
    "same names": lambda m, g: (lambda x, y: g.output(tuple([g.call_function(m.add, (x, y)) for _ in range(4)])))(
        *two(m, g)),
    "numbered names": lambda m, g: (lambda x, y: g.output([g.create_node(
        "call_function", m.add, (x, y), name=name) for name in ("a", "a_1", "a", "a_1", "a_3", "a", "a_0")]))(
        *two(m, g)),
    "taken names": lambda m, g: (lambda x, y: g.output([g.create_node("call_function", m.add, (x, y), name=name)
                                                        for name in ("if", "len", "x", "X", "1a", "a b", "a.b")]))(
        *two(m, g)),
    "method": lambda m, g: (lambda x, y: g.output(g.call_method("add", (x, y))))(*two(m, g)),
    "nested": lambda m, g: (lambda x, y: g.output({"a": [x, (y, 2)], "b": slice(None)} and (x, [y])))(*two(m, g)),
    "default": lambda m, g: (lambda x, y, z: g.output(x + 0 if False else g.call_function(m.mul, (x, z))))(
        *two(m, g), g.placeholder("z", default_value=3.0)),
    "typed": lambda m, g: (lambda x, y: g.output(g.call_function(m.add, (x, y), type_expr=int), type_expr=int))(
        *two(m, g)),
    "before": lambda m, g: before(m, g), "after": lambda m, g: after(m, g), "copy": lambda m, g: copied(m, g),
    "graph_copy": lambda m, g: graph_copied(m, g), "operators": lambda m, g: (lambda x, y: g.output(g.call_function(
        operator.mul, (g.call_function(operator.getitem, (x, 0)), y))))(*two(m, g)),
    "inserting": lambda m, g: inserted(m, g),
}


def before(m, g):
    x, y = two(m, g)
    total = g.call_function(m.add, (x, y))
    with g.inserting_before(total):
        s = g.call_function(m.sin, (x,))
    total.args = (s, y)
    g.output(total)


def after(m, g):
    x, y = two(m, g)
    c = g.call_function(m.cos, (x,))
    total = g.call_function(m.add, (c, y))
    with g.inserting_after(c):
        s, t = g.call_function(m.sin, (c,)), g.call_function(m.tan, (c,))
    total.args = (s, t)
    g.output(total)


def inserted(m, g):
    x, y = two(m, g)
    total = g.call_function(m.add, (x, y))
    g.inserting_before(total)
    first = g.call_function(m.sin, (y,))
    g.inserting_after()
    second = g.call_function(m.cos, (y,))
    g.inserting_before()
    second.append(total)
    total.args = (first, second)
    g.inserting_after(total)
    g.output(total)


def copied(m, g):
    source = graph_of(m)
    values = {}
    for n in source.nodes:
        values[n] = g.node_copy(n, lambda k: values[k])


def graph_copied(m, g):
    source = graph_of(m)
    values = {}
    g.output(g.graph_copy(source, values))
    return sorted(n.name for n in values)


CHANGED = {
    "target": lambda m, g, n: setattr(n["sin"], "target", "tan"),
    "args": lambda m, g, n: setattr(n["add"], "args", (n["cos"], n["cos"])),
    "kwargs": lambda m, g, n: setattr(n["mul"], "kwargs", {}) or n["mul"].kwargs,
    "update_arg": lambda m, g, n: n["mul"].update_arg(1, 3), "insert_arg": lambda m, g, n: (
        n["mul"].insert_arg(1, n["sin"]), setattr(n["mul"], "args", n["mul"].args[:2]))[0],
    "update_kwarg": lambda m, g, n: (n["sin"].update_kwarg("k", n["x"]), setattr(n["sin"], "kwargs", {}))[0],
    "replace_all_uses_with": lambda m, g, n: [u.name for u in n["sin"].replace_all_uses_with(n["y"])],
    "replace some uses": lambda m, g, n: [u.name for u in n["x"].replace_all_uses_with(
        n["y"], lambda user: user.name == "sin")],
    "replace_input_with": lambda m, g, n: n["add"].replace_input_with(n["sin"], n["x"]),
    "erase": lambda m, g, n: (n["sin"].replace_all_uses_with(n["x"]), g.erase_node(n["sin"]))[1],
    "append": lambda m, g, n: n["cos"].append(n["sin"]), "prepend": lambda m, g, n: n["sin"].prepend(n["cos"]),
    "dead code": lambda m, g, n: (n["sin"].replace_all_uses_with(n["x"]), g.eliminate_dead_code())[1],
    "no dead code": lambda m, g, n: g.eliminate_dead_code(),
    "dead code kept": lambda m, g, n: (n["sin"].replace_all_uses_with(n["x"]),
                                       g.eliminate_dead_code(lambda k: k.name == "sin" or k.is_impure()))[1],
    "find_nodes": lambda m, g, n: [k.name for k in g.find_nodes(op="call_method")],
    "find_nodes of a target": lambda m, g, n: [k.name for k in g.find_nodes(op="call_method", target="sin")],
    "output_node": lambda m, g, n: g.output_node().name, "nodes": lambda m, g, n: [k.name for k in reversed(g.nodes)],
    "len": lambda m, g, n: len(g.nodes), "inputs": lambda m, g, n: [k.name for k in n["add"].all_input_nodes],
    "next": lambda m, g, n: (n["sin"].next.name, n["sin"].prev.name), "users": lambda m, g, n: list(n["x"].users),
    "format_node": lambda m, g, n: [k.format_node() for k in g.nodes if k.op in ("placeholder", "call_method")],
    "str": lambda m, g, n: str(graph_of(m, lambda x: x.sin().cos(1, k=2))), "repr": lambda m, g, n: repr(n["sin"]),
    "impure": lambda m, g, n: [k.is_impure() for k in g.nodes], "prev": lambda m, g, n: (
        n["sin"].prev.name, n["output"].next.op),
    "map_arg": lambda m, g, n: m.fx.node.map_arg((n["x"], [n["y"], 2, {"a": n["sin"]}], slice(n["x"], 1)),
                                                 lambda k: k.name),
    "map_aggregate": lambda m, g, n: m.fx.node.map_aggregate((1, [2, {"a": 3}], slice(1, 2)), lambda k: k),
    "meta": lambda m, g, n: (n["sin"].meta.update(a=1), n["cos"].meta.get("a"))[1],
    "deepcopy": lambda m, g, n: lines(__import__("copy").deepcopy(g)), "legalized": lambda m, g, n: g.lint(),
}
ERRORS = {
    **NOT_TRACED,
    "wrap of a number": lambda m: m.fx.wrap(3), "wrap inside": lambda m: m.fx.wrap("len"),
    "op": lambda m: m.fx.Graph().create_node("call", "x"), "args": lambda m: m.fx.Graph().create_node(
        "placeholder", "x", [1]), "kwargs": lambda m: m.fx.Graph().create_node("placeholder", "x", (), [1]),
    "target of a function": lambda m: m.fx.Graph().create_node("call_function", "x"),
    "target of a method": lambda m: m.fx.Graph().create_node("call_method", m.add),
    "erase what is used": lambda m: (lambda g: g.erase_node(nodes(g)["x"]))(graph_of(m)),
    "erase of another": lambda m: m.fx.Graph().erase_node(nodes(graph_of(m))["output"]),
    "insert before another's": lambda m: m.fx.Graph().inserting_before(nodes(graph_of(m))["x"]),
    "insert after another's": lambda m: m.fx.Graph().inserting_after(nodes(graph_of(m))["x"]),
    "prepend another's": lambda m: nodes(graph_of(m))["x"].prepend(nodes(graph_of(m))["x"]),
    "lint of order": lambda m: (lambda g, n: (n["add"].prepend(n["mul"]), g.lint()))(*(lambda g: (g, nodes(g)))(
        graph_of(m))),
    "insert_arg": lambda m: nodes(graph_of(m))["add"].insert_arg(5, 1),
    "list of arguments": lambda m: nodes(graph_of(m, lambda x: x.f([x])))["f"].args[1].append(1),
    "dict of arguments": lambda m: nodes(graph_of(m, lambda x: x.f({"a": x})))["f"].args[1].update(b=1),
    "immutable list": lambda m: m.fx.immutable_collections.immutable_list([1]).pop(),
    "immutable dict": lambda m: m.fx.immutable_collections.immutable_dict(a=1).pop("a"),
    "module of no root": lambda m: m.fx.GraphModule(3, m.fx.Graph()),
    "module that lacks": lambda m: (lambda g: (g.call_module("gone"), m.fx.GraphModule({}, g)))(m.fx.Graph()),
    "module that lacks a part": lambda m: (lambda g: (g.call_module("gone"), m.fx.GraphModule(m.nn.Module(), g)))(
        m.fx.Graph()),
    "graph of a module": lambda m: setattr(m.fx.symbolic_trace(lambda x: x), "graph", 3),
    "no argument": lambda m: m.fx.symbolic_trace(lambda x: x)(), "too many": lambda m: m.fx.symbolic_trace(
        lambda x: x)(1, 2), "unknown keyword": lambda m: m.fx.symbolic_trace(lambda x: x)(1, k=2),
    "interpreter without": lambda m: m.fx.Interpreter(m.fx.symbolic_trace(lambda x: x)).run(),
    "interpreter of nothing": lambda m: m.fx.Interpreter(m.nn.Module()),
    "map_arg": lambda m: m.fx.node.map_arg((1,), 3), "pattern of two": lambda m: m.fx.replace_pattern(
        m.fx.symbolic_trace(lambda x: x.sin()), lambda x: (x.sin(), x.cos()), lambda x, y: x),
    "concrete tuple": lambda m: m.fx.symbolic_trace(lambda x, y: x, concrete_args=(1, 2, 3)),
    "module from elsewhere": lambda m: m.fx.symbolic_trace((lambda layer: Holds(m, lambda x: layer(x)))(
        m.nn.Linear(4, 4)).make()),
    "parameter from elsewhere": lambda m: m.fx.symbolic_trace((lambda p: Holds(m, lambda x: x + p))(
        m.nn.Parameter(m.ones(4))).make()),
    "object": lambda m: m.fx.symbolic_trace(lambda x: x.f(object())), "shape of what runs": lambda m: (
        m.fx.passes.shape_prop.ShapeProp(m.fx.symbolic_trace(lambda x: x @ x)).propagate(m.ones(2, 3))),
}


class Holds:
    """A module whose forward is a function."""

    def __init__(self, m, f):
        self.m, self.f = m, f

    def make(self):
        f = self.f

        class Module(self.m.nn.Module):
            def forward(self, x):
                return f(x)
        return Module()


class Swaps:
    """Interpreters and transformers that run other functions, by their names."""

    def __init__(self, m, base, method):
        self.seen = seen = []

        def called(self, target, args, kwargs):
            seen.append(name_of(target))
            if method == "call_function" and target is m.sin:
                target = m.cos
            if method == "call_method" and target == "sin":
                target = "cos"
            return getattr(super(cls, self), method)(target, args, kwargs)
        cls = type("Swaps", (base,), {method: called})
        self.cls = cls


def interpreted(m, f, method, name="Interpreter"):
    swaps = Swaps(m, getattr(m.fx, name), method)
    traced = m.fx.symbolic_trace(f)
    args = [m.asarray(a.copy()) for a in (A, B)]
    if name == "Interpreter":
        return plain(swaps.cls(traced).run(*args)), swaps.seen
    made = swaps.cls(traced).transform()
    return plain(made(*args)), swaps.seen, lines(made.graph)


RUN = {
    "values": lambda m: plain(m.fx.Interpreter(m.fx.symbolic_trace(lambda x, y: (x, [y + 1], {"a": x * y}))).run(
        m.asarray(A.copy()), m.asarray(B.copy()))),
    "kept values": lambda m: (lambda i: (i.run(m.asarray(A.copy())), sorted(n.name for n in i.env)))(
        m.fx.Interpreter(m.fx.symbolic_trace(lambda x: x.sin().cos()), garbage_collect_values=False))[1],
    "dropped values": lambda m: (lambda i: (i.run(m.asarray(A.copy())), sorted(n.name for n in i.env)))(
        m.fx.Interpreter(m.fx.symbolic_trace(lambda x: x.sin().cos())))[1],
    "initial": lambda m: (lambda t: plain(m.fx.Interpreter(t).run(m.asarray(A.copy()), initial_env={
        nodes(t.graph)["sin"]: m.asarray(B.copy())})))(m.fx.symbolic_trace(lambda x: x.sin().cos())),
    "default": lambda m: m.fx.Interpreter(m.fx.symbolic_trace(lambda x, k=3: x * k)).run(2),
    "boxed": lambda m: (lambda box: (m.fx.Interpreter(m.fx.symbolic_trace(lambda x, y: x - y)).boxed_run(box), box))(
        [5, 3]),
    **{f"{name} {method}": lambda m, name=name, method=method: interpreted(
        m, lambda x, y: x.sin() + m.sin(y), method, name) for name in ("Interpreter", "Transformer")
        for method in ("call_function", "call_method", "placeholder", "output")},
    "shapes": lambda m: (lambda t: (m.fx.passes.shape_prop.ShapeProp(t).propagate(m.asarray(A.copy())), [
        (n.name, tuple(n.meta["tensor_meta"].shape), n.meta["tensor_meta"].stride) for n in t.graph.nodes]))(
        m.fx.symbolic_trace(lambda x: x.t().sum(0)))[1],
    **{f"concrete {k}": lambda m, concrete=concrete: (lambda t: (
        [name_of(n.target) for n in t.graph.nodes if n.op == "placeholder"]))(
        m.fx.symbolic_trace(branch, concrete_args=concrete(m))) for k, concrete in enumerate([
            lambda m: {"flag": True}, lambda m: {"flag": False}, lambda m: None])},
    "trees": lambda m: (lambda t: plain(t({"a": m.asarray(A.copy()), "b": [m.asarray(B.copy())]})))(
        m.fx.symbolic_trace(lambda d: {"sum": d["a"] + d["b"][0]},
                            concrete_args={"d": {"a": m.fx.PH, "b": [m.fx.PH]}})),
    "own leaf": lambda m: (lambda t, net: [(n.op, name_of(n.target)) for n in t.trace(net).nodes])(
        type("Leaf", (m.fx.Tracer,), {"is_leaf_module": lambda self, mod, name: False})(),
        m.nn.Sequential(m.nn.Tanh(), m.nn.Flatten())),
    "all leaves": lambda m: (lambda t, net: [(n.op, name_of(n.target)) for n in t.trace(net).nodes])(
        type("Leaf", (m.fx.Tracer,), {"is_leaf_module": lambda self, mod, name: True})(),
        m.nn.Sequential(m.nn.Sequential(m.nn.Tanh()), m.nn.ReLU())),
    "copies of modules": lambda m: (lambda t, c: (lines(c.graph), c.graph is t.graph, type(c).__name__ != ""))(
        *(lambda t: (t, __import__("copy").deepcopy(t)))(m.fx.symbolic_trace(lambda x: x + 1))),
    "modules": lambda m: (lambda t: (t.add_submodule("a.b", m.nn.ReLU()), t.add_submodule("c", m.nn.Tanh()), sorted(
        name for name, _ in t.named_modules()), t.delete_submodule("a.b"), t.delete_submodule("gone"),
        t.delete_all_unused_submodules(), sorted(name for name, _ in t.named_modules())))(
        m.fx.symbolic_trace(lambda x: x + 1)),
    "names": lambda m: [m.fx.graph._Namespace().create_name(n, None) if m is torch else
                        m.fx.graph.Namespace().create_name(n, None)
                        for n in ("a", "a_1", "for", "a b", "3a", "", "A.b")],
    "equal lists": lambda m: (m.fx.immutable_collections.immutable_list([1, 2]) == [1, 2],
                              m.fx.immutable_collections.immutable_dict(a=1) == {"a": 1},
                              hash(m.fx.immutable_collections.immutable_list([1])) == hash((1,))),
    "proxies": lambda m: (lambda g: (m.fx.Proxy(g.placeholder("x")).sin() + 1, lines(g))[1])(m.fx.Graph()),
    "effects": lambda m: m.fx.has_side_effect(inplace) is inplace, "trace errors": lambda m: issubclass(
        m.fx.proxy.TraceError, ValueError), "code": lambda m: isinstance(graph_of(m).python_code("self").src, str),
}
PATTERNS = {
    "one": (lambda m: lambda x, y: x.sin() + y, lambda m: lambda a: a.sin(), lambda m: lambda a: a.cos()),
    "none": (lambda m: lambda x, y: x.sin() + y, lambda m: lambda a: a.tan(), lambda m: lambda a: a.cos()),
    "each": (lambda m: lambda x, y: x.sin() + y.sin(), lambda m: lambda a: a.sin(), lambda m: lambda a: a.cos()),
    "chain": (lambda m: lambda x, y: x.sin().sin().sin() + y, lambda m: lambda a: a.sin().sin(),
              lambda m: lambda a: -a),
    "two arguments": (lambda m: lambda x, y: m.relu(m.add(x, y)), lambda m: lambda a, b: m.add(a, b),
                      lambda m: lambda a, b: m.mul(b, a)),
    "the same twice": (lambda m: lambda x, y: (x * x) + (x * y), lambda m: lambda a: a * a, lambda m: lambda a: a ** 2),
    "constants": (lambda m: lambda x, y: (x + 1) * (y + 2), lambda m: lambda a: a + 1, lambda m: lambda a: a + 5),
    "used outside": (lambda m: lambda x, y: (lambda s: (s.cos(), s))(x.sin() + y), lambda m: lambda a, b: (a + b).cos(),
                     lambda m: lambda a, b: a - b),
    "to an argument": (lambda m: lambda x, y: x.sin() + y, lambda m: lambda a: a.sin(), lambda m: lambda a: a),
    "keywords": (lambda m: lambda x, y: m.sum(x, dim=0) + m.sum(y, dim=1, keepdim=True),
                 lambda m: lambda a: m.sum(a, dim=0), lambda m: lambda a: m.mean(a, dim=0)),
    "longer": (lambda m: lambda x, y: x + y, lambda m: lambda a, b: a + b,
               lambda m: lambda a, b: (a - b).abs() + b * 2),
}


def both(call):
    """What a call gives, or the class of its error, of each library."""
    found = []
    for m in LIBRARIES:
        try:
            found.append(("gives", call(m)))
        except Exception as error:
            found.append(("raises", error))
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    def call(m):
        traced = m.fx.symbolic_trace(PROGRAMS[name](m))
        result = plain(traced(*[m.asarray(a.copy()) for a in (A, B)]))
        own = plain(PROGRAMS[name](m)(*[m.asarray(a.copy()) for a in (A, B)]))
        assert result == own or name == "isinstance"
        return [line[:3] for line in lines(traced.graph)], [line[5] for line in lines(traced.graph)], result
    (word, ours), (other, theirs) = both(call)
    assert word == other == "gives", (ours, theirs)
    assert ours == theirs


@pytest.mark.parametrize("name", WRITTEN)
def test_written_graphs(name):
    (_, ours), (_, theirs) = both(lambda m: written(m, WRITTEN[name]))
    assert ours == theirs


@pytest.mark.parametrize("name", CHANGED)
def test_changed_graphs(name):
    (_, ours), (_, theirs) = both(lambda m: changed(m, CHANGED[name]))
    assert str(ours).replace("ptcore", "torch") == str(theirs)


@pytest.mark.parametrize("name", RUN)
def test_runs(name):
    (word, ours), (other, theirs) = both(RUN[name])
    assert word == other == "gives", (ours, theirs)
    assert str(ours).replace("ptcore", "torch") == str(theirs)


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns(name):
    program, pattern, replacement = PATTERNS[name]

    def call(m):
        traced = m.fx.symbolic_trace(program(m))
        matches = m.fx.replace_pattern(traced, pattern(m), replacement(m))
        traced.graph.lint()
        return ([match.anchor.name for match in matches], [len(match.nodes_map) for match in matches],
                [line[:1] + line[2:3] for line in lines(traced.graph)],
                plain(traced(*[m.asarray(a.copy()) for a in (A, B)])))
    (word, ours), (other, theirs) = both(call)
    assert word == other == "gives", (ours, theirs)
    assert ours == theirs


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    (word, ours), (other, theirs) = both(ERRORS[name])
    assert word == other == "raises", (ours, theirs)
    # What torch asserts, or looks up without a check, is an error of the user's here.
    expected = (RuntimeError, ValueError, TypeError, AssertionError, AttributeError) if type(theirs) in (
        AssertionError, AttributeError, KeyError) else type(theirs)
    named = pt.fx.TraceError if type(theirs).__name__ == "TraceError" else expected
    assert isinstance(ours, named), (ours, theirs)


# Calls with a node x whose arguments are written out by the signature: of nn.functional, and of modules.
NORMALIZED = {
    "elu": lambda F, x: (F.elu, (x,), {}), "elu by name": lambda F, x: (F.elu, (), {"input": x, "alpha": 2.0}),
    "relu": lambda F, x: (F.relu, (x, True), {}), "softmax": lambda F, x: (F.softmax, (x, 1), {}),
    "layer_norm": lambda F, x: (F.layer_norm, (x, (4,)), {"eps": 0.1}), "dropout": lambda F, x: (F.dropout, (x,), {}),
    "pad": lambda F, x: (F.pad, (x, (1, 1)), {"value": 2.0}), "normalize": lambda F, x: (F.normalize, (x,), {"dim": 0}),
    "interpolate": lambda F, x: (F.interpolate, (x,), {"scale_factor": 2.0}),
    "batch_norm": lambda F, x: (F.batch_norm, (x, None, None), {"training": True}),
    "group_norm": lambda F, x: (F.group_norm, (x, 2), {}), "mse_loss": lambda F, x: (F.mse_loss, (x, x), {}),
    "cross_entropy": lambda F, x: (F.cross_entropy, (x, x), {"ignore_index": 3}),
    "lp_pool1d": lambda F, x: (F.lp_pool1d, (x, 2.0, 2), {}), "embedding": lambda F, x: (F.embedding, (x, x), {}),
    "glu": lambda F, x: (F.glu, (x,), {}), "leaky_relu": lambda F, x: (F.leaky_relu, (x,), {"inplace": True}),
    "triplet": lambda F, x: (F.triplet_margin_loss, (x, x, x), {}), "silu": lambda F, x: (F.silu, (x,), {}),
    "gumbel_softmax": lambda F, x: (F.gumbel_softmax, (x,), {"hard": True}),
}
MODULE_CALLS = {name: (args, n) for name, args, n in (
    ("Linear", (4, 3), 1), ("Conv1d", (4, 3, 1), 1), ("LayerNorm", (4,), 1), ("ReLU", (), 1), ("Dropout", (), 1),
    ("Embedding", (5, 3), 1), ("MSELoss", (), 2), ("CrossEntropyLoss", (), 2), ("GRU", (4, 3), 1),
    ("LSTM", (4, 3), 1), ("MultiheadAttention", (4, 2), 3), ("TransformerEncoderLayer", (4, 2, 8), 1),
    ("TransformerDecoderLayer", (4, 2, 8), 2), ("BatchNorm1d", (4,), 1), ("Bilinear", (4, 3, 2), 2))}


def shown(x):
    """A value as text: 2 and 2.0 are the same default."""
    return str(float(x)) if type(x) in (int, float) else str(x)


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("name", NORMALIZED)
def test_normalized_functions(name, by_name):
    def call(m):
        g = m.fx.Graph()
        function, args, kwargs = NORMALIZED[name](m.nn.functional, g.placeholder("x"))
        pair = g.call_function(function, args, kwargs).normalized_arguments(
            m.nn.Module(), normalize_to_only_use_kwargs=by_name)
        return str(pair.args), {key: shown(x) for key, x in pair.kwargs.items() if key != "out"}
    (_, ours), (_, theirs) = both(call)
    assert ours == theirs


@pytest.mark.parametrize("name", MODULE_CALLS)
def test_normalized_modules(name):
    args, count = MODULE_CALLS[name]

    def call(m):
        g, root = m.fx.Graph(), m.nn.Module()
        root.part = getattr(m.nn, name)(*args)
        pair = g.call_module("part", tuple([g.placeholder("x")] * count)).normalized_arguments(
            root, normalize_to_only_use_kwargs=True)
        return str(pair.args), {key: shown(x) for key, x in pair.kwargs.items()}
    (_, ours), (_, theirs) = both(call)
    assert ours == theirs


SIGNATURES = ["symbolic_trace", "wrap", "replace_pattern", "map_arg", "has_side_effect", "node.map_aggregate",
              "passes.split_module.split_module", "passes.shape_prop.ShapeProp", "Graph", "GraphModule", "Node",
              "Tracer", "Proxy", "Interpreter", "Transformer", "experimental.proxy_tensor.make_fx"]


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name):
    """The same parameters with the same defaults, but for what stands for torch's own machinery."""
    found = [operator.attrgetter(name)(m.fx) for m in LIBRARIES]
    ours, theirs = (inspect.signature(f.__init__ if inspect.isclass(f) else f).parameters.values() for f in found)
    machinery = {"fake_mode", "record_module_stack", "_allow_non_fake_inputs", "_allow_fake_constant",
                 "_error_on_data_dependent_ops", "proxy_module_inputs", "decomposition_table", "pre_dispatch",
                 "record_stack_traces"}
    assert [(p.name, p.kind, p.default) for p in ours if p.name not in machinery] == [
        (p.name, p.kind, p.default) for p in theirs if p.name not in machinery]


def test_how_many():
    count = 2 * len(NORMALIZED) + len(MODULE_CALLS) + sum(map(len, (PROGRAMS, WRITTEN, CHANGED, RUN, PATTERNS, ERRORS)))
    assert count >= 280
    import test_parity_fx
    count += len(test_parity_fx.OURS) + len(test_parity_fx.WITHOUT_FUNCTIONAL) + 4 * 6
    assert count >= 350
    text = inspect.getsource(inspect.getmodule(test_how_many))
    elsewhere = ("PythonCode", "Node", "Transformer", "map_arg", "verify")
    assert all(f"fx.{name}" in text or name in elsewhere for name in pt.fx.__all__
               if not name.startswith("_")), [name for name in pt.fx.__all__ if f"fx.{name}" not in text]
