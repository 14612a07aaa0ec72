"""SGD, Adam, AdamW against their formulas in NumPy; Optimizer's bookkeeping."""

import copy
import pickle

import numpy as np
import pytest

import ptcore as pt
from ptcore import nn, optim
from ptcore.optim.optimizer import register_optimizer_step_post_hook

pytestmark = pytest.mark.core

STEPS = 7


def sgd(p, grads, lr, momentum=0, dampening=0, weight_decay=0, nesterov=False,
        maximize=False):  # fmt: skip
    buffer = None
    for g in grads:
        g = (-g if maximize else g) + weight_decay * p
        if momentum:
            buffer = g if buffer is None else momentum * buffer + (1 - dampening) * g
            g = g + momentum * buffer if nesterov else buffer
        p = p - lr * g
    return p


def adam(p, grads, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0,
         amsgrad=False, maximize=False, decoupled=False):  # fmt: skip
    m = v = largest = np.zeros_like(p)
    for t, g in enumerate(grads, 1):
        g = -g if maximize else g
        if decoupled:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        largest = np.maximum(largest, v)
        second = largest if amsgrad else v
        denominator = np.sqrt(second / (1 - betas[1] ** t)) + eps
        p = p - lr * m / (1 - betas[0] ** t) / denominator
    return p


CASES = [
    (optim.SGD, sgd, {"lr": 0.1}),
    (optim.SGD, sgd, {"lr": 0.1, "momentum": 0.9}),
    (
        optim.SGD,
        sgd,
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1},
    ),
    (optim.SGD, sgd, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    (optim.Adam, adam, {}),
    (
        optim.Adam,
        adam,
        {"lr": 0.1, "betas": (0.5, 0.7), "eps": 1e-3, "weight_decay": 0.3},
    ),
    (optim.Adam, adam, {"lr": 0.1, "amsgrad": True, "maximize": True}),
    (optim.AdamW, adam, {"lr": 0.1, "weight_decay": 0.2}),
    (optim.AdamW, adam, {"lr": 0.1, "weight_decay": 0.2, "amsgrad": True}),
]


def reference(cls, function, start, grads, options):
    options = dict(options)
    if cls is optim.AdamW:
        options["decoupled"] = True
    return function(start, grads, **options)


@pytest.mark.parametrize(("cls", "function", "options"), CASES)
def test_trajectories(cls, function, options):
    rng = np.random.default_rng(3)
    starts = [rng.normal(size=s) for s in [(3, 4), (5,), (), (0, 2)]]
    grads = [[rng.normal(size=s.shape) for _ in range(STEPS)] for s in starts]
    params = [pt.tensor(s, requires_grad=True) for s in starts]
    optimizer = cls(params, **options)
    for i in range(STEPS):
        for p, g in zip(params, grads, strict=True):
            p.grad = pt.tensor(g[i])
        assert optimizer.step() is None
    for p, start, g in zip(params, starts, grads, strict=True):
        expected = reference(cls, function, start, g, options)
        np.testing.assert_allclose(p.detach().numpy(), expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(("cls", "function", "options"), CASES)
def test_parameters_without_gradient_wait(cls, function, options):
    rng = np.random.default_rng(4)
    starts, grads = rng.normal(size=(2, 3)), rng.normal(size=(STEPS, 2, 3))
    params = [pt.tensor(s, requires_grad=True) for s in starts]
    optimizer = cls(params, **options)
    for i, g in enumerate(grads):
        params[0].grad = pt.tensor(g[0])
        params[1].grad = pt.tensor(g[1]) if i % 2 else None
        optimizer.step()
    for p, s, g in zip(params, starts, (grads[:, 0], grads[1::2, 1]), strict=True):
        expected = reference(cls, function, s, list(g), options)
        np.testing.assert_allclose(p.detach().numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize(("cls", "function", "options"), CASES)
def test_resuming_continues_the_trajectory(cls, function, options):
    rng = np.random.default_rng(5)
    start, grads = rng.normal(size=3), list(rng.normal(size=(STEPS, 3)))
    p = pt.tensor(start, requires_grad=True)
    optimizer = cls([p], **options)
    makers = [
        lambda o: cls([p], **options),
        lambda o: copy.copy(o),
        lambda o: cls([p], lr=99.0),
    ]
    for i, g in enumerate(grads):
        state = optimizer.state_dict()
        optimizer = makers[i % 3](optimizer)
        optimizer.load_state_dict(state)
        p.grad = pt.tensor(g)
        optimizer.step()
    expected = reference(cls, function, start, grads, options)
    np.testing.assert_allclose(p.detach().numpy(), expected, rtol=1e-10)


def test_groups_have_their_own_options():
    a, b = (pt.ones(1, requires_grad=True) for _ in range(2))
    optimizer = optim.SGD([{"params": a}, {"params": [b], "lr": 0.5}], lr=0.25)
    a.grad, b.grad = pt.ones(1), pt.ones(1)
    optimizer.step()
    assert (a.item(), b.item()) == (0.75, 0.5)
    optimizer.param_groups[0]["lr"] = 1.0
    c = pt.ones(1, requires_grad=True)
    optimizer.add_param_group({"params": c, "lr": 2.0})
    c.grad = pt.ones(1)
    optimizer.step()
    assert (a.item(), b.item(), c.item()) == (-0.25, 0.0, -1.0)


def test_state_dict_layout():
    a, b, c = (pt.ones(2, requires_grad=True) for _ in range(3))
    optimizer = optim.Adam([{"params": [a, b]}, {"params": [c], "lr": 1.0}])
    b.grad = c.grad = pt.ones(2)
    optimizer.step()
    state = optimizer.state_dict()
    assert [g["params"] for g in state["param_groups"]] == [[0, 1], [2]]
    assert list(state["state"]) == [1, 2]
    assert set(state["state"][1]) == {"step", "exp_avg", "exp_avg_sq"}
    assert float(state["state"][1]["step"]) == 1
    assert "momentum_buffer" not in optim.SGD([a], lr=1).state_dict()["state"]


@pytest.mark.parametrize("name", ["Adam", "ASGD", "NAdam", "RAdam", "Adadelta", "Rprop", "Adafactor"])
def test_counters_have_the_precision_of_the_default_dtype(name):
    """As in PyTorch: float64 if that is the default dtype."""
    before = pt.get_default_dtype()
    for dtype in (pt.float32, pt.float64):
        pt.set_default_dtype(dtype)
        try:
            x = pt.ones(2, dtype=pt.float64, requires_grad=True)
            optimizer = getattr(optim, name)([x])
            x.sum().backward()
            optimizer.step()
        finally:
            pt.set_default_dtype(before)
        counters = [v for k, v in optimizer.state[x].items() if k in ("step", "eta", "mu", "mu_product")]
        assert counters and all(v.dtype is dtype for v in counters)


def test_loading_casts_state_but_not_step():
    source = pt.ones(2, requires_grad=True)
    target = pt.ones(2, dtype=pt.float64, requires_grad=True)
    source.grad = pt.ones(2)
    a, b = optim.Adam([source]), optim.Adam([target])
    a.step()
    b.load_state_dict(a.state_dict())
    assert b.state[target]["exp_avg"].dtype == pt.float64
    assert b.state[target]["step"].dtype == pt.float32


def test_state_dict_mismatch():
    a, b = (pt.ones(1, requires_grad=True) for _ in range(2))
    two = optim.SGD([{"params": [a]}, {"params": [b]}], lr=1).state_dict()
    with pytest.raises(ValueError, match="different number of parameter groups"):
        optim.SGD([a, b], lr=1).load_state_dict(two)
    with pytest.raises(ValueError, match="doesn't match the size"):
        optim.SGD([a, b], lr=1).load_state_dict(optim.SGD([a], lr=1).state_dict())


def test_copies_share_nothing():
    layer = nn.Linear(2, 1)
    optimizer = optim.Adam(layer.parameters())
    layer(pt.ones(1, 2)).sum().backward()
    optimizer.step()
    both = copy.deepcopy((layer, optimizer))
    assert both[1].param_groups[0]["params"][0] is both[0].weight
    loaded = pickle.loads(pickle.dumps(optimizer))
    for other in (both[1], loaded):
        param = other.param_groups[0]["params"][0]
        assert param is not layer.weight
        assert float(other.state[param]["step"]) == 1
        other.step()
    assert float(optimizer.state[layer.weight]["step"]) == 1


def test_closure_runs_with_gradients():
    p = pt.tensor([2.0], requires_grad=True)
    optimizer = optim.SGD([p], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with pt.no_grad():
        loss = optimizer.step(closure)
    assert (loss.item(), p.item()) == (4.0, 1.0)


def test_zero_grad():
    p = pt.ones(2, requires_grad=True)
    optimizer = optim.SGD([p], lr=1)
    p.grad = pt.ones(2)
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0, 0]
    optimizer.zero_grad()
    assert p.grad is None


def test_step_hooks():
    p, log = pt.ones(1, requires_grad=True), []
    optimizer = optim.SGD([p], lr=1.0)
    optimizer.register_step_pre_hook(
        lambda o, args, kwargs: log.append(("pre", args[0] is o))
    )
    handle = optimizer.register_step_post_hook(
        lambda o, args, kwargs: log.append("post")
    )
    with register_optimizer_step_post_hook(
        lambda o, args, kwargs: log.append("global")
    ):
        optimizer.step()
    assert log == [("pre", True), "post", "global"]
    handle.remove()
    optimizer.step()
    assert log[3:] == [("pre", True)]

    class Loud(optim.SGD):
        def step(self, closure=None):
            log.append("loud")
            return super().step(closure)

    log.clear()
    p.grad = pt.ones(1)
    loud = Loud([p], lr=1.0)
    loud.register_step_pre_hook(lambda *a: log.append("pre"))
    assert loud.step(lambda: 2.5) == 2.5 and p.item() == 0
    assert log == ["pre", "loud"]  # once, around the outermost step
    loud.register_step_pre_hook(lambda *a: 3)
    with pytest.raises(RuntimeError, match="must return None or"):
        loud.step()


def test_state_dict_hooks():
    p = pt.ones(1, requires_grad=True)
    optimizer, log = optim.SGD([p], lr=1.0), []
    optimizer.register_state_dict_pre_hook(lambda o: log.append("pre"))
    optimizer.register_state_dict_post_hook(lambda o, s: {**s, "extra": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, s: log.append(s["extra"]))
    optimizer.register_load_state_dict_post_hook(lambda o: log.append("loaded"))
    optimizer.load_state_dict(optimizer.state_dict())
    assert log == ["pre", 1, "loaded"]


def test_user_defined_optimizer():
    class SignDescent(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    state["count"] = state.get("count", 0) + 1
                    p.data.add_(p.grad.sign(), alpha=-group["lr"])

    p = pt.tensor([1.0, -1.0], requires_grad=True)
    optimizer = SignDescent([p], lr=0.5)
    p.grad = pt.tensor([3.0, -0.1])
    optimizer.step()
    assert p.tolist() == [0.5, -0.5]
    assert optimizer.state_dict()["state"] == {0: {"count": 1}}


def test_bad_arguments():
    p = pt.ones(1, requires_grad=True)
    for call, error, text in [
        (lambda: optim.SGD([], lr=1), ValueError, "empty parameter list"),
        (lambda: optim.SGD(p, lr=1), TypeError, "iterable of Tensors"),
        (lambda: optim.SGD([3], lr=1), TypeError, "can only optimize Tensors"),
        (lambda: optim.SGD([p * 2], lr=1), ValueError, "non-leaf"),
        (lambda: optim.SGD([p], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: optim.SGD([p], lr=1, nesterov=True), ValueError, "Nesterov"),
        (lambda: optim.Adam([p], betas=(1.0, 0.9)), ValueError, "index 0: 1.0"),
        (lambda: optim.Adam([p], eps=float("nan")), ValueError, "epsilon"),
        (lambda: optim.Adam([p], betas=1), TypeError, "Invalid betas: expected two numbers, got 1"),
        (lambda: optim.Adam([p], betas=(0.9,)), TypeError, "Invalid betas"),
        (lambda: optim.Adam([p], betas=("a", 0.9)), TypeError, "index 0: expected a number, got 'a'"),
        (lambda: optim.SGD([p], lr="a"), TypeError, "learning rate: expected a number, got 'a'"),
        (lambda: optim.SGD([p], lr=None), TypeError, "learning rate: expected a number, got None"),
        (lambda: optim.SGD([{"x": 1}], lr=1), ValueError, "must have a key 'params', got \\['x'\\]"),
        (lambda: optim.Adam([p], fused=True, foreach=True), RuntimeError, "together"),
        (lambda: optim.Adam([p], differentiable=True, fused=True), RuntimeError, "differentiable"),
        (
            lambda: optim.SGD([{"params": [p]}, {"params": p}], lr=1),
            ValueError,
            "more than",
        ),
        (lambda: optim.SGD([{"params": {p}}], lr=1), TypeError, "ordered collections"),
        (lambda: optim.SGD([("a", p), p], lr=1), ValueError, "names"),
    ]:
        with pytest.raises(error, match=text):
            call()
    with pytest.warns(UserWarning, match="duplicate"):
        optim.SGD([p, p], lr=1)
    named = optim.SGD([("w", p)], lr=1)
    assert named.param_groups[0]["param_names"] == ["w"]


def test_repr():
    text = repr(optim.SGD([pt.ones(1, requires_grad=True)], lr=0.5))
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0\n")
    assert "    lr: 0.5\n" in text
    assert text.endswith("\n)")


@pytest.mark.parametrize(("bad", "error", "words"), [
    (None, TypeError, "must be a dict, got NoneType"), ([], TypeError, "must be a dict, got list"),
    ({}, ValueError, "'param_groups'.* must be a list, got none"), ({"param_groups": []}, ValueError, "'state'"),
    ({"state": 1, "param_groups": []}, ValueError, "'state'.* must be a dict, got int"),
    ({"state": {}, "param_groups": [{}]}, ValueError, "a dict with a list 'params'"),
    ({"state": {}, "param_groups": [1]}, ValueError, "a dict with a list 'params'"),
    ({"state": {}, "param_groups": []}, ValueError, "expected 1, got 0"),
    ({"state": {}, "param_groups": [{"params": [0]}]}, ValueError, "has 2 parameters, got 1")])
def test_wrong_state_dicts(bad, error, words):
    """An error that says what is wrong, and an optimiser that still has what it had."""
    model = nn.Linear(2, 3)
    optimizer = optim.Adam(model.parameters(), lr=0.5)
    model(pt.ones(1, 2)).sum().backward()
    optimizer.step()
    before = copy.deepcopy(optimizer.state_dict())
    with pytest.raises(error, match=words):
        optimizer.load_state_dict(bad)
    after = optimizer.state_dict()
    assert after["param_groups"] == before["param_groups"]
    assert pt.equal(after["state"][0]["exp_avg"], before["state"][0]["exp_avg"])
    optimizer.step()


@pytest.mark.parametrize(("make", "name", "value", "words"), [
    (optim.Adam, "exp_avg", pt.zeros(3), r"'exp_avg' of parameter 0 must have shape \[3, 2\], got \[3\]"),
    (optim.Adam, "exp_avg_sq", pt.zeros(2, 3), r"must have shape \[3, 2\], got \[2, 3\]"),
    (optim.AdamW, "exp_avg", pt.zeros(3, 2, 1), r"must have shape \[3, 2\], got \[3, 2, 1\]"),
    (optim.Adam, "exp_avg", [1.0], "'exp_avg' of parameter 0 must be a Tensor, got list"),
    (optim.Adam, "step", pt.zeros(2), r"'step' of parameter 0 must have shape \[\], got \[2\]"),
    (optim.Adam, "step", "a", "'step' of parameter 0 must be a Tensor, got str"),
    (lambda p: optim.SGD(p, lr=0.1, momentum=0.9), "momentum_buffer", pt.zeros(2),
     r"'momentum_buffer' of parameter 0 must have shape \[3, 2\], got \[2\]")])
def test_state_of_another_shape(make, name, value, words):
    """Refused when it is loaded, not at the next step, and nothing is taken over."""
    model = nn.Linear(2, 3)
    optimizer = make(model.parameters())
    model(pt.ones(1, 2)).sum().backward()
    optimizer.step()
    bad = copy.deepcopy(optimizer.state_dict())
    bad["param_groups"][0]["lr"] = 7.0
    bad["state"][0][name] = value
    with pytest.raises(ValueError, match=words):
        optimizer.load_state_dict(bad)
    assert optimizer.param_groups[0]["lr"] != 7.0
    optimizer.step()


def test_state_of_another_optimizer():
    model = nn.Linear(2, 3)
    sgd = optim.SGD(model.named_parameters(), lr=0.1, momentum=0.9)
    model(pt.ones(1, 2)).sum().backward()
    sgd.step()
    adam = optim.Adam(model.named_parameters())
    with pytest.raises(ValueError, match=r"of parameter 'weight' must hold 'step', got \['momentum_buffer'\]"):
        adam.load_state_dict(sgd.state_dict())
    with pytest.raises(ValueError, match="the state of parameter 'weight' must be a dict, got list"):
        adam.load_state_dict({**adam.state_dict(), "state": {0: [1, 2]}})


def test_states_that_load():
    """A step that is a number, as old files have it, a buffer that is None, an empty state."""
    model = nn.Linear(2, 3)
    for make, changes in ((optim.Adam, {"step": 3}), (optim.Adam, {"step": np.int64(3)}),
                          (lambda p: optim.SGD(p, lr=0.1, momentum=0.9), {"momentum_buffer": None})):
        optimizer = make(model.parameters())
        model(pt.ones(1, 2)).sum().backward()
        optimizer.step()
        state = copy.deepcopy(optimizer.state_dict())
        state["state"][0].update(changes)
        state["state"][1] = {}
        optimizer.load_state_dict(state)
        optimizer.step()
