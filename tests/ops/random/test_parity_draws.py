"""Random functions that the op database does not try: their distribution is that of PyTorch's, with other numbers."""
import pytest
from scipy import stats

import ptcore as pt

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity
N = 20000


def words(x, base):
    """Rows of digits as single numbers."""
    return sum(x[:, i] * base ** i for i in range(x.shape[1]))


def logits(lib):
    return lib.tensor([0.5, 0.0, -1.0]).expand(N, 3)


def softmax_draws(lib, **how):
    return lib.nn.functional.gumbel_softmax(logits(lib), **how)


def permutations(lib):
    return words(lib.stack([lib.randperm(4) for _ in range(N // 10)]), 4)


DRAWS = {
    **{f"rand {d}": lambda lib, d=d: lib.rand(N, dtype=getattr(lib, d)) for d in ("float16", "float32", "float64")},
    "rand complex": lambda lib: lib.view_as_real(lib.rand(N, dtype=lib.complex64)).reshape(-1),
    "randperm": permutations,
    "randperm of many": lambda lib: lib.randperm(N)[:N // 4],
    **{f"poisson {rate}": lambda lib, rate=rate: lib.poisson(lib.full((N,), rate)) for rate in (0.3, 4.0, 50.0, 1e5)},
    **{f"bernoulli {p}": lambda lib, p=p: lib.full((N,), p).bernoulli() for p in (0.01, 0.5, 0.9)},
    "bernoulli of p": lambda lib: lib.zeros(N).bernoulli(0.3),
    "bernoulli_": lambda lib: lib.zeros(N, dtype=lib.int32).bernoulli_(0.3),
    "bernoulli_ of a tensor": lambda lib: lib.zeros(N).bernoulli_(lib.linspace(0, 1, N)).view(100, -1).sum(1),
    **{f"random_ {d}": lambda lib, d=d: lib.zeros(N, dtype=getattr(lib, d)).random_()
       for d in ("float16", "bfloat16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64", "bool")},
    "random_ to": lambda lib: lib.zeros(N, dtype=lib.int64).random_(17),
    "random_ from to": lambda lib: lib.zeros(N, dtype=lib.int64).random_(-5, 2 ** 40),
    "multinomial": lambda lib: lib.tensor([1.0, 0.0, 3.0, 2.0]).multinomial(N, replacement=True),
    "multinomial without": lambda lib: words(lib.tensor([1.0, 0.5, 3.0, 2.0]).expand(N, 4).multinomial(3), 4),
    "gumbel_softmax": lambda lib: softmax_draws(lib)[:, 0],
    "gumbel_softmax tau": lambda lib: softmax_draws(lib, tau=0.3)[:, 1],
    "gumbel_softmax hard": lambda lib: softmax_draws(lib, hard=True).argmax(1),
    "dropout1d": lambda lib: (lib.nn.functional.dropout1d(lib.ones(N // 10, 5, 3), 0.3) != 0).sum((1, 2)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_distribution(name):
    pt.manual_seed(11), torch.manual_seed(12)
    a, b = DRAWS[name](pt), DRAWS[name](torch)
    assert str(a.dtype).split(".")[-1] == str(b.dtype).split(".")[-1] and tuple(a.shape) == tuple(b.shape)
    a, b = (x.to(lib.float64).numpy() for x, lib in ((a, pt), (b, torch)))
    assert stats.ks_2samp(a, b).pvalue > 1e-4
    assert abs(a.mean() - b.mean()) < 5 * ((a.var() + b.var()) / len(a)) ** 0.5 + 1e-12
    if 0 < b.var() and abs(b).max() < 1e12:
        assert abs(a.var() / b.var() - 1) < 0.1


@pytest.mark.parametrize("seed", [0, 5, -1, 2 ** 63, -(2 ** 63), 2 ** 64 - 1, 2 ** 64, 1.0, True, None, "x", [1]])
def test_manual_seed(seed):
    """The seeds that it takes, what it returns, and that they repeat the numbers."""
    def run(lib):
        try:
            generator = lib.manual_seed(seed)
        except Exception as e:
            return next(c.__name__ for c in (TypeError, ValueError, OverflowError, RuntimeError) if isinstance(e, c))
        first = lib.rand(3)
        lib.random.manual_seed(seed)
        return generator is lib.default_generator, lib.initial_seed(), bool((lib.rand(3) == first).all())
    assert run(pt) == run(torch)
