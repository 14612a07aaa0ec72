"""Fourier transforms, stft, istft and windows beside torch's: values, dtypes, gradients, classes of errors, signatures."""
import inspect
import re
import warnings

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

NAMES = [n + m for n in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft") for m in ("", "2", "n")]
WINDOWS = sorted(torch.signal.windows.__all__)


def draw(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) * 3
    return (x + 1j * rng.normal(size=shape) if dtype.startswith("complex") else x).astype(dtype)


def both(call, *arrays, grad=False):
    """The results of a call, and the gradients of the sum of squares, in both libraries."""
    results = []
    for lib in (pt, torch):
        leaves = [lib.tensor(a, requires_grad=grad) for a in arrays]
        out = call(lib, *leaves)
        found = [out.detach()]
        if grad:
            (out.abs() ** 2).sum().backward()
            found += [x.grad for x in leaves]
        results.append(found)
    return results


def agree(call, *arrays, grad=False):
    for ours, theirs in zip(*both(call, *arrays, grad=grad), strict=True):
        a, b = ours.numpy(), theirs.resolve_conj().numpy()
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        single = a.dtype in (np.float32, np.complex64)
        np.testing.assert_allclose(a, b, atol=(1e-5 if single else 1e-11) * max(np.abs(b).max(initial=0), 1), rtol=0)


@pytest.mark.parametrize("name", NAMES)
def test_transforms(name):
    real = name.startswith(("r", "ih"))
    several = name[-1] in "2n"
    calls = [((), {}), ((), {"dim": (0, 2) if several else 0})]
    calls += [(((5, 3),), {}), (((-1, 4), (0, 1), "ortho"), {}), ((None, (2, 0), "forward"), {})] if several else [
        ((5,), {}), ((2, 1, "ortho"), {}), ((9, -1, "forward"), {}), ((None, 0, "backward"), {})]
    for dtype in ("float32", "float64", "complex64", "complex128")[:2 if real else 4]:
        for args, keywords in calls:
            agree(lambda lib, x, args=args, keywords=keywords: getattr(lib.fft, name)(x, *args, **keywords),
                  draw((3, 4, 6), dtype), grad=True)
    for a in (np.arange(12).reshape(3, 4), np.eye(3, 4, dtype=bool), np.arange(4, dtype=np.uint8).reshape(2, 2)):
        agree(lambda lib, x: getattr(lib.fft, name)(x), a)


CALLS = [
    lambda lib, x: lib.fft.fft(x, 0), lambda lib, x: lib.fft.fft(x, -1), lambda lib, x: lib.fft.irfft(x, 0),
    lambda lib, x: lib.fft.irfft(x[:, :1]), lambda lib, x: lib.fft.fft(x[:, :0]), lambda lib, x: lib.fft.fft(x, dim=2),
    lambda lib, x: lib.fft.fft(x, norm="x"), lambda lib, x: lib.fft.fft(x, norm=1), lambda lib, x: lib.fft.rfft(x + 0j),
    lambda lib, x: lib.fft.ihfft(x + 0j), lambda lib, x: lib.fft.rfft2(x + 0j), lambda lib, x: lib.fft.ihfftn(x + 0j),
    lambda lib, x: lib.fft.fft(x[0, 0]), lambda lib, x: lib.fft.fft2(x[0]), lambda lib, x: lib.fft.fft(x.half()),
    lambda lib, x: lib.fft.rfftn(x.bfloat16()), lambda lib, x: lib.fft.fftn(x, (2, 2, 2)), lambda lib, x: lib.fft.fftn(x, dim=(0, 0)),
    lambda lib, x: lib.fft.fftn(x, (2,), (0, 1)), lambda lib, x: lib.fft.rfftn(x, dim=()), lambda lib, x: lib.fft.hfftn(x, dim=()),
    lambda lib, x: lib.fft.fft(x, 2.0), lambda lib, x: lib.fft.fft([1., 2.]), lambda lib, x: lib.fft.fftshift(x[0, 0]),
    lambda lib, x: lib.fft.fftfreq(-1), lambda lib, x: lib.fft.fftfreq(3, dtype=lib.int64),
    lambda lib, x: lib.fft.fftfreq(3, dtype=lib.complex64), lambda lib, x: lib.fft.fftfreq(2.0),
    lambda lib, x: lib.fft.irfft(x, out=x + 0j), lambda lib, x: lib.fft.fft(x, out=x.clone()),
    lambda lib, x: lib.stft(x, 4), lambda lib, x: lib.stft(x.long(), 4, return_complex=True),
    lambda lib, x: lib.stft(x[None], 4, return_complex=True), lambda lib, x: lib.stft(x, 0, return_complex=True),
    lambda lib, x: lib.stft(x, 4, 0, return_complex=True), lambda lib, x: lib.stft(x, 4, 1, 5, return_complex=True),
    lambda lib, x: lib.stft(x, 4, window=x[0], return_complex=True), lambda lib, x: lib.stft(x + 0j, 4, onesided=True),
    lambda lib, x: lib.stft(x, 4, pad_mode="x", return_complex=True), lambda lib, x: lib.stft(x, 20, return_complex=True),
    lambda lib, x: lib.istft(x, 4), lambda lib, x: lib.istft(x + 0j, 12), lambda lib, x: lib.istft((x + 0j)[None, None], 4),
    lambda lib, x: lib.istft((x + 0j)[0], 4), lambda lib, x: lib.istft(x + 0j, 4, window=lib.zeros(4)),
    lambda lib, x: lib.istft(x + 0j, 4, 5, window=lib.ones(4)), lambda lib, x: lib.istft(x + 0j, 4, return_complex=True),
    lambda lib, x: lib.signal.windows.hann(-1), lambda lib, x: lib.signal.windows.hann(3, dtype=lib.int32),
    lambda lib, x: lib.signal.windows.gaussian(3, std=0), lambda lib, x: lib.signal.windows.kaiser(3, beta=-1),
    lambda lib, x: lib.signal.windows.exponential(3, tau=0), lambda lib, x: lib.signal.windows.exponential(3, center=1),
    lambda lib, x: lib.signal.windows.general_cosine(3, a=2), lambda lib, x: lib.signal.windows.general_cosine(3, a=[])]


# What each says: which op, which argument.
SAYS = [
    "fft_fft: the number of data points must be positive, got 0",
    "fft_fft: the number of data points must be positive, got -1",
    "fft_irfft: the number of data points must be positive, got 0",
    "fft_irfft: the number of data points must be positive, got 0",
    "fft_fft: the number of data points must be positive, got 0", "fft_fft: Dimension out of range (expected to be in range of [-2, 1], but got 2) for dim",
    "fft_fft: norm must be 'backward', 'ortho' or 'forward', got 'x'", "fft_fft: norm must be a str or None, got int",
    "fft_rfft: input must be real, got complex64", "fft_ihfft: input must be real, got complex64",
    "fft_rfft2: input must be real, got complex64", "fft_ihfftn: input must be real, got complex64",
    "fft_fft: input must have at least one dimension, got shape []", "fft_fft2: Dimension out of range (expected to be in range of [-1, 0], but got -2) for dim",
    "fft_fft: dtype must be one of float32, float64, got float16",
    "fft_rfftn: dtype must be one of float32, float64, got bfloat16",
    "fft_fftn: s must have at most 2 sizes, as input of shape [3, 6] has",
    "fft_fftn: a dim appears twice in dim=(0, 0)", "fft_fftn: s and dim must have one length, got 1 and 2",
    "fft_rfftn: at least one dim must be transformed, got none",
    "fft_hfftn: at least one dim must be transformed, got none", "fft_fft: n must be int, got float",
    "fft_fft: input must be a Tensor, got list", "fft_fftshift: at least one dim must be shifted, got none",
    "fft_fftfreq: n must not be negative, got -1", "fft_fftfreq: dtype must be a floating-point one, got int64",
    "fft_fftfreq: dtype must be a real floating-point one, got complex64", "fft_fftfreq: n must be int, got float",
    "fft_irfft: out must have a floating-point dtype, got complex64",
    "fft_fft: result dtype complex64 can't be cast to out's dtype float32",
    "stft: return_complex must be given for a real input, and True where",
    "stft: input must have a floating-point or complex dtype, got int64",
    "stft: input must have 1 or 2 dimensions, got shape [1, 3, 6]", "stft: n_fft must be in [1, 6], got 0",
    "stft: hop_length must be positive, got 0", "stft: win_length must be in [1, 4], got 5",
    "stft: window must have shape [4], as win_length says, got [6]",
    "stft: onesided must be False where the window or input is complex,",
    "stft: pad_mode must be one of 'constant', 'reflect', 'replicate',",
    "stft: mode 'reflect' pads at most 5 at dim 2 of shape [1, 3, 6], got",
    "istft: input must be complex, as stft gives it with",
    "istft: input must have 7 frequencies for n_fft=12 and onesided=True,",
    "istft: input must have 2 or 3 dimensions, got shape [1, 1, 3, 6]",
    "istft: input must have 2 or 3 dimensions, got shape [6]",
    "istft: the squares of the windows must add up to more than 1e-11", "istft: hop_length must be in [1, 4], got 5",
    "istft: onesided must be False for return_complex=True, got True", "hann: M must not be negative, got -1",
    "hann: dtype must be float32 or float64, got int32", "gaussian: std must be positive, got 0.0",
    "kaiser: beta must not be negative, got -1.0", "exponential: tau must be positive, got 0.0",
    "exponential: center must be None for a symmetric window, got 1",
    "general_cosine: a must be a sequence of numbers, got int", "general_cosine: a must not be empty"]


@pytest.mark.parametrize(("call", "says"), [*zip(CALLS, SAYS, strict=True)], ids=range(len(CALLS)))
def test_errors(call, says):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)) as theirs:
            call(torch, torch.ones(3, 6))
        with pytest.raises(theirs.type, match="^" + re.escape(says)):
            call(pt, pt.ones(3, 6))


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies_and_shifts(n):
    for d in (1.0, 0.1):
        for name in ("fftfreq", "rfftfreq"):
            np.testing.assert_allclose(getattr(pt.fft, name)(n, d).numpy(), getattr(torch.fft, name)(n, d).numpy(), rtol=1e-6)
    a = np.arange(3 * n).reshape(3, n)
    for name in ("fftshift", "ifftshift"):
        for dim in (None, 0, (1, 0), (0, 0)):
            agree(lambda lib, x, name=name, dim=dim: getattr(lib.fft, name)(x, dim), a)


@pytest.mark.parametrize("keywords", [
    {}, {"hop_length": 3}, {"win_length": 6}, {"center": False}, {"center": False, "win_length": 6, "align_to_window": True},
    {"onesided": False}, {"normalized": True}, {"pad_mode": "constant"}, {"hop_length": 8, "center": False}], ids=str)
def test_short_time(keywords):
    n = keywords.get("win_length", 8)
    window = np.hanning(n + 2)[1:-1]
    for shape in ((21,), (3, 21)):
        for dtype in ("float32", "float64"):
            agree(lambda lib, x, w: lib.stft(x, 8, window=w, return_complex=True, **keywords), draw(shape, dtype),
                  window.astype(dtype), grad=True)
        agree(lambda lib, x, w: lib.stft(x, 8, window=w, **{**keywords, "onesided": False}), draw(shape, "complex128"),
              window, grad=True)


@pytest.mark.parametrize("keywords", [
    {}, {"hop_length": 3}, {"center": False}, {"normalized": True}, {"length": 9}, {"onesided": True},
    {"center": False, "length": 9}], ids=str)
def test_back(keywords):
    window = np.hanning(10)[1:-1]
    for shape in ((5, 4), (2, 5, 4)):
        for dtype in ("complex64", "complex128"):
            agree(lambda lib, x, w: lib.istft(x, 8, window=w, **keywords), draw(shape, dtype),
                  window.astype("float32" if dtype == "complex64" else "float64"), grad=True)
    keywords = {k: v for k, v in keywords.items() if k != "onesided"}
    agree(lambda lib, x, w: lib.istft(x, 8, window=w, return_complex=True, **keywords), draw((2, 8, 4), "complex128"),
          window, grad=True)


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name):
    keywords = {"a": [0.5, 0.3, 0.2]} if name == "general_cosine" else {}
    for M in (0, 1, 2, 7, 16):
        for sym in (True, False):
            ours = getattr(pt.signal.windows, name)(M, sym=sym, dtype=pt.float64, **keywords)
            theirs = getattr(torch.signal.windows, name)(M, sym=sym, dtype=torch.float64, **keywords)
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-12)


def test_the_same_names_and_arguments():
    assert {*torch.fft.__all__, "fftfreq", "rfftfreq"} - {"Tensor"} <= set(dir(pt.fft))
    assert set(torch.signal.windows.__all__) == set(pt.signal.windows.__all__)
    for name in WINDOWS:
        theirs = inspect.signature(getattr(torch.signal.windows, name)).parameters
        assert list(inspect.signature(getattr(pt.signal.windows, name)).parameters) == list(theirs)
    theirs = inspect.signature(torch.stft).parameters
    assert list(inspect.signature(pt.stft).parameters) == list(theirs)
    assert [p.default for p in inspect.signature(pt.stft).parameters.values()] == [p.default for p in theirs.values()]
