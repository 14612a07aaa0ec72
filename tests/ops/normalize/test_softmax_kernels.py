"""softmax, log_softmax and their gradients against SciPy and closed forms in float64."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from _kernel_arrays import EPS, FLOAT, layouts, make, wide
from _kernels import KernelError

SHAPES = [(), (1,), (7,), (3, 10), (5, 200), (200, 5), (4, 33, 70), (2, 3, 4, 5), (0, 3), (3, 0), (2, 20000), (300, 2, 150)]


def near(got, want, dtype):
    scale = 1 + np.abs(want).max(initial=0, where=np.isfinite(want))
    np.testing.assert_allclose(wide(got), want, rtol=EPS[dtype] * 2, atol=EPS[dtype] * 2 * scale)


@pytest.mark.parametrize("dtype", FLOAT)
def test_forward(kernels, dtype):
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        for x in layouts(make(rng, shape, dtype)):
            for dim in range(-x.ndim, x.ndim) or [0]:
                w = wide(x) if x.ndim else wide(x).reshape(1)
                for name, f in (("softmax", softmax), ("log_softmax", log_softmax)):
                    want = f(w, axis=dim).reshape(x.shape) if x.size else w
                    near(kernels(name, [x], [(x.shape, dtype)], [dim]), want, dtype)


@pytest.mark.parametrize("dtype", FLOAT)
def test_backward(kernels, dtype):
    rng = np.random.default_rng(1)
    for shape in SHAPES:
        for x in layouts(make(rng, shape, dtype)):
            g = make(rng, x.shape, dtype)
            for h in [g] + ([g[::-1], np.asfortranarray(g).view(type(g))] if x.ndim else []):
                for dim in range(x.ndim) or [0]:
                    w, v = (wide(a) if x.ndim else wide(a).reshape(1) for a in (x, h))
                    want = (w * (v - (v * w).sum(dim, keepdims=True))).reshape(x.shape)
                    near(kernels("softmax_backward", [h, x], [(x.shape, dtype)], [dim]), want, dtype)
                    want = (v - np.exp(w) * v.sum(dim, keepdims=True)).reshape(x.shape)
                    near(kernels("log_softmax_backward", [h, x], [(x.shape, dtype)], [dim]), want, dtype)


def test_special_values(kernels):
    inf, nan = np.inf, np.nan
    x = np.array([[-inf, 0, 1], [-inf, -inf, -inf], [nan, 0, 1], [inf, 0, 1], [1000, 999, -1000]], np.float32)
    with np.errstate(all="ignore"):
        want = softmax(x.astype(np.float64), axis=1)
        for a, b, dim in ((x, want, 1), (np.ascontiguousarray(x.T), want.T, 0)):
            np.testing.assert_allclose(kernels("softmax", [a], [(a.shape, "float32")], [dim]), b, rtol=1e-6)
            log = kernels("log_softmax", [a], [(a.shape, "float32")], [dim])
            log = log if dim else log.T
            np.testing.assert_allclose(log[4], [-0.31326166, -1.3132616, -2000.3132], rtol=1e-6)
            assert log[0, 0] == -inf and np.isnan(log[1:4]).all()


def test_threads_do_not_change_bits(kernels):
    x = np.random.default_rng(2).normal(size=(300, 700)).astype(np.float32)
    for name in ("softmax", "log_softmax"):
        for dim in (0, 1):
            results = []
            for threads in (1, 2):
                kernels.threads(threads)
                results.append(kernels(name, [x], [(x.shape, "float32")], [dim]).tobytes())
            kernels.threads(1)
            assert results[0] == results[1]


def test_errors(kernels):
    x = np.ones((2, 3))
    with pytest.raises(KernelError, match=r"dim must be in \[-2, 1\], got 3"):
        kernels("softmax", [x], [((2, 3), "float64")], [3])
    with pytest.raises(KernelError, match="not implemented for dtype int64"):
        kernels("softmax", [x.astype(np.int64)], [((2, 3), "int64")], [1])
    for shape in [(2, 2), (1, 3), (3,)]:
        with pytest.raises(KernelError, match="expected input 1 with the output's dtype and shape"):
            kernels("softmax_backward", [x, np.ones(shape)], [((2, 3), "float64")], [1])
