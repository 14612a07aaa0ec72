"""scatter_reduce, index_reduce and searchsorted on a device: NumPy's and the CPU's results."""
import numpy as np
import pytest

import ptcore

WHOLE = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
REAL = ["bool", *WHOLE, "float16", "bfloat16", "float32", "float64"]
KINDS = ("sum", "prod", "mean", "amax", "amin")


def values(rng, shape, dtype):
    """Powers of two and signs, so that products and sums in any order are exact."""
    name = dtype.name
    if name == "bool":
        return ptcore.from_numpy(rng.integers(0, 2, shape).astype(bool))
    x = rng.choice([1, 2, -1, 0.5, -2] if dtype.kind in "fc" else [1, 2, 3, 5], shape)
    if dtype.kind == "c":
        x = x * rng.choice([1, 1j, -1j], shape)
    return ptcore.from_numpy(np.asarray(x)).to(dtype)


def same(got, want):
    assert got.dtype == want.dtype
    assert got.is_cuda
    a, b = (t.to(ptcore.complex128 if t.dtype.kind == "c" else ptcore.float64).numpy() for t in (got.cpu(), want))
    np.testing.assert_array_equal(a, b)


def scattered(x, dim, index, src, combine):
    """By one element after another."""
    out = x.copy()
    for at in np.ndindex(index.shape):
        to = list(at)
        to[dim] = index[at]
        out[tuple(to)] = combine(out[tuple(to)], src[at])
    return out


def defined(reduce, dtype):
    return not (dtype.startswith("complex") and reduce in ("amax", "amin")) and not (
        dtype == "bool" and reduce in ("sum", "mean"))


@pytest.mark.parametrize(("reduce", "dtype"), [(r, d) for r in KINDS for d in (*REAL, "complex64", "complex128")
                                               if defined(r, d)])
def test_scatter_reduce(reduce, dtype):
    dtype = getattr(ptcore, dtype)
    rng = np.random.default_rng(3)
    for dim in (0, 1, -1):
        x, src = values(rng, (4, 5, 6), dtype), values(rng, (7, 6, 8), dtype)
        limit = x.shape[dim]
        shape = [3, 4, 5]
        shape[dim] = src.shape[dim]
        index = ptcore.from_numpy(rng.integers(0, limit, shape))
        for include in (True, False):
            want = x.scatter_reduce(dim, index, src, reduce, include_self=include)
            same(x.cuda().scatter_reduce(dim, index.cuda(), src.cuda(), reduce, include_self=include), want)
            strided = src.permute(2, 0, 1).contiguous().cuda().permute(1, 2, 0)
            turned = index.flip(0).cuda().flip(0).transpose(0, 2).contiguous().transpose(0, 2)
            same(x.cuda().scatter_reduce(dim, turned, strided, reduce, include_self=include), want)
        if reduce in ("amax", "amin") and dtype.name != "bfloat16":
            combine = np.maximum if reduce == "amax" else np.minimum
            same(x.cuda().scatter_reduce(dim, index.cuda(), src.cuda(), reduce),
                 ptcore.from_numpy(scattered(x.numpy(), dim, index.numpy(), src.numpy(), combine)))


@pytest.mark.parametrize(("reduce", "dtype"), [(r, d) for r in ("prod", "mean", "amax", "amin")
                                               for d in ("float32", "bfloat16", "int8", "complex128") if defined(r, d)])
def test_index_reduce(reduce, dtype):
    dtype = getattr(ptcore, dtype)
    rng = np.random.default_rng(4)
    x, source = values(rng, (4, 5), dtype), values(rng, (4, 9), dtype)
    index = ptcore.from_numpy(rng.integers(0, 5, 9))
    for include in (True, False):
        same(x.cuda().index_reduce(1, index.cuda(), source.cuda(), reduce, include_self=include),
             x.index_reduce(1, index, source, reduce, include_self=include))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nan_wins_and_infinity_counts(dtype):
    nan, inf = float("nan"), float("inf")
    src = ptcore.tensor([nan, 1.0, inf, 3.0, -inf, -0.0, 0.0]).to(getattr(ptcore, dtype))
    index = ptcore.tensor([0, 0, 1, 1, 2, 3, 3])
    x = ptcore.tensor([5.0, -inf, inf, nan]).to(src.dtype)
    for reduce in KINDS:
        got = x.cuda().scatter_reduce(0, index.cuda(), src.cuda(), reduce)
        same(got, x.scatter_reduce(0, index, src, reduce))


def test_many_for_one_place():
    """All threads at one element, of each width."""
    for dtype in ("uint8", "float16", "float32", "int64", "complex64"):
        dtype = getattr(ptcore, dtype)
        n = 3000
        index, x = ptcore.zeros(n, dtype=ptcore.int64), ptcore.ones(3, dtype=dtype)
        src = ptcore.ones(n, dtype=dtype)
        src[7], src[n - 1] = 3, 5
        same(x.cuda().scatter_reduce(0, index.cuda(), src.cuda(), "prod"), x.scatter_reduce(0, index, src, "prod"))
        if dtype.kind != "c":
            same(x.cuda().scatter_reduce(0, index.cuda(), src.cuda(), "amax"), x.scatter_reduce(0, index, src, "amax"))


@pytest.mark.parametrize("dtype", [ptcore.float16, ptcore.bfloat16], ids=str)
def test_halves_are_added_up_in_float32(dtype, rng):
    """And rounded once: a sum of ones in bfloat16 would stop at 256, in float16 at 2048."""
    n = 3000
    index, ones = ptcore.zeros(n, dtype=ptcore.int64), ptcore.ones(n, 4, dtype=dtype)
    index[5], index[n - 1] = 2, 1

    def every(device):
        i, v, x = index.to(device), ones.to(device), ptcore.ones(3, 4, dtype=dtype).to(device)
        wide = i[:, None].expand(n, 4)
        yield x.scatter_add(0, wide, v)
        yield x.scatter_reduce(0, wide, v, "mean")
        yield x.index_add(0, i, v, alpha=0.5)
        yield x.t().contiguous().index_add(1, i, v.t())
        turned = x.t().contiguous().t()
        yield turned.index_add_(0, i, v)
        yield x.index_put((i,), v, accumulate=True)
        yield x.clone().index_put_((i, i), v[:, 0], accumulate=True)
        turned = x.t().contiguous().t()
        yield turned.index_put_((i,), v[:1], accumulate=True)
        w = x.detach().requires_grad_()
        yield ptcore.autograd.grad(w[i].sum(), w)[0]
        yield ptcore.autograd.grad(w.gather(0, wide).sum(), w)[0]
        yield ptcore.autograd.grad(ptcore.nn.functional.embedding(i, w).sum(), w)[0]
        yield ptcore.nn.functional.embedding_bag(i[None], x, mode="sum")
        yield ptcore.nn.functional.embedding_bag(i[None], x, mode="mean")
        yield x.index_add(0, i[:0], v[:0])
        yield x[:0].index_add(0, i[:0], v[:0])

    for k, (got, want) in enumerate(zip(every("cuda"), every("cpu"), strict=True)):
        same(got, want)
        if k == 0:
            assert want[0, 0].item() == ptcore.tensor(2999.0).to(dtype).item()
    x = ptcore.from_numpy(rng.standard_normal((20, 7))).to(dtype)
    i = ptcore.from_numpy(rng.integers(0, 20, 500))
    v = ptcore.from_numpy(rng.standard_normal((500, 7))).to(dtype)
    exact = x.double().index_add(0, i, v.double())
    got = x.cuda().index_add(0, i.cuda(), v.cuda()).cpu().double()
    assert ((got - exact).abs() <= exact.abs() * (2e-3 if dtype is ptcore.float16 else 1e-2) / 2 + 1e-5).all()


def test_empty():
    x, index, src = ptcore.ones(3), ptcore.zeros(0, dtype=ptcore.int64), ptcore.ones(0)
    for dtype in (ptcore.float32, ptcore.complex128):
        for reduce in ("prod", "sum"):
            y = x.to(dtype)
            same(y.cuda().scatter_reduce(0, index.cuda(), src.to(dtype).cuda(), reduce), y)
    nothing = ptcore.ones(2, 0)
    same(nothing.cuda().scatter_reduce(1, nothing.long().cuda(), nothing.cuda(), "amax"), nothing)


@pytest.mark.parametrize("bad", [-1, 3, 1 << 40, -(1 << 63)])
@pytest.mark.parametrize("op", ["prod", "amax", "amin", "sum", "complex", "index_add", "scatter", "index_reduce"])
def test_a_bad_index_is_left_out_and_reported(op, bad):
    x = ptcore.full((3,), 2.0, dtype=ptcore.complex128 if op == "complex" else ptcore.float32).cuda()
    index, src = ptcore.tensor([1, bad]).cuda(), ptcore.full((2,), 4.0, dtype=x.dtype).cuda()
    ptcore.cuda.synchronize()
    name = {"index_add": "index_add", "scatter": "scatter", "sum": "scatter_add"}.get(op, "scatter_reduce")
    if op in ("index_add", "scatter"):
        got = getattr(x, op)(0, index, src)
    elif op == "index_reduce":
        got = x.index_reduce(0, index, src, "prod")
    else:
        got = x.scatter_reduce(0, index, src, "prod" if op == "complex" else op)
    with pytest.raises(IndexError, match=f"{name}.*index {bad} is out of bounds for dimension 0 with size 3"):
        ptcore.cuda.synchronize()
    want = {"prod": 8.0, "complex": 8.0, "index_reduce": 8.0, "amin": 2.0, "sum": 6.0, "index_add": 6.0}.get(op, 4.0)
    assert got.cpu().tolist() == [2.0, want, 2.0]


def test_gradients():
    rng = np.random.default_rng(9)
    for reduce in ("prod", "amax", "mean"):
        results = []
        for device in ("cuda", "cpu"):
            rng = np.random.default_rng(9)
            x = ptcore.from_numpy(rng.normal(size=(3, 4))).to(device).requires_grad_()
            src = ptcore.from_numpy(rng.normal(size=(5, 4))).to(device).requires_grad_()
            index = ptcore.from_numpy(rng.integers(0, 3, (5, 4))).to(device)
            (x.scatter_reduce(0, index, src, reduce) ** 2).sum().backward()
            results.append((x.grad.cpu(), src.grad.cpu()))
        for a, b in zip(*results):
            ptcore.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(dtype, right):
    dtype = getattr(ptcore, dtype)
    rng = np.random.default_rng(2)
    for n, m in ((1, 1), (7, 30), (300, 1000), (0, 5), (5, 0)):
        edges = np.sort(rng.integers(0, 2 if dtype.name == "bool" else 100, n))
        x = rng.integers(0, 2 if dtype.name == "bool" else 110, m)
        sorted_, given = ptcore.from_numpy(edges).to(dtype), ptcore.from_numpy(x).to(dtype)
        got = ptcore.searchsorted(sorted_.cuda(), given.cuda(), right=right)
        np.testing.assert_array_equal(got.cpu().numpy(), np.searchsorted(edges, x, side="right" if right else "left"))
        assert got.is_cuda
        again = ptcore.bucketize(given.cuda(), sorted_.cuda(), right=right, out_int32=True)
        assert again.dtype == ptcore.int32
        np.testing.assert_array_equal(again.cpu().numpy(), got.cpu().numpy())


def test_searchsorted_rows_and_nan():
    rng = np.random.default_rng(5)
    rows, x = np.sort(rng.normal(size=(2, 3, 40)), axis=-1), rng.normal(size=(2, 3, 17))
    rows[0, 0, -2:] = np.nan
    x[0, 0, :3] = np.nan, np.inf, -np.inf
    for dtype in (ptcore.float64, ptcore.float32, ptcore.float16):
        s, v = ptcore.from_numpy(rows).to(dtype), ptcore.from_numpy(x).to(dtype)
        for right in (False, True):
            want = ptcore.searchsorted(s, v, right=right)
            assert ptcore.searchsorted(s.cuda(), v.cuda(), right=right).cpu().equal(want)
            assert ptcore.searchsorted(s.cuda().flip(0).flip(0), v.cuda().transpose(0, 1).contiguous().transpose(0, 1),
                                       right=right).cpu().equal(want)
    order = ptcore.from_numpy(rng.permutation(40))
    s = ptcore.from_numpy(np.sort(rng.normal(size=40)))
    mixed, sorter = s[order], order.argsort()
    v = ptcore.from_numpy(rng.normal(size=9))
    assert ptcore.searchsorted(mixed.cuda(), v.cuda(), sorter=sorter.cuda()).cpu().equal(ptcore.searchsorted(s, v))
