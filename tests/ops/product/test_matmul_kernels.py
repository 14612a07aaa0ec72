"""Matrix products against NumPy in float64/int64, over sizes on both sides of every threshold."""

import ctypes as C
import itertools

import numpy as np
import pytest

from _kernel_arrays import EPS, make, wide
from _kernels import Bfloat16, KernelError, blas_table
from scipy.linalg import cython_blas

DTYPES = ["float32", "float64", "float16", "bfloat16", "complex64", "complex128", "int64", "uint8", "int32"]
SIZES = [(1, 1, 1), (1, 5, 3), (2, 3, 40), (4, 64, 64), (5, 130, 70), (7, 1, 300), (33, 33, 33), (1, 700, 300), (40, 10, 300), (65, 70, 80),
         (3, 5, 0), (0, 5, 3), (6, 200, 600)]


@pytest.fixture
def blas(kernels):
    """The kernels with SciPy's BLAS, whatever the tests before have loaded."""
    with blas_table() as table:
        fill(table)
        yield kernels


def fill(table):
    """Sets the pointers from SciPy's Cython BLAS, as dispatch does."""
    get_name = C.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = C.c_char_p, [C.py_object]
    get_pointer = C.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = C.c_void_p, [C.py_object, C.c_char_p]
    for field in ("sgemm", "dgemm", "cgemm", "zgemm"):
        capsule = cython_blas.__pyx_capi__[field]
        setattr(table, field, get_pointer(capsule, get_name(capsule)))


@pytest.fixture
def settings(blas):
    """The settings made of a BLAS whose number of threads is 3."""
    made, current = [], [3]

    def set_threads(n):
        made.append(n)
        current[0] = n
    functions = C.CFUNCTYPE(C.c_int)(lambda: current[0]), C.CFUNCTYPE(None, C.c_int)(set_threads)
    with blas_table() as table:
        table.get_threads, table.set_threads = (C.cast(f, C.c_void_p).value for f in functions)
        yield made


def matrices(rng, n, m, dtype):
    """An (n, m) matrix in the layouts that BLAS takes as they are and those it does not."""
    yield make(rng, (n, m), dtype)
    yield make(rng, (m, n), dtype).T
    yield make(rng, (n, 2 * m + 1), dtype)[:, 1::2]
    yield make(rng, (n + 1, m + 2), dtype)[1:, ::-1][:, 2:]
    yield make(rng, (m, n + 3), dtype)[:, :n].T
    x = make(rng, (1, m), dtype)
    yield np.lib.stride_tricks.as_strided(x, (n, m), (0, x.itemsize), subok=True)


def expected(a, b, dtype, scale=1):
    a, b = wide(a), wide(b)
    if dtype not in EPS:
        with np.errstate(all="ignore"):
            return (a.astype(np.int64) @ b.astype(np.int64)).astype(dtype)
    return a @ b


def check(got, want, dtype, k):
    assert got.shape == want.shape
    if dtype not in EPS:
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(wide(got), want, rtol=EPS[dtype], atol=EPS[dtype] * (1 + np.sqrt(k)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_mm(blas, dtype):
    rng = np.random.default_rng(0)
    for n, m, k in SIZES:
        for a, b in itertools.product(matrices(rng, n, k, dtype), matrices(rng, k, m, dtype)):
            check(blas("mm", [a, b], [((n, m), dtype)]), expected(a, b, dtype), dtype, k)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bmm(blas, dtype):
    rng = np.random.default_rng(1)
    for batch, n, m, k in [(3, 4, 5, 6), (0, 2, 2, 2), (5, 1, 9, 1), (2, 70, 80, 90), (4, 17, 1, 33)]:
        a, b = make(rng, (batch, n, k), dtype), make(rng, (batch, k, m), dtype)
        swapped = make(rng, (k, batch, n), dtype).transpose(1, 2, 0)
        for x, y in [(a, b), (a[::-1], b), (np.broadcast_to(a[:1], a.shape, subok=True), b), (swapped, b)]:
            check(blas("bmm", [x, y], [((batch, n, m), dtype)]), expected(x, y, dtype), dtype, k)


@pytest.mark.parametrize("dtype", DTYPES)
def test_linear(blas, dtype):
    rng = np.random.default_rng(2)
    for lead, k, m in [((), 7, 3), ((5,), 64, 10), ((2, 3), 40, 130), ((4, 5, 6), 9, 70), ((100,), 200, 150), ((0,), 3, 2)]:
        w, bias = make(rng, (m, k), dtype), make(rng, (m,), dtype)
        x = make(rng, (*lead, k), dtype)
        for y in [x, x[..., ::-1]] + ([x.swapaxes(0, 1)] if len(lead) > 1 else []):
            for weight in (w, make(rng, (k, m), dtype).T):
                product = expected(y, weight.T, dtype)
                shape = (*y.shape[:-1], m)
                check(blas("linear", [y, weight, None], [(shape, dtype)]), product, dtype, k)
                with np.errstate(all="ignore"):
                    want = (product + wide(bias)).astype(product.dtype)
                check(blas("linear", [y, weight, bias], [(shape, dtype)]), want, dtype, k)


@pytest.mark.parametrize("dtype", DTYPES)
def test_addmm(blas, dtype):
    rng = np.random.default_rng(3)
    for n, m, k in [(3, 4, 5), (70, 80, 90), (40, 1, 6)]:
        a, b = make(rng, (n, k), dtype), make(rng, (k, m), dtype)
        for shape in [(n, m), (m,), (1, m), (n, 1), (), (1, 1)]:
            c = make(rng, shape, dtype)
            for beta, alpha in [(1, 1), (2, 3), (0, 1), (1, 0)]:
                with np.errstate(all="ignore"):
                    start = wide(c) if dtype in EPS else c.astype(np.int64)
                    want = beta * start + alpha * expected(a, b, dtype)
                    want = want.astype(dtype) if dtype not in EPS else want
                check(blas("addmm", [c, a, b], [((n, m), dtype)], [beta, alpha]), want, dtype, 9 * k)


@pytest.mark.parametrize("dtype", DTYPES)
def test_mv_dot(blas, dtype):
    rng = np.random.default_rng(4)
    for n, k in [(1, 1), (5, 7), (300, 130), (130, 2000), (3, 0)]:
        v = make(rng, (k,), dtype)
        for a in matrices(rng, n, k, dtype):
            for x in (v, v[::-1]):
                check(blas("mv", [a, x], [((n,), dtype)]), expected(a, x, dtype), dtype, k)
    for n in (0, 1, 5, 1000, 70001):
        x, y = make(rng, (n,), dtype), make(rng, (2 * n,), dtype)[::-2]
        check(blas("dot", [x, y], [((), dtype)]), np.asarray(expected(x, y, dtype)), dtype, n)


def test_beta_zero_never_reads(blas):
    a, b = np.ones((3, 4), np.float32), np.ones((4, 5), np.float32)
    nan = np.full((3, 5), np.nan, np.float32)
    np.testing.assert_array_equal(blas("addmm", [nan, a, b], [((3, 5), "float32")], [0.0, 1.0]), 4)
    big = np.ones((200, 200))
    out = np.full((200, 200), np.nan)
    np.testing.assert_array_equal(blas("mm", [big, big], [out]), 200)


def test_blas_is_asked_for_before_writing(kernels):
    a = np.ones((100, 100))
    out = np.full((100, 100), 7.0)
    with blas_table() as table:
        C.memset(C.byref(table), 0, C.sizeof(table))
        with pytest.raises(KernelError) as error:
            kernels("addmm", [a, a, a], [out], [1.0, 1.0])
    assert error.value.status == "blas"
    assert (out == 7).all()


def test_threads_do_not_change_bits_and_blas_setting_is_restored(blas, settings):
    rng = np.random.default_rng(5)
    cases = [(700, 500, 300), (1, 5000, 700), (16, 3000, 400), (3000, 20, 50), (600, 2000, 64)]
    for n, m, k in cases:
        a, b = rng.normal(size=(n, k)).astype(np.float32), rng.normal(size=(k, m)).astype(np.float32)
        for y in (b, np.asfortranarray(b)):
            results = []
            for threads in (1, 2):
                blas.threads(threads)
                results.append(blas("mm", [a, y], [((n, m), "float32")]))
            blas.threads(1)
            assert results[0].tobytes() == results[1].tobytes()
    assert settings and settings == [1, 3] * (len(settings) // 2)


def test_errors(kernels):
    a = np.ones((2, 3))
    with pytest.raises(KernelError, match=r"runtime: shapes cannot be multiplied \(2x3 and 2x3\)"):
        kernels("mm", [a, a], [((2, 3), "float64")])
    with pytest.raises(KernelError, match="one dtype, got float64 and float32"):
        kernels("mm", [a, a.T.astype(np.float32)], [((2, 2), "float64")])
    assert isinstance(make(np.random.default_rng(0), (2,), "bfloat16"), Bfloat16)


@pytest.mark.parametrize("n", [2, 40, 200])
@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
def test_a_factor_of_zero_leaves_the_product_out(blas, n, dtype):
    """At every size, as in the BLAS, which takes large products."""
    nan, c = np.full((n, n), np.nan, dtype), np.ones((n, n), dtype)
    for beta in (1, 2, 0):
        got = blas("addmm", [c, nan, nan], [((n, n), dtype)], [beta, 0])
        np.testing.assert_array_equal(wide(got), beta)
