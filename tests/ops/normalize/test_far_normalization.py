"""Normalisation of numbers whose squares leave the range of float32, in every mode. The oracle is the formula in NumPy's
float64: the gradient of ``sum(g * y)`` is written out."""
import numpy as np
import pytest
from _walk import every_case

import ptcore
from ptcore.func import grad, jvp, vmap
from ptcore.fx.experimental.proxy_tensor import make_fx
from ptcore.nn import functional as F

pytestmark = pytest.mark.core

EPS = 1e-5
SCALES = (1e15, 1e20, 1e30, 1e37)
# name: (the call, the dims of one group, whether it is centred, whether it has weights)
CALLS = {
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True, eps=EPS), "batch", True, True),
    "instance_norm": (lambda x, w, b: F.instance_norm(x, None, None, w, b, eps=EPS), "plane", True, True),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b, eps=EPS), "group", True, True),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, x.shape[1:], eps=EPS), "sample", True, False),
    "rms_norm": (lambda x, w, b: F.rms_norm(x, x.shape[1:], eps=EPS), "sample", False, False),
}
MODES = ("plain", "recorded", "forward", "graph", "batched")
SHAPES = {"planes": (4, 6, 32), "thin planes": (5, 6, 3), "images": (4, 6, 5, 4), "channels_last": (3, 6, 5, 4)}


def expected(x, w, b, g, t, of, centred):
    """The result, the gradients of x and w, and the tangent of the result for the tangent t of x."""
    n, c = x.shape[:2]
    shape = {"batch": (n, c, -1), "plane": (n, c, -1), "group": (n, 2, -1), "sample": (n, 1, -1)}[of]
    dims = (0, 2) if of == "batch" else 2
    x, inner, t = (a.reshape(shape) for a in (x, (g * w.reshape(1, c, *[1] * (g.ndim - 2))), t))
    mean = x.mean(dims, keepdims=True) if centred else 0.0
    rstd = 1 / np.sqrt(((x - mean) ** 2).mean(dims, keepdims=True) + EPS)
    hat = (x - mean) * rstd

    def through(v):             # the derivative is symmetric: it takes gradients and tangents
        out = v - hat * (v * hat).mean(dims, keepdims=True)
        return rstd * (out - v.mean(dims, keepdims=True) if centred else out)

    each = w.reshape(1, c, *[1] * (g.ndim - 2))
    hat = hat.reshape(g.shape)
    value, weights = hat * each + b.reshape(each.shape), (g * hat).sum((0, *range(2, g.ndim)))
    hat = hat.reshape(shape)
    return value, through(inner).reshape(g.shape), weights, through(t).reshape(g.shape) * each


def results(mode, call, x, w, b, g, t):
    """The value, the gradients of x and w, the tangent; None where the mode does not give it."""
    if mode in ("plain", "recorded"):
        x, w = x.requires_grad_(), w.requires_grad_()
        y = call(x, w, b)
        return y, *ptcore.autograd.grad(y, (x, w), g, create_graph=mode == "recorded", allow_unused=True), None
    if mode == "forward":
        y, tangent = jvp(lambda x: call(x, w, b), (x,), (t,))
        return y, None, None, tangent

    def loss(x):
        return (call(x, w, b) * g).sum()

    if mode == "graph":
        return None, make_fx(grad(loss))(x)(x), None, None
    return None, vmap(grad(loss))(ptcore.stack([x, x / 2]))[0], None, None


@pytest.mark.parametrize("name", CALLS)
def test_far_from_one(name):
    call, of, centred, weighted = CALLS[name]
    rng = np.random.default_rng(0)
    with every_case() as case:
        for form, shape in SHAPES.items():
            for scale in SCALES:
                x, t = (rng.standard_normal(shape).astype("float32").astype(float) for _ in range(2))
                w, b = (rng.standard_normal(6).astype("float32").astype(float) for _ in range(2))
                g = (100 * rng.standard_normal(shape)).astype("float32").astype(float)
                x = (x * scale).astype("float32").astype(float)
                if not weighted:
                    w, b = np.ones(6), np.zeros(6)
                want = expected(x, w, b, g, t * scale, of, centred)
                for mode in MODES:
                    with case(f"{form}, {scale}, {mode}"):
                        args = [ptcore.tensor(a, dtype=ptcore.float32) for a in (x, w, b, g, t * scale)]
                        if form == "channels_last":
                            args[0] = args[0].contiguous(memory_format=ptcore.channels_last)
                        for got, right in zip(results(mode, call, *args), want, strict=True):
                            if got is not None:
                                got = got.detach().double().numpy()
                                np.testing.assert_allclose(got, right, rtol=0, atol=2e-6 * np.abs(right).max())


@pytest.mark.parametrize("name", CALLS)
def test_second_order(name):
    """All are homogeneous of degree 0 where eps is small: the second derivative falls with the square of the scale."""
    call = CALLS[name][0]
    x = ptcore.tensor(np.random.default_rng(1).standard_normal((2, 6, 3)), dtype=ptcore.float32)
    w, b = ptcore.linspace(0.5, 2, 6), ptcore.zeros(6)
    g = ptcore.tensor(np.random.default_rng(2).standard_normal((2, 6, 3)), dtype=ptcore.float32)

    def slope(x, v):
        x = x.requires_grad_()
        first, = ptcore.autograd.grad((call(x, w, b) * g).sum(), x, create_graph=True)
        return ptcore.autograd.grad(first, x, v)[0].numpy()

    v = g.flip(0)
    want = slope(x * 1024, v)
    for power in (2.0**50, 2.0**70):                # the gradients are near 1, as their second derivatives are
        got = slope(x * (1024 * power), v * power) * power
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("scale", [1.0, 1e20, 1e30])
def test_inverse_deviations_of_native_batch_norm(scale):
    x = (np.random.default_rng(0).standard_normal((40, 3, 5)) * scale).astype("float32")
    want = 1 / np.sqrt(x.astype(float).var((0, 2)) + EPS)

    def rstd(t):
        return ptcore.native_batch_norm(t, None, None, None, None, True, 0.1, EPS)[2]

    for found in (rstd(ptcore.from_numpy(x)), make_fx(rstd)(ptcore.from_numpy(x))(ptcore.from_numpy(x))):
        np.testing.assert_allclose(found.numpy(), want, rtol=1e-6)
