"""Convolution by tensor cores, of half types and of floats as TF32: whole numbers, whose sums are exact."""
import numpy as np
import pytest

import ptcore

F = ptcore.nn.functional
# input, weight, settings: words of channels that are not full, steps with several taps, tiles that end early
CASES = [
    ((2, 3, 9, 8), (16, 3, 3, 3), {"padding": 1}),
    ((1, 8, 7), (8, 8, 1), {}),
    ((3, 20, 11, 13), (10, 20, 3, 2), {"stride": (2, 1), "padding": (0, 1)}),
    ((2, 64, 12, 12), (130, 64, 3, 3), {"padding": 1}),
    ((1, 72, 5, 6), (64, 72, 1, 1), {"stride": 2}),
    ((2, 32, 10, 9), (24, 16, 3, 3), {"groups": 2, "padding": 2, "dilation": 2}),
    ((1, 16, 4, 5, 6), (8, 16, 2, 3, 2), {"padding": (1, 0, 1)}),
    ((5, 10, 40), (12, 5, 7), {"groups": 2, "stride": 3, "padding": 3}),
    ((1, 8, 3, 3), (8, 8, 5, 5), {"padding": 2}),
    ((2, 12, 20), (140, 6, 3), {"groups": 2}),
]
TRANSPOSED = [
    ((2, 16, 5, 6), (16, 10, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    ((1, 24, 9), (24, 8, 4), {"stride": 3}),
    ((2, 16, 4, 4), (16, 12, 3, 2), {"groups": 2, "dilation": 2, "padding": 1}),
    ((1, 8, 3, 4, 2), (8, 9, 2, 2, 3), {"stride": (1, 2, 1)}),
]
LAYOUTS = [("contiguous", "float16"), ("contiguous", "bfloat16"), ("contiguous", "float32"),
           ("channels last", "float16"), ("cut", "float32")]


@pytest.fixture
def own(monkeypatch):
    """cuDNN is not asked: it may choose an algorithm whose sums are not exact, or differ from run to run."""
    monkeypatch.setattr(ptcore.backends.cudnn, "enabled", False)


def whole(shape, seed, dtype):
    x = np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float64)
    return ptcore.from_numpy(x), ptcore.from_numpy(x).to(dtype).cuda()


def exact(got, want, dtype, what):
    got, want = got.detach().cpu().double(), want.detach().to(dtype).double()
    np.testing.assert_array_equal(got.numpy(), want.numpy(), err_msg=what)


def compare(conv, x_shape, w_shape, settings, dtype, layout):
    dtype = getattr(ptcore, dtype)
    outputs = w_shape[1] * settings.get("groups", 1) if "transpose" in conv.__name__ else w_shape[0]
    (x, x2), (w, w2), (b, b2) = (whole(s, i, dtype) for i, s in enumerate((x_shape, w_shape, (outputs,))))
    if layout == "channels last":
        x2 = x2.movedim(1, -1).contiguous().movedim(-1, 1)
    elif layout == "cut":
        x2 = ptcore.cat([x2, x2], -1)[..., :x_shape[-1]]
        w2 = ptcore.cat([w2, w2], 1)[:, :w_shape[1]]
    for t in (x, w, b, x2, w2, b2):
        t.requires_grad_()
    y, y2 = conv(x, w, b, **settings), conv(x2, w2, b2, **settings)
    exact(y2, y, dtype, "forward")
    g, g2 = whole(y.shape, 7, dtype)
    if layout == "channels last":
        g2 = g2.movedim(1, -1).contiguous().movedim(-1, 1)
    grads = ptcore.autograd.grad(y, (x, w, b), g), ptcore.autograd.grad(y2, (x2, w2, b2), g2)
    for name, want, got in zip(("input", "weight", "bias"), *grads):
        exact(got, want, dtype, name)


@pytest.mark.parametrize(("layout", "dtype"), LAYOUTS)
@pytest.mark.parametrize("case", CASES, ids=lambda c: "x".join(map(str, c[0])))
def test_convolution(own, case, layout, dtype):
    x, w, settings = case
    compare({3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[len(x)], x, w, settings, dtype, layout)


@pytest.mark.parametrize(("layout", "dtype"), LAYOUTS)
@pytest.mark.parametrize("case", TRANSPOSED, ids=lambda c: "x".join(map(str, c[0])))
def test_transposed_convolution(own, case, layout, dtype):
    x, w, settings = case
    conv = {3: F.conv_transpose1d, 4: F.conv_transpose2d, 5: F.conv_transpose3d}[len(x)]
    compare(conv, x, w, settings, dtype, layout)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("layout", ["contiguous", "channels last", "cut"])
def test_one_tap(own, layout, dtype):
    """A product of matrices for each image, or none: a stride, padding, places that do not follow each other."""
    dtype = getattr(ptcore, dtype)
    for shape, settings in (((3, 6, 4, 5), {}), ((2, 6, 4, 5), {"stride": 2}), ((2, 6, 3, 5), {"padding": 1})):
        (x, x2), (w, w2) = whole(shape, 0, dtype), whole((9, 6, 1, 1), 1, dtype)
        if layout == "channels last":
            x2 = x2.movedim(1, -1).contiguous().movedim(-1, 1)
        elif layout == "cut":
            x2, w2 = ptcore.cat([x2, x2], -1)[..., :5], ptcore.cat([w2, w2], 1)[:, :6]
        for t in (x, w, x2, w2):
            t.requires_grad_()
        y, y2 = F.conv2d(x, w, **settings), F.conv2d(x2, w2, **settings)
        exact(y2, y, dtype, "forward")
        g, g2 = whole(y.shape, 7, dtype)
        grads = ptcore.autograd.grad(y, (x, w), g), ptcore.autograd.grad(y2, (x2, w2), g2)
        for name, want, got in zip(("input", "weight"), *grads):
            exact(got, want, dtype, name)


@pytest.mark.parametrize("case", CASES, ids=lambda c: "x".join(map(str, c[0])))
def test_by_the_library_that_there_is(case):
    """cuDNN, where it is installed."""
    (x, w), settings = case[:2], case[2]
    rng, results = np.random.default_rng(3), []
    given = [ptcore.from_numpy(rng.standard_normal(s)).half() for s in (x, w)]
    for device, kind in (("cpu", ptcore.float64), ("cuda", ptcore.float16)):
        tensors = [t.to(device, kind).requires_grad_() for t in given]
        y = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[len(x)](*tensors, **settings)
        results.append([y, *ptcore.autograd.grad(y.float().sum(), tensors)])
    for got, want in zip(results[1], results[0]):
        scale = want.abs().max().item()
        np.testing.assert_allclose(got.detach().cpu().double(), want.detach(), rtol=0, atol=4e-3 * scale)


def test_kernels(driver):
    """The tensor cores are used, for many filters and for few."""
    names = [b"convolve_tensor", b"convolve_tensor_few", b"convolve_weight_tensor", b"convolve_weight_tensor_few"]
    before = [driver.standin_launched(n) for n in names]
    for filters in (16, 72):
        x, w = (ptcore.ones(s, device="cuda", dtype=ptcore.float16, requires_grad=True)
                for s in ((1, 16, 4, 4), (filters, 16, 3, 3)))
        F.conv2d(x, w).sum().backward()
    assert [driver.standin_launched(n) - b for n, b in zip(names, before)] == [1, 3, 1, 1]


def test_precision_of_floats():
    """TF32 where it is allowed, as it is at first; else float32."""
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((2, 16, 9, 9)), rng.standard_normal((24, 16, 3, 3))
    want = F.conv2d(ptcore.from_numpy(x), ptcore.from_numpy(w)).numpy()
    cudnn = ptcore.backends.cudnn

    def error():
        got = F.conv2d(*(ptcore.from_numpy(t).float().cuda() for t in (x, w)))
        return float(np.abs(got.cpu().numpy() - want).max() / np.abs(want).max())

    assert 1e-5 < error() < 2e-3
    with cudnn.flags(enabled=True, allow_tf32=False):
        assert error() < 1e-6
    cudnn.fp32_precision = "ieee"
    try:
        assert error() < 1e-6
    finally:
        cudnn.fp32_precision = "none"
    assert error() > 1e-5


def test_numbers_that_are_none():
    """Rounding keeps infinities and whatever is no number."""
    bits = np.array([0x7f800000, 0xff800000, 0x7fc00000, 0x7fffffff, 0xffffffff, 0x7f7fffff], np.uint32)
    x = ptcore.from_numpy(bits.view(np.float32).copy()).cuda().reshape(6, 1, 1).expand(6, 8, 1)
    got = F.conv1d(x * ptcore.eye(8, device="cuda")[0][:, None], ptcore.eye(8, device="cuda")[:, :, None])
    # 0 times what is not finite is no number
    assert got[:2, 1:].isnan().all() and got[2:5].isnan().all()
    got = F.conv1d(x[:, :1].repeat(1, 64, 1), ptcore.ones(8, 64, 1, device="cuda"))[:, 0, 0].cpu().tolist()
    assert got[0] == np.inf and got[1] == -np.inf and all(np.isnan(got[2:5]))


def test_the_same_bits_again(own):
    """Sums are taken in parts that depend on the shapes alone."""
    rng = np.random.default_rng(0)
    x, w = (ptcore.from_numpy(rng.standard_normal(s)).half().cuda().requires_grad_()
            for s in ((3, 16, 30, 30), (8, 16, 3, 3)))
    runs = []
    for _ in range(2):
        y = F.conv2d(x, w, padding=1)
        found = (y, *ptcore.autograd.grad(y, (x, w), ptcore.ones_like(y)))
        runs.append([t.detach().cpu().numpy().tobytes() for t in found])
    assert runs[0] == runs[1]


@pytest.mark.parametrize("dtype", [ptcore.float32, ptcore.float16, ptcore.bfloat16, ptcore.float64], ids=str)
def test_inputs_without_places(dtype, monkeypatch):
    """Padding alone: the bias, and no gradient."""
    monkeypatch.setattr(ptcore.backends.cudnn, "allow_tf32", True)
    F, bias = ptcore.nn.functional, ptcore.arange(8.0, dtype=dtype)
    for shape, kernel, convolve, options in (
            ((1, 8, 0, 4), (8, 8, 2, 1), F.conv2d, {"padding": (1, 0)}),
            ((2, 16, 0), (8, 8, 3), F.conv1d, {"padding": 2, "groups": 2})):
        results = []
        for device in ("cpu", "cuda"):
            x = ptcore.zeros(shape, dtype=dtype, device=device, requires_grad=True)
            w = ptcore.ones(kernel, dtype=dtype, device=device, requires_grad=True)
            y = convolve(x, w, bias.to(device), **options)
            y.sum().backward()
            results.append([t.detach().cpu() for t in (y, x.grad, w.grad)])
        for got, want in zip(results[1], results[0]):
            assert got.shape == want.shape and ptcore.equal(got, want)
