"""What a join keeps for its gradient: the sizes of its inputs, not their elements."""
import ast

import pytest

import ptcore as pt
from ptcore._ops.table import expr

pytestmark = pytest.mark.core


@pytest.mark.parametrize("join", [pt.cat, pt.stack, pt.hstack], ids=lambda f: f.__name__)
def test_inputs_may_be_written_to_afterwards(join):
    a = pt.ones(2, 3, requires_grad=True)
    part = a * 2
    joined = join([part, a])
    part.mul_(5)
    joined.sum().backward()
    assert a.grad.tolist() == [[3.0] * 3] * 2


def uses(text):
    function = ast.parse(text).body[0]
    return expr.function_uses(function, {"tensors", "dim", "g"})


def test_what_a_rule_uses():
    assert uses("def f(g, tensors):\n    return [t.shape for t in tensors]") == (set(), {"tensors"})
    assert uses("def f(g, tensors):\n    for t in tensors:\n        print(t.dtype)") == (set(), {"tensors"})
    assert uses("def f(g, tensors, s):\n    return [t.ndim for t, k in zip(tensors, s)]") == (set(), {"tensors"})
    assert uses("def f(g, tensors):\n    return [t.shape + t for t in tensors]")[0] == {"tensors"}
    assert uses("def f(g, tensors):\n    return tensors[0]")[0] == {"tensors"}
