"""Very many elements that meet at one place: sums, means and products keep the digits of their dtype. The oracle is NumPy
in float64 of the same elements."""
import numpy as np
import pytest
from _walk import every_case

import ptcore
from ptcore.nn import functional as F

pytestmark = pytest.mark.core

N, PLACES = 70_000, 100_000
EPS = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-23, "complex64": 2.0**-22}


def elements(dtype, top=1.0):
    """Positive elements, so that a sum that stalls is wrong, and the same in float64."""
    x = ptcore.rand(N, generator=ptcore.Generator().manual_seed(0)).mul_(top).to(getattr(ptcore, dtype))
    return x, x.to(ptcore.complex128 if x.dtype.is_complex else ptcore.float64).numpy()


def slope(call, size, g):
    """The gradient at place 5 of a function of a vector."""
    x = ptcore.zeros(size, dtype=g.dtype, requires_grad=True)
    return ptcore.autograd.grad(call(x), x, g)[0][5]


def at_five(size, x):
    """The sums of x at place 5 of `size`, as each op takes them."""
    z, index = ptcore.zeros(size, dtype=x.dtype), ptcore.full((N,), 5)
    two, both = ptcore.stack([x, x], 1), index[:, None].expand(N, 2)
    yield "index_add", z.index_add(0, index, x)[5]
    yield "index_add of rows", ptcore.zeros(size, 2, dtype=x.dtype).index_add(0, index, two)[5, 1]
    yield "scatter_add", z.scatter_add(0, index, x)[5]
    yield "scatter_add of rows", ptcore.zeros(size, 2, dtype=x.dtype).scatter_add(0, both, two)[5, 1]
    yield "scatter_reduce", z.scatter_reduce(0, index, x, "sum")[5]
    yield "index_put", z.index_put((index,), x, accumulate=True)[5]
    yield "put", z.put(index, x, accumulate=True)[5]
    yield "gradient of index_select", slope(lambda w: w.index_select(0, index), size, x)
    yield "gradient of gather", slope(lambda w: w.gather(0, index), size, x)
    yield "gradient of take", slope(lambda w: w.take(index), size, x)
    yield "gradient of indexing", slope(lambda w: w[index], size, x)
    yield "gradient of expand", slope(lambda w: w[5:6].expand(N), size, x)
    yield "gradient of repeat_interleave", slope(lambda w: w[5:6].repeat_interleave(N), size, x)
    if not x.dtype.is_complex:
        yield "gradient of embedding", slope(lambda w: F.embedding(index, w[:, None])[:, 0], size, x)
        yield "segment_reduce", ptcore.segment_reduce(x, "sum", lengths=ptcore.tensor([N]))[0]


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("size", [6, PLACES])
def test_sums(dtype, size):
    x, exact = elements(dtype)
    with every_case() as case:
        for name, got in at_five(size, x):
            with case(name):
                assert abs(got.item() / exact.sum() - 1) <= EPS[dtype]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_means(dtype):
    """A mean is finite where the sum is beyond the largest half number."""
    x, exact = elements(dtype, 4.0)
    index, one = ptcore.zeros(N, dtype=ptcore.int64), x.new_zeros(1)
    rows = x[:, None]
    with every_case() as case:
        for name, got in (
                ("scatter_reduce", one.scatter_reduce(0, index, x, "mean", include_self=False)),
                ("scatter_reduce with itself", one.scatter_reduce(0, index, x, "mean")),
                ("index_reduce", one.index_reduce(0, index, x, "mean", include_self=False)),
                ("embedding_bag", F.embedding_bag(ptcore.arange(N)[None], rows, mode="mean")),
                ("segment_reduce", ptcore.segment_reduce(x, "mean", lengths=ptcore.tensor([N]))),
                ("mean", x.mean())):
            with case(name):
                assert abs(got.item() / exact.mean() - 1) <= 1.1 * EPS[dtype]
        with case("gradient"):
            x.requires_grad_()
            g, = ptcore.autograd.grad(one.scatter_reduce(0, index, x, "mean", include_self=False), x, one + 1024)
            np.testing.assert_allclose(g.double().numpy(), 1024 / N, rtol=EPS[dtype])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products(dtype):
    x = ptcore.full((300,), 1 + 2.0**-7, dtype=getattr(ptcore, dtype))
    index, one = ptcore.zeros(300, dtype=ptcore.int64), x.new_ones(1)
    for got in (one.scatter_reduce(0, index, x, "prod"), one.index_reduce(0, index, x, "prod"), x.prod()):
        assert abs(got.item() / (1 + 2.0**-7)**300 - 1) <= EPS[dtype]


def test_few_among_many():
    """A place that a hundredth of the elements name is found, too; others keep their bits."""
    n = 1_000_000
    index = ptcore.randperm(2 * n, generator=ptcore.Generator().manual_seed(1))[:n]
    index[::100] = 7
    x = ptcore.full((n,), 0.1)
    got = ptcore.zeros(2 * n).index_add(0, index, x)
    want = np.bincount(index.numpy(), x.double().numpy(), 2 * n)
    np.testing.assert_allclose(got.double().numpy(), want, rtol=2.0**-23)
