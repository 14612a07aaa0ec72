"""Kernels of windows on a CUDA device against the CPU's.

Sizes beyond one block and one tile, odd groups, large strides and dilations, empty batches, strided inputs, half types,
gradients.
"""
import ctypes
from functools import partial

import numpy as np
import pytest

import ptcore
from ptcore.nn import functional as F

pytestmark = pytest.mark.usefixtures("exact_convolution")


def numbers(shape, seed=0, dtype="float64"):
    made = np.random.default_rng(seed).standard_normal(shape)
    return ptcore.from_numpy(made).to(getattr(ptcore, dtype))


def compare(op, *tensors, tolerance=1e-12, backward=True, **settings):
    """op(*tensors, **settings) and the gradients of a weighted sum of it, on the device and on the CPU."""
    results = []
    for device in ("cpu", "cuda"):
        leaves = [t.detach().to(device).requires_grad_(backward) for t in tensors]
        out = op(*leaves, **settings)
        found = [out]
        if backward:
            g = numbers(tuple(out.shape), 99, out.dtype.name).to(device)
            found += ptcore.autograd.grad(out, leaves, g)
        assert all(t.device.type == device for t in found)
        results.append([t.detach().cpu().to(ptcore.float64).numpy() for t in found])
    for k, (want, got) in enumerate(zip(*results, strict=True)):
        scale = np.abs(want).max(initial=1.0)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale, err_msg=f"result {k}")


CONVOLUTIONS = {
    # name: (x, weight, settings)
    "few filters": ((2, 3, 19, 23), (2, 3, 3, 5), {"padding": 1}),
    "lenet 1": ((3, 1, 28, 28), (6, 1, 5, 5), {}),
    "lenet 2": ((3, 6, 12, 12), (16, 6, 5, 5), {}),
    "tiles of filters": ((2, 5, 9, 10), (70, 5, 3, 3), {"stride": (1, 2), "padding": (0, 2)}),
    "channels beyond a tile": ((1, 37, 6, 7), (19, 37, 2, 3), {"padding": 1}),
    "odd groups": ((2, 15, 8, 9), (21, 5, 3, 2), {"groups": 3, "dilation": (2, 1)}),
    "depthwise": ((2, 7, 11, 13), (14, 1, 3, 3), {"groups": 7, "padding": 1, "stride": 2}),
    "large stride": ((1, 4, 40, 41), (5, 4, 2, 3), {"stride": (13, 17), "padding": (5, 1)}),
    "large dilation": ((1, 4, 40, 41), (5, 4, 3, 2), {"dilation": (17, 31), "padding": 3}),
    "stride and dilation": ((1, 4, 30, 31), (5, 4, 4, 3), {"dilation": (4, 6), "stride": (6, 4), "padding": (7, 3)}),
    "1 dim": ((3, 6, 300), (9, 6, 7), {"padding": 3, "stride": 2}),
    "3 dims": ((2, 4, 5, 6, 7), (6, 2, 2, 3, 2), {"groups": 2, "padding": (1, 0, 1), "stride": (1, 2, 1)}),
    "1 x 1": ((2, 20, 9, 9), (33, 20, 1, 1), {}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name):
    x, w, settings = CONVOLUTIONS[name]
    conv = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[len(x)]
    compare(conv, numbers(x, 1), numbers(w, 2), numbers(w[:1], 3), **settings)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_transposed_convolution(name):
    x, w, settings = CONVOLUTIONS[name]
    conv = {3: F.conv_transpose1d, 4: F.conv_transpose2d, 5: F.conv_transpose3d}[len(x)]
    x = (x[0], w[0], *[max(2, n // 3) for n in x[2:]])
    outputs = w[1] * settings.get("groups", 1)
    compare(conv, numbers(x, 1), numbers(w, 2), numbers((outputs,), 3), **settings)


def test_positions_beyond_32_bits():
    """Of three taps only the middle one meets the input."""
    x, w, far = numbers((2, 3, 70), 1), numbers((6, 3, 3), 2), 2**31
    few = w[:2].clone()                                 # filters, for which there is another kernel
    for conv, middle in ((F.conv1d, w), (F.conv1d, few), (F.conv_transpose1d, w.transpose(0, 1).contiguous()),
                         (F.conv_transpose1d, few.transpose(0, 1).contiguous())):
        want = [x.clone().requires_grad_(), middle[:, :, 1:2].clone().requires_grad_()]
        got = [x.cuda().requires_grad_(), middle.cuda().requires_grad_()]
        out = conv(*want)
        again = conv(*got, padding=far, dilation=far)
        np.testing.assert_allclose(again.detach().cpu().numpy(), out.detach().numpy(), rtol=1e-12, atol=1e-12)
        g = numbers(tuple(out.shape), 3)
        gx, gw = ptcore.autograd.grad(out, want, g)
        ex, ew = ptcore.autograd.grad(again, got, g.cuda())
        np.testing.assert_allclose(ex.cpu().numpy(), gx.numpy(), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(ew.cpu().numpy()[:, :, 1:2], gw.numpy(), rtol=1e-12, atol=1e-12)
        assert not ew.cpu().numpy()[:, :, ::2].any()


def test_each_kernel_of_convolution_is_chosen(driver):
    """264 tiles of 128 x 128 results occupy the 132 multiprocessors of the stand-in."""
    driver.standin_launched.restype = ctypes.c_uint64

    def chosen(kernel, op, *tensors, **settings):
        ptcore.cuda.synchronize()
        before = driver.standin_launched(kernel.encode())
        backward = kernel.startswith("convolve_weight")
        compare(op, *[t.to(ptcore.float32) for t in tensors], tolerance=5e-6, backward=backward, **settings)
        ptcore.cuda.synchronize()
        assert driver.standin_launched(kernel.encode()) > before, kernel

    chosen("convolve_wide", F.conv2d, numbers((33, 2, 32, 32)), numbers((128, 2, 3, 3), 1), padding=1)
    chosen("convolve_square", F.conv2d, numbers((2, 3, 9, 9)), numbers((18, 3, 3, 3), 1))
    chosen("convolve_narrow", F.conv2d, numbers((2, 3, 9, 9)), numbers((8, 3, 3, 3), 1))
    chosen("convolve_each", F.conv2d, numbers((2, 3, 9, 9)), numbers((3, 3, 3, 3), 1))
    chosen("convolve_weight_near", F.conv2d, numbers((2, 8, 9, 9)), numbers((32, 8, 3, 3), 1))
    chosen("convolve_weight_each", F.conv2d, numbers((2, 3, 9, 9)), numbers((3, 3, 3, 3), 1))
    chosen("convolve_weight_sum", F.conv2d, numbers((8, 8, 30, 30)), numbers((32, 8, 3, 3), 1))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_dtypes_of_convolution(dtype):
    tolerance = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 3e-6}[dtype]
    for filters in (2, 9, 20):
        compare(F.conv2d, numbers((2, 5, 12, 11), 1, dtype), numbers((filters, 5, 3, 3), 2, dtype),
                numbers((filters,), 3, dtype), tolerance=tolerance, padding=1, stride=2)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64"])
def test_integers_wrap(dtype):
    for filters in (2, 7):
        x = numbers((2, 3, 8, 9), 1).mul(100).to(ptcore.int64).to(getattr(ptcore, dtype))
        w = numbers((filters, 3, 3, 3), 2).mul(100).to(ptcore.int64).to(getattr(ptcore, dtype))
        want, got = F.conv2d(x, w), F.conv2d(x.cuda(), w.cuda())
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got.cpu().numpy(), want.numpy())


@pytest.mark.parametrize("op", [F.conv2d, lambda x, w: F.conv_transpose2d(x, w.transpose(0, 1)),
                                lambda x, w: F.max_pool2d(x, 3, 2, 1) + w.sum(),
                                lambda x, w: F.avg_pool2d(x, 3, 2, 1) + w.sum()])
def test_channels_last_and_views(op):
    x, w = numbers((2, 9, 10, 6), 1), numbers((3, 3, 6, 8), 2)
    compare(lambda x, w: op(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1)), x, w)
    compare(lambda x, w: op(x.permute(0, 3, 1, 2)[:, :, ::2, 1:], w.permute(3, 2, 0, 1).flip(2)), x, w)


def test_gradients_of_expanded_results():
    """The gradient that a sum sends back has strides of 0."""
    compare(lambda x, w: F.conv2d(x, w, padding=1).sum(), numbers((2, 3, 9, 9)), numbers((6, 3, 3, 3), 1))
    compare(lambda x: F.avg_pool2d(x, 3, 2).sum(), numbers((2, 3, 9, 9)))


def test_nothing():
    x, w = ptcore.zeros(0, 3, 8, 8), numbers((5, 3, 3, 3), dtype="float32")
    compare(F.conv2d, x, w)                             # a gradient of zeros for the weight
    compare(F.max_pool2d, x, kernel_size=2)
    compare(F.avg_pool2d, x, kernel_size=2)
    no_channels, no_weights = [ptcore.zeros(*s, dtype=ptcore.float64) for s in ((2, 0, 5, 5), (4, 0, 3, 3))]
    compare(F.conv2d, no_channels, no_weights, numbers((4,)))


def test_second_derivatives_of_convolution():
    def op(x, w):
        y = F.conv2d(x, w, stride=2, padding=1)
        gx, gw = ptcore.autograd.grad((y * y).sum(), (x, w), create_graph=True)
        return (gx * gx).sum() + (gw * gw).sum()
    compare(op, numbers((2, 3, 7, 8), 1), numbers((6, 3, 3, 3), 2))


def test_the_weights_gradient_is_summed_in_parts_in_order():
    x, w = numbers((8, 2, 30, 31), 1, "float32"), numbers((5, 2, 3, 3), 2, "float32")
    compare(F.conv2d, x, w, tolerance=2e-6)
    runs = []
    for _ in range(2):
        on = w.cuda().requires_grad_()
        F.conv2d(x.cuda(), on).square().sum().backward()
        runs.append(on.grad.cpu().numpy())
    np.testing.assert_array_equal(*runs)


POOLS = {"overlapping": ((2, 3, 20, 21), 3, 2, 1), "apart": ((1, 2, 30, 33), 2, (7, 11), 0),
         "beyond a block": ((3, 5, 24, 26), (4, 5), 1, (2, 2)), "one window": ((2, 5, 9, 9), 9, 9, 0)}


@pytest.mark.parametrize("name", POOLS)
def test_pooling(name):
    shape, kernel, stride, padding = POOLS[name]
    x, window = numbers(shape), {"kernel_size": kernel, "stride": stride, "padding": padding}
    compare(F.max_pool2d, x, **window)
    for include in (True, False):
        for ceil in (True, False):
            compare(F.avg_pool2d, x, **window, ceil_mode=ceil, count_include_pad=include)
    compare(F.avg_pool2d, x, **window, divisor_override=5)
    wanted, places = F.max_pool2d(x, **window, return_indices=True)
    got, at = F.max_pool2d(x.cuda(), **window, return_indices=True)
    np.testing.assert_array_equal(at.cpu().numpy(), places.numpy())
    np.testing.assert_array_equal(got.cpu().numpy(), wanted.numpy())


def test_dilated_and_adaptive_pools():
    x = numbers((2, 3, 17, 23))
    compare(lambda x: F.max_pool2d(x, 3, 2, 1, dilation=(4, 7)), x)
    for size in ((5, 4), (1, 1), (17, 23), (30, 40), (7, 23)):
        compare(F.adaptive_avg_pool2d, x, output_size=size)
        compare(F.adaptive_max_pool2d, x, output_size=size)
    compare(lambda x: F.avg_pool3d(x, 2, 3, 1), numbers((1, 2, 7, 8, 9)))
    compare(lambda x: F.max_pool1d(x, 4, 3), numbers((2, 3, 400)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_dtypes_of_pooling(dtype):
    tolerance = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-6}[dtype]
    x = numbers((2, 3, 12, 13), 5, dtype)
    compare(lambda x: F.max_pool2d(x, 3, 2), x, tolerance=tolerance)
    compare(lambda x: F.avg_pool2d(x, 3, 2), x, tolerance=tolerance)


def test_maximum_of_special_numbers():
    x = numbers((1, 1, 9, 9)).clone()
    x[0, 0, 2, 3] = float("nan")
    x[0, 0, 6:, 6:] = -float("inf")
    x[0, 0, :2, :2] = 7.0                               # equal ones: the first counts
    want, places = F.max_pool2d(x, 3, return_indices=True)
    got, at = F.max_pool2d(x.cuda(), 3, return_indices=True)
    np.testing.assert_array_equal(got.cpu().numpy(), want.numpy())
    np.testing.assert_array_equal(at.cpu().numpy(), places.numpy())


def test_lenet_learns():
    """Two steps of a small LeNet: the losses and the weights are the CPU's."""
    results = []
    for device in ("cpu", "cuda"):
        ptcore.manual_seed(0)
        shapes = [(6, 1, 5, 5), (6,), (16, 6, 5, 5), (16,), (10, 256), (10,)]
        weights = [(numbers(s, k) * 0.1).to(device).requires_grad_() for k, s in enumerate(shapes)]
        x, target = numbers((4, 1, 28, 28), 9).to(device), ptcore.tensor([3, 1, 4, 1]).to(device)
        losses = []
        for _ in range(2):
            h = F.max_pool2d(F.relu(F.conv2d(x, weights[0], weights[1])), 2)
            h = F.max_pool2d(F.relu(F.conv2d(h, weights[2], weights[3])), 2)
            loss = F.cross_entropy(F.linear(h.flatten(1), weights[4], weights[5]), target)
            grads = ptcore.autograd.grad(loss, weights)
            weights = [(w - 0.1 * g).detach().requires_grad_() for w, g in zip(weights, grads, strict=True)]
            losses.append(loss.item())
        results.append((losses, [w.detach().cpu().numpy() for w in weights]))
    np.testing.assert_allclose(results[1][0], results[0][0], rtol=1e-12)
    for got, want in zip(results[1][1], results[0][1], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


NORMS = [(70, 3, 5, 5), (4, 37, 300), (1000, 5), (2, 3, 90, 100), (3, 70, 2), (1, 6, 1, 5000), (2, 12, 8, 2, 2)]


@pytest.mark.parametrize("shape", NORMS, ids=str)
def test_norms_of_channels(shape):
    x, w, b = numbers(shape, 1).mul(3).add(2), numbers(shape[1:2], 2), numbers(shape[1:2], 3)
    compare(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), x, w, b, tolerance=1e-10)
    compare(lambda x: F.batch_norm(x, None, None, None, None, True), x, tolerance=1e-10)
    for groups in {1, shape[1]} | ({2} if shape[1] % 2 == 0 else set()):
        if groups < shape[1] or len(shape) > 2:
            compare(lambda x, w, b, groups=groups: F.group_norm(x, groups, w, b), x, w, b, tolerance=1e-10)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("shape", [(6, 8, 7, 9), (6, 8, 8, 40)], ids=["odd planes", "planes of packs"])
def test_dtypes_of_norms(dtype, shape):
    tolerance = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5}[dtype]
    x = numbers(shape, 1, dtype).add(30)
    for kind in {dtype, "float32"}:                     # weight and bias are often of more bits than the input
        w, b = numbers((8,), 2, kind), numbers((8,), 3, kind)
        compare(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), x, w, b, tolerance=tolerance)
        compare(lambda x, w, b: F.group_norm(x, 4, w, b), x, w, b, tolerance=tolerance)


def test_running_statistics():
    found = []
    for device in ("cpu", "cuda"):
        mean = ptcore.zeros(5, dtype=ptcore.float64, device=device)
        var = mean + 1
        for k in range(3):
            F.batch_norm(numbers((4, 5, 6, 7), k).to(device), mean, var, None, None, True, 0.3)
        y = F.batch_norm(numbers((4, 5, 6, 7), 9).to(device), mean, var, None, None, False)
        found.append([t.cpu().numpy() for t in (mean, var, y)])
    for want, got in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(6, 5), (3, 5, 70), (4, 5, 6, 7), (2, 3, 4, 5, 2)])
def test_statistics_that_are_given(shape):
    """Planes, channels side by side, and memory of which a decomposition is made."""
    c = shape[1]
    w, b, mean, var = numbers(c, 1), numbers(c, 2), numbers(c, 3), numbers(c, 4).square() + 0.5
    x = numbers(shape, 5)
    for given in (x, x.movedim(1, -1).contiguous().movedim(-1, 1), ptcore.stack([x, x], -1)[..., 0]):
        for dtype, tolerance in ((ptcore.float64, 1e-10), (ptcore.float32, 1e-5), (ptcore.float16, 2e-3)):
            own = ptcore.float64 if dtype is ptcore.float64 else ptcore.float32
            want = F.batch_norm(given.to(dtype), mean.to(own), var.to(own), w.to(dtype), b.to(dtype))
            on = [t.cuda() for t in (mean.to(own), var.to(own), w.to(dtype), b.to(dtype))]
            got = F.batch_norm(given.to(dtype).cuda(), *on)
            assert got.stride() == want.stride()
            np.testing.assert_allclose(got.cpu().double().numpy(), want.double().numpy(), rtol=tolerance,
                                       atol=tolerance)


@pytest.mark.parametrize("own", [ptcore.float64, ptcore.float32, ptcore.float16])
@pytest.mark.parametrize("call", [lambda x, *s: F.batch_norm(x, *s, training=True, momentum=0.3),
                                  lambda x, *s: F.instance_norm(x, *s, momentum=0.3)], ids=["batch", "instance"])
def test_running_statistics_of_any_dtype(call, own):
    x = numbers((4, 5, 60), 6)
    spread = ptcore.zeros(5, 2, dtype=own, device="cuda")
    host = [numbers(5, 1).to(own), (numbers(5, 2).square() + 0.5).to(own)]
    for on in ([s.cuda() for s in host], [spread[:, k].copy_(s.cuda()) for k, s in enumerate(host)],
               [host[0].cuda(), None], [None, host[1].cuda()]):
        kept = [None if s is None else t.clone() for s, t in zip(on, host)]
        call(x.cuda(), *on)
        call(x, *kept)
        for got, want in zip(on, kept):
            if got is not None:
                np.testing.assert_allclose(got.cpu().double().numpy(), want.double().numpy(),
                                           rtol={8: 1e-10, 4: 1e-5, 2: 2e-3}[own.itemsize])


def test_variance_far_from_zero():
    """Numbers around 4096 that differ by sixteenths, which float32 holds exactly: the variance is exact as well."""
    x = numbers((40, 3, 8, 8), 1).mul(16).round().div(16).add(4096).to(ptcore.float32)
    want = x.to(ptcore.float64).numpy()
    want = (want - want.mean((0, 2, 3), keepdims=True)) / np.sqrt(want.var((0, 2, 3), keepdims=True) + 1e-5)
    got = F.batch_norm(x.cuda(), None, None, None, None, True).cpu().numpy()
    # What remains is the mean's rounding to float32: half of 2**-12.
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=2**-13 * 1.1)


def test_variance_of_float64_far_from_zero():
    """One pass over numbers whose squares are beyond 2**53 times the variance."""
    x = numbers((40, 3, 8, 8), 1)
    far, near = (F.batch_norm(v.cuda(), None, None, None, None, True).cpu().numpy() for v in (x + 2.0**30, x))
    np.testing.assert_allclose(far, near, atol=1e-5)


def test_norms_of_special_numbers():
    x = numbers((2, 4, 6, 6), 1)
    x[0, 0, 0, 0], x[0, 1, 2, 3], x[1, 2, 0, 0] = float("inf"), float("nan"), -float("inf")
    for op in (lambda x: F.batch_norm(x, None, None, None, None, True), lambda x: F.group_norm(x, 2)):
        np.testing.assert_array_equal(np.isnan(op(x.cuda()).cpu().numpy()), np.isnan(op(x).numpy()))


def test_norms_of_nothing():
    w = numbers((4,), 1, "float32")
    compare(lambda x, w: F.group_norm(x, 2, w), ptcore.zeros(0, 4, 3), w)
    compare(lambda x, w: F.group_norm(x, 2, w), ptcore.zeros(3, 4, 0), w)


CONSTANT_PADS = [(1, 2), (0, 0, 3, 0), (-1, 2, 3, -2), (5, 0, 0, 0, 1, 1), (-3, -2), (-6, 20, 1, 1),
                 (-6, 3, 0, 0, 2, 1), (0, 0)]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
                                   "float64", "complex64", "complex128"])
def test_padding_writes_once(dtype, launches):
    """Each output is written once: one launch."""
    kind = getattr(ptcore, dtype)
    value = {"b": True, "c": 2 - 3j, "f": -1.5}.get(kind.kind, 7)
    for shape in ((3, 5, 7), (2, 300, 9), (1, 4, 8)):
        x = ptcore.from_numpy(np.random.default_rng(1).integers(0, 2 if dtype == "bool" else 100, shape)).to(kind)
        for there in (x.cuda(), x.permute(2, 0, 1).contiguous().cuda().permute(1, 2, 0), x.flip(2).cuda().flip(2)):
            for pad in CONSTANT_PADS:
                want = F.pad(x, pad, value=value)
                assert launches(partial(F.pad, there, pad, value=value)) <= 1
                out = F.pad(there, pad, value=value)
                assert out.dtype == kind
                assert out.cpu().equal(want), (shape, pad)
    x = ptcore.ones(0, 3).to(kind)
    assert F.pad(x.cuda(), (1, 1, 2, 0), value=value).cpu().equal(F.pad(x, (1, 1, 2, 0), value=value))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_by_edges(mode):
    compare(F.pad, numbers((2, 3, 17, 23), 1), pad=(22, 5, 16, 1) if mode == "reflect" else (23, 5, 17, 1), mode=mode)
    compare(F.pad, numbers((2, 3, 300), 1), pad=(7, 0), mode=mode)
    compare(F.pad, numbers((2, 2, 4, 5, 6), 1), pad=(2, 1, 0, 3, 1, 2), mode=mode)
    compare(lambda x: F.pad(x.permute(0, 3, 1, 2)[:, :, ::2], (1, 2, 3, 0), mode=mode), numbers((2, 9, 10, 6), 1))


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_widest_edges(size):
    x = numbers((2, 3, size, size), 1)
    compare(F.pad, x, pad=(13, 9, 4, 0), mode="replicate")
    compare(F.pad, x, pad=(size, size, 0, size), mode="circular")
    compare(F.pad, x, pad=(size - 1, size - 1, size - 1, 0), mode="reflect")


def test_padding_by_a_number():
    x = numbers((3, 17, 90), 1)
    for pad in ((3, 5), (-2, 4, 1, -3), (0, 0, 0, 0, 2, 1), (-50, -39), (200, -89), (0, 0)):
        compare(F.pad, x, pad=pad, value=2.5)
    compare(lambda x: F.pad(x.permute(2, 0, 1)[::2], (-2, 4, 1, 0, 0, -1), value=2.5), x)
    for dtype, value in (("bool", True), ("int64", 2**62 + 1), ("uint8", 255), ("float16", 0.1), ("complex64", 1 - 2j)):
        whole = (x * 10).to(ptcore.int64).to(getattr(ptcore, dtype))
        want, got = F.pad(whole, (2, 1, 1, 0), value=value), F.pad(whole.cuda(), (2, 1, 1, 0), value=value)
        np.testing.assert_array_equal(got.cpu().numpy(), want.numpy())


FOLDS = [((2, 3, 19, 23), {"kernel_size": (3, 4), "padding": (1, 2), "stride": (2, 1), "dilation": (2, 3)}),
         ((1, 2, 30, 31), {"kernel_size": 2, "stride": (9, 11)}), ((0, 2, 8, 8), {"kernel_size": 3})]


@pytest.mark.parametrize(("shape", "settings"), FOLDS, ids=["overlapping", "apart", "nothing"])
def test_sliding_windows(shape, settings):
    x = numbers(shape, 1)
    compare(F.unfold, x, **settings)
    columns = numbers(tuple(F.unfold(x, **settings).shape), 2)
    compare(F.fold, columns, output_size=shape[2:], **settings)
    compare(F.fold, columns.to(ptcore.bfloat16), tolerance=1e-2, output_size=shape[2:], **settings)


@pytest.mark.parametrize(("mode", "dims"), [("nearest", 2), ("nearest-exact", 2), ("bilinear", 2), ("bicubic", 2),
                                            ("linear", 1), ("trilinear", 3)])
def test_interpolation(mode, dims):
    shape = {1: (2, 3, 70), 2: (2, 3, 17, 23), 3: (1, 2, 4, 5, 6)}[dims]
    x = numbers(shape, 1)
    for size in (tuple(2 * n + 1 for n in shape[2:]), tuple(n // 3 for n in shape[2:]), (1,) * dims, shape[2:]):
        for corners in (True, False) if "linear" in mode or mode == "bicubic" else (None,):
            compare(F.interpolate, x, size=size, mode=mode, align_corners=corners)
    compare(F.interpolate, x, scale_factor=2.7, mode=mode)
    compare(F.interpolate, x.to(ptcore.float16), tolerance=4e-3, scale_factor=1.6, mode=mode)


def test_nearest_positions_are_the_cpus():
    """Positions are rounded in float32: which of two numbers is the nearest depends on each step."""
    for small, large in ((7, 2000), (2999, 1000), (1000, 2999), (3, 1003)):
        x = ptcore.arange(small, dtype=ptcore.float32).reshape(1, 1, small)
        for mode in ("nearest", "nearest-exact"):
            want, got = F.interpolate(x, size=large, mode=mode), F.interpolate(x.cuda(), size=large, mode=mode)
            np.testing.assert_array_equal(got.cpu().numpy(), want.numpy())
        want, got = F.interpolate(x, size=large, mode="linear"), F.interpolate(x.cuda(), size=large, mode="linear")
        np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), rtol=1e-6)


def test_bytes_are_resampled():
    from ptcore._ops.functions import resample, resample_transposed
    x = numbers((1, 3, 12, 15), 1).mul(90).add(128).clamp(0, 255).to(ptcore.uint8)
    for op, values in ((resample, x), (resample_transposed, x // 16)):
        for mode in ("nearest", "linear"):
            want, got = (op(v, 2, 31, mode, False, 0.0) for v in (values, values.cuda()))
            assert got.dtype == ptcore.uint8
            np.testing.assert_array_equal(got.cpu().numpy(), want.numpy())


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_bytes_are_resized_as_on_the_cpu(mode, antialias):
    """Sums of wide windows are beyond the whole numbers of float32."""
    x = numbers((1, 2, 150, 130), 1).mul(90).add(128).clamp(0, 255).to(ptcore.uint8)
    for size in ((3, 4), (70, 200)):
        want, got = (F.interpolate(v, size, mode=mode, antialias=antialias) for v in (x, x.cuda()))
        np.testing.assert_array_equal(got.cpu().numpy(), want.numpy())


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample(mode, padding):
    settings = {"mode": mode, "padding_mode": padding}
    for corners in (True, False):
        grid = numbers((2, 9, 35, 2), 2).mul(0.9)
        compare(F.grid_sample, numbers((2, 5, 7, 8), 1), grid, tolerance=1e-11, align_corners=corners, **settings)
        if mode != "bicubic":
            x, grid = numbers((1, 3, 4, 5, 6), 1), numbers((1, 3, 4, 30, 3), 2).mul(0.9)
            compare(F.grid_sample, x, grid, tolerance=1e-11, align_corners=corners, **settings)


def test_grid_sample_of_other_inputs():
    compare(F.grid_sample, numbers((1, 70, 5, 6), 1), numbers((1, 2, 3, 2), 2), tolerance=1e-11, align_corners=False)
    compare(lambda x, grid: F.grid_sample(x.permute(0, 3, 1, 2), grid.permute(0, 2, 3, 1), align_corners=False),
            numbers((2, 7, 8, 3), 1), numbers((2, 2, 9, 10), 2), tolerance=1e-11)
    compare(F.grid_sample, numbers((2, 3, 5, 6), 1, "float16"), numbers((2, 4, 4, 2), 2, "float16"), tolerance=1e-2,
            align_corners=False)
    compare(F.grid_sample, ptcore.zeros(0, 3, 5, 6), ptcore.zeros(0, 4, 4, 2), align_corners=False)


def test_integers_at_the_ends_of_windows():
    """The maximum of a window of padding alone, and a mean that wraps."""
    for dtype in ("uint8", "int8", "int32", "int64", "float16", "float32"):
        x = ptcore.tensor([[[[1, 2, 3]]]]).to(getattr(ptcore, dtype))
        want, got = (F.max_pool2d(t, (1, 2), 2, (0, 1), (1, 5), True).item() for t in (x, x.cuda()))
        assert got == want
    x = ptcore.tensor([[[[-2**63, 5, -3]]]])
    assert F.avg_pool2d(x.cuda(), 1, divisor_override=-1).tolist() == [[[[-2**63, -5, 3]]]]


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_at_infinite_positions(mode, padding):
    nan, inf = float("nan"), float("inf")
    for dims in (2, 3) if mode != "bicubic" else (2,):
        image = numbers((1, 2, 4, 5, 6)[:dims + 2], 1)
        places = [[value if k == d else 0.3 for k in range(dims)] for d in range(dims)
                  for value in (nan, inf, -inf, 1e12, -1e12)]
        grid = ptcore.tensor([*places, [nan] * dims, [2.0] * dims], dtype=ptcore.float64)
        grid = grid.reshape(1, *[1] * (dims - 1), -1, dims)
        results = []
        for device in ("cpu", "cuda"):
            x, g = image.to(device).requires_grad_(), grid.to(device).requires_grad_()
            out = F.grid_sample(x, g, mode, padding, True)
            results.append([t.detach().cpu().numpy() for t in (out, *ptcore.autograd.grad(out.sum(), (x, g)))])
        for want, got in zip(*results, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)
