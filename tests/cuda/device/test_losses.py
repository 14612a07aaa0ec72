"""Losses over classes against NumPy: rows with a head and a tail, of warps and of blocks, columns, many samples."""
import numpy as np
import pytest

import ptcore
from ptcore.nn import functional as F

SHAPES = [(5, 3), (7, 10), (3, 1000), (2, 1024), (3, 1500), (2, 4099), (3000, 4), (2, 3, 5), (2, 7, 4, 9),
          (1, 300, 2), (6,)]


def reference(x, target, weight, ignored, smoothing, reduction):
    """The loss and its gradient in float64: classes are moved to the end."""
    rows = np.moveaxis(x, 1, -1).reshape(-1, x.shape[1]) if x.ndim > 1 else x[None]
    n, classes = rows.shape
    t = target.reshape(-1)
    w = np.ones(classes) if weight is None else weight
    top = rows.max(1, keepdims=True)
    log_p = rows - top - np.log(np.exp(rows - top).sum(1, keepdims=True))
    valid = t != ignored
    at = np.where(valid, t, 0)
    hot = np.zeros((n, classes))
    hot[np.arange(n), at] = (1 - smoothing) * w[at]
    hot += smoothing / classes * w
    hot *= valid[:, None]
    each = -(hot * log_p).sum(1)
    total = (w[at] * valid).sum()
    scale = 1 / total if reduction == "mean" else 1.0
    gradient = (np.exp(log_p) * hot.sum(1, keepdims=True) - hot) * scale
    if x.ndim > 1:
        gradient = np.moveaxis(gradient.reshape(*np.moveaxis(x, 1, -1).shape), -1, 1)
    else:
        gradient = gradient[0]
    return each.reshape(target.shape) if reduction == "none" else each.sum() * scale, gradient


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", SHAPES)
def test_cross_entropy(shape, dtype):
    rng = np.random.default_rng(len(shape))
    x = (rng.standard_normal(shape) * 3).astype(dtype)
    classes = shape[1] if len(shape) > 1 else shape[0]
    target = rng.integers(0, classes, (shape[0], *shape[2:]) if len(shape) > 1 else ())
    weight = rng.random(classes).astype("float32") + 0.5
    if target.size > 1:
        target.flat[1] = 2
    near = {"float16": 4e-3, "float32": 1e-5, "float64": 1e-12}[dtype]
    for w, smoothing, reduction in ((None, 0, "mean"), (weight, 0, "sum"), (weight, 0.2, "mean"), (None, 0.1, "none")):
        t = ptcore.from_numpy(x).cuda().requires_grad_()
        factors = None if w is None else ptcore.from_numpy(w).to(t.dtype).cuda()
        got = F.cross_entropy(t, ptcore.from_numpy(target).cuda(), factors, ignore_index=2, reduction=reduction,
                              label_smoothing=smoothing)
        exact = None if w is None else w.astype(dtype).astype("float64")
        want, gradient = reference(x.astype("float64"), target, exact, 2, smoothing, reduction)
        np.testing.assert_allclose(got.detach().cpu().numpy(), want, rtol=near, atol=near)
        got.sum().backward()
        np.testing.assert_allclose(t.grad.cpu().numpy(), gradient, rtol=near, atol=near)


@pytest.mark.parametrize("shape", SHAPES)
def test_nll_loss(shape):
    rng = np.random.default_rng(9)
    x = rng.standard_normal(shape)
    classes = shape[1] if len(shape) > 1 else shape[0]
    target = rng.integers(0, classes, (shape[0], *shape[2:]) if len(shape) > 1 else ())
    weight = rng.random(classes) + 0.5
    picked = np.take_along_axis(x, np.expand_dims(target, 1), 1).squeeze(1) if len(shape) > 1 else x[target]
    t = ptcore.from_numpy(x).cuda().requires_grad_()
    got = F.nll_loss(t, ptcore.from_numpy(target).cuda(), ptcore.from_numpy(weight).cuda())
    total = weight[target].sum()
    np.testing.assert_allclose(got.item(), -(weight[target] * picked).sum() / total, rtol=1e-12)
    got.backward()
    want = np.zeros(shape)
    if len(shape) > 1:
        np.put_along_axis(want, np.expand_dims(target, 1), -np.expand_dims(weight[target], 1) / total, 1)
    else:
        want[target] = -1
    np.testing.assert_allclose(t.grad.cpu().numpy(), want, rtol=1e-12)


def test_infinities():
    inf = float("inf")
    rows = ptcore.tensor([[-inf, 0.0, 1.0], [-inf, -inf, 2.0], [inf, 0.0, 1.0], [float("nan"), 0.0, 1.0],
                          [-inf, -inf, -inf]])
    for x in (rows, ptcore.cat([rows, ptcore.full((5, 1200), -inf)], 1)):
        got = F.cross_entropy(x.cuda(), ptcore.full((5,), 2, device="cuda"), reduction="none").cpu().tolist()
        np.testing.assert_allclose(got[:2], [np.log(np.exp(-1.0) + 1), 0], rtol=1e-6)
        assert all(np.isnan(got[2:]))


@pytest.mark.parametrize("value", [60.0, 1e4, -1e9, 1e9, 1e30, "lowest"])
@pytest.mark.parametrize("dtype", [ptcore.float32, ptcore.float64, ptcore.float16, ptcore.bfloat16])
def test_large_scores(dtype, value):
    """Where the log-sum-exp rounds the sum of the terms away, the weights are shares all the same."""
    number = ptcore.finfo(dtype).min if value == "lowest" else value
    if abs(number) > ptcore.finfo(dtype).max:
        return
    near = {ptcore.float16: 2e-3, ptcore.bfloat16: 1e-2}.get(dtype, 2e-5)
    for shape in ((2, 4), (2, 1500), (2, 4, 3), (2, 300, 2)):
        classes = shape[1]
        for smoothing in (0, 0.5):
            x = ptcore.full(shape, number, dtype=dtype, device="cuda", requires_grad=True)
            target = ptcore.ones((2, *shape[2:]), dtype=ptcore.int64, device="cuda")
            F.cross_entropy(x, target, reduction="sum", label_smoothing=smoothing).backward()
            got = x.grad.double().cpu().numpy()
            np.testing.assert_allclose(got[:, 1], (1 - smoothing) * (1 / classes - 1), rtol=near)
            np.testing.assert_allclose(got[:, 2:], (1 - smoothing) / classes, rtol=near)


def test_differences_of_large_scores():
    x = np.random.default_rng(3).standard_normal((3, 40)) * 3
    large = (x + 3000).astype("float32")
    target = np.array([1, 39, 5])
    t = ptcore.from_numpy(large).cuda().requires_grad_()
    F.cross_entropy(t, ptcore.from_numpy(target).cuda()).backward()
    _, want = reference(large.astype("float64"), target, None, -100, 0, "mean")
    np.testing.assert_allclose(t.grad.cpu().numpy(), want, rtol=2e-5, atol=1e-7)
