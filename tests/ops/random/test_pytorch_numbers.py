"""Generators of the kind "pytorch": words against NumPy's Mersenne twister, numbers recomputed from the words, states."""
import copy
import io
import math
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import ptcore as pt
from ptcore.random import use

WORDS = 624


@pytest.fixture
def pytorch():
    with use("pytorch"):
        yield


class Words:
    """NumPy's generator with the seeding of the algorithm's authors, which takes 32 bits."""

    def __init__(self, seed):
        self.source = np.random.MT19937()
        self.source._legacy_seeding(seed & 0xFFFFFFFF)

    def of32(self, n):
        return self.source.random_raw(n).astype(np.uint64)

    def of64(self, n):
        return (w := self.of32(2 * n))[::2] << np.uint64(32) | w[1::2]

    def unit(self, n):
        return (self.of32(n) & np.uint64(0xFFFFFF)).astype(np.float32) * np.float32(2**-24)

    def unit64(self, n):
        return (self.of64(n) & np.uint64(2**53 - 1)).astype(np.float64) * 2**-53


def full_words(n, generator=None):
    """Pairs of words, without a loss, as unsigned integers."""
    x = pt.empty(n, dtype=pt.int64).random_(-2**63, None, generator=generator)
    return x.numpy().view(np.uint64)


# -- words -----------------------------------------------------------------------------------------

def test_known_words(pytorch):
    """The first and the ten thousandth word of the paper's seed."""
    w = full_words(5000, pt.Generator().manual_seed(5489))
    assert w[0] >> np.uint64(32) == 3499211612 and w[-1] & np.uint64(0xFFFFFFFF) == 4123659995


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**32 - 1, 2**32, 2**63 + 7, -1])
def test_words_against_numpy(pytorch, seed):
    """The seed's low 32 bits count; the generator tells all of them."""
    g = pt.Generator().manual_seed(seed)
    assert g.initial_seed() == seed % 2**64
    np.testing.assert_array_equal(full_words(2000, g), Words(seed).of64(2000))


# -- numbers from words ----------------------------------------------------------------------------

def test_uniform(pytorch):
    pt.manual_seed(3)
    w = Words(3)
    np.testing.assert_array_equal(pt.rand(700).numpy(), w.unit(700))
    np.testing.assert_array_equal(pt.rand(700, dtype=pt.float64).numpy(), w.unit64(700))
    parts = w.unit(20).reshape(10, 2)
    np.testing.assert_array_equal(pt.rand(10, dtype=pt.complex64).numpy(), parts[:, 0] + 1j * parts[:, 1])
    half = pt.rand(5000, dtype=pt.float16).numpy()
    want = w.unit(5000).astype(np.float16)
    np.testing.assert_array_equal(half, np.where(want == 1, np.float16(0), want))
    u = w.unit(300)
    np.testing.assert_array_equal(pt.empty(300).uniform_(-1, 3).numpy(), (u.astype(np.float64) * 4 - 1).astype(np.float32))


def test_integers(pytorch):
    pt.manual_seed(4)
    w = Words(4)
    np.testing.assert_array_equal(pt.randint(-3, 97, (500,)).numpy(), w.of32(500).astype(np.int64) % 100 - 3)
    np.testing.assert_array_equal(pt.randint(2**28 - 1, (500,)).numpy(), w.of32(500) % np.uint64(2**28 - 1))
    np.testing.assert_array_equal(pt.randint(2**28, (500,)).numpy(), w.of64(500) % np.uint64(2**28))
    np.testing.assert_array_equal(pt.empty(500, dtype=pt.uint8).random_().numpy(), w.of32(500) % np.uint64(256))
    np.testing.assert_array_equal(pt.empty(500, dtype=pt.int64).random_().numpy(), w.of64(500) % np.uint64(2**63))
    np.testing.assert_array_equal(pt.empty(500).random_().numpy(), w.of32(500) % np.uint64(2**24 + 1))
    assert pt.empty(3, dtype=pt.uint16).random_().tolist() == (w.of32(3) % np.uint64(2**16)).tolist()
    assert pt.empty(3, dtype=pt.uint32).random_().tolist() == w.of32(3).tolist()
    assert pt.empty(3, dtype=pt.uint64).random_().tolist() == w.of64(3).tolist()
    order = np.arange(300)
    for i, word in enumerate(w.of32(299)):
        j = i + int(word) % (300 - i)
        order[[i, j]] = order[[j, i]]
    np.testing.assert_array_equal(pt.randperm(300).numpy(), order)


def test_flags(pytorch):
    pt.manual_seed(5)
    w = Words(5)
    np.testing.assert_array_equal(pt.empty(400).bernoulli_(0.3).numpy(), w.unit64(400) < 0.3)
    p = np.linspace(0, 1, 400, dtype=np.float32)
    np.testing.assert_array_equal(pt.bernoulli(pt.from_numpy(p)).numpy(), w.unit(400) < p)
    np.testing.assert_array_equal(pt.bernoulli(pt.from_numpy(p).double()).numpy(), w.unit64(400) < p)
    x = pt.arange(400.0)
    kept = w.unit64(400) < 0.75
    np.testing.assert_array_equal(pt.nn.functional.dropout(x, 0.25).numpy(),
                                  np.where(kept, x.numpy() * (np.float32(1) / np.float32(0.75)), 0))


def test_transformed(pytorch):
    """By double precision, each from one number of 53 bits."""
    pt.manual_seed(6)
    w = Words(6)
    for made, from_unit in (
            (lambda x: x.exponential_(2.0), lambda u: -np.log1p(-u) / 2), (lambda x: x.cauchy_(1.0, 3.0),
                                                                          lambda u: 1 + 3 * np.tan(np.pi * (u - 0.5))),
            (lambda x: x.geometric_(0.2), lambda u: np.ceil(np.log(u) / np.log1p(-0.2)))):
        np.testing.assert_allclose(made(pt.empty(300, dtype=pt.float64)).numpy(), from_unit(w.unit64(300)), rtol=1e-14)
    counts = pt.empty(300, dtype=pt.int32).geometric_(0.2).numpy()
    np.testing.assert_array_equal(counts, np.ceil(np.log(w.unit64(300)) / np.log1p(-0.2)))


def pairs(w, n):
    """Normal numbers one by one: cosine, then sine."""
    u = w.unit64(n + n % 2).reshape(-1, 2)
    r = np.sqrt(-2 * np.log1p(-u[:, 1]))
    return np.stack([r * np.cos(2 * np.pi * u[:, 0]), r * np.sin(2 * np.pi * u[:, 0])], 1).reshape(-1)


def test_few_normals(pytorch):
    """Below 16, and in memory that is not row-major, one by one; the second of a pair is kept for the next call."""
    pt.manual_seed(7)
    w = Words(7)
    z = pairs(w, 26)
    parts = [pt.empty(5, dtype=pt.float64).normal_(), pt.empty(4, 3, dtype=pt.float64).t().normal_(1, 2),
             pt.empty(9, dtype=pt.float64).normal_()]
    np.testing.assert_allclose(parts[0].numpy(), z[:5], rtol=1e-13)
    np.testing.assert_allclose(parts[1].t().numpy().reshape(-1), z[5:17] * 2 + 1, rtol=1e-13)
    np.testing.assert_allclose(parts[2].numpy(), z[17:26], rtol=1e-13)
    pt.manual_seed(7)
    turned = pt.empty(30, 20, dtype=pt.float64).t().normal_()
    np.testing.assert_allclose(turned.t().numpy().reshape(-1), pairs(Words(7), 600), rtol=1e-13)


def blocks(u, logarithm, turned):
    """Normal numbers of blocks of 16 uniform ones."""
    u = u.reshape(-1, 2, 8)
    r = np.sqrt(-2 * logarithm(1 - u[:, 0]))
    cosine, sine = turned(u[:, 1])
    return np.stack([r * cosine, r * sine], 1).reshape(-1)


def test_many_normals_in_double_precision(pytorch):
    pt.manual_seed(8)
    w = Words(8)

    def turned(u):
        return np.cos(2 * np.pi * u), np.sin(2 * np.pi * u)
    np.testing.assert_allclose(pt.randn(160, dtype=pt.float64).numpy(), blocks(w.unit64(160), np.log, turned), rtol=1e-12)
    z = blocks(np.concatenate([(u := w.unit64(20))[:16], w.unit64(16)]), np.log, turned)
    np.testing.assert_allclose(pt.randn(20, dtype=pt.float64).numpy(), np.concatenate([z[:4], z[16:]]), rtol=1e-12)
    assert len(u) == 20                     # the numbers of the last elements are drawn, and made anew


def fma(a, b, c):
    """In float32: the product is exact in float64, and no sum here is halfway between two floats."""
    return (np.float64(a) * np.float64(b) + np.float64(c)).astype(np.float32)


def cephes_log(x):
    mantissa, e = np.frexp(x)
    low = mantissa < np.float32(math.sqrt(0.5))
    e = (e - low).astype(np.float32)
    x = np.where(low, (mantissa - np.float32(1)) + mantissa, mantissa - np.float32(1)).astype(np.float32)
    y, z = np.full_like(x, 7.0376836292e-2), x * x
    for c in (-1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1,
              -2.4999993993e-1, 3.3333331174e-1):
        y = fma(y, x, np.float32(c))
    y = fma(y * x, z, e * np.float32(-2.12194440e-4)) - z * np.float32(0.5)
    return fma(e, np.float32(0.693359375), x + y)


def cephes_circle(u):
    x = np.float32(2 * math.pi) * u
    octant = ((x * np.float32(1.27323954473516)).astype(np.int32) + 1) & ~1
    for part in (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8):
        x = fma(octant.astype(np.float32), np.float32(part), x)
    z = x * x
    c = fma(np.float32(2.443315711809948e-5), z, np.float32(-1.388731625493765e-3))
    c = fma(c, z, np.float32(4.166664568298827e-2)) * z
    c = fma(c, z, -(z * np.float32(0.5))) + np.float32(1)
    s = fma(np.float32(-1.9515295891e-4), z, np.float32(8.3321608736e-3))
    s = fma(fma(s, z, np.float32(-1.6666654611e-1)) * z, x, x)
    swapped = octant & 2 != 0
    sine = np.where(octant & 4, np.float32(-1), np.float32(1)) * np.where(swapped, c, s)
    return np.where((octant - 2) & 4, np.float32(1), np.float32(-1)) * np.where(swapped, s, c), sine


def test_many_normals_in_single_precision(pytorch):
    """To the bit: polynomials of Cephes with fused steps."""
    pt.manual_seed(9)
    w = Words(9)
    z = blocks(w.unit(16000), cephes_log, cephes_circle)
    assert z.dtype == np.float32
    np.testing.assert_array_equal(pt.randn(16000).numpy(), z)
    z = blocks(w.unit(1600), cephes_log, cephes_circle)
    np.testing.assert_array_equal(pt.empty(1600).normal_(0.5, 3).numpy(), fma(z, np.float32(3), np.float32(0.5)))
    z = blocks(w.unit(1600), cephes_log, cephes_circle)
    np.testing.assert_array_equal(pt.randn(1600, dtype=pt.float16).numpy(), z.astype(np.float16))


DRAWS = """
import hashlib
import ptcore as pt
pt.random.use("pytorch")
pt.manual_seed(2026)
h = hashlib.sha256()
for x in (pt.rand(5000), pt.randn(5003), pt.empty(5000).uniform_(-0.3, 1.7), pt.empty(5000).normal_(0.7, 3.3),
          pt.randperm(500), pt.randint(2**40, (500,)), pt.empty(500).bernoulli_(0.3),
          pt.bernoulli(pt.arange(500) / 500), pt.randn(500, dtype=pt.bfloat16).float(), pt.empty(50, 60).t().uniform_(),
          pt.randn(300, dtype=pt.complex64)):
    h.update(x.contiguous().reshape(-1).view(pt.uint8).numpy().tobytes())
print(h.hexdigest())
"""


@pytest.mark.outer
@pytest.mark.parametrize("level", ["base", "v3", "v4"])
def test_every_processor_draws_the_same(level):
    """The hash is of PyTorch's draws; a level that the processor or the build lacks is the best that there is."""
    said = subprocess.run([sys.executable, "-P", "-c", DRAWS], env={**os.environ, "PTCORE_CPU_CAPABILITY": level},
                          capture_output=True, text=True, check=True).stdout
    assert said.strip() == "b1976033568839d1ee592a3823ec915b93ed7e78ac4c4248e05470d63afb6e56"


def test_memory_order(pytorch):
    """Elements are drawn in the order of memory."""
    pt.manual_seed(1)
    flat = pt.rand(60)
    for made in (lambda: pt.empty(3, 4, 5).permute(2, 0, 1), lambda: pt.empty(60, 2)[:, 1].reshape(3, 4, 5),
                 lambda: pt.empty(1, 5, 3, 4).contiguous(memory_format=pt.channels_last)):
        x = made()
        pt.manual_seed(1)
        x.uniform_()
        dims = sorted(range(x.ndim), key=lambda k: -x.stride(k))
        assert x.permute(dims).reshape(-1).tolist() == flat.tolist()
    pt.manual_seed(1)
    assert pt.rand_like(pt.empty(4, 15).t()).t().reshape(-1).tolist() == flat.tolist()


def test_multinomial(pytorch):
    pt.manual_seed(2)
    w, p = Words(2), np.array([0.5, 0.0, 2.0, 1.0], np.float32)
    sums = np.cumsum(p, dtype=np.float32) / p.sum()
    np.testing.assert_array_equal(pt.multinomial(pt.from_numpy(p), 200, True).numpy(),
                                  np.searchsorted(sums.astype(np.float64), w.unit64(200), side="left"))
    with np.errstate(divide="ignore"):
        shares = p / (-np.log1p(-w.unit64(4))).astype(np.float32)
    assert pt.multinomial(pt.from_numpy(p), 3).tolist() == np.argsort(-shares)[:3].tolist()
    assert not (pt.multinomial(pt.from_numpy(p), 5000, True) == 1).any()
    pt.manual_seed(2)
    rows = pt.multinomial(pt.tensor([[1.0, 3.0], [0.0, 2.0]], dtype=pt.float64), 100, True)      # by random_places
    u = Words(2).unit64(200).reshape(2, 100)
    np.testing.assert_array_equal(rows.numpy(), [(u[0] > 0.25), np.ones(100)])


def test_gamma(pytorch):
    """By random_gamma: the first proposal that is accepted, of float constants."""
    pt.manual_seed(3)
    w, alpha = Words(3), 2.5
    found = pt.distributions.Gamma(pt.full((40,), alpha, dtype=pt.float64), 1.0).sample().numpy()
    d = alpha - float(np.float32(1) / np.float32(3))
    c, kept, want = 1 / math.sqrt(9 * d), [], []
    while len(want) < 40:
        if not kept:
            kept = pairs(w, 2).tolist()
        x = kept.pop(0)
        if (y := 1 + c * x) > 0:
            v, u = y**3, 1 - float(w.unit64(1)[0])
            if (u < 1 - float(np.float32(0.0331)) * x**4 or math.log(u) < 0.5 * x * x + d * (1 - v + math.log(v))):
                want.append(d * v)
    np.testing.assert_allclose(found, want, rtol=1e-12)


@pytest.mark.parametrize("dtype", [pt.float32, pt.float64])
def test_moments(pytorch, dtype):
    pt.manual_seed(3)
    n = 100000
    gamma = pt.distributions.Gamma(pt.tensor([0.3, 2.5], dtype=dtype), pt.ones((), dtype=dtype)).sample((n,))
    np.testing.assert_allclose(gamma.mean(0).numpy(), [0.3, 2.5], rtol=0.03)
    np.testing.assert_allclose(gamma.var(0).numpy(), [0.3, 2.5], rtol=0.05)
    for rate in (0.5, 30.0):
        counts = pt.poisson(pt.full((n,), rate, dtype=dtype))
        np.testing.assert_allclose([counts.mean(), counts.var()], [rate, rate], rtol=0.03)
    for trials, p in ((12, 0.2), (100, 0.7)):
        counts = pt.binomial(pt.full((n,), trials, dtype=dtype), pt.full((n,), p, dtype=dtype))
        np.testing.assert_allclose([counts.mean(), counts.var()], [trials * p, trials * p * (1 - p)], rtol=0.03)


# -- states ----------------------------------------------------------------------------------------

def draws(g):
    return [pt.rand(3, generator=g).tolist(), pt.empty(3).normal_(generator=g).tolist(), pt.randperm(9, generator=g).tolist()]


def test_states(pytorch):
    g = pt.Generator().manual_seed(2**40 + 5)
    pt.empty(3).normal_(generator=g)
    state = g.get_state()
    assert state.shape == (5056,) and state.dtype is pt.uint8
    raw = np.frombuffer(bytes(state.tolist()), np.uint64)
    assert raw[0] == 2**40 + 5 and raw[2] == 8 and (raw[3:3 + WORDS] < 2**32).all()
    want = draws(g)
    others = [pt.Generator(), g.clone_state(), pickle.loads(pickle.dumps(g)), copy.deepcopy(g)]
    for other in others:
        other.set_state(state)
        assert other.kind == "pytorch" and other.initial_seed() == 2**40 + 5 and draws(other) == want
    assert "kind='pytorch'" in repr(g)


def test_pickles_keep_the_place():
    with use("pytorch"):
        g = pt.Generator().manual_seed(3)
        pt.empty(1).normal_(generator=g)
        text = pickle.dumps(g)
        want = draws(g)
    again = pickle.loads(text)              # where the other kind is in use
    assert again.kind == "pytorch" and draws(again) == want
    with use("pytorch"):
        own = pickle.loads(pickle.dumps(pt.Generator().manual_seed(1)))
    assert own.kind == "pytorch"


def test_a_file_of_states(pytorch):
    pt.manual_seed(4)
    file = io.BytesIO()
    pt.save({"state": pt.get_rng_state()}, file)
    want = pt.rand(4)
    file.seek(0)
    pt.set_rng_state(pt.load(file)["state"])
    assert pt.rand(4).tolist() == want.tolist()


def test_states_of_the_other_kind_are_refused():
    plain = pt.Generator().manual_seed(1)
    with use("pytorch"):
        twister = pt.Generator()
    with pytest.raises(RuntimeError, match="set_state: state must be that of a generator of the kind 'ptcore', 16 bytes, "
                                           "got the 5056 bytes of one of the kind 'pytorch'"):
        plain.set_state(twister.get_state())
    with pytest.raises(RuntimeError, match="of the kind 'pytorch', 5056 bytes, got the 16 bytes of one of the kind 'ptcore'"):
        twister.set_state(plain.get_state())
    with pytest.raises(RuntimeError, match="vector of 5056 bytes, got shape \\[7\\]"):
        twister.set_state(pt.zeros(7, dtype=pt.uint8))
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        twister.set_state(pt.zeros(5056, dtype=pt.uint8))
    assert plain.kind == "ptcore" and twister.kind == "pytorch"


@pytest.mark.parametrize("call", [lambda g: g.get_offset(), lambda g: g.set_offset(0)])
def test_there_is_no_offset(pytorch, call):
    with pytest.raises(RuntimeError, match="a generator of the kind 'pytorch' has no offset"):
        call(pt.Generator())


def damaged(place, *values):
    state = np.zeros(5056, np.uint8)
    state[8], state[12] = 1, 1              # at the start of a block
    state[place:place + len(values)] = values
    return pt.from_numpy(state)


@pytest.mark.parametrize("state", [damaged(12, 0), damaged(8, 0), damaged(8, 255, 255, 255, 255), damaged(8, 200, 3),
                                   damaged(16, 255, 255), damaged(22, 1), damaged(8, 112, 2, 0, 0, 1, 0, 0, 0, 5)])
def test_states_that_would_read_past_the_words(pytorch, state):
    g = pt.Generator().manual_seed(1)
    before = g.get_state()
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        g.set_state(state)
    assert g.get_state().tolist() == before.tolist()


def test_a_pickle_with_other_bytes():
    restore = pt._random._restore
    for state in (b"", b"1" * 16, bytes(5056), b"\xff" * 5056):
        with pytest.raises(RuntimeError):
            restore("cpu", 0, 0, state)
    with pytest.raises(RuntimeError, match="no state of the kind 'pytorch'"):
        restore("meta", 0, 0, bytes(5056))


# -- which kind ------------------------------------------------------------------------------------

def test_use():
    pt.manual_seed(5)
    own = pt.rand(3).tolist()
    pt.manual_seed(5)
    with use("pytorch"):
        assert pt.default_generator.kind == "pytorch" and pt.Generator().kind == "pytorch"
        theirs = pt.rand(3).tolist()
        with use("ptcore"):
            assert pt.rand(3).tolist() == own
        with use("pytorch"):
            assert pt.rand(3).tolist() != theirs
        assert pt.default_generator.kind == "pytorch"
    assert pt.default_generator.kind == pt.Generator().kind == "ptcore"
    assert theirs == Words(5).unit(3).tolist() != own
    with pytest.raises(ValueError, match="use: kind must be 'ptcore' or 'pytorch', got 'torch'"):
        use("torch")


def test_use_without_a_block():
    before = use("pytorch")
    try:
        assert pt.default_generator.kind == "pytorch"
    finally:
        use("ptcore")
    assert pt.default_generator.kind == "ptcore" and before is not None


def test_a_generator_keeps_its_kind():
    plain = pt.Generator().manual_seed(6)
    want = pt.rand(3, generator=plain.clone_state()).tolist()
    with use("pytorch"):
        twister = pt.Generator().manual_seed(6)
        assert pt.rand(3, generator=plain).tolist() == want
    assert pt.rand(3, generator=twister).tolist() == Words(6).unit(3).tolist()


def test_contexts_restore_the_kind():
    with use("pytorch"):
        pt.manual_seed(7)
        with pt.random.fork_rng():
            first = pt.rand(3).tolist()
        assert pt.rand(3).tolist() == first
        with pt.random.fork_rng():
            use("ptcore")
        assert pt.default_generator.kind == "pytorch"


def test_meta_draws_nothing(pytorch):
    pt.manual_seed(8)
    state = pt.get_rng_state()
    for call in (lambda: pt.rand(3, device="meta"), lambda: pt.randn(20, device="meta"),
                 lambda: pt.empty(3, device="meta").cauchy_(), lambda: pt.empty(3, 4, device="meta").t().normal_(),
                 lambda: pt.nn.functional.dropout(pt.ones(4, device="meta"), 0.5)):
        assert call().is_meta
    assert pt.get_rng_state().tolist() == state.tolist()


# -- programs --------------------------------------------------------------------------------------

def program(x):
    y = pt.nn.functional.dropout(x, 0.3) + pt.rand(4, 6) + pt.empty(6, 4).t().normal_()
    y = y + pt.empty(4, 6).cauchy_() + pt.bernoulli(pt.sigmoid(x)) + pt.nn.functional.rrelu(x, training=True)
    return y + pt.nn.functional.alpha_dropout(x, 0.2, True) + pt.randint(9, (4, 6)) + pt.empty(4, 6).geometric_(0.3)


@pytest.mark.parametrize("kind", ["pytorch", "ptcore"])
@pytest.mark.parametrize("grad", [False, True])
def test_compiled_programs_draw_the_same(kind, grad):
    compiled = pt.compile(program)
    x = pt.linspace(-1, 1, 24).reshape(4, 6).requires_grad_(grad)
    for other in ("pytorch", "ptcore", kind):
        with use(other):
            for k in range(3):
                pt.manual_seed(k)
                want, state = program(x), pt.get_rng_state().tolist()
                pt.manual_seed(k)
                assert compiled(x).tolist() == want.tolist()
                assert pt.get_rng_state().tolist() == state
                if grad:
                    pt.manual_seed(k)
                    (g,), (h,) = [pt.autograd.grad(y.sum(), x) for y in (want, compiled(x))]
                    np.testing.assert_allclose(g.numpy(), h.numpy(), rtol=1e-6)


def test_traced_programs_draw_the_same(pytorch):
    x = pt.linspace(-1, 1, 24).reshape(4, 6)
    traced = pt.jit.trace(program, (x,))
    for k in range(3):
        pt.manual_seed(k)
        want = program(x)
        pt.manual_seed(k)
        assert traced(x).tolist() == want.tolist()


def test_checkpoints_draw_again(pytorch):
    from ptcore.utils.checkpoint import checkpoint
    w = pt.ones(8, 8, requires_grad=True)
    pt.manual_seed(0)
    out = checkpoint(lambda w: pt.nn.functional.dropout(w, 0.5) * w, w, use_reentrant=False)
    state = pt.get_rng_state().tolist()
    out.sum().backward()
    assert ((w.grad != 0) == (out != 0)).all() and pt.get_rng_state().tolist() == state


def test_a_recorded_program_runs_with_the_other_kind():
    """Rows of PyTorch's kind take their words from the counter then."""
    from ptcore.fx.experimental.proxy_tensor import make_fx
    x = pt.linspace(-1, 1, 24).reshape(4, 6)
    with use("pytorch"):
        graph = make_fx(program)(x)
    pt.manual_seed(1)
    first = graph(x)
    pt.manual_seed(1)
    assert graph(x).tolist() == first.tolist() != graph(x).tolist()
    with use("pytorch"):
        graph = make_fx(lambda x: x + pt.empty(100, 200).t().normal_())(pt.zeros(200, 100))
    values = graph(pt.zeros(200, 100))
    assert abs(float(values.mean())) < 0.03 and abs(float(values.var()) - 1) < 0.05


def test_vmap(pytorch):
    x = pt.zeros(4, 3)
    pt.manual_seed(1)
    want = pt.rand(4, 3)
    pt.manual_seed(1)
    assert pt.func.vmap(lambda x: x + pt.rand(3), randomness="different")(x).tolist() == want.tolist()
    pt.manual_seed(1)
    assert pt.func.vmap(lambda x: pt.nn.functional.dropout(x + 1, 0.5), randomness="same")(x).unique(dim=0).shape[0] == 1


# -- threads and processes ---------------------------------------------------------------------------

def test_threads_share_a_generator(pytorch):
    """Every word is drawn once."""
    g, found = pt.Generator().manual_seed(9), []

    def work():
        for _ in range(20):
            found.append(full_words(3000, g))
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    want = Words(9).of64(4 * 20 * 3000)
    assert np.array_equal(np.sort(np.concatenate(found)), np.sort(want))
    assert full_words(2, g).tolist() == Words(9).of64(4 * 20 * 3000 + 2)[-2:].tolist()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_forks_while_others_draw(pytorch):
    """A child can draw, whatever threads of the parent did."""
    g, ends = pt.Generator(), threading.Event()

    def work():
        while not ends.is_set():
            pt.rand(20000, generator=g)
    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if not child:
                os._exit(0 if pt.rand(3, generator=pt.Generator()).numel() == 3 else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        ends.set()
        thread.join()


class Drawn:
    def __len__(self):
        return 6

    def __getitem__(self, k):
        return pt.default_generator.kind, pt.rand(2).tolist()


@pytest.mark.outer
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers(pytorch, method):
    """A worker has the loader's kind of generators, however it was started."""
    import multiprocessing
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip("no such start method")
    pt.manual_seed(3)
    loader = pt.utils.data.DataLoader(Drawn(), 3, num_workers=2, collate_fn=list, multiprocessing_context=method)
    found = [sample for batch in loader for sample in batch]
    base = int(Words(3).of64(1)[0] % np.uint64(2**63))
    want = [Words(base + k).unit(6).reshape(3, 2).tolist() for k in range(2)]
    assert found == [("pytorch", row) for rows in want for row in rows]


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_loader_goes_on(pytorch, shuffle):
    def made(generator):
        return pt.utils.data.DataLoader(list(range(20)), 3, shuffle=shuffle, generator=generator)
    pt.manual_seed(4)
    loader = made(pt.Generator().manual_seed(1))
    it = iter(loader)
    for _ in range(3):
        next(it)
    file = io.BytesIO()
    pt.save(loader.state_dict(), file)
    rest = [b.tolist() for b in it] + [b.tolist() for b in loader]
    file.seek(0)
    other = made(pt.Generator().manual_seed(77))
    other.load_state_dict(pt.load(file))
    assert [b.tolist() for b in other] + [b.tolist() for b in other] == rest


def test_samplers(pytorch):
    pt.manual_seed(5)
    w = Words(5)
    seed = int(w.of64(1)[0] % np.uint64(2**63))
    order = pt.randperm(9, generator=pt.Generator().manual_seed(seed)).tolist()
    assert list(pt.utils.data.RandomSampler(range(9))) == order
    draws = pt.utils.data.RandomSampler(range(9), True, 70, generator=pt.Generator().manual_seed(6))
    assert list(draws) == (Words(6).of32(70) % np.uint64(9)).tolist()
    split = pt.utils.data.random_split(range(9), [4, 5], generator=pt.Generator().manual_seed(7))
    assert [i for s in split for i in s.indices] == pt.randperm(9, generator=pt.Generator().manual_seed(7)).tolist()


def test_initialisers(pytorch):
    pt.manual_seed(6)
    w = pt.nn.init.trunc_normal_(pt.empty(200, 50), 1.0, 2.0, 0.5, 1.5)
    assert w.min() >= 0.5 and w.max() <= 1.5 and abs(float(w.mean()) - 1) < 0.02
    w = pt.nn.init.trunc_normal_(pt.empty(200, 50))
    assert w.abs().max() <= 2 and abs(float(w.var()) - 0.774) < 0.03
    with pt.random.fork_rng():
        bound = 1 / math.sqrt(20)
        weight = pt.empty(5, 20).uniform_(-bound, bound)
        bias = pt.empty(5).uniform_(-bound, bound)
    layer = pt.nn.Linear(20, 5)
    np.testing.assert_allclose(layer.weight.detach().numpy(), weight.numpy(), rtol=1e-6)
    assert layer.bias.tolist() == bias.tolist()


def test_bernoulli_of_fewer_probabilities():
    """Each element is drawn with its own number, also where one probability serves several."""
    for kind in ("ptcore", "pytorch"):
        with use(kind):
            pt.manual_seed(7)
            x = pt.zeros(1000).bernoulli_(pt.tensor([0.5]))
            assert 400 < int(x.sum()) < 600
