"""Hooks of modules: forward, backward, their order and their handles."""

import copy

import numpy as np
import pytest

import ptcore as pt
from ptcore import nn
from ptcore.nn.modules import module as module_file

pytestmark = pytest.mark.core


class Scale(nn.Module):
    def __init__(self, factor=2.0):
        super().__init__()
        self.factor = factor

    def forward(self, x, plus=0.0):
        if plus is None:
            raise RuntimeError("asked to fail")
        return x * self.factor + plus


def test_forward_hooks_change_arguments_and_result_in_order():
    module, log = Scale(), []

    def pre(m, args):
        log.append("pre")
        return args[0] + 1  # a single value is wrapped into a tuple

    def first_pre(m, args, kwargs):
        log.append("first pre")
        return args, {**kwargs, "plus": 5.0}

    def post(m, args, result):
        log.append("post")
        return result * 10

    def post_with_kwargs(m, args, kwargs, result):
        log.append(("post kwargs", kwargs["plus"], args[0].item()))

    handles = [
        module.register_forward_pre_hook(pre),
        module.register_forward_pre_hook(first_pre, prepend=True, with_kwargs=True),
        module.register_forward_hook(post),
        module.register_forward_hook(post_with_kwargs, prepend=True, with_kwargs=True),
    ]
    assert module(pt.tensor(1.0)).item() == ((1 + 1) * 2 + 5) * 10
    assert log == ["first pre", "pre", ("post kwargs", 5.0, 2.0), "post"]
    for handle in handles:
        handle.remove()
        handle.remove()  # a second time does nothing
    assert module(pt.tensor(1.0)).item() == 2
    assert len(log) == 4


def test_handle_outlives_its_module():
    module = Scale()
    handle = module.register_forward_hook(lambda *a: None)
    del module
    handle.remove()


def test_always_called_hook_runs_after_an_error():
    module, log = Scale(), []
    module.register_forward_hook(lambda *a: log.append("plain"))
    module.register_forward_hook(lambda *a: log.append("always"), always_call=True)
    with pytest.raises(RuntimeError, match="asked to fail"):
        module(pt.tensor(1.0), plus=None)
    assert log == ["always"]

    def fails(*args):
        raise ValueError("hook")

    module.register_forward_hook(fails, always_call=True)
    with (
        pytest.warns(UserWarning, match="was silenced"),
        pytest.raises(RuntimeError, match="asked to fail"),
    ):
        module(pt.tensor(1.0), plus=None)


def test_bad_pre_hook_result():
    module = Scale()
    module.register_forward_pre_hook(lambda m, a, k: a, with_kwargs=True)
    with pytest.raises(RuntimeError, match="forward pre-hook must return None or"):
        module(pt.tensor(1.0))


def test_full_backward_hook_sees_and_changes_gradients():
    layer, seen = nn.Linear(3, 2), {}

    def pre(m, grad_output):
        return (grad_output[0] * 2,)

    def hook(m, grad_input, grad_output):
        seen["in"], seen["out"] = grad_input[0].numpy().copy(), grad_output[0].numpy()
        return (grad_input[0] * 10,)

    layer.register_full_backward_pre_hook(pre)
    handle = layer.register_full_backward_hook(hook)
    x = pt.ones(4, 3, requires_grad=True)
    layer(x).sum().backward()
    weight = layer.weight.detach().numpy()
    np.testing.assert_allclose(seen["out"], np.full((4, 2), 2.0))
    np.testing.assert_allclose(seen["in"], 2 * np.ones((4, 2)) @ weight, rtol=1e-5)
    np.testing.assert_allclose(x.grad.numpy(), 10 * seen["in"], rtol=1e-6)
    np.testing.assert_allclose(layer.weight.grad.numpy(), np.full((2, 3), 8.0))
    handle.remove()
    x.grad = None
    layer(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), seen["in"], rtol=1e-6)


def test_full_backward_hook_with_several_arguments():
    class Two(nn.Module):
        def forward(self, a, flag, b):
            return a * 3, "text", b * 5

    module, seen = Two(), []
    module.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
    a = pt.ones(2, requires_grad=True)
    b = pt.ones(2, requires_grad=True)
    first, text, second = module(a, True, b)
    assert text == "text"
    (first.sum() + 2 * second.sum()).backward()
    ((grad_in, grad_out),) = seen
    assert [None if g is None else g.tolist() for g in grad_in] == [
        [3, 3], None, [10, 10],
    ]  # fmt: skip
    assert [None if g is None else g.tolist() for g in grad_out] == [
        [1, 1], None, [2, 2],
    ]  # fmt: skip


def test_full_backward_hook_without_input_gradient():
    layer, seen = nn.Linear(2, 1), []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append(gi))
    out = layer(pt.ones(1, 2)).sum()
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        out.backward()
    assert seen == [(None,)]


def test_bad_backward_hook_results():
    x = pt.ones(1, 2, requires_grad=True)
    layer = nn.Linear(2, 1)
    layer.register_full_backward_hook(lambda m, gi, go: ())
    with pytest.raises(RuntimeError, match="invalid number of grad_input"):
        layer(x).sum().backward()
    layer = nn.Linear(2, 1)
    layer.register_full_backward_pre_hook(lambda m, go: ())
    with pytest.raises(RuntimeError, match="invalid number of grad_output"):
        layer(x).sum().backward()
    layer.register_full_backward_hook(lambda *a: None)
    with pytest.raises(RuntimeError, match="Cannot use both"):
        layer.register_backward_hook(lambda *a: None)


def test_no_backward_hook_without_recording():
    layer = nn.Linear(2, 1)
    layer.register_full_backward_hook(lambda *a: None)
    with pt.no_grad():
        assert not layer(pt.ones(1, 2)).requires_grad


def test_global_hooks_apply_to_all_modules_and_come_first():
    log = []
    module = Scale()
    module.register_forward_pre_hook(lambda m, a: log.append("own"))
    with (
        module_file.register_module_forward_pre_hook(
            lambda m, a: log.append("global pre")
        ),
        module_file.register_module_forward_hook(lambda m, a, r: r + 100),
    ):
        assert module(pt.tensor(1.0)).item() == 102
        assert nn.Identity()(pt.tensor(1.0)).item() == 101
    assert log == ["global pre", "own", "global pre"]
    assert module(pt.tensor(1.0)).item() == 2


def test_hooks_are_copied_with_the_module():
    module, log = Scale(), []
    module.register_forward_hook(lambda m, a, r: log.append(m))
    other = copy.deepcopy(module)
    other(pt.tensor(1.0))
    assert log == [other]
    other._forward_hooks.clear()
    other(pt.tensor(1.0))
    assert len(log) == 1
    module(pt.tensor(1.0))
    assert len(log) == 2


@pytest.mark.parametrize("kind", ["register_full_backward_hook", "register_full_backward_pre_hook"])
def test_backward_hooks_under_transformations(kind):
    """Under vmap and forward mode they are not called, as in PyTorch, and gradients are those without them."""
    plain, hooked, seen = nn.Linear(2, 2), nn.Linear(2, 2), []
    hooked.load_state_dict(plain.state_dict())
    getattr(hooked, kind)(lambda module, *grads: seen.append(1) and None)
    x, t = pt.arange(6.0).reshape(3, 2), pt.ones(3, 2)
    found = []
    for m in (plain, hooked):
        m.zero_grad()
        pt.func.vmap(m)(x).square().sum().backward()
        found.append([m.weight.grad, pt.func.grad(lambda x, m=m: pt.func.vmap(m)(x).square().sum())(x),
                      pt.func.jvp(m, (x,), (t,))[1]])
    assert all(pt.equal(*pair) for pair in zip(*found)) and not seen
    hooked(x.requires_grad_()).sum().backward()
    assert seen
