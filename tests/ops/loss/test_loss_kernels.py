"""nll_loss and cross_entropy against their definitions, sample by sample in float64."""

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

import ptcore as pt

from _kernel_arrays import EPS, FLOAT, make, wide
from _kernels import KernelError

SHAPES = [(7,), (1, 1), (5, 10), (300, 17), (3, 6, 4), (2, 5, 3, 50), (0, 4), (4, 3, 0), (2, 300, 200)]
NONE, MEAN, SUM = range(3)


def classes_last(w):
    return np.moveaxis(w, 1, -1) if w.ndim > 1 else w


def nll(logp, target, weight, ignore):
    """Per-sample loss and weight; logp has classes last."""
    loss, weights = np.zeros(target.shape), np.zeros(target.shape)
    for i in np.ndindex(target.shape):
        if target[i] != ignore:
            weights[i] = weight[target[i]]
            loss[i] = -weights[i] * logp[i][target[i]]
    return loss, weights


def cases(rng, dtype):
    for shape in SHAPES:
        c = shape[1] if len(shape) > 1 else shape[0]
        tshape = shape[:1] + shape[2:] if len(shape) > 1 else ()
        target = np.asarray(rng.integers(0, c, tshape), np.int64)
        base = make(rng, shape, dtype)
        inputs = [base, np.asfortranarray(base).view(type(base)), base[..., ::-1]]
        if len(shape) > 1:
            inputs.append(np.moveaxis(make(rng, tshape + (c,), dtype), -1, 1))
        for x in inputs:
            for weight in (None, make(rng, (c,), "float32").astype(dtype if dtype != "bfloat16" else "float32") ** 2):
                for ignore in (-100, 1):
                    yield x, target, weight, ignore, c
    # a target of any strides
    x = make(rng, (6, 5), dtype)
    yield x, np.arange(12, dtype=np.int64)[::-2] % 5, None, -100, 5


def close(got, want, dtype):
    factor = 4 * EPS[dtype]
    np.testing.assert_allclose(wide(got), want, rtol=factor, atol=factor * (1 + np.abs(want).max(initial=0, where=np.isfinite(want))))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", FLOAT)
def test_nll_loss(kernels, dtype):
    rng = np.random.default_rng(0)
    for x, target, weight, ignore, c in cases(rng, dtype):
        w = np.ones(c) if weight is None else weight.astype(np.float64)
        loss, weights = nll(classes_last(wide(x)), target, w, ignore)
        for reduction in (NONE, MEAN, SUM):
            shape = target.shape if reduction == NONE else ()
            out, total = kernels("nll_loss", [x, target, weight], [(shape, dtype), ((), dtype)], [reduction, ignore])
            want = {NONE: loss, SUM: loss.sum(), MEAN: loss.sum() / weights.sum()}[reduction]
            close(out, want, dtype)
            close(total, 0.0 if reduction == NONE else weights.sum(), dtype)
            g = make(rng, shape, dtype)
            if target.ndim and reduction == NONE:
                g = g[::-1]
            gx = kernels("nll_loss_backward", [g, target, weight, total], [(x.shape, dtype)], [reduction, ignore])
            want = np.zeros(target.shape + (c,))
            for i in np.ndindex(target.shape):
                if target[i] != ignore:
                    scale = {NONE: lambda i=i: wide(g)[i], SUM: lambda: wide(g), MEAN: lambda: wide(g) / wide(total)}[reduction]()
                    want[i][target[i]] = -weights[i] * scale
            close(classes_last(gx), want, dtype)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", FLOAT)
def test_cross_entropy(kernels, dtype):
    rng = np.random.default_rng(1)
    stat = "float64" if dtype == "float64" else "float32"
    for x, target, weight, ignore, c in cases(rng, dtype):
        w = np.ones(c) if weight is None else weight.astype(np.float64)
        logits = classes_last(wide(x))
        logp = log_softmax(logits, axis=-1)
        hard, weights = nll(logp, target, w, ignore)
        keep = np.asarray(target != ignore)
        for smoothing in (0.0, 0.3):
            loss = (1 - smoothing) * hard + smoothing / c * keep * -(logp * w).sum(-1)
            soft = (1 - smoothing) * np.eye(c)[target % c] * w + smoothing / c * w
            for reduction in (NONE, MEAN, SUM):
                shape = target.shape if reduction == NONE else ()
                out, lse, total = kernels("cross_entropy", [x, target, weight], [(shape, dtype), (target.shape, stat), ((), stat)],
                                          [reduction, ignore, smoothing])
                close(out, {NONE: loss, SUM: loss.sum(), MEAN: loss.sum() / weights.sum()}[reduction], dtype)
                close(lse, logsumexp(logits, axis=-1), dtype)
                close(total, 0.0 if reduction == NONE else weights.sum(), dtype)
                g = make(rng, shape, dtype)
                gx = kernels("cross_entropy_backward", [g, x, target, weight, lse, total], [(x.shape, dtype)], [reduction, ignore, smoothing])
                scale = wide(g) * keep / (weights.sum() if reduction == MEAN else 1)
                want = np.where(keep[..., None], scale[..., None] * (np.exp(logp) * soft.sum(-1, keepdims=True) - soft), 0)
                close(classes_last(gx), want, dtype)


def test_large_logits(kernels):
    x = np.array([[1000.0, 0, -1000], [-1000, -1000, -1000]], np.float32)
    t = np.array([1, 2])
    out, lse, _ = kernels("cross_entropy", [x, t, None], [((2,), "float32"), ((2,), "float32"), ((), "float32")], [NONE, -100, 0.0])
    np.testing.assert_allclose(out, [1000, np.log(3)], rtol=1e-6)


def test_all_ignored_is_nan(kernels):
    x, t = np.ones((2, 3)), np.array([1, 1])
    out, _, total = kernels("cross_entropy", [x, t, None], [((), "float64"), ((2,), "float64"), ((), "float64")], [MEAN, 1, 0.0])
    assert np.isnan(out) and total == 0


def test_threads_do_not_change_bits(kernels):
    rng = np.random.default_rng(2)
    x, t = rng.normal(size=(2000, 300)).astype(np.float32), rng.integers(0, 300, 2000)
    results = []
    for threads in (1, 2):
        kernels.threads(threads)
        out = kernels("cross_entropy", [x, t, None], [((), "float32"), ((2000,), "float32"), ((), "float32")], [MEAN, -100, 0.1])
        gx = kernels("cross_entropy_backward", [np.ones((), np.float32), x, t, None, *out[1:]], [(x.shape, "float32")], [MEAN, -100, 0.1])
        results.append([a.tobytes() for a in [*out, gx]])
    kernels.threads(1)
    assert results[0] == results[1]


def test_errors(kernels):
    x, outs = np.ones((2, 3)), [np.full((), 7.0), ((2,), "float64"), ((), "float64")]
    for bad in (3, -1):
        with pytest.raises(KernelError, match=f"index: target {bad} is out of bounds for 3 classes"):
            kernels("cross_entropy", [x, np.array([0, bad]), None], outs, [MEAN, -100, 0.0])
        with pytest.raises(KernelError, match="out of bounds"):
            kernels("nll_loss", [x, np.array([0, bad]), None], [outs[0], ((), "float64")], [MEAN, -100])
    assert outs[0] == 7
    with pytest.raises(KernelError, match="target of dtype int64"):
        kernels("cross_entropy", [x, np.array([0.0, 1]), None], outs, [MEAN, -100, 0.0])
    with pytest.raises(KernelError, match=r"label_smoothing must be in \[0, 1\], got 2"):
        kernels("cross_entropy", [x, np.array([0, 1]), None], outs, [MEAN, -100, 2.0])


@pytest.mark.parametrize("loss", [pt.nn.functional.cross_entropy, pt.nn.functional.nll_loss])
def test_classes_may_be_uint8(loss):
    x = np.random.default_rng(0).normal(size=(3, 4))
    target = np.array([2, 0, 3], np.uint8)
    logp = log_softmax(x, axis=-1) if loss is pt.nn.functional.cross_entropy else x
    want = -logp[np.arange(3), target].mean()
    np.testing.assert_allclose(loss(pt.tensor(x), pt.tensor(target)).item(), want, rtol=1e-12)


def test_no_samples_beside_each_other():
    """Blocks are runs of samples whose classes lie apart; a run may have none."""
    for x, target in ((pt.randn(2, 3, 4)[:, :, :0], pt.zeros(2, 0, dtype=pt.int64)),
                      (pt.randn(3, 4).t()[:0], pt.zeros(0, dtype=pt.int64))):
        for reduction, want in (("none", []), ("sum", 0.0)):
            leaf = x.detach().requires_grad_()
            loss = pt.nn.functional.cross_entropy(leaf, target, reduction=reduction)
            loss.sum().backward()
            assert loss.flatten().tolist() == ([] if reduction == "none" else [want])
            assert leaf.grad.shape == x.shape
