"""Philox and the random kernels: known answers, the layout of the stream, equal bits at every ISA
level and thread count, and distributions."""

from functools import partial

import numpy as np
import pytest
from _kernels import Bfloat16, KernelError, Library, able_levels, kernels_of

levels = kernels_of("random_normal")


class Kernels:
    """Random kernels of a level, with vectors of n elements."""

    def __init__(self, library):
        self.library = library

    def __call__(self, name, n, dtype, *params, seed=1, offset=0, x=None, mask=None, threads=1, status=None):
        out = np.full(n, 77, "uint16" if dtype == "bfloat16" else dtype)
        out = out.view(Bfloat16) if dtype == "bfloat16" else out
        self.library.threads(threads)
        call = partial(self.library, name, [] if x is None else [x], [out] if mask is None else [out, mask],
                       (*params, 0.0, 0.0)[:max(2, len(params))], seed=seed, offset=offset)
        if status is None:
            call()
        else:
            with pytest.raises(KernelError) as error:
                call()
            assert error.value.status == status
            self.error = error.value.text
        self.library.threads(1)
        return np.asarray(out)


@pytest.fixture
def kernels(levels):
    return Kernels(levels)


def philox(seed, offset, block, draw=0):
    """Philox4x32-10 in Python integers: rows of four words for an array of block indices."""
    block = np.asarray(block, np.uint64)
    low = block | np.uint64(draw << 40)
    mask, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    full = np.ones_like(block)
    c = [low & mask, low >> shift, full * np.uint64(offset & 0xFFFFFFFF), full * np.uint64(offset >> 32)]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> shift) ^ c[1] ^ np.uint64(k0), b & mask, (a >> shift) ^ c[3] ^ np.uint64(k1), a & mask]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, -1).astype(np.uint32)


def words32(n, seed, offset):
    return philox(seed, offset, np.arange((n + 3) // 4)).ravel()[:n]


def words64(n, seed, offset):
    w = philox(seed, offset, np.arange((n + 1) // 2)).reshape(-1, 2).astype(np.uint64)
    return (w[:, 0] | w[:, 1] << np.uint64(32))[:n]


@pytest.mark.parametrize("counter,key,want", [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1")])
def test_known_answers(counter, key, want):
    """The vectors published with Random123, of the function above, which all others here are compared with."""
    parse = lambda text: [int(w, 16) for w in text.split()]
    c, k = parse(counter), parse(key)
    low = c[0] | c[1] << 32
    got = philox(k[0] | k[1] << 32, c[2] | c[3] << 32, [low & 2**40 - 1], low >> 40)
    np.testing.assert_array_equal(got[0], parse(want))


STREAMS = [(0, 0), (2**64 - 1, 5), (123456789123456789, 2**63 + 12345)]


@pytest.mark.parametrize("seed,offset", STREAMS)
@pytest.mark.parametrize("n", [0, 1, 5, 255, 257, 70001])
def test_stream_layout(kernels, seed, offset, n):
    key = {"seed": seed, "offset": offset, "threads": 2}
    w, v = words32(n, seed, offset), words64(n, seed, offset)
    np.testing.assert_array_equal(kernels("random_bits", n, "uint32", **key), w)
    np.testing.assert_array_equal(kernels("random_bits", n, "int8", **key), w.astype(np.uint8).view(np.int8))
    np.testing.assert_array_equal(kernels("random_bits", n, "bool", **key), (w & 1).astype(bool))
    np.testing.assert_array_equal(kernels("random_bits", n, "int64", **key), v.view(np.int64))
    np.testing.assert_array_equal(kernels("random_uniform", n, "float32", 0, 1, **key), (w >> 8) * np.float32(2.0**-24))
    np.testing.assert_array_equal(kernels("random_uniform", n, "float64", 0, 1, **key), (v >> np.uint64(11)) * 2.0**-53)
    np.testing.assert_array_equal(kernels("random_uniform", n, "float16", 0, 1, **key),
                                  ((w >> 21) * 2.0**-11).astype(np.float16))
    np.testing.assert_array_equal(kernels("random_bernoulli", n, "int16", 0.3, **key), w < 0.3 * 2**32)
    np.testing.assert_array_equal(kernels("randperm", n, "int64", **key), np.argsort(v, kind="stable"))
    u, a = ((w >> 8) * 2.0**-24)[: n // 2 * 2], 2 * np.pi
    r = np.sqrt(-2 * np.log1p(-u[::2]))
    want = np.stack([r * np.cos(a * u[1::2]), r * np.sin(a * u[1::2])], -1).ravel()
    np.testing.assert_allclose(kernels("random_normal", n, "float32", 0, 1, **key)[: n // 2 * 2], want, atol=3e-6)
    u = ((v >> np.uint64(11)) * 2.0**-53)[: n // 2 * 2]
    r = np.sqrt(-2 * np.log1p(-u[::2]))
    want = np.stack([r * np.cos(a * u[1::2]), r * np.sin(a * u[1::2])], -1).ravel()
    np.testing.assert_allclose(kernels("random_normal", n, "float64", 0, 1, **key)[: n // 2 * 2], want, atol=1e-14)


CALLS = [("random_uniform", "float32", (-2, 3)), ("random_uniform", "float64", (-2, 3)), ("random_uniform", "bfloat16", (0, 1)),
         ("random_normal", "float32", (1, 2)), ("random_normal", "float64", (1, 2)), ("random_normal", "float16", (0, 1)),
         ("random_exponential", "float32", (1.5,)), ("random_exponential", "float64", (1.5,)),
         ("random_integers", "int64", (-(2**62), 2**62 + 2**61)), ("random_integers", "int32", (0, 7)),
         ("random_bernoulli", "float32", (0.25,)), ("randperm", "int32", ())]


@pytest.mark.parametrize("name,dtype,params", CALLS)
def test_equal_on_every_level_and_thread_count(name, dtype, params):
    n = 60000
    want = Kernels(Library("base"))(name, n, dtype, *params, seed=9, offset=3)
    for level in able_levels():
        for threads in (1, 2, 3):
            got = Kernels(Library(level))(name, n, dtype, *params, seed=9, offset=3, threads=threads)
            np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))
    other = Kernels(Library("base"))(name, n, dtype, *params, seed=9, offset=4)
    assert (other != want).any()


def lemire(n, low, high, seed, offset):
    """Element by element in Python integers: words of a block in order, then the next draw."""
    span, bits = high - low, 32 if high - low <= 2**32 else 64
    result = []
    for i in range(n):
        for draw in range(100):
            w = philox(seed, offset, [i], draw)[0].astype(object)
            candidates = list(w) if bits == 32 else [w[0] | w[1] << 32, w[2] | w[3] << 32]
            found = [c * span >> bits for c in candidates if c * span % 2**bits >= 2**bits % span]
            if found:
                result.append(low + found[0])
                break
    return result


@pytest.mark.parametrize("low,high", [(0, 1), (-5, 5), (0, 2**32), (-(2**31), 2**31 + 1), (0, 3 * 2**30), (0, 3 * 2**61),
                                      (-(2**63), 2**63 - 1), (7, 7 + 2**33)])
def test_integers(kernels, low, high):
    got = kernels("random_integers", 300, "int64", low, high, seed=5, offset=8, threads=2)
    np.testing.assert_array_equal(got, lemire(300, low, high, 5, 8))


def test_integers_are_even(kernels):
    got = kernels("random_integers", 120000, "float32", -3, 9)
    counts = np.unique(got, return_counts=True)
    np.testing.assert_array_equal(counts[0], np.arange(-3, 9))
    assert ((counts[1] - 10000) ** 2 / 10000).sum() < 40        # chi square, 11 degrees, p = 3e-5
    assert kernels("random_integers", 1000, "bool", 0, 2).dtype == bool


def test_distributions(kernels):
    stats = pytest.importorskip("scipy.stats")
    n = 100000
    for dtype in ("float32", "float64"):
        x = kernels("random_normal", n, dtype, 3, 2, seed=2)
        assert stats.kstest((x - 3) / 2, "norm").pvalue > 1e-4
        assert abs(np.corrcoef(x[::2], x[1::2])[0, 1]) < 0.02
        x = kernels("random_exponential", n, dtype, 4, seed=2)
        assert stats.kstest(x * 4, "expon").pvalue > 1e-4 and x.min() > 0
        x = kernels("random_uniform", n, dtype, -1, 5, seed=2)
        assert stats.kstest((x + 1) / 6, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_uniform_stays_below_its_end(kernels, dtype):
    for low, high in ((0, 1), (1000, 1001), (-0.5, 0.25), (3, 3)):
        x = kernels("random_uniform", 50000, dtype, low, high)
        assert x.min() >= low and (x.max() < high or low == high)


def test_bernoulli(kernels):
    n = 40000
    for p in (0, 1):
        assert (kernels("random_bernoulli", n, "uint8", p) == p).all()
    p = np.linspace(0, 1, n)
    for dtype in ("float32", "float64", "float16"):
        got = kernels("random_bernoulli", n, "float32", x=p.astype(dtype))
        np.testing.assert_array_equal(got, words32(n, 1, 0) < p.astype(dtype).astype(float) * 2**32)
    assert got[p == 0] == 0 and got[p == 1] == 1


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("p", [0, 0.1, 0.5, 1])
def test_dropout(kernels, dtype, p):
    n = 30000
    x = np.linspace(-3, 3, n).astype(dtype)
    mask = np.zeros(n, bool)
    got = kernels("dropout", n, dtype, p, x=x, mask=mask, threads=2)
    np.testing.assert_array_equal(mask, words32(n, 1, 0) >= p * 2**32)
    scale = 0 if p == 1 else 1 / (1 - p)
    inner = np.float32 if dtype == "float16" else dtype
    np.testing.assert_array_equal(got, (x.astype(inner) * np.array(scale, inner) * mask).astype(dtype))


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_randperm(kernels, dtype):
    for n in (0, 1, 2, 3, 1000, 54321):
        got = kernels("randperm", n, dtype)
        np.testing.assert_array_equal(np.sort(got), np.arange(n))
    counts = np.zeros((5, 5))
    for offset in range(2000):
        counts[np.arange(5), kernels("randperm", 5, "int64", offset=offset)] += 1
    assert ((counts - 400) ** 2 / 400).sum() < 60               # 16 degrees of freedom


def test_errors(kernels):
    for name, dtype, params, status, text in (
            ("random_uniform", "float32", (2, 1), "runtime", "from must be at most to, got from=2, to=1"),
            ("random_uniform", "int32", (0, 1), "type", "dtype must be floating point, got int32"),
            ("random_normal", "float32", (0, -1), "runtime", "std must be at least 0, got -1"),
            ("random_normal", "float32", (0, float("nan")), "runtime", "std must be at least 0, got nan"),
            ("random_exponential", "float64", (0,), "runtime", "lambd must be above 0, got 0"),
            ("random_integers", "int64", (3, 3), "runtime", "low must be below high, got low=3, high=3"),
            ("random_integers", "complex64", (0, 3), "type", "dtype must be real, got complex64"),
            ("random_bits", "float32", (), "type", "dtype must be bool or an integer type, got float32"),
            ("random_bernoulli", "float32", (1.5,), "runtime", "p must be in [0, 1], got 1.5")):
        out = kernels(name, 4, dtype, *params, status=status)
        assert kernels.error == text
        assert (out == 77).all()
    x = np.array([0.5, -0.1], np.float32)
    kernels("random_bernoulli", 2, "float32", x=x, status="runtime")
    assert kernels.error.startswith("probabilities must be in [0, 1], got -0.1")
