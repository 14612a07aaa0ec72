"""Complex draws: their distributions, their determinism, the ranges of integers."""
import numpy as np
import pytest
from scipy import stats

import ptcore as pt

pytestmark = pytest.mark.core
DTYPES = (pt.complex64, pt.complex128)


def seeded():
    return pt.Generator().manual_seed(11)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("draw", [
    lambda dtype, g: pt.randn(20000, dtype=dtype, generator=g),
    lambda dtype, g: pt.randn_like(pt.empty(20000, dtype=dtype), generator=g),
    lambda dtype, g: pt.empty(20000, dtype=dtype).normal_(generator=g),
    lambda dtype, g: (pt.normal(3.0, 2.0, (20000,), dtype=dtype, generator=g) - (3 + 3j)) / 2,
    lambda dtype, g: (pt.normal(pt.full((20000,), 2 - 1j, dtype=dtype), 4.0, generator=g) - (2 - 1j)) / 4,
    lambda dtype, g: pt.empty(20000, 2, dtype=dtype)[:, 1].normal_(generator=g)])
def test_normal_numbers(draw, dtype):
    """Parts of variance 1/2 that do not depend on each other."""
    z = draw(dtype, seeded())
    assert z.dtype is dtype
    for part in (z.real, z.imag):
        assert stats.kstest(part.numpy(), stats.norm(0, 0.5**0.5).cdf).pvalue > 1e-3
    assert abs(np.corrcoef(z.real.numpy(), z.imag.numpy())[0, 1]) < 0.03
    assert abs(z.abs().square().mean().item() - 1) < 0.03


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("draw", [
    lambda dtype, g: pt.rand(20000, dtype=dtype, generator=g),
    lambda dtype, g: pt.rand_like(pt.empty(20000, dtype=dtype), generator=g),
    lambda dtype, g: pt.empty(20000, dtype=dtype).uniform_(generator=g),
    lambda dtype, g: (pt.empty(20000, dtype=dtype).uniform_(-1, 3, generator=g) + (1 + 1j)) / 4])
def test_uniform_numbers(draw, dtype):
    z = draw(dtype, seeded())
    assert z.dtype is dtype
    for part in (z.real, z.imag):
        assert stats.kstest(part.numpy(), "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(z.real.numpy(), z.imag.numpy())[0, 1]) < 0.03


@pytest.mark.parametrize("dtype", DTYPES)
def test_index_is_logical(dtype):
    """An element is the pair of reals at its place in row-major order, whatever the strides are."""
    real = dtype.to_real()
    plain = pt.view_as_complex(pt.rand(30, 40, 2, dtype=real, generator=seeded()))
    assert pt.equal(pt.rand(30, 40, dtype=dtype, generator=seeded()), plain)
    turned = pt.empty(40, 30, dtype=dtype).t()
    assert pt.equal(turned.uniform_(generator=seeded()), plain)
    assert pt.equal(pt.empty(30, 80, dtype=dtype)[:, ::2].uniform_(generator=seeded()), plain)
    assert pt.equal(pt.empty(31, 40, dtype=dtype)[:0:-1].uniform_(generator=seeded()), plain)
    normal = pt.view_as_complex(pt.randn(30, 40, 2, dtype=real, generator=seeded()) * 0.5**0.5)
    pt.testing.assert_close(pt.randn(30, 40, dtype=dtype, generator=seeded()), normal)


def test_one_call_advances_by_one():
    a, b = seeded(), seeded()
    pt.randn(7, dtype=pt.complex64, generator=a)
    pt.empty(9, 9, dtype=pt.complex64).t().uniform_(generator=a)
    pt.randn(7, generator=b)
    pt.randn(7, generator=b)
    assert pt.equal(pt.rand(5, generator=a), pt.rand(5, generator=b))


def test_tensors_as_others():
    z = pt.randn(2, 3, dtype=pt.complex64, requires_grad=True)
    assert z.is_leaf and z.requires_grad and z._version == 0 and z._base is None
    assert pt.randn(2, 3, dtype=pt.complex64, device="meta").shape == (2, 3)
    assert pt.rand(0, 3, dtype=pt.complex64).shape == (0, 3)
    assert pt.rand((), dtype=pt.complex128).ndim == 0
    out = pt.empty(3, dtype=pt.complex128)
    assert pt.randn(3, out=out) is out and (out.imag != 0).all()
    x = pt.zeros(3, dtype=pt.complex64)
    y = x * 1
    version = y._version
    assert y.normal_() is y and y._version == version + 1
    w = pt.zeros(3, dtype=pt.complex64, requires_grad=True)
    with pytest.raises(RuntimeError, match="normal_: a leaf"):
        w.normal_()
    v = w * 2
    v.uniform_()
    (g,) = pt.autograd.grad(v.sum().real, w)
    assert g.tolist() == [0, 0, 0]


def test_normal_of_tensors():
    g = seeded()
    mean, std = pt.tensor([0.0, 100.0]).double().requires_grad_(), pt.tensor([[1.0], [10.0]]).requires_grad_()
    x = pt.stack([pt.normal(mean, std, generator=g) for _ in range(4000)])
    assert x.shape == (4000, 2, 2) and x.dtype is pt.float64
    np.testing.assert_allclose(x.mean(0).detach().numpy(), [[0, 100], [0, 100]], atol=0.7)
    np.testing.assert_allclose(x.std(0).detach().numpy(), [[1, 1], [10, 10]], rtol=0.05)
    assert abs(np.corrcoef(x.detach().reshape(4000, 4).numpy().T) - np.eye(4)).max() < 0.07     # no number stands twice
    for grad in pt.autograd.grad(x.sum(), (mean, std)):
        assert (grad == 0).all()
    assert pt.normal(1.0, std.detach().double(), generator=g).dtype is pt.float64
    for bad in (-1.0, pt.tensor([1.0, -1.0]), pt.tensor([1.0, np.nan]), pt.ones(2, dtype=pt.complex64)):
        with pytest.raises(RuntimeError, match="normal: std must be"):
            pt.normal(pt.ones(2), bad)
    with pytest.raises(RuntimeError, match="normal: shapes must broadcast"):
        pt.normal(pt.ones(2), pt.ones(3))
    with pytest.raises(NotImplementedError, match="dtype must be floating point, got int64"):
        pt.normal(pt.ones(2, dtype=pt.int64), 1.0)


def test_other_distributions_are_real():
    z = pt.zeros(3, dtype=pt.complex64)
    for call in (z.exponential_, z.cauchy_, z.random_, z.log_normal_, lambda: z.geometric_(0.5),
                 lambda: pt.randint(3, (2,), dtype=pt.complex64)):
        with pytest.raises(RuntimeError, match="complex64"):
            call()


def test_randint_by_keywords():
    for call, low, high in ((lambda: pt.randint(high=5, size=(999,)), 0, 4), (lambda: pt.randint(5, size=(999,)), 0, 4),
                            (lambda: pt.randint(5, (999,)), 0, 4), (lambda: pt.randint(2, 5, (999,)), 2, 4),
                            (lambda: pt.randint(low=2, high=5, size=(999,)), 2, 4),
                            (lambda: pt.randint(size=(999,), high=3), 0, 2)):
        x = call()
        assert (x.min().item(), x.max().item(), x.shape) == (low, high, (999,))
    for call, error in ((lambda: pt.randint(5), TypeError), (lambda: pt.randint(size=(2,)), TypeError),
                        (lambda: pt.randint(2.5, (2,)), TypeError), (lambda: pt.randint(0, 0, (2,)), RuntimeError),
                        (lambda: pt.randint(300, (2,), dtype=pt.uint8), RuntimeError),
                        (lambda: pt.randint(-1, 3, (2,), dtype=pt.uint8), RuntimeError)):
        with pytest.raises(error, match="randint: "):
            call()


@pytest.mark.parametrize(("dtype", "largest"), [
    ("bool", 1), ("uint8", 255), ("int8", 127), ("int16", 2**15 - 1), ("int32", 2**31 - 1), ("int64", 2**63 - 2),
    ("float16", 2**11), ("bfloat16", 2**8), ("float32", 2**24), ("float64", 2**53)])
def test_random_reaches_the_largest(dtype, largest):
    x = pt.empty(200000, dtype=getattr(pt, dtype)).random_(generator=seeded())
    assert x.min() >= 0 and int(x.max().item()) <= largest
    assert int(x.max().item()) >= largest * 0.9999 - 1
    assert x.double().mean().item() == pytest.approx(largest / 2, rel=0.02)


def test_random_bounds():
    x = pt.empty(999, dtype=pt.int64)
    for call, low, high in ((lambda: x.random_(3), 0, 2), (lambda: x.random_(-2, 3), -2, 2), (lambda: x.random_(to=3), 0, 2),
                            (lambda: x.random_(**{"from": 7, "to": 9}), 7, 8)):
        call()
        assert (x.min().item(), x.max().item()) == (low, high)
    assert x.random_(2**62, None).min() >= 2**62
    assert pt.empty(99, dtype=pt.uint8).random_(250, None).min() >= 250
    for call in (lambda: x.random_(0), lambda: x.random_(3, 3), lambda: pt.ones(2, dtype=pt.int8).random_(-200, 5),
                 lambda: pt.ones(2, dtype=pt.bool).random_(3), lambda: pt.ones(2, dtype=pt.float16).random_(0, 70000)):
        with pytest.raises(RuntimeError, match="random_: "):
            call()
    with pytest.raises(TypeError, match="random_: there is no argument 'until'"):
        x.random_(until=3)
    assert pt.empty(9).uniform_(**{"from": 1.0, "to": 2.0}).min() >= 1


@pytest.mark.parametrize("name", ["svd_lowrank", "pca_lowrank"])
def test_low_rank_of_complex(name):
    pt.manual_seed(0)
    a = pt.randn(9, 3, dtype=pt.complex128) @ pt.randn(3, 7, dtype=pt.complex128)
    U, S, V = getattr(pt, name)(a, 4)
    assert S.dtype is pt.float64
    want = (a if name == "svd_lowrank" else a - a.mean(0, keepdim=True)).numpy()
    np.testing.assert_allclose((U * S @ V.mH).numpy(), want, atol=1e-9)
    np.testing.assert_allclose(S[:3].numpy(), np.linalg.svd(want)[1][:3], rtol=1e-9)
    assert pt.svd_lowrank(a, 20)[1].shape == (7,)
