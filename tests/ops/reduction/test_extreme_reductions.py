"""Reductions, scans, order, softmax, normalisation and losses on NaN, infinities, denormals and the
largest numbers, at every place of a line: body and tail of the vector loops, rows and columns."""
import numpy as np
import pytest
from _cases import ROWS, array, function, rounded, tensor, widened
from _references import evaluate
from _special_values import DENORMAL, LARGEST, SMALLEST, assert_exact
from _tolerance import ACCUMULATED

import ptcore
from ptcore.nn import functional as F

pytestmark = pytest.mark.core

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64", "uint64")
LENGTHS = (1, 2, 5, 17, 67, 300)
REDUCTIONS = {
    "sum": [()], "prod_dims": [()], "mean": [()], "amax": [()], "amin": [()], "max_dim": [()], "min_dim": [()],
    "argmax": [()], "argmin": [()], "any": [()], "all": [()], "count_nonzero": [()],
    "var_dims": [(1.0,), (0.0,)], "std_dims": [(1.0,), (0.0,)], "logsumexp": [()], "cumsum": [()], "cumprod": [()],
    "softmax": [()], "log_softmax": [()], "sort": [(False,), (True,)],
}
NORMS = (2.0, 1.0, 0.0, 3.0, 0.5, np.inf, -np.inf)


def lines(dtype, n, rng):
    """Rows of length n: ordinary numbers with one or two edge values at the start, inside and at the end."""
    edges = [np.nan, np.inf, -np.inf, 0.0, -0.0, DENORMAL[dtype], SMALLEST[dtype], LARGEST[dtype], -LARGEST[dtype]]
    pairs = [(e,) for e in edges] + [(np.inf, -np.inf), (np.nan, np.inf), (LARGEST[dtype], LARGEST[dtype]),
                                     (np.nan, np.nan), (np.inf, np.inf), (-np.inf, -np.inf)]
    rows = [rng.integers(-3, 4, n) / 4.0]
    for pair in pairs:
        for first in {0, n // 2, n - 1}:
            row = rng.integers(-3, 4, n) / 4.0
            row[first] = pair[0]
            if len(pair) > 1:
                row[(first + n // 3) % n] = pair[1]
            rows.append(row)
    for value in (-np.inf, np.inf, np.nan, DENORMAL[dtype], LARGEST[dtype], 0.0, -0.0):
        rows.append(np.full(n, value))
    with np.errstate(all="ignore"):
        return rounded(np.array(rows), dtype)


def results(value):
    return list(value) if isinstance(value, tuple) else [value]


def check(row, x, dtype, dim, extra):
    args = [a.name for a in row.args]
    values = dict(zip(args, [x, dim, *extra]))
    parameters = [values.get(a.name, a.default) for a in row.args]
    got = results(function(row)(*[tensor(x, dtype, "contiguous")], *[p for p, a in zip(parameters[1:], row.args[1:])
                                                                    if not a.keyword_only]))
    parameters[0] = widened(x, dtype)
    want = results(evaluate(row.reference, "".join(a.letter for a in row.args), args, parameters))
    for g, w in zip(got, want, strict=True):
        rtol = ACCUMULATED.get(g.dtype.name, (0, 0))[0]
        assert_near_extremes(array(g), w, g.dtype.name, rtol, f"{row.name} {dtype} {x.shape} dim={dim} {extra}")


def assert_near_extremes(got, want, dtype, rtol, context):
    """As assert_exact, but the sum of terms that cancel has an absolute error of their size."""
    want = np.asarray(want)
    if dtype in DENORMAL:
        with np.errstate(all="ignore"):
            near = np.abs(got.astype(float) - want) <= ACCUMULATED[dtype][1]
            got = np.where(near, rounded(want, dtype), got)
    assert_exact(got, want, dtype, rtol, context, zeros=False)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_floats(name, dtype, rng):
    for n in LENGTHS:
        x = lines(dtype, n, rng)
        if name in ("var_dims", "std_dims", "prod_dims", "cumprod", "cumsum", "sum", "mean") and dtype == "float64":
            x = x[~(np.abs(x) > 1e300).any(1) | np.isinf(x).any(1)]     # the reference itself overflows
        if name in ("mean", "var_dims", "std_dims"):    # its sum is formed in the dtype of the lanes
            with np.errstate(all="ignore"):
                x = x[~((np.abs(x) > 1e30) & np.isfinite(x)).any(1)]
        if name == "log_softmax":               # inf - inf
            x = x[~np.isposinf(x).any(1)]
        for extra in REDUCTIONS[name]:
            check(ROWS[name], x, dtype, 1, extra)
            check(ROWS[name], np.ascontiguousarray(x.T), dtype, 0, extra)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("order", NORMS)
def test_norms(order, dtype, rng):
    for n in LENGTHS:
        x = lines(dtype, n, rng)
        if dtype == "float64":
            x = x[~((np.abs(x) > 1e100) & np.isfinite(x)).any(1)]
        for view, dim in ((x, 1), (np.ascontiguousarray(x.T), 0)):
            got = ptcore.linalg.vector_norm(tensor(view, dtype), order, dim) if hasattr(
                ptcore.linalg, "vector_norm") else tensor(view, dtype).norm(order, dim)
            wide = np.abs(view.astype(float))
            with np.errstate(all="ignore"):
                want = (np.count_nonzero(wide, dim).astype(float) if order == 0 else wide.max(dim) if order == np.inf
                        else wide.min(dim) if order == -np.inf else (wide**order).sum(dim) ** (1 / order))
            assert_near_extremes(array(got), want, dtype, ACCUMULATED[dtype][0], f"norm {order} {dtype} {n}")


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["sum", "prod_dims", "amax", "amin", "max_dim", "min_dim", "argmax", "argmin", "any",
                                  "all", "count_nonzero", "cumsum", "cumprod", "sort"])
def test_integers(name, dtype, rng):
    """Extremes of integers: sums wrap in 64 bits, order is that of the full width."""
    info = np.iinfo(dtype)
    edges = np.array([info.min, info.max, 0, 1, info.max - 1, info.min + 1], dtype)
    for n in LENGTHS:
        x = rng.choice(edges, (7, n))
        wide = x.astype(np.uint64 if dtype == "uint64" else np.int64) if name in (
            "sum", "prod_dims", "cumsum", "cumprod") else x
        for data, line, dim in ((x, wide, 1), (np.ascontiguousarray(x.T), np.ascontiguousarray(wide.T), 0)):
            got = results(function(ROWS[name])(tensor(data, dtype), dim))
            row = ROWS[name]
            values = [line, dim, *[a.default for a in row.args[2:]]]
            names = [a.name for a in row.args]
            want = results(evaluate(row.reference, "".join(a.letter for a in row.args), names, values))
            for g, w in zip(got, want, strict=True):
                g, w = array(g), np.asarray(w)
                np.testing.assert_array_equal(g, w.astype(g.dtype), err_msg=f"{name} {dtype} {n} {dim}")


@pytest.mark.parametrize("dtype", FLOATS)
def test_order_of_nan_and_zeros(dtype):
    """NaN is the greatest, zeros of both signs are equal: a stable sort leaves them as they stand."""
    values = rounded(np.array([0.0, np.nan, -0.0, np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0]), dtype)
    for n in (1, 300):                                          # insertion, merge and radix sort
        x = np.repeat(values, n)
        for descending in (False, True):
            got = tensor(x, dtype).sort(stable=True, descending=descending)
            key = np.where(np.isnan(x), 2.0, np.arctan(x.astype(float)))
            order = np.argsort(-key if descending else key, kind="stable")
            np.testing.assert_array_equal(got.indices.numpy(), order)
            np.testing.assert_array_equal(np.signbit(array(got.values)) & ~np.isnan(array(got.values)),
                                          np.signbit(x[order]) & ~np.isnan(x[order]))
        for largest in (True, False):
            got = tensor(x, dtype).topk(3, largest=largest)
            key = np.where(np.isnan(x), 2.0, np.arctan(x.astype(float)))
            np.testing.assert_array_equal(array(got.values), x[np.argsort(-key if largest else key, kind="stable")][:3])


@pytest.mark.parametrize("dtype", FLOATS)
def test_tiny_numbers_are_not_lost(dtype):
    """Denormals are not flushed to 0 anywhere."""
    tiny = DENORMAL[dtype]
    for n in LENGTHS:
        for shape, dim in (((3, n), 1), ((n, 3), 0)):
            x = tensor(rounded(np.full(shape, tiny), dtype), dtype)
            for got, want in ((x.sum(dim), n * tiny), (x.mean(dim), tiny), (x.amax(dim), tiny),
                              (x.norm(1, dim), n * tiny), (x.norm(np.inf, dim), tiny),
                              (x.cumsum(dim)[-1, -1], n * tiny), (x.sort(dim).values, tiny),
                              (x.max(dim).values, tiny), (x.count_nonzero(dim), n), (x.any(dim), True)):
                np.testing.assert_array_equal(array(got), want)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_shifts(dtype):
    """Large inputs cannot overflow; a masked place is exactly 0; a fully masked or NaN line is NaN."""
    inf = np.inf
    x = tensor(np.array([[1e30, 1e30, 0], [-1e30, -1e30, -inf], [inf, 0, 0], [-inf] * 3, [np.nan, 0, 1]], dtype), dtype)
    nan = np.nan
    np.testing.assert_array_equal(array(x.softmax(1)), [[0.5, 0.5, 0], [0.5, 0.5, 0], [nan] * 3, [nan] * 3, [nan] * 3])
    logs = array(x.log_softmax(1))
    np.testing.assert_allclose(logs[:2, :2], -np.log(2), rtol=1e-6)
    assert np.isneginf(logs[1, 2])
    assert np.isnan(logs[2:]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_losses(dtype):
    inf, target = np.inf, ptcore.tensor([0, 1])

    def loss(values, **options):
        return F.cross_entropy(tensor(np.array(values, dtype), dtype), target, reduction="none", **options).tolist()

    assert loss([[1e30, 0], [0, 1e30]]) == [0, 0]
    assert loss([[0, 1e30], [1e30, 0]]) == pytest.approx([1e30, 1e30], rel=1e-6)
    assert loss([[0, -inf], [-inf, 0]]) == [0, 0]
    assert loss([[-inf, 0], [0, -inf]]) == [inf, inf]
    assert np.isnan(loss([[np.nan, 0], [inf, 0]])).all()
    # a place with -inf and weight or smoothing 0 does not count: 0 * inf is not formed
    assert loss([[0, -inf], [-inf, 0]], label_smoothing=0.0) == [0, 0]
    # ignored targets: nothing is averaged, which is NaN in PyTorch, and their sum is 0
    ignored = ptcore.tensor([-100, -100])
    x = ptcore.zeros(2, 3, dtype=getattr(ptcore, dtype))
    assert np.isnan(F.cross_entropy(x, ignored).item())
    assert F.cross_entropy(x, ignored, reduction="sum").item() == 0
    assert np.isnan(F.nll_loss(x, ignored).item())
    assert F.cross_entropy(x + np.nan, ignored, reduction="sum").item() == 0
    assert F.mse_loss(ptcore.tensor([inf, 1.0]), ptcore.tensor([0.0, 1.0])).item() == inf
    assert np.isnan(F.mse_loss(ptcore.tensor([inf]), ptcore.tensor([inf])).item())
    assert np.isnan(F.mse_loss(x[:0], x[:0]).item())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 5, 67])
def test_layer_norm(n, dtype):
    """Lines that are constant, denormal, near the largest number, or hold NaN or an infinity."""
    rng = np.random.default_rng(0)
    big = 1e18 if dtype == "float32" else 1e150
    x = np.stack([np.full(n, 3.0), np.full(n, DENORMAL[dtype]), rng.normal(size=n) * big, rng.normal(size=n),
                  rng.normal(size=n) + 100]).astype(dtype)
    got = array(F.layer_norm(tensor(x, dtype), (n,)))
    wide = x.astype(np.longdouble)
    want = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + np.longdouble(1e-5))
    np.testing.assert_allclose(got, want.astype(float), rtol=1e-3 if dtype == "float32" else 1e-8, atol=1e-5)
    for bad in (np.nan, np.inf, -np.inf):
        for place in {0, n // 2, n - 1}:
            line = np.ones((3, n), dtype)
            line[1, place] = bad
            got = array(F.layer_norm(tensor(line, dtype), (n,)))
            assert np.isnan(got[1]).all()
            assert (got[[0, 2]] == 0).all()


def test_empty_lines():
    """The identity, or an error where there is none."""
    x = ptcore.zeros(2, 0)
    assert x.sum(1).tolist() == [0, 0]
    assert x.prod(1).tolist() == [1, 1]
    assert np.isnan(x.mean(1).tolist()).all()
    assert np.isnan(x.var(1).tolist()).all()
    assert x.logsumexp(1).tolist() == [-np.inf] * 2
    assert x.any(1).tolist() == [False] * 2
    assert x.all(1).tolist() == [True] * 2
    assert x.norm(dim=1).tolist() == [0, 0]
    assert x.cumsum(1).shape == x.softmax(1).shape == x.sort(1).values.shape == (2, 0)
    for call in (lambda: x.max(1), lambda: x.amax(1), lambda: x.argmax(1), lambda: x.min(1), lambda: x.max()):
        with pytest.raises((IndexError, RuntimeError), match=r"has size 0|non-zero"):
            call()
    assert ptcore.zeros(0, 3).max(1).values.shape == (0,)


@pytest.mark.parametrize("name", ["any", "all"])
def test_no_dim_looks_at_each_element(name):
    """``axis=()`` as in NumPy and PyTorch; None are all dims."""
    x = ptcore.tensor([[0.0, 2.0, float("nan")], [0.0, -1.0, 0.0]])
    for a in (x, x.t(), x[:, ::-1], x[:0], ptcore.tensor(3), ptcore.tensor(0), x[:, :1].expand(2, 4), x.to(ptcore.int64)):
        got, wanted = getattr(ptcore, name)(a, dim=()), getattr(np, name)(a.numpy(), axis=())
        np.testing.assert_array_equal(got.numpy(), wanted)
        assert got.shape == wanted.shape and got.dtype is ptcore.bool
        assert getattr(ptcore, name)(a, ()).shape == getattr(a.to("meta"), name)(()).shape
        np.testing.assert_array_equal(getattr(ptcore, name)(a, None).numpy(), getattr(np, name)(a.numpy()))
    kept = getattr(ptcore, name)(x, (), keepdim=True)
    assert kept.shape == x.shape


SHARED = {
    "median": lambda x: x.median(), "nanmedian": lambda x: x.nanmedian(), "amax": lambda x: x.amax(),
    "amin": lambda x: x.amin(0), "max": lambda x: x.max(), "aminmax": lambda x: x.aminmax().max,
    "norm": lambda x: x.norm(float("inf")), "vector_norm": lambda x: ptcore.linalg.vector_norm(x, float("-inf")),
    "mean": lambda x: x.mean(), "mean_along": lambda x: x.mean(0), "l1_loss": lambda x: F.l1_loss(x, ptcore.zeros_like(x)),
}


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_more_elements_than_a_half_type_counts_share_a_gradient(name, dtype):
    """100,000 is beyond float16's range: their shares were 0."""
    n = 100_000
    x = ptcore.ones(n, dtype=dtype, requires_grad=True)
    share = ptcore.tensor(1 / n, dtype=dtype)
    (g,) = ptcore.autograd.grad(SHARED[name](x), x)
    assert g.dtype is x.dtype and bool((g == share).all())
    _, tangent = ptcore.func.jvp(SHARED[name], (x.detach(),), (x.detach(),))
    assert abs(float(tangent) - 1) < 0.01


def test_tangent_of_a_median_ignores_other_elements():
    x, t = ptcore.tensor([1.0, 2.0, 3.0]), ptcore.tensor([float("nan"), 5.0, float("inf")])
    assert ptcore.func.jvp(lambda x: x.median(), (x,), (t,))[1].item() == 5


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_logsumexp_of_columns_that_begin_with_nothing(dtype):
    """Blocks of rows that are -inf in a column, before, between and behind numbers."""
    x = np.zeros((700, 24))
    for j, (first, last) in enumerate([(0, 128), (0, 256), (128, 256), (256, 640), (500, 700), (0, 699)]):
        x[first:last, j] = -np.inf
    x[:, 6] = -np.inf
    x[:300, 7], x[300, 7] = -np.inf, np.inf
    got = ptcore.tensor(x, dtype=getattr(ptcore, dtype)).logsumexp(0).double().numpy()
    with np.errstate(divide="ignore"):
        want = np.log(np.exp(x).sum(0))
    np.testing.assert_allclose(got, want, rtol=1e-3 if dtype == "float16" else 1e-6)


@pytest.mark.parametrize("shape", [(3000,), (4, 600), (300, 40), (2, 400, 16)])
def test_deviations_of_numbers_whose_sum_is_infinite(shape):
    rng = np.random.default_rng(0)
    x = (3e38 + 1e36 * rng.standard_normal(shape)).astype(np.float32)
    x.flat[0] = -1e38                               # a deviation that float32 does not hold either
    for dim in range(len(shape)):
        np.testing.assert_allclose(ptcore.from_numpy(x).std(dim).numpy(), x.astype(float).std(dim, ddof=1), rtol=1e-6)
        np.testing.assert_array_equal(ptcore.full(shape, 3e38).var(dim).numpy(), 0)
    np.testing.assert_allclose(ptcore.from_numpy(x).std().item(), x.astype(float).std(ddof=1), rtol=1e-6)


@pytest.mark.parametrize("n", [2, 70, 300, 9000])
def test_the_value_is_that_of_the_index(n):
    """Zeros of both signs are equal: the first one is returned, as value and by its index."""
    for name, beside in (("max", -1.0), ("min", 1.0)):
        for first, other in ((0.0, -0.0), (-0.0, 0.0)):
            for at in {0, 1, n // 2, n - 1}:
                x = np.full(n, other, np.float32)
                x[:at], x[at] = beside, first
                for layout in (x, np.stack([x] * 9, 1)):
                    found = getattr(ptcore.from_numpy(layout), name)(0)
                    assert (found.indices == at).all()
                    np.testing.assert_array_equal(np.signbit(found.values.numpy()), np.signbit(first))


@pytest.mark.parametrize("scale", [1e-30, 1e-22, 1e19, 1e20, 1e30, 1e37])
@pytest.mark.parametrize("name", ["layer_norm", "group_norm", "narrow group_norm", "batch_norm", "narrow batch_norm"])
def test_normalisation_of_numbers_whose_squares_float32_does_not_hold(name, scale):
    x = (scale * np.random.default_rng(0).standard_normal((6, 4, 32))).astype(np.float32)
    if "narrow" in name:
        x = x[:, :, :5].copy()
    call = {"layer_norm": lambda x: F.layer_norm(x, x.shape[-1:], eps=0.0),
            "group_norm": lambda x: F.group_norm(x, 2, eps=0.0),
            "batch_norm": lambda x: F.batch_norm(x, None, None, training=True, eps=1e-300)}[name.split()[-1]]
    found = []
    for numbers in (x, x.astype(float)):
        leaf = ptcore.from_numpy(numbers).requires_grad_()
        out = call(leaf)
        out.backward(ptcore.from_numpy(np.cos(np.arange(x.size)).reshape(x.shape).astype(numbers.dtype)))
        found.append((out.detach().numpy(), leaf.grad.numpy()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-4, atol=1e-4)
    if "batch" not in name:                     # its backward gets the variance, which float32 does not hold
        largest = np.abs(found[1][1]).max()
        np.testing.assert_allclose(found[0][1] / largest, found[1][1] / largest, rtol=1e-4, atol=1e-4)
