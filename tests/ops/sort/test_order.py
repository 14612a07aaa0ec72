"""Searching in sorted data, unique slices, median and mode with NaN and ties: against NumPy and torch."""
import numpy as np
import pytest

import ptcore as pt

pytestmark = pytest.mark.core


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(dtype, right):
    rng = np.random.default_rng(0)
    edges = np.sort(rng.integers(0, 20, 13)).astype(dtype)
    values = rng.integers(-1 if dtype != "uint8" else 0, 22, (3, 5)).astype(dtype)
    side = "right" if right else "left"
    want = np.searchsorted(edges, values, side)
    got = pt.searchsorted(pt.from_numpy(edges), pt.from_numpy(values), right=right)
    np.testing.assert_array_equal(got.numpy(), want)
    assert got.dtype is pt.int64
    got = pt.bucketize(pt.from_numpy(values), pt.from_numpy(edges), right=right, out_int32=True)
    np.testing.assert_array_equal(got.numpy(), want)
    assert got.dtype is pt.int32
    np.testing.assert_array_equal(pt.searchsorted(pt.from_numpy(edges), pt.from_numpy(values), side=side).numpy(), want)
    number = values.flat[0].item()
    assert pt.searchsorted(pt.from_numpy(edges), number, right=right).item() == want.flat[0]


def test_searchsorted_rows():
    """Each row of the last dim in the row of its own."""
    rng = np.random.default_rng(1)
    edges = np.sort(rng.normal(size=(2, 3, 7)), -1)
    values = rng.normal(size=(2, 3, 4))
    got = pt.searchsorted(pt.from_numpy(edges), pt.from_numpy(values)).numpy()
    for place in np.ndindex(2, 3):
        np.testing.assert_array_equal(got[place], np.searchsorted(edges[place], values[place]))
    turned = pt.from_numpy(edges).flip(-1)
    sorter = turned.argsort(-1)
    np.testing.assert_array_equal(pt.searchsorted(turned, pt.from_numpy(values), sorter=sorter).numpy(), got)


def test_searchsorted_nan():
    """NaN is greater than every number, as in sort."""
    edges = pt.tensor([1.0, 2.0, np.nan])
    assert pt.searchsorted(edges, pt.tensor([0.0, 5.0, np.nan])).tolist() == [0, 2, 2]


@pytest.mark.parametrize("call", [
    lambda: pt.searchsorted(pt.ones(2, 3), pt.ones(3, 4)), lambda: pt.searchsorted(pt.tensor(1.0), pt.ones(3)),
    lambda: pt.searchsorted(pt.ones(2, 3), 1.0),
    lambda: pt.searchsorted(pt.ones(3), pt.ones(3), side="middle"),
    lambda: pt.searchsorted(pt.ones(3), pt.ones(3), side="left", right=True),
    lambda: pt.searchsorted(pt.ones(3), pt.ones(3), sorter=pt.arange(2))])
def test_searchsorted_errors(call):
    with pytest.raises((RuntimeError, ValueError), match=r"^searchsorted: "):
        call()


def test_unique_slices():
    matrix = np.array([[1, 2, 1], [0, 5, 0], [1, 2, 1], [0, 4, 9]])
    cube = np.random.default_rng(0).integers(0, 2, (3, 4, 5))[:, :, [0, 3, 1, 2, 3]]
    for x, dim in ((matrix, 0), (matrix, 1), (cube, 0), (cube, 1), (cube, 2), (cube, -1)):
        got = pt.unique(pt.from_numpy(x), return_inverse=True, return_counts=True, dim=dim)
        want = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g.numpy(), w.reshape(g.shape))


def test_unique_consecutive():
    x = pt.tensor([1, 1, 2, 2, 1])
    values, inverse, counts = pt.unique_consecutive(x, return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 1], [0, 0, 1, 1, 2], [2, 2, 1])
    assert (values[inverse] == x).all()
    assert pt.unique(x[:0]).shape == (0,)


def test_median_of_nan():
    x = pt.tensor([[3.0, np.nan, 1.0, 2.0], [4.0, 1.0, 2.0, 3.0]])
    assert x.median(1).values[1].item() == 2 and x.median(1).values[0].isnan()
    assert x.median(1).indices[0].item() == 1
    assert x.nanmedian(1).values.tolist() == [2.0, 2.0]
    assert x.median().isnan() and x.nanmedian().item() == 2


def test_mode_of_ties():
    values, indices = pt.mode(pt.tensor([[2, 1, 2, 1, 3], [5, 5, 1, 1, 1]]))
    assert values.tolist() == [1, 1]
    assert indices.tolist() == [3, 4]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("n", [1, 2, 15, 40, 1500])
def test_order_statistics_of_lines_with_nan(dtype, n):
    """Against NumPy, line by line: strided lines of every length that has an algorithm of its own."""
    rng = np.random.default_rng(n)
    x = rng.integers(-9, 9, (5, n, 3)).astype(dtype)
    x[rng.random(x.shape) < 0.2] = np.nan
    x[1], x[2] = np.nan, 4
    t = pt.from_numpy(x)
    median, nanmedian, mode = t.median(1), t.nanmedian(1), t.mode(1)
    for i, j in np.ndindex(5, 3):
        line = x[i, :, j]
        known = np.sort(line[~np.isnan(line)])
        first = int(np.flatnonzero(np.isnan(line))[0]) if len(known) < n else None
        value, place = median.values[i, j].item(), median.indices[i, j].item()
        assert (np.isnan(value) and place == first) if first is not None else (
            value == known[(n - 1) // 2] and line[place] == value)
        value, place = nanmedian.values[i, j].item(), nanmedian.indices[i, j].item()
        assert (value == known[(len(known) - 1) // 2] and line[place] == value) if len(known) else np.isnan(value)
        value, place = mode.values[i, j].item(), mode.indices[i, j].item()
        if len(known):
            found, counts = np.unique(known, return_counts=True)
            assert value == found[np.argmax(counts)]
            assert place == np.flatnonzero(line == value)[-1]
        else:
            assert np.isnan(value)
        for k in {1, n, (n + 1) // 2}:
            value, place = (r[i, j].item() for r in t.kthvalue(k, 1))
            ordered = np.argsort(line, kind="stable")
            np.testing.assert_equal(value, line[ordered[k - 1]])
            assert place == ordered[k - 1]


def test_order_statistics_refuse_empty_lines():
    for f in (lambda t: t.kthvalue(1), lambda t: t.mode(), lambda t: t.median(1), lambda t: t.nanmedian(1)):
        with pytest.raises(IndexError, match="dim 1 has size 0, but a value for it is needed"):
            f(pt.ones(3, 0))
    for device in ("cpu", "meta"):
        for k in (0, 4):
            with pytest.raises(RuntimeError, match=rf"^kthvalue: k must be in \[1, 3\], got {k}"):
                pt.ones(3, device=device).kthvalue(k)


def test_quantile_vector():
    x = np.random.default_rng(2).normal(size=(4, 5))
    q = np.array([0.1, 0.5, 1.0])
    for dim, keep in ((None, False), (0, False), (1, True)):
        got = pt.quantile(pt.from_numpy(x), pt.from_numpy(q), dim, keep)
        np.testing.assert_allclose(got.numpy(), np.quantile(x, q, axis=dim, keepdims=keep), rtol=1e-12)
    x[0, 0] = np.nan
    np.testing.assert_allclose(pt.nanquantile(pt.from_numpy(x), pt.from_numpy(q), 1).numpy(),
                               np.nanquantile(x, q, axis=1), rtol=1e-12)
    assert pt.quantile(pt.from_numpy(x), 0.5, 1)[0].isnan()


@pytest.mark.parametrize("method", ["linear", "midpoint", "lower", "higher", "nearest"])
@pytest.mark.parametrize("q", [0.0, 0.2, 0.3, 0.6, 0.9, 1.0])
@pytest.mark.parametrize("values", [[-np.inf, 0.0, 1.0, 2.0], [0.0, 1.0, np.inf], [1.0, np.inf, np.inf],
                                    [-np.inf, np.inf, 3.0], [-np.inf, -np.inf, 1.0, 2.0]])
def test_quantile_beside_infinity(values, q, method):
    """NumPy's wherever that is a number; a place on a value is this value, and between equal infinities are no others."""
    x = np.array(values)
    with np.errstate(invalid="ignore"):
        want = np.quantile(x, q, method=method)
    for got in (pt.quantile(pt.tensor(x), q, interpolation=method),
                pt.nanquantile(pt.tensor([*values, np.nan], dtype=pt.float64), q, interpolation=method)):
        low, high = (np.quantile(x, q, method=m) for m in ("lower", "higher"))
        assert got.item() == (low if low == high else want) or (np.isnan(want) and got.isnan())


def test_scatter_forms():
    """scatter with a number, with reduce, and the in-place forms; by hand."""
    x, index = pt.zeros(2, 3), pt.tensor([[0, 2], [1, 1]])
    assert x.scatter(1, index, 5).tolist() == [[5, 0, 5], [0, 5, 0]]
    assert x.scatter(1, index, value=5).tolist() == [[5, 0, 5], [0, 5, 0]]
    two = pt.full((2, 3), 2.0)
    assert two.scatter(1, index, pt.full((2, 2), 3.0), reduce="multiply").tolist() == [[6, 2, 6], [2, 18, 2]]
    assert two.scatter_(1, index, 1, reduce="add").tolist() == [[3, 2, 3], [2, 4, 2]]
    y = pt.ones(2, 3)
    assert y.scatter_reduce_(1, index, pt.full((2, 2), 4.0), "mean", include_self=False) is y
    assert y.tolist() == [[4, 1, 4], [1, 4, 1]]


def test_embedding_renorm_and_frequency():
    weight = pt.tensor([[3.0, 4.0], [0.3, 0.4]], requires_grad=True)
    index = pt.tensor([0, 1, 0])
    out = pt.nn.functional.embedding(index, weight, max_norm=1.0, scale_grad_by_freq=True)
    np.testing.assert_allclose(out.detach().numpy(), [[0.6, 0.8], [0.3, 0.4], [0.6, 0.8]], rtol=1e-6)
    out.sum().backward()
    np.testing.assert_allclose(weight.grad.numpy(), [[1, 1], [1, 1]])
    padded = pt.nn.functional.embedding(index, weight.detach().requires_grad_(), padding_idx=-1)
    assert padded.shape == (3, 2)


def test_embedding_bag_offsets():
    weight = pt.arange(12.0).reshape(4, 3).requires_grad_()
    index, offsets = pt.tensor([0, 2, 3, 3]), pt.tensor([0, 2, 2])
    F = pt.nn.functional
    assert F.embedding_bag(index, weight, offsets, mode="sum").tolist() == [[6, 8, 10], [0, 0, 0], [18, 20, 22]]
    assert F.embedding_bag(index, weight, offsets).tolist() == [[3, 4, 5], [0, 0, 0], [9, 10, 11]]
    assert F.embedding_bag(index, weight, offsets, mode="max").tolist() == [[6, 7, 8], [0, 0, 0], [9, 10, 11]]
    weighted = F.embedding_bag(index, weight, offsets, mode="sum", per_sample_weights=pt.tensor([1.0, 0, 2, 1]))
    assert weighted.tolist() == [[0, 1, 2], [0, 0, 0], [27, 30, 33]]
    weighted.sum().backward()
    assert weight.grad[3].tolist() == [3, 3, 3]


def test_quantiles_of_more_elements_than_float32_counts():
    n = 2**24 + 4
    x = np.arange(n, dtype="f4")[::-1].copy()
    for q in (1.0, 0.75):
        np.testing.assert_allclose(pt.quantile(pt.from_numpy(x), q).item(), np.float32(q * (n - 1)), rtol=1e-7)


@pytest.mark.parametrize("f", [pt.unique, pt.unique_consecutive, lambda x: pt.unique(x, dim=0),
                               lambda x: pt.unique_consecutive(x, dim=0),
                               lambda x: pt.unique(x, return_inverse=True, return_counts=True)[0]])
def test_gradients_of_unique(f):
    """The values are elements: where none are equal the gradient is exact, of equal ones one gets it."""
    x = pt.tensor([3.0, 1.0, 2.0], dtype=pt.float64, requires_grad=True)
    assert pt.autograd.gradcheck(f, x, check_forward_ad=True) and pt.autograd.gradgradcheck(f, x)
    x = pt.tensor([2.0, 2.0, 5.0], requires_grad=True)
    f(x).backward(pt.tensor([7.0, 11.0]))
    assert x.grad[:2].sum() == 7 and x.grad[:2].count_nonzero() == 1 and x.grad[2] == 11
