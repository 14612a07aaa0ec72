"""Draws with a generator of the kind "pytorch" against PyTorch, to the bit, with the state after each call."""
import random

import _pytorch_numbers
import pytest
from _pytorch_numbers import bits, need_own_flags, states

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

LIBS = (pt, torch)
FLOATS = ("float32", "float64", "float16", "bfloat16")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8", "bool")
SIZES = (0, 1, 7, 15, 16, 17, 33, 100, 1000)


@pytest.fixture(autouse=True)
def pytorch():
    with pt.random.use("pytorch"):
        yield


def same(call):
    _pytorch_numbers.same(torch, call, times=2)


def dt(lib, name):
    return getattr(lib, name)


def layouts(lib, size, dtype):
    """Memory of ``size`` elements in several layouts."""
    made = {"plain": lib.empty(size, dtype=dtype)}
    if size % 2 == 0 and size:
        made["turned"] = lib.empty(2, size // 2, dtype=dtype).t()
        made["cut"] = lib.empty(size // 2, 5, dtype=dtype)[:, 1:3]
        made["stepped"] = lib.empty(2 * size, dtype=dtype)[::2]
    if size == 1000:
        made["channels_last"] = lib.empty(5, 4, 5, 10, dtype=dtype).contiguous(memory_format=lib.channels_last)
        made["permuted"] = lib.empty(5, 4, 5, 10, dtype=dtype).permute(2, 0, 3, 1)
        made["cut of permuted"] = lib.empty(5, 8, 5, 10, dtype=dtype).permute(2, 0, 3, 1)[:, 1:, :, ::2]
    return made


def fills(names, call):
    def run(lib):
        results = []
        for name in names:
            for size in SIZES:
                for x in layouts(lib, size, dt(lib, name)).values():
                    results.append(call(x))
        return results
    same(run)


FLOAT_FILLS = {
    "uniform": lambda x: x.uniform_(), "bounds": lambda x: x.uniform_(-0.3, 1.7), "far": lambda x: x.uniform_(1e3, 1e3 + 1),
    "point": lambda x: x.uniform_(2.0, 2.0), "narrow": lambda x: x.uniform_(1.0, 1.0000002),
    "normal": lambda x: x.normal_(), "scaled": lambda x: x.normal_(0.7, 3.3), "constant": lambda x: x.normal_(2.0, 0.0),
    "exponential": lambda x: x.exponential_(), "rate": lambda x: x.exponential_(2.7),
    "cauchy": lambda x: x.cauchy_(), "wide": lambda x: x.cauchy_(1.5, 0.3), "log_normal": lambda x: x.log_normal_(0.1, 0.5),
    "geometric": lambda x: x.geometric_(0.3), "rare": lambda x: x.geometric_(0.001), "random": lambda x: x.random_(),
    "below": lambda x: x.random_(100), "between": lambda x: x.random_(-5, 200), "coins": lambda x: x.bernoulli_(0.3),
    "half": lambda x: x.bernoulli_(), "sure": lambda x: x.bernoulli_(1.0)}


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("fill", FLOAT_FILLS)
def test_fills(fill, name):
    if fill in ("coins", "half", "sure"):
        need_own_flags(torch)
    fills([name], FLOAT_FILLS[fill])


@pytest.mark.parametrize("name", COMPLEX)
@pytest.mark.parametrize("fill", ["uniform", "bounds", "normal", "scaled"])
def test_complex_fills(fill, name):
    fills([name], FLOAT_FILLS[fill])


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_fills(name):
    fills([name], lambda x: x.random_())
    fills([name], lambda x: x.random_(0, 2))
    if name != "bool":
        fills([name], lambda x: x.random_(100))
        fills([name], lambda x: x.random_(3, 90))
        fills([name], lambda x: x.geometric_(0.2))
    if name.startswith("int"):
        fills([name], lambda x: x.random_(5, None))


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_flags(name):
    need_own_flags(torch)
    fills([name], lambda x: x.bernoulli_(0.4))


def test_ranges():
    """The lengths at which a draw takes two words, and those of 64 bits."""
    for length in (1, 2, 2**16, 2**28 - 1, 2**28, 2**28 + 1, 2**32, 2**40, 2**63 - 1):
        same(lambda lib, n=length: lib.empty(50, dtype=lib.int64).random_(0, n))
        same(lambda lib, n=length: lib.randint(-n // 2, n - n // 2, (3, 7)))
    same(lambda lib: lib.empty(50, dtype=lib.int64).random_(-2**63, None))
    same(lambda lib: lib.empty(50, dtype=lib.int64).random_(-2**63, 2**63 - 1))
    same(lambda lib: lib.empty(50, dtype=lib.int64).random_(0, None))
    same(lambda lib: lib.empty(50, dtype=lib.int32).random_(0, None))
    same(lambda lib: lib.empty(50, dtype=lib.int32).random_(-2**31, None))


def test_functions():
    for name in FLOATS + COMPLEX:
        for size in SIZES:
            same(lambda lib, n=size, d=name: [lib.rand(n, dtype=dt(lib, d)), lib.randn(n, dtype=dt(lib, d))])
    for name in ("int64", "int32", "uint8", "float32", "float16"):
        same(lambda lib, d=name: [lib.randint(0, 100, (n,), dtype=dt(lib, d)) for n in SIZES])
        same(lambda lib, d=name: [lib.randperm(n, dtype=dt(lib, d)) for n in (0, 1, 2, 50, 200)])
    same(lambda lib: [lib.randperm(n) for n in SIZES])
    same(lambda lib: lib.normal(1.0, 2.5, (3, 40)))


def test_like():
    def run(lib):
        results = []
        for x in layouts(lib, 1000, lib.float32).values():
            x.fill_(0)
            results += [lib.rand_like(x), lib.randn_like(x), lib.randint_like(x, 50), lib.randint_like(x, -3, 9),
                        lib.rand_like(x, dtype=lib.float64), lib.randn_like(x, memory_format=lib.contiguous_format)]
        x = lib.zeros(2, 3, 4, 5)
        return [*results, lib.rand_like(x, memory_format=lib.channels_last),
                lib.randn_like(x, memory_format=lib.channels_last)]
    same(run)
    same(lambda lib: [r.stride() for r in [lib.rand_like(x) for x in layouts(lib, 1000, lib.float32).values()]])


def test_out():
    same(lambda lib: [lib.rand(5, 6, out=lib.empty(6, 5).t()), lib.randn(5, 6, out=lib.empty(6, 5).t()),
                      lib.rand(40, out=lib.empty(80)[::2]), lib.randint(0, 9, (5, 6), out=lib.empty(6, 5).t()),
                      lib.randperm(9, out=lib.empty(9, dtype=lib.int32)),
                      lib.normal(lib.ones(5, 6), 2.0, out=lib.empty(6, 5).t()),
                      lib.normal(lib.ones(5, 6), lib.ones(6), out=lib.empty(5, 12)[:, ::2]),
                      lib.bernoulli(lib.full((5, 6), 0.4), out=lib.empty(6, 5).t()),
                      lib.normal(0.0, 1.0, (5, 6), out=lib.empty(6, 5).t())])


@pytest.mark.parametrize("n", [3, 15, 16, 40])
def test_normal_of_tensors(n):
    def run(lib):
        mean, std = lib.arange(n) / 8 - 1, (lib.arange(n) + 1) / 16
        return [lib.normal(mean, std), lib.normal(mean, 0.3), lib.normal(2.0, std), lib.normal(mean.double(), std.double()),
                lib.normal(mean, lib.full((4, 1), 0.7)), lib.normal(mean.half(), 0.3)]
    same(run)


@pytest.mark.parametrize("name", FLOATS)
def test_bernoulli(name):
    def run(lib):
        p = lib.linspace(0, 1, 60).to(dt(lib, name))
        turned = p.reshape(6, 10).t()
        results = [lib.bernoulli(p), lib.bernoulli(turned), turned.bernoulli(),
                   lib.zeros(60, dtype=lib.int64).bernoulli_(p), lib.zeros(6, 10).t().bernoulli_(turned),
                   lib.zeros(4, 60).bernoulli_(p), lib.zeros(6, 10).t().bernoulli_(p[:6]),
                   lib.bernoulli(p.expand(3, 60)), lib.bernoulli(p[:, None].expand(60, 3))]
        return results
    same(run)
    need_own_flags(torch)
    same(lambda lib: lib.bernoulli(lib.empty(6, 10).t(), 0.3))


@pytest.mark.parametrize("name", FLOATS)
def test_multinomial(name):
    def run(lib):
        p = lib.linspace(0.1, 3, 30).to(dt(lib, name))
        rows = p.reshape(5, 6)
        return [lib.multinomial(p, 1), lib.multinomial(p, 7), lib.multinomial(p, 50, True), lib.multinomial(p, 1, True),
                lib.multinomial(rows, 3), lib.multinomial(rows, 40, True), lib.multinomial(rows.t(), 2),
                lib.multinomial(rows.t(), 20, replacement=True)]
    same(run)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_counts(name):
    def run(lib):
        rate = lib.linspace(0, 60, 200).to(dt(lib, name))
        n, p = lib.arange(200).to(dt(lib, name)), lib.linspace(0, 1, 200).to(dt(lib, name))
        return [lib.poisson(rate), lib.poisson(rate.reshape(10, 20).t()), lib.binomial(n, p), lib.binomial(n.flip(0), p),
                lib.binomial(n.reshape(10, 20).t(), p.reshape(10, 20).t())]
    same(run)


# -- states --------------------------------------------------------------------------------------

def mixed(lib, k):
    return [lambda: lib.rand(k), lambda: lib.empty(3).normal_(), lambda: lib.randperm(k), lambda: lib.randn(k)][k % 4]()


def test_states_are_interchangeable():
    """A stream goes on in the other library, also between the two numbers of a pair."""
    for draws in range(1, 9):
        torch.manual_seed(draws)
        for k in range(draws):
            mixed(torch, k + 5)
        pt.set_rng_state(pt.from_numpy(torch.get_rng_state().numpy()))
        for k in range(6):
            assert bits(pt, mixed(pt, k + 9)) == bits(torch, mixed(torch, k + 9))
        for k in range(draws):
            mixed(pt, k + 3)
        torch.set_rng_state(torch.from_numpy(pt.get_rng_state().numpy()))
        for k in range(6):
            assert bits(pt, mixed(pt, k + 7)) == bits(torch, mixed(torch, k + 7))


@pytest.mark.parametrize("seed", [0, 1, -1, -2**63, 2**63 - 1, 2**64 - 1, 2**32, 2**32 + 5, 123456789012345])
def test_seeds(seed):
    for lib in LIBS:
        lib.manual_seed(seed)
    assert pt.initial_seed() == torch.initial_seed()
    assert states(pt) == states(torch)
    g, h = [lib.Generator().manual_seed(seed) for lib in LIBS]
    assert g.initial_seed() == h.initial_seed()
    assert bits(pt, pt.rand(9, generator=g)) == bits(torch, torch.rand(9, generator=h))
    assert bytes(g.get_state().tolist()) == bytes(h.get_state().tolist())


def test_a_new_generator_begins_as_pytorch_s_does():
    g, h = pt.Generator(), torch.Generator()
    assert g.initial_seed() == h.initial_seed() == 67280421310721
    assert bytes(g.get_state().tolist()) == bytes(h.get_state().tolist())


@pytest.mark.parametrize("place, value", [(12, 0), (9, 255), (17, 255)])
def test_states_that_are_none(place, value):
    state = torch.get_rng_state()
    state[place] = value
    state[place + 1:place + 4] = value if place == 12 else state[place + 1:place + 4]
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        torch.Generator().set_state(state)
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        pt.Generator().set_state(pt.from_numpy(state.numpy()))


# -- programs ------------------------------------------------------------------------------------

def drawn_call(choose, fills):
    """A random call: of any function, at a random dtype, size and layout."""
    name, size = choose.choice(FLOATS), choose.choice([1, 3, 15, 16, 17, 40, 96])
    kind = choose.randrange(12 if "coins" in fills else 11)
    if kind < 5:
        fill = FLOAT_FILLS[choose.choice(fills)]
        way = choose.randrange(3)

        def call(lib):
            x = lib.empty(size, 6, dtype=dt(lib, name))
            return fill(x if way == 0 else x.t() if way == 1 else x[:, 1:4])
        return call
    if kind == 5:
        high = choose.choice([2, 10, 2**20, 2**28, 2**40])
        return lambda lib: lib.randint(high, (size, 2))
    return [lambda lib: lib.randperm(size), lambda lib: lib.randn(size, dtype=dt(lib, name)),
            lambda lib: lib.rand(size, 2, dtype=dt(lib, name)), lambda lib: lib.bernoulli(lib.arange(size) / size),
            lambda lib: lib.multinomial(lib.arange(size) + 1.0, 1 + size // 2),
            lambda lib: lib.nn.functional.dropout(lib.ones(size, 3, dtype=dt(lib, name)).t(), 0.25)][kind - 6]


@pytest.mark.parametrize("seed", range(30))
def test_programs(seed):
    choose = random.Random(seed)
    flags = () if not _pytorch_numbers.uses_mkl(torch) else ("coins", "half", "sure")
    calls = [drawn_call(choose, [name for name in sorted(FLOAT_FILLS) if name not in flags]) for _ in range(20)]
    for lib in LIBS:
        lib.manual_seed(seed)
    for call in calls:
        mine, theirs = [bits(lib, call(lib)) for lib in LIBS]
        assert mine == theirs
        assert states(pt) == states(torch)
