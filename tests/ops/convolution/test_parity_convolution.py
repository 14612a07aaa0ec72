"""Convolution against torch: values, gradients, dtypes, shapes, error classes."""

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity
F, TF = pt.nn.functional, torch.nn.functional

# input, weight, settings
CONV = {
    1: [((2, 3, 9), (4, 3, 3), {}), ((3, 9), (4, 3, 3), {"stride": 2, "padding": 1}),
        ((2, 4, 12), (6, 2, 3), {"groups": 2, "dilation": 2, "padding": "same"}),
        ((2, 3, 9), (4, 3, 4), {"padding": "same"}), ((1, 2, 7), (2, 2, 3), {"padding": "valid", "stride": (2,)})],
    2: [((2, 3, 9, 8), (4, 3, 3, 3), {}), ((3, 9, 8), (4, 3, 3, 2), {"stride": (2, 1), "padding": (1, 0)}),
        ((2, 4, 12, 11), (4, 1, 3, 3), {"groups": 4, "padding": 1}),
        ((2, 4, 12, 11), (8, 1, 3, 3), {"groups": 4, "stride": 2}),
        ((2, 4, 12, 11), (6, 2, 2, 3), {"groups": 2, "dilation": (2, 1), "padding": "same"}),
        ((2, 3, 5, 5), (4, 3, 1, 1), {"stride": 3, "padding": 2}), ((0, 3, 5, 5), (4, 3, 2, 2), {}),
        ((2, 3, 9, 8), (4, 3, 2, 4), {"padding": "same"}), ((3, 2, 4, 5), (6, 2, 4, 5), {"stride": 2}),
        ((2, 4, 5), (6, 2, 4, 5), {}), ((3, 2, 7, 7), (6, 2, 4, 4), {"dilation": 2}),
        ((2, 6, 4, 4), (50, 6, 3, 3), {"padding": 1})],
    3: [((2, 3, 5, 6, 7), (4, 3, 2, 3, 2), {"padding": 1}),
        ((2, 5, 6, 7), (4, 1, 3, 3, 3), {"groups": 2, "stride": (1, 2, 1)})],
}
TRANSPOSED = {
    1: [((2, 3, 9), (3, 4, 3), {}), ((3, 9), (3, 4, 3), {"stride": 3, "padding": 1, "output_padding": 2})],
    2: [((2, 4, 5, 6), (4, 3, 3, 2), {"stride": 2, "output_padding": (1, 0), "groups": 2}),
        ((2, 4, 5, 6), (4, 3, 3, 3), {"dilation": 2, "output_padding": 1, "padding": 2}),
        ((4, 5, 6), (4, 1, 4, 4), {"groups": 4, "stride": 4})],
    3: [((2, 3, 4, 3, 2), (3, 4, 2, 3, 2), {"stride": 2, "padding": 1})],
}
EVERY = [(f"conv{n}d", *case) for n, cases in CONV.items() for case in cases]
EVERY += [(f"conv_transpose{n}d", *case) for n, cases in TRANSPOSED.items() for case in cases]


def filters(name, weight, settings):
    return weight[1] * settings.get("groups", 1) if "transpose" in name else weight[0]


def draw(rng, shape, dtype):
    values = rng.normal(size=shape)
    if dtype.startswith("complex"):
        values = values + 1j * rng.normal(size=shape)
    return values.astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(("name", "shape", "weight", "settings"), EVERY, ids=str)
def test_values_and_gradients(name, shape, weight, settings, dtype):
    rng = np.random.default_rng(0)
    data = [draw(rng, s, dtype) for s in (shape, weight, (filters(name, weight, settings),))]
    results = []
    for library, f in ((pt, F), (torch, TF)):
        leaves = [library.tensor(d, requires_grad=True) for d in data]
        out = getattr(f, name)(*leaves, **settings)
        cotangent = library.tensor(draw(np.random.default_rng(1), tuple(out.shape), dtype))
        loss = (out * cotangent).sum().abs() if dtype[0] == "c" else (out * cotangent * out).sum()
        first = library.autograd.grad(loss, leaves, create_graph=True)
        norm = sum([(g * g.conj()).sum().real if dtype[0] == "c" else (g * g).sum() for g in first])
        second = library.autograd.grad(norm, leaves, allow_unused=True)
        results.append([out, *first, *second])
    for a, b in zip(*results):
        if a is None or b is None:
            assert (a is None) == (b is None)
            continue
        assert tuple(a.shape) == tuple(b.shape)
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32"])
def test_dtypes(dtype):
    rng = np.random.default_rng(0)
    x, w, b = (rng.integers(-3, 4, s).astype(np.float32) for s in [(2, 3, 9, 8), (4, 3, 3, 3), (4,)])
    if dtype == "uint8":
        x, w, b = abs(x), abs(w), abs(b)
    ours, theirs = (f.conv2d(*[lib.tensor(v).to(getattr(lib, dtype)) for v in (x, w, b)], padding=1)
                    for lib, f in ((pt, F), (torch, TF)))
    assert str(ours.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1]
    np.testing.assert_array_equal(ours.to(pt.float64).numpy(), theirs.double().numpy())


def test_defaults_and_spellings():
    x, w = pt.ones(1, 4, 5, 5), pt.ones(2, 2, 3, 3)
    assert F.conv2d(x, w, None, 1, 0, 1, 2).shape == (1, 2, 3, 3)
    assert F.conv2d(input=x, weight=w, groups=2).shape == (1, 2, 3, 3)
    assert pt.conv2d is F.conv2d
    assert F.conv2d(x.expand(3, 4, 5, 5), w, groups=2).shape == (3, 2, 3, 3)


BAD = [
    ("conv2d", (1, 1, 4, 4), (1, 2, 3, 3), {}), ("conv2d", (1, 4), (1, 2, 3, 3), {}),
    ("conv2d", (1, 1, 2, 2), (1, 1, 3, 3), {}),
    ("conv2d", (1, 1, 2, 2), (1, 1, 1, 1), {"stride": 0}), ("conv2d", (1, 1, 2, 2), (1, 1, 1, 1), {"padding": -1}),
    ("conv2d", (1, 1, 2, 2), (1, 1, 1, 1), {"padding": "x"}),
    ("conv2d", (1, 1, 2, 2), (1, 1, 1, 1), {"padding": "same", "stride": 2}),
    ("conv2d", (1, 1, 2, 2), (1, 1, 1, 1), {"groups": 0}),
    ("conv2d", (1, 1, 2, 2), (1, 1, 1, 1), {"stride": (1, 1, 1)}),
    ("conv2d", (1, 4, 2, 2), (3, 2, 1, 1), {"groups": 2}), ("conv2d", (2, 4, 2, 2), (0, 4, 1, 1), {}),
    ("conv2d", (2, 4, 0, 2), (3, 4, 1, 1), {}), ("conv2d", (1, 1, 4, 4), (1, 1, 3), {}),
    ("conv1d", (1, 1, 4), (1, 1, 3), {"dilation": 0}),
    ("conv_transpose2d", (1, 1, 2, 2), (1, 1, 2, 2), {"stride": 2, "output_padding": 2}),
    ("conv_transpose2d", (1, 3, 2, 2), (2, 1, 2, 2), {}),
    ("conv_transpose2d", (1, 1, 2, 2), (1, 1, 2, 2), {"padding": 4}),
]


@pytest.mark.parametrize(("name", "shape", "weight", "settings"), BAD, ids=str)
def test_errors(name, shape, weight, settings):
    for library, f in ((pt, F), (torch, TF)):
        with pytest.raises((RuntimeError, ValueError)) as info:
            getattr(f, name)(library.ones(shape), library.ones(weight), **settings)
        if library is pt:
            assert str(info.value).startswith(name + ": ")
            assert isinstance(info.value, RuntimeError)


def test_wrong_dtype_and_bias():
    x, w = pt.ones(1, 1, 2, 2), pt.ones(1, 1, 1, 1)
    with pytest.raises(RuntimeError, match="conv2d: weight must have input's dtype float32, got float64"):
        F.conv2d(x, w.double())
    with pytest.raises(RuntimeError, match=r"conv2d: bias must have shape \[1\], got \[3\]"):
        F.conv2d(x, w, pt.ones(3))
    with pytest.raises(TypeError, match="conv2d: weight must be a Tensor"):
        F.conv2d(x, 3)
