"""Errors of ``func`` name the user's own file and line; their classes are PyTorch's."""
import re

import pytest

import ptcore as pt
from ptcore.autograd import forward_ad
from ptcore.func import functional_call, grad, grad_and_value, jacfwd, jacrev, jvp, linearize, vjp, vmap

pytestmark = pytest.mark.core

X, ONE = pt.arange(12.).reshape(3, 4), pt.tensor(1.0)
KEPT = []
vmap(lambda x: KEPT.append(x) or x)(X)
LAYER = pt.nn.Linear(4, 2)


def branches(x):
    y = x * 2
    if y.sum() > 0:
        return y
    return -y


def loops(x):
    total = x
    while total.sum() < 3:
        total = total + 1
    return total


def writes(x):
    room = pt.zeros(4)
    room[1:3] = x[1:3]
    return room


def adds(x):
    return pt.zeros(4).add_(x)


def fills(x):
    room = pt.ones(4)
    return room.copy_(
        x)


def of_statistics(x):
    return pt.nn.functional.batch_norm(x.reshape(2, 2), pt.zeros(2), pt.ones(2), training=True)


def draws(x):
    return x + pt.rand(
        4)


def leaks(x):
    return x + KEPT[0]


def no_scalar(x):
    return x.sin()


# What is called, in which function of this file the line is, how many lines below its head, and the class of the error.
INSIDE = {
    "branch": (lambda: vmap(branches)(X), branches, 2, RuntimeError),
    "loop": (lambda: vmap(loops)(X), loops, 2, RuntimeError),
    "branch in grad": (lambda: vmap(grad(lambda x: branches(x).sum()))(X), branches, 2, RuntimeError),
    "branch in a nested map": (lambda: vmap(vmap(branches))(X.reshape(3, 2, 2)), branches, 2, RuntimeError),
    "slice": (lambda: vmap(writes)(X), writes, 2, RuntimeError),
    "in place": (lambda: vmap(adds)(X), adds, 1, RuntimeError),
    "copy_": (lambda: vmap(fills)(X), fills, 2, RuntimeError),
    "running statistics": (lambda: vmap(of_statistics)(X), of_statistics, 1, RuntimeError),
    "random": (lambda: vmap(draws)(X), draws, 1, RuntimeError),
    "leaked": (lambda: leaks(X), leaks, 1, RuntimeError),
    "leaked into another": (lambda: vmap(leaks)(X), leaks, 1, RuntimeError),
}
# What is wrong of a call: the line is that of the lambda.
CALLS = {
    "in_dims": (lambda: vmap(pt.add, in_dims=(0,))(X, X), ValueError),
    "in_dims of a number": (lambda: vmap(pt.add)(X, 2.0), ValueError),
    "in_dims out of range": (lambda: vmap(pt.sin, in_dims=3)(X), ValueError),
    "sizes": (lambda: vmap(pt.add)(X, X[:2]), ValueError),
    "in_dims of None": (lambda: vmap(pt.sin, in_dims=None)(X), ValueError),
    "out_dims": (lambda: vmap(lambda x: (x, x), out_dims=(0, 0, 0))(X), ValueError),
    "no tensor": (lambda: vmap(lambda x: 3)(X), ValueError),
    "out=": (lambda: vmap(lambda x: pt.add(x, 1, out=X))(X), RuntimeError),
    "leaked": (lambda: KEPT[0].sin(), RuntimeError),
    "leaked item": (lambda: KEPT[0].item(), RuntimeError),
    "leaked numpy": (lambda: KEPT[0].numpy(), RuntimeError),
    "tangent of another shape": (lambda: jvp(pt.sin, (X,), (X[0],)), RuntimeError),
    "tangent of another dtype": (lambda: jvp(pt.sin, (X,), (X.double(),)), RuntimeError),
    "tangent of ints": (lambda: jvp(pt.sin, (X,), (X.long(),)), ValueError),
    "tangent of forward_ad": (lambda: dual(X, X[0]), RuntimeError),
    "tangent of linearize": (lambda: linearize(pt.sin, X)[1](X[0]), RuntimeError),
    "tangents of another structure": (lambda: jvp(pt.sin, (X,), (X, X)), RuntimeError),
    "cotangent of another shape": (lambda: vjp(pt.sin, X)[1](X[0]), RuntimeError),
    "cotangents of another structure": (lambda: vjp(pt.sin, X)[1]((X, X)), RuntimeError),
    "no scalar": (lambda: grad(no_scalar)(X), RuntimeError),
    "no scalar in vmap": (lambda: vmap(grad(no_scalar))(X), RuntimeError),
    "no pair": (lambda: grad_and_value(lambda x: x.sum(), has_aux=True)(X), RuntimeError),
    "no pair of vjp": (lambda: vjp(lambda x: x.sum(), X, has_aux=True), RuntimeError),
    "argnums": (lambda: grad(lambda x: x.sum(), argnums=2)(X), RuntimeError),
    "argnums of jacrev": (lambda: jacrev(pt.sin, argnums=(0, 0))(X), RuntimeError),
    "complex": (lambda: jacfwd(pt.sin)(X + 0j), RuntimeError),
    "ints": (lambda: grad(lambda x: x.sum())(X.long()), RuntimeError),
}


def dual(x, tangent):
    with forward_ad.dual_level():
        return forward_ad.make_dual(x, tangent)


def line_of(error):
    """The last (file, line) that a message names."""
    return re.findall(r'File "(.*)", line (\d+), in ', str(error))[-1]


@pytest.mark.parametrize("name", INSIDE)
def test_inside(name):
    call, function, below, error = INSIDE[name]
    with pytest.raises(error) as caught:
        call()
    code = function.__code__
    assert line_of(caught.value) == (__file__, str(code.co_firstlineno + below))
    assert str(caught.value).count("File ") == 1


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    call, error = CALLS[name]
    with pytest.raises(error) as caught:
        call()
    function = dual if "forward_ad" in name else call
    below = 2 if "forward_ad" in name else 0
    assert line_of(caught.value) == (__file__, str(function.__code__.co_firstlineno + below))
    assert str(caught.value).count("File ") == 1
    assert str(caught.value).endswith(source_of(function, below))


def source_of(function, below):
    with open(__file__) as file:
        return file.read().split("\n")[function.__code__.co_firstlineno - 1 + below].strip()


def test_modules():
    """A branch in a module of the package is the user's line that calls it."""
    with pytest.raises(RuntimeError) as caught:
        vmap(lambda t: pt.nn.AdaptiveLogSoftmaxWithLoss(4, 10, [3])(X[:2], t))(pt.zeros(3, 2, dtype=pt.int64))
    assert line_of(caught.value)[0] == __file__
    assert functional_call(LAYER, {}, (X,)).shape == (3, 2)
