"""RMSprop, Adagrad, Adadelta, Adamax, NAdam, RAdam, Rprop, ASGD against their formulas in NumPy; LBFGS."""

import numpy as np
import pytest
import scipy.optimize

import ptcore as pt
from ptcore import optim

pytestmark = pytest.mark.core

STEPS = 9


def rmsprop(p, grads, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False):
    s = m = b = np.zeros_like(p)
    for g in grads:
        g = g + weight_decay * p
        s = alpha * s + (1 - alpha) * g**2
        m = alpha * m + (1 - alpha) * g
        b = momentum * b + g / (np.sqrt(s - m**2 if centered else s) + eps)
        p = p - lr * b
    return p


def adagrad(p, grads, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10):
    s = np.full_like(p, initial_accumulator_value)
    for t, g in enumerate(grads):
        g = g + weight_decay * p
        s = s + g**2
        p = p - lr / (1 + t * lr_decay) * g / (np.sqrt(s) + eps)
    return p


def adadelta(p, grads, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0):
    s = a = np.zeros_like(p)
    for g in grads:
        g = g + weight_decay * p
        s = rho * s + (1 - rho) * g**2
        d = np.sqrt(a + eps) / np.sqrt(s + eps) * g
        a = rho * a + (1 - rho) * d**2
        p = p - lr * d
    return p


def adamax(p, grads, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0):
    m = u = np.zeros_like(p)
    for t, g in enumerate(grads, 1):
        g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        u = np.maximum(betas[1] * u, np.abs(g) + eps)
        p = p - lr / (1 - betas[0] ** t) * m / u
    return p


def nadam(p, grads, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3,
          decoupled_weight_decay=False):  # fmt: skip
    m = v = np.zeros_like(p)
    product = 1.0
    for t, g in enumerate(grads, 1):
        if decoupled_weight_decay:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        mu, following = (betas[0] * (1 - 0.5 * 0.96 ** (k * momentum_decay)) for k in (t, t + 1))
        product *= mu
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        d = np.sqrt(v / (1 - betas[1] ** t)) + eps
        p = p - lr * ((1 - mu) * g / (1 - product) + following * m / (1 - product * following)) / d
    return p


def radam(p, grads, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0):
    m = v = np.zeros_like(p)
    longest = 2 / (1 - betas[1]) - 1
    for t, g in enumerate(grads, 1):
        g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        rho = longest - 2 * t * betas[1] ** t / (1 - betas[1] ** t)
        d = m / (1 - betas[0] ** t)
        if rho > 5:
            r = np.sqrt((rho - 4) * (rho - 2) * longest / ((longest - 4) * (longest - 2) * rho))
            d = d * r * np.sqrt(1 - betas[1] ** t) / (np.sqrt(v) + eps)
        p = p - lr * d
    return p


def rprop(p, grads, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50)):
    last, size = np.zeros_like(p), np.full_like(p, lr)
    for g in grads:
        turn = np.sign(g * last)
        size = np.clip(size * np.select([turn < 0, turn > 0], etas, 1.0), *step_sizes)
        g = np.where(turn < 0, 0.0, g)
        p = p - np.sign(g) * size
        last = g
    return p


def asgd(p, grads, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0):
    eta = np.float32(lr)
    for t, g in enumerate(grads, 1):
        g = g + weight_decay * p
        p = p * (1 - lambd * float(eta)) - float(eta) * g
        eta = np.float32(lr / (1 + lambd * lr * t) ** alpha)
    return p


CASES = [
    (optim.RMSprop, rmsprop, {}),
    (optim.RMSprop, rmsprop, {"lr": 0.1, "alpha": 0.8, "momentum": 0.9, "weight_decay": 0.1}),
    (optim.RMSprop, rmsprop, {"centered": True, "eps": 1e-3}),
    (optim.Adagrad, adagrad, {}),
    (optim.Adagrad, adagrad,
     {"lr": 0.3, "lr_decay": 0.2, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    (optim.Adadelta, adadelta, {}),
    (optim.Adadelta, adadelta, {"lr": 0.5, "rho": 0.7, "weight_decay": 0.1}),
    (optim.Adamax, adamax, {}),
    (optim.Adamax, adamax, {"lr": 0.1, "betas": (0.6, 0.7), "weight_decay": 0.1}),
    (optim.NAdam, nadam, {}),
    (optim.NAdam, nadam, {"lr": 0.1, "weight_decay": 0.1, "momentum_decay": 0.1}),
    (optim.NAdam, nadam, {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    (optim.RAdam, radam, {"lr": 0.1}),
    (optim.RAdam, radam, {"lr": 0.1, "betas": (0.7, 0.9), "weight_decay": 0.1}),
    (optim.Rprop, rprop, {}),
    (optim.Rprop, rprop, {"lr": 0.1, "etas": (0.3, 2.0), "step_sizes": (0.05, 0.3)}),
    (optim.ASGD, asgd, {"lr": 0.1, "lambd": 0.1, "weight_decay": 0.1}),
]  # fmt: skip


def run(optimizer, start, grads, **options):
    p = pt.tensor(start, requires_grad=True)
    made = optimizer([p], **options)
    for g in grads:
        p.grad = pt.tensor(g)
        made.step()
    return p, made


@pytest.mark.parametrize(("optimizer", "formula", "options"), CASES)
@pytest.mark.parametrize("maximize", [False, True])
def test_formula(optimizer, formula, options, maximize):
    rng = np.random.default_rng(1)
    start, grads = rng.normal(size=(3, 4)), rng.normal(size=(STEPS, 3, 4))
    p, made = run(optimizer, start, grads, **options, maximize=maximize)
    expected = formula(start, -grads if maximize else grads, **options)
    # Counters and rates of a step are kept in float32.
    np.testing.assert_allclose(p.detach().numpy(), expected, rtol=1e-6 if optimizer is optim.NAdam else 1e-12)
    assert made.state[p]["step"].item() == STEPS


@pytest.mark.parametrize(("optimizer", "formula", "options"), CASES)
def test_saved_state_goes_on(optimizer, formula, options):
    rng = np.random.default_rng(2)
    start, grads = rng.normal(size=5), rng.normal(size=(8, 5))
    whole, _ = run(optimizer, start, grads, **options)
    half, made = run(optimizer, start, grads[:4], **options)
    q = pt.tensor(half.detach().numpy(), requires_grad=True)
    second = optimizer([q], **options)
    second.load_state_dict(made.state_dict())
    for g in grads[4:]:
        q.grad = pt.tensor(g)
        second.step()
    assert pt.equal(q, whole)


def test_average_of_asgd():
    rng = np.random.default_rng(3)
    grads = rng.normal(size=(6, 3))
    positions = []
    p = pt.zeros(3, dtype=pt.float64, requires_grad=True)
    made = optim.ASGD([p], lr=0.5, t0=2)
    for g in grads:
        p.grad = pt.tensor(g)
        made.step()
        positions.append(p.detach().numpy().copy())
    # The average begins with the position of step t0 + 2.
    np.testing.assert_allclose(made.state[p]["ax"].numpy(), np.mean(positions[3:], axis=0), rtol=1e-6)


@pytest.mark.parametrize(
    ("optimizer", "options", "message"),
    [
        (optim.RMSprop, {"alpha": -0.1}, "Invalid alpha value"),
        (optim.Adagrad, {"lr_decay": -1}, "Invalid lr_decay value"),
        (optim.Adadelta, {"rho": 1.5}, "Invalid rho value"),
        (optim.Adamax, {"betas": (0.5, 1.0)}, "Invalid beta parameter at index 1"),
        (optim.NAdam, {"momentum_decay": -1}, "Invalid momentum_decay value"),
        (optim.RAdam, {"lr": -1}, "Invalid learning rate"),
        (optim.Rprop, {"etas": (1.1, 1.2)}, "Invalid eta values"),
        (optim.ASGD, {"weight_decay": -1}, "Invalid weight_decay value"),
    ],
)
def test_bad_options(optimizer, options, message):
    with pytest.raises(ValueError, match=message):
        optimizer([pt.zeros(1, requires_grad=True)], **options)


@pytest.mark.parametrize("make", [optim.Muon, optim.Adafactor])
def test_complex_parameters_are_refused(make):
    p = pt.zeros(1, 1, dtype=pt.complex64, requires_grad=True)
    p.grad = pt.ones(1, 1, dtype=pt.complex64)
    with pytest.raises(TypeError, match=f"{make.__name__}: parameters must be real, got ptcore.complex64"):
        make([p]).step()


def test_adafactor_with_a_decay_of_zero_keeps_no_average():
    """beta2 is 1 - step**decay, which is 0: a step looks at its own gradient alone."""
    p, q = (pt.zeros(2, 3, requires_grad=True) for _ in range(2))
    first, second = optim.Adafactor([p], beta2_decay=0), optim.Adafactor([q], beta2_decay=0)
    p.grad = pt.full((2, 3), 100.0)
    first.step()
    for optimizer, x in ((first, p), (second, q)):
        x.grad = pt.arange(1.0, 7).reshape(2, 3)
        x.data.zero_()
        optimizer.step()
    state, fresh = first.state[p], second.state[q]
    pt.testing.assert_close(state["row_var"], fresh["row_var"])
    pt.testing.assert_close(state["col_var"], fresh["col_var"])


# -- LBFGS ---------------------------------------------------------------------------------------------


def rosenbrock(x, y):
    return (1 - x) ** 2 + 100 * (y - x * x) ** 2


def minimise(function, start, steps=20, **options):
    params = [pt.tensor(v, dtype=pt.float64, requires_grad=True) for v in start]
    made = optim.LBFGS(params, **options)

    def closure():
        made.zero_grad()
        loss = function(*params)
        loss.backward()
        return loss

    losses = [made.step(closure).item() for _ in range(steps)]
    return params, losses, made


def test_lbfgs_finds_the_minimum():
    params, losses, made = minimise(rosenbrock, (-1.2, 1.0), line_search_fn="strong_wolfe", tolerance_change=0)
    np.testing.assert_allclose([p.item() for p in params], [1, 1], rtol=1e-5)
    assert losses[0] == pytest.approx(rosenbrock(-1.2, 1.0))
    reference = scipy.optimize.minimize(lambda z: rosenbrock(*z), (-1.2, 1.0), method="L-BFGS-B")
    assert losses[-1] < max(reference.fun, 1e-9)
    state = made.state[params[0]]
    assert state["func_evals"] < 200
    assert len(state["old_dirs"]) == len(state["old_stps"]) == len(state["ro"])


def test_lbfgs_of_a_quadratic_ends_after_few_steps():
    rng = np.random.default_rng(0)
    m = rng.normal(size=(6, 6))
    a, b = pt.tensor(m @ m.T + np.eye(6)), pt.tensor(rng.normal(size=6))
    options = {"line_search_fn": "strong_wolfe", "tolerance_change": 0}
    (x,), _, _ = minimise(lambda x: 0.5 * (x @ (a @ x)) - b @ x, [np.zeros(6)], steps=3, **options)
    np.testing.assert_allclose(x.detach().numpy(), np.linalg.solve(a.numpy(), b.numpy()), rtol=1e-4)


@pytest.mark.parametrize("function, start", [(lambda w: w * 1, 3.0), (lambda w: w.abs(), 1.5), (lambda w: -2 * w, 0.0)])
def test_lbfgs_goes_down_straight_lines(function, start):
    """The cubic through two points of a line has no minimum."""
    (w,), losses, _ = minimise(function, (start,), steps=1, line_search_fn="strong_wolfe")
    assert np.isfinite(w.item()) and function(w.detach()).item() < losses[0]


def test_lbfgs_of_a_gradient_of_zero():
    (w,), losses, _ = minimise(lambda w: w * 0, (2.0,), steps=1, tolerance_grad=-1.0)
    assert w.item() == 2 and losses == [0]


def test_lbfgs_keeps_its_history_short():
    params, _, made = minimise(rosenbrock, (-1.2, 1.0), steps=3, history_size=2, line_search_fn="strong_wolfe")
    assert len(made.state[params[0]]["ro"]) == 2


def test_lbfgs_errors():
    p = pt.zeros(1, requires_grad=True)
    with pytest.raises(ValueError, match="parameter groups"):
        optim.LBFGS([{"params": [p]}, {"params": [pt.zeros(1, requires_grad=True)]}])
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported, got 'armijo'"):
        optim.LBFGS([p], line_search_fn="armijo")
    with pytest.raises(TypeError, match="closure must be callable, got NoneType"):
        optim.LBFGS([p]).step(None)
