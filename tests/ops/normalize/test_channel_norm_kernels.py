"""batch_norm, group_norm and their derivatives against float64 formulas."""

import numpy as np
import pytest

from _kernel_arrays import FLOAT, make, near, wide
from _kernels import KernelError

EPSILON = 1e-2
# planes narrower and wider than the kernel's limit of 16, runs longer than its blocks, one channel and many
SHAPES = [(1, 1), (5, 3), (70, 300), (4, 6, 5), (3, 4, 16), (2, 6, 3, 7), (2, 4, 33, 65), (3, 2, 9000), (6, 200, 2, 2)]


def statistic(dtype):
    return "float64" if dtype == "float64" else "float32"


def spread(v, x):
    """One number a channel, shaped to multiply x."""
    return 1.0 if v is None else wide(v).reshape(1, -1, *[1] * (x.ndim - 2))


def gradients(g, x, mean, rstd, weight, axes):
    """gx, gw and gb of (x - mean) rstd weight + bias with statistics over axes of grouped x."""
    hat = (x - mean) * rstd
    gh = g * weight
    return rstd * (gh - gh.mean(axes, keepdims=True) - hat * (gh * hat).mean(axes, keepdims=True)), g * hat


@pytest.mark.parametrize("dtype", FLOAT)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_batch_norm(kernels, shape, dtype):
    rng = np.random.default_rng(len(shape))
    x, g = make(rng, shape, dtype), make(rng, shape, dtype)
    channels, axes = (shape[1],), (0, *range(2, len(shape)))
    weight, bias = make(rng, channels, dtype), make(rng, channels, dtype)
    w = wide(x)
    mean, var = w.mean(axes, keepdims=True), w.var(axes, keepdims=True)
    rstd = 1 / np.sqrt(var + EPSILON)
    kept = [(channels, statistic(dtype))] * 2
    for a, b in [(None, None), (weight, None), (None, bias), (weight, bias)]:
        want = (w - mean) * rstd * spread(a, w) + (0 if b is None else spread(b, w))
        out, m, v = kernels("batch_norm", [x, a, b], [(shape, dtype), *kept], [EPSILON])
        near(out, want, dtype, 8)
        near(m, mean.reshape(channels), statistic(dtype), 8)
        near(v, var.reshape(channels), statistic(dtype), 8)
        gx, gw = gradients(wide(g), w, mean, rstd, spread(a, w), axes)
        outs = [(shape, dtype), (channels, dtype), (channels, dtype)]
        got = kernels("batch_norm_backward", [g, x, m, v, a], outs, [EPSILON])
        near(got[0], gx, dtype, 20)
        near(got[1], gw.sum(axes), dtype, 20)
        near(got[2], wide(g).sum(axes), dtype, 20)
        only_x = kernels("batch_norm_backward", [g, x, m, v, a], [outs[0], None, None], [EPSILON])
        assert only_x[0].tobytes() == got[0].tobytes()
        only_w = kernels("batch_norm_backward", [g, x, m, v, a], [None, *outs[1:]], [EPSILON])
        assert [p.tobytes() for p in only_w[1:]] == [p.tobytes() for p in got[1:]]


@pytest.mark.parametrize("dtype", FLOAT)
@pytest.mark.parametrize("shape, groups", [(s, n) for s in SHAPES for n in (1, 2, 3, s[1]) if s[1] % n == 0], ids=str)
def test_group_norm(kernels, shape, groups, dtype):
    rng = np.random.default_rng(groups)
    x, g = make(rng, shape, dtype), make(rng, shape, dtype)
    channels, grouped = (shape[1],), (shape[0], groups, shape[1] // groups, *shape[2:])
    weight, bias = make(rng, channels, dtype), make(rng, channels, dtype)
    axes = tuple(range(2, len(grouped)))
    w = wide(x)
    mean = w.reshape(grouped).mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(w.reshape(grouped).var(axes, keepdims=True) + EPSILON)
    kept = [((shape[0], groups), statistic(dtype))] * 2
    for a, b in [(None, None), (weight, None), (None, bias), (weight, bias)]:
        want = ((w.reshape(grouped) - mean) * rstd).reshape(shape) * spread(a, w) + (0 if b is None else spread(b, w))
        out, m, r = kernels("group_norm", [x, a, b], [(shape, dtype), *kept], [groups, EPSILON])
        near(out, want, dtype, 8)
        near(m, mean.reshape(shape[0], groups), statistic(dtype), 8)
        near(r, rstd.reshape(shape[0], groups), statistic(dtype), 30)
        scale = np.broadcast_to(spread(a, w), shape).reshape(grouped)
        gx, gw = gradients(wide(g).reshape(grouped), w.reshape(grouped), mean, rstd, scale, axes)
        rest = (0, *range(2, len(shape)))
        outs = [(shape, dtype), (channels, dtype), (channels, dtype)]
        got = kernels("group_norm_backward", [g, x, m, r, a], outs, [groups])
        near(got[0], gx.reshape(shape), dtype, 40)
        near(got[1], gw.reshape(shape).sum(rest), dtype, 20)
        near(got[2], wide(g).sum(rest), dtype, 20)


@pytest.mark.parametrize("own", FLOAT)
@pytest.mark.parametrize("shape", [(5, 3), (4, 6, 5), (2, 4, 33, 65)], ids=str)
def test_running_statistics(kernels, shape, own):
    """Outputs 3 and 4: numbers of a channel that are moved, either of which may be absent."""
    rng = np.random.default_rng(4)
    x, c = make(rng, shape, "float64"), shape[1]
    axes, count = (0, *range(2, len(shape))), x.size // shape[1]
    mean, unbiased = x.mean(axes), x.var(axes) * count / (count - 1)
    before = [make(rng, (c,), own), make(rng, (c,), own)]
    for which in ((True, True), (True, False), (False, True)):
        given = [b.copy() if w else None for b, w in zip(before, which)]
        outs = [(shape, "float64"), ((c,), "float64"), ((c,), "float64"), *given]
        got = kernels("batch_norm", [x, None, None], outs, [EPSILON, 0.3])[3:]
        for g, b, to, w in zip(got, before, (mean, unbiased), which):
            if w:
                near(g, 0.7 * wide(b) + 0.3 * to, own, 8)


def test_offset_data(kernels):
    """A large mean must not spoil the variance."""
    x = (1e4 + np.random.default_rng(1).normal(size=(20, 3, 100))).astype(np.float32)
    var = x.astype(np.float64).var((0, 2))
    got = kernels("batch_norm", [x, None, None], [(x.shape, "float32"), ((3,), "float32"), ((3,), "float32")], [EPSILON])[2]
    np.testing.assert_allclose(got, var, rtol=1e-4)


def test_nan_stays_in_its_channel(kernels):
    x = np.random.default_rng(3).normal(size=(4, 3, 20))
    x[1, 2, 5] = np.nan
    out, mean, var = kernels("batch_norm", [x, None, None], [(x.shape, "float64"), ((3,), "float64"), ((3,), "float64")], [EPSILON])
    assert np.isnan(out[:, 2]).all() and np.isfinite(out[:, :2]).all()
    assert np.isnan([mean[2], var[2]]).all() and np.isfinite([mean[:2], var[:2]]).all()


def test_nothing(kernels):
    x = np.empty((0, 3, 4))
    out, mean, var = kernels("batch_norm", [x, None, None], [(x.shape, "float64"), ((3,), "float64"), ((3,), "float64")], [EPSILON])
    assert out.size == 0 and np.isnan(mean).all() and np.isnan(var).all()
    outs = [(x.shape, "float64"), ((3,), "float64"), ((3,), "float64")]
    _, gw, gb = kernels("batch_norm_backward", [x, x, mean, var, None], outs, [EPSILON])
    assert not gw.any() and not gb.any()


@pytest.mark.parametrize("shape", [(64, 32, 30, 30), (300, 500)], ids=str)
def test_threads_do_not_change_bits(kernels, shape):
    rng = np.random.default_rng(2)
    x, g = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
    c = shape[1:2]
    w = rng.normal(size=c).astype(np.float32)
    results = []
    for threads in (1, 2):
        kernels.threads(threads)
        out = kernels("batch_norm", [x, w, w], [(shape, "float32"), (c, "float32"), (c, "float32")], [EPSILON])
        out += kernels("batch_norm_backward", [g, x, *out[1:], w], [(shape, "float32"), (c, "float32"), (c, "float32")], [EPSILON])
        kept = ((shape[0], 4), "float32")
        group = kernels("group_norm", [x, w, w], [(shape, "float32"), kept, kept], [4, EPSILON])
        back = kernels("group_norm_backward", [g, x, *group[1:], w], [(shape, "float32"), (c, "float32"), (c, "float32")], [4])
        results.append([a.tobytes() for a in [*out, *group, *back]])
    kernels.threads(1)
    assert results[0] == results[1]


def test_errors(kernels):
    x = np.ones((2, 3))
    outs = [((2, 3), "float64"), ((3,), "float64"), ((3,), "float64")]
    with pytest.raises(KernelError, match="expected at least 2 dimensions, got 1"):
        kernels("batch_norm", [x[0], None, None], [((3,), "float64"), *outs[1:]], [EPSILON])
    with pytest.raises(KernelError, match="expected 3 channels to be divisible by the number of groups, got 2 groups"):
        kernels("group_norm", [x, None, None], outs, [2, EPSILON])
    with pytest.raises(KernelError, match="expected contiguous tensors"):
        kernels("batch_norm", [np.asfortranarray(x), None, None], outs, [EPSILON])
    with pytest.raises(KernelError, match="not implemented for dtype int64"):
        kernels("batch_norm", [x.astype(np.int64), None, None], outs, [EPSILON])
