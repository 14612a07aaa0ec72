"""Scans, sorting and nonzero of lengths around the sizes of blocks and pieces: as on the CPU."""
import numpy as np
import pytest

import ptcore

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


@pytest.mark.parametrize("n", [0, 1, 255, 1023, 1024, 1025, 5000])
@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "complex128", "int8"])
def test_nonzero(n, dtype):
    x = ptcore.from_numpy(np.random.default_rng(n).integers(0, 2, n).astype(np.float32)).to(getattr(ptcore, dtype))
    assert x.cuda().nonzero().cpu().equal(x.nonzero())
    y = x[:n // 6 * 6].reshape(-1, 2, 3).transpose(0, 2)
    assert y.cuda().nonzero().cpu().equal(y.nonzero())
    mask = x != 0
    assert x.cuda()[mask.cuda()].cpu().equal(x[mask])
