"""Checkpoints inside of each other, with gradients, hooks and compiled functions inside and around: the gradients are
those of the same program without a checkpoint."""
import itertools
import warnings

import numpy as np
import pytest

import ptcore as pt
from ptcore.autograd.graph import saved_tensors_hooks
from ptcore.utils.checkpoint import CheckpointError, checkpoint, set_checkpoint_early_stop

pytestmark = pytest.mark.core

KINDS = {"plain": None, "reentrant": True, "other": False}


def at(kind, f):
    return f if kind is None else lambda *args: checkpoint(f, *args, use_reentrant=kind)


def leaf():
    return pt.tensor([0.5, 1.5], requires_grad=True, dtype=pt.float64)


def first(f):
    x = leaf()
    f(x).sum().backward()
    return x.grad.numpy()


def second(f):
    x = leaf()
    (g,) = pt.autograd.grad(f(x).sum(), x, create_graph=True)
    return pt.autograd.grad((g * x).sum(), x)[0].numpy()


def smooth(x):
    return (x.sin() * x).exp()


def gradient(x):
    return pt.autograd.grad((x ** 3).sum(), x, create_graph=True)[0]


def gradient_of_a_result(x):
    y = x * 2
    (g,) = pt.autograd.grad((y ** 3).sum(), y, create_graph=True)
    return g.sin() * y


def backward_inside(x):
    w = (x.detach() * 2).requires_grad_()
    (w ** 3).sum().backward()
    return x * w.grad.exp()


def transformed(x):
    return pt.func.grad(lambda y: (y ** 3).sum())(x) * x


def hessian_inside(x):
    return pt.func.hessian(lambda y: (y ** 4).sum())(x).sum(0) * x


def batched_gradients(x):
    return pt.vmap(pt.func.grad(lambda y: (y * x).sum() ** 3))(x.diag()).sum(0)


def pushed(x):
    return pt.func.jvp(pt.func.grad(lambda y: (y ** 4).sum()), (x,), (x.cos(),))[1]


def hooked(f):
    def run(x):
        with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            return f(x)
    return run


@pytest.mark.filterwarnings("ignore:checkpoint. None of the inputs:UserWarning")      # of one inside of the other
@pytest.mark.parametrize("kinds", [*itertools.product(KINDS, repeat=3)], ids="-".join)
def test_inside_of_each_other(kinds):
    def nested(outer, middle, inner):
        deep = at(inner, smooth)
        mid = at(middle, lambda x: deep(x) * deep(x * 0.5).cos())
        return at(outer, lambda x: mid(x) + mid(x.cos()))

    kinds = [KINDS[kind] for kind in kinds]
    plain, f = nested(None, None, None), nested(*kinds)
    np.testing.assert_allclose(first(f), first(plain), rtol=1e-12)
    np.testing.assert_allclose(first(hooked(f)), first(plain), rtol=1e-12)
    if True in kinds:
        with pytest.raises(RuntimeError, match="use_reentrant=False"):
            second(f)
    else:
        np.testing.assert_allclose(second(f), second(plain), rtol=1e-12)
        np.testing.assert_allclose(second(hooked(f)), second(plain), rtol=1e-12)


@pytest.mark.parametrize("f", [gradient, gradient_of_a_result, backward_inside, transformed, hessian_inside,
                               batched_gradients, pushed, hooked(smooth)],
                         ids=["gradient", "gradient of a result", "backward", "func.grad", "hessian", "vmap(grad)",
                              "jvp(grad)", "hooks"])
@pytest.mark.parametrize("early_stop", [True, False])
def test_what_is_inside(f, early_stop):
    def once(x):
        return checkpoint(f, x, use_reentrant=False, early_stop=early_stop)

    def twice(x):
        return checkpoint(lambda x: once(x) * x, x, use_reentrant=False, early_stop=early_stop)

    for got, want in ((once, f), (twice, lambda x: f(x) * x)):
        np.testing.assert_allclose(first(got), first(want), rtol=1e-12)
        np.testing.assert_allclose(second(got), second(want), rtol=1e-12)


def test_reentrant_with_a_transformed_function_inside():
    np.testing.assert_allclose(first(at(True, transformed)), first(transformed), rtol=1e-12)


@pytest.mark.parametrize("backward", [lambda y, x: y.backward(inputs=[x]), lambda y, x: pt.autograd.grad(y, x)],
                         ids=["inputs", "grad"])
def test_reentrant_refuses_single_inputs(backward):
    # the backward inside would give gradients to all leaves: here to w
    w, x = leaf(), leaf()
    y = checkpoint(lambda x: x * w, x, use_reentrant=True).sum()
    with pytest.raises(RuntimeError, match="use_reentrant=False"):
        backward(y, x)
    assert w.grad is None and x.grad is None


def test_reentrant_refuses_a_second_order():
    x = leaf()
    checkpoint(smooth, x, use_reentrant=True).sum().backward(create_graph=True)
    np.testing.assert_allclose(x.grad.detach().numpy(), first(smooth), rtol=1e-12)
    with pytest.raises(RuntimeError, match="does not require grad"):
        x.grad.sum().backward()


@pytest.mark.parametrize("kind", [True, False])
def test_compiled_and_traced(kind):
    compiled, traced = pt.compile(smooth), pt.jit.trace(smooth, (pt.ones(2, dtype=pt.float64),))
    for _ in range(2):                  # the first call is captured
        np.testing.assert_allclose(first(at(kind, compiled)), first(smooth), rtol=1e-12)
        np.testing.assert_allclose(first(at(kind, traced)), first(smooth), rtol=1e-12)
    if not kind:
        np.testing.assert_allclose(second(at(kind, compiled)), second(smooth), rtol=1e-12)
    outside = pt.compile(lambda x: at(kind, smooth)(x) * 2)
    np.testing.assert_allclose(first(outside), 2 * first(smooth), rtol=1e-12)


def test_hooks_see_a_compiled_function_alike():
    """What is saved does not depend on whether a call was captured."""
    f, seen = pt.compile(lambda x: (x.sin() * x).exp() + x.cos()), []
    for _ in range(3):
        saved = []
        with saved_tensors_hooks(lambda t, saved=saved: saved.append(t) or len(saved) - 1, saved.__getitem__):
            f(leaf()).sum().backward()
        seen.append(len(saved))
    assert seen[0] > 0 and len(set(seen)) == 1


def test_another_second_run_is_told():
    calls = []

    def other(x):
        calls.append(1)
        return x.sin().exp() if len(calls) == 1 else x * 2

    y = checkpoint(other, leaf(), use_reentrant=False)
    with pytest.raises(CheckpointError, match="different metadata"):
        y.sum().backward()


def test_inputs_without_gradients_warn():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        checkpoint(smooth, leaf().detach(), use_reentrant=True)
    assert ["None of the inputs have requires_grad=True" in str(w.message) for w in seen] == [True]


def written(x):
    y = x * 1
    z = y.sin()
    y.zero_()
    w = z.exp()
    v = w.sigmoid()
    w.mul_(0)
    return v * (x * x)


def written_before_a_gradient(x):
    y = x * 1
    z, v = y.sin(), y.tanh()
    y.zero_()
    (g,) = pt.autograd.grad(z.sum(), x, create_graph=True)
    return g * v


@pytest.mark.parametrize("early_stop", [True, False])
def test_the_second_run_writes_to_what_it_saved(early_stop):
    """PyTorch uses what the second run leaves in the memory, and gives other gradients."""
    x = leaf().detach().numpy()
    with set_checkpoint_early_stop(early_stop):
        s = 1 / (1 + np.exp(-np.exp(np.sin(x))))
        want = s * (1 - s) * np.exp(np.sin(x)) * np.cos(x) * x * x + s * 2 * x
        np.testing.assert_allclose(first(at(False, written)), want, rtol=1e-12)
        np.testing.assert_allclose(first(at(False, at(False, written))), want, rtol=1e-12)
        want = np.cos(x) / np.cosh(x) ** 2 - np.sin(x) * np.tanh(x)
        np.testing.assert_allclose(first(at(False, written_before_a_gradient)), want, rtol=1e-12)
        f = at(False, written)
        t, e = leaf(), 1e-6
        (g,) = pt.autograd.grad(f(t).sum(), t, create_graph=True)
        np.testing.assert_allclose(pt.autograd.grad(g.sum(), t)[0].numpy(),
                                   (slope(written, x + e) - slope(written, x - e)) / (2 * e), rtol=1e-6)


def slope(f, x):
    """The gradient of the sum of a function, by a checkpoint."""
    x = pt.tensor(x, requires_grad=True)
    return pt.autograd.grad(at(False, f)(x).sum(), x)[0].numpy()
