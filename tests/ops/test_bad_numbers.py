"""Numbers that do not fit: what would silently become another number is an error naming the op.

In arithmetic an int wraps to the tensor's width, as in PyTorch; where the number itself becomes an
element (filling, choosing, clamping) it must be one of the dtype's.
"""
import math

import numpy as np
import pytest

import ptcore

pytestmark = pytest.mark.core

MASK = ptcore.tensor([True, False])


@pytest.mark.parametrize("call", [
    lambda x: x + 10**400, lambda x: 10**400 - x, lambda x: x * 10**39, lambda x: x == 10**39, lambda x: x < -10**39,
    lambda x: x.clone().add_(2**64), lambda x: x.clone().fill_(2**70), lambda x: ptcore.where(MASK, x, 2**64)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8"])
def test_ints_beyond_64_bits(call, dtype):
    with pytest.raises(OverflowError, match=r"^\w+: operands must be 64-bit integers beside"):
        call(ptcore.ones(2, dtype=getattr(ptcore, dtype)))


def test_ints_of_64_bits_without_sign():
    """Only beside uint64 and floats; int64 would wrap and compare wrongly."""
    x = ptcore.tensor([1, 2])
    with pytest.raises(OverflowError, match=r"^lt: "):
        _ = x < 2**63
    with pytest.raises(OverflowError, match=r"^add: "):
        _ = x + 2**63
    assert (x.to(ptcore.uint64) < 2**63).all()
    assert (x.to(ptcore.float64) < 2**63).all()
    assert ptcore.full((2,), 2**63, dtype=ptcore.uint64).tolist() == [2**63] * 2


@pytest.mark.parametrize(("dtype", "value"), [
    ("int8", 300), ("int8", -129), ("int32", 2**40), ("uint8", 256), ("int64", math.nan), ("int32", math.inf),
    ("int8", 127.5), ("int8", -128.5), ("uint8", 255.5), ("uint8", -256), ("uint8", -0.5), ("uint16", -1.0),
    ("float32", 1e39), ("float16", 70000.0), ("float16", -1e9), ("bfloat16", 3.4e38)])
def test_elements_are_not_wrapped(dtype, value):
    dtype = getattr(ptcore, dtype)
    x = ptcore.ones(2, dtype=dtype)
    calls = [lambda: ptcore.full((2,), value, dtype=dtype), lambda: x.fill_(value), lambda: x.masked_fill(MASK, value),
             lambda: x.masked_fill_(MASK, value), lambda: ptcore.full_like(x, value),
             lambda: x.new_full((2,), value), lambda: ptcore.linspace(0, value, 3, dtype=dtype)]
    half = dtype in (ptcore.float16, ptcore.bfloat16)
    if not half:
        calls += [lambda: x.__setitem__(0, value), lambda: x.__setitem__(MASK, value),
                  lambda: x.__setitem__([0], value), lambda: x.scatter_(0, ptcore.tensor([0]), value)]
    if math.isfinite(value) and not (dtype.kind in "iu" and isinstance(value, float)):
        calls += [lambda: x.clamp(max=value), lambda: x.clamp(min=value), lambda: ptcore.maximum(x, value)]
        if not half:
            calls += [lambda: ptcore.where(MASK, x, value), lambda: x.add(x, alpha=value)]
    for call in calls:
        with pytest.raises(RuntimeError, match=r"cannot be converted to \w+ without overflow"):
            call()
    assert x.tolist() == [1, 1]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("key", [0, slice(0, 1), [0], MASK, ...])
def test_half_elements_become_infinite_by_index(dtype, key):
    """As in PyTorch: `scores[mask] = -1e39` is a habit of programs in half precision."""
    x = ptcore.ones(2, dtype=getattr(ptcore, dtype))
    x[key] = -1e39
    assert x[0].item() == -math.inf
    assert ptcore.where(MASK, 1e39, x)[0].item() == math.inf


def test_messages_of_what_is_no_element():
    x = ptcore.ones(2)
    for call, error, text in (
            (lambda: x.fill_("a"), TypeError, "fill_: value must be a number or a Tensor, got str"),
            (lambda: ptcore.full((2,), None), TypeError, "full: fill_value must be a number, got NoneType"),
            (lambda: x.__setitem__(0, "a"), TypeError, "index: the value must be a number, a Tensor or an array"),
            (lambda: x.__setitem__(MASK, None), TypeError, "index: the value must be a number, a Tensor or an array"),
            (lambda: x.__setitem__([0], 1j), RuntimeError, r"index: the complex number 1j cannot be converted"),
            (lambda: x.masked_fill(MASK, ptcore.tensor(1j)), RuntimeError, "masked_fill: the complex number 1j"),
            (lambda: ptcore.linspace(0, "a", 3), TypeError, "linspace: end must be a number, got str")):
        with pytest.raises(error, match=f"^{text}"):
            call()
    assert x.tolist() == [1, 1]


def test_what_fits_and_what_wraps():
    x = ptcore.ones(2, dtype=ptcore.int8)
    assert (x + 300).tolist() == [45, 45]               # PyTorch's
    assert (x < 300).all()
    assert x.fill_(-128).tolist() == [-128, -128]
    assert ptcore.zeros(2, dtype=ptcore.uint8).fill_(-1).tolist() == [255, 255]
    assert ptcore.zeros(2, dtype=ptcore.uint8).fill_(-255).tolist() == [1, 1]
    assert ptcore.full((2,), 255.0, dtype=ptcore.uint8).tolist() == [255, 255]
    assert ptcore.full((2,), 2.7, dtype=ptcore.int32).tolist() == [2, 2]
    assert ptcore.full((2,), math.inf).tolist() == [math.inf] * 2
    assert ptcore.zeros(2).fill_(-math.inf).tolist() == [-math.inf] * 2
    assert np.isnan(ptcore.zeros(2, dtype=ptcore.float16).fill_(math.nan).tolist()).all()
    assert ptcore.full((1,), 65504.0, dtype=ptcore.float16).item() == 65504


@pytest.mark.parametrize("numbers", [(math.inf,), (0, math.inf), (0, 1, math.nan), (-math.inf, 0)])
def test_endless_ranges(numbers):
    with pytest.raises(RuntimeError, match="arange: start, end and step must be finite"):
        ptcore.arange(*numbers)


@pytest.mark.parametrize("value", ["a", None, [0, 1]])
def test_membership_of_what_is_no_number(value):
    with pytest.raises(RuntimeError, match="in: a tensor holds numbers, got"):
        _ = value in ptcore.arange(3)
    assert 2 in ptcore.arange(3)
    assert np.int64(1) in ptcore.arange(3)
    assert ptcore.tensor(1) in ptcore.arange(3)


def test_sequences_that_change_or_contain_themselves():
    class Shrinking(list):
        def __iter__(self):
            yield 1
            self.clear()
            yield 2

    endless = []
    endless.append(endless)
    mixed = [1]
    mixed.append(mixed)
    deep = 1.0
    for _ in range(100_000):
        deep = [deep]
    for make in (ptcore.tensor, ptcore.as_tensor):
        for data in (endless, mixed, deep):
            with pytest.raises((ValueError, TypeError), match="tensor: "):
                make(data)
    with pytest.raises((ValueError, TypeError)):
        ptcore.tensor([[1, 2, 3], Shrinking([1, 2, 3])][1:] + [[1]])
    for call in (ptcore.zeros, ptcore.cat, ptcore.stack, lambda s: ptcore.arange(3)[s,],
                 lambda s: ptcore.ones(3).reshape(s), lambda s: ptcore.ones(3).sum(s)):
        with pytest.raises((ValueError, TypeError, IndexError)):
            call(mixed)


def test_index_that_changes_the_tensor():
    """__index__ runs user code between the check of a size and its use."""
    x = ptcore.zeros(3, 4)

    class Shrinks:
        def __index__(self):
            x.resize_(0)
            return 2

    with pytest.raises(IndexError):
        x[Shrinks(), 3]


@pytest.mark.parametrize("dtype", ["int64", "uint8", "int8"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e19])
def test_factors_of_integer_products(dtype, value):
    """A factor beside a product of integers is one of them: NaN became some integer."""
    x = ptcore.ones(2, 2, dtype=getattr(ptcore, dtype))
    v, b, index = x[0], x[None], ptcore.tensor([0])
    for call, name in ((lambda: ptcore.addmm(x, x, x, beta=value), "beta"),
                       (lambda: ptcore.addmm(x, x, x, alpha=value), "alpha"),
                       (lambda: ptcore.addmv(v, x, v, alpha=value), "alpha"),
                       (lambda: ptcore.addbmm(x, b, b, beta=value), "beta"),
                       (lambda: ptcore.baddbmm(b, b, b, alpha=value), "alpha"),
                       (lambda: x.index_add(0, index, x[:1], alpha=value), "alpha"),
                       (lambda: x.clone().index_add_(0, index, x[:1], alpha=value), "alpha")):
        with pytest.raises(RuntimeError, match=rf"^\w+: {name}: value .* cannot be converted to \w.* without overflow"):
            call()
    assert ptcore.addmm(x, x, x, beta=1.5)[0, 0] == 3       # cut off, as in PyTorch
    assert x.bool().index_add(0, index, x[:1].bool(), alpha=math.nan).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_complex_factors_beside_real_tensors(dtype):
    """A factor's imaginary part is refused by name, and not dropped; one of 0 is none."""
    x = ptcore.ones(2, 2, dtype=getattr(ptcore, dtype))
    v, b, index = x[0], x[None], ptcore.tensor([0])
    for call, name in ((lambda k: ptcore.addmm(x, x, x, beta=k), "beta"),
                       (lambda k: ptcore.addmm(x, x, x, alpha=k), "alpha"),
                       (lambda k: ptcore.addmv(v, x, v, beta=k), "beta"),
                       (lambda k: ptcore.addmv(v, x, v, alpha=k), "alpha"),
                       (lambda k: ptcore.addbmm(x, b, b, alpha=k), "alpha"),
                       (lambda k: ptcore.baddbmm(b, b, b, beta=k), "beta"),
                       (lambda k: x.index_add(0, index, x[:1], alpha=k), "alpha"),
                       (lambda k: x.clone().index_add_(0, index, x[:1], alpha=k), "alpha")):
        with pytest.raises(RuntimeError, match=rf"^\w+: {name}: the complex number .* cannot be converted to"):
            call(1 + 1j)
        assert ptcore.equal(call(2 + 0j), call(2)) and call(2 + 0j).dtype is x.dtype


def test_ranges_beyond_64_bits():
    for numbers in ((2**63, 2**63 + 2), (2**63 - 1, 2**63 + 1), (-2**63, 2**63 + 1, 2**63)):
        for dtype in (None, ptcore.int64, ptcore.uint8):
            with pytest.raises(RuntimeError, match=r"^arange: value 9223372036854775808 cannot be converted to u?int"):
                ptcore.arange(*numbers, dtype=dtype)
    assert ptcore.arange(2**63, 2**63 + 2, dtype=ptcore.uint64).tolist() == [2**63, 2**63 + 1]
    assert ptcore.arange(0, 2**63, 2**62).tolist() == [0, 2**62]
    assert ptcore.arange(2**63 - 2, 2**63).tolist() == [2**63 - 2, 2**63 - 1]
    assert ptcore.arange(2**63, 2**63 + 4096, 2048, dtype=ptcore.float64).tolist() == [2.0**63, 2.0**63 + 2048]
    assert ptcore.arange(2**63, 2**63).shape == (0,)


@pytest.mark.parametrize("n", [2, 64])
def test_a_factor_of_zero_does_not_read_its_matrices(n):
    a, b, v = ptcore.full((n, n), math.nan), ptcore.ones(n, n), ptcore.ones(n)
    for got in (ptcore.addmm(b, a, b, alpha=0), ptcore.addmv(v, a, v, alpha=0), ptcore.addbmm(b, a[None], b[None], alpha=0),
                ptcore.baddbmm(b[None], a[None], b[None], alpha=0)):
        assert (got == 1).all()
    for got in (ptcore.addmm(a, b, b, beta=0), ptcore.addmv(a[0], b, v, beta=0), ptcore.addbmm(a, b[None], b[None], beta=0)):
        assert (got == n).all()
    weight = ptcore.full((n, n), math.nan, requires_grad=True)
    ptcore.addmv(v, weight, v, alpha=0).sum().backward()
    assert (weight.grad == 0).all()


@pytest.mark.parametrize(("dtype", "divisor"), [("uint8", 256), ("uint8", 512), ("int8", 256), ("int8", -256),
                                                ("int16", 65536), ("int32", 2**32)])
def test_divisors_that_become_zero(dtype, divisor):
    """A divisor wraps to the tensor's width, where it is 0."""
    x = ptcore.tensor([100, 7, 1], dtype=getattr(ptcore, dtype))
    wide = ptcore.tensor(divisor)
    for call in (lambda: x % divisor, lambda: x // divisor, lambda: ptcore.fmod(x, divisor),
                 lambda: x.clone().remainder_(divisor), lambda: ptcore.div(x, divisor, rounding_mode="trunc"), lambda: ptcore.remainder(x, wide),
                 lambda: ptcore.compile(lambda x: x % divisor)(x)):
        with pytest.raises(ZeroDivisionError, match="integer division by zero"):
            call()
    assert (x % (divisor + 3)).tolist() == [1, 1, 1]


def test_no_element_is_divided_by_zero():
    x = ptcore.zeros(0, 3, dtype=ptcore.int64)
    for r in (x // 0, x % 0, ptcore.fmod(x, 0), x // ptcore.tensor(0), x.clone().remainder_(0)):
        assert r.shape == (0, 3)
        assert r.dtype == ptcore.int64


@pytest.mark.parametrize("value", [2, -1, 0.5, math.nan, "a", None])
def test_flags_that_are_neither_0_nor_1(value):
    x = ptcore.ones(2, 3)
    with pytest.raises(TypeError, match=r"^sum: keepdim must be bool, got"):
        x.sum(1, keepdim=value)
    for one in (1, 1.0, np.bool_(True), ptcore.tensor(True)):
        assert x.sum(1, keepdim=one).shape == (2, 1)
