"""Random numbers on a device are those of the CPU, bit for bit where the formula is exact on both."""
import numpy as np
import pytest

import ptcore
from ptcore import cuda
from ptcore.nn import functional as F

FLOATS = ("float16", "bfloat16", "float32", "float64")
SIZES = (0, 1, 5, 1003, (3, 70, 33))


def both(draw, seed=3):
    """What a function of the device draws on the CPU and on the device, with the same seed."""
    results = []
    for device in ("cpu", "cuda"):
        ptcore.manual_seed(seed)
        first, second = draw(device), draw(device)
        assert first.device.type == device
        results.append((first.cpu(), second.cpu()))
    assert results[0][0].numel() < 5 or not results[0][0].equal(results[0][1])
    return results


def assert_same(draw):
    (a, b), (x, y) = both(draw)
    assert a.equal(x)
    assert b.equal(y)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", SIZES)
def test_floats(dtype, size):
    dtype = getattr(ptcore, dtype)
    assert_same(lambda device: ptcore.rand(size, dtype=dtype, device=device))
    assert_same(lambda device: ptcore.empty(size, dtype=dtype, device=device).uniform_(-2, 3))
    for draw in (lambda device: ptcore.randn(size, dtype=dtype, device=device),
                 lambda device: ptcore.empty(size, dtype=dtype, device=device).exponential_(0.5)):
        (a, b), (x, y) = both(draw)
        ptcore.testing.assert_close(x, a, rtol=1e-6 if dtype.itemsize > 2 else 1e-2, atol=1e-7)
        ptcore.testing.assert_close(y, b, rtol=1e-6 if dtype.itemsize > 2 else 1e-2, atol=1e-7)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64", "float32", "bool"])
def test_whole_numbers(dtype):
    dtype = getattr(ptcore, dtype)
    if dtype is not ptcore.bool:
        assert_same(lambda device: ptcore.randint(3, 100, (517,), dtype=dtype, device=device))
    assert_same(lambda device: ptcore.empty(517, dtype=dtype, device=device).bernoulli_(0.3))
    if dtype.kind in "iu":
        assert_same(lambda device: ptcore.empty(1003, dtype=dtype, device=device).random_())


def test_wide_ranges():
    assert_same(lambda device: ptcore.randint(-2 ** 62, 2 ** 62 + 1, (600,), device=device))
    assert_same(lambda device: ptcore.randint(0, 3 * 2 ** 40, (600,), device=device))


def test_of_tensors():
    p = ptcore.linspace(0, 1, 301)
    assert_same(lambda device: ptcore.bernoulli(p.to(device)))
    rates = ptcore.linspace(0, 40, 301)
    assert_same(lambda device: ptcore.poisson(rates.to(device)))
    count = ptcore.arange(301.)
    assert_same(lambda device: ptcore.binomial(count.to(device), p.to(device)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_dropout(dtype):
    x = ptcore.arange(1., 1004).to(getattr(ptcore, dtype))
    assert_same(lambda device: F.dropout(x.to(device), 0.3))
    ptcore.manual_seed(1)
    y = x.cuda().requires_grad_()
    out = F.dropout(y, 0.5)
    out.sum().backward()
    assert ((y.grad != 0) == (out != 0)).all()


def test_a_generator():
    a = ptcore.rand(100, generator=ptcore.Generator().manual_seed(7))
    g = ptcore.Generator("cuda").manual_seed(7)
    assert g.device == ptcore.device("cuda:0")
    assert a.equal(ptcore.rand(100, generator=g, device="cuda").cpu())
    assert not a.equal(ptcore.rand(100, generator=g, device="cuda").cpu())
    with pytest.raises(RuntimeError, match="generator: it must be one of the tensor's device, cuda:0, got one of cpu"):
        ptcore.rand(2, generator=ptcore.Generator(), device="cuda")
    with pytest.raises(RuntimeError, match="generator: it must be one of the tensor's device, cpu, got one of cuda:0"):
        ptcore.rand(2, generator=g)


@pytest.mark.parametrize("n", [0, 1, 2, 511, 512, 513, 3000])
def test_permutations(n):
    for dtype in (ptcore.int64, ptcore.int32, ptcore.float64):
        results = []
        for device in ("cpu", "cuda"):
            ptcore.manual_seed(n)
            results.append(ptcore.randperm(n, dtype=dtype, device=device).cpu())
        assert results[0].equal(results[1])


def test_seeding_the_device():
    cuda.manual_seed(5)
    assert cuda.initial_seed() == 5
    a = ptcore.rand(10, device="cuda")
    cuda.manual_seed_all(5)
    assert a.equal(ptcore.rand(10, device="cuda"))
    assert not a.equal(ptcore.rand(10, device="cuda"))
    ptcore.manual_seed(5)                       # seeds the devices as well
    assert a.equal(ptcore.rand(10, device="cuda"))
    ptcore.random.seed()
    assert cuda.initial_seed() == ptcore.initial_seed()
    cuda.seed()
    assert cuda.initial_seed() != ptcore.initial_seed()
    cuda.seed_all()
    assert cuda.default_generators[0].initial_seed() == cuda.initial_seed()


def test_generators_go_on_apart():
    """What the CPU draws does not move a device's generator, nor one device another's."""
    ptcore.manual_seed(3)
    a = ptcore.rand(4, device="cuda")
    ptcore.manual_seed(3)
    ptcore.rand(4)
    if cuda.device_count() > 1:
        assert ptcore.rand(4, device="cuda:1").cpu().equal(a.cpu())
    assert ptcore.rand(4, device="cuda").equal(a)


def test_states():
    state, all_states = cuda.get_rng_state(), cuda.get_rng_state_all()
    assert state.device.type == "cpu" and state.dtype is ptcore.uint8
    assert len(all_states) == cuda.device_count() == len(cuda.default_generators)
    a = ptcore.rand(4, device="cuda")
    cuda.set_rng_state(state)
    assert ptcore.rand(4, device="cuda").equal(a)
    cuda.set_rng_state_all(all_states)
    assert ptcore.rand(4, device="cuda").equal(a)
    with ptcore.random.fork_rng():
        b = ptcore.rand(4, device="cuda")
    assert ptcore.rand(4, device="cuda").equal(b)
    with pytest.raises(RuntimeError, match="set_rng_state_all: there are"):
        cuda.set_rng_state_all([state] * 99)


def test_a_checkpoint_draws_again():
    from ptcore.utils.checkpoint import checkpoint
    for reentrant in (True, False):
        x = ptcore.ones(200, device="cuda", requires_grad=True)
        y = checkpoint(lambda t: F.dropout(t * 2, 0.5), x, use_reentrant=reentrant)
        y.sum().backward()
        assert ((x.grad != 0) == (y != 0)).all()


def test_pytorch_s_numbers_are_of_the_cpu_alone():
    """Devices draw as before, also by what is composed otherwise on the CPU."""
    def draws():
        ptcore.manual_seed(12)
        x = ptcore.linspace(-1, 1, 24, device="cuda").reshape(4, 6)
        return [y.tolist() for y in (
            ptcore.rand(5, device="cuda"), ptcore.randn(20, device="cuda"), ptcore.rand_like(x.t()),
            x.clone().t().normal_(), x.clone().cauchy_(), x.clone().t().bernoulli_(0.4), ptcore.bernoulli(x.abs()),
            x.clone().geometric_(0.3), x.clone().log_normal_(), x.clone().random_(),
            ptcore.randperm(9, device="cuda"), ptcore.normal(x, 0.3), F.dropout(x.t(), 0.5),
            F.alpha_dropout(x, 0.3, True), F.dropout1d(x, 0.5), F.rrelu(x, training=True),
            ptcore.multinomial(x.abs() + 1, 3), F.scaled_dot_product_attention(x, x, x, dropout_p=0.4))]
    want = draws()
    with ptcore.random.use("pytorch"):
        assert ptcore.Generator(device="cuda").kind == "ptcore"
        assert draws() == want


DRAWN = {
    "dropout": lambda x: ptcore.nn.functional.dropout(x + 1, 0.5), "bernoulli": lambda x: ptcore.bernoulli(x * 0 + 0.5),
    "poisson": lambda x: ptcore.poisson(x * 0 + 9), "rrelu": lambda x: ptcore.nn.functional.rrelu(-x, training=True),
    "multinomial": lambda x: ptcore.multinomial(x[0] * 0 + 1, 3), "normal": lambda x: ptcore.normal(x, 1.0),
}


@pytest.mark.parametrize("name", DRAWN)
def test_the_same_numbers_for_each_sample(name):
    """The device's generator goes back for each of them, not the CPU's."""
    x = ptcore.ones(8, 3, 4, device="cuda")
    ptcore.manual_seed(3)
    one = DRAWN[name](x[0])
    ptcore.manual_seed(3)
    got = ptcore.vmap(DRAWN[name], randomness="same")(x)
    assert all((got[k] == one).all() for k in range(8))
    got = ptcore.vmap(DRAWN[name], randomness="different")(x)
    assert len({tuple(row.flatten().tolist()) for row in got}) > 1


def test_captures_go_back_to_the_device_s_numbers():
    """A first call draws twice, by its capture and by its plan or by itself, and gives what the function gives."""
    def of_chosen(x):
        y = ptcore.rand(8, device="cuda")
        z = y[y > 0.5]
        return z * ptcore.rand(z.shape, device="cuda") + x

    def by_branches(x):
        y = ptcore.nn.functional.dropout(x.expand(8) + 1, 0.5)
        return y + ptcore.rand(8, device="cuda") if y.sum() > 7 else y - ptcore.rand(8, device="cuda")

    x, places = ptcore.ones(1, device="cuda"), ptcore.cuda.default_generators[0]
    for f in (of_chosen, by_branches):
        compiled = ptcore.compile(f)
        for seed in range(6):
            found = []
            for call in (f, compiled):
                ptcore.manual_seed(seed)
                found.append((call(x).tolist(), places.get_state().tolist()))
            assert found[0] == found[1], (f.__name__, seed)


@pytest.mark.parametrize("name", ["trunc_normal_", "orthogonal_", "sparse_"])
def test_weights_are_drawn_on_their_device(name):
    """By the device's generator, whose numbers are those of the CPU's."""
    fill, options = getattr(ptcore.nn.init, name), {"sparsity": 0.3} if name == "sparse_" else {}
    want = fill(ptcore.empty(8, 6), generator=ptcore.Generator().manual_seed(7), **options)
    got = fill(ptcore.empty(8, 6, device="cuda"), generator=ptcore.Generator("cuda").manual_seed(7), **options)
    np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), rtol=1e-6)
    ptcore.cuda.manual_seed(7)
    before = ptcore.get_rng_state().tolist()
    again = fill(ptcore.empty(8, 6, device="cuda"), **options)
    assert (again == got).all() and ptcore.get_rng_state().tolist() == before


REFUSED = {
    "bernoulli": (lambda x: ptcore.bernoulli(x), [0.5, -0.25], r"bernoulli: probabilities .* got -0\.25"),
    "bernoulli above": (lambda x: ptcore.bernoulli(x), [2.0] * 40, r"probabilities must be in \[0, 1\], got 2"),
    "bernoulli of NaN": (lambda x: ptcore.bernoulli(x), [float("nan")], r"be in \[0, 1\], got -?nan"),
    "bernoulli_": (lambda x: ptcore.empty_like(x).bernoulli_(x), [1.5], r"probabilities must be in \[0, 1\], got 1\.5"),
    "poisson": (lambda x: ptcore.poisson(x), [3.0, -1.0], "poisson: rates must not be negative, got -1"),
    "poisson of NaN": (lambda x: ptcore.poisson(x), [float("nan")], "rates must not be negative, got -?nan"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("dtype", [ptcore.float32, ptcore.float64, ptcore.bfloat16])
def test_what_is_no_probability_or_rate(name, dtype):
    """It is told at the next wait."""
    draw, numbers, text = REFUSED[name]
    x = ptcore.tensor(numbers, dtype=dtype, device="cuda")

    def told():
        draw(x)
        cuda.synchronize()

    with pytest.raises(RuntimeError, match=text):
        told()
    cuda.synchronize()
    assert ptcore.bernoulli(ptcore.tensor([0.0, 1.0], dtype=dtype, device="cuda")).tolist() == [0, 1]
