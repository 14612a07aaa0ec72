"""Steps that autograd records: their derivatives are those of finite differences."""
import pytest

import ptcore as pt
from ptcore import optim
from ptcore.autograd import gradcheck

pytestmark = pytest.mark.core

# Of an option that is no number: how it is made of the tensor that is differentiated.
CASES = {
    "sgd": (optim.SGD, {}),
    "sgd momentum": (optim.SGD, {"momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1}),
    "sgd nesterov": (optim.SGD, {"momentum": 0.9, "nesterov": True, "maximize": True}),
    "adam": (optim.Adam, {}),
    "adam amsgrad": (optim.Adam, {"amsgrad": True, "weight_decay": 0.1, "maximize": True}),
    "adamw": (optim.AdamW, {"weight_decay": 0.1}),
    "adamax": (optim.Adamax, {"weight_decay": 0.1}),
    "nadam": (optim.NAdam, {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    "radam": (optim.RAdam, {"weight_decay": 0.1}),
    "rmsprop": (optim.RMSprop, {"weight_decay": 0.1}),
    "rmsprop centered": (optim.RMSprop, {"centered": True, "momentum": 0.9}),
    "adagrad": (optim.Adagrad, {"lr_decay": 0.1, "weight_decay": 0.1}),
    "adadelta": (optim.Adadelta, {"weight_decay": 0.1}),
    "asgd": (optim.ASGD, {"weight_decay": 0.1, "t0": 1.0}),
    "rprop": (optim.Rprop, {}),
}


@pytest.fixture(autouse=True)
def double():
    before = pt.get_default_dtype()
    pt.set_default_dtype(pt.float64)            # that of counters
    yield
    pt.set_default_dtype(before)


def values(seed, dtype=pt.float64):
    return pt.randn(3, 2, dtype=dtype, generator=pt.Generator().manual_seed(seed)).requires_grad_()


def after(cls, options, steps, p, gradients):
    """The parameter, and what is kept of it, after some steps."""
    p = p.clone()
    made = cls([p], differentiable=True, **options)
    for g in gradients[:steps]:
        p.grad = g
        made.step()
    state = [s for s in made.state[p].values() if s.requires_grad and s.ndim]
    return [p, *state]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("steps", [1, 3])
def test_gradients_of_values_gradients_and_rate(name, steps):
    cls, options = CASES[name]
    lr = pt.tensor(0.1, requires_grad=True)
    inputs = lr, values(0), *[values(k + 1) for k in range(steps)]

    def run(lr, p, *gradients):
        return tuple(after(cls, {"lr": lr, **options}, steps, p, gradients))

    assert gradcheck(run, inputs)


@pytest.mark.parametrize("name", ["sgd momentum", "adam amsgrad", "rmsprop centered"])
def test_gradients_of_other_options(name):
    cls, options = CASES[name]
    names = [n for n in ("momentum", "dampening", "weight_decay", "alpha") if n in options] or ["weight_decay"]
    betas = cls is optim.Adam
    inputs = [pt.tensor(0.3, requires_grad=True) for _ in names]
    inputs += [pt.tensor(0.9, requires_grad=True), pt.tensor(0.99, requires_grad=True)] if betas else []

    def run(*given):
        rest = {n: x for n, x in zip(names, given, strict=False)}
        if betas:
            rest["betas"] = tuple(given[-2:])
        return tuple(after(cls, {**options, "lr": 0.1, **rest}, 3, values(0), [values(k + 1) for k in range(3)]))

    assert gradcheck(run, inputs)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "complex128"])
def test_the_same_numbers_as_the_plain_step(name, dtype):
    cls, options = CASES[name]
    dtype = getattr(pt, dtype)
    found = []
    for recorded in (True, False):
        p = values(0, dtype).detach().clone()
        made = cls([p], differentiable=recorded, **{"lr": 0.1, **options})
        for k in range(4):
            p.grad = values(k + 1, dtype).detach()
            made.step()
        found.append([p, *[x for x in made.state[p].values() if x.shape == p.shape]])
        assert not p.requires_grad
    for a, b in zip(*found, strict=True):
        pt.testing.assert_close(a, b)


def test_complex_parameters_have_gradients():
    g = values(1, pt.complex128)
    assert gradcheck(lambda lr, p: after(optim.Adam, {"lr": lr}, 2, p, [g.detach(), g.detach() * 2])[0],
                     (pt.tensor(0.1, requires_grad=True), values(0, pt.complex128)))


def test_a_rate_is_learned_through_the_steps_of_a_model():
    rng = pt.Generator().manual_seed(3)
    x, y = pt.randn(16, 3, generator=rng), pt.randn(16, 1, generator=rng)
    lr = pt.tensor(0.01, requires_grad=True)

    def loss_after(lr):
        w = pt.zeros(3, 1, requires_grad=True).clone()
        made = optim.SGD([w], lr=lr, momentum=0.5, differentiable=True)
        for _ in range(3):
            # A copy, as the step writes to what the graph of this gradient has saved.
            (w.grad,) = pt.autograd.grad(((x @ w.clone() - y)**2).mean(), w, create_graph=True)
            made.step()
        return ((x @ w - y)**2).mean()

    before = loss_after(lr)
    before.backward()
    sides = [loss_after(pt.tensor(0.01 + e)).item() for e in (1e-6, -1e-6)]
    assert abs((sides[0] - sides[1]) / 2e-6 - lr.grad.item()) < 1e-5 * abs(lr.grad.item())
    assert loss_after((lr - 0.01 * lr.grad).detach()) < before


def test_grad_mode_is_as_before():
    p = values(0).clone()
    made = optim.SGD([p], lr=0.1, differentiable=True)
    p.grad = pt.ones(3, 2)
    with pt.no_grad():
        made.step()
        assert not pt.is_grad_enabled()
    assert pt.is_grad_enabled()
    assert p.grad_fn is not None
    seen = []
    made.step(lambda: seen.append(pt.is_grad_enabled()))
    assert seen == [True]


def test_what_is_refused():
    p = values(0)
    with pytest.raises(RuntimeError, match="differentiable"):
        optim.Adam([p], differentiable=True, fused=True)
    with pytest.raises(ValueError, match="non-leaf"):
        optim.Adam([p * 1])
    made = optim.Adam([p], differentiable=True)
    p.grad = pt.ones(3, 2)
    with pytest.raises(RuntimeError, match="leaf"):
        made.step()
    q = p.clone()
    q.grad = pt.ones(3, 2)
    made = optim.Adam([q], differentiable=True, foreach=True)
    with pytest.raises(AssertionError, match="foreach"):
        made.step()
