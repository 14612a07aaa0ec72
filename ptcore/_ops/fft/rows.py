"""Rows: Fourier transforms, and transforms of short windows of a signal.

Every transform is made of three ops, which the library computes along any dims at once: complex to complex, real to
complex, complex to real. ``normalization`` divides by nothing (0), by the square root (1) of the number n of points,
or by n (2); ``forward`` means a negative sign in the exponent. The ops are linear. Each is the transpose of another
one, up to weights for the entries of a half spectrum that stand for two (autograd/rules/fft.py).
"""
from ptcore._ops.table.schema import COMPLEX, composite, linear

_DOUBLE = ("float32", "float64")

linear(
    "_fft_c2c(input, dim: DimList, normalization: Int, forward: Bool)", types=COMPLEX, kernel="pocketfft:c2c",
    internal=True, called="fft_fft", node="FftC2CBackward0", out="fft_c2c", out_dtype="cast",
    autocast="high",
    vjp=["_fft_c2c(g, dim, normalization, not forward)"], reference="_fft_c2c(x, dim, normalization, forward)",
    doc="The transform of complex numbers along dims.")

linear(
    "_fft_r2c(input, dim: DimList, normalization: Int, onesided: Bool, forward: Bool)", types=_DOUBLE, promote="float",
    kernel="pocketfft:r2c", internal=True, called="fft_rfft", node="FftR2CBackward0", out="fft_r2c", out_dtype="cast",
    autocast="high",
    reference="_fft_r2c(x, dim, normalization, onesided, forward)",
    doc="The transform of real numbers along dims; of the last of them the first ``n // 2 + 1`` entries if onesided.")

linear(
    "_fft_c2r(input, dim: DimList, normalization: Int, last_dim_size: Int, forward: Bool)", types=COMPLEX,
    kernel="pocketfft:c2r", internal=True, called="fft_irfft", node="FftC2RBackward0", out="fft_c2r", out_dtype="cast",
    autocast="high",
    reference="_fft_c2r(x, dim, normalization, last_dim_size, forward)",
    doc="The real transform of the first ``n // 2 + 1`` entries of a spectrum, whose others are their conjugates.")

_ONE = "n: OptInt = None, dim: Dim = -1"
_TWO = "s: Obj = None, dim: Dims = (-2, -1)"
_MANY = "s: Obj = None, dim: Dims = None"

_LAST = " ``dim`` are all dims unless given, or as many of the last ones as ``s`` has."
_POINTS = {
    _ONE: """``n``, if given, is how many points are transformed: ``input`` is cut or filled up with zeros along
``dim``.""",
    _TWO: """``s``, if given, says how many points are transformed along each of the dims: ``input`` is cut or
filled up with zeros; -1 leaves a size as it is.""",
}
_POINTS[_MANY] = _POINTS[_TWO] + _LAST
_HALF_POINTS = {
    _ONE: """``n`` is the size of the result along ``dim``, ``2 * (m - 1)`` of m entries unless given; only the first
``n // 2 + 1`` entries are read, and filled up with zeros where there are fewer.""",
    _TWO: """``s``, if given, are the sizes of the result along the dims; that of the last one is ``2 * (m - 1)`` of m
entries unless given or if -1. ``input`` is cut or filled up with zeros, along the last dim to ``n // 2 + 1``
entries.""",
}
_HALF_POINTS[_MANY] = _HALF_POINTS[_TWO] + _LAST
_NORM = """``norm`` divides by n, the number of points, {where}: "backward" (None) in inverse transforms, "forward" in
those that are not, "ortho" by its square root in both. float32 and float64 and complex numbers of these are taken;
integers and bools become the default dtype, half types are refused.

Raises RuntimeError for fewer than one point, dims that repeat, an unknown ``norm`` and half types{more}; IndexError for
a dim that is not there."""


def _transform(name, parameters, text, derivative, example, result, more="", points=_POINTS):
    norm = _NORM.format(where="the product of the sizes" if parameters != _ONE else "of the transform", more=more)
    given = "n" if parameters == _ONE else "s"
    composite(
        f"fft_{name}(input, {parameters}, norm: Obj = None)", public=[f"fft.{name}"], method=False,
        out_argument="inside", out_dtype="cast", autocast="high",
        reference=f"_spectrum('{name}', x, {given}, dim, norm)",
        doc=f"""{text}

{points[parameters]}
{norm}

Linear; the derivative is {derivative}.

>>> import ptcore
>>> {example}
{result}
""")


def _half(name, parameters, text, example, result, more=""):
    """A transform with an input of which only half is given."""
    _transform(name, parameters, text, """the transform of the incoming gradient to half a spectrum, whose entries
that stand for two count twice""", example, result, more, _HALF_POINTS)


def _to_half(name, parameters, text, example, result, more="; for a complex ``input``"):
    _transform(name, parameters, text, """the transform back of the incoming gradient, whose entries that stand for
two count half""", example, result, more)


def _whole(name, parameters, text, example, result):
    _transform(name, parameters, text, """the transform of the incoming gradient with the other sign in the exponent
and the same factor, its real part where ``input`` is real""", example, result)


_ALONE = " and where there is no dim"
_ONES = "tensor([[1., 1.],\n        [1., 1.]])"

_whole("fft", _ONE, "The discrete Fourier transform along a dim: ``X[k] = sum_j x[j] exp(-2 pi i j k / n)``.",
       "ptcore.fft.fft(ptcore.tensor([0., 1., 0., 0.]) + 0j)", "tensor([ 1.+0.j,  0.-1.j, -1.+0.j,  0.+1.j])")
_whole("ifft", _ONE, "The inverse of :func:`ptcore.fft.fft`: ``x[j] = 1 / n sum_k X[k] exp(2 pi i j k / n)``.",
       "ptcore.fft.ifft(ptcore.tensor([4., 0., 0., 0.]) + 0j)", "tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])")
for _suffix, _parameters, _dims in (("2", _TWO, "two dims"), ("n", _MANY, "several dims")):
    _whole(f"fft{_suffix}", _parameters, f"The discrete Fourier transform along {_dims}.",
           f"ptcore.fft.fft{_suffix}(ptcore.ones(2, 2)).real", "tensor([[4., 0.],\n        [0., 0.]])")
    _whole(f"ifft{_suffix}", _parameters, f"The inverse of :func:`ptcore.fft.fft{_suffix}`.",
           f"ptcore.fft.ifft{_suffix}(ptcore.ones(2, 2)).real", "tensor([[1., 0.],\n        [0., 0.]])")

_to_half("rfft", _ONE, """The first ``n // 2 + 1`` entries of the transform of real numbers along a dim.

The others are their conjugates in reverse.""",
         "ptcore.fft.rfft(ptcore.tensor([0., 1., 0., 0.]))", "tensor([ 1.+0.j,  0.-1.j, -1.+0.j])")
_half("irfft", _ONE, "The inverse of :func:`ptcore.fft.rfft`: real numbers from half a spectrum.",
      "ptcore.fft.irfft(ptcore.tensor([1, -1j, -1]))", "tensor([0., 1., 0., 0.])")
_half("hfft", _ONE, """The real transform along a dim of a signal of which half is given.

It has the first ``n // 2 + 1`` entries; the others are their conjugates in reverse.""",
      "ptcore.fft.hfft(ptcore.tensor([1, -1j, -1]))", "tensor([0., 0., 0., 4.])")
_to_half("ihfft", _ONE, "The inverse of :func:`ptcore.fft.hfft`: half a signal from its real spectrum.",
         "ptcore.fft.ihfft(ptcore.tensor([0., 0., 0., 4.])).real", "tensor([ 1.,  0., -1.])")
for _suffix, _parameters, _dims in (("2", _TWO, "two dims"), ("n", _MANY, "several dims")):
    _more = "" if _suffix == "2" else _ALONE
    _to_half(f"rfft{_suffix}", _parameters,
             f"The transform of real numbers along {_dims}, of the last one the first ``n // 2 + 1`` entries.",
             f"ptcore.fft.rfft{_suffix}(ptcore.ones(2, 2)).real", "tensor([[4., 0.],\n        [0., 0.]])",
             f"; for a complex ``input``{_more}")
    _half(f"irfft{_suffix}", _parameters,
          f"The inverse of :func:`ptcore.fft.rfft{_suffix}`: real numbers from half a spectrum.",
          f"ptcore.fft.irfft{_suffix}(ptcore.tensor([[4., 0.], [0., 0.]]))", _ONES, _more)
    _half(f"hfft{_suffix}", _parameters,
          f"The real transform along {_dims} of a signal of which half of the last one is given.",
          f"ptcore.fft.hfft{_suffix}(ptcore.tensor([[1., 0.], [0., 0.]]))", _ONES, _more)
    _to_half(f"ihfft{_suffix}", _parameters,
             f"The inverse of :func:`ptcore.fft.hfft{_suffix}`: half a signal from its real spectrum.",
             f"ptcore.fft.ihfft{_suffix}(ptcore.ones(2, 2)).real", "tensor([[1., 0.],\n        [0., 0.]])",
             f"; for a complex ``input``{_more}")

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
    "stft(input, n_fft: Int, hop_length: OptInt = None, win_length: OptInt = None, window: OptTensor = None, "
    "center=True, pad_mode: Obj = 'reflect', normalized=False, onesided: Obj = None, return_complex: Obj = None, "
    "align_to_window: Obj = None)", autocast="high",
    reference="_stft(x, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex, "
              "align_to_window)",
    doc="""The short-time Fourier transform of a signal ``(L,)`` or of signals ``(B, L)``: spectra of short windows.

``X[f, m] = sum_k window[k] input[m hop_length + k] exp(-2 pi i f k / n_fft)`` is complex ``(B?, N, T)`` with T frames
and N = ``n_fft // 2 + 1`` frequencies if onesided (the default of real input), else ``n_fft``. With
``return_complex=False`` (deprecated) it is real ``(B?, N, T, 2)``; for a real input and window the argument must be
given.

``hop_length`` is ``n_fft // 4`` and ``win_length`` is ``n_fft`` unless given. ``window`` of that length, ones unless
given, is filled up with zeros on both sides. If ``center``, frames are centred at multiples of the hop: ``input`` is
padded by ``n_fft // 2`` at both ends, as ``pad_mode`` of :func:`ptcore.nn.functional.pad` says. Without it,
``align_to_window`` lets the first window begin at 0, not the first frame. ``normalized`` multiplies by
``n_fft ** -0.5``.

The derivative adds the transform back of each frame's gradient, times the window, where the frame lay.

Raises RuntimeError for a number of dims other than 1 and 2, an integer dtype, lengths that do not fit, a window of
another shape, and onesided results of complex numbers.

>>> import ptcore
>>> x = ptcore.ones(8)
>>> ptcore.stft(x, 4, window=ptcore.hann_window(4), return_complex=True).abs()[:, 0]
tensor([2., 1., 0.])
""")

composite(
    "istft(input, n_fft: Int, hop_length: OptInt = None, win_length: OptInt = None, window: OptTensor = None, "
    "center=True, normalized=False, onesided: Obj = None, length: OptInt = None, return_complex=False)",
    autocast="high",
    reference="_istft(x, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex)",
    doc="""The inverse of :func:`ptcore.stft`: the signal ``(B?, length)`` with spectra nearest to ``(B?, N, T)``.

Frames are transformed back, multiplied by the window, added where they lay, and divided by the sum of the squares of
all windows there, which must not be 0 anywhere (NOLA). The arguments are those of ``stft``. ``onesided`` is True unless
N is ``n_fft``; ``length`` cuts the result, or fills it up with zeros and warns; ``return_complex`` is for signals that
were complex.

Linear in ``input``: the derivative is the ``stft`` of the incoming gradient over the windows' sum.

Raises RuntimeError for a real or empty ``input``, sizes that do not fit, and windows whose squares add up to less than
1e-11 somewhere.

>>> import ptcore
>>> window = ptcore.hann_window(4)
>>> X = ptcore.stft(ptcore.arange(8.), 4, window=window, return_complex=True)
>>> ptcore.istft(X, 4, window=window)
tensor([0., 1., 2., 3., 4., 5., 6., 7.])
""")
