"""The keywords that creation functions share: size=, out=, dtype, layout, pin_memory, memory_format."""
import warnings

import numpy as np
import pytest

import ptcore as pt
from ptcore._interpret import Interpreter

pytestmark = pytest.mark.core

# name -> (call with keywords, what it makes of float64, or None for random values)
MAKERS = {
    "zeros": (lambda **k: pt.zeros(2, 3, **k), np.zeros((2, 3))),
    "ones": (lambda **k: pt.ones((2, 3), **k), np.ones((2, 3))),
    "empty": (lambda **k: pt.empty(2, 3, **k), None),
    "full": (lambda **k: pt.full((2, 3), 7, **k), np.full((2, 3), 7.)),
    "arange": (lambda **k: pt.arange(1, 7, 2, **k), np.arange(1., 7, 2)),
    "linspace": (lambda **k: pt.linspace(0, 1, 5, **k), np.linspace(0, 1, 5)),
    "eye": (lambda **k: pt.eye(2, 3, **k), np.eye(2, 3)),
    "rand": (lambda **k: pt.rand(2, 3, **k), None),
    "randn": (lambda **k: pt.randn(2, 3, **k), None),
    "randint": (lambda **k: pt.randint(5, (2, 3), **k), None),
    "randperm": (lambda **k: pt.randperm(4, **k), None),
    "normal": (lambda **k: pt.normal(0.0, 1.0, (2, 3), **k), None),
}
LIKE = ("empty_like", "zeros_like", "ones_like", "rand_like", "randn_like")
names = pytest.mark.parametrize("name", MAKERS)


DTYPES = [pt.bool, pt.uint8, pt.int8, pt.uint16, pt.int16, pt.uint32, pt.int32, pt.uint64, pt.int64, pt.float16,
          pt.bfloat16, pt.float32, pt.float64, pt.complex64, pt.complex128]


@names
@pytest.mark.parametrize("dtype", [None, *DTYPES], ids=str)
def test_a_call_that_is_bound_at_once_gives_what_the_others_do(name, dtype):
    """A device, and an interpreter, send a call the long way."""
    def made(**given):
        pt.manual_seed(5)
        try:
            x = MAKERS[name][0](dtype=dtype, **given)
        except (RuntimeError, TypeError, ValueError) as error:
            return type(error), str(error)
        return x.dtype, x.device, x.shape, x.stride(), None if name == "empty" else x.tolist()
    plain = made()
    assert made(device="cpu") == plain
    with Interpreter():
        assert made() == plain
    assert made(generator=pt.Generator().manual_seed(5)) == plain if "rand" in name or name == "normal" else True


def test_sizes_at_their_limits():
    for make in (pt.empty, pt.zeros, pt.rand, lambda *size: pt.randint(3, size)):
        assert make(*[1] * 64).ndim == 64
        for size in ([1] * 65, [1] * 200):
            with pytest.raises((ValueError, RuntimeError), match="at most 64"):
                make(*size)
        with pytest.raises(RuntimeError, match="sizes must be non-negative"):
            make(2, -1)


@names
def test_out(name):
    make, want = MAKERS[name]
    fresh = make(dtype=pt.float64)
    out = pt.full(tuple(fresh.shape[::-1]), 9.0, dtype=pt.float64).t() if fresh.ndim == 2 else pt.full(
        tuple(fresh.shape), 9.0, dtype=pt.float64)
    version, stride = out._version, out.stride()
    assert make(out=out) is out
    assert (out._version, out.stride()) == (version + 1, stride)
    if want is not None:
        np.testing.assert_array_equal(out.numpy(), want)
    elif name != "empty":
        assert (out != 9).all()
    empty = pt.empty(0, dtype=pt.float64)
    assert make(out=empty).shape == fresh.shape


@names
def test_out_that_does_not_fit(name):
    make, _ = MAKERS[name]
    with pytest.raises(TypeError, match=f"{name}: out must be a Tensor, got int"):
        make(out=5)
    other = pt.zeros(7, dtype=pt.float64)
    with warnings.catch_warnings(record=True) as found:     # PyTorch warns where numbers decide about the size
        warnings.simplefilter("always")
        assert make(out=other).shape == make().shape
    assert [str(w.message)[:27] for w in found] == ["An output with one or more "] * (name in ("arange", "range"))
    with pytest.raises((RuntimeError, TypeError), match=f"{name}: dtype must be that of out, float64, got"):
        make(out=pt.zeros(0, dtype=pt.float64), dtype=pt.int32)
    leaf = pt.zeros(0, dtype=pt.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match=name):
        make(out=leaf)


@names
def test_keywords_that_mean_nothing_here(name):
    make, _ = MAKERS[name]
    assert make(layout=pt.strided, pin_memory=False).shape == make().shape
    with pytest.raises(NotImplementedError, match=f"{name}: layout must be ptcore.strided"):
        make(layout="sparse")
    with pytest.raises(RuntimeError, match=f"{name}: pin_memory: it needs an accelerator"):
        make(pin_memory=True)


@names
def test_requires_grad_dtype_and_device(name):
    make, _ = MAKERS[name]
    x = make(dtype=pt.float64, requires_grad=True, device="meta")
    assert x.requires_grad and x.is_leaf and x.is_meta and x.dtype == pt.float64
    if name in ("arange", "randint", "randperm", "full"):
        with pytest.raises(RuntimeError, match=r"float|complex"):
            make(dtype=pt.int64, requires_grad=True)


@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "rand", "randn"])
def test_size_by_name(name):
    f = getattr(pt, name)
    assert f(size=(2, 3)).shape == f(2, 3).shape == f([2, 3]).shape == f(pt.Size([2, 3])).shape == (2, 3)
    assert f(()).shape == f(size=()).shape == ()


@pytest.mark.parametrize("name", LIKE)
def test_like(name):
    f, x = getattr(pt, name), pt.ones(3, 2, dtype=pt.float16).t()
    assert f(x).shape == (2, 3) and f(x).dtype == pt.float16
    assert f(x, dtype=pt.float64, device="meta", requires_grad=True).requires_grad
    with pytest.raises(TypeError, match=f"{name}: memory_format must be a ptcore.memory_format"):
        f(x, memory_format="channels")
    with pytest.raises(TypeError, match=f"{name}: input must be a Tensor, got int"):
        f(5)


def test_bernoulli_out():
    out = pt.full((4,), 9.0)
    assert pt.bernoulli(pt.ones(4), out=out) is out
    assert out.tolist() == [1.0] * 4


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_random_fills_up_to_the_largest(dtype):
    """``random_()`` of integers draws from 0 to the dtype's largest number, as in PyTorch."""
    high = np.iinfo(dtype).max
    values = pt.zeros(4000, dtype=getattr(pt, dtype)).random_(generator=pt.Generator().manual_seed(0)).numpy()
    assert values.min() >= 0
    assert values.astype(float).mean() == pytest.approx(high / 2, rel=0.05)
    if dtype.endswith("8"):
        assert values.max() == high


def test_dtypes_by_name():
    for dtype in ("int64", "int32", "float64"):
        found = pt.arange(0.0, 5.5, 1.0, dtype=dtype)
        assert found.dtype == getattr(pt, dtype)
        assert found.tolist() == list(range(6 if dtype != "int64" else 5))
    assert pt.linspace(0, 1, 3, dtype="float64").tolist() == np.linspace(0, 1, 3).tolist()
    with pytest.raises(ValueError, match="int64"):
        pt.arange(0.0, 5.0, 0.5, dtype="int64")


@pytest.mark.parametrize("make", [lambda out: pt.arange(4, out=out), lambda out: pt.linspace(0, 3, 4, out=out),
                                  lambda out: pt.range(0, 3, out=out)])
def test_ranges_keep_the_shape_of_out(make):
    x = pt.zeros(2, 3)
    result = make(x[:, 1:])
    assert x.tolist() == [[0, 0, 1], [0, 2, 3]] and result.shape == (2, 2)
    assert make(pt.zeros(0)).tolist() == [0, 1, 2, 3]
