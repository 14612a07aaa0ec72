"""Sets, counts in bins, slopes, coordinates and Python functions of elements: what the generated tests leave out."""
import numpy as np
import pytest

import ptcore as pt

pytestmark = pytest.mark.core


def rows(seed=0):
    return np.random.default_rng(seed).normal(size=(50, 2))


def test_histogramdd():
    a = rows()
    weights = np.abs(rows(1))[:, 0]
    for bins, low_high, density, weight in (([3, 2], None, False, None), ([4, 3], (-1, 2, -1, 1.5), True, None),
                                            ([np.linspace(-2, 2, 5), np.array([-1, 0, 0.5])], None, False, weights)):
        given = [pt.from_numpy(b) if isinstance(b, np.ndarray) else b for b in bins]
        got = pt.histogramdd(pt.from_numpy(a), given, range=low_high, density=density,
                             weight=None if weight is None else pt.from_numpy(weight))
        limits = None if low_high is None else np.reshape(low_high, (-1, 2))
        want, edges = np.histogramdd(a, bins, limits, density, weight)
        np.testing.assert_allclose(got.hist.numpy(), want, rtol=1e-12)
        for mine, theirs in zip(got.bin_edges, edges, strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-12)
    assert pt.histogramdd(pt.from_numpy(a), 3).hist.shape == (3, 3)


def test_histogram_of_weights_and_edges():
    a, w = rows().reshape(-1), np.abs(rows(1)).reshape(-1)
    edges = np.array([-1.0, -0.25, 0.0, 2.0])
    got = pt.histogram(pt.from_numpy(a), pt.from_numpy(edges), weight=pt.from_numpy(w))
    np.testing.assert_allclose(got.hist.numpy(), np.histogram(a, edges, weights=w)[0], rtol=1e-12)
    assert pt.histogram(pt.zeros(0), 3).hist.tolist() == [0, 0, 0]
    assert pt.histogram(pt.ones(2), 2).bin_edges.tolist() == [0.5, 1, 1.5]


@pytest.mark.parametrize(("call", "text"), [
    (lambda: pt.histogram(pt.ones(2, dtype=pt.int64), 2), "histogram: input must be float32 or"),
    (lambda: pt.histogram(pt.ones(2), 0), "histogram: bins must be positive, got 0"),
    (lambda: pt.histogram(pt.ones(2), pt.ones(2, 2)), "histogram: bins must be a number or a vector of edges"),
    (lambda: pt.histogram(pt.ones(2), 2, range=(1, 0)), "histogram: range must be finite and rise, got 1.0 and 0.0"),
    (lambda: pt.histogram(pt.ones(2), 2, weight=pt.ones(3)), r"histogram: weight must have shape \[2\]"),
    (lambda: pt.histogramdd(pt.ones(2), [2]), "histogramdd: input must have at least 2 dimensions"),
    (lambda: pt.histogramdd(pt.ones(2, 2), [2]), "histogramdd: bins must have one entry for each of 2 coordinates"),
    (lambda: pt.gradient(pt.ones(2, 1)), "gradient: each dim must have more than 1 elements"),
    (lambda: pt.gradient(pt.ones(3), edge_order=3), "gradient: edge_order must be 1 or 2, got 3"),
    (lambda: pt.gradient(pt.ones(3), spacing=[1, 2]), "gradient: spacing must have one entry for each of 1"),
    (lambda: pt.isin(pt.ones(2, dtype=pt.complex64), pt.ones(2)), "isin: elements must be integer or real"),
    (lambda: pt.mvlgamma(pt.ones(2), 0), "mvlgamma: p must be positive, got 0"),
    (lambda: pt.Tensor.resize_as_(pt.ones(2), 3), "resize_as_: the_template must be a Tensor, got int"),
    (lambda: pt.ones(2).map_(pt.arange(2), max), "map_: the other arguments must be Tensors of dtype float32, got int64"),
    (lambda: pt.ones(2).requires_grad_().apply_(abs), "apply_: a Python function has no derivative"),
    (lambda: pt.ones(2).apply_(3), "apply_: callable must be callable, got int"),
    (lambda: pt.logspace(0, 1, -1), "logspace: steps must be non-negative, got -1"),
    (lambda: pt.range(0, 1, -1), "range: the way from 0 to 1 must have the sign of step"),
    (lambda: pt.empty_permuted((2, 3), (0, 0)), "empty_permuted: physical_layout must have each dim of size once"),
    (lambda: pt.binomial(pt.ones(1), pt.full((1,), 1.5)), r"binomial: prob must be in \[0, 1\]"),
    (lambda: pt.kl_div(pt.ones(1), pt.ones(1), 3), "kl_div: reduction must be 0"),
    (lambda: pt.special.entr(pt.ones(1, dtype=pt.complex64)), "special.entr: dtype must be one of .*, got complex64"),
], ids=range(22))
def test_errors(call, text):
    with pytest.raises((RuntimeError, TypeError, ValueError), match=text):
        call()


def test_slopes_between_coordinates():
    x, y = np.array([0.0, 1.0, 1.5, 3.5]), np.array([-1.0, 0.0, 3.0])
    a = np.random.default_rng(0).normal(size=(4, 3))
    for order in (1, 2):
        got = pt.gradient(pt.from_numpy(a), spacing=[pt.from_numpy(x), pt.from_numpy(y)], edge_order=order)
        for mine, theirs in zip(got, np.gradient(a, x, y, edge_order=order), strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-12)


def test_slopes_of_narrow_values_between_wide_coordinates():
    """Differences are taken in the dtype of the result."""
    rng = np.random.default_rng(1)
    x, a = rng.normal(size=1000), rng.uniform(-9, 9, 1000).astype("float32")
    got = pt.gradient(pt.from_numpy(a), spacing=[pt.from_numpy(x)])[0]
    assert got.dtype == pt.float64
    np.testing.assert_allclose(got.numpy(), np.gradient(a.astype("float64"), x), rtol=1e-9)
    whole = pt.gradient(pt.from_numpy(np.arange(9) ** 2 + 2**40), spacing=[pt.arange(9.0)])[0]
    np.testing.assert_allclose(whole.numpy(), np.gradient(np.arange(9.0) ** 2))


def test_python_functions_of_elements():
    x = pt.arange(6.0).reshape(2, 3)
    assert x.clone().apply_(lambda v: v * v).tolist() == (x * x).tolist()
    assert x.clone().map_(x + 1, lambda a, b: a * b).tolist() == (x * (x + 1)).tolist()
    assert x.t().clone().map2_(x.t(), x.t(), lambda a, b, c: a + b - c).tolist() == x.t().tolist()


def test_small_creation_functions():
    np.testing.assert_allclose(pt.logspace(-1, 1, 5, 2.0, dtype=pt.float64).numpy(), np.logspace(-1, 1, 5, base=2))
    assert pt.logspace(0, 3, 4, dtype=pt.int64).tolist() == [1, 10, 100, 1000]
    out = pt.empty(0)
    assert pt.logspace(0, 1, 2, out=out) is out
    assert pt.range(0, 1, 0.25).tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert pt.range(3, 0, -1, dtype=pt.int64).tolist() == [3, 2, 1, 0]
    assert pt.scalar_tensor(3, dtype=pt.int64).dtype is pt.int64
    assert pt.empty_permuted((2, 3, 4), (2, 0, 1)).stride() == (3, 1, 6)
    assert pt.ones(2, dtype=pt.float64).new_empty_strided((2, 3), (1, 2)).stride() == (1, 2)
    assert pt.empty(0).resize_as_(pt.ones(2, 3)).shape == (2, 3)


def test_draws():
    generator = pt.Generator().manual_seed(3)
    count, prob = pt.full((20000,), 600.0), pt.full((), 0.25)
    drawn = pt.binomial(count, prob, generator)
    assert abs(float(drawn.mean()) - 150) < 0.5
    assert abs(float(drawn.var()) - 112.5) < 5
    assert pt.binomial(pt.tensor([0.0, 7.0]), pt.tensor([0.5, 1.0])).tolist() == [0, 7]
    x = pt.tensor([0.0, 1.0])
    assert x.bernoulli().tolist() == [0, 1]
    assert x.bernoulli(1.0).tolist() == [1, 1]


def test_low_rank():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 12)) + 5
    for x in (a, a.T):
        U, S, V = (r.numpy() for r in pt.svd_lowrank(pt.from_numpy(x.copy()), 5))
        np.testing.assert_allclose(U * S @ V.T, x, atol=1e-8)
        np.testing.assert_allclose(S, np.linalg.svd(x)[1][:5], atol=1e-8)
    S = pt.pca_lowrank(pt.from_numpy(a), 4)[1].numpy()
    np.testing.assert_allclose(S, np.linalg.svd(a - a.mean(0))[1][:4], atol=1e-8)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8", "int16"])
@pytest.mark.parametrize("n", [0, 1, 8, 9, 300])
def test_isin_by_numpy(dtype, n):
    """Few tests are compared one by one, more are searched; NaN is among nothing, and -0 equals 0."""
    rng = np.random.default_rng(n)
    x, tests = rng.integers(0, 40, (6, 7)).astype(dtype), rng.integers(0, 60, n).astype(dtype)
    if dtype.startswith("float"):
        x[0, 0], x[1, 1] = np.nan, -0.0
        if n > 1:
            tests[0], tests[1] = np.nan, 0.0
    for t in (pt.from_numpy(x), pt.from_numpy(x).T, pt.from_numpy(x)[::2, ::-1]):
        for invert in (False, True):
            want = np.isin(t.numpy(), tests, invert=invert)
            np.testing.assert_array_equal(pt.isin(t, pt.from_numpy(tests), invert=invert).numpy(), want)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "bool"])
def test_nansum_by_numpy(dtype):
    """Rows, columns, strides and whole tensors, with lines of NaN alone."""
    rng = np.random.default_rng(3)
    x = rng.integers(-4, 5, (9, 130, 5)).astype(dtype)
    if dtype.startswith("float"):
        x[rng.random(x.shape) < 0.3] = np.nan
        x[2], x[:, 7] = np.nan, np.nan
    for t in (pt.from_numpy(x), pt.from_numpy(x).transpose(0, 2), pt.from_numpy(x)[::2, 3:, ::-1]):
        a = t.numpy()
        for dim in (None, 0, 1, 2, (0, 2), (0, 1, 2)):
            for keep in (False, True):
                got, want = pt.nansum(t, dim, keep), np.nansum(a.astype("float64"), dim, keepdims=keep)
                np.testing.assert_array_equal(got.double().numpy(), want)
                assert got.dtype is (t.dtype if dtype.startswith("float") else pt.int64)
    assert pt.nansum(pt.ones(0, 3), 0).tolist() == [0.0, 0.0, 0.0]
    g = pt.tensor([1.0, float("nan"), 2.0], requires_grad=True)
    pt.nansum(g * 3).backward()
    assert g.grad.tolist()[::2] == [3.0, 3.0]
