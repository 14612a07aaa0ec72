"""Sums and means of float32 numbers: within 2e-7 of the sum of the magnitudes, whatever the numbers, how many there are
and over which dims. Equal numbers are the hardest: all roundings go the same way. The oracle is NumPy in float64."""
import numpy as np
import pytest
from _walk import every_case

import ptcore
from ptcore.nn import functional as F

pytestmark = pytest.mark.core

LIMIT = 2e-7
SIZES = (5, 17, 129, 1000, 5985, 32904, 262147)


def numbers(kind, n):
    rng = np.random.default_rng(n)
    found = {"equal": lambda: np.full(n, 0.1), "uniform": lambda: rng.random(n),
             "log-normal": lambda: rng.lognormal(0, 2, n)}[kind]()
    return found.astype(np.float32)


KINDS = ("equal", "uniform", "log-normal")


def laid(x, where):
    """The numbers of a vector along a dim of a tensor with two or three dims, and this dim."""
    n = len(x)
    if where == "last":
        return np.stack([x, x[::-1], x]), 1
    if where == "first":
        return np.ascontiguousarray(np.stack([x] * 20, 1)), 0
    if where == "middle":
        return np.ascontiguousarray(np.broadcast_to(x[None, :, None], (2, n, 3))), 1
    return np.stack([x, x[::-1], x])[:, ::-1], 1        # a negative stride


# name: (the sum by ptcore, its terms by NumPy in float64)
SUMS = {
    "sum": (lambda x, d: x.sum(d), lambda x: x),
    "mean": (lambda x, d: x.mean(d) * x.shape[d], lambda x: x),
    "nansum": (lambda x, d: x.nansum(d), lambda x: x),
    "norm 1": (lambda x, d: x.norm(1, d), abs),
    "norm 2": (lambda x, d: x.norm(2, d).double() ** 2, np.square),
    "cumsum": (lambda x, d: x.cumsum(d).select(d, -1), lambda x: x),
    "expand": (lambda x, d: ptcore.func.vjp(lambda y: y.unsqueeze(d).expand(x.shape), x.select(d, 0))[1](x)[0],
               lambda x: x),
    "complex": (lambda x, d: ptcore.complex(x * 0, x).sum(d).imag, lambda x: x),
    "var": (lambda x, d: x.var(d).double() * (x.shape[d] - 1), None),
    "mse": (lambda x, d: F.mse_loss(x, x * 0, reduction="none").sum(d), np.square),
}


def off(got, terms, dim):
    want = terms.sum(dim)
    return float(np.max(np.abs(got.double().numpy() - want) / np.abs(terms).sum(dim)))


@pytest.mark.parametrize("name", SUMS)
def test_sums(name):
    call, terms = SUMS[name]
    with every_case() as case:
        for kind in KINDS:
            for n in SIZES:
                for where in ("last", "first", "middle", "reversed"):
                    with case(f"{kind}, {n}, {where}"):
                        if where in ("first", "middle") and n > 50_000:
                            continue
                        x, dim = laid(numbers(kind, n), where)
                        wide = x.astype(np.float64)
                        if terms is None:
                            if kind == "equal":
                                continue
                            parts = np.square(wide - wide.mean(dim, keepdims=True))
                        else:
                            parts = terms(wide)
                        assert off(call(ptcore.from_numpy(x.copy()) if where != "reversed" else ptcore.asarray(x), dim),
                                   parts, dim) < LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_very_many(kind):
    for n in (10**7, 10**8):
        x = numbers(kind, n)
        got = ptcore.from_numpy(x)
        want = x.sum(dtype=np.float64)
        assert abs(got.sum().item() - want) < LIMIT * want
        assert abs(got.mean().item() * n - want) < LIMIT * want
        assert abs(got.reshape(-1, 100).sum(0).double().sum().item() - want) < LIMIT * want


def test_shares_of_equal_numbers():
    probs = ptcore.ones(5985)
    assert type(ptcore.distributions.Categorical(probs=probs)).__name__ == "Categorical"
    for n in (1000, 5985, 100_001):
        for x, dim in ((ptcore.zeros(2, n), 1), (ptcore.zeros(n, 20), 0), (ptcore.zeros(2, n, 3), 1)):
            np.testing.assert_allclose(ptcore.softmax(x, dim).numpy(), 1 / n, rtol=LIMIT)
            np.testing.assert_allclose(ptcore.logsumexp(x, dim).numpy(), np.log(n), rtol=LIMIT)
        loss = F.cross_entropy(ptcore.zeros(2, n), ptcore.tensor([0, 1])).item()
        assert abs(loss / np.log(n) - 1) < LIMIT


def test_statistics_of_norms():
    rng = np.random.default_rng(0)
    for shape in ((30_000, 7), (2, 3, 40_000)):
        x = (rng.lognormal(0, 1, shape)).astype(np.float32)
        over = tuple(d for d in range(x.ndim) if d != 1)
        wide = x.astype(np.float64)
        mean, var = ptcore.zeros(x.shape[1]), ptcore.ones(x.shape[1])
        F.batch_norm(ptcore.from_numpy(x), mean, var, training=True, momentum=1.0)
        np.testing.assert_allclose(mean.numpy(), wide.mean(over), rtol=LIMIT)
        np.testing.assert_allclose(var.numpy(), wide.var(over, ddof=1), rtol=4e-7)


def test_gradients_of_weights_are_sums():
    g = np.full((100_000, 5), 0.1, np.float32)
    bias, weight = ptcore.zeros(5, requires_grad=True), ptcore.ones(5, requires_grad=True)
    F.layer_norm(ptcore.zeros(100_000, 5), (5,), weight, bias).backward(ptcore.from_numpy(g))
    np.testing.assert_allclose(bias.grad.numpy(), g.sum(0, dtype=np.float64), rtol=LIMIT)
    bias = ptcore.zeros(5, requires_grad=True)
    F.linear(ptcore.zeros(100_000, 5), ptcore.zeros(5, 5), bias).backward(ptcore.from_numpy(g))
    np.testing.assert_allclose(bias.grad.numpy(), g.sum(0, dtype=np.float64), rtol=LIMIT)


def added_at(places, values, n):
    """Sums of values at n places, by every op and gradient that adds at an index."""
    width = values.unsqueeze(1).expand(-1, 3)
    table = ptcore.zeros(n, dtype=values.dtype, requires_grad=True)

    def gradient(read):
        return ptcore.autograd.grad(read(table), table, values)[0]

    def of_rows(read):
        rows = ptcore.zeros(n, 3, dtype=values.dtype, requires_grad=True)
        return ptcore.autograd.grad(read(rows), rows, width)[0][:, 1]

    zeros = ptcore.zeros(n, dtype=values.dtype)
    bags = ptcore.searchsorted(places, ptcore.arange(n))
    return {
        "index_add": zeros.index_add(0, places, values),
        "index_add of rows": zeros.unsqueeze(1).expand(-1, 3).index_add(0, places, width)[:, 2],
        "scatter_add": zeros.scatter_add(0, places, values),
        "scatter_reduce": zeros.scatter_reduce(0, places, values, "sum"),
        "index_put": zeros.index_put((places,), values, accumulate=True),
        "index_put into a window": zeros.repeat_interleave(2)[::2].index_put_((places,), values, accumulate=True),
        "put": zeros.put(places, values, accumulate=True),
        "embedding_bag": F.embedding_bag(ptcore.arange(len(values)), values.unsqueeze(1), bags, mode="sum")[:, 0],
        "gather": gradient(lambda x: x.gather(0, places)),
        "take": gradient(lambda x: x.take(places)),
        "index": gradient(lambda x: x[places]),
        "index_select": gradient(lambda x: x.index_select(0, places)),
        "embedding": of_rows(lambda x: F.embedding(places, x)),
        "rows": of_rows(lambda x: x[places]),
    }


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
@pytest.mark.parametrize("n", [1, 7])
def test_sums_at_an_index(n, dtype):
    count = 100_003
    places = np.sort(np.random.default_rng(0).integers(0, n, count))
    values = ptcore.full((count,), 0.1 + (0.1j if dtype == "complex64" else 0), dtype=getattr(ptcore, dtype))
    terms = values.to(ptcore.complex128).numpy()
    want = np.array([terms[places == k].sum() for k in range(n)])
    limit = 2**-8 if dtype == "bfloat16" else LIMIT
    with every_case() as case:
        for name, got in added_at(ptcore.from_numpy(places), values, n).items():
            with case(name):
                assert got.dtype is values.dtype
                assert np.max(np.abs(got.to(ptcore.complex128).numpy() - want) / np.abs(want)) < limit


@pytest.mark.parametrize("shape", [(1, 1), (1, 8), (8, 1), (8, 10), (2, 300)])
def test_long_products(shape):
    """A product over many elements; those of one sign are the hardest."""
    n, m = shape
    for k in (4097, 100_003):
        a, b = np.full((n, k), 0.1, np.float32), np.full((k, m), 0.1, np.float32)
        want = k * float(a[0, 0])**2
        x = ptcore.from_numpy(a)
        for y in (ptcore.from_numpy(b), ptcore.from_numpy(np.ascontiguousarray(b.T)).mT):
            np.testing.assert_allclose((x @ y).numpy(), want, rtol=2e-5)
            np.testing.assert_allclose(F.linear(x, y.mT).numpy(), want, rtol=2e-5)
            np.testing.assert_allclose((x @ y[:, 0]).numpy(), want, rtol=2e-5)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, float("inf")])
def test_gradients_of_distances_are_sums(p):
    """From many equal rows to one row."""
    n = 30_000
    x, y = ptcore.tensor([[0.1, 0.0]], requires_grad=True), ptcore.zeros(n, 2)
    (ptcore.cdist(x, y, p=p, compute_mode="donot_use_mm_for_euclid_dist") * 0.1).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[n * float(np.float32(0.1)), 0]], rtol=3e-7)
