"""Fourier transforms against scipy.fft: dtypes, layouts, lengths, dims, normalisations, out=, errors, derivatives.

tests/ops has the generated tests of the rows; here stands what these do not ask.
"""
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.fft

import ptcore
from ptcore._ops import batching
from ptcore.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.core

F = ptcore.fft
WHOLE, TO_HALF, FROM_HALF = ("fft", "ifft"), ("rfft", "ihfft"), ("irfft", "hfft")
ONE = (*WHOLE, *TO_HALF, *FROM_HALF)
NORMS = (None, "backward", "ortho", "forward")
EPS = {"float32": 2e-6, "float64": 1e-14, "complex64": 2e-6, "complex128": 1e-14}
RESULT = {"float32": "complex64", "float64": "complex128", "complex64": "complex64", "complex128": "complex128"}


def draw(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype.startswith("complex") else x).astype(dtype)


def dtypes_of(name):
    return ("float32", "float64") if name.startswith(("rf", "ih")) else tuple(EPS)


def near(got, expected, dtype):
    got = got.numpy()
    assert got.shape == expected.shape
    scale = np.abs(expected).max() if expected.size else 1
    np.testing.assert_allclose(got, expected, rtol=0, atol=EPS[dtype] * max(scale, 1) * 4)


def layouts(a):
    """The same values in other orders of memory."""
    yield "contiguous", a
    yield "transposed", np.asfortranarray(a)
    yield "reversed", a[::-1, ::-1].copy()[::-1, ::-1]
    wide = np.zeros((a.shape[0], 2 * a.shape[1]), a.dtype)
    wide[:, ::2] = a
    yield "sliced", wide[:, ::2]
    yield "backwards", np.repeat(a, 3, axis=0)[::-3][::-1]


@pytest.mark.parametrize("name", ONE)
def test_dtypes_norms_and_lengths(name):
    for dtype in dtypes_of(name):
        a = draw((3, 10), dtype)
        x = ptcore.from_numpy(a)
        for norm in NORMS:
            for n in (None, 1, 2, 7, 10, 11, 16, 31):
                got = getattr(F, name)(x, n, norm=norm)
                expected = getattr(scipy.fft, name)(a, n, norm=norm)
                near(got, expected, dtype)
                real = RESULT[dtype].replace("complex64", "float32").replace("complex128", "float64")
                assert got.dtype.name == (real if name in FROM_HALF else RESULT[dtype])
                assert got.is_contiguous()


@pytest.mark.parametrize("name", ONE)
def test_layouts_and_dims(name):
    for dtype in dtypes_of(name)[1::2]:
        a = draw((6, 5), dtype)
        for layout, laid in layouts(a):
            np.testing.assert_array_equal(laid, a)
            x = ptcore.from_numpy(laid)
            for dim in (0, 1, -1, -2):
                near(getattr(F, name)(x, dim=dim), getattr(scipy.fft, name)(a, axis=dim), dtype)
                np.testing.assert_array_equal(x.numpy(), a, layout)             # it was read only


def test_views_of_complex_numbers():
    a = draw((4, 6), "complex128")
    x = ptcore.from_numpy(a)
    near(F.fft(x.real), scipy.fft.fft(a.real), "float64")
    near(F.rfft(x.imag, dim=0), scipy.fft.rfft(a.imag, axis=0), "float64")
    near(F.ifft(x.conj()), scipy.fft.ifft(a.conj()), "complex128")
    near(F.fft(x[1:, 2:].expand(2, 3, 4)), np.broadcast_to(scipy.fft.fft(a[1:, 2:]), (2, 3, 4)), "complex128")
    near(F.fft(ptcore.arange(8.).double().unfold(0, 4, 1)),
         scipy.fft.fft(np.lib.stride_tricks.sliding_window_view(np.arange(8.), 4)), "float64")


@pytest.mark.parametrize("name", [n + m for n in ONE for m in "2n"])
def test_several_dims(name):
    reference = getattr(scipy.fft, name)
    for dtype in dtypes_of(name):
        a = draw((3, 4, 5), dtype)
        x = ptcore.from_numpy(a)
        for norm in NORMS:
            near(getattr(F, name)(x, norm=norm), reference(a, norm=norm), dtype)
            for s, dim in ((None, (0, 1)), (None, (2, 0)), ((2, 9), (1, -1)), ((4, 3), (0, 2)), ((6, 6), (-1, -2))):
                near(getattr(F, name)(x, s, dim, norm), reference(a, s, dim, norm), dtype)
        if name.endswith("n"):
            near(getattr(F, name)(x, s=(2, 3)), reference(a, s=(2, 3)), dtype)
            near(getattr(F, name)(x, dim=1), reference(a, axes=1), dtype)
            near(getattr(F, name)(x, s=4), reference(a, s=(4,)), dtype)
            near(getattr(F, name)(x, dim=(1, 0, 2)), reference(a, axes=(1, 0, 2)), dtype)
        full = getattr(F, name)(x, dim=(0, 2))
        assert ptcore.equal(getattr(F, name)(x, (-1, -1), (0, 2)), full)
        assert ptcore.equal(getattr(F, name)(x, axis=(0, 2)), full)


def test_no_dims():
    x = ptcore.ones(2, 3)
    for f in (F.fftn, F.ifftn):
        for args in ({"dim": ()}, {"s": ()}, {"s": (), "dim": ()}):
            assert ptcore.equal(f(x, **args), x.to(ptcore.complex64))
        z = x.to(ptcore.complex64)
        assert f(z, dim=()).data_ptr() != z.data_ptr()
        assert f(ptcore.tensor(2.)).item() == 2
    for f in (F.rfftn, F.irfftn, F.hfftn, F.ihfftn):
        with pytest.raises(RuntimeError, match="at least one dim must be transformed"):
            f(x, dim=())


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"])
def test_integers_become_the_default_dtype(dtype):
    a = np.arange(6).reshape(2, 3).astype(dtype)
    x = ptcore.from_numpy(a)
    for name in (*ONE, "fft2", "rfftn", "irfftn"):
        for default in ("float32", "float64"):
            ptcore.set_default_dtype(getattr(ptcore, default))
            got = getattr(F, name)(x)
            near(got, getattr(scipy.fft, name)(a.astype(default)), default)
            assert got.dtype.itemsize == (4 if default == "float32" else 8) * (1 if got.dtype.is_floating_point else 2)


def test_half_types_are_refused():
    for dtype in (ptcore.float16, ptcore.bfloat16):
        for name in (*ONE, "fftn", "rfft2", "hfftn"):
            with pytest.raises(RuntimeError, match=f"fft_{name}: dtype must be"):
                getattr(F, name)(ptcore.ones(4, dtype=dtype).expand(2, 4))
    ptcore.set_default_dtype(ptcore.float16)
    for name in ("fft", "irfft"):
        with pytest.raises(RuntimeError, match="dtype must be"):
            getattr(F, name)(ptcore.tensor([1, 2, 3]))


def test_batches_without_elements():
    for name in ONE:
        got = getattr(F, name)(ptcore.ones(0, 6))
        assert got.shape == (0, *getattr(scipy.fft, name)(np.ones((1, 6))).shape[1:])
    assert F.fft(ptcore.ones(3, 0), n=4).tolist() == [[0] * 4] * 3
    x = ptcore.ones(0, 4, requires_grad=True)
    F.rfft(x).abs().sum().backward()
    assert x.grad.shape == (0, 4)


def test_nan_and_infinities():
    a = np.array([[1, np.nan, 3, 4.], [1, 2, 3, 4], [np.inf, 0, 0, 0]])
    with np.errstate(invalid="ignore"):
        expected = scipy.fft.rfft(a)
    got = F.rfft(ptcore.from_numpy(a)).numpy()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    np.testing.assert_allclose(got[1], expected[1])


@pytest.mark.parametrize("n", [1 << 15, 3 * 5 * 7 * 11 * 13, 20011], ids=["two", "small primes", "prime"])
def test_long(n):
    a = draw((n,), "complex128")
    near(F.fft(ptcore.from_numpy(a)), scipy.fft.fft(a), "complex128")
    near(F.irfft(F.rfft(ptcore.from_numpy(a.real.copy())), n), a.real, "float64")


def test_threads_change_nothing():
    x, before = ptcore.from_numpy(draw((64, 600), "float32")), ptcore.get_num_threads()
    try:
        ptcore.set_num_threads(1)
        one = F.rfft2(x)
        ptcore.set_num_threads(2)
        assert ptcore.equal(F.rfft2(x), one)
    finally:
        ptcore.set_num_threads(before)


# -- arguments ----------------------------------------------------------------------------------------

@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda x: F.fft(x, 0), RuntimeError, "fft_fft: the number of data points must be positive, got 0"),
    (lambda x: F.fft(x, -1), RuntimeError, "positive, got -1"),
    (lambda x: F.irfft(x, 0), RuntimeError, "fft_irfft: the number of data points must be positive, got 0"),
    (lambda x: F.irfft(x[:, :1]), RuntimeError, "positive, got 0"),
    (lambda x: F.fft(x[:, :0]), RuntimeError, "fft_fft: the number of data points must be positive, got 0"),
    (lambda x: F.rfft(x[:, :0]), RuntimeError, "fft_rfft: the number of data points must be positive, got 0"),
    (lambda x: F.fftn(x[:, :0]), RuntimeError, "fft_fftn: the number of data points must be positive, got 0"),
    (lambda x: F.fftn(x, s=(3, 0)), RuntimeError, "positive, got 0"),
    (lambda x: F.fftn(x, s=(3, -2)), RuntimeError, "positive, got -2"),
    (lambda x: F.irfft2(x[:, :1]), RuntimeError, "fft_irfft2: the number of data points must be positive, got 0"),
    (lambda x: F.fft(x, norm="none"), RuntimeError, "fft_fft: norm must be 'backward', 'ortho' or 'forward', got 'none'"),
    (lambda x: F.rfftn(x, norm=1), TypeError, "fft_rfftn: norm must be a str or None, got int"),
    (lambda x: F.fft(x, 2.0), TypeError, "fft_fft: n must be int, got float"),
    (lambda x: F.fft(x, dim=2), IndexError, "Dimension out of range"),
    (lambda x: F.fft(x, 3, dim=2), IndexError, "fft_fft: Dimension out of range"),
    (lambda x: F.fft(ptcore.tensor(1.)), IndexError, "fft_fft: .*got shape \\[\\]"),
    (lambda x: F.irfft(ptcore.tensor(1.)), IndexError, "fft_irfft: .* shape \\[\\]"),
    (lambda x: F.fft2(x[0]), IndexError, "fft_fft2: Dimension out of range"),
    (lambda x: F.fftn(x, dim=(0, 0)), RuntimeError, "fft_fftn: a dim appears twice in dim=\\(0, 0\\)"),
    (lambda x: F.fftn(x, dim=(1, -1)), RuntimeError, "appears twice"),
    (lambda x: F.fftn(x, s=(2,), dim=(0, 1)), RuntimeError, "s and dim must have one length, got 1 and 2"),
    (lambda x: F.fftn(x, s=(2, 2, 2)), RuntimeError, "s must have at most 2 sizes"),
    (lambda x: F.fft2(x, s=2.0), TypeError, "s must be int or a sequence of ints, got float"),
    (lambda x: F.rfft(x + 0j), RuntimeError, "fft_rfft: input must be real, got complex64"),
    (lambda x: F.ihfft(x + 0j), RuntimeError, "fft_ihfft: input must be real, got complex64"),
    (lambda x: F.rfft2(x + 0j), RuntimeError, "fft_rfft2: input must be real, got complex64"),
    (lambda x: F.ihfftn(x + 0j), RuntimeError, "fft_ihfftn: input must be real, got complex64"),
    (lambda x: F.fft([1., 2.]), TypeError, "fft_fft: input must be a Tensor, got list"),
    (lambda x: F.fftshift(ptcore.tensor(1.)), RuntimeError, "at least one dim"),
    (lambda x: F.fftshift(x, ()), RuntimeError, "at least one dim"),
    (lambda x: F.fftshift(x, 2), IndexError, "fft_fftshift: Dimension out of range"),
    (lambda x: F.irfft(x, out=ptcore.empty(3, 10, dtype=ptcore.complex64)), RuntimeError, "floating-point dtype"),
    (lambda x: F.fft(x, out=ptcore.empty(3, 6)), RuntimeError, "complex64"),
])
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(ptcore.ones(3, 6))


@pytest.mark.parametrize("name", [*ONE, "fft2", "rfftn", "irfftn", "hfft2"])
def test_out(name):
    x = ptcore.from_numpy(draw((4, 6), "float64"))
    expected = getattr(F, name)(x)
    out = ptcore.empty_like(expected)
    assert getattr(F, name)(x, out=out) is out
    assert ptcore.equal(out, expected)
    turned = ptcore.empty(*expected.shape[::-1], dtype=expected.dtype).t()
    assert getattr(F, name)(x, out=turned) is turned
    assert ptcore.equal(turned, expected)
    x.requires_grad_()
    with pytest.raises(RuntimeError, match="out"):
        getattr(F, name)(x, out=out)


def test_out_over_the_input():
    z = ptcore.from_numpy(draw((8,), "complex128"))
    expected = F.fft(z)
    F.fft(z, out=z)
    assert ptcore.equal(z, expected)


def test_meta():
    x = ptcore.empty(3, 8, device="meta")
    for name in (*ONE, *[n + m for n in ONE for m in "2n"]):
        got, real = getattr(F, name)(x), getattr(F, name)(ptcore.ones(3, 8))
        assert (got.shape, got.dtype, got.device.type) == (real.shape, real.dtype, "meta")
    with pytest.raises(RuntimeError, match="positive"):
        F.fft(x[:, :0])
    z = ptcore.stft(x, 4, return_complex=True)
    assert z.shape == ptcore.stft(ptcore.ones(3, 8), 4, return_complex=True).shape
    assert ptcore.istft(z, 4, window=ptcore.ones(4, device="meta")).shape == (3, 8)


# -- derivatives ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", [*ONE, *[n + m for n in ONE for m in "2n"]])
def test_gradients(name):
    several = name[-1] in "2n"
    for dtype in dtypes_of(name)[1::2]:
        x = ptcore.from_numpy(draw((3, 4), dtype)).requires_grad_()
        for norm in ("backward", "ortho", "forward"):
            calls = [{}, {"dim": 0}] if not several else [{}, {"dim": (1, 0)}]
            calls += [{"s": (5, 3)}, {"s": (2, 7), "dim": (-1, 0)}] if several else [{"n": 3}, {"n": 7, "dim": 0}]
            for keywords in calls:
                def call(x, keywords=keywords, norm=norm):
                    return getattr(F, name)(x, **keywords, norm=norm)
                assert gradcheck(call, (x,))
                assert gradgradcheck(call, (x,))


def test_the_gradient_of_half_a_spectrum_in_numbers():
    """The sum of squares of a spectrum is n times that of the signal (Parseval)."""
    for n in (1, 2, 5, 6):
        x = ptcore.from_numpy(draw((n,), "float64")).requires_grad_()
        (F.fft(x).abs() ** 2).sum().backward()
        near(x.grad, 2 * n * x.detach().numpy(), "float64")
        X = F.rfft(x.detach()).requires_grad_()
        (F.irfft(X, n) ** 2).sum().backward()
        twice = np.full(n // 2 + 1, 2.0)
        twice[0] = 1
        if n % 2 == 0:
            twice[-1] = 1
        near(X.grad, 2 / n * twice * X.detach().numpy(), "complex128")


def test_names_of_nodes():
    x = ptcore.ones(4, requires_grad=True)
    z = (x + 0j).detach().requires_grad_()
    assert F.fft(x).grad_fn.name() == F.rfft(x).grad_fn.name() == "FftR2CBackward0"
    assert F.fft(z).grad_fn.name() == "FftC2CBackward0"
    assert F.irfft(z).grad_fn.name() == F.hfft(z).grad_fn.name() == "FftC2RBackward0"


@pytest.mark.parametrize(("op", "dtype", "args"), [
    ("_fft_c2c", "complex128", ((1, 0), 1, False)), ("_fft_r2c", "float64", ((-1,), 0, True, True)),
    ("_fft_c2r", "complex128", ((0, 1), 2, 6, False))])
def test_batches(op, dtype, args):
    a = draw((5, 3, 4), dtype)
    got = batching.call(op, (batching.Batched(ptcore.from_numpy(a)), *args)).tensor
    loop = ptcore.stack([getattr(ptcore._ops.functions, op)(ptcore.from_numpy(one), *args) for one in a])
    near(got, loop.numpy(), dtype)


# -- frequencies, shifts --------------------------------------------------------------------------------

@pytest.mark.parametrize("n", range(9))
def test_frequencies(n):
    for d in (1.0, 0.25, -2.0):
        for dtype in ("float32", "float64"):
            own = getattr(ptcore, dtype)
            if n:
                np.testing.assert_allclose(F.fftfreq(n, d, dtype=own).numpy(), scipy.fft.fftfreq(n, d), rtol=EPS[dtype])
                np.testing.assert_allclose(F.rfftfreq(n, d, dtype=own).numpy(), scipy.fft.rfftfreq(n, d), rtol=EPS[dtype])
    assert F.fftfreq(n).dtype is ptcore.float32
    assert F.fftfreq(n).shape == (n,)
    assert F.rfftfreq(n).shape == (n // 2 + 1,)
    assert F.fftfreq(n, requires_grad=True).requires_grad
    out = ptcore.empty(0, dtype=ptcore.float64)
    assert F.fftfreq(n, out=out) is out
    assert out.shape == (n,)


def test_frequencies_refused():
    with pytest.raises(RuntimeError, match="n must not be negative, got -1"):
        F.fftfreq(-1)
    with pytest.raises(RuntimeError, match="floating-point"):
        F.fftfreq(4, dtype=ptcore.int64)
    with pytest.raises(NotImplementedError, match="real floating-point"):
        F.rfftfreq(4, dtype=ptcore.complex64)
    with pytest.raises(TypeError, match="n must be int, got float"):
        F.fftfreq(4.0)
    assert F.fftfreq(3, 0.0).tolist()[1:] == [float("inf"), float("-inf")]
    assert F.fftfreq(4, dtype=ptcore.float16).dtype is ptcore.float16


@pytest.mark.parametrize("shape", [(5,), (4,), (3, 4), (2, 3, 5)])
def test_shifts(shape):
    a = np.arange(np.prod(shape)).reshape(shape)
    for dim in (None, 0, -1, (0, -1) if len(shape) > 1 else (0,)):
        x = ptcore.from_numpy(a)
        np.testing.assert_array_equal(F.fftshift(x, dim).numpy(), np.fft.fftshift(a, dim))
        np.testing.assert_array_equal(F.ifftshift(x, dim).numpy(), np.fft.ifftshift(a, dim))
        assert ptcore.equal(F.ifftshift(F.fftshift(x, dim), dim), x)
    np.testing.assert_array_equal(F.fftshift(ptcore.from_numpy(a), axis=0).numpy(), np.fft.fftshift(a, 0))


# -- the library ------------------------------------------------------------------------------------------

def test_memory_is_not_exported():
    x = ptcore.ones(8)
    F.fft(x)
    x.resize_(1000)                     # refused with BufferError if an array had its address
    assert x.shape == (1000,)


def test_transforms_of_several_threads():
    a = draw((40, 501), "complex128")
    expected, wrong = scipy.fft.fft(a), []

    def work():
        for _ in range(20):
            x = ptcore.from_numpy(a.copy())
            y = F.fft(x)
            x.resize_(1)
            if not np.allclose(y.numpy(), expected):
                wrong.append(y)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


WITHOUT = """
import sys
if {hidden}:
    import scipy.fft
    for name in ("_duccfft.pyduccfft", "_pocketfft.pypocketfft"):       # an import of one of them fails
        sys.modules["scipy.fft." + name] = None
import numpy as np, scipy.fft
import ptcore
assert not [m for m in sys.modules if m.startswith("ptcore._ops.fft")]
rng = np.random.default_rng(0)
a, z = rng.normal(size=(3, 4, 6)), rng.normal(size=(3, 4, 6)) + 1j * rng.normal(size=(3, 4, 6))
for name in ("fft", "ifft", "rfft", "ihfft", "irfft", "hfft"):
    for data in (a,) if name in ("rfft", "ihfft") else (a, z):
        for norm in ("backward", "ortho", "forward"):
            for n in (None, 5, 8):
                got = getattr(ptcore.fft, name)(ptcore.from_numpy(data), n, 1, norm).numpy()
                np.testing.assert_allclose(got, getattr(scipy.fft, name)(data, n, 1, norm), atol=1e-12)
            got = getattr(ptcore.fft, name + "n")(ptcore.from_numpy(data), (4, 7), (2, 0), norm).numpy()
            np.testing.assert_allclose(got, getattr(scipy.fft, name + "n")(data, (4, 7), (2, 0), norm), atol=1e-12)
from ptcore._ops.fft import pocketfft
print(pocketfft.by_extension())
"""


@pytest.mark.parametrize("hidden", [False, True], ids=["extension", "public functions"])
@pytest.mark.outer
def test_with_and_without_the_extension_module(hidden):
    """Where SciPy keeps its functions elsewhere, the public ones give the same."""
    done = subprocess.run([sys.executable, "-P", "-c", WITHOUT.format(hidden=hidden)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(not hidden)


def test_import_is_lazy():
    script = "import sys, ptcore; print('scipy' in sys.modules, 'ptcore.fft' in sys.modules); ptcore.fft.fft(ptcore.ones(2))"
    done = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
