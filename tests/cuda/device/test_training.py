"""Networks trained on a device: the same losses and weights as on the CPU, in float64 to rounding."""
import copy

import pytest

import ptcore
from ptcore import nn

CLASSES = 5


def lenet():
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(4, 6, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(6, CLASSES))


def perceptron():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(0.2),
                         nn.Linear(16, CLASSES))


MODELS = {"lenet": lenet, "perceptron": perceptron}
OPTIMIZERS = {
    "sgd": lambda p: ptcore.optim.SGD(p, 0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "adam": lambda p: ptcore.optim.Adam(p, 0.01),
    "adamw": lambda p: ptcore.optim.AdamW(p, 0.01, amsgrad=True),
    "rmsprop": lambda p: ptcore.optim.RMSprop(p, 0.01, momentum=0.5),
    "adagrad": lambda p: ptcore.optim.Adagrad(p, 0.05),
}


def trained(model, make, device, x, y, steps=4):
    model = copy.deepcopy(model).to(device)
    optimizer = make(model.parameters())
    x, y = x.to(device), y.to(device)
    losses = []
    ptcore.manual_seed(5)               # dropout draws the same on both
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y, label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, model


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_as_on_the_cpu(name, optimizer):
    ptcore.set_default_dtype(ptcore.float64)
    x, y = ptcore.randn(6, 1, 8, 8), ptcore.randint(0, CLASSES, (6,))
    model = MODELS[name]()
    losses, there = trained(model, OPTIMIZERS[optimizer], "cuda", x, y)
    expected, here = trained(model, OPTIMIZERS[optimizer], "cpu", x, y)
    assert losses == pytest.approx(expected, rel=1e-7)
    for (key, a), b in zip(there.state_dict().items(), here.state_dict().values(), strict=True):
        assert a.is_cuda
        ptcore.testing.assert_close(a.cpu(), b, rtol=1e-6, atol=1e-8, msg=key)


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
def test_save_and_load(tmp_path, suffix):
    model = perceptron().cuda()
    path = tmp_path / f"model.{suffix}"
    ptcore.save(model.state_dict(), path)
    assert {v.device for v in ptcore.load(path).values()} == {ptcore.device("cuda:0")}
    loaded = ptcore.load(path, map_location="cpu")
    assert {v.device.type for v in loaded.values()} == {"cpu"}
    other = perceptron()
    other.load_state_dict(loaded)
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        assert a.cpu().equal(b)
    model.load_state_dict(loaded)       # from the CPU into the device's
    assert all(p.is_cuda for p in model.parameters())


def test_double_backward():
    x = ptcore.randn(3, 4, dtype=ptcore.float64)
    results = []
    for device in ("cpu", "cuda"):
        a = x.to(device).requires_grad_()
        y = (a.tanh() @ a.t()).exp().sum()
        (g,) = ptcore.autograd.grad(y, a, create_graph=True)
        (h,) = ptcore.autograd.grad((g * g).sum(), a)
        results.append(h.cpu())
    ptcore.testing.assert_close(results[1], results[0], rtol=1e-10, atol=1e-12)


def test_restart(tmp_path):
    """A checkpoint brings back weights, moments and the generator of the device, which dropout draws from."""
    def run(seed):
        ptcore.manual_seed(seed)
        model = perceptron().to("cuda")
        optimizer = ptcore.optim.Adam(model.parameters(), 0.01)
        restart = ptcore.utils.restart.Restart(tmp_path, every=3, model=model, optimizer=optimizer)
        resumed = restart.resume()
        x = ptcore.linspace(-1, 1, 8 * 64, device="cuda").reshape(8, 1, 8, 8)
        target = ptcore.arange(8, device="cuda") % CLASSES
        for _ in restart.batches(range(5 - restart.step)):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), target).backward()
            optimizer.step()
        assert optimizer.state_dict()["state"][0]["exp_avg"].device.type == "cuda"
        return resumed, [*model.parameters(), ptcore.rand(3, device="cuda"), ptcore.rand(3)]

    resumed, whole = run(0)
    assert not resumed
    resumed, rest = run(1)
    assert resumed
    assert all(a.equal(b) for a, b in zip(whole, rest, strict=True))
