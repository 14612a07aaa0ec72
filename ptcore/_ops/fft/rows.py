"""Rows: Fourier transforms, and those of short windows of a signal.

Everything is one of three ops, which the library computes along any dims at once: complex to complex, real to
complex, complex to real. ``normalization`` divides by nothing (0), by the square root (1) of the number n of points, or by
n (2); ``forward`` is a negative sign in the exponent. They are linear, and each is the transpose of another up to the
weights of the half of a spectrum that is not kept (autograd/rules/fft.py).
"""
from ptcore._ops.table.schema import COMPLEX, composite, linear

_DOUBLE = ("float32", "float64")

linear(
    "_fft_c2c(input, dim: Dims, normalization: Int, forward: Bool)", types=COMPLEX, kernel="pocketfft:c2c",
    internal=True, called="fft_fft", node="FftC2CBackward0", out="fft_c2c", autocast="high",
    vjp=["_fft_c2c(g, dim, normalization, not forward)"], reference="_fft_c2c(x, dim, normalization, forward)",
    doc="The transform of complex numbers along dims.")

linear(
    "_fft_r2c(input, dim: Dims, normalization: Int, onesided: Bool, forward: Bool)", types=_DOUBLE, promote="float",
    kernel="pocketfft:r2c", internal=True, called="fft_rfft", node="FftR2CBackward0", out="fft_r2c", autocast="high",
    reference="_fft_r2c(x, dim, normalization, onesided, forward)",
    doc="The transform of real numbers along dims; of the last of them the first ``n // 2 + 1`` entries if onesided.")

linear(
    "_fft_c2r(input, dim: Dims, normalization: Int, last_dim_size: Int, forward: Bool)", types=COMPLEX,
    kernel="pocketfft:c2r", internal=True, called="fft_irfft", node="FftC2RBackward0", out="fft_c2r", autocast="high",
    reference="_fft_c2r(x, dim, normalization, last_dim_size, forward)",
    doc="The real transform of the first ``n // 2 + 1`` entries of a spectrum whose other entries are their conjugates.")

_ONE = "n: OptInt = None, dim: Dim = -1"
_TWO = "s: Obj = None, dim: Dims = (-2, -1)"
_MANY = "s: Obj = None, dim: Dims = None"

_POINTS = {
    _ONE: """``n``, if given, is how many points are transformed: ``input`` is cut or filled up with zeros along ``dim``.""",
    _TWO: """``s``, if given, says how many points are transformed along each of the dims: ``input`` is cut or filled up with zeros;
-1 leaves a size as it is.""",
    _MANY: """``s``, if given, says how many points are transformed along each of the dims: ``input`` is cut or filled up with zeros;
-1 leaves a size as it is. ``dim`` are all dims unless given, or as many of the last ones as ``s`` has.""",
}
_HALF_POINTS = {
    _ONE: """``n`` is the size of the result along ``dim``, ``2 * (m - 1)`` of m entries unless given; only the first ``n // 2 + 1``
entries are read, and filled up with zeros where there are fewer.""",
    _TWO: """``s``, if given, are the sizes of the result along the dims, ``2 * (m - 1)`` of m entries for the last one unless given or if
-1; ``input`` is cut or filled up with zeros, along the last dim to the first ``n // 2 + 1`` entries.""",
}
_HALF_POINTS[_MANY] = _HALF_POINTS[_TWO] + " ``dim`` are all dims unless given, or as many of the last ones as ``s`` has."
_NORM = """``norm`` divides by n, the number of points, {where}: "backward" (None) in inverse transforms, "forward" in those
that are not, "ortho" by its square root in both. float32 and float64 and complex numbers of these are taken; integers and
bools become the default dtype, half types are refused.

Raises RuntimeError for fewer than one point, dims that repeat, an unknown ``norm`` and half types{more}; IndexError for a dim that
is not there."""


def _transform(name, parameters, text, points, derivative, example, result, more=""):
    norm = _NORM.format(where="the product of the sizes" if parameters != _ONE else "of the transform", more=more)
    composite(
        f"fft_{name}(input, {parameters}, norm: Obj = None)", public=[f"fft.{name}"], method=False, out_argument="inside",
        autocast="high", reference=f"_spectrum('{name}', x, {'n' if parameters == _ONE else 's'}, dim, norm)",
        doc=f"""{text}

{points[parameters]} {norm}

Linear; the derivative is {derivative}.

>>> import ptcore
>>> {example}
{result}
""")


_FORWARD = "``X[k] = sum_j x[j] exp(-2 pi i j k / n)``"
_BACK = "``x[j] = 1 / n sum_k X[k] exp(2 pi i j k / n)``"
_SWAPPED = "the transform of the incoming gradient with the other sign in the exponent and the same factor"
_REAL_PART = f"{_SWAPPED}, its real part where ``input`` is real"
_FROM_HALF = """the transform back of the incoming gradient, whose entries that stand for two count half, and
where several dims are transformed, that of each of them"""
_TO_HALF = "the transform of the incoming gradient to half a spectrum, whose entries that stand for two count twice"
_COMPLEX = "; for a complex ``input``"

_transform("fft", _ONE, f"The discrete Fourier transform along a dim: {_FORWARD}.", _POINTS, _REAL_PART,
           "ptcore.fft.fft(ptcore.tensor([0., 1., 0., 0.]) + 0j)", "tensor([ 1.+0.j,  0.-1.j, -1.+0.j,  0.+1.j])")
_transform("ifft", _ONE, f"The inverse of :func:`ptcore.fft.fft`: {_BACK}.", _POINTS, _REAL_PART,
           "ptcore.fft.ifft(ptcore.tensor([4., 0., 0., 0.]) + 0j)", "tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])")
_transform("fft2", _TWO, "The discrete Fourier transform along two dims.", _POINTS, _REAL_PART,
           "ptcore.fft.fft2(ptcore.ones(2, 2)).real", "tensor([[4., 0.],\n        [0., 0.]])")
_transform("ifft2", _TWO, "The inverse of :func:`ptcore.fft.fft2`.", _POINTS, _REAL_PART,
           "ptcore.fft.ifft2(ptcore.ones(2, 2)).real", "tensor([[1., 0.],\n        [0., 0.]])")
_transform("fftn", _MANY, "The discrete Fourier transform along several dims.", _POINTS, _REAL_PART,
           "ptcore.fft.fftn(ptcore.ones(2, 2)).real", "tensor([[4., 0.],\n        [0., 0.]])")
_transform("ifftn", _MANY, "The inverse of :func:`ptcore.fft.fftn`.", _POINTS, _REAL_PART,
           "ptcore.fft.ifftn(ptcore.ones(2, 2)).real", "tensor([[1., 0.],\n        [0., 0.]])")

_transform("rfft", _ONE, """The first ``n // 2 + 1`` entries of the transform of real numbers along a dim; the others are their
conjugates in reverse.""", _POINTS, _FROM_HALF,
           "ptcore.fft.rfft(ptcore.tensor([0., 1., 0., 0.]))", "tensor([ 1.+0.j,  0.-1.j, -1.+0.j])", _COMPLEX)
_transform("irfft", _ONE, "The inverse of :func:`ptcore.fft.rfft`: real numbers from half a spectrum.", _HALF_POINTS, _TO_HALF,
           "ptcore.fft.irfft(ptcore.tensor([1, -1j, -1]))", "tensor([0., 1., 0., 0.])")
_transform("rfft2", _TWO, """The transform of real numbers along two dims, of which the last one has the first ``n // 2 + 1`` entries.""",
           _POINTS, _FROM_HALF, "ptcore.fft.rfft2(ptcore.ones(2, 2))",
           "tensor([[4.+0.j, 0.+0.j],\n        [0.+0.j, 0.+0.j]])", _COMPLEX)
_transform("irfft2", _TWO, "The inverse of :func:`ptcore.fft.rfft2`: real numbers from half a spectrum.", _HALF_POINTS, _TO_HALF,
           "ptcore.fft.irfft2(ptcore.tensor([[4., 0.], [0., 0.]]))", "tensor([[1., 1.],\n        [1., 1.]])")
_transform("rfftn", _MANY, """The transform of real numbers along several dims, of which the last one has the first ``n // 2 + 1``
entries.""", _POINTS, _FROM_HALF, "ptcore.fft.rfftn(ptcore.ones(2, 2))",
           "tensor([[4.+0.j, 0.+0.j],\n        [0.+0.j, 0.+0.j]])", f"{_COMPLEX} and where there is no dim")
_transform("irfftn", _MANY, "The inverse of :func:`ptcore.fft.rfftn`: real numbers from half a spectrum.", _HALF_POINTS, _TO_HALF,
           "ptcore.fft.irfftn(ptcore.tensor([[4., 0.], [0., 0.]]))", "tensor([[1., 1.],\n        [1., 1.]])",
           " and where there is no dim")

_transform("hfft", _ONE, """The real transform along a dim of a signal of which the first ``n // 2 + 1`` entries are given and the others are
their conjugates in reverse.""", _HALF_POINTS, _TO_HALF,
           "ptcore.fft.hfft(ptcore.tensor([1, -1j, -1]))", "tensor([0., 0., 0., 4.])")
_transform("ihfft", _ONE, "The inverse of :func:`ptcore.fft.hfft`: half a signal from its real spectrum.", _POINTS, _FROM_HALF,
           "ptcore.fft.ihfft(ptcore.tensor([0., 0., 0., 4.]))", "tensor([ 1.+0.j,  0.-1.j, -1.+0.j])", _COMPLEX)
_transform("hfft2", _TWO, "The real transform along two dims of a signal of which half of the last one is given.", _HALF_POINTS, _TO_HALF,
           "ptcore.fft.hfft2(ptcore.tensor([[1., 0.], [0., 0.]]))", "tensor([[1., 1.],\n        [1., 1.]])")
_transform("ihfft2", _TWO, "The inverse of :func:`ptcore.fft.hfft2`: half a signal from its real spectrum.", _POINTS, _FROM_HALF,
           "ptcore.fft.ihfft2(ptcore.ones(2, 2))", "tensor([[1.+0.j, 0.+0.j],\n        [0.+0.j, 0.+0.j]])", _COMPLEX)
_transform("hfftn", _MANY, "The real transform along several dims of a signal of which half of the last one is given.", _HALF_POINTS,
           _TO_HALF, "ptcore.fft.hfftn(ptcore.tensor([[1., 0.], [0., 0.]]))", "tensor([[1., 1.],\n        [1., 1.]])",
           " and where there is no dim")
_transform("ihfftn", _MANY, "The inverse of :func:`ptcore.fft.hfftn`: half a signal from its real spectrum.", _POINTS, _FROM_HALF,
           "ptcore.fft.ihfftn(ptcore.ones(2, 2))", "tensor([[1.+0.j, 0.+0.j],\n        [0.+0.j, 0.+0.j]])",
           f"{_COMPLEX} and where there is no dim")

composite(
    "fft_fftshift(input, dim: Obj = None)", public=["fft.fftshift"], method=False, reference="fft.fftshift(x, dim)",
    doc="""A spectrum with the frequency 0 in the middle: rolled by ``n // 2`` along the dims, all of them unless given.

>>> import ptcore
>>> ptcore.fft.fftshift(ptcore.fft.fftfreq(4, 0.25))
tensor([-2., -1.,  0.,  1.])
""")

composite(
    "fft_ifftshift(input, dim: Obj = None)", public=["fft.ifftshift"], method=False, reference="fft.ifftshift(x, dim)",
    doc="""The inverse of :func:`ptcore.fft.fftshift`: rolled by ``(n + 1) // 2`` along the dims.

>>> import ptcore
>>> ptcore.fft.ifftshift(ptcore.tensor([-2., -1., 0., 1.]))
tensor([ 0.,  1., -2., -1.])
""")

composite(
    "stft(input, n_fft: Int, hop_length: OptInt = None, win_length: OptInt = None, window: OptTensor = None, center=True, "
    "pad_mode: Obj = 'reflect', normalized=False, onesided: Obj = None, return_complex: Obj = None, "
    "align_to_window: Obj = None)", autocast="high",
    reference="_stft(x, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex, "
              "align_to_window)",
    doc="""The short-time Fourier transform of a signal ``(L,)`` or of signals ``(B, L)``: spectra of windows that overlap.

``X[f, m] = sum_k window[k] input[m hop_length + k] exp(-2 pi i f k / n_fft)`` is complex ``(B?, N, T)`` with T frames and N =
``n_fft // 2 + 1`` frequencies if onesided (the default of real input), else ``n_fft``. With ``return_complex=False``
(deprecated) it is real ``(B?, N, T, 2)``; for a real input and window the argument must be given.

``hop_length`` is ``n_fft // 4`` and ``win_length`` is ``n_fft`` unless given. ``window`` of that length, ones unless given, is filled up
with zeros on both sides. If ``center``, frames are centred at multiples of the hop: ``input`` is padded by ``n_fft // 2`` at both ends,
as ``pad_mode`` of :func:`ptcore.nn.functional.pad` says. Without it, ``align_to_window`` lets the first window begin at 0, not the
first frame. ``normalized`` multiplies by ``n_fft ** -0.5``.

The derivative adds the transform back of each frame's gradient, times the window, where the frame lay.

Raises RuntimeError for a number of dims other than 1 and 2, an integer dtype, lengths that do not fit, a window of another
shape, and onesided results of complex numbers.

>>> import ptcore
>>> x = ptcore.ones(8)
>>> ptcore.stft(x, 4, window=ptcore.hann_window(4), return_complex=True).abs()[:, 0]
tensor([2., 1., 0.])
""")

composite(
    "istft(input, n_fft: Int, hop_length: OptInt = None, win_length: OptInt = None, window: OptTensor = None, center=True, "
    "normalized=False, onesided: Obj = None, length: OptInt = None, return_complex=False)", autocast="high",
    reference="_istft(x, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex)",
    doc="""The inverse of :func:`ptcore.stft`: the signal ``(B?, length)`` whose spectra are nearest to complex ``(B?, N, T)``.

Frames are transformed back, multiplied by the window, added where they lay, and divided by the sum of the squares of all windows
there, which must not be 0 anywhere (NOLA). The arguments are those of ``stft``. ``onesided`` is True unless N is ``n_fft``;
``length`` cuts the result, or fills it up with zeros and warns; ``return_complex`` is for signals that were complex.

Linear in ``input``: the derivative is the ``stft`` of the incoming gradient over the windows' sum.

Raises RuntimeError for a real or empty ``input``, sizes that do not fit, and windows whose squares add up to less than 1e-11
somewhere.

>>> import ptcore
>>> window = ptcore.hann_window(4)
>>> X = ptcore.stft(ptcore.arange(8.), 4, window=window, return_complex=True)
>>> ptcore.istft(X, 4, window=window)
tensor([0., 1., 2., 3., 4., 5., 6., 7.])
""")
