"""Numbers whose squares or sums leave the type's range, and windows that hold many numbers or some that are not finite.
The oracle is the same in float64, on the CPU where it says so."""
import numpy as np
import pytest

import ptcore
from ptcore.nn import functional as F

INF, NAN = float("inf"), float("nan")
NORMALISED = {
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:], eps=0.0),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:], eps=0.0),
    "group_norm": lambda x: F.group_norm(x, 2, eps=0.0),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True, eps=1e-300),
    "instance_norm": lambda x: F.instance_norm(x, eps=1e-300),
}


@pytest.mark.parametrize("scale", [1e-30, 1e-22, 1.0, 1e19, 1e20, 1e30, 1e37])
@pytest.mark.parametrize("name", NORMALISED)
@pytest.mark.parametrize("length", [5, 96, 60_000])
def test_normalisation(name, scale, length):
    batch = 2 if length > 1000 else 6
    x = (scale * np.random.default_rng(0).standard_normal((batch, 4, length))).astype(np.float32)
    g = np.cos(np.arange(x.size)).reshape(x.shape)
    found = []
    for numbers in (x, x.astype(float)):
        leaf = ptcore.from_numpy(numbers).cuda().requires_grad_()
        out = NORMALISED[name](leaf)
        out.backward(ptcore.from_numpy(g.astype(numbers.dtype)).cuda())
        found.append((out.detach().cpu().numpy(), leaf.grad.cpu().numpy()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-4, atol=1e-4)
    # the backward of these gets the variance, which float32 does not hold of small numbers
    if scale >= 1 or name not in ("batch_norm", "instance_norm"):
        largest = np.abs(found[1][1]).max()
        np.testing.assert_allclose(found[0][1] / largest, found[1][1] / largest, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [ptcore.float32, ptcore.bfloat16])
@pytest.mark.parametrize("scale", [1e-25, 1e20, 1e30])
def test_deviations(dtype, scale):
    x = (ptcore.from_numpy(np.random.default_rng(0).standard_normal((7, 300))) * scale).to(dtype)
    wide = x.double().numpy()
    limit = 0.01 if dtype is ptcore.bfloat16 else 1e-6
    for dim in (0, 1):
        np.testing.assert_allclose(x.cuda().std(dim).double().cpu().numpy(), wide.std(dim, ddof=1), rtol=limit)
    np.testing.assert_allclose(x.cuda().std().item(), wide.std(ddof=1), rtol=limit)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "complex64"])
@pytest.mark.parametrize("shape, dim", [((1_000_000,), 0), ((3, 300_001), 1), ((300_001, 3), 0), ((2, 70_000, 8), 1)])
def test_sums_of_equal_numbers(shape, dim, dtype):
    """They are added in double, in parts that are added in the type of computation."""
    x = ptcore.full(shape, 0.1, dtype=getattr(ptcore, dtype), device="cuda")
    exact = x.reshape(-1)[0].item() * shape[dim]
    limit = {"float16": 1e-3, "bfloat16": 4e-3}.get(dtype, 1e-7)
    if dtype != "float16":
        assert abs(x.sum(dim).reshape(-1)[0].item() - exact) <= limit * abs(exact)
    assert abs(x.mean(dim).reshape(-1)[0].item() * shape[dim] - exact) <= limit * abs(exact)


@pytest.mark.parametrize("shape, dim", [((7,), 0), ((5, 64), 1), ((64, 5), 0), ((3, 5000), 1)])
def test_means_of_the_largest_numbers(shape, dim):
    for dtype, big in ((ptcore.float32, 3e38), (ptcore.bfloat16, 3e38), (ptcore.complex64, 3e38)):
        x = ptcore.full(shape, big, dtype=dtype, device="cuda")
        assert (x.mean(dim) == x.select(dim, 0)).all()
        assert not x.sum(dim).isfinite().any()
        x.select(dim, 0).fill_(-big)
        n, wide = shape[dim], ptcore.complex128 if dtype.is_complex else ptcore.float64
        want, got = x.select(dim, 1).to(wide).cpu().numpy() * ((n - 2) / n), x.mean(dim).to(wide).cpu().numpy()
        np.testing.assert_allclose(got, want, rtol=1e-2 if dtype is ptcore.bfloat16 else 1e-6)
    slopes = []
    for device, dtype in (("cuda", ptcore.float32), ("cpu", ptcore.float64)):
        x = (ptcore.linspace(1.0, 3.0, 7) * 1e38).to(dtype).to(device).requires_grad_()
        x.std().backward()
        slopes.append(x.grad.double().cpu().numpy())
    np.testing.assert_allclose(*slopes, rtol=1e-5, atol=1e-6)
    x = ptcore.tensor([INF, -INF, 1.0, NAN], device="cuda")
    assert x[:1].sum() == INF and x[:2].sum().isnan() and x[2:].sum().isnan()


@pytest.mark.parametrize("dtype", [ptcore.float32, ptcore.bfloat16, ptcore.float16])
def test_long_windows(dtype):
    """A float sum of equal numbers grows no more from 2**24 times their size on."""
    n = 70_000 if dtype.itemsize == 2 else 300_000
    x = ptcore.full((1, 1, 1, n), 0.1, dtype=dtype, device="cuda", requires_grad=True)
    want, limit = x[0, 0, 0, 0].item(), 0.01 if dtype.itemsize == 2 else 2e-7
    for pooled in (F.avg_pool2d(x, (1, n)), F.adaptive_avg_pool2d(x, 1)):
        assert pooled.item() == pytest.approx(want, rel=limit)


def test_many_windows_around_a_place():
    n = 10_000
    g = ptcore.full((1, 1, 1, n + 1), 0.1, device="cuda")
    x = ptcore.zeros(1, 1, 1, 2 * n, device="cuda", requires_grad=True)
    pooled = F.avg_pool2d(x, (1, n), stride=1)
    assert ptcore.autograd.grad(pooled, x, g)[0][0, 0, 0, n].item() == pytest.approx(g[0, 0, 0, 0].item(), rel=2e-7)


@pytest.mark.parametrize("dtype", [ptcore.float32, ptcore.float64, ptcore.float16])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_filters_around_what_is_not_finite(mode, dtype):
    """Values and gradients are the CPU's, which sums each window by itself."""
    rng = np.random.default_rng(0)
    limit = {2: 4e-3, 4: 1e-5, 8: 1e-12}[dtype.itemsize]
    for numbers in ([], [NAN], [INF], [INF, -INF, NAN, INF]):
        for size in ((3, 5), (20, 4), (9, 30)):
            a = rng.standard_normal((2, 2, 10, 12))
            for number in numbers:
                a[tuple(rng.integers(0, a.shape))] = number
            found = []
            for where in ("cpu", "cuda"):
                x = ptcore.tensor(a, dtype=dtype, device=where, requires_grad=True)
                y = F.interpolate(x, size=size, mode=mode, antialias=True)
                found.append([y.detach(), *ptcore.autograd.grad(y, x, ptcore.ones_like(y))])
            for want, got in zip(*found):
                np.testing.assert_allclose(got.double().cpu().numpy(), want.double().numpy(), rtol=limit, atol=limit)


@pytest.mark.parametrize("dtype", [ptcore.float16, ptcore.bfloat16, ptcore.float32])
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_slopes_of_gelu_far_out(approximate, dtype):
    x = ptcore.tensor([40.0, 6e4, 1e20, INF, -40.0, -6e4, -1e20, -INF, NAN], device="cuda").to(dtype).requires_grad_()
    F.gelu(x, approximate=approximate).backward(ptcore.ones_like(x))
    np.testing.assert_array_equal(x.grad.double().cpu().numpy(), [1.0] * 4 + [0.0] * 4 + [NAN])


@pytest.mark.parametrize("scale", [1e-25, 1.0, 1e20])
def test_distances_of_many_rows(scale):
    """They come from products of rows, which are scaled without a look at them."""
    a = np.random.default_rng(0).standard_normal((2, 40, 5))
    found = []
    for x in (ptcore.from_numpy(a), ptcore.from_numpy(a * scale).float().cuda()):
        one, other = x.requires_grad_()[0], x[1]
        distances = ptcore.cdist(one, other)
        found += [distances.detach().double().cpu().numpy(), ptcore.autograd.grad(distances.sum(), x)[0].double().cpu()]
    np.testing.assert_allclose(found[2] / scale, found[0], rtol=1e-5)
    np.testing.assert_allclose(found[3], found[1], rtol=1e-4, atol=1e-4)
    assert ptcore.cdist(ptcore.zeros(30, 3, device="cuda"), ptcore.zeros(30, 3, device="cuda")).sum() == 0
    assert ptcore.cdist(ptcore.full((30, 3), INF, device="cuda"), ptcore.zeros(30, 3, device="cuda")).isnan().any()
