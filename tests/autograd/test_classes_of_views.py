"""Tensors that a class is given: ``as_subclass``, constructors that take a tensor, results of classes. Each shows the
memory of another tensor, so it is a view of that: derivatives go through it, and writes to one are seen by both.

The oracle is ``y[...]``, and derivatives in closed form.
"""
import gc
import itertools

import numpy as np
import pytest

import ptcore as pt
from ptcore.func import functionalize, grad, hessian, jacfwd, jacrev, vmap

pytestmark = pytest.mark.core
X = np.array([1.0, -2.0, 3.0])


class Plain(pt.Tensor):
    pass


class Initialised(pt.Tensor):
    def __init__(self, data):
        super().__init__()
        self.name = "name"


MAKERS = {
    "as_subclass": lambda y: y.as_subclass(Plain), "as_subclass of Tensor": lambda y: y.as_subclass(pt.Tensor),
    "there and back": lambda y: y.as_subclass(Plain).as_subclass(pt.Tensor), "Plain": Plain,
    "Initialised": Initialised, "Tensor": pt.Tensor, "DoubleTensor": pt.DoubleTensor,
    "new": lambda y: y.new(y),
    "one of a tuple": lambda y: pt.atleast_1d(y, pt.zeros(1).as_subclass(Plain))[0]}
ORIGINS = {"leaf": lambda x: x, "result": lambda x: x * 2, "constant": lambda x: pt.zeros_like(x),
           "view": lambda x: (x * 2).view(1, 3)[0], "view of a constant": lambda x: pt.zeros(2, 3, dtype=x.dtype)[1]}
WRITES = {"r": lambda x, y, r: r.mul_(x * 1.5), "y": lambda x, y, r: y.mul_(x * 1.5), "r+": lambda x, y, r: r.add_(x),
          "y+": lambda x, y, r: y.add_(x), "r[0]": lambda x, y, r: r.__setitem__(0, x[1]),
          "zero": lambda x, y, r: r.zero_()}


def outcome(make, origin, writes):
    """(values, gradient) of a program, or what it raises."""
    x = pt.tensor(X, requires_grad=True)
    try:
        y = ORIGINS[origin](x)
        r = make(y)
        for name in writes:
            WRITES[name](x, y, r)
        z = (y * 3).sum() + (r * r * 5).sum()
        g = pt.autograd.grad(z, x, allow_unused=True)[0] if z.requires_grad else None
    except RuntimeError as e:
        return type(e), str(e).partition(":")[2][:40]
    return y.tolist(), r.tolist(), y.requires_grad, r.requires_grad, r.is_leaf, None if g is None else g.tolist()


@pytest.mark.parametrize("maker", MAKERS)
def test_as_views(maker):
    for origin in ORIGINS:
        for n in range(3):
            for writes in itertools.product(WRITES, repeat=n):
                want = outcome(lambda y: y[...], origin, writes)
                assert outcome(MAKERS[maker], origin, writes) == want, (origin, writes)


def test_an_argument_that_is_returned():
    x = pt.tensor(X, requires_grad=True)
    y = x * 2
    r = y.mul_(pt.ones(1, dtype=pt.float64).as_subclass(Plain))
    assert type(y) is pt.Tensor and type(r) is Plain
    r.mul_(x)
    (y * 3 + r * 5).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 32 * X)


@pytest.mark.parametrize("order", ["rf", "fr", "batch", "functionalize", "plain"])
def test_writes_to_stand_ins_of_a_class(order):
    """Of ``sum(2 * x ** 2)``, written in place, through a view and by an index. The class is asked before."""
    def product(x):
        z = x.as_subclass(Plain) * 2
        z.mul_(x)
        return z.sum()

    def through_a_view(x):
        z = x.as_subclass(Plain) * 2
        z[...].mul_(x)
        return z.sum()

    def at_an_index(x):
        z = x.as_subclass(Plain) * 2
        z[:] = z.clone() * x
        return z.sum()

    def added(x):
        z = pt.zeros_like(x).as_subclass(Plain)
        z.add_(x).mul_(2).mul_(x)
        return z.sum()
    x = pt.tensor(X)
    for f in (product, through_a_view, at_an_index, added):
        if order in ("rf", "fr"):
            got = (jacrev(jacfwd(f)) if order == "rf" else jacfwd(grad(f)))(x)
            np.testing.assert_allclose(got.numpy(), 4 * np.eye(3), err_msg=f.__name__)
            continue
        got = {"batch": lambda f=f: vmap(grad(f))(x.expand(2, 3).clone())[1], "plain": lambda f=f: grad(f)(x),
               "functionalize": lambda f=f: functionalize(grad(f))(x)}[order]()
        np.testing.assert_allclose(got.numpy(), 4 * X, err_msg=f.__name__)


@pytest.mark.parametrize("maker", MAKERS)
def test_derivatives(maker):
    """Of ``sum(r ** 3)`` where r shows x, and of a write to r that y has to see: first and second order."""
    make = MAKERS[maker]

    def f(x):
        return (make(x) ** 3).sum()

    def written(x):
        y = x * 2
        make(y).mul_(x)
        return y.sum()
    x = pt.tensor(X)
    for g, first, second in ((f, 3 * X ** 2, 6 * X), (written, 4 * X, np.full(3, 4.0))):
        for d in (grad(g), jacrev(g), jacfwd(g), functionalize(grad(g)), grad(functionalize(g))):
            np.testing.assert_allclose(d(x).numpy(), first)
        np.testing.assert_allclose(vmap(grad(g))(x.expand(2, 3).clone()).numpy(), np.stack([first] * 2))
        np.testing.assert_allclose(hessian(g)(x).numpy(), np.diag(second))


def test_hooks_and_kept_gradients_are_apart():
    x = pt.tensor(X, requires_grad=True)
    y = x * 2
    r, seen = y.as_subclass(Plain), []
    y.retain_grad()
    r.retain_grad()
    r.register_hook(lambda g: seen.append(g.tolist()))
    (y * 3 + r * 5).sum().backward()
    assert y.grad.tolist() == [8] * 3 and r.grad.tolist() == [5] * 3 and seen == [[5] * 3] and type(x.grad) is pt.Tensor


def test_classes_and_layouts_stay():
    y = pt.zeros(4, 3).t()[::2]
    for make in (Plain, lambda y: y.as_subclass(Plain), Initialised):
        r = make(y)
        assert isinstance(r, pt.Tensor) and type(r) is not pt.Tensor and r.stride() == y.stride() and r.shape == y.shape
        assert r.data_ptr() == y.data_ptr() and r._base is y._base
        r.name = r                          # a circle through the view's attributes
        del r
    gc.collect()
    with pt.no_grad():
        r = pt.ones(2, requires_grad=True).as_subclass(Plain)
    assert r.requires_grad and r.is_leaf


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("order", [o for n in (2, 3) for o in itertools.product(["y", "v", "wv", "wy"], repeat=n)])
def test_retain_grad_follows_views_that_are_written_to(order, whole):
    """``.grad`` is the gradient of the last value, of the base and of its view, in any order of writes."""
    x = pt.tensor(X, requires_grad=True)
    y = x * 2
    v = y.view(3) if whole else y[:2]
    for step in order:
        {"y": y.retain_grad, "v": v.retain_grad, "wv": lambda: v.mul_(2), "wy": lambda: y.mul_(3)}[step]()
    (y.pow(2).sum() + (v * 5).sum()).backward()
    factor = np.full(3, 2.0 * 3 ** order.count("wy"))
    factor[:len(v)] *= 2 ** order.count("wv")
    five = np.where(np.arange(3) < len(v), 5.0, 0)
    np.testing.assert_allclose(x.grad.numpy(), factor * (2 * factor * X + five))
    if "y" in order:
        np.testing.assert_allclose(y.grad.numpy(), 2 * factor * X + five)
    if "v" in order:
        np.testing.assert_allclose(v.grad.numpy(), [5.0] * len(v))
    assert y.retains_grad == ("y" in order) and v.retains_grad == ("v" in order)
