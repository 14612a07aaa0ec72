"""Window functions of signal processing."""
import math

from ptcore._dtype import as_dtype, get_default_dtype
from ptcore._ops._arguments import integer
from ptcore._ops.creation.creation import arange, empty, ones
from ptcore._ops.functions import i0


def _angles(op, window_length, periodic, dtype, device, layout, pin_memory):
    """0 to 2 pi in ``window_length`` steps, the last one left out if periodic."""
    n = integer(op, "window_length", window_length)
    if n < 0:
        raise RuntimeError(f"{op}: requires non-negative window_length, got window_length={n}")
    dtype = get_default_dtype() if dtype is None else dtype
    if not dtype.is_floating_point:
        raise RuntimeError(f"{op}: expects floating point dtypes, got: {dtype}")
    empty(0, dtype=dtype, device=device, layout=layout, pin_memory=pin_memory)     # refuses what it must
    if n <= 1:
        return ones(n, dtype=dtype, device=device), None
    steps = n if periodic else n - 1
    return None, arange(n, dtype=as_dtype("float64"), device=device) * (2 * math.pi / steps)


def _window(op, window_length, periodic, dtype, device, layout, pin_memory, requires_grad, formula):
    done, angles = _angles(op, window_length, periodic, dtype, device, layout, pin_memory)
    if done is None:
        done = formula(angles).to(get_default_dtype() if dtype is None else dtype)
    return done.requires_grad_() if requires_grad else done


def hann_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False,
                requires_grad=False):
    """``(1 - cos(2 pi i / (n - 1))) / 2``, with n one larger if periodic.

    >>> import ptcore
    >>> ptcore.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("hann_window", window_length, periodic, dtype, device, layout, pin_memory, requires_grad,
                   lambda a: 0.5 - 0.5 * a.cos())


def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, layout=None, device=None,
                   pin_memory=False, requires_grad=False):
    """``alpha - beta cos(2 pi i / (n - 1))``, with n one larger if periodic."""
    return _window("hamming_window", window_length, periodic, dtype, device, layout, pin_memory, requires_grad,
                   lambda a: alpha - beta * a.cos())


def blackman_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False,
                    requires_grad=False):
    """``0.42 - 0.5 cos(a) + 0.08 cos(2 a)`` with ``a = 2 pi i / (n - 1)``, n one larger if periodic."""
    return _window("blackman_window", window_length, periodic, dtype, device, layout, pin_memory, requires_grad,
                   lambda a: 0.42 - 0.5 * a.cos() + 0.08 * (2 * a).cos())


def bartlett_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False,
                    requires_grad=False):
    """A triangle from 0 to 1 and back, n one larger if periodic."""
    return _window("bartlett_window", window_length, periodic, dtype, device, layout, pin_memory, requires_grad,
                   lambda a: 1 - (a / math.pi - 1).abs())


def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None, layout=None, device=None, pin_memory=False,
                  requires_grad=False):
    """``I0(beta sqrt(1 - x^2)) / I0(beta)`` with x from -1 to 1, n one larger if periodic; I0 is a Bessel function."""
    def formula(a):
        x = 1 - (a / math.pi - 1) ** 2
        return i0(x.clamp_min(0).sqrt() * beta) / i0(a.new_full((), beta))

    return _window("kaiser_window", window_length, periodic, dtype, device, layout, pin_memory, requires_grad,
                   formula)
