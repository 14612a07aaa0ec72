"""Window functions of signal processing, those of the package and those of ``ptcore.signal.windows``.

All are formulas of the positions of a window's elements, in float64, then rounded to the window's dtype. Most windows
use an angle that goes from 0 to 2 pi as the position.
"""
import math

from ptcore._dtype import as_dtype, get_default_dtype
from ptcore._ops.call.offer import seen_by_modes
from ptcore._ops.checked import flag, integer, real
from ptcore._ops.creation.creation import arange, empty, ones
from ptcore._ops.functions import i0

_FLOAT64 = as_dtype("float64")


# -- formulas ---------------------------------------------------------------------------------------
def cosines(a, coefficients):
    """``c[0] - c[1] cos(a) + c[2] cos(2 a) - ...``"""
    total = a.new_full(a.shape, float(coefficients[0]))
    for k, c in enumerate(coefficients[1:], 1):
        total = total + (a * k).cos() * (float(c) if k % 2 == 0 else -float(c))
    return total


def triangle(a):
    """From 0 up to 1 and down."""
    return 1 - (a / math.pi - 1).abs()


def kaiser(a, beta):
    """``I0(beta sqrt(1 - x^2)) / I0(beta)`` with x from -1 to 1."""
    x = 1 - (a / math.pi - 1) ** 2
    return i0(x.clamp_min(0).sqrt() * beta) / i0(a.new_full((), beta))


HANN = (0.5, 0.5)
BLACKMAN = (0.42, 0.5, 0.08)


# -- windows ----------------------------------------------------------------------------------------
def positions(n, device):
    return arange(n, dtype=_FLOAT64, device=device)


def finished(window, dtype, requires_grad, pin_memory=False):
    window = window.to(dtype)
    if pin_memory:
        window = window.pin_memory()
    return window.requires_grad_() if requires_grad else window


def by_angle(n, periodic, dtype, device, requires_grad, formula, pin_memory=False):
    """``formula(angles)`` with angles from 0 to 2 pi in n steps; if periodic the last one is left out. A window of one
    element is 1."""
    if n <= 1:
        window = ones(n, dtype=dtype, device=device)
    else:
        window = formula(positions(n, device) * (2 * math.pi / (n if periodic else n - 1)))
    return finished(window, dtype, requires_grad, pin_memory)


def _window(op, window_length, periodic, dtype, device, layout, pin_memory, requires_grad, formula):
    if type(window_length) is bool:
        raise TypeError(f"{op}: window_length must be int, got bool")
    n, periodic = integer(op, "window_length", window_length), flag(op, "periodic", periodic)
    if n < 0:
        raise RuntimeError(f"{op}: requires non-negative window_length, got window_length={n}")
    dtype = get_default_dtype() if dtype is None else as_dtype(dtype)
    if not dtype.is_floating_point:
        raise RuntimeError(f"{op}: expects floating point dtypes, got: {dtype}")
    empty(0, dtype=dtype, device=device, layout=layout, pin_memory=pin_memory)     # raises for wrong arguments
    return by_angle(n, periodic, dtype, device, requires_grad, formula, pin_memory)


@seen_by_modes
def hann_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False,
                requires_grad=False):
    """``(1 - cos(2 pi i / (n - 1))) / 2``, with n one larger if periodic.

    >>> import ptcore
    >>> ptcore.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("hann_window", window_length, periodic, dtype, device, layout, pin_memory, requires_grad,
                   lambda a: cosines(a, HANN))


@seen_by_modes
def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, layout=None, device=None,
                   pin_memory=False, requires_grad=False):
    """``alpha - beta cos(2 pi i / (n - 1))``, with n one larger if periodic."""
    return _window("hamming_window", window_length, periodic, dtype, device, layout, pin_memory, requires_grad,
                   lambda a: cosines(a, (real("hamming_window", "alpha", alpha), real("hamming_window", "beta", beta))))


@seen_by_modes
def blackman_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False,
                    requires_grad=False):
    """``0.42 - 0.5 cos(a) + 0.08 cos(2 a)`` with ``a = 2 pi i / (n - 1)``, n one larger if periodic."""
    return _window("blackman_window", window_length, periodic, dtype, device, layout, pin_memory, requires_grad,
                   lambda a: cosines(a, BLACKMAN))


@seen_by_modes
def bartlett_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False,
                    requires_grad=False):
    """A triangle from 0 to 1 and back, n one larger if periodic."""
    return _window("bartlett_window", window_length, periodic, dtype, device, layout, pin_memory, requires_grad,
                   triangle)


@seen_by_modes
def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None, layout=None, device=None, pin_memory=False,
                  requires_grad=False):
    """``I0(beta sqrt(1 - x^2)) / I0(beta)`` with x from -1 to 1, n one larger if periodic; I0 is a Bessel function."""
    return _window("kaiser_window", window_length, periodic, dtype, device, layout, pin_memory, requires_grad,
                   lambda a: kaiser(a, real("kaiser_window", "beta", beta)))
