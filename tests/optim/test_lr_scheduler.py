"""Schedules against their closed forms."""

import math
import pickle
from itertools import pairwise

import numpy as np
import pytest

import ptcore as pt
from ptcore import optim
from ptcore.optim import lr_scheduler as ls

pytestmark = pytest.mark.core

EPOCHS = 25


def make(lrs=(0.5, 0.1), **options):
    groups = [{"params": pt.ones(1, requires_grad=True), "lr": lr} for lr in lrs]
    return optim.SGD(groups, **options)


def run(optimizer, scheduler, epochs=EPOCHS):
    rates = [[g["lr"] for g in optimizer.param_groups]]
    for _ in range(epochs):
        optimizer.step()
        scheduler.step()
        assert scheduler.get_last_lr() == [g["lr"] for g in optimizer.param_groups]
        rates.append(scheduler.get_last_lr())
    return np.array(rates)


def cosine(e, period, low):
    return lambda lr: low + (lr - low) * (1 + math.cos(math.pi * e / period)) / 2


CASES = {
    "step": (lambda o: ls.StepLR(o, 4, 0.5), lambda e: lambda lr: lr * 0.5 ** (e // 4)),
    "multistep": (
        lambda o: ls.MultiStepLR(o, [3, 3, 10]),
        lambda e: lambda lr: lr * 0.1 ** (2 * (e >= 3) + (e >= 10)),
    ),
    "constant": (
        lambda o: ls.ConstantLR(o, 0.25, 6),
        lambda e: lambda lr: lr * (0.25 if e < 6 else 1),
    ),
    "linear": (
        lambda o: ls.LinearLR(o, 0.5, 0.1, 8),
        lambda e: lambda lr: lr * (0.5 - 0.4 * min(e, 8) / 8),
    ),
    "exponential": (
        lambda o: ls.ExponentialLR(o, 0.9),
        lambda e: lambda lr: lr * 0.9**e,
    ),
    "cosine": (
        lambda o: ls.CosineAnnealingLR(o, 7, 0.01),
        lambda e: cosine(e, 7, 0.01),
    ),
    "lambda": (
        lambda o: ls.LambdaLR(o, [lambda e: 1 / (1 + e), lambda e: 0.95**e]),
        lambda e: lambda lr: lr / (1 + e) if lr == 0.5 else lr * 0.95**e,
    ),
    "sequential": (
        lambda o: ls.SequentialLR(
            o, [ls.ConstantLR(o, 0.1, 100), ls.ExponentialLR(o, 0.5)], [5]
        ),
        lambda e: lambda lr: lr * (0.1 if e < 5 else 0.5 ** (e - 5)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_closed_form(name):
    build, formula = CASES[name]
    optimizer = make()
    rates = run(optimizer, build(optimizer))
    expected = [[formula(e)(lr) for lr in (0.5, 0.1)] for e in range(EPOCHS + 1)]
    np.testing.assert_allclose(rates, expected, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("name", CASES)
def test_resuming(name):
    build, _ = CASES[name]
    optimizer = make()
    expected = run(optimizer, build(optimizer))
    first = make()
    scheduler = build(first)
    run(first, scheduler, 10)
    second = make()
    resumed = build(second)
    resumed.load_state_dict(scheduler.state_dict())
    second.load_state_dict(first.state_dict())
    np.testing.assert_allclose(run(second, resumed, 15), expected[10:], rtol=1e-12)


@pytest.mark.parametrize("name", [n for n in CASES if n != "lambda"])
def test_state_is_plain_data(name):
    state = CASES[name][0](make()).state_dict()
    assert pickle.loads(pickle.dumps(state)) == state
    assert "optimizer" not in state


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("three_phase", [False, True])
@pytest.mark.parametrize("adam", [False, True])
def test_one_cycle(strategy, three_phase, adam):
    total = 20
    p = pt.ones(1, requires_grad=True)
    optimizer = optim.Adam([p]) if adam else optim.SGD([p], lr=1, momentum=0.5)
    scheduler = ls.OneCycleLR(
        optimizer, 1.0, epochs=4, steps_per_epoch=5, pct_start=0.25,
        anneal_strategy=strategy, div_factor=10, final_div_factor=100,
        three_phase=three_phase,
    )  # fmt: skip
    marks = [(0, 0.1, 0.95), (4, 1.0, 0.85)]
    if three_phase:
        marks.append((8, 0.1, 0.95))
    marks.append((19, 0.001, 0.95))

    def expected(step):
        for (s0, *start), (s1, *end) in pairwise(marks):
            if step <= s1:
                share = (step - s0) / (s1 - s0)
                if strategy == "cos":
                    share = (1 - math.cos(math.pi * share)) / 2
                return [a + (b - a) * share for a, b in zip(start, end, strict=True)]
        raise AssertionError(step)

    for step in range(total):
        group = optimizer.param_groups[0]
        momentum = group["betas"][0] if adam else group["momentum"]
        np.testing.assert_allclose([group["lr"], momentum], expected(step), rtol=1e-10)
        optimizer.step()
        if step + 1 < total:
            scheduler.step()
    scheduler.step()
    with pytest.raises(ValueError, match="Tried to step 21 times"):
        scheduler.step()


def test_plateau():
    optimizer = make((1.0,))
    scheduler = ls.ReduceLROnPlateau(
        optimizer, factor=0.5, patience=1, cooldown=2, min_lr=0.2, threshold=0.1
    )
    # 0.95 is no improvement on 1 by 10 %; epochs 3 and 4 cool down.
    values = [1.0, 0.95, 0.95, 0.95, 0.95, 0.95, 0.95, 0.1, 0.1, 0.1, 0.1]
    rates = []
    for value in values:
        optimizer.step()
        scheduler.step(pt.tensor(value))
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == [1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.2]
    assert scheduler.best == pytest.approx(0.1)
    other = ls.ReduceLROnPlateau(make((1.0,)))
    other.load_state_dict(scheduler.state_dict())
    assert other.num_bad_epochs == scheduler.num_bad_epochs
    rising = ls.ReduceLROnPlateau(make(), mode="max", patience=0, threshold_mode="abs")
    rising.step(1.0)
    rising.step(2.0)
    assert rising.get_last_lr() == [0.5, 0.1]
    rising.step(2.0)
    assert rising.get_last_lr() == pytest.approx([0.05, 0.01])


def test_rate_changed_by_hand_is_kept():
    optimizer = make((1.0,))
    scheduler = ls.StepLR(optimizer, 2, 0.5)
    optimizer.param_groups[0]["lr"] = 8.0
    rates = run(optimizer, scheduler, 4)[:, 0].tolist()
    assert rates == [8, 8, 4, 4, 2]


def test_lambda_objects_keep_their_state():
    class Warm:
        def __init__(self, n):
            self.n = n

        def __call__(self, epoch):
            return min(1.0, (epoch + 1) / self.n)

    a = ls.LambdaLR(make((1.0,)), Warm(4))
    b = ls.LambdaLR(make((1.0,)), Warm(9))
    b.load_state_dict(a.state_dict())
    assert b.lr_lambdas[0].n == 4
    assert ls.LambdaLR(make(), lambda e: 1.0).state_dict()["lr_lambdas"] == [None, None]


def test_a_rate_that_ends_at_nothing():
    optimizer, rates = make(), []
    schedule = ls.LinearLR(optimizer, 1.0, 0.0, 2)      # the greatest and the least factor that it takes
    for _ in range(3):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert rates == [rates[0], rates[0] / 2, 0]


def test_warnings_and_errors():
    optimizer = make()
    scheduler = ls.StepLR(optimizer, 2)
    with pytest.warns(UserWarning, match=r"before `optimizer.step\(\)`"):
        scheduler.step()
    with pytest.warns(UserWarning, match="epoch parameter"):
        scheduler.step(4)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.005)
    for call, error, text in [
        (lambda: ls.StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (lambda: ls.StepLR(make(), 1, last_epoch=3), KeyError, "initial_lr"),
        (lambda: ls.LambdaLR(make(), [len]), ValueError, "same length"),
        (lambda: ls.ConstantLR(make(), 2), ValueError, "between 0 and 1"),
        (lambda: ls.LinearLR(make(), 0), ValueError, "greater than 0"),
        (lambda: ls.LinearLR(make(), 1.5), ValueError, "or equal to 1, got 1.5"),
        (lambda: ls.LinearLR(make(), end_factor=-0.1), ValueError, "between 0 and 1, got -0.1"),
        (lambda: ls.LinearLR(make(), end_factor=1.1), ValueError, "between 0 and 1, got 1.1"),
        (lambda: ls.OneCycleLR(make(), 1), ValueError, "total_steps OR"),
        (lambda: ls.CosineAnnealingWarmRestarts(make(), 0), ValueError, "positive integer T_0, but got 0"),
        (lambda: ls.CosineAnnealingWarmRestarts(make(), 2.5), ValueError, "positive integer T_0, but got 2.5"),
        (lambda: ls.CosineAnnealingWarmRestarts(make(), "a"), ValueError, "positive integer T_0, but got a"),
        (lambda: ls.CosineAnnealingWarmRestarts(make(), 2, 0), ValueError, "T_mult >= 1, but got 0"),
        (lambda: ls.CosineAnnealingWarmRestarts(make(), 2, 1, "a"), ValueError, "eta_min, but got a"),
        (lambda: ls.CosineAnnealingWarmRestarts(make(), 2).step(-1), ValueError, "non-negative epoch, but got -1"),
        (lambda: ls.CosineAnnealingWarmRestarts(make(), 2).step(float("inf")), ValueError, "epoch, but got inf"),
        (lambda: ls.OneCycleLR(make(), 1, 0), ValueError, "positive integer"),
        (lambda: ls.ReduceLROnPlateau(make(), factor=1), ValueError, "< 1.0"),
        (lambda: ls.ReduceLROnPlateau(make(), "mid"), ValueError, "mode mid"),
        (lambda: ls.SequentialLR(make(), [], []), ValueError, "at least one"),
    ]:
        with pytest.raises(error, match=text):
            call()


def restarts(epoch, first, times, low):
    """The published schedule: falls of `first`, `first * times`, ... epochs."""
    begin, length = 0, first
    while epoch >= begin + length:
        begin, length = begin + length, length * times
    return cosine(epoch - begin, length, low)


@pytest.mark.parametrize(("first", "times", "low"), [(5, 1, 0.0), (3, 2, 0.01), (1, 3, 0.0), (2, 5, 0.1)])
def test_warm_restarts(first, times, low):
    """By single steps, by epochs and by parts of them, and mixed."""
    optimizer = make()
    initial = [g["lr"] for g in optimizer.param_groups]
    scheduler = ls.CosineAnnealingWarmRestarts(optimizer, first, times, low)
    other = make()
    jumping = ls.CosineAnnealingWarmRestarts(other, first, times, low)
    for epoch in range(130):
        for o in (optimizer, other):
            want = [restarts(epoch, first, times, low)(lr) for lr in initial]
            assert [g["lr"] for g in o.param_groups] == pytest.approx(want, rel=1e-12)
        scheduler.step()
        for part in (0.25, 0.5):
            jumping.step(epoch + part)
            want = [restarts(epoch + part, first, times, low)(lr) for lr in initial]
            assert [g["lr"] for g in other.param_groups] == pytest.approx(want, rel=1e-12)
        jumping.step(epoch + 1)
    jumping.step(26)
    jumping.step()
    assert jumping.last_epoch == 27
    assert other.param_groups[0]["lr"] == pytest.approx(restarts(27, first, times, low)(initial[0]), rel=1e-12)


def test_warm_restarts_resume():
    optimizer, other = make(), make()
    scheduler = ls.CosineAnnealingWarmRestarts(optimizer, 3, 2)
    for _ in range(11):
        scheduler.step()
    resumed = ls.CosineAnnealingWarmRestarts(other, 3, 2)
    resumed.load_state_dict(scheduler.state_dict())
    for _ in range(12):
        scheduler.step()
        resumed.step()
        assert [g["lr"] for g in optimizer.param_groups] == [g["lr"] for g in other.param_groups]
