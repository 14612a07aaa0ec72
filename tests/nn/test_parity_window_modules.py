"""Modules of convolution, pooling, padding and resampling against torch.nn."""

import inspect

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

MODULES = [
    ("Conv1d", (4, 6, 3), {}, (2, 4, 9)),
    ("Conv1d", (4, 6, 4), {"padding": "same", "padding_mode": "circular"}, (2, 4, 9)),
    ("Conv2d", (4, 6, 3), {}, (2, 4, 9, 8)), ("Conv2d", (4, 8, (3, 2), 2, (1, 0), 2, 2, False), {}, (2, 4, 9, 8)),
    ("Conv2d", (4, 6, 3), {"padding": (1, 2), "padding_mode": "reflect"}, (2, 4, 9, 8)),
    ("Conv2d", (4, 4, 3), {"padding": 1, "padding_mode": "replicate", "groups": 4}, (4, 9, 8)),
    ("Conv2d", (4, 6, 2), {"padding": "same", "padding_mode": "reflect"}, (2, 4, 9, 8)),
    ("Conv2d", (4, 6, 2), {"padding": "valid", "padding_mode": "circular"}, (2, 4, 9, 8)),
    ("Conv3d", (2, 4, 3), {"padding": 1}, (1, 2, 5, 4, 6)),
    ("ConvTranspose1d", (4, 6, 3), {"stride": 2, "dilation": 2}, (2, 4, 9)),
    ("ConvTranspose2d", (4, 6, 3, 2, 1, 1, 2), {}, (2, 4, 5, 4)),
    ("ConvTranspose3d", (2, 4, 2), {"stride": 2}, (1, 2, 3, 2, 2)),
    ("MaxPool1d", (3, 2), {}, (2, 4, 9)),
    ("MaxPool2d", ((2, 3),), {"return_indices": True, "ceil_mode": True}, (2, 4, 9, 8)),
    ("MaxPool3d", (2,), {}, (1, 2, 5, 4, 6)), ("AvgPool1d", (3,), {"stride": 2}, (2, 4, 9)),
    ("AvgPool2d", (3, 2, 1, True, False), {}, (2, 4, 9, 8)),
    ("AvgPool3d", (2,), {"divisor_override": 3}, (1, 2, 5, 4, 6)),
    ("AdaptiveAvgPool1d", (3,), {}, (2, 4, 9)), ("AdaptiveAvgPool2d", ((None, 3),), {}, (2, 4, 9, 8)),
    ("AdaptiveAvgPool3d", (1,), {}, (1, 2, 5, 4, 6)),
    ("AdaptiveMaxPool1d", (3, True), {}, (2, 4, 9)), ("AdaptiveMaxPool2d", (2,), {}, (2, 4, 9, 8)),
    ("AdaptiveMaxPool3d", (2,), {}, (1, 2, 5, 4, 6)),
    ("LPPool1d", (2, 3), {}, (2, 4, 9)), ("LPPool2d", (2, 3), {"ceil_mode": True}, (2, 4, 9, 8)),
    ("LPPool3d", (2, 2), {}, (1, 2, 4, 4, 4)),
    *[(f"{kind}{n}d", (1,), {}, (1, 2, 5, 4, 6)[:n + 2]) for kind in ("ZeroPad", "ReflectionPad", "ReplicationPad",
                                                                      "CircularPad") for n in (1, 2, 3)],
    *[(f"ConstantPad{n}d", (1, 3.5), {}, (1, 2, 5, 4, 6)[:n + 2]) for n in (1, 2, 3)],
    ("ReflectionPad2d", ((1, 2, 3, 0),), {}, (2, 4, 9, 8)),
    ("Fold", ((4, 5), 2), {}, (2, 8, 12)), ("Unfold", (2, 1, 1, 2), {}, (2, 4, 9, 8)),
    ("PixelShuffle", (2,), {}, (2, 4, 3, 3)),
    ("PixelUnshuffle", (2,), {}, (2, 1, 4, 4)), ("ChannelShuffle", (2,), {}, (2, 4, 3, 3)),
    ("Upsample", (), {"scale_factor": 2}, (2, 4, 9, 8)),
    ("Upsample", ((5, 12),), {"mode": "bilinear", "align_corners": True}, (2, 4, 9, 8)),
    ("UpsamplingNearest2d", (20,), {}, (2, 4, 9, 8)),
    ("UpsamplingBilinear2d", (), {"scale_factor": (2, 1.5)}, (2, 4, 9, 8)),
]
NAMES = sorted({m[0] for m in MODULES} | {f"MaxUnpool{n}d" for n in (1, 2, 3)})


@pytest.mark.parametrize(("name", "args", "settings", "shape"), MODULES, ids=str)
def test_outputs_and_gradients(name, args, settings, shape):
    ours, theirs = (getattr(library.nn, name)(*args, **settings).double() for library in (pt, torch))
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({k: pt.from_numpy(v.numpy()) for k, v in theirs.state_dict().items()})
    data = np.random.default_rng(0).uniform(0.5, 2, shape)
    results = []
    for library, module in ((pt, ours), (torch, theirs)):
        x = library.tensor(data, requires_grad=True)
        out = module(x)
        outs = list(out) if isinstance(out, tuple) else [out]
        (outs[0] ** 2).sum().backward()
        results.append([*outs, x.grad, *[p.grad for p in module.parameters()]])
    for a, b in zip(*results):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_signatures_and_attributes(name):
    ours, theirs = (getattr(library.nn, name) for library in (pt, torch))
    mine, other = (inspect.signature(c.__init__).parameters.values() for c in (ours, theirs))
    assert [(p.name, p.default) for p in mine] == [(p.name, p.default) for p in other]
    assert ours.__module__.startswith("ptcore.nn.modules.") and ours.__doc__ and ">>>" in ours.__doc__
    args = {"Conv": (4, 4, 3), "Fold": (4, 2), "Cons": (1, 2.0), "LPPo": (2, 3)}.get(name[:4], (2,))
    a, b = ({k: v for k, v in vars(c(*args)).items() if not k.startswith("_")} for c in (ours, theirs))
    assert {k: v for k, v in a.items() if k in b} == b


@pytest.mark.parametrize("name",
                         ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"])
def test_initial_values(name):
    """Uniform with torch's bounds."""
    for groups in (1, 4):
        ours, theirs = (getattr(library.nn, name)(16, 32, 3, groups=groups) for library in (pt, torch))
        for a, b in zip(ours.parameters(), theirs.parameters()):
            assert tuple(a.shape) == tuple(b.shape) and a.requires_grad
            k = 1 / np.sqrt(np.prod(ours.weight.shape[1:]))
            values = a.detach().numpy()
            assert abs(values).max() <= k and abs(values).max() > 0.9 * k
            assert abs(values.mean()) < 4 * k / np.sqrt(3 * values.size) and abs(b.detach().numpy()).max() <= k


def test_output_size_of_transposed():
    ours, theirs = pt.nn.ConvTranspose2d(2, 3, 3, stride=2), torch.nn.ConvTranspose2d(2, 3, 3, stride=2)
    for size in ((8, 7), (1, 3, 7, 8)):
        assert tuple(ours(pt.ones(1, 2, 3, 3), output_size=size).shape) == tuple(theirs(torch.ones(1, 2, 3, 3),
                                                                                        output_size=size).shape)
    for size in ((9, 9), (7,), (6, 7)):
        for library, module in ((pt, ours), (torch, theirs)):
            with pytest.raises(ValueError, match=r"output.size"):
                module(library.ones(1, 2, 3, 3), output_size=size)


def test_unpool():
    data = np.random.default_rng(0).normal(size=(1, 2, 6, 6, 6))
    for n in (1, 2, 3):
        x, results = data.reshape((1, 2, 6, 6, 6)[:n + 1] + (-1,)), []
        for library in (pt, torch):
            values, indices = getattr(library.nn, f"MaxPool{n}d")(2, return_indices=True)(library.tensor(x))
            results.append(getattr(library.nn, f"MaxUnpool{n}d")(2)(values, indices).numpy())
        np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("make", [
    lambda nn: nn.Conv2d(3, 4, 3, groups=2), lambda nn: nn.Conv2d(4, 3, 3, groups=2),
    lambda nn: nn.Conv2d(4, 4, 3, groups=0),
    lambda nn: nn.Conv2d(4, 3, 3, padding="x"), lambda nn: nn.Conv2d(4, 3, 3, padding="same", stride=2),
    lambda nn: nn.Conv2d(4, 4, 3, padding_mode="x"), lambda nn: nn.ConvTranspose2d(4, 4, 3, padding_mode="reflect")])
def test_errors(make):
    for library in (pt, torch):
        with pytest.raises(ValueError, match=r"groups|padding"):
            make(library.nn)


def test_a_network_learns():
    """Two steps of a small convolutional network give torch's losses."""
    def net(nn):
        return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                             nn.AvgPool2d(2), nn.Flatten(), nn.Linear(400, 10)).double()

    theirs, ours = net(torch.nn), net(pt.nn)
    ours.load_state_dict({k: pt.from_numpy(v.numpy()) for k, v in theirs.state_dict().items()})
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 1, 28, 28)), rng.integers(0, 10, 8)
    losses = []
    for library, module in ((pt, ours), (torch, theirs)):
        optimizer, seen = library.optim.SGD(module.parameters(), lr=0.1), []
        for _ in range(3):
            optimizer.zero_grad()
            loss = library.nn.functional.cross_entropy(module(library.tensor(x)), library.tensor(y))
            loss.backward()
            optimizer.step()
            seen.append(loss.item())
        losses.append(seen)
    np.testing.assert_allclose(*losses, rtol=1e-9)
    assert losses[0][-1] < losses[0][0]
