"""Averages of models against closed forms: means, exponential averages, buffers, batch normalization, the schedule."""
import copy
import pickle

import numpy as np
import pytest

import ptcore as pt
from ptcore import nn
from ptcore.optim import swa_utils


def models(n=5):
    """A model in n states."""
    pt.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    for _ in range(n):
        for t in [*net.parameters(), *net.buffers()]:
            t.detach().copy_(pt.randn(t.shape).mul(8).to(t.dtype))
        yield net


def states(n=5):
    return [{k: v.detach().clone().double().numpy() for k, v in net.state_dict().items()} for net in models(n)]


def run(n=5, **options):
    made = None
    for net in models(n):
        made = made or swa_utils.AveragedModel(net, **options)
        made.update_parameters(net)
    return {k: v.detach().double().numpy() for k, v in made.module.state_dict().items()}, made


@pytest.mark.parametrize("options", [{}, {"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()},
                                     {"avg_fn": swa_utils.get_swa_avg_fn()}])
@pytest.mark.parametrize("use_buffers", [False, True])
def test_means(options, use_buffers):
    got, made = run(use_buffers=use_buffers, **options)
    every = states()
    for name, x in got.items():
        want = np.mean([s[name] for s in every], axis=0)
        if "running" in name and not use_buffers:
            want = every[-1][name]
        if name.endswith("tracked"):
            if use_buffers:
                continue                                # integers are cut at each step
            want = every[-1][name]
        np.testing.assert_allclose(x, want, rtol=1e-5, atol=1e-5)
    assert made.n_averaged == 5 and "n_averaged" in made.state_dict()


@pytest.mark.parametrize("options", [{"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.9)},
                                     {"avg_fn": swa_utils.get_ema_avg_fn(0.9)}])
def test_exponential_averages(options):
    got, _ = run(**options)
    every = states()
    for name in ("0.weight", "1.bias"):
        want = every[0][name]
        for s in every[1:]:
            want = 0.9 * want + 0.1 * s[name]
        np.testing.assert_allclose(got[name], want, rtol=1e-5, atol=1e-5)


def test_a_model_of_its_own():
    net = nn.Linear(2, 2)
    average = swa_utils.AveragedModel(net)
    net.weight.data.fill_(3)
    average.update_parameters(net)
    x = pt.ones(1, 2)
    assert pt.equal(average(x), net(x))
    net.weight.data.fill_(4)
    assert not pt.equal(average(x), net(x))
    again = swa_utils.AveragedModel(net)
    again.load_state_dict(average.state_dict())
    assert pt.equal(again(x), average(x)) and again.n_averaged == 1
    for other in (copy.deepcopy(average), pickle.loads(pickle.dumps(average))):
        assert pt.equal(other(x), average(x))
    shared = swa_utils.AveragedModel(nn.Sequential(net, net))
    shared.update_parameters(nn.Sequential(net, net))
    assert len([*shared.parameters()]) == 2


def test_what_makes_no_sense_is_refused():
    net = nn.Linear(2, 2)
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn"):
        swa_utils.AveragedModel(net, avg_fn=swa_utils.get_swa_avg_fn(), multi_avg_fn=swa_utils.get_swa_multi_avg_fn())
    for make in (swa_utils.get_ema_avg_fn, swa_utils.get_ema_multi_avg_fn):
        for decay in (-0.1, 1.1):
            with pytest.raises(ValueError, match="Invalid decay value"):
                make(decay)
    optimizer = pt.optim.SGD(net.parameters(), 1.0)
    for options in ({"anneal_strategy": "log"}, {"anneal_epochs": -1}, {"anneal_epochs": 1.5}):
        with pytest.raises(ValueError, match="must be"):
            swa_utils.SWALR(optimizer, 0.1, **options)
    with pytest.raises(ValueError, match="swa_lr"):
        swa_utils.SWALR(optimizer, [0.1, 0.2])


def test_batch_statistics_are_means_over_batches():
    pt.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2, momentum=0.3), nn.Dropout(0.5)).eval()
    batches = [pt.randn(8, 3) * (k + 1) for k in range(4)]
    swa_utils.update_bn([(b, None) for b in batches], net)
    inside = [net[0](b).detach().double().numpy() for b in batches]
    np.testing.assert_allclose(net[1].running_mean.numpy(), np.mean([x.mean(0) for x in inside], axis=0), rtol=1e-5)
    want = np.mean([x.var(0, ddof=1) for x in inside], axis=0)
    np.testing.assert_allclose(net[1].running_var.numpy(), want, rtol=1e-5)
    assert net[1].momentum == 0.3 and not net.training and net[1].num_batches_tracked == 4
    before = net[1].running_mean.clone()
    swa_utils.update_bn(batches, net, device="cpu")
    assert pt.equal(net[1].running_mean, before)
    swa_utils.update_bn(iter(()), nn.Linear(1, 1))
    with pytest.raises(RuntimeError):
        swa_utils.update_bn([pt.ones(8, 5)], net)
    assert net[1].momentum == 0.3 and not net.training


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("epochs", [0, 1, 4])
def test_schedule(strategy, epochs):
    layers = nn.Linear(1, 1), nn.Linear(1, 1)
    optimizer = pt.optim.SGD([{"params": m.parameters(), "lr": lr} for m, lr in zip(layers, (1.0, 0.01))], 0.5)
    schedule = swa_utils.SWALR(optimizer, [0.2, 0.1], epochs, strategy)
    for k in range(1, 8):
        optimizer.step()
        schedule.step()
        t = 1.0 if epochs == 0 else min(1.0, k / epochs)
        t = t if strategy == "linear" else (1 - np.cos(np.pi * t)) / 2
        assert schedule.get_last_lr() == pytest.approx([1.0 + (0.2 - 1.0) * t, 0.01 + (0.1 - 0.01) * t])
    other = swa_utils.SWALR(optimizer, [0.2, 0.1], epochs, strategy)
    other.load_state_dict(pickle.loads(pickle.dumps(schedule.state_dict())))
    assert other.last_epoch == schedule.last_epoch and other.anneal_func(0.3) == schedule.anneal_func(0.3)
