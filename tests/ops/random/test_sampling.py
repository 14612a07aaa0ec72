"""Draws of composite rows: frequencies against the distributions, determinism, errors."""
import numpy as np
import pytest
from scipy import stats

import ptcore as pt

pytestmark = pytest.mark.core
F = pt.nn.functional


def test_multinomial_frequencies():
    pt.manual_seed(0)
    p = pt.tensor([[1.0, 0.0, 3.0], [2.0, 2.0, 0.0]])
    drawn = pt.multinomial(p, 20000, replacement=True).numpy()
    for row, want in zip(drawn, ([0.25, 0, 0.75], [0.5, 0.5, 0])):
        np.testing.assert_allclose(np.bincount(row, minlength=3) / 20000, want, atol=0.02)
    assert drawn.dtype == np.int64


def test_multinomial_without_replacement():
    pt.manual_seed(0)
    p = pt.tensor([1.0, 2.0, 5.0, 0.0])
    first = np.zeros(4)
    for _ in range(3000):
        places = pt.multinomial(p, 3).tolist()
        assert sorted(places) == [0, 1, 2]
        first[places[0]] += 1
    np.testing.assert_allclose(first / 3000, [1 / 8, 2 / 8, 5 / 8, 0], atol=0.04)


def test_multinomial_repeats_with_the_seed():
    p = pt.rand(50)
    a = pt.multinomial(p, 10, generator=pt.Generator().manual_seed(3))
    b = pt.multinomial(p, 10, generator=pt.Generator().manual_seed(3))
    assert pt.equal(a, b)


@pytest.mark.parametrize("call", [
    lambda: pt.multinomial(pt.ones(3), 4), lambda: pt.multinomial(pt.ones(3), 0),
    lambda: pt.multinomial(pt.tensor([1.0, -1.0]), 1), lambda: pt.multinomial(pt.zeros(3), 1),
    lambda: pt.multinomial(pt.tensor([1.0, np.nan]), 1), lambda: pt.multinomial(pt.ones(2, 2, 2), 1),
    lambda: pt.multinomial(pt.ones(3, dtype=pt.int64), 1)])
def test_multinomial_errors(call):
    with pytest.raises((RuntimeError, ValueError, TypeError), match=r"^multinomial: "):
        call()


@pytest.mark.parametrize("rate", [0.3, 4.0, 9.9, 10.0, 35.0, 1e4])
def test_poisson(rate):
    pt.manual_seed(1)
    x = pt.poisson(pt.full((20000,), rate, dtype=pt.float64)).numpy()
    assert abs(x.mean() - rate) < 5 * np.sqrt(rate / 20000)
    assert abs(x.var() / rate - 1) < 0.06
    if rate < 100:
        counts = np.bincount(x.astype(int))
        expected = stats.poisson.pmf(np.arange(len(counts)), rate) * 20000
        keep = expected > 20
        assert np.sum((counts - expected)[keep] ** 2 / expected[keep]) < 2.5 * keep.sum() + 15


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (7, 0.3), (40, 0.9), (1000, 0.005), (20, 0.5), (30, 0.5), (400, 0.97),
                                      (1e6, 1e-6), (1e9, 0.25)])
def test_binomial(n, p):
    pt.manual_seed(1)
    x = pt.binomial(pt.full((20000,), n, dtype=pt.float64), pt.full((20000,), p, dtype=pt.float64)).numpy()
    assert abs(x.mean() - n * p) < 5 * np.sqrt(n * p * (1 - p) / 20000)
    assert abs(x.var() / (n * p * (1 - p)) - 1) < 0.06
    low = max(int(x.min()), 0)
    if x.max() - low < 300:
        counts = np.bincount(x.astype(int) - low)
        expected = stats.binom.pmf(np.arange(low, low + len(counts)), n, p) * 20000
        keep = expected > 20
        assert np.sum((counts - expected)[keep] ** 2 / expected[keep]) < 2.5 * keep.sum() + 15


def test_binomial_edges():
    pt.manual_seed(1)
    assert pt.binomial(pt.tensor([0.0, 7.0, 7.0, 3.0]), pt.tensor([0.5, 1.0, 0.0, 1e-300])).tolist() == [0, 7, 0, 0]
    assert pt.binomial(pt.full((2, 1), 5.0, dtype=pt.float16), pt.ones(3, dtype=pt.float16)).tolist() == [[5] * 3] * 2
    assert pt.binomial(pt.ones(0), pt.ones(0)).shape == (0,)
    for count in (-1.0, 0.5, np.nan, np.inf):
        with pytest.raises(RuntimeError, match="binomial: count must hold whole numbers that are not negative, got"):
            pt.binomial(pt.tensor([count]), pt.tensor([0.5]))
    for p in (-0.1, 1.1, np.nan):
        with pytest.raises(RuntimeError, match=r"binomial: prob must be in \[0, 1\], got"):
            pt.binomial(pt.tensor([1.0]), pt.tensor([p]))


def test_poisson_edges():
    assert pt.poisson(pt.tensor([0.0, 0.0])).tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="rates must not be negative"):
        pt.poisson(pt.tensor([-1.0]))


def test_in_place_distributions():
    pt.manual_seed(2)
    x = pt.empty(20000, dtype=pt.float64)
    assert stats.kstest(x.cauchy_(1, 2).numpy(), "cauchy", (1, 2)).pvalue > 1e-3
    assert stats.kstest(np.log(x.log_normal_(0.5, 2).numpy()), stats.norm(0.5, 2).cdf).pvalue > 1e-3
    g = x.geometric_(0.3).numpy()
    assert g.min() == 1 and abs(g.mean() - 1 / 0.3) < 0.1
    n = pt.empty(1000, dtype=pt.int64).geometric_(0.5)
    assert n.dtype is pt.int64 and int(n.min()) == 1
    for call in (lambda: x.cauchy_(0, -1), lambda: x.log_normal_(0, 0), lambda: x.geometric_(0), lambda: n.cauchy_()):
        with pytest.raises(RuntimeError):
            call()


def test_dropouts():
    pt.manual_seed(3)
    x = pt.ones(200, 50, 4)
    for function in (F.dropout1d, pt.feature_dropout):
        y = function(x, 0.25, True).numpy()
        assert set(np.unique(y)) == {0.0, np.float32(1 / 0.75)}
        assert (y == y[..., :1]).all()          # channels go as a whole
        assert abs((y[..., 0] == 0).mean() - 0.25) < 0.02
    normal = pt.randn(100000)
    y = F.alpha_dropout(normal, 0.3, True)
    assert abs(y.mean().item()) < 0.02 and abs(y.std().item() - 1) < 0.02
    assert F.alpha_dropout(normal) is normal
    z = F.feature_alpha_dropout(x, 0.5, True)
    assert len(np.unique(z.numpy())) == 2
    assert F.dropout2d(pt.ones(3, 4, 5, 5), 1.0).sum() == 0
    single = F.dropout1d(pt.ones(4, 6), 0.5)
    assert (single == single[:, :1]).all()


def test_gumbel_softmax():
    pt.manual_seed(4)
    logits = pt.log(pt.tensor([1.0, 3.0])).expand(20000, 2)
    hard = F.gumbel_softmax(logits, hard=True)
    assert set(np.unique(hard.numpy())) <= {0.0, 1.0}
    assert abs(hard[:, 1].mean().item() - 0.75) < 0.02
    leaf = logits.clone().requires_grad_()
    F.gumbel_softmax(leaf, tau=0.5, hard=True)[:, 0].sum().backward()
    assert leaf.grad.abs().sum() > 0


def test_rrelu():
    pt.manual_seed(5)
    x = -pt.ones(1000)
    y = -F.rrelu(x, 0.1, 0.3, training=True)
    assert 0.1 <= y.min() < 0.12 and 0.28 < y.max() <= 0.3
    np.testing.assert_allclose(F.rrelu(x, 0.1, 0.3).numpy(), -0.2, rtol=1e-6)
    with pytest.raises(RuntimeError, match="rrelu: lower must not exceed upper"):
        F.rrelu(x, 0.5, 0.1)


@pytest.mark.parametrize("dtype, largest", [
    ("uint8", 256), ("int8", 128), ("bool", 2), ("float16", 2049), ("int16", 32768)])
def test_a_permutation_needs_a_dtype_that_holds_it(dtype, largest):
    assert pt.randperm(largest, dtype=dtype).double().sort().values.tolist() == list(range(largest))
    for call in (lambda n: pt.randperm(n, dtype=dtype), lambda n: pt.randperm(n, out=pt.empty(0, dtype=dtype))):
        with pytest.raises(RuntimeError, match=f"^randperm: .*{dtype}.* {largest + 1}$"):
            call(largest + 1)
    assert pt.randperm(0, dtype=dtype).shape == (0,)


def test_generators_take_whole_numbers_and_return_themselves():
    g = pt.Generator()
    assert g.manual_seed(3) is g and g.set_offset(np.int64(5)) is g and g.get_offset() == 5
    other = pt.Generator()
    assert other.set_state(g.get_state()) is other and (other.initial_seed(), other.get_offset()) == (3, 5)
    for name, bad in (("manual_seed", 1.5), ("manual_seed", "3"), ("manual_seed", None), ("set_offset", 1.5)):
        with pytest.raises(TypeError, match=f"^{name}: .* must be an integer, got {type(bad).__name__}"):
            getattr(g, name)(bad)
    for name, bad in (("manual_seed", 2**64), ("set_offset", 2**64), ("set_offset", -1)):
        with pytest.raises(ValueError, match=f"^{name}: .* 64 bits.*{bad}"):
            getattr(g, name)(bad)
    assert (g.initial_seed(), g.get_offset()) == (3, 5)


@pytest.mark.parametrize("p", [0.0, 0.25, 0.9, 1.0])
def test_native_dropout(p):
    """The mask says what is kept; without training all is."""
    x = pt.arange(1.0, 20001.0)
    y, kept = pt.native_dropout(x, p, True)
    assert kept.dtype is pt.bool and abs(kept.double().mean().item() - (1 - p)) < 0.02
    np.testing.assert_allclose(y.numpy(), np.where(kept.numpy(), x.numpy() / (1 - p) if p < 1 else 0, 0), rtol=1e-6)
    y, kept = pt.native_dropout(x, p, False)
    assert y.equal(x) and bool(kept.all())


def test_dropout3d_drops_whole_channels():
    x = pt.ones(200, 10, 2, 3, 4)
    y = pt.nn.functional.dropout3d(x, 0.25)
    channels = y.numpy().reshape(2000, 24)
    np.testing.assert_allclose(channels, np.repeat(channels[:, :1], 24, 1))
    assert set(channels[:, 0]) == {0, np.float32(4 / 3)}
    assert abs((channels[:, 0] == 0).mean() - 0.25) < 0.04
    assert pt.nn.functional.dropout3d(x, 0.25, training=False).equal(x)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_the_width_of_a_uniform_range_must_fit(name):
    dtype = getattr(pt, name)
    largest = pt.finfo(dtype).max
    x = pt.empty(1000, dtype=dtype)
    for low, high in ((-largest, largest), (-0.6 * largest, 0.6 * largest)):
        with pytest.raises(RuntimeError, match=f"uniform_: .*(fit|to) {dtype.to_real().name}"):
            x.uniform_(low, high)
    for part in (pt.view_as_real(x) if dtype.is_complex else x).uniform_(-largest / 2, largest / 2).reshape(2, -1):
        assert part.min() < -0.4 * largest
        assert part.max() > 0.4 * largest
