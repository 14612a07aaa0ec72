"""Scans, sorting and nonzero of lengths around the sizes of blocks and pieces: as on the CPU."""
from functools import partial

import numpy as np
import pytest

import ptcore
from ptcore import cuda

LENGTHS = (1, 64, 65, 255, 256, 257, 700)


def values(length, dtype, nan=False):
    rng = np.random.default_rng(length)
    x = ptcore.from_numpy(rng.integers(-3, 4, (2, length, 3)).astype(np.float64))
    if nan and dtype.kind == "f":
        x[0, length // 2, 1] = float("nan")
    return x.to(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int16", "bool", "complex64"])
@pytest.mark.parametrize("length", LENGTHS)
def test_sums_and_products(length, dtype):
    x = values(length, getattr(ptcore, dtype))
    for dim in (1, -1):
        np.testing.assert_array_equal(x.cuda().cumsum(dim).cpu().numpy(), x.cumsum(dim).numpy())
    one = x.sign() if dtype != "bool" and x.dtype.kind != "c" else x
    np.testing.assert_array_equal(one.cuda().cumprod(1).cpu().numpy(), one.cumprod(1).numpy())


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "uint8", "int64"])
@pytest.mark.parametrize("length", LENGTHS)
def test_extremes(length, dtype):
    x = values(length, getattr(ptcore, dtype), nan=True)
    for f in (ptcore.cummax, ptcore.cummin):
        for got, want in zip(f(x.cuda(), 1), f(x, 1)):
            assert got.cpu().nan_to_num(77).equal(want.nan_to_num(77))


@pytest.mark.parametrize("length", LENGTHS)
def test_log_sums(length):
    x = ptcore.randn(3, length, dtype=ptcore.float64) * 30
    x[0, 0] = -float("inf")
    if length > 2:
        x[1, length // 2] = float("inf")
        x[2, -1] = float("nan")
    got, want = x.cuda().logcumsumexp(1).cpu(), x.logcumsumexp(1)
    ptcore.testing.assert_close(got, want, rtol=1e-13, atol=1e-13, equal_nan=True)


@pytest.mark.parametrize("numbers", [[1e8] * 4, [-3e9, 0, 1e7, 4e8, 4e8], [1e30, 1e20, 1e10, 0], [0.5, -1.0, 2.0]])
def test_slopes_of_log_sums_far_out(numbers):
    found = []
    for device, dtype in (("cpu", ptcore.float64), ("cuda", ptcore.float32), ("cuda", ptcore.bfloat16)):
        x = ptcore.tensor(numbers).bfloat16().to(dtype).to(device).requires_grad_()     # all hold bfloat16
        g = ptcore.arange(1.0, 1 + len(numbers), dtype=dtype, device=device) * -0.5
        found.append(ptcore.autograd.grad(x.logcumsumexp(0), x, g)[0].double().cpu().numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(found[2], found[0], rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("shape", [(2047,), (2048,), (2049,), (3, 5000), (600_001,), (70, 2, 600), (5000, 3),
                                   (20_000, 2), (1, 3000, 1)])
def test_lines_in_pieces(shape):
    """Lines that several blocks or threads work on: sums of whole numbers, extremes and their places, sums of exps."""
    rng = np.random.default_rng(5)
    whole = rng.integers(-4, 5, shape)
    for dim in range(len(shape)):
        for dtype in ("float32", "int64", "int8", "float64"):
            x = ptcore.from_numpy(whole.astype(dtype)).cuda()
            np.testing.assert_array_equal(x.cumsum(dim, dtype=x.dtype).cpu().numpy(), whole.cumsum(dim).astype(dtype))
        signs = np.where(whole > 3, -1, 1)
        np.testing.assert_array_equal(ptcore.from_numpy(signs).cuda().cumprod(dim).cpu().numpy(), signs.cumprod(dim))
        x = rng.standard_normal(shape).round(1)
        for f, extreme in ((ptcore.cummax, np.maximum), (ptcore.cummin, np.minimum)):
            values, places = (t.cpu().numpy() for t in f(ptcore.from_numpy(x).cuda(), dim))
            np.testing.assert_array_equal(values, extreme.accumulate(x, dim))
            np.testing.assert_array_equal(np.take_along_axis(x, places, dim), values)
            assert (np.diff(places, axis=dim) >= 0).all()
        got = ptcore.from_numpy(x).cuda().logcumsumexp(dim).cpu().numpy()
        np.testing.assert_allclose(got, np.logaddexp.accumulate(x, dim), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("lines", "length"), [(1060, 4100), (540, 8200)])
def test_pieces_of_several_tiles(lines, length):
    """Where lines are many a block goes on from tile to tile: a line in one piece, and in three."""
    whole = np.random.default_rng(1).integers(-4, 5, (lines, length)).astype(np.int8)
    x = ptcore.from_numpy(whole).cuda()
    np.testing.assert_array_equal(x.cumsum(1, dtype=x.dtype).cpu().numpy(), whole.cumsum(1).astype(np.int8))
    values, places = (t.cpu().numpy() for t in x.cummax(1))
    np.testing.assert_array_equal(values, np.maximum.accumulate(whole, 1))
    np.testing.assert_array_equal(np.take_along_axis(whole, places, 1), values)


@pytest.mark.parametrize("length", [1, 2, 3, 300, 512, 513, 1500])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint64", "bool", "bfloat16"])
def test_sorting(length, dtype):
    x = values(length, getattr(ptcore, dtype), nan=True)
    for descending in (False, True):
        for got, want in zip(x.cuda().sort(1, descending), x.sort(1, descending)):
            got, want = (t.to(ptcore.float64).nan_to_num(77) for t in (got.cpu(), want))
            assert got.equal(want)
    k = min(7, length)
    for got, want in zip(x.cuda().topk(k, 1), x.topk(k, 1)):
        got, want = (t.to(ptcore.float64).nan_to_num(77) for t in (got.cpu(), want))
        assert got.equal(want)


def special(n, dtype):
    """Numbers of every size and sign, equal ones among them, and for floats NaN, infinities and both zeros."""
    rng = np.random.default_rng(n)
    if dtype.kind == "f":
        x = rng.normal(size=n) * 10.0 ** rng.integers(-3, 4, n)
        x[rng.integers(0, n, n // 3)] = 1.5
        for value in (np.nan, np.inf, -np.inf, 0.0, -0.0):
            x[rng.integers(0, n, 3)] = value
        return ptcore.from_numpy(x).to(dtype)
    if dtype.name == "bool":
        return ptcore.from_numpy(rng.integers(0, 2, n).astype(bool))
    info = ptcore.iinfo(dtype)
    x = rng.integers(info.min, info.max, n, dtype=dtype.name, endpoint=True)
    x[rng.integers(0, n, n // 3)] = 5
    x[:2] = info.min, info.max
    return ptcore.from_numpy(x)


ORDERED = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16",
           "float32", "float64"]


# In 140001 there are more tiles than a warp has lanes.
@pytest.mark.parametrize(("n", "dtype"), [(n, d) for n in (2048, 2049, 4097) for d in ORDERED]
                         + [(140001, d) for d in ("float32", "int64", "bool")])
def test_sorting_long_lines(n, dtype, launches):
    """Stable, NaN last; lines that a block cannot sort take three launches for each byte."""
    x = special(n, getattr(ptcore, dtype))
    there = x.cuda()
    passes = 0 if n <= 2048 else 3 * x.dtype.itemsize
    for descending in (False, True):
        assert launches(partial(there.sort, stable=True, descending=descending)) <= 3 + passes
        values, places = (t.cpu() for t in there.sort(stable=True, descending=descending))
        want = x.sort(stable=True, descending=descending)
        assert places.equal(want[1])
        assert values.to(ptcore.float64).nan_to_num(77).equal(want[0].to(ptcore.float64).nan_to_num(77))
        if x.dtype.kind != "f" and not descending:
            np.testing.assert_array_equal(places.numpy(), np.argsort(x.numpy(), kind="stable"))


@pytest.mark.parametrize("dtype", ["float32", "int64", "int8"])
def test_sorting_many_long_lines(dtype):
    x = special(3 * 5000 * 2, getattr(ptcore, dtype)).reshape(3, 5000, 2)
    for there, here in ((x.cuda(), x), (x.cuda().permute(2, 1, 0), x.permute(2, 1, 0))):
        got, want = there.sort(1, stable=True), here.sort(1, stable=True)
        assert got[1].cpu().equal(want[1])
        assert got[0].cpu().to(ptcore.float64).nan_to_num(7).equal(want[0].to(ptcore.float64).nan_to_num(7))
        got, want = there.topk(9, 1), here.topk(9, 1)
        assert got[1].cpu().equal(want[1])


@pytest.mark.parametrize("dtype", ORDERED)
def test_the_first_of_long_lines(dtype, launches):
    """Of equal elements those that come first; parts of a line where there are few lines. Three launches."""
    for n, k in ((2049, 1), (5000, 50), (5000, 2048), (70001, 300)):
        x = special(n, getattr(ptcore, dtype))
        there = x.cuda()
        for largest in (True, False):
            assert launches(partial(there.topk, k, largest=largest)) == 3
            values, places = (t.cpu() for t in there.topk(k, largest=largest))
            want = x.sort(stable=True, descending=largest)
            assert places.equal(want[1][:k])
            same = [np.signbit(v.to(ptcore.float64).numpy()) for v in (values, want[0][:k])]
            assert (same[0] == same[1]).all()               # zeros keep their signs
            assert values.to(ptcore.float64).nan_to_num(77).equal(want[0][:k].to(ptcore.float64).nan_to_num(77))
    equal = ptcore.ones(3, 9000).to(getattr(ptcore, dtype))
    assert equal.cuda().topk(5, 1)[1].cpu().tolist() == [[0, 1, 2, 3, 4]] * 3


@pytest.mark.parametrize("n", [1, 2048, 2049, 9000])
def test_permutations_are_the_cpus(n):
    results = []
    for device in ("cpu", "cuda"):
        ptcore.manual_seed(3)
        results.append(ptcore.randperm(n, device=device).cpu())
    assert results[1].equal(results[0])
    assert results[0].sort()[0].equal(ptcore.arange(n))


@pytest.mark.parametrize("n", [0, 1, 255, 4095, 4096, 4097, 9000])
@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "complex128", "int8"])
def test_nonzero(n, dtype):
    x = ptcore.from_numpy(np.random.default_rng(n).integers(0, 2, n).astype(np.float32)).to(getattr(ptcore, dtype))
    assert x.cuda().nonzero().cpu().equal(x.nonzero())
    y = x[:n // 6 * 6].reshape(-1, 2, 3).transpose(0, 2)
    assert y.cuda().nonzero().cpu().equal(y.nonzero())
    mask = x != 0
    assert x.cuda()[mask.cuda()].cpu().equal(x[mask])


@pytest.mark.parametrize("n", [0, 6, 4098, 9000])
@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "float32", "int64", "complex128"])
def test_masks(n, dtype, launches):
    """Chosen and written without a list of positions, from any layout and alignment; bytes of a mask may be above 1."""
    rng = np.random.default_rng(n)
    x = ptcore.from_numpy(rng.integers(0, 9, (n + 1) * 2)).to(getattr(ptcore, dtype))
    mask = ptcore.from_numpy((rng.integers(0, 2, (n + 1) * 2) * rng.integers(1, 256, (n + 1) * 2)).astype(np.uint8))
    mask = mask.view(ptcore.bool)
    source = ptcore.from_numpy(rng.integers(0, 9, (n + 1) * 2)).to(x.dtype)
    for layout in (lambda t: t[:n], lambda t: t[1:n + 1], lambda t: t[:2 * n:2], lambda t: t[:n].reshape(-1, 2).t()):
        here, there = (layout(x), layout(mask)), (layout(x.cuda()), layout(mask.cuda()))
        assert there[0][there[1]].cpu().equal(here[0][here[1]])
        written = there[0].masked_scatter(there[1], source.cuda())
        assert written.cpu().equal(here[0].masked_scatter(here[1], source))
        assert there[0].clone().masked_scatter_(there[1], source.cuda()).cpu().equal(written.cpu())
    there, held = x.cuda(), mask.cuda()
    assert launches(lambda: there[held]) <= 5                   # two count beforehand
    for wrong in (mask.cuda()[:-1], mask.cuda()[None]):
        with pytest.raises(IndexError, match=r"mask's shape|too many indices"):
            there[wrong]


def test_gradients_of_masks():
    x = ptcore.randn(5000, dtype=ptcore.float64, device="cuda", requires_grad=True)
    mask, weights = x.detach() > 0.3, ptcore.randn(5000, dtype=ptcore.float64, device="cuda")
    (x[mask] * weights[mask]).sum().backward()
    assert x.grad.equal(ptcore.where(mask, weights, ptcore.zeros_like(weights)))
    y = x[:40].detach().requires_grad_()
    assert ptcore.autograd.gradcheck(lambda t: t[mask[:40]], y)
    assert ptcore.autograd.gradgradcheck(lambda t: t[mask[:40]] ** 2, y)
    source = ptcore.randn(40, dtype=ptcore.float64, device="cuda", requires_grad=True)
    assert ptcore.autograd.gradcheck(lambda t, s: t.masked_scatter(mask[:40], s), (y, source))


def test_a_mask_that_holds_more_often_than_there_are_elements():
    x = ptcore.zeros(5000, device="cuda")
    y = x.masked_scatter(x == 0, ptcore.ones(4999, device="cuda"))
    with pytest.raises(IndexError, match=r"masked_\w+: index 4999 is out of bounds"):
        cuda.synchronize()
    assert y.sum() == 4999
