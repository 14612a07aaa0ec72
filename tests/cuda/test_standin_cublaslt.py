"""The stand-in cuBLASLt: products with epilogues against NumPy, descriptors, what it refuses."""

import ctypes as c
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "host"))

from child import TYPES, child, folder, loaded, pointer, stored

u64 = c.c_uint64
TRANSA, TRANSB, EPILOGUE, BIAS, AUX, AUX_LEAD = 3, 4, 7, 8, 11, 12
BATCH, STRIDE = 5, 6


class Lt:
    def __init__(self):
        self.library = c.CDLL(str(folder() / "libcublasLt_standin.so"))
        self.handle = self.new("cublasLtCreate")
        self.preference = self.new("cublasLtMatmulPreferenceCreate")

    def new(self, function, *args):
        out = c.c_void_p()
        assert getattr(self.library, function)(c.byref(out), *args) == 0
        return out

    def layout(self, name, rows, columns, lead, batch=1, stride=0):
        out = self.new("cublasLtMatrixLayoutCreate", TYPES[name], u64(rows), u64(columns), c.c_int64(lead))
        for attribute, value in ((BATCH, c.c_int(batch)), (STRIDE, c.c_int64(stride))):
            assert not self.library.cublasLtMatrixLayoutSetAttribute(out, attribute, c.byref(value),
                                                                     c.c_size_t(c.sizeof(value)))
        return out

    def matmul(self, compute=68, scale=0, **attributes):
        out = self.new("cublasLtMatmulDescCreate", compute, scale)
        for name, value in attributes.items():
            value = u64(value) if name in ("BIAS", "AUX", "AUX_LEAD") else c.c_int(value)
            assert not self.library.cublasLtMatmulDescSetAttribute(out, globals()[name], c.byref(value),
                                                                   c.c_size_t(c.sizeof(value)))
        return out

    def heuristic(self, matmul, a, b, out, other=None):
        results, found = (c.c_uint64 * 12)(), c.c_int(-1)
        status = self.library.cublasLtMatmulAlgoGetHeuristic(self.handle, matmul, a, b, other or out, out,
                                                             self.preference, 1, results, c.byref(found))
        return status, found.value, results

    def run(self, matmul, a, la, b, lb, out, lo, alpha=1.0, beta=0.0, other=None, scalar="f4"):
        alpha, beta = np.array(alpha, scalar), np.array(beta, scalar)
        status, found, algorithm = self.heuristic(matmul, la, lb, lo)
        assert (status, found) == (0, 1)
        return self.library.cublasLtMatmul(
            self.handle, matmul, pointer(alpha), u64(a), la, u64(b), lb, pointer(beta), u64(other or out), lo,
            u64(out), lo, algorithm, None, c.c_size_t(0), None)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@child
def test_epilogues(cu):
    lt, rng = Lt(), np.random.default_rng(0)
    m, n, k = 5, 4, 6
    for name, tolerance in (("f4", 1e-5), ("f2", 2e-2), ("bf16", 2e-1)):
        a, av = stored(rng.standard_normal((k, m)), name)
        b, bv = stored(rng.standard_normal((k, n)), name)
        bias, biasv = stored(rng.standard_normal((m, 1)), name)
        before, beforev = stored(rng.standard_normal((m, n)), name)
        da, db, dbias, dc = (cu.upload(np.ascontiguousarray(x.T)) for x in (a, b, bias, before))
        out, aux = cu.alloc(before.nbytes), cu.alloc(before.nbytes)
        la, lb, lo = lt.layout(name, k, m, k), lt.layout(name, k, n, k), lt.layout(name, m, n, m)
        plain = 1.5 * av.T @ bv - 0.5 * beforev
        for epilogue, expected in {1: plain, 2: np.maximum(plain, 0), 4: plain + biasv, 32: gelu(plain),
                                   6: np.maximum(plain + biasv, 0), 36: gelu(plain + biasv), 160: gelu(plain),
                                   164: gelu(plain + biasv)}.items():
            matmul = lt.matmul(TRANSA=1, EPILOGUE=epilogue, BIAS=dbias, AUX=aux, AUX_LEAD=m)
            assert lt.run(matmul, da, la, db, lb, out, lo, 1.5, -0.5, other=dc) == 0
            got = loaded(cu.download(out, np.empty_like(before.T)).T, name)
            np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * 4)
            if epilogue >= 160:
                got = loaded(cu.download(aux, np.empty_like(before.T)).T, name)
                np.testing.assert_allclose(got, plain + biasv * (epilogue == 164), rtol=0, atol=tolerance * 4)
    assert cu.launched() == {"cublasLtMatmul": 24}


@child
def test_batches(cu):
    lt, rng = Lt(), np.random.default_rng(0)
    a, b = rng.standard_normal((3, 6, 5)), rng.standard_normal((3, 7, 6))
    expected = b @ a
    da, db, out = cu.upload(a), cu.upload(b), cu.alloc(expected.nbytes)
    la, lb, lo = (lt.layout("f8", *x.shape[:0:-1], x.shape[2], 3, x[0].size) for x in (a, b, expected))
    assert lt.run(lt.matmul(70, 1), da, la, db, lb, out, lo, scalar="f8") == 0
    np.testing.assert_allclose(cu.download(out, np.empty_like(expected)), expected, rtol=1e-12, atol=1e-12)


@child
def test_refusals(cu):
    lt = Lt()
    square = lt.layout("f4", 4, 4, 4)
    for matmul, a, b, out, status in [
            (lt.matmul(EPILOGUE=208), square, square, square, 15),
            (lt.matmul(70), square, square, square, 15),
            (lt.matmul(), lt.layout("f2", 4, 4, 4), square, square, 15),
            (lt.matmul(), lt.layout("f4", 4, 3, 4), square, square, 7),
            (lt.matmul(), lt.layout("f4", 4, 4, 3), square, square, 7),
            (lt.matmul(), lt.layout("f4", 4, 4, 4, 2), square, square, 7),
            (lt.matmul(EPILOGUE=32), *[lt.layout("f8", 4, 4, 4)] * 3, 15)]:
        assert lt.heuristic(matmul, a, b, out)[:2] == (status, 0)
    x = cu.alloc(64)
    assert lt.run(lt.matmul(EPILOGUE=4), x, square, x, square, x, square) == 7      # no bias was given
    value = c.c_int(1)
    assert lt.library.cublasLtMatmulDescSetAttribute(lt.matmul(), 99, c.byref(value), c.c_size_t(4)) == 7
    assert lt.library.cublasLtMatmulDescSetAttribute(lt.matmul(), TRANSA, c.byref(value), c.c_size_t(8)) == 7
    assert lt.library.cublasLtMatmulDescDestroy(square) == 7
    assert lt.library.cublasLtMatrixLayoutDestroy(square) == 0
    assert lt.library.cublasLtGetVersion() == 130000
