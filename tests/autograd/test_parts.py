"""The work of a backward through the parts of a tensor grows with the tensor, not with its square."""
import pytest
from interpreters import INPLACE, mapped

import ptcore as pt
import ptcore._ops as ops
from ptcore._interpret import Interpreter
from ptcore._ops.calling import run

pytestmark = pytest.mark.core


class Count(Interpreter):
    """Adds up the elements of all that ops make; views make none."""

    def __init__(self):
        self.elements = 0

    def call(self, op, args, out, variant):
        if ops.row(op).kind == "composite":
            return NotImplemented
        result = run(op, args, variant == INPLACE)
        if ops.row(op).kind != "view":
            mapped(self.add, result)
        return result

    def add(self, x):
        self.elements += x.numel() if isinstance(x, pt.Tensor) else 0
        return x


def elements(function, n, create_graph=False):
    """Of a backward from what the function makes of n rows of 8."""
    x = pt.rand(n, 8, dtype=pt.float64, requires_grad=True)
    y = function(x)
    if create_graph:
        g, = pt.autograd.grad((y * y).sum(), x, create_graph=True)
        y = (g * g).sum()
    count = Count()
    with count:
        y.sum().backward()
    return count.elements


CUTS = {
    "unbind": lambda x: x.unbind(0), "iteration": list, "split": lambda x: x.split(1),
    "chunk": lambda x: x.chunk(len(x)),
    "split_sizes": lambda x: x.split([1] * len(x)), "tensor_split": lambda x: x.tensor_split(len(x)),
    "tensor_split_at": lambda x: x.tensor_split(list(range(1, len(x)))), "vsplit": lambda x: x.vsplit(len(x)),
    "hsplit": lambda x: x.t().hsplit(len(x)),
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", CUTS)
def test_backward_is_linear(name, create_graph):
    def function(x):
        return pt.stack([p * 2 for p in CUTS[name](x)])

    small, large = [elements(function, n, create_graph) for n in (50, 200)]
    assert 8 * 50 < small < 30 * 8 * 50
    assert large < 4.2 * small


def test_a_list_of_many_tensors_is_linear():
    """cat's own backward, of two orders."""
    rows = pt.rand(1, 8, dtype=pt.float64, requires_grad=True)
    counts = []
    for n in (50, 200):
        g, = pt.autograd.grad((pt.cat([rows * 1] * n) ** 2).sum(), rows, create_graph=True)
        count = Count()
        with count:
            g.sum().backward()
        counts.append(count.elements)
    assert counts[1] < 4.2 * counts[0]


def test_recurrent_steps_are_linear():
    """The steps written out, as a recorded backward has them."""
    module = pt.nn.GRU(2, 3).double()

    def work(n):
        x = pt.rand(n, 1, 2, dtype=pt.float64, requires_grad=True)
        g, = pt.autograd.grad((module(x)[0] ** 2).sum(), x, create_graph=True)
        count = Count()
        with count:
            (g * g).sum().backward()
        return count.elements

    small, large = work(20), work(80)
    assert large < 4.2 * small
