"""The stand-in cuBLAS: products of all types and layouts against NumPy, queued on streams, bad arguments refused."""

import ctypes as c
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "host"))

from child import TYPES, child, fill, folder, loaded, pointer, stored, value

TOLERANCE = {"f2": 2e-2, "bf16": 2e-1, "f4": 1e-5, "f8": 1e-13, "c8": 1e-5, "c16": 1e-13}
SCALAR = {"f2": "f4", "bf16": "f4"}
u64 = c.c_uint64


def library():
    blas = c.CDLL(str(folder() / "libcublas_standin.so"))
    handle = c.c_void_p()
    assert blas.cublasCreate_v2(c.byref(handle)) == 0
    return blas, handle


def random(rng, shape, name):
    x = rng.standard_normal(shape)
    return x + 1j * rng.standard_normal(shape) if name[0] == "c" else x


@child
def test_products(cu):
    blas, handle = library()
    rng = np.random.default_rng(0)
    m, n, k = 5, 7, 6
    for name, code in TYPES.items():
        scalar = np.dtype(SCALAR.get(name, name))
        compute = 70 if name in ("f8", "c16") else 68
        for ta in range(3):
            for tb in range(3):
                a, b = random(rng, (k, m) if ta else (m, k), name), random(rng, (n, k) if tb else (k, n), name)
                (a, av), (b, bv) = stored(a, name), stored(b, name)
                lc, fresh = m + 2, (ta + tb) % 2
                full, fullv = stored(random(rng, (lc, n), name), name)
                if fresh:                       # beta is 0: what C holds is never read
                    full[...] = np.nan if name != "bf16" else 0x7fff
                alpha, beta = np.array(1.5, scalar), np.array(0.0 if fresh else -0.5, scalar)
                da, db, dc = cu.upload(a.T), cu.upload(b.T), cu.upload(full.T)
                status = blas.cublasGemmEx(handle, ta, tb, m, n, k, pointer(alpha), u64(da), code, len(a), u64(db),
                                           code, len(b), pointer(beta), u64(dc), code, lc, compute, -1)
                assert status == 0
                got = loaded(cu.download(dc, np.empty_like(full.T)).T, name)
                op = [lambda x: x, lambda x: x.T, lambda x: x.conj().T]
                expected = 1.5 * op[ta](av) @ op[tb](bv) - (0 if fresh else 0.5 * fullv[:m])
                np.testing.assert_allclose(got[:m], expected, rtol=0, atol=TOLERANCE[name] * 4)
                np.testing.assert_array_equal(got[m:], loaded(full, name)[m:])


@child
def test_batches(cu):
    blas, handle = library()
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((4, 6, 5)).astype("f4"), rng.standard_normal((4, 7, 6)).astype("f4")
    expected = (b.astype("f8") @ a).astype("f4")                    # row-major here is the transpose there
    one, zero = np.array(1, "f4"), np.array(0, "f4")
    da, db, dc = cu.upload(a), cu.upload(b), cu.alloc(expected.nbytes)
    i64 = c.c_longlong
    assert blas.cublasGemmStridedBatchedEx(
        handle, 0, 0, 5, 7, 6, pointer(one), u64(da), 0, 5, i64(30), u64(db), 0, 6, i64(42), pointer(zero), u64(dc), 0,
        5, i64(35), 4, 68, -1) == 0
    np.testing.assert_allclose(cu.download(dc, np.empty_like(expected)), expected, rtol=1e-5, atol=1e-5)
    assert blas.cublasSgemmStridedBatched(
        handle, 0, 0, 5, 7, 6, pointer(one), u64(da), 5, i64(0), u64(db), 6, i64(42), pointer(zero), u64(dc), 5,
        i64(35), 4) == 0
    np.testing.assert_allclose(cu.download(dc, np.empty_like(expected)), b @ a[0], rtol=1e-5, atol=1e-5)
    tables = [cu.upload(np.array([base + i * step * 4 for i in range(4)], np.uint64))
              for base, step in ((da, 30), (db, 42), (dc, 35))]
    assert blas.cublasGemmBatchedEx(
        handle, 0, 0, 5, 7, 6, pointer(one), u64(tables[0]), 0, 5, u64(tables[1]), 0, 6, pointer(zero), u64(tables[2]),
        0, 5, 4, 68, -1) == 0
    np.testing.assert_allclose(cu.download(dc, np.empty_like(expected)), expected, rtol=1e-5, atol=1e-5)
    assert cu.launched() == {"cublasGemmStridedBatchedEx": 1, "cublasSgemmStridedBatched": 1, "cublasGemmBatchedEx": 1}


@child
def test_streams_and_faults(cu):
    blas, handle = library()
    stream, one, zero = cu.stream(), np.array(1, "f4"), np.array(0, "f4")
    a, b, out = cu.alloc(4), cu.alloc(4), cu.alloc(4)
    got = c.c_void_p()

    def sgemm(n):
        return blas.cublasSgemm_v2(handle, 0, 0, n, n, n, pointer(one), u64(a), n, u64(b), n, pointer(zero), u64(out),
                                   n)

    assert blas.cublasSetStream_v2(handle, stream) == 0 and blas.cublasGetStream_v2(handle, c.byref(got)) == 0
    assert got.value == stream.value
    fill(cu, a, 3, stream)
    fill(cu, b, 4, stream)
    one[...] = 2
    assert sgemm(1) == 0
    one[...] = 5                                                    # was read at the call
    fill(cu, a, 9, stream)
    cu.cuStreamSynchronize(stream)
    assert value(cu, out) == 24
    assert sgemm(20) == 0
    assert cu.call("cuStreamSynchronize", stream) == 700
    assert "kernel cublasSgemm" in cu.failure(), cu.failure()


@child
def test_arguments_are_checked(cu):
    blas, handle = library()
    one = np.array(1, "f4")
    x = u64(cu.alloc(1024))

    def gemm(m=2, n=3, k=4, ta=0, la=2, lb=4, lc=2, types=(0, 0, 0), compute=68, alpha=one, h=handle, c_=x):
        return blas.cublasGemmEx(h, ta, 0, m, n, k, pointer(alpha) if alpha is not None else None, x, types[0], la, x,
                                 types[1], lb, pointer(one), c_, types[2], lc, compute, -1)

    assert gemm() == 0
    assert gemm(m=0) == 0 and gemm(k=0) == 0
    assert [gemm(m=-1), gemm(la=1), gemm(ta=1), gemm(ta=1, la=4), gemm(lb=3), gemm(lc=1), gemm(ta=3)] == [
        7, 7, 7, 0, 7, 7, 7]
    assert gemm(alpha=None) == 7 and gemm(c_=None) == 7 and gemm(h=None) == 1
    assert [gemm(types=(0, 1, 0)), gemm(types=(1, 1, 1)), gemm(types=(3, 3, 0)), gemm(compute=70), gemm(compute=77),
            gemm(compute=64), gemm(types=(2, 2, 0)), gemm(types=(14, 14, 14), compute=77)] == [
        15, 15, 15, 15, 0, 15, 0, 15]
    number = c.c_int()
    assert blas.cublasSetMathMode(handle, 3) == 0 and blas.cublasGetMathMode(handle, c.byref(number)) == 0
    assert number.value == 3
    assert blas.cublasGetVersion_v2(handle, c.byref(number)) == 0 and number.value == 130000
    assert blas.cublasGetProperty(0, c.byref(number)) == 0 and number.value == 13
    assert blas.cublasSetWorkspace_v2(handle, x, c.c_size_t(1024)) == 0
    cu.sync()
    assert blas.cublasDestroy_v2(handle) == 0 and blas.cublasDestroy_v2(handle) == 1
