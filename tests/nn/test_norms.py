"""Batch, instance, group, RMS and local response normalisation against their formulas in NumPy."""
import numpy as np
import pytest

import ptcore as pt
from ptcore import nn
from ptcore.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.core
F = nn.functional


def data(*shape, seed=0):
    return np.random.default_rng(seed).normal(2, 3, size=shape)


def beside(v, x):
    return v.reshape(1, -1, *[1] * (x.ndim - 2))


@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 7), (3, 2, 5, 4), (2, 3, 2, 3, 4), (3, 2, 40), (130, 300)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_batch_norm(shape, dtype):
    x, axes = data(*shape), (0, *range(2, len(shape)))
    c = shape[1]
    w, b, rm, rv = (data(c, seed=i) for i in range(1, 5))
    rv = rv**2
    mean, var, count = x.mean(axis=axes), x.var(axis=axes), x.size // c
    running = [pt.tensor(v.astype(dtype)) for v in (rm, rv)]
    out = F.batch_norm(pt.tensor(x.astype(dtype)), *running, pt.tensor(w.astype(dtype)), pt.tensor(b.astype(dtype)),
                       training=True, momentum=0.3, eps=1e-3)
    tolerance = {"rtol": 1e-10, "atol": 1e-12} if dtype == np.float64 else {"rtol": 2e-5, "atol": 2e-5}
    expected = (x - beside(mean, x)) / np.sqrt(beside(var, x) + 1e-3) * beside(w, x) + beside(b, x)
    np.testing.assert_allclose(out.numpy(), expected, **tolerance)
    np.testing.assert_allclose(running[0].numpy(), 0.7 * rm + 0.3 * mean, **tolerance)
    np.testing.assert_allclose(running[1].numpy(), 0.7 * rv + 0.3 * var * count / (count - 1), **tolerance)
    out = F.batch_norm(pt.tensor(x.astype(dtype)), pt.tensor(rm.astype(dtype)), pt.tensor(rv.astype(dtype)))
    np.testing.assert_allclose(out.numpy(), (x - beside(rm, x)) / np.sqrt(beside(rv, x) + 1e-5), **tolerance)


def test_mean_far_from_zero():
    """The variance is taken around the mean: nothing cancels."""
    x = pt.randn(64, 2, 33, generator=pt.Generator().manual_seed(0)) + 1000
    out = F.batch_norm(x, None, None, training=True)
    wide = x.double().numpy()
    expected = (wide - wide.mean(axis=(0, 2), keepdims=True)) / np.sqrt(wide.var(axis=(0, 2), keepdims=True) + 1e-5)
    np.testing.assert_allclose(out.numpy(), expected, atol=2e-4)


@pytest.mark.parametrize("shape", [(4, 3), (3, 2, 5), (2, 2, 4, 5)])
def test_gradients(shape):
    x = pt.tensor(data(*shape), requires_grad=True)
    w, b = (pt.tensor(data(shape[1], seed=i), requires_grad=True) for i in (1, 2))
    functions = [lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
                 lambda x, w, b: F.batch_norm(x, x.detach().new_zeros(shape[1]), x.detach().new_ones(shape[1]), w, b),
                 lambda x, w, b: F.group_norm(x, 1, w, b)]  # fmt: skip
    if len(shape) > 2:
        functions.append(lambda x, w, b: F.instance_norm(x, None, None, w, b))
        functions.append(lambda x, w, b: F.instance_norm(x, pt.zeros(shape[1]), pt.ones(shape[1]), w, b))
    for function in functions:
        assert gradcheck(function, (x, w, b))
        assert gradgradcheck(function, (x, w, b))


@pytest.mark.parametrize(("shape", "groups"), [((3, 4), 2), ((2, 6, 5), 3), ((2, 6, 5), 6), ((2, 4, 3, 7), 1),
                                               ((2, 4, 5, 5), 2)])
def test_group_norm(shape, groups):
    x, w, b = data(*shape), data(shape[1], seed=1), data(shape[1], seed=2)
    grouped = x.reshape(shape[0], groups, -1)
    expected = (grouped - grouped.mean(axis=2, keepdims=True)) / np.sqrt(grouped.var(axis=2, keepdims=True) + 1e-5)
    expected = expected.reshape(shape) * beside(w, x) + beside(b, x)
    out = F.group_norm(pt.tensor(x), groups, pt.tensor(w), pt.tensor(b))
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-10, atol=1e-12)
    half = F.group_norm(pt.tensor(x).bfloat16(), groups, pt.tensor(w).float(), pt.tensor(b).float())
    assert half.dtype == pt.bfloat16
    np.testing.assert_allclose(half.double().numpy(), expected, rtol=0.05, atol=0.15)


def test_instance_norm():
    x, w, b, rm = data(3, 2, 6, 5), data(2, seed=1), data(2, seed=2), data(2, seed=3)
    mean, var = x.mean(axis=(2, 3), keepdims=True), x.var(axis=(2, 3), keepdims=True)
    expected = (x - mean) / np.sqrt(var + 1e-5) * beside(w, x) + beside(b, x)
    running = pt.tensor(rm), pt.ones(2, dtype=pt.float64)
    for statistics in ((None, None), running):
        out = F.instance_norm(pt.tensor(x), *statistics, pt.tensor(w), pt.tensor(b))
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(running[0].numpy(), 0.9 * rm + 0.1 * mean.mean(axis=(0, 2, 3)), rtol=1e-10)
    np.testing.assert_allclose(running[1].numpy(), 0.9 + 0.1 * var.mean(axis=(0, 2, 3)) * 30 / 29, rtol=1e-10)


def test_rms_norm():
    x, w = data(4, 3, 5), data(3, 5, seed=1)
    expected = x / np.sqrt((x**2).mean(axis=(1, 2), keepdims=True) + 1e-3) * w
    out = F.rms_norm(pt.tensor(x), (3, 5), pt.tensor(w), 1e-3)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12)
    assert pt.equal(F.rms_norm(pt.tensor(x), 5), F.rms_norm(pt.tensor(x), (5,), eps=np.finfo(float).eps))
    assert F.rms_norm(pt.tensor(x).half(), 5).dtype == pt.float16
    assert gradcheck(lambda x: F.rms_norm(x, (5,)), (pt.tensor(x, requires_grad=True),))


def test_local_response_norm():
    x, size = data(2, 5, 4), 3
    square = np.pad(x**2, ((0, 0), (size // 2, (size - 1) // 2), (0, 0)))
    mean = sum(square[:, i : i + 5] for i in range(size)) / size
    out = F.local_response_norm(pt.tensor(x), size, 0.5, 0.7, 2.0)
    np.testing.assert_allclose(out.numpy(), x / (2 + 0.5 * mean) ** 0.7, rtol=1e-12)


def test_layers_keep_statistics():
    layer = nn.BatchNorm1d(3, momentum=None)
    batches = [pt.tensor(data(8, 3, seed=i)).float() for i in range(4)]
    for batch in batches:
        layer(batch)
    assert layer.num_batches_tracked.item() == 4
    mean = np.mean([b.numpy().mean(axis=0) for b in batches], axis=0)
    np.testing.assert_allclose(layer.running_mean.numpy(), mean, rtol=1e-5)
    before = layer.running_mean.clone()
    layer.eval()(batches[0])
    assert pt.equal(before, layer.running_mean)
    layer.reset_running_stats()
    assert layer.running_var.tolist() == [1, 1, 1]
    assert nn.BatchNorm2d(2, track_running_stats=False).running_mean is None
    # Without running statistics evaluation uses the batch's.
    plain = nn.BatchNorm1d(3, affine=False, track_running_stats=False)
    assert pt.equal(plain(batches[0]), plain.eval()(batches[0]))


def test_state_of_the_first_version():
    layer = nn.BatchNorm1d(2)
    state = layer.state_dict()
    del state["num_batches_tracked"]
    state._metadata[""]["version"] = 1
    nn.BatchNorm1d(2).load_state_dict(state)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nn.BatchNorm2d(3)(pt.ones(2, 3)), RuntimeError, "expected 4D input"),
        (lambda: nn.BatchNorm1d(3)(pt.ones(2, 4)), RuntimeError, "running_mean must have shape"),
        (lambda: nn.BatchNorm1d(3)(pt.ones(1, 3)), ValueError, "more than 1 value per channel"),
        (lambda: F.batch_norm(pt.ones(3), None, None), RuntimeError, r"input must have shape \(N, C, ...\)"),
        (lambda: F.batch_norm(pt.ones(2, 3), None, None), RuntimeError, "running_mean and running_var must be"),
        (lambda: F.batch_norm([1.0], None, None), TypeError, "input must be a Tensor, got list"),
        (lambda: nn.InstanceNorm1d(3)(pt.ones(2, 3, 1)), ValueError, "more than 1 spatial element"),
        (lambda: nn.GroupNorm(3, 4), ValueError, "must be divisible by"),
        (lambda: F.group_norm(pt.ones(2, 4), 3), RuntimeError, "divide the number of channels, 4, got 3"),
        (lambda: F.group_norm(pt.ones(2, 4), 0), RuntimeError, "num_groups must be positive"),
        (lambda: F.group_norm(pt.ones(2, 4), 2, pt.ones(3)), RuntimeError, r"weight must have shape \[4\]"),
        (lambda: F.rms_norm(pt.ones(2, 4), 3), RuntimeError, r"normalized_shape \[3\], got shape \[2, 4\]"),
        (lambda: F.rms_norm(pt.ones(2, 4), 4, pt.ones(2)), RuntimeError, r"weight must have shape \[4\]"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (2, 3, 0)])
def test_empty(shape):
    x = pt.ones(shape, requires_grad=True)
    out = F.batch_norm(x, None, None, training=True)
    assert out.shape == x.shape
    out.sum().backward()
    assert x.grad.shape == x.shape
    if shape[1]:
        assert F.group_norm(x, 1).shape == x.shape


@pytest.mark.parametrize("dtype", [pt.float16, pt.bfloat16])
def test_layer_norm_of_halves_with_parameters_of_float32(dtype):
    """Computed in float32, given in the input's dtype; the parameters' gradients are float32."""
    rng = np.random.default_rng(0)
    x = pt.from_numpy(rng.standard_normal((5, 16)).astype("float32")).to(dtype).requires_grad_()
    w, b = (pt.from_numpy(rng.standard_normal(16).astype("float32")).requires_grad_() for _ in range(2))
    y = pt.nn.functional.layer_norm(x, (16,), w, b)
    wide = x.detach().double().numpy()
    scaled = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    expected = scaled * w.detach().numpy() + b.detach().numpy()
    assert y.dtype is dtype
    np.testing.assert_allclose(y.detach().float().numpy(), expected, rtol=2 ** -7, atol=1e-3)
    y.float().sum().backward()
    assert x.grad.dtype is dtype and w.grad.dtype is b.grad.dtype is pt.float32
    np.testing.assert_allclose(w.grad.numpy(), scaled.sum(0), rtol=1e-4, atol=1e-4)
    for other in (pt.float64, pt.float16 if dtype is pt.bfloat16 else pt.bfloat16):
        with pytest.raises(TypeError, match="layer_norm: weight must have dtype"):
            pt.nn.functional.layer_norm(x, (16,), w.to(other))
    with pytest.raises(TypeError, match="layer_norm: weight must have dtype"):
        pt.nn.functional.layer_norm(x.double(), (16,), w)
