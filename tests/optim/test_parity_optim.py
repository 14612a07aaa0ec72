"""Optimisers and schedules against torch.optim, to the last bits."""

import inspect
import math

import numpy as np
import pytest

import ptcore as pt
from ptcore import optim
from ptcore.optim import lr_scheduler

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity
LIBRARIES = ((pt, optim), (torch, torch.optim))

OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.05, "amsgrad": True, "maximize": True}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("AdamW", {"lr": 0.05, "betas": (0.6, 0.8), "eps": 1e-4}),
    ("AdamW", {"lr": 0.05, "amsgrad": True}),
    ("RMSprop", {"lr": 0.05, "momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.05, "alpha": 0.8, "maximize": True}),
    ("Adagrad", {"lr": 0.05, "lr_decay": 0.1, "initial_accumulator_value": 0.3}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1}),
    ("Adamax", {"lr": 0.05, "betas": (0.6, 0.8), "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.05, "betas": (0.6, 0.8), "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.05, "betas": (0.6, 0.8), "decoupled_weight_decay": True, "weight_decay": 0.1}),
    ("Rprop", {"lr": 0.05, "etas": (0.4, 1.3)}),
    ("ASGD", {"lr": 0.05, "lambd": 0.1, "t0": 4, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {"lr": 0.05}),
    ("RMSprop", {"lr": 0.05, "momentum": 0.9, "maximize": True}),
    ("RMSprop", {"lr": 0.05, "centered": True, "eps": 0.1}),
    ("Adagrad", {"lr": 0.05, "weight_decay": 0.1, "maximize": True}),
    ("Adadelta", {"maximize": True}),
    ("Adamax", {"lr": 0.05, "maximize": True}),
    ("NAdam", {"lr": 0.05, "momentum_decay": 0.1}),
    ("RAdam", {"lr": 0.05, "maximize": True}),
    ("Rprop", {"lr": 0.05, "step_sizes": (0.02, 0.08), "maximize": True}),
    ("ASGD", {"lr": 0.05, "alpha": 0.5, "t0": 2, "maximize": True}),
]


# How the values of a parameter lie: in order, transposed, every second one, with a step of zero elements.
LAYOUTS = {
    "plain": lambda x: x,
    "transposed": lambda x: x.t() if x.ndim == 2 else x,
    "sliced": lambda x: x[..., ::2] if x.ndim else x,
}


def values(rng, shape, dtype):
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape)).tolist() if "complex" in str(dtype) else x.tolist()


def trajectory(pt, om, name, options, dtype, steps=12, layout="plain"):
    rng = np.random.default_rng(7)
    params = [
        LAYOUTS[layout](pt.tensor(values(rng, s, dtype), dtype=dtype)).detach().requires_grad_()
        for s in [(3, 2), (4,), (), (0, 2)]
    ]
    optimizer = getattr(om, name)(
        [{"params": params[:2]}, {"params": params[2:], "lr": 0.2}], **options
    )
    for i in range(steps):
        for j, p in enumerate(params):
            gradient = values(rng, tuple(p.shape), dtype)
            p.grad = None if (i + j) % 5 == 0 else pt.tensor(gradient, dtype=dtype).reshape(p.shape)
        optimizer.step()
    return params, optimizer


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
@pytest.mark.parametrize(
    ("dtype", "layout"),
    [*[(d, "plain") for d in ("float64", "float32", "complex64", "complex128")],
     ("float64", "transposed"), ("float64", "sliced"), ("complex128", "sliced")],
)  # fmt: skip
def test_trajectories_and_state(name, options, dtype, layout):
    (a, ours), (b, theirs) = (
        trajectory(pt, om, name, options, getattr(pt, dtype), layout=layout) for pt, om in LIBRARIES
    )
    rtol, atol = (1e-12, 0) if dtype in ("float64", "complex128") else (2e-5, 1e-6)
    for p, q in zip(a, b, strict=True):
        np.testing.assert_allclose(p.tolist(), q.tolist(), rtol=rtol, atol=atol)
    ours, theirs = ours.state_dict(), theirs.state_dict()
    assert ours["param_groups"] == theirs["param_groups"]
    assert list(ours["state"]) == list(theirs["state"])
    for key, state in theirs["state"].items():
        assert list(ours["state"][key]) == list(state)
        for option, value in state.items():
            mine = ours["state"][key][option]
            assert str(mine.dtype).split(".")[1] == str(value.dtype).split(".")[1]
            np.testing.assert_allclose(mine.tolist(), value.tolist(), rtol, atol)


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types(name, options, dtype):
    """Steps from the same position with the same state: of those on a path each rounds its own way."""
    rng = np.random.default_rng(3)
    start, grads = rng.normal(size=(2, 8)), rng.normal(size=(3, 2, 8))
    eps = {"eps": 1e-3} if "eps" not in options and name not in ("SGD", "Rprop", "ASGD") else {}
    made = []
    for pt_, om in LIBRARIES:
        p = pt_.tensor(start.tolist(), dtype=getattr(pt_, dtype)).requires_grad_()
        optimizer = getattr(om, name)([p], **options, **eps)
        for g in grads:
            p.grad = pt_.tensor(g.tolist(), dtype=p.dtype)
            optimizer.step()
        made.append([p, optimizer.state[p]])
    rtol = 1e-2 if dtype == "float16" else 8e-2
    np.testing.assert_allclose(made[0][0].tolist(), made[1][0].tolist(), rtol=rtol, atol=rtol)
    for key, value in made[1][1].items():
        assert str(made[0][1][key].dtype).split(".")[1] == str(value.dtype).split(".")[1]
        np.testing.assert_allclose(made[0][1][key].tolist(), value.tolist(), rtol=rtol, atol=rtol)


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_states_go_both_ways(name, options, dtype):
    """The state of either library goes on in the other as in its own."""
    here, there = (trajectory(pt_, om, name, options, getattr(pt_, dtype), 5) for pt_, om in LIBRARIES)
    rng = np.random.default_rng(8)
    grads = [[values(rng, tuple(p.shape), dtype) for p in here[0]] for _ in range(3)]
    results = []
    for (pt_, om), mine, theirs, other in zip(LIBRARIES, (here, there), (there, here), (torch, pt), strict=True):
        params, given = [p.detach().clone().requires_grad_() for p in mine[0]], theirs[1]
        optimizer = getattr(om, name)([{"params": params[:2]}, {"params": params[2:]}], **options)
        optimizer.load_state_dict(converted(given.state_dict(), other, pt_))
        for of_step in grads:
            for p, g in zip(params, of_step, strict=True):
                p.grad = pt_.tensor(g, dtype=p.dtype).reshape(p.shape)
            optimizer.step()
        results.append([p.tolist() for p in params])
    # torch makes a loaded mu_product float64, as the parameter is; here a counter stays what it was.
    rtol = 1e-6 if name == "NAdam" else 1e-11
    for p, q in zip(*results, strict=True):
        np.testing.assert_allclose(p, q, rtol=rtol)


def converted(value, source, target):
    """A state with the tensors of another library."""
    if isinstance(value, source.Tensor):
        dtype = str(value.dtype).split(".")[1]
        return target.tensor(value.tolist(), dtype=getattr(target, dtype)).reshape(tuple(value.shape))
    if isinstance(value, dict):
        return {k: converted(v, source, target) for k, v in value.items()}
    return type(value)(converted(v, source, target) for v in value) if isinstance(value, (list, tuple)) else value


SCHEDULES = [
    ("StepLR", (3, 0.5)),
    ("MultiStepLR", ([2, 2, 5],)),
    ("ConstantLR", ()),
    ("LinearLR", (0.2, 0.9, 7)),
    ("ExponentialLR", (0.9,)),
    ("CosineAnnealingLR", (7, 0.01)),
    ("CosineAnnealingWarmRestarts", (5,)),
    ("CosineAnnealingWarmRestarts", (3, 2, 0.01)),
    ("LambdaLR", (lambda e: 1 / (1 + e),)),
    ("MultiplicativeLR", (lambda e: 0.9 + 0.01 * e,)),
    ("PolynomialLR", ()),
    ("PolynomialLR", (20, 1.7)),
    ("CyclicLR", (0.1, 0.9, 4)),
    ("CyclicLR", (0.1, 0.9, 4, 7, "triangular2")),
    ("CyclicLR", (0.1, 0.9, 3, 2, "exp_range", 0.95)),
    ("CyclicLR", (0.1, 0.9, 3, None, "no such", 1.0, lambda x: 1 / x, "cycle", False)),
    ("CyclicLR", ([0.1], [0.9], 3, None, "triangular", 1.0, None, "cycle", True, 0.7, 0.8)),
    ("OneCycleLR", (0.5, 30)),
    (
        "OneCycleLR",
        (0.5, 30, None, None, 0.3, "linear", True, 0.8, 0.9, 20.0, 1e3, True),
    ),
]


def steps(om, optimizer, schedule, n=29):
    rates = []
    for i in range(n):
        if i == 11:
            optimizer.param_groups[0]["lr"] *= 0.7  # changed by hand
        optimizer.step()
        schedule.step()
        group = optimizer.param_groups[0]
        rates.append((group["lr"], group.get("momentum"), group.get("betas")))
    return rates


@pytest.mark.parametrize(("name", "args"), SCHEDULES)
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_schedules_are_equal_to_the_last_bit(name, args, kind):
    rates = []
    for pt_, om in LIBRARIES:
        optimizer = getattr(om, kind)([pt_.zeros(1, requires_grad=True)], lr=0.3)
        rates.append(
            steps(om, optimizer, getattr(om.lr_scheduler, name)(optimizer, *args))
        )
    assert rates[0] == rates[1]


@pytest.mark.parametrize("args", [(4,), (3, 2, 0.01)])
def test_warm_restarts_by_epochs(args):
    """Whole epochs at a restart are left out: there torch's logarithm may miss it."""
    rates = []
    for pt_, om in LIBRARIES:
        optimizer = om.SGD([pt_.zeros(1, requires_grad=True)], lr=0.3)
        schedule = om.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, *args)
        rates.append([])
        for epoch in (0.5, 1.25, 2.75, 4.5, 8.25, 25.5, None, None, 3.5, None, 100.5):
            schedule.step(epoch)
            rates[-1].append((schedule.get_last_lr(), schedule.last_epoch, schedule.T_i))
    for (a, *rest), (b, *others) in zip(*rates, strict=True):
        assert a == pytest.approx(b, rel=1e-12)
        assert rest == others


def test_sequence_of_schedules():
    rates = []
    for pt_, om in LIBRARIES:
        optimizer, ls = (
            om.SGD([pt_.zeros(1, requires_grad=True)], lr=0.3),
            om.lr_scheduler,
        )
        parts = [ls.LinearLR(optimizer, 0.1, 1.0, 4), ls.CosineAnnealingLR(optimizer, 10),
                 ls.StepLR(optimizer, 2)]  # fmt: skip
        rates.append(steps(om, optimizer, ls.SequentialLR(optimizer, parts, [4, 9])))
    assert rates[0] == rates[1]


def test_chain_of_schedules():
    rates = []
    for pt_, om in LIBRARIES:
        optimizer, ls = (
            om.SGD([pt_.zeros(1, requires_grad=True)], lr=0.3),
            om.lr_scheduler,
        )
        parts = [ls.ConstantLR(optimizer, 0.1, 5), ls.ExponentialLR(optimizer, 0.9)]
        schedule = ls.ChainedScheduler(parts, optimizer)
        rates.append([schedule.get_last_lr(), *steps(om, optimizer, schedule)])
        rates[-1].append(schedule.get_last_lr())
        for bad in ([], [ls.ReduceLROnPlateau(optimizer)], [object()],
                    [*parts, ls.StepLR(om.SGD([pt_.zeros(1)], lr=0.1), 2)]):  # fmt: skip
            with pytest.raises((ValueError, TypeError, AttributeError)):
                ls.ChainedScheduler(bad)
        saved = schedule.state_dict()
        assert [s["last_epoch"] for s in saved["_schedulers"]] == [29, 29]
    assert rates[0] == rates[1]


def test_cyclic_states_and_errors():
    for pt_, om in LIBRARIES:
        optimizer = om.SGD([pt_.zeros(1)], lr=0.3, momentum=0.9)
        schedule = om.lr_scheduler.CyclicLR(optimizer, 0.1, 0.9, 4)
        steps(om, optimizer, schedule, 6)
        other = om.SGD([pt_.zeros(1)], lr=0.3, momentum=0.9)
        resumed = om.lr_scheduler.CyclicLR(other, 0.1, 0.9, 4)
        resumed.load_state_dict(schedule.state_dict())
        assert steps(om, other, resumed, 5) == steps(om, optimizer, schedule, 5)
        with pytest.raises(ValueError, match="mode"):
            om.lr_scheduler.CyclicLR(optimizer, 0.1, 0.9, mode="square")
        with pytest.raises(ValueError, match="momentum or beta1"):
            om.lr_scheduler.CyclicLR(om.Adagrad([pt_.zeros(1)]), 0.1, 0.9)
        with pytest.raises(ValueError, match="same length"):
            om.lr_scheduler.CyclicLR(optimizer, [0.1, 0.2], 0.9)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "max"},
        {"threshold_mode": "abs", "cooldown": 3, "min_lr": 0.01},
        {"mode": "max", "threshold_mode": "abs", "factor": 0.7},
    ],
)
def test_plateau(options):
    rates = []
    for pt_, om in LIBRARIES:
        optimizer = om.SGD([pt_.zeros(1, requires_grad=True)], lr=0.3)
        schedule = om.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2, **options)
        rates.append([])
        for i in range(60):
            schedule.step(math.sin(i) + i % 7)
            rates[-1].append(optimizer.param_groups[0]["lr"])
    assert rates[0] == rates[1]


def arguments(function):
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in parameters]


SCHEDULE_MODULES = lr_scheduler, torch.optim.lr_scheduler
CLASSES = [
    *[
        (getattr(optim, name), getattr(torch.optim, name))
        for name in optim.__all__
        if name not in ("lr_scheduler", "swa_utils")
    ],
    *[tuple(getattr(m, name) for m in SCHEDULE_MODULES) for name in lr_scheduler.__all__],
]


@pytest.mark.parametrize(("ours", "theirs"), CLASSES, ids=lambda c: c.__name__)
def test_signatures(ours, theirs):
    assert arguments(ours.__init__) == arguments(theirs.__init__)
    for method, function in vars(theirs).items():
        if not method.startswith("_") and inspect.isfunction(function):
            if method not in ("recursive_undo", "profile_hook_step", "share_memory"):
                assert hasattr(ours, method), method


def test_repr():
    texts = [
        repr(om.AdamW([{"params": [pt_.zeros(1, requires_grad=True)]}, {"params": [pt_.ones(1)], "lr": 1.0}], lr=0.5))
        for pt_, om in LIBRARIES
    ]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "options",
    [{"lr": 1e-3}, {"line_search_fn": "strong_wolfe"},
     {"line_search_fn": "strong_wolfe", "history_size": 3, "lr": 0.5}],
)
def test_lbfgs_trajectory(options):
    """100 evaluations of a small network's loss, the position after each step."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(20, 3)), rng.normal(size=(20, 1))
    weights = [rng.normal(size=(3, 4)), rng.normal(size=4), rng.normal(size=(4, 1))]
    paths = []
    for pt_, om in LIBRARIES:
        params = [pt_.tensor(w, dtype=pt_.float64, requires_grad=True) for w in weights]
        inputs, target = pt_.tensor(x, dtype=pt_.float64), pt_.tensor(y, dtype=pt_.float64)
        optimizer = om.LBFGS(params, max_iter=5, **options)

        def closure(optimizer=optimizer, params=params, inputs=inputs, target=target):
            optimizer.zero_grad()
            loss = (((inputs @ params[0] + params[1]).tanh() @ params[2] - target) ** 2).mean()
            # Without a penalty the path amplifies rounding a millionfold in 20 steps.
            loss = loss + 0.02 * sum((p * p).sum() for p in params)
            loss.backward()
            return loss

        paths.append([])
        for _ in range(20):
            optimizer.step(closure)
            paths[-1].append(np.concatenate([p.detach().numpy().ravel() for p in params]))
        state = optimizer.state[params[0]]
        paths[-1].append([state["func_evals"], state["n_iter"]])
    for ours, theirs in zip(*paths, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_hundred_steps(name, options):
    (a, _), (b, _) = (trajectory(pt_, om, name, options, pt_.float64, steps=100) for pt_, om in LIBRARIES)
    for p, q in zip(a, b, strict=True):
        np.testing.assert_allclose(p.tolist(), q.tolist(), rtol=1e-6, atol=1e-12)


def minimised(m, om, kinds, search, pairs):
    """Where LBFGS arrives, and what it remembers."""
    start = [m.tensor([[1 + 2j, -0.5 + 0.3j], [0.1j, 2 - 1j]], dtype=m.complex128),
             m.tensor([0.5, -2.0], dtype=m.float64)][:kinds]
    params = [(m.view_as_real(p).clone() if pairs and p.is_complex() else p).requires_grad_() for p in start]
    optimizer = om.LBFGS(params, line_search_fn=search, max_iter=8)

    def closure():
        optimizer.zero_grad()
        z = m.view_as_complex(params[0]) if pairs else params[0]
        loss = ((z - (1 - 1j)).abs() ** 2 + (z.real - z.imag * 0.5) ** 4).sum()
        if kinds == 2:
            loss = loss + (params[1] * params[1] * z.real[0]).square().sum()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    z = params[0].detach()
    return [z if pairs else m.view_as_real(z), *[p.detach() for p in params[1:]],
            *[optimizer.state[params[0]][k] for k in ("d", "prev_flat_grad")]]


# Functions that a line search has work with: valleys, flat and steep places, many minima.
HARD = {
    "valley": lambda m, x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2,
    "flat": lambda m, x: ((x - m.tensor([1.0, -2.0], dtype=m.float64)) ** 4).sum() + 0.1 * x[0] * x[1],
    "kinks": lambda m, x: ((x - 0.3).abs() ** 1.5).sum() + (x[0] - x[1]) ** 2,
    "steep": lambda m, x: (3 * x[0]).exp() + (-x[0]).exp() + (x[1] ** 2 - x[0]) ** 2,
    "wells": lambda m, x: (1 + (10 * (x - 1)) ** 2).log().sum() + 0.01 * (x * x).sum(),
}


@pytest.mark.parametrize("lr", [1.0, 10.0])
@pytest.mark.parametrize("name", HARD)
def test_lbfgs_searches_along_a_line(name, lr):
    """Every point that is tried, and when the evaluations that are allowed are used up."""
    for start in range(6):
        tried = []
        for m in (pt, torch):
            x = m.tensor([1.5 * math.cos(start) - 1, 2 * math.sin(2 * start)], dtype=m.float64, requires_grad=True)
            optimizer, points = m.optim.LBFGS([x], lr=lr, max_iter=12, line_search_fn="strong_wolfe"), []

            def closure(m=m, x=x, optimizer=optimizer, points=points):
                optimizer.zero_grad()
                loss = HARD[name](m, x)
                loss.backward()
                points.append([*x.tolist(), loss.item()])
                return loss
            optimizer.step(closure)
            tried.append(points)
        assert len(tried[0]) == len(tried[1])
        np.testing.assert_allclose(*tried, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
@pytest.mark.parametrize("kinds", [1, 2])
def test_lbfgs_of_complex_parameters(kinds, search):
    """As torch's, and as that of the pairs of real numbers."""
    first, *others = [minimised(*library, kinds, search, pairs) for library in LIBRARIES for pairs in (False, True)]
    for other in others:
        for a, b in zip(first, other):
            np.testing.assert_allclose(a.reshape(-1).numpy(), b.reshape(-1).numpy(), rtol=1e-5, atol=1e-8)
