"""References of Fourier transforms, by scipy.fft and by sums; see _references.py."""
import numpy as np
import scipy.fft

_BACK = ("forward", "ortho", "backward")


def _fft_c2c(x, dim, normalization, forward):
    norm = (_BACK[2 - normalization] if forward else _BACK[normalization])
    return (scipy.fft.fftn if forward else scipy.fft.ifftn)(x, axes=dim, norm=norm)


def _fft_r2c(x, dim, normalization, onesided, forward):
    full = _fft_c2c(x + 0j, dim, normalization, forward)
    return np.take(full, range(x.shape[dim[-1]] // 2 + 1), dim[-1]) if onesided else full


def _fft_c2r(x, dim, normalization, size, forward):
    """The conjugates that are not given are written out, last dim last."""
    if len(dim) > 1:
        x = _fft_c2c(x, dim[:-1], normalization, forward)
    x = np.moveaxis(x, dim[-1], -1)
    full = np.zeros((*x.shape[:-1], size), x.dtype)
    full[..., :x.shape[-1]] = x
    for k in range(x.shape[-1], size):
        full[..., k] = np.conj(x[..., size - k])
    for k in {0, *([size // 2] if size % 2 == 0 else [])}:
        full[..., k] = full[..., k].real
    return np.moveaxis(_fft_c2c(full, (x.ndim - 1,), normalization, forward).real, -1, dim[-1])


def _spectrum(name, x, n, dim, norm):
    """scipy.fft's function of the name; of half a spectrum with -1 as the size that is left as it is."""
    function = getattr(scipy.fft, name)
    if name[-1] not in "2n":
        return function(x, n, dim, norm)
    if dim is None:
        dim = tuple(range(x.ndim - (x.ndim if n is None else len(n)), x.ndim))
    if not dim:
        return x + 0j
    if n is not None:
        half = name.startswith(("ir", "h"))
        n = [m if m != -1 else 2 * (x.shape[d] - 1) if half and k == len(dim) - 1 else x.shape[d]
             for k, (m, d) in enumerate(zip(n, dim))]
    return function(x, n, dim, norm)


def _stft(x, n_fft, hop, win, window, center, pad_mode, normalized, onesided, return_complex, align_to_window):
    """Frame by frame, each a sum over the exponentials."""
    hop, win = hop or n_fft // 4, win or n_fft
    window = np.ones(win) if window is None else window
    left = (n_fft - win) // 2
    window = np.pad(window, (left, n_fft - win - left))
    batch = x if x.ndim == 2 else x[None]
    modes = {"reflect": "reflect", "constant": "constant", "replicate": "edge", "circular": "wrap"}
    if center:
        batch = np.pad(batch, ((0, 0), (n_fft // 2, n_fft // 2)), modes[pad_mode])
    elif align_to_window:
        batch = np.pad(batch, ((0, 0), (left, n_fft - win - left)))
    complex_data = np.iscomplexobj(batch) or np.iscomplexobj(window)
    count = n_fft // 2 + 1 if (not complex_data if onesided is None else onesided) else n_fft
    waves = np.exp(-2j * np.pi * np.outer(np.arange(count), np.arange(n_fft)) / n_fft)
    if normalized:
        waves = waves / np.sqrt(n_fft)
    starts = range(0, batch.shape[1] - n_fft + 1, hop)
    result = np.stack([(batch[:, s:s + n_fft] * window) @ waves.T for s in starts], -1)
    result = result if x.ndim == 2 else result[0]
    return result if return_complex in (None, True) else np.stack([result.real, result.imag], -1)


def _istft(x, n_fft, hop, win, window, center, normalized, onesided, length, return_complex):
    hop, win = hop or n_fft // 4, win or n_fft
    window = np.ones(win) if window is None else window
    left = (n_fft - win) // 2
    window = np.pad(window, (left, n_fft - win - left))
    batch = x if x.ndim == 3 else x[None]
    if not return_complex:
        frames = _fft_c2r(batch[:, :n_fft // 2 + 1], (1,), 2, n_fft, False)
    else:
        frames = scipy.fft.ifft(batch, axis=1)
    if normalized:
        frames = frames * np.sqrt(n_fft)
    whole = n_fft + hop * (batch.shape[2] - 1)
    y, weight = np.zeros((len(batch), whole), (frames * window[:, None]).dtype), np.zeros(whole, window.dtype)
    for k in range(batch.shape[2]):
        y[:, k * hop:k * hop + n_fft] += frames[:, :, k] * window
        weight[k * hop:k * hop + n_fft] += window**2
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else whole - start
    y = y[:, start:min(end, whole)] / weight[start:min(end, whole)]
    y = np.pad(y, ((0, 0), (0, max(0, end - whole))))
    return y if x.ndim == 3 else y[0]


NAMES = {name: value for name, value in globals().items() if name.startswith("_") and callable(value)}
