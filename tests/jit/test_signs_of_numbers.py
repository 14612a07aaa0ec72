"""Compiled functions of numbers that are equal and not the same: signs of zero, types, NaN, wherever they come from."""
import math

import numpy as np
import pytest

import ptcore as pt
from ptcore import nn
from ptcore.fx import Graph, GraphModule
from ptcore.jit._backend import compile_graph

FLOATS = [(0.0, -0.0, 0.0), (-0.0, 0.0, -0.0), (2.0, 3.0, 0.0, -0.0, 0.0, 5.0), (2.0, -0.0, math.nan, 0.0, math.nan)]
# At most eight of each: a function that was captured for as many runs eagerly from then on.
OTHERS = [(1, True, 1.0, 1), (2, 3, 1.0, 1, True), (1, 0, False, 0.0, -0.0),
          (0j, complex(-0.0, 0.0), complex(0.0, -0.0), 0j, complex(1.0, -0.0), complex(1.0, 0.0), complex(-0.0, 1.0))]


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 1.0

    def forward(self, f, x):
        return f(x, self.n)


GLOBAL = 1.0




def calls_of(way, f, compiled):
    """A function of a tensor and a number, where the number comes to the compiled function in a given way."""
    if way == "argument":
        return compiled(f)
    if way == "keyword":
        g = compiled(lambda x, *, n: f(x, n))
        return lambda x, n: g(x, n=n)
    if way in ("list", "tuple", "dict"):
        g = compiled(lambda x, held: f(x, held[0]))
        make = {"list": lambda n: [n], "tuple": lambda n: (n,), "dict": lambda n: {0: n}}[way]
        return lambda x, n: g(x, make(n))
    if way == "cell":
        held = 1.0

        def call(x):
            return f(x, held)
        g = compiled(call)

        def with_cell(x, n):
            nonlocal held
            held = n
            return g(x)
        return with_cell
    if way == "global":
        def call_global(x):
            return f(x, GLOBAL)
        g = compiled(call_global)
        return lambda x, n: (globals().__setitem__("GLOBAL", n), g(x))[1]
    module = Holder()
    g = compiled(module)
    return lambda x, n: (setattr(module, "n", n), g(f, x))[1]


def bits(t):
    array = t.detach().numpy()
    return array.dtype, [(str(v.real), str(v.imag)) if array.dtype.kind == "c" else str(v) for v in array.tolist()]


@pytest.mark.parametrize("way", ["argument", "keyword", "list", "tuple", "dict", "cell", "global", "module"])
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("graded", [False, True])
def test_division(way, dynamic, graded):
    for numbers in FLOATS:
        f = calls_of(way, lambda x, n: x / n, lambda f: pt.compile(f, dynamic=dynamic))
        for n in numbers:
            x = pt.tensor([1.0, -2.0], requires_grad=graded)
            found = f(x, n)
            with np.errstate(all="ignore"):
                want = np.array([1, -2], np.float32) / np.float32(n)
                slope = np.float32(1) / np.float32(n)
            assert bits(found)[1] == [str(float(v)) for v in want]
            if graded:
                (g,) = pt.autograd.grad(found.sum(), x)
                assert bits(g)[1] == [str(float(slope))] * 2


@pytest.mark.parametrize("way", ["argument", "list", "dict", "cell", "module"])
@pytest.mark.parametrize("graded", [False, True])
def test_types_and_parts(way, graded):
    for numbers in OTHERS:
        f = calls_of(way, lambda x, n: (x * 2, pt.full((2,), n)), pt.compile)
        for n in numbers:
            _, found = f(pt.ones(2, requires_grad=graded), n)
            want = np.full(2, n)
            assert bits(found)[1] == bits(pt.from_numpy(want))[1]
            assert found.dtype is pt.full((2,), n).dtype
            assert found.numpy().dtype.kind == want.dtype.kind


@pytest.mark.parametrize("graded", [False, True])
def test_numbers_of_graphs(graded):
    """Graphs of rows keep plans and pairs of plans for each number, whose place among the arguments counts."""
    graph = Graph()
    x, n = graph.placeholder("x"), graph.placeholder("n")
    graph.output((graph.call_function(pt.div, (x, n)), graph.call_function(pt.full, ((2,), n))))
    g = compile_graph(GraphModule(nn.Module(), graph))
    x = pt.tensor([1.0, -2.0], requires_grad=graded)
    for n in (2.0, 2, 1, True, 1.0, 0.0, -0.0, 0, False, math.nan, math.nan):
        for a, b in zip(g(x, n), (x / n, pt.full((2,), n)), strict=True):
            assert bits(a) == bits(b)
            assert a.requires_grad is b.requires_grad


@pytest.mark.parametrize("graded", [False, True])
def test_places_of_numbers(graded):
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    graph.output((graph.call_function(pt.sub, (x, y)),))
    g = compile_graph(GraphModule(nn.Module(), graph))
    x = pt.tensor([1.0, -2.0], requires_grad=graded)
    for _ in range(2):
        assert g(x, 3.0)[0].tolist() == [-2.0, -5.0]
        assert g(3.0, x)[0].tolist() == [2.0, 5.0]
