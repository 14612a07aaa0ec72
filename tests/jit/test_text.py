"""Graphs as text: every row there and back, values of all kinds, damaged texts."""
import math
import random
import sys

import numpy as np
import pytest

import ptcore as pt
from ptcore._ops.history import ValueCheck
from ptcore.fx import Graph, GraphModule
from ptcore.fx.experimental.proxy_tensor import make_fx
from ptcore.jit._script.names import function_named, name_of
from ptcore.jit._text import parse, to_text
from ptcore.serialization import CorruptFileError

VALUES = [None, True, False, 0, -3, 2**70, 0.1, -0.0, 1e300, 5e-324, math.inf, -math.inf, 1 + 2j,
          complex(0.0, -math.inf), "a", "ä \"quoted\"\\\n\t", "", (), (1,), (1, (2.5, None)), [], [1, [2]], {},
          {"a": 1, 3: (True,)}, slice(None, 3, None), slice(1, 2, -1), pt.float32, pt.bool, pt.complex128,
          pt.device("cpu"), pt.device("cuda:3"), pt.channels_last, pt.preserve_format, pt.strided]


def same(a, b):
    if isinstance(a, float):
        return math.copysign(1, a) == math.copysign(1, b) and a == b
    return a == b


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values(value):
    graph = Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_function(pt.add, (x, value)), value))
    text = to_text(graph)
    again = parse(text)
    got = again.output_node().args[0][1]
    assert same(got, value) or (isinstance(value, list) and list(got) == value)
    assert type(got) is type(again.output_node().args[0][0].args[1])
    assert to_text(again) == text


def test_nan():
    graph = Graph()
    graph.output(math.nan)
    assert math.isnan(parse(to_text(graph)).output_node().args[0])


def test_programs_come_back():
    layer = pt.nn.Sequential(pt.nn.Linear(3, 4), pt.nn.BatchNorm1d(4), pt.nn.Softmax(1))

    def f(x, y):
        z = layer(x) + y[1:].mean()
        z.clamp_(max=0.9)
        return {"z": z, "more": (z.split(2, 1), 3)}
    for mode in ("real", "symbolic"):
        made = make_fx(f, tracing_mode=mode)(pt.randn(5, 3), pt.randn(4))
        text = to_text(made.graph)
        assert text.count(" @ \"") > 5                             # the user's lines
        again = parse(text)
        assert to_text(again) == text
        for old, new in zip(made.graph.nodes, again.nodes, strict=True):
            assert (old.name, old.op, old.target, str(old.args)) == (new.name, new.op, new.target, str(new.args))
            assert old.meta.get("where") == new.meta.get("where")
        again._trees = made.graph._trees
        x, y = pt.randn(5, 3), pt.randn(4)
        layer.eval()
        got, want = GraphModule(made, again)(x, y), made(x, y)
        assert got["z"].tolist() == want["z"].tolist()
        layer.train()


def test_every_check_of_values_has_a_name():
    """A program that keeps a check (``history.ValueCheck``) can be saved."""
    assert function_named("check.unit") is not None                     # it imports every module with checks
    modules = [module for name, module in sys.modules.items() if name.startswith("ptcore._ops.")]
    found = {f for module in modules for f in vars(module).values() if type(f) is ValueCheck}
    assert len({f.__name__ for f in found}) == len(found) >= 10
    for check in found:
        name = name_of(check)
        assert name == f"check.{check.__name__.removeprefix('check_')}" and function_named(name) is check


def test_what_has_no_text():
    for function, value in ((test_nan, 1), (pt.add, object())):
        graph = Graph()
        graph.output(graph.call_function(function, (graph.placeholder("x"), value)))
        with pytest.raises(CorruptFileError, match="has no name in the text form"):
            to_text(graph)


BODIES = ["return %y", "%y = call \"row.nosuch\" (%x)\n  return %y", "return %x }\nmore",
          "%y = call \"inplace.sum\" (%x)\n  return %y", "%y = call \"os.system\" (%x)\n  return %y", "return (%x)",
          "%x = call \"row.add\" (%x, 1)\n  return %x", "return %x\n  return %x", "return dtype \"float33\"",
          "return device \"warp\"", "return complex (1, 2)", "return {[1]: 2}", "return {1: 2, 1: 3}",
          "return \"a\\q\"", f"return {'(' * 999}", f"return {'9' * 9999}", "return layout \"sparse\"",
          "%y = call \"row.add\" (%x, 1) graph { return () }\n  return %y", "%y = walk \"row.add\" (%x)\n  return %y"]
BAD = ["", "graph {", "graph {}\n", "grap {\n  return 1\n}\n", "graph {\n  %x = placeholder \"x\"\n  %x = placeholder "
       "\"x\"\n  return %x\n}\n", *[f"graph {{\n  %x = placeholder \"x\"\n  {body}\n}}\n" for body in BODIES]]


@pytest.mark.parametrize("text", BAD)
def test_damaged_texts(text):
    with pytest.raises(CorruptFileError):
        parse(text)


def test_changed_texts_are_refused_or_read():
    text = to_text(make_fx(lambda x: (x[1:] * 2.5).softmax(0).to(pt.float64))(pt.ones(4)).graph)
    draw = random.Random(0)
    read = 0
    for _ in range(3000):
        at = draw.randrange(len(text))
        kind = draw.randrange(3)
        new = text[:at] + (draw.choice("%()[]{},:=. \"\n0aZ") if kind else "") + text[at + (kind < 2):]
        try:
            parse(new)
            read += 1
        except CorruptFileError:
            pass
    assert 0 < read < 1500


def test_numbers_of_subclasses():
    """As NumPy's float64, which writes its name into its repr."""
    graph = Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_function(pt.mul, (x, np.float64(0.1))), np.float64("-inf"), np.float64(-0.0)))
    text = to_text(graph)
    made, low, zero = parse(text).output_node().args[0]
    assert (made.args[1], low, math.copysign(1, zero)) == (0.1, -math.inf, -1) and type(low) is float
