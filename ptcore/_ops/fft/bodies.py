"""Bodies: Fourier transforms by the three ops of the library, and transforms of short windows of a signal."""
from cython.cimports.ptcore._ops._common import wrap_dim

from ptcore._dtype import get_default_dtype
from ptcore._errors import ChoiceError, DTypeError, ShapeError, UnsupportedDTypeError, warn
from ptcore._ops import checked, results
from ptcore._ops.creation.creation import ones
from ptcore._ops.functions import (
    _fft_c2c,
    _fft_c2r,
    _fft_r2c,
    abs,
    amin,
    clone,
    expand,
    fold_windows,
    mul,
    pad_constant,
    reshape,
    roll,
    slice,
    squeeze,
    transpose,
    unfold,
    unsqueeze,
    view_as_real,
)
from ptcore._ops.history import has_values
from ptcore._ops.padding.bodies import pad as padded
from ptcore._ops.table.shapes import COMPLEX_OF
from ptcore._tensor import Tensor


# -- arguments -------------------------------------------------------------------------------------
def _mode(op, norm, forward):
    """The divisor in the library: 0 none, 1 the square root of the number of points, 2 the number."""
    if norm is not None and not isinstance(norm, str):
        raise TypeError(f"{op}: norm must be a str or None, got {type(norm).__name__}")
    if norm is None or norm == "backward":
        return 0 if forward else 2
    if norm == "ortho":
        return 1
    if norm == "forward":
        return 2 if forward else 0
    raise ChoiceError(f"{op}: norm must be 'backward', 'ortho' or 'forward', got {norm!r}")


def _along(op, x, dim):
    """The dim counted from 0; raises for a 0-d tensor."""
    n: object = x.ndim
    if n == 0:
        raise IndexError(f"{op}: dim must name a dim of input, got {dim} for shape []")
    if type(dim) is not int or not -n <= dim < n:
        dim = checked.integer(op, "dim", dim)
    at: object = wrap_dim(op, dim, n)
    return at


def _points(op, n):
    if n < 1:
        raise ShapeError(f"{op}: the number of data points must be positive, got {n}")
    return n


def _resized(x, dim, n):
    """x cut or zero-padded to n elements along a non-negative dim."""
    size = x.shape[dim]
    if n < size:
        return slice(x, dim, 0, n, 1)
    if n > size:
        return pad_constant(x, (*[0] * (2 * (x.ndim - dim) - 1), n - size), 0)
    return x


def _plan(op, x, s, dim):
    """(dims, points along each). The default dims are all, or the last ones, as many as s has."""
    ndim, shape = x.ndim, x.shape
    sizes = None if s is None else checked.integers(op, "s", s)
    if dim is not None:
        dims = [wrap_dim(op, d, ndim) for d in checked.integers(op, "dim", dim)]
        if dims and not ndim:
            raise IndexError(f"{op}: dim must name dims of input, got {dim} for shape []")
        if len(set(dims)) < len(dims):
            raise RuntimeError(f"{op}: a dim appears twice in dim={dim!r}")
        if sizes is not None and len(sizes) != len(dims):
            raise ShapeError(f"{op}: s and dim must have one length, got {len(sizes)} and {len(dims)}")
    elif sizes is not None:
        if len(sizes) > ndim:
            raise ShapeError(f"{op}: s must have at most {ndim} sizes, as input of shape {list(shape)} has dims, "
                             f"got {len(sizes)}")
        dims = list(range(ndim - len(sizes), ndim))
    else:
        dims = list(range(ndim))
    if sizes is None:
        sizes = [shape[d] for d in dims]
    else:
        sizes = [shape[d] if n == -1 else n for d, n in zip(dims, sizes)]
    for n in sizes:
        _points(op, n)
    return dims, sizes


def _some(op, dims):
    if not dims:
        raise ShapeError(f"{op}: at least one dim must be transformed, got none")


def _to_complex(op, x):
    """x as complex numbers of the same precision; integers and bools take that of the default dtype."""
    dtype = x.dtype
    if dtype.is_complex:
        return x
    dtype = COMPLEX_OF.get(dtype if dtype.is_floating_point else get_default_dtype())
    if dtype is None:
        raise UnsupportedDTypeError(f"{op}: dtype must be float32, float64 or complex of these, got {x.dtype.name}")
    return x.to(dtype)


def _real(op, x):
    if x.dtype.is_complex:
        raise DTypeError(f"{op}: input must be real, got {x.dtype.name}")


def _written(x, dim, mode, forward, out):
    """Writes the whole spectrum to out."""
    out = results.fitting(out, x.shape)
    if x.dtype.is_complex:
        return _fft_c2c(x, dim, mode, forward, out=out)
    return _fft_r2c(x, dim, mode, False, forward, out=out)


def _half_written(x, dim, last, mode, forward, out):
    """Writes half of the spectrum, along the last dim, to out."""
    size = list(x.shape)
    size[last] = size[last] // 2 + 1
    return _fft_r2c(x, dim, mode, True, forward, out=results.fitting(out, size))


def _real_written(op, x, dim, last, mode, n, forward, out):
    """Writes a real result to out, which must not be complex."""
    if not out.dtype.is_floating_point:
        raise DTypeError(f"{op}: out must have a floating-point dtype, got {out.dtype.name}")
    size = list(x.shape)
    size[last] = n
    return _fft_c2r(x, dim, mode, n, forward, out=results.fitting(out, size))


# -- along one dim ---------------------------------------------------------------------------------
def _whole(op, x, n, dim, norm, forward, out):
    mode = _mode(op, norm, forward)
    if n is not None:
        dim = _along(op, x, dim)
        x = _resized(x, dim, _points(op, checked.integer(op, "n", n)))
    if out is not None:
        return _written(x, dim, mode, forward, out)
    if x.dtype.is_complex:
        return _fft_c2c(x, dim, mode, forward)
    return _fft_r2c(x, dim, mode, False, forward)


def _to_half(op, x, n, dim, norm, forward, out):
    _real(op, x)
    mode = _mode(op, norm, forward)
    if n is not None:
        dim = _along(op, x, dim)
        x = _resized(x, dim, _points(op, checked.integer(op, "n", n)))
    if out is not None:
        return _half_written(x, dim, _along(op, x, dim), mode, forward, out)
    return _fft_r2c(x, dim, mode, True, forward)


def _from_half(op, x, n, dim, norm, forward, out):
    mode = _mode(op, norm, forward)
    dim = _along(op, x, dim)
    n = _points(op, 2 * (x.shape[dim] - 1) if n is None else checked.integer(op, "n", n))
    x = _resized(_to_complex(op, x), dim, n // 2 + 1)
    return _fft_c2r(x, dim, mode, n, forward) if out is None else _real_written(op, x, dim, dim, mode, n, forward, out)


def fft_fft(input, n, dim, norm, out=None):
    return _whole("fft_fft", input, n, dim, norm, True, out)


def _own_dtype(op, input, out):
    """ifft and ihfft of real input require that out= has the result's dtype, as in PyTorch."""
    dtype = input.dtype if input.dtype.is_floating_point else get_default_dtype()
    if out is not None and not input.dtype.is_complex and out.dtype is not COMPLEX_OF.get(dtype, out.dtype):
        raise DTypeError(f"{op}: out must have dtype {COMPLEX_OF[dtype].name}, got {out.dtype.name}")


def fft_ifft(input, n, dim, norm, out=None):
    _own_dtype("fft_ifft", input, out)
    return _whole("fft_ifft", input, n, dim, norm, False, out)


def fft_rfft(input, n, dim, norm, out=None):
    return _to_half("fft_rfft", input, n, dim, norm, True, out)


def fft_irfft(input, n, dim, norm, out=None):
    return _from_half("fft_irfft", input, n, dim, norm, False, out)


def fft_hfft(input, n, dim, norm, out=None):
    return _from_half("fft_hfft", input, n, dim, norm, True, out)


def fft_ihfft(input, n, dim, norm, out=None):
    _own_dtype("fft_ihfft", input, out)
    return _to_half("fft_ihfft", input, n, dim, norm, False, out)


# -- along several ---------------------------------------------------------------------------------
def _whole_of(op, x, s, dim, norm, forward, out):
    mode = _mode(op, norm, forward)
    dims, sizes = _plan(op, x, s, dim)
    if not dims:
        y = _to_complex(op, x)
        return clone(y) if y is x else y
    for d, n in zip(dims, sizes):
        x = _resized(x, d, n)
    if out is not None:
        return _written(x, tuple(dims), mode, forward, out)
    if x.dtype.is_complex:
        return _fft_c2c(x, tuple(dims), mode, forward)
    return _fft_r2c(x, tuple(dims), mode, False, forward)


def _to_half_of(op, x, s, dim, norm, forward, out):
    _real(op, x)
    mode = _mode(op, norm, forward)
    dims, sizes = _plan(op, x, s, dim)
    _some(op, dims)
    for d, n in zip(dims, sizes):
        x = _resized(x, d, n)
    dims = tuple(dims)
    if out is not None:
        return _half_written(x, dims, dims[-1], mode, forward, out)
    return _fft_r2c(x, dims, mode, True, forward)


def _from_half_of(op, x, s, dim, norm, forward, out):
    mode = _mode(op, norm, forward)
    dims, sizes = _plan(op, x, s, dim)
    _some(op, dims)
    last = sizes[-1]
    if s is None or checked.integers(op, "s", s)[-1] == -1:
        last = _points(op, 2 * (x.shape[dims[-1]] - 1))
    sizes[-1] = last // 2 + 1
    x = _to_complex(op, x)
    for d, n in zip(dims, sizes):
        x = _resized(x, d, n)
    dims = tuple(dims)
    if out is not None:
        return _real_written(op, x, dims, dims[-1], mode, last, forward, out)
    return _fft_c2r(x, dims, mode, last, forward)


def fft_fftn(input, s, dim, norm, out=None):
    return _whole_of("fft_fftn", input, s, dim, norm, True, out)


def fft_ifftn(input, s, dim, norm, out=None):
    return _whole_of("fft_ifftn", input, s, dim, norm, False, out)


def fft_rfftn(input, s, dim, norm, out=None):
    return _to_half_of("fft_rfftn", input, s, dim, norm, True, out)


def fft_irfftn(input, s, dim, norm, out=None):
    return _from_half_of("fft_irfftn", input, s, dim, norm, False, out)


def fft_hfftn(input, s, dim, norm, out=None):
    return _from_half_of("fft_hfftn", input, s, dim, norm, True, out)


def fft_ihfftn(input, s, dim, norm, out=None):
    return _to_half_of("fft_ihfftn", input, s, dim, norm, False, out)


def fft_fft2(input, s, dim, norm, out=None):
    return _whole_of("fft_fft2", input, s, dim, norm, True, out)


def fft_ifft2(input, s, dim, norm, out=None):
    return _whole_of("fft_ifft2", input, s, dim, norm, False, out)


def fft_rfft2(input, s, dim, norm, out=None):
    return _to_half_of("fft_rfft2", input, s, dim, norm, True, out)


def fft_irfft2(input, s, dim, norm, out=None):
    return _from_half_of("fft_irfft2", input, s, dim, norm, False, out)


def fft_hfft2(input, s, dim, norm, out=None):
    return _from_half_of("fft_hfft2", input, s, dim, norm, True, out)


def fft_ihfft2(input, s, dim, norm, out=None):
    return _to_half_of("fft_ihfft2", input, s, dim, norm, False, out)


def _shifted(op, x, dim, up):
    dims = list(range(x.ndim)) if dim is None else checked.integers(op, "dim", dim)
    dims = [wrap_dim(op, d, x.ndim) for d in dims]
    if not dims or not x.ndim:
        raise RuntimeError(f"{op}: at least one dim must be shifted, got none")
    return roll(x, [(x.shape[d] + up) // 2 for d in dims], dims)


def fft_fftshift(input, dim):
    return _shifted("fft_fftshift", input, dim, 0)


def fft_ifftshift(input, dim):
    return _shifted("fft_ifftshift", input, dim, 1)


# -- of windows of a signal --------------------------------------------------------------------------
def _lengths(op, n_fft, hop_length, win_length):
    n_fft = checked.integer(op, "n_fft", n_fft)
    hop = n_fft // 4 if hop_length is None else checked.integer(op, "hop_length", hop_length)
    win = n_fft if win_length is None else checked.integer(op, "win_length", win_length)
    return n_fft, hop, win


def _flag(op, name, value, default):
    return default if value is None else checked.flag(op, name, value)


def _check_window(op, window, win, x):
    if window is None:
        return
    if window.device != x.device:
        raise RuntimeError(f"{op}: window must be on the device of input, {x.device}, got {window.device}")
    if window.ndim != 1 or window.shape[0] != win:
        raise ShapeError(f"{op}: window must have shape [{win}], as win_length says, got {list(window.shape)}")


def _centred(window, win, n_fft, x):
    """The window, zero-padded on both sides to n_fft; ones of x's kind without a window."""
    if window is None:
        dtype = x.dtype.to_real() if x.dtype.is_complex else x.dtype
        window = ones(win, dtype=dtype, device=x.device)
    left = (n_fft - win) // 2
    return pad_constant(window, (left, n_fft - win - left), 0) if win < n_fft else window


def stft(input, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex,
         align_to_window):
    op = "stft"
    if not isinstance(pad_mode, str):
        raise TypeError(f"{op}: pad_mode must be a str, got {type(pad_mode).__name__}")
    if pad_mode not in ("constant", "reflect", "replicate", "circular"):
        raise NotImplementedError(f"{op}: pad_mode must be one of 'constant', 'reflect', 'replicate', 'circular', got "
                                  f"{pad_mode!r}")
    n_fft, hop, win = _lengths(op, n_fft, hop_length, win_length)
    if center and align_to_window is not None:
        raise RuntimeError(f"{op}: align_to_window is for center=False, got {align_to_window!r} with center=True")
    complex_result = input.dtype.is_complex or (isinstance(window, Tensor) and window.dtype.is_complex)
    if return_complex is None and not complex_result:
        raise RuntimeError(f"{op}: return_complex must be given for a real input, and True where it can be, got None")
    return_complex = _flag(op, "return_complex", return_complex, True)
    if not return_complex:
        warn("stft: return_complex=False is deprecated; view_as_real of the complex result is the same")
    if input.dtype.kind not in "fc":
        raise DTypeError(f"{op}: input must have a floating-point or complex dtype, got {input.dtype.name}")
    if input.ndim not in (1, 2):
        raise ShapeError(f"{op}: input must have 1 or 2 dimensions, got shape {list(input.shape)}")
    x = input if input.ndim == 2 else unsqueeze(input, 0)
    if center and n_fft > 1:
        x = squeeze(padded(unsqueeze(x, 0), (n_fft // 2, n_fft // 2), pad_mode, None), 0)
    length = x.shape[1]
    if not 0 < n_fft <= length:
        raise ShapeError(f"{op}: n_fft must be in [1, {length}], got {n_fft}")
    if hop <= 0:
        raise ShapeError(f"{op}: hop_length must be positive, got {hop}")
    if not 0 < win <= n_fft:
        raise ShapeError(f"{op}: win_length must be in [1, {n_fft}], got {win}")
    _check_window(op, window, win, x)
    if align_to_window is not None and checked.flag(op, "align_to_window", align_to_window):
        left = (n_fft - win) // 2
        x = pad_constant(x, (left, n_fft - win - left), 0)
    frames = unfold(x, 1, n_fft, hop)
    if window is not None or win < n_fft:
        frames = mul(frames, _centred(window, win, n_fft, x))
    mode = 1 if checked.flag(op, "normalized", normalized) else 0
    onesided = _flag(op, "onesided", onesided, not complex_result)
    if complex_result:
        if onesided:
            raise RuntimeError(f"{op}: onesided must be False where the window or input is complex, got True")
        spectrum = _fft_c2c(frames, 2, mode, True)
    else:
        spectrum = _fft_r2c(frames, 2, mode, onesided, True)
    spectrum = transpose(spectrum, 1, 2)
    if input.ndim == 1:
        spectrum = squeeze(spectrum, 0)
    return spectrum if return_complex else view_as_real(spectrum)


def _added(frames, hop, length):
    """Adds frames ``(B, T, n)`` that begin ``hop`` apart: ``(B, length)``."""
    count, n = frames.shape[1], frames.shape[2]
    columns = transpose(frames, 1, 2)
    return squeeze(fold_windows(columns, (1, n), (1, 1), (0, 0), (1, hop), (1, count), (1, length)), (1, 2))


def istft(input, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex):
    op = "istft"
    n_fft, hop, win = _lengths(op, n_fft, hop_length, win_length)
    if not input.dtype.is_complex:
        raise DTypeError(f"{op}: input must be complex, as stft gives it with return_complex=True, got "
                         f"{input.dtype.name}")
    if input.ndim not in (2, 3):
        if input.ndim < 2:
            raise IndexError(f"{op}: input must have 2 or 3 dimensions, got shape {list(input.shape)}")
        raise ShapeError(f"{op}: input must have 2 or 3 dimensions, got shape {list(input.shape)}")
    size, count = input.shape[-2], input.shape[-1]
    if input.numel() == 0:
        raise ShapeError(f"{op}: input must not be empty, got shape {list(input.shape)}")
    onesided = _flag(op, "onesided", onesided, size != n_fft)
    if size != (n_fft // 2 + 1 if onesided else n_fft):
        raise ShapeError(f"{op}: input must have {n_fft // 2 + 1 if onesided else n_fft} frequencies for n_fft={n_fft} "
                         f"and onesided={onesided}, got shape {list(input.shape)}")
    if not 0 < hop <= win:
        raise ShapeError(f"{op}: hop_length must be in [1, {win}], got {hop}")
    if win > n_fft:
        raise ShapeError(f"{op}: win_length must be in [1, {n_fft}], got {win}")
    _check_window(op, window, win, input)
    if window is None:
        warn("istft: no window was given: ones are taken, which must be those of stft")
    window = _centred(window, win, n_fft, input)
    if window.dtype.kind in "biu":
        window = window.to(input.dtype.to_real())
    mode = 1 if checked.flag(op, "normalized", normalized) else 2
    spectra = transpose(input if input.ndim == 3 else unsqueeze(input, 0), 1, 2)
    if checked.flag(op, "return_complex", return_complex):
        if onesided:
            raise RuntimeError(f"{op}: onesided must be False for return_complex=True, got True")
        frames = _fft_c2c(spectra, 2, mode, False)
    else:
        if window.dtype.is_complex:
            raise RuntimeError(f"{op}: a complex window needs return_complex=True, got False")
        if not onesided:
            spectra = slice(spectra, 2, 0, n_fft // 2 + 1, 1)
        frames = _fft_c2r(spectra, 2, mode, n_fft, False)
    whole = n_fft + hop * (count - 1)
    squares = expand(reshape(mul(window, window), (1, 1, n_fft)), (1, count, n_fft))
    y, weights = _added(mul(frames, window), hop, whole), _added(squares, hop, whole)
    start = n_fft // 2 if center else 0
    if length is not None:
        end = start + checked.integer(op, "length", length)
    else:
        end = whole - n_fft // 2 if center else whole
    if end <= start:
        raise ShapeError(f"{op}: length must be positive, got elements {start} to {end} of {whole}")
    y, weights = slice(y, 1, start, min(end, whole), 1), slice(weights, 1, start, min(end, whole), 1)
    if has_values(weights):
        least = amin(abs(weights)).item()
        if least < 1e-11:
            raise RuntimeError(f"{op}: the squares of the windows must add up to more than 1e-11 everywhere (NOLA), "
                               f"got {least}")
    y = y / weights
    if end > whole:
        warn("istft: the signal is shorter than length; zeros are added at its end")
        y = pad_constant(y, (0, end - whole), 0)
    return y if input.ndim == 3 else squeeze(y, 0)
