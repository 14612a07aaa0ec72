"""Strides of what layers return and send back, for inputs of every layout: as torch has them."""
import itertools

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def last(x):
    """With dim 1 innermost."""
    dims = range(2, x.ndim)
    return x.permute(0, *dims, 1).contiguous().permute(0, x.ndim - 1, *range(1, x.ndim - 1))


def turned(x):
    dims = tuple(reversed(range(x.ndim)))
    return x.permute(dims).contiguous().permute(dims)


LAYOUTS = {"plain": lambda m, x: x, "channels_last": lambda m, x: last(x), "turned": lambda m, x: turned(x),
           "expanded": lambda m, x: x[:, :1].expand(x.shape), "sliced": lambda m, x: m.cat([x, x], 0)[::2],
           "part of channels_last": lambda m, x: last(m.cat([x, x], -1))[..., ::2]}
PLAIN = ("ReLU ReLU6 GELU SiLU Mish ELU SELU CELU LeakyReLU Hardtanh Hardswish Hardsigmoid Softplus "
         "Softsign Tanh Sigmoid LogSigmoid Tanhshrink Softshrink Hardshrink Softmax2d PReLU RReLU Dropout Dropout2d "
         "AlphaDropout").split()
LAYERS = {
    **{name: (name, (), {}) for name in PLAIN},
    "Conv2d": ("Conv2d", (4, 6, 3), {}), "Conv2d, strides": ("Conv2d", (4, 6, 3), dict(stride=2, padding=1)),
    "Conv2d, groups": ("Conv2d", (4, 4, 3), dict(groups=4)), "Conv2d of 1": ("Conv2d", (4, 6, 1), {}),
    "Conv2d, one filter": ("Conv2d", (4, 1, 3), {}),
    **{f"Conv2d, {mode}": ("Conv2d", (4, 6, 3), dict(padding=1, padding_mode=mode))
       for mode in ("circular", "reflect", "replicate")},
    "Conv2d, same": ("Conv2d", (4, 6, 3), dict(padding="same")),
    "ConvTranspose2d": ("ConvTranspose2d", (4, 6, 3), dict(stride=2)),
    "BatchNorm2d": ("BatchNorm2d", (4,), {}), "BatchNorm2d, plain": ("BatchNorm2d", (4,), dict(affine=False)),
    "BatchNorm2d, eval": ("BatchNorm2d", (4,), {}),
    "GroupNorm": ("GroupNorm", (2, 4), {}), "InstanceNorm2d": ("InstanceNorm2d", (4,), {}),
    "InstanceNorm2d, running": ("InstanceNorm2d", (4,), dict(affine=True, track_running_stats=True)),
    "LayerNorm": ("LayerNorm", (8,), {}), "RMSNorm": ("RMSNorm", (8,), {}),
    "LocalResponseNorm": ("LocalResponseNorm", (2,), {}),
    "MaxPool2d": ("MaxPool2d", (2,), {}), "MaxPool2d, indices": ("MaxPool2d", (2,), dict(return_indices=True)),
    "AvgPool2d": ("AvgPool2d", (2,), {}), "LPPool2d": ("LPPool2d", (2, 2), {}),
    "AdaptiveMaxPool2d": ("AdaptiveMaxPool2d", (3,), {}), "AdaptiveAvgPool2d": ("AdaptiveAvgPool2d", (3,), {}),
    "AdaptiveAvgPool2d of 1": ("AdaptiveAvgPool2d", (1,), {}),
    **{f"Upsample, {mode}": ("Upsample", (), dict(scale_factor=2, mode=mode))
       for mode in ("nearest", "nearest-exact", "bilinear", "bicubic")},
    "Upsample, area": ("Upsample", (3,), dict(mode="area")),
    "ZeroPad2d": ("ZeroPad2d", (1,), {}), "ReflectionPad2d": ("ReflectionPad2d", (1,), {}),
    "ReplicationPad2d": ("ReplicationPad2d", (1,), {}), "CircularPad2d": ("CircularPad2d", (1,), {}),
    "PixelShuffle": ("PixelShuffle", (2,), {}), "PixelUnshuffle": ("PixelUnshuffle", (2,), {}),
    "ChannelShuffle": ("ChannelShuffle", (2,), {}), "Softmax": ("Softmax", (1,), {}),
    "LogSoftmax": ("LogSoftmax", (1,), {}), "GLU": ("GLU", (1,), {}), "Flatten": ("Flatten", (2,), {}),
    "Linear": ("Linear", (8, 3), {}), "Unfold": ("Unfold", (3,), {})}
DENSE = ("channels_last", "turned", "part of channels_last")
CHANNELS_LAST = ("channels_last", "part of channels_last")
# Layouts of which the strides differ, and why; an entry whose strides are torch's in all of its layouts fails.
DIFFERENT = {
    **dict.fromkeys(("PixelShuffle", "PixelUnshuffle", "ChannelShuffle"),
                    (CHANNELS_LAST, "results keep the format, gradients do not yet")),
    "Upsample, bicubic": (CHANNELS_LAST, "kept here, made row-major in torch"),
    **dict.fromkeys(("Conv2d, circular", "CircularPad2d", "InstanceNorm2d", "GLU"),
                    (CHANNELS_LAST, "kept here, made row-major in torch")),
    **dict.fromkeys(("RReLU", "LogSigmoid", "BatchNorm2d, eval", "RMSNorm"),
                    (DENSE, "any dense layout is kept here, made row-major in torch")),
    "Conv2d, one filter": (CHANNELS_LAST, "gradients of one channel are row-major here, in the input's format there")}


def relevant(x):
    return tuple(x.shape), tuple(s for n, s in zip(x.shape, x.stride()) if n > 1)


def strides(m, layer, layout, gradient):
    name, arguments, keywords = LAYERS[layer]
    m.manual_seed(0)
    module = getattr(m.nn, name)(*arguments, **keywords)
    if layer.endswith("eval"):
        module.eval()
    x = LAYOUTS[layout](m, m.arange(512.0).reshape(2, 4, 8, 8) % 7).detach().requires_grad_()
    out = module(x)
    out = list(out) if isinstance(out, tuple) else [out]
    result = [relevant(y) for y in out]
    if gradient:
        result.append(relevant(m.autograd.grad(out[0], x, m.ones_like(out[0]))[0]))
    return result


@pytest.mark.parametrize("layer", LAYERS)
def test_layer(layer):
    layouts, reason = DIFFERENT.get(layer, ((), None))
    differ = 0
    for layout, gradient in itertools.product(LAYOUTS, (False, True)):
        mine, theirs = [strides(m, layer, layout, gradient) for m in (pt, torch)]
        if layout in layouts:
            differ += mine != theirs
        else:
            assert mine == theirs, layout
    assert differ or reason is None, f"equal now: {reason}"


@pytest.mark.parametrize("layer", ["Conv3d", "BatchNorm3d", "MaxPool3d", "AvgPool3d", "ConstantPad3d"])
def test_of_three_dims(layer):
    arguments = {"Conv3d": (3, 2, 2), "BatchNorm3d": (3,), "ConstantPad3d": (1, 2.0)}.get(layer, (2,))
    found = []
    for m in (pt, torch):
        x = last(m.arange(384.0).reshape(2, 3, 4, 4, 4)).detach().requires_grad_()
        y = getattr(m.nn, layer)(*arguments)(x)
        found.append([relevant(y), relevant(m.autograd.grad(y, x, m.ones_like(y))[0])])
    if layer == "AvgPool3d":                    # row-major in torch
        assert found[0][0][1] == (24, 1, 12, 6, 3) and found[1][0][1] == (24, 8, 4, 2, 1)
    else:
        assert found[0] == found[1]


def test_model_in_channels_last():
    """Weights in the format bring the results of row-major inputs into it, and the values stay."""
    results = []
    for m in (pt, torch):
        model = m.nn.Sequential(m.nn.Conv2d(3, 4, 3), m.nn.BatchNorm2d(4), m.nn.ReLU(), m.nn.MaxPool2d(2),
                                m.nn.ConvTranspose2d(4, 2, 3))
        with m.no_grad():
            for p in model.parameters():
                p.copy_(m.arange(float(p.numel())).reshape(p.shape) % 5 - 2)
        x = m.arange(600.0).reshape(2, 3, 10, 10) % 11
        plain = model(x)
        model.to(memory_format=m.channels_last)
        y = model(x)
        assert y.is_contiguous(memory_format=m.channels_last) and m.allclose(y, plain, rtol=1e-4, atol=1e-4)
        y.square().mean().backward()
        results.append(([relevant(p.grad) for p in model.parameters()], y.detach().numpy(),
                        [p.grad.numpy() for p in model.parameters()]))
    assert results[0][0] == results[1][0]
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-4, atol=1e-4)
    for a, b in zip(results[0][2], results[1][2]):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("mode", ["circular", "reflect", "replicate"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_padded_convolutions(dims, mode):
    """Values, sizes and classes of errors of padding modes beside kernels, strides, dilations and paddings."""
    for kernel, stride, dilation, padding, n in itertools.product(
            (1, 2, 3) if dims == 3 else (1, 2, 3, 4), (1, 2), (1, 2),
            (0, 2, "same", "valid", tuple(range(1, dims + 1))), (4, 5)):
        results = []
        for m in (pt, torch):
            try:
                layer = getattr(m.nn, f"Conv{dims}d")(2, 2, kernel, stride=stride, dilation=dilation, padding=padding,
                                                      padding_mode=mode).double()
                with m.no_grad():
                    for p in layer.parameters():
                        p.copy_(m.arange(p.numel()).reshape(p.shape) % 7)
                results.append(layer(m.arange(2 * n ** dims).reshape(1, 2, *[n] * dims).double()).detach().numpy())
            except Exception as e:
                results.append(e)
        mine, theirs = results
        case = (kernel, stride, dilation, padding, n, results)
        if isinstance(theirs, Exception):
            assert isinstance(mine, type(theirs)), case
        else:
            assert not isinstance(mine, Exception), case
            np.testing.assert_allclose(mine, theirs, err_msg=str(case))


@pytest.mark.parametrize("name", ["dropout1d", "dropout2d", "dropout3d"])
@pytest.mark.parametrize("ndim", range(7))
def test_channel_dropout_of_other_dims(name, ndim):
    """torch takes other numbers of dims with a warning; what is left of a channel is all of it."""
    results = []
    for m in (pt, torch):
        m.manual_seed(0)
        try:
            if (name, ndim) in {("dropout2d", n) for n in (2, 3, 5, 6)} | {("dropout3d", n) for n in (2, 3, 6)}:
                with pytest.warns(UserWarning, match=f"{name}: "):
                    y = getattr(m.nn.functional, name)(m.ones([3] * ndim), 0.5)
            else:
                y = getattr(m.nn.functional, name)(m.ones([3] * ndim), 0.5)
            results.append(tuple(y.shape))
            assert set(y.flatten().tolist()) <= {0.0, 2.0}
            channels = y.reshape(3, 3, -1) if ndim > 2 else y
            if name != "dropout1d" and ndim == int(name[7]) + 2:
                assert (channels == channels[..., :1]).all()
        except Exception as e:
            results.append(e)
    mine, theirs = results
    assert isinstance(mine, type(theirs)) if isinstance(theirs, Exception) else mine == theirs, results


@pytest.mark.parametrize("shape", [(2, 8, 4, 6), (1, 8, 4, 6), (2, 8, 4, 2)])
@pytest.mark.parametrize("name", ["pixel_shuffle", "pixel_unshuffle", "channel_shuffle"])
def test_shuffles_keep_channels_last(name, shape):
    data = np.random.default_rng(0).normal(size=shape)
    results = []
    for lib in (pt, torch):
        x = lib.tensor(data).contiguous(memory_format=lib.channels_last)
        out = getattr(lib.nn.functional, name)(x, 2)
        results.append((tuple(out.shape), tuple(out.stride()), out.tolist()))
    assert results[0] == results[1]


def test_the_gradient_of_instance_norm_does_not_depend_on_the_format():
    """PyTorch's does, so that the reference is its gradient by one that arrives row-major."""
    x, g = torch.randn(1, 2, 10, 11, dtype=torch.float64), torch.randn(1, 2, 10, 11, dtype=torch.float64)

    def gradient(M, g):
        a = M.tensor(x.numpy(), requires_grad=True)
        return M.autograd.grad(M.nn.functional.instance_norm(a), a, g)[0]
    wanted = gradient(torch, g).numpy()
    own = pt.tensor(g.numpy())
    for arrives in (own, own.contiguous(memory_format=pt.channels_last)):
        np.testing.assert_allclose(gradient(pt, arrives).numpy(), wanted, rtol=1e-10, atol=1e-12)
    assert not np.allclose(gradient(torch, g.contiguous(memory_format=torch.channels_last)).numpy(), wanted)
