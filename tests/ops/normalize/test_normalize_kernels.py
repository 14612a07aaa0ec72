"""layer_norm and its derivative against float64 formulas."""

import numpy as np
import pytest

from _kernel_arrays import FLOAT, layouts, make, near, wide
from _kernels import KernelError

SHAPES = [((1,), 1), ((7,), 1), ((5, 10), 1), ((5, 10), 2), ((3, 4, 200), 1), ((3, 4, 50), 2), ((0, 4), 1), ((70, 9000), 1), ((1000, 3), 1)]


def statistics(w, axes):
    mean = w.mean(axes, keepdims=True)
    return mean, 1 / np.sqrt(w.var(axes, keepdims=True) + 1e-2)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy on empty rows
@pytest.mark.parametrize("dtype", FLOAT)
def test_layer_norm(kernels, dtype):
    rng = np.random.default_rng(0)
    stat = "float64" if dtype == "float64" else "float32"
    for shape, ndim in SHAPES:
        if shape[-1] > 1000 and dtype not in ("float32", "bfloat16"):
            continue
        for x in layouts(make(rng, shape, dtype)) if shape[0] < 70 else [make(rng, shape, dtype)]:
            row = x.shape[x.ndim - ndim:]
            axes, rows = tuple(range(x.ndim - ndim, x.ndim)), x.shape[:x.ndim - ndim]
            weight, bias, g = make(rng, row, dtype), make(rng, row, dtype), make(rng, x.shape, dtype)
            w = wide(x)
            mean, rstd = statistics(w, axes)
            hat = (w - mean) * rstd
            for a, b in [(None, None), (weight, None), (None, bias), (weight, bias)]:
                scale = 1.0 if a is None else wide(a)
                want = hat * scale + (0 if b is None else wide(b))
                out, m, r = kernels("layer_norm", [x, a, b], [(x.shape, dtype), (rows, stat), (rows, stat)], [ndim, 1e-2])
                near(out, want, dtype)
                near(m, mean.reshape(rows), stat)
                near(r, rstd.reshape(rows), stat, 20)
            for a in (None, weight):
                gh = wide(g) * (1.0 if a is None else wide(a))
                want = rstd * (gh - gh.mean(axes, keepdims=True) - hat * (gh * hat).mean(axes, keepdims=True))
                lead = tuple(range(x.ndim - ndim))
                gx, gw, gb = kernels("layer_norm_backward", [g, x, m, r, a], [(x.shape, dtype), (row, dtype), (row, dtype)])
                near(gx, want, dtype, 20)
                near(gw, (wide(g) * hat).sum(lead), dtype, 10)
                near(gb, wide(g).sum(lead), dtype, 10)
            root = 1 / np.sqrt((w * w).mean(axes, keepdims=True) + 1e-2)
            hat = w * root
            for a in (None, weight):
                scale = 1.0 if a is None else wide(a)
                out, q = kernels("rms_norm", [x, a], [(x.shape, dtype), (rows, stat)], [ndim, 1e-2])
                near(out, hat * scale, dtype)
                near(q, root.reshape(rows), stat, 20)
                gh = wide(g) * scale
                gx, gw = kernels("rms_norm_backward", [g, x, q, a], [(x.shape, dtype), (row, dtype)])
                near(gx, root * (gh - hat * (gh * hat).mean(axes, keepdims=True)), dtype, 20)
                near(gw, (wide(g) * hat).sum(lead), dtype, 10)
            hat = (w - mean) * rstd
            only_x = kernels("layer_norm_backward", [g, x, m, r, weight], [(x.shape, dtype), None, None])[0]
            gh = wide(g) * wide(weight)
            near(only_x, rstd * (gh - gh.mean(axes, keepdims=True) - hat * (gh * hat).mean(axes, keepdims=True)), dtype, 20)


def test_offset_data(kernels):
    """A large mean must not spoil the variance."""
    x = (1e4 + np.random.default_rng(1).normal(size=(20, 500))).astype(np.float32)
    mean, rstd = statistics(x.astype(np.float64), (1,))
    _, _, r = kernels("layer_norm", [x, None, None], [(x.shape, "float32"), ((20,), "float32"), ((20,), "float32")], [1, 1e-2])
    np.testing.assert_allclose(r, rstd[:, 0], rtol=1e-4)


def test_threads_do_not_change_bits(kernels):
    rng = np.random.default_rng(2)
    x, g, w = (rng.normal(size=s).astype(np.float32) for s in [(3000, 300), (3000, 300), (300,)])
    results = []
    for threads in (1, 2):
        kernels.threads(threads)
        out = kernels("layer_norm", [x, w, w], [(x.shape, "float32"), ((3000,), "float32"), ((3000,), "float32")], [1, 1e-2])
        back = kernels("layer_norm_backward", [g, x, *out[1:], w], [(x.shape, "float32"), ((300,), "float32"), ((300,), "float32")])
        results.append([a.tobytes() for a in out + back])
    kernels.threads(1)
    assert results[0] == results[1]


def test_errors(kernels):
    x = np.ones((2, 3))
    outs = [((2, 3), "float64"), ((2,), "float64"), ((2,), "float64")]
    with pytest.raises(KernelError, match="expected 1 to 2 normalized dimensions, got 3"):
        kernels("layer_norm", [x, None, None], outs, [3, 1e-2])
    with pytest.raises(KernelError, match="expected weight with 3 elements, got 2"):
        kernels("layer_norm", [x, np.ones(2), None], outs, [1, 1e-2])
    with pytest.raises(KernelError, match="not implemented for dtype int64"):
        kernels("layer_norm", [x.astype(np.int64), None, None], outs, [1, 1e-2])
