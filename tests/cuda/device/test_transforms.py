"""Fourier transforms on the device, by cuFFT, against scipy.fft: layouts, dims, norms, derivatives, plans."""
import itertools

import numpy as np
import pytest
import scipy.fft

import ptcore
from ptcore import cuda
from ptcore.autograd import gradcheck, gradgradcheck
from ptcore.backends.cuda import cufft_plan_cache

F = ptcore.fft
EPS = {"float32": 2e-6, "float64": 1e-14, "complex64": 2e-6, "complex128": 1e-14}
COMPLEX = ("fft", "ifft")
REAL = ("rfft", "ihfft")
BACK = ("irfft", "hfft")
NORMS = (None, "ortho", "forward")


@pytest.fixture(autouse=True)
def first_device():
    cuda.set_device(0)
    yield
    cuda.synchronize()


def draw(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else x).astype(dtype)


def dtypes_of(name):
    return ("float32", "float64") if name in REAL else tuple(EPS)


def near(got, want, dtype):
    assert got.device.type == "cuda"
    got = got.cpu().numpy()
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=0, atol=8 * EPS[dtype] * max(1, np.abs(want).max(initial=0)))


def there(a):
    return ptcore.from_numpy(np.ascontiguousarray(a)).cuda()


def layouts(a):
    """The same values in other orders of memory, and where complex numbers are not aligned."""
    x = there(a)
    yield x
    yield there(a.transpose(2, 0, 1)).permute(1, 2, 0)
    wide = ptcore.zeros(a.shape[0], a.shape[1], 2 * a.shape[2], dtype=x.dtype, device="cuda")
    wide[:, :, ::2] = x
    yield wide[:, :, ::2]
    yield there(a[:, ::-1]).flip(1)
    odd = ptcore.empty(a.size + 1, dtype=x.dtype, device="cuda")[1:].view(a.shape)
    odd.copy_(x)
    yield odd


@pytest.mark.parametrize("name", COMPLEX + REAL + BACK)
def test_dtypes_norms_layouts(name):
    for dtype in dtypes_of(name):
        a = draw((3, 4, 10), dtype)
        for x, dim, norm in itertools.product(layouts(a), (0, 1, -1), NORMS):
            near(getattr(F, name)(x, dim=dim, norm=norm),
                 getattr(scipy.fft, name)(a.astype(np.promote_types(dtype, "float64")), axis=dim, norm=norm), dtype)


@pytest.mark.parametrize("name", COMPLEX + REAL + BACK)
@pytest.mark.parametrize("n", [1, 2, 7, 8, 12, 97])
def test_lengths(name, n):
    for dtype in dtypes_of(name):
        a = draw((2, 9), dtype)
        near(getattr(F, name)(there(a), n=n),
             getattr(scipy.fft, name)(a.astype(np.promote_types(dtype, "float64")), n=n), dtype)


@pytest.mark.parametrize("name", COMPLEX + REAL + BACK)
@pytest.mark.parametrize("dims", [(0, 1), (2, 0), (3, 1), (1, 2, 3), (3, 0, 2), (0, 1, 2, 3), (4, 2, 0, 3),
                                  (1, 0, 4, 3, 2)])
def test_dims(name, dims):
    """Three dims are one plan; more of them, and all before real numbers, several."""
    for dtype in dtypes_of(name)[1::2]:
        a = draw((3, 2, 4, 5, 3), dtype)
        for norm in NORMS:
            near(getattr(F, name + "n")(there(a), dim=dims, norm=norm),
                 getattr(scipy.fft, name + "n")(a, axes=dims, norm=norm), dtype)


@pytest.mark.parametrize("name", BACK)
def test_half_a_spectrum_that_is_none(name):
    """What the other half would contradict: as on the CPU, one dim after the other."""
    a = draw((3, 4, 5), "complex128")
    for dims in ((2,), (1, 2), (0, 2), (0, 1, 2)):
        want = getattr(F, name + "n")(ptcore.from_numpy(a), dim=dims)
        got = getattr(F, name + "n")(there(a), dim=dims).cpu()
        assert got.stride() == want.stride()
        ptcore.testing.assert_close(got, want, rtol=0, atol=1e-12)


def test_the_input_stays():
    for name in COMPLEX + REAL + BACK:
        a = draw((4, 6), dtypes_of(name)[-1])
        x = there(a)
        getattr(F, name)(x)
        np.testing.assert_array_equal(x.cpu().numpy(), a)


def test_out_and_empty():
    x = there(draw((4, 6), "complex64"))
    out = ptcore.empty(6, 4, dtype=ptcore.complex64, device="cuda").t()
    assert F.fft(x, dim=0, out=out) is out
    near(out, scipy.fft.fft(x.cpu().numpy().astype(complex), axis=0), "complex64")
    F.fft(x, out=x)                                     # in place
    assert F.fft(ptcore.empty(0, 4, dtype=ptcore.complex64, device="cuda")).shape == (0, 4)
    assert F.rfft(ptcore.empty(3, 0, 4, device="cuda")).shape == (3, 0, 3)
    with pytest.raises(RuntimeError, match="points"):
        F.fft(ptcore.empty(3, 0, device="cuda"))
    with pytest.raises(RuntimeError, match="float16"):
        F.rfft(ptcore.ones(4, dtype=ptcore.float16, device="cuda"))


@pytest.mark.parametrize("name", COMPLEX + REAL + BACK)
def test_gradients(name):
    x = there(draw((2, 5), dtypes_of(name)[-1])).requires_grad_()

    def f(x):
        return getattr(F, name)(x, norm="ortho")

    assert gradcheck(f, (x,))
    assert gradgradcheck(f, (x,))


def test_convolution_and_short_windows():
    """What users compute by transforms is the CPU's."""
    x, k = draw((2, 50), "float64"), draw((7,), "float64", 1)
    got = F.irfft(F.rfft(there(x), 64) * F.rfft(there(k), 64), 64)[:, :56]
    np.testing.assert_allclose(got.cpu().numpy(), np.stack([np.convolve(row, k) for row in x]), atol=1e-12)
    window = ptcore.hann_window(16, dtype=ptcore.float64)
    kept = ptcore.stft(ptcore.from_numpy(x), 16, window=window, return_complex=True)
    moved = ptcore.stft(there(x), 16, window=window.cuda(), return_complex=True)
    ptcore.testing.assert_close(moved.cpu(), kept, rtol=0, atol=1e-12)
    back = ptcore.istft(moved, 16, window=window.cuda(), length=48)
    ptcore.testing.assert_close(back.cpu(), ptcore.from_numpy(x)[:, :48], rtol=0, atol=1e-12)


# -- plans --------------------------------------------------------------------------------------------------

@pytest.fixture
def cache():
    cufft_plan_cache.clear()
    yield cufft_plan_cache
    cufft_plan_cache.max_size = 1023
    cufft_plan_cache.clear()


def test_plans_are_kept(cache):
    assert (cache.size, cache.max_size) == (0, 1023)
    for _ in range(3):
        F.fft(ptcore.ones(4, 8, dtype=ptcore.complex64, device="cuda"))
    assert cache.size == 1
    F.ifft(ptcore.ones(4, 8, dtype=ptcore.complex64, device="cuda"))        # one plan for both directions
    F.fft(ptcore.ones(2, 2, 8, dtype=ptcore.complex64, device="cuda"))      # as many in a row
    assert cache.size == 1
    F.fft(ptcore.ones(4, 9, dtype=ptcore.complex64, device="cuda"))
    F.fft(ptcore.ones(4, 8, dtype=ptcore.complex128, device="cuda"))
    F.rfft(ptcore.ones(4, 8, device="cuda"))
    assert cache.size == cache[0].size == cache["cuda:0"].size == 4
    cache.clear()
    assert cache.size == 0


def test_fewer_plans(cache):
    def transform(n):
        near(F.fft(ptcore.ones(n, dtype=ptcore.complex64, device="cuda")), scipy.fft.fft(np.ones(n)), "complex64")

    cache.max_size = 2
    for n in (4, 5, 4, 6):
        transform(n)
    assert cache.size == 2
    cache.max_size = 0
    assert cache.size == 0
    transform(4)
    assert cache.size == 0
    for wrong, error in ((-1, ValueError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(error, match="max_size"):
            cache.max_size = wrong
    with pytest.raises(ValueError, match="CUDA device"):
        cache["cpu"]


def test_the_one_not_used_for_longest_goes(cache, driver):
    import ctypes

    from ptcore.cuda.driver import libraries
    library = ctypes.CDLL(libraries.library_path("cufft"))

    def made():
        two = (ctypes.c_int * 2)()
        library.standin_plans(two)
        return tuple(two)

    def transform(n):
        F.fft(ptcore.ones(n, dtype=ptcore.complex64, device="cuda"))

    before, there_are = made()
    cache.max_size = 2
    for n in (4, 5, 4, 6, 4):
        transform(n)
    assert made() == (before + 3, there_are + 2)        # what is given up is destroyed
    transform(5)
    assert made() == (before + 4, there_are + 2)


def test_threads_and_streams(cache, by_threads):
    """One plan, several threads with streams of their own."""
    a = draw((8, 12), "complex128")
    x = there(a)

    def work():
        for _ in range(20):
            y = F.ifft(F.fft(x))
        return F.fft(y)

    for y in by_threads(work):
        np.testing.assert_allclose(y, scipy.fft.fft(a), rtol=0, atol=1e-11)
    assert cache.size == 1


def test_in_a_graph():
    x = there(draw((4, 6), "complex64"))
    F.fft(x)                                            # its plan
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        y = F.fft(x)
    x.copy_(there(draw((4, 6), "complex64", 1)))
    graph.replay()
    near(y, scipy.fft.fft(draw((4, 6), "complex64", 1).astype(complex)), "complex64")


def test_nothing_waits():
    x = ptcore.ones(4, 6, device="cuda")
    F.rfft(x)
    cuda.set_sync_debug_mode("error")
    try:
        F.irfft(F.rfft(x), 6)
    finally:
        cuda.set_sync_debug_mode("default")
