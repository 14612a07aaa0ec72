"""Layers and losses against NumPy and SciPy."""

import numpy as np
import pytest
from scipy import special

import ptcore as pt
from ptcore import nn

pytestmark = pytest.mark.core

X = np.linspace(-4, 4, 24, dtype=np.float64).reshape(2, 3, 4)


def run(layer, x=X):
    return layer(pt.from_numpy(x.copy())).detach().numpy()


ACTIVATIONS = [
    (nn.ReLU(), np.maximum(X, 0)),
    (nn.ReLU(inplace=True), np.maximum(X, 0)),
    (nn.GELU(), X * special.ndtr(X)),
    (
        nn.GELU("tanh"),
        X * special.expit(2 * np.sqrt(2 / np.pi) * (X + 0.044715 * X**3)),
    ),
    (nn.Tanh(), np.tanh(X)),
    (nn.Sigmoid(), special.expit(X)),
    (nn.Softmax(dim=1), special.softmax(X, axis=1)),
    (nn.LogSoftmax(dim=-1), special.log_softmax(X, axis=-1)),
    (nn.SiLU(), X * special.expit(X)),
    (nn.SiLU(inplace=True), X * special.expit(X)),
    (nn.LeakyReLU(0.1), np.where(X > 0, X, 0.1 * X)),
    (nn.ELU(2.0), np.where(X > 0, X, 2 * np.expm1(X))),
    (nn.Softplus(2.0), np.logaddexp(0, 2 * X) / 2),
    (nn.Identity(1, a=2), X),
    (nn.Flatten(), X.reshape(2, 12)),
    (nn.Flatten(0, 1), X.reshape(6, 4)),
    (nn.Unflatten(2, (2, -1)), X.reshape(2, 3, 2, 2)),
]


@pytest.mark.parametrize(("layer", "expected"), ACTIVATIONS, ids=lambda v: repr(v)[:40])
def test_elementwise_and_shape_layers(layer, expected):
    np.testing.assert_allclose(run(layer), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("cls", [nn.Softmax, nn.LogSoftmax])
def test_implicit_dim_warns(cls):
    with pytest.warns(UserWarning, match="(?i)implicit dim"):
        value = run(cls())
    np.testing.assert_allclose(value, run(cls(dim=0)))


@pytest.mark.parametrize("cls", [nn.ReLU, nn.SiLU, nn.LeakyReLU, nn.ELU])
def test_in_place_activations(cls):
    results = []
    for inplace in (False, True):
        leaf = pt.from_numpy(X.copy()).requires_grad_()
        x = leaf * 2
        y = cls(inplace=inplace)(x)
        assert np.array_equal(x.detach().numpy(), y.detach().numpy()) is inplace
        y.sum().backward()
        results.append((y.detach().numpy(), leaf.grad.numpy()))
    for plain, written in zip(*results, strict=True):
        np.testing.assert_allclose(plain, written, rtol=1e-15)


def test_unflatten_arguments():
    with pytest.raises(TypeError, match="dim must be an int"):
        nn.Unflatten("c", (1, 2))
    with pytest.raises(TypeError, match="at pos 1"):
        nn.Unflatten(0, (1, 2.0))
    with pytest.raises(TypeError, match="tuple of int"):
        nn.Unflatten(0, 3)


@pytest.mark.parametrize("bias", [True, False])
def test_linear(bias):
    layer = nn.Linear(4, 5, bias=bias, dtype=pt.float64)
    weight = layer.weight.detach().numpy()
    expected = X @ weight.T + (layer.bias.detach().numpy() if bias else 0)
    np.testing.assert_allclose(run(layer), expected, rtol=1e-12)
    assert np.abs(weight).max() <= 0.5
    assert (layer.bias is None) is not bias
    assert layer.weight.dtype == pt.float64


def test_layer_norm():
    layer = nn.LayerNorm((3, 4), eps=1e-3, dtype=pt.float64)
    with pt.no_grad():
        layer.weight.copy_(pt.arange(12.0, dtype=pt.float64).reshape(3, 4))
        layer.bias.fill_(2)
    mean, var = X.mean((1, 2), keepdims=True), X.var((1, 2), keepdims=True)
    expected = (X - mean) / np.sqrt(var + 1e-3) * np.arange(12).reshape(3, 4) + 2
    np.testing.assert_allclose(run(layer), expected, rtol=1e-10)
    assert nn.LayerNorm(3, elementwise_affine=False).weight is None
    assert nn.LayerNorm(3, bias=False).bias is None


def test_dropout():
    layer, x = nn.Dropout(0.25), np.ones((200, 200))
    pt.manual_seed(0)
    y = run(layer, x)
    kept = y != 0
    # 40000 draws: five standard deviations of the share are 0.011.
    assert abs(kept.mean() - 0.75) < 0.011
    np.testing.assert_allclose(y[kept], 1 / 0.75)
    assert np.array_equal(run(layer.eval(), x), x)
    for bad in (-0.1, 1.1):
        with pytest.raises(ValueError, match="between 0 and 1"):
            nn.Dropout(bad)


LOGITS = np.random.default_rng(0).normal(size=(6, 4))
LABELS = np.array([0, 3, 1, 1, 2, 0])
WEIGHT = np.array([0.5, 1.0, 2.0, 3.0])
REDUCE = {"mean": np.mean, "sum": np.sum, "none": lambda v: v}


@pytest.mark.parametrize("reduction", REDUCE)
def test_regression_losses(reduction):
    a, b = LOGITS, LOGITS[::-1].copy()
    for cls, values in ((nn.MSELoss, (a - b) ** 2), (nn.L1Loss, np.abs(a - b))):
        got = cls(reduction=reduction)(pt.from_numpy(a), pt.from_numpy(b))
        np.testing.assert_allclose(got.numpy(), REDUCE[reduction](values), rtol=1e-12)


@pytest.mark.parametrize("reduction", REDUCE)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignore_index", [-100, 1])
def test_classification_losses(reduction, weighted, ignore_index):
    log_p = special.log_softmax(LOGITS, axis=1)
    weights = WEIGHT[LABELS] if weighted else np.ones(6)
    weights = np.where(ignore_index == LABELS, 0, weights)
    values = -weights * log_p[np.arange(6), LABELS]
    expected = {
        "none": values, "sum": values.sum(), "mean": values.sum() / weights.sum(),
    }[reduction]  # fmt: skip
    options = {"reduction": reduction, "ignore_index": ignore_index}
    if weighted:
        options["weight"] = pt.from_numpy(WEIGHT)
    labels = pt.from_numpy(LABELS)
    got = nn.CrossEntropyLoss(**options)(pt.from_numpy(LOGITS), labels)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-12)
    got = nn.NLLLoss(**options)(pt.from_numpy(log_p), labels)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-12)


def test_loss_options():
    with pytest.raises(ValueError, match="MSELoss: reduction must be"):
        nn.MSELoss(reduction="average")
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert nn.MSELoss(size_average=False).reduction == "sum"
    loss = nn.CrossEntropyLoss(weight=pt.ones(3))
    assert list(loss.state_dict()) == ["weight"]
