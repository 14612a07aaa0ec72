"""cdist and pdist: values by SciPy, gradients by central differences of NumPy's norms, batches, dtypes, empty rows."""
import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import ptcore as pt
from ptcore._ops import function
from ptcore.autograd import gradcheck, gradgradcheck

ORDERS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf)


def slope(f, x, step=1e-6):
    """The gradient of a number by an array, from both sides."""
    g = np.empty_like(x)
    for at in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[at] += step
        down[at] -= step
        g[at] = (f(up) - f(down)) / (2 * step)
    return g


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("d", [1, 3, 17, 70])
def test_gradients(p, d):
    rng = np.random.default_rng(d)
    x, y, w = rng.normal(size=(5, d)), rng.normal(size=(4, d)), rng.normal(size=(5, 4))
    a, b = (pt.from_numpy(v).requires_grad_() for v in (x, y))
    (pt.cdist(a, b, p) * pt.from_numpy(w)).sum().backward()
    first, second = np.triu_indices(5, 1)

    def between(u, v):
        return (np.linalg.norm(u[:, None] - v, p, axis=-1) * w).sum()

    np.testing.assert_allclose(a.grad.numpy(), slope(lambda u: between(u, y), x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(b.grad.numpy(), slope(lambda v: between(x, v), y), rtol=1e-5, atol=1e-6)
    c, weights = pt.from_numpy(x).requires_grad_(), rng.normal(size=10)
    (pt.pdist(c, p) * pt.from_numpy(weights)).sum().backward()
    want = slope(lambda u: (np.linalg.norm(u[first] - u[second], p, axis=-1) * weights).sum(), x)
    np.testing.assert_allclose(c.grad.numpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, math.inf])
def test_every_order(p):
    rng = np.random.default_rng(0)
    x, y = (pt.from_numpy(rng.normal(size=s)).requires_grad_() for s in ((2, 3, 4), (2, 2, 4)))
    assert gradcheck(lambda a, b: pt.cdist(a, b, p), (x, y), check_forward_ad=False)
    assert gradgradcheck(lambda a, b: pt.cdist(a, b, p), (x, y))
    m = pt.from_numpy(rng.normal(size=(4, 3))).requires_grad_()
    assert gradcheck(lambda a: pt.pdist(a, p), (m,), check_forward_ad=False)
    assert gradgradcheck(lambda a: pt.pdist(a, p), (m,))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_dtypes_and_layouts(dtype, p):
    """Transposed, sliced, reversed and broadcast operands, against SciPy on the same values."""
    rng = np.random.default_rng(1)
    base = pt.from_numpy(rng.normal(size=(6, 9, 5))).to(getattr(pt, dtype))
    x, y = base[:, ::2].transpose(0, 1).flip(1), base[0:1, :, :].transpose(0, 1)[:5]
    got = pt.cdist(x, y, p)
    name = {1.0: "cityblock", 2.0: "euclidean", math.inf: "chebyshev"}[p]
    assert got.shape == (5, 6, 1)
    assert got.dtype is base.dtype
    tolerance = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 1e-6, "float64": 1e-13}[dtype]
    for k in range(5):
        want = cdist(x[k].double().numpy(), y[k].double().numpy(), name)
        np.testing.assert_allclose(got[k].double().numpy(), want, rtol=tolerance, atol=tolerance)


def test_equal_rows_have_no_slope():
    for p in ORDERS:
        x = pt.ones(3, 4, dtype=pt.float64, requires_grad=True)
        d = pt.cdist(x, x, p)
        d.sum().backward()
        assert d.tolist() == [[0.0] * 3] * 3
        assert x.grad.tolist() == [[0.0] * 4] * 3


def test_rows_and_batches_of_nothing():
    assert pt.cdist(pt.ones(2, 0), pt.ones(3, 0)).tolist() == [[0.0] * 3] * 2
    assert pt.cdist(pt.ones(0, 4), pt.ones(3, 4), 1).shape == (0, 3)
    assert pt.cdist(pt.ones(2, 1, 3, 4), pt.ones(5, 2, 4)).shape == (2, 5, 3, 2)
    assert pt.pdist(pt.ones(1, 4)).shape == pt.pdist(pt.ones(0, 4)).shape == (0,)
    x = pt.ones(2, 0, requires_grad=True)
    pt.cdist(x, pt.ones(3, 0)).sum().backward()
    assert x.grad.shape == (2, 0)


def test_special_values():
    x = pt.tensor([[math.nan, 0.0], [math.inf, 1.0]])
    for p in (1.0, 2.0, 3.0, math.inf):
        d = pt.cdist(x, pt.zeros(1, 2), p)
        assert d[0].isnan().all()
        assert d[1].tolist() == [math.inf]


def test_shapes_of_gradients():
    """The kernels of gradients look at the shapes themselves."""
    slope_of, rows_of = function("pair_distances_slope"), function("row_distances_slope")
    with pytest.raises(RuntimeError, match="expected a gradient and a distance for each of 6 pairs"):
        slope_of(pt.ones(2, 2), pt.ones(2, 4), pt.ones(3, 4), pt.ones(2, 3), 2.0)
    with pytest.raises(RuntimeError, match="expected rows"):
        slope_of(pt.ones(2, 3), pt.ones(2, 4), pt.ones(3, 5), pt.ones(2, 3), 2.0)
    with pytest.raises(RuntimeError, match="for each of 3 pairs"):
        rows_of(pt.ones(2), pt.ones(3, 4), pt.ones(3), 2.0)
    with pytest.raises(RuntimeError, match="expected a contiguous matrix"):
        rows_of(pt.ones(3), pt.ones(3), pt.ones(3), 2.0)
