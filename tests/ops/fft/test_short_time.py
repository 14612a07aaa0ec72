"""stft and istft: against scipy.signal and sums written out, round trips, derivatives, the checks of arguments.

tests/ops has the generated tests of the rows, tests/ops/_references_fft.py the sums.
"""
import numpy as np
import pytest
import scipy.signal
from _references_fft import _istft, _stft

import ptcore
from ptcore.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.core


def draw(shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype.startswith("complex") else x).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "hop"), [(16, 4), (16, 8), (10, 5)])
def test_as_scipy_signal(dtype, n, hop):
    a = draw((2, 101), dtype)
    window = np.hanning(n + 1)[:-1].astype(dtype)
    got = ptcore.stft(ptcore.from_numpy(a), n, hop, window=ptcore.from_numpy(window), center=False, return_complex=True)
    transform = scipy.signal.ShortTimeFFT(window.astype(float), hop, 1.0, scale_to=None, phase_shift=None)
    whole = transform.stft(a.astype(float), p0=transform.lower_border_end[1], p1=transform.upper_border_begin(101)[1])
    np.testing.assert_allclose(got.numpy(), whole, atol=1e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_against_sums(dtype):
    a = draw((2, 30), dtype)
    tried = 0
    for n_fft, hop, win in ((8, None, None), (9, 2, 5), (6, 7, 6), (30, 1, 30), (1, 1, 1)):
        for with_window in (True, False):
            window = np.linspace(0.5, 1, win or n_fft).astype(dtype[:9] if dtype[0] == "f" else "float32") if with_window else None
            for center, align in ((True, None), (False, None), (False, True), (False, False)):
                for onesided in ((None, True, False) if dtype[0] == "f" else (None, False)):
                    for x in (a, a[0], a[:, ::-1]):
                        given = (n_fft, hop, win, None if window is None else window.astype("float64"), center, "reflect",
                                 bool(tried % 2), onesided, True, align)
                        expected = _stft(x.astype("complex128" if dtype[0] == "c" else "float64"), *given)
                        given = list(given)
                        given[3] = None if window is None else ptcore.from_numpy(window)
                        got = ptcore.stft(ptcore.from_numpy(x), *given).numpy()
                        assert got.shape == expected.shape
                        np.testing.assert_allclose(got, expected, atol=1e-4 if dtype in ("float32", "complex64") else 1e-12)
                        tried += 1
    assert tried > 100


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_modes_of_padding(mode):
    a = draw((2, 20))
    got = ptcore.stft(ptcore.from_numpy(a), 8, window=ptcore.ones(8).double(), pad_mode=mode, return_complex=True)
    np.testing.assert_allclose(got.numpy(), _stft(a, 8, None, None, None, True, mode, False, None, True, None), atol=1e-12)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("onesided", [True, False])
@pytest.mark.parametrize("center", [True, False])
def test_back_and_forth(center, onesided, normalized):
    a = draw((3, 64))
    window = ptcore.hann_window(16, dtype=ptcore.float64) + 0.1
    for x in (a, a[0]):
        x = ptcore.from_numpy(x)
        X = ptcore.stft(x, 16, 4, 16, window, center, normalized=normalized, onesided=onesided, return_complex=True)
        back = X.istft(16, 4, 16, window, center, normalized, onesided)
        np.testing.assert_allclose(back.numpy(), x.numpy(), atol=1e-12)
        longer = ptcore.istft(X, 16, 4, 16, window, center, normalized, onesided, length=50)
        np.testing.assert_allclose(longer.numpy(), x.numpy()[..., :50], atol=1e-12)


def test_back_and_forth_of_complex_numbers():
    x, window = ptcore.from_numpy(draw((40,), "complex128")), ptcore.from_numpy(draw((8,), "complex128"))
    X = ptcore.stft(x, 8, 2, window=window)
    assert X.shape == (8, 21)
    real = window.abs()
    X = ptcore.stft(x, 8, 2, window=real)
    back = ptcore.istft(X, 8, 2, window=real, return_complex=True)
    np.testing.assert_allclose(back.numpy(), x.numpy(), atol=1e-12)
    expected = _istft(X.numpy(), 8, 2, None, window.numpy(), True, False, False, None, True)
    np.testing.assert_allclose(ptcore.istft(X, 8, 2, window=window, return_complex=True).numpy(), expected, atol=1e-10)


def test_pairs_of_reals():
    x, window = ptcore.from_numpy(draw((2, 20))), ptcore.ones(8).double()
    with pytest.warns(UserWarning, match="return_complex=False is deprecated"):
        pairs = ptcore.stft(x, 8, window=window, return_complex=False)
    assert ptcore.equal(ptcore.view_as_complex(pairs), x.stft(8, window=window, return_complex=True))


def test_promotion():
    x, window = ptcore.ones(20), ptcore.ones(8, dtype=ptcore.float64)
    X = ptcore.stft(x, 8, window=window, return_complex=True)
    assert X.dtype is ptcore.complex128
    assert ptcore.istft(X.to(ptcore.complex64), 8, window=window).dtype is ptcore.float64
    assert ptcore.istft(X, 8, window=ptcore.ones(8, dtype=ptcore.int64)).dtype is ptcore.float64
    assert ptcore.istft(X.to(ptcore.complex64), 8, window=ptcore.ones(8)).dtype is ptcore.float32


def test_lengths_of_istft():
    window = ptcore.ones(8).double()
    X = ptcore.stft(ptcore.from_numpy(draw((20,))), 8, window=window, return_complex=True)
    assert ptcore.istft(X, 8, window=window).shape == (20,)
    with pytest.warns(UserWarning, match="shorter than length"):
        long = ptcore.istft(X, 8, window=window, length=40)
    assert long.shape == (40,)
    assert not long[24:].any()
    with pytest.warns(UserWarning, match="no window was given"):
        assert ptcore.istft(X, 8).shape == (20,)


def test_gradients():
    x = ptcore.from_numpy(draw((2, 14))).requires_grad_()
    window = ptcore.from_numpy(draw((6,), seed=3) ** 2 + 0.5).requires_grad_()
    for keywords in ({}, {"center": False}, {"onesided": False, "normalized": True}, {"pad_mode": "constant"}):
        def call(x, window, keywords=keywords):
            return ptcore.stft(x, 8, 3, 6, window, return_complex=True, **keywords)
        assert gradcheck(call, (x, window))
        assert gradgradcheck(call, (x, window))
    z = ptcore.from_numpy(draw((2, 5, 4), "complex128")).requires_grad_()
    whole = ptcore.from_numpy(draw((8,), seed=3) ** 2 + 0.5).requires_grad_()
    for keywords in ({}, {"center": False, "length": 10}, {"normalized": True, "length": 7}):
        def back(z, whole, keywords=keywords):
            return ptcore.istft(z, 8, 3, 8, whole, **keywords)
        assert gradcheck(back, (z, whole))
        assert gradgradcheck(back, (z, whole))
    full = ptcore.from_numpy(draw((8, 4), "complex128")).requires_grad_()
    assert gradcheck(lambda z: ptcore.istft(z, 8, 3, 8, whole.detach(), return_complex=True), (full,))


X, W = ptcore.ones(2, 20), ptcore.ones(8)
Z = ptcore.ones(2, 5, 6, dtype=ptcore.complex64)
FULL = ptcore.ones(2, 8, 6, dtype=ptcore.complex64)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: ptcore.stft(X, 8, window=W), RuntimeError, "return_complex must be given"),
    (lambda: ptcore.stft(X.long(), 8, window=W, return_complex=True), RuntimeError, "floating-point or complex dtype, got int64"),
    (lambda: ptcore.stft(X[None], 8, window=W, return_complex=True), RuntimeError, "1 or 2 dimensions"),
    (lambda: ptcore.stft(X[0, 0], 8, window=W, return_complex=True), RuntimeError, "1 or 2 dimensions"),
    (lambda: ptcore.stft(X, 0, window=W, return_complex=True), RuntimeError, "n_fft must be in \\[1, 20\\], got 0"),
    (lambda: ptcore.stft(X, 21, center=False, return_complex=True), RuntimeError, "n_fft must be in \\[1, 20\\], got 21"),
    (lambda: ptcore.stft(X, 40, return_complex=True), RuntimeError, "reflect"),
    (lambda: ptcore.stft(X, 8, 0, window=W, return_complex=True), RuntimeError, "hop_length must be positive, got 0"),
    (lambda: ptcore.stft(X, 8, win_length=9, return_complex=True), RuntimeError, "win_length must be in \\[1, 8\\], got 9"),
    (lambda: ptcore.stft(X, 8, win_length=0, return_complex=True), RuntimeError, "win_length must be in \\[1, 8\\], got 0"),
    (lambda: ptcore.stft(X, 8, win_length=7, window=W, return_complex=True), RuntimeError, "window must have shape \\[7\\]"),
    (lambda: ptcore.stft(X, 8, window=W[None], return_complex=True), RuntimeError, "window must have shape \\[8\\]"),
    (lambda: ptcore.stft(X, 8, window=[1.] * 8, return_complex=True), TypeError, "window must be a Tensor or None, got list"),
    (lambda: ptcore.stft(X, 8, window=W.to("meta"), return_complex=True), RuntimeError, "window must be on the device of input"),
    (lambda: ptcore.stft(X, 8, window=W, align_to_window=True, return_complex=True), RuntimeError, "align_to_window is for"),
    (lambda: ptcore.stft(X + 0j, 8, window=W, onesided=True), RuntimeError, "onesided must be False"),
    (lambda: ptcore.stft(X, 8, window=W + 0j, onesided=True), RuntimeError, "onesided must be False"),
    (lambda: ptcore.stft(X, 8, window=W, pad_mode="none", return_complex=True), NotImplementedError, "mode must be one of"),
    (lambda: ptcore.stft(X.half(), 8, window=W.half(), return_complex=True), RuntimeError, "dtype must be"),
    (lambda: ptcore.stft(X, 8.0, window=W, return_complex=True), TypeError, "n_fft must be int, got float"),
    (lambda: ptcore.istft(Z.abs(), 8, window=W), RuntimeError, "input must be complex, as stft gives it"),
    (lambda: ptcore.istft(Z[None], 8, window=W), RuntimeError, "2 or 3 dimensions"),
    (lambda: ptcore.istft(Z[0, 0], 8, window=W), IndexError, "2 or 3 dimensions"),
    (lambda: ptcore.istft(Z[:, :, :0], 8, window=W), RuntimeError, "input must not be empty"),
    (lambda: ptcore.istft(Z, 10, window=ptcore.ones(10)), RuntimeError, "6 frequencies for n_fft=10 and onesided=True"),
    (lambda: ptcore.istft(Z, 8, window=W, onesided=False), RuntimeError, "8 frequencies for n_fft=8 and onesided=False"),
    (lambda: ptcore.istft(FULL, 8, window=W, onesided=True), RuntimeError, "5 frequencies"),
    (lambda: ptcore.istft(Z, 8, 0, window=W), RuntimeError, "hop_length must be in \\[1, 8\\], got 0"),
    (lambda: ptcore.istft(Z, 8, 9, window=W), RuntimeError, "hop_length must be in \\[1, 8\\], got 9"),
    (lambda: ptcore.istft(Z, 8, win_length=9, window=W), RuntimeError, "win_length must be in \\[1, 8\\], got 9"),
    (lambda: ptcore.istft(Z, 8, win_length=7, window=W), RuntimeError, "window must have shape \\[7\\]"),
    (lambda: ptcore.istft(Z, 8, window=W, return_complex=True), RuntimeError, "onesided must be False"),
    (lambda: ptcore.istft(FULL, 8, window=W + 0j), RuntimeError, "complex window needs return_complex=True"),
    (lambda: ptcore.istft(Z, 8, window=ptcore.zeros(8)), RuntimeError, "NOLA"),
    (lambda: ptcore.istft(Z, 8, window=ptcore.hann_window(8), center=False), RuntimeError, "NOLA"),
    (lambda: ptcore.istft(Z, 8, window=W, length=0), RuntimeError, "length must be positive"),
    (lambda: ptcore.istft(Z[:, :, :1], 8, window=W), RuntimeError, "length must be positive"),
])
def test_errors(call, error, text):
    with pytest.raises(error, match=f"i?stft: .*{text}"):
        call()
