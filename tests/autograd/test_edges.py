"""Gradient edges in place of tensors, and what nodes tell: saved values, metadata, the context of a Function."""
import gc
import weakref

import numpy as np
import pytest

import ptcore as pt
from ptcore.autograd.graph import GradientEdge, get_gradient_edge, register_multi_grad_hook, saved_tensors_hooks


def values(*numbers):
    return pt.tensor(numbers, dtype=pt.float64, requires_grad=True)


def same(found, *expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b, rtol=1e-14)


def test_gradients_at_edges():
    x = values(1, 2, 3)
    y = x * 2
    z = (y * y).sum()
    inner, leaf, outer = [get_gradient_edge(t) for t in (y, x, z)]
    assert inner == GradientEdge(y.grad_fn, 0, None) and leaf.node == y.grad_fn.next_functions[0][0]
    same(pt.autograd.grad(z, (inner, leaf, x), retain_graph=True), [4, 8, 12], [8, 16, 24], [8, 16, 24])
    same(pt.autograd.grad(outer, x, retain_graph=True), [8, 16, 24])
    same(pt.autograd.grad(inner, x, pt.ones(3, dtype=pt.float64), retain_graph=True), [2, 2, 2])
    made = GradientEdge(y.grad_fn, 0)
    same(pt.autograd.grad(made, x, pt.tensor([1., 2, 3], dtype=pt.float64), retain_graph=True), [2, 4, 6])
    second, = pt.autograd.grad(pt.autograd.grad(z, inner, create_graph=True)[0].sum(), x, retain_graph=True)
    same([second], [4, 4, 4])
    pt.autograd.backward(outer, inputs=[leaf])
    same([x.grad], [8, 16, 24])


def test_edges_of_several_outputs():
    x = values(3, 1, 2)
    a, b = x.topk(2)[0], x.unbind(0)[1]
    same(pt.autograd.grad(b * 5, [get_gradient_edge(b)], retain_graph=True), 5)
    made = GradientEdge(b.grad_fn, 1)
    same(pt.autograd.grad(made, x), [0, 1, 0])
    same(pt.autograd.grad(a.sum(), get_gradient_edge(a)), [1, 1])


def test_an_edge_keeps_no_tensor():
    x = values(1, 2)
    y = x * 2
    gone = weakref.ref(y)
    edge = get_gradient_edge(y)
    z = y.sum()
    del y
    gc.collect()
    assert gone() is None
    same(pt.autograd.grad(z, edge), [1, 1])


def test_hooks_on_several_edges():
    x, seen = values(1, 2), []
    y = x * 2
    with register_multi_grad_hook([get_gradient_edge(y), get_gradient_edge(x)], seen.append):
        (y * y).sum().backward()
    same(seen[0], [4, 8], [8, 16])


def test_wrong_edges():
    x = values(1, 2)
    y = x * 2
    for call, error, text in (
            (lambda: get_gradient_edge(pt.ones(2)), RuntimeError, "does not require gradients"),
            (lambda: get_gradient_edge(3), TypeError, "must be a Tensor, got int"),
            (lambda: pt.autograd.grad(y.sum(), [3]), TypeError, "must hold Tensors or GradientEdges, got int"),
            (lambda: pt.autograd.grad(get_gradient_edge(y), x), RuntimeError, "only for scalar outputs"),
            (lambda: pt.autograd.grad(get_gradient_edge(y), x, pt.ones(3)), RuntimeError, r"must have that shape"),
            (lambda: pt.autograd.grad(y.sum(), GradientEdge(y.grad_fn, 1)), RuntimeError, "has 1 outputs"),
            (lambda: pt.autograd.grad(y.sum(), GradientEdge("node", 0)), TypeError, "must be a Node, got str")):
        with pytest.raises(error, match=text):
            call()


# -- what a node saves ---------------------------------------------------------------------------------

def test_saved_values_of_rows():
    x, y = values(1, 2), values(3, 4)
    node = (x * y).grad_fn
    assert node._saved_self is x and node._saved_other is y and node._saved_input is x
    assert {"_saved_self", "_saved_other", "_raw_saved_self"} <= set(dir(node))
    out = x.exp()
    same([out.grad_fn._saved_result], np.exp([1, 2]))
    assert out.grad_fn._saved_result.grad_fn is out.grad_fn
    assert x.reshape(1, 2).sum(1).grad_fn._saved_dim == (1,)
    assert pt.cat([x, y]).grad_fn._saved_dim == 0
    assert pt.nn.functional.softmax(x, 0).grad_fn._saved_dim == 0
    with pytest.raises(AttributeError, match="_saved_foo"):
        _ = node._saved_foo
    with pytest.raises(AttributeError):
        _ = node.foo
    assert not hasattr(node, "__array__")


def test_saved_values_are_checked():
    x = values(1, 2)
    y = x * 1
    z = y * y
    y.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        _ = z.grad_fn._saved_self
    z = x * x
    z.sum().backward()
    with pytest.raises(RuntimeError, match="freed"):
        _ = z.grad_fn._saved_self


def test_hooks_of_one_saved_tensor():
    x = values(1, 2)
    y = x * x
    assert y.grad_fn._raw_saved_self.unpack() is x
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t * 2, lambda t: t / 4)
    same([y.grad_fn._saved_self], [0.5, 1])
    y.sum().backward()
    same([x.grad], [1.5, 3])
    z = x.exp()
    z.grad_fn._raw_saved_result.register_hooks(lambda t: t.numpy().copy(), lambda a: pt.from_numpy(a) * 2)
    same(pt.autograd.grad(z.sum(), x), 2 * np.exp([1, 2]))
    y = x * x
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: 3)
    with pytest.raises(RuntimeError, match="hooks already"):
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(TypeError, match="must return a Tensor, got int"):
        y.sum().backward()
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x * x
    with pytest.raises(RuntimeError, match="hooks already"):
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    y = x * x
    with pytest.raises(RuntimeError, match="modified the tensor"):
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t.detach().zero_(), lambda t: t)


def test_the_context_of_a_function():
    class Double(pt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.factor = 2
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2
    x = values(1, 2)
    node = Double.apply(x).grad_fn
    assert node.saved_tensors[0] is x and node.factor == 2 and node.needs_input_grad == (True,)
    assert not hasattr((x * 2).grad_fn, "saved_tensors")


def test_metadata():
    x = values(1, 2)
    y = x * 2
    y.grad_fn.metadata["note"] = 3
    z = y + 1
    assert z.grad_fn.next_functions[0][0].metadata == {"note": 3} and z.grad_fn.metadata == {}
    end = y.grad_fn.next_functions[0][0]
    end.metadata["leaf"] = 4
    del end
    assert y.grad_fn.next_functions[0][0].metadata == {"leaf": 4}
    z.sum().backward()
    same([x.grad], [2, 2])


def test_materialized_gradients_are_differentiated_again():
    x, a = values(2), values(3)
    slope, = pt.autograd.grad(a * x, x, create_graph=True)
    for _ in range(3):
        slope, = pt.autograd.grad(slope, x, create_graph=True, materialize_grads=True)
        same([slope], [0])


def test_gradcheck_sees_functions_that_hook_their_results():
    def hooked(x, wrong=0):
        y = x * x
        y.register_hook(lambda g: g + wrong)
        return y
    x = values(1, 2)
    for fast in (False, True):
        assert pt.autograd.gradcheck(hooked, (x,), fast_mode=fast)
        with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0 with respect to input 0"):
            pt.autograd.gradcheck(lambda x: hooked(x, 0.01), (x,), fast_mode=fast)
