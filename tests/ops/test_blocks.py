"""Loops that run a formula in blocks by its branch-free form (sin, cos, tan), and clamp in one pass."""
import mpmath as mp
import numpy as np
import pytest
from interpreters import Tracer

import ptcore as pt
from ptcore.profiler import profile

pytestmark = pytest.mark.core


def ulps(got, values, f):
    worst = 0
    for g, v in zip(got, values, strict=True):
        with mp.workprec(400):
            want = f(mp.mpf(float(v)))
            worst = max(worst, abs(mp.mpf(float(g)) - want) / mp.mpf(float(abs(np.spacing(got.dtype.type(want))))))
    return float(worst)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize("size", [1, 255, 256, 257, 700])
def test_large_arguments_among_small_ones(name, dtype, size):
    """Each block, whatever stands in it: arguments beyond the fast reduction's limit, infinities, NaN; in place too."""
    rng = np.random.default_rng(size)
    values = rng.uniform(-50, 50, size).astype(dtype)
    values[::97] = 1e7
    values[1::83] = np.inf
    values[2::61] = np.nan
    values[3::59] = -0.0
    x = pt.from_numpy(values.copy())
    got = getattr(pt, name)(x).numpy()
    assert np.array_equal(getattr(x, name + "_")().numpy(), got, equal_nan=True)
    finite = np.isfinite(values)
    assert np.isnan(got[~finite]).all()
    assert np.array_equal(np.signbit(got[3::59]), np.full(len(got[3::59]), name != "cos"))
    assert ulps(got[finite][:60], values[finite][:60], getattr(mp, name)) <= 2.5
    want = getattr(np, name)(values[finite].astype("float64")).astype(dtype)
    np.testing.assert_allclose(got[finite], want, rtol=1e-6)


def test_gradients_of_large_arguments():
    x = pt.tensor(np.r_[np.linspace(-3, 3, 300), 1e8], requires_grad=True)
    pt.sin(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.cos(x.detach().numpy()), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("bounds", [(0, 3), (2, 2), (3, 1), (-1, 5)])
def test_clamp_between_numbers(dtype, bounds):
    values = np.array([0, 1, 2, 3, 4, 100, 7], dtype)
    if np.dtype(dtype).kind == "f":
        values = np.r_[values, np.array([np.nan, np.inf, -np.inf, -0.0, 0.5], dtype)]
    with np.errstate(invalid="ignore"):
        want = np.clip(values, *np.array(bounds).astype(dtype))         # -1 is 255, as in PyTorch
    x = pt.from_numpy(values.copy())
    got = x.clamp(*bounds)
    assert got.dtype is x.dtype
    np.testing.assert_array_equal(got.numpy(), want)
    version = x._version
    assert x.clamp_(*bounds) is x
    assert x._version == version + 1
    np.testing.assert_array_equal(x.numpy(), want)


@pytest.mark.parametrize("dtype", [pt.uint8, pt.int8, pt.uint16, pt.int16, pt.uint32, pt.int32, pt.uint64, pt.int64])
def test_clamp_at_both_ends_of_the_range(dtype):
    """Bounds that the dtype holds take one pass, which an interpreter sees as one op."""
    low, high = pt.iinfo(dtype).min, pt.iinfo(dtype).max
    values = np.array([low, low + 1, low // 2 + high // 2, high - 1, high], dtype.name)
    for bounds in ((low, high), (low + 1, high - 1), (high - 1, high), (low, low + 1), (high, high)):
        for least, most in (bounds, (bounds[0], None), (None, bounds[1])):
            want = np.clip(values, *[None if b is None else np.array(b, dtype.name) for b in (least, most)])
            x = pt.from_numpy(values.copy())
            with Tracer() as tracer:
                got = x.clamp(least, most)
            assert len(tracer.tape) == 1 and got.dtype is dtype
            np.testing.assert_array_equal(got.numpy(), want)
            with profile() as prof:
                assert x.clamp_(least, most) is x
            assert len(prof.events()) == 2      # the function, and the op in place that it calls
            np.testing.assert_array_equal(x.numpy(), want)
    for outside in (high + 1, *([low - 1] if low else [])):     # -1 wraps around beside unsigned tensors
        with pytest.raises((RuntimeError, OverflowError), match="clamp"):
            pt.zeros(2, dtype=dtype).clamp_(outside, outside)


def test_clamp_of_other_kinds_and_bounds():
    x = pt.tensor([1, 5])
    assert x.clamp(0.5, 2.5).tolist() == [1, 2.5]
    assert pt.tensor([2.0]).clamp(float("nan"), 1).isnan().all()
    assert pt.tensor([2**62 + 1, -2**62 - 1]).clamp(-2**62 + 3, 2**62 - 7).tolist() == [2**62 - 7, -2**62 + 3]
    with pytest.raises(RuntimeError, match="clamp: value 300 cannot be converted to uint8 without overflow"):
        pt.tensor([1], dtype=pt.uint8).clamp(2, 300)
    with pytest.raises(TypeError, match="clamp_: input must be a Tensor, got int"):
        pt.clamp_(1, 0, 1)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        pt.ones(2, requires_grad=True).clamp_(0, 1)


@pytest.mark.parametrize("inside", [True, False])
def test_gradients_of_clamp(inside):
    x = pt.tensor([-1.0, 0.0, 0.5, 1.0, 2.0], dtype=pt.float64, requires_grad=True)
    bounds = (0, 1) if inside else (1, 0)
    y = x * 2
    y.clamp_(*bounds)
    (y * y).sum().backward()
    want = [0, 0, 4, 0, 0] if inside else [0] * 5
    assert x.grad.tolist() == want
    z = x.detach().requires_grad_()
    z.clamp(*bounds).sum().backward()
    assert z.grad.tolist() == ([0, 1, 1, 1, 0] if inside else [0] * 5)
