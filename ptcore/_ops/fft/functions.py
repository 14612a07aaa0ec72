"""The frequencies of the entries of a spectrum."""
from math import copysign, inf

from ptcore._dtype import as_dtype, get_default_dtype
from ptcore._errors import DTypeError, UnsupportedDTypeError
from ptcore._ops import checked
from ptcore._ops.call.offer import seen_by_modes
from ptcore._ops.creation.creation import arange, empty
from ptcore._ops.functions import cat

_FLOAT64 = as_dtype("float64")


def _frequencies(op, n, d, ranges, out, dtype, layout, device, requires_grad):
    """Whole numbers, those of each range of ``ranges(n)``, divided by ``n * d``."""
    n, d = checked.integer(op, "n", n), checked.real(op, "d", d)
    if n < 0:
        raise RuntimeError(f"{op}: n must not be negative, got {n}")
    dtype = (get_default_dtype() if out is None else out.dtype) if dtype is None else as_dtype(dtype)
    if dtype.is_complex:
        raise UnsupportedDTypeError(f"{op}: dtype must be a real floating-point one, got {dtype.name}")
    if not dtype.is_floating_point:
        raise DTypeError(f"{op}: dtype must be a floating-point one, got {dtype.name}")
    empty(0, dtype=dtype, device=device, layout=layout)         # raises for wrong arguments
    step = 1 / (n * d) if n * d else copysign(inf, d)
    parts = [arange(*r, dtype=_FLOAT64, device=device) for r in ranges(n)]
    result = ((parts[0] if len(parts) == 1 else cat(parts)) * step).to(dtype)
    if out is not None:
        return out.resize_(result.shape).copy_(result)
    return result.requires_grad_() if requires_grad else result


@seen_by_modes
def fftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequencies of the entries of :func:`ptcore.fft.fft` in cycles per unit of the spacing.

    They are 0, 1, ..., then the negative ones, over ``n * d``.

    Parameters
    ----------
    n : int
        The number of points.
    d : float
        The spacing of the samples.
    out, dtype, layout, device, requires_grad : optional
        As of :func:`ptcore.empty`; the dtype must be a real floating-point one.

    Returns
    -------
    Tensor
        ``(n,)``; of an even n the frequency in the middle is the negative one.

    Raises
    ------
    RuntimeError
        If n is negative or the dtype is another.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return _frequencies("fft_fftfreq", n, d, lambda n: ((0, (n + 1) // 2), (-(n // 2), 0)), out, dtype, layout, device,
                        requires_grad)


@seen_by_modes
def rfftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequencies of the entries of :func:`ptcore.fft.rfft`: ``0, 1, ..., n // 2`` over ``n * d``.

    Parameters
    ----------
    n : int
        The number of points of the signal.
    d : float
        The spacing of the samples.
    out, dtype, layout, device, requires_grad : optional
        As of :func:`ptcore.empty`; the dtype must be a real floating-point one.

    Returns
    -------
    Tensor
        ``(n // 2 + 1,)``; of an even n the last frequency is the positive one, other than in ``fftfreq``.

    Raises
    ------
    RuntimeError
        If n is negative or the dtype is another.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    return _frequencies("fft_rfftfreq", n, d, lambda n: ((0, n // 2 + 1),), out, dtype, layout, device, requires_grad)
