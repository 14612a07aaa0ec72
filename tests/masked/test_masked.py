"""Masked functions against NumPy over the elements that count."""
import numpy as np
import pytest
from scipy import special

import ptcore as pt
from ptcore import masked

FLOATS = (pt.float32, pt.float64)
REDUCTIONS = {
    "sum": np.sum, "prod": np.prod, "amax": np.max, "amin": np.min, "mean": np.mean,
    "var": lambda x: np.var(x, ddof=1), "std": lambda x: np.std(x, ddof=1), "logsumexp": special.logsumexp,
    "norm": lambda x: np.sqrt((x * x).sum()), "median": lambda x: np.sort(x)[(len(x) - 1) // 2]}
SCANS = {"cumsum": np.cumsum, "cumprod": np.cumprod, "softmax": special.softmax, "log_softmax": special.log_softmax,
         "softmin": lambda x: special.softmax(-x)}


def data(seed=0, shape=(3, 4, 5), dtype=pt.float64):
    rng = np.random.default_rng(seed)
    x, mask = rng.uniform(0.5, 2, shape), rng.random(shape) < 0.6
    mask[:, :2] = True              # two elements count in every slice
    return pt.tensor(x, dtype=dtype), pt.tensor(mask)


def by_slices(function, x, mask, dims):
    """The function of the elements that count, over some dims."""
    x, mask = x.double().numpy(), np.broadcast_to(mask.numpy(), x.shape)
    rest = [d for d in range(x.ndim) if d not in dims]
    x, mask = [np.transpose(a, (*rest, *dims)).reshape(*[x.shape[d] for d in rest], -1) for a in (x, mask)]
    out = np.empty(x.shape[:-1])
    for place in np.ndindex(*out.shape):
        out[place] = function(x[place][mask[place]])
    return out


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, dtype):
    x, mask = data(dtype=dtype)
    for dim in (1, -2) if name == "median" else (1, (1, 2), (0, 1), None, ()):
        dims = (1,) if dim in (1, -2) else dim or (0, 1, 2)
        args = (2, dim) if name == "norm" else (dim,)
        got = getattr(masked, name)(x, *args, mask=mask)
        np.testing.assert_allclose(got.numpy(), by_slices(REDUCTIONS[name], x, mask, dims), rtol=1e-5)
        assert got.dtype is dtype
        kept = getattr(masked, name)(x, *args, mask=mask, keepdim=True)
        assert kept.shape == tuple([1 if d in dims else n for d, n in enumerate(x.shape)])
        np.testing.assert_allclose(kept.reshape(got.shape).numpy(), got.numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", SCANS)
def test_scans_and_normalizations(name):
    x, mask = data()
    got = getattr(masked, name)(x, 1, mask=mask).numpy()
    for i, k in np.ndindex(3, 5):
        where = mask.numpy()[i, :, k]
        np.testing.assert_allclose(got[i, where, k], SCANS[name](x.numpy()[i, :, k][where]), rtol=1e-12)


def test_normalize_and_norms():
    x, mask = data()
    for p in (1, 2, 3.5, np.inf):
        size = by_slices(lambda v, p=p: np.linalg.norm(v, p), x, mask, (1,))
        np.testing.assert_allclose(masked.norm(x, p, 1, mask=mask).numpy(), size, rtol=1e-12)
        got = masked.normalize(x, p, 1, mask=mask).numpy()
        np.testing.assert_allclose(got, np.where(mask.numpy(), x.numpy(), 0) / size[:, None], rtol=1e-12)
    np.testing.assert_allclose(masked.norm(x, -np.inf, 1, mask=mask).numpy(), by_slices(np.min, x, mask, (1,)))
    assert masked.normalize(pt.zeros(2), 2, 0, eps=0.5).tolist() == [0, 0]


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places(name):
    x, mask = data()
    got = getattr(masked, name)(x, 1, mask=mask, dtype=pt.int64)
    worst = -np.inf if name == "argmax" else np.inf
    filled = np.where(mask.numpy(), x.numpy(), worst)
    np.testing.assert_array_equal(got.numpy(), getattr(np, name)(filled, axis=1))
    assert getattr(masked, name)(x, mask=mask).item() == getattr(np, name)(filled)
    assert getattr(masked, name)(x, 1, mask=mask).dtype is pt.float64       # as in PyTorch


def test_masks_broadcast():
    x, _ = data()
    for mask in (pt.tensor([True, False, True, True, False]), pt.tensor([[True], [False], [True], [True]]),
                 pt.tensor(True), pt.tensor([1, 0, 2, 0, 0])):
        whole = mask.bool().broadcast_to(x.shape)
        assert pt.equal(masked.sum(x, (1, 2), mask=mask), masked.sum(x, (1, 2), mask=whole))


def test_layouts():
    x, mask = data()
    for change in (lambda t: t.transpose(0, 2), lambda t: t[:, ::2], lambda t: t[::-1],
                   lambda t: t[:1].expand(4, 4, 5)):
        a, b = change(x), change(mask)
        assert pt.equal(masked.sum(a, 1, mask=b), masked.sum(a.contiguous(), 1, mask=b.contiguous()))
        assert pt.equal(masked.softmax(a, 1, mask=b), masked.softmax(a.contiguous(), 1, mask=b.contiguous()))


def test_dtypes():
    x = pt.tensor([[3, 1], [2, 5]])
    mask = pt.tensor([[True, False], [True, True]])
    for dtype in (pt.uint8, pt.int8, pt.int16, pt.int32, pt.int64):
        y = x.to(dtype)
        assert masked.sum(y, 1, mask=mask).dtype is masked.prod(y, 1, mask=mask).dtype is pt.int64
        assert masked.prod(y, 1, mask=mask).tolist() == [3, 10]
        assert masked.amax(y, 1, mask=mask).tolist() == masked.amax(y.float(), 1, mask=mask).tolist() == [3, 5]
        assert masked.amin(y, 0, mask=mask).tolist() == [2, 5]
        assert masked.amin(y, 0, mask=mask).dtype is masked.cumsum(y, 0, mask=mask).dtype is dtype
        assert masked.mean(y, 1, mask=mask, dtype=pt.float64).tolist() == [3, 3.5]
        assert masked.var(y, 1, False, mask=mask).dtype is pt.float32
        assert masked.median(y, 1, mask=mask).tolist() == [3, 2]
    z = pt.tensor([1 + 1j, 2j, 3.0])
    m = pt.tensor([True, False, True])
    assert masked.sum(z, mask=m).item() == 4 + 1j
    assert masked.mean(z, mask=m).item() == 2 + 0.5j
    np.testing.assert_allclose(masked.logsumexp(z, mask=m).item(), np.log(np.exp(1 + 1j) + np.exp(3)), rtol=1e-6)
    np.testing.assert_allclose(masked.var(z, mask=m).item(), np.var([1 + 1j, 3], ddof=1), rtol=1e-6)


def test_nothing_counts():
    x, mask = pt.ones(2, 3), pt.zeros(2, 3, dtype=pt.bool)
    assert masked.sum(x, 1, mask=mask).tolist() == [0, 0]
    assert masked.prod(x, 1, mask=mask).tolist() == [1, 1]
    assert masked.amax(x, 1, mask=mask).tolist() == [-np.inf] * 2
    assert masked.mean(x, 1, mask=mask).isnan().all() and masked.softmax(x, 1, mask=mask).isnan().all()
    assert masked.median(x, 1, mask=mask).isnan().all()
    assert masked.sum(pt.ones(0, 3), 0, mask=pt.ones(3, dtype=pt.bool)).tolist() == [0, 0, 0]


def test_masked_nan_and_inf_do_not_count():
    x = pt.tensor([1.0, np.nan, np.inf, 3.0], requires_grad=True)
    mask = pt.tensor([True, False, False, True])
    for name in ("sum", "prod", "amax", "amin", "mean", "norm", "logsumexp", "std"):
        value = getattr(masked, name)(x, mask=mask)
        assert value.isfinite()
        (g,) = pt.autograd.grad(value, x)
        assert (g[[1, 2]] == 0).all() or name == "std"
    assert masked.softmax(x, 0, mask=mask)[[1, 2]].tolist() == [0, 0]


@pytest.mark.parametrize("name", [*REDUCTIONS, *SCANS, "normalize"])
def test_gradients(name):
    x, mask = data(shape=(2, 3, 2))
    x.requires_grad_()
    args = {"norm": (3, 1), "normalize": (2, 1)}.get(name, (1,))

    def function(x):
        out = getattr(masked, name)(x, *args, mask=mask)
        return pt.where(mask, out, 0) if out.shape == x.shape else out
    assert pt.autograd.gradcheck(function, (x,))
    assert pt.autograd.gradgradcheck(function, (x,))


def test_logaddexp():
    x, y = pt.tensor([1.0, 2, 3, 4]).double().requires_grad_(), pt.tensor([1.0, 2, 3, 4]).double().requires_grad_()
    a, b = pt.tensor([True, True, False, False]), pt.tensor([True, False, True, False])
    got = masked.logaddexp(x, y, input_mask=a, other_mask=b)
    np.testing.assert_allclose(got.detach().numpy(), [1 + np.log(2), 2, 3, -np.inf])
    gx, gy = pt.autograd.grad(got.sum(), (x, y))
    assert gx.tolist() == [0.5, 1, 0, 0] and gy.tolist() == [0.5, 0, 1, 0]
    assert masked.logaddexp(x, y, dtype=pt.float32).dtype is pt.float32


def test_errors():
    x, mask = data()
    for call, error, text in (
            (lambda: masked.sum(x, mask=pt.ones(1, 1, 1, 1)), IndexError, "sum: mask must have at most the 3 dim"),
            (lambda: masked.sum(x, mask=pt.ones(4, 4)), RuntimeError, r"sum: mask must broadcast to \[3, 4, 5\]"),
            (lambda: masked.sum(x, 3), IndexError, "sum: Dimension out of range"),
            (lambda: masked.sum(x, (0, -3)), RuntimeError, r"sum: dim=-3 appears multiple times"),
            (lambda: masked.mean(x.int(), 1), ValueError, "mean: Could not infer output dtype"),
            (lambda: masked.amax(mask, 1, mask=mask), NotImplementedError, "amax: masked-out elements of dtype bool"),
            (lambda: masked.sum([1], 0), TypeError, "sum: input must be a Tensor, got list"),
            (lambda: masked.sum(x, mask=[True]), TypeError, "sum: mask must be a Tensor or None, got list"),
            (lambda: masked.median(x.int(), 0, mask=pt.tensor(False)), ValueError, "median: no row may be masked out"),
            (lambda: masked.var(x, unbiased=True, correction=1), AssertionError, "var: only one of unbiased and corr")):
        with pytest.raises(error, match=text):
            call()
