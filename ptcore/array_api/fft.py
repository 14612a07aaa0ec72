"""The standard's ``fft`` extension, on the functions of ``ptcore.fft``."""
import ptcore.fft as _fft
from ptcore._ops.fft.functions import fftfreq as _fftfreq
from ptcore._ops.fft.functions import rfftfreq as _rfftfreq
from ptcore.array_api._dtypes import get_default_dtype

__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn",
           "rfft", "rfftfreq", "rfftn"]


def fft(x, /, *, n=None, axis=-1, norm="backward"):
    """The discrete Fourier transform along an axis."""
    return _fft.fft(x, n, axis, norm)


def ifft(x, /, *, n=None, axis=-1, norm="backward"):
    """The inverse of `fft`."""
    return _fft.ifft(x, n, axis, norm)


def fftn(x, /, *, s=None, axes=None, norm="backward"):
    """The discrete Fourier transform along axes, by default along all."""
    return _fft.fftn(x, *_sizes(s, axes), norm)


def ifftn(x, /, *, s=None, axes=None, norm="backward"):
    """The inverse of `fftn`."""
    return _fft.ifftn(x, *_sizes(s, axes), norm)


def rfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The discrete Fourier transform of real numbers; only the non-redundant half."""
    return _fft.rfft(x, n, axis, norm)


def irfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The inverse of `rfft`; ``n`` is the size of its result."""
    return _fft.irfft(x, n, axis, norm)


def rfftn(x, /, *, s=None, axes=None, norm="backward"):
    """`rfft` along the last axis, `fft` along the others."""
    return _fft.rfftn(x, *_sizes(s, axes), norm)


def irfftn(x, /, *, s=None, axes=None, norm="backward"):
    """The inverse of `rfftn`."""
    return _fft.irfftn(x, *_sizes(s, axes), norm)


def hfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The transform of a Hermitian signal, given by its half ``x``."""
    return _fft.hfft(x, n, axis, norm)


def ihfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The inverse of `hfft`."""
    return _fft.ihfft(x, n, axis, norm)


def fftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """The frequencies of the elements of `fft` for samples with spacing ``d``."""
    return _fftfreq(n, d, dtype=_real(dtype, "fftfreq"), device=device)._set_standard()


def rfftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """The frequencies of the elements of `rfft` for samples with spacing ``d``."""
    return _rfftfreq(n, d, dtype=_real(dtype, "rfftfreq"), device=device)._set_standard()


def fftshift(x, /, *, axes=None):
    """Moves the zero frequency to the middle along axes, by default along all."""
    return _fft.fftshift(x, axes)


def ifftshift(x, /, *, axes=None):
    """The inverse of `fftshift`."""
    return _fft.ifftshift(x, axes)


def _sizes(s, axes):
    return None if s is None else tuple(s), None if axes is None else tuple(axes)


def _real(dtype, name):
    if dtype is not None and getattr(dtype, "kind", "f") != "f":
        raise TypeError(f"{name}: dtype must be a real floating-point one, got {dtype}")
    return dtype or get_default_dtype()
