"""Averages of models and their schedule beside PyTorch's."""
import inspect

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")
from ptcore.optim import swa_utils as ours  # noqa: E402

theirs = pytest.importorskip("torch.optim.swa_utils")
pytestmark = pytest.mark.parity


def test_names_and_signatures():
    assert sorted(ours.__all__) == sorted(theirs.__all__)
    for name in ours.__all__:
        mine, torchs = [[*inspect.signature(getattr(m, name)).parameters] for m in (ours, theirs)]
        assert mine == torchs


@pytest.mark.parametrize("options", [{}, {"use_buffers": True}, {"multi": 0.9}, {"one": 0.8}])
def test_training(options):
    values = np.random.default_rng(0).normal(size=(6, 8, 4)).astype("float32")
    found = []
    for lib, utils in ((pt, ours), (torch, theirs)):
        net = lib.nn.Sequential(lib.nn.Linear(4, 3), lib.nn.BatchNorm1d(3))
        with lib.no_grad():
            for k, p in enumerate(net.parameters()):
                p.copy_(lib.tensor(np.linspace(-1, 1, p.numel(), dtype="float32").reshape(tuple(p.shape)) + k))
        given = {"use_buffers": options.get("use_buffers", False)}
        if "multi" in options:
            given["multi_avg_fn"] = utils.get_ema_multi_avg_fn(options["multi"])
        if "one" in options:
            given["avg_fn"] = utils.get_ema_avg_fn(options["one"])
        average = utils.AveragedModel(net, **given)
        optimizer = lib.optim.SGD(net.parameters(), 0.1, momentum=0.9)
        schedule, rates = utils.SWALR(optimizer, 0.02, anneal_epochs=3), []
        for x in values:
            optimizer.zero_grad()
            net(lib.tensor(x)).square().sum().backward()
            optimizer.step()
            average.update_parameters(net)
            schedule.step()
            rates += schedule.get_last_lr()
        utils.update_bn([lib.tensor(x) for x in values], average)
        state = average.state_dict()
        found.append(([*state], [v.detach().double().numpy() for v in state.values()], rates))
    assert found[0][0] == found[1][0]
    for a, b in zip(found[0][1], found[1][1]):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)
    assert found[0][2] == pytest.approx(found[1][2])
