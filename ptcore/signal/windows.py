"""Windows of M points under the names of ``torch.signal.windows``.

``sym=True`` is a window that equals its reverse, for the design of filters; ``sym=False`` one of a period of M, for
spectra: M points of a symmetric window of ``M + 1``. The highest value is 1 where a point lies there. ``dtype`` is
float32 or float64, the default dtype unless given.
"""
import math
from collections.abc import Iterable

from ptcore._dtype import as_dtype, get_default_dtype
from ptcore._ops import checked
from ptcore._ops.creation.creation import empty
from ptcore._ops.window import functions as _w

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming",
           "hann", "kaiser", "nuttall"]


def _checked(op, M, dtype, layout, device):
    """(M, dtype) of a window that can be made."""
    M = checked.integer(op, "M", M)
    if M < 0:
        raise ValueError(f"{op}: M must not be negative, got {M}")
    dtype = get_default_dtype() if dtype is None else as_dtype(dtype, op)
    if dtype.name not in ("float32", "float64"):
        raise ValueError(f"{op}: dtype must be float32 or float64, got {dtype.name}")
    try:
        empty(0, dtype=dtype, layout=layout, device=device)
    except NotImplementedError as e:
        raise ValueError(f"{op}: layout must be strided, got {layout}") from e
    return M, dtype


def _by_angle(op, M, sym, dtype, layout, device, requires_grad, formula):
    M, dtype = _checked(op, M, dtype, layout, device)
    return _w.by_angle(M, not sym, dtype, device, requires_grad, formula)


def bartlett(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """A triangle: ``1 - |2 n / (N - 1) - 1|`` with N = M, ``M + 1`` unless sym.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _by_angle("bartlett", M, sym, dtype, layout, device, requires_grad, _w.triangle)


def blackman(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """``0.42 - 0.5 cos(a) + 0.08 cos(2 a)`` with ``a = 2 pi n / (N - 1)`` and N = M, ``M + 1`` unless sym.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.signal.windows.blackman(4, sym=False)[1:]
    tensor([0.3400, 1.0000, 0.3400])
    """
    return _by_angle("blackman", M, sym, dtype, layout, device, requires_grad, lambda a: _w.cosines(a, _w.BLACKMAN))


def cosine(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """Half a period of a sine: ``sin(pi (n + 0.5) / N)`` with N = M, ``M + 1`` unless sym; no point is 0.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """
    M, dtype = _checked("cosine", M, dtype, layout, device)
    n = M + 1 if not sym and M > 1 else max(M, 1)
    return _w.finished(((_w.positions(M, device) + 0.5) * (math.pi / n)).sin(), dtype, requires_grad)


def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """``exp(-|n - center| / tau)``; the centre is the middle unless given, which is for ``sym=False``.

    Raises
    ------
    ValueError
        If tau is not positive, or a centre is given for a symmetric window.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    op = "exponential"
    M, dtype = _checked(op, M, dtype, layout, device)
    tau = checked.real(op, "tau", tau)
    if not tau > 0:
        raise ValueError(f"{op}: tau must be positive, got {tau}")
    if sym and center is not None:
        raise ValueError(f"{op}: center must be None for a symmetric window, got {center}")
    center = _middle(M, sym) if center is None else checked.real(op, "center", center)
    return _w.finished(((_w.positions(M, device) - center).abs() / -tau).exp(), dtype, requires_grad)


def _middle(M, sym):
    return (M if not sym and M > 1 else M - 1) / 2


def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """``exp(-((n - m) / std)^2 / 2)`` around the middle m.

    Raises
    ------
    ValueError
        If std is not positive.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    M, dtype = _checked("gaussian", M, dtype, layout, device)
    std = checked.real("gaussian", "std", std)
    if not std > 0:
        raise ValueError(f"gaussian: std must be positive, got {std}")
    return _w.finished((((_w.positions(M, device) - _middle(M, sym)) / std) ** 2 * -0.5).exp(), dtype, requires_grad)


def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """``I0(beta sqrt(1 - x^2)) / I0(beta)`` with x from -1 to 1; I0 is a Bessel function.

    Raises
    ------
    ValueError
        If beta is negative.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.signal.windows.kaiser(3, beta=0.)
    tensor([1., 1., 1.])
    """
    beta = checked.real("kaiser", "beta", beta)
    if not beta >= 0:
        raise ValueError(f"kaiser: beta must not be negative, got {beta}")
    return _by_angle("kaiser", M, sym, dtype, layout, device, requires_grad, lambda a: _w.kaiser(a, beta))


def general_cosine(M, *, a, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """``a[0] - a[1] cos(z) + a[2] cos(2 z) - ...`` with ``z = 2 pi n / (N - 1)`` and N = M, ``M + 1`` unless sym.

    Raises
    ------
    TypeError, ValueError
        If the coefficients a are no sequence, or there are none.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.signal.windows.general_cosine(3, a=[0.6, 0.4])
    tensor([0.2000, 1.0000, 0.2000])
    """
    return _cosines("general_cosine", M, a, sym, dtype, layout, device, requires_grad)


def _cosines(op, M, a, sym, dtype, layout, device, requires_grad):
    M, dtype = _checked(op, M, dtype, layout, device)
    if M > 1:
        if not isinstance(a, Iterable):
            raise TypeError(f"{op}: a must be a sequence of numbers, got {type(a).__name__}")
        a = [checked.real(op, "a", c) for c in a]
        if not a:
            raise ValueError(f"{op}: a must not be empty")
    return _w.by_angle(M, not sym, dtype, device, requires_grad, lambda z: _w.cosines(z, a))


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """``alpha - (1 - alpha) cos(2 pi n / (N - 1))`` with N = M, ``M + 1`` unless sym.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.signal.windows.general_hamming(3, alpha=0.75)
    tensor([0.5000, 1.0000, 0.5000])
    """
    alpha = checked.real("general_hamming", "alpha", alpha)
    return _cosines("general_hamming", M, (alpha, 1 - alpha), sym, dtype, layout, device, requires_grad)


def hamming(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """``0.54 - 0.46 cos(2 pi n / (N - 1))`` with N = M, ``M + 1`` unless sym.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """
    return _cosines("hamming", M, (0.54, 0.46), sym, dtype, layout, device, requires_grad)


def hann(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """``(1 - cos(2 pi n / (N - 1))) / 2`` with N = M, ``M + 1`` unless sym.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.signal.windows.hann(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _cosines("hann", M, _w.HANN, sym, dtype, layout, device, requires_grad)


def nuttall(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """The four cosines of Nuttall with the lowest side lobes: coefficients 0.3635819, 0.4891775, 0.1365995, 0.0106411.

    A. Nuttall, IEEE Trans. Acoust. Speech Signal Process. 29, 84 (1981).

    Examples
    --------
    >>> import ptcore
    >>> ptcore.signal.windows.nuttall(3)
    tensor([3.6280e-04, 1.0000e+00, 3.6280e-04])
    """
    coefficients = (0.3635819, 0.4891775, 0.1365995, 0.0106411)
    return _cosines("nuttall", M, coefficients, sym, dtype, layout, device, requires_grad)
