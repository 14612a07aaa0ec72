"""Two tensors exchange what they hold: the objects stay, what the graph keeps prevents it."""
import gc
import weakref

import numpy as np
import pytest

import ptcore as pt
from ptcore import nn
from ptcore.utils import swap_tensors

pytestmark = pytest.mark.core

SHAPES = ((), (3,), (2, 3), (1, 2, 1, 2, 1), (1, 2, 1, 2, 1, 3), (2, 1, 1, 1, 1, 1, 2))


@pytest.mark.parametrize("one", SHAPES)
@pytest.mark.parametrize("two", SHAPES)
def test_values_of_all_ranks(one, two):
    a, b = np.random.default_rng(0).random(one), np.arange(np.prod(two, dtype=int)).reshape(two)
    x, y = pt.tensor(a), pt.tensor(b)
    for _ in range(3):
        swap_tensors(x, y)
        a, b = b, a
        assert x.shape == a.shape and y.shape == b.shape and x.stride() == pt.tensor(a).stride()
        np.testing.assert_array_equal(x.numpy(), a)
        np.testing.assert_array_equal((y * 2).numpy(), b * 2)
    del x
    gc.collect()
    np.testing.assert_array_equal(y.flatten().numpy(), b.ravel())


def test_classes_attributes_and_histories():
    x = pt.ones(2, requires_grad=True)
    y, p = x * 3, nn.Parameter(pt.zeros(1))
    p.note = [1]
    swap_tensors(y, p)
    assert type(y) is nn.Parameter and y.note == [1] and y.is_leaf
    assert type(p) is pt.Tensor and not hasattr(p, "note") and p.grad_fn is not None
    p.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3, 3])


def test_overrides_are_asked_by_the_class_of_now():
    asked = []

    class Asking(pt.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})
    a, b = pt.ones(2).as_subclass(Asking), pt.ones(3)
    swap_tensors(a, b)
    asked.clear()
    assert type(a + 1) is pt.Tensor and not asked
    assert type(b + 1) is Asking and asked


def refused(a, b, text):
    before = a.tolist(), b.tolist(), type(a), type(b)
    for pair in ((a, b), (b, a)):
        with pytest.raises(RuntimeError, match=text):
            swap_tensors(*pair)
    assert before == (a.tolist(), b.tolist(), type(a), type(b))


def test_values_in_lists_of_a_node_prevent_it():
    """More than four saved values stand in a list."""
    class Product(pt.autograd.Function):
        @staticmethod
        def forward(ctx, *args):
            ctx.save_for_backward(*args)
            return sum(args)

        @staticmethod
        def backward(ctx, g):
            return tuple(g * t for t in ctx.saved_tensors)
    leaves = [pt.ones(2, requires_grad=True) for _ in range(7)]
    result = Product.apply(*leaves)
    for leaf in leaves:
        refused(leaf, pt.zeros(3), "saved")
    del result
    swap_tensors(leaves[6], pt.zeros(3))


@pytest.mark.parametrize("count", [1, 2, 5])
def test_saved_values_prevent_it(count):
    leaves = [pt.ones(2, requires_grad=True) for _ in range(count)]
    loss = pt.ones(2)
    for leaf in leaves:
        loss = loss * leaf * leaf
    for leaf in leaves:
        refused(leaf, pt.zeros(3), "saved")
    loss.sum().backward()
    for leaf in leaves:
        leaf.grad = None
        swap_tensors(leaf, pt.zeros(3))


@pytest.mark.parametrize("count", [1, 3, 6])
def test_an_edge_to_the_old_leaf_raises(count):
    leaves = [pt.ones(2, requires_grad=True) for _ in range(count)]
    loss = pt.cat(leaves).sum()
    new = pt.zeros(3, requires_grad=True)
    swap_tensors(leaves[-1], new)
    with pytest.raises(RuntimeError, match="poisoned by swap_tensors"):
        loss.backward()
    (leaves[-1] * 2).sum().backward()
    np.testing.assert_array_equal(leaves[-1].grad.numpy(), [2, 2, 2])
    assert new.grad is None


def test_views_gradients_and_weak_references_prevent_it():
    x = pt.ones(4)
    view = x[1:]
    refused(x, pt.zeros(2), "view")
    p = pt.ones(2, requires_grad=True)
    p.grad = pt.ones(2)
    refused(p.grad, pt.zeros(2), "gradient")
    y = pt.ones(2)
    kept = weakref.ref(y)
    refused(y, pt.zeros(2), "weakref")
    del kept
    swap_tensors(y, view)       # a view itself takes its base along
    y += 1
    np.testing.assert_array_equal(x.numpy(), [1, 2, 2, 2])


def test_slots():
    class One(pt.Tensor):
        __slots__ = ("mark",)

    class Two(pt.Tensor):
        __slots__ = ("mark",)

    class Three(pt.Tensor):
        __slots__ = ("other",)
    a, b, c = pt.ones(1).as_subclass(One), pt.zeros(2).as_subclass(Two), pt.ones(3).as_subclass(Three)
    a.mark = 5
    swap_tensors(a, b)
    assert type(a) is Two and not hasattr(a, "mark") and b.mark == 5
    refused(a, c, "different slots")


def test_traced_tensors_are_refused():
    def f(x):
        swap_tensors(x, pt.ones(2))
        return x
    with pytest.raises(RuntimeError, match="traced or batched"):
        pt.func.vmap(f)(pt.ones(3, 2))


def test_the_collector_follows_what_was_exchanged():
    class Witness:
        pass
    a, b = pt.ones(1), pt.zeros(1)
    a.witness, a.me = Witness(), a
    gone = weakref.ref(a.witness)
    swap_tensors(a, b)
    assert b.me is a and gone() is not None
    b.me = b
    del a, b
    gc.collect()
    assert gone() is None


def test_a_load_walks_over_all_objects_once(monkeypatch):
    walks = []

    def noting(*objects, find=gc.get_referrers):
        walks.append(len(objects))
        return find(*objects)
    monkeypatch.setattr(gc, "get_referrers", noting)
    net = nn.Sequential(*[nn.Linear(2, 2) for _ in range(20)], nn.BatchNorm1d(2))
    state = {key: t.clone() + 1 for key, t in net.state_dict().items()}
    weights = list(net.parameters())
    pt.__future__.set_swap_module_params_on_conversion(True)
    try:
        net.load_state_dict(state)
    finally:
        pt.__future__.set_swap_module_params_on_conversion(False)
    assert len([n for n in walks if n == 45]) == 1 and len(walks) <= 3
    assert all(a is b and a.equal(state[key]) for a, (key, b) in zip(weights, net.named_parameters()))
