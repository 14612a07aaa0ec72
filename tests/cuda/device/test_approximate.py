"""Functions of 16-bit elements, which a device approximates, at every number that such an element can be."""
import numpy as np
import pytest
from scipy import special

import ptcore

F = ptcore.nn.functional
DTYPES = {"float16": (2**-10, 2**-24), "bfloat16": (2**-7, 2**-133)}       # spacing at 1, the least denormal number


def every(dtype):
    bits = ptcore.from_numpy(np.arange(1 << 16, dtype=np.uint16).view(np.int16))
    return bits.view(getattr(ptcore, dtype))


def phi(x):
    return special.ndtr(x)


CASES = {
    "exp": (lambda x: x.exp(), np.exp),
    "exp2": (lambda x: x.exp2(), np.exp2),
    "tanh": (lambda x: x.tanh(), np.tanh),
    "sigmoid": (lambda x: x.sigmoid(), special.expit),
    "silu": (F.silu, lambda x: x * special.expit(x)),
    "gelu": (F.gelu, lambda x: x * phi(x)),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"),
                  lambda x: x * special.expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}


def compare(got, want, dtype, least):
    """Within one spacing of the result's dtype; gelu's far tail is 0 in float32 anywhere."""
    spacing, denormal = DTYPES[dtype]
    with np.errstate(over="ignore"):
        largest = float(ptcore.finfo(getattr(ptcore, dtype)).max)
        want = np.where(np.abs(want) > largest * (1 + spacing / 4), np.copysign(np.inf, want), want)
    got = got.cpu().double().numpy()
    both = np.isfinite(got) & np.isfinite(want)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    off = np.abs(got[both] - want[both]) / np.maximum(np.abs(want[both]) * spacing, max(denormal, least))
    assert off.max(initial=0) <= 1, want[both][off.argmax()]
    rest = ~both & ~np.isnan(want)
    beyond = np.abs(np.where(np.isfinite(got), got, want)[rest & (got != want)])
    assert (beyond >= largest * (1 - spacing)).all()    # on one side of the largest number


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_number(name, dtype):
    ours, exact = CASES[name]
    x = every(dtype)
    with np.errstate(all="ignore"):
        want = exact(x.double().numpy())
    compare(ours(x.cuda()), want, dtype, 1e-9 if "gelu" in name else 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients(dtype):
    """Of sums, in the dtype of the elements."""
    x = every(dtype)
    x = x[x.double().abs() < 20].cuda().requires_grad_()
    wide = x.detach().cpu().double().numpy()
    s, t, u = special.expit(wide), np.tanh(wide), np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)
    slopes = {"tanh": 1 - t * t, "sigmoid": s * (1 - s), "silu": s * (1 + wide * (1 - s)),
              "gelu": phi(wide) + wide * np.exp(-wide**2 / 2) / np.sqrt(2 * np.pi),
              "gelu_tanh": special.expit(2 * u) * (1 + wide * special.expit(-2 * u) * 2 * np.sqrt(2 / np.pi)
                                                   * (1 + 3 * 0.044715 * wide**2))}
    for name, want in slopes.items():
        got, = ptcore.autograd.grad(CASES[name][0](x).float().sum(), x)
        spacing = DTYPES[dtype][0]
        np.testing.assert_allclose(got.cpu().double().numpy(), want, rtol=2 * spacing, atol=2 * spacing, err_msg=name)


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers(dtype):
    x = every(dtype)[::97]
    powers = (0.0, 0.5, -0.5, 1.0, 2.0, 3.0, -1.0, 7.5, 1 / 3, 100.0, -100.0, float("inf"), -float("inf"), float("nan"))
    for y in powers:
        with np.errstate(all="ignore"):
            exponent = ptcore.full(x.shape, y, dtype=x.dtype)
            want = np.power(x.double().numpy(), exponent.double().numpy())
        compare(x.cuda() ** exponent.cuda(), want, dtype, 0)
