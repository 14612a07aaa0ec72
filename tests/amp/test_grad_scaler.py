"""``GradScaler``: scaled gradients, steps that are left out, growth, its state, what is refused."""
import copy
import pickle

import numpy as np
import pytest

import ptcore as pt
from ptcore import nn
from ptcore._ops.optimizers.optimizers import unscale
from ptcore.amp import GradScaler

X = pt.randn(6, 3)


def made(optimizer=pt.optim.SGD, **options):
    pt.manual_seed(1)
    layer = nn.Linear(3, 2)
    return layer, optimizer(layer.parameters(), 0.1), GradScaler("cpu", **options)


@pytest.mark.parametrize("optimizer", [pt.optim.SGD, pt.optim.Adam, pt.optim.AdamW, pt.optim.RMSprop])
def test_steps_are_those_without_a_scale(optimizer):
    """A power of two changes no bits."""
    layer, opt, scaler = made(optimizer, init_scale=1024.0)
    plain, plain_opt, _ = made(optimizer)
    for k in range(5):
        for model, o, s in ((layer, opt, scaler), (plain, plain_opt, None)):
            o.zero_grad()
            loss = model(X * (k + 1)).square().mean()
            if s is None:
                loss.backward()
                o.step()
            else:
                s.scale(loss).backward()
                if k % 2:
                    s.unscale_(o)
                    nn.utils.clip_grad_norm_(model.parameters(), 1e6)
                s.step(o)
                s.update()
    for a, b in zip(layer.parameters(), plain.parameters()):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def test_infinite_gradients_leave_out_a_step():
    layer, opt, scaler = made(growth_interval=2)
    before = layer.weight.detach().clone()
    for bad in (float("inf"), float("nan"), -float("inf")):
        opt.zero_grad()
        scaler.scale(layer(X).sum()).backward()
        layer.bias.grad[1] = bad
        scale = scaler.get_scale()
        assert scaler.step(opt) is None
        scaler.update()
        assert scaler.get_scale() == scale / 2
    assert pt.equal(layer.weight, before)
    for _ in range(2):
        opt.zero_grad()
        scaler.scale(layer(X).sum()).backward()
        scaler.step(opt)
        scaler.update()
    assert scaler.get_scale() == scale and not pt.equal(layer.weight, before)
    scaler.scale(layer(X).sum())
    scaler.update(3.0)
    assert scaler.get_scale() == 3.0
    scaler.update(pt.tensor([5.0]))
    assert scaler.get_scale() == 5.0
    with pytest.raises(AssertionError, match="new_scale must be"):
        scaler.update("x")


def test_growth_stops_at_the_largest_float():
    layer, opt, scaler = made(init_scale=2.0**127, growth_interval=1)
    opt.zero_grad()
    scaler.scale(layer(X).sum() * 0).backward()
    scaler.step(opt)
    scaler.update()
    assert scaler.get_scale() == 2.0**127


def test_one_pass_over_gradients():
    for dtype in (pt.float32, pt.float64, pt.float16, pt.bfloat16):
        for n in (0, 1, 7, 1000, 100_001):
            grads = [pt.randn(n).to(dtype), pt.randn(3, 4).to(dtype).t(), pt.randn(6).to(dtype)[::2]]
            want = [g.double() * 0.25 for g in grads]
            versions = [g._version for g in grads]
            found = unscale(grads, pt.tensor(0.25), pt.tensor(0.0))
            assert found.item() == 0
            for g, w, v in zip(grads, want, versions):
                assert g._version == v + 1
                np.testing.assert_allclose(g.double().numpy(), w.numpy(), rtol=0 if dtype != pt.float16 else 2**-10,
                                           atol=0 if dtype != pt.float16 else 2**-25)
            for value in (float("inf"), float("nan")):
                for place in range(0, n, max(1, n // 3)):
                    x = pt.zeros(n, dtype=dtype)
                    x[place] = value
                    assert unscale([pt.zeros(2, dtype=dtype), x], pt.tensor(0.25), pt.tensor(0.0)).item() == 1
    with pytest.raises(TypeError):
        unscale([1], pt.tensor(0.25), pt.tensor(0.0))


def test_several_optimizers_and_outputs():
    a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    first, second = pt.optim.SGD(a.parameters(), 0.1), pt.optim.SGD(b.parameters(), 0.1)
    scaler = GradScaler("cpu", init_scale=4.0)
    x = pt.ones(1, 2)
    losses = scaler.scale([a(x).sum(), (b(x).sum(),)])
    assert type(losses) is list and type(losses[1]) is tuple
    (losses[0] + losses[1][0]).backward()
    b.weight.grad.fill_(float("inf"))
    kept = b.weight.detach().clone()
    scaler.step(first)
    scaler.step(second)
    scaler.update()
    assert scaler.get_scale() == 2.0 and pt.equal(b.weight, kept)
    np.testing.assert_array_equal(a.weight.grad.numpy(), np.ones((2, 2)))
    for wrong in (3, "loss", {"a": a(x).sum()}, ["loss"]):
        with pytest.raises(ValueError, match="must be a Tensor or an iterable"):
            scaler.scale(wrong)


def test_order_of_calls():
    layer, opt, scaler = made()
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.update()
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.step(opt)
    scaler.scale(layer(X).sum()).backward()
    scaler.unscale_(opt)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) has already been called"):
        scaler.unscale_(opt)
    scaler.step(opt)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
        scaler.step(opt)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) is being called after step"):
        scaler.unscale_(opt)
    scaler.update()
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()
    opt.zero_grad()
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer"):
        scaler.step(opt)
    with pytest.raises(RuntimeError, match="Closure use"):
        scaler.step(opt, closure=lambda: 0)
    half = nn.Linear(2, 1).half()
    optimizer = pt.optim.SGD(half.parameters(), 0.1)
    scaler.scale(half(pt.ones(1, 2).half()).sum()).backward()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.step(optimizer)
    with pytest.raises(AssertionError, match="growth factor must be > 1"):
        GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match="backoff factor must be < 1"):
        GradScaler("cpu", backoff_factor=1.0)


def test_state():
    layer, opt, scaler = made(init_scale=8.0, growth_interval=7)
    scaler.scale(layer(X).sum()).backward()
    scaler.step(opt)
    with pytest.raises(AssertionError, match="may only be pickled"):
        pickle.dumps(scaler)
    scaler.update()
    state = scaler.state_dict()
    assert state == {"scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 7,
                     "_growth_tracker": 1}
    for other in (pickle.loads(pickle.dumps(scaler)), copy.deepcopy(scaler), GradScaler("cpu")):
        other.load_state_dict(state)
        assert other.state_dict() == state
        other.scale(pt.ones(()))
        assert other.state_dict() == state
    scaler.set_growth_factor(4.0)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_interval(3)
    assert (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()) == (4.0, 0.25, 3)
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        scaler.load_state_dict({})


def test_a_scaler_that_is_off():
    layer, opt, _ = made()
    scaler = GradScaler("cpu", enabled=False)
    loss = layer(X).sum()
    assert scaler.scale(loss) is loss and scaler.get_scale() == 1.0 and scaler.state_dict() == {}
    loss.backward()
    scaler.unscale_(opt)
    before = layer.weight.detach().clone()
    scaler.step(opt)
    scaler.update()
    assert not pt.equal(layer.weight, before) and not scaler.is_enabled()
    scaler.load_state_dict({"scale": 3.0})


def test_training_in_half_precision():
    pt.manual_seed(3)
    net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    opt, scaler = pt.optim.Adam(net.parameters(), 0.02), GradScaler("cpu")
    x = pt.randn(256, 2)
    y = (x[:, :1] * x[:, 1:]).tanh()
    for _ in range(200):
        opt.zero_grad()
        with pt.autocast("cpu", pt.float16):
            loss = nn.functional.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
    assert loss.item() < 0.03 and scaler.get_scale() > 1000
