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
]


def trajectory(pt, om, name, options, dtype, steps=12):
    rng = np.random.default_rng(7)
    params = [
        pt.tensor(rng.normal(size=s).tolist(), dtype=dtype, requires_grad=True)
        for s in [(3, 2), (4,), ()]
    ]
    optimizer = getattr(om, name)(
        [{"params": params[:2]}, {"params": params[2:], "lr": 0.2}], **options
    )
    for i in range(steps):
        for j, p in enumerate(params):
            gradient = rng.normal(size=tuple(p.shape)).tolist()
            p.grad = None if (i + j) % 5 == 0 else pt.tensor(gradient, dtype=dtype)
        optimizer.step()
    return params, optimizer


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_trajectories_and_state(name, options, dtype):
    (a, ours), (b, theirs) = (
        trajectory(pt, om, name, options, getattr(pt, dtype)) for pt, om in LIBRARIES
    )
    rtol, atol = (1e-12, 0) if dtype == "float64" else (2e-5, 1e-6)
    for p, q in zip(a, b, strict=True):
        np.testing.assert_allclose(p.tolist(), q.tolist(), rtol=rtol, atol=atol)
    ours, theirs = ours.state_dict(), theirs.state_dict()
    assert ours["param_groups"] == theirs["param_groups"]
    assert list(ours["state"]) == list(theirs["state"])
    for key, state in theirs["state"].items():
        assert list(ours["state"][key]) == list(state)
        for option, value in state.items():
            np.testing.assert_allclose(
                ours["state"][key][option].tolist(), value.tolist(), rtol, atol
            )


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
        if name != "lr_scheduler"
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
